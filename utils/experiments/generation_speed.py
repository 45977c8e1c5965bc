"""Tokens a second, bytes and answers of a LLaMA with its weights in many formats, generated in many ways.

    python -m utils.experiments.generation_speed --format float32 bfloat16 int8 --way dynamic static --size small
    --record DIR

What is timed, and against which limit, stands in `utils.experiments.generation_points`; here it becomes records and a
table.
"""

import argparse
import sys
from dataclasses import asdict

import torch

from utils import machine, records
from utils.experiments import generation_models
from utils.experiments.generation_models import SHAPES, TRAINED, Subject
from utils.experiments.generation_points import DEFAULT_WAYS, FORMATS, REPEATS, Point, Result, results
from utils.quantization.weight_formats import WEIGHT_FORMATS, weight_format
from utils.runs import command_line
from utils.workloads import generation
from utils.workloads.generation import WAYS

NAME, PROGRAM = "generation", "generation_speed"
MODELS = {"small": TRAINED, "full": "7b"}


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
    lines = [command_line.columns(rows)]
    lines += dict.fromkeys(f"{one.format}: {one.kernel}" for one in found)
    lines += dict.fromkeys(
        f"{one.format}, no time: {point.note}" for one in found for point in one.points if point.note
    )
    lines += dict.fromkeys(f"limit: {one.limit:,.4g} GB/s, {one.limit_source}; a copy: {one.copy:.3g}" for one in found)
    lines += dict.fromkeys(f"clock: {one.clock}" for one in found)
    return "\n".join(lines)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_line.Parser(PROGRAM, about=__doc__, sizes="small or full", record="write a record of each format")
    parser.add_names("--format", default=FORMATS, help=", ".join(WEIGHT_FORMATS))
    parser.add_names("--way", default=DEFAULT_WAYS, help=", ".join(WAYS))
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


@command_line.in_one_line(PROGRAM, kept="the formats above are done, and recorded where --record was given")
def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        options = _parse(arguments)
        where = {"device": options.device, "size": options.size}
        chosen = options.model or MODELS[options.size]
        subject = generation_models.subject(chosen, **where, weights=options.weights, text=options.data)
    except (ValueError, OSError) as error:
        return command_line.complain(PROGRAM, str(error), 2)
    first = {"size": options.size, "data": subject.data, "weights": subject.weights}
    print(command_line.first_lines(options.device, **first), flush=True)
    asked = {"formats": tuple(options.format), "ways": tuple(options.way), "tokens": options.tokens}
    known, done, code = records.provenance(options.command), [], 0
    try:
        for found in results(subject, **where, **asked, repeats=options.repeats):
            done.append(found)
            print(f"{found.format}: done", file=sys.stderr)
            if options.record:
                records.save(record(found, subject, **where, known=known), options.record)
    except ValueError as error:
        code = command_line.complain(PROGRAM, str(error), 2)
    except (MemoryError, RuntimeError) as error:
        if not command_line.out_of_memory(error):
            raise
        code = command_line.complain(PROGRAM, "out of memory; try --model 1b or fewer formats", 2)
    except OSError as error:
        code = command_line.complain(PROGRAM, command_line.not_written(error), 2)
    if done:
        print(table(done))
    return code


if __name__ == "__main__":
    sys.exit(main())
