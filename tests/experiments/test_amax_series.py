"""The amaxes are those of the operands of each product, looking changes nothing, and a record gives them back."""

import math

import pytest
import torch
from torch import nn

from utils import distilbert, llama, records
from utils.experiments import amax_series
from utils.experiments.amax_series import (
    GRADIENTS,
    INPUTS,
    KINDS,
    WEIGHTS,
    AmaxSeries,
    find_jumps,
    list_recorded_layers,
)
from utils.runs import experiment
from utils.training import training_loop
from utils.training.recipes import find_recipe
from utils.workloads import data, models, review_task

CPU = torch.device("cpu")
TINY = review_task.ReviewSettings(
    train=40,
    validation=0,
    test=8,
    epochs=1,
    batch=8,
    max_length=32,
    schedule=training_loop.Schedule(learning_rate=1e-3),
    shape=models.DistilBertShape(
        width=16, layers=3, heads=2, hidden=32, positions=64, dropout=0.1, head_dropout=0.1, spread=0.05
    ),
)


@pytest.fixture(scope="module")
def plan():
    return distilbert.make_plan(review_task.prepare(data.generated_reviews("small"), settings=TINY))


class Scaler:
    get_scale = staticmethod(lambda: 1024.0)


@pytest.mark.parametrize("scaler", [None, Scaler()], ids=["plain", "scaled loss"])
def test_the_amaxes_are_those_of_the_three_operands_of_a_linear_layer(scaler):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    scale = scaler.get_scale() if scaler else 1.0
    expected = {kind: [] for kind in KINDS}
    with AmaxSeries(model, ["2"], scaler=scaler) as seen:
        for _ in range(3):
            x = torch.randn(5, 4)
            (scale * model(x).square().sum()).backward()
            with torch.no_grad():
                hidden = model[:2](x)
                expected[INPUTS].append(hidden.abs().max())
                expected[WEIGHTS].append(model[2].weight.abs().max())
                expected[GRADIENTS].append(2 * model(x).abs().max())  # of a sum of squares; no step of the series
                model[2].weight.add_(1)
    assert list(seen.series) == list(KINDS)
    for kind, values in expected.items():
        assert seen.series[kind] == {"2": pytest.approx([value.item() for value in values])}, kind
    model(torch.ones(1, 4)).sum().backward()
    assert len(seen.series[INPUTS]["2"]) == 3  # its hooks are gone


def test_what_is_not_finite_stays():
    model = nn.Sequential(nn.Linear(2, 2))
    with AmaxSeries(model, ["0"]) as seen:
        (model(torch.tensor([[math.inf, 1.0]])).sum() * math.inf).backward()
    assert seen.series[INPUTS]["0"] == [math.inf]
    assert seen.series[GRADIENTS]["0"] == [math.inf]


def test_a_name_that_is_no_linear_layer_is_answered_with_those_that_are():
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    with pytest.raises(ValueError, match="no linear layer '1'; the model has 0"):
        AmaxSeries(model, ["0", "1"])


@pytest.mark.parametrize(
    ("values", "history", "found"),
    [
        pytest.param([1.0, 1.0, 0.5, 1.0], 16, [], id="none above those before"),
        pytest.param([1.0, 3.0, 2.0, 6.0], 16, [(2, 3.0), (4, 2.0)], id="two, and how far above the largest"),
        pytest.param([4.0, 1.0, 1.0, 2.0], 2, [(4, 2.0)], id="what a short history has forgotten"),
        pytest.param([4.0, 1.0, 1.0, 2.0], 3, [], id="what a longer one remembers"),
        pytest.param([0.0, 1.0], 16, [(2, math.inf)], id="after zeros"),
        pytest.param([], 16, [], id="nothing"),
    ],
)
def test_a_jump_is_above_all_of_its_history(values, history, found):
    assert find_jumps(values, history=history) == found


def test_keys_attention_and_the_last_layer_of_the_first_and_last_block_are_chosen(plan):
    parts = ("attention.k_lin", "attention.out_lin", "ffn.lin2")
    blocks = [f"distilbert.transformer.layer.{block}.{part}" for block in (0, 2) for part in parts]
    assert list_recorded_layers(plan.task.new_model(0)) == blocks
    shape = models.LlamaShape(vocabulary=32, width=16, layers=2, heads=2, groups=2, hidden=32, positions=16, tied=True)
    parts = ("self_attn.k_proj", "self_attn.o_proj", "mlp.down_proj")
    assert list_recorded_layers(models.build_llama(shape)) == [
        f"model.layers.{block}.{part}" for block in (0, 1) for part in parts
    ]


def test_a_recorded_run_has_the_losses_of_the_usual_one_and_a_record_gives_its_amaxes_back(plan, tmp_path):
    made = amax_series.record_run(
        plan, find_recipe("32-true"), device=CPU, seed=1, shown="python -m utils.experiments.amax_series"
    )
    usual = experiment.run(distilbert.make_plan(plan.task), find_recipe("32-true"), device=CPU, seed=1).record
    assert made.samples["loss"] == pytest.approx([loss for _, loss in usual.samples["loss"]], rel=1e-3, abs=1e-4)
    loaded = records.load(records.save(made, tmp_path))
    assert loaded.name == "amax-distilbert-32-true-small-generated-cpu-seed1"
    found = amax_series.of_record(loaded)
    assert (found["model"], found["steps"], len(found["loss"])) == ("DistilBERT, 3 layers of width 16", 5, 5)
    assert [(each["kind"], each["name"]) for each in found["series"]] == [
        (kind, name) for kind in KINDS for name in list_recorded_layers(plan.task.new_model(0))
    ]
    assert all(len(each["values"]) == 5 and min(each["values"]) > 0 for each in found["series"])
    weight = plan.task.new_model(1).get_parameter(found["series"][6]["name"] + ".weight")
    assert found["series"][6]["values"][0] == pytest.approx(weight.abs().max().item(), rel=1e-3)
    with pytest.raises(ValueError, match="holds no amaxes; make one with python -m"):
        amax_series.of_record(usual)


def test_the_command_records_a_run_and_answers_mistakes_with_one_line(plan, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(amax_series, "make_plan", lambda model, *, size, folder: plan)
    assert amax_series.main(["--device", "cpu", "--recipe", "bf16-mixed", "--record", str(tmp_path)]) == 0
    (record,) = records.load_all(tmp_path)
    assert (record.experiment, record.recipe) == ("amax-distilbert", "bf16-mixed")
    shown = capsys.readouterr().out
    assert shown.count("\n") == 4 + 18
    assert "times at step" in shown
    assert amax_series.main(["--recipe", "fp17"]) == 2
    assert "unknown recipe 'fp17'" in capsys.readouterr().err


def test_both_models_have_a_plan_and_another_is_refused():
    assert amax_series.make_plan("llama", size="small").name == llama.NAME
    with pytest.raises(ValueError, match="unknown model 'gpt'; the known ones are distilbert, llama"):
        amax_series.make_plan("gpt", size="small")
