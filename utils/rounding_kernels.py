"""The arithmetic behind `utils.fake_quantize`: one piece of a tensor in, the same piece rounded out.

All of it is the reference's three lines (measure x in ulps, round, multiply back) in the cheapest form that stays
exact, and there are three:

* `GRID`: the carrier (float32 or float64) holds the step, so x / step is exact and one rounding remains;
* `BITS`: the format has float32's exponents, so rounding is an integer addition that carries into the exponent;
* `CAST`: the hardware converts (float16 and bfloat16, to nearest).

A *plan* holds the numbers of one format. `round_eager` runs a plan in few operations and no comparisons, which cost ten
times an addition on a CPU. `round_fused` states the same for a compiler, which makes one loop of it.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import torch

from utils.formats import BFLOAT16, FLOAT16, FloatFormat

GRID, BITS, CAST, COPY = "grid", "bits", "cast", "copy"


class Carrier(NamedTuple):
    """The layout of a torch dtype that values are rounded in."""

    dtype: torch.dtype
    bits_dtype: torch.dtype
    mantissa_bits: int
    bias: int
    exponent_unit: int  # 2**mantissa_bits; written out because torch.compile overflows in 1 << 52

    @property
    def exponent_mask(self) -> int:
        return (2 * self.bias + 1) * self.exponent_unit

    @property
    def max(self) -> float:
        return torch.finfo(self.dtype).max


FLOAT32_CARRIER = Carrier(torch.float32, torch.int32, mantissa_bits=23, bias=127, exponent_unit=2**23)
FLOAT64_CARRIER = Carrier(torch.float64, torch.int64, mantissa_bits=52, bias=1023, exponent_unit=2**52)


class RoundingPlan(NamedTuple):
    """How one format is rounded in one carrier: the method and its numbers."""

    method: str
    carrier: Carrier
    fmt: FloatFormat
    limit: float  # the largest finite result
    past: float  # what stands beyond it: limit, infinity or NaN
    end: float  # the first point past the grid; the largest carrier value where that is infinite


@lru_cache(maxsize=256)
def make_plan(fmt: FloatFormat, dtype: torch.dtype, saturate: bool) -> RoundingPlan:
    """Choose the method for a format and the dtype of the tensor.

    Raises: ValueError for a format of 11 exponent bits that is not float64: its steps leave the range of float64.
    """
    carrier = FLOAT64_CARRIER if dtype == torch.float64 else FLOAT32_CARRIER
    method = _find_method(fmt, carrier)
    if method is None and carrier is FLOAT32_CARRIER:  # E8M0: its steps are subnormal in float32, not in float64
        carrier, method = FLOAT64_CARRIER, _find_method(fmt, FLOAT64_CARRIER)
    if method is None:
        raise ValueError(f"{fmt.name}: its steps leave the range of float64; use utils.rounding.quantize")
    limit = fmt.max if fmt.max <= carrier.max else math.inf
    past = limit if saturate or not fmt.has_nan else math.inf if fmt.has_inf else math.nan
    end = min(fmt.max + math.ldexp(1.0, fmt.emax - fmt.mantissa_bits), carrier.max)
    return RoundingPlan(method, carrier, fmt, limit, past, end)


def _find_method(fmt: FloatFormat, carrier: Carrier) -> str | None:
    emin, emax = 1 - carrier.bias, carrier.bias
    if fmt.mantissa_bits >= carrier.mantissa_bits and fmt.emin <= emin and fmt.emax >= emax:
        return COPY
    if carrier is FLOAT32_CARRIER and fmt in (FLOAT16, BFLOAT16):
        return CAST
    if fmt.emin - fmt.mantissa_bits >= emin and fmt.emax <= emax and fmt.mantissa_bits <= carrier.mantissa_bits:
        return GRID
    if carrier is FLOAT32_CARRIER and (fmt.emin, fmt.emax, fmt.has_inf) == (emin, emax, True):
        return BITS
    return None


def without_cast(plan: RoundingPlan) -> RoundingPlan:
    """Return the plan that rounds by arithmetic where `plan` would cast.

    A cast there and back has no place in a compiled graph: torch.compile drops it (`pointless_convert` in inductor's
    joint graph passes), and no rounding is left. Nor can a cast round stochastically.
    """
    if plan.method != CAST:
        return plan
    return plan._replace(method=BITS if plan.fmt.exponent_bits == 8 else GRID)


def round_eager(x: torch.Tensor, plan: RoundingPlan, out: torch.Tensor | None = None, draw=None) -> torch.Tensor:
    """Round a piece with the operations that are cheap one at a time.

    `x`: dtype of `plan.carrier`, any shape. `out`: where the result goes, x itself included. `draw`: None, or a
    function of no arguments that gives 32 random bits an element as int32, to round stochastically.
    """
    if plan.method == COPY:
        return torch.clamp(x, -plan.past, plan.past, out=out)
    if plan.method == CAST:
        return _round_by_cast(x, plan, out=out)
    if plan.method == BITS:
        return _round_bits(x, plan, out=out, draw=draw)
    return _round_on_grid(x, plan, out=out, draw=draw)


def _round_by_cast(x: torch.Tensor, plan: RoundingPlan, out: torch.Tensor | None) -> torch.Tensor:
    if plan.past == plan.limit:
        x = x.clamp(-plan.limit, plan.limit)  # explicit: what a cast does past the end differs by torch version
    narrow = x.to(plan.fmt.torch_dtype)
    return narrow.to(plan.carrier.dtype) if out is None else out.copy_(narrow)


def _round_on_grid(x: torch.Tensor, plan: RoundingPlan, out: torch.Tensor | None, draw) -> torch.Tensor:
    carrier, fmt = plan.carrier, plan.fmt
    binade = x.view(carrier.bits_dtype).bitwise_and(carrier.exponent_mask).view(carrier.dtype)  # 2**floor(log2 |x|)
    step = binade.clamp_(math.ldexp(1.0, fmt.emin), math.ldexp(1.0, fmt.emax)).mul_(fmt.eps)
    if draw is None:
        y = torch.div(x, step).round_()  # exact, then the one rounding: ties to even
    else:
        y = _round_up_by_chance(x.clamp(-plan.end, plan.end).div_(step), draw())
    y.mul_(step)
    if not fmt.has_zero:  # E8M0: NaN unless x > 0, where 1 / sqrt(x) is finite
        y.clamp_min_(fmt.smallest_normal).add_(x.rsqrt(), alpha=0.0)
    if plan.past == plan.limit:
        if not fmt.has_negative_zero:
            y.add_(0.0)  # -0 + 0 = +0
        return torch.clamp(y, -plan.limit, plan.limit, out=out)
    # The excess is 0 or at least one step, which two factors of `huge` make infinite: no comparison is needed.
    huge = math.ldexp(1.0, carrier.bias)
    excess = torch.clamp(y, -plan.limit, plan.limit).sub_(y).mul_(huge)
    y.sub_(excess, alpha=huge)  # -0 - (+0) = -0
    if not fmt.has_inf:
        y.add_(y, alpha=0.0)  # inf + 0 * inf = NaN, y + 0 * y = y
    return torch.add(y, 0.0 if not fmt.has_negative_zero else -0.0, out=out)


def _round_up_by_chance(ulps: torch.Tensor, random: torch.Tensor) -> torch.Tensor:
    """Round |ulps| down, or up with the probability of its fraction, and restore the sign."""
    # 23 bits as a number of -1/2 ... 1/2, moved by 1/2 and by half a unit, so that a threshold falls between two
    # fractions of float32 values in the normal range: their probabilities are exact, all others to 2**-24.
    threshold = (random >> 9).to(ulps.dtype).mul_(2.0**-23).add_(0.5 + 2.0**-24)
    size = ulps.abs()
    whole = size.floor()
    up = size.sub_(whole).sub_(threshold).ceil_()  # 1 where fraction > threshold, else 0
    return whole.add_(up).copysign_(ulps)


def _round_bits(x: torch.Tensor, plan: RoundingPlan, out: torch.Tensor | None, draw) -> torch.Tensor:
    dropped = plan.carrier.mantissa_bits - plan.fmt.mantissa_bits
    saturates = plan.past == plan.limit
    finite = x.clamp(-plan.limit, plan.limit) if saturates else x.clamp(-plan.carrier.max, plan.carrier.max)
    bits = (finite if saturates else x).view(torch.int32)
    y = _round_by_carry(bits, dropped, (1 << dropped) - 1, draw).view(torch.float32)
    return torch.add(y, finite, alpha=0.0, out=out)  # y + 0 * NaN = NaN, else y


def _round_by_carry(bits: torch.Tensor, dropped, mask, draw) -> torch.Tensor:
    """Round sign-and-magnitude bits to a multiple of mask + 1 = 2**dropped: an addition carries into the exponent."""
    if draw is None:
        # A tie goes up only from an odd code: to the even one.
        return (bits >> dropped).bitwise_and_(1).add_(bits).add_(mask >> 1).bitwise_and_(~mask)
    return (draw() >> (32 - dropped)).bitwise_and_(mask).add_(bits).bitwise_and_(~mask)


class GraphConstants(NamedTuple):
    """The numbers of a plan as tensors of shape [], so that one compiled graph serves many formats."""

    integers: tuple[torch.Tensor, ...]  # of the carrier's integer dtype
    floats: tuple[torch.Tensor, ...]  # of the carrier's dtype: limit, past, end


@lru_cache(maxsize=256)
def make_constants(plan: RoundingPlan, device: torch.device) -> GraphConstants:
    """Return the numbers that `round_fused` needs, on the device."""
    carrier, fmt = plan.carrier, plan.fmt
    if plan.method == BITS:
        dropped = carrier.mantissa_bits - fmt.mantissa_bits
        integers = (dropped, (1 << dropped) - 1)
    else:
        exponents = (fmt.emin + carrier.bias, fmt.emax + carrier.bias, fmt.mantissa_bits, 2 * carrier.bias)
        integers = (carrier.exponent_mask, *(e * carrier.exponent_unit for e in exponents))
    if plan.method == COPY:
        integers = ()
    floats = (plan.limit, plan.past, plan.end)
    return GraphConstants(
        tuple(torch.tensor(number, dtype=carrier.bits_dtype, device=device) for number in integers),
        tuple(torch.tensor(number, dtype=carrier.dtype, device=device) for number in floats),
    )


class GraphForm(NamedTuple):
    """What of a plan changes the operations of `round_fused`, not only their numbers."""

    method: str
    carrier: Carrier
    has_zero: bool
    has_negative_zero: bool


def find_form(plan: RoundingPlan) -> GraphForm:
    """Return the part of a plan for which code is compiled."""
    return GraphForm(plan.method, plan.carrier, plan.fmt.has_zero, plan.fmt.has_negative_zero)


def round_fused(x: torch.Tensor, form: GraphForm, constants: GraphConstants, draw=None) -> torch.Tensor:
    """State `round_eager` without writing in place, for torch.compile; x and the result have the carrier's dtype."""
    carrier = form.carrier
    limit, past, end = constants.floats
    if form.method == COPY:
        return torch.minimum(torch.maximum(x, -past), past)
    if form.method == BITS:
        dropped, mask = constants.integers
        y = _round_by_carry(x.view(torch.int32), dropped, mask, draw).view(torch.float32)
        # x != x is x.isnan(), which torch.compile does not vectorise on a CPU.
        return torch.where(x != x, x, torch.where(y.abs() > limit, past.copysign(x), y))
    mask, low, high, shift, inverse = constants.integers
    exponent = torch.minimum(torch.maximum(x.view(carrier.bits_dtype) & mask, low), high)
    # 1 / step comes from the bits of the exponent, because compiled float32 division on a GPU is not exact.
    step_bits = exponent - shift
    step, inv_step = step_bits.view(carrier.dtype), (inverse - step_bits).view(carrier.dtype)
    if draw is None:
        y = (x * inv_step).round() * step
    else:
        y = _round_up_by_chance(torch.minimum(torch.maximum(x, -end), end) * inv_step, draw()) * step
    if not form.has_zero:
        y = torch.where(x > 0, torch.maximum(y, low.view(carrier.dtype)), math.nan)
    y = torch.where(y.abs() > limit, past.copysign(x), y)
    return y if form.has_negative_zero else torch.where(y == 0, 0.0, y)


def draw_bits(count: int, start, keys, device: torch.device) -> torch.Tensor:
    """Return random bits, as int32, for each of the counters start, ..., start + count - 1; use the upper ones.

    `start` and the two `keys`: int32 numbers or tensors of shape []. The bits are a function of counter and keys
    alone, so pieces, threads and devices cannot change them. The mixing is the 32-bit finaliser `lowbias32`
    (C. Wellons, Prospecting for Hash Functions, 2018) with the second key put between its multiplications, so that
    no seed's sequence is another's, shifted; and without its last step, which serves the lower bits.
    """
    h = (torch.arange(count, dtype=torch.int32, device=device) + start) ^ keys[0]
    h = (h ^ ((h >> 16) & 0xFFFF)) * 0x7FEB352D  # int32 products wrap; >> copies the sign, the mask clears it
    return (h ^ ((h >> 15) & 0x1FFFF) ^ keys[1]) * (0x846CA68B - 2**32)
