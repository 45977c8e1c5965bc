"""The sizes of DistilBERT, GPT-2 and LLaMA, and from them the size of every weight: the exact parameters.

NAMED["LLaMA 7B"].parameters  # 6738415616
Adapters(rank=16).parameters(NAMED["LLaMA 7B"])  # 39976960, of LoRA on all linear layers of the blocks
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import prod

# The size of each weight tensor as a product of dimensions, see `Architecture.dimensions`: "once", in each "layer", and
# of a "head" that is not the matrix of the embeddings.
_NORM = ("D", "D")
_FEED_FORWARD = ("DF", "F", "FD", "D")
WEIGHTS = {
    "distilbert": {
        "once": ("VD", "PD", *_NORM, "DD", "D", "DC", "C"),
        "layer": (*("DD", "D") * 4, *_FEED_FORWARD, *_NORM * 2),
        "head": (),
    },
    "gpt2": {
        "once": ("VD", "PD", *_NORM),
        "layer": ("DQ", "Q", "DD", "D", *_FEED_FORWARD, *_NORM * 2),
        "head": ("VD",),
    },
    "llama": {
        "once": ("VD", "D"),
        "layer": ("DD", "DG", "DG", "DD", "DF", "DF", "FD", "D", "D"),
        "head": ("VD",),
    },
}
FAMILIES = tuple(WEIGHTS)
# The linear layers of a block that LoRA can be put on, by their names in transformers: outputs and inputs.
PROJECTIONS = {
    "distilbert": {},
    "gpt2": {"attn.c_attn": "QD", "attn.c_proj": "DD", "mlp.c_fc": "FD", "mlp.c_proj": "DF"},
    "llama": {
        **{"q_proj": "DD", "k_proj": "GD", "v_proj": "GD", "o_proj": "DD"},
        **{"gate_proj": "FD", "up_proj": "FD", "down_proj": "DF"},
    },
}
IN_ATTENTION = {"attn.c_attn", "q_proj", "k_proj", "v_proj"}  # those that a block begins with
NF4 = {"bits": 4, "block": 64, "constants": 256}  # bits of a weight, weights of a block, blocks that share a float32


@dataclass(frozen=True)
class Architecture:
    """The sizes of a transformer of one of the `FAMILIES`, as transformers builds it for training.

    A DistilBERT ends in a classifier of `classes`, the others in a language model's head. `groups`: the heads of keys
    and values. `tied`: the head is the matrix of the embeddings. `dropout` is that of embeddings and layers,
    `attention_dropout` that of attention's weights, `head_dropout` that of the classifier: shares of what is dropped.
    Raises: ValueError for another family, and for a width that its heads do not divide.
    """

    family: str
    vocabulary: int
    width: int
    layers: int
    heads: int
    groups: int
    hidden: int
    positions: int
    tied: bool = False
    classes: int = 2
    dropout: float = 0.0
    attention_dropout: float = 0.0
    head_dropout: float = 0.0

    def __post_init__(self):
        if self.family not in FAMILIES:
            raise ValueError(f"unknown family {self.family!r}; the known ones are {', '.join(FAMILIES)}")
        if self.width % self.heads or self.heads % self.groups:
            raise ValueError(
                f"width {self.width}, {self.heads} heads and {self.groups} groups do not fit; "
                "the heads must divide the width, and the groups the heads"
            )

    @property
    def dimensions(self) -> dict[str, int]:
        """The sizes by the letters of the tables.

        V vocabulary, D width, F hidden width, H heads, E = D / H, G width of all keys of a token, Q = 3 D, P positions,
        C classes.
        """
        sizes = {
            "V": self.vocabulary,
            "D": self.width,
            "F": self.hidden,
            "H": self.heads,
            "E": self.width // self.heads,
        }
        return sizes | {"G": self.groups * sizes["E"], "Q": 3 * self.width, "P": self.positions, "C": self.classes}

    @property
    def parameters(self) -> int:
        """The number of parameters, tied ones once."""
        return _parameters(self)

    @property
    def adaptable(self) -> bool:
        """Whether there are linear layers that `Adapters` can be put on."""
        return bool(PROJECTIONS[self.family])

    def weights(self) -> Iterator[int]:
        """Yield the number of values of each weight tensor; a tied head is left out."""
        table, sizes = WEIGHTS[self.family], self.dimensions
        once = table["once"] + (() if self.tied else table["head"])
        yield from (prod(sizes[letter] for letter in letters) for letters in once)
        layer = [prod(sizes[letter] for letter in letters) for letters in table["layer"]]
        yield from self.layers * layer


@cache
def _parameters(architecture: Architecture) -> int:
    return sum(architecture.weights())


def nf4_bytes(values: int) -> int:
    """Return the bytes of a matrix in NF4 with double quantization: 4.127 bits a weight, without it 4.5.

    4 bits a weight; one constant for each 64 of them, in 8 bits instead of 32; and a float32 for each 256 constants:
    4 + 8 / 64 + 32 / (64 * 256), which saves 0.373 of 0.5 bits. bitsandbytes keeps some hundred bytes besides.
    Source: Dettmers et al. 2023, arXiv 2305.14314, section 3.
    """
    blocks = -(-values // NF4["block"])
    return -(-values * NF4["bits"] // 8) + blocks + 4 * -(-blocks // NF4["constants"])


@dataclass(frozen=True)
class Adapters:
    """LoRA: frozen weights W, and beside each projection two trained matrices of `rank`, A and B.

    y = W x + alpha / rank * B A x, with A [rank, inputs] and B [outputs, rank]. `projections`: names of `PROJECTIONS`,
    at least one of those that attention begins with; () for all. `nf4`: QLoRA, the linear layers of the blocks are
    stored in NF4; embeddings, norms, biases and head are not.
    Raises: ValueError for a rank below 1, and, where a model is named, for one that has no such projections.
    Sources: Hu et al. 2021, arXiv 2106.09685; Dettmers et al. 2023, arXiv 2305.14314.
    """

    rank: int = 16
    nf4: bool = False
    projections: tuple[str, ...] = ()

    def __post_init__(self):
        if self.rank < 1:
            raise ValueError(f"rank {self.rank} leaves nothing to train; take 1 or more")

    def of(self, architecture: Architecture) -> dict[str, str]:
        """Return the projections of a model that have adapters, as in `PROJECTIONS`."""
        there = PROJECTIONS[architecture.family]
        names = self.projections or tuple(there)
        if unknown := [name for name in names if name not in there]:
            raise ValueError(
                f"no projection {unknown[0]!r} in a {architecture.family}; take some of {', '.join(there)}"
            )
        if not IN_ATTENTION & set(names):
            raise ValueError(f"no adapters for {architecture.family} on {names}: attention has to have one")
        return {name: there[name] for name in names}

    def weights(self, architecture: Architecture) -> Iterator[int]:
        """Yield the number of values of each trained matrix."""
        sizes = architecture.dimensions
        for outputs, inputs in architecture.layers * tuple(self.of(architecture).values()):
            yield self.rank * sizes[inputs]
            yield sizes[outputs] * self.rank

    def parameters(self, architecture: Architecture) -> int:
        """Return how many numbers are trained."""
        return sum(self.weights(architecture))

    def frozen_bytes(self, architecture: Architecture, itemsize: int) -> int:
        """Return the bytes of the frozen weights, `itemsize` for each that is not in NF4."""
        total = itemsize * architecture.parameters
        if not self.nf4:
            return total
        sizes, table = architecture.dimensions, WEIGHTS[architecture.family]["layer"]
        matrices = [prod(sizes[letter] for letter in letters) for letters in table if len(letters) == 2]
        return total + architecture.layers * sum(nf4_bytes(values) - itemsize * values for values in matrices)


def read_config(config: object) -> Architecture:
    """Return the architecture that a configuration of transformers describes.

    Raises: ValueError for a model of another family, and for sizes that the formulas do not hold for.
    """
    family = getattr(config, "model_type", None)
    if family not in FAMILIES:
        raise ValueError(f"no formula for a model of type {family!r}; there is one for {', '.join(FAMILIES)}")
    return {"distilbert": _of_distilbert, "gpt2": _of_gpt2, "llama": _of_llama}[family](config)


def _of_distilbert(config) -> Architecture:
    _expect(config, activation="gelu")
    return Architecture(
        "distilbert",
        config.vocab_size,
        config.dim,
        config.n_layers,
        config.n_heads,
        config.n_heads,
        config.hidden_dim,
        config.max_position_embeddings,
        classes=config.num_labels,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        head_dropout=config.seq_classif_dropout,
    )


def _of_gpt2(config) -> Architecture:
    _expect(config, activation_function="gelu_new", add_cross_attention=False, reorder_and_upcast_attn=False)
    if config.embd_pdrop != config.resid_pdrop:
        raise ValueError(f"embd_pdrop {config.embd_pdrop} and resid_pdrop {config.resid_pdrop} must be the same")
    return Architecture(
        "gpt2",
        config.vocab_size,
        config.n_embd,
        config.n_layer,
        config.n_head,
        config.n_head,
        config.n_inner or 4 * config.n_embd,
        config.n_positions,
        tied=config.tie_word_embeddings,
        dropout=config.resid_pdrop,
        attention_dropout=config.attn_pdrop,
    )


def _of_llama(config) -> Architecture:
    _expect(config, hidden_act="silu", attention_bias=False, mlp_bias=False)
    _expect(config, head_dim=config.hidden_size // config.num_attention_heads)
    return Architecture(
        "llama",
        config.vocab_size,
        config.hidden_size,
        config.num_hidden_layers,
        config.num_attention_heads,
        config.num_key_value_heads,
        config.intermediate_size,
        config.max_position_embeddings,
        tied=config.tie_word_embeddings,
        attention_dropout=config.attention_dropout,
    )


def _expect(config, **usual) -> None:
    for name, value in usual.items():
        if getattr(config, name) != value:
            raise ValueError(f"{name} {getattr(config, name)!r}: the formulas hold for {value!r} alone")


def _gpt2_of(width: int, layers: int, heads: int) -> Architecture:
    sizes = ("gpt2", 50_257, width, layers, heads, heads, 4 * width, 1_024)
    return Architecture(*sizes, tied=True, dropout=0.1, attention_dropout=0.1)


def _llama_of(width: int, layers: int, heads: int, hidden: int, **more: int) -> Architecture:
    sizes = {"vocabulary": 32_000, "groups": heads, "positions": 2_048} | more
    return Architecture("llama", width=width, layers=layers, heads=heads, hidden=hidden, **sizes)


# DistilBERT: Sanh et al. 2019, arXiv 1910.01108. GPT-2: Radford et al. 2019, table 2. LLaMA 7B to 65B: Touvron et al.
# 2023, arXiv 2302.13971, table 2; Llama 2 70B: Touvron et al. 2023, arXiv 2307.09288; Llama 3: Grattafiori et al. 2024,
# arXiv 2407.21783, table 3. The rest is from their configurations.
NAMED = {
    "DistilBERT": Architecture(
        "distilbert",
        30_522,
        768,
        6,
        12,
        12,
        3_072,
        512,
        dropout=0.1,
        attention_dropout=0.1,
        head_dropout=0.2,
    ),
    "GPT-2": _gpt2_of(768, 12, 12),
    "GPT-2 medium": _gpt2_of(1_024, 24, 16),
    "GPT-2 large": _gpt2_of(1_280, 36, 20),
    "GPT-2 XL": _gpt2_of(1_600, 48, 25),
    "LLaMA 7B": _llama_of(4_096, 32, 32, 11_008),
    "LLaMA 13B": _llama_of(5_120, 40, 40, 13_824),
    "LLaMA 33B": _llama_of(6_656, 60, 52, 17_920),
    "LLaMA 65B": _llama_of(8_192, 80, 64, 22_016),
    "Llama 2 70B": _llama_of(8_192, 80, 64, 28_672, groups=8, positions=4_096),
    "Llama 3 8B": _llama_of(4_096, 32, 32, 14_336, groups=8, vocabulary=128_256, positions=8_192),
}


def find_architecture(name: str) -> Architecture:
    """Return the architecture called `name`.

    Raises: ValueError with the known names when there is none.
    """
    if name not in NAMED:
        raise ValueError(f"unknown model {name!r}; the known ones are {', '.join(NAMED)}")
    return NAMED[name]
