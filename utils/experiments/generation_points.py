"""What is timed when a LLaMA writes: each format of its weights, each way to generate, in turns.

A step of generation reads every weight once, so the limit is the bandwidth of memory: that of the data sheet where
`utils.cost.roofline` knows the device, else that of a large copy on this machine, measured in the same run. A model of
a few megabytes stays in a CPU's caches: it can be above that limit, and what bounds it is the work around its products.
A time in a dtype that the device emulates would say nothing: it is left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from utils import llama, machine, measure
from utils.cost.cards import of_device
from utils.cost.token_bytes import bytes_per_token, kv_bytes
from utils.exception_text import of_compiler
from utils.experiments.generation_models import Subject
from utils.quantization.weight_formats import converted, weight_format, weight_report
from utils.runs import measurement
from utils.runs.measurement import Timed
from utils.training.recipes import RECIPES, Recipe
from utils.workloads import generation
from utils.workloads.generation import WAYS, Writer

FORMATS = ("float32", "bfloat16", "float16", "float8", "int8", "int4")
DEFAULT_WAYS = ("dynamic", "static")
TOKENS = {"small": 96, "full": 200}
REPEATS, COPY_REPEATS = 5, 7
BY_DTYPE = {torch.float32: "32-true", torch.bfloat16: "bf16-true", torch.float16: "16-true"}


@dataclass(frozen=True)
class Point(Timed):
    """One way: the times in milliseconds to write all tokens, and the bytes of a step; `note` says why there is none.

    `tokens` were written one after the other, batch 1; the first step reads the prompt.
    """

    way: str
    tokens: int
    bytes: int
    samples: tuple[float, ...] = ()
    note: str = ""

    @property
    def tokens_per_second(self) -> float | None:
        """From the median; None where it was not measured."""
        return 1e3 * self.tokens / self.timing.median if self.samples else None

    @property
    def gigabytes_per_second(self) -> float | None:
        """What so many steps a second have to move at least; None where it was not measured."""
        return self.tokens_per_second * self.bytes / 1e9 if self.samples else None


@dataclass(frozen=True)
class Result:
    """A model with its weights in one format.

    `compute`: the dtype of the products; `emulated` where the device has none. `kernel`: what multiplies, in words.
    `weights`, `cache`: bytes that are held. `limit`: GB/s, `limit_source` whose. `copy`: GB/s of a large copy, measured
    now. `clock`: "events" of a GPU, or that of `measure.quiet_clock`. `perplexity`, `kl` and `top1` (to float32) are
    None for random weights. `first_difference`: place of the first token that differs from float32's; None where all
    are the same.
    """

    format: str
    compute: str
    emulated: bool
    kernel: str
    weights: int
    cache: int
    points: tuple[Point, ...]
    limit: float
    limit_source: str
    copy: float
    clock: str
    text: str
    first_difference: int | None
    perplexity: float | None = None
    kl: float | None = None
    top1: float | None = None
    peak_allocated: int | None = None

    def share(self, point: Point) -> float | None:
        """Return the bytes a second of a point as a share of the limit; None where it was not measured."""
        return point.gigabytes_per_second / self.limit if point.samples else None

    @property
    def fastest(self) -> Point | None:
        """The way with the most tokens a second; None where nothing was measured."""
        return max((point for point in self.points if point.samples), key=lambda p: p.tokens_per_second, default=None)


def limit(device: torch.device, *, size: str) -> tuple[float, str, float]:
    """Return GB/s, where they stand, and the GB/s of a copy on this machine."""
    moved, samples = measurement.time_copy(
        device=device, size=size, repeats=COPY_REPEATS, seconds=measure.quiet_clock()[0]
    )
    copy = moved / measure.Timing(samples).median / 1e6
    sheet = of_device(machine.facts(device)["name"])
    if sheet:
        return sheet.bandwidth, sheet.source, copy
    return copy, "a large copy on this machine, read and written", copy


def results(
    subject: Subject,
    *,
    formats: tuple[str, ...] = FORMATS,
    ways: tuple[str, ...] = DEFAULT_WAYS,
    device: torch.device,
    size: str = "small",
    tokens: int | None = None,
    repeats: int = REPEATS,
) -> Iterator[Result]:
    """Measure a model in each format; yield what was found.

    A small model on a CPU is written in all formats and ways in turns, so that a machine that slows down slows all of
    them. Elsewhere the ways of one format take turns, and only that format lies beside the float32 model.
    """
    tokens = tokens or TOKENS[size]
    reference = generation.generate(subject.model, subject.prompt.to(device), tokens=tokens)
    bound = limit(device, size=size)
    together = device.type == "cpu" and size == "small"
    for names in [tuple(formats)] if together else [(name,) for name in formats]:
        torch.compiler.reset()  # what was compiled for the last format would count against a limit of torch
        measure.reset_peak(device)
        models = {name: _converted(subject, name, device) for name in names}
        points = _points(models, subject.prompt.to(device), ways=ways, tokens=tokens, repeats=repeats)
        for name, model in models.items():
            yield _result(subject, model, reference, bound, points[name])
        del models, model


def _converted(subject: Subject, name: str, device: torch.device) -> torch.nn.Module:
    one = weight_format(name)
    compute = torch.bfloat16 if device.type == "cuda" and one.dtype is None else None
    # The probe of GPTQ sees the text whose rest measures it.
    calibration = _calibration(subject, device) if one.calibrated else None
    return converted(subject.model, one, compute=compute, calibration=calibration)


def _calibration(subject: Subject, device: torch.device) -> torch.Tensor:
    if subject.held_out is None:
        raise ValueError("random weights and no text: a calibrated format has nothing to be calibrated on")
    length = subject.window
    ids = subject.held_out[: 8 * length]
    return ids[: len(ids) // length * length].view(-1, length).to(device)


def _recipe(model: torch.nn.Module) -> Recipe:
    return RECIPES[BY_DTYPE[model.dtype]]


def _result(
    subject: Subject,
    model: torch.nn.Module,
    reference: torch.Tensor,
    bound: tuple[float, str, float],
    points: tuple[Point, ...],
) -> Result:
    device = model.device
    recipe, report = _recipe(model), weight_report(model)
    prompt, tokens = subject.prompt.to(device), reference.shape[1]
    written = generation.generate(model, prompt, tokens=tokens, recipe=recipe)
    found = Result(
        report.name,
        str(model.dtype).removeprefix("torch."),
        recipe.emulated(device),
        report.kernel,
        report.nbytes,
        kv_bytes(model, tokens=prompt.shape[1] + tokens),
        points,
        *bound,
        "events" if device.type == "cuda" else measure.quiet_clock()[1],
        subject.tokenizer.decode(written[0].tolist()) if subject.tokenizer else "",
        generation.first_difference(written, reference),
        peak_allocated=measure.peak(device).allocated,
    )
    if subject.held_out is None:
        return found
    asked = {"recipe": recipe, "window": subject.window}
    near = llama.agreement(model, subject.model, subject.held_out, **asked)
    perplexity = llama.perplexity(model, subject.held_out, **asked)
    return replace(found, perplexity=perplexity, kl=near.kl, top1=near.top1)


def _points(
    models: dict[str, torch.nn.Module], prompt: torch.Tensor, *, ways: tuple[str, ...], tokens: int, repeats: int
) -> dict[str, tuple[Point, ...]]:
    """Time all ways of all models in turns; what this device does not do has a note."""
    planned, calls = {}, {}
    room = prompt.shape[1] + tokens
    for one, model in models.items():
        for name in ways:
            kept = {"no-cache": 0}.get(name, room if WAYS[name].fixed else prompt.shape[1] + tokens // 2)
            call, note = _tried(model, name, prompt, tokens=tokens, room=room)
            moved = bytes_per_token(model, context=kept).total
            planned[f"{one} {name}"] = Point(name, tokens, moved, note=note)
            if call:
                calls[f"{one} {name}"] = call
    seconds, _ = measure.quiet_clock()
    times = measure.time_in_turns(calls, device=prompt.device, warmup=1, repeats=repeats, seconds=seconds)
    for key, timing in times.items():
        planned[key] = replace(planned[key], samples=tuple(round(each, 4) for each in timing.samples))
    return {one: tuple(planned[f"{one} {name}"] for name in ways) for one in models}


def _tried(
    model: torch.nn.Module, name: str, prompt: torch.Tensor, *, tokens: int, room: int
) -> tuple[Callable | None, str]:
    """Return what writes, tried once, or None and why there is no time."""
    device, recipe = prompt.device, _recipe(model)
    if recipe.emulated(device):
        return None, recipe.remark(device)
    if said := WAYS[name].refusal(recipe, device):
        return None, said
    if name == "graphs" and model.weight_format.split:
        return None, f"{name}: {model.weight_format} looks at the inputs to choose columns; a graph cannot; take static"
    writer = Writer(model, name, recipe=recipe, room=room)

    def call() -> torch.Tensor:
        return writer(prompt, tokens=tokens)

    try:
        call()
    except Exception as error:  # a compiler fails in as many ways as it has parts
        if name != "compiled":
            raise
        return None, f"{name}: {of_compiler(error)}"
    return call, ""
