"""A product's bytes and operations by counting them, its bound by comparing two times, and the published roofs."""

import dataclasses
import itertools

import pytest

from utils.cost.roofline import INPUT_BYTES, OUTPUT_BYTES, ROOFS, Gemm, Roof, of_device

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


@pytest.mark.parametrize("name", ROOFS)
def test_the_bound_is_the_slower_of_the_two_and_the_prediction_its_time(name):
    roof = ROOFS[name]
    for dtype in roof.peaks:
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
        ("predicted_ms", (Gemm(1, 1, 1),)),
    ],
)
def test_a_dtype_without_a_peak_is_refused(call, arguments):
    with pytest.raises(ValueError, match="T4 has no peak for 'bfloat16'; it has float64, float32, float16"):
        getattr(ROOFS["T4"], call)(*arguments, "bfloat16")


# What the documents print, with their own rounding: TFLOP/s, and GB/s last. "*" there means with sparsity, halved here.
PRINTED = {
    "V100 SXM2": {"float64": 7.8, "float32": 15.7, "float16": 125, "bandwidth": 900},
    "T4": {"float32": 8.1, "float16": 65, "bandwidth": 320},
    "A100 SXM 80 GB": {"float64": 19.5, "float32": 19.5, "tf32": 312 / 2, "bfloat16": 624 / 2, "bandwidth": 2039},
    "H100 SXM": {"float64": 67, "float32": 67, "tf32": 989 / 2, "float16": 1979 / 2, "float8": 3958 / 2},
    "H200 SXM": {"float64": 67, "tf32": 989 / 2, "bfloat16": 1979 / 2, "float8": 3958 / 2, "bandwidth": 4800},
    "L4": {"float32": 30.3, "tf32": 120 / 2, "float16": 242 / 2, "float8": 485 / 2, "bandwidth": 300},
    "RTX 4090": {"float32": 82.6, "float16": 330.4 / 2, "bfloat16": 330.4 / 2, "float8": 660.6 / 2, "bandwidth": 1008},
}


@pytest.mark.parametrize("name", ROOFS)
def test_the_roofs_are_what_the_documents_print(name):
    roof = ROOFS[name]
    found = roof.peaks | {"bandwidth": roof.bandwidth}
    printed = PRINTED[name]
    assert {key: found[key] for key in printed} == pytest.approx(printed, rel=2e-3)  # 66.9 is printed as 67
    assert set(roof.peaks) <= set(INPUT_BYTES)
    assert not roof.measured
    assert roof.source


@pytest.mark.parametrize(
    ("name", "multiprocessors", "gigahertz", "operations"),  # boost clock; operations of a multiprocessor in a clock
    [
        ("V100 SXM2", 80, 1.53, {"float64": 64, "float32": 128, "float16": 1024}),
        ("T4", 40, 1.59, {"float32": 128, "float16": 1024}),
        ("A100 SXM 80 GB", 108, 1.41, {"float64": 128, "float32": 128, "tf32": 1024, "bfloat16": 2048}),
        ("H100 SXM", 132, 1.83, {"tf32": 2048, "float16": 4096, "bfloat16": 4096, "float8": 8192}),
        ("H100 SXM", 132, 1.98, {"float64": 256, "float32": 256}),
        ("L4", 58, 2.04, {"float32": 256, "tf32": 512, "float16": 1024, "bfloat16": 1024, "float8": 2048}),
        ("RTX 4090", 128, 2.52, {"float32": 256, "tf32": 256, "float16": 512, "bfloat16": 512, "float8": 1024}),
    ],
)
def test_multiprocessors_times_clock_give_the_rates(name, multiprocessors, gigahertz, operations):
    rates = {dtype: multiprocessors * gigahertz * each / 1e3 for dtype, each in operations.items()}
    rel = 2e-4 if name == "H100 SXM" else 0.01  # its document prints four or five digits and a clock to the MHz
    assert {dtype: ROOFS[name].peaks[dtype] for dtype in rates} == pytest.approx(rates, rel=rel)


@pytest.mark.parametrize(
    ("name", "bits", "gigabits"),  # of the memory's bus, a second through each of its pins
    [("T4", 256, 10), ("L4", 192, 12.5), ("RTX 4090", 384, 21)],
)
def test_the_width_of_the_bus_gives_the_bandwidth(name, bits, gigabits):
    assert ROOFS[name].bandwidth == bits * gigabits / 8


def test_float64_is_as_fast_as_float32_on_an_a100_and_64_times_slower_on_a_consumer_card():
    peaks = ROOFS["A100 SXM 80 GB"].peaks
    assert peaks["float64"] == peaks["float32"] == 19.5
    for name in ("RTX 4090", "L4"):
        assert ROOFS[name].peaks["float32"] / ROOFS[name].peaks["float64"] == 64


def test_a_roof_says_what_it_is_when_it_is_changed():
    mine = dataclasses.replace(ROUND, peaks={"tf32": 2.0})
    assert mine.ridge("tf32") == 20
    assert mine.measured


@pytest.mark.parametrize(
    ("name", "roof"),
    [
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80 GB"),
        ("Tesla V100-SXM2-32GB", "V100 SXM2"),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA A100-SXM4-40GB", None),
        ("AMD EPYC", None),
    ],
)
def test_a_board_has_its_own_data_sheet_or_none(name, roof):
    assert of_device(name) is (ROOFS[roof] if roof else None)
