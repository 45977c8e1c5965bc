"""Keep trained models in the cache: the same run is made once, whichever chapter asks for it first."""

import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from utils import records
from utils.exception_text import in_a_line
from utils.runs import cache
from utils.runs.experiment import Run, RunPlan, run, run_key
from utils.training.recipes import Recipe
from utils.workloads import models


@dataclass(frozen=True)
class TrainedModel:
    """A trained model on its device, in evaluation mode, with the record of its run; `cached`: not trained just now."""

    model: nn.Module
    record: records.Record
    cached: bool


def train_once(
    plan: RunPlan,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device,
    load: Callable[..., nn.Module],
) -> TrainedModel:
    """Return the model of a run, from the cache if the same run was made before.

    The same run: plan, recipe, seed, kind of device, texts, versions, and the source that the plan's module loads.
    `load(folder, dtype=...)` reads what `save_pretrained` wrote.
    Raises: ValueError for a recipe with FP8 layers: `save_pretrained` would write them as plain ones.
    """
    if recipe.float8:
        raise ValueError(f"a model trained in {recipe.name} is not kept: its FP8 layers would be lost; use run(...)")
    task, key = plan.task, run_key(plan, recipe, seed=seed, device=device)
    folder = cache.root() / f"{plan.name}-{recipe.name}-{task.size}-{task.texts.name}-seed{seed}-{key}"
    cached = _read_cached(folder, lambda: load(folder, dtype=recipe.weights))
    if cached:
        model, record = cached
    else:
        finished = run(plan, recipe, device=device, seed=seed)
        model, record = finished.model, finished.record
        try:
            cache.keep(folder, lambda new_folder: _write(new_folder, finished))
        except OSError as error:
            warnings.warn(f"the trained model is not kept, {cache.root()}: {error.strerror}", stacklevel=3)
    models.fit_attention(model, device)
    return TrainedModel(model.to(device).eval(), record, cached=cached is not None)


def _read_cached(folder: Path, load: Callable[[], nn.Module]) -> tuple[nn.Module, records.Record] | None:
    """Return the model and its record, None if they are not there; remove a damaged folder, with a warning."""
    if not folder.is_dir():
        return None
    try:
        return load(), records.load(folder / "run.json")
    except Exception as error:  # a damaged file fails in as many ways as there are libraries that read it
        shutil.rmtree(folder, ignore_errors=True)
        warnings.warn(f"{folder} is damaged, so its model is trained anew: {in_a_line(error)}", stacklevel=4)
        return None


def _write(folder: Path, finished: Run) -> None:
    with models.quiet():
        finished.model.save_pretrained(folder)
    records.save(finished.record, folder).rename(folder / "run.json")
