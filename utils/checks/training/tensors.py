"""Checks of `training/tensors`."""

import math
from collections.abc import Mapping

import torch

from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    Unreadable,
    as_number,
    correct,
    exercise,
    not_yet,
    paper,
)
from utils.checks.training.tensors_questions import (
    EDGE,
    EXPONENT_COUNTS,
    FLUSHED_SHARE,
    SHARE_LOST,
    SMALLEST_SCALE,
)
from utils.emulation.exponent_histogram import histogram
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT16

INF, NAN = math.inf, math.nan

check_the_edge = paper(EDGE)
check_share_lost = paper(SHARE_LOST)


# --- The share that is flushed ----------------------------------------------------------------------------------------

FLUSHED_CASES = (  # values, format, scale, and what to think of where the share is wrong
    ([1.0, 1e-9, 3.0, 2.0], FLOAT16, 1.0, "One of these four lies below half of the smallest subnormal."),
    ([-1.0, -1e-9, -2.0, -3.0], FLOAT16, 1.0, "A negative value is not a small value: compare magnitudes."),
    (
        [1.0, 4e-8, 4e-8, 1e-9],
        FLOAT16,
        1.0,
        "4e-8 is below the smallest subnormal, but above half of it, so it is rounded up. The limit is half of it.",
    ),
    (
        [1.0, 2.0**-25, -(2.0**-25), 1e-9],
        FLOAT16,
        1.0,
        "2^-25 is a tie, half-way between 0 and 2^-24. Ties go to even, and 0 is the even one.",
    ),
    ([0.0, 0.0, 1e-9, 1.0], FLOAT16, 1.0, "Zeros have nothing to lose: they are neither lost nor part of the whole."),
    ([1e-9, 3e-9, 1.0, 2.0], FLOAT16, 16.0, "The scale multiplies the values: 3e-9 times 16 is 4.8e-8, which is kept."),
    ([1.0, 1e-4, 1e-4, 0.001], FLOAT8_E4M3FN, 1.0, "E4M3 ends much earlier than float16: use `smallest`."),
    ([1e-40, 1e-41, 1e-9, 1.0], BFLOAT16, 1.0, "bfloat16 reaches down to 2^-133: use `smallest`."),
    ([1e-9, 2e-9], FLOAT16, 1.0, "All of them are lost, so the share is 1."),
    ([0.0, 0.0], FLOAT16, 1.0, "Where no value can be lost, 0/0 is NaN. The share is 0."),
    ([], FLOAT16, 1.0, "An empty tensor has no values to lose. The share is 0."),
    (
        [[1.0, 1e-9], [2.0, 3.0]],
        FLOAT16,
        1.0,
        "A matrix of four values: count all of them, whatever the shape.",
    ),
    ([1e38, 1e-9], FLOAT16, 2.0**10, "1e38 times 1024 is infinite, but it does not become zero."),
)


@exercise(asks=FLUSHED_SHARE, takes="flushed_share")
def check_flushed_share(answer) -> Outcome:
    """A function (x, smallest, scale=1.0) to the share of the non-zero x that become zero in a format, times scale.

    `x` is a finite float32 tensor, `smallest` the format's smallest subnormal. Without such values in x the share is 0.
    """
    first = answer(torch.tensor([1.0, 2.0, 3.0, 1e-9]), FLOAT16.smallest_subnormal)
    if first is None or first is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the share.")
    if as_number(first) in (25, 75):
        return not_yet("One of [1, 2, 3, 1e-9] is lost. Return a share between 0 and 1, not percent.")
    if as_number(first) == 0.75:
        return not_yet("One of [1, 2, 3, 1e-9] is lost, a share of 0.25. Yours is the share that is kept.")
    for values, fmt, scale, hint in FLUSHED_CASES:
        x = torch.tensor(values)
        want, got = histogram(x).flushed(fmt, scale), _share(answer, x, fmt, scale)
        if not math.isclose(got, want, abs_tol=1e-6):
            times = f", times {scale:g}," if scale != 1 else ""
            return not_yet(f"Of {values}{times} {fmt.name} loses a share of {want:g}, but yours is {got:g}. {hint}")
    draw = torch.Generator().manual_seed(0)
    for fmt in (FLOAT16, FLOAT8_E5M2, FLOAT8_E4M3FN, BFLOAT16):
        for scale in (1.0, 2.0**-3, 2.0**10):
            exponents = torch.randint(-45, 5, (2000,), generator=draw)
            x = torch.ldexp(torch.randn(2000, generator=draw), exponents)
            x[::7] = 0
            x[3] = fmt.smallest_subnormal / 2 / scale
            want, got = histogram(x).flushed(fmt, scale), _share(answer, x, fmt, scale)
            if not math.isclose(got, want, abs_tol=1e-6):
                return not_yet(
                    f"Of 2,000 random values, times {scale:g}, {fmt.name} loses {want:.4%}, but your function "
                    f"gives {got:.4%}. Compare with a cast, value by value."
                )
    return correct("Ties, signs, zeros, four formats and three scales: the same shares as a cast, to the last value.")


def _share(answer, x: torch.Tensor, fmt, scale: float) -> float:
    before = x.clone()
    got = as_number(answer(x, fmt.smallest_subnormal, scale))
    if not torch.equal(x, before):
        raise Unreadable("The function changes its input. Make a new tensor: `y = x * scale`, not `x *= scale`.")
    return got


# --- A scale that keeps 99.9 % ----------------------------------------------------------------------------------------


def _spread(n: int, low: int, high: int) -> list[float]:
    """n magnitudes between 2**low and 2**high, evenly by their logarithms, with both signs."""
    return [(-1) ** i * 2.0 ** (low + (high - low) * i / (n - 1)) for i in range(n)]


SCALE_CASES = (  # values, how to call them, the scale, and what to think of where it is wrong
    ([1.0, -2.0, 0.5], "[1, -2, 0.5]", 1, "Nothing is lost here, so the first of the scales will do."),
    ([1.0, 1e-8], "[1, 1e-8]", 4, "1e-8 times 2 is below 2^-25. Times 4 it is above, and is rounded up to 2^-24."),
    ([1.0, 2.0**-26], "[1, 2^-26]", 4, "2^-26 times 2 is 2^-25, a tie: it goes to 0, the even one."),
    ([0.0, 1e-8, 0.0], "[0, 1e-8, 0]", 4, "A zero stays a zero, whatever the scale. Count only the others."),
    (
        [1.0] * 1000 + [1e-9],
        "1,000 ones and a 1e-9",
        1,
        "Float16 keeps 1,000 of 1,001 values as they are, which is more than 99.9 %. The last one may go.",
    ),
    (
        [1.0] * 999 + [1e-9],
        "999 ones and a 1e-9",
        1,
        "One of 1,000 is lost, so exactly 99.9 % are kept, which is enough. Compare counts: in float32, 1/1000 comes "
        "out a little above 0.001.",
    ),
    ([1.0] * 997 + [1e-8] * 3, "997 ones and three 1e-8", 4, "Three of 1,000 lost is more than 0.1 %."),
    (
        [0.0] * 9000 + [1.0] * 997 + [1e-8] * 3,
        "9,000 zeros, 997 ones and three 1e-8",
        4,
        "The share is of the non-zero values only: three of 1,000 are lost, not three of 10,000.",
    ),
    (
        [60000.0, *_spread(999, -30, -10)],
        "999 values from 2^-30 to 2^-10 and an outlier of 60000",
        None,
        "The outlier leaves no room: times 2 it is infinite, and without a scale more than 0.1 % are lost.",
    ),
    (
        [500.0, *_spread(999, -30, -10)],
        "999 values from 2^-30 to 2^-10 and an outlier of 500",
        32,
        "This scale does both: 99.9 % are kept, and 500 times the scale is below 65520.",
    ),
    ([65519.0, 1.0], "[65519, 1]", 1, "65519 is rounded down to 65504. Overflow begins at 65520, half a step above."),
    ([65520.0, 1.0], "[65520, 1]", None, "65520 is a tie, and it goes to infinity: no scale of 1 or more will do."),
    ([-65536.0, 1.0], "[-65536, 1]", None, "-65536 becomes -inf. Compare magnitudes."),
    (
        [2.0**-149, 2.0**-140],
        "[2^-149, 2^-140]",
        2.0**125,
        "The search has to go on: these are among float32's smallest values.",
    ),
    ([0.0, 0.0], "[0, 0]", 1, "Zeros alone have nothing to lose, so 1 will do."),
    ([], "an empty tensor", 1, "Without values there is nothing to lose, so 1 will do."),
    ([[1.0, 1e-8], [2.0, 4.0]], "[[1, 1e-8], [2, 4]]", 4, "Count the values of a matrix, not its rows."),
    ([1.0, INF], "[1, inf]", None, "An infinite value stays infinite at every scale."),
    ([1.0, NAN], "[1, nan]", None, "NaN stays NaN at every scale, and it does not count as kept."),
)


@exercise(asks=SMALLEST_SCALE, takes="smallest_scale")
def check_smallest_scale(answer) -> Outcome:
    """A function from a float32 tensor to the smallest of 1, 2, 4, 8, ... that keeps it in float16, or to None.

    Kept: at least 99.9 % of the non-zero values stay non-zero, and none is infinite or NaN afterwards.
    """
    if all((fault := answer(torch.tensor(values))) is None or fault is ... for values, *_ in SCALE_CASES[:4]):
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the scale.")
    for values, shown, want, hint in SCALE_CASES:
        if fault := _wrong_scale(answer, torch.tensor(values), want, shown):
            return not_yet(f"{fault} {hint}")
    draw = torch.Generator().manual_seed(0)
    for middle in (-30, -24, -18, -8, 3):
        for width in (1.0, 4.0):
            x = torch.exp2(middle + width * torch.randn(3000, generator=draw))
            x[::3] *= -1
            shown = f"3,000 random values around 2^{middle}"
            if fault := _wrong_scale(answer, x, _smallest_scale(x), shown):
                return not_yet(f"{fault} Try the scales one by one, and count what a cast makes zero or infinite.")
    return correct("Small enough to overflow nothing, large enough to keep 99.9 %, and None where no scale does both.")


def _smallest_scale(x: torch.Tensor) -> float | None:
    counts = histogram(x)
    for k in range(150):
        if counts.overflowing(FLOAT16, 2.0**k):
            return None
        if counts.flushed(FLOAT16, 2.0**k) <= 0.001:
            return 2.0**k
    return None


def _wrong_scale(answer, x: torch.Tensor, want: float | None, shown: str) -> str:
    """Say how the scale of x is wrong, or give ""."""
    before = x.clone()
    try:
        returned = answer(x)
    except OverflowError:  # torch takes no integer of 64 bits or more
        return f"For {shown} the scale becomes too large an integer for torch. Begin with 1.0, not with 1."
    if not torch.equal(x.nan_to_num(7.0), before.nan_to_num(7.0)):
        return "The function changes its input. Make a new tensor: `x * scale`, not `x *= scale`."
    got = None if returned is None or returned is ... else as_number(returned)
    if got == want:
        return ""
    start = f"For {shown} the scale is {_power(want)}, but yours is {_power(got)}."
    if got is None or want is None:
        return start
    if want > 1 and got == math.log2(want):
        return start + " That is its exponent."
    if not (got > 0 and math.frexp(got)[0] == 0.5):
        return start + " The scales are 1, 2, 4, 8, and so on."
    if 0 < got < 1:
        return start + " The scales begin with 1."
    return start


def _power(scale: float | None) -> str:
    """A scale as readers write it: 64, or 2^40."""
    if scale is None or not math.isfinite(scale):
        return str(scale)
    significand, exponent = math.frexp(scale)
    return f"2^{exponent - 1}" if significand == 0.5 and abs(exponent - 1) > 16 else f"{scale:g}"


# --- Find the bug -----------------------------------------------------------------------------------------------------

TOP = 2.0**-23  # the step from 2 down is half of it, relative to the number
COUNT_CASES = (  # values, how to call them, and the cause of wrong counts, shown on request: finding it is the task
    (
        [1.5, 3.0, 0.3],
        "[1.5, 3, 0.3]",
        "[2^e, 2^(e + 1)) is the binade e: 1.5 is in 0, 3 in 1, 0.3 in -2. "
        "`frexp` gives 0.5 ≤ m < 1, so its exponent is one larger.",
    ),
    ([-1.5, -3.0], "[-1.5, -3]", "A negative value is in the binade of its magnitude."),
    (
        [1.0, 2.0, 4.0, 0.5],
        "[1, 2, 4, 0.5]",
        "2^e itself belongs to the binade e.",
    ),
    (
        [3.0, 1.5, 0.0, 0.0],
        "[3, 1.5, 0, 0]",
        "log2(0) is -inf, and no integer equals -inf. A zero is in no binade: leave it out.",
    ),
    ([4.0, INF, -INF], "[4, inf, -inf]", "An infinity is in no binade: leave it out."),
    ([4.0, NAN], "[4, nan]", "NaN is in no binade: leave it out."),
    (
        [8.0 * (1 - TOP / 2), 2.0**20 * (1 - TOP / 2)],
        "the last float32 below 8 and the last one below 2^20",
        "They belong to 2 and 19. Their logarithms are so close to 3 and 20 that float32 rounds them up. The "
        "exponent is stored: `frexp` reads it.",
    ),
    (
        [2.0**-10 * (1 - TOP / 2), 2.0**-60 * (1 - TOP / 2)],
        "the last float32 below 2^-10 and the last one below 2^-60",
        "They belong to -11 and -61. A float32 logarithm rounds up to the next whole number; `frexp` does not.",
    ),
    (
        [2.0**-149, 3 * 2.0**-149, 2.0**-127, 2.0**-126],
        "[2^-149, 3 · 2^-149, 2^-127, 2^-126]",
        "Below 2^-126 float32 has subnormals. Their exponent fields are all 0, but their values still have binades.",
    ),
    ([2.0**127 * (2 - TOP)], "float32's largest number", "It lies in the binade 127."),
    ([], "an empty tensor", "Without values there are no counts: an empty dict."),
    ([0.0, NAN], "[0, nan]", "Without finite values that are not zero there are no counts: an empty dict."),
)


@exercise(asks=EXPONENT_COUNTS, takes="exponent_counts")
def check_exponent_counts(answer) -> Outcome:
    """A function from a float32 tensor with any values to a dict {exponent: count} of the finite ones without zeros."""
    if (returned := answer(torch.tensor([1.0, 3.0]))) is None or returned is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return a dict.")
    for values, shown, hint in COUNT_CASES:
        x = torch.tensor(values)
        try:
            got = _counts(answer, x)
        except (TimeoutError, Unreadable):
            raise
        except Exception as error:
            return not_yet(f"For {shown} the function stops with {type(error).__name__}: {error}.", hint)
        want = _exponents(x)
        if got != want:
            return not_yet(f"For {shown} the counts should be {want}. They are {_cut(got)}.", hint)
    for x in _every_region():
        got, want = _counts(answer, x), _exponents(x)
        if got != want:
            e = next(e for e in sorted(got.keys() | want.keys()) if got.get(e, 0) != want.get(e, 0))
            return not_yet(
                f"Of {x.numel():,} values of all kinds, {want.get(e, 0):,} lie in [2^{e}, 2^{e + 1}). Your function "
                f"counts {got.get(e, 0):,}."
            )
    return correct("No value near a power of two changes its binade, and no zero, infinity or NaN is given one.")


def _every_region() -> list[torch.Tensor]:
    """Every power of two with both neighbours, in a shape of two axes; and random bits."""
    powers = torch.exp2(torch.arange(-149, 128, dtype=torch.float64)).float()
    zero, infinite = torch.tensor(0.0), torch.tensor(INF)
    near = torch.stack([torch.nextafter(powers, zero), powers, -torch.nextafter(powers, infinite)])
    draw = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**31), 2**31, (4096,), generator=draw).to(torch.int32)
    return [near, bits.view(torch.float32)]


def _exponents(x: torch.Tensor) -> dict[int, int]:
    counts = histogram(x)
    return {e: n for e, n in enumerate(counts.counts, counts.low) if n}


def _counts(answer, x: torch.Tensor) -> dict[int, int]:
    """Read the counts that a learner's function gives; empty binades may be named or left out."""
    before = x.clone()
    got = answer(x)
    if not torch.equal(x.nan_to_num(7.0), before.nan_to_num(7.0)):
        raise Unreadable("The function changes its input. Make a new tensor: `x = x[...]`, not `x[...] = 0`.")
    if not isinstance(got, Mapping):
        raise Unreadable(f"The function gives {type(got).__name__}; it should give a dict from exponent to count.")
    pairs = {as_number(e): as_number(n) for e, n in got.items()}
    if len(pairs) < len(got):
        raise Unreadable("Two keys of the dict are the same exponent. Tensors as keys do that: use `.tolist()` first.")
    if odd := [e for e in pairs if e % 1]:
        raise Unreadable(f"{odd[0]!r} is not an exponent: the keys are whole numbers.")
    return {int(e): int(n) if n % 1 == 0 else n for e, n in pairs.items() if n}


def _cut(counts: dict[int, int]) -> str:
    shown = dict(list(counts.items())[:6])
    return f"{shown}" if len(shown) == len(counts) else f"{str(shown)[:-1]}, ...}}"
