"""The cards of this book: what they multiply, how much memory they are sold with, and the rates of their data sheets.

    CARDS["A100"].support["bfloat16"]  # "tensor"
    CARDS["A100"].roof(40).bandwidth  # 1555, in GB/s
    fits(13 * 10**9, room_of("T4"))  # whether 13 GB leave a tenth of a T4

Rates are dense (half of those "with sparsity"), of the fastest unit that a matrix product can use, with float32 sums.
Decimal units: 1 TFLOP/s = 1e12 operations a second, 1 GB = 1e9 bytes. Importing this needs no torch.

Of the newer cards the vendors' tables were read where AMD prints them and, for NVIDIA's, in at least two places that
copy them independently: each `source` says which. A rate that no two of them agree on is left out.

What a roof has `reached` is the largest rate of a matrix product in torch, from a search over many shapes: Bekman,
Machine Learning Engineering, compute/accelerator, "Maximum Achievable Matmul FLOPS", commit 744d01e (August 2026).
"""

import math
from dataclasses import dataclass, replace

from utils.cost.roofline import Roof

GIGABYTE = 10**9

# What a device does with a product of two matrices of a type.
TENSOR, NATIVE, EMULATED, NONE = "tensor", "native", "emulated", "none"
TYPES = {
    "float64": "float64",
    "float32": "float32",
    "tf32": "TF32",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "float8": "FP8",
    "float6": "FP6",
    "float4": "FP4",
}

# Floating-point input types of the tensor cores. From 7.5 on: CUDA Programming Guide, appendix "Compute Capabilities",
# table "Input Data Types Supported by Tensor Core Acceleration" (v13.4, table 33); 7.0: the Volta white paper.
TENSOR_CORES = {
    "7.0": ("float16",),
    "7.5": ("float16",),
    "8.0": ("float64", "tf32", "bfloat16", "float16"),
    "8.6": ("tf32", "bfloat16", "float16"),
    "8.9": ("tf32", "bfloat16", "float16", "float8"),
    "9.0": ("float64", "tf32", "bfloat16", "float16", "float8"),
    "10.0": ("float64", "tf32", "bfloat16", "float16", "float8", "float6", "float4"),
    "10.3": ("tf32", "bfloat16", "float16", "float8", "float6", "float4"),
    "12.0": ("tf32", "bfloat16", "float16", "float8", "float6", "float4"),
    # AMD's matrix cores: ROCm documentation, "AMD Instinct MI300 series microarchitecture", table of the MI300X
    "gfx942": ("float64", "float32", "tf32", "bfloat16", "float16", "float8"),
}


@dataclass(frozen=True)
class Board:
    """One way in which a card is sold: its `memory` in GB, its data sheet where the book has one, and torch's name."""

    memory: int
    roof: Roof | None = None
    device: str = ""


@dataclass(frozen=True)
class Card:
    """A device: its compute capability ("" for a CPU, AMD's name of the architecture), its boards from the smallest
    memory up, and a remark.

    `products`: the 16-bit types that a CPU multiplies by an instruction of its own.
    """

    label: str
    capability: str
    boards: tuple[Board, ...]
    note: str = ""
    products: tuple[str, ...] = ()

    @property
    def architecture(self) -> str:
        """The architecture in words: "compute capability 8.0" or "gfx942"; "" for a CPU."""
        return self.capability if self.capability[:3] in ("", "gfx") else f"compute capability {self.capability}"

    @property
    def device(self) -> str:
        """The name of the device in torch."""
        return "cuda" if self.capability else "cpu"

    @property
    def memory(self) -> tuple[int, ...]:
        """The sizes of memory that the card is sold with, in GB."""
        return tuple(board.memory for board in self.boards)

    @property
    def support(self) -> dict[str, str]:
        """What it does with each of `TYPES`: `TENSOR`, `NATIVE`, `EMULATED` or `NONE`."""
        own = TENSOR_CORES.get(self.capability, ())
        always = {"float64", "float32", *self.products}
        # torch widens what a CPU lacks; on a GPU it does so for bfloat16 and refuses FP8
        widened = {"bfloat16", "float16"} if self.capability else {"bfloat16", "float16", "float8"}
        return {
            name: TENSOR if name in own else NATIVE if name in always else EMULATED if name in widened else NONE
            for name in TYPES
        }

    def roof(self, memory: float = 0) -> Roof | None:
        """Return the data sheet of the smallest board with `memory` GB, or of the largest board where none has so much.

        None where the book has no data sheet of that board.
        """
        return next((board for board in self.boards if board.memory >= memory), self.boards[-1]).roof


# A data sheet gives a board's rates, not a chip's: an H200 NVL or an H100 PCIe has other clocks and another memory.
_A100_PEAKS = {"float64": 19.5, "float32": 19.5, "tf32": 156, "float16": 312, "bfloat16": 312}
_H100_PEAKS = {"float64": 66.9, "float32": 66.9, "tf32": 494.7, "float16": 989.4, "bfloat16": 989.4, "float8": 1978.9}
_L4_PEAKS = {"float64": 30.3 / 64, "float32": 30.3, "tf32": 60, "float16": 121, "bfloat16": 121, "float8": 242.5}
_4090_PEAKS = {
    "float64": 82.6 / 64,
    "float32": 82.6,
    "tf32": 82.6,
    "float16": 165.2,
    "bfloat16": 165.2,
    "float8": 330.3,
}
_V100 = Roof(
    "V100 SXM2",
    {"float64": 7.8, "float32": 15.7, "float16": 125},
    900,
    "NVIDIA Tesla V100 data sheet (2018), column SXM2",
    notes="tensor cores for float16 alone",
)
_T4 = Roof(
    "T4",
    {"float64": 8.1 / 32, "float32": 8.1, "float16": 65},
    320,
    "NVIDIA T4, nvidia.com/en-us/data-center/tesla-t4; float64: NVIDIA Turing GPU Architecture (2018)",
    notes="tensor cores for float16 alone; float64 at a 32nd of float32's rate; an early data sheet has 300 GB/s",
)
_A100_80 = Roof(
    "A100 SXM 80 GB",
    _A100_PEAKS,
    2039,
    "NVIDIA A100 80GB data sheet 2188504 (May 2022), column SXM",
    notes="float64 on tensor cores; 9.7 without them",
    reached={"bfloat16": 271.2},
)
_A100_40 = replace(
    _A100_80,
    name="A100 SXM 40 GB",
    bandwidth=1555,
    source="NVIDIA A100 Tensor Core GPU Architecture (2020), the A100 of 40 GB",
    reached={},  # the board that was measured is not named
)
_H100 = Roof(
    "H100 SXM",
    _H100_PEAKS,
    3350,
    "NVIDIA H100 Tensor Core GPU Architecture (2022), column H100 SXM5; bandwidth: H100 data sheet, H100 SXM",
    notes="float64 on tensor cores; half of it without them",
    reached={"bfloat16": 794.5, "float8": 1402.6},
)
_H200 = Roof(
    "H200 SXM",
    _H100_PEAKS,
    4800,
    "NVIDIA H200 data sheet 3367400 (July 2024), column SXM; its rates are the H100's, rounded",
    notes="float64 on tensor cores; half of it without them",
    reached={"bfloat16": 794.5, "float8": 1453.4},
)
_L4 = Roof(
    "L4",
    _L4_PEAKS,
    300,
    "NVIDIA L4 data sheet (2023), half of its rates with sparsity; float64: NVIDIA Ada GPU Architecture (2023)",
    notes="float64 at a 64th of float32's rate",
)
_4090 = Roof(
    "RTX 4090",
    _4090_PEAKS,
    1008,
    "NVIDIA Ada GPU Architecture v2.02 (2023), appendix A, table 2",
    notes="float32 sums halve the rate of 16 and 8 bits; float64 at a 64th of float32's rate",
)
# One of the eight GPUs of an HGX B200 or HGX B300 (nvidia.com/en-us/data-center/hgx). Its table has, for all eight,
# 72 PFLOP/s in FP8, 36 in 16 bits and 18 in TF32, each "with sparsity", 600 TFLOP/s in float32, 296 and 10 TFLOP/s in
# float64, and for the B200 72 PFLOP/s in dense FP4: read in two copies, fibermall.com (p=17161) and
# glennklockwood.com/garden/processors. Memory and bandwidth: NVIDIA's data sheets DGX B200 (1,440 GB, 64 TB/s) and
# DGX B300, as github.com/stas00/ml-engineering has them. FP4 of the B300: the page has "144 PFLOPS | 108 PFLOPS",
# sparse and dense, in four copies of August 2026; older copies of it come to 12.6 and 13.1 for one GPU.
_BLACKWELL_PEAKS = {"float32": 75, "tf32": 1125, "float16": 2250, "bfloat16": 2250, "float8": 4500}
_HGX = "an eighth of the board, half of its rates with sparsity; bandwidth: data sheet DGX"
_NOT_STATED = "not stated for one GPU; seen in copies of NVIDIA's table"
_B200 = Roof(
    "B200",
    {"float64": 37, **_BLACKWELL_PEAKS, "float4": 9000},
    8000,
    f"NVIDIA HGX B200, {_HGX} B200",
    notes=_NOT_STATED,
    reached={"bfloat16": 1745.0, "float8": 3432.5},
)
_B300 = Roof(
    "B300",
    {"float64": 1.25, **_BLACKWELL_PEAKS, "float4": 13_500},
    8000,
    f"NVIDIA HGX B300, {_HGX} B300",
    notes=_NOT_STATED,
    reached={"bfloat16": 1769.0, "float8": 3353.3},
)
# The white paper's dense rates and bandwidth, with float32 sums, as several benchmarks quote it. That TF32 has half of
# bfloat16's rate was measured by github.com/xzwgit/gpu-flops-bench (126 and 254 TFLOP/s); the 64th is that of Ada.
_5090 = Roof(
    "RTX 5090",
    {
        "float64": 104.8 / 64,
        "float32": 104.8,
        "tf32": 209.5 / 2,
        "float16": 209.5,
        "bfloat16": 209.5,
        "float8": 419,
        "float4": 1676,
    },
    1792,
    "NVIDIA RTX Blackwell GPU Architecture (2025), as quoted by others",
    notes="float32 sums halve the rate of 16 and 8 bits; not stated: TF32, half of bfloat16's rate; float64, a 64th",
)
_MI300X = Roof(
    "MI300X",
    {
        "float64": 163.4,
        "float32": 163.4,
        "tf32": 653.7,
        "float16": 1307.4,
        "bfloat16": 1307.4,
        "float8": 2614.9,
    },
    5300,
    "AMD ROCm documentation, MI300 series microarchitecture, peak performance",
    notes="float64 on matrix cores; half of it without them",
    reached={"bfloat16": 668.4},
)
# Of these the book has the rates and the bandwidth alone, no other facts, so they are no `CARDS`. Read in the same
# book and in a second copy of each vendor's page. FP4 of the Rubin is that for training; 50 PFLOP/s, for inference,
# count sparsity.
_MI355X = Roof(
    "MI355X",
    {"float32": 157.3, "float16": 2500, "bfloat16": 2500, "float8": 5000, "float4": 10_100},
    8000,
    "AMD Instinct MI355X specifications, dense, as quoted by others",
    reached={"bfloat16": 1565.0},
)
_RUBIN = Roof(
    "Rubin",
    {"float32": 130, "tf32": 2000, "float16": 4000, "bfloat16": 4000, "float8": 17_500, "float4": 35_000},
    22_000,
    "NVIDIA Vera Rubin NVL72 specifications (2026), as quoted by others",
    notes="announced, not yet a data sheet of a card that is sold",
)
LATER_ROOFS = {roof.name: roof for roof in (_MI355X, _RUBIN)}

OWN_MEMORY = "The memory is that of your computer: type it in."
EMULATION = "torch.cuda.is_bf16_supported() answers True here, because it counts emulation."
FP8 = "It multiplies FP8 too, given a scale for each tensor: more than a recipe can say, and a later part of this book."
FP8_TO_FP4 = FP8.replace("FP8", "FP8, FP6 and FP4")
AMD = (
    'torch calls it "cuda" too, and AMD calls its tensor cores matrix cores. Its FP8 is of another kind: the largest'
    " E4M3 is 240, not 448."
)
# Memory: the vendors' data sheets, as sold. The second H100 is the NVL, the first of its name.
CARDS = {
    "CPU": Card("CPU without 16-bit products", "", (Board(16),), OWN_MEMORY),
    "CPU bf16": Card(
        "CPU with bfloat16 products (AVX512-BF16, AMX)",
        "",
        (Board(16),),
        f"{OWN_MEMORY} On a small model the casts can cost more than the products save: time it both ways.",
        products=("bfloat16",),
    ),
    "T4": Card("T4", "7.5", (Board(16, _T4, "Tesla T4"),), EMULATION),
    "V100": Card(
        "V100",
        "7.0",
        (Board(16, _V100, "Tesla V100-SXM2-16GB"), Board(32, _V100, "Tesla V100-SXM2-32GB")),
        EMULATION,
    ),
    "A100": Card(
        "A100",
        "8.0",
        (Board(40, _A100_40, "NVIDIA A100-SXM4-40GB"), Board(80, _A100_80, "NVIDIA A100-SXM4-80GB")),
    ),
    "RTX 3090": Card("RTX 3090", "8.6", (Board(24),)),
    "L4": Card("L4", "8.9", (Board(24, _L4, "NVIDIA L4"),), FP8),
    "RTX 4090": Card("RTX 4090", "8.9", (Board(24, _4090, "NVIDIA GeForce RTX 4090"),), FP8),
    "RTX 5080": Card("RTX 5080", "12.0", (Board(16),), FP8_TO_FP4),
    "RTX 5090": Card("RTX 5090", "12.0", (Board(32, _5090, "NVIDIA GeForce RTX 5090"),), FP8_TO_FP4),
    "H100": Card("H100", "9.0", (Board(80, _H100, "NVIDIA H100 80GB HBM3"), Board(94)), FP8),
    "H200": Card("H200", "9.0", (Board(141, _H200, "NVIDIA H200"),), FP8),
    "B200": Card("B200", "10.0", (Board(180, _B200, "NVIDIA B200"),), FP8_TO_FP4),
    "B300": Card("B300", "10.3", (Board(288, _B300, "NVIDIA B300 SXM6 AC"),), FP8_TO_FP4),
    "MI300X": Card("AMD MI300X", "gfx942", (Board(192, _MI300X, "AMD Instinct MI300X"),), AMD),
}
BOARDS = tuple(board for card in CARDS.values() for board in card.boards if board.roof)
ROOFS = {board.roof.name: board.roof for board in BOARDS}


def find_roof(name: str) -> Roof | None:
    """Return the data sheet of the device that torch calls `name`; None where there is none in `ROOFS`."""
    return next((board.roof for board in BOARDS if board.device == name), None)


def named(name: str) -> Card:
    """Return the card called `name`.

    Raises: ValueError with the known names when there is none.
    """
    if name not in CARDS:
        raise ValueError(f"card {name!r} is not one of {', '.join(CARDS)}")
    return CARDS[name]


def card_bytes(card: str, memory: float = 0) -> int:
    """Return the bytes of a card with `memory` GB, 0 for the least that it is sold with.

    Raises: ValueError for an unknown card, or a memory out of range.
    """
    if not (math.isfinite(memory) and 0 <= memory <= 10**6):
        raise ValueError(f"memory {memory} GB is not between 0 and 1,000,000")
    return round((memory or named(card).memory[0]) * GIGABYTE)


def usable(room: int) -> int:
    """Return how many of `room` bytes may be planned: nine tenths.

    The rest is for what no ledger counts: temporaries, workspaces, the gaps between the allocator's blocks and the CUDA
    context.
    """
    return 9 * room // 10


def fits(total: int, room: int) -> bool:
    """Return whether `total` bytes fit into `room` bytes with a tenth of it kept free, see `usable`."""
    return total <= usable(room)
