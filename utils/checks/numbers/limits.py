"""Checks of `numbers/limits`."""

import math

from utils.checks.numbers.limits_questions import CASTS, FATE, LARGEST_ROW
from utils.checks.outcome import NOT_ATTEMPTED, Outcome, Unreadable, correct, exercise, not_yet, paper, paper_table
from utils.formats import BFLOAT16, FLOAT8_E5M2, FLOAT16, FloatFormat
from utils.rounding import quantize, ulp

INF, NAN = math.inf, math.nan

check_largest_row = paper(LARGEST_ROW)
check_casts = paper_table(
    CASTS,
    says="Overflow begins half a step above the largest number, and numbers up to half of the smallest become 0.",
)


# --- What happens to a number -----------------------------------------------------------------------------------------

FATES = ("nan", "infinite", "zero", "exact", "rounded")


@exercise(asks=FATE, takes="fate", seconds=10)
def check_fate(answer) -> Outcome:
    """Take a function that says what happens to a float in a format with infinities, as one of `FATES`."""
    if (first := _said(answer, 1.0, FLOAT16)) is None or first is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return one of the five words.")
    for fmt in (FLOAT16, BFLOAT16, FLOAT8_E5M2):
        for x, hint in _cases(fmt):
            got, want = _said(answer, x, fmt), _fate(x, fmt)
            if got not in FATES:
                words = ", ".join(f'"{word}"' for word in FATES)
                return not_yet(f"fate({x!r}, {fmt.name}) is {got!r}, which is not one of these: {words}.")
            if got != want:
                return not_yet(f'fate({x!r}, {fmt.name}) is "{got}", but should be "{want}". {hint}')
    return correct(
        "Rounding comes first, with the border at half a step. Only then does it matter whether the result exists."
    )


def _said(answer, x: float, fmt: FloatFormat):
    """Return what the answer says of x, and name the call if it raises."""
    try:
        return answer(x, fmt)
    except TimeoutError:
        raise
    except Exception as error:
        raise Unreadable(f"fate({x!r}, {fmt.name}) stops with {type(error).__name__}: {error}") from error


def _fate(x: float, fmt: FloatFormat) -> str:
    """Say in one word what the reference does with x."""
    stored = float(quantize(x, fmt))
    if math.isnan(x):
        return "nan"
    if math.isinf(stored):
        return "infinite"
    if stored == 0 and x != 0:
        return "zero"
    return "exact" if stored == x else "rounded"


def _cases(fmt: FloatFormat) -> list[tuple[float, str]]:
    """Return numbers for which a rule of thumb goes wrong, each with a hint."""
    end = fmt.max + float(ulp(fmt.max, fmt)) / 2  # a tie: the even neighbour does not exist
    least, normal = fmt.smallest_subnormal, fmt.smallest_normal
    step = float(ulp(normal, fmt))
    signs = "A negative number follows the same rules as a positive one. Work with abs(x)."
    return [
        (1.0, "Every format has the number 1."),
        (1 + 2.0**-20, "It needs more fraction bits than the format has. How far apart are its numbers here?"),
        (0.0, "0 is stored as 0, so nothing is lost."),
        (NAN, "A NaN is not equal to anything, not even itself. Test with math.isnan before you compare."),
        (INF, "An infinity is stored as an infinity."),
        (2 * fmt.max, "That is beyond the largest number."),
        (fmt.max, "The largest number itself is in the format."),
        (math.nextafter(fmt.max, INF), "It is nearer to the largest number than to where the next one would be."),
        (math.nextafter(end, 0), "It is below the midpoint, so it rounds to the largest number."),
        (
            end,
            "It is the midpoint above the largest number, and the tie goes to the even neighbour, beyond the range.",
        ),
        (least, "The smallest positive number is in the format."),
        (least / 2, "It is exactly half of the smallest number, and the tie goes to the even neighbour, 0."),
        (math.nextafter(least / 2, 1), "It is above half of the smallest number, so it rounds up to it."),
        (least / 4, "It is below half of the smallest number."),
        (normal, "The smallest normal number is in the format."),
        (normal - step, "Below the smallest normal number, the gap does not get narrower."),
        (normal - step / 2, "Below the smallest normal number, the gap does not get narrower."),
        (1.5 * least, "There is no number between two neighbouring subnormals."),
        (-1.5, signs),
        (-2 * fmt.max, signs),
        (-least / 4, signs),
        (-1 - 2.0**-20, signs),
        (3.0 * normal + step, "Divide x by the gap at x. If the result is a whole number, x is exact."),
    ]
