"""The torch twin against the NumPy reference, bit for bit."""

import numpy as np
import pytest
import torch

from utils.formats import (
    FLOAT4_E2M1FN,
    FLOAT6_E3M2FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    FLOAT32,
)
from utils.scaled import quantize
from utils.scaling import INT8, SCALINGS, Scaling, quantize_tiles

OTHERS = [
    Scaling("mx-ceil-log2", "", (1, 32), FLOAT8_E8M0FNU, "ceil-log2"),
    Scaling("powers of two in float32", "", (2, 8), FLOAT32, "ceil"),
    Scaling("E4M3 alone", "", (1, 16), FLOAT8_E4M3FN),
]
EVERY = [*SCALINGS.values(), *OTHERS]
SHAPES = [(5, 70), (130, 260), (2, 3, 33), (3,), (1, 1), (), (4, 0), (0, 4)]


def same_bits(reference: np.ndarray, twin: torch.Tensor) -> bool:
    ours, theirs = np.asarray(reference, np.float32), twin.numpy()
    bits = ours.view(np.uint32) == theirs.view(np.uint32)
    return ours.shape == theirs.shape and bool((bits | (np.isnan(ours) & np.isnan(theirs))).all())


def numbers(shape: tuple[int, ...], spread: str) -> np.ndarray:
    """Random float32: of all magnitudes, or all of one tiny or huge magnitude; infinities, NaN and -0 among them."""
    rng = np.random.default_rng(seed=[len(shape), *shape])
    exponent = {"all": rng.uniform(-150, 122, shape), "normal": 0.0, "tiny": -140.0, "huge": 120.0}[spread]
    x = (rng.standard_normal(shape) * np.exp2(exponent)).astype(np.float32)
    if x.size > 4:
        x.reshape(-1)[rng.choice(x.size, 4, replace=False)] = [np.nan, np.inf, -np.inf, -0.0]
    return x


@pytest.mark.parametrize("scaling", EVERY, ids=str)
@pytest.mark.parametrize("fmt", [FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT6_E3M2FN, FLOAT4_E2M1FN, INT8], ids=str)
def test_values_and_scales_have_the_bits_of_the_reference(fmt, scaling):
    for shape in SHAPES:
        for spread in ("all", "normal", "tiny", "huge"):
            x = numbers(shape, spread)
            reference, twin = quantize_tiles(x, fmt, scaling), quantize(torch.from_numpy(np.asarray(x)), fmt, scaling)
            for part in ("values", "scale", "scale_inv", "stored", "tensor_scale_inv"):
                assert same_bits(getattr(reference, part), getattr(twin, part)), (shape, spread, part)
            assert same_bits(reference.dequantize(), twin.dequantize()), (shape, spread)
