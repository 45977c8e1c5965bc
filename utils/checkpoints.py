"""Checkpoints without pickle: tensors as safetensors, everything else as JSON in the same file, written in one move.

A file in the pickle format can run code when it is read; this one can only hold numbers and text.
"""

import json
import os
import tempfile
from pathlib import Path

import torch

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
