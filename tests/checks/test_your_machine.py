"""The checks of `your_machine` accept what is right and name the misconception in what is not."""

import math
import statistics

import pytest
import torch

from utils import measure
from utils.checks import your_machine as checks
from utils.checks import your_machine_questions as questions
from utils.checks.outcome import CORRECT, NOT_ATTEMPTED, NOT_YET
from utils.checks.questions import judge, number
from utils.cost.architectures import NAMED
from utils.widgets.recipe_picker.advice import advise

RIGHT = {"A": "32-true", "B": "bf16-mixed", "C": "32-true", "D": "bf16-mixed", "loss scaler": "none"}


def test_the_four_recipes():
    assert checks.check_recipes(RIGHT).status == CORRECT


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"A": "bf16-mixed"}, "from capability 8.0 on"),
        ({"A": "16-mixed"}, "Tensor cores begin at 7.0"),
        ({"A": "16-true"}, "small updates are rounded away"),
        ({"B": "16-mixed"}, "ends at 65504"),
        ({"B": "bf16-true"}, "Keep float32 weights"),
        ({"B": "fp8"}, "'fp8' is not one of these"),
        ({"C": "16-mixed"}, "It multiplies nothing"),
        ({"C": "bf16-mixed"}, "integers"),
        ({"D": "16-mixed"}, "`avx512_fp16`"),
        ({"D": "32-true"}, "what you time first"),
        ({"loss scaler": "A and C"}, "compute in float32"),
        ({"loss scaler": "B and D"}, "nothing to scale"),
        ({"loss scaler": "all four"}, "become zero"),
    ],
)
def test_a_wrong_recipe_gets_a_hint(change, hint):
    outcome = checks.check_recipes(RIGHT | change)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_every_recipe_of_the_comment_has_a_reply_of_its_own_on_each_machine():
    for machine in "ABCD":
        texts = {option.text for option in questions.PICKS[machine].options}
        assert texts == {"32-true", "16-mixed", "bf16-mixed", "16-true", "bf16-true"}


OPERATIONS = 2 * 4096**3


@pytest.mark.parametrize("value", [15271, 15270.99, 15300, "2 * 4096**3 / 9e-6 / 1e12"])
def test_the_rate_of_a_launch(value):
    outcome = checks.check_rate_of_a_launch(value)
    assert outcome.status == CORRECT
    assert "312" in outcome.message


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (OPERATIONS / 2 / 9e-6 / 1e12, "followed by an addition"),
        (15.27, "in milliseconds"),
        (1.527e16, "operations per second"),
        (1.527e7, "A thousand times too much"),
        (3.73, "That counts 2n²"),
        (13889, "not 2**40"),
        (312, "the data sheet's rate"),
        (49, "how many times"),
        (15000, "at least three digits"),
        (15100, "more than 1 % off"),
        (100, "Divide 2n³"),
    ],
)
def test_a_slip_in_the_rate_is_named(value, hint):
    outcome = checks.check_rate_of_a_launch(value)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_what_is_asked_about_the_picker_is_what_it_answers():
    llama = NAMED["LLaMA 7B"].parameters
    plans = {memory: advise("A100", "fine_tune", parameters=llama, memory=memory) for memory in (40, 80)}
    assert round(plans[80].total / 1e9, 1) == number(questions.ROOM.answer)
    assert round(plans[40].total / 1e9, 1) == 15.5
    assert "LoRA" in plans[40].levers
    assert (plans[80].recipe, plans[80].levers) == ("bf16-mixed", ("checkpointing", "8-bit Adam"))
    stored = {memory: advise("T4", "generate", parameters=llama, memory=memory).levers for memory in range(10, 25)}
    assert min(memory for memory, levers in stored.items() if not levers) == number(questions.ALL_16.answer)
    assert round(advise("T4", "generate", parameters=llama, memory=17).total / 1e9, 1) == 14.6
    plain = {memory: advise("CPU", "generate", parameters=llama, memory=memory) for memory in range(17, 35)}
    enough = number(questions.EMULATED_PICK.answer)
    assert {memory: plan.recipe for memory, plan in plain.items()} == {
        memory: "32-true" if memory >= enough else "bf16-true" for memory in plain
    }
    assert plain[24].emulated
    assert not any(plan.levers for plan in plain.values())
    assert round(plain[enough].total / 1e9, 1) == 29.1
    assert 26.5e9 < 4 * llama < 27.5e9


@pytest.mark.parametrize(
    ("question", "value", "hint"),
    [
        (questions.ROOM, 80, "the card's memory"),
        (questions.ROOM, 70, "right"),
        (questions.ALL_16, 16, "14.4 GB is too little"),
        (questions.ALL_16, 15, "a tenth of the card free"),
        (questions.EMULATED_PICK, 17, "still bf16-true"),
        (questions.EMULATED_PICK, 32, "too little for 29.1"),
        (questions.EMULATED_PICK, 100, "raise the memory"),
    ],
)
def test_a_task_under_the_picker_has_words_for_slips(question, value, hint):
    judged = judge(question, value)
    assert hint in judged.message or (hint == "right" and judged.status == CORRECT)


def right(facts):
    if facts["kind"] == "cuda":
        return float(facts["capability"]) >= 8
    return any("bf16" in flag for flag in facts["flags"])


def test_a_right_capability_test():
    assert checks.check_multiplies_bfloat16(right).status == CORRECT


@pytest.mark.parametrize(
    ("wrong", "message", "hint"),
    [
        (
            lambda facts: facts["capability"] >= "8.0" if facts["kind"] == "cuda" else right(facts),
            "a B200",
            "How does Python compare two strings?",
        ),
        (lambda facts: right(facts) if facts["kind"] == "cuda" else True, "a CPU with AVX2", "depend on the flags"),
        (lambda facts: True, "a T4 (capability '7.5')", "8.0"),
        (
            lambda facts: right(facts) if facts["kind"] == "cuda" else any("16" in f for f in facts["flags"]),
            "flags f16c",
            "depend on the flags",
        ),
        (
            lambda facts: right(facts) if facts["kind"] == "cuda" else "avx512_bf16" in facts["flags"],
            "a CPU with AMX",
            "the part of the name",
        ),
        (lambda facts: facts["no such key"], "KeyError", ""),
        (True, "needs the function itself", ""),
    ],
)
def test_a_wrong_capability_test_gets_a_hint(wrong, message, hint):
    outcome = checks.check_multiplies_bfloat16(wrong)
    assert outcome.status == NOT_YET
    assert message in outcome.message
    assert hint in outcome.hint


def on_the_page(facts):
    if facts["kind"] == "cuda":
        return facts["capability"] >= "8.0"
    one = torch.ones(2, 2, dtype=torch.bfloat16)
    return (one @ one).dtype is torch.bfloat16


def test_the_function_of_the_page_is_not_an_attempt():
    assert checks.check_multiplies_bfloat16(on_the_page).status == NOT_ATTEMPTED


def sign_chance(one, other):  # that of the page
    wins = sum(x < y for x, y in zip(one, other, strict=True))
    losses = sum(x > y for x, y in zip(one, other, strict=True))
    turns = wins + losses
    return min(1, 2 * sum(math.comb(turns, k) for k in range(min(wins, losses) + 1)) / 2**turns)


def by_signs(one, other, factor=1.0):
    for word, ours, theirs in (("faster", one, other), ("slower", other, one)):
        slowed = [factor * time for time in ours]
        if (
            sign_chance(slowed, theirs) < 0.01
            and sum(x < y for x, y in zip(slowed, theirs, strict=True)) > len(one) / 2
        ):
            return word
    return "no difference"


def by_signs_beyond(one, other):
    return by_signs(one, other, factor=1.1)


def by_signs_and_size(one, other):
    ratio = statistics.median(y / x for x, y in zip(one, other, strict=True))
    return by_signs(one, other) if abs(math.log(ratio)) > math.log(1.1) else "no difference"


def by_compare(one, other):
    verdict = measure.compare(measure.Timing(tuple(one)), measure.Timing(tuple(other))).verdict
    return verdict if verdict in ("faster", "slower") else "no difference"


def by_signs_below_nine_tenths(one, other):
    return by_signs(one, other, factor=1 / 0.9)


@pytest.mark.parametrize("verdict", [by_signs_beyond, by_signs_below_nine_tenths])
def test_a_right_verdict(verdict):
    assert checks.check_verdict(verdict).status == CORRECT


def by_quartiles(one, other):
    ours, theirs = (statistics.quantiles(times, n=4, method="inclusive") for times in (one, other))
    return "faster" if ours[2] < theirs[0] else "slower" if theirs[2] < ours[0] else "no difference"


def by_the_median_ratio(one, other):
    ratio = statistics.median(y / x for x, y in zip(one, other, strict=True))
    return "faster" if ratio > 1.1 else "slower" if ratio < 1 / 1.1 else "no difference"


def by_eleven_wins(one, other):
    wins, losses = (sum(1.1 * x < y for x, y in zip(*pair, strict=True)) for pair in ((one, other), (other, one)))
    return "faster" if wins >= 11 else "slower" if losses >= 11 else "no difference"


def by_one_loss(one, other):
    wins, losses = (sum(1.1 * x < y for x, y in zip(*pair, strict=True)) for pair in ((one, other), (other, one)))
    return "faster" if wins >= len(one) - 1 else "slower" if losses >= len(one) - 1 else "no difference"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda one, other: "faster" if min(one) < min(other) else "slower", "sees a difference in 100%"),
        (lambda one, other: "faster" if sum(one) < sum(other) else "slower", "sees a difference in 100%"),
        (by_quartiles, "A real difference of 20 %, 12 turns"),
        (by_the_median_ratio, "Two equal calls, 12 turns"),
        (by_signs, "A difference of 7 %"),  # copied from the page
        (by_signs_and_size, "A difference of 7 %, which does not interest you, 50 turns, noise of 10%"),
        (by_compare, "A difference of 7 %"),
        (by_eleven_wins, "Two equal calls, 20 turns"),
        (by_one_loss, "A real difference of 20 %, 20 turns"),
        (lambda one, other: by_signs_beyond(other, one), "where the first call is the faster one"),
        (lambda one, other: "no difference", "seen in only 0%"),
        (lambda one, other: by_signs_beyond(one, other) == "faster", "It returned False"),
        (lambda one, other: one[99], "IndexError"),
    ],
)
def test_a_wrong_verdict_gets_a_hint(wrong, message):
    outcome = checks.check_verdict(wrong)
    assert outcome.status == NOT_YET
    assert message in outcome.message


def test_the_hint_for_more_turns_is_about_their_losses():
    assert "add up the ways" in checks.check_verdict(by_one_loss).hint
    assert "the same turn" in checks.check_verdict(by_quartiles).hint


def test_an_empty_verdict_is_not_attempted():
    assert checks.check_verdict(lambda one, other: ...).status == NOT_ATTEMPTED
