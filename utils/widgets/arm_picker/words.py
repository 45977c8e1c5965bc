"""What ArmPicker says: means with their intervals, differences by seed, and the order that one seed gives.

All of it is of the rounded numbers that `facts.arms_of` hands to the page. numbers.js is its twin there.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from utils import measure


class Verdict(NamedTuple):
    """What the pairs say of an arm and the baseline.

    `kind`: "higher", "lower", "cannot" be told, "equal", "pair" (there is one), "none" (no number), "missing".
    `differences` by seed, in the quantity's unit; `mean` and `half` of them, None where there is none.
    """

    kind: str
    text: str
    differences: dict[int, float] = {}  # noqa: RUF012
    mean: float | None = None
    half: float | None = None


def quantity_of(data: dict, name: str) -> dict:
    """Return the row of a quantity by its name."""
    return next(row for row in data["quantities"] if row["name"] == name)


def values_of(group: dict, arm: str, quantity: dict) -> list[float | None]:
    """Return the numbers of an arm, one for each seed of the group; None where there is none."""
    values = group["runs"][arm]["values"][quantity["at"]] if arm in group["runs"] else None
    return values if isinstance(values, list) else [values] * len(group["seeds"])


def fixed(x: float, decimals: int) -> str:
    """Return |x| with this many decimals, ties away from zero: those of its first 12 digits, as in the page."""
    shifted = float(f"{abs(x) * 10**decimals:.12g}")
    return f"{math.floor(shifted + 0.5) / 10**decimals:.{decimals}f}"


def decimals_of(group: dict, quantity: dict) -> int:
    """Return how many decimals the numbers of a quantity get: its own, or so many that the largest has three digits."""
    if "decimals" in quantity:
        return quantity["decimals"]
    numbers = [abs(x) for arm in group["runs"] for x in values_of(group, arm, quantity) if x is not None]
    return sum(max(numbers, default=0) < bound for bound in (100, 10, 1))


def with_unit(text: str, unit: str) -> str:
    """Return a number and its unit, which stay in one line."""
    return f"{text}\u00a0{unit}" if unit else text


def value_text(group: dict, arm: str, quantity: dict, seed: int | None = None) -> str:
    """Return "81.5 ± 0.7 %", the number of one seed, or why there is none."""
    numbers = values_of(group, arm, quantity)
    if seed is not None:
        numbers = [numbers[group["seeds"].index(seed)]]
    numbers, decimals = [x for x in numbers if x is not None], decimals_of(group, quantity)
    if not numbers:
        return "NaN" if _nan_steps(group, arm, quantity) else "not recorded"
    mean, half = measure.mean_interval(numbers)
    text = f"{'−' if mean < 0 else ''}{fixed(mean, decimals)}"
    if half:
        text += f"\u00a0±\u00a0{fixed(half, decimals)}"
    return with_unit(text, quantity["unit"])


def by_seed_text(group: dict, arm: str, quantity: dict) -> str:
    """Return the numbers of an arm in the order of the seeds, "81.5, 80.75, 81.1", with a dash where there is none."""
    numbers = values_of(group, arm, quantity)
    return ", ".join("–" if x is None else f"{x:g}" for x in numbers) if any(numbers) else "–"


def verdict_of(group: dict, arm: str, baseline: str, quantity: dict) -> Verdict:
    """Return what the pairs of an arm and the baseline say, seed by seed, in words."""
    nan = _nan_steps(group, arm, quantity)
    ours, theirs = values_of(group, arm, quantity), values_of(group, baseline, quantity)
    if all(x is None for x in ours):
        if nan:
            return Verdict("none", f"no number: {_nan_text(group, arm, nan)}")
        return Verdict("missing", "not recorded")
    if all(x is None for x in theirs):
        why = "its loss was NaN" if _nan_steps(group, baseline, quantity) else "it is not recorded"
        return Verdict("none", f"nothing to compare with: {baseline} has no number, {why}")
    pairs = zip(group["seeds"], ours, theirs, strict=True)
    gaps = {seed: round(a - b, 9) for seed, a, b in pairs if a is not None and b is not None}
    left_out = f"; {_nan_text(group, arm, nan)}, which is left out" if nan else ""
    if not gaps:
        return Verdict("none", f"no pair: no seed has a number for both{left_out}")
    mean, half = measure.mean_interval(gaps.values())
    kind, text = _told(group, baseline, quantity, gaps, mean, half)
    return Verdict(kind, text + left_out, gaps, mean, half)


def _told(group: dict, baseline: str, quantity: dict, gaps: dict, mean: float, half: float | None) -> tuple[str, str]:
    decimals, unit, n = decimals_of(group, quantity), quantity.get("difference", quantity["unit"]), len(gaps)
    signed = f"{'−' if mean < 0 else '+'}{fixed(mean, decimals)}"
    if half is None:
        return "pair", f"one pair, so no interval: {with_unit(signed, unit)}"
    if max(gaps.values()) == min(gaps.values()):
        if mean == 0:
            return "equal", f"equal in each of {n} pairs"
        side, apart, after = ("higher" if mean > 0 else "lower"), fixed(mean, decimals), f", in each of {n} pairs"
        return side, f"{side} by {with_unit(apart, unit)}{_share_text(group, baseline, quantity, gaps, mean)}{after}"
    if float(fixed(half, decimals)) == 0:  # "± 0.0" would say nothing
        decimals += 1
        signed = f"{'−' if mean < 0 else '+'}{fixed(mean, decimals)}"
    if abs(mean) > half and fixed(mean, decimals) == fixed(half, decimals):  # "0.5 ± 0.5" would seem to reach 0
        decimals += 1
    spread = f"\u00a0±\u00a0{fixed(half, decimals)}"
    if abs(mean) <= half:
        return (
            "cannot",
            f"cannot be distinguished from {baseline} with these {n} pairs: {with_unit(signed + spread, unit)}",
        )
    side, apart = ("higher" if mean > 0 else "lower"), with_unit(fixed(mean, decimals) + spread, unit)
    return side, f"{side} by {apart}{_share_text(group, baseline, quantity, gaps, mean)} ({n} pairs)"


def _share_text(group: dict, baseline: str, quantity: dict, gaps: dict, mean: float) -> str:
    """Return ", 19 %", the difference as a share of the baseline; nothing where the quantity has a step of its own."""
    if "step" in quantity:
        return ""
    theirs = dict(zip(group["seeds"], values_of(group, baseline, quantity), strict=True))
    percent = 100 * abs(mean) / measure.mean_interval(theirs[seed] for seed in gaps)[0]
    return f", {fixed(percent, 0 if percent >= 10 else 1)}\u00a0%"


def is_recorded(group: dict, quantity: dict) -> bool:
    """Say whether any run of the group has a number of this quantity."""
    return any(values_of(group, arm, quantity) != [None] * len(group["seeds"]) for arm in group["runs"])


def _nan_steps(group: dict, arm: str, quantity: dict) -> list[int]:
    """Return the steps at which runs of an arm lost their number of this quantity."""
    if not quantity.get("finite", True) or not is_recorded(group, quantity):
        return []
    return [step for step in group["runs"].get(arm, {}).get("nan", []) if step]


def _nan_text(group: dict, arm: str, steps: list[int]) -> str:
    first, last = min(steps), max(steps)
    runs = sum(curve is not None for curve in group["runs"][arm]["curves"])
    at = f"step {first}" if first == last else f"steps {first} to {last}"
    return f"the loss was NaN at {at} in {len(steps)} of {runs}"


def listed(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


SAID = {  # of an arm, of several
    "higher": ("is higher", "are higher"),
    "lower": ("is lower", "are lower"),
    "equal": ("is equal to the baseline", "are equal to the baseline"),
    "cannot": ("cannot be distinguished from the baseline", "cannot be distinguished from the baseline"),
    "pair": ("has one pair", "have one pair each"),
    "none": ("has no number", "have no number"),
    "missing": ("is not recorded", "are not recorded"),
}


def summary_of(group: dict, others: Sequence[str], baseline: str, quantity: dict) -> str:
    """Return the verdicts on all arms in a sentence."""
    if not others:
        return f"Tick a recipe to compare it with {baseline}."
    told = {arm: verdict_of(group, arm, baseline, quantity) for arm in others}
    kinds = {arm: verdict.kind for arm, verdict in told.items()}
    clauses = []
    for kind, (singular, several) in SAID.items():
        if names := [arm for arm in others if kinds[arm] == kind]:
            clauses.append(f"{listed(names)} {singular if len(names) == 1 else several}")
    label, uncorrected = quantity["label"], _count_uncorrected(told)
    alone = ", each comparison taken alone" if uncorrected else ""
    after = f" Not corrected for {uncorrected} comparisons." if uncorrected else ""
    return f"{label[0].upper()}{label[1:]}, against {baseline}{alone}: {'; '.join(clauses)}.{after}"


def _count_uncorrected(told: dict[str, Verdict]) -> int:
    """Return how many intervals were looked at where at least one of several excludes 0, else 0."""
    intervals = [verdict for verdict in told.values() if verdict.kind in ("higher", "lower", "cannot")]
    intervals = [verdict for verdict in intervals if verdict.half]
    if len(intervals) < 2 or all(verdict.kind == "cannot" for verdict in intervals):
        return 0
    return len(intervals)


def ranked(group: dict, arms: Sequence[str], quantity: dict) -> dict[str, list[int]]:
    """Return the rank of each arm for each seed, 1 for the best; without the arms that lack a number for some seed."""
    held = {arm: values_of(group, arm, quantity) for arm in arms}
    held = {arm: numbers for arm, numbers in held.items() if None not in numbers}
    better = quantity.get("better", -1)
    return {
        arm: [
            1 + sum(better * theirs[i] > better * numbers[i] for theirs in held.values()) for i in range(len(numbers))
        ]
        for arm, numbers in held.items()
    }


def order_text(ranks: dict[str, list[int]], i: int) -> str:
    """Return the arms in the order that one seed gives: "a, then b = c"."""
    places = sorted({numbers[i] for numbers in ranks.values()})
    return ", then ".join(" = ".join(arm for arm in ranks if ranks[arm][i] == place) for place in places)


def one_seed_text(group: dict, arms: Sequence[str], quantity: dict, seed: int) -> str:
    """Return what one would conclude from one seed alone, and what the other seeds say of it."""
    ranks, seeds = ranked(group, arms, quantity), group["seeds"]
    if len(ranks) < 2:
        return f"Seed {seed} alone says nothing: tick recipes that have a number for every seed."
    orders = [order_text(ranks, i) for i in range(len(seeds))]
    text = f"Seed {seed} alone says: {orders[seeds.index(seed)]}."
    if len(seeds) == 1:
        return f"{text} No other seed was recorded."
    if len(set(orders)) == 1:
        return f"{text} All {len(seeds)} seeds give this order."
    firsts = Counter(arm for i in range(len(seeds)) for arm in ranks if ranks[arm][i] == 1)
    winners = [f"{arm} in {firsts[arm]}" for arm in ranks if firsts[arm]]
    shared = sum(sum(numbers[i] == 1 for numbers in ranks.values()) > 1 for i in range(len(seeds)))
    tie = f" (shared in {shared})" if shared else ""
    return f"{text} The {len(seeds)} seeds give {len(set(orders))} orders; first is {listed(winners)}{tie}."
