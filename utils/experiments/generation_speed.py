"""Tokens per second, bytes and answers of a LLaMA with its weights in many formats, decoded in many ways.

    python -m utils.experiments.generation_speed --format float32 bfloat16 int8 --way dynamic static --size small
    --record DIR

`utils.experiments.generation_points` does the timing and has the limit that the rates are compared with; here they
become records and a table.
"""

import argparse
import sys
from dataclasses import asdict

import torch

from utils import records
from utils.experiments import generation_models
from utils.experiments.generation_models import SHAPES, TRAINED, Subject
from utils.experiments.generation_points import (
    DEFAULT_WAYS,
    FORMATS,
    REPEATS,
    GenerationPoint,
    GenerationResult,
    measure_formats,
)
from utils.quantization.weight_formats import WEIGHT_FORMATS, weight_format
from utils.runs import command_line, measurement, tables
from utils.workloads import generation
from utils.workloads.generation import WAYS

NAME, PROGRAM = "generation", "generation_speed"
MODELS = {"small": TRAINED, "full": "7b"}


def make_record(
    result: GenerationResult,
    subject: Subject,
    *,
    device: torch.device,
    size: str,
    shown: str = "",
    provenance: dict | None = None,
) -> records.Record:
    """Return a result as a record; `of_record` gives it back. `provenance` may be made once for many records."""
    fields = asdict(result)
    points = fields.pop("points")
    samples = {point["way"]: list(point.pop("samples")) for point in points}
    parameters = sum(parameter.numel() for parameter in subject.model.parameters())
    return measurement.make_record(
        NAME,
        recipe=result.format,
        size=size,
        device=device,
        settings={"prompt": subject.prompt.shape[1], "window": subject.window, "attention": "sdpa", "batch": 1},
        results=fields | {"points": points, "model": subject.name, "parameters": parameters},
        samples=samples,
        shown=shown,
        provenance=provenance,
        data=subject.data,
        data_name=records.slug(subject.name),
        weights=subject.weights,
    )


def of_record(record: records.Record) -> GenerationResult:
    """Return the result of a record."""
    fields = {name: record.results[name] for name in GenerationResult.__dataclass_fields__ if name != "points"}
    points = (
        GenerationPoint(**point, samples=tuple(record.samples[point["way"]])) for point in record.results["points"]
    )
    return GenerationResult(**fields, points=tuple(points))


def format_table(results: list[GenerationResult]) -> str:
    """Return the results as text: bytes, rates and their share of the limit, and how near the answers are."""
    rows = [("weights", "way", "held MB", "tokens/s", "GB/s", "of the limit", "perplexity", "KL", "differs at")]
    for result in results:
        held = f"{(result.weights + result.cache) / 1e6:,.2f}"
        answers = (
            "-" if result.perplexity is None else f"{result.perplexity:.4f}",
            "-" if result.kl is None else f"{result.kl:.2g}",
            "never" if result.first_difference is None else str(result.first_difference),
        )
        for point in result.points:
            rates = ("-", "-", "-")
            if point.samples:
                rate, moved = point.tokens_per_second, point.gigabytes_per_second
                rates = (f"{rate:,.1f}", f"{moved:.2f}", f"{100 * result.share(point):.0f} %")
            rows.append((result.format, point.way, held, *rates, *answers))
    lines = [tables.align(rows)]
    lines += dict.fromkeys(f"{result.format}: {result.kernel}" for result in results)
    lines += dict.fromkeys(
        f"{result.format}, no time: {point.note}" for result in results for point in result.points if point.note
    )
    lines += dict.fromkeys(
        f"limit: {result.limit:,.4g} GB/s, {result.limit_source}; a copy: {result.copy:.3g}" for result in results
    )
    lines += dict.fromkeys(f"clock: {result.clock}" for result in results)
    return "\n".join(lines)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_line.Parser(
        f"experiments.{PROGRAM}", about=__doc__, sizes="small or full", record="write a record of each format"
    )
    parser.add_names("--format", default=FORMATS, help=", ".join(WEIGHT_FORMATS))
    parser.add_names("--way", default=DEFAULT_WAYS, help=", ".join(WAYS))
    shapes = ", ".join((TRAINED, *SHAPES))
    parser.add_argument("--model", help=f"{shapes}, or owner/model on the hub; default: trained, on a GPU 7b")
    parser.add_argument("--weights", metavar="DIR", help="folder with trained weights, instead of --model")
    parser.add_argument("--data", metavar="DIR", help="folder with prose; default: generated stories")
    parser.add_count("--tokens", default=None, help="to write")
    parser.add_count("--repeats", default=REPEATS, help="times of each; default: %(default)s")
    options = parser.checked(arguments)
    for name in options.format:
        weight_format(name)  # raises for an unknown name
    for name in options.way:
        generation.find_method(name)
    return options


@command_line.in_one_line(PROGRAM, kept="the formats above are done, and recorded where --record was given")
def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        options = _parse(arguments)
        target = {"device": options.device, "size": options.size}
        model = options.model or MODELS[options.size]
        subject = generation_models.load_subject(model, **target, weights=options.weights, text=options.data)
    except (ValueError, OSError) as error:
        return command_line.complain(PROGRAM, str(error), 2)
    first = {"size": options.size, "data": subject.data, "weights": subject.weights}
    print(command_line.describe_run(options.device, **first), flush=True)
    names = {"formats": tuple(options.format), "ways": tuple(options.way)}
    provenance, done, code = records.provenance(options.command), [], 0
    try:
        for result in measure_formats(subject, **target, **names, tokens=options.tokens, repeats=options.repeats):
            done.append(result)
            print(f"{result.format}: done", file=sys.stderr)
            if options.record:
                records.save(make_record(result, subject, **target, provenance=provenance), options.record)
    except ValueError as error:
        code = command_line.complain(PROGRAM, str(error), 2)
    except (MemoryError, RuntimeError) as error:
        if not command_line.out_of_memory(error):
            raise
        code = command_line.complain(PROGRAM, "out of memory; try --model 1b or fewer formats", 2)
    except OSError as error:
        code = command_line.complain(PROGRAM, command_line.explain_unwritten(error), 2)
    if done:
        print(format_table(done))
    return code


if __name__ == "__main__":
    sys.exit(main())
