"""The Hadamard rotation: orthonormal, invisible to products, and a spreader of outliers."""

import numpy as np
import pytest

from utils.formats import FLOAT4_E2M1FN
from utils.quantization.rotation import hadamard, rotate
from utils.scaling import SCALINGS, quantize_tiles


@pytest.mark.parametrize("n", [1, 2, 4, 16, 64])
def test_the_matrix_is_symmetric_and_its_own_inverse(n):
    h = hadamard(n)
    assert h.shape == (n, n)
    assert (np.abs(h) == 1 / np.sqrt(n)).all()
    assert (h == h.T).all()
    np.testing.assert_allclose(h @ h, np.eye(n), atol=1e-15)


@pytest.mark.parametrize("n", [0, 3, 12, -4])
def test_a_size_that_is_no_power_of_two_is_refused(n):
    with pytest.raises(ValueError, match=f"n {n} is not a power of two"):
        hadamard(n)


def test_small_whole_numbers_rotate_exactly():
    assert rotate([1.0, 1.0, 1.0, 1.0], 4).tolist() == [2, 0, 0, 0]
    assert rotate([8.0, 0, 0, 0], 4).tolist() == [4, 4, 4, 4]
    assert rotate([8.0, 0, 0, 0], 4, signs=[-1, 1, 1, 1]).tolist() == [-4, -4, -4, -4]


@pytest.mark.parametrize("random_signs", [False, True])
def test_a_product_is_left_as_it_is(random_signs):
    rng = np.random.default_rng(seed=1)
    a, b = rng.standard_normal((5, 64)), rng.standard_normal((7, 64))
    signs = rng.choice([-1, 1], 16) if random_signs else None
    turned = rotate(a, signs=signs) @ rotate(b, signs=signs).T
    np.testing.assert_allclose(turned, a @ b.T, rtol=0, atol=1e-13)
    assert not np.allclose(rotate(a, signs=signs) @ b.T, a @ b.T, atol=0.1)  # both factors, or none


def test_an_outlier_is_spread_over_its_block():
    x = np.zeros((3, 32))
    x[1, 20] = 40.0
    turned = rotate(x)
    assert (np.abs(turned[1, 16:]) == 10.0).all()  # 40 / sqrt(16)
    assert np.count_nonzero(turned) == 16


@pytest.mark.parametrize(("name", "least", "most"), [("tensor", 0.2, 0.5), ("mx", 0.7, 0.95), ("nvfp4", 1.0, 1.15)])
def test_with_heavy_tails_it_helps_the_coarser_scales_and_not_nvfp4(name, least, most):
    x = np.random.default_rng(seed=2).standard_t(3, (64, 256))

    def error(values):
        y = quantize_tiles(values, FLOAT4_E2M1FN, SCALINGS[name]).dequantize()
        return np.linalg.norm(y - values) / np.linalg.norm(values)

    assert least < error(rotate(x)) / error(x) < most


def test_blocks_that_do_not_fill_the_axis_are_refused():
    with pytest.raises(ValueError, match="blocks of 16 do not fill the last axis"):
        rotate(np.ones((2, 40)))
