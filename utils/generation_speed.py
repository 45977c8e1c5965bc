"""Tokens a second, bytes and answers of a LLaMA with its weights in many formats, generated in many ways.

    python -m utils.generation_speed --format float32 bfloat16 int8 --way dynamic static --size small --record DIR

A step of generation reads every weight once, so the limit is the bandwidth of memory: that of the data sheet where
`utils.roofline` knows the device, else that of a large copy on this machine, measured in the same run. A model of a few
megabytes stays in a CPU's caches: it can be above that limit, and what bounds it is the work around its products.
A time in a dtype that the device emulates would say nothing: it is left out.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

import torch

from utils import command, gemm_sweep, generation, language_models, llama, machine, measure, records
from utils.generation import WAYS, Writer
from utils.language_models import SHAPES, TRAINED, Subject
from utils.recipes import RECIPES, Recipe
from utils.roofline import of_device
from utils.token_bytes import bytes_per_token, kv_bytes
from utils.weight_formats import WEIGHT_FORMATS, converted, weight_format, weight_report

NAME = "generation"
FORMATS = ("float32", "bfloat16", "float16", "float8", "int8", "int4")
DEFAULT_WAYS = ("dynamic", "static")
TOKENS = {"small": 96, "full": 200}
REPEATS = 5
BY_DTYPE = {torch.float32: "32-true", torch.bfloat16: "bf16-true", torch.float16: "16-true"}
MODELS = {"small": TRAINED, "full": "7b"}


@dataclass(frozen=True)
class Point:
    """One way: the times in milliseconds to write all tokens, and the bytes of a step; `note` says why there is none.

    `tokens` were written one after the other, batch 1; the first step reads the prompt.
    """

    way: str
    tokens: int
    bytes: int
    samples: tuple[float, ...] = ()
    note: str = ""

    @property
    def timing(self) -> measure.Timing:
        """The times with their median and spread."""
        return measure.Timing(self.samples)

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
    moved, samples = gemm_sweep.copy_times(device=device, size=size, seconds=measure.quiet_clock()[0])
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
    """Measure a model in each format; yield what was found. At any time one format lies beside the float32 model."""
    tokens = tokens or TOKENS[size]
    reference = generation.generate(subject.model, subject.prompt.to(device), tokens=tokens)
    bound = limit(device, size=size)
    for name in formats:
        measure.reset_peak(device)
        one = weight_format(name)
        compute = torch.bfloat16 if device.type == "cuda" and one.dtype is None else None
        # The probe of GPTQ sees the text whose rest measures it.
        calibration = _calibration(subject, device) if one.calibrated else None
        model = converted(subject.model, one, compute=compute, calibration=calibration)
        yield _result(subject, model, reference, bound, ways=ways, repeats=repeats)
        del model


def _calibration(subject: Subject, device: torch.device) -> torch.Tensor:
    if subject.held_out is None:
        raise ValueError("random weights and no text: a calibrated format has nothing to be calibrated on")
    length = subject.window
    ids = subject.held_out[: 8 * length]
    return ids[: len(ids) // length * length].view(-1, length).to(device)


def _result(
    subject: Subject,
    model: torch.nn.Module,
    reference: torch.Tensor,
    bound: tuple[float, str, float],
    *,
    ways: tuple[str, ...],
    repeats: int,
) -> Result:
    device, dtype = model.device, model.dtype
    recipe, report = RECIPES[BY_DTYPE[dtype]], weight_report(model)
    prompt, tokens = subject.prompt.to(device), reference.shape[1]
    room = prompt.shape[1] + tokens
    written = generation.generate(model, prompt, tokens=tokens, recipe=recipe)
    points = tuple(_points(model, prompt, recipe, ways=ways, tokens=tokens, room=room, repeats=repeats))
    found = Result(
        report.name,
        str(dtype).removeprefix("torch."),
        recipe.emulated(device),
        report.kernel,
        report.nbytes,
        kv_bytes(model, tokens=room),
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
    model: torch.nn.Module,
    prompt: torch.Tensor,
    recipe: Recipe,
    *,
    ways: tuple[str, ...],
    tokens: int,
    room: int,
    repeats: int,
) -> Iterator[Point]:
    """Time the ways in turns; what this device does not do has a note."""
    planned, calls = {}, {}
    torch.compiler.reset()  # what was compiled for the last format would count against a limit of torch
    for name in ways:
        kept = {"no-cache": 0}.get(name, room if WAYS[name].fixed else prompt.shape[1] + tokens // 2)
        planned[name] = Point(name, tokens, bytes_per_token(model, context=kept).total)
        call, note = _tried(model, name, prompt, recipe, tokens=tokens, room=room)
        planned[name] = replace(planned[name], note=note)
        if call:
            calls[name] = call
    seconds, _ = measure.quiet_clock()
    times = measure.time_in_turns(calls, device=prompt.device, warmup=1, repeats=repeats, seconds=seconds)
    for name, point in planned.items():
        yield replace(point, samples=tuple(round(each, 4) for each in times[name].samples)) if name in calls else point


def _tried(
    model: torch.nn.Module, name: str, prompt: torch.Tensor, recipe: Recipe, *, tokens: int, room: int
) -> tuple[Callable | None, str]:
    """Return what writes, tried once, or None and why there is no time."""
    device = prompt.device
    if recipe.emulated(device):
        return None, recipe.remark(device)
    if said := WAYS[name].refusal(recipe, device):
        return None, said
    writer = Writer(model, name, recipe=recipe, room=room)

    def call() -> torch.Tensor:
        return writer(prompt, tokens=tokens)

    try:
        call()
    except Exception as error:  # a compiler fails in as many ways as it has parts
        if name != "compiled":
            raise
        return None, f"{name}: {type(error).__name__}: {(str(error).strip() or 'it says nothing more').splitlines()[0]}"
    return call, ""


# Records


def record(
    found: Result, subject: Subject, *, device: torch.device, size: str, shown: str = "", known: dict | None = None
) -> records.Record:
    """Return a result as a record; `of_record` gives it back. `known`: `records.provenance`, made once for many."""
    fields = asdict(found)
    points = fields.pop("points")
    samples = {point["way"]: list(point.pop("samples")) for point in points}
    parameters = sum(parameter.numel() for parameter in subject.model.parameters())
    return records.Record(
        experiment=NAME,
        recipe=found.format,
        size=size,
        seeds=(0,),
        settings={"prompt": subject.prompt.shape[1], "window": subject.window, "attention": "sdpa", "batch": 1},
        results=fields | {"points": points, "model": subject.name, "parameters": parameters},
        samples=samples,
        data=subject.data,
        data_name=records.slug(subject.name),
        weights=subject.weights,
        device=machine.facts(device),
        **(known or records.provenance(shown)),
    )


def of_record(record: records.Record) -> Result:
    """Return the result of a record."""
    fields = {name: record.results[name] for name in Result.__dataclass_fields__ if name != "points"}
    points = (Point(**point, samples=tuple(record.samples[point["way"]])) for point in record.results["points"])
    return Result(**fields, points=tuple(points))


def table(found: list[Result]) -> str:
    """Return the results as text: bytes, rates and their share of the limit, and how near the answers are."""
    rows = [("weights", "way", "held MB", "tokens/s", "GB/s", "of the limit", "perplexity", "KL", "differs at")]
    for one in found:
        held = f"{(one.weights + one.cache) / 1e6:,.2f}"
        answers = (
            "-" if one.perplexity is None else f"{one.perplexity:.4f}",
            "-" if one.kl is None else f"{one.kl:.2g}",
            "never" if one.first_difference is None else str(one.first_difference),
        )
        for point in one.points:
            rates = ("-", "-", "-")
            if point.samples:
                rate, moved = point.tokens_per_second, point.gigabytes_per_second
                rates = (f"{rate:,.1f}", f"{moved:.2f}", f"{100 * one.share(point):.0f} %")
            rows.append((one.format, point.way, held, *rates, *answers))
    lines = [command.columns(rows)]
    lines += dict.fromkeys(f"{one.format}: {one.kernel}" for one in found)
    lines += dict.fromkeys(
        f"{one.format}, no time: {point.note}" for one in found for point in one.points if point.note
    )
    lines += dict.fromkeys(f"limit: {one.limit:,.4g} GB/s, {one.limit_source}; a copy: {one.copy:.3g}" for one in found)
    lines += dict.fromkeys(f"clock: {one.clock}" for one in found)
    return "\n".join(lines)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command.Parser(NAME + "_speed", sizes="small or full", record="write a record of each format")
    parser.add_argument("--format", nargs="+", default=list(FORMATS), metavar="NAME", help=", ".join(WEIGHT_FORMATS))
    parser.add_argument("--way", nargs="+", default=list(DEFAULT_WAYS), metavar="NAME", help=", ".join(WAYS))
    shapes = ", ".join((TRAINED, *SHAPES))
    parser.add_argument("--model", help=f"{shapes}, or owner/model on the hub; default: trained, on a GPU 7b")
    parser.add_argument("--weights", metavar="DIR", help="folder with trained weights, instead of --model")
    parser.add_argument("--data", metavar="DIR", help="folder with prose; default: generated stories")
    parser.add_count("--tokens", default=None, help="to write")
    parser.add_count("--repeats", default=REPEATS, help="times of each; default: %(default)s")
    found = parser.checked(arguments)
    for name in found.format:
        weight_format(name)
    for name in found.way:
        generation.way(name)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    program = f"{NAME}_speed"
    try:
        options = _parse(arguments)
        where = {"device": options.device, "size": options.size}
        chosen = options.model or MODELS[options.size]
        subject = language_models.subject(chosen, **where, weights=options.weights, text=options.data)
    except (ValueError, OSError) as error:
        return command.complain(program, str(error), 2)
    first = {"size": options.size, "data": subject.data, "weights": subject.weights}
    print(command.first_lines(options.device, **first), flush=True)
    asked = {"formats": tuple(options.format), "ways": tuple(options.way), "tokens": options.tokens}
    known, done = records.provenance(options.command), []
    try:
        for found in results(subject, **where, **asked, repeats=options.repeats):
            done.append(found)
            print(f"{found.format}: done", file=sys.stderr)
            if options.record:
                records.save(record(found, subject, **where, known=known), options.record)
    except ValueError as error:
        return command.complain(program, str(error), 2)
    except (MemoryError, RuntimeError) as error:
        if not command.out_of_memory(error):
            raise
        return command.complain(program, "out of memory; try --model 1b or fewer formats", 2)
    print(table(done))
    return 0


if __name__ == "__main__":
    sys.exit(main())
