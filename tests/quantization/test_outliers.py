"""The numbers of FP8, INT8 and FP4 beside one growing outlier."""

import numpy as np
import pytest

from utils.quantization.outliers import ARMS, OUTLIERS, damage, sweep, with_outlier
from utils.runs import published

# `published` has the relative error of the rest, and for "E4M3 tensor" the share that became zero. They were measured
# with another draw, so what hangs on the largest values of a draw agrees to some percent only.


@pytest.fixture(scope="module")
def normal() -> np.ndarray:
    return np.random.default_rng(seed=1).standard_normal((128, 1024))


@pytest.fixture(scope="module")
def measured_here(normal):
    return sweep(normal)


@pytest.mark.parametrize("name", published.OUTLIERS)
def test_the_error_of_the_rest_is_the_one_that_was_measured(measured_here, name):
    here = [found.error for found in measured_here[name]]
    assert here == pytest.approx(
        published.OUTLIERS[name], rel=0.015 if name.startswith("E4M3") or name == "E2M1 1x16" else 0.08
    )


def test_an_outlier_beyond_ten_thousand_sends_the_rest_to_zero_in_e4m3(measured_here):
    assert [found.zeros for found in measured_here["E4M3 tensor"]] == pytest.approx(
        published.OUTLIER_ZEROS, rel=0.02, abs=1e-3
    )


def test_int8_with_one_scale_loses_the_rest_to_an_outlier_that_e4m3_does_not_notice(measured_here):
    at = OUTLIERS.index(3e3)
    assert measured_here["INT8 tensor"][at].zeros == 1.0
    assert measured_here["E4M3 tensor"][at].error == pytest.approx(measured_here["E4M3 tensor"][0].error, rel=0.01)


def test_blocks_of_e4m3_scales_fall_below_their_normal_range_when_the_outlier_takes_the_tensors_scale(measured_here):
    usual, last = measured_here["NVFP4"][0].error, measured_here["NVFP4"][-1].error
    assert usual == pytest.approx(0.095, rel=0.015)
    assert last > 1.3 * usual


def test_the_rest_does_not_contain_the_outlier(normal):
    x = with_outlier(normal, 3e5, index=777)
    assert x.reshape(-1)[777] == np.float32(3e5)
    assert (np.delete(x, 777) == np.delete(normal.astype(np.float32), 777)).all()
    assert damage(normal, 3e5, ARMS["E2M1 tensor"], index=777) == (1.0, 1.0)
