"""Time and memory: step times with their spread, bytes of tensors, bytes that autograd keeps, CUDA peaks.

Milliseconds, bytes, and decimal units (1 GB/s = 1e9 bytes a second, 1 TFLOP/s = 1e12 operations a second).
"""

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Timing:
    """Raw times of one call in milliseconds, in the order in which they were taken."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median in milliseconds."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """Distance between the first and the third quartile in milliseconds; 0 for a single sample."""
        if len(self.samples) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.samples, n=4, method="inclusive")
        return third - first

    def __str__(self) -> str:
        return f"{self.median:.3g} ms ± {self.spread:.2g} ({len(self.samples)} runs)"


class StepClock:
    """Times of the blocks it is entered around; on CUDA by events, so that the clock itself makes nothing wait.

    `seconds` is the clock of a CPU.
    """

    def __init__(self, device: torch.device, *, seconds: Callable[[], float] = time.perf_counter):
        self.device, self.cuda, self.seconds = device, device.type == "cuda", seconds
        self.marks = []

    def _mark(self):
        if not self.cuda:
            return self.seconds()
        mark = torch.cuda.Event(enable_timing=True)
        mark.record(torch.cuda.current_stream(self.device))  # the usual one is that of the first GPU
        return mark

    def __enter__(self) -> "StepClock":
        self.begin = self._mark()
        return self

    def __exit__(self, *error) -> None:
        self.marks.append((self.begin, self._mark()))

    def milliseconds(self) -> list[float]:
        """Return the time of each block in milliseconds, after waiting for the device."""
        if self.cuda:
            torch.cuda.synchronize(self.device)
            return [begin.elapsed_time(end) for begin, end in self.marks]
        return [1e3 * (end - begin) for begin, end in self.marks]


def time_call(call: Callable[[], object], *, device: torch.device, **how) -> Timing:
    """Return the times of one call, as `time_in_turns` does of several.

    Raises: ValueError when `repeats` is below 1.
    """
    return time_in_turns({"": call}, device=device, **how)[""]


def time_in_turns(
    calls: dict[str, Callable[[], object]],
    *,
    device: torch.device,
    warmup: int = 3,
    repeats: int = 10,
    seconds: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Return the times of several calls that take turns, so that a machine that slows down slows all of them.

    `repeats` calls of each are counted, after `warmup` that are not. `seconds` is a CPU's clock, as `quiet_clock`.
    Raises: ValueError when `repeats` is below 1.
    """
    if repeats < 1:
        raise ValueError(f"repeats {repeats} gives no sample; ask for at least 1")
    clocks = {name: StepClock(device, seconds=seconds) for name in calls}
    for turn in range(warmup + repeats):
        if turn == warmup and device.type == "cuda":
            torch.cuda.synchronize(device)
        for name, call in calls.items():
            with clocks[name] if turn >= warmup else contextlib.nullcontext():
                call()
    return {name: Timing(tuple(clock.milliseconds())) for name, clock in clocks.items()}


CHANCE, SMALLEST = 0.01, 0.05  # of a verdict on equal calls, and the smallest difference that is called one


@dataclass(frozen=True)
class Comparison:
    """How two calls that took turns compare.

    `factor`: how many times as fast the first is, the median over the turns. `wins` of `turns`: how often it was the
    faster one; draws are left out.
    """

    factor: float
    wins: int
    turns: int

    @property
    def chance(self) -> float:
        """The probability that equal calls differ as clearly in either direction: the sign test, two-sided."""
        fewer = min(self.wins, self.turns - self.wins)
        return min(1.0, 2 * sum(math.comb(self.turns, k) for k in range(fewer + 1)) / 2**self.turns)

    @property
    def verdict(self) -> str:
        """Return "faster" or "slower" for a difference beyond `CHANCE` and `SMALLEST`, else "no difference seen".

        Two equal calls, each with numbers of its own, can differ by a few percent in a process: hence `SMALLEST`.
        """
        if self.chance > CHANCE or abs(math.log(self.factor)) < math.log1p(SMALLEST):
            return "no difference seen"
        return "faster" if self.factor > 1 else "slower"

    def __str__(self) -> str:
        """Say it as the middle of a sentence: "is 1.9 times as fast as", "takes 52 times as long as"."""
        if self.verdict == "no difference seen":
            return "takes about as long as"
        factor = max(self.factor, 1 / self.factor)
        times = f"{factor:.{int(factor < 9.95)}f} times as"
        return f"is {times} fast as" if self.factor > 1 else f"takes {times} long as"


def compare(first: Timing, second: Timing) -> Comparison:
    """Compare two calls turn by turn; the times are those of `time_in_turns`.

    Raises: ValueError unless both have as many samples, at least eight: fewer can never be beyond `CHANCE`.
    """
    if len(first.samples) != len(second.samples) or len(first.samples) < 8:
        raise ValueError(f"{len(first.samples)} and {len(second.samples)} samples; time both in turns, at least 8 each")
    ratios = [theirs / ours for ours, theirs in zip(first.samples, second.samples, strict=True)]
    wins, losses = sum(ratio > 1 for ratio in ratios), sum(ratio < 1 for ratio in ratios)
    return Comparison(statistics.median(ratios), wins, wins + losses)


def quiet_clock() -> tuple[Callable[[], float], str]:
    """Return the clock that other programs disturb least, and its name: "processor" for one thread, else "wall".

    The processor's time leaves out what the thread waits for its turn: most of the scatter on a shared machine.
    Several threads add theirs up, so there it says nothing.
    """
    return (time.process_time, "processor") if torch.get_num_threads() == 1 else (time.perf_counter, "wall")


def student_t(degrees: int) -> float:
    """Return the t that Student's distribution with that many degrees of freedom exceeds 2.5 % of the time.

    Without SciPy, which a machine that only records need not have. Raises: ValueError for no degree of freedom.
    """
    if degrees < 1:
        raise ValueError(f"{degrees} degrees of freedom are no distribution; take 1 or more")
    low, high = 0.0, math.pi / 2  # of atan(t / sqrt(degrees))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_share(middle, degrees) < 0.95 else (low, middle)
    return math.tan(low) * degrees**0.5


def _student_share(angle: float, degrees: int) -> float:
    """Return the probability that |t| stays below sqrt(degrees) tan(angle).

    A finite sum of powers of the cosine: Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    odd, square = degrees % 2, math.cos(angle) ** 2
    term = total = math.cos(angle) if odd else 1.0
    for k in range(2 + odd, degrees - 1, 2):  # 1 + 1/2 cos^2 + (1 3)/(2 4) cos^4 ..., or cos + 2/3 cos^3 + ...
        term *= square * (k - 1) / k
        total += term
    if not odd:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + (math.sin(angle) * total if degrees > 1 else 0.0))


def mean_interval(values: Iterable[float]) -> tuple[float, float | None]:
    """Return the mean and half the width of its 95 % Student interval; None for the width of a single value.

    With a value that is not finite, the mean is not, and the width is NaN.
    """
    values = list(values)
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, None
    if not math.isfinite(mean):
        return mean, math.nan
    return mean, student_t(len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5


def tensor_bytes(tensors: Iterable[torch.Tensor | None]) -> int:
    """Return the bytes of the tensors' storages, each storage once (tied weights count once)."""
    storages = {}
    for tensor in tensors:
        if tensor is not None:
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Return the tensors of the optimizer's state that have the shape of their parameter (no step counters)."""
    return [
        value
        for parameter, state in optimizer.state.items()
        for value in state.values()
        if isinstance(value, torch.Tensor) and value.shape == parameter.shape
    ]


class SavedBytes:
    """Count what autograd keeps for the backward pass: each storage once, parameters left out.

    Enter it around a forward pass, read `.total` and `.by_dtype` afterwards. It counts storages, not temporaries or
    workspace; weights that autocast casts and caches are counted, since they live until the backward pass too.
    Which attention kernel runs decides what is saved, so compare devices with eager attention.
    """

    def __init__(self, model: torch.nn.Module):
        self.parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
        self.by_dtype: dict[torch.dtype, int] = {}
        self.kept: dict[int, torch.Tensor] = {}  # holds the tensors: a freed address could be given to the next one

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.parameters and storage.data_ptr() not in self.kept:
            self.kept[storage.data_ptr()] = tensor
            self.by_dtype[tensor.dtype] = self.by_dtype.get(tensor.dtype, 0) + storage.nbytes()
        return tensor

    @property
    def total(self) -> int:
        """Bytes of all dtypes together."""
        return sum(self.by_dtype.values())

    def __enter__(self) -> "SavedBytes":
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor)
        self.hooks.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self.hooks.__exit__(*error)
        self.kept.clear()


@dataclass(frozen=True)
class Peak:
    """Most bytes that a CUDA device held: `allocated` by tensors, `reserved` by torch's cache."""

    allocated: int | None
    reserved: int | None


def reset_peak(device: torch.device) -> None:
    """Begin a new measurement of the peak; nothing happens where the device keeps no count."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak(device: torch.device) -> Peak:
    """Return the peak since `reset_peak`; both fields are None where the device keeps no count."""
    if device.type != "cuda":
        return Peak(None, None)
    return Peak(torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device))


def matmul_tflops(dtype: torch.dtype, *, device: torch.device, width: int | None = None, repeats: int = 3) -> float:
    """Return the rate of one product of two square random matrices in TFLOP/s: the median of `repeats`.

    As wide as a device needs to come near its best: 8,192 on CUDA, 1,024 on a CPU. What `Recipe.on` has set counts.
    """
    width = width or (8_192 if device.type == "cuda" else 1_024)
    generator = torch.Generator(device).manual_seed(0)
    a, b = (torch.randn(width, width, device=device, generator=generator).to(dtype) for _ in range(2))
    with torch.no_grad():
        timing = time_call(lambda: a @ b, device=device, warmup=1, repeats=repeats)
    return 2 * width**3 / timing.median / 1e9


@dataclass(frozen=True)
class Rate:
    """A rate beside the limit that it is held against, both in `unit`."""

    value: float
    limit: float
    unit: str

    @property
    def share(self) -> float:
        """The rate as a share of its limit: 1.0 is all of it."""
        return self.value / self.limit

    def __str__(self) -> str:
        return f"{self.value:.3g} {self.unit}, {100 * self.share:.0f} % of {self.limit:.3g}"


def tflops(operations: float, milliseconds: float, *, limit: float) -> Rate:
    """Return the rate of `operations` (a multiply-add is two) in TFLOP/s beside `limit` in TFLOP/s."""
    return Rate(operations / milliseconds / 1e9, limit, "TFLOP/s")


def gigabytes_per_second(moved: float, milliseconds: float, *, limit: float) -> Rate:
    """Return the rate of `moved` bytes, read and written together, in GB/s beside `limit` in GB/s."""
    return Rate(moved / milliseconds / 1e6, limit, "GB/s")
