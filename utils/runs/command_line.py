"""The options that every command of the book has, and mistakes and Ctrl-C as one line on stderr.

A mistake in the arguments is one line on stderr and exit code 2, before anything is measured.
"""

import argparse
import functools
import shlex
import sys
from collections.abc import Callable, Sequence

import torch

from utils import machine, records

INTERRUPTED = 130  # 128 + SIGINT, what a shell expects
FOLDERS = ("--data", "--weights", "--record", "--checkpoint")


class Parser(argparse.ArgumentParser):
    """The options that every command has, `--device` and `--record`; a command adds its own, and may have sizes.

    A mistake raises ValueError, where argparse would print its usage and leave.
    """

    def __init__(self, program: str, *, about: str | None, sizes: str = "", record: str | None = "write a record"):
        """`program`: the path of the command below `utils`, such as "experiments.gemm_sweep".

        `about`: the docstring of its module, whose first line opens the help; None under `python -OO`. `record`: what
        --record does; None for a command that has no such option.
        """
        first = (about or "").partition("\n")[0]
        super().__init__(prog=f"python -m utils.{program}", description=first, allow_abbrev=False)
        self.program, self._count_options = program, []
        if sizes:
            self.add_argument("--size", help=f"{sizes}; default: full on a GPU")
        self.add_argument("--device", help="cpu, cuda or cuda:N; default: a GPU where there is one")
        if record:
            record += "; without DIR into the book's results"
            self.add_argument("--record", nargs="?", const=str(records.RESULTS), metavar="DIR", help=record)

    def add_count(self, name: str, *, default: int | None, help: str) -> None:
        """Add an option that is a positive integer."""
        self._count_options.append(self.add_argument(name, type=int, default=default, metavar="N", help=help))

    def add_names(self, name: str, *, default: Sequence[str], help: str) -> None:
        """Add an option that takes one name or more, all of which stand in the help."""
        help += f"; default: {' '.join(default)}"
        self.add_argument(name, nargs="+", default=list(default), metavar="NAME", help=help)

    def checked(self, arguments: list[str] | None) -> argparse.Namespace:
        """Return the checked options; `arguments` of None are those of the process.

        `device`, `size` and `record` are resolved, `command` is the command line as a record shows it.

        Raises: ValueError that names the bad argument.
        """
        arguments = sys.argv[1:] if arguments is None else arguments
        options = self.parse_args(arguments)
        for option in self._count_options:
            if (value := getattr(options, option.dest)) is not None and value < 1:
                raise ValueError(f"{option.option_strings[0]} {value} is below 1")
        for option in FOLDERS:
            if getattr(options, option.removeprefix("--"), None) == "":  # as of "$DIR" where the shell knows no DIR
                raise ValueError(f"{option} is followed by an empty name; name a folder, or leave {option} out")
        options.device = machine.device(options.device)
        if hasattr(options, "size"):
            options.size = machine.size(options.size, on=options.device)
        if hasattr(options, "record"):
            options.record = records.check_folder(options.record) if options.record else None
        options.command = hide_folders(arguments, program=self.program)
        return options

    def error(self, message: str):
        raise ValueError(f"{message}; --help lists the options")


def hide_folders(arguments: list[str], *, program: str) -> str:
    """Return the command as a record shows it: every folder is DIR, since a path tells about somebody's machine."""
    shown, is_folder = [], False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if is_folder and not argument.startswith("--"):
            argument = "DIR"
        elif name in FOLDERS and equals:
            argument = f"{name}=DIR"
        is_folder = argument in FOLDERS  # of the next argument
        shown.append(argument)
    return shlex.join(["python", "-m", f"utils.{program}", *shown])


def format_duration(seconds: float) -> str:
    """Return minutes and seconds: 200.4 -> "3:20"; above an hour, hours too."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def out_of_memory(error: BaseException) -> bool:
    """Say whether torch ran out of memory; on a CPU it raises a plain RuntimeError."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return "DefaultCPUAllocator" in str(error) or "not enough memory" in str(error)


def explain_unwritten(error: OSError) -> str:
    """Return the message for a record that could not be saved, as on a full disk; the folder was writable before."""
    path = f" ({error.filename})" if error.filename else ""
    return f"the record cannot be written: {error.strerror or error}{path}; make room, or name another folder"


def in_one_line(program: str, *, kept: str = "nothing was recorded") -> Callable:
    """Decorate a `main` that measures: print Ctrl-C and a record that cannot be written as one line on stderr.

    `kept` says what is left of an interrupted command.
    """

    def wrap(main: Callable[[list[str] | None], int]) -> Callable[[list[str] | None], int]:
        @functools.wraps(main)
        def wrapped(arguments: list[str] | None = None) -> int:
            try:
                return main(arguments)
            except OSError as error:
                return complain(program, explain_unwritten(error), 2)
            except KeyboardInterrupt:
                return complain(program, f"interrupted; {kept}", INTERRUPTED)

        return wrapped

    return wrap


def describe_run(device: torch.device, **more: str) -> str:
    """Return the device and what else a command uses, one line each."""
    return "\n".join(f"{name:8} {text}" for name, text in {"device": machine.describe(device), **more}.items())


def complain(program: str, message: str, code: int) -> int:
    """Print what went wrong as one line on stderr, and return the exit code."""
    print(f"{program}: {' '.join(message.split())}", file=sys.stderr, flush=True)
    return code
