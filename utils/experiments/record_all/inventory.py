"""What is recorded: records that one command made on one version of torch, together, for the page *Records*."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from utils.records import Record


@dataclass(frozen=True)
class RecordGroup:
    """The records of one experiment, device, size, data, command, commit and version of torch.

    `day` is that of the newest of them (UTC, YYYY-MM-DD), `seeds` the number of their seeds.
    """

    experiment: str
    device: str
    size: str
    data: str
    command: str
    commit: str | None
    recipes: tuple[str, ...]
    seeds: int
    count: int
    day: str
    torch: str


def group_records(made: Iterable[Record]) -> list[RecordGroup]:
    """Return the groups: GPUs before CPUs, then by experiment and day."""
    groups: dict[tuple, list[Record]] = defaultdict(list)
    for record in made:
        key = (record.experiment, record.device["kind"], record.device["name"], record.size, record.data_name)
        groups[(*key, record.command, record.commit, record.versions["torch"])].append(record)
    rows = [(kind == "cpu", experiment, _describe(group)) for (experiment, kind, *_), group in groups.items()]
    return [group for *_, group in sorted(rows, key=lambda row: (*row[:2], row[2].day, row[2].recipes))]


def _describe(group: list[Record]) -> RecordGroup:
    newest = max(group, key=lambda record: record.date)
    return RecordGroup(
        experiment=newest.experiment,
        device=newest.device["name"],
        size=newest.size,
        data=newest.data_name,
        command=newest.command,
        commit=newest.commit,
        recipes=tuple(sorted({record.recipe for record in group})),
        seeds=len({record.seed for record in group}),
        count=len(group),
        day=newest.date[:10],
        torch=newest.versions["torch"],
    )
