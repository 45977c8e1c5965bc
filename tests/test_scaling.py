"""The reference of scaling: what is specified for every amax, and the numbers that the book states."""

import numpy as np
import pytest

from utils.formats import FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT32
from utils.scaling import INT8, SCALINGS, DelayedScaling, quantize_blocks, quantize_tiles, scale_from_amax


def relative_norm(y: np.ndarray, x: np.ndarray) -> float:
    return float(np.linalg.norm(y - x) / np.linalg.norm(x))


@pytest.mark.parametrize("fmt", [FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1FN, INT8], ids=str)
def test_an_amax_of_nothing_infinity_or_nan_gives_the_scale_1(fmt):
    for power_of_two in (False, True):
        assert scale_from_amax([0.0, np.inf, np.nan], fmt, power_of_two=power_of_two).tolist() == [1, 1, 1]


def test_amax_lands_on_the_largest_value():
    scale = scale_from_amax(3.5, FLOAT8_E4M3FN)
    assert (scale.dtype, float(scale)) == (np.float32, 128.0)


def test_the_shared_exponent_of_mx_costs_what_the_book_says():
    x = np.random.default_rng(seed=1).standard_normal((512, 1024))
    mx = relative_norm(quantize_blocks(x, FLOAT8_E4M3FN).dequantize(), x)
    exact = relative_norm(quantize_blocks(x, FLOAT8_E4M3FN, 32, FLOAT32).dequantize(), x)
    assert mx == pytest.approx(0.0293, rel=0.015)
    assert exact == pytest.approx(0.0240, rel=0.015)


@pytest.mark.parametrize("scaling", SCALINGS.values(), ids=str)
def test_every_scale_is_finite_whatever_the_values_are(scaling):
    for value in (0.0, 1e-45, 1e-38, 3.4e38, np.inf, np.nan):
        q = quantize_tiles(np.full((3, 40), value, np.float32), FLOAT8_E4M3FN, scaling)
        for scale in (q.scale, q.scale_inv):
            assert np.isfinite(scale).all()
            assert (scale > 0).all()


def test_a_spike_leaves_the_history_after_its_length():
    delayed = DelayedScaling(FLOAT8_E4M3FN, history=3)
    assert delayed.scale == 1
    assert [float(delayed.update(amax)) for amax in (1, 448, 1, 1, 1)] == [448, 1, 1, 1, 448]
