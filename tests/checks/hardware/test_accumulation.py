"""The checks of hardware/accumulation: the right answer, and for each foreseen wrong one the hint that names it."""

import itertools
import math

import numpy as np
import pytest
import torch

from utils.accumulation import running_sum
from utils.checks.hardware import accumulation, accumulation_questions
from utils.checks.hardware.accumulation import cut, running
from utils.checks.outcome import CORRECT, NOT_ATTEMPTED, NOT_YET
from utils.checks.questions import judge
from utils.emulation.accumulators import ACCUMULATORS
from utils.emulation.tensor_core import truncating_matmul
from utils.formats import FloatFormat
from utils.rounding import toward_zero
from utils.widgets.dot_product import DotProduct, Lane
from utils.widgets.dot_product.facts import PROMOTES

STALLS = {
    accumulation_questions.STALL_FLOAT16: ACCUMULATORS["float16"].matmul,
    accumulation_questions.STALL_BFLOAT16: ACCUMULATORS["bfloat16"].matmul,
    accumulation_questions.STALL_CUT: lambda a, b: truncating_matmul(a, b, bits=14, block=1),
    accumulation_questions.STALL_BLOCKS: ACCUMULATORS["fp8-14bit"].matmul,
}


def quarters(matmul, count, block):
    """A total of 32, which fills one addition, and so many products of 1/4."""
    products = torch.zeros(1, block + count)
    products[0, 0], products[0, block:] = 32.0, 0.25
    return float(matmul(products, torch.ones(block + count, 1)))


def test_the_sums_stall_where_the_accumulators_do():
    table = {}
    for name, matmul in STALLS.items():
        table[name] = int(accumulation_questions.STALLS[name].answer)
        count, block = table[name], 32 if "32" in name else 1
        full, longer, shorter = (quarters(matmul, n, block) for n in (count, count + 4 * block, count - block))
        assert full == longer == 32 + count / 4
        assert shorter < full
    assert accumulation.check_stalls(table)


def test_the_distance_of_promotions_is_the_formula_of_the_chapter():
    bounds = [share * 3 * 2**bits for bits, share in ((12, 0.01), (14, 0.001), (16, 0.001))]
    answers = [2 ** math.floor(math.log2(bound)) for bound in bounds]
    assert accumulation.check_promote_every(dict(zip(accumulation_questions.PROMOTE_EVERY, answers, strict=True)))


@pytest.mark.parametrize(
    ("name", "answer", "hint"),
    [
        (accumulation_questions.EVERY_ONE_PERCENT, 122.88, accumulation_questions.AT_THE_BOUND),
        (accumulation_questions.EVERY_ONE_PERCENT, 123, accumulation_questions.AT_THE_BOUND),
        (accumulation_questions.EVERY_ONE_PERCENT, 100, accumulation_questions.NO_POWER),
        (accumulation_questions.EVERY_TENTH, 49.15, accumulation_questions.AT_THE_BOUND),
        (accumulation_questions.EVERY_TENTH, 48, accumulation_questions.NO_POWER),
        (accumulation_questions.EVERY_SIXTEEN, 196.6, accumulation_questions.AT_THE_BOUND),
        (accumulation_questions.EVERY_SIXTEEN, 100, accumulation_questions.NO_POWER),
    ],
)
def test_the_bound_itself_and_what_lies_below_it_get_their_hints(name, answer, hint):
    assert judge(accumulation_questions.PROMOTE_EVERY[name], answer).message == hint


@pytest.mark.parametrize(("bits", "share", "n"), [(12, 0.01, 64), (14, 0.001, 32), (16, 0.001, 128)])
def test_a_promoted_sum_keeps_the_share_and_the_next_power_does_not(bits, share, n):
    """Products of many digits: uniform times uniform, to 24 bits."""
    draw = torch.Generator().manual_seed(0)
    a, b = (torch.rand(shape, generator=draw).bfloat16().float() for shape in ((40, 2048), (2048, 40)))
    exact = a.double() @ b.double()

    def lost(every):
        found = truncating_matmul(a, b, bits=bits, block=1, promote=every).double()
        return float((1 - found / exact).mean())

    assert lost(n) < share < lost(2 * n)


def test_a_count_of_blocks_and_one_by_one_times_32_get_replies_of_their_own():
    question = accumulation_questions.STALLS[accumulation_questions.STALL_BLOCKS]
    assert ((4096 - 32) // 8, 32 * 16256) == (508, 520192)
    assert "lead to 4096" in judge(question, 508).message
    assert "32 times 16,256" in judge(question, 520192).message
    assert "the exact sum of 32 products" in judge(question, 7).message


@pytest.mark.parametrize("rounded", [0.0002, 0.00024, 0.00025])
def test_a_power_of_two_in_few_digits_is_told_to_be_rounded(rounded):
    question = accumulation_questions.TWO_UNITS[accumulation_questions.UNIT_B_CUTS]
    assert judge(question, rounded).message == accumulation_questions.NOT_ALL_DIGITS


def test_two_units_are_those_of_the_table():
    a, b = (lambda x: cut(cut(1 + x, 11, round) - 1, 11, round)), (lambda x: cut(cut(1 + x, 13) - 1, 13))
    rows = [
        (2.0**-10, 2.0**-10, 2.0**-10),
        (2.0**-11, 0, 2.0**-11),
        (1.5 * 2**-11, 2.0**-10, 1.5 * 2.0**-11),
        (2.0**-12, 0, 2.0**-12),
        (1.5 * 2**-12, 0, 2.0**-12),
        (2.0**-13, 0, 0),
        (1.5 * 2**-13, 0, 0),
    ]
    for x, of_a, of_b in rows:
        assert (a(x), b(x)) == (of_a, of_b)
    answers = dict(zip(accumulation_questions.TWO_UNITS, (11, 13, b(1.9 * 2**-12)), strict=True))
    assert accumulation.check_two_units(answers)


# --- The tasks under the widget


def error_of(lane, data="uniform"):
    widget = DotProduct(4096, (lane,), operands="float8_e4m3fn", data=data)
    a, b = widget.vectors
    return abs(widget.total(lane) / math.fsum(a * b) - 1)


def test_the_largest_distance_of_the_widget_is_that_of_the_task():
    found = [n for n in PROMOTES if n and error_of(Lane("fp8-aligned", promote=n)) < 0.02]
    assert max(found) == int(accumulation_questions.PLAY_PROMOTE.answer)


def test_the_errors_in_the_replies_of_that_task_are_those_of_the_widget():
    shown = [f"{error_of(Lane('fp8-aligned', promote=n)):.1%}" for n in (256, 512, 1024, 2048)]
    assert shown == ["0.2%", "0.5%", "1.4%", "3.1%"]
    assert 0.02 < 1024 / (3 * 2**14) < 0.021


def test_from_one_distance_to_the_next_the_error_grows_two_to_fourfold():
    errors = [error_of(Lane("fp8-aligned", promote=n)) for n in PROMOTES if n]
    growth = [after / before for before, after in itertools.pairwise(errors)]
    assert 2 < min(growth) < max(growth) < 4
    assert "two- to fourfold" in accumulation_questions.PLAY_PROMOTE.hints[0]


def test_what_the_text_says_of_the_widget_holds():
    """One product at a time leaves the error as it is; with only the total cut, most of it is gone."""
    at_once, singly, total_cut = map(error_of, (Lane("fp8-aligned"), Lane("fp8-aligned", block=1), Lane("fp8-14bit")))
    assert abs(at_once - singly) < 0.01 * at_once
    assert total_cut < at_once / 20


def test_the_share_that_is_swallowed_is_that_of_the_task():
    a, b = DotProduct(4096, operands="float8_e4m3fn", data="large").vectors
    found = ACCUMULATORS["fp8-aligned-128"].matmul(torch.tensor(a)[None], torch.tensor(b)[:, None])
    swallowed = (math.fsum(a * b) - float(found)) / float((a * b)[-1])  # each small product arrives whole or not at all
    assert swallowed == 127
    assert judge(accumulation_questions.PLAY_SWALLOWED, 100 * swallowed / 4096).status == CORRECT
    assert "first digit" in judge(accumulation_questions.PLAY_SWALLOWED, 3).message


# --- The limited accumulator


def ours(products, bits):
    if not products:
        return 0.0
    return float(running_sum(products, FloatFormat("narrow", 8, bits - 1, bias=127), toward_zero)[-1])


def by_string(products, bits):
    """The same in another way: count powers of two."""
    total = 0.0
    for product in products:
        total += product
        if total:
            last = 2.0 ** (math.floor(math.log2(abs(total))) - bits + 1)
            total = math.copysign(abs(total) // last * last, total)
    return total


def by_logarithm(products, bits):
    """What a good student wrote: right until a total is negative."""
    total = 0.0
    for product in products:
        total += product
        last = 2.0 ** (math.floor(math.log2(total)) - bits + 1)
        total = math.trunc(total / last) * last
    return total


def by_logarithm_of_the_size(products, bits):
    """The same with the absolute value: right until a total is 0."""
    total = 0.0
    for product in products:
        total += product
        last = 2.0 ** (math.floor(math.log2(abs(total))) - bits + 1)
        total = math.trunc(total / last) * last
    return total


def by_numpys_logarithm(products, bits):
    """NumPy's logarithm of 0 is minus infinity, which no integer holds."""
    total = 0.0
    for product in products:
        total += product
        with np.errstate(divide="ignore"):
            last = 2.0 ** (math.floor(np.log2(abs(total))) - bits + 1)
        total = math.trunc(total / last) * last
    return total


def through_float32(products, bits):
    total = 0.0
    for product in products:
        total = cut(float(np.float32(total + product)), bits)
    return total


def product_cut_first(products, bits):
    total = 0.0
    for product in products:
        last = 2.0 ** (math.frexp(total)[1] - bits) if total else 0.0
        total += math.trunc(product / last) * last if last else cut(product, bits)
    return total


def first_total_as_it_is(products, bits):
    total = products[0] if products else 0.0
    for product in products[1:]:
        total = cut(total + product, bits)
    return total


def large_totals_cut(products, bits):
    total = 0.0
    for product in products:
        total += product
        if abs(total) >= 1:
            total = cut(total, bits)
    return total


def with_the_rest_carried_on(products, bits):
    """Kahan's sum: what an addition cuts off is added to the next product."""
    total = rest = 0.0
    for product in products:
        exact = total + (product + rest)
        total, rest = cut(exact, bits), exact - cut(exact, bits)
    return total


@pytest.mark.parametrize("right", [ours, by_string, running])
def test_the_limited_sum_may_be_written_in_any_way(right):
    outcome = accumulation.check_limited_sum(right)
    assert outcome, outcome.message


def fixed_point(products, bits):
    """Count whole steps of 2**(1 - bits): a fixed point where a register has a floating one."""
    step, total = 2.0 ** (1 - bits), 0
    for product in products:
        total = int((total * step + product) / step)
    return total * step


def flushed(products, bits):
    total = ours(products, bits)
    return total if abs(total) > 1e-6 else 0.0


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda p, bits: running(p, bits, round), "rounded to nearest"),
        (lambda p, bits: running(p, bits, math.floor), "toward zero"),
        (lambda p, bits: running(p, bits + 1), "too many"),
        (lambda p, bits: running(p, bits - 1), "too few"),
        (lambda p, bits: math.fsum(p), "Nothing is cut"),
        (lambda p, bits: cut(math.fsum(p), bits), "the exact sum, cut once"),
        (with_the_rest_carried_on, "must be lost for the next one"),
        (first_total_as_it_is, "The first total is not cut"),
        (large_totals_cut, "it should be"),
        (lambda p, bits: sum(cut(x, bits) for x in p), "the total is not"),
        (fixed_point, "from the leading one on"),
        (flushed, "from the leading one on"),
        (by_logarithm, "is negative at times: if you take its logarithm"),
        (by_logarithm_of_the_size, "is 0 at times: if you take its logarithm"),
        (by_numpys_logarithm, "is 0 at times: if you take its logarithm"),
        (through_float32, "float32 before"),
        (product_cut_first, "Add first"),
        (lambda p, bits: ours(p, bits) if p else 1.0, "A sum of no products is 0.0, yours is 1.0."),
        (lambda p, bits: 7.0, "it should be"),
        (lambda p, bits: ours(p, bits) if len(p) != 50 else int("x"), "with base 10: 'x'."),
        (lambda p, bits: "seven", "not a number"),
        (lambda p, bits: p[0] / 0, "ZeroDivisionError"),
    ],
)
def test_the_limited_sum_names_the_mistake(wrong, hint):
    outcome = accumulation.check_limited_sum(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- The promoted sum


def promoted(products, add, n, *, fault=""):
    wide, narrow = 0.0, 0.0
    for place, product in enumerate(products, 0 if fault == "from 0" else 1):
        narrow = add(narrow, product)
        if place % (n + (fault == "late") - (fault == "early" and n > 1)) == 0:
            wide = add(wide, narrow) if fault == "narrow" else wide + narrow
            narrow = narrow if fault == "goes on" else 0.0
    if fault == "no rest":
        return wide
    if fault == "goes on":
        return wide + (narrow if len(products) % n else 0.0)
    return add(wide, narrow) if fault == "narrow" and narrow else wide + narrow


def in_slices(products, add, n):
    parts = []
    for start in range(0, len(products), n):
        narrow = 0.0
        for product in products[start : start + n]:
            narrow = add(narrow, product)
        parts.append(narrow)
    return sum(parts)


def first_product_as_it_is(products, add, n):
    """As `in_slices`, but a part begins with its first product, which never went through `add`."""
    parts = []
    for start in range(0, len(products), n):
        first, *others = products[start : start + n]
        for product in others:
            first = add(first, product)
        parts.append(first)
    return sum(parts)


def with_the_product_first(products, add, n):
    return promoted(products, lambda total, product: add(product, total), n)


def in_a_float32(products, add, n):
    """As `in_slices`, with a wide total of 24 bits."""
    wide = np.float32(0)
    for start in range(0, len(products), n):
        wide += np.float32(in_slices(products[start : start + n], add, n))
    return float(wide)


@pytest.mark.parametrize("right", [promoted, in_slices])
def test_the_promoted_sum_may_be_written_in_any_way(right):
    outcome = accumulation.check_promoted_sum(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ("no rest", "the rest is missing"),
        ("goes on", "start it again from 0"),
        ("narrow", "use +"),
        ("late", "too many"),
        ("from 0", "count from 1"),
        ("early", "too few"),
    ],
)
def test_the_promoted_sum_names_the_mistake(fault, hint):
    outcome = accumulation.check_promoted_sum(lambda p, add, n: promoted(p, add, n, fault=fault))
    assert outcome.status == NOT_YET
    assert hint in outcome.message


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda p, add, n: promoted(p, add, len(p) + 1), "Nothing was promoted"),
        (with_the_product_first, "takes the total first"),
        (in_a_float32, "Keep a Python float"),
        (lambda p, add, n: math.fsum(p), "go through `add`"),
        (first_product_as_it_is, "add(0.0, x)"),
        (lambda p, add, n: promoted(p, add, n) if n > 1 else 0.0, "5 products, n = 1: your total is 0.0"),
        (lambda p, add, n: promoted(p, add, n) if n <= len(p) else 0.0, "20 products are no multiple of 64"),
        (lambda p, add, n: promoted(p, add, n) if p else 1.0, "0 products, n = 4: your total is 1.0"),
        (lambda p, add, n: 7.0, "it should be"),
    ],
)
def test_the_promoted_sum_knows_other_mistakes(wrong, hint):
    assert hint in accumulation.check_promoted_sum(wrong).message


@pytest.mark.parametrize("check", [accumulation.check_limited_sum, accumulation.check_promoted_sum])
def test_a_function_that_returns_nothing_was_not_attempted(check):
    assert check(lambda *given: None).status == NOT_ATTEMPTED
    assert check(3.0).status == NOT_YET
