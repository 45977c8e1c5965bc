"""Speeds of generation: what is counted, what is left out and why, and records that give everything back."""

import dataclasses
import json

import pytest
import torch

from utils import records
from utils.cost import cards
from utils.cost.token_bytes import bytes_per_token
from utils.experiments import generation_models, generation_points, generation_speed
from utils.experiments.generation_models import Subject
from utils.experiments.generation_points import GenerationPoint, GenerationResult, measure_formats
from utils.experiments.generation_speed import format_table, make_record, of_record
from utils.measure import Timing
from utils.runs import measurement
from utils.training.recipes import Recipe
from utils.workloads import decoders, models, tokenizers

CPU = torch.device("cpu")
SHAPE = models.LlamaShape(
    vocabulary=300, width=32, layers=2, heads=4, groups=2, hidden=64, positions=64, tied=True, spread=0.3
)
IDS = torch.arange(60) % 50 + 5
TEXT = "The rain it raineth every day"
WHERE = {"device": CPU, "size": "small"}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    for name in ("DATA", "WEIGHTS", "SIZE", "DEVICE"):
        monkeypatch.delenv(f"MIXED_PRECISION_{name}", raising=False)
    monkeypatch.setattr(generation_points, "find_limit", lambda device, size: (10.0, "a sheet", 8.0))
    monkeypatch.setattr(Recipe, "_narrow_emulated", lambda recipe, device: recipe.name == "16-true")


@pytest.fixture(scope="module")
def subject() -> Subject:
    tokenizer = tokenizers.train_prose_bpe(TEXT, entries=300)
    model = models.build_llama(dataclasses.replace(SHAPE, vocabulary=len(tokenizer)), seed=1)
    return Subject("trained", model, IDS[None, :5], "some weights", "some text", IDS, 20, tokenizer)


def measured(subject, **asked) -> list[GenerationResult]:
    return list(measure_formats(subject, **WHERE, **{"tokens": 6, "repeats": 2} | asked))


def test_float32_is_itself_and_narrow_weights_are_near_it(subject):
    plain, narrow = measured(subject, formats=("float32", "int4"), ways=("dynamic",))
    assert (plain.kl, plain.top1, plain.first_difference) == (0.0, 1.0, None)
    assert narrow.kl > 0
    assert narrow.top1 <= 1
    assert narrow.weights < plain.weights
    assert narrow.perplexity != plain.perplexity
    assert plain.text == subject.tokenizer.decode(measured_tokens(subject))
    assert (plain.limit, plain.limit_source, plain.copy) == (10.0, "a sheet", 8.0)


def measured_tokens(subject) -> list[int]:
    return generation_speed.generation.generate(subject.model, subject.prompt, tokens=6)[0].tolist()


def test_a_step_counts_what_its_way_reads(subject):
    (found,) = measured(subject, formats=("float32",), ways=("no-cache", "dynamic", "static", "transformers"))
    read = {"no-cache": 0, "dynamic": 5 + 3, "static": 5 + 6, "transformers": 5 + 3}
    for point in found.points:
        assert point.bytes == bytes_per_token(subject.model, context=read[point.way]).total
        assert len(point.samples) == 2
        assert point.tokens == 6


def test_a_small_model_takes_turns_in_all_formats_and_ways_and_a_full_one_in_its_ways(subject, monkeypatch):
    asked = []

    def in_turns(calls, **_):
        asked.append([" ".join(format_and_way) for format_and_way in calls])
        return {name: Timing((float(n),)) for n, name in enumerate(calls, 1)}

    monkeypatch.setattr(generation_points.measure, "time_in_turns", in_turns)
    plan = {"formats": ("float32", "int8"), "ways": ("dynamic", "static")}
    found = measured(subject, **plan)
    assert asked == [["float32 dynamic", "float32 static", "int8 dynamic", "int8 static"]]
    assert [[point.samples for point in one.points] for one in found] == [[(1.0,), (2.0,)], [(3.0,), (4.0,)]]
    assert [one.format for one in found] == ["float32", "int8"]
    list(measure_formats(subject, device=CPU, size="full", tokens=6, **plan))
    assert asked[1:] == [["float32 dynamic", "float32 static"], ["int8 dynamic", "int8 static"]]


def test_rates_follow_from_the_median_and_the_bytes():
    point = GenerationPoint("static", tokens=50, bytes=2_000_000, samples=(900.0, 1_000.0, 1_100.0))
    assert point.tokens_per_second == 50
    assert point.gigabytes_per_second == pytest.approx(0.1)
    found = a_result(points=(point, GenerationPoint("graphs", 50, 1, note="no")))
    assert found.share(point) == pytest.approx(0.01)
    assert found.share(found.points[1]) is None
    assert found.fastest is point
    assert a_result(points=()).fastest is None


def a_result(**changes) -> GenerationResult:
    fields = {"format": "int8", "compute": "float32", "emulated": False, "kernel": "by hand", "weights": 10**6}
    fields |= {
        "cache": 10**6,
        "points": (),
        "limit": 10.0,
        "limit_source": "a sheet",
        "copy": 8.0,
        "text": "",
        "clock": "wall",
    }
    return GenerationResult(**fields | {"first_difference": 3} | changes)


def test_an_emulated_dtype_has_answers_and_no_times(subject):
    (found,) = measured(subject, formats=("float16",), ways=("dynamic", "static"))
    assert found.emulated
    assert found.kl is not None
    assert all(point.samples == () and "emulated" in point.note for point in found.points)
    text = format_table([found])
    assert "float16, no time: emulated" in text
    assert "tokens/s" in text.splitlines()[0]
    assert text.splitlines()[1].split()[3:6] == ["-", "-", "-"]


def test_a_way_that_the_device_does_not_have_says_so_and_the_others_are_measured(subject):
    (found,) = measured(subject, formats=("float32",), ways=("graphs", "static"))
    assert [bool(point.samples) for point in found.points] == [False, True]
    assert "graphs: a CUDA graph" in format_table([found])


def test_a_format_that_looks_at_its_inputs_is_recorded_as_no_graph(subject, monkeypatch):
    monkeypatch.setattr(generation_speed.generation.GenerationMethod, "refusal", lambda *_: "")  # as on a GPU
    (found,) = measured(subject, formats=("int8-split",), ways=("graphs", "static"))
    said = "graphs: int8-split looks at the inputs to choose columns; a graph cannot; take static"
    assert [point.note for point in found.points] == [said, ""]


def test_a_compiler_that_fails_is_told_and_not_replaced(subject, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("no C++ compiler\nand more")

    monkeypatch.setattr(torch, "compile", lambda *_, **__: fails)
    (found,) = measured(subject, formats=("float32",), ways=("compiled", "static"))
    assert found.points[0].note == "compiled: RuntimeError: no C++ compiler"
    assert [bool(point.samples) for point in found.points] == [False, True]


def test_a_step_that_no_graph_holds_is_told_and_the_others_are_measured(subject, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    monkeypatch.setattr(generation_speed.generation.GenerationMethod, "refusal", lambda *_: "")  # as on a GPU
    monkeypatch.setattr(decoders, "recorded", fails)
    (found,) = measured(subject, formats=("float32",), ways=("graphs", "static"))
    assert found.points[0].note == "graphs: RuntimeError: operation not permitted when stream is capturing"
    assert [bool(point.samples) for point in found.points] == [False, True]
    monkeypatch.setattr(decoders, "recorded", lambda *_, **__: (_ for _ in ()).throw(torch.OutOfMemoryError("no room")))
    with pytest.raises(torch.OutOfMemoryError):
        measured(subject, formats=("float32",), ways=("graphs",))


def test_random_weights_have_times_and_differences_but_no_perplexity(subject):
    random = dataclasses.replace(subject, held_out=None, window=None, tokenizer=None)
    (found,) = measured(random, formats=("int8",), ways=("static",))
    assert (found.perplexity, found.kl, found.top1, found.text) == (None, None, None, "")
    assert found.points[0].samples
    with pytest.raises(ValueError, match="nothing to be calibrated on"):
        measured(random, formats=("int4-gptq",), ways=())


def test_a_calibrated_format_is_calibrated_on_the_held_out_text(subject):
    (found,) = measured(subject, formats=("int4-gptq",), ways=())
    assert found.format == "int4-gptq"
    assert found.kl > 0


def test_a_record_gives_the_result_back(subject, tmp_path):
    for found in measured(subject, formats=("float32", "float16"), ways=("dynamic", "graphs")):
        made = make_record(found, subject, **WHERE, shown="python -m utils.experiments.generation_speed")
        assert made.name == f"generation-{found.format}-small-trained-cpu-seed0"
        assert of_record(records.load(records.save(made, tmp_path))) == found


def test_the_limit_is_the_data_sheet_where_the_device_has_one(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(measurement, "COPY_BYTES", {"small": 2**16})
    bandwidth, source, copy = generation_points.find_limit(CPU, size="small")
    assert bandwidth == copy > 0
    assert "on this machine" in source
    monkeypatch.setattr(generation_points, "find_roof", lambda name: cards.ROOFS["H200 SXM"])
    bandwidth, source, copy = generation_points.find_limit(CPU, size="small")
    assert (bandwidth, "H200" in source) == (4800, True)
    assert copy != bandwidth


# The command


def test_the_command_says_what_it_uses_records_each_format_and_ends_with_a_table(
    monkeypatch, tmp_path, capsys, subject
):
    monkeypatch.setattr(generation_models, "load_subject", lambda *_, **__: subject)
    asked = ["--device", "cpu", "--size", "small", "--format", "float32", "int8", "--way", "static"]
    assert generation_speed.main([*asked, "--tokens", "3", "--repeats", "1", "--record", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "weights  some weights" in out
    assert "data     some text" in out
    assert "limit: 10 GB/s, a sheet" in out
    names = sorted(path.stem for path in tmp_path.glob("*.json"))
    assert names == [f"generation-{one}-small-trained-cpu-seed0" for one in ("float32", "int8")]
    held = json.loads((tmp_path / f"{names[1]}.json").read_text())
    shown = "python -m utils.experiments.generation_speed --device cpu --size small --format float32 int8 --way static"
    assert held["command"] == f"{shown} --tokens 3 --repeats 1 --record DIR"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "int3"], "weight format 'int3' is not one of"),
        (["--way", "fast"], "unknown way 'fast'"),
        (["--model", "8b"], "unknown model '8b'"),
        (["--weights", "nowhere"], "weights folder nowhere is not there"),
        (["--tokens", "0"], "--tokens 0 is below 1"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, message, capsys):
    assert generation_speed.main(["--device", "cpu", "--size", "small", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.startswith("generation_speed: ")
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_model_that_does_not_fit_is_told_so(monkeypatch, capsys, subject):
    def too_large(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")
        yield

    monkeypatch.setattr(generation_models, "load_subject", lambda *_, **__: subject)
    monkeypatch.setattr(generation_speed, "measure_formats", too_large)
    assert generation_speed.main(["--device", "cpu", "--size", "small"]) == 2
    assert "out of memory; try --model 1b" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "says"),
    [
        pytest.param(torch.OutOfMemoryError("CUDA out of memory"), "out of memory; try --model 1b", id="memory"),
        pytest.param(ValueError("the text is too short"), "the text is too short", id="a mistake"),
        pytest.param(OSError(28, "No space left on device"), "cannot be written: No space left", id="a full disk"),
    ],
)
def test_formats_that_are_done_are_shown_when_a_later_one_fails(monkeypatch, capsys, subject, error, says):
    def one_and_no_more(*arguments, **options):
        yield from generation_points.measure_formats(
            *arguments, **{**options, "formats": ("float32",), "ways": ("dynamic",)}
        )
        raise error

    monkeypatch.setattr(generation_models, "load_subject", lambda *_, **__: subject)
    monkeypatch.setattr(generation_speed, "measure_formats", one_and_no_more)
    arguments = ["--device", "cpu", "--size", "small", "--tokens", "2", "--repeats", "1"]
    assert generation_speed.main(arguments) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert "float32  dynamic" in said.out
