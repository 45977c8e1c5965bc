"""Time how a LLaMA generates: each format of its weights and each decoding loop, in turns.

A decode step reads every weight once, so the limit is the memory bandwidth: that of the data sheet where
`utils.cost.cards` knows the device, else that of a large copy on this machine, measured in the same run. A model of a
few megabytes stays in a CPU's caches: it can exceed that limit, and the work around its products bounds it. A time in a
dtype that the device emulates would say nothing, so it is left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from utils import llama, machine, measure
from utils.cost.cards import find_roof
from utils.cost.token_bytes import bytes_per_token, kv_bytes
from utils.exception_text import of_compiler
from utils.experiments.generation_models import Subject
from utils.quantization.weight_formats import converted, weight_format, weight_report
from utils.runs import command_line, measurement
from utils.runs.measurement import Timed
from utils.training.recipes import RECIPES, Recipe
from utils.workloads import generation
from utils.workloads.generation import WAYS, Writer

FORMATS = ("float32", "bfloat16", "float16", "float8", "int8", "int4")
DEFAULT_WAYS = ("dynamic", "static")
TOKENS = {"small": 96, "full": 200}
RECORDED = ("compiled", "graphs")  # ways that another version of torch or transformers may refuse
REPEATS, COPY_REPEATS = 5, 7
BY_DTYPE = {torch.float32: "32-true", torch.bfloat16: "bf16-true", torch.float16: "16-true"}


@dataclass(frozen=True)
class GenerationPoint(Timed):
    """One decoding loop: the times in milliseconds to write all tokens, and the bytes of a step.

    `tokens` were written one after the other, batch 1; the first step is the prefill of the prompt. `note` says why
    there are no times.
    """

    way: str
    tokens: int
    bytes: int
    samples: tuple[float, ...] = ()
    note: str = ""

    @property
    def tokens_per_second(self) -> float | None:
        """From the median; None where it was not measured."""
        return 1e3 * self.tokens / self.timing.median if self.samples else None  # tokens / ms * 1e3

    @property
    def gigabytes_per_second(self) -> float | None:
        """The least that these steps move per second; None where it was not measured."""
        return self.tokens_per_second * self.bytes / 1e9 if self.samples else None


@dataclass(frozen=True)
class GenerationResult:
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
    points: tuple[GenerationPoint, ...]
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

    def share(self, point: GenerationPoint) -> float | None:
        """Return the bytes a second of a point as a share of the limit; None where it was not measured."""
        return point.gigabytes_per_second / self.limit if point.samples else None

    @property
    def fastest(self) -> GenerationPoint | None:
        """The way with the most tokens a second; None where nothing was measured."""
        return max((point for point in self.points if point.samples), key=lambda p: p.tokens_per_second, default=None)


def find_limit(device: torch.device, *, size: str) -> tuple[float, str, float]:
    """Return the limit in GB/s, its source, and the GB/s of a copy on this machine."""
    moved, samples = measurement.time_copy(
        device=device, size=size, repeats=COPY_REPEATS, seconds=measure.quiet_clock()[0]
    )
    copy = moved / measure.Timing(samples).median / 1e6  # bytes / ms / 1e6
    sheet = find_roof(machine.facts(device)["name"])
    if sheet:
        return sheet.bandwidth, sheet.source, copy
    return copy, "a large copy on this machine, read and written", copy


def measure_formats(
    subject: Subject,
    *,
    formats: tuple[str, ...] = FORMATS,
    ways: tuple[str, ...] = DEFAULT_WAYS,
    device: torch.device,
    size: str = "small",
    tokens: int | None = None,
    repeats: int = REPEATS,
) -> Iterator[GenerationResult]:
    """Measure a model in each format; yield the results.

    For a small model on a CPU all formats and ways take turns, so that a machine that slows down slows all of them.
    Elsewhere the ways of one format take turns, so that memory holds only that format and the float32 model.
    """
    tokens = tokens or TOKENS[size]
    reference = generation.generate(subject.model, subject.prompt.to(device), tokens=tokens)
    bound = find_limit(device, size=size)
    together = device.type == "cpu" and size == "small"
    for names in [tuple(formats)] if together else [(name,) for name in formats]:
        torch.compiler.reset()  # what was compiled for the last format would count against a limit of torch
        measure.reset_peak(device)
        models = {name: _convert(subject, name, device) for name in names}
        points = _time_models(models, subject.prompt.to(device), ways=ways, tokens=tokens, repeats=repeats)
        for name, model in models.items():
            yield _measure_model(subject, model, reference, bound, points[name])
        del models, model


def _convert(subject: Subject, name: str, device: torch.device) -> torch.nn.Module:
    fmt = weight_format(name)
    compute = torch.bfloat16 if device.type == "cuda" and fmt.dtype is None else None
    # GPTQ is calibrated on the beginning of the text that also measures it.
    calibration = _cut_calibration(subject, device) if fmt.calibrated else None
    return converted(subject.model, fmt, compute=compute, calibration=calibration)


def _cut_calibration(subject: Subject, device: torch.device) -> torch.Tensor:
    if subject.held_out is None:
        raise ValueError("random weights and no text: a calibrated format has nothing to be calibrated on")
    length = subject.window
    ids = subject.held_out[: 8 * length]
    return ids[: len(ids) // length * length].view(-1, length).to(device)  # [N, S], N at most 8


def _find_recipe(model: torch.nn.Module) -> Recipe:
    return RECIPES[BY_DTYPE[model.dtype]]


def _measure_model(
    subject: Subject,
    model: torch.nn.Module,
    reference: torch.Tensor,
    bound: tuple[float, str, float],
    points: tuple[GenerationPoint, ...],
) -> GenerationResult:
    device = model.device
    recipe, report = _find_recipe(model), weight_report(model)
    prompt, tokens = subject.prompt.to(device), reference.shape[1]
    written = generation.generate(model, prompt, tokens=tokens, recipe=recipe)
    result = GenerationResult(
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
        return result
    agreement = llama.agreement(model, subject.model, subject.held_out, recipe=recipe, window=subject.window)
    perplexity = llama.perplexity(model, subject.held_out, recipe=recipe, window=subject.window)
    return replace(result, perplexity=perplexity, kl=agreement.kl, top1=agreement.top1)


def _time_models(
    models: dict[str, torch.nn.Module], prompt: torch.Tensor, *, ways: tuple[str, ...], tokens: int, repeats: int
) -> dict[str, tuple[GenerationPoint, ...]]:
    """Time all ways of all models in turns; what this device does not do has a note."""
    planned, calls = {}, {}
    room = prompt.shape[1] + tokens  # positions of the KV cache
    for fmt, model in models.items():
        for way in ways:
            # A fixed cache is read whole; one that grows is half full of new tokens on average.
            context = {"no-cache": 0}.get(way, room if WAYS[way].fixed else prompt.shape[1] + tokens // 2)
            call, note = _try_way(model, way, prompt, tokens=tokens, room=room)
            moved = bytes_per_token(model, context=context).total
            planned[fmt, way] = GenerationPoint(way, tokens, moved, note=note)
            if call:
                calls[fmt, way] = call
    seconds, _ = measure.quiet_clock()
    times = measure.time_in_turns(calls, device=prompt.device, warmup=1, repeats=repeats, seconds=seconds)
    for key, timing in times.items():
        planned[key] = replace(planned[key], samples=tuple(round(sample, 4) for sample in timing.samples))
    return {fmt: tuple(planned[fmt, way] for way in ways) for fmt in models}


def _try_way(
    model: torch.nn.Module, way: str, prompt: torch.Tensor, *, tokens: int, room: int
) -> tuple[Callable | None, str]:
    """Return the call that generates, made once already, or None and why there is no time."""
    device, recipe = prompt.device, _find_recipe(model)
    if recipe.emulated(device):
        return None, recipe.remark(device)
    if refusal := WAYS[way].refusal(recipe, device):
        return None, refusal
    if way == "graphs" and model.weight_format.split:
        return None, f"{way}: {model.weight_format} looks at the inputs to choose columns; a graph cannot; take static"
    writer = Writer(model, way, recipe=recipe, room=room)

    def call() -> torch.Tensor:
        return writer(prompt, tokens=tokens)

    try:
        call()
    except Exception as error:  # a compiler fails in as many ways as it has parts, and a step may not fit a graph
        if way not in RECORDED or command_line.out_of_memory(error):
            raise
        return None, f"{way}: {of_compiler(error)}"
    return call, ""
