"""From the largest magnitude of some values to the scale that carries them into a narrow format: the exact reference.

`scale` has one meaning: values are MULTIPLIED by it before they are rounded, and `inv_scale` takes them back. What a
block format stores, and what torch's scaled products take, is on the side of `inv_scale`.

All arithmetic with scales is float32, as in the libraries; a product `x * scale` is a float32 too, and what is rounded
to the format. Scales are finite and positive whatever the values are:

* an `amax` of 0, infinity or NaN gives the scale 1 (Transformer Engine, `recipe_common.cuh`);
* an `amax` so small that the scale leaves float32 gives float32's largest value, or its largest power of two;
* in `quantize_tiles` values that are not finite have no say in the scale of their tile. An infinity saturates with its
  sign, a NaN stays a NaN, and their neighbours become what they would be without them.
* in NVFP4, as in Transformer Engine, a tensor whose amax is below 4e-33 has float32's largest tensor scale: its blocks
  with an amax below 1.8e-38 do not come back whole.

The twin for torch tensors is `utils.emulation.scaled_tensor`. Another thing is `utils.training.eight_bit_moments`, the
8-bit moments of an optimizer, whose codes are no floating-point format.
"""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from utils.formats import FLOAT8_E4M3FN, FLOAT8_E8M0FNU, FLOAT32, NONE, FloatFormat
from utils.rounding import Rounding, as_float32, check_format, quantize, ties_to_even
from utils.shared_exponent import EXPONENT_RULES, magnitudes, shared_exponent

# Symmetric INT8, -127 ... 127, as a floating-point format with one binade and its subnormals: a uniform grid. With E8M0
# scales it is not OCP's MXINT8, whose elements are multiples of 2**-6: the least scale is reached at a larger amax.
INT8 = FloatFormat("int8", exponent_bits=1, mantissa_bits=6, bias=-5, specials=NONE)
MAX_SCALE = np.float32(FLOAT32.max)
MIN_SCALE = np.float32(FLOAT32.smallest_normal)  # below it the reciprocal overflows


def scale_from_amax(amax, fmt: FloatFormat, *, margin: float = 0, power_of_two: bool = False) -> np.ndarray:
    """Return the scale that carries `amax` to `fmt.max / 2**margin`: float32 of the shape of `amax`.

    `amax`: magnitudes of any shape, taken as float32. `power_of_two`: cut the scale to the next power of two below.
    Zero, infinity and NaN give 1. The scale lies in 2**-126 ... float32's largest value.
    Raises: ValueError for a negative amax. Source: Transformer Engine, `recipe_common.cuh`, `delayed_scaling.cu`.
    """
    check_format(fmt)
    return _scale_to(min(fmt.max * 2.0**-margin, FLOAT32.max), magnitudes(amax), power_of_two)


def _scale_to(top: float, amax: np.ndarray, power_of_two: bool = False) -> np.ndarray:
    usable = np.isfinite(amax) & (amax > 0)
    with np.errstate(over="ignore", under="ignore"):
        scale = np.clip(np.float32(top) / np.where(usable, amax, np.float32(1)), MIN_SCALE, MAX_SCALE)
    if power_of_two:
        scale = (scale.view(np.uint32) & np.uint32(0xFF800000)).view(np.float32)  # without the fraction
    return np.where(usable, scale, np.float32(1))[()]


class DelayedScaling:
    """The scale of one tensor from the amax values of its past steps, by the rules of Transformer Engine.

        delayed = DelayedScaling(FLOAT8_E4M3FN)
        for x in steps:
            y = quantize(x * delayed.scale, FLOAT8_E4M3FN, saturate=True) * delayed.inv_scale
            delayed.update(np.abs(x).max())

    `history`: steps that are remembered, the latest one included. `choose`: "max" of them, or the "most_recent". The
    first step is scaled by 1, since nothing is known. An amax of 0 (a layer without work) is not remembered, as in
    Transformer Engine's batched kernel, its default. Where the chosen amax is not finite the scale stays as it was: an
    infinity blocks "max" until it leaves the history; a NaN is passed over by "max". Transformer Engine's own defaults
    are history=1024, margin=0 and "max".
    Raises: ValueError for a history of no step and for an unknown `choose`.
    Source: Transformer Engine, "FP8 Delayed Scaling" in its documentation, and `delayed_scaling.cu`.
    """

    def __init__(self, fmt: FloatFormat, *, history: int = 16, margin: float = 0, choose: str = "max"):
        check_format(fmt)
        if history < 1:
            raise ValueError(f"history {history} remembers no step; take 1 or more")
        if choose not in ("max", "most_recent"):
            raise ValueError(f"choose {choose!r} is not one of max, most_recent")
        self.fmt, self.margin, self.choose = fmt, margin, choose
        self.scale = np.float32(1)
        self._amaxes: deque[np.float32] = deque(maxlen=history)

    @property
    def inv_scale(self) -> np.float32:
        """1 / scale, float32."""
        return np.float32(1) / self.scale

    @property
    def history(self) -> np.ndarray:
        """The amax values that are remembered, oldest first; float32, at most `history` of them."""
        return np.array(self._amaxes, np.float32)

    def update(self, amax) -> np.float32:
        """Remember the amax of the step that was computed, and return the scale of the next one.

        Raises: ValueError for a negative amax.
        """
        amax = np.float32(magnitudes(amax))
        if amax == 0:
            return self.scale
        self._amaxes.append(amax)
        peak = np.fmax.reduce(self.history) if self.choose == "max" else amax
        if np.isfinite(peak):
            self.scale = np.float32(scale_from_amax(peak, self.fmt, margin=self.margin))
        return self.scale


@dataclass(frozen=True)
class Scaling:
    """The tile that shares a scale, the scale's format, and the rule from amax to scale.

    `tile`: rows and columns of a tile; None is the whole axis. `rule`: "exact" (`fmt.max / amax`), "one" (no scaling),
    or a name of `EXPONENT_RULES` (a power of two). `tensor_scale`: a second scale, one float32 for the tensor, that
    fits the tiles' scales into `scale_format`.
    Raises: ValueError for a rule that does not fit the scale's format.
    """

    name: str
    label: str
    tile: tuple[int | None, int | None]
    scale_format: FloatFormat = FLOAT32
    rule: str = "exact"
    tensor_scale: bool = False
    source: str = ""

    def __post_init__(self):
        if self.rule not in ("exact", "one", *EXPONENT_RULES):
            raise ValueError(f"rule {self.rule!r} is not one of exact, one, {', '.join(EXPONENT_RULES)}")
        if any(size is not None and size < 1 for size in self.tile):
            raise ValueError(f"tile {self.tile} holds no value; take sizes of 1 or more, or None for a whole axis")
        powers = self.rule in EXPONENT_RULES
        if self.scale_format.has_zero and self.scale_format is not FLOAT32 and self.rule != "exact":
            raise ValueError(f"a scale in {self.scale_format} follows by rule 'exact', not {self.rule!r}")
        if not self.scale_format.has_zero and not powers:
            raise ValueError(f"{self.scale_format} holds powers of two; take a rule of {', '.join(EXPONENT_RULES)}")
        if self.tensor_scale and not (self.rule == "exact" and self.scale_format is not FLOAT32):
            raise ValueError("a tensor scale serves scales in a narrow format, by rule 'exact'")

    def __str__(self) -> str:
        return self.name

    def tiles(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Return how many tiles lie along the rows and the columns of a tensor; leading axes count as rows."""
        rows, columns = as_rows(shape)
        across, along = self.tile
        return (1 if across is None else -(-rows // across)), (1 if along is None else -(-columns // along))

    def bits_per_value(self, fmt: FloatFormat, shape: tuple[int, ...] | None = None) -> float:
        """Return the bits of a value and of its share of the stored scales.

        Without a `shape`, those of a large tensor: a scale for a whole axis, or for the tensor, costs nothing there.
        """
        if self.rule == "one":
            return float(fmt.bits)
        if shape is None:
            # MXFP4: 4 + 8 / 32 = 4.25; NVFP4: 4 + 8 / 16 = 4.5
            return fmt.bits + (0.0 if None in self.tile else self.scale_format.bits / math.prod(self.tile))
        scales = math.prod(self.tiles(shape)) * self.scale_format.bits + self.tensor_scale * FLOAT32.bits
        return fmt.bits + scales / math.prod(shape)


def as_rows(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (rows, columns): the columns are the last axis, all others are rows; a number is one of each."""
    return (math.prod(shape[:-1]), shape[-1]) if shape else (1, 1)


_TE = "Transformer Engine"
_OCP = "OCP MX 1.0, 6.3"
SCALINGS: dict[str, Scaling] = {
    scaling.name: scaling
    for scaling in (
        Scaling("none", "no scaling", (None, None), rule="one"),
        Scaling("tensor", "one scale per tensor", (None, None), source=f"{_TE}, FP8 Current Scaling"),
        Scaling("row", "one scale per row", (1, None), source="torchao, float8 rowwise"),
        Scaling("1x128", "blocks of 1×128", (1, 128), source="arXiv 2412.19437, 3.3.2"),
        Scaling("128x128", "blocks of 128×128", (128, 128), source="arXiv 2412.19437, 3.3.2"),
        Scaling("mx", "MX, exponent down", (1, 32), FLOAT8_E8M0FNU, "floor", source=_OCP),
        Scaling("mx-rceil", "MX, exponent up (RCEIL)", (1, 32), FLOAT8_E8M0FNU, "rceil", source="arXiv 2506.08027"),
        Scaling("mx-round", "MX, amax rounded", (1, 32), FLOAT8_E8M0FNU, "round", source="torchao, EVEN"),
        Scaling("nvfp4", "NVFP4", (1, 16), FLOAT8_E4M3FN, tensor_scale=True, source="arXiv 2509.25149"),
    )
}


@dataclass(frozen=True)
class ScaledArray:
    """An array in a narrow format and its scales.

    `values`: float32 of the array's shape, values of `fmt`, scaled. `scale`, `inv_scale`, `stored`: float32, one for
    each tile, [tiles along the rows, tiles along the columns]. `stored` is what the format keeps of a tile (a value of
    `scaling.scale_format`), and `tensor_inv_scale` what it keeps of the tensor: inv_scale = stored * tensor_inv_scale.
    """

    values: np.ndarray
    scale: np.ndarray
    inv_scale: np.ndarray
    stored: np.ndarray
    tensor_inv_scale: np.float32
    fmt: FloatFormat
    scaling: Scaling

    def dequantize(self) -> np.ndarray:
        """Return values * inv_scale, float32 of the array's shape."""
        with np.errstate(over="ignore", under="ignore"):
            return self.values * _spread(self.inv_scale, self.values.shape, self.scaling)


def quantize_tiles(x, fmt: FloatFormat, scaling: Scaling, *, rounding: Rounding = ties_to_even) -> ScaledArray:
    """Scale an array tile by tile and round it to the format; what is past `fmt.max` saturates.

    `x`: real numbers of any shape, taken as float32; leading axes are rows. A tile that reaches past the end of the
    array has fewer values. Raises: TypeError for an x that is not real numbers.
    """
    x = as_float32(x)
    scale, inv_scale, stored, tensor_inv_scale = _scales(_tile_amax(x, scaling), fmt, scaling)
    with np.errstate(over="ignore", under="ignore"):
        scaled = x * _spread(scale, x.shape, scaling)
    values = np.asarray(quantize(scaled, fmt, rounding=rounding, saturate=True), np.float32)
    return ScaledArray(values, scale, inv_scale, stored, tensor_inv_scale, fmt, scaling)


def quantize_blocks(
    x,
    fmt: FloatFormat,
    block: int = 32,
    scale_format: FloatFormat = FLOAT8_E8M0FNU,
    *,
    rule: str | None = None,
    tensor_scale: bool = False,
    rounding: Rounding = ties_to_even,
) -> ScaledArray:
    """Quantize an array in blocks of consecutive values of its last axis, as the block formats do.

    `rule`: by default "floor" for powers of two (OCP MX), else "exact". The defaults are MXFP8 for `FLOAT8_E4M3FN`;
    block=16, scale_format=FLOAT8_E4M3FN and tensor_scale=True are NVFP4 for `FLOAT4_E2M1FN`.
    Raises: ValueError for a block of no value and a rule that does not fit `scale_format`.
    """
    rule = rule or ("exact" if scale_format.has_zero else "floor")
    scaling = Scaling(f"1x{block}", f"blocks of 1×{block}", (1, block), scale_format, rule, tensor_scale)
    return quantize_tiles(x, fmt, scaling, rounding=rounding)


def _scales(
    amax: np.ndarray, fmt: FloatFormat, scaling: Scaling
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.float32]:
    """Return scale, inv_scale and stored of each tile, and tensor_inv_scale."""
    unit = np.float32(1)
    if scaling.rule == "one":
        return np.ones_like(amax), np.ones_like(amax), np.ones_like(amax), unit
    if scaling.rule in EXPONENT_RULES:
        stored = np.ldexp(unit, shared_exponent(amax, fmt, rule=scaling.rule))  # 2**X, [tiles, tiles]
        return unit / stored, stored, stored, unit
    if scaling.scale_format is FLOAT32:
        scale = np.asarray(scale_from_amax(amax, fmt))  # fmt.max / amax
        return scale, unit / scale, unit / scale, unit
    narrow = scaling.scale_format
    tensor_scale = unit
    if scaling.tensor_scale:  # the largest of the tiles' scales lands on narrow.max
        tensor_scale = np.float32(_scale_to(fmt.max * narrow.max, amax.max(initial=0)))
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        wanted = amax / np.float32(fmt.max) * tensor_scale  # the inverse scale that would just fill the range
        # A scale of 0 would lose the block and have no reciprocal.
        stored = np.float32(np.maximum(quantize(wanted, narrow, saturate=True), narrow.smallest_subnormal))
        inv_scale = stored * (unit / tensor_scale)
        scale = np.minimum(unit / inv_scale, MAX_SCALE)
    return scale, inv_scale, stored, unit / tensor_scale


def _tile_amax(x: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Return the largest finite magnitude of each tile."""
    size = np.abs(np.where(np.isfinite(x), x, np.float32(0))).reshape(as_rows(x.shape))  # [rows, columns]
    if size.size == 0:
        return np.zeros(scaling.tiles(x.shape), np.float32)
    for axis, step in enumerate(scaling.tile):
        size = np.maximum.reduceat(size, range(0, size.shape[axis], step or size.shape[axis]), axis)
    return size


def _spread(per_tile: np.ndarray, shape: tuple[int, ...], scaling: Scaling) -> np.ndarray:
    """Repeat one number a tile for each value of the tile."""
    for axis, (step, size) in enumerate(zip(scaling.tile, as_rows(shape), strict=True)):
        index = np.arange(size) // (max(size, 1) if step is None else step)  # the tile of each row, or column
        per_tile = per_tile.take(index, axis)
    return per_tile.reshape(shape)
