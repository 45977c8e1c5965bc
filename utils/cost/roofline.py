"""The roofline: what one matrix product can reach on a device, from its shape, its dtype and two numbers of the device.

    cards.ROOFS["H200 SXM"].bound(Gemm(1, 4096, 4096), "bfloat16")  # "memory"

A product does its multiply-adds and moves its matrices; the slower of the two bounds its time (Williams, Waterman and
Patterson 2009, doi 10.1145/1498765.1498785). The model is an ideal: each matrix moves once, and arithmetic and moving
overlap. It knows nothing of odd sizes, tiles, caches and launches; what they cost is measured, not modelled.

The roofs of real cards are those of `utils.cost.cards`.
"""

from dataclasses import dataclass, field

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
        return 2 * self.m * self.n * self.k  # M N sums of K multiply-adds

    def moved(self, input_bytes: int, output_bytes: int) -> int:
        """Return the bytes of both factors, read once, and of the product, written once."""
        # [M, K] and [K, N] in, [M, N] out
        return input_bytes * self.k * (self.m + self.n) + output_bytes * self.m * self.n

    def intensity(self, input_bytes: int, output_bytes: int) -> float:
        """Return the operations for each byte that moves."""
        return self.operations / self.moved(input_bytes, output_bytes)


@dataclass(frozen=True)
class Roof:
    """What a device reaches at most: `peaks` in TFLOP/s by dtype, `bandwidth` of its memory in GB/s.

    The dtypes are those of `INPUT_BYTES`, and "float4", which has a peak alone: its scales are not modelled.
    Accumulation is in float32, of float64 products in float64. `measured` is False for a data sheet. `source` says
    where the numbers stand, and `notes` what they leave open. `reached`: TFLOP/s of the fastest product that others
    have published, by dtype.
    """

    name: str
    peaks: dict[str, float]
    bandwidth: float
    source: str
    measured: bool = False
    notes: str = ""
    reached: dict[str, float] = field(default_factory=dict)

    def peak(self, dtype: str) -> float:
        """Return the peak in TFLOP/s.

        Raises: ValueError with the known dtypes for another one.
        """
        if dtype not in self.peaks:
            raise ValueError(f"{self.name} has no peak for {dtype!r}; it has {', '.join(self.peaks)}")
        return self.peaks[dtype]

    def ridge(self, dtype: str) -> float:
        """Return the intensity, in operations per byte, from which the peak and not the memory bounds a product."""
        return 1e12 * self.peak(dtype) / (1e9 * self.bandwidth)  # (FLOP/s) / (bytes/s)

    def attainable(self, intensity: float, dtype: str) -> float:
        """Return the TFLOP/s under the roof at an intensity in operations per byte: the line of a roofline plot."""
        return min(self.peak(dtype), intensity * self.bandwidth / 1e3)  # GFLOP/s to TFLOP/s

    def intensity(self, gemm: Gemm, dtype: str) -> float:
        """Return the product's operations per byte in this dtype.

        Raises: ValueError for a dtype that has no peak here, or whose bytes are not modelled.
        """
        self.peak(dtype)
        if dtype not in INPUT_BYTES:
            raise ValueError(f"the bytes of {dtype} are not modelled; take one of {', '.join(INPUT_BYTES)}")
        return gemm.intensity(INPUT_BYTES[dtype], OUTPUT_BYTES[dtype])

    def bound(self, gemm: Gemm, dtype: str) -> str:
        """Return "compute" or "memory": which of the two takes longer."""
        return "compute" if self.intensity(gemm, dtype) >= self.ridge(dtype) else "memory"

    def computing_ms(self, operations: float, dtype: str) -> float:
        """Return the milliseconds that so many operations take at the peak of the dtype."""
        return 1e3 * (operations / (1e12 * self.peak(dtype)))  # seconds to ms

    def moving_ms(self, size: float) -> float:
        """Return the milliseconds that moving so many bytes takes."""
        return 1e3 * (size / (1e9 * self.bandwidth))  # seconds to ms

    def predicted_ms(self, gemm: Gemm, dtype: str) -> float:
        """Return the milliseconds that the product takes at least."""
        moved = gemm.moved(INPUT_BYTES[dtype], OUTPUT_BYTES[dtype])
        return max(self.computing_ms(gemm.operations, dtype), self.moving_ms(moved))
