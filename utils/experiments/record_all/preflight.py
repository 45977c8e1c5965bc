"""What to know before the hour is spent: a sentence for each of code, card, disk and tests that is amiss."""

import importlib.util
import shutil
from pathlib import Path

import torch

from utils import machine
from utils.experiments.record_all.gpu_tests import NEEDED

LEAST_FREE = 5e9  # bytes of the disk: a checkpoint of DistilBERT takes 0.8 GB, and compilers leave files
QUIET_MB, QUIET_PERCENT = 2_000.0, 10.0  # of an idle card
TRIED = ("2.11", "2.13")  # versions of torch


def list_warnings(device: torch.device, *, folder: Path, provenance: dict) -> list[str]:
    """Return the sentences; an empty list where nothing is amiss. `provenance` is that of `records.provenance`."""
    sentences = [_doubt_code(provenance), _doubt_disk(folder)]
    if device.type == "cuda":
        sentences += [*_doubt_card(device), _doubt_tests(), _doubt_version()]
    return [sentence for sentence in sentences if sentence]


def _doubt_code(provenance: dict) -> str:
    taken = "a book takes these records where its checkout is clean and has the same code: keep this copy as it is"
    if provenance["commit"] is None:
        return f"no commit: git is missing, does not trust this folder, or this is a copy without .git; {taken}"
    if provenance["dirty"]:
        return f"utils or requirements.txt differ from the commit: commit the change first; without that, {taken}"
    return ""


def _doubt_disk(folder: Path) -> str:
    while not folder.exists():  # a plan makes no folder
        folder = folder.absolute().parent
    free = shutil.disk_usage(folder).free
    return "" if free >= LEAST_FREE else f"{free / 1e9:.1f} GB are free for records, logs and checkpoints"


def _doubt_card(device: torch.device) -> list[str]:
    """Ask nvidia-smi, not torch: this process must leave the card alone, which may allow one process at a time."""
    load, sentences = machine.load(device), []
    if (load["memory_used_mb"] or 0) > QUIET_MB:
        sentences.append(
            f"other programs hold {load['memory_used_mb'] / 1e3:.1f} GB of the card: large experiments may not fit,"
            " and times are not those of a quiet card"
        )
    if (load["busy_percent"] or 0) > QUIET_PERCENT:
        sentences.append(f"the card is busy, {load['busy_percent']:.0f} % of the time: wait until it is quiet")
    return sentences


def _doubt_tests() -> str:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    return f"the tests of the GPU will not run: pip install {' '.join(missing)}" if missing else ""


def _doubt_version() -> str:
    release = torch.__version__.split("+")[0]
    if any(release.startswith(f"{version}.") for version in TRIED):
        return ""
    return f"torch {release}: this code was tried with {' and '.join(TRIED)}"
