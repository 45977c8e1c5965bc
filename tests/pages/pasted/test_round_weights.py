"""What `practice/quantization` offers to paste: it rounds linear layers, and says so where there are none."""

import pytest
import torch
from torch import nn

import book_rules as rules
from utils.quantization import integers

PAGE = rules.BOOK / "practice" / "quantization.ipynb"


@pytest.fixture
def round_weights():
    names = {}
    exec(next(cell.source for cell in rules.read_page(PAGE) if cell.kind == "code"), names)
    return names["round_weights"]


@pytest.mark.parametrize(("bits", "group"), [(8, None), (4, None), (4, 32)])
def test_the_weights_are_those_of_the_module_and_the_head_stays(round_weights, bits, group):
    torch.manual_seed(0)
    model = nn.ModuleDict({"up": nn.Linear(64, 32), "lm_head": nn.Linear(64, 32)})
    up, head = (layer.weight.detach().clone() for layer in model.values())
    round_weights(model, bits, group)
    theirs = integers.quantize(up, bits, group).dequantize()
    assert torch.allclose(model["up"].weight, theirs, atol=1e-6)
    assert torch.equal(model["lm_head"].weight, head)


def test_a_model_in_which_nothing_would_be_rounded_is_refused(round_weights):
    with pytest.raises(AssertionError, match=r"no nn\.Linear"):
        round_weights(nn.Sequential(nn.Conv1d(8, 8, 1)))
