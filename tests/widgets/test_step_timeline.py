"""StepTimeline in Python: names and numbers are checked, a static form lists the step; and what it claims of torch."""

import html
import math
import re

import pytest
import torch
from torch import nn

from tests.page_states import states_in
from utils.widgets.step_timeline import BLOCKS, BREAKS, RECIPES, STEP, StepTimeline


def test_it_starts_at_the_first_block_of_16_mixed():
    assert StepTimeline().book_state() == {
        "recipe": "16-mixed",
        "overflow": False,
        "accumulate": False,
        "clip": True,
        "broken": "",
        "block": "zero",
        "norm": "0.5",
        "scale": "65536",
        "max_norm": "1",
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(recipe="half"), "recipe 'half' is not one of '32-true', "),
        (dict(block="eval"), "block 'eval' is not one of 'zero', "),
        (dict(broken="all"), "broken 'all' is not one of '', 'clip_first', "),
        (dict(recipe="32-true", broken="no_scale"), "broken 'no_scale' shows only in 16-mixed, not in 32-true"),
        (dict(broken="clip_first", clip=False), "broken 'clip_first' needs clip=True"),
        (dict(norm="one"), "norm 'one' is not a number from 1e-12 to 1e12"),
        (dict(scale="0"), "scale '0' is not a number"),
        (dict(max_norm="-1"), "max_norm '-1' is not a number"),
        (dict(scale="inf"), "scale 'inf' is not a number"),
        (dict(scale="2^50"), "scale '2^50' is not a number"),
    ],
)
def test_what_the_page_could_not_show_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        StepTimeline(**arguments)


def test_every_break_and_block_can_be_shown():
    for recipe in RECIPES:
        for broken, needed in BREAKS.items():
            if needed in ("", recipe):
                assert StepTimeline(recipe, broken=broken).broken == broken
    assert [StepTimeline(block=block).block for block in BLOCKS] == list(BLOCKS)


def test_a_page_without_javascript_lists_the_step():
    text = StepTimeline().static_html()
    assert all(html.escape(line) in text and html.escape(what) in text for line, what in STEP)


def test_the_place_in_the_page_holds_the_state():
    data = StepTimeline(broken="always", overflow=True)._repr_mimebundle_()[0]["text/html"]
    assert data.startswith('<div class="mp-widget" data-mp-widget="step_timeline"')
    [state] = states_in(data)
    assert (state["broken"], state["overflow"]) == ("always", True)


# What the page says of torch


class Run:
    """A linear layer with AdamW and a GradScaler on the CPU; gradients are set by hand."""

    def __init__(self, dtype=torch.float32, scale=2.0**16):
        self.layer = nn.Linear(2, 1, bias=False, dtype=dtype)
        self.optimizer = torch.optim.AdamW(self.layer.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=scale)

    def backward(self, *gradient, scale=True):
        """Add a gradient to .grad, as backward does, times the scale."""
        loss = (self.layer.weight * torch.tensor([gradient], dtype=self.layer.weight.dtype)).sum()
        (self.scaler.scale(loss) if scale else loss).backward()

    @property
    def grad(self):
        return self.layer.weight.grad.flatten().tolist()

    @property
    def norm(self):
        return self.layer.weight.grad.norm().item()


def test_clipping_scaled_gradients_leaves_a_65536th_of_the_limit():
    run = Run()
    run.backward(0.3, 0.4)
    assert run.norm == pytest.approx(32768)
    nn.utils.clip_grad_norm_(run.layer.parameters(), 1.0)
    run.scaler.unscale_(run.optimizer)
    assert run.norm == pytest.approx(1 / 65536)
    assert run.norm / 0.5 == pytest.approx(3.05e-5, rel=1e-3)


def test_a_forgotten_zero_grad_is_hidden_by_unscale_until_a_gradient_overflows():
    run = Run()
    for _ in range(2):
        run.backward(0.5, 0.0)
        run.scaler.unscale_(run.optimizer)
        run.scaler.step(run.optimizer)
        run.scaler.update()
    assert run.grad == [0.5 + 0.5 / 65536, 0.0]
    run.backward(math.inf, 0.0)
    run.scaler.step(run.optimizer)
    run.scaler.update()
    for _ in range(19):
        run.backward(0.5, 0.0)
        run.scaler.step(run.optimizer)
        run.scaler.update()
    assert (run.grad[0], run.scaler.get_scale()) == (math.inf, 2.0**16 * 2.0**-20)


def test_without_a_scaler_a_forgotten_zero_grad_adds_up():
    run = Run()
    for _ in range(10):
        run.backward(0.5, 0.0, scale=False)
    assert run.norm == 5.0


@pytest.mark.parametrize(
    ("clip", "says"), [(True, r"unscale_\(\) is being called after step"), (False, r"step\(\) has")]
)
def test_a_forgotten_update_raises_in_the_next_step(clip, says):
    run = Run()

    def step():
        run.optimizer.zero_grad()
        run.backward(0.5, 0.0)
        if clip:
            run.scaler.unscale_(run.optimizer)
        run.scaler.step(run.optimizer)

    step()
    with pytest.raises(RuntimeError, match=says):
        step()


def test_a_forgotten_backward_raises_in_step():
    run = Run()
    run.scaler.scale(torch.tensor(1.0))
    with pytest.raises(AssertionError, match="No inf checks were recorded"):
        run.scaler.step(run.optimizer)


def test_the_scaler_refuses_float16_gradients():
    run = Run(torch.float16)
    run.backward(0.5, 0.0)
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        run.scaler.unscale_(run.optimizer)


def test_an_infinite_gradient_makes_nan_of_its_weight_where_nothing_looks():
    run = Run()
    run.backward(math.inf, 0.5, scale=False)
    run.optimizer.step()
    assert [math.isnan(w) for w in run.layer.weight.flatten().tolist()] == [True, False]


def test_clipping_an_infinite_norm_leaves_zeros_and_nan():
    run = Run()
    run.backward(math.inf, 0.5, scale=False)
    nn.utils.clip_grad_norm_(run.layer.parameters(), 1.0)
    assert (math.isnan(run.grad[0]), run.grad[1]) == (True, 0.0)


def test_half_the_smallest_float16_is_where_gradients_become_zero():
    assert torch.tensor([2.0**-25, 2.0**-25 * 1.001]).half().tolist() == [0.0, 2.0**-24]


def test_under_autocast_weights_and_gradients_stay_float32():
    for dtype in (torch.float16, torch.bfloat16):
        layer = nn.Linear(4, 4)
        with torch.autocast("cpu", dtype):
            out = layer(torch.ones(1, 4))
        out.float().sum().backward()
        assert (out.dtype, layer.weight.dtype, layer.weight.grad.dtype) == (dtype, torch.float32, torch.float32)
