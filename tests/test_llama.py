"""The LLaMA experiment: a few steps on a tiny model, measures against sums by hand, and what goes wrong on the way."""

import dataclasses
import json
import math
import subprocess
import sys

import pytest
import torch

from utils import llama, machine, records
from utils.formats import FORMATS
from utils.quantization.rounded_weights import rounded
from utils.runs import experiment
from utils.training import batches, training_loop
from utils.training.recipes import RECIPES, find_recipe
from utils.workloads import data, generated_text, language_task, models, tokenizers

CPU = torch.device("cpu")
SHAPE = models.LlamaShape(
    vocabulary=40, width=16, layers=1, heads=2, groups=1, hidden=32, positions=24, tied=True, spread=0.3
)
TINY = language_task.LanguageSettings(
    characters=6_000,
    held_out=600,
    steps=4,
    batch=2,
    length=32,
    schedule=training_loop.Schedule(learning_rate=1e-2),
    shape=dataclasses.replace(SHAPE, positions=32),
    entries=300,
)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("DATA", "WEIGHTS", "SIZE", "DEVICE", "CACHE"):
        monkeypatch.delenv(f"MIXED_PRECISION_{name}", raising=False)


@pytest.fixture(scope="module")
def task() -> language_task.LanguageTask:
    return language_task.prepare(data.generated_prose(TINY.characters), settings=TINY)


@pytest.fixture
def tiny(monkeypatch):
    """Make the command line and `trained` run the tiny settings, whatever size is asked for."""
    monkeypatch.setattr(language_task, "settings_for", lambda size: TINY)


def a_model(**changes) -> torch.nn.Module:
    return models.build_llama(dataclasses.replace(SHAPE, **changes), seed=1)


# Perplexity


def losses_by_hand(model, pieces: list[list[int]], *, window: int) -> list[float]:
    """Ask for one token at a time, in float64, and look its logarithm up."""
    model, losses = model.double(), []
    for piece in pieces:
        for at in range(1, len(piece)):
            first = (at - 1) // window * window
            with torch.no_grad():
                logits = model(torch.tensor([piece[first:at]])).logits[0, -1]
            losses.append(-logits.log_softmax(-1)[piece[at]].item())
    return losses


@pytest.mark.parametrize("window", [24, 5], ids=["pieces shorter than the window", "pieces cut into windows"])
def test_each_token_has_the_loss_that_a_hand_computation_gives(window):
    generator = torch.Generator().manual_seed(0)
    begin, end = tokenizers.BEGIN, tokenizers.END
    drawn = [torch.randint(2, 40, (n,), generator=generator).tolist() for n in (3, 12, 1, 7, 11)]
    pieces = [[begin, *words, end] for words in drawn]
    ids = torch.tensor([token for piece in pieces for token in piece])
    found = llama.token_losses(a_model(), ids, window=window)
    assert found.dtype is torch.float32
    assert len(found) == len(ids) - len(pieces)
    assert found.tolist() == pytest.approx(losses_by_hand(a_model(), pieces, window=window), rel=1e-5, abs=1e-6)


def test_text_without_a_begin_is_one_piece_and_its_first_token_has_no_loss():
    ids = torch.tensor([5, 6, 7, 8])
    found = llama.token_losses(a_model(), ids)
    assert len(found) == 3
    assert found.tolist() == pytest.approx(losses_by_hand(a_model(), [[5, 6, 7, 8]], window=24), rel=1e-5, abs=1e-6)
    assert len(llama.token_losses(a_model(), torch.tensor([5]))) == 0


def test_perplexity_is_the_exponential_of_the_mean_loss(task):
    model = task.new_model(0)
    losses = llama.token_losses(model, task.held_out)
    assert llama.perplexity(model, task.held_out) == math.exp(losses.double().mean().item())


def test_a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary():
    model = a_model()
    with torch.no_grad():
        model.lm_head.weight.zero_()
    assert llama.perplexity(model, torch.arange(20)) == pytest.approx(40, rel=1e-6)


def test_measuring_leaves_the_mode_of_the_model_and_its_gradients_alone():
    model = a_model().train()
    llama.perplexity(model, torch.arange(9))
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_recipe_decides_what_the_losses_are_computed_in():
    ids, model = torch.arange(20), a_model()
    wide, mixed = (llama.token_losses(model, ids, recipe=RECIPES[name]) for name in ("32-true", "bf16-mixed"))
    assert not torch.equal(wide, mixed)
    torch.testing.assert_close(wide, mixed, rtol=0.1, atol=0.1)


def test_agreement_with_another_model_is_what_a_hand_computation_gives():
    ids = torch.tensor([tokenizers.BEGIN, 5, 6, 7, 8, tokenizers.BEGIN, 9, 10])
    reference, model = a_model(), rounded(a_model(), FORMATS["float4_e2m1fn"])
    kl, same = [], []
    for piece in ([tokenizers.BEGIN, 5, 6, 7], [tokenizers.BEGIN, 9]):
        with torch.no_grad():
            p, q = (one(torch.tensor([piece])).logits[0].double().softmax(-1) for one in (reference, model))
        kl += (p * (p / q).log()).sum(-1).tolist()
        same += (p.argmax(-1) == q.argmax(-1)).tolist()
    found = llama.agreement(model, reference, ids)
    assert found.kl == pytest.approx(sum(kl) / 6, rel=1e-4)
    assert found.top1 == sum(same) / 6
    assert llama.agreement(reference, reference, ids) == llama.Agreement(1.0, 0.0)


def test_attention_reads_the_cache_that_is_given():
    from transformers import DynamicCache

    model, ids, made = a_model(), torch.arange(20), []

    def cache():
        made.append(DynamicCache(config=model.config))
        return made[-1]

    assert torch.equal(llama.token_losses(model, ids, cache=cache), llama.token_losses(model, ids))
    assert made[0].get_seq_length() >= 19  # with padding
    assert llama.perplexity(model, ids, cache=cache) == llama.perplexity(model, ids)
    assert llama.agreement(model, model, ids, cache=cache) == llama.Agreement(1.0, 0.0)
    assert len(made) == 3


def test_a_loss_beyond_the_range_of_float64_makes_the_perplexity_infinite_not_an_error():
    assert llama._exp(800.0) == math.inf
    assert math.isnan(llama._exp(math.nan))


# What a run is


def test_the_same_seed_gives_the_same_losses_and_another_seed_others(task):
    first, second, other = (
        experiment.run(llama.make_plan(task), find_recipe("32-true"), device=CPU, seed=seed).record
        for seed in (0, 0, 1)
    )
    assert first.samples["loss"] == second.samples["loss"]
    assert first.results["loss"] == second.results["loss"]
    assert first.samples["loss"] != other.samples["loss"]


@pytest.mark.parametrize("name", ["64-true", "32-true", "16-mixed", "bf16-mixed", "bf16-true"])
def test_a_record_holds_what_the_table_and_the_chapters_need(task, name):
    record = experiment.run(llama.make_plan(task), find_recipe(name), device=CPU).record
    result, memory = record.results, record.results["memory"]
    assert result["steps"] == result["planned_steps"] == 4
    assert result["nan_step"] is None
    assert result["perplexity"] == math.exp(result["loss"])
    assert result["held_out_tokens"] == (task.held_out != tokenizers.BEGIN).sum()
    assert result["emulated"] == find_recipe(name).emulated(CPU)
    assert len(result["writing_ms"]) == llama.WRITINGS
    size = find_recipe(name).weights.itemsize
    assert memory["weights"] == memory["gradients"] == size * result["parameters"]
    assert memory["optimizer"] == 2 * size * result["parameters"]
    assert memory["saved_activations"] == sum(memory["saved_by_dtype"].values()) > 0
    assert (result["loss_scale"] is not None) == (name == "16-mixed")
    assert [step for step, _ in record.samples["loss"]] == [1, 2, 3, 4]
    assert record.settings["shape"]["vocabulary"] == len(task.tokenizer)
    assert record.data == "generated stories (6,000 characters)"
    assert record.weights == "random, LLaMA of 1 layers of width 16"
    assert json.dumps(dataclasses.asdict(record))


def test_the_loss_falls_and_the_model_learns(task):
    settings = dataclasses.replace(
        TINY, steps=60, batch=8, schedule=training_loop.Schedule(learning_rate=2e-2), shape=task.settings.shape
    )
    longer = dataclasses.replace(task, settings=settings)
    before = llama.perplexity(task.new_model(0), task.held_out)
    result = experiment.run(llama.make_plan(longer), find_recipe("32-true"), device=CPU).record.results
    assert result["perplexity"] < 0.1 * before, (before, result["perplexity"])


def test_training_never_sees_the_held_out_text(task):
    text, held_out = language_task.split(task.texts.text, held_out=TINY.held_out)
    assert text + held_out == task.texts.text
    assert held_out == task.held_out_text
    assert text.endswith("\n")
    begins = (task.held_out == tokenizers.BEGIN).nonzero().flatten().tolist()
    read = task.tokenizer.decode(task.held_out.tolist(), skip_special_tokens=True)
    assert read == held_out
    assert len(begins) > 1
    trained = "".join(task.tokenizer.decode(piece, skip_special_tokens=True) for piece in task.train.ids)
    assert trained == text


def test_an_epoch_of_pieces_is_in_a_random_order_and_the_next_one_in_another(task):
    plan = llama.make_plan(dataclasses.replace(task, settings=dataclasses.replace(TINY, steps=2 * len(task.train))))
    drawn = [batch.ids[0].tolist() for batch in plan.draw(0)]
    assert len(drawn) == 2 * len(task.train)
    half = batches.count(len(task.train), TINY.batch)
    assert sorted(drawn[:half]) != sorted(drawn[half : 2 * half])


def test_the_labels_of_prose_are_the_next_tokens_and_padding_has_none():
    batch = batches.pad(batches.Tokens([[0, 7, 8, 1], [0, 9, 1]]), [0, 1])
    assert batch.ids.tolist() == [[0, 7, 8, 0, 0, 0, 0, 0], [0, 9, 0, 0, 0, 0, 0, 0]]
    assert batch.mask.tolist() == [[1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0]]
    no = batches.IGNORED
    assert batch.labels.tolist() == [[7, 8, 1, no, no, no, no, no], [9, 1, no, no, no, no, no, no]]


def test_the_training_loss_is_the_mean_over_all_tokens_of_a_batch(task):
    trainer = training_loop.Trainer(
        task.new_model(0), recipe=find_recipe("32-true"), device=CPU, schedule=TINY.schedule, steps=1
    )
    batch = batches.pad(task.train, [0, 1, 2])
    ids = torch.tensor([token for piece in task.train.ids[:3] for token in piece])
    expected = llama.token_losses(trainer.model, ids, window=TINY.length).mean()
    torch.testing.assert_close(trainer.loss(batch).detach(), expected, rtol=1e-5, atol=1e-6)


# The command line


def test_the_command_prints_what_it_uses_and_writes_one_record_a_run(tiny, tmp_path, capsys):
    arguments = ["--recipe", "32-true", "16-mixed", "--seeds", "2", "--size", "small", "--record", str(tmp_path)]
    assert llama.main([*arguments, "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("device   CPU ")
    for line in (
        "size     small",
        "data     generated stories (6,000",
        "weights  random, LLaMA of 1 layers of width 16",
    ):
        assert line in said
    assert "written tokens/s" in said
    assert "95 % Student interval of the mean over 2 seeds" in said
    found = records.load_all(tmp_path)
    assert [record.name for record in found] == [
        f"llama-{name}-small-generated-cpu-seed{seed}" for name in ("16-mixed", "32-true") for seed in (0, 1)
    ]
    shown = "python -m utils.llama --recipe 32-true 16-mixed --seeds 2 --size small --record DIR --device cpu"
    assert {record.command for record in found} == {shown}
    assert all(str(tmp_path) not in json.dumps(dataclasses.asdict(record)) for record in found)
    assert llama.format_table(found) in said  # also from the disk


def test_a_run_that_ends_in_nan_is_a_row_of_the_table_also_from_the_disk(task, tmp_path):
    short = dataclasses.replace(task, settings=dataclasses.replace(TINY, schedule=training_loop.Schedule(1e6)))
    record = experiment.run(llama.make_plan(short), find_recipe("16-true"), device=CPU).record
    assert record.results["nan_step"] is not None
    loaded = records.load(records.save(record, tmp_path))
    assert loaded.results["loss"] is None
    assert llama.summarize([loaded])[0]["perplexity"] == llama.summarize([record])[0]["perplexity"] == "nan"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--recipe", "fp17"], "unknown recipe 'fp17'; the known ones are 64-true", id="recipe"),
        pytest.param(["--size", "huge"], "unknown size 'huge'", id="size"),
        pytest.param(["--seeds", "0"], "--seeds 0 is below 1", id="no seed"),
        pytest.param(["--frobnicate"], "unrecognized arguments: --frobnicate", id="unknown option"),
        pytest.param(["--data", "/no/such/folder"], "data folder /no/such/folder is not there", id="data"),
        pytest.param(["--weights", "/no/such/folder"], "weights folder /no/such/folder is not there", id="weights"),
        pytest.param(["--record", "/proc/records"], "cannot write records into /proc/records", id="record"),
    ],
)
def test_a_bad_argument_is_one_line_and_exit_code_2(tiny, arguments, message, capsys, monkeypatch):
    monkeypatch.setattr(experiment, "run", lambda *_, **__: pytest.fail("trained before the arguments were checked"))
    assert llama.main(["--device", "cpu", "--size", "small", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.startswith("llama: ")
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(None, "no text in", id="no file"),
        pytest.param(b"", "input.txt is empty", id="empty"),
        pytest.param(b"\xff\xfe", "input.txt is not UTF-8 text", id="not UTF-8"),
        pytest.param(b"\n\n  .", "5 characters of text are too few", id="next to nothing"),
    ],
)
def test_bad_text_is_one_line_and_exit_code_2(tiny, tmp_path, capsys, text, message):
    if text is not None:
        (tmp_path / "input.txt").write_bytes(text)
    assert llama.main(["--size", "small", "--device", "cpu", "--data", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1


def test_text_of_a_folder_and_trained_weights_are_used_and_named(tiny, tmp_path, capsys):
    (tmp_path / "poem.txt").write_text("The rain it raineth every day.\n" * 40)
    arguments = ["--recipe", "32-true", "--size", "small", "--device", "cpu", "--data", str(tmp_path)]
    assert llama.main(arguments) == 0
    assert "data     text (1,240 characters), local folder" in capsys.readouterr().out
    tokenizer = tokenizers.train_prose_bpe("The rain", entries=300)
    with models.quiet():
        models.build_llama(dataclasses.replace(TINY.shape, vocabulary=len(tokenizer))).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert llama.main([*arguments, "--weights", str(tmp_path)]) == 0
    assert "weights  trained weights, local folder" in capsys.readouterr().out


def test_help_is_answered_from_a_shell():
    done = subprocess.run(
        [sys.executable, "-m", "utils.llama", "--help"], capture_output=True, text=True, check=True, cwd=records.ROOT
    )
    assert "--recipe NAME" in done.stdout


# What other chapters use


def test_a_trained_model_is_kept_and_found_again(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("MIXED_PRECISION_CACHE", str(tmp_path / "cache"))
    first = llama.train_once("generated", device=CPU)
    again = llama.train_once("generated", device=CPU)
    assert (first.cached, again.cached) == (False, True)
    for name, value in first.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name
    assert again.record.results == first.record.results
    assert torch.equal(first.ids, again.ids)
    assert again.tokenizer.get_vocab() == first.tokenizer.get_vocab()
    assert llama.perplexity(again.model, again.ids) == pytest.approx(first.record.results["perplexity"], rel=1e-6)
    assert not first.model.training
    assert not again.model.training
    assert not llama.train_once("generated", device=CPU, seed=1).cached


def test_a_folder_without_text_is_refused_before_anything_is_trained(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"no text in .*: no .txt file there or in its folder tinyshakespeare"):
        llama.train_once(str(tmp_path))
    monkeypatch.setenv("MIXED_PRECISION_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="no text in"):
        llama.train_once()


def test_the_settings_of_both_sizes_fit_together():
    for settings in (language_task.SMALL, language_task.FULL):
        assert settings.length <= settings.shape.positions
        assert settings.shape.width % settings.shape.heads == 0
        assert settings.shape.heads % settings.shape.groups == 0


def test_a_small_piece_holds_a_whole_story_and_there_are_enough_held_out_tokens():
    settings = dataclasses.replace(language_task.SMALL, characters=120_000)
    task = language_task.prepare(data.generated_prose(settings.characters), settings=settings)
    stories = task.texts.text.count("\n")
    held_out = task.held_out_text.count("\n")
    assert (task.held_out == tokenizers.BEGIN).sum() == held_out
    assert len(task.train) == stories - held_out


def test_stories_are_the_same_in_every_process_vary_and_refer_back():
    text = generated_text.stories(50_000, seed=0)
    assert text == generated_text.stories(50_000, seed=0)
    assert text != generated_text.stories(50_000, seed=1)
    stories = text.splitlines()
    assert len(set(stories)) > 0.98 * len(stories)
    for story in stories:
        (hero,) = (word for word in generated_text.WALKER if f"the {word} went" in story)
        (other,) = (word for word in generated_text.ASKER if f"met the {word}." in story)
        thing, offer = generated_text.WALKER[hero][1], generated_text.ASKER[other][1]
        assert all(
            f" {word} " not in story
            for word in (*generated_text.WALKER, *generated_text.ASKER)
            if word not in (hero, other)
        )
        last = story.split(". ")[-1]
        assert all(word in last for word in (hero, other, thing, offer)), story


@pytest.mark.gpu
def test_a_run_on_a_gpu_records_its_peaks(task):
    device = torch.device("cuda")
    record = experiment.run(llama.make_plan(task), find_recipe("bf16-mixed"), device=device).record
    assert record.results["memory"]["peak_reserved"] >= record.results["memory"]["peak_allocated"] > 0
    assert record.device["name"] == machine.facts(device)["name"]
