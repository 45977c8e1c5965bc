"""The picture of `practice/debugging` computes what it shows: one birth, in the loss, and echoes behind it."""

import math

import torch

from utils import plots
from utils.pictures.practice.debugging import STAGES, _step_values, birth_and_echoes


def shown():
    """The texts of the boxes, column by column."""
    (ax,) = birth_and_echoes().axes
    inside = [text for text in ax.texts if text.get_position()[0] > 4 and text.get_position()[1] < 0.5]
    texts = [text.get_text() for text in inside if text.get_text()]
    return [texts[start : start + len(STAGES)] for start in range(0, len(texts), len(STAGES))]


def test_only_one_place_is_the_birth():
    good, birth, echo = shown()
    assert not any("NaN" in text for text in good)
    assert [STAGES[n] for n, text in enumerate(birth) if "birth" in text] == ["loss"]
    assert birth[STAGES.index("loss")] == "birth: −∞"
    assert birth[STAGES.index("loss") + 1 :] == ["NaN", "NaN"]
    assert echo == ["NaN"] * len(STAGES)


def test_the_numbers_are_those_of_torch_in_bfloat16():
    weights = torch.tensor([1.5, 2.0, 2.0]).bfloat16().requires_grad_()
    z = weights[2] * (weights[1] * weights[0])
    p = torch.sigmoid(z)
    loss = -(1 * p.log() + 0 * (1 - p).log())
    loss.backward()
    values = dict(zip(STAGES, _step_values((1.5, 2.0, 2.0)), strict=True))
    assert values["layer 3"] == (z.item(),) == (6.0,)
    assert math.isclose(values["loss"][0], loss.item(), rel_tol=0.02)
    assert torch.allclose(torch.tensor(values["gradients"]), weights.grad.float(), rtol=0.02)


def test_the_next_step_is_nan_in_the_loss():
    *_, moved = _step_values((1.5, 2.0, 2.0))
    values = dict(zip(STAGES, _step_values(moved), strict=True))
    assert all(math.isfinite(value) for stage in STAGES[:4] for value in values[stage])
    assert math.isnan(values["loss"][0])


def test_what_is_not_finite_has_the_colour_of_a_fault():
    (ax,) = birth_and_echoes().axes
    assert {text.get_color() for text in ax.texts if "NaN" in text.get_text()} == {plots.SIGN}
