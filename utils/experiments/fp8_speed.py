"""Time a linear layer in FP8 and in bfloat16, by its shape, with and without its casts.

    python -m utils.experiments.fp8_speed --device cuda --compile --record DIR

Of each layer and recipe four things are timed: the forward product of operands that were cast before, the casts alone,
both together, and a training step of the layer with all its casts. bfloat16 is that of autocast, which casts the
float32 weight. The casts are those of this book, a kernel for each operation; --compile fuses them.

A device without an FP8 product has no FP8 speed: products and steps are left out, and `note` says why. The times of its
casts are real, but say nothing about another device.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from utils import measure, records
from utils.cost.fp8_casts import BFLOAT16, PUBLISHED, Layer, cast_bytes, square
from utils.emulation.float32_matmul import allowing
from utils.emulation.scaled_matmul import scaled_matmul, transposed, why_emulated
from utils.emulation.scaled_tensor import Scaled, quantize
from utils.exception_text import of_compiler
from utils.experiments import gemm_calls
from utils.experiments.gemm_calls import Call
from utils.runs import command_line, measurement, tables
from utils.runs.measurement import Timed
from utils.training.float8_linear import Float8Linear
from utils.training.float8_recipes import FLOAT8_RECIPES, Float8Recipe, Operand

NAME = "fp8_speed"
REPEATS = 7
PRODUCT, CASTS, BOTH, STEP = "product", "casts", "product with casts", "step"
PARTS = (PRODUCT, CASTS, BOTH, STEP)
RECIPES = tuple(name for name in FLOAT8_RECIPES if "unscaled" not in name)
SQUARES, LLAMA, TORCHAO = "square", "LLaMA-7B", "torchao"
WIDTHS = {"small": (128, 256, 512, 1_024), "full": (512, 1_024, 2_048, 4_096, 8_192, 16_384)}
TOKENS = {"small": (), "full": (16, 2_048, 16_384)}
NARROWEST_COMPILED = 1_024  # each shape compiles for a minute, and below that no product is worth a cast


@dataclass(frozen=True)
class SpeedPoint(Timed):
    """One part of one layer under "bfloat16" or a recipe, times of a call in milliseconds.

    `family`: why the layer is measured. If it was not, `note` says why.
    """

    family: str
    tokens: int
    inputs: int
    outputs: int
    recipe: str
    part: str
    samples: tuple[float, ...] = ()
    note: str = ""

    @property
    def layer(self) -> Layer:
        """The shape."""
        return Layer(self.tokens, self.inputs, self.outputs)

    @property
    def tflops(self) -> float | None:
        """The rate of the products in TFLOP/s, casts in its time; None where nothing multiplied or was measured."""
        if not self.samples or self.part == CASTS:
            return None
        operations = self.layer.operations if self.part == STEP else self.layer.gemms[0].operations
        return operations / self.timing.median / 1e9  # FLOPs / ms / 1e9


@dataclass(frozen=True)
class Speeds:
    """All points; `compiled`: whether torch.compile fused the casts; `moment`, `drift` as in `gemm_sweep.Sweep`."""

    points: tuple[SpeedPoint, ...]
    compiled: bool
    moment: dict
    drift: float

    def at(self, layer: Layer, recipe: str, part: str) -> SpeedPoint | None:
        """Return the point, None where it is not among them or was not measured."""
        return next(
            (p for p in self.points if (p.layer, p.recipe, p.part) == (layer, recipe, part) and p.samples), None
        )

    def faster(self, layer: Layer, recipe: str, part: str) -> float | None:
        """Return how many times as fast as bfloat16 a part is; None where one of the two was not measured."""
        point, base = self.at(layer, recipe, part), self.at(layer, BFLOAT16, part)
        return base.timing.median / point.timing.median if point and base else None

    def break_even(self, recipe: str, part: str = STEP, *, family: str = SQUARES) -> Layer | None:
        """Return the smallest layer of a family at and above which FP8 is faster; None where the largest is not."""
        layers = {p.layer: None for p in self.points if p.family == family}
        smallest = None
        for layer in sorted(layers, key=lambda layer: layer.operations, reverse=True):
            if (self.faster(layer, recipe, part) or 0) <= 1:
                break
            smallest = layer
        return smallest


def list_families(size: str, *, compiled: bool = False) -> Iterator[tuple[str, Layer]]:
    """Yield the layers of a size with their family; with torch.compile, at full size, those that are worth its time."""
    narrowest = NARROWEST_COMPILED if compiled and size == "full" else 0
    yield from ((SQUARES, square(width)) for width in WIDTHS[size] if width >= narrowest)
    for tokens in () if compiled else TOKENS[size]:
        yield from ((LLAMA, Layer(tokens, *shape)) for shape in ((4_096, 4_096), (4_096, 11_008), (11_008, 4_096)))
    if size == "full":
        yield from ((TORCHAO, published.layer) for published in PUBLISHED)


def prepare_calls(layer: Layer, name: str, *, device: torch.device, compiled: bool = False) -> dict[str, tuple]:
    """Return by part, for "bfloat16" or a recipe, the call and "", or None and why this device does not do it.

    Call them inside `allowing("highest")`; each was made once already.
    """
    parts = _make_bfloat16(layer, device) if name == BFLOAT16 else _make_float8(layer, FLOAT8_RECIPES[name], device)
    calls: dict[str, tuple] = {}
    for part in PARTS:
        call, note = parts[part]
        calls[part] = _try_call(call, device, compiled and part != PRODUCT) if call else (None, note)
    return calls


def _try_call(call: Call, device: torch.device, compiled: bool) -> tuple[Call | None, str]:
    if compiled:
        call.product = torch.compile(call.product, dynamic=False)  # a kernel for this shape, as a training has it
    try:
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except Exception as error:  # each part of a compiler raises errors of its own
        torch.set_float32_matmul_precision("highest")
        return None, of_compiler(error)
    return call, ""


def _make_copies(layer: Layer, device: torch.device, make: Callable[..., tuple]) -> list[tuple]:
    """Return copies of `make(x, w)`, x bfloat16 [M, K] and w float32 [N, K], more than a cache holds."""
    generator = torch.Generator(device).manual_seed(0)
    x, w = (
        torch.randn(rows, layer.inputs, device=device, generator=generator) for rows in (layer.tokens, layer.outputs)
    )
    moved = 2 * x.numel() + 4 * w.numel()
    count = min(gemm_calls.COPIES, max(1, math.ceil(gemm_calls.COLD_BYTES / moved)))
    return [make(x.bfloat16(), w / layer.inputs**0.5) for _ in range(count)]


def _make_bfloat16(layer: Layer, device: torch.device) -> dict[str, tuple]:
    product, note = gemm_calls.prepare_call(layer.gemms[0], BFLOAT16, device=device)
    plain = _make_copies(layer, device, lambda x, w: (x, w))
    functions = {CASTS: lambda x, w: w.bfloat16(), BOTH: lambda x, w: F.linear(x, w.bfloat16())}  # y = x @ w.T
    calls = {part: (Call(function, plain, "highest"), "") for part, function in functions.items()}
    calls |= {PRODUCT: (product, note), STEP: (_make_step(layer, device, nn.Linear), "")}
    return calls if product else calls | dict.fromkeys((BOTH, STEP), (None, note))


def _make_float8(layer: Layer, recipe: Float8Recipe, device: torch.device) -> dict[str, tuple]:
    forward = recipe.gemms[0]
    # Delayed scaling has its scale before it sees the tensor: any number will do to time it.
    scale = torch.ones((), device=device) if recipe.history else None
    cast = partial(_cast_operands, left=forward.left, right=forward.right, scale=scale)
    multiply = partial(scaled_matmul, fast_accumulation=forward.name in recipe.fast)
    wide = _make_copies(layer, device, lambda x, w: (x, w))
    calls = {CASTS: (Call(cast, wide, "highest"), "")}
    reason = why_emulated(device, forward.left.scaling, forward.right.scaling)
    if reason:
        return calls | dict.fromkeys((PRODUCT, BOTH, STEP), (None, reason))
    calls[PRODUCT] = (Call(multiply, _make_copies(layer, device, cast), "highest"), "")
    calls[BOTH] = (Call(lambda x, w: multiply(*cast(x, w)), wide, "highest"), "")
    reason = recipe.why_emulated(device)
    step = None if reason else _make_step(layer, device, partial(Float8Linear, recipe=recipe))
    return calls | {STEP: (step, reason)}


def _cast_operands(
    x: torch.Tensor, w: torch.Tensor, *, left: Operand, right: Operand, scale: torch.Tensor | None
) -> tuple[Scaled, Scaled]:
    """Return both operands of the forward product as a kernel takes them."""
    a, b = (quantize(tensor, operand.fmt, operand.scaling, scale=scale) for tensor, operand in ((x, left), (w, right)))
    a, b = (replace(scaled, values=scaled.codes()) for scaled in (a, b))
    return a, transposed(b)  # [M, K] and [K, N]


def _make_step(layer: Layer, device: torch.device, linear_class: Callable[..., nn.Linear]) -> Call:
    """Return a forward and backward pass of a linear layer under autocast, as in a training step."""

    def make(x: torch.Tensor, w: torch.Tensor) -> tuple:
        linear = linear_class(layer.inputs, layer.outputs, bias=False, device=device)
        linear.weight.data.copy_(w)
        dy = torch.randn(layer.tokens, layer.outputs, device=device).bfloat16()
        return linear, x.requires_grad_(), dy

    def step(linear: nn.Linear, x: torch.Tensor, dy: torch.Tensor) -> None:
        linear.weight.grad = x.grad = None
        with torch.enable_grad(), torch.autocast(device.type, dtype=torch.bfloat16):
            y = linear(x)
        y.backward(dy)

    return Call(step, _make_copies(layer, device, make), "highest")


def measure_speeds(
    *,
    device: torch.device,
    size: str,
    repeats: int = REPEATS,
    compiled: bool = False,
    report: Callable[[str], None] = str,
) -> Speeds:
    """Measure everything; the recipes of a layer take turns. `report` is called after each layer."""
    points: list[SpeedPoint] = []
    first: tuple[SpeedPoint, Call] | None = None  # timed again at the end
    with allowing("highest"):
        for family, layer in list_families(size, compiled=compiled):
            planned, calls = [], {}
            if compiled:
                torch.compiler.reset()  # torch compiles one function at most eight times
            for name in (BFLOAT16, *RECIPES):
                for part, (call, note) in prepare_calls(layer, name, device=device, compiled=compiled).items():
                    point = SpeedPoint(family, layer.tokens, layer.inputs, layer.outputs, name, part, note=note)
                    planned.append(point)
                    if call:
                        calls[point] = call
            times = measurement.time_calls(calls, device=device, repeats=repeats)
            points += [replace(point, samples=times.get(point, ())) for point in planned]
            if first is None and calls:
                point, call = next(iter(calls.items()))
                first = replace(point, samples=times[point]), call
            report(str(layer))
        point, call = first
        again = measure.Timing(measurement.time_calls({point: call}, device=device, repeats=repeats)[point])
        count = math.ceil(measurement.BUSY_MS / again.median)
        moment = measurement.read_clocks_under_load(call.times(count), device)
    return Speeds(tuple(points), compiled, moment, measurement.relative_drift(point.timing, again))


def format_table(speeds: Speeds) -> str:
    """Return the layers as text: times of the parts, how many times as fast as bfloat16, the bytes of a step's casts.

    Below: what was not measured and why, the break-even of each recipe, and a warning when the machine was not quiet.
    """
    rows = [("layer", "recipe", *(f"{part} ms" for part in PARTS), "times as fast", "casts of a step")]
    for layer in dict.fromkeys(point.layer for point in speeds.points):
        for name in (BFLOAT16, *RECIPES):
            parts = (speeds.at(layer, name, part) for part in PARTS)
            times = (f"{point.timing.median:.3g}" if point else "-" for point in parts)
            ratios = (speeds.faster(layer, name, part) for part in (PRODUCT, BOTH, STEP) if name != BFLOAT16)
            shown = " / ".join("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
            rows.append((str(layer), name, *times, shown, f"{cast_bytes(layer, name) / 1e6:.3g} MB"))
    lines = [tables.align(rows), "times as fast as bfloat16: product / product with casts / step"]
    missing: dict[str, dict[str, None]] = {}
    for point in speeds.points:
        if point.note:
            missing.setdefault(point.note, {})[f"{point.recipe} {point.part}"] = None
    lines += [f"not measured, {note}: {', '.join(parts)}" for note, parts in missing.items()]
    lines += [_say_break_even(speeds, name) for name in RECIPES]
    if not any(speeds.at(point.layer, name, PRODUCT) for point in speeds.points for name in RECIPES):
        lines.append("no FP8 speed: this device multiplies no FP8; the casts are timed as it does them")
    lines += measurement.warn_of_drift("call", speeds.drift)
    return "\n".join(line for line in lines if line)


def _say_break_even(speeds: Speeds, name: str) -> str:
    """Return the break-even of a recipe in words; empty where its step was not measured."""
    if not any(point.recipe == name and point.part == STEP and point.samples for point in speeds.points):
        return ""
    layer = speeds.break_even(name)
    return f"{name}: a step is faster from {layer} on" if layer else f"{name}: no step of a square layer is faster"


def make_record(speeds: Speeds, *, device: torch.device, size: str, shown: str = "") -> records.Record:
    """Return the speeds as a record; `of_record` gives them back."""
    return measurement.make_record(
        NAME,
        recipe="compiled" if speeds.compiled else "eager",
        size=size,
        device=device,
        settings={"sample_ms": measurement.SAMPLE_MS, "threads": torch.get_num_threads()},
        results={
            **records.columns_and_points(speeds.points),
            "compiled": speeds.compiled,
            "moment": speeds.moment,
            "drift": speeds.drift,
            "emulated": bool(why_emulated(device)),
        },
        samples=records.point_samples(speeds.points),
        shown=shown,
    )


def of_record(record: records.Record) -> Speeds:
    """Return the speeds of a record."""
    results = record.results
    return Speeds(records.points_of(record, SpeedPoint), results["compiled"], results["moment"], results["drift"])


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_line.Parser(f"experiments.{NAME}", about=__doc__, sizes="small or full")
    parser.add_count("--repeats", default=REPEATS, help="times of each; default: %(default)s")
    parser.add_argument("--compile", action="store_true", help="fuse the casts with torch.compile: minutes")
    return parser.checked(arguments)


@command_line.in_one_line(NAME)
def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        options = _parse(arguments)
    except (ValueError, OSError) as error:
        return command_line.complain(NAME, str(error), 2)
    subject = {"device": options.device, "size": options.size}
    print(command_line.describe_run(options.device, size=options.size), flush=True)
    speeds = measure_speeds(
        **subject,
        repeats=options.repeats,
        compiled=options.compile,
        report=lambda layer: print(f"{layer}: done", file=sys.stderr),
    )
    print(format_table(speeds))
    if options.record:
        records.save(make_record(speeds, **subject, shown=options.command), options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
