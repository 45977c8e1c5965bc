"""Which tensors autograd saves in the training of a DistilBERT, a GPT-2 and a LLaMA, as tables of sizes.

Tensors that two operations share have one row; parameters have none. What holds on a CPU is measured in the tests of
`utils.cost.activations`, which computes with these tables; what a GPU does otherwise is marked "cuda".

Sizes are products of dimensions, one letter each: B texts, S tokens of a text, R the rank of adapters, and those of
`Architecture.dimensions`.

With frozen weights and LoRA beside them ("frozen"; without, "whole") autograd no longer saves what only the gradient of
a weight needs: token ids, what a norm multiplies by its weight, the inputs of linear layers without an adapter and of
the head; nor autocast's copies of weights, which have 16 bits already. Before the first adapter nothing needs a
gradient: the first norm saves nothing, and the embeddings no dropout. What there is besides: A x of each adapter, and
its copies under autocast ("cast"). peft gives A its input in float32, and autocast makes 16 bits of it again: one copy
for each adapter ("copied"); not in QLoRA, nor without autocast ("shared").
"""

from dataclasses import dataclass

from utils.cost.architectures import PROJECTIONS

COPIES = "autocast's 16-bit copies of weights"
LOG_PROBABILITIES = "log-probabilities"


@dataclass(frozen=True)
class SavedTensor:
    """One kind of saved tensor: `count` tensors of `size` values each.

    `size`: the letters of its dimensions, "BSD" for [B, S, D]; "" for a scalar. `dtype`: "weights" or "compute" as the
    recipe has them, "wide" for the loss (float32, or float64 with such weights), "sums" for what float32 or float64
    sums are kept in, or one of `FIXED`. `when`: words that must all hold; "a|b" holds where a or b does.
    """

    what: str
    size: str
    dtype: str
    count: int = 1  # -1 for what the rows of a layer count once too often
    when: str = ""

    def holds(self, conditions: set[str]) -> bool:
        """Say whether the tensor is saved under these conditions, see `conditions`."""
        return all(conditions & set(word.split("|")) for word in self.when.split())


@dataclass(frozen=True)
class FamilyTable:
    """What one family saves: `once`; in each `layer`; and, with checkpointing, for each `checkpointed` layer instead.

    `mask`: what a checkpointed model saves once for all layers, of its mask above all.
    """

    once: tuple[SavedTensor, ...]
    layer: tuple[SavedTensor, ...]
    checkpointed: tuple[SavedTensor, ...] = (SavedTensor("input of a checkpointed layer", "BSD", "weights"),)
    mask: tuple[SavedTensor, ...] = ()


def _dropout(what: str, size: str, dtype: str, when: str) -> tuple[SavedTensor, ...]:
    """The mask of a dropout: on a CPU the factors 0 and 1/(1-p) in the dtype of its input, on a GPU one bool each."""
    return (
        SavedTensor(f"dropout mask, {what}", size, dtype, when=f"{when} cpu"),
        SavedTensor(f"dropout mask, {what}", size, "bool", when=f"{when} cuda"),
    )


def _layer_norm(what: str, *, count: int = 1, when: str = "") -> tuple[SavedTensor, ...]:
    return (  # autocast gives it float32 on CUDA alone
        SavedTensor(f"input of the layer norm, {what}", "BSD", "weights", count, f"{when} cpu|uncast|mixed".strip()),
        SavedTensor(f"input of the layer norm, {what}", "BSD", "wide", count, f"{when} cuda cast".strip()),
        SavedTensor(f"mean and 1/deviation, {what}", "BS", "weights", 2 * count, f"{when} cpu".strip()),
        SavedTensor(f"mean and 1/deviation, {what}", "BS", "wide", 2 * count, f"{when} cuda".strip()),
    )


def _rms_norm(what: str) -> tuple[SavedTensor, ...]:
    """LLaMA's norm computes in float32 by itself: its input, 1/root, and what it multiplies by its weights."""
    return (
        SavedTensor(f"input of the norm, {what}", "BSD", "float32"),
        SavedTensor(f"1/root mean square, {what}", "BS", "float32"),
        SavedTensor(f"normed values, {what}", "BSD", "weights", when="whole"),
    )


def _inputs(what: str, *, readers: int) -> tuple[SavedTensor, ...]:
    """The input of linear layers that read the same tensor: autocast casts it for each of them, and keeps each copy."""
    return (
        SavedTensor(f"input of {what}", "BSD", "compute", when="true whole"),
        SavedTensor(f"input of {what}", "BSD", "compute", count=readers, when="mixed"),
    )


def _adapters(what: str, size: str, projections: dict[str, str], *, when: str = "") -> tuple[SavedTensor, ...]:
    """Adapters that read the same tensor, of `size`: that tensor, A x of each, and autocast's copies of A and B.

    `when`: where they alone would save the tensor, "" for always.
    """
    names = "|".join(projections)
    rows = [SavedTensor(f"input of the adapters, {what}", size, "compute", when=f"{when} shared {names}".strip())]
    for name, (outputs, inputs) in projections.items():
        rows += [
            SavedTensor(f"input of the adapter, {name}", size, "compute", when=f"copied {name}"),
            SavedTensor(f"A x, {name}", "BSR", "compute", when=name),
            SavedTensor(COPIES, f"R{inputs}", "compute", when=f"cast {name}"),
            SavedTensor(COPIES, f"{outputs}R", "compute", when=f"cast {name}"),
        ]
    return tuple(rows)


def _of(family: str, *names: str) -> dict[str, str]:
    return {name: PROJECTIONS[family][name] for name in names}


def _first_copies(projections: dict[str, str]) -> tuple[SavedTensor, ...]:
    """Copies of A that the first block does not save: its input needs no gradient."""
    return tuple(
        SavedTensor(COPIES, f"R{inputs}", "compute", count=-1, when=f"plain cast {name}")
        for name, (_, inputs) in projections.items()
    )


def _copies(*sizes: str) -> tuple[SavedTensor, ...]:
    return tuple(
        SavedTensor(COPIES, size, "compute", count=sizes.count(size), when="mixed") for size in dict.fromkeys(sizes)
    )


_LANGUAGE_LOSS = (
    SavedTensor(LOG_PROBABILITIES, "BSV", "wide"),
    SavedTensor("labels", "BS", "int64"),
    SavedTensor("count in the mean loss", "", "wide"),
)
_FUSED = (
    SavedTensor("output of attention", "BSD", "compute", when="fused|math fused|whole"),
    SavedTensor("log-sum-exp of the scores", "BHS", "sums", when="fused"),
    SavedTensor("mask of the scores", "BSS", "compute", when="fused padded"),
)
_MATH = (  # SDPA where it has no fused kernel: a CPU with dropout
    SavedTensor("queries, scaled", "BSD", "sums", when="math"),
    SavedTensor("keys, scaled", "BSD", "sums", when="math"),
    SavedTensor("values", "BSD", "sums", when="math"),
    SavedTensor("softmax", "BHSS", "sums", when="math"),
    SavedTensor("dropout mask, attention", "BHSS", "sums", when="math"),
    SavedTensor("attention weights after dropout", "BHSS", "sums", when="math"),
)

DISTILBERT = FamilyTable(
    once=(
        SavedTensor("token ids", "BS", "int64"),
        SavedTensor("position ids", "P", "int64"),
        *_layer_norm("embeddings"),
        *_dropout("embeddings", "BSD", "weights", "dropout"),
        SavedTensor("input of the classifier", "BSD", "compute", when="true"),
        SavedTensor("input of the classifier", "BD", "compute", when="mixed"),
        SavedTensor("output of ReLU", "BD", "compute"),
        *_dropout("classifier", "BD", "compute", "head-dropout"),
        SavedTensor("classifier after dropout", "BD", "compute", when="head-dropout"),
        *_copies("DD", "DC"),
        SavedTensor(LOG_PROBABILITIES, "BC", "wide"),
        SavedTensor("labels", "B", "int64"),
        SavedTensor("count in the mean loss", "", "wide"),
    ),
    layer=(
        *_inputs("queries, keys and values", readers=3),
        SavedTensor("queries, keys and values", "BSD", "compute", count=3, when="eager|fused"),
        SavedTensor("softmax", "BHSS", "weights", when="eager true|padded|cuda"),
        SavedTensor("softmax", "BHSS", "compute", when="eager mixed full cpu"),
        *_dropout("attention", "BHSS", "weights", "eager attention-dropout true|padded|cuda"),
        *_dropout("attention", "BHSS", "compute", "eager attention-dropout mixed full cpu"),
        SavedTensor(
            "attention weights, as multiplied",
            "BHSS",
            "compute",
            when="eager mixed|attention-dropout padded|cuda|attention-dropout",
        ),
        SavedTensor("output of attention", "BSD", "compute", when="eager"),
        *_FUSED,
        *_MATH,
        *_layer_norm("attention"),
        *_inputs("the first feed-forward layer", readers=1),
        SavedTensor("input and output of GELU", "BSF", "compute", count=2),
        *_dropout("feed-forward", "BSD", "compute", "dropout"),
        *_layer_norm("feed-forward"),
        *_copies("DD", "DD", "DD", "DD", "DF", "DF"),
    ),
    mask=(
        SavedTensor("mask of the scores", "BSS", "weights", when="eager padded"),
        SavedTensor("mask of the scores", "BSS", "bool", when="fused|math padded"),
    ),
)

GPT2 = FamilyTable(
    once=(
        SavedTensor("token ids", "BS", "int64", when="whole"),
        SavedTensor("position ids", "S", "int64", when="whole"),
        *_dropout("embeddings", "BSD", "weights", "dropout whole"),
        *_layer_norm("last"),
        *_inputs("the head", readers=1),
        *_copies("DV"),
        *_LANGUAGE_LOSS,
        *_layer_norm("attention of the first block", count=-1, when="plain frozen"),
        *_first_copies(_of("gpt2", "attn.c_attn")),
    ),
    layer=(
        *_layer_norm("attention"),
        *_inputs("queries, keys and values", readers=1),
        *_adapters("queries, keys and values", "BSD", _of("gpt2", "attn.c_attn")),
        SavedTensor("queries, keys and values", "BSD", "compute", count=3, when="eager|fused"),
        SavedTensor("keys and values beside the queries", "BSD", "compute", count=2, when="eager|fused fused|single"),
        SavedTensor("softmax", "BHSS", "weights", when="eager cpu|uncast|mixed"),
        SavedTensor("softmax", "BHSS", "float32", when="eager cuda cast"),
        *_dropout("attention", "BHSS", "compute", "eager attention-dropout"),
        SavedTensor("attention weights, as multiplied", "BHSS", "compute", when="eager mixed|attention-dropout"),
        SavedTensor("output of attention", "BSD", "compute", when="eager whole"),
        *_FUSED,
        *_MATH,
        *_adapters("attention's output", "BSD", _of("gpt2", "attn.c_proj"), when="eager|math"),
        *_dropout("attention's output", "BSD", "compute", "dropout"),
        *_layer_norm("feed-forward"),
        *_inputs("the first feed-forward layer", readers=1),
        *_adapters("the first feed-forward layer", "BSD", _of("gpt2", "mlp.c_fc")),
        SavedTensor("four values of GELU in steps", "BSF", "compute", count=4, when="uncast|cpu"),
        SavedTensor("half of GELU's input", "BSF", "compute", when="mixed|cast cuda"),
        SavedTensor("cube, tanh and 1 + tanh of GELU, in float32", "BSF", "float32", count=3, when="mixed|cast cuda"),
        SavedTensor("output of GELU", "BSF", "compute", when="whole"),
        *_adapters("the second feed-forward layer", "BSF", _of("gpt2", "mlp.c_proj")),
        *_dropout("feed-forward", "BSD", "compute", "dropout"),
        *_copies("DD", "DD", "DD", "DD", "DF", "DF"),
    ),
    mask=(
        SavedTensor("mask of the scores", "BSS", "weights", when="eager"),
        SavedTensor("mask of the scores", "BSS", "bool", when="fused|math padded"),
        *_dropout(
            "embeddings", "BSD", "weights", "dropout frozen"
        ),  # transformers lets the embeddings ask for a gradient
    ),
)

LLAMA = FamilyTable(
    once=(
        SavedTensor("token ids", "BS", "int64", when="whole"),
        SavedTensor("cosine and sine of the positions", "SE", "weights", count=2, when="plain"),
        *_rms_norm("last"),
        *_inputs("the head", readers=1),
        *_copies("DV"),
        *_LANGUAGE_LOSS,
        SavedTensor("input of the norm, first block", "BSD", "float32", count=-1, when="plain frozen"),
        SavedTensor("1/root mean square, first block", "BS", "float32", count=-1, when="plain frozen"),
        *_first_copies(_of("llama", "q_proj", "k_proj", "v_proj")),
    ),
    layer=(
        *_rms_norm("attention"),
        *_inputs("queries, keys and values", readers=3),
        *_adapters("queries, keys and values", "BSD", _of("llama", "q_proj", "k_proj", "v_proj")),
        SavedTensor("queries", "BSD", "compute", when="eager|fused"),
        SavedTensor(
            "keys and values, repeated for each head", "BSD", "compute", count=2, when="eager|fused eager|padded"
        ),
        SavedTensor("keys and values", "BSG", "compute", count=2, when="fused full"),
        SavedTensor("softmax", "BHSS", "float32", when="eager"),
        *_dropout("attention", "BHSS", "weights", "eager attention-dropout"),
        SavedTensor("attention weights, as multiplied", "BHSS", "compute", when="eager mixed|attention-dropout|recast"),
        SavedTensor("output of attention", "BSD", "compute", when="eager whole"),
        *_FUSED,
        *_MATH,
        *_adapters("attention's output", "BSD", _of("llama", "o_proj"), when="eager|math"),
        *_rms_norm("feed-forward"),
        *_inputs("the gate and the feed-forward layer beside it", readers=2),
        *_adapters("the gate and the layer beside it", "BSD", _of("llama", "gate_proj", "up_proj")),
        SavedTensor("gate, SiLU and values", "BSF", "compute", count=3),
        SavedTensor("gate after SiLU, times the values", "BSF", "compute", when="whole"),
        *_adapters("the last feed-forward layer", "BSF", _of("llama", "down_proj")),
        *_copies("DD", "DD", "DG", "DG", "DF", "DF", "DF"),
    ),
)

TABLES = {"distilbert": DISTILBERT, "gpt2": GPT2, "llama": LLAMA}
