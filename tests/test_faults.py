"""Planted faults: each shows the symptom that it says, the hunter finds it, and the healthy twin has none."""

import math

import pytest

from utils import faults
from utils.faults import FAULTS, plant, run
from utils.nan_hunter import NanHunter
from utils.optimizers import LostUpdates

ATTENTION = "distilbert.transformer.layer.{}.attention"
FOUND = {  # stage, module, operation, where it becomes NaN, dtype
    "log of zero": ("forward", "", "log", "mul", "bfloat16"),
    "epsilon of Adam": ("update", "distilbert.embeddings.word_embeddings.weight", "addcdiv_", None, "float16"),
    "mask of -1e9": ("forward", ATTENTION.format(0), "mul", "_softmax", "float16"),
    "bias of the keys": ("forward", ATTENTION.format(1), "bmm", "_softmax", "float16"),
    "twins in a batch": ("backward", "", "div", "mul", "float32"),
    "epsilon of a norm": ("forward", "model.layers.0.input_layernorm", "rsqrt", "mul", "float16"),
}
SILENT = [name for name, fault in FAULTS.items() if fault.silent]


def hunter_of(case, **how):
    return NanHunter(case.trainer.model, case.trainer.optimizer, scaler=case.trainer.scaler, **how)


def test_at_least_six_models_become_nan_and_every_fault_is_in_words():
    assert FOUND.keys() == FAULTS.keys() - set(SILENT)
    assert len(FOUND) >= 6
    assert {fault.model for fault in FAULTS.values()} == {"DistilBERT", "LLaMA"}
    for name, fault in FAULTS.items():
        assert fault.name == name
        assert all(text.endswith(".") for text in (fault.symptom, fault.cause, fault.remedy))


@pytest.mark.parametrize("name", FOUND)
def test_the_hunter_finds_the_planted_operation(name):
    nan = run(plant(name)).nan_step
    stage, module, operation, then, dtype = FOUND[name]
    case = plant(name)
    hunter = hunter_of(case, operations={nan - 1, nan})
    run(case, hunter=hunter)
    first = hunter.first
    assert (first.stage, first.module, first.operation, first.dtype) == (stage, module, operation, dtype)
    assert then is None or first.nan[0] == then
    assert first.step == (nan - 1 if stage in ("backward", "update") else nan)


@pytest.mark.parametrize("name", FOUND)
def test_hooks_alone_name_the_same_module_and_step(name):
    case = plant(name)
    hunter = hunter_of(case)
    run(case, hunter=hunter)
    stage, module, *_ = FOUND[name]
    assert hunter.first.module == module
    assert hunter.first.stage == (stage if name != "log of zero" else "backward")  # a loss has no hook


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
    ill, well = run(plant(name)), run(plant(name, healthy=True))
    assert ill.nan_step is None
    assert last(ill) > last(well) + 0.1


def test_most_updates_of_bfloat16_weights_are_lost():
    case = plant("bfloat16 weights")
    case.batches = case.batches[:10]
    with LostUpdates(case.trainer.model, case.trainer.optimizer) as meter:
        run(case)
    assert meter.shares()["all"] > 0.5


def test_an_unknown_fault_is_refused_by_the_known_names():
    with pytest.raises(ValueError, match="there are log of zero"):
        faults.plant("gremlin")
