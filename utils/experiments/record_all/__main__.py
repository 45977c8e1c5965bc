"""Record everything that the book wants of a machine, in the time there is, and bring it back in one file.

    python -m utils.experiments.record_all --minutes 50 --data REVIEWS --prose TEXTS
    python -m utils.experiments.record_all --archive records-nvidia-h100-full-2026-11-27.tar.gz --into book/results

The most useful records come first, each in a process of its own with a limit. Run again, it goes on where it stopped.
--plan says what would run. A mistake in the arguments is one line on stderr and exit code 2; exit code 1 says that some
commands did not finish.
"""

import math
import os
import shutil
import sys
from argparse import Namespace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import torch

from utils import records
from utils.experiments.record_all import archive
from utils.experiments.record_all.plan import format_plan
from utils.experiments.record_all.preflight import list_warnings
from utils.experiments.record_all.recording import Recording
from utils.experiments.record_all.wanted import PROSE, REVIEWS, WEIGHTS, list_wanted
from utils.runs import command_line

PROGRAM = "record_all"
OUT = records.ROOT / "_build" / "record"
MINUTES = 50.0
NO_GPU = (
    "nvidia-smi is there and torch {torch} sees no GPU: its CUDA is {cuda}, and the driver may be older;"
    " --device cpu records the processor"
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        options = _parse(arguments)
        if options.into:
            return _take_in(Path(options.archive), Path(options.into))
        folder = Path(options.out)
        recording = Recording(
            folder=folder if options.plan else records.check_folder(folder),
            device=options.device,
            size=options.size,
            wanted=_select(options.only),
            folders=_find_folders(options),
            say=_print_line,
            despite_tests=options.despite_tests,
        )
        print(command_line.describe_run(options.device, size=options.size, **_describe_folders(recording)), flush=True)
        print(format_plan(recording.plan(options.minutes)), flush=True)
        for sentence in list_warnings(options.device, folder=folder, provenance=recording.report.provenance):
            print(f"NOTE: {sentence}", flush=True)
    except PackageNotFoundError as error:
        return command_line.complain(PROGRAM, f"{error.name} is not installed: pip install {error.name}", 2)
    except (ValueError, OSError) as error:
        return command_line.complain(PROGRAM, str(error), 2)
    except KeyboardInterrupt:
        return command_line.complain(PROGRAM, "interrupted before the first command", command_line.INTERRUPTED)
    return 0 if options.plan else recording.run(options.minutes)


def _parse(arguments: list[str] | None) -> Namespace:
    parser = command_line.Parser(f"experiments.{PROGRAM}", about=__doc__, sizes="small or full", record=None)
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N", help="that there are; default: 50")
    parser.add_argument("--plan", action="store_true", help="print what would run, and run nothing")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of the plan; default: all of it")
    parser.add_argument("--data", metavar="DIR", help="folder with the film reviews; default: generated ones")
    parser.add_argument("--prose", metavar="DIR", help="folder with .txt files; default: generated stories")
    parser.add_argument("--weights", metavar="DIR", help="folder with a pretrained DistilBERT; default: random weights")
    parser.add_argument("--out", default=str(OUT), metavar="DIR", help="work folder; default: _build/record")
    parser.add_argument("--despite-tests", action="store_true", help="run also what rests on a test that fails")
    parser.add_argument("--archive", metavar="FILE", help="take the records of this archive, with --into")
    parser.add_argument("--into", metavar="DIR", help="where its records go: book/results")
    options = parser.checked(arguments)
    if options.device.type == "cpu" and not _names_device(arguments) and shutil.which("nvidia-smi"):
        raise ValueError(NO_GPU.format(torch=torch.__version__, cuda=torch.version.cuda))
    if not (math.isfinite(options.minutes) and options.minutes > 0):
        raise ValueError(f"--minutes {options.minutes:g} is not above 0")
    if bool(options.archive) != bool(options.into):
        raise ValueError("--archive FILE and --into DIR belong together: the file's records go into the folder")
    return options


def _names_device(arguments: list[str] | None) -> bool:
    """Say whether the device was asked for; else it was found."""
    words = sys.argv[1:] if arguments is None else arguments
    named = any(word.partition("=")[0] in ("--device", "--into") for word in words)
    return named or bool(os.environ.get("MIXED_PRECISION_DEVICE"))


def _print_line(line: str) -> None:
    try:
        print(line, flush=True)
    except OSError:  # the terminal or the pipe is gone: the run goes on, and the report has what matters
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _select(names: list[str] | None) -> tuple:
    """Return the commands of these names, in the order of the list. Raises: ValueError for an unknown name."""
    wanted = list_wanted()
    if names is None:
        return wanted
    if unknown := set(names) - {entry.name for entry in wanted}:
        raise ValueError(f"--only {' '.join(sorted(unknown))}: no such name; --plan prints the names")
    return tuple(entry for entry in wanted if entry.name in names)


def _find_folders(options: Namespace) -> dict[str, str]:
    """Return the folders with data and weights, absolute. Raises: ValueError for one that is not there."""
    folders = {REVIEWS: options.data, PROSE: options.prose, WEIGHTS: options.weights}
    for folder in folders.values():
        if folder is not None and not Path(folder).is_dir():
            raise ValueError(f"there is no folder {folder}")
    return {name: str(Path(folder).resolve()) for name, folder in folders.items() if folder is not None}


def _describe_folders(recording: Recording) -> dict[str, str]:
    """Return by heading what the records will be made of."""
    there = recording.folders
    return {
        "reviews": "a local folder" if REVIEWS in there else "generated; --data names a folder with real ones",
        "prose": "a local folder" if PROSE in there else "generated; --prose names a folder with real texts",
        "weights": "a local folder" if WEIGHTS in there else "random; --weights names a folder with a DistilBERT",
    }


def _take_in(path: Path, into: Path) -> int:
    """Put the records of an archive into a folder and say what became of each."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    report = archive.read_report(path)
    unpacked = archive.unpack(path, into)
    print(f"{report['device']['name']}, size {report['size']}, commit {report['provenance']['commit']}")
    for name, reason in unpacked.left_out.items():
        print(f"left out: {name}: {reason}")
    print(f"{len(unpacked.taken)} records taken, {len(unpacked.left_out)} left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
