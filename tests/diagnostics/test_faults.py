"""Planted faults: each shows the symptom that it says, the hunter finds it, and the healthy twin has none."""

import math

import pytest

from utils.diagnostics import faults
from utils.diagnostics.faults import FAULTS, plant, run
from utils.diagnostics.nan_hunter import NanHunter
from utils.training.meters import LostUpdates

ATTENTION = "distilbert.transformer.layer.{}.attention"
FOUND = {  # stage, module, operation, where it becomes NaN, dtype
    "confident network": ("forward", "", "log", "mul", "bfloat16"),
    "epsilon of Adam": ("update", "distilbert.embeddings.word_embeddings.weight", "addcdiv_", None, "float16"),
    "mask of -1e9": ("forward", ATTENTION.format(0), "mul", "_softmax", "float16"),
    "bias of the keys": ("forward", ATTENTION.format(1), "bmm", "_softmax", "float16"),
    "twins in a batch": ("backward", "", "div", "mul", "float32"),
    "epsilon of a norm": ("forward", "model.layers.0.input_layernorm", "rsqrt", "mul", "float16"),
}
SILENT = {"clip before unscale": 60, "bfloat16 weights": 14, "stale scale": 16}  # steps after which it shows


def hunter_of(case, **how):
    return NanHunter(case.trainer.model, case.trainer.optimizer, scaler=case.trainer.scaler, **how)


def test_at_least_six_models_become_nan_and_every_fault_is_in_words():
    assert FOUND.keys() == FAULTS.keys() - SILENT.keys()
    assert SILENT.keys() == {name for name, fault in FAULTS.items() if fault.silent}
    assert len(FOUND) >= 6
    assert {fault.model for fault in FAULTS.values()} == {"DistilBERT", "LLaMA"}
    for name, fault in FAULTS.items():
        assert fault.name == name
        assert all(text.endswith(".") for text in (fault.symptom, fault.cause, fault.remedy))


@pytest.mark.parametrize("name", FOUND)
def test_hooks_name_the_module_and_operations_the_culprit_inside(name):
    stage, module, operation, then, dtype = FOUND[name]
    case = plant(name)
    hooks = hunter_of(case)
    log = run(case, hunter=hooks)
    assert hooks.first.module == module
    assert hooks.first.stage == (stage if name != "confident network" else "backward")  # a loss has no hook
    assert log.nan_step == (None if stage in ("backward", "update") else hooks.first.step)  # those show a step later
    case = plant(name)
    in_full = hunter_of(case, operations={hooks.first.step - 1, hooks.first.step})
    run(case, hunter=in_full)
    first = in_full.first
    assert (first.stage, first.module, first.operation, first.dtype) == (stage, module, operation, dtype)
    assert first.step == hooks.first.step
    assert then is None or first.nan[0] == then


@pytest.mark.parametrize("name", FAULTS)
def test_the_healthy_twin_is_healthy(name):
    case = plant(name, healthy=True)
    case.batches = case.batches[:3] + case.batches[-1:]
    hunter = hunter_of(case, operations=True)
    log = run(case, hunter=hunter)
    assert hunter.first is None
    assert all(map(math.isfinite, log.losses))


def last(log):
    return sum(log.losses[-8:]) / 8


@pytest.mark.parametrize("name", SILENT)
def test_a_silent_fault_learns_less_and_is_never_nan(name):
    ill, well = (plant(name, healthy=healthy) for healthy in (False, True))
    for case in (ill, well):
        del case.batches[SILENT[name] :]
    ill, well = run(ill), run(well)
    assert ill.nan_step is None
    assert last(ill) > last(well) + 0.1


def test_most_updates_of_bfloat16_weights_are_lost():
    case = plant("bfloat16 weights")
    case.batches = case.batches[:10]
    with LostUpdates(case.trainer.model, case.trainer.optimizer) as meter:
        run(case)
    assert meter.shares()["all"] > 0.5


def test_another_rate_is_the_one_that_the_schedule_ends_its_rise_at():
    schedule = plant("confident network", rate=1e-4).trainer.scheduler
    assert schedule.optimizer.param_groups[0]["max_lr"] == 1e-4
    assert plant("confident network").trainer.optimizer.param_groups[0]["max_lr"] == 2e-3


def test_an_unknown_fault_is_refused_by_the_known_names():
    with pytest.raises(ValueError, match="there are confident network"):
        faults.plant("gremlin")
