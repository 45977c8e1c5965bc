"""Which commands run in the time there is: the list in its order, without what is done, cannot run or does not fit."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from utils.experiments.record_all.attempts import FINISHED, STOPPED, RecordingAttempt
from utils.experiments.record_all.wanted import Wanted
from utils.runs import cache, loaded_source

RUN, DONE, LEFT_OUT = "run", "done", "left out"
MARGIN = 1.25  # of the time that a command may take beyond its estimate and still end in time
PACKING = 0.5  # minutes at the end, for the archive
PACES = (0.5, 4.0)  # bounds of what a few finished commands may say about the others
FEWEST = 3  # finished commands that say something


@dataclass(frozen=True)
class PlannedCommand:
    """One line of a plan: `does` is `RUN`, `DONE` or `LEFT_OUT`, `why` the reason of the last."""

    wanted: Wanted
    minutes: float
    does: str
    why: str = ""


def key_of(
    wanted: Wanted, *, size: str, device_name: str, folders: Iterable[str], root: Path = loaded_source.ROOT
) -> str:
    """Return what changes when a command would give another record: its arguments, code, device, data, versions."""
    used = sorted(set(folders) & set(wanted.folders))
    code = loaded_source.digest(f"utils.{wanted.arguments[0]}", root)
    return cache.key(wanted.arguments, wanted.size, size, device_name, used, code, torch.__version__)


def pace_of(attempts: Iterable[RecordingAttempt]) -> float:
    """Return by how much commands take longer here than estimated: the median of those that finished, within bounds.

    1 as long as fewer than `FEWEST` have finished.
    """
    ratios = [entry.minutes / entry.expected for entry in attempts if entry.state == FINISHED and entry.expected > 0]
    if len(ratios) < FEWEST:
        return 1.0
    return min(max(statistics.median(ratios), PACES[0]), PACES[1])


def make_plan(
    wanted: Sequence[Wanted],
    *,
    size: str,
    minutes: float,
    keys: dict[str, str],
    attempts: dict[str, RecordingAttempt],
    cards: int,
    failed_tests: Iterable[str] = (),
) -> list[PlannedCommand]:
    """Return a step for each command, those that run within `minutes` first come first served.

    `keys`: of each command, see `key_of`. `attempts`: of earlier runs, by name; a command that finished with the same
    key is done, and one that did not finish comes after those that were never tried.
    """
    pace, left, failed = pace_of(attempts.values()), minutes - PACKING, set(failed_tests)
    tried = {name for name, attempt in attempts.items() if attempt.key == keys[name] and attempt.state != FINISHED}
    steps = []
    for entry in sorted(wanted, key=lambda entry: entry.name in tried):  # stable: otherwise the order of the list
        attempt, broken = attempts.get(entry.name), sorted(failed & set(entry.rests_on))
        expected = entry.minutes[size] * pace
        if entry.name in tried and attempt.state == STOPPED and not entry.resumes:
            expected = max(expected, attempt.minutes)  # it needs longer than it had, and begins anew
        if attempt and attempt.state == FINISHED and attempt.key == keys[entry.name]:
            steps.append(PlannedCommand(entry, attempt.minutes, DONE))
            continue
        why = ""
        if broken:
            why = f"a test that it rests on fails: {', '.join(broken)}; --despite-tests runs it all the same"
        elif cards < entry.least_cards:
            why = f"needs {entry.least_cards} GPUs, torch sees {cards}"
        elif expected * MARGIN > left:
            why = f"needs {expected * MARGIN:.1f} min, {max(left, 0):.1f} left"
        else:
            left -= expected
        steps.append(PlannedCommand(entry, expected, LEFT_OUT if why else RUN, why))
    return steps


def format_plan(steps: Sequence[PlannedCommand]) -> str:
    """Return the plan as a table: when each command would end, how long it takes, and what becomes of it."""
    lines, end = [f"{'ends at':>8} {'minutes':>8}  {'what':34} page"], 0.0
    for step in steps:
        if step.does == RUN:
            end += step.minutes
        at = f"{end:.1f}" if step.does == RUN else step.does
        why = f"  ({step.why})" if step.why else ""
        lines.append(f"{at:>8} {step.minutes:8.1f}  {step.wanted.name:34} {step.wanted.page}{why}")
    counts = {does: sum(step.does == does for step in steps) for does in (RUN, DONE, LEFT_OUT)}
    missing = sum(step.minutes for step in steps if step.does == LEFT_OUT)
    total = f"{counts[RUN]} to run in {end:.0f} minutes, {counts[DONE]} done, {counts[LEFT_OUT]} left out"
    return "\n".join([*lines, f"{total}, which would take {missing:.0f} minutes more" if missing else total])
