"""The picture of `training/autocast` puts each box into the lane of the dtype that torch gives it."""

import torch
from torch import nn

from utils.diagnostics.dtype_probe import CAST, DtypeProbe
from utils.pictures.training.autocast import LANES, _measured_dtypes, two_lanes

UPPER = ["input", "loss", "weight", "weight"]
LOWER = ["GELU", "linear", "linear"]


def lane(y):
    return min(LANES, key=lambda name: abs(LANES[name] - y))


def test_each_box_lies_in_the_lane_of_its_dtype():
    (ax,) = two_lanes().axes
    boxes = [(text.get_text(), lane(text.get_position()[1])) for text in ax.texts if text.get_text() in UPPER + LOWER]
    assert sorted(name for name, where in boxes if where == "float32") == UPPER
    assert sorted(name for name, where in boxes if where == "bfloat16") == LOWER
    shown = sorted((name.rstrip(" 12"), dtype) for name, dtype in _measured_dtypes().items() if "gradient" not in name)
    assert sorted(boxes) == shown


def test_the_gradients_come_back_in_float32():
    assert {dtype for name, dtype in _measured_dtypes().items() if "gradient" in name} == {"float32"}


def test_a_module_of_this_kind_computes_and_casts_as_drawn():
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.GELU(), nn.Linear(4, 4, bias=False))
    with DtypeProbe(model) as probe, torch.autocast("cpu", dtype=torch.bfloat16):
        nn.functional.mse_loss(model(torch.ones(2, 4)), torch.ones(2, 4))
    computed = [(step.op, step.dtype) for step in probe.steps if step.kind == "compute"]
    assert [dtype for _, dtype in computed] == ["bfloat16"] * 3 + ["float32"]
    casts = [step.dtype for step in probe.steps if step.kind == CAST]
    assert casts.count("bfloat16") == 3  # the input and two weights: the arrows that go down
    assert casts.count("float32") == 1  # what the loss gets: the arrow that goes up
