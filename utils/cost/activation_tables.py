"""Which tensors autograd saves in the training of a DistilBERT, a GPT-2 and a LLaMA, as tables of sizes.

Tensors that two operations share have one row; parameters have none. What holds on a CPU is measured in the tests of
`utils.cost.activations`, which computes with these tables; what a GPU does otherwise is marked "cuda".

Sizes are products of dimensions, one letter each: B texts, S tokens of a text, and those of `Architecture.dimensions`.
"""

from dataclasses import dataclass

COPIES = "autocast's 16-bit copies of weights"


@dataclass(frozen=True)
class Saved:
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
class Table:
    """What one family saves: `once`; in each `layer`; and, with checkpointing, for each `checkpointed` layer instead.

    `mask`: what a checkpointed model saves of its mask, once for all layers.
    """

    once: tuple[Saved, ...]
    layer: tuple[Saved, ...]
    checkpointed: tuple[Saved, ...] = (Saved("input of a checkpointed layer", "BSD", "weights"),)
    mask: tuple[Saved, ...] = ()


def _dropout(what: str, size: str, dtype: str, when: str) -> tuple[Saved, ...]:
    """The mask of a dropout: on a CPU the factors 0 and 1/(1-p) in the dtype of its input, on a GPU one bool each."""
    return (
        Saved(f"dropout mask, {what}", size, dtype, when=f"{when} cpu"),
        Saved(f"dropout mask, {what}", size, "bool", when=f"{when} cuda"),
    )


def _layer_norm(what: str) -> tuple[Saved, ...]:
    return (
        Saved(f"input of the layer norm, {what}", "BSD", "weights"),
        Saved(f"mean and 1/deviation, {what}", "BS", "weights", count=2, when="cpu"),
        Saved(f"mean and 1/deviation, {what}", "BS", "wide", count=2, when="cuda"),
    )


def _rms_norm(what: str) -> tuple[Saved, ...]:
    """LLaMA's norm computes in float32 by itself: its input, 1/root, and what it multiplies by its weights."""
    return (
        Saved(f"input of the norm, {what}", "BSD", "float32"),
        Saved(f"1/root mean square, {what}", "BS", "float32"),
        Saved(f"normed values, {what}", "BSD", "weights"),
    )


def _inputs(what: str, *, readers: int) -> tuple[Saved, ...]:
    """The input of linear layers that read the same tensor: autocast casts it for each of them, and keeps each copy."""
    return (
        Saved(f"input of {what}", "BSD", "compute", when="true"),
        Saved(f"input of {what}", "BSD", "compute", count=readers, when="mixed"),
    )


def _copies(*sizes: str) -> tuple[Saved, ...]:
    return tuple(Saved(COPIES, size, "compute", count=sizes.count(size), when="mixed") for size in dict.fromkeys(sizes))


_LANGUAGE_LOSS = (
    Saved("log-probabilities", "BSV", "wide"),
    Saved("labels", "BS", "int64"),
    Saved("count in the mean loss", "", "wide"),
)
_FUSED = (
    Saved("output of attention", "BSD", "compute", when="fused|math"),
    Saved("log-sum-exp of the scores", "BHS", "sums", when="fused"),
    Saved("mask of the scores", "BSS", "compute", when="fused padded"),
)
_MATH = (  # SDPA where it has no fused kernel: a CPU with dropout
    Saved("queries, scaled", "BSD", "sums", when="math"),
    Saved("keys, scaled", "BSD", "sums", when="math"),
    Saved("values", "BSD", "sums", when="math"),
    Saved("softmax", "BHSS", "sums", when="math"),
    Saved("dropout mask, attention", "BHSS", "sums", when="math"),
    Saved("attention weights after dropout", "BHSS", "sums", when="math"),
)

DISTILBERT = Table(
    once=(
        Saved("token ids", "BS", "int64"),
        Saved("position ids", "P", "int64"),
        *_layer_norm("embeddings"),
        *_dropout("embeddings", "BSD", "weights", "dropout"),
        Saved("input of the classifier", "BSD", "compute", when="true"),
        Saved("input of the classifier", "BD", "compute", when="mixed"),
        Saved("output of ReLU", "BD", "compute"),
        *_dropout("classifier", "BD", "compute", "head-dropout"),
        Saved("classifier after dropout", "BD", "compute", when="head-dropout"),
        *_copies("DD", "DC"),
        Saved("log-probabilities", "BC", "wide"),
        Saved("labels", "B", "int64"),
        Saved("count in the mean loss", "", "wide"),
    ),
    layer=(
        *_inputs("queries, keys and values", readers=3),
        Saved("queries, keys and values", "BSD", "compute", count=3, when="eager|fused"),
        Saved("softmax", "BHSS", "weights", when="eager true|padded|cuda"),
        Saved("softmax", "BHSS", "compute", when="eager mixed full cpu"),
        *_dropout("attention", "BHSS", "weights", "eager attention-dropout true|padded|cuda"),
        *_dropout("attention", "BHSS", "compute", "eager attention-dropout mixed full cpu"),
        Saved(
            "attention weights, as multiplied",
            "BHSS",
            "compute",
            when="eager mixed|attention-dropout padded|cuda|attention-dropout",
        ),
        Saved("output of attention", "BSD", "compute", when="eager"),
        *_FUSED,
        *_MATH,
        *_layer_norm("attention"),
        *_inputs("the first feed-forward layer", readers=1),
        Saved("input and output of GELU", "BSF", "compute", count=2),
        *_dropout("feed-forward", "BSD", "compute", "dropout"),
        *_layer_norm("feed-forward"),
        *_copies("DD", "DD", "DD", "DD", "DF", "DF"),
    ),
    mask=(
        Saved("mask of the scores", "BSS", "weights", when="eager padded"),
        Saved("mask of the scores", "BSS", "bool", when="fused|math padded"),
    ),
)

GPT2 = Table(
    once=(
        Saved("token ids", "BS", "int64"),
        Saved("position ids", "S", "int64"),
        *_dropout("embeddings", "BSD", "weights", "dropout"),
        *_layer_norm("last"),
        *_inputs("the head", readers=1),
        *_copies("DV"),
        *_LANGUAGE_LOSS,
    ),
    layer=(
        *_layer_norm("attention"),
        *_inputs("queries, keys and values", readers=1),
        Saved("queries, keys and values", "BSD", "compute", count=3, when="eager|fused"),
        Saved("keys and values beside the queries", "BSD", "compute", count=2, when="eager|fused fused|single"),
        Saved("softmax", "BHSS", "weights", when="eager"),
        *_dropout("attention", "BHSS", "compute", "eager attention-dropout"),
        Saved("attention weights, as multiplied", "BHSS", "compute", when="eager mixed|attention-dropout"),
        Saved("output of attention", "BSD", "compute", when="eager"),
        *_FUSED,
        *_MATH,
        *_dropout("attention's output", "BSD", "compute", "dropout"),
        *_layer_norm("feed-forward"),
        *_inputs("the first feed-forward layer", readers=1),
        Saved("four values of GELU in steps", "BSF", "compute", count=4, when="true|cpu"),
        Saved("half of GELU's input", "BSF", "compute", when="mixed cuda"),
        Saved("cube, tanh and 1 + tanh of GELU, in float32", "BSF", "float32", count=3, when="mixed cuda"),
        Saved("output of GELU", "BSF", "compute"),
        *_dropout("feed-forward", "BSD", "compute", "dropout"),
        *_copies("DD", "DD", "DD", "DD", "DF", "DF"),
    ),
    mask=(
        Saved("mask of the scores", "BSS", "weights", when="eager"),
        Saved("mask of the scores", "BSS", "bool", when="fused|math padded"),
    ),
)

LLAMA = Table(
    once=(
        Saved("token ids", "BS", "int64"),
        Saved("cosine and sine of the positions", "SE", "weights", count=2, when="plain"),
        *_rms_norm("last"),
        *_inputs("the head", readers=1),
        *_copies("DV"),
        *_LANGUAGE_LOSS,
    ),
    layer=(
        *_rms_norm("attention"),
        *_inputs("queries, keys and values", readers=3),
        Saved("queries", "BSD", "compute", when="eager|fused"),
        Saved("keys and values, repeated for each head", "BSD", "compute", count=2, when="eager|fused eager|padded"),
        Saved("keys and values", "BSG", "compute", count=2, when="fused full"),
        Saved("softmax", "BHSS", "float32", when="eager"),
        *_dropout("attention", "BHSS", "weights", "eager attention-dropout"),
        Saved("attention weights, as multiplied", "BHSS", "compute", when="eager mixed|attention-dropout|recast"),
        Saved("output of attention", "BSD", "compute", when="eager"),
        *_FUSED,
        *_MATH,
        *_rms_norm("feed-forward"),
        *_inputs("the gate and the feed-forward layer beside it", readers=2),
        Saved("gate, SiLU, values, their product", "BSF", "compute", count=4),
        *_copies("DD", "DD", "DG", "DG", "DF", "DF", "DF"),
    ),
)

TABLES = {"distilbert": DISTILBERT, "gpt2": GPT2, "llama": LLAMA}
