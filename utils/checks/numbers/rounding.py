"""Checks of `numbers/rounding`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from utils.checks.numbers.rounding_questions import E3M4, FIRST_GAPS, STALL, STOCHASTIC_ROUND, TO_BFLOAT16, TO_E4M3
from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    Unreadable,
    as_code,
    as_number,
    correct,
    exercise,
    not_yet,
    paper,
    paper_table,
    same_number,
)
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT32, decode, encode
from utils.rounding import quantize

NOTHING_YET = Outcome(NOT_ATTEMPTED, "The function returns nothing yet.")
SIGMAS = 5.0  # chance refuses a right `stochastic_round` less than four times in a million
DRAWS = 20_000
SHARES_OF = (0.25, 0.5, 0.9, 2.01, -0.25, -2.7)  # what is rounded so often

check_e3m4 = paper_table(
    E3M4,
    says="`eps` is a gap, u half of it, `tiny` the smallest normal number, and `resolution` a count of digits.",
)
check_first_gaps = paper_table(
    FIRST_GAPS,
    says="2**p + 1, each time: with p significant bits you count without a hole up to 2**p.",
)
check_stall = paper(STALL)


@exercise(asks=TO_BFLOAT16, takes="to_bfloat16", seconds=5)
def check_to_bfloat16(answer) -> Outcome:
    """A function from a float32 code (int) to the bfloat16 code (int) nearest to it, a tie to even."""
    if (returned := _call(answer, 0x3F800000, shown="Code 0x3F800000")) is None or returned is ...:
        return NOTHING_YET
    words = _bfloat16_words()
    values = decode(words, FLOAT32)
    wanted = np.where(np.isnan(values), -1, encode(values, BFLOAT16).astype(np.int64))
    for word, want in zip(words.tolist(), wanted.tolist(), strict=True):
        got = _bfloat16_code(_call(answer, word, shown=f"Code 0x{word:08X}"), word)
        if got != want and not (want < 0 and got & 0x7FFF > 0x7F80):
            what = f"0x{want:04X}" if want >= 0 else "a NaN, such as 0x7FC0"
            value = float(np.float32(decode(word, FLOAT32)))
            start = f"0x{word:08X} ({value:.9g}) gives 0x{got:04X}, but it should give {what}."
            return not_yet(f"{start} {_bfloat16_hint(word, got, want)}")
    return correct(f"All {len(words):,} codes: ties, carries, subnormals, the largest numbers, infinities and NaNs.")


def _bfloat16_words() -> np.ndarray:
    """Return the float32 codes to try: first what tells the mistakes apart, then every region, then random ones."""
    telling = [0x3F800000, 0xC0200000]  # 1 and -2.5, which bfloat16 holds
    telling += [0x3F80C000, 0x3F804000, 0x3F808000, 0x3F818000]  # above half, below half, a tie down, a tie up
    telling += [0xBF80C000, 0xBF808000, 0xBF818000, 0x3FFFFFFF, 0x3FFF8000]  # negative; carries into the exponent
    telling += [0x00000001, 0x00008000, 0x00008001, 0x00018000, 0x007FFFFF, 0x80018000, 0x00000000, 0x80000000]
    telling += [0x7F7F7FFF, 0x7F7F8000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000]
    telling += [0x7FC00000, 0x7F800001, 0xFF800001, 0x7F808000, 0x7F80FFFF, 0x7FFFFFFF, 0xFFFFFFFF]
    rng = np.random.default_rng(0)
    high = np.concatenate([rng.integers(0, 2**16, 500), np.arange(256) << 7, (np.arange(256) << 7) - 1 & 0xFFFF])
    low = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
    regions = (high[:, None] << 16 | low).ravel()  # every binade at both ends, and every kind of low half
    return np.concatenate([telling, regions, rng.integers(0, 2**32, 4000)]).astype(np.uint32)


def _bfloat16_code(got, word: int) -> int:
    if isinstance(got, (float, np.floating)):
        raise Unreadable(f"0x{word:08X} gives the float {got!r}. A code is an int: use `>>` or `//`, not `/`.")
    try:
        code = as_code(got)
    except Unreadable:
        raise Unreadable(f"0x{word:08X} gives {got!r}. A code is a whole number, an int.") from None
    if code >= 2**16 and code & 0xFFFF == 0 and code < 2**32 and word >> 31 == code >> 31:
        raise Unreadable(f"0x{word:08X} gives 0x{code:08X}, still a float32 code. Shift it right by 16 bits.")
    if not 0 <= code < 2**16:
        raise Unreadable(
            f"0x{word:08X} gives {code:#x}, which is not a code of 16 bits. Python's integers do not wrap: an addition"
            " may carry past bit 31, and `~` gives negative numbers."
        )
    return code


def _bfloat16_hint(word: int, got: int, want: int) -> str:
    high, low = word >> 16, word & 0xFFFF
    if want < 0:
        if got & 0x7FFF == 0x7F80:
            return (
                "NaN became infinity: its only ones lay in the low half, which is dropped. Set a fraction bit yourself."
            )
        if got & 0x7FFF == 0:
            return "NaN became zero: the addition carried through the exponent. Treat NaN before you add."
        return "NaN must stay NaN: treat it before you add anything. Its exponent is all ones, its fraction is not 0."
    if got ^ want == 0x8000:
        return "The sign is lost, or turned round: bit 31 becomes bit 15."
    if got & 0x7FFF > 0x7F80:
        return "With an exponent of all ones, only a fraction that is not 0 means NaN; infinity's is 0."
    if want & 0x7FFF == 0x7F80:
        if low == 0 and high == want:
            return "Infinity stays infinity."
        return "From half an ulp past the largest number on it is infinity: the carry into the exponent makes it so."
    if got & 0x7FFF == 0 and high & 0x7F80 == 0:
        return "A subnormal is a number too, and rounds like any other: the same addition works for it."
    if low == 0x8000 and got == high + 1:
        return "That is a tie. Adding 0x8000 always sends it up; it goes to the even code, the one that ends in 0."
    if low == 0x8000 and got == high:
        return "That is a tie, and the code below ends in 1. It goes to the even one, above: so add that last bit too."
    if got == high:
        return "The low half was cut off. It is more than half of an ulp, so the code above is nearer."
    if got == high + 1:
        return "The low half is less than half of an ulp (or 0), so the code below is nearer."
    if want == high + 1 and want & 0x7F == 0:
        return "The fraction is full, so the step up carries into the exponent. Add to the whole code, not to a field."
    return "The upper 16 bits are the code; the lower 16 say whether it takes one step up."


@exercise(asks=STOCHASTIC_ROUND, takes="stochastic_round", seconds=5)
def check_stochastic_round(answer) -> Outcome:
    """A function (x, rng) that rounds an array to whole numbers, up with the probability of the fraction."""
    returned = _call(answer, np.array([0.25]), np.random.default_rng(0), shown="x = np.array([0.25])")
    if returned is None or returned is ...:
        return NOTHING_YET

    def rounded(x, seed: int) -> np.ndarray:
        return _rounded(answer, np.asarray(x, np.float64), seed=seed)

    for fault in (_exact_fault, _neighbour_fault, _generator_fault, _share_fault, _draw_fault):
        if hint := fault(rounded):
            return not_yet(hint)
    return correct(
        f"On one of the two neighbours, and each share of {DRAWS:,} draws within {SIGMAS:g} standard errors."
    )


def _rounded(function, x: np.ndarray, *, seed: int) -> np.ndarray:
    before, shape = x.copy(), f"An x of shape {x.shape}"
    got = _call(function, x, np.random.default_rng(seed), shown=shape)
    if not np.array_equal(x, before):
        raise Unreadable("Your function changed x itself. Compute a new array, without `x += ...` and `out=x`.")
    got = np.asarray(got, dtype=np.float64)
    if got.shape != x.shape:
        raise Unreadable(f"{shape} gives a result of shape {got.shape}. Each element of x needs its own result.")
    return got


def _exact_fault(rounded) -> str:
    x = np.array([0.0, 1.0, 2.0, -1.0, -3.0, 1000.0, -(2.0**40)])
    for seed in range(5):
        got = rounded(x, seed)
        for value, result in zip(x[got != x], got[got != x], strict=True):
            return f"{value} gives {result}. A whole number stays: its fraction is 0, so the chance to go up is 0."
    return ""


def _neighbour_fault(rounded) -> str:
    x = np.random.default_rng(1).normal(0, 3, 2000)
    got = rounded(x, 2)
    for wrong in np.flatnonzero((got != np.floor(x)) & (got != np.ceil(x))):
        start = (
            f"{x[wrong]:.4f} gives {got[wrong]:g}. Its neighbours are {np.floor(x[wrong]):g} and {np.ceil(x[wrong]):g}"
        )
        if got[wrong] != np.rint(got[wrong]):
            return f"{start}: the result is one of these two."
        if x[wrong] < 0:
            return f"{start}: below zero, `int` and `np.trunc` give the upper one. Start from `np.floor`."
        return f"{start}: start from `np.floor`, and add 1 or nothing."
    return ""


def _generator_fault(rounded) -> str:
    x = np.full(100, 0.5)
    if np.array_equal(rounded(x, 3), rounded(x, 3)):
        return ""
    return "Two generators in the same state gave two results. Draw from `rng`, not from `np.random` or `random`."


def _share_fault(rounded) -> str:
    for value in SHARES_OF:
        share = value - math.floor(value)  # exactly what should go up
        got = rounded(np.full(DRAWS, value), 4)
        if np.all(got == got[0]):
            return _same_fault(rounded, value, first=float(got[0]))
        ups = float(np.mean(got - math.floor(value)))
        bound = SIGMAS * math.sqrt(share * (1 - share) / DRAWS)
        if abs(ups - share) <= bound:
            continue
        start = f"{value} goes up in {ups:.1%} of {DRAWS:,} draws; without bias it is {share:.0%} (± {bound:.1%})."
        if value < 0:
            return f"{start} Below zero the fraction is `x - np.floor(x)`, here {share:.2f}."
        if abs(ups - (1 - share)) <= bound:
            return f"{start} The two chances are exchanged: it is the fraction that goes up."
        if abs(ups - 0.5) <= SIGMAS * math.sqrt(0.25 / DRAWS):
            return f"{start} A fair coin does not know the fraction: what is near its lower neighbour goes up rarely."
        return f"{start} Go up where a draw from 0 to 1 is below the fraction."
    return ""


def _same_fault(rounded, value: float, *, first: float) -> str:
    if len({float(rounded(np.full(2, value), seed)[0]) for seed in range(100)}) > 1:
        return (
            "All elements of an array went the same way: one draw for all of them. Then their errors add up instead of"
            " cancelling. Draw one number for each: `rng.random(x.shape)`."
        )
    if value < 0:
        return f"{value} always gives {first:g}. Below zero `x - np.trunc(x)` is negative; take `x - np.floor(x)`."
    quarters = tuple(rounded([0.25, 0.75], 8))
    way = {(0.0, 1.0): " That is rounding to nearest.", (0.0, 0.0): " That is rounding down."}.get(quarters, "")
    return f"{value} always gives {first:g}.{way} It should go up in {value % 1:.0%} of the draws."


def _draw_fault(rounded) -> str:
    got = rounded(np.full((200, 100), 0.5), 5)
    for axis, what in ((0, "row"), (1, "column")):
        if np.all(got == got.take([0], axis=axis)):
            return f"Every {what} of a matrix is the same. Draw one number for each element: `rng.random(x.shape)`."
    if np.array_equal(rounded(np.full(100, 0.5), 6), rounded(np.full(100, 0.5), 7)):
        return "Two generators with different seeds gave the same: use the `rng` that comes in, and make none."
    return ""


class InputKind(NamedTuple):
    """One kind of input on which a quantiser goes wrong: its name, the values to try, and what to say."""

    name: str
    values: np.ndarray
    hint: str


@exercise(asks=TO_E4M3, takes="to_e4m3", seconds=5)
def check_to_e4m3(answer) -> Outcome:
    """A function from a float to the nearest E4M3 value: ties to even, saturating at 448, NaN and signs kept."""
    kinds, faults = _e4m3_kinds(), []
    if (fault := _call(answer, 1.0, shown="1.0")) is None or fault is ...:
        return NOTHING_YET
    for kind in kinds:
        if fault := _e4m3_fault(answer, kind):
            faults.append(f"{fault} {kind.hint}")
    if not faults:
        count = sum(len(kind.values) for kind in kinds)
        return correct(f"All {count:,} inputs: each value, each tie and both of its neighbours, and both ends.")
    more = f" In all, {len(faults)} of {len(kinds)} kinds of inputs come out wrong." if faults[1:] else ""
    return not_yet(faults[0] + more)  # the first one in words: to find the others is the exercise


def _e4m3_kinds() -> list[InputKind]:
    held = decode(np.arange(0x7F), FLOAT8_E4M3FN)  # 0 ... 448
    ties = (held[:-1] + held[1:]) / 2
    beside = np.concatenate([np.nextafter(ties, 0), np.nextafter(ties, np.inf)])
    low, trap = FLOAT8_E4M3FN.smallest_normal, np.nextafter(ties[0], 0)  # trap: 0.49999999999999994 steps
    small = np.concatenate([[0.001, 1e-5], held[1:], ties, beside, [1e-300, 5e-324]])
    past = np.array([600.0, 449.0, 463.0, 464.0, 465.0, 480.0, 512.0, 1000.0, 65504.0, 1e6, 1e300])
    normal, between, tie = (values[values >= low] for values in (held, beside, ties))
    tie = tie[np.argsort(np.abs(np.log2(tie)), kind="stable")]  # the first wrong one is shown: begin near 1

    def both(values) -> np.ndarray:
        return np.concatenate([values, -values])

    return [
        InputKind("values of E4M3", both(normal), "That is an E4M3 value, so it stays as it is."),
        InputKind("numbers beside a tie", both(between), "Of its two neighbours one is nearer: that one."),
        InputKind("ties", tie, "A tie goes to the neighbour with the even code. `floor(... + 0.5)` sends each tie up."),
        InputKind(
            "ties of negative numbers",
            -tie,
            "Rounding is the same on both sides of zero. `floor(... + 0.5)` sends a negative tie toward zero.",
        ),
        InputKind(
            "subnormals",
            both(small[(small < low) & (small != trap)]),
            "Below 2**-6 the steps shrink no further: all are 2**-9. So how small may the exponent become?",
        ),
        InputKind(
            "the number below half of the smallest step",
            both(np.array([trap])),
            "In float64, 0.49999999999999994 + 0.5 is 1.0: the addition rounds before `math.floor` sees it.",
        ),
        InputKind(
            "overflow",
            both(past),
            "Past 448 it saturates: 448. Four exponent bits end at 15, and `& 0b1111` begins again at 0.",
        ),
        InputKind("infinities", both(np.array([np.inf])), "E4M3 has no infinity: what lies past 448 saturates."),
        InputKind("NaN", np.array([np.nan]), "NaN stays NaN."),
        InputKind(
            "the sign of zero",
            np.array([-1e-5, -0.0, 0.0]),
            "What rounds to zero keeps its sign. The int 0 has none; `math.copysign` can give it back.",
        ),
    ]


def _e4m3_fault(function: Callable, kind: InputKind) -> str:
    """Say what is wrong with the first wrong result, if any is."""
    wanted = quantize(kind.values, FLOAT8_E4M3FN, saturate=True)
    for value, want in zip(kind.values.tolist(), wanted.tolist(), strict=True):
        try:
            got = as_number(_call(function, value, shown=repr(value)))
        except Unreadable as error:
            return f"For {value!r}: {error}"
        # Both zeros will do until the kind that asks for the sign, so that each mistake has its own line.
        if not same_number(got, want) and (got != want or kind.name == "the sign of zero"):
            return f"{value!r} gives {got!r}, but it should give {want!r}."
    return ""


def _call(function: Callable, *inputs, shown: str):
    """Call a learner's function. Raises: Unreadable, naming the input, for whatever it raises, except a time limit."""
    try:
        return function(*inputs)
    except TimeoutError:
        raise
    except Exception as error:
        raise Unreadable(f"{shown} makes the function stop with {type(error).__name__}: {error}") from None
