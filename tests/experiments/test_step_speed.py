"""Each lever is a line beside what it replaces; what cannot be measured says why; a record gives the lines back."""

import dataclasses

import pytest
import torch

from utils import measure, records
from utils.experiments import step_speed
from utils.training import batches, training_loop
from utils.workloads import data, models, review_task

CPU = torch.device("cpu")
SHAPE = models.DistilBertShape(width=16, layers=1, heads=2, hidden=32, positions=64)
TINY = review_task.ReviewSettings(
    train=40,
    validation=0,
    test=1,
    epochs=1,
    batch=4,
    max_length=48,
    schedule=training_loop.Schedule(learning_rate=1e-3),
    shape=SHAPE,
)


@pytest.fixture(scope="module")
def task() -> review_task.ReviewTask:
    return review_task.prepare(data.generated_reviews("small"), settings=TINY)


@pytest.fixture(scope="module")
def found(task) -> list[step_speed.LeverTime]:
    return list(step_speed.time_levers(task, device=CPU, repeats=2))


def test_every_lever_is_measured_beside_what_it_replaces(found):
    by_lever = {}
    for line in found:
        by_lever.setdefault(line.lever, []).append(line.setting)
    assert by_lever == {
        "attention": ["eager", "sdpa"],
        "length, 40 reviews": ["padded to 48", "padded to the longest of a batch", "buckets of alike lengths"],
        "AdamW alone": ["for-loop", "foreach", "fused"],
        "recipe": ["32-true", "bf16-mixed"],
        "loading": ["pinned"],
    }
    timed = [line for line in found if line.samples]
    assert {len(line.samples) for line in timed} == {2}
    for first in (line for line in timed if line.faster == 1.0):
        for line in (line for line in timed if line.lever == first.lever):
            assert line.faster == pytest.approx(first.timing.median / line.timing.median)
    (missing,) = [line for line in found if not line.samples]
    assert missing.note == "missing: it speeds up the way to a GPU, and there is none"


def test_buckets_pad_less_and_say_how_much(task, found):
    shares = {name: step_speed._padding(drawn) for name, drawn in step_speed.draw_epochs(task, seed=0).items()}
    limit, longest, buckets = shares.values()
    assert limit > longest > buckets
    tokens = sum(map(len, task.train.ids))
    assert limit == pytest.approx(1 - tokens / (40 * 48))
    notes = [line.note for line in found if line.lever.startswith("length")]
    assert notes == [f"{100 * share:.0f} % padding" for share in shares.values()]


def test_every_pass_holds_each_review_once_in_an_order_from_the_seed(task):
    def texts(seed: int) -> dict[str, list[tuple[int, ...]]]:
        drawn = step_speed.draw_epochs(task, seed=seed)
        return {name: [text for batch in one for text in _texts(batch)] for name, one in drawn.items()}

    first = texts(0)
    assert all(sorted(found) == sorted(map(tuple, task.train.ids)) for found in first.values())
    assert first == texts(0)
    assert [name for name, found in texts(1).items() if found == first[name]] == ["padded to 48"]


def _texts(batch: batches.Batch) -> list[tuple[int, ...]]:
    return [tuple(ids[mask.bool()].tolist()) for ids, mask in zip(batch.ids, batch.mask, strict=True)]


def test_a_compiler_that_fails_is_one_sentence(task, monkeypatch):
    def broken(**inputs):
        raise RuntimeError("No working C++ compiler found\nand a long trace\nof it")

    monkeypatch.setattr(torch, "compile", lambda model: broken)
    line = list(step_speed.time_levers(task, device=CPU, repeats=1, compiled=True))[-1]
    assert (line.lever, line.samples) == ("torch.compile", ())
    assert line.note == "missing: RuntimeError: No working C++ compiler found"


def test_a_compiler_that_works_is_timed_beside_the_plain_step(task, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda model: model)
    plain, fast = list(step_speed.time_levers(task, device=CPU, repeats=1, compiled=True))[-2:]
    assert (plain.setting, plain.faster, fast.setting) == ("op by op", 1.0, "compiled")
    assert fast.note.endswith(" s to compile")


def test_the_calls_of_a_lever_take_turns():
    order = []
    calls = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    timings = measure.time_in_turns(calls, device=CPU, warmup=1, repeats=2)
    assert order == ["a", "b"] * 3
    assert {name: len(timing.samples) for name, timing in timings.items()} == {"a": 2, "b": 2}


def test_a_record_gives_the_lines_back(task, found, tmp_path):
    record = step_speed.make_record(task, found, device=CPU, shown="python -m utils.experiments.step_speed")
    loaded = records.load(records.save(record, tmp_path))
    assert loaded.name == "levers-32-true-small-generated-cpu-seed0"
    assert step_speed.of_record(loaded) == found
    assert step_speed.format_table(step_speed.of_record(loaded)) == step_speed.format_table(found)


def test_the_table_shows_median_spread_ratio_and_why_something_is_missing():
    lines = [
        step_speed.LeverTime("attention", "eager", (2.0, 2.0, 4.0), 1.0),
        step_speed.LeverTime("attention", "sdpa", (1.0,), 2.0, "fused"),
        step_speed.LeverTime("loading", "pinned", note="missing: no GPU"),
    ]
    rows = [" ".join(row.split()) for row in step_speed.format_table(lines).splitlines()]
    assert rows == [
        "lever: setting milliseconds times as fast",
        "attention: eager 2.00 ± 1.00 1.00",
        "attention: sdpa 1.00 ± 0.00 2.00 fused",
        "loading: pinned - - missing: no GPU",
    ]


def test_the_command_prints_the_table_and_writes_a_record(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(review_task, "settings_for", lambda size, reviews: TINY)
    monkeypatch.setattr(step_speed, "SMALL", SHAPE)
    monkeypatch.setattr(step_speed, "LENGTH", 48)
    monkeypatch.setattr(data, "load_reviews", lambda folder=None, *, size: data.generated_reviews("small"))
    asked = ["--size", "small", "--device", "cpu", "--repeats", "1", "--record", str(tmp_path)]
    assert step_speed.main(asked) == 0
    said = capsys.readouterr().out
    assert said.startswith("device   CPU ")
    (record,) = records.load_all(tmp_path)
    assert step_speed.format_table(step_speed.of_record(record)) in said
    assert record.command == "python -m utils.experiments.step_speed --size small --device cpu --repeats 1 --record DIR"
    assert record.settings["train"] == batches.BUCKET * step_speed.BATCH


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeats", "0"], "step_speed: --repeats 0 is below 1"),
        (["--size", "huge"], "step_speed: unknown size 'huge'"),
        (["--data", "/no/such/folder"], "step_speed: data folder /no/such/folder is not there"),
        (["--record", "/proc/records"], "step_speed: cannot write records into /proc/records"),
        (["--frobnicate"], "step_speed: unrecognized arguments: --frobnicate"),
    ],
)
def test_a_bad_argument_is_one_line_and_exit_code_2(arguments, message, capsys):
    assert step_speed.main(["--device", "cpu", "--size", "small", *arguments]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(message)
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.gpu
def test_on_a_gpu_loading_is_timed(task):
    lines = list(step_speed.time_levers(task, device=torch.device("cuda"), repeats=2))
    loading = [line for line in lines if line.lever == "loading"]
    assert [line.setting for line in loading] == ["usual", "pinned"]
    assert all(line.samples for line in loading)
    assert dataclasses.replace(loading[0], faster=1.0) == loading[0]
