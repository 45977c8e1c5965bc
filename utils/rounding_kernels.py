"""The arithmetic behind `utils.fake_quantize`: one piece of a tensor in, the same piece rounded out.

All of it is the reference's three lines (measure x in ulps, round, multiply back) in the cheapest form that stays
exact, and there are four:

* `GRID`: the carrier (float32 or float64) holds the step, so x / step is exact and one rounding remains;
* `BITS`: the format has float32's exponents, so rounding is an integer addition that carries into the exponent;
* `POWERS`: the values are float32's powers of two alone (E8M0), so only the exponent is left of such an addition;
* `CAST`: the hardware converts (float16 and bfloat16, to nearest).

A *plan* holds the numbers of one format. `round_eager` runs a plan in few operations and no comparisons, which cost ten
times an addition on a CPU. `round_fused` states the same for a compiler, which makes one loop of it.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import torch

from utils.formats import BFLOAT16, FLOAT16, FloatFormat

GRID, BITS, POWERS, CAST, COPY = "grid", "bits", "powers", "cast", "copy"


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
    # Properties of the format that every call needs, worked out once: they took longer than rounding a small tensor.
    lowest_binade: float  # 2**emin
    highest_binade: float  # 2**emax
    eps: float
    has_zero: bool
    has_negative_zero: bool
    has_inf: bool


@lru_cache(maxsize=256)
def make_plan(fmt: FloatFormat, dtype: torch.dtype, saturate: bool) -> RoundingPlan:
    """Choose the method for a format and the dtype of the tensor.

    Raises: ValueError for a format whose steps leave the range of float64, as of 11 exponent bits, except float64.
    """
    carrier = FLOAT64_CARRIER if dtype == torch.float64 else FLOAT32_CARRIER
    method = _find_method(fmt, carrier)
    if method is None:
        carrier, method = FLOAT64_CARRIER, _find_method(fmt, FLOAT64_CARRIER)
    if method is None:
        raise ValueError(f"{fmt.name}: its steps leave the range of float64; use utils.rounding.quantize")
    return _fill_plan(method, carrier, fmt, saturate)


def _fill_plan(method: str, carrier: Carrier, fmt: FloatFormat, saturate: bool) -> RoundingPlan:
    limit = fmt.max if fmt.max <= carrier.max else math.inf
    return RoundingPlan(
        method,
        carrier,
        fmt,
        limit=limit,
        past=limit if saturate or not fmt.has_nan else math.inf if fmt.has_inf else math.nan,
        end=min(fmt.max + math.ldexp(1.0, fmt.emax - fmt.mantissa_bits), carrier.max),
        lowest_binade=math.ldexp(1.0, fmt.emin),
        highest_binade=math.ldexp(1.0, fmt.emax),
        eps=fmt.eps,
        has_zero=fmt.has_zero,
        has_negative_zero=fmt.has_negative_zero,
        has_inf=fmt.has_inf,
    )


def _find_method(fmt: FloatFormat, carrier: Carrier) -> str | None:
    emin, emax = 1 - carrier.bias, carrier.bias
    if fmt.mantissa_bits >= carrier.mantissa_bits and fmt.emin <= emin and fmt.emax >= emax:
        return COPY
    if carrier is FLOAT32_CARRIER and fmt in (FLOAT16, BFLOAT16):
        return CAST
    # x / 2**emax in units of eps must not overflow below fmt.max, nor a step be subnormal.
    in_range = fmt.emin - fmt.mantissa_bits >= emin and fmt.emax + fmt.mantissa_bits <= emax
    if in_range and fmt.mantissa_bits <= carrier.mantissa_bits:
        return GRID
    if carrier is FLOAT32_CARRIER and (fmt.emin, fmt.emax, fmt.has_inf) == (emin, emax, True):
        return BITS
    if carrier is FLOAT32_CARRIER and (fmt.emin, fmt.emax, fmt.has_zero, fmt.signed) == (emin - 1, emax, False, False):
        return POWERS
    return None


def without_cast(plan: RoundingPlan) -> RoundingPlan:
    """Return the plan that a compiled graph can state and that can round stochastically: `GRID` or `BITS`.

    torch.compile drops a cast there and back (`pointless_convert` in inductor's joint graph passes), and no rounding
    is left; a cast cannot round stochastically either. `POWERS` is the short way of `round_eager` alone.
    """
    if plan.method == POWERS:
        return _fill_plan(GRID, FLOAT64_CARRIER, plan.fmt, plan.past == plan.limit)
    if plan.method == CAST:
        return plan._replace(method=BITS if plan.fmt.exponent_bits == 8 else GRID)
    return plan


def round_eager(x: torch.Tensor, plan: RoundingPlan, out: torch.Tensor | None = None, draw=None) -> torch.Tensor:
    """Round a piece with the operations that are cheap one at a time.

    `x`: dtype of `plan.carrier`, any shape. `out`: where the result goes, x itself included. `draw`: None, or a
    function of no arguments that gives 32 random bits an element as int32, to round stochastically.
    """
    if plan.method == COPY:
        return torch.clamp(x, -plan.past, plan.past, out=out)
    if plan.method == CAST:
        return _round_by_cast(x, plan, out=out)
    if plan.method == POWERS:
        return _round_to_powers(x, plan, out=out)
    if plan.method == BITS:
        return _round_bits(x, plan, out=out, draw=draw)
    return _round_on_grid(x, plan, out=out, draw=draw)


def _round_by_cast(x: torch.Tensor, plan: RoundingPlan, out: torch.Tensor | None) -> torch.Tensor:
    if plan.past == plan.limit:
        x = x.clamp(-plan.limit, plan.limit)  # explicit: what a cast does past the end differs by torch version
    narrow = x.to(plan.fmt.torch_dtype)
    return narrow.to(plan.carrier.dtype) if out is None else out.copy_(narrow)


def _round_on_grid(x: torch.Tensor, plan: RoundingPlan, out: torch.Tensor | None, draw) -> torch.Tensor:
    carrier = plan.carrier
    exponent_mask, nothing = _find_scalars(x, carrier)
    binade = x.view(carrier.bits_dtype).bitwise_and(exponent_mask).view(carrier.dtype)  # 2**floor(log2 |x|)
    binade.clamp_(plan.lowest_binade, plan.highest_binade)
    # The step is binade * eps. To divide and multiply by it is one pass over memory each: -0 + p = p, also for p = -0.
    if draw is None:
        y = torch.addcdiv(nothing, x, binade, value=1 / plan.eps).round_()  # exact, then the one rounding: ties to even
    else:
        size = x.abs().clamp_max_(plan.end)  # finite
        y = _round_up_by_chance(torch.addcdiv(nothing, size, binade, value=1 / plan.eps), draw()).copysign_(x)
    torch.addcmul(nothing, y, binade, value=plan.eps, out=y)
    if not plan.has_zero:  # E8M0: NaN unless x > 0, where 1 / sqrt(x) is finite
        y.clamp_min_(plan.lowest_binade).add_(x.rsqrt(), alpha=0.0)
    if plan.past == plan.limit:
        if not plan.has_negative_zero:
            y.add_(0.0)  # -0 + 0 = +0
        return torch.clamp(y, -plan.limit, plan.limit, out=out)
    # The excess is 0 or at least one step, which two factors of `huge` make infinite: no comparison is needed.
    huge = math.ldexp(1.0, carrier.bias)
    excess = torch.clamp(y, -plan.limit, plan.limit).sub_(y).mul_(huge)
    y.sub_(excess, alpha=huge)  # -0 - (+0) = -0
    if not plan.has_inf:
        y.add_(y, alpha=0.0)  # inf + 0 * inf = NaN, y + 0 * y = y
    return torch.add(y, 0.0 if not plan.has_negative_zero else -0.0, out=out)


def _find_scalars(x: torch.Tensor, carrier: Carrier) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the exponent mask and -0, both of shape [], on the device of x."""
    # Cached, because turning a Python number into a tensor takes longer than rounding 10,000 elements; but not for x
    # of a FakeTensorMode, whose scalars would be fake too.
    make = _make_scalars if type(x) in (torch.Tensor, torch.nn.Parameter) else _make_scalars.__wrapped__
    return make(carrier, x.device)


@lru_cache(maxsize=64)
def _make_scalars(carrier: Carrier, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.tensor(carrier.exponent_mask, dtype=carrier.bits_dtype, device=device),
        torch.tensor(-0.0, dtype=carrier.dtype, device=device),
    )


def _round_to_powers(x: torch.Tensor, plan: RoundingPlan, out: torch.Tensor | None) -> torch.Tensor:
    """Round to 2**-127 ... 2**127: half an exponent is added, which carries into the next one from 1.5 * 2**e on."""
    half, unit = plan.carrier.exponent_unit // 2, plan.carrier.exponent_unit
    # All positive numbers below 1.5 * 2**-127 become 2**-127, which is subnormal in float32: adding half an exponent
    # would carry some of them too far. So they are lowered to 2**-128 first, and raised by the clamp. NaN passes.
    y = torch.threshold(x, math.ldexp(0x5FFFFF, -149), math.ldexp(1.0, -128))
    bits = y.view(torch.int32).add_(half).bitwise_and_(plan.carrier.exponent_mask)
    bits.clamp_(half, 254 * unit if plan.past == plan.limit else 255 * unit)  # 2**-127 is the bits of `half`
    if plan.past != plan.limit:
        y.add_(y, alpha=0.0)  # inf + 0 * inf = NaN, y + 0 * y = y
    return torch.add(y, x.rsqrt(), alpha=0.0, out=out)  # NaN unless x > 0, where 1 / sqrt(x) is finite


def _round_up_by_chance(ulps: torch.Tensor, random: torch.Tensor) -> torch.Tensor:
    """Round finite `ulps` of 0 or more down, or up with the probability of their fraction."""
    # 23 bits as a number of -1/2 ... 1/2, moved by 1/2 and by half a unit, so that a threshold falls between two
    # fractions of float32 values in the normal range: their probabilities are exact, all others to 2**-24.
    threshold = (random & -(2**9)).to(ulps.dtype).mul_(2.0**-32).add_(0.5 + 2.0**-24)
    whole = ulps.floor()
    up = ulps.sub(whole).sub_(threshold).ceil_()  # 1 where fraction > threshold, else 0
    return whole.add_(up)


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
    return GraphForm(plan.method, plan.carrier, plan.has_zero, plan.has_negative_zero)


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
    size = x.abs()
    if draw is None:
        y = (size * inv_step).round() * step
    else:
        y = _round_up_by_chance(torch.minimum(size, end) * inv_step, draw()) * step
    if not form.has_zero:
        y = torch.where(x > 0, torch.maximum(y, low.view(carrier.dtype)), math.nan)
    y = torch.where(y > limit, past, y).copysign(x)
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
