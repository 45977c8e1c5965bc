"""What the widgets of recorded exponents share in Python: the record is checked, and what a format does to it is said.

A record is the dict that `utils.training.watch` writes: for each kind of tensor, group of layers and step a histogram
{"low": -37, "counts": [...], "zeros": n, "infinite": n, "nan": n, "amax": a, "powers": {"-37": n}}, the form of
`utils.emulation.exponent_histogram.Histogram`. binades.js is its twin in the page.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from utils.emulation.exponent_histogram import Histogram
from utils.formats import FORMATS, FloatFormat
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.words.sizes import power_text, share_text

ALL = "all layers"  # the sum of all groups
WINDOWS = tuple(name for name, fmt in FORMATS.items() if fmt.has_zero)  # E8M0 has neither zero nor a sign
MOST_LOG2_SCALE = 64  # as far as a window goes, either way
COUNTS = ("zeros", "infinite", "nan")
FIRST_KIND = "activation gradients"  # what is shown at the start, where it is recorded


class Fates(NamedTuple):
    """How many of the values that are finite and not zero meet which end; `most` where the top binade is cut."""

    total: int
    zero: int
    subnormal: int
    overflow_least: int
    overflow_most: int


def check_recorded(recorded: dict) -> dict:
    """Return a record of exponents back; raise ValueError in one sentence if it is none."""
    for name in ("steps", "groups", "kinds", "histograms"):
        if not isinstance(recorded, dict) or not recorded.get(name):
            raise ValueError(f"recorded has no {name}; pass utils.training.watch.recorded(record) of a watched run")
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


def first_kind(recorded: dict) -> str:
    """Return the kind of tensor that a widget shows at the start."""
    return FIRST_KIND if FIRST_KIND in recorded["kinds"] else recorded["kinds"][0]


def check_choice(recorded: dict, kind: str, group: str, step: int) -> None:
    """Raise ValueError for a kind, a group or a step that a record does not hold."""
    groups = (ALL, *recorded["histograms"][one_of(kind, recorded["kinds"], "kind")])
    if group not in groups:
        raise ValueError(f"group {group!r} has no {kind}; choose one of {', '.join(groups)}")
    if step not in recorded["steps"]:
        raise ValueError(f"step {step} was not recorded; choose one of {', '.join(map(str, recorded['steps']))}")


def _is_count(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_histogram(histogram: dict, where: str) -> None:
    counts = histogram.get("counts")
    if not isinstance(counts, list) or not all(_is_count(n) for n in [*counts, *(histogram.get(c) for c in COUNTS)]):
        raise ValueError(f"recorded: the counts of {where} are not whole numbers of 0 or more")
    if counts and not isinstance(histogram.get("low"), int):
        raise ValueError(f"recorded: low of {where} is {histogram.get('low')!r}, not a whole number")
    powers = histogram.get("powers", {})
    held = {str(e): n for e, n in enumerate(counts, histogram["low"])} if counts else {}
    if not all(_is_count(n) and n <= held.get(e, 0) for e, n in powers.items()):
        raise ValueError(f"recorded: powers of {where} are not some of its counts")
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
    return sum(map(Histogram.from_json, histograms), Histogram()).as_json()


def histogram_of(recorded: dict, kind: str, group: str, step: int) -> dict:
    """Return one histogram of a record, or of all its groups together."""
    groups, at = recorded["histograms"][kind], recorded["steps"].index(step)
    return merged(all_steps[at] for all_steps in groups.values()) if group == ALL else groups[group][at]


def fates(histogram: dict, fmt: FloatFormat, log2_scale: int = 0) -> Fates:
    """Count what a format makes of the values of a histogram times 2**log2_scale, as `Histogram` does in shares."""
    counted, scale = Histogram.from_json(histogram), math.ldexp(1.0, log2_scale)
    shares = (counted.flushed, counted.subnormal, counted.overflowing, counted.overflowing_at_most)
    return Fates(counted.nonzero, *(round(share(fmt, scale) * counted.nonzero) for share in shares))


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
