"""Binary floating-point formats as rows of one table, with an exact codec for all of them.

A code is the unsigned integer whose bits are `sign | exponent | fraction`. Its value is

    (-1)**sign * 2**(exponent - bias) * (1 + fraction / 2**mantissa_bits)     exponent > 0: normal
    (-1)**sign * 2**(1 - bias)        * (0 + fraction / 2**mantissa_bits)     exponent = 0: zero and subnormal

and what a few codes mean instead (infinities, NaNs) is the format's `specials`. All arithmetic is float64, which
holds every value of every format here exactly.
"""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple

import numpy as np

from utils.rounding import Rounding, check_format, quantize, ties_to_even

IEEE = "ieee"  # the top exponent holds the infinities (fraction 0) and the NaNs (IEEE 754-2019, 3.4)
ALL_ONES = "all_ones"  # only exponent and fraction all ones is NaN; no infinity (OFP8 E4M3, OCP MX E8M0)
NEGATIVE_ZERO = "negative_zero"  # the code of -0 is the only NaN; no infinity (the FNUZ formats, arXiv 2206.02915)
NONE = "none"  # finite values only (OCP MX FP6 and FP4)
_SPECIALS = (IEEE, ALL_ONES, NEGATIVE_ZERO, NONE)


@dataclass(frozen=True)
class FloatFormat:
    """One binary floating-point format: the widths of its fields, its bias, and what its special codes are.

    `mantissa_bits` is the M of ExMy, the width of the stored fraction, without the hidden bit. A format with
    `mantissa_bits == 0` is a pure power of two and has neither zero nor subnormals (E8M0).

    Raises: TypeError for widths that are not ints, ValueError for those that float64 arithmetic could not treat
    exactly.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: str = IEEE
    signed: bool = True

    def __post_init__(self) -> None:
        for field in ("exponent_bits", "mantissa_bits", "bias"):
            if type(getattr(self, field)) is not int:
                raise TypeError(f"{self.name}: {field} is an int, not {getattr(self, field)!r}")
        if self.specials not in _SPECIALS:
            raise ValueError(f"specials {self.specials!r} is not one of {', '.join(_SPECIALS)}")
        if not (1 <= self.exponent_bits <= 11 and 0 <= self.mantissa_bits <= 52):
            raise ValueError(
                f"{self.name}: {self.exponent_bits} exponent and {self.mantissa_bits} fraction bits;"
                " this codec covers 1 to 11 and 0 to 52, what float64 can hold"
            )
        if self.signed != (self.mantissa_bits > 0):
            raise ValueError(
                f"{self.name}: a sign and a zero come together; only a pure power of two (mantissa_bits=0) has neither"
            )
        if self.specials == NEGATIVE_ZERO and not self.signed:
            raise ValueError(f"{self.name}: the NaN of negative_zero is the code of -0, which needs a sign")
        if self.specials == IEEE and (self.exponent_bits < 2 or self.mantissa_bits < 1):
            raise ValueError(f"{self.name}: ieee specials need at least 2 exponent bits and 1 fraction bit")
        if self.emin - self.mantissa_bits < -1074 or self.emax > 1023:
            raise ValueError(
                f"{self.name}: bias {self.bias} leaves the range of float64; use one nearer to 2**(e-1) - 1"
            )
        if self.mantissa_bits > 50 and self.emax < 1023:
            raise ValueError(
                f"{self.name}: {self.mantissa_bits} fraction bits leave float64 no value between the tie past max and"
                " the next point; use at most 50, or the largest exponent of float64"
            )

    def __str__(self) -> str:
        return self.name

    @property
    def bits(self) -> int:
        """Width of a code in bits."""
        return int(self.signed) + self.exponent_bits + self.mantissa_bits

    @property
    def precision(self) -> int:
        """Significant bits p of a normal value, the hidden bit included."""
        return self.mantissa_bits + 1

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal value (and of every subnormal)."""
        return -self.bias if self.mantissa_bits == 0 else 1 - self.bias

    @property
    def emax(self) -> int:
        """Exponent of the largest finite value."""
        return (self.max_code >> self.mantissa_bits) - self.bias

    @property
    def max(self) -> float:
        """Largest finite value."""
        significand = 2**self.mantissa_bits + self.max_code % 2**self.mantissa_bits
        return math.ldexp(significand, self.emax - self.mantissa_bits)

    @property
    def smallest_normal(self) -> float:
        """Smallest positive value with the hidden bit 1."""
        return math.ldexp(1.0, self.emin)

    @property
    def smallest_subnormal(self) -> float:
        """Smallest positive value; where there are no subnormals, the smallest normal (as `ml_dtypes.finfo` has it)."""
        return math.ldexp(1.0, self.emin - self.mantissa_bits)

    @property
    def eps(self) -> float:
        """Gap between 1 and the next larger value, 2**(1 - p); twice the unit roundoff."""
        return math.ldexp(1.0, -self.mantissa_bits)

    @property
    def has_inf(self) -> bool:
        """Whether some code is an infinity."""
        return self.specials == IEEE

    @property
    def has_nan(self) -> bool:
        """Whether some code is NaN."""
        return self.specials != NONE

    @property
    def has_zero(self) -> bool:
        """Whether some code is zero."""
        return self.mantissa_bits > 0

    @property
    def has_negative_zero(self) -> bool:
        """Whether zero has two codes, one for each sign."""
        return self.has_zero and self.signed and self.specials != NEGATIVE_ZERO

    @property
    def code_dtype(self) -> np.dtype:
        """Smallest unsigned NumPy dtype that holds a code."""
        return np.dtype(f"uint{next(width for width in (8, 16, 32, 64) if width >= self.bits)}")

    @property
    def sign_code(self) -> int:
        """The code with only the sign bit set; 0 for an unsigned format."""
        return 1 << (self.bits - 1) if self.signed else 0

    @property
    def max_code(self) -> int:
        """Code of `max`: the last one before the special codes."""
        if self.specials == IEEE:
            return self.inf_code - 1
        return 2 ** (self.exponent_bits + self.mantissa_bits) - 1 - int(self.specials == ALL_ONES)

    @property
    def nan_code(self) -> int:
        """The NaN that `encode` writes: the quiet one with an otherwise empty fraction where there are several.

        Raises: ValueError if the format has none.
        """
        if self.specials == NEGATIVE_ZERO:
            return self.sign_code
        if self.specials == ALL_ONES:
            return 2 ** (self.exponent_bits + self.mantissa_bits) - 1
        if self.specials == IEEE:
            return (2 ** (self.exponent_bits + 1) - 1) << (self.mantissa_bits - 1)
        raise ValueError(f"{self.name} has no NaN: replace NaNs before encoding, or choose a format that has one")

    @property
    def inf_code(self) -> int:
        """Code of +Inf. Raises: ValueError if the format has none."""
        if not self.has_inf:
            raise ValueError(f"{self.name} has no infinity; its largest value is {self.max}")
        return (2**self.exponent_bits - 1) << self.mantissa_bits

    @property
    def torch_dtype(self):
        """The torch dtype of this row of `FORMATS`, or None (TF32, FP6; torch's FP4 is a pair, not one value)."""
        import torch

        dtype = getattr(torch, self.name, None) if FORMATS.get(self.name) == self else None
        return dtype if isinstance(dtype, torch.dtype) else None


FLOAT64 = FloatFormat("float64", exponent_bits=11, mantissa_bits=52, bias=1023)
FLOAT32 = FloatFormat("float32", exponent_bits=8, mantissa_bits=23, bias=127)
TF32 = FloatFormat("tf32", exponent_bits=8, mantissa_bits=10, bias=127)  # 19 bits, read from a float32
FLOAT16 = FloatFormat("float16", exponent_bits=5, mantissa_bits=10, bias=15)
BFLOAT16 = FloatFormat("bfloat16", exponent_bits=8, mantissa_bits=7, bias=127)
FLOAT8_E4M3FN = FloatFormat("float8_e4m3fn", 4, 3, bias=7, specials=ALL_ONES)
FLOAT8_E5M2 = FloatFormat("float8_e5m2", 5, 2, bias=15)
FLOAT8_E4M3FNUZ = FloatFormat("float8_e4m3fnuz", 4, 3, bias=8, specials=NEGATIVE_ZERO)
FLOAT8_E5M2FNUZ = FloatFormat("float8_e5m2fnuz", 5, 2, bias=16, specials=NEGATIVE_ZERO)
FLOAT8_E8M0FNU = FloatFormat("float8_e8m0fnu", 8, 0, bias=127, specials=ALL_ONES, signed=False)
FLOAT6_E3M2FN = FloatFormat("float6_e3m2fn", 3, 2, bias=3, specials=NONE)
FLOAT6_E2M3FN = FloatFormat("float6_e2m3fn", 2, 3, bias=1, specials=NONE)
FLOAT4_E2M1FN = FloatFormat("float4_e2m1fn", 2, 1, bias=1, specials=NONE)

FORMATS: dict[str, FloatFormat] = {
    fmt.name: fmt
    for fmt in (
        FLOAT64,
        FLOAT32,
        TF32,
        FLOAT16,
        BFLOAT16,
        FLOAT8_E4M3FN,
        FLOAT8_E5M2,
        FLOAT8_E4M3FNUZ,
        FLOAT8_E5M2FNUZ,
        FLOAT8_E8M0FNU,
        FLOAT6_E3M2FN,
        FLOAT6_E2M3FN,
        FLOAT4_E2M1FN,
    )
}


class Fields(NamedTuple):
    """The three stored fields of a code, as unsigned integers (arrays of the code's shape)."""

    sign: np.ndarray
    exponent: np.ndarray
    mantissa: np.ndarray


def fields(code, fmt: FloatFormat) -> Fields:
    """Cut codes into their sign, exponent and fraction fields.

    `code`: unsigned integers of any shape, each below 2**fmt.bits. Returns three arrays of that shape, dtype
    `fmt.code_dtype`. Raises: TypeError for codes that are not integers, ValueError for one that is out of range.
    """
    code = _check_codes(code, fmt)
    bit = code.dtype.type(1)
    mantissa = code & fmt.code_dtype.type(2**fmt.mantissa_bits - 1)
    exponent = (code >> code.dtype.type(fmt.mantissa_bits)) & fmt.code_dtype.type(2**fmt.exponent_bits - 1)
    sign = (code >> code.dtype.type(fmt.bits - 1)) & bit if fmt.signed else np.zeros_like(code)
    return Fields(sign, exponent, mantissa)


def decode(code, fmt: FloatFormat) -> np.ndarray:
    """Return the exact values of codes, as float64 of the same shape.

    `code`: unsigned integers below 2**fmt.bits. Raises: TypeError or ValueError for anything else.
    """
    sign, exponent, mantissa = fields(code, fmt)
    exponent, mantissa = exponent.astype(np.int64), mantissa.astype(np.int64)
    subnormal = (exponent == 0) & (fmt.mantissa_bits > 0)
    significand = np.where(subnormal, 0, 2**fmt.mantissa_bits) + mantissa  # f * 2**M, a whole number
    e = np.where(subnormal, fmt.emin, np.minimum(exponent - fmt.bias, fmt.emax))  # above emax: replaced below
    magnitude = np.ldexp(significand.astype(np.float64), (e - fmt.mantissa_bits).astype(np.int32))
    value = np.where(sign == 1, -magnitude, magnitude)
    top = 2**fmt.exponent_bits - 1
    if fmt.specials == IEEE:
        value = np.where((exponent == top) & (mantissa == 0), np.where(sign == 1, -np.inf, np.inf), value)
        value = np.where((exponent == top) & (mantissa != 0), np.nan, value)
    elif fmt.specials == ALL_ONES:
        value = np.where((exponent == top) & (mantissa == 2**fmt.mantissa_bits - 1), np.nan, value)
    elif fmt.specials == NEGATIVE_ZERO:
        value = np.where((sign == 1) & (exponent == 0) & (mantissa == 0), np.nan, value)
    return value[()]


def encode(value, fmt: FloatFormat, rounding: Rounding = ties_to_even, saturate: bool = False) -> np.ndarray:
    """Round values to the format and give their codes, as `fmt.code_dtype` of the same shape.

    `value`: real numbers of any shape, taken as float64. `rounding` and `saturate` as in `utils.rounding.quantize`.
    Every NaN becomes `fmt.nan_code`. Raises: ValueError for a NaN that the format cannot hold.
    """
    value = quantize(value, fmt, rounding=rounding, saturate=saturate)
    is_nan = np.isnan(value)
    magnitude = np.abs(np.where(np.isfinite(value), value, fmt.smallest_normal))
    _, e = np.frexp(magnitude)  # magnitude = f * 2**e with 1/2 <= f < 1
    e = np.maximum(e.astype(np.int64) - 1, fmt.emin)
    significand = np.ldexp(magnitude, (fmt.mantissa_bits - e).astype(np.int32)).astype(np.uint64)  # whole: was rounded
    hidden = np.uint64(2**fmt.mantissa_bits)
    exponent = np.where(significand >= hidden, e + fmt.bias, 0).astype(np.uint64)
    code = (exponent << np.uint64(fmt.mantissa_bits)) | (significand & (hidden - np.uint64(1)))
    if fmt.has_inf:
        code = np.where(np.isinf(value), np.uint64(fmt.inf_code), code)
    if fmt.signed:
        code = np.where(np.signbit(value), code | np.uint64(fmt.sign_code), code)
    if is_nan.any():
        code = np.where(is_nan, np.uint64(fmt.nan_code), code)
    return code.astype(fmt.code_dtype)[()]


def _check_codes(code, fmt: FloatFormat) -> np.ndarray:
    check_format(fmt)
    if isinstance(code, (list, tuple)):
        code = np.array(code, dtype=object)  # np.asarray([1, 2**63]) would be floats
    code = np.asarray(code)
    if code.dtype.kind not in "ui" and not (code.dtype == object and all(map(_is_whole, code.flat))):
        raise TypeError(f"a code is an unsigned integer, not {code.dtype}; to turn values into codes use encode()")
    if code.size and (int(code.min()) < 0 or int(code.max()) >= 2**fmt.bits):
        bad = int(code.min()) if int(code.min()) < 0 else int(code.max())
        raise ValueError(f"code {bad} is not in 0 ... {2**fmt.bits - 1}: {fmt.name} has {fmt.bits} bits")
    return code.astype(fmt.code_dtype)


def _is_whole(code) -> bool:
    return isinstance(code, Integral) and not isinstance(code, bool)
