"""The checks of eight_bits/fp8: the right answer, and for each foreseen wrong one the hint that names it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from utils import scaling
from utils.checks.eight_bits import fp8 as checks
from utils.checks.eight_bits import fp8_questions as questions
from utils.checks.outcome import NOT_YET
from utils.checks.questions import judge, number
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E5M2
from utils.rounding import quantize
from utils.training import batches, float8_linear
from utils.widgets.scale_explorer import ScaleExplorer
from utils.workloads import data, language_task

# --- On paper


def test_the_way_there_and_back_is_that_of_the_reference():
    scale = 448 / 0.0875
    assert float(scaling.scale_from_amax(0.0875, FLOAT8_E4M3FN)) == pytest.approx(scale)
    stored = float(quantize(0.005 * scale, FLOAT8_E4M3FN))
    smallest = FLOAT8_E4M3FN.smallest_subnormal / scale
    answers = (scale, stored, stored / scale, smallest)
    assert checks.check_there_and_back(dict(zip(questions.THERE_AND_BACK, answers, strict=True)))


@pytest.mark.parametrize("code", ["0x5D", "01011101"])
def test_the_code_of_what_is_stored_is_called_a_code(code):
    stored = float(torch.tensor(0x5D, dtype=torch.uint8).view(torch.float8_e4m3fn))
    assert questions.THERE_AND_BACK[questions.STORED].is_right(stored)
    answers = dict(zip(questions.THERE_AND_BACK, (5120, code, 26 / 5120, 2**-9 / 5120), strict=True))
    assert "That is its code" in checks.check_there_and_back(answers).message


@pytest.mark.parametrize("name", [questions.BACK, questions.SMALLEST])
def test_numbers_that_come_back_may_be_rounded_alike(name):
    question = questions.THERE_AND_BACK[name]
    exact = number(question.answer)
    assert all(question.is_right(float(f"{exact:.{digits}e}")) for digits in (1, 2, 3))  # two digits and more
    assert not question.is_right(1.01 * exact)


def test_the_format_is_the_one_with_the_smaller_error_in_the_middle():
    draw = np.random.default_rng(0)
    tensors = (
        2.0**-30 * draw.standard_normal(4096),
        2.0 ** draw.uniform(-48, -8, 4096),
        2.0 ** draw.uniform(-32, -8, 4096),
        np.append(draw.standard_normal(4096), 100_000),
    )
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


RIGHT_FORMATS = {
    questions.TINY: "E4M3",
    questions.WIDE: "E5M2",
    questions.NARROWER: "E4M3",
    questions.OUTLIER: "E5M2",
}


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ({questions.NARROWER: "E5M2"}, "a median looks at the middle"),
        (dict.fromkeys(RIGHT_FORMATS, "E4M3"), "half of the tensor is lost"),
        ({questions.OUTLIER: "E4M3"}, "17 binades below amax"),
        ({questions.TINY: "E5M2"}, "Range is not what it lacks"),
    ],
)
def test_the_wrong_format_has_its_hint(wrong, hint):
    assert checks.check_which_format(RIGHT_FORMATS)
    outcome = checks.check_which_format(RIGHT_FORMATS | wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- From E4M3 to E4M3FNUZ


def bytes_of(codes):
    return codes.view(torch.uint8)


def by_bytes(codes, inv_scale):
    turned = bytes_of(codes).clone()
    turned[bytes_of(codes) == 0x80] = 0
    turned[(bytes_of(codes) & 0x7F) == 0x7F] = 0x80
    return turned.view(torch.float8_e4m3fnuz), 2 * inv_scale


def by_values(codes, inv_scale):
    return ((codes.float() / 2) + 0.0).to(torch.float8_e4m3fnuz), float(2 * inv_scale)


def wrong_fnuz(fault):
    def to_fnuz(codes, inv_scale):
        if fault == "number in place":
            inv_scale *= 2
            return by_bytes(codes, inv_scale)[0], inv_scale
        if fault == "nan to 0":
            return by_values(codes.float().nan_to_num(0), inv_scale)
        turned = bytes_of(codes) if fault == "in place" else bytes_of(codes).clone()
        if fault != "minus zero":
            turned[turned == 0x80] = 0
        if fault != "nan":
            turned[(turned & 0x7F) == 0x7F] = 0x80
        factor = {"kept": 1, "halved": 0.5, "four": 4}.get(fault, 2)
        found = turned.view(torch.float8_e4m3fnuz)
        if fault == "dtype":
            found = turned.view(torch.float8_e4m3fn)
        if fault == "flat":
            found = found[:3]
        if fault == "cast":
            found, factor = (codes.float().clamp(-240, 240) + 0.0).to(torch.float8_e4m3fnuz), 1
        if fault == "random":
            found = found.flip(0)
        return found if fault == "one" else (found, factor * inv_scale)

    return to_fnuz


@pytest.mark.parametrize("right", [by_bytes, by_values])
def test_a_tensor_may_go_to_fnuz_by_bytes_or_by_values(right):
    outcome = checks.check_to_fnuz(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ("kept", "half of what it was"),
        ("halved", "a quarter"),
        ("four", "twice what it was"),
        ("minus zero", "minus zero in E4M3"),
        ("nan", "A NaN came out as 240: the two NaN codes"),
        ("nan to 0", "A NaN came out as 0"),
        ("cast", "ends at 240"),
        ("in place", "changed `codes`"),
        ("number in place", "changed `inv_scale`"),
        ("random", "The numbers have changed"),
        ("dtype", "view(torch.float8_e4m3fnuz)"),
        ("flat", "of shape"),
        ("one", "Return two things"),
    ],
)
def test_the_way_to_fnuz_names_the_mistake(fault, hint):
    outcome = checks.check_to_fnuz(wrong_fnuz(fault))
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_a_plain_cast_of_the_values_is_not_enough():
    outcome = checks.check_to_fnuz(lambda codes, inv_scale: (codes.float().to(torch.float8_e4m3fnuz), inv_scale))
    assert outcome.status == NOT_YET


# --- Three products


def filled(matrix, fill=0.0):
    return torch.cat([matrix, torch.full((-len(matrix) % 16, matrix.shape[1]), fill)])


def step(fault=""):
    def linear_step(x, w, dy, product):
        gradient = "E4M3" if fault == "dy in E4M3" else "E5M2"
        rows = filled(x) if fault == "rows stay" else x
        y = x @ w.t() if fault == "exact" else product(rows, w, "E4M3", "E4M3")
        dx = product(dy, w if fault == "not turned" else w.t(), gradient, "E4M3")
        tall, high = filled(x, 1.0 if fault == "ones" else 0.0), filled(dy, 1e-5 if fault == "ones" else 0.0)
        if fault == "not filled":
            tall, high = x, dy
        if fault == "left out":
            tall, high = x[:48], dy[:48]
        dw = product(high.t(), tall.t(), gradient, "E5M2" if fault == "x in E5M2" else "E4M3")
        if fault == "dw turned":
            dw = product(tall.t(), high.t(), "E4M3", gradient)
        if fault == "sign":
            dw = -dw
        if fault == "order":
            return y, dw, dx
        return (y, dx) if fault == "two" else (y, dx, dw)

    return linear_step


def test_rows_of_zeros_may_be_added_everywhere_if_they_go_again():
    def all_filled(x, w, dy, product):
        x, dy, tokens = filled(x), filled(dy), len(x)
        y, dx = product(x, w, "E4M3", "E4M3"), product(dy, w.t(), "E5M2", "E4M3")
        return y[:tokens], dx[:tokens], product(x.t(), dy.t(), "E4M3", "E5M2").t()

    outcome = checks.check_linear_step(all_filled)
    assert outcome, outcome.message


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


def test_the_products_take_their_formats_by_the_names_on_the_page():
    def by_name(x, w, dy, product):
        y = product(x, w, a_format="E4M3", b_format="E4M3")
        dx = product(dy, w.t(), a_format="E5M2", b_format="E4M3")
        return y, dx, product(filled(dy).t(), filled(x).t(), b_format="E4M3", a_format="E5M2")

    outcome = checks.check_linear_step(by_name)
    assert outcome, outcome.message


def y_and_dx(x, w, dy, product):
    return product(x, w, "E4M3", "E4M3"), product(dy, w.t(), "E5M2", "E4M3")


def halves(x, w, dy, product):
    y, dx = y_and_dx(x, w, dy, product)
    dw = product(dy[:48].t(), x[:48].t(), "E5M2", "E4M3")
    return y, dx, dw + product(filled(dy[48:]).t(), filled(x[48:]).t(), "E5M2", "E4M3")


def ones_and_zeros(x, w, dy, product):
    y, dx = y_and_dx(x, w, dy, product)
    return y, dx, product(filled(dy, 1e-4).t(), filled(x).t(), "E5M2", "E4M3")


def in_bfloat16(x, w, dy, product):
    return tuple(one.bfloat16() for one in step()(x, w, dy, product))


def x_cut_to_e5m2(x, w, dy, product):
    y, dx = y_and_dx(x, w, dy, product)
    return y, dx, product(filled(x).t(), filled(dy).t(), "E5M2", "E4M3").t()


def y_in_e5m2(x, w, dy, product):
    _, dx, dw = step()(x, w, dy, product)
    return product(x, w, "E5M2", "E4M3"), dx, dw


def scaled_twice(x, w, dy, product):
    y, dx = y_and_dx(x, w, dy, product)
    return y, dx, product(filled(3 * dy).t(), filled(x).t(), "E5M2", "E4M3") / 3.01


def rounded_after(x, w, dy, product):
    y, dx, dw = step()(x, w, dy, product)
    return y, dx, dw.bfloat16().float()


def by_hand(x, w, dy, product):
    return tuple(step()(x, w, dy, checks._product))


def dw_by_hand(x, w, dy, product):
    y, dx = y_and_dx(x, w, dy, product)
    return y, dx, checks._product(dy.t(), x.t(), "E5M2", "E4M3")


def turned_operands(x, w, dy, product):
    y, _, dw = step()(x, w, dy, product)
    return y, product(w.t(), dy, "E4M3", "E5M2").t(), dw


def both_turned(x, w, dy, product):
    return product(w[:30], x, "E4M3", "E4M3").t(), x, w


def clears_x(x, w, dy, product):
    results = step()(x, w, dy, product)
    x.zero_()
    return results


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (halves, "dw is close, but product was called 2 times for it"),
        (ones_and_zeros, "dw is close, but what you added to dy is larger than its amax"),
        (in_bfloat16, "y is close, but its dtype is torch.bfloat16"),
        (x_cut_to_e5m2, "dw is close, but x was rounded to E5M2"),
        (y_in_e5m2, "y is close, but x was rounded to E5M2"),
        (scaled_twice, "dw is close, but product was not called with dy and x as they were given"),
        (rounded_after, "dw is close, but not what one product of all of dy and x gives"),
        (by_hand, "product was never called"),
        (dw_by_hand, "product was called only twice"),
        (turned_operands, "the rows of the second operand, 50, are no multiple of 16. Those of the first may be any"),
        (both_turned, "the rows of the second operand, 50, are no multiple of 16. Rows of zeros can be added"),
        (clears_x, "The result is right, but your function also changed `x`"),
    ],
)
def test_what_is_said_of_a_product_that_is_close_is_true(wrong, hint):
    outcome = checks.check_linear_step(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ("dy in E4M3", "gradients are to be in E5M2"),
        ("x in E5M2", "two operands in E5M2"),
        ("not filled", "the axis that it sums over, 50, is no multiple of 16"),
        ("left out", "leaves out the last 2 tokens"),
        ("ones", "another product"),
        ("rows stay", "have to go again"),
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


# --- A cast that saturates


def by_choice(x, scale):
    scaled = (x * scale).clamp(-448, 448)
    return torch.where(x.isfinite(), scaled, torch.nan).to(torch.float8_e4m3fn)


def by_adding_nothing(x, scale):
    return ((x.double() * scale).clamp(-448, 448).float() + 0 * x).to(torch.float8_e4m3fn)  # 0 * inf is NaN


def by_filling(x, scale):
    codes = torch.empty(x.shape, dtype=torch.float8_e4m3fn)
    return codes.copy_((x * scale).clamp(-448, 448).masked_fill(~x.isfinite(), torch.nan))


@pytest.mark.parametrize("right", [by_choice, by_adding_nothing, by_filling])
def test_the_cast_may_be_written_in_any_way(right):
    outcome = checks.check_saturating_cast(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda x, scale: (x * scale).clamp(-448, 448), "makes codes of E4M3"),
        (lambda x, scale: (x * scale).clamp(-448, 448).to(torch.float8_e4m3fn), "an infinity came out as 448"),
        (
            lambda x, scale: (x * scale).nan_to_num().clamp(-448, 448).to(torch.float8_e4m3fn),
            "an infinity came out as 448",
        ),
        (
            lambda x, scale: (
                torch.where(x.isinf(), torch.nan, x * scale).nan_to_num().clamp(-448, 448).to(torch.float8_e4m3fn)
            ),
            "came out as a number",
        ),
        (
            lambda x, scale: torch.where((x * scale).isfinite(), (x * scale).clamp(-448, 448), torch.nan).to(
                torch.float8_e4m3fn
            ),
            "Ask x whether it is finite",
        ),
        (
            lambda x, scale: torch.where((x * scale).abs() <= 448, x * scale, torch.nan).to(torch.float8_e4m3fn),
            "a finite value past 448 came out as NaN",
        ),
        (
            lambda x, scale: (
                torch.where(x.isfinite().all(), x * scale, torch.nan).clamp(-448, 448).to(torch.float8_e4m3fn)
            ),
            "all finite values came out as NaN: only the entries",
        ),
        (
            lambda x, scale: by_choice(x.masked_fill(x == torch.inf, torch.nan).clamp(min=-1e36), scale),
            "an infinity came out as -448",
        ),
        (
            lambda x, scale: (
                torch.where(x.isfinite(), (x * scale).clamp(-448, 448), torch.nan).bfloat16().to(torch.float8_e4m3fn)
            ),
            "Is anything rounded before the cast",
        ),
        (
            lambda x, scale: (by_choice(x, scale), x.zero_())[0],
            "also changed `x`",
        ),
        (lambda x, scale: (x.clamp(-448, 448) * scale).clamp(max=448).to(torch.float8_e4m3fn), ""),
        (
            lambda x, scale: torch.where(x.isfinite(), x * scale, torch.nan).to(torch.float8_e4m3fn),
            "reach the cast",  # right where the cast saturates, and NaN for a finite value where it does not
        ),
        (
            lambda x, scale: torch.empty(x.shape, dtype=torch.float8_e4m3fn).copy_(
                torch.where(x.isfinite(), x * scale, torch.nan)
            ),
            "reach the cast",
        ),
        (
            lambda x, scale: (
                (x * (448 / x.abs().amax())).clamp(-448, 448).to(torch.float8_e4m3fn)
                if x.numel()
                else x.to(torch.float8_e4m3fn)
            ),
            "not those of x times scale",  # the scale of `to_fp8`, from the amax
        ),
        (lambda x, scale: (x / scale).to(torch.float8_e4m3fn), "You divided by the scale"),
        (lambda x, scale: x.to(torch.float8_e4m3fn), "Nothing was scaled"),
        (lambda x, scale: (x * scale).to(torch.float8_e4m3fn)[:1], "shape of x"),
    ],
)
def test_the_cast_names_the_mistake(wrong, hint):
    outcome = checks.check_saturating_cast(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- Play


@pytest.fixture(scope="module")
def explorer():
    """The widget of the chapter, with the tensors that its notebook makes."""
    settings = language_task.settings_for("small")
    settings = replace(settings, shape=settings.shape.widened(128))
    task = language_task.prepare(data.generated_prose(settings.characters), size="small", settings=settings)
    model, kept = task.new_model(0).train(), []
    layer = model.model.layers[0].self_attn.v_proj
    layer.register_forward_hook(lambda _, x, y: kept.append(x[0].detach().flatten(0, -2)))
    layer.register_full_backward_hook(lambda _, dx, dy: kept.append(dy[0].flatten(0, -2)))
    batch = batches.pad(task.train, list(range(8)))
    logits = model(input_ids=batch.ids, attention_mask=batch.mask).logits
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.labels.flatten()).backward()
    return ScaleExplorer(dict(zip(("activation", "gradient"), kept, strict=True)), rule="hand")


@pytest.mark.parametrize(
    ("question", "fmt"), [(questions.PLAY_E4M3, "float8_e4m3fn"), (questions.PLAY_E5M2, "float8_e5m2")]
)
def test_the_largest_scale_that_saturates_nothing_is_that_of_the_widget(explorer, question, fmt):
    explorer.tensor, explorer.rule, explorer.format, past = "activation", "hand", fmt, {}
    for power in range(31):
        explorer.log2_scale = power
        past[power] = explorer.carried.counts["past"]
    assert question.is_right(max(power for power, count in past.items() if count == 0))


def test_the_replies_on_the_activation_have_its_numbers(explorer):
    explorer.tensor, explorer.rule, explorer.format, decibels = "activation", "hand", "float8_e4m3fn", []
    for power in (6, 7):
        explorer.log2_scale = power
        decibels.append(explorer.carried.db)
    amax = explorer.carried.amax
    assert explorer.carried.counts["past"] == 1
    assert [f"{2**power * amax:.0f}" for power in (5, 6, 7)] == ["131", "262", "524"]
    assert round(decibels[0] - decibels[1]) == 3
    assert (round(448 / amax), round(2**14 * amax, -3)) == (109, 67_000)


def test_the_smallest_scale_that_beats_e5m2_is_that_of_the_widget(explorer):
    explorer.tensor, explorer.rule, decibels, zeros = "gradient", "hand", {}, {}
    for fmt in ("float8_e5m2", "float8_e4m3fn"):
        explorer.format = fmt
        for power in range(27):
            explorer.log2_scale = power
            decibels[fmt, power], zeros[fmt, power] = explorer.carried.db, explorer.carried.counts["zero"]
    plateau = [decibels["float8_e5m2", power] for power in range(2, 26)]
    assert max(plateau) - min(plateau) < 0.1
    assert f"{max(plateau):.1f}" == "24.7"
    ours = {power: decibels["float8_e4m3fn", power] for power in range(27)}
    assert questions.PLAY_SMALLEST.is_right(min(power for power, db in ours.items() if db > max(plateau)))
    assert [f"{ours[power]:.1f}" for power in (6, 7, 8)] == ["22.6", "27.7", "31.4"]
    assert zeros["float8_e4m3fn", 7] == 90
    assert min(power for power in ours if zeros["float8_e4m3fn", power] == 0) == 14
    assert min(power for power, db in ours.items() if db > max(ours.values()) - 1) == 9
    assert all(ours[power] < max(plateau) for power in range(19, 27))


@pytest.mark.parametrize("asked", [questions.PLAY_E4M3, questions.PLAY_E5M2, questions.PLAY_SMALLEST])
def test_every_foreseen_wrong_answer_has_a_reply_of_its_own(asked):
    replies = [judge(asked, number(text)).message for text in asked.wrong]
    assert len(set(replies)) == len(replies)
    assert asked.otherwise not in replies


# --- What the chapter says of minus zeros


def test_a_large_weight_holds_a_few_dozen_minus_zeros_in_as_many_rows():
    w = torch.randn(4096, 4096, generator=torch.Generator().manual_seed(0))
    codes = (w * (448 / w.abs().amax())).to(torch.float8_e4m3fn).view(torch.uint8)
    rows = (codes == 0x80).any(1).sum()
    assert 40 < rows <= (codes == 0x80).sum() < 100
    assert 0.01 < rows / len(w) < 0.02
