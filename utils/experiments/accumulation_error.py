"""The error of a matrix product against the length K of its sums, for every accumulator and for the device's products.

    python -m utils.experiments.accumulation_error --device cpu --record DIR

The error is relative, in the Frobenius norm: ||C - AB|| / ||AB||, with AB in float64 from the same rounded operands.
So it holds only the error of the sums, and of rounding the result where that has 16 bits. Accumulators are models,
computed on the CPU; the products are those of the device. A LLaMA with each accumulator and long sums follow.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import NamedTuple

import torch

from utils import llama, machine, records
from utils.emulation.accumulators import ACCUMULATORS, Accumulator, stochastic_float16
from utils.experiments import accumulated_llama
from utils.experiments.accumulated_llama import AccumulatorRow, LongSum
from utils.experiments.microscope import ways_to_multiply
from utils.experiments.microscope.ways_to_multiply import MatmulWay
from utils.fake_quantize import fake_quantize
from utils.formats import FORMATS, FloatFormat
from utils.runs import command_line, measurement, tables

NAME = "accumulation_error"
COUNTS = {"small": tuple(2**k for k in range(8, 15)), "full": tuple(2**k for k in range(8, 17))}  # K
INPUTS: dict[str, Callable] = {
    "uniform": torch.rand,  # [0, 1): nothing cancels
    "normal": torch.randn,  # sums are sqrt(K) small
    "half-normal": lambda *shape, **options: torch.randn(*shape, **options).abs(),
}
SIZE = 16  # rows and columns of a modelled product
SIDE = {"cpu": 64, "cuda": 2_048}  # of a measured one: a GPU cuts K into parts where M and N leave it idle
LONGEST_EMULATED = 256  # K of a float16 product on a CPU that has no such arithmetic
SLOW = 4_096  # K up to which sums are added in `utils.accumulation`
TOKENS = 1_100  # of the text held out: about eight pieces


class ProductError(NamedTuple):
    """The error of a product C of A and B: ||C - AB|| / ||AB||, and the largest |c - ab| / |ab| of an element."""

    frobenius: float
    largest: float  # of use where sums do not cancel


@dataclass(frozen=True)
class ErrorPoint:
    """The error of one way to add at one K; where it was not measured, the errors are None and `note` says why."""

    way: str  # a name in ACCUMULATORS, or of one of the device's own products
    inputs: str  # a name in INPUTS
    operands: str  # the format that the inputs are rounded to
    count: int  # K
    error: float | None = None
    largest: float | None = None
    output: str = "float32"  # dtype of the result
    measured: bool = False  # on a device; False: a model
    note: str = ""


def draw_factors(
    inputs: str,
    count: int,
    *,
    operands: FloatFormat,
    size: int = SIZE,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a [size, count] and b [count, size] from a distribution of `INPUTS`; float32, rounded to a format."""
    generator = torch.Generator(device).manual_seed(seed)
    drawn = (INPUTS[inputs](shape, generator=generator, device=device) for shape in ((size, count), (count, size)))
    a, b = (fake_quantize(x, operands) for x in drawn)
    return a, b  # [size, K], [K, size]


def measure_error(product: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> ProductError:
    """Return how far a product is from a @ b in float64."""
    exact = a.double() @ b.double()
    difference = product.double() - exact
    return ProductError(float(difference.norm() / exact.norm()), float((difference / exact).abs().max()))


def measure_models(
    accumulators: Iterable[Accumulator],
    counts: Iterable[int],
    *,
    inputs: str = "uniform",
    operands: FloatFormat | None = None,
    size: int = SIZE,
    seed: int = 0,
) -> Iterator[ErrorPoint]:
    """Yield the error of each accumulator at each K; operands are those it is meant for, unless a format is named."""
    for accumulator in accumulators:
        fmt = operands or accumulator.operands
        for count in counts:
            a, b = draw_factors(inputs, count, operands=fmt, size=size, seed=seed)
            yield ErrorPoint(accumulator.name, inputs, fmt.name, count, *measure_error(accumulator.matmul(a, b), a, b))


def measure_device(
    ways: Iterable[MatmulWay], counts: Iterable[int], *, device: torch.device, inputs: str = "uniform", seed: int = 0
) -> Iterator[ErrorPoint]:
    """Yield the error of each of the device's own products at each K: of floating dtypes of at most 32 bits.

    A product that the device refuses is a single point that says so. A result of 16 bits was rounded once more at the
    end, which no accumulator can change; a float32 product that takes TF32 rounds its operands first.
    """
    for way in ways:
        if way.dtype == torch.float64 or not way.dtype.is_floating_point:
            continue
        fmt = FORMATS[str(way.dtype).removeprefix("torch.")]
        for count in counts:
            point = ErrorPoint(way.name, inputs, fmt.name, count, measured=True)
            if reason := way.reason or _say_too_slow(way, count, device):
                yield replace(point, note=reason)
                break
            a, b = draw_factors(inputs, count, operands=fmt, size=SIDE[device.type], seed=seed, device=device)
            product = way(a.to(way.dtype), b.to(way.dtype))
            frobenius, largest = measure_error(product, a, b)
            output = str(product.dtype).removeprefix("torch.")
            yield replace(point, error=frobenius, largest=largest, output=output)


def _say_too_slow(way: MatmulWay, count: int, device: torch.device) -> str:
    if device.type == "cuda" or way.dtype != torch.float16 or count <= LONGEST_EMULATED:
        return ""
    if machine.narrow_matmul(way.dtype, device)[0]:
        return ""
    return f"missing: this processor has no float16 product, torch takes seconds for one above K = {LONGEST_EMULATED}"


def measure_all(
    trained: llama.TrainedLlama, *, size: str, device: torch.device, seed: int = 0
) -> Iterator[tuple[str, list]]:
    """Yield the name and content of each part of a record: points, the rows of a LLaMA, and long sums."""
    points = []
    for inputs in ("uniform", "normal"):
        draw = {"inputs": inputs, "seed": seed}
        points += measure_models(ACCUMULATORS.values(), COUNTS[size], **draw)
        points += measure_models([stochastic_float16(seed)], [k for k in COUNTS[size] if k <= SLOW], **draw)
        points += measure_device(ways_to_multiply.list_ways(device).values(), COUNTS[size], device=device, **draw)
    yield "points", points
    accumulators = list(ACCUMULATORS.values())
    yield "llama", accumulated_llama.measure_rows(trained.model, trained.ids[:TOKENS], accumulators)
    yield "long_sums", accumulated_llama.measure_long_sums(accumulators, seed=seed)


KINDS = {"points": ErrorPoint, "llama": AccumulatorRow, "long_sums": LongSum}


def format_table(parts: dict[str, list]) -> str:
    """Return all parts as aligned text, with a line that says what each shows."""
    texts = [
        f"error, ||C - AB|| / ||AB||, against K; {name} inputs\n{_align_curves(parts['points'], name)}"
        for name in dict.fromkeys(point.inputs for point in parts["points"])
    ]
    titles = {"llama": "a LLaMA: logits beside those in float32", "long_sums": "sums of LLaMA-7B"}
    texts += [f"{title}\n{_align_rows(parts[name])}" for name, title in titles.items() if parts.get(name)]
    return "\n\n".join(texts)


def _align_curves(points: list[ErrorPoint], inputs: str) -> str:
    by_way: dict[str, dict[int, ErrorPoint]] = {}
    for point in points:
        if point.inputs == inputs:
            by_way.setdefault(f"{'this device: ' * point.measured}{point.way}", {})[point.count] = point
    counts = sorted({count for by_count in by_way.values() for count in by_count})
    lines, notes = [("K", *map(str, counts))], []
    for way, by_count in by_way.items():
        errors = [by_count[count].error if count in by_count else None for count in counts]
        lines.append((way, *("-" if error is None else f"{error:.1e}" for error in errors)))
        notes += [f"{way}: {point.note}" for point in by_count.values() if point.note]
    return "\n".join([tables.align(lines), *notes])


def _align_rows(rows: list[AccumulatorRow] | list[LongSum]) -> str:
    texts = [tuple(f"{v:.6g}" if isinstance(v, float) else str(v) for v in asdict(row).values()) for row in rows]
    return tables.align([tuple(asdict(rows[0])), *texts])


def make_record(
    parts: dict[str, list],
    trained: llama.TrainedLlama,
    *,
    size: str,
    device: torch.device,
    shown: str = "",
    seed: int = 0,
) -> records.Record:
    """Return all parts as one record, numbers with six digits; `of_record` gives them back."""
    return measurement.make_record(
        NAME,
        recipe=trained.record.recipe,
        size=size,
        device=device,
        settings={"counts": COUNTS[size], "modelled_side": SIZE, "measured_side": SIDE[device.type], "tokens": TOKENS},
        results={name: [_to_json(row) for row in rows] for name, rows in parts.items()},
        samples={},
        shown=shown,
        seed=seed,
        data=f"random numbers; {trained.record.data}",
        data_name=trained.record.data_name,
        weights=f"a trained LLaMA of width {trained.model.config.hidden_size}",
    )


def _to_json(row: ErrorPoint | AccumulatorRow | LongSum) -> dict:
    """Return the fields of a row that are not their defaults, numbers with six digits."""
    defaults = {field.name: field.default for field in fields(row)}
    changed = {name: value for name, value in asdict(row).items() if value != defaults[name]}
    return {
        name: measurement.round_to(value, 6) if isinstance(value, float) else value for name, value in changed.items()
    }


def of_record(record: records.Record) -> dict[str, list]:
    """Return the parts of a record by name: `points`, `llama`, `long_sums`."""
    return {name: [kind(**row) for row in record.results[name]] for name, kind in KINDS.items()}


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_line.Parser(f"experiments.{NAME}", about=__doc__, sizes="small: K to 16,384; full: to 65,536")
    parser.add_argument("--data", metavar="DIR", help="folder with prose for the LLaMA; default: generated")
    return parser.checked(arguments)


@command_line.in_one_line(NAME)
def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        options = _parse(arguments)
        # The models of accumulators are the same everywhere, and so is the LLaMA that runs in them.
        trained = llama.train_once(options.data or "generated", device=torch.device("cpu"))
    except (ValueError, OSError) as error:
        return command_line.complain(NAME, str(error), 2)
    print(command_line.describe_run(options.device, size=options.size, data=trained.record.data), flush=True)
    parts = {}
    for name, rows in measure_all(trained, size=options.size, device=options.device):
        parts[name] = rows
        print(f"{name}: {len(rows)} done", file=sys.stderr, flush=True)
    print(format_table(parts))
    if options.record:
        made = make_record(parts, trained, size=options.size, device=options.device, shown=options.command)
        records.save(made, options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
