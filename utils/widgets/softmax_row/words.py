"""What SoftmaxRow says: its numbers, and where the first came from that is not finite; the twin of words.js."""

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

from utils.formats import FORMATS, FloatFormat
from utils.widgets.shared.numbers.exact_rounding import quantize_exact
from utils.widgets.shared.words.sizes import with_commas
from utils.widgets.softmax_row.facts import SoftmaxSteps, rounded


def row_number(x: float, small: int = 3, large: int = 5) -> str:
    """Return a number as text: a whole one from 1000 to a million; else `large` digits, or `small` ones below 1.

    Far from 1 it has an exponent, and `small` digits: "−9.99e8".
    """
    if math.isnan(x):
        return "NaN"
    sign, size = "−" if x < 0 else "", abs(x)
    if size == math.inf:
        return f"{sign}inf"
    if size == 0:
        return "0"
    if size >= 1e6 or size < 1e-3:
        number = _with_digits(size, small)
        power = number.adjusted()
        return f"{sign}{_plain(number.scaleb(-power))}e{power}".replace("-", "−")
    if size >= 1000:
        return f"{sign}{Decimal(size).to_integral_value(ROUND_HALF_UP)}"
    return f"{sign}{_plain(_with_digits(size, large if size >= 1 else small))}"


def said_number(x: float) -> str:
    """Return a number as a sentence has it, with more digits."""
    return row_number(x, 6, 7)


def sum_number(x: float) -> str:
    """Return a sum, whose digits show how far it is from 1."""
    return row_number(x, 5, 5)


def _with_digits(size: float, digits: int) -> Decimal:
    return Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(Decimal(size))


def _plain(number: Decimal) -> str:
    return format(number.normalize(), "f")


def _bracketed(x: float) -> str:
    return f"({said_number(x)})" if x < 0 else said_number(x)


def verdict(steps: SoftmaxSteps) -> str:
    """Say where the first number came from that is not finite, where NaN did, and what the weights add up to."""
    sentences = [_score_sentence(steps), _overflow_sentence(steps), _nan_sentence(steps)]
    origins = [sentence for sentence in sentences if sentence]
    if -math.inf in steps.exponents and not any(map(math.isnan, steps.weights)):
        origins.insert(1, "exp(−inf) is 0, so no NaN follows.")
    return " ".join([*(origins or ["Every number is finite."]), _weights_sentence(steps)])


def _first_infinite(values: Sequence[float]) -> int | None:
    return next((i for i, x in enumerate(values) if not math.isfinite(x)), None)


def _beyond(x: float, fmt: FloatFormat, stores: str = "") -> str:
    """Say that a number is beyond the end of the format, and what is stored in its place."""
    end = said_number(math.copysign(fmt.max, x))
    slightly = "slightly " if said_number(x) == end else ""
    return f"{slightly}too far beyond {end}, so {fmt.name} stores {stores}{'−inf' if x < 0 else 'inf'}."


def _score_sentence(steps: SoftmaxSteps) -> str:
    """Say where the first score came from that is not finite: typed, masked, or less the largest."""
    if (i := _first_infinite(steps.stored)) is not None:
        return _typed_sentence(i, steps)
    if (i := _first_infinite(steps.after)) is not None:
        return _mask_sentence(i, steps)
    if (i := _first_infinite(steps.cast)) is not None:
        x, inner = steps.after[i], steps.row.inner
        return f"The softmax is computed in {inner.name}: {said_number(x)} is {_beyond(x, inner, 'it as ')}"
    if steps.shifted and (i := _first_infinite(steps.shifted)) is not None:
        exact = steps.cast[i] - steps.largest
        difference = f"{said_number(steps.cast[i])} − {_bracketed(steps.largest)}"
        return f"{difference} is {said_number(exact)}, {_beyond(exact, steps.row.inner)}"
    return ""


def _typed_sentence(i: int, steps: SoftmaxSteps) -> str:
    x, text = steps.stored[i], steps.row.scores[i].lower()
    is_typed = math.isnan(x) or "inf" in text or "∞" in text
    sentence = (
        f"Score {i + 1} is {f'{said_number(x)} from the start.' if is_typed else _beyond(x, steps.row.fmt, 'it as ')}"
    )
    return f"{sentence} The mask puts another number in its place." if _is_replaced(i, steps) else sentence


def _is_replaced(i: int, steps: SoftmaxSteps) -> bool:
    return steps.row.mask == "put" and steps.row.masked[i]


def _mask_sentence(i: int, steps: SoftmaxSteps) -> str:
    row, x = steps.row, steps.stored[i]
    exact = quantize_exact(row.exact_value, FORMATS["float64"])
    value = quantize_exact(row.exact_value, row.fmt)
    if math.isfinite(exact) and math.isinf(value):
        return f"The mask, {said_number(exact)}, is {_beyond(exact, row.fmt, 'it as ')}"
    for _ in range(row.addends if math.isfinite(value) else 0):
        after = rounded(x + value, row.fmt)
        if not math.isfinite(after):
            return f"{said_number(x)} + {_bracketed(value)} is {said_number(x + value)}, {_beyond(x + value, row.fmt)}"
        x = after
    which = "every score" if all(row.masked) and len(row.masked) > 1 else "a score"
    how = f"puts −inf in place of {which}" if row.mask == "put" else f"adds −inf to {which}"
    return f"The mask {how}, on purpose."


def _overflow_sentence(steps: SoftmaxSteps) -> str:
    """Say which exponential is too large, or that their sum is, where all before is finite."""
    for x, e in zip(steps.exponents, steps.exps, strict=True):
        if math.isfinite(x) and e == math.inf:
            power = math.exp(x) if x < 709 else math.inf
            size = f" is {said_number(power)}," if power < math.inf else " is"
            return f"exp({said_number(x)}){size} {_beyond(power, steps.row.inner)}"
    if steps.total == math.inf and all(map(math.isfinite, steps.exps)):
        count = len(steps.exps) * steps.row.copies
        sum_is = f"The {with_commas(str(count))} exponentials add up to {said_number(steps.exact_sum)}"
        return f"{sum_is}, {_beyond(steps.exact_sum, steps.row.inner, 'their sum as ')} A number divided by inf is 0."
    return ""


def _nan_sentence(steps: SoftmaxSteps) -> str:
    """Say where NaN came from first, if not from the score itself."""
    if any(map(math.isnan, steps.after)):
        from_start = any(math.isnan(x) and not _is_replaced(i, steps) for i, x in enumerate(steps.stored))
        return f"{'NaN stays NaN' if from_start else 'inf + (−inf) is NaN'}, and the sum takes it to every weight."
    if steps.shifted and any(map(math.isnan, steps.shifted)):
        which = said_number(steps.largest)
        return f"Now the largest score is {which}, and {which} − {_bracketed(steps.largest)} is NaN."
    if any(map(math.isnan, steps.weights)):
        return (
            "The sum is inf too, and inf / inf is NaN."
            if steps.total == math.inf
            else "Every exponential is 0, so their sum is 0, and 0 / 0 is NaN."
        )
    return ""


def _weights_sentence(steps: SoftmaxSteps) -> str:
    count = len(steps.weights)
    if nans := sum(map(math.isnan, steps.weights)):
        if count == 1:
            return "The weight is NaN."
        of_copy = " of each copy" if steps.row.copies > 1 else ""
        some = f"{nans} of the {count} weights{of_copy} {'is' if nans == 1 else 'are'}"
        every = f"Both weights{of_copy} are" if count == 2 else f"All {count} weights{of_copy} are"
        return f"{every if nans == count else some} NaN, and so is their sum."
    text = f"The weights add up to {sum_number(steps.weight_sum)}"
    if steps.masked_weight == 0:
        return f"{text}."
    if steps.masked_weight == steps.weight_sum:
        return f"{text}, all of it on masked scores."
    return f"{text}, {row_number(steps.masked_weight)} of it on masked scores."
