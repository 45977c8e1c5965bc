"""The decision: a recipe that the card can multiply, levers in order, and bytes that are those of the ledger."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from utils.cost import architectures, memory
from utils.cost.cards import CARDS, fits
from utils.cost.decide import BITS, MOST_CARDS, RANK, TASKS, decide, nearest
from utils.training import recipes
from utils.widgets.decision_tree import DecisionTree
from utils.widgets.decision_tree.symptoms import SYMPTOMS
from utils.widgets.recipe_picker import RecipePicker
from utils.widgets.recipe_picker.advice import advise

BOOK = Path(__file__).parents[2] / "book"


@pytest.mark.parametrize(("card", "task"), list(itertools.product(CARDS, TASKS)))
def test_no_lever_is_pulled_where_all_fits(card, task):
    decision = decide(card, task, "GPT-2", length=128, memory_gb=1_000)
    assert decision.taken == ()
    assert decision.fits
    assert decision.scaler == (decision.recipe == "16-mixed")


def test_the_bytes_are_those_of_the_ledger():
    decision = decide("H100", "fine_tune", "LLaMA 7B", batch=8, length=2_048)
    how = {"optimizer": "adamw-8bit", "batch": 8, "length": 2_048, "attention": "sdpa", "device": "cuda"}
    ledger = memory.predict("LLaMA 7B", "bf16-mixed", **how, checkpointing=True, accumulate=8, cached=False)
    assert decision.total == ledger.total
    assert [one.lever for one in decision.taken] == ["the batch in parts", "checkpointing", "8-bit Adam"]
    assert str(decision) == "bf16-mixed, the batch in parts, checkpointing, 8-bit Adam: 69.8 of 80 GB, it fits"


def test_the_copies_of_autocast_stand_beside_the_activations():
    decision = decide("H200", "train", "LLaMA 7B")
    ledger = memory.predict("LLaMA 7B", "bf16-mixed", length=2_048, attention="sdpa", checkpointing=True)
    assert decision.items["casts"] == ledger.casts == 2 * 32_000 * 4_096  # of the head alone
    assert decision.items["casts"] + decision.items["activations"] == ledger.activations
    assert decision.items["logits"] == ledger.logits == 2 * 4 * 2_048 * 32_000


def test_a_decision_names_each_lever_that_holds_once():
    narrow = decide("A100", "fine_tune", "LLaMA 7B", batch=8, memory_gb=48)
    assert narrow.taken[-1].lever == "bf16-true"
    assert str(narrow).startswith("bf16-true, the batch in parts, checkpointing, 8-bit Adam: ")
    few = decide("T4", "generate", "LLaMA 13B")
    assert [one.lever for one in few.taken] == ["8-bit weights", "4-bit weights"]
    assert few.levers == ("4-bit weights",)


@pytest.mark.parametrize("model", ["DistilBERT", "GPT-2 XL", "LLaMA 7B", "Llama 2 70B"])
@pytest.mark.parametrize("task", ["train", "fine_tune"])
def test_no_lever_is_pulled_before_it_is_needed_and_none_takes_more(task, model):
    for card, batch in itertools.product(CARDS, (1, 16)):
        decision = decide(card, task, model, batch=batch, length=512)
        assert [one.fits for one in decision.taken[:-1]] == [False] * len(decision.taken[:-1])
        totals = [decision.bare, *(one.total for one in decision.taken)]
        assert totals == sorted(totals, reverse=True)
        assert decision.fits == fits(decision.total, decision.room)
        assert not decision.taken or decision.taken[-1].total == decision.total


def test_training_from_scratch_never_loses_updates_to_bfloat16():
    assert decide("RTX 3090", "train", "LLaMA 7B").recipe == "bf16-mixed"
    assert decide("A100", "fine_tune", "LLaMA 7B", memory_gb=48).recipe == "bf16-true"


def test_adapters_come_last_and_only_to_fine_tune():
    """Everything else before; then LoRA in the best recipe again, with Adam's moments as wide as asked for."""
    decision = decide("RTX 4090", "fine_tune", "LLaMA 7B", batch=8)
    levers = ["the batch in parts", "checkpointing", "8-bit Adam", "bf16-true", "LoRA"]
    assert [pulled.lever for pulled in decision.taken] == levers
    assert decision.levers == ("the batch in parts", "checkpointing", "LoRA")
    plan = decision.plan
    assert (plan.recipe, plan.optimizer, plan.method) == ("bf16-mixed", "adamw", "lora")
    four = decide("T4", "fine_tune", "LLaMA 7B", optimizer="adamw-8bit")
    assert [pulled.lever for pulled in four.taken] == ["checkpointing", "LoRA", "QLoRA"]
    assert four.levers == ("checkpointing", "QLoRA")
    assert four.plan.optimizer == "adamw-8bit"
    for task, model in (("train", "LLaMA 7B"), ("generate", "LLaMA 7B"), ("fine_tune", "DistilBERT")):
        assert decide("T4", task, model, length=512, batch=1, memory_gb=0.5).plan.method == "full"


@pytest.mark.parametrize(("card", "method"), [("T4", "qlora"), ("RTX 4090", "lora"), ("A100", "lora")])
def test_the_bytes_of_adapters_are_those_of_the_ledger(card, method):
    decision = decide(card, "fine_tune", "LLaMA 7B")
    how = {"length": 2_048, "attention": "sdpa", "checkpointing": True, "method": method, "rank": RANK}
    ledger = memory.predict("LLaMA 7B", decision.recipe, **how)
    assert decision.total == ledger.total
    assert decision.items["weights"] == ledger.weights
    asked = decide(card, "fine_tune", 6_738_415_616)
    assert asked == decision
    assert asked.items["optimizer"] == ledger.optimizer


def test_a_65b_model_is_adapted_on_one_card_of_48_gb():
    """As its paper says: Dettmers et al. 2023, arXiv 2305.14314, abstract."""
    decision = decide("A100", "fine_tune", "LLaMA 65B", length=512, memory_gb=48)
    assert decision.levers == ("checkpointing", "QLoRA")
    assert decision.fits


def test_it_says_over_how_many_cards_it_has_to_be_sharded():
    decision = decide("A100", "train", "Llama 2 70B")
    assert not decision.fits
    assert decision.cards > 1
    assert decide("A100", "train", "Llama 2 70B", cards=decision.cards).fits
    assert not decide("A100", "train", "Llama 2 70B", cards=decision.cards // 2).fits
    assert decide("T4", "train", "Llama 2 70B", batch=1, length=1_000_000).cards == 0


def test_a_token_takes_the_weights_and_the_cache_over_the_bandwidth():
    decision = decide("H200", "generate", "LLaMA 7B", length=1_000)
    weights, cache = 2 * 6_738_415_616, 2 * 32 * 4_096 * 1_000 * 2
    assert decision.items == {"weights": weights, "cache": cache}
    assert decision.tokens_per_second == pytest.approx(4.8e12 / (weights + cache))
    assert decide("H200", "train").tokens_per_second is None


def test_generating_stores_weights_in_fewer_bits_when_it_has_to():
    decision = decide("T4", "generate", "LLaMA 13B")
    assert decision.plan.bits in (8, 4.5)
    assert decision.fits
    assert BITS["4-bit weights"] == 4 + 16 / 32


def test_the_bandwidth_is_that_of_the_board_with_the_memory():
    assert decide("A100", "generate").bandwidth == 1555
    assert decide("A100", "generate", memory_gb=80).bandwidth == 2039
    assert decide("L4", "generate").bandwidth == 300
    assert decide("B200", "generate").bandwidth == 8000
    assert decide("RTX 3090", "generate").bandwidth is decide("RTX 3090", "generate").tokens_per_second is None


def test_plans_name_recipes_and_optimizers_that_exist():
    for card, task in itertools.product(CARDS, TASKS):
        plan = decide(card, task, "LLaMA 7B", batch=4, length=128).plan
        assert plan.recipe in recipes.RECIPES
        assert plan.optimizer in memory.OPTIMIZERS
        assert replace(plan).shards == 1


GENERATE = [name for name, sizes in architectures.NAMED.items() if sizes.family != "distilbert"]


@pytest.mark.parametrize(("card", "task"), list(itertools.product(CARDS, TASKS)))
def test_every_way_to_ask_gives_one_answer(card, task):
    """A model by its name or its number of parameters, by the function, by RecipePicker and by DecisionTree."""
    picker = RecipePicker(card=card, task=task, facts={})  # the facts are for the page alone
    tree = DecisionTree(card=card, task=task, batch=1, facts={})
    models = GENERATE if task == "generate" else architectures.NAMED
    for model, size in [*((model, 0) for model in models), ("LLaMA 7B", 37.5)]:
        decision, parameters = decide(card, task, model, memory_gb=size), architectures.NAMED[model].parameters
        assert decide(card, task, parameters, memory_gb=size) == decision
        advice = advise(card, task, parameters=parameters, memory=size)
        for name in ("recipe", "levers", "scaler", "items", "total", "fits", "like"):
            assert getattr(advice, name) == getattr(decision, name), (model, name)
        assert (advice.spare >= 0) == decision.fits
        picker.set_state({"parameters": parameters, "memory": float(size)})
        assert picker.advice == advice
        length = min(2_048, architectures.NAMED[model].positions)
        tree.set_state({"model": model, "memory": float(size), "length": length})
        assert tree.decision == decision


@pytest.mark.parametrize(
    ("card", "task", "answer"),
    [
        ("T4", "train", "16-mixed, checkpointing, 8-bit Adam: 69.8 of 16 GB, it takes 8 cards"),
        ("T4", "fine_tune", "16-mixed, checkpointing, QLoRA: 5.9 of 16 GB, it fits"),
        ("T4", "generate", "16-true, 8-bit weights: 7.8 of 16 GB, it fits"),
        ("RTX 4090", "train", "bf16-mixed, checkpointing, 8-bit Adam: 69.8 of 24 GB, it takes 4 cards"),
        ("RTX 4090", "fine_tune", "bf16-mixed, checkpointing, LoRA: 15.5 of 24 GB, it fits"),
        ("RTX 4090", "generate", "bf16-true: 14.6 of 24 GB, it fits"),
        ("H100", "train", "bf16-mixed, checkpointing, 8-bit Adam: 69.8 of 80 GB, it fits"),
        ("H100", "fine_tune", "bf16-mixed, checkpointing, 8-bit Adam: 69.8 of 80 GB, it fits"),
        ("H100", "generate", "bf16-true: 14.6 of 80 GB, it fits"),
    ],
)
def test_the_answers_for_llama_7b(card, task, answer):
    assert str(decide(card, task, "LLaMA 7B")) == answer


def test_a_number_of_parameters_is_taken_for_the_model_nearest_in_size():
    assert nearest(6_500_000_000, "train") == "LLaMA 7B"
    assert nearest(1, "train") == "DistilBERT"
    assert nearest(1, "generate") == "GPT-2"
    assert nearest(10**13, "generate") == "Llama 2 70B"
    small, whole = (decide("H200", "train", n) for n in (2 * 10**9, 6_738_415_616))
    assert small.like == "GPT-2 XL"
    near = decide("H200", "train", 6_738_415_616 - 10**8)
    assert near.items["weights"] == 4 * (6_738_415_616 - 10**8)
    assert near.items["activations"] == whole.items["activations"]
    assert decide("T4", "generate", 6_738_415_617).plan.length == 2_048
    assert decide("T4", "train", 10**8).plan.length == 1_024  # of GPT-2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("P100", "train"), "card 'P100'"),
        (("T4", "fly"), "task 'fly'"),
        (("T4", "train", "BLOOM"), "model 'BLOOM'"),
        (("T4", "generate", "DistilBERT"), "does not generate"),
        (("T4", "generate", 0), r"1 to 1e\+13 parameters, not 0"),
        (("T4", "generate", 10**13 + 1), r"1 to 1e\+13 parameters"),
    ],
)
def test_what_is_not_known_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        decide(*arguments)


@pytest.mark.parametrize(
    "wrong", [{"batch": 0}, {"length": 0}, {"cards": 0}, {"cards": 2 * MOST_CARDS}, {"memory_gb": -1}]
)
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)).removesuffix("_gb")):
        decide("T4", "train", **wrong)


def test_every_symptom_points_to_chapters_that_exist():
    for symptom in SYMPTOMS.values():
        assert symptom.looks
        for look, chapter in symptom.looks:
            assert look.endswith((".", "?"))
            assert chapter == "practice/debugging" or (BOOK / f"{chapter}.ipynb").is_file()
    assert set(architectures.NAMED) >= {"LLaMA 7B"}
