"""Weights as small integers: 8 or 4 bits for each, and one scale that the whole matrix, a row or a group shares.

    small = quantize(weight, bits=4, group=32)  # [N, K]; every 32 weights of a row share a scale
    small.codes, small.inv_scale  # two weights in a byte, and a bfloat16 for each group: 4.5 bits a weight
    small.dequantize()  # float32 [N, K], nearly the weight

`scale` means what it means in `utils.scaling`: a weight is multiplied by it and rounded, and `inv_scale`, which is
stored, takes the integer back. A scale is made from the stored, rounded `inv_scale`, so that both are exact inverses
but for one float32 rounding, and a `inv_scale` of 16 bits costs no more than a slightly wider step.

Symmetric integers are those of a uniform grid through `utils.emulation.scaled_tensor`: -127 ... 127 and -7 ... 7.
Asymmetric ones move the grid by a zero point until it covers the smallest and the largest weight of the group, and
always 0.
"""

from dataclasses import dataclass

import torch

from utils.emulation.scaled_tensor import quantize as quantize_scaled
from utils.formats import BFLOAT16, NONE, FloatFormat
from utils.scaling import INT8, MAX_SCALE, Scaling, as_rows

# Symmetric INT4, -7 ... 7, as a floating-point format with one binade and its subnormals: a uniform grid.
INT4 = FloatFormat("int4", exponent_bits=1, mantissa_bits=2, bias=-1, specials=NONE)
GRIDS = {4: INT4, 8: INT8}
MATRIX = "matrix"  # a group: all weights of the matrix
_MAX = float(MAX_SCALE)


@dataclass(frozen=True)
class IntegerFormat:
    """Integers of 4 or 8 bits: symmetric, two's complement without the lowest one, or asymmetric, from 0 up.

    Raises: ValueError for other numbers of bits.
    """

    bits: int
    symmetric: bool = True

    def __post_init__(self):
        if self.bits not in GRIDS:
            raise ValueError(f"{self.bits} bits are not supported; take 4 or 8")

    @property
    def lowest(self) -> int:
        """The smallest code: -7 or -127, or 0."""
        return -self.highest if self.symmetric else 0

    @property
    def highest(self) -> int:
        """The largest code: 7 or 127, or 15 or 255."""
        return 2 ** (self.bits - self.symmetric) - 1

    @property
    def name(self) -> str:
        """Such as int4, or uint4 where a zero point belongs to it."""
        return f"{'int' if self.symmetric else 'uint'}{self.bits}"

    def __str__(self) -> str:
        return self.name


@dataclass
class Quantized:
    """A matrix of weights [N, K] in integers.

    `codes`: int8 [N, K] (symmetric) or uint8 (asymmetric); of 4 bits, uint8 [N, ceil(K / 2)], two codes in a byte as
    `pack_int4` lays them. `inv_scale`: [N, groups], or [1, 1] for the matrix, in the dtype that stores it.
    `zero_point`: the code of 0, uint8 of the shape of `inv_scale`; None where it is 0. `group`: how many weights of a
    row share a scale; None for a row, "matrix" for all.
    """

    codes: torch.Tensor
    inv_scale: torch.Tensor
    zero_point: torch.Tensor | None
    format: IntegerFormat
    group: int | str | None
    shape: tuple[int, int]

    @property
    def scale(self) -> torch.Tensor:
        """What the weights were multiplied by: float32, 1 / inv_scale."""
        return reciprocal(self.inv_scale)

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales and zero points together."""
        return sum(part.nbytes for part in (self.codes, self.inv_scale, self.zero_point) if part is not None)

    @property
    def bits_per_weight(self) -> float:
        """Stored bits, scales and zero points included, for each weight."""
        return 8 * self.nbytes / max(1, self.shape[0] * self.shape[1])

    def integers(self) -> torch.Tensor:
        """Return the integers that the scales multiply, int16 [N, K]: codes without their zero point."""
        codes = self.unpacked().short()
        return codes if self.zero_point is None else codes - spread(self.zero_point.short(), self.shape, self.group)

    def unpacked(self) -> torch.Tensor:
        """Return the codes one by one, int8 or uint8 [N, K]."""
        if self.format.bits == 8:
            return self.codes
        codes = unpack_int4(self.codes, signed=self.format.symmetric)[:, : self.shape[1]]
        return codes if self.format.symmetric else codes.to(torch.uint8)

    def dequantize(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return integers * inv_scale, [N, K], multiplied in float32 and rounded to `dtype`."""
        return (self.integers().float() * spread(self.inv_scale.float(), self.shape, self.group)).to(dtype)


@torch.no_grad()
def quantize(
    weight: torch.Tensor,
    bits: int = 8,
    group: int | str | None = None,
    *,
    symmetric: bool = True,
    scale_format: FloatFormat = BFLOAT16,
) -> Quantized:
    """Round a matrix of weights to integers of 8 or 4 bits, to nearest, ties to even.

    `weight`: a floating dtype, [N, K]. `group`: this many neighbours of a row share a scale, the last ones of a row
    may be fewer; None: a row does, "matrix": all weights do. `scale_format`: what stores `inv_scale`, FLOAT32,
    FLOAT16 or BFLOAT16. A group of zeros stays zeros.
    Raises: TypeError for a weight that is no floating matrix; ValueError for a weight that is not finite, for other
    bits and for a group of no weight.
    """
    fmt, scaling = IntegerFormat(bits, symmetric), tiling(group, scale_format)
    if not isinstance(weight, torch.Tensor) or not weight.is_floating_point() or weight.dim() != 2:
        raise TypeError(f"weight is a floating tensor [N, K], not {getattr(weight, 'shape', type(weight).__name__)}")
    if not weight.isfinite().all():
        raise ValueError("a weight is not finite, and no integer is: find the NaN or the infinity first")
    wide, shape = weight.detach().float(), tuple(weight.shape)
    if symmetric:
        rounded = quantize_scaled(wide, GRIDS[bits], scaling)
        codes, inv_scale, zero_point = rounded.values, rounded.stored, None
    else:
        inv_scale, zero_point = grid(wide, fmt, group=group, scale_format=scale_format)
        codes = to_codes(wide, spread(reciprocal(inv_scale), shape, group), spread(zero_point, shape, group), fmt)
    return assembled(codes, inv_scale, zero_point, fmt, group=group, scale_format=scale_format)


def tiling(group: int | str | None, scale_format: FloatFormat = BFLOAT16) -> Scaling:
    """Return which weights share a scale, as `utils.scaling` writes it.

    Raises: ValueError for a group that is neither a positive number, None nor "matrix".
    """
    if group == MATRIX:
        return Scaling(MATRIX, "one scale a matrix", (None, None), scale_format)
    if group is None:
        return Scaling("row", "one scale per row", (1, None), scale_format)
    if not isinstance(group, int) or group < 1:
        raise ValueError(f"group {group!r} is no number of weights; take 1 or more, None for a row, or {MATRIX!r}")
    return Scaling(f"1x{group}", f"groups of {group}", (1, group), scale_format)


def grid(
    weight: torch.Tensor, fmt: IntegerFormat, *, group: int | str | None, scale_format: FloatFormat = BFLOAT16
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return inv_scale, float32 values of `scale_format`, and the zero points, float32 or None, of each group.

    `weight`: float32 [N, K], finite. For symmetric integers as `utils.emulation.scaled_tensor` chooses them.
    """
    if fmt.symmetric:
        return quantize_scaled(weight, GRIDS[fmt.bits], tiling(group, scale_format)).stored, None
    highest = _largest(weight, group).clamp_(min=0)
    lowest = -_largest(-weight, group).clamp_(min=0)
    span = highest - lowest  # 0 lies inside: it has a code of its own
    # inv_scale = span / (2**bits - 1), as it will be stored
    inv_scale = (span / torch.full_like(span, fmt.highest)).to(scale_format.torch_dtype).float()
    inv_scale = inv_scale.where(inv_scale > 0, 1.0)
    zero_point = (-lowest * reciprocal(inv_scale)).round_().clamp_(0, fmt.highest)  # the code of 0
    return inv_scale, zero_point


def to_codes(
    weight: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor | None, fmt: IntegerFormat
) -> torch.Tensor:
    """Return the codes of float32 weights, float32 of their shape: rounded to even, moved, and saturated."""
    codes = (weight * scale).round_()  # q = round(w * scale) + zero_point
    return (codes if zero_point is None else codes.add_(zero_point)).clamp_(fmt.lowest, fmt.highest)


def assembled(
    codes: torch.Tensor,
    inv_scale: torch.Tensor,
    zero_point: torch.Tensor | None,
    fmt: IntegerFormat,
    *,
    group: int | str | None,
    scale_format: FloatFormat = BFLOAT16,
) -> Quantized:
    """Return integral codes [N, K], with what belongs to their groups, in the few bytes that they need."""
    small = codes.to(torch.int8 if fmt.symmetric else torch.uint8)
    small = pack_int4(small) if fmt.bits == 4 else small
    zero_point = None if zero_point is None else zero_point.to(torch.uint8)
    stored = inv_scale.to(scale_format.torch_dtype)
    return Quantized(small, stored, zero_point, fmt, group, tuple(codes.shape))


def spread(numbers: torch.Tensor, shape: tuple[int, int], group: int | str | None) -> torch.Tensor:
    """Repeat the number of each group for its weights: [N, groups] -> [N, K]; a row's or a matrix' as a view."""
    if not isinstance(group, int):
        return numbers.expand(shape)
    return numbers[:, :, None].expand(-1, -1, group).flatten(1)[:, : shape[1]]


def pack_int4(codes: torch.Tensor) -> torch.Tensor:
    """Return two codes of 4 bits in each byte, uint8 [..., ceil(K / 2)], for integers [..., K] of -8 ... 15.

    The first of a pair lies in the high nibble, so that a byte in hexadecimal shows them in order; a negative one is in
    two's complement. A row of odd length is filled with a 0. It is the order of torch's `_convert_weight_to_int4pack`.
    Raises: ValueError for a code beyond 4 bits.
    """
    codes = codes.to(torch.int16)
    if codes.numel() and not (codes.min() >= -8 and codes.max() <= 15):
        raise ValueError(f"codes {int(codes.min())} ... {int(codes.max())} do not fit 4 bits: -8 ... 7, or 0 ... 15")
    # two's complement in 4 bits: -1 -> 0xF
    nibbles = torch.nn.functional.pad(codes & 0xF, (0, codes.shape[-1] % 2)).to(torch.uint8)
    return nibbles[..., ::2] << 4 | nibbles[..., 1::2]  # [..., ceil(K / 2)]


def unpack_int4(packed: torch.Tensor, *, signed: bool = True) -> torch.Tensor:
    """Return the codes of `pack_int4`, int8 [..., 2 * bytes]: -8 ... 7, or 0 ... 15 where not `signed`."""
    nibbles = torch.stack([packed >> 4, packed & 0xF], dim=-1).flatten(-2).to(torch.int8)  # high one first
    return (nibbles ^ 8) - 8 if signed else nibbles  # 8 ... 15 are the negative ones


def reciprocal(inv_scale: torch.Tensor) -> torch.Tensor:
    """Return 1 / inv_scale, float32, at most float32's largest value."""
    return (1.0 / inv_scale.float()).clamp_(max=_MAX)


def _largest(x: torch.Tensor, group: int | str | None) -> torch.Tensor:
    """Return the largest value of each group, [N, groups], or [1, 1] for the matrix."""
    if not isinstance(group, int):
        return x.amax((0, 1) if group == MATRIX else 1, keepdim=True)
    rows, columns = as_rows(tuple(x.shape))
    filled = torch.nn.functional.pad(x, (0, -columns % group), value=-torch.inf)  # whole groups
    return filled.view(rows, -1, group).amax(2)  # [N, groups]
