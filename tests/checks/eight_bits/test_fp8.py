"""The checks of eight_bits/fp8: the right answer, and for each foreseen wrong one the hint that names it."""

import numpy as np
import pytest
import torch

from utils import scaling
from utils.checks.eight_bits import fp8 as checks
from utils.checks.eight_bits import fp8_questions as questions
from utils.checks.outcome import NOT_YET
from utils.checks.questions import number
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E5M2
from utils.rounding import quantize
from utils.training import float8_linear

# --- On paper


def test_the_way_there_and_back_is_that_of_the_reference():
    scale = 448 / 0.0875
    assert float(scaling.scale_from_amax(0.0875, FLOAT8_E4M3FN)) == pytest.approx(scale)
    stored = float(quantize(0.001 * scale, FLOAT8_E4M3FN))
    smallest = FLOAT8_E4M3FN.smallest_subnormal / scale
    answers = (scale, stored, stored / scale, smallest)
    assert checks.check_there_and_back(dict(zip(questions.THERE_AND_BACK, answers, strict=True)))


@pytest.mark.parametrize("name", [questions.BACK, questions.SMALLEST])
def test_numbers_that_come_back_may_be_rounded_alike(name):
    question = questions.THERE_AND_BACK[name]
    exact = number(question.answer)
    assert all(question.is_right(float(f"{exact:.{digits}e}")) for digits in (1, 2, 3))  # two digits and more
    assert not question.is_right(1.01 * exact)


def test_the_format_is_the_one_with_the_smaller_error_in_the_middle():
    draw = np.random.default_rng(0)
    tensors = (0.02 * draw.standard_normal(4096), 2.0 ** draw.uniform(-48, -8, 4096), draw.uniform(0.5, 900, 4096))
    answer = {}
    for name, x in zip(questions.WHICH_FORMAT, tensors, strict=True):
        middle = {}
        for label, fmt in checks.FORMATS.items():
            scale = fmt.max / np.abs(x).max()
            middle[label] = np.median(np.abs(quantize(x * scale, fmt) / scale / x - 1))
        answer[name] = min(middle, key=middle.get)
    assert set(answer.values()) == {"E4M3", "E5M2"}
    assert checks.check_which_format(answer)
    assert checks.check_which_format({name: one.lower() for name, one in answer.items()})


# --- The round trip


def trip(fault=""):
    def to_codes(x):
        top = 57344 if fault == "e5m2" else 240 if fault == "240" else 100 if fault == "room" else 448
        amax = x.amax() if fault == "signed" else x.abs().amax()
        scale = top / amax
        if fault == "power of two":
            scale = 2.0 ** torch.floor(torch.log2(scale))
        scaled = x if fault in ("unscaled", "cast alone") else x * scale
        if fault != "unclamped":
            scaled = scaled.clamp(-top, top)
        codes = scaled.to(torch.float8_e5m2 if fault == "e5m2" else torch.float8_e4m3fn)
        if fault == "float":
            codes = codes.float()
        if fault == "flat":
            codes = codes.flatten()
        back = scale if fault == "swapped" else 1.0 if fault == "cast alone" else 1 / scale
        if fault == "rows":
            back = back.expand(len(x))
        return codes if fault == "one" else (codes, back)

    return to_codes


def by_the_reference(x):
    scale = scaling.scale_from_amax(x.abs().amax().numpy(), FLOAT8_E4M3FN)
    return (x * float(scale)).clamp(-448, 448).to(torch.float8_e4m3fn), 1 / float(scale)


@pytest.mark.parametrize("right", [trip(), trip("power of two"), trip("240"), by_the_reference])
def test_the_round_trip_may_be_written_in_any_way(right):
    outcome = checks.check_to_codes(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ("swapped", "You return the scale itself"),
        ("unscaled", "Nothing was scaled"),
        ("cast alone", "Nothing was scaled"),
        ("signed", "magnitude"),
        ("room", "leaves room above"),
        ("e5m2", "makes codes of E4M3"),
        ("float", "makes codes of E4M3"),
        ("flat", "shape of x"),
        ("rows", "one number for the whole tensor"),
        ("one", "Return two things"),
    ],
)
def test_the_round_trip_names_the_mistake(fault, hint):
    outcome = checks.check_to_codes(trip(fault))
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- Operand 2


def as_strided(b):
    out = torch.empty(b.shape[::-1], dtype=b.dtype)
    out.copy_(b.t())
    return out.t()


@pytest.mark.parametrize("right", [lambda b: b.t().contiguous().t(), as_strided, lambda b: b.t().clone().t().clone()])
def test_operand_2_is_judged_by_its_strides(right):
    answered = checks.check_column_major(right)
    strides = right(torch.zeros(64, 32).to(torch.float8_e4m3fn)).stride()
    assert bool(answered) == (strides == (1, 64)), answered.message


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda b: b, "still row-major"),
        (lambda b: b.contiguous(), "still row-major"),
        (lambda b: b.t(), "turn the axes back"),
        (lambda b: b.t().contiguous(), "turn the axes back"),
        (lambda b: b.t().reshape(b.shape), "the transposed matrix"),
        (lambda b: b.float().t().contiguous().t(), "should not change"),
        (lambda b: b.flip(0), "changed places"),
        (lambda b: b.repeat_interleave(2, 0)[::2], "strides are"),
    ],
)
def test_operand_2_names_the_mistake(wrong, hint):
    outcome = checks.check_column_major(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- Three products


def step(fault=""):
    def linear_step(x, w, dy, product):
        gradient = "E4M3" if fault == "dy in E4M3" else "E5M2"
        y = x @ w.t() if fault == "exact" else product(x, w, "E4M3", "E4M3")
        dx = product(dy, w if fault == "not turned" else w.t(), gradient, "E4M3")
        dw = product(dy.t(), x.t(), gradient, "E5M2" if fault == "x in E5M2" else "E4M3")
        if fault == "dw turned":
            dw = product(x.t(), dy.t(), "E4M3", gradient)
        if fault == "sign":
            dw = -dw
        if fault == "order":
            return y, dw, dx
        return (y, dx) if fault == "two" else (y, dx, dw)

    return linear_step


def test_the_three_products_are_those_of_float8_linear():
    draw = torch.Generator().manual_seed(1)
    x, w, dy = (torch.randn(*shape, generator=draw) for shape in ((48, 64), (32, 64), (48, 32)))
    layer = float8_linear.Float8Linear(64, 32, bias=False, recipe="fp8-current")
    layer.weight.data = w
    given = x.clone().requires_grad_()
    y = layer(given)
    y.backward(dy)
    ours = step()(x, w, dy, checks._product)
    for found, wanted in zip(ours, (y.detach(), given.grad, layer.weight.grad), strict=True):
        assert torch.allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert layer.recipe.backward is FLOAT8_E5M2
    assert checks.check_linear_step(step())


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ("dy in E4M3", "gradients go to E5M2"),
        ("x in E5M2", "look at the formats"),
        ("exact", "not multiplied in FP8"),
        ("not turned", "has to be transposed"),
        ("dw turned", "Transposed?"),
        ("order", "dx should be"),
        ("sign", "another product"),
        ("two", "three tensors"),
    ],
)
def test_the_three_products_name_the_mistake(fault, hint):
    outcome = checks.check_linear_step(step(fault))
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- The scale


def by_where(x):
    scale = 448 / x.abs().amax()
    return torch.where(scale.isfinite() & (scale > 0), scale, 1.0)


def clamped(x):
    return 448 / x.nan_to_num(0.0, posinf=0.0, neginf=0.0).abs().amax().clamp(min=1e-12)


def of_the_reference(x):
    return float(scaling.scale_from_amax(x.abs().amax().numpy(), FLOAT8_E4M3FN))


@pytest.mark.parametrize("right", [by_where, clamped, of_the_reference])
def test_the_scale_may_be_made_safe_in_any_way(right):
    outcome = checks.check_safe_scale(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda x: 448 / x.abs().amax(), "tensor of zeros"),
        (lambda x: 448 / (x.abs().amax() + 1e-6), "added to every amax"),
        (lambda x: 448 / x.abs().amax().clamp(min=1e-6), "clamped too early"),
        (lambda x: torch.where(x.abs().amax() == 0, 1.0, 448 / x.abs().amax()), "1e-40"),
        (lambda x: 448 / x.abs().amax().clamp(min=1e-30), "infinity"),
        (lambda x: 448 / x.nan_to_num(posinf=3e38).abs().amax().double().clamp(min=1e-30), "float64"),
        (lambda x: 448 / x.abs().amax(0, keepdim=True).expand(64), "one number"),
    ],
)
def test_the_scale_names_the_mistake(wrong, hint):
    outcome = checks.check_safe_scale(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message
