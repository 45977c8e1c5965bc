"""What the float16 recipe promises: resuming to the bit, the gradient of one batch, a schedule that skips too."""

import re

import pytest
import torch
from torch import nn

import recipe_scripts

U16 = 2.0**-11  # unit roundoff of float16


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return recipe_scripts.load("float16_loop")


def weights(model):
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def test_it_runs_as_it_stands_and_learns(tmp_path):
    done = recipe_scripts.run_as_shown("float16_loop", tmp_path)
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout)]
    assert len(losses) == 4
    assert losses[-1] < 0.75 * losses[0]


def test_a_run_in_two_parts_gives_the_bits_of_one(script, tmp_path):
    whole = weights(script.train())
    (tmp_path / script.CHECKPOINT).unlink()
    script.train(until=25)  # past a checkpoint: five steps are lost, and made again
    torch.manual_seed(99)
    torch.rand(7)
    assert torch.equal(weights(script.train()), whole)


def test_without_the_random_state_the_bits_would_be_others(script, tmp_path, monkeypatch):
    whole = weights(script.train())
    (tmp_path / script.CHECKPOINT).unlink()
    script.train(until=20)
    monkeypatch.setattr(torch, "set_rng_state", lambda state: None)
    assert not torch.equal(weights(script.train()), whole)  # dropout draws other masks


def test_the_micro_batches_give_the_gradient_of_one_batch(script, monkeypatch):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    monkeypatch.setattr(script, "make_model", lambda: model)
    start = {name: weight.clone() for name, weight in model.state_dict().items()}
    seen = []

    def look(parameters, most):
        seen.append(torch.cat([weight.grad.flatten() for weight in parameters]))
        return seen[-1].norm()

    monkeypatch.setattr(nn.utils, "clip_grad_norm_", look)
    script.train(until=1)
    model.load_state_dict(start)
    x, y = (torch.cat(parts) for parts in zip(*script.micro_batches(script.make_data(), 0), strict=True))
    wanted = torch.autograd.grad(nn.functional.cross_entropy(model(x), y), list(model.parameters()))
    wanted = torch.cat([gradient.flatten() for gradient in wanted])
    # two layers, forward and backward: at most some ten roundings stand between a weight and its gradient
    assert (seen[0] - wanted).norm() <= 10 * U16 * wanted.norm()


def test_a_skipped_step_leaves_the_weights_and_the_schedule(script, monkeypatch):
    class Eager(torch.amp.GradScaler):
        def __init__(self, device):
            super().__init__(device, init_scale=2.0**23)

    taken = []
    monkeypatch.setattr(torch.amp, "GradScaler", Eager)
    step = torch.optim.lr_scheduler.OneCycleLR.step
    monkeypatch.setattr(torch.optim.lr_scheduler.OneCycleLR, "step", lambda self: (taken.append(1), step(self))[1])
    script.train(until=10)
    state = torch.load(script.CHECKPOINT, weights_only=True)
    assert 0 < state["skipped"] < 10
    # the schedule takes one step of its own when it is made
    assert len(taken) - 1 == 10 - state["skipped"] == state["schedule"]["last_epoch"]
    assert state["scaler"]["scale"] == 2.0 ** (23 - state["skipped"])
    assert {int(moments["step"]) for moments in state["optimizer"]["state"].values()} == {10 - state["skipped"]}


def test_a_forward_pass_of_nan_stops_the_run_with_good_weights_in_the_checkpoint(script, monkeypatch):
    before = weights(script.train(until=10))
    x, y = script.make_data()
    monkeypatch.setattr(script, "make_data", lambda: (x * torch.nan, y))
    with pytest.raises(SystemExit, match="NaN or Inf in step 20: not saved"):
        script.train()
    script.SAVE_EVERY = 100
    with pytest.raises(SystemExit, match="no scale can help"):
        script.train()
    state = torch.load(script.CHECKPOINT, weights_only=True)
    assert (state["step"], state["skipped"]) == (10, 0)
    assert torch.equal(torch.cat([weight.flatten() for weight in state["model"].values()]), before)


@pytest.mark.gpu
def test_a_gpu_resumes_to_the_bit_too(script, tmp_path):
    test_a_run_in_two_parts_gives_the_bits_of_one(script, tmp_path)
