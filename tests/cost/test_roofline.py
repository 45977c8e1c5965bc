"""A product's bytes and operations by counting them, its bound by comparing two times, and the published roofs."""

import dataclasses
import itertools

import pytest

from utils.cost.cards import ROOFS
from utils.cost.roofline import INPUT_BYTES, OUTPUT_BYTES, Gemm, Roof

ROUND = Roof("round numbers", {"float32": 1.0, "float8": 4.0}, 100.0, "made up", measured=True)
SIZES = (1, 2, 7, 64, 1000)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (2, 3, 4), (5, 1, 3)])
def test_operations_and_bytes_are_those_of_three_loops(m, n, k):
    operations, read, written = 0, set(), set()
    for row, column, inner in itertools.product(range(m), range(n), range(k)):
        operations += 2  # a multiplication and an addition
        read |= {("a", row, inner), ("b", inner, column)}
        written.add((row, column))
    gemm = Gemm(m, n, k)
    assert gemm.operations == operations
    assert gemm.moved(2, 4) == 2 * len(read) + 4 * len(written)
    assert gemm.intensity(2, 4) == operations / (2 * len(read) + 4 * len(written))


def test_a_square_has_an_intensity_of_a_third_of_its_width_in_16_bits():
    assert Gemm(300, 300, 300).intensity(2, 2) == 100  # 2 n**3 / (3 * 2 n**2)


def test_a_vector_times_a_matrix_has_an_intensity_of_about_one_in_16_bits():
    assert 0.99 < Gemm(1, 4096, 4096).intensity(2, 2) < 1


@pytest.mark.parametrize(("m", "n", "k"), [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
def test_an_empty_product_is_refused(m, n, k):
    with pytest.raises(ValueError, match=r"is empty; sizes begin at 1"):
        Gemm(m, n, k)


def test_the_ridge_is_where_both_times_are_equal():
    assert ROUND.ridge("float32") == 10  # 1e12 / 100e9
    gemm = Gemm(60, 60, 60)  # 2 * 60**3 / (3 * 4 * 60**2) = 10
    assert ROUND.intensity(gemm, "float32") == 10
    assert ROUND.bound(gemm, "float32") == "compute"
    assert ROUND.bound(Gemm(59, 60, 60), "float32") == "memory"
    assert ROUND.predicted_ms(gemm, "float32") == pytest.approx(2 * 60**3 / 1e12 * 1e3)
    assert ROUND.predicted_ms(gemm, "float32") == pytest.approx(3 * 4 * 60**2 / 100e9 * 1e3)


def test_operations_and_bytes_take_milliseconds():
    assert ROUND.computing_ms(3e12, "float8") == 750  # of 4 TFLOP/s
    assert ROUND.moving_ms(50e9) == 500  # of 100 GB/s


@pytest.mark.parametrize("name", ROOFS)
def test_the_bound_is_the_slower_of_the_two_and_the_prediction_its_time(name):
    roof = ROOFS[name]
    for dtype in roof.peaks.keys() & INPUT_BYTES.keys():
        for m, n, k in itertools.product(SIZES, repeat=3):
            gemm = Gemm(m, n, k)
            computing = gemm.operations / roof.peaks[dtype] / 1e9
            moving = gemm.moved(INPUT_BYTES[dtype], OUTPUT_BYTES[dtype]) / roof.bandwidth / 1e6
            assert roof.bound(gemm, dtype) == ("compute" if computing >= moving else "memory")
            assert roof.predicted_ms(gemm, dtype) == pytest.approx(max(computing, moving))
            reached = gemm.operations / roof.predicted_ms(gemm, dtype) / 1e9
            assert roof.attainable(roof.intensity(gemm, dtype), dtype) == pytest.approx(reached)


def test_tf32_reads_float32_and_an_8_bit_product_gives_16_bits():
    gemm = Gemm(8, 8, 8)
    roof = ROOFS["H200 SXM"]
    assert roof.intensity(gemm, "tf32") == roof.intensity(gemm, "float32") == 1024 / (3 * 64 * 4)
    assert roof.intensity(gemm, "float8") == 1024 / (64 + 64 + 2 * 64)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("peak", ()),
        ("ridge", ()),
        ("attainable", (1.5,)),
        ("intensity", (Gemm(9, 9, 9),)),
        ("bound", (Gemm(1, 1, 1),)),
        ("computing_ms", (2,)),
        ("predicted_ms", (Gemm(1, 1, 1),)),
    ],
)
def test_a_dtype_without_a_peak_is_refused(call, arguments):
    with pytest.raises(ValueError, match="T4 has no peak for 'bfloat16'; it has float64, float32, float16"):
        getattr(ROOFS["T4"], call)(*arguments, "bfloat16")
    with pytest.raises(ValueError, match="the bytes of float4 are not modelled; take one of float64, float32"):
        ROOFS["B200"].bound(Gemm(1, 1, 1), "float4")
    assert ROOFS["B200"].peak("float4") == 9000


def test_a_roof_says_what_it_is_when_it_is_changed():
    mine = dataclasses.replace(ROUND, peaks={"tf32": 2.0})
    assert mine.ridge("tf32") == 20
    assert mine.measured
