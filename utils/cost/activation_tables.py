"""Which tensors autograd saves in the training of a DistilBERT, a GPT-2 and a LLaMA, as tables of sizes.

Tensors that two operations share have one row; parameters have none. What holds on a CPU is measured in the tests of
`utils.cost.activations`, which computes with these tables; what a GPU does otherwise is marked "cuda".

Sizes are products of dimensions, one letter each: B texts, S tokens of a text, and those of `Architecture.dimensions`.
"""

from dataclasses import dataclass

COPIES = "autocast's 16-bit copies of weights"


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
    count: int = 1
    when: str = ""

    def holds(self, conditions: set[str]) -> bool:
        """Say whether the tensor is saved under these conditions, see `conditions`."""
        return all(conditions & set(word.split("|")) for word in self.when.split())


@dataclass(frozen=True)
class FamilyTable:
    """What one family saves: `once`; in each `layer`; and, with checkpointing, for each `checkpointed` layer instead.

    `mask`: what a checkpointed model saves of its mask, once for all layers.
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


def _layer_norm(what: str) -> tuple[SavedTensor, ...]:
    return (
        SavedTensor(f"input of the layer norm, {what}", "BSD", "weights"),
        SavedTensor(f"mean and 1/deviation, {what}", "BS", "weights", count=2, when="cpu"),
        SavedTensor(f"mean and 1/deviation, {what}", "BS", "wide", count=2, when="cuda"),
    )


def _rms_norm(what: str) -> tuple[SavedTensor, ...]:
    """LLaMA's norm computes in float32 by itself: its input, 1/root, and what it multiplies by its weights."""
    return (
        SavedTensor(f"input of the norm, {what}", "BSD", "float32"),
        SavedTensor(f"1/root mean square, {what}", "BS", "float32"),
        SavedTensor(f"normed values, {what}", "BSD", "weights"),
    )


def _inputs(what: str, *, readers: int) -> tuple[SavedTensor, ...]:
    """The input of linear layers that read the same tensor: autocast casts it for each of them, and keeps each copy."""
    return (
        SavedTensor(f"input of {what}", "BSD", "compute", when="true"),
        SavedTensor(f"input of {what}", "BSD", "compute", count=readers, when="mixed"),
    )


def _copies(*sizes: str) -> tuple[SavedTensor, ...]:
    return tuple(
        SavedTensor(COPIES, size, "compute", count=sizes.count(size), when="mixed") for size in dict.fromkeys(sizes)
    )


_LANGUAGE_LOSS = (
    SavedTensor("log-probabilities", "BSV", "wide"),
    SavedTensor("labels", "BS", "int64"),
    SavedTensor("count in the mean loss", "", "wide"),
)
_FUSED = (
    SavedTensor("output of attention", "BSD", "compute", when="fused|math"),
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
        SavedTensor("log-probabilities", "BC", "wide"),
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
        SavedTensor("token ids", "BS", "int64"),
        SavedTensor("position ids", "S", "int64"),
        *_dropout("embeddings", "BSD", "weights", "dropout"),
        *_layer_norm("last"),
        *_inputs("the head", readers=1),
        *_copies("DV"),
        *_LANGUAGE_LOSS,
    ),
    layer=(
        *_layer_norm("attention"),
        *_inputs("queries, keys and values", readers=1),
        SavedTensor("queries, keys and values", "BSD", "compute", count=3, when="eager|fused"),
        SavedTensor("keys and values beside the queries", "BSD", "compute", count=2, when="eager|fused fused|single"),
        SavedTensor("softmax", "BHSS", "weights", when="eager"),
        *_dropout("attention", "BHSS", "compute", "eager attention-dropout"),
        SavedTensor("attention weights, as multiplied", "BHSS", "compute", when="eager mixed|attention-dropout"),
        SavedTensor("output of attention", "BSD", "compute", when="eager"),
        *_FUSED,
        *_MATH,
        *_dropout("attention's output", "BSD", "compute", "dropout"),
        *_layer_norm("feed-forward"),
        *_inputs("the first feed-forward layer", readers=1),
        SavedTensor("four values of GELU in steps", "BSF", "compute", count=4, when="true|cpu"),
        SavedTensor("half of GELU's input", "BSF", "compute", when="mixed cuda"),
        SavedTensor("cube, tanh and 1 + tanh of GELU, in float32", "BSF", "float32", count=3, when="mixed cuda"),
        SavedTensor("output of GELU", "BSF", "compute"),
        *_dropout("feed-forward", "BSD", "compute", "dropout"),
        *_copies("DD", "DD", "DD", "DD", "DF", "DF"),
    ),
    mask=(
        SavedTensor("mask of the scores", "BSS", "weights", when="eager"),
        SavedTensor("mask of the scores", "BSS", "bool", when="fused|math padded"),
    ),
)

LLAMA = FamilyTable(
    once=(
        SavedTensor("token ids", "BS", "int64"),
        SavedTensor("cosine and sine of the positions", "SE", "weights", count=2, when="plain"),
        *_rms_norm("last"),
        *_inputs("the head", readers=1),
        *_copies("DV"),
        *_LANGUAGE_LOSS,
    ),
    layer=(
        *_rms_norm("attention"),
        *_inputs("queries, keys and values", readers=3),
        SavedTensor("queries", "BSD", "compute", when="eager|fused"),
        SavedTensor(
            "keys and values, repeated for each head", "BSD", "compute", count=2, when="eager|fused eager|padded"
        ),
        SavedTensor("keys and values", "BSG", "compute", count=2, when="fused full"),
        SavedTensor("softmax", "BHSS", "float32", when="eager"),
        *_dropout("attention", "BHSS", "weights", "eager attention-dropout"),
        SavedTensor("attention weights, as multiplied", "BHSS", "compute", when="eager mixed|attention-dropout|recast"),
        SavedTensor("output of attention", "BSD", "compute", when="eager"),
        *_FUSED,
        *_MATH,
        *_rms_norm("feed-forward"),
        *_inputs("the gate and the feed-forward layer beside it", readers=2),
        SavedTensor("gate, SiLU, values, their product", "BSF", "compute", count=4),
        *_copies("DD", "DD", "DG", "DG", "DF", "DF", "DF"),
    ),
)

TABLES = {"distilbert": DISTILBERT, "gpt2": GPT2, "llama": LLAMA}
