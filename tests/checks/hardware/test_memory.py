"""The checks of hardware/memory: the right answer, and for each foreseen wrong one the hint that names it."""

from dataclasses import replace

import pytest
import torch

from utils.checks.hardware import memory, memory_questions
from utils.checks.outcome import NOT_YET
from utils.checks.questions import CORRECT, judge, number
from utils.cost import fitting
from utils.cost.memory import predict
from utils.training import eight_bit_moments
from utils.training.recipes import find_recipe
from utils.widgets.model_size import ModelSize

EIGHT = 2 * eight_bit_moments.Blockwise().moment_bytes(10**9) / 10**9


def per_weight(name: str) -> tuple[int, int]:
    """Bytes of a weight and of its gradient."""
    return find_recipe(name).weights.itemsize, find_recipe(name).gradients.itemsize


def test_the_gigabytes_are_those_of_recipes_and_blocks():
    true, mixed = sum(per_weight("bf16-true")), sum(per_weight("bf16-mixed"))
    copy, moments = find_recipe("bf16-mixed").compute.itemsize, 2 * find_recipe("bf16-mixed").optimizer.itemsize
    answers = (true + EIGHT, mixed + EIGHT + copy, mixed + moments / 8, (mixed + moments) / 8)
    table = dict(zip(memory_questions.SEVEN_BILLION, (7 * size for size in answers), strict=True))
    assert memory.check_seven_billion(table)
    assert [size < 80 for size in table.values()] == [True, False, True, True]


@pytest.mark.parametrize("row", [memory_questions.EIGHT_BIT_TRUE, memory_questions.EIGHT_BIT_MIXED])
def test_gigabytes_without_the_scales_are_told_so(row):
    question = memory_questions.SEVEN_BILLION[row]
    bare = 7 * round(number(question.answer) / 7)  # whole bytes for each parameter
    assert "scales" in judge(question, bare).message
    for rounded in (number(question.answer), bare + 7 * (EIGHT - 2), bare + 7 * 0.03):
        assert judge(question, rounded).status == CORRECT


def test_the_counts_are_sums():
    answers = (1 + 2 + 12, 2 + 4 + 4 + 1 + 1, 8 + 2 + 1 + 1, 8 + 2 + 4, 3 * 2 + 1 + 1)
    assert memory.check_sixteen_eighteen_twenty(
        dict(zip(memory_questions.SIXTEEN_EIGHTEEN_TWENTY, answers, strict=True))
    )


def test_a_count_with_the_scales_is_told_so_and_only_rows_with_a_master_speak_of_one():
    for row, question in memory_questions.SIXTEEN_EIGHTEEN_TWENTY.items():
        assert any("master" in hint for hint in question.hints) is ("master" in row)
        if "8-bit" in row:
            for scales in (0.03, EIGHT - 2):
                assert "scales" in judge(question, number(question.answer) + scales).message


def test_the_best_k_is_the_best_of_all():
    peak = {k: 144 / k + 16 * k for k in range(1, 145)}
    assert min(peak, key=peak.get) == 3
    assert (peak[1], peak[2], peak[3], peak[4], peak[9]) == (160, 104, 96, 100, 160)
    assert fitting.largest_batch(lambda k: peak[k] <= 96, most=3) == 0  # not monotone: no search finds it
    assert memory.check_every_k(96)
    assert "costs 16 and saves 72 inputs" in memory.check_every_k(160).message
    assert 144 / 1 - 144 / 2 == 72
    assert 144 / 3 - 144 / 4 < 16  # it does not pay for ever
    assert [memory.check_every_k(k).status for k in (3, 100)] == [NOT_YET, NOT_YET]


# --- The quantizer


def quantizer(fault=""):
    def quantize_blocks(x, table):
        maxima = []
        for part in x.split(256):
            maxima.append(part.amax() if fault == "signed" else part.abs().amax())
        absmax = torch.stack(maxima)
        if fault == "whole":
            absmax = x.abs().amax().expand(len(maxima)).clone()
        if fault == "strided":
            absmax = torch.stack([x[n :: len(maxima)].abs().amax() for n in range(len(maxima))])
        scale = absmax.repeat_interleave(256)[: len(x)]
        y = x if fault == "undivided" else x / scale  # 0 / 0 is NaN, and its code times 0 is 0
        if fault == "epsilon":
            y = x / (scale + 1e-8)
        if fault == "float16":
            y = y.half().float()
        if fault == "reciprocal of the largest":
            y = x * (1 / scale.clamp(min=1e-6))
        if fault == "clamped maximum":
            absmax = absmax.clamp(min=1e-8)
        if fault == "power of two":
            absmax = 2 ** absmax.log2().ceil()
        if fault == "below":
            codes = (torch.searchsorted(table, y, right=True) - 1).clamp(0, 255)
        elif fault == "linear":
            codes = (127 * y).round() + 128
        else:
            codes = torch.bucketize(y, (table[:-1] + table[1:]) / 2)
        if fault == "in place":
            x.zero_()
        if fault == "float64":
            absmax = absmax.double()
        if fault == "shape":
            return codes[None].to(torch.uint8), absmax
        if fault == "one maximum":
            return codes.to(torch.uint8), absmax.amax()
        return codes if fault == "int64" else codes.to(torch.uint8), absmax

    return quantize_blocks


def by_argmin(x, table):
    codes, maxima = [], []
    for part in x.split(256):
        largest = part.abs().max()
        y = part / largest if largest > 0 else part
        codes.append((y[:, None] - table).abs().argmin(1))
        maxima.append(largest)
    return torch.cat(codes).to(torch.uint8), torch.stack(maxima)


def ours(x, table):
    return tuple(eight_bit_moments.quantize(x, signed=True))


@pytest.mark.parametrize("right", [quantizer(), by_argmin, ours])
def test_the_quantizer_may_be_written_in_any_way(right):
    outcome = memory.check_quantize_blocks(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ("signed", "magnitudes"),
        ("whole", "each block's own"),
        ("strided", "neighbours"),
        ("clamped maximum", "The maximum of block 0 is 1e-08; the largest magnitude of its values is 0."),
        ("power of two", "The maximum of block 0 is 4; the largest magnitude of its values is 3.4"),
        ("undivided", "before they are divided"),
        ("below", "nearer of the two"),
        ("linear", "the nearest is"),
        ("in place", "changes x"),
        ("float64", "float32"),
        ("shape", "as many codes"),
        ("one maximum", "maximum of its own"),
        ("int64", "torch.uint8"),
        ("epsilon", "an epsilon beside the maximum"),
        ("float16", "the nearest is"),
        ("reciprocal of the largest", "as small as second moments"),
    ],
)
def test_the_quantizer_names_the_mistake(fault, hint):
    outcome = memory.check_quantize_blocks(quantizer(fault))
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_a_short_block_is_told_apart():
    def whole_blocks_only(x, table):
        if len(x) % 256:
            x = x[: len(x) // 256 * 256]
        return by_argmin(x, table)

    assert "as many codes" in memory.check_quantize_blocks(whole_blocks_only).message


# --- Questions about the widget and the levers


def test_what_is_asked_about_the_widget_is_what_it_shows():
    fused = {"attention": "sdpa", "checkpointing": True, "length": 8_192}
    ledger = predict("Llama 3 8B", "bf16-mixed", batch=4, **fused)
    assert round(ledger.logits / 1e9, 1) == float(memory_questions.LOGITS_OF_LLAMA_3.answer)
    assert round(ledger.activations / 1e9, 1) == 36.4
    assert round(ledger.weights / 1e9, 1) == 32.1
    card = ModelSize("LLaMA 7B", method="qlora", length=2_048, checkpointing=True, card="RTX 4090")
    assert str(card.plan.largest_batch) == memory_questions.BATCH_OF_QLORA.answer
    card.method = "lora"
    assert card.plan.largest_batch == 5
    card.method = "qlora"
    one, two = card.plan.ledger, replace(card.plan, batch=2).ledger
    more = [two.total - one.total, two.activations - one.activations, two.logits - one.logits]
    said = [text for size in more if (text := f"{size / 1e9:.3f}") in memory_questions.BATCH_OF_QLORA.says]
    assert said == ["1.357", "0.833", "0.524"]
    card.method = "full"
    assert card.plan.largest_batch == 0
    whole = ModelSize("LLaMA 7B", recipe="bf16-mixed", batch=1, length=2_048).plan
    held = whole.ledger.weights + whole.ledger.gradients + whole.ledger.optimizer
    assert [round(size / 1e9, 1) for size in (held, held * 7 / 8, held / 8)] == [107.8, 94.3, 13.5]
    assert round(whole.savings["sharding over 8"] / 1e9, 1) == 107.6
    assert round(whole.ledger.casts / 1e9, 1) == 13.2


def test_the_levers_have_the_numbers_of_their_replies():
    def most(recipe="bf16-mixed", attention="sdpa", **how):
        fits = fitting.predicted_fits("DistilBERT", recipe, budget=0.9 * 24e9, attention=attention, **how)
        return fitting.largest_batch(fits)

    counts = most(), most(optimizer="adamw-8bit"), most("bf16-true"), most(checkpointing=True), most(attention="eager")
    assert counts[:3] + counts[4:] == (200, 204, 253, 88)
    assert counts[3] > 8 * counts[0]
    plain, again = (
        predict("DistilBERT", "bf16-mixed", batch=2, attention="sdpa", checkpointing=on).activations
        - predict("DistilBERT", "bf16-mixed", batch=1, attention="sdpa", checkpointing=on).activations
        for on in (False, True)
    )
    assert round(plain / again) == 9
    right = next(option for option in memory_questions.LARGEST_LEVER.options if option.right)
    assert right.text == "Checkpointing"


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_one_review_takes_as_much_in_16_mixed_within_a_few_percent(attention):
    mixed, full = (predict("DistilBERT", name, batch=1, attention=attention).total for name in ("16-mixed", "32-true"))
    assert abs(mixed / full - 1) < 0.03
