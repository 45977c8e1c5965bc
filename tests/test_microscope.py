"""The microscope finds the numbers that a model was built with, from its results alone, and claims nothing else."""

import numpy as np
import pytest
import torch

from utils.dot_products import matmul, pairwise_matmul
from utils.fake_quantize import fake_quantize
from utils.formats import BFLOAT16, FLOAT16, TF32
from utils.microscope import look
from utils.rounding import toward_positive, toward_zero
from utils.tensor_core import HOPPER_FP8, VOLTA, aligned_matmul, truncating_matmul

E4M3, HALF, BF16, SINGLE = torch.float8_e4m3fn, torch.float16, torch.bfloat16, torch.float32
NEAREST = {"rounding": "ties_to_even", "exact_sums": True}
CUT = {"rounding": "toward_zero", "exact_sums": False, "extra_bits": 0}
CHAIN = {"block": 1, "parts": 1, "run": None, "pairwise": False, "outer_precision": None}


def using(function, **arguments):
    return lambda a, b: function(a, b, **arguments)


def column_sums(a, b):
    """NumPy's sum over the first axis adds row after row, and its products are rounded to float32."""
    with np.errstate(over="ignore", invalid="ignore"):  # the range is tried out
        products = a.numpy().T[:, :, None] * b.numpy()[:, None, :]
        return torch.from_numpy(np.add.reduce(products, axis=0))


def row_sums(a, b):
    """NumPy's sum over a contiguous axis of up to 128 runs in 8 totals."""
    products = np.ascontiguousarray(a.float().numpy()[:, None, :] * b.float().numpy().T[None])
    return torch.from_numpy(products.sum(axis=2))


def fewer_input_bits(a, b, rounded):
    return matmul(rounded(a), rounded(b))


def to_tf32(x):
    return fake_quantize(x, TF32)


def cut_to_tf32(x):
    return (x.view(torch.int32) & -(1 << 13)).view(torch.float32)


MODELS = {
    "float16": (using(matmul, accumulator=FLOAT16), HALF, 32, {"precision": 11, "overflow": 16} | NEAREST | CHAIN),
    "bfloat16": (using(matmul, accumulator=BFLOAT16), BF16, 32, {"precision": 8, "overflow": 128} | NEAREST | CHAIN),
    "float32": (matmul, HALF, 32, {"precision": 24, "overflow": None} | NEAREST | CHAIN),
    "float32 of bfloat16": (matmul, BF16, 32, {"precision": 24, "overflow": 128, "smallest": -149} | NEAREST | CHAIN),
    "chunks of 8": (using(matmul, accumulator=FLOAT16, chunk=8), HALF, 32,
                    {"precision": 11, "block": 8, "parts": 1} | NEAREST),
    "float32, chunks of 2": (using(matmul, chunk=2), HALF, 16, {"precision": 24, "block": 2, "parts": 1} | NEAREST),
    "toward zero": (using(matmul, accumulator=BFLOAT16, rounding=toward_zero), BF16, 16,
                    {"precision": 8, "rounding": "toward_zero", "exact_sums": True}),
    "upward": (using(matmul, accumulator=BFLOAT16, rounding=toward_positive), BF16, 16,
               {"precision": 8, "rounding": "toward_positive", "exact_sums": True}),
    "pairwise": (using(pairwise_matmul, accumulator=BFLOAT16), HALF, 16,
                 {"precision": 8, "pairwise": True, "outer_precision": 8, "outer_rounding": "ties_to_even"} | NEAREST),
    "Volta": (VOLTA.matmul, HALF, 32, {"precision": 24, "block": 4, "parts": 1, "exact_products": True} | CUT),
    "Hopper's FP8, a model": (HOPPER_FP8.matmul, E4M3, 96, {"precision": 14, "block": 32, "parts": 1} | CUT),
    "aligned, promoted": (using(aligned_matmul, block=8, fraction_bits=10, promote=16), E4M3, 48,
                          {"precision": 11, "block": 8, "parts": 3, "run": 16, "outer_precision": 24,
                           "outer_rounding": "ties_to_even"} | CUT),
    "truncating": (using(truncating_matmul, bits=12, block=16), E4M3, 64,
                   {"precision": 12, "block": 16, "rounding": "toward_zero", "exact_sums": True}),
    "truncating, promoted": (using(truncating_matmul, bits=14, block=8, promote=16), HALF, 48,
                             {"precision": 14, "block": 8, "run": 16, "outer_precision": 24, "exact_sums": True}),
    "NumPy, row after row": (column_sums, SINGLE, 32, {"precision": 24, "exact_products": False, "product_bits": 24,
                                                          "product_rounding": "ties_to_even"} | CHAIN),
    "NumPy, 8 totals": (row_sums, HALF, 64, {"precision": 24, "parts": 8, "block": 1, "run": None} | NEAREST),
    "TF32": (using(fewer_input_bits, rounded=to_tf32), SINGLE, 16,
             {"factor_bits": 11, "factor_rounding": "ties_to_even", "exact_products": True, "precision": 24}),
    "TF32, cut": (using(fewer_input_bits, rounded=cut_to_tf32), SINGLE, 16,
                  {"factor_bits": 11, "factor_rounding": "toward_zero", "precision": 24}),
}  # fmt: skip


@pytest.mark.parametrize(("function", "dtype", "places", "built"), MODELS.values(), ids=MODELS)
def test_the_parameters_of_a_model_come_back(function, dtype, places, built):
    found = look(function, dtype=dtype, places=places, width=8)
    assert {name: getattr(found, name) for name in built} == built
    assert found.confirmed == (8, 8), found.unknown
    assert found.everywhere
    assert found.order is not None
