"""StepTimeline in a real browser: its listings run in torch, its numbers are torch's, and what a reader does."""

import itertools
import math
import re
import warnings

import pytest
import torch
from torch import nn

from tests.browser.widget_page import DESK, PHONE, barriers, calls_of
from utils.widgets.step_timeline import BLOCKS, BREAKS, RECIPES, StepTimeline

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def press(page, name):
    page.get_by_role("button", name=name).first.click()


def type_into(page, label, text):
    field = page.get_by_label(label, exact=True)
    field.fill(text)
    field.press("Enter")


def verdict(page):
    return page.locator(".mp-st-verdict").inner_text().replace("\xa0", " ")


def spoken(page):
    return page.locator("[role=status]").inner_text().replace("\xa0", " ")


def chosen(page):
    return page.locator("[aria-current=step] > span:nth-child(2)").inner_text()


def blocks(page, kind):
    return page.locator(f".mp-st-{kind} > span:nth-child(2)").all_text_contents()


def tensors(page):
    rows = page.locator(".mp-st-tensors tbody tr").all()
    return {cells[0]: tuple(cells[1:]) for cells in (row.locator("th, td").all_inner_texts() for row in rows)}


def listing(page, kind=""):
    return page.locator(f".mp-st-code{kind}").all_text_contents()


# The page's facts against torch


HARNESS = """
const everyBlock = (plan) => words.stepBlocks(plan).map(({ key }) =>
  ({ key, words: words.blockWords(plan, key), first: words.stepTensors(plan, key)[0].name }));
window.calls = { ...words, everyBlock };
"""
call = calls_of("step_timeline/widget", HARNESS)


def plan(recipe="16-mixed", **changes):
    usual = {
        "overflow": False,
        "accumulate": False,
        "clip": True,
        "broken": "",
        "norm": 0.5,
        "scale": 65536,
        "maxNorm": 1,
    }
    return {"recipe": recipe, **usual, **changes}


class Training:
    """What a listing needs around it: a small model, two batches, an optimizer, a schedule, a scaler."""

    def __init__(self, dtype, scale=2.0**16):
        torch.manual_seed(0)
        self.model = nn.Linear(4, 3, dtype=dtype)
        x, y = torch.randn(8, 4, dtype=dtype), torch.randint(3, (8,))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        self.names = {
            "torch": torch,
            "device": "cpu",
            "clip_grad_norm_": nn.utils.clip_grad_norm_,
            "x": x,
            "y": y,
            "loss_fn": nn.functional.cross_entropy,
            "batches": [(x[:4], y[:4]), (x[4:], y[4:])],
            "model": self.model,
            "optimizer": self.optimizer,
            "scheduler": self.scheduler,
            "scaler": self.scaler,
        }

    def run(self, lines, overflow=False):
        """Run the lines as one step; with `overflow` a gradient becomes infinite in backward."""
        hook = self.model.weight.register_hook(lambda g: g.index_fill(0, torch.tensor(0), math.inf) if overflow else g)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a schedule that goes before the optimizer, on purpose
            exec("\n".join(line["text"] for line in lines), self.names)
        hook.remove()


COMBINATIONS = [
    (recipe, overflow, accumulate, clip)
    for recipe in RECIPES
    for overflow, accumulate, clip in itertools.product((False, True), repeat=3)
]


@pytest.mark.parametrize(("recipe", "overflow", "accumulate", "clip"), COMBINATIONS)
def test_every_listing_runs_in_torch_and_does_what_the_verdict_says(call, recipe, overflow, accumulate, clip):
    now = plan(recipe, overflow=overflow, accumulate=accumulate, clip=clip)
    weights = DTYPES[call("stepTensors", now, "step")[0]["dtype"]]
    training = Training(weights)
    before = training.model.weight.detach().clone()
    training.run(call("stepLines", now), overflow)
    rows = {row["name"]: row["dtype"] for row in call("stepTensors", now, "schedule")}
    assert (training.model.weight.dtype, training.model.weight.grad.dtype) == (weights, DTYPES[rows["gradients"]])
    says = call("stepVerdict", now)["text"]
    is_skipped = torch.equal(before, training.model.weight)
    assert is_skipped == ("The step is skipped" in says)
    assert training.scheduler.last_epoch == (0 if is_skipped else 1)
    assert bool(training.model.weight.isnan().any()) == ("turns that weight into NaN" in says)
    assert training.scaler.get_scale() == (32768 if is_skipped else 65536)
    if not is_skipped:
        assert training.optimizer.state[training.model.weight]["exp_avg"].dtype == DTYPES[rows["Adam’s moments"]]


@pytest.mark.parametrize(("scale", "max_norm"), [(65536, 1), (1024, 0.01), (8, 100)])
@pytest.mark.parametrize("broken", ["", "clip_first"])
def test_the_norms_of_the_blocks_are_torchs(call, broken, scale, max_norm):
    training = Training(torch.float32, scale=float(scale))
    lines = call("stepLines", plan(broken=broken, scale=scale, maxNorm=max_norm))
    start = next(i for i, line in enumerate(lines) if "backward" in line["blocks"]) + 1
    training.run(lines[:start])

    def norm():
        return torch.cat([p.grad.flatten() for p in training.model.parameters()]).norm().item()

    now = plan(broken=broken, scale=scale, maxNorm=max_norm, norm=norm() / scale)
    assert call("gradientNorm", now, "backward") == pytest.approx(norm())
    for line in lines[start : start + 2]:
        training.run([line])
        assert call("gradientNorm", now, line["blocks"][0]) == pytest.approx(norm(), rel=1e-4)


@pytest.mark.parametrize("overflow", [False, True])
@pytest.mark.parametrize("broken", [name for name in BREAKS if name])
def test_a_broken_listing_does_the_harm_that_is_told(call, broken, overflow):
    now = plan(broken=broken, overflow=overflow)
    lines = call("stepLines", now)
    says = call("stepVerdict", now)["text"].replace("\xa0", " ")
    training = Training(torch.float32)
    training.run(lines, overflow)
    if broken == "no_update":
        assert says.startswith("The next unscale_ raises a RuntimeError")
        with pytest.raises(RuntimeError, match=re.escape("unscale_() is being called after step")):
            training.run(lines)
        assert training.scaler.get_scale() == 65536
    elif broken in ("always", "inverted"):
        moved = {"always": True, "inverted": overflow}[broken]
        assert training.scheduler.last_epoch == moved
        assert says.startswith(
            {
                ("always", True): "No weight has moved, but the learning rate has.",
                ("always", False): "No harm",
                ("inverted", True): "The scheduler advances now",
                ("inverted", False): "S did not fall",
            }[broken, overflow]
        )
    elif broken == "no_scale":
        assert "become 0 in float16; with S = 65536 only those below 4.55 × 10⁻¹³ would." in says
        assert bool(training.model.weight.isnan().any()) == overflow == ("NaN" in says)
    elif broken == "no_zero":
        first = training.model.weight.grad.clone()
        training.run(lines)
        if overflow:
            assert training.scaler.get_scale() == 2.0**14
            assert says.endswith("after 20 of them S is 0.0625.")
        else:
            training.run([line for line in lines if line["blocks"] != ["zero"]])
            assert first.norm() > 0.9 * training.model.weight.grad.norm()  # not three times as large
    else:
        assert ("no harm" in says) == overflow


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_block_has_words_in_every_state(call, recipe):
    for overflow, accumulate, clip in itertools.product((False, True), repeat=3):
        for broken, needed in BREAKS.items():
            if needed in ("", recipe) and (clip or broken != "clip_first"):
                now = plan(recipe, overflow=overflow, accumulate=accumulate, clip=clip, broken=broken)
                blocks = call("everyBlock", now)
                assert sorted(block["key"] for block in blocks) == sorted(BLOCKS)
                for block in blocks:
                    assert block["words"][0].endswith("."), (now, block)
                    assert not re.search("undefined|NaN[a-z]|null", " ".join(block["words"]))
                    assert block["first"] == "weights"


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (32768, "32768"),
        (0.5, "0.5"),
        (1 / 65536, "1.53 × 10⁻⁵"),
        (2.0**-25, "2.98 × 10⁻⁸"),
        (0.0625, "0.0625"),
        (1e12, "1 × 10¹²"),
        (0.00123456, "0.00123"),
        (3276.8, "3280"),
    ],
)
def test_numbers_are_short(call, x, text):
    assert call("fewDigits", x).replace("\xa0", " ") == text


def test_a_limit_that_cuts_a_little_is_told_from_one_that_does_not(call):
    near, enough = (plan(broken="clip_first", maxNorm=limit) for limit in (32767, 32768))
    says = call("stepVerdict", near)["text"]
    assert says.endswith("Unscaling then leaves 0.49998 instead of 0.5: 0.99997 of the gradient.")
    assert call("blockWords", near, "clip")[0].endswith("all gradients are multiplied by 0.99997.")
    assert call("stepTensors", near, "unscale")[1]["note"] == "norm 0.49998"
    assert call("stepVerdict", enough)["text"].endswith("no harm this time.")
    assert call("stepTensors", enough, "unscale")[1]["note"] == "norm 0.5"


def test_the_first_gradient_of_a_float16_loss_is_the_scale_and_overflows_from_two_to_the_16_on(call):
    says = call("blockWords", plan(), "loss")[1]
    assert says.endswith("backward would begin with S in float16, which is infinite from S = 2¹⁶ on.")
    assert call("blockWords", plan("16-true"), "loss")[1] == "In float16, a loss beyond 65504 would be infinite."
    for power in (15, 16):
        weight = torch.ones((), dtype=torch.float16, requires_grad=True)
        half_loss = weight * 2
        half_loss.retain_grad()
        scaled = torch.amp.GradScaler("cpu", 2.0**power).scale(half_loss)
        assert (scaled.dtype, scaled.item()) == (torch.float32, 2.0 ** (power + 1))  # this loss is finite
        scaled.backward()
        assert half_loss.grad.item() == (2.0**15 if power == 15 else math.inf)


# What a reader does


def test_a_good_step_says_so(show):
    page = show(StepTimeline())
    assert verdict(page) == "All gradients are finite: the weights move, S stays at 65536, and the scheduler advances."
    assert chosen(page) == "zero_grad"
    assert blocks(page, "off") == ["second batch, not in this step"]
    assert tensors(page)["weights"] == ("float32", "")
    assert spoken(page) == ""


def test_each_block_shows_its_line_and_its_tensors(show):
    page = show(StepTimeline())
    page.locator(".mp-st-block", has_text="backward").click()
    assert tensors(page)["gradients"] == ("float32", "× S, norm 32768")
    assert listing(page, ".mp-st-here") == ["scaler.scale(loss).backward()"]
    page.locator(".mp-st-block", has_text="unscale_").click()
    assert tensors(page)["gradients"] == ("float32", "norm 0.5")
    press(page, "autocast forward")
    assert tensors(page)["activations"] == ("float16 and float32", "kept for backward")
    assert "gradients" not in tensors(page)


def test_a_step_that_overflows_is_skipped(show):
    page = show(StepTimeline(block="update"))
    page.get_by_label("a gradient overflows").check()
    assert verdict(page) == "The step is skipped, S falls from 65536 to 32768, and the scheduler waits."
    assert spoken(page) == verdict(page)
    assert blocks(page, "skipped") == ["step, skipped", "scheduler, skipped"]
    assert tensors(page)["S"] == ("float32", "32768")
    page.get_by_label("Recipe").select_option("bf16-mixed")
    assert "AdamW turns that weight into NaN" in verdict(page)
    assert blocks(page, "warned") == ["step, broken"]


def test_breaking_the_order_turns_its_blocks_into_warnings(show):
    page = show(StepTimeline("32-true", clip=False))
    press(page, "clip before unscale_")
    assert page.get_by_label("Recipe").input_value() == "16-mixed"  # what it needs to be seen
    assert page.get_by_label("clip", exact=True).is_checked()
    assert verdict(page) == (
        "Now in 16-mixed with clip, which this mistake needs. "
        "clip sees 0.5 × 65536 = 32768 and cuts it to 1. Unscaling then leaves 1.53 × 10⁻⁵ instead of 0.5: "
        "3.05 × 10⁻⁵ of the gradient."
    )
    assert spoken(page) == verdict(page)
    assert blocks(page, "warned") == ["clip, broken", "unscale_, broken"]
    assert listing(page, ".mp-st-bad") == ["clip_grad_norm_(model.parameters(), 1)", "scaler.unscale_(optimizer)"]
    page.get_by_label("clip", exact=True).uncheck()  # without it there is nothing to break
    assert page.get_by_role("button", name="nothing").get_attribute("aria-pressed") == "true"
    press(page, "forget zero_grad")
    page.get_by_label("Recipe").select_option("32-true")
    assert verdict(page).startswith("The next gradient is added to this one")
    assert listing(page)[0] == "# optimizer.zero_grad()"


def test_a_mistake_changes_no_setting_without_a_word(show):
    page = show(StepTimeline("bf16-mixed", overflow=True))
    for name in ("clip before unscale_", "always advance", "advance it if S fell", "no scale", "forget update"):
        page.get_by_label("Recipe").select_option("bf16-mixed")
        press(page, name)
        assert verdict(page).startswith("Now in 16-mixed, which this mistake needs. ")
        assert page.get_by_label("a gradient overflows").is_checked()
        page.locator(".mp-st-block", has_text="backward").click()  # to read a block is no change of a setting
        assert verdict(page).startswith("Now in 16-mixed, ")
        press(page, name)
        assert not verdict(page).startswith("Now")
    page.get_by_label("a gradient overflows").uncheck()
    press(page, "always advance")
    assert not page.get_by_label("a gradient overflows").is_checked()
    assert verdict(page) == "No harm in this step. Let a gradient overflow, and look again."


def test_the_numbers_are_the_readers(show):
    page = show(StepTimeline(broken="clip_first"))
    type_into(page, "scale S", "2^10")
    type_into(page, "norm of the gradients", "3")
    type_into(page, "max_norm of clip", "1/4")
    assert verdict(page).startswith(
        "clip sees 3 × 1024 = 3072 and cuts it to 0.25. Unscaling then leaves 0.000244 instead of"
    )
    assert "clip_grad_norm_(model.parameters(), 0.25)" in listing(page)
    type_into(page, "norm of the gradients", "1e-6")
    assert verdict(page).endswith("no harm this time.")


def test_bad_input_gets_one_sentence_and_loses_nothing(show):
    page = show(StepTimeline(broken="clip_first"))
    before = page.locator(".mp-st-listing").inner_text()
    for label, text in [("scale S", "abc"), ("scale S", "0"), ("max_norm of clip", "-1"), ("scale S", "2^99")]:
        type_into(page, label, text)
        assert page.locator("[aria-invalid=true]").input_value() == text
        assert page.locator("[aria-invalid=true]").count() == 1
        assert re.search("is not a number|must be a number", verdict(page))
        assert spoken(page) == verdict(page)
        assert page.locator(".mp-st-listing").inner_text() == before
    assert verdict(page).endswith("The step below still uses 65536.")
    type_into(page, "scale S", "8")
    assert page.locator("[aria-invalid=true]").count() == 0
    assert verdict(page).startswith("clip sees 0.5 × 8 = 4")


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_arrow_keys_walk_along_the_blocks(show, viewport):
    page = show(StepTimeline(), viewport=viewport)
    page.locator("[aria-current=step]").focus()
    for key, name in [
        ("ArrowRight", "autocast forward"),
        ("ArrowDown", "loss"),
        ("ArrowUp", "autocast forward"),
        ("End", "scheduler"),
        ("ArrowRight", "scheduler"),
        ("ArrowLeft", "update"),
        ("Home", "zero_grad"),
    ]:
        page.keyboard.press(key)
        assert chosen(page) == name
        assert page.evaluate("() => document.activeElement.getAttribute('aria-current')") == "step"
    assert page.locator(".mp-st-block[tabindex='0']").count() == 1


def test_on_a_phone_the_chosen_block_opens_in_its_place(show):
    page = show(StepTimeline(block="loss"), viewport=PHONE)
    tops = page.evaluate(
        """() => [".mp-st-place:nth-child(3)", ".mp-st-detail", ".mp-st-place:nth-child(5)"]
             .map((part) => document.querySelector(part).getBoundingClientRect().top)"""
    )
    assert tops == sorted(tops)
    page = show(StepTimeline(block="loss"))
    assert page.evaluate(
        """() => [...document.querySelectorAll(".mp-st-place")].every((place) => place.getBoundingClientRect().bottom
             < document.querySelector(".mp-st-detail").getBoundingClientRect().top)"""
    )


def test_two_widgets_on_one_page_are_independent(show):
    page = show(StepTimeline(), StepTimeline("bf16-mixed"))
    first, second = page.locator(".mp-step-timeline").all()
    first.get_by_role("button", name="forget update").click()
    assert first.locator(".mp-st-warned").count() == 1
    assert second.locator(".mp-st-warned").count() == 0


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_targets_are_large_enough_and_nothing_overflows_or_is_too_small(show, viewport):
    page = show(StepTimeline(accumulate=True), viewport=viewport)
    for name in RECIPES:
        page.get_by_label("Recipe").select_option(name)
        for block in ("forward", "backward", "scheduler"):
            press(page, block)
            assert page.evaluate("() => document.documentElement.scrollWidth") == viewport["width"]
            small = page.evaluate(
                """() => [...document.querySelectorAll("button, input, select")].filter((node) => node.offsetParent)
                     .map((node) => [node.textContent, node.getBoundingClientRect()])
                     .filter(([, box]) => box.width < 24 || box.height < 24 || box.right > innerWidth)
                     .map(([text]) => text)"""
            )
            assert small == [], name
            fonts = page.evaluate(
                """() => [...document.querySelectorAll(".mp-panel *")].filter((node) => node.childElementCount === 0
                     && node.textContent.trim() && !node.closest(".mp-unseen"))
                     .map((node) => [node.textContent, parseFloat(getComputedStyle(node).fontSize)])
                     .filter(([, size]) => size < 12.8)"""
            )
            assert fonts == [], name


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_the_blocks_stay_where_they_are_while_things_break(show, viewport):
    page = show(StepTimeline("32-true", clip=False), viewport=viewport)
    top = "() => document.querySelector('.mp-st-blocks').offsetTop"
    before = page.evaluate(top)
    for name in [
        name for _, name in zip(BREAKS, ["clip before", "always", "advance it", "no scale", "forget u"], strict=False)
    ]:
        press(page, name)
        assert page.evaluate(top) == before, name
        page.get_by_label("a gradient overflows").set_checked(True)
        assert page.evaluate(top) == before, name
        page.get_by_label("a gradient overflows").set_checked(False)
        page.get_by_label("Recipe").select_option("32-true")
        page.get_by_label("clip", exact=True).set_checked(False)


@pytest.mark.parametrize(("theme", "viewport"), [("light", DESK), ("dark", DESK), ("light", PHONE)])
def test_axe_finds_no_barrier(show, theme, viewport):
    page = show(StepTimeline(overflow=True), theme=theme, color_scheme=theme, viewport=viewport)
    for name in ("backward", "clip before unscale_", "always advance"):
        press(page, name)
        assert barriers(page) == []


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    page = hosted(StepTimeline())
    page.get_by_label("a gradient overflows").check()
    press(page, "always advance")
    type_into(page, "scale S", "2^12")
    sent = page.evaluate("() => model.sent.at(-1)")
    assert (sent["broken"], sent["overflow"], sent["scale"]) == ("always", True, "2^12")
    StepTimeline(**{key: sent[key] for key in ("recipe", "overflow", "clip", "broken", "scale")})  # Python takes it
    assert "S falls from 4096 to 2048; if the next gradients overflow too, the schedule will be two" in verdict(page)
    page.evaluate("() => void Object.assign(model.state, { broken: '', block: 'update' })")
    page.evaluate("() => model.fire('change:block')")
    assert chosen(page) == "update"
