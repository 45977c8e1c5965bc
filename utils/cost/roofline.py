"""The roofline: what one matrix product can reach on a device, from its shape, its dtype and two numbers of the device.

    ROOFS["H200 SXM"].bound(Gemm(1, 4096, 4096), "bfloat16")  # "memory"

A product does its multiply-adds and moves its matrices; the slower of the two bounds its time (Williams, Waterman and
Patterson 2009, doi 10.1145/1498765.1498785). The model is an ideal: each matrix moves once, and arithmetic and moving
overlap. It knows nothing of odd sizes, tiles, caches and launches; what they cost is measured, not modelled.

The roofs of `ROOFS` are data sheets: dense rates (half of those "with sparsity") of the fastest unit that a matrix
product can use, float32 sums, decimal units (1 TFLOP/s = 1e12 operations a second, 1 GB/s = 1e9 bytes a second).
"""

from dataclasses import dataclass

# Bytes of a value as it lies in memory. A TF32 product reads float32; an 8-bit product gives 16 bits.
INPUT_BYTES = {"float64": 8, "float32": 4, "tf32": 4, "float16": 2, "bfloat16": 2, "float8": 1}
OUTPUT_BYTES = INPUT_BYTES | {"float8": 2}


@dataclass(frozen=True)
class Gemm:
    """One matrix product, [M, K] @ [K, N] -> [M, N].

    Raises: ValueError for a size below 1.
    """

    m: int
    n: int
    k: int

    def __post_init__(self):
        if min(self.m, self.n, self.k) < 1:
            raise ValueError(f"a product of [{self.m}, {self.k}] and [{self.k}, {self.n}] is empty; sizes begin at 1")

    def __str__(self) -> str:
        return f"{self.m} × {self.n} × {self.k}"

    @property
    def operations(self) -> int:
        """Multiply-adds, each counted as two operations."""
        return 2 * self.m * self.n * self.k

    def moved(self, input_bytes: int, output_bytes: int) -> int:
        """Return the bytes of both factors, read once, and of the product, written once."""
        return input_bytes * self.k * (self.m + self.n) + output_bytes * self.m * self.n

    def intensity(self, input_bytes: int, output_bytes: int) -> float:
        """Return the operations for each byte that moves."""
        return self.operations / self.moved(input_bytes, output_bytes)


@dataclass(frozen=True)
class Roof:
    """What a device reaches at most: `peaks` in TFLOP/s by dtype, `bandwidth` of its memory in GB/s.

    The dtypes are those of `INPUT_BYTES`. Accumulation is in float32, of float64 products in float64. `measured` is
    False for a data sheet. `source` says where the numbers stand, and `notes` what they leave open.
    """

    name: str
    peaks: dict[str, float]
    bandwidth: float
    source: str
    measured: bool = False
    notes: str = ""

    def peak(self, dtype: str) -> float:
        """Return the peak in TFLOP/s.

        Raises: ValueError with the known dtypes for another one.
        """
        if dtype not in self.peaks:
            raise ValueError(f"{self.name} has no peak for {dtype!r}; it has {', '.join(self.peaks)}")
        return self.peaks[dtype]

    def ridge(self, dtype: str) -> float:
        """Return the intensity, in operations per byte, from which the peak and not the memory bounds a product."""
        return 1e12 * self.peak(dtype) / (1e9 * self.bandwidth)

    def attainable(self, intensity: float, dtype: str) -> float:
        """Return the TFLOP/s under the roof at an intensity in operations per byte: the line of a roofline plot."""
        return min(self.peak(dtype), intensity * self.bandwidth / 1e3)

    def intensity(self, gemm: Gemm, dtype: str) -> float:
        """Return the product's operations per byte in this dtype.

        Raises: ValueError for a dtype that has no peak here.
        """
        self.peak(dtype)
        return gemm.intensity(INPUT_BYTES[dtype], OUTPUT_BYTES[dtype])

    def bound(self, gemm: Gemm, dtype: str) -> str:
        """Return "compute" or "memory": which of the two takes longer."""
        return "compute" if self.intensity(gemm, dtype) >= self.ridge(dtype) else "memory"

    def predicted_ms(self, gemm: Gemm, dtype: str) -> float:
        """Return the milliseconds that the product takes at least."""
        computing = gemm.operations / (1e12 * self.peak(dtype))
        moving = gemm.moved(INPUT_BYTES[dtype], OUTPUT_BYTES[dtype]) / (1e9 * self.bandwidth)
        return 1e3 * max(computing, moving)


_A100 = {"float64": 19.5, "float32": 19.5, "tf32": 156, "float16": 312, "bfloat16": 312}
_H100 = {"float64": 66.9, "float32": 66.9, "tf32": 494.7, "float16": 989.4, "bfloat16": 989.4, "float8": 1978.9}
_L4 = {"float64": 30.3 / 64, "float32": 30.3, "tf32": 60, "float16": 121, "bfloat16": 121, "float8": 242.5}
_4090 = {"float64": 82.6 / 64, "float32": 82.6, "tf32": 82.6, "float16": 165.2, "bfloat16": 165.2, "float8": 330.3}
_ROOFS = (
    Roof(
        *("V100 SXM2", {"float64": 7.8, "float32": 15.7, "float16": 125}, 900),
        "NVIDIA Tesla V100 data sheet (2018), column SXM2",
        notes="tensor cores for float16 alone",
    ),
    Roof(
        *("T4", {"float64": 8.1 / 32, "float32": 8.1, "float16": 65}, 320),
        "NVIDIA T4, nvidia.com/en-us/data-center/tesla-t4; float64: NVIDIA Turing GPU Architecture (2018)",
        notes="tensor cores for float16 alone; float64 at a 32nd of float32's rate; an early data sheet has 300 GB/s",
    ),
    Roof(
        *("A100 SXM 80 GB", _A100, 2039),
        "NVIDIA A100 80GB data sheet 2188504 (May 2022), column SXM",
        notes="float64 on tensor cores; 9.7 without them",
    ),
    Roof(
        *("H100 SXM", _H100, 3350),
        "NVIDIA H100 Tensor Core GPU Architecture (2022), column H100 SXM5; bandwidth: H100 data sheet, H100 SXM",
        notes="float64 on tensor cores; half of it without them",
    ),
    Roof(
        *("H200 SXM", _H100, 4800),
        "NVIDIA H200 data sheet 3367400 (July 2024), column SXM; its rates are the H100's, rounded",
        notes="float64 on tensor cores; half of it without them",
    ),
    Roof(
        *("L4", _L4, 300),
        "NVIDIA L4 data sheet (2023), half of its rates with sparsity; float64: NVIDIA Ada GPU Architecture (2023)",
        notes="float64 at a 64th of float32's rate",
    ),
    Roof(
        *("RTX 4090", _4090, 1008),
        "NVIDIA Ada GPU Architecture v2.02 (2023), appendix A, table 2",
        notes="float32 sums halve the rate of 16 and 8 bits; float64 at a 64th of float32's rate",
    ),
)
ROOFS = {roof.name: roof for roof in _ROOFS}
# What torch calls these boards. Others of the same chip have other clocks: an H200 NVL, an H100 PCIe.
_DEVICES = {
    "Tesla V100-SXM2-16GB": "V100 SXM2",
    "Tesla V100-SXM2-32GB": "V100 SXM2",
    "Tesla T4": "T4",
    "NVIDIA A100-SXM4-80GB": "A100 SXM 80 GB",
    "NVIDIA H100 80GB HBM3": "H100 SXM",
    "NVIDIA H200": "H200 SXM",
    "NVIDIA L4": "L4",
    "NVIDIA GeForce RTX 4090": "RTX 4090",
}


def of_device(name: str) -> Roof | None:
    """Return the data sheet of the device that torch calls `name`; None where there is none in `ROOFS`."""
    return ROOFS.get(_DEVICES.get(name, ""))
