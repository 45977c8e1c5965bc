"""What a card multiplies and is sold with, what fits, and the published roofs, by the documents and the clocks."""

import pytest

from utils.cost.cards import (
    BOARDS,
    CARDS,
    LATER_ROOFS,
    ROOFS,
    TENSOR,
    TENSOR_CORES,
    card_bytes,
    find_roof,
    fits,
    named,
    usable,
)
from utils.cost.roofline import INPUT_BYTES

# What the documents print, with their own rounding: TFLOP/s, and GB/s last. "*" there means with sparsity, halved here.
PRINTED = {
    "V100 SXM2": {"float64": 7.8, "float32": 15.7, "float16": 125, "bandwidth": 900},
    "T4": {"float32": 8.1, "float16": 65, "bandwidth": 320},
    "A100 SXM 80 GB": {"float64": 19.5, "float32": 19.5, "tf32": 312 / 2, "bfloat16": 624 / 2, "bandwidth": 2039},
    "A100 SXM 40 GB": {"float64": 19.5, "tf32": 312 / 2, "bfloat16": 624 / 2, "bandwidth": 1555},
    "H100 SXM": {"float64": 67, "float32": 67, "tf32": 989 / 2, "float16": 1979 / 2, "float8": 3958 / 2},
    "H200 SXM": {"float64": 67, "tf32": 989 / 2, "bfloat16": 1979 / 2, "float8": 3958 / 2, "bandwidth": 4800},
    "L4": {"float32": 30.3, "tf32": 120 / 2, "float16": 242 / 2, "float8": 485 / 2, "bandwidth": 300},
    # The HGX boards of eight: PFLOP/s, with sparsity from TF32 to FP8; FP4 is dense
    "B200": {
        **{
            "float64": 296 / 8,
            "float32": 600 / 8,
            "tf32": 18_000 / 16,
            "float16": 36_000 / 16,
            "bfloat16": 36_000 / 16,
        },
        **{"float8": 72_000 / 16, "float4": 72_000 / 8, "bandwidth": 64_000 / 8},
    },
    "B300": {
        **{"float64": 10 / 8, "float32": 600 / 8, "tf32": 18_000 / 16, "float16": 36_000 / 16, "bfloat16": 36_000 / 16},
        **{"float8": 72_000 / 16, "float4": 108_000 / 8, "bandwidth": 8_000},
    },
    "RTX 5090": {"float32": 104.8, "float16": 419 / 2, "float8": 838 / 2, "float4": 3_352 / 2, "bandwidth": 1_792},
    "MI300X": {
        **{"float64": 163.4, "float32": 163.4, "tf32": 653.7, "float16": 1307.4, "bfloat16": 1307.4},
        **{"float8": 2614.9, "bandwidth": 5_300},
    },
    "RTX 4090": {"float32": 82.6, "float16": 330.4 / 2, "bfloat16": 330.4 / 2, "float8": 660.6 / 2, "bandwidth": 1008},
}


@pytest.mark.parametrize("name", ROOFS)
def test_the_roofs_are_what_the_documents_print(name):
    roof = ROOFS[name]
    found = roof.peaks | {"bandwidth": roof.bandwidth}
    printed = PRINTED[name]
    assert {key: found[key] for key in printed} == pytest.approx(printed, rel=2e-3)  # 66.9 is printed as 67
    assert set(roof.peaks) <= set(INPUT_BYTES) | {"float4"}
    assert not roof.measured
    assert roof.source


def test_no_product_is_faster_than_its_data_sheet_and_each_type_of_one_card_doubles_the_last():
    for roof in (*ROOFS.values(), *LATER_ROOFS.values()):
        assert all(0.5 < rate / roof.peak(dtype) < 0.9 for dtype, rate in roof.reached.items())
    assert not set(LATER_ROOFS) & set(ROOFS)
    sixteen, eight, four = (LATER_ROOFS["MI355X"].peak(kind) for kind in ("bfloat16", "float8", "float4"))
    assert (eight / sixteen, four / eight) == pytest.approx((2, 2), rel=0.02)
    assert LATER_ROOFS["Rubin"].peak("float4") == 2 * LATER_ROOFS["Rubin"].peak("float8")


@pytest.mark.parametrize(
    ("name", "multiprocessors", "gigahertz", "operations"),  # boost clock; operations of a multiprocessor in a clock
    [
        ("V100 SXM2", 80, 1.53, {"float64": 64, "float32": 128, "float16": 1024}),
        ("T4", 40, 1.59, {"float32": 128, "float16": 1024}),
        ("A100 SXM 80 GB", 108, 1.41, {"float64": 128, "float32": 128, "tf32": 1024, "bfloat16": 2048}),
        ("H100 SXM", 132, 1.83, {"tf32": 2048, "float16": 4096, "bfloat16": 4096, "float8": 8192}),
        ("H100 SXM", 132, 1.98, {"float64": 256, "float32": 256}),
        ("L4", 58, 2.04, {"float32": 256, "tf32": 512, "float16": 1024, "bfloat16": 1024, "float8": 2048}),
        ("RTX 5090", 170, 2.407, {"float32": 256, "tf32": 256, "float16": 512, "float8": 1024, "float4": 4096}),
        # compute units, and "FLOPS/clock/CU" of AMD's own table
        ("MI300X", 304, 2.1, {"float64": 256, "float32": 256, "tf32": 1024, "float16": 2048, "float8": 4096}),
        ("RTX 4090", 128, 2.52, {"float32": 256, "tf32": 256, "float16": 512, "bfloat16": 512, "float8": 1024}),
    ],
)
def test_multiprocessors_times_clock_give_the_rates(name, multiprocessors, gigahertz, operations):
    rates = {dtype: multiprocessors * gigahertz * each / 1e3 for dtype, each in operations.items()}
    rel = 2e-4 if name == "H100 SXM" else 0.01  # its document prints four or five digits and a clock to the MHz
    assert {dtype: ROOFS[name].peaks[dtype] for dtype in rates} == pytest.approx(rates, rel=rel)


@pytest.mark.parametrize(
    ("name", "bits", "gigabits"),  # of the memory's bus, a second through each of its pins
    [("T4", 256, 10), ("L4", 192, 12.5), ("RTX 4090", 384, 21), ("RTX 5090", 512, 28)],
)
def test_the_width_of_the_bus_gives_the_bandwidth(name, bits, gigabits):
    assert ROOFS[name].bandwidth == bits * gigabits / 8


def test_float64_is_as_fast_as_float32_on_an_a100_and_64_times_slower_on_a_consumer_card():
    peaks = ROOFS["A100 SXM 80 GB"].peaks
    assert peaks["float64"] == peaks["float32"] == 19.5
    for name in ("RTX 5090", "RTX 4090", "L4"):
        assert ROOFS[name].peaks["float32"] / ROOFS[name].peaks["float64"] == 64


@pytest.mark.parametrize(
    ("name", "roof"),
    [
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80 GB"),
        ("Tesla V100-SXM2-32GB", "V100 SXM2"),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA A100-SXM4-40GB", "A100 SXM 40 GB"),
        ("", None),
        ("AMD EPYC", None),
        ("NVIDIA B300 SXM6 AC", "B300"),
        ("AMD Instinct MI300X", "MI300X"),
    ],
)
def test_a_board_has_its_own_data_sheet_or_none(name, roof):
    assert find_roof(name) is (ROOFS[roof] if roof else None)


def test_a_card_takes_the_data_sheet_of_the_board_with_its_memory():
    a100 = CARDS["A100"]
    assert [a100.roof(memory).bandwidth for memory in (0, 40, 40.5, 80, 1_000)] == [1555, 1555, 2039, 2039, 2039]
    assert CARDS["H100"].roof(80) is ROOFS["H100 SXM"]
    assert CARDS["H100"].roof(94) is None  # the NVL has another memory
    assert CARDS["RTX 5080"].roof() is CARDS["CPU"].roof() is None


def test_every_roof_belongs_to_one_card_and_every_board_to_one_name_of_torch():
    for name, roof in ROOFS.items():
        owners = [card for card, row in CARDS.items() if roof in [board.roof for board in row.boards]]
        assert len(owners) == 1, name
        assert name.startswith(owners[0])
    devices = [board.device for board in BOARDS]
    assert len(devices) == len(set(devices))
    assert all(devices)


@pytest.mark.parametrize("card", CARDS)
def test_the_boards_of_a_card_stand_from_the_smallest_up(card):
    assert list(CARDS[card].memory) == sorted(set(CARDS[card].memory))
    assert card_bytes(card) == CARDS[card].memory[0] * 10**9


@pytest.mark.parametrize(("room", "most"), [(10, 9), (19, 17), (16 * 10**9, 14_400_000_000), (0, 0)])
def test_a_tenth_of_the_memory_stays_free(room, most):
    assert usable(room) == most
    assert fits(most, room)
    assert not fits(most + 1, room)


def test_the_architecture_of_a_card_is_said_in_words():
    assert CARDS["B300"].architecture == "compute capability 10.3"
    assert CARDS["MI300X"].architecture == "gfx942"
    assert CARDS["CPU"].architecture == ""
    assert CARDS["MI300X"].device == "cuda"  # as torch's build for ROCm calls it
    assert set(TENSOR_CORES) >= {card.capability for card in CARDS.values() if card.capability}


def test_what_is_no_card_and_no_memory_is_refused():
    with pytest.raises(ValueError, match="card 'P100' is not one of CPU"):
        named("P100")
    with pytest.raises(ValueError, match="card 'P100'"):
        card_bytes("P100")
    for wrong in (-1, float("nan"), float("inf"), 10**7):
        with pytest.raises(ValueError, match=f"memory {wrong} GB is not between"):
            card_bytes("T4", wrong)


@pytest.mark.parametrize("name", [name for name, card in CARDS.items() if card.capability])
def test_a_card_supports_what_the_grid_of_the_machine_asks_for(name):
    """`utils.machine.narrow_matmul` draws the same lines: float16 from 5.3, bfloat16 from 8.0, FP8 from 8.9."""
    card = CARDS[name]
    major, minor = (9, 4) if card.capability == "gfx942" else map(int, card.capability.split("."))
    assert card.support["float16"] == TENSOR
    assert (card.support["bfloat16"] == TENSOR) == ((major, minor) >= (8, 0))
    assert (card.support["float8"] == TENSOR) == ((major, minor) >= (8, 9))
    assert (card.support["tf32"] == TENSOR) == ((major, minor) >= (8, 0))


# CUDA Programming Guide, table "Input Data Types Supported by Tensor Core Acceleration per Compute Capability"
GUIDE = """
     FP64 TF32 BF16 FP16 FP8 FP6 FP4
7.5  -    -    -    yes  -   -   -
8.0  yes  yes  yes  yes  -   -   -
8.6  -    yes  yes  yes  -   -   -
8.9  -    yes  yes  yes  yes -   -
9.0  yes  yes  yes  yes  yes -   -
10.0 yes  yes  yes  yes  yes yes yes
10.3 -    yes  yes  yes  yes yes yes
12.0 -    yes  yes  yes  yes yes yes
"""


@pytest.mark.parametrize("line", GUIDE.strip("\n").splitlines()[1:], ids=lambda line: line.split()[0])
def test_tensor_cores_take_the_types_of_nvidias_table(line):
    capability, *marks = line.split()
    columns = ["float64", "tf32", "bfloat16", "float16", "float8", "float6", "float4"]
    wanted = tuple(name for name, mark in zip(columns, marks, strict=True) if mark == "yes")
    assert TENSOR_CORES[capability] == wanted


def test_on_a_geforce_tf32_has_the_peak_of_float32():
    """Tensor cores and TF32 says so of these two."""
    for name in ("RTX 4090", "RTX 5090"):
        assert ROOFS[name].peak("tf32") == pytest.approx(ROOFS[name].peak("float32"), rel=1e-3)
    assert ROOFS["L4"].peak("tf32") > 1.9 * ROOFS["L4"].peak("float32")
