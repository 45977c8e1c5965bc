"""What the widgets of recorded exponents share in Python: the record is checked, and what a format does to it is said.

A record is the dict that `utils.watch` writes: for each kind of tensor, group of layers and step a histogram
{"low": -37, "counts": [...], "zeros": n, "infinite": n, "nan": n, "amax": a}, where `counts[i]` values have their
magnitude in [2**(low + i), 2**(low + i + 1)). binades.js is the page's twin.
"""

import math
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import NamedTuple

from utils.formats import FORMATS, FloatFormat
from utils.widgets.book_widget import format_label

ALL = "all layers"  # the sum of all groups
WINDOWS = tuple(name for name, fmt in FORMATS.items() if fmt.has_zero)  # E8M0 has neither zero nor a sign
MOST_LOG2_SCALE = 64  # as far as a window goes, either way
COUNTS = ("zeros", "infinite", "nan")
_THREE_DIGITS = Context(prec=3, rounding=ROUND_HALF_UP)


class Fates(NamedTuple):
    """How many of the values that are finite and not zero meet which end; `most` where the top binade is cut."""

    total: int
    zero: int
    subnormal: int
    overflow_least: int
    overflow_most: int


def check_recorded(recorded: dict) -> dict:
    """Give a record of exponents back; raise ValueError in one sentence if it is none."""
    for name in ("steps", "groups", "kinds", "histograms"):
        if not isinstance(recorded, dict) or not recorded.get(name):
            raise ValueError(f"recorded has no {name}; pass record.samples['exponents'] of a watched run")
    steps = recorded["steps"]
    if not all(_is_count(step) for step in steps) or list(steps) != sorted(set(steps)):
        raise ValueError(f"recorded: steps {steps!r} are not whole numbers that grow")
    if ALL in recorded["groups"]:
        raise ValueError(f"recorded: no group may be called {ALL!r}, the name of their sum")
    for kind in recorded["kinds"]:
        groups = recorded["histograms"].get(kind)
        if not groups:
            raise ValueError(f"recorded has no histograms of {kind!r}")
        for group, histograms in groups.items():
            if group not in recorded["groups"]:
                raise ValueError(f"recorded: {kind} has the group {group!r}, which is not in groups")
            if len(histograms) != len(steps):
                raise ValueError(f"recorded: {len(histograms)} histograms of {kind}, {group}, for {len(steps)} steps")
            for step, histogram in zip(steps, histograms, strict=True):
                _check_histogram(histogram, f"{kind}, {group}, step {step}")
    return recorded


def _is_count(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_histogram(histogram: dict, where: str) -> None:
    counts = histogram.get("counts")
    if not isinstance(counts, list) or not all(_is_count(n) for n in [*counts, *(histogram.get(c) for c in COUNTS)]):
        raise ValueError(f"recorded: the counts of {where} are not whole numbers of 0 or more")
    if counts and not isinstance(histogram.get("low"), int):
        raise ValueError(f"recorded: low of {where} is {histogram.get('low')!r}, not a whole number")
    amax, top = histogram.get("amax"), _top(histogram)
    if top is not None and not (isinstance(amax, int | float) and math.isfinite(amax) and amax > 0):
        raise ValueError(f"recorded: amax of {where} is {amax!r}, not a positive number")
    if top is not None and math.frexp(amax)[1] - 1 != top:
        raise ValueError(
            f"recorded: amax of {where} is {amax!r}, but the largest values lie in [2**{top}, 2**{top + 1})"
        )


def _top(histogram: dict) -> int | None:
    return max((histogram["low"] + i for i, n in enumerate(histogram["counts"]) if n), default=None)


def merged(histograms: Iterable[dict]) -> dict:
    """Add histograms up, as one of all their tensors together."""
    counts: dict[int, int] = {}
    whole = dict.fromkeys(COUNTS, 0) | {"amax": 0.0}
    for histogram in histograms:
        for i, n in enumerate(histogram["counts"]):
            counts[histogram["low"] + i] = counts.get(histogram["low"] + i, 0) + n
        for name in COUNTS:
            whole[name] += histogram[name]
        whole["amax"] = max(whole["amax"], histogram["amax"] or 0.0)
    low, end = min(counts, default=0), max(counts, default=-1) + 1
    return {"low": low, "counts": [counts.get(e, 0) for e in range(low, end)], **whole}


def histogram_of(recorded: dict, kind: str, group: str, step: int) -> dict:
    """Give one histogram of a record, or of all its groups together."""
    groups, at = recorded["histograms"][kind], recorded["steps"].index(step)
    return merged(all_steps[at] for all_steps in groups.values()) if group == ALL else groups[group][at]


def overflows(amax: float, fmt: FloatFormat) -> bool:
    """Whether a magnitude is rounded, ties to even, past the largest value: from half an ulp beyond `max` on."""
    bound = fmt.max + math.ldexp(1.0, fmt.emax - fmt.mantissa_bits - 1)
    return amax > bound or (amax == bound and fmt.max_code % 2 == 1)


def fates(histogram: dict, fmt: FloatFormat, log2_scale: int = 0) -> Fates:
    """Count what a format makes of the values of a histogram times 2**log2_scale, rounded ties to even.

    A binade is taken as a whole. That is exact for what becomes zero, but for values of exactly half the smallest
    subnormal, which count as subnormal; a value is subnormal if it lies below the smallest normal before it is rounded.
    In the top binade `amax` decides; where it does not, the count is between two bounds.
    """
    zero = subnormal = over = cut = 0
    for i, n in enumerate(histogram["counts"]):
        e = histogram["low"] + i + log2_scale
        if e < fmt.emin - fmt.mantissa_bits - 1:
            zero += n
        elif e < fmt.emin:
            subnormal += n
        elif e > fmt.emax:
            over += n
        elif e == fmt.emax:
            cut = n
    total = sum(histogram["counts"])
    amax = math.ldexp(histogram["amax"], log2_scale) if total else 0.0
    if not overflows(amax, fmt):
        return Fates(total, zero, subnormal, 0, 0)
    return Fates(total, zero, subnormal, over + (over == 0), over + cut)


def largest_log2_scale(amax: float, fmt: FloatFormat) -> int:
    """Give the exponent of the largest power of two by which `amax` can be multiplied and not overflow."""
    power = fmt.emax - (math.frexp(amax)[1] - 1)
    return power - overflows(math.ldexp(amax, power), fmt)


def share_text(n: int, total: int) -> str:
    """Give n of total in per cent, with three digits, and never as 0 or all where it is not."""
    percent = 100 * n / total
    text = format(_THREE_DIGITS.create_decimal(Decimal(percent)).normalize(), "f")
    if n > 0 and percent < 0.01:
        return "less than 0.01\u00a0%"
    return "more than 99.9\u00a0%" if text == "100" and n < total else f"{text}\u00a0%"


def power_text(power: int) -> str:
    """Give 2**power as the page writes it: 1, 2¹⁰, 2⁻³."""
    return "1" if power == 0 else "2" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _clause(n: int, total: int, none: str, some: str, *, of: str = "", at_most: bool = False) -> str:
    if n == 0:
        return f"none{of and f' of the{of}'} {none}"
    if n == total and not at_most:
        return f"all{of} {some}"
    return f"{_bound_text(n, total) if at_most else share_text(n, total)}{of and f' of the{of}'} {some}"


def _bound_text(n: int, total: int) -> str:
    text = share_text(n, total)
    if text.startswith("less"):
        return text
    return "at most " + text.replace("more than 99.9", "100")


def fates_text(histogram: dict, fmt: FloatFormat, log2_scale: int = 0) -> str:
    """Say in a sentence what a format makes of a histogram's values times 2**log2_scale."""
    total, zero, subnormal, least, most = fates(histogram, fmt, log2_scale)
    before = f"{format_label(fmt)}, scale {power_text(log2_scale)}"
    if total == 0:
        return f"{before}: there is no value that is finite and not zero.{_already(histogram)}"
    none, some = "overflows", "overflow"
    if not fmt.has_inf:
        some = "overflow to NaN"
    if not fmt.has_nan:
        none, some = "is too large", "are too large"
    parts = (
        _clause(zero, total, "becomes zero", "become zero", of=" values that are not zero"),
        _clause(subnormal, total, "is subnormal", "are subnormal"),
        _clause(most, total, none, some, at_most=least < most),
    )
    return f"{before}: {', '.join(parts)}.{_already(histogram)}"


def _already(histogram: dict) -> str:
    all_values = sum(histogram["counts"]) + sum(histogram[name] for name in COUNTS)
    text = ""
    if histogram["zeros"]:
        text += f" ({share_text(histogram['zeros'], all_values)} were zero already.)"
    if lost := histogram["infinite"] + histogram["nan"]:
        text += f" ({lost} {'was' if lost == 1 else 'were'} infinite or NaN already.)"
    return text
