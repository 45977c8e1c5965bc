"""What it costs to bring a linear layer's tensors into FP8, in bytes, and from which size on FP8 pays for it.

    layer = Layer(4_096, 8_192, 16_384)
    cast_bytes(layer, "fp8-current"), cast_bytes(layer, BFLOAT16)
    break_even("fp8-current", ROOFS["H200 SXM"])  # the width of a square layer

A training step multiplies three times, with x, the weight and dy as operands (`Float8Recipe.gemms`). The count is that
of an ideal kernel, which moves every byte once for each time that it has to:

* bfloat16 under autocast: the float32 weight is read and written in 16 bits; x and dy are there already.
* FP8: each of the three tensors is read wide and written twice in 8 bits, with its scales: as it is and transposed,
  since a product sums along the last axis of both operands. Where a scale needs the amax of a whole axis or tensor
  before the first value can be written, the tensor is read twice, unless the scale comes from earlier steps.

Kernels that do one thing at a time move more. All of this is a model; what a device does, `utils.experiments.fp8_speed`
measures. The bytes rank casts, not recipes: a product with scales for blocks is slower too, and its scales take more
work. `MEASURED_BLOCK` has the layers of a measurement that shows it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from utils.cost.roofline import Gemm, Roof
from utils.scaling import SCALINGS
from utils.training.float8_recipes import Float8Recipe, find_float8_recipe

BFLOAT16 = "bfloat16"
WIDE = {"x": 2, "w": 4, "dy": 2}  # bytes a value: autocast's bfloat16, and weights that the optimizer keeps in float32
STEP = 16  # FP8 products take multiples of it
WIDEST = 2**20


@dataclass(frozen=True)
class Layer:
    """A linear layer on `tokens` rows: x [tokens, inputs] @ w [outputs, inputs].t()."""

    tokens: int
    inputs: int
    outputs: int

    def __str__(self) -> str:
        return f"{self.tokens} × {self.inputs} → {self.outputs}"

    @property
    def gemms(self) -> tuple[Gemm, Gemm, Gemm]:
        """The products of a training step: forward, gradient of the input, gradient of the weight."""
        m, k, n = self.tokens, self.inputs, self.outputs
        return Gemm(m, n, k), Gemm(m, k, n), Gemm(n, k, m)

    @property
    def operations(self) -> int:
        """Operations of the three products together."""
        return sum(gemm.operations for gemm in self.gemms)

    @property
    def values(self) -> dict[str, int]:
        """How many values the three tensors have."""
        m, k, n = self.tokens, self.inputs, self.outputs
        return {"x": m * k, "w": n * k, "dy": m * n}


def reads(recipe: Float8Recipe, tensor: str) -> int:
    """Return how often a tensor ("x", "w" or "dy") is read to be written in FP8: once or twice."""
    scaling = SCALINGS[{"x": recipe.activations, "w": recipe.weights, "dy": recipe.gradients}[tensor]]
    scale_is_known = scaling.rule == "one" or recipe.history is not None
    return 1 if scale_is_known or None not in scaling.tile else 2


def cast_bytes(layer: Layer, name: str, *, weight_bytes: int = WIDE["w"]) -> float:
    """Return the bytes that a step's casts move, ideally: for bfloat16 under autocast, or for a recipe in FP8.

    `weight_bytes`: of a weight as it is kept; 2 for a layer in bfloat16, which casts nothing itself.
    Raises: ValueError for an unknown recipe.
    """
    values = layer.values
    if name == BFLOAT16:
        return values["w"] * (weight_bytes + 2) if weight_bytes > 2 else 0.0
    recipe, moved = find_float8_recipe(name), 0.0
    for tensor, wide in (WIDE | {"w": weight_bytes}).items():
        scaling = SCALINGS[{"x": recipe.activations, "w": recipe.weights, "dy": recipe.gradients}[tensor]]
        fmt = recipe.backward if tensor == "dy" else recipe.forward
        written = 2 * scaling.bits_per_value(fmt) / 8  # as it is, and transposed
        moved += values[tensor] * (reads(recipe, tensor) * wide + written)
    return moved


def predicted_ms(layer: Layer, name: str, roof: Roof, *, casts: bool = True, weight_bytes: int = WIDE["w"]) -> float:
    """Return the milliseconds that a step of the layer takes by the roofline: its products, and its casts after them.

    Raises: ValueError for an unknown recipe, or where the roof has no peak for the products.
    """
    products = sum(roof.predicted_ms(gemm, BFLOAT16 if name == BFLOAT16 else "float8") for gemm in layer.gemms)
    return products + (cast_bytes(layer, name, weight_bytes=weight_bytes) / roof.bandwidth / 1e6 if casts else 0.0)


def predict_speedup(layer: Layer, name: str, roof: Roof, *, casts: bool = True, weight_bytes: int = WIDE["w"]) -> float:
    """Return how many times as fast as bfloat16 a recipe is by the roofline; below 1 it is slower.

    A ratio of two predictions: each time has a lower limit, and the ratio of two lower limits limits nothing.
    """
    how = {"casts": casts, "weight_bytes": weight_bytes}
    return predicted_ms(layer, BFLOAT16, roof, **how) / predicted_ms(layer, name, roof, **how)


def square(width: int) -> Layer:
    """Return the layer with as many tokens as inputs and outputs."""
    return Layer(width, width, width)


def break_even(name: str, roof: Roof, shape: Callable[[int], Layer] = square) -> int | None:
    """Return the smallest multiple of 16 at and above which the recipe is faster than bfloat16, by the roofline.

    None if none is. `shape` makes a layer of a size; larger sizes must do more operations for each byte.
    """
    low, high = 0, STEP
    while predict_speedup(shape(high), name, roof) <= 1:
        low, high = high, 2 * high
        if high > WIDEST:
            return None
    while high - low > STEP:
        middle = (low + high) // (2 * STEP) * STEP
        low, high = (low, middle) if predict_speedup(shape(middle), name, roof) > 1 else (middle, high)
    return high


_TOKENS, _WIDTH, _INNER = 31 * 512, 4096, 16_384
# The four linear layers of a block of the model that NVIDIA's GEMM profiling tutorial takes, with weights in bfloat16:
# `published` has their times on an H200 NVL, by recipe ("te-h200, block, ms").
MEASURED_BLOCK = (
    Layer(_TOKENS, _WIDTH, 3 * _WIDTH),
    Layer(_TOKENS, _WIDTH, _WIDTH),
    Layer(_TOKENS, _WIDTH, _INNER),
    Layer(_TOKENS, _INNER, _WIDTH),
)


@dataclass(frozen=True)
class PublishedSpeedup:
    """A measured ratio of times of one layer, bfloat16 over FP8; `source` says by whom.

    `weight_bytes`: of a weight of the layer that was measured.
    """

    layer: Layer
    gpu: str  # a name in `cards.ROOFS`
    faster: float
    source: str
    weight_bytes: int


# The script that the README names, benchmarks/float8/float8_roofline.py, makes its layer bfloat16 and adds up the times
# of its kernels, so that launches are not in them.
_TORCHAO = "torchao, torchao/float8/README.md, performance: a float8 linear beside bfloat16 on an NVIDIA H100"
PUBLISHED = (
    PublishedSpeedup(Layer(1_024, 2_048, 1_024), "H100 SXM", 0.80, _TORCHAO, weight_bytes=2),
    PublishedSpeedup(Layer(4_096, 8_192, 16_384), "H100 SXM", 1.39, _TORCHAO, weight_bytes=2),
)
