"""The checks of practice/llama: the right answers from formulas, and for each foreseen wrong one its hint."""

import pytest
import torch

from utils.checks.outcome import NOT_YET
from utils.checks.practice import llama, llama_questions
from utils.checks.practice.llama import Oracle
from utils.cost import token_bytes


def table(questions, answers):
    return dict(zip(questions, answers, strict=True))


def test_the_rates_are_bandwidth_over_bytes():
    steps = (14e9, 7e9 * 4.5 / 8, 14e9, 21e9)
    rates = [1400e9 / size * texts for size, texts in zip(steps, (1, 1, 8, 1), strict=True)]
    assert llama.check_at_most(table(llama_questions.AT_MOST, rates))


def test_the_line_goes_through_both_runs():
    a, speed = 15e-3, 1000e9
    assert 1 / (a + 10e9 / speed) == pytest.approx(40)
    assert 1 / (a + 5e9 / speed) == pytest.approx(50)
    assert llama.check_not_bytes(table(llama_questions.NOT_BYTES, (15, 1000, 1 / (a + 2.5e9 / speed))))


def test_the_cache_is_that_of_the_formula():
    one, all_ = (token_bytes.kv_bytes("Llama 3 8B", tokens=n, batch=b) for n, b in ((1, 1), (8_192, 16)))
    assert llama.check_long_text(table(llama_questions.LONG_TEXT, (one, 4 * one, all_ / 1e9)))
    assert 4 * one == token_bytes.kv_bytes("LLaMA 7B", tokens=1)


def test_the_prediction_about_no_bytes_is_that_of_the_two_runs():
    slow, fast = 1 / 11.47, 1 / 16.70
    wide, narrow = (token_bytes.predict("LLaMA 7B", weight_bits=n, other_bits=n).total for n in (32, 16))
    a = fast - (slow - fast) / (wide - narrow) * narrow
    (right,) = (option for option in llama_questions.NO_BYTES.options if option.right)
    assert right.text == f"About {1 / a:.0f}"
    assert f"{1e3 * a:.1f} ms" in right.says
    assert 1 / a < 2 * 16.70


# --- The loop


def right(model, prompt, tokens):
    cache, ids, found = [], list(prompt), []
    for _ in range(tokens):
        ids = [int(model(ids, cache)[-1].argmax())]
        found += ids
    return found


def reads_the_last_one_too(model, prompt, tokens):
    cache, found = [], []
    logits = model(list(prompt), cache)
    for _ in range(tokens):
        found.append(logits[-1].argmax())
        logits = model([int(found[-1])], cache)
    return torch.stack(found)


@pytest.mark.parametrize("answer", [right, reads_the_last_one_too])
def test_the_loop_may_be_written_in_any_way(answer):
    outcome = llama.check_write(answer)
    assert outcome, outcome.message


def reads_the_prompt_by_token(model, prompt, tokens):
    cache = []
    for token in prompt[:-1]:
        model([token], cache)
    found = prompt[-1:]
    for _ in range(tokens):
        found.append(int(model(found[-1:], cache)[-1].argmax()))
    return found[1:]


def test_a_prompt_read_by_token_is_right_and_told_that_one_call_is_enough():
    outcome = llama.check_write(reads_the_prompt_by_token)
    assert outcome
    assert "the prompt in one call" in outcome.message
    assert "in one call" not in llama.check_write(right).message


def reads_all_into_one_cache(model, prompt, tokens):
    cache, ids = [], list(prompt)
    for _ in range(tokens):
        ids.append(int(model(ids, cache)[-1].argmax()))
    return ids[len(prompt) :]


def reads_all_again(model, prompt, tokens):
    ids = list(prompt)
    for _ in range(tokens):
        ids.append(int(model(ids, [])[-1].argmax()))
    return ids[len(prompt) :]


def forgets(model, prompt, tokens):
    ids, found = list(prompt), []
    for _ in range(tokens):
        ids = [int(model(ids, [])[-1].argmax())]
        found += ids
    return found


def takes_the_first_row(model, prompt, tokens):
    cache, ids, found = [], list(prompt), []
    for _ in range(tokens):
        ids = [int(model(ids, cache)[0].argmax())]
        found += ids
    return found


def changes_the_prompt(model, prompt, tokens):
    found = right(model, prompt, tokens)
    prompt += found
    return found


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (reads_all_into_one_cache, "in it twice"),
        (reads_all_again, "8 are enough"),
        (forgets, "Make one before the loop"),
        (takes_the_first_row, "the last row counts"),
        (changes_the_prompt, "changes the prompt"),
        (lambda *asked: [*asked[1], *right(*asked)], "new tokens alone"),
        (lambda *asked: right(*asked)[:-1], "were asked for"),
        (lambda *asked: 7, "Return a list of tokens"),
        (lambda *asked: [0] * asked[2], "the last row counts"),
        (5, "the function itself"),
    ],
)
def test_the_loop_names_the_mistake(answer, hint):
    outcome = llama.check_write(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_the_oracle_depends_on_every_token_and_their_order():
    texts = ([1, 2, 3], [3, 2, 1], [1, 2, 4], [0, 2, 3])
    assert len({int(Oracle()(text, [])[-1].argmax()) for text in texts}) == len(texts)
