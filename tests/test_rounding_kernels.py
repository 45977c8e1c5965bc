"""What is stated for a compiler, run as it stands: the bits of the operations that are cheap one at a time."""

import pytest
import torch

from oracles import same_bits
from test_fake_quantize import all_regions_of_float32
from utils.formats import FORMATS
from utils.rounding_kernels import constants, eager, fused, plan, shape, without_cast

X = all_regions_of_float32()


@pytest.mark.parametrize("draws", [False, True], ids=["to nearest", "at random"])
@pytest.mark.parametrize("saturate", [True, False], ids=["saturating", "plain"])
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_the_form_for_a_compiler_gives_the_bits_of_the_eager_one(fmt, saturate, draws):
    chosen = without_cast(plan(fmt, torch.float32, saturate))
    x = X.to(chosen.carrier.dtype)
    random = torch.randint(-(2**31), 2**31, x.shape, dtype=torch.int32, generator=torch.Generator().manual_seed(2))
    draw = (lambda: random.clone()) if draws else None
    stated = fused(x, shape(chosen), constants(chosen, x.device), draw=draw)
    assert stated.dtype is chosen.carrier.dtype
    expected = eager(x, chosen, draw=draw)
    assert same_bits(stated.double(), expected.double()).all()
