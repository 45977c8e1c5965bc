"""ModelSize in Python: its numbers are those of `memory.predict`, and what it says of them follows from them."""

import json
from dataclasses import replace

import pytest

from tests.page_states import state_of
from utils.cost import memory
from utils.cost.architectures import NAMED, Architecture
from utils.cost.cards import CARDS
from utils.training import recipes
from utils.widgets.model_size import ModelSize
from utils.widgets.model_size import facts as words

SEVEN = {"recipe": "bf16-mixed", "batch": 8, "length": 2_048, "card": "A100", "memory": 80.0}
SMALL = Architecture(
    "llama", vocabulary=1_000, width=64, layers=3, heads=4, groups=2, hidden=160, positions=128, tied=True
)


@pytest.fixture(scope="module")
def seven():
    return ModelSize("LLaMA 7B", **SEVEN)


def test_the_ledger_is_what_memory_predicts(seven):
    assert seven.plan.ledger == memory.predict("LLaMA 7B", "bf16-mixed", batch=8, length=2_048, attention="sdpa")
    own = ModelSize(SMALL, recipe="bf16-true-kahan", batch=6, accumulate=2, shards=4, stage=2, checkpointing=True)
    assert own.model == ""
    assert own.plan.ledger == memory.predict(
        SMALL,
        "bf16-true-kahan",
        batch=6,
        length=512,
        attention="sdpa",
        accumulate=2,
        shards=4,
        stage=2,
        checkpointing=True,
    )


@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_adapters_are_those_of_the_ledger_and_a_classifier_has_none(method):
    plan = ModelSize("LLaMA 7B", method=method, rank=64, checkpointing=True, length=2_048).plan
    how = {"length": 2_048, "attention": "sdpa", "checkpointing": True}
    assert plan.ledger == memory.predict("LLaMA 7B", "bf16-mixed", method=method, rank=64, **how)
    assert plan.adapted
    classifier = ModelSize("DistilBERT", method=method).plan
    assert not classifier.adapted
    assert classifier.ledger == replace(classifier, method="full").ledger
    assert classifier.savings["LoRA"] is classifier.savings["QLoRA"] is None


def test_all_is_set_and_read_from_python():
    widget = ModelSize("DistilBERT")
    widget.model, widget.recipe, widget.optimizer, widget.card = "GPT-2 XL", "16-true", "sgd", "T4"
    widget.set_trait("batch", 3)
    plan = widget.plan
    assert (plan.architecture, plan.recipe, plan.batch) == (NAMED["GPT-2 XL"], "16-true", 3)
    assert plan.room == 16 * 10**9


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"model": "LLaMA 8B"}, r"model 'LLaMA 8B' is not one of DistilBERT, GPT-2, .*LLaMA 7B"),
        ({"model": ""}, "a model without a name needs sizes; pass an Architecture"),
        ({"recipe": "fp8"}, "recipe 'fp8' is not one of 64-true, 32-true"),
        ({"optimizer": "adam"}, "optimizer 'adam' is not one of adamw, adamw-8bit, sgd-momentum, sgd"),
        ({"attention": "flash"}, "attention 'flash' is not one of eager, sdpa"),
        ({"method": "dora"}, "method 'dora' is not one of full, lora, qlora"),
        ({"rank": 0}, "rank 0 is not in 1 to 1,024"),
        ({"stage": 4}, "stage 4 is not one of 0, 1, 2, 3"),
        ({"card": "GTX 9000"}, "card 'GTX 9000' is not one of CPU, .*H100"),
        ({"batch": 0}, "batch 0 is not in 1 to 1,000,000"),
        ({"length": 2_000_000}, "length 2000000 is not in 1 to 1,000,000"),
        ({"shards": -1}, "shards -1 is not in 1 to"),
        ({"memory": -1.0}, "memory -1.0 GB is not between"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        ModelSize(**settings)
    [(name, value)] = settings.items()
    widget = ModelSize()
    before = widget.book_state()
    with pytest.raises(ValueError, match=complaint):
        widget.set_trait(name, value)
    assert widget.book_state() == before


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="width 64, 5 heads and 2 groups do not fit"):
        ModelSize().set_trait("sizes", {**vars(SMALL), "heads": 5})


@pytest.mark.parametrize("name", words.choices())
def test_the_choices_are_those_of_the_modules(name):
    known = {
        "recipe": recipes.RECIPES,
        "optimizer": memory.OPTIMIZERS,
        "attention": ("eager", "sdpa"),
        "method": memory.METHODS,
        "stage": memory.STAGES,
        "card": CARDS,
    }
    assert tuple(words.choices()[name]) == tuple(known[name])


def test_each_saving_is_the_difference_that_its_change_makes(seven):
    plan, before = seven.plan, seven.plan.ledger.total
    assert list(plan.savings) == list(words.CHANGES)
    after = {
        "checkpointing": replace(plan, checkpointing=True),
        "8-bit Adam": replace(plan, optimizer="adamw-8bit"),
        "bf16-true": replace(plan, recipe="bf16-true"),
        "LoRA": replace(plan, method="lora"),
        "QLoRA": replace(plan, method="qlora"),
        "sharding over 8": replace(plan, shards=8, stage=3),
        "half the batch": replace(plan, batch=4),
    }
    assert plan.savings == {name: before - then.ledger.total for name, then in after.items()}


def test_a_change_that_is_made_already_saves_nothing_more():
    made = {"checkpointing": True, "optimizer": "adamw-8bit", "recipe": "bf16-true", "shards": 16, "stage": 3}
    made["method"] = "qlora"
    plan = ModelSize("GPT-2", **made, batch=1).plan
    assert set(plan.savings.values()) == {None}
    assert plan.sentence.endswith("None of the changes saves anything.")


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("settings", [{}, {"checkpointing": True, "accumulate": 4}], ids=["plain", "in parts"])
def test_the_largest_batch_fits_and_one_more_does_not(card, settings):
    plan = ModelSize("GPT-2 medium", length=256, card=card, **settings).plan
    largest = plan.largest_batch
    budget = 0.9 * plan.room
    assert replace(plan, batch=largest).ledger.total <= budget < replace(plan, batch=largest + 1).ledger.total


def test_a_model_that_does_not_fit_has_no_batch(seven):
    assert seven.plan.largest_batch == 0  # 18 bytes for each of 6.7e9 parameters are 121 GB
    ledger = seven.plan.ledger
    assert seven.plan.verdict == (
        f"{words.bytes_text(ledger.total)} of 80 GB: it is {words.bytes_text(ledger.total - 80 * 10**9)} too large."
    )


@pytest.mark.parametrize(
    ("over", "words_of"),
    [(-1, "it fits, with "), (1, "too close to tell, with ")],
)
def test_above_nine_tenths_of_the_card_nobody_can_tell(seven, over, words_of):
    total = seven.plan.ledger.total
    card = replace(seven.plan, memory=(10 * total // 9 - over) / 10**9)
    assert f": {words_of}{words.bytes_text(card.room - total)}" in card.verdict
    assert card.fits(total) is (over < 1)
    full = replace(seven.plan, memory=total / 10**9)
    assert full.verdict.endswith("too close to tell, with 0 MB for all that is not counted.")


def test_one_card_has_nothing_to_divide(seven):
    for stage in memory.STAGES:
        assert replace(seven.plan, stage=stage).ledger == seven.plan.ledger


def test_every_change_has_its_cost():
    assert list(words.COSTS) == list(words.CHANGES)


def test_the_verdict_speaks_of_each_card():
    plan = ModelSize("GPT-2", shards=4, stage=1).plan
    assert f" of 80 GB on each of them: it fits, with {words.bytes_text(plan.room - plan.ledger.total)}" in plan.verdict


@pytest.mark.parametrize(
    ("settings", "item"),
    [
        ({"batch": 1, "length": 1}, "the state of the optimizer"),
        ({"batch": 64}, "the activations"),
        ({"batch": 1, "length": 1, "optimizer": "sgd", "recipe": "bf16-true-master"}, "what the optimizer keeps"),
    ],
)
def test_the_sentence_names_the_biggest_item_and_the_best_change(settings, item):
    plan = ModelSize("GPT-2", **settings).plan
    assert plan.sentence.startswith(f"The biggest item is {item}")
    best = max((size, name) for name, size in plan.savings.items() if size is not None)
    assert plan.sentence.endswith(f"One change saves the most: {best[1]}, −{words.bytes_text(best[0])}.")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (267_820_040, "0.268 GB"),
        (2_000_000, "2 MB"),
        (1_241_579_667_456, "1,242 GB"),
        (80 * 10**9, "80 GB"),
        (0, "0 MB"),
        (9_999_999, "10 MB"),
        (10**15, "1,000,000 GB"),
        (62_499_999_999, "62.5 GB"),
    ],
)
def test_bytes_are_said_in_decimal_units(size, text):
    assert words.bytes_text(size) == text


def test_the_state_is_plain_and_small(seven):
    state = state_of(seven)
    assert len(json.dumps(state)) < 20_000
    assert "vectors" not in state["facts"]  # they are for the tests
    assert state["model"] == "LLaMA 7B"
    assert state["sizes"] == {}


def test_the_static_form_says_what_the_page_says(seven):
    form = seven.static_html()
    for text in (seven.plan.verdict, seven.plan.sentence, words.LEFT_OUT, "LLaMA 7B", "bf16-mixed", "gradients"):
        assert text in form
    for name, saved in seven.plan.savings.items():
        assert f"<th scope='row'>{name}</th><td>{words.bytes_text(saved)}</td><td>{words.COSTS[name]}</td>" in form


def test_what_is_left_out_is_what_the_ledger_leaves_out():
    for left_out in ("buffers", "temporaries", "workspace", "allocator", "CUDA context"):
        assert left_out in " ".join(memory.__doc__.split())
        assert left_out in words.LEFT_OUT


def test_a_tenth_of_the_card_does_not_hold_what_adamw_adds_if_it_is_not_fused():
    plan = ModelSize(replace(NAMED["LLaMA 7B"], layers=20), batch=1, length=2_048, checkpointing=True).plan
    ledger = plan.ledger
    assert plan.fits(ledger.total)
    step = ledger.at_rest + ledger.gradients + ledger.weights  # in the optimizer's step, with its temporaries
    assert step > plan.room
    assert "fused=True" in words.LEFT_OUT


def test_stage_3_says_that_the_copies_go_only_without_autocast():
    assert "MixedPrecisionPolicy" in words.LEFT_OUT


def test_kahan_s_compensation_has_a_row_with_its_name():
    widget = ModelSize("GPT-2", recipe="bf16-true-kahan")
    assert widget.plan.ledger.master == 2 * widget.plan.ledger.parameters
    assert "compensation" in words.ITEMS["master"][0]
    assert "<th scope='row'>master weights or compensation</th>" in widget.static_html()
