"""Checkpoints without pickle: tensors as safetensors, everything else as JSON in the same file, written in one move.

A file in the pickle format can run code when it is read; this one can only hold numbers and text.
"""

import json
import os
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from utils.training.training_loop import History, Trainer

SUFFIX = ".safetensors"
_TENSOR = "tensor"  # {"tensor": name} stands in the JSON where the tensor stood


class Refused(ValueError):
    """A checkpoint that this run cannot go on from; the message says why and what to do."""


def save(path: Path, state: dict) -> None:
    """Write a nest of dicts, lists, numbers, texts, None and tensors; a reader finds the old file or the new one.

    No two tensors may share memory.
    Raises: OSError when it cannot be written, TypeError for a value that is neither JSON nor a tensor.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors: dict[str, torch.Tensor] = {}
    header = json.dumps(_without_tensors(state, tensors))
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=".tmp")
    os.close(handle)
    try:
        save_file(tensors, temporary, metadata={"state": header})
        os.replace(temporary, path)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def load(path: Path) -> dict:
    """Return what `save` wrote, its tensors on the CPU; keys are texts then, and tuples are lists.

    Raises: Refused when the file is broken.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
            return _with_tensors(json.loads(file.metadata()["state"]), tensors)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise Refused(f"the checkpoint {path.name} cannot be read ({error}); delete it to begin anew") from error


def _without_tensors(value, tensors: dict[str, torch.Tensor], name: str = ""):
    if isinstance(value, torch.Tensor):
        tensors[name] = value.detach().cpu().contiguous()
        return {_TENSOR: name}
    if isinstance(value, dict):
        return {str(key): _without_tensors(item, tensors, f"{name}/{key}".lstrip("/")) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_tensors(item, tensors, f"{name}/{place}") for place, item in enumerate(value)]
    return value


def _with_tensors(value, tensors: dict[str, torch.Tensor]):
    if isinstance(value, dict):
        if value.keys() == {_TENSOR}:
            return tensors[value[_TENSOR]]
        return {key: _with_tensors(item, tensors) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_tensors(item, tensors) for item in value]
    return value


@dataclass
class Clock:
    """How long a run took, over all its parts; `resumed_at` are the steps after which a new part began."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    resumed_at: list[int] = field(default_factory=list)

    def start(self) -> None:
        """Begin a part."""
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        """End a part, and add it."""
        self.seconds += time.perf_counter() - self._wall
        self.cpu_seconds += time.process_time() - self._cpu


@dataclass(frozen=True)
class CheckpointPlace:
    """Where one run leaves its checkpoint, every `every` steps; `key` is the same for the same run only.

    A path of None is nowhere: nothing is read or written.
    """

    path: Path | None
    key: str = ""
    every: int = 0

    def resume(self, trainer: Trainer) -> tuple[History, Clock]:
        """Return the trainer the state of the file, if there is one; return what happened before.

        Raises: Refused when the file is broken, or that of another run.
        """
        if self.path is None or not self.path.is_file():
            return History(), Clock()
        state = load(self.path)
        if state.get("key") != self.key:
            raise Refused(
                f"the checkpoint {self.path.name} is of other settings, texts, device or code than this run;"
                " delete it to begin anew, or name another folder"
            )
        trainer.load_state_dict(state["trainer"])
        history, clock = History(**state["history"]), Clock(**state["clock"])
        history.scales = [tuple(change) for change in history.scales]
        clock.resumed_at.append(history.steps)
        print(f"{self.path.stem}: goes on after step {history.steps} of {trainer.steps}", file=sys.stderr)
        return history, clock

    def save(self, trainer: Trainer, history: History, clock: Clock) -> None:
        """Write the checkpoint; where that fails, warn and let the run go on."""
        clock.stop()
        clock.start()
        state = {"trainer": trainer.state_dict(), "history": asdict(history), "clock": asdict(clock)}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            save(self.path, {"key": self.key, **state})
        except OSError as error:
            warnings.warn(f"no checkpoint after step {history.steps}: {error.strerror or error}", stacklevel=3)

    def clear(self) -> None:
        """Remove the file: the run is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
