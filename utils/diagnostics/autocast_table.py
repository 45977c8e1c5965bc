"""What `torch.autocast` does to each operation: measured here, by this version on this device, and as documented.

    rows = measure("cpu", torch.bfloat16)
    {row.name: row.rule for row in rows}["softmax"]  # "follows": in the dtype of its input

Each operation is called three times inside the context: with float32 inputs, with inputs in the narrow dtype, and with
a mix. The dtype of the result names its rule, a key of `utils.diagnostics.autocast_docs.RULES`.
"""

import contextlib
import logging
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch

from utils.diagnostics.autocast_docs import ERROR, FOLLOWS, NARROW, PROMOTE, WIDE, documented
from utils.diagnostics.autocast_operations import OPERATIONS, Inputs, Operation


@dataclass(frozen=True)
class OperationDtypes:
    """What one operation does inside autocast.

    `rule`: a key of `RULES`. `of_wide` and `of_narrow`: the dtype of its result by name, for float32 inputs and for
    narrow ones; `of_mixed`: for the first input narrow and the others float32, and the other way round, or () where
    there is one floating input. In place of a dtype stands "error" where the call raises; `message` is the first line
    of what the first of them said.
    """

    name: str
    group: str
    rule: str
    of_wide: str
    of_narrow: str
    of_mixed: tuple[str, ...]
    message: str = ""


class RuleDifference(NamedTuple):
    """An operation whose measured rule is not the one of the documentation."""

    name: str
    measured: str
    documented: str


def measure(
    device: torch.device | str, dtype: torch.dtype, operations: Iterable[Operation] | None = None
) -> list[OperationDtypes]:
    """Return a row for each operation under `torch.autocast(device, dtype)`, in their order.

    An operation that this version lacks is left out; one that raises has a row. It takes 0.1 s on a CPU and leaves
    random numbers, autocast's cache and all modes as they were.
    Raises: ValueError where autocast is off all the same: a dtype that it does not take, or a GPU that is not there.
    """
    device = torch.device(device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with _undisturbed(device), torch.autocast(device.type, dtype=dtype):
            if not torch.is_autocast_enabled(device.type):
                raise ValueError(f"autocast({device.type!r}, {dtype}) stays off on this machine")
            return _rows(OPERATIONS if operations is None else operations, device, dtype)


def ask_without_gpu(dtype: torch.dtype, operations: Iterable[Operation] | None = None) -> list[OperationDtypes]:
    """Return the rows of CUDA on a machine that has none: tensors without data go through torch's own dispatcher.

    That tells which casts this version of torch makes; no kernel runs, so `of_mixed` may show a dtype where the kernel
    would raise. Where there is no GPU, operations that need one even for tensors without data are left out.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    log = logging.getLogger("torch._subclasses.fake_tensor")  # reports each call that raises, which is a row here
    level, before = log.level, (torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"))
    try:
        log.setLevel(logging.CRITICAL)
        torch.set_autocast_enabled("cuda", True)  # torch.autocast("cuda") would stay off without a GPU
        torch.set_autocast_dtype("cuda", dtype)
        with FakeTensorMode(), torch.no_grad():
            rows = _rows(OPERATIONS if operations is None else operations, torch.device("cuda"), dtype)
    finally:
        log.setLevel(level)
        torch.set_autocast_enabled("cuda", before[0])
        torch.set_autocast_dtype("cuda", before[1])
    return [row for row in rows if row.rule != ERROR or documented(row.name, "cuda") == ERROR]


def find_differences(rows: Iterable[OperationDtypes], device: str = "cpu") -> list[RuleDifference]:
    """Return the rows whose rule is not the documented one.

    What promotes without autocast's help, such as `add`, is in no list, and the documentation says so: an unlisted
    operation that promotes is no difference.
    """
    pairs = [(row, documented(row.name, device)) for row in rows]
    return [
        RuleDifference(row.name, row.rule, rule)
        for row, rule in pairs
        if row.rule != rule and (row.rule, rule) != (PROMOTE, FOLLOWS)
    ]


@contextlib.contextmanager
def _undisturbed(device: torch.device) -> Iterator[None]:
    """Keep the random state, and build no graph."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), torch.no_grad():
        yield


def _rows(operations: Iterable[Operation], device: torch.device, dtype: torch.dtype) -> list[OperationDtypes]:
    rows = (_row(operation, device, dtype) for operation in operations)
    return [row for row in rows if row is not None]


def _row(operation: Operation, device: torch.device, dtype: torch.dtype) -> OperationDtypes | None:
    wide, messages, results, taken = torch.float32, [], [], 0
    for dtypes in ((wide,), (dtype,), (dtype, wide), (wide, dtype)):
        if len(dtypes) > taken > 0:
            break  # one floating input alone cannot be mixed
        inputs = Inputs(device, dtypes)
        try:
            results.append(_dtype(operation.call(inputs)))
        except AttributeError:
            return None  # this version has no such operation
        except Exception as error:  # whatever a kernel raises, the row says so
            messages.append(str(error).strip().splitlines()[0])
            results.append(ERROR)
        taken = max(taken, inputs.made)
    of_wide, of_narrow, *of_mixed = results
    rule = _rule(of_wide, of_narrow, of_mixed)
    return OperationDtypes(
        operation.name, operation.group, rule, of_wide, of_narrow, tuple(of_mixed), (messages or [""])[0]
    )


def _rule(of_wide: str, of_narrow: str, of_mixed: list[str]) -> str:
    if of_wide == ERROR:
        return ERROR
    if of_wide != "float32":
        return NARROW
    if of_narrow == "float32":
        return WIDE
    return PROMOTE if of_mixed and set(of_mixed) == {"float32"} else FOLLOWS


def _dtype(result) -> str:
    while not isinstance(result, torch.Tensor):
        result = result[0]
    return str(result.real.dtype if result.is_complex() else result.dtype).removeprefix("torch.")
