"""The checks of practice/llama: the right answers from formulas, and for each foreseen wrong one its hint."""

import pytest
import torch

from utils.checks.outcome import NOT_YET
from utils.checks.practice import llama, llama_questions
from utils.checks.practice.llama import Oracle
from utils.checks.questions import judge
from utils.cost import token_bytes
from utils.cost.architectures import Architecture
from utils.cost.cards import ROOFS
from utils.runs import raschka2023
from utils.widgets.tokens_per_second import TokensPerSecond
from utils.widgets.tokens_per_second.facts import published


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


@pytest.mark.parametrize(
    ("bits", "hint"), [(4, "without the scales"), (4 + 32 / 32, "5 bits per weight"), (4.5 * 8 / 7, "That is 4.5 GB")]
)
def test_a_count_of_the_bits_of_int4_is_named_by_its_bits(bits, hint):
    question = llama_questions.AT_MOST[llama_questions.INT4_TEXT]
    assert hint in judge(question, 1400e9 / (7e9 * bits / 8)).message


def test_without_sharing_the_hints_and_replies_are_about_forty_keys():
    shared, unshared, _ = llama_questions.LONG_TEXT.values()
    assert "8 keys per layer" in shared.hints[-1]
    assert "40 keys per layer" in unshared.hints[-1]
    assert "bits" in judge(unshared, 8 * 983_040).message
    assert "KiB" in judge(unshared, 983_040 / 1024).message


def test_a_scale_per_vector_is_another_count_of_the_cache():
    numbers = token_bytes.predict("Llama 3 8B").weights / (64 * 2 * 32 * 8 * (128 + 2))
    assert "a 16-bit scale" in judge(llama_questions.EQUAL_CACHES, round(numbers)).message


def test_the_cache_is_that_of_the_formula():
    sizes = {"width": 40 * 128, "layers": 48, "hidden": 64, "vocabulary": 64, "positions": 8_192, "tied": True}
    shared, unshared = (Architecture("llama", heads=40, groups=groups, **sizes) for groups in (8, 40))
    one, all_ = (token_bytes.kv_bytes(shared, tokens=n, batch=b) for n, b in ((1, 1), (8_192, 16)))
    wide = token_bytes.kv_bytes(unshared, tokens=1)
    assert llama.check_long_text(table(llama_questions.LONG_TEXT, (one, wide, all_ / 1e9)))


def right_option(question):
    (option,) = (option for option in question.options if option.right)
    return option


def test_the_prediction_about_no_bytes_is_that_of_the_two_runs():
    slow, fast = (1 / rate for rate in raschka2023.LLAMA_TOKENS_PER_SECOND.values())
    wide, narrow = (token_bytes.predict("LLaMA 7B", weight_bits=n, other_bits=n).total for n in (32, 16))
    a = fast - (slow - fast) / (wide - narrow) * narrow
    says = right_option(llama_questions.NO_BYTES).says
    assert right_option(llama_questions.NO_BYTES).text == f"About {1 / a:.0f}"
    assert f"{1e3 * slow:.1f} and {1e3 * fast:.1f} ms differ by {1e3 * (slow - fast):.1f} ms" in says
    assert f"{1e3 * a:.1f} ms are left" in says
    assert f"{wide / 1e9:.1f} GB at" in llama_questions.NO_BYTES.text
    assert 1 / a < 2 * 16.70


def test_the_prediction_about_the_share_is_bytes_times_rate_over_bandwidth():
    size = token_bytes.predict("LLaMA 7B").weights
    share = size * raschka2023.LLAMA_TOKENS_PER_SECOND["bfloat16"] / 1555e9
    assert right_option(llama_questions.SHARE).text == f"About {100 * share:.0f} %"
    assert 5.5 / 7 < 1 - share < 6.5 / 7


def test_the_prediction_about_int4_is_the_published_rate():
    rates = {p["weights"]: p for p in published() if (p["model"], p["card"]) == ("LLaMA 7B", "A100 SXM 80 GB")}
    wide, narrow = rates["bfloat16"], rates["int4"]
    says = right_option(llama_questions.INT4).says
    assert f"It was {narrow['rate']}, or {narrow['rate'] / wide['rate']:.1f} times as many" in says
    assert f"for {wide['bytes'] / narrow['bytes']:.1f} times fewer bytes" in says
    text = llama_questions.INT4.text
    for part in (
        f"{wide['rate']} tokens/s",
        f"{wide['bytes'] / 1e9:.1f} GB per token",
        f"{narrow['bytes'] / 1e9:.1f} GB",
        f"{ROOFS['A100 SXM 80 GB'].bandwidth:,.0f} GB/s",
    ):
        assert part in text


def test_the_tasks_under_the_widget_have_the_answers_that_it_shows():
    of = {"card": "A100 SXM 40 GB", "context": 1}

    def first(weights, batches):
        verdicts = {n: TokensPerSecond(batch=n, weights=weights, **of).case.verdict for n in batches}
        return str(next(n for n, text in verdicts.items() if "Computing decides" in text))

    powers = [2**n for n in range(11)]
    assert first("int4", powers) == llama_questions.FROM_WHICH_BATCH.answer
    assert first("int4", range(50, 70)) == "61" in llama_questions.FROM_WHICH_BATCH.wrong
    for batch in (60, 62, 63):
        assert "at about that batch" in judge(llama_questions.FROM_WHICH_BATCH, batch).message
    assert first("int8", powers) == "128" in llama_questions.FROM_WHICH_BATCH.wrong
    assert f"In bfloat16 it is {first('bfloat16', powers)}" in llama_questions.FROM_WHICH_BATCH.says
    weights = token_bytes.predict("Llama 3 8B").weights
    equal = {bits: weights / token_bytes.kv_bytes("Llama 3 8B", tokens=1, batch=64, bits=bits) for bits in (8, 16)}
    assert f"{equal[8]:.0f}" == llama_questions.EQUAL_CACHES.answer
    assert f"{equal[16]:.0f}" in llama_questions.EQUAL_CACHES.wrong
    for context in (2048, 4096):
        moved = TokensPerSecond("Llama 3 8B", batch=64, context=context, kv_bits=8).case.moved
        assert f"{moved.cache_read / 1e9:.1f} GB" in llama_questions.EQUAL_CACHES.wrong[str(context)]
    shown = TokensPerSecond("Llama 2 70B", weights="int8", card="A100 SXM 80 GB").measured
    assert f"{llama_questions.OF_THE_LIMIT.answer}\u00a0% of the bandwidth" in shown
    for weights, model, card in (
        ("int4", "Llama 2 70B", "A100 SXM 80 GB"),
        ("int8", "LLaMA 7B", "A100 SXM 80 GB"),
        ("bfloat16", "LLaMA 7B", "A100 SXM 80 GB"),
    ):
        said = TokensPerSecond(model, weights=weights, card=card).measured
        assert any(f", {share}\u00a0% of the bandwidth" in said for share in llama_questions.OF_THE_LIMIT.wrong)


def test_the_line_with_the_bug_gives_a_share_above_one_and_the_fixed_one_does_not():
    model = torch.nn.Module()
    model.table, model.head = torch.nn.Embedding(10, 4), torch.nn.Linear(4, 1000, bias=False)
    model.get_input_embeddings = lambda: model.table
    shares = {}
    for name, code in (
        ("wrong", llama_questions.WRONG_SHARE),
        ("right", llama_questions.WRONG_SHARE.replace("tokens * batch", "tokens")),
    ):
        scope = {}
        exec(code, scope)
        share = scope["share_of_bandwidth"]
        seconds = 100 * 16_000 / (0.39e9)  # 100 steps of 16,000 bytes at 39 % of 1 GB/s
        shares[name] = share(model, seconds, 100, 8, 1)
    assert shares["right"] == pytest.approx(0.39)
    assert f"it returns {shares['wrong']:.1f}" in llama_questions.WRONG_LINE.text


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
        found.append(int(logits[-1].argmax()))
        logits = model(found[-1:], cache)
    return torch.tensor(found)


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


def copies_its_cache(model, prompt, tokens):
    cache, ids, found = [], list(prompt), []
    for _ in range(tokens):
        cache = [*cache]
        ids = [int(model(ids, cache)[-1].argmax())]
        found += ids
    return found


def test_a_copy_of_a_cache_holds_only_what_the_model_put_there():
    assert llama.check_write(copies_its_cache)


def appends_to_the_cache_too(model, prompt, tokens):
    cache, ids, found = [], list(prompt), []
    for _ in range(tokens):
        logits = model(ids, cache)
        cache += ids
        ids = [int(logits[-1].argmax())]
        found += ids
    return found


def fills_the_cache_with_the_prompt(model, prompt, tokens):
    cache, ids, found = list(prompt), [prompt[-1]], []
    for _ in range(tokens):
        ids = [int(model(ids, cache)[-1].argmax())]
        found += ids
    return found


def fills_the_cache_and_reads_the_prompt(model, prompt, tokens):
    cache, ids, found = list(prompt), list(prompt), []
    for _ in range(tokens):
        ids = [int(model(ids, cache)[-1].argmax())]
        found += ids
    return found


def fills_the_cache_with_all_but_the_last_token(model, prompt, tokens):
    cache, ids, found = list(prompt[:-1]), [prompt[-1]], []
    for _ in range(tokens):
        ids = [int(model(ids, cache)[-1].argmax())]
        found += ids
    return found


def takes_the_largest_of_all_rows(model, prompt, tokens):
    cache, ids, found = [], list(prompt), []
    for _ in range(tokens):
        ids = [int(model(ids, cache).argmax()) % llama.VOCABULARY]
        found += ids
    return found


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


def keeps_the_cache_as_a_default(model, prompt, tokens, cache=[]):  # noqa: B006
    ids, found = list(prompt), []
    for _ in range(tokens):
        ids = [int(model(ids, cache)[-1].argmax())]
        found += ids
    return found


def reads_the_last_token_of_the_prompt_twice(model, prompt, tokens):
    cache, found = [], []
    model(list(prompt), cache)
    ids = [prompt[-1]]
    for _ in range(tokens):
        ids = [int(model(ids, cache)[-1].argmax())]
        found += ids
    return found


def returns_one_too_many(model, prompt, tokens):
    cache = []
    found = [int(model(list(prompt), cache)[-1].argmax())]
    for _ in range(tokens):
        found.append(int(model(found[-1:], cache)[-1].argmax()))
    return found


def returns_one_for_none(model, prompt, tokens):
    cache = []
    found = [int(model(list(prompt), cache)[-1].argmax())]
    for _ in range(tokens - 1):
        found.append(int(model(found[-1:], cache)[-1].argmax()))
    return found


def chooses_before_it_reads(model, prompt, tokens):
    cache, found = [], []
    logits = model(list(prompt), cache)
    for _ in range(tokens):
        found.append(int(logits[-1].argmax()))
        if len(found) > 1:
            logits = model(found[-1:], cache)
    return found


def takes_the_last_column(model, prompt, tokens):
    cache, ids, found = [], list(prompt), []
    for _ in range(tokens):
        ids = [int(model(ids, cache)[:, -1:].argmax())]
        found += ids
    return found


def takes_the_most_probable_tokens_at_one_place(model, prompt, tokens):
    return model(list(prompt), [])[-1].topk(tokens).indices.tolist()


def leaves_out_the_last_token_of_the_prompt(model, prompt, tokens):
    cache, ids, found = [], list(prompt[:-1] or prompt), []
    for _ in range(tokens):
        ids = [int(model(ids, cache)[-1].argmax())]
        found += ids
    return found


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (reads_all_into_one_cache, "in it twice"),
        (reads_all_again, "8 are enough"),
        (keeps_the_cache_as_a_default, "an earlier prompt"),
        (reads_the_last_token_of_the_prompt_twice, "has read the last token of the prompt twice"),
        (reads_the_prompt_by_token, "read the prompt in one call"),
        (appends_to_the_cache_too, "The model fills the cache itself"),
        (fills_the_cache_with_the_prompt, "The model fills the cache itself"),
        (fills_the_cache_and_reads_the_prompt, "The model fills the cache itself"),
        (fills_the_cache_with_all_but_the_last_token, "The model fills the cache itself"),
        (takes_the_largest_of_all_rows, "only the last row is about the next"),
        (returns_one_too_many, "For tokens=6 your list has 7"),
        (returns_one_for_none, "For tokens=0 your list has 1"),
        (chooses_before_it_reads, "What has the model read when you choose it?"),
        (forgets, "Make one before the loop"),
        (takes_the_last_column, "only the last row is about the next"),
        (takes_the_most_probable_tokens_at_one_place, "What has the model read when you choose it?"),
        (leaves_out_the_last_token_of_the_prompt, "has read the whole prompt"),
        (takes_the_first_row, "only the last row is about the next"),
        (changes_the_prompt, "changes the prompt"),
        (lambda *asked: [*asked[1], *right(*asked)], "only the new tokens"),
        (lambda *asked: right(*asked)[:-1], "For tokens=6 your list has 5"),
        (lambda *asked: 7, "Return a list of tokens"),
        (lambda *asked: [0] * asked[2], "has read the whole prompt"),
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
