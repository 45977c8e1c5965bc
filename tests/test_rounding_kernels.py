"""What is stated for a compiler, run as it stands: the bits of the operations that are cheap one at a time."""

import pytest
import torch

from oracles import same_bits
from test_fake_quantize import all_regions_of_float32
from utils.formats import FORMATS
from utils.rounding_kernels import find_form, make_constants, make_plan, round_eager, round_fused, without_cast

X = all_regions_of_float32()


@pytest.mark.parametrize("draws", [False, True], ids=["to nearest", "at random"])
@pytest.mark.parametrize("saturate", [True, False], ids=["saturating", "plain"])
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_the_form_for_a_compiler_gives_the_bits_of_the_eager_one(fmt, saturate, draws):
    plan = without_cast(make_plan(fmt, torch.float32, saturate))
    x = X.to(plan.carrier.dtype)
    random = torch.randint(-(2**31), 2**31, x.shape, dtype=torch.int32, generator=torch.Generator().manual_seed(2))
    draw = (lambda: random.clone()) if draws else None
    stated = round_fused(x, find_form(plan), make_constants(plan, x.device), draw=draw)
    assert stated.dtype is plan.carrier.dtype
    expected = round_eager(x, plan, draw=draw)
    assert same_bits(stated.double(), expected.double()).all()
