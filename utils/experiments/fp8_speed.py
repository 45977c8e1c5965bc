"""The speed of a linear layer in FP8 by its shape, with its casts counted, and bfloat16 beside it.

    python -m utils.experiments.fp8_speed --device cuda --compile --record DIR

Of each layer and recipe four things are timed: the forward product of operands that are ready, the casts that make them
so, both together, and a training step of the layer with all its casts. bfloat16 is that of autocast: its cast is that
of the float32 weight. Casts are those of this book, a kernel for each operation; --compile fuses them.

Where a device has no FP8 product there is no FP8 speed: products and steps are left out and `note` says why. What is
left is the casts, which are real there: the time that this device takes for them, and nothing about another.
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

from utils import machine, measure, records
from utils.cost.fp8_casts import BFLOAT16, PUBLISHED, Layer, cast_bytes, square
from utils.emulation.float32_matmul import allowing
from utils.emulation.scaled_matmul import scaled_matmul, transposed, why_emulated
from utils.emulation.scaled_tensor import Scaled, quantize
from utils.exception_text import of_compiler
from utils.experiments import gemm_calls, gemm_sweep
from utils.experiments.gemm_calls import Call
from utils.runs import command_line
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


@dataclass(frozen=True)
class Point:
    """One part of one layer under "bfloat16" or a recipe, times of a call in milliseconds.

    `family`: why the layer is measured. Where it was not, `note` says why.
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
    def timing(self) -> measure.Timing:
        """The times of a call with their median and spread."""
        return measure.Timing(self.samples)

    @property
    def tflops(self) -> float | None:
        """The rate of the products in TFLOP/s, casts in its time; None where nothing multiplied or was measured."""
        if not self.samples or self.part == CASTS:
            return None
        operations = self.layer.operations if self.part == STEP else self.layer.gemms[0].operations
        return operations / self.timing.median / 1e9


@dataclass(frozen=True)
class Speeds:
    """All points; `compiled`: whether torch.compile fused the casts; `moment`, `drift` as in `gemm_sweep.Sweep`."""

    points: tuple[Point, ...]
    compiled: bool
    moment: dict
    drift: float

    def at(self, layer: Layer, recipe: str, part: str) -> Point | None:
        """Return the point, None where it is not among them or was not measured."""
        return next(
            (p for p in self.points if (p.layer, p.recipe, p.part) == (layer, recipe, part) and p.samples), None
        )

    def faster(self, layer: Layer, recipe: str, part: str) -> float | None:
        """Return how many times as fast as bfloat16 a part is; None where one of the two was not measured."""
        own, base = self.at(layer, recipe, part), self.at(layer, BFLOAT16, part)
        return base.timing.median / own.timing.median if own and base else None

    def break_even(self, recipe: str, part: str = STEP, *, family: str = SQUARES) -> Layer | None:
        """Return the smallest layer of a family at and above which FP8 is faster; None where the largest is not."""
        layers = {p.layer: None for p in self.points if p.family == family}
        found = None
        for layer in sorted(layers, key=lambda layer: layer.operations, reverse=True):
            if (self.faster(layer, recipe, part) or 0) <= 1:
                break
            found = layer
        return found


def families(size: str) -> Iterator[tuple[str, Layer]]:
    """Yield the layers of a size with their family."""
    yield from ((SQUARES, square(width)) for width in WIDTHS[size])
    for tokens in TOKENS[size]:
        yield from ((LLAMA, Layer(tokens, *shape)) for shape in ((4_096, 4_096), (4_096, 11_008), (11_008, 4_096)))
    if size == "full":
        yield from ((TORCHAO, each.layer) for each in PUBLISHED)


def prepared(layer: Layer, name: str, *, device: torch.device, compiled: bool = False) -> dict[str, tuple]:
    """Return by part the call, or None, and why this device does not do it: for "bfloat16" or a recipe.

    Call them inside `allowing("highest")`; each was tried once.
    """
    parts = _bfloat16(layer, device) if name == BFLOAT16 else _float8(layer, FLOAT8_RECIPES[name], device)
    found: dict[str, tuple] = {}
    for part in PARTS:
        call, note = parts[part]
        found[part] = _tried(call, device, compiled and part != PRODUCT) if call else (None, note)
    return found


def _tried(call: Call, device: torch.device, compiled: bool) -> tuple[Call | None, str]:
    if compiled:
        call.product = torch.compile(call.product, dynamic=False)  # a kernel for this shape, as a training has it
    try:
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except Exception as error:  # a compiler fails in as many ways as it has parts
        torch.set_float32_matmul_precision("highest")
        return None, of_compiler(error)
    return call, ""


def _copies(layer: Layer, device: torch.device, make: Callable[..., tuple]) -> list[tuple]:
    """Return what `make` makes of x [M, K] in bfloat16 and of a float32 weight [N, K], more than a cache holds."""
    generator = torch.Generator(device).manual_seed(0)
    x, w = (
        torch.randn(rows, layer.inputs, device=device, generator=generator) for rows in (layer.tokens, layer.outputs)
    )
    moved = 2 * x.numel() + 4 * w.numel()
    count = min(gemm_calls.COPIES, max(1, math.ceil(gemm_calls.COLD_BYTES / moved)))
    return [make(x.bfloat16(), w / layer.inputs**0.5) for _ in range(count)]


def _bfloat16(layer: Layer, device: torch.device) -> dict[str, tuple]:
    product, note = gemm_calls.prepared(layer.gemms[0], BFLOAT16, device=device)
    plain = _copies(layer, device, lambda x, w: (x, w))
    calls = {CASTS: lambda x, w: w.bfloat16(), BOTH: lambda x, w: F.linear(x, w.bfloat16())}
    found = {part: (Call(call, plain, "highest"), "") for part, call in calls.items()}
    found |= {PRODUCT: (product, note), STEP: (_step(layer, device, nn.Linear), "")}
    return found if product else found | dict.fromkeys((BOTH, STEP), (None, note))


def _float8(layer: Layer, recipe: Float8Recipe, device: torch.device) -> dict[str, tuple]:
    forward = recipe.gemms[0]
    # Delayed scaling knows its scale before: any number serves to time it.
    scale = torch.ones((), device=device) if recipe.history else None
    cast = partial(_cast, left=forward.left, right=forward.right, scale=scale)
    multiply = partial(scaled_matmul, fast_accumulation=forward.name in recipe.fast)
    wide = _copies(layer, device, lambda x, w: (x, w))
    found = {CASTS: (Call(cast, wide, "highest"), "")}
    reason = why_emulated(device, forward.left.scaling, forward.right.scaling)
    if reason:
        return found | dict.fromkeys((PRODUCT, BOTH, STEP), (None, reason))
    found[PRODUCT] = (Call(multiply, _copies(layer, device, cast), "highest"), "")
    found[BOTH] = (Call(lambda x, w: multiply(*cast(x, w)), wide, "highest"), "")
    reason = recipe.why_emulated(device)
    step = None if reason else _step(layer, device, partial(Float8Linear, recipe=recipe))
    return found | {STEP: (step, reason)}


def _cast(
    x: torch.Tensor, w: torch.Tensor, *, left: Operand, right: Operand, scale: torch.Tensor | None
) -> tuple[Scaled, Scaled]:
    """Return both operands of the forward product as a kernel takes them."""
    a, b = (quantize(tensor, operand.fmt, operand.scaling, scale=scale) for tensor, operand in ((x, left), (w, right)))
    a, b = (replace(each, values=each.codes()) for each in (a, b))
    return a, transposed(b)


def _step(layer: Layer, device: torch.device, kind: Callable[..., nn.Linear]) -> Call:
    """Return a forward and backward pass of a linear layer under autocast, as in a training step."""

    def made(x: torch.Tensor, w: torch.Tensor) -> tuple:
        linear = kind(layer.inputs, layer.outputs, bias=False, device=device)
        linear.weight.data.copy_(w)
        dy = torch.randn(layer.tokens, layer.outputs, device=device).bfloat16()
        return linear, x.requires_grad_(), dy

    def step(linear: nn.Linear, x: torch.Tensor, dy: torch.Tensor) -> None:
        linear.weight.grad = x.grad = None
        with torch.enable_grad(), torch.autocast(device.type, dtype=torch.bfloat16):
            y = linear(x)
        y.backward(dy)

    return Call(step, _copies(layer, device, made), "highest")


def measured(
    *,
    device: torch.device,
    size: str,
    repeats: int = REPEATS,
    compiled: bool = False,
    told: Callable[[str], None] = str,
) -> Speeds:
    """Measure everything; the recipes of a layer take turns. `told` hears of each layer when it is done."""
    found: list[Point] = []
    again = None
    with allowing("highest"):
        for family, layer in families(size):
            planned, calls = [], {}
            if compiled:
                torch.compiler.reset()  # after eight compilations of one function torch would leave it as it is
            for name in (BFLOAT16, *RECIPES):
                for part, (call, note) in prepared(layer, name, device=device, compiled=compiled).items():
                    point = Point(family, layer.tokens, layer.inputs, layer.outputs, name, part, note=note)
                    planned.append(point)
                    if call:
                        calls[point] = call
            times = gemm_sweep.timed(calls, device=device, repeats=repeats)
            found += [replace(point, samples=times.get(point, ())) for point in planned]
            again = again or next(((point, calls[point], times[point]) for point in calls), None)
            told(str(layer))
        point, call, before = again
        after = gemm_sweep.timed({point: call}, device=device, repeats=repeats)[point]
        many = math.ceil(gemm_sweep.BUSY_MS / measure.Timing(after).median)
        moment = gemm_sweep.busy_moment(call.times(many), device)
    drift = measure.Timing(after).median / measure.Timing(before).median - 1
    return Speeds(tuple(found), compiled, moment, float(f"{drift:.4g}"))


def table(found: Speeds) -> str:
    """Return the layers as text: times of the parts, how many times as fast as bfloat16, the bytes of a step's casts.

    Below: what was not measured and why, the break-even of each recipe, and a warning when the machine was not quiet.
    """
    rows = [("layer", "recipe", *(f"{part} ms" for part in PARTS), "times as fast", "casts of a step")]
    for layer in dict.fromkeys(point.layer for point in found.points):
        for name in (BFLOAT16, *RECIPES):
            parts = (found.at(layer, name, part) for part in PARTS)
            times = (f"{point.timing.median:.3g}" if point else "-" for point in parts)
            ratios = (found.faster(layer, name, part) for part in (PRODUCT, BOTH, STEP) if name != BFLOAT16)
            shown = " / ".join("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
            rows.append((str(layer), name, *times, shown, f"{cast_bytes(layer, name) / 1e6:.3g} MB"))
    lines = [command_line.columns(rows), "times as fast as bfloat16: product / product with casts / step"]
    missing: dict[str, dict[str, None]] = {}
    for point in found.points:
        if point.note:
            missing.setdefault(point.note, {})[f"{point.recipe} {point.part}"] = None
    lines += [f"not measured, {note}: {', '.join(what)}" for note, what in missing.items()]
    lines += [_said(found, name) for name in RECIPES]
    if not any(found.at(point.layer, name, PRODUCT) for point in found.points for name in RECIPES):
        lines.append("no FP8 speed: this device multiplies no FP8; the casts are timed as it does them")
    if abs(found.drift) > gemm_sweep.DRIFT:
        lines.append(f"NOT QUIET: one call took {1 + found.drift:.2f} times as long at the end; measure again")
    return "\n".join(line for line in lines if line)


def _said(found: Speeds, name: str) -> str:
    """Return the break-even of a recipe in words; empty where its step was not measured."""
    if not any(point.recipe == name and point.part == STEP and point.samples for point in found.points):
        return ""
    layer = found.break_even(name)
    return f"{name}: a step is faster from {layer} on" if layer else f"{name}: no step of a square layer is faster"


def record(found: Speeds, *, device: torch.device, size: str, shown: str = "") -> records.Record:
    """Return the speeds as a record; `of_record` gives them back."""
    results = {**records.rows(found.points), "compiled": found.compiled, "moment": found.moment}
    return records.Record(
        experiment=NAME,
        recipe="compiled" if found.compiled else "eager",
        size=size,
        seeds=(0,),
        settings={"sample_ms": gemm_sweep.SAMPLE_MS, "threads": torch.get_num_threads()},
        results=results | {"drift": found.drift, "emulated": bool(why_emulated(device))},
        samples=records.samples(found.points),
        data="random numbers from a normal distribution",
        data_name="random",
        weights="none",
        device=machine.facts(device),
        **records.provenance(shown),
    )


def of_record(record: records.Record) -> Speeds:
    """Return the speeds of a record."""
    results = record.results
    return Speeds(records.points_of(record, Point), results["compiled"], results["moment"], results["drift"])


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_line.Parser(NAME, about=__doc__, sizes="small or full")
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
    where = {"device": options.device, "size": options.size}
    print(command_line.first_lines(options.device, size=options.size), flush=True)
    told = {"told": lambda layer: print(f"{layer}: done", file=sys.stderr)}
    found = measured(**where, repeats=options.repeats, compiled=options.compile, **told)
    print(table(found))
    if options.record:
        records.save(record(found, **where, shown=options.command), options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
