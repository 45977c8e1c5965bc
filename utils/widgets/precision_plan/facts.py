"""What PrecisionPlan knows: the products of a training step, layer by layer, and what FP8 changes about each.

A linear layer has three products a step; with R rows of tokens, [R, K] @ [K, N] and its two gradients. In FP8 each
operand is quantised before it is multiplied, and that traffic counts. The numbers are limits by the roofline of a data
sheet (`utils.cost.roofline`), no measurements; the page has them again, in numbers.js.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from operator import mul

from utils.cost.architectures import NAMED, Architecture
from utils.cost.cards import CARDS, ROOFS, TENSOR
from utils.cost.roofline import Gemm, Roof
from utils.widgets.shared.cost.roof_words import gain_text, time_text
from utils.widgets.shared.words.amounts import few_digits

MULTIPLE = 16  # of every size of an FP8 product; utils.emulation.scaled_matmul.MULTIPLE, kept apart from torch
MOST = 2**17  # tokens of a batch
MODELS = ("DistilBERT", "LLaMA 7B", "LLaMA 13B", "Llama 2 70B", "Llama 3 8B")
BLOCKS = {"distilbert": "distilbert.transformer.layer", "llama": "model.layers"}  # where transformers keeps them


@dataclass(frozen=True)
class LinearKind:
    """A linear layer that a model has once, or once in each block.

    `name`: the last part of its name in transformers. `sizes`: the letters of outputs and inputs
    (`Architecture.dimensions`). `texts`: its rows are texts, not tokens. `why`: what is known of it in FP8.
    """

    name: str
    sizes: str
    block: bool = True
    texts: bool = False
    why: str = ""


KINDS = {
    "distilbert": (
        LinearKind("q_lin", "DD"),
        LinearKind("k_lin", "DD"),
        LinearKind("v_lin", "DD"),
        LinearKind("out_lin", "DD"),
        LinearKind("lin1", "FD"),
        LinearKind("lin2", "DF"),
        LinearKind(
            "pre_classifier", "DD", block=False, texts=True, why="of the head: a row for each text, hardly any work"
        ),
        LinearKind("classifier", "CD", block=False, texts=True),
    ),
    "llama": (
        LinearKind("q_proj", "DD"),
        LinearKind("k_proj", "GD"),
        LinearKind("v_proj", "GD"),
        LinearKind("o_proj", "DD"),
        LinearKind("gate_proj", "FD"),
        LinearKind("up_proj", "FD"),
        LinearKind(
            "down_proj",
            "DF",
            why="its input is the product of gate and up, where outliers grow over long runs (arXiv 2409.12517)",
        ),
        LinearKind(
            "lm_head",
            "VD",
            block=False,
            why="its results are the logits; DeepSeek-V3 keeps its head too (arXiv 2412.19437, 3.3.1)",
        ),
    ),
}
# Bytes that casts move for each value of x, of the weight and of dy: those of `utils.cost.fp8_casts.cast_bytes`, kept
# apart from torch. x and dy are there in 16 bits, the weight in float32; FP8 is written plain and transposed, with
# scales.
CASTS = {
    "fp8-unscaled": (4, 6, 4),
    "fp8-current": (6, 10, 6),
    "fp8-delayed": (4, 6, 4),
    "fp8-row": (6, 10, 6),
    "fp8-block": (4 + 2 * 4 / 128, 6 + 2 * 4 / 128**2, 4 + 2 * 4 / 128),
    "fp8-mx": (4 + 2 / 32, 6 + 2 / 32, 4 + 2 / 32),
}
WIDE_CASTS = (0, 6, 0)  # of a layer in bfloat16: its weight is read in float32 and written in 16 bits
NO_KERNEL = {"fp8-mx": "This card does not multiply MX: that is what its bytes alone would allow."}
MULTIPLY_MX = tuple(  # the data sheets of the cards that do: those with FP4
    board.roof.name
    for card in CARDS.values()
    for board in card.boards
    if board.roof and card.support["float4"] == TENSOR
)
LEFT_OUT = (
    "A prediction from a data sheet, not a measurement: every product at the roofline, one after the other. Also"
    " counted: what casts read and write, for each layer separately, from float32 weights and from activations and"
    " gradients in 16 bits. A layer in bfloat16 casts its weight, too. Left out: launches, tiles, odd sizes, caches,"
    " norms, softmax, the optimizer, communication. Attention's products stay in 16 bits, at the peak of a fused"
    " kernel. An RTX 50 multiplies MX up to twice as fast as predicted here. The bytes of the casts do not rank"
    " recipes: products with scales for blocks are slower too. torchao measured Llama 3 8B on eight H100s, compiled:"
    " 1.25 times as fast with a scale per tensor and weights sent in FP8, which saves communication too; 1.10 times"
    " with a scale per row and weights sent in bfloat16."
)
OTHERS = (
    "Not linear layers, so convert() leaves them alone: embeddings (a look-up, not a product), norms, softmax, the"
    " loss, and the two products of attention, between activations."
)


@dataclass(frozen=True)
class Row:
    """A kind of layer in a plan: its size, how many of it are multiplied in FP8, and what that predicts.

    Times are in ms a step, of all layers of the kind: `wide` in bfloat16 with the cast of the weight, `narrow` in FP8
    without casts, and those are `casts`; `now` is what the plan makes of them. `fits`: sizes are multiples of 16.
    """

    kind: LinearKind
    outputs: int
    inputs: int
    count: int
    converted: int
    operations: int
    wide: float
    narrow: float
    casts: float
    fits: bool

    @property
    def now(self) -> float:
        """Milliseconds of all layers of this kind in the plan."""
        return (self.count - self.converted) / self.count * self.wide + self.cost

    @property
    def cost(self) -> float:
        """Of these, those of the layers in FP8."""
        return self.converted / self.count * (self.narrow + self.casts)


@dataclass(frozen=True)
class Float8Plan:
    """Which linear layers of a training step are multiplied in FP8, the others in bfloat16.

    `texts` of `length` tokens each. `exclude`: as in `utils.training.float8_linear.convert`.
    """

    model: str
    texts: int
    length: int
    recipe: str
    device: str
    exclude: tuple[str, ...]

    @property
    def architecture(self) -> Architecture:
        """The sizes of the model."""
        return NAMED[self.model]

    @property
    def roof(self) -> Roof:
        """The data sheet of the device."""
        return ROOFS[self.device]

    @cached_property
    def rows(self) -> list[Row]:
        """The linear layers by kind, in the order of the forward pass."""
        return [self._row(kind) for kind in KINDS[self.architecture.family]]

    def _row(self, kind: LinearKind) -> Row:
        outputs, inputs = (self.architecture.dimensions[letter] for letter in kind.sizes)
        rows = self.texts if kind.texts else self.texts * self.length
        gemms = (Gemm(rows, outputs, inputs), Gemm(rows, inputs, outputs), Gemm(outputs, inputs, rows))
        count = self.architecture.layers if kind.block else 1
        fits = outputs % MULTIPLE == 0 and inputs % MULTIPLE == 0
        out = kind.name in self.exclude or not fits
        whole = (
            sum(f"{BLOCKS[self.architecture.family]}.{i}" in self.exclude for i in range(count)) if kind.block else 0
        )
        wide, narrow = (
            count * sum(self.roof.predicted_ms(gemm, dtype) for gemm in gemms) for dtype in ("bfloat16", "float8")
        )
        values = (rows * inputs, outputs * inputs, rows * outputs)
        kept, casts = (
            count * self.roof.moving_ms(sum(map(mul, moved, values))) for moved in (WIDE_CASTS, CASTS[self.recipe])
        )
        return Row(
            kind,
            outputs,
            inputs,
            count,
            0 if out else count - whole,
            count * sum(gemm.operations for gemm in gemms),
            wide + kept,
            narrow,
            casts,
            fits,
        )

    @property
    def attention(self) -> int:
        """Operations of the two products of attention and of their gradients; what is masked counts."""
        sizes = self.architecture
        return 3 * 2 * 2 * sizes.layers * self.texts * self.length * self.length * sizes.width

    @property
    def attention_ms(self) -> float:
        """Milliseconds of them at the peak."""
        return self.roof.computing_ms(self.attention, "bfloat16")

    @property
    def operations(self) -> int:
        """Operations of all products of the step."""
        return sum(row.operations for row in self.rows) + self.attention

    @property
    def share(self) -> float:
        """Of these, the share in FP8."""
        return sum(row.operations * (row.converted / row.count) for row in self.rows) / self.operations

    @property
    def before(self) -> float:
        """Milliseconds of all products in bfloat16."""
        return sum(row.wide for row in self.rows) + self.attention_ms

    @property
    def after(self) -> float:
        """Milliseconds of all products in the plan, with the casts."""
        return sum(row.now for row in self.rows) + self.attention_ms

    @property
    def layers(self) -> tuple[int, int]:
        """How many linear layers are converted, and how many there are."""
        return sum(row.converted for row in self.rows), sum(row.count for row in self.rows)

    @property
    def verdict(self) -> str:
        """How much of the step is in FP8, and what the roofline says that this is worth."""
        converted, count = self.layers
        share = f"{percent_text(self.share)} of the operations of all products"
        done = f"{converted} of {count} linear layers, {share}, in FP8."
        if converted == 0:
            return f"{done} convert() refuses a plan without any."
        gain = self.before / self.after
        times = "about as long" if few_digits(max(gain, 1 / gain)) == "1" else gain_text(gain)
        predicted = f"{done} By the roofline: {time_text(self.after)} instead of {time_text(self.before)}, {times}."
        missing = "" if self.device in MULTIPLY_MX else NO_KERNEL.get(self.recipe, "")
        return f"{predicted} {missing}".strip()

    @property
    def code(self) -> str:
        """The call that makes this plan true."""
        names = ", ".join(f'"{name}"' for name in self.exclude)
        return f'convert(model, "{self.recipe}", exclude=({names}{"," if len(self.exclude) == 1 else ""}))'

    def names(self) -> Iterator[str]:
        """Yield the names that `exclude` may hold: kinds of layers, and blocks."""
        family = self.architecture.family
        yield from (kind.name for kind in KINDS[family])
        yield from (f"{BLOCKS[family]}.{i}" for i in range(self.architecture.layers))


def percent_text(share: float) -> str:
    """Return a share in percent, three digits of it; what is there and hardly counts as less than 0.01 %."""
    return "<\u00a00.01\u00a0%" if 0 < share < 1e-4 else f"{few_digits(100 * share)}\u00a0%"


def heads(model: str) -> tuple[str, ...]:
    """Return what convert() leaves by itself of a model: its head."""
    return tuple(kind.name for kind in KINDS[NAMED[model].family] if not kind.block)


def make_facts() -> dict:
    """Return what the page needs besides the reader's choices, as JSON values."""
    from utils.training.float8_recipes import FLOAT8_RECIPES

    roofs = {name: roof for name, roof in ROOFS.items() if "float8" in roof.peaks}
    return {
        "order": list(MODELS),
        "models": {name: _model(name) for name in MODELS},
        "recipes": [[name, f"{FLOAT8_RECIPES[name].note}. {_moves(moved)}", moved] for name, moved in CASTS.items()],
        "wide_casts": WIDE_CASTS,
        "no_kernel": NO_KERNEL,
        "multiply_mx": MULTIPLY_MX,
        "roofs": [asdict(roof) for roof in roofs.values()],
        "left_out": LEFT_OUT,
        "others": OTHERS,
    }


def _moves(moved: tuple[float, float, float]) -> str:
    """Say how many bytes a cast moves."""
    x, weight, _ = moved
    return (
        f"Casts move {few_digits(x)} bytes for each value of an activation or a gradient, {few_digits(weight)} for each"
        f" weight; in bfloat16 {few_digits(WIDE_CASTS[1])} for each weight."
    )


def _model(name: str) -> dict:
    sizes = NAMED[name]
    return {
        "layers": sizes.layers,
        "width": sizes.width,
        "blocks": BLOCKS[sizes.family],
        "kinds": [
            {"name": kind.name, "block": kind.block, "texts": kind.texts, "why": kind.why}
            | dict(zip(("outputs", "inputs"), (sizes.dimensions[letter] for letter in kind.sizes), strict=True))
            for kind in KINDS[sizes.family]
        ],
    }
