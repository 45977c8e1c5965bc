"""ArmPicker in a real browser: its arithmetic and its words against Python's, and what a reader does."""

import itertools
import math
import re
import statistics

import numpy as np
import pytest

from tests.browser.widget_page import DESK, PHONE, barriers, calls_of, heights
from tests.made_runs import ACCURACY, GPU, all_arms, five_seeds, run
from utils import measure
from utils.training.recipes import COMPARED
from utils.widgets.arm_picker import ArmPicker
from utils.widgets.arm_picker import words as arm_words
from utils.widgets.arm_picker.facts import QUANTITIES, arms_of

FIVE = arms_of(five_seeds())
EVERY = arms_of(all_arms())
CHOSEN = ["16-mixed", "bf16-mixed", "16-true"]


HARNESS = """
window.calls = {
  ...words,
  // all that is said of each quantity
  sentences: ({ arms, quantities, groups: [group] }, baseline, some) => quantities.map((quantity) => {
    const verdicts = arms.map((arm) => words.verdictOf(group, arm, baseline, quantity));
    return {
      verdicts: verdicts.map(({ kind, text }) => [kind, text]),
      gaps: verdicts.map(({ gaps }) => gaps),
      values: arms.map((arm) => [null, ...group.seeds].map((seed) => words.valueText(group, arm, quantity, seed))),
      summaries: some.map((others) => words.summaryText(group, others, baseline, quantity)),
      orders: some.map((others) => group.seeds.map((seed) => words.oneSeedText(group, others, quantity, seed))),
    };
  }),
};
"""


call = calls_of("arm_picker/widget", HARNESS)


def picker(data=FIVE, **more):
    return ArmPicker(data, **more)


def text(page, name):
    return page.locator(f".mp-ap-{name}").first.inner_text()


def verdicts(page):
    """The sentence on each arm, without the full stop at its end."""
    rows = page.locator(".mp-ap-gaps > li").all()
    return {row.get_attribute("data-arm"): row.locator(".mp-ap-verdict > span").inner_text() for row in rows}


def values(page):
    rows = page.locator(".mp-ap-row:has(label)").all()
    return {
        row.locator("label").inner_text().split(" ")[0].strip(): row.locator(".mp-ap-value").inner_text()
        for row in rows
    }


def press(page, name):
    page.get_by_role("group", name="Conclude from").get_by_role("button", name=name, exact=True).click()


def choose(page, label, option):
    combobox(page, label).select_option(option)


def combobox(page, label):
    return page.get_by_role("combobox", name=label)


def box(page, arm):
    return page.get_by_role("checkbox", name=arm, exact=True)


# The arithmetic


def test_student_t_is_the_quantile_of_python(call):
    for degrees in (*range(1, 16), 20, 30, 60, 120, 250):
        near = 1e-5 if degrees <= 10 else 1e-4
        assert call("studentT", degrees) == pytest.approx(measure.student_t(degrees), rel=near)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 10, 11, 12, 40])
def test_a_mean_has_the_interval_of_python(call, count):
    rng = np.random.default_rng(seed=count)
    for size in (1e-3, 1.0, 1e4):
        numbers = (size * rng.normal(3, 1, count)).tolist()
        mean, half = measure.mean_interval(numbers)
        got_mean, got_half = call("meanInterval", numbers)
        assert got_mean == pytest.approx(mean, rel=1e-12)
        assert got_half == (None if half is None else pytest.approx(half, rel=1e-4))


@pytest.mark.parametrize(("spread", "step"), [(0.475, 0.25), (0.02, 0.01), (0.1, 0.25), (3.0, 0.25), (1.0, 0.5)])
def test_the_seeds_needed_are_the_fewest_that_make_the_interval_narrow(call, spread, step):
    needed = call("seedsNeeded", spread, step)
    assert measure.student_t(needed - 1) * spread / math.sqrt(needed) <= step * 1.0005
    assert needed == 2 or measure.student_t(needed - 2) * spread / math.sqrt(needed - 1) > step * 0.9995


def test_where_no_count_of_seeds_would_do_none_is_given(call):
    assert call("seedsNeeded", 1000.0, 0.25) is None


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (80.1, 82.3, ["80.5", "81.0", "81.5", "82.0"]),
        (-1.05, 1.2, ["−1.0", "−0.5", "0.0", "0.5", "1.0"]),
        (0, 4, ["0", "1", "2", "3", "4"]),
        (0.0395, 0.0512, ["0.040", "0.045", "0.050"]),
        (-0.0004, 0.0003, ["−0.0004", "−0.0002", "0.0000", "0.0002"]),
    ],
)
def test_an_axis_has_round_ticks(call, low, high, ticks):
    got = call("ticksOf", low, high)
    assert [tick["text"] for tick in got] == ticks
    assert [tick["at"] for tick in got] == pytest.approx([float(tick.replace("−", "-")) for tick in ticks])


@pytest.mark.parametrize("x", [0.25, -2.5, 0.15, 0.05 + 0.1, 1e-9, 12345.678, 0.0, 81.65, 99.95])
def test_numbers_are_rounded_as_in_python(call, x):
    for decimals in range(4):
        assert call("fixedText", x, decimals) == arm_words.fixed(x, decimals)


@pytest.mark.parametrize("data", [FIVE, EVERY], ids=["five seeds", "every arm"])
@pytest.mark.parametrize("baseline", ["32-true", "16-true"])
def test_every_sentence_is_that_of_python(call, data, baseline):
    (group,) = data["groups"]
    some = [[], ["16-true"], CHOSEN, [arm for arm in COMPARED if arm != baseline]]
    for row, got in zip(data["quantities"], call("sentences", data, baseline, some), strict=True):
        wanted = [arm_words.verdict_of(group, arm, baseline, row) for arm in COMPARED]
        assert got["verdicts"] == [[found.kind, found.text] for found in wanted]
        assert [dict(map(tuple, gaps)) for gaps in got["gaps"]] == [found.differences for found in wanted]
        assert got["values"] == [
            [arm_words.value_text(group, arm, row, seed) for seed in (None, *group["seeds"])] for arm in COMPARED
        ]
        assert got["summaries"] == [arm_words.summary_of(group, others, baseline, row) for others in some]
        assert got["orders"] == [
            [arm_words.one_seed_text(group, others, row, seed) for seed in group["seeds"]] for others in some
        ]


# What a reader does


def test_the_first_view_compares_with_32_true(show):
    page, widget = show(picker()), picker()
    assert text(page, "summary") == widget.summary
    assert verdicts(page) == {arm: found.text for arm, found in widget.verdicts.items()}
    shown = values(page)
    assert list(shown) == list(COMPARED)
    assert shown["32-true"].replace("\u00a0", " ") == "81.0 ± 0.4 %"
    assert (shown["16-true"], shown["64-true"]) == ("NaN", "not recorded")
    assert page.locator("[role=status]").inner_text() == ""


def test_each_seed_is_a_dot_at_its_place(show):
    page = show(picker(chosen=["bf16-mixed"]))
    numbers = {arm: [100 * x for x in ACCURACY[arm]] for arm in ("32-true", "bf16-mixed")}
    rows = page.locator(".mp-ap-row:has(label)").all()
    places = []
    for arm in numbers:
        track = rows[COMPARED.index(arm)].locator(".mp-ap-track")
        assert track.locator(".mp-ap-mean, .mp-ap-interval").count() == 2
        styles = [dot.get_attribute("style") for dot in track.locator(".mp-ap-dot").all()]
        places += [float(re.search(r"left: ([-.\d]+)%", style)[1]) for style in styles]
    flat = [*numbers["32-true"], *numbers["bf16-mixed"]]
    slope, start = np.polyfit(flat, places, 1)
    assert np.allclose(np.polyval([slope, start], flat), places, atol=0.02)
    assert min(places) > 0
    assert max(places) < 100
    gaps = page.locator(".mp-ap-gaps .mp-ap-dot")
    assert gaps.count() == 5
    assert page.locator(".mp-ap-gaps .mp-ap-zero").count() == 1


def test_an_arm_is_ticked_and_unticked(show):
    page = show(picker(chosen=[]))
    assert text(page, "summary") == "Tick a recipe to compare it with 32-true."
    assert page.locator(".mp-ap-gaps").is_hidden()
    box(page, "16-mixed").check()
    assert list(verdicts(page)) == ["16-mixed"]
    box(page, "bf16-mixed").check()
    widget = picker(chosen=["16-mixed", "bf16-mixed"])
    assert text(page, "summary") == page.locator("[role=status]").inner_text() == widget.summary
    box(page, "16-mixed").uncheck()
    assert list(verdicts(page)) == ["bf16-mixed"]


def test_what_is_not_recorded_cannot_be_picked_and_says_so(show):
    page = show(picker())
    assert box(page, "64-true").is_disabled()
    assert box(page, "32-true (baseline)").is_disabled()
    option = combobox(page, "Quantity").locator("option[value=peak_reserved]")
    assert option.inner_text() == "memory: peak reserved (not recorded)"
    assert option.get_attribute("disabled") is not None
    assert combobox(page, "Baseline").locator("option[value='64-true']").inner_text() == "64-true (not recorded)"


def test_every_quantity_has_the_verdicts_of_python(show):
    page = show(picker())
    for quantity in QUANTITIES[:5] + QUANTITIES[8:12]:
        choose(page, "Quantity", quantity.name)
        widget = picker(quantity=quantity.name)
        assert text(page, "summary") == widget.summary
        assert verdicts(page) == {arm: found.text for arm, found in widget.verdicts.items()}


def test_another_baseline_keeps_the_old_one_in_view(show):
    page = show(picker())
    choose(page, "Baseline", "bf16-mixed")
    widget = picker(baseline="bf16-mixed", chosen=["32-true", "16-mixed", "16-true"])
    assert verdicts(page) == {arm: found.text for arm, found in widget.verdicts.items()}
    assert text(page, "summary") == widget.summary
    choose(page, "Baseline", "16-true")
    assert set(verdicts(page).values()) == {"nothing to compare with: 16-true has no number, its loss was NaN"}


def test_the_seeds_that_it_would_take_are_named(show, call):
    page = show(picker())
    gaps = list(picker().verdicts["bf16-mixed"].differences.values())
    needed = call("seedsNeeded", statistics.stdev(gaps), 0.25)
    row = page.locator("[data-arm=bf16-mixed]")
    assert row.locator(".mp-ap-what").inner_text() == f"With this spread, ± a quarter point takes about {needed} seeds."
    assert "takes" not in page.locator("[data-arm='16-true']").inner_text()
    assert "emulated" in page.locator("[data-arm='16-true']").inner_text()
    choose(page, "Quantity", "weights")  # the seeds do not matter
    assert "takes" not in page.locator(".mp-ap-gaps").inner_text()


def test_an_arm_far_away_is_set_aside_with_an_arrow_and_no_advice(show):
    far = [run("16-true-eps", seed, accuracy) for seed, accuracy in enumerate((0.5, 0.5, 0.7, 0.5, 0.5))]
    page = show(picker(arms_of([*five_seeds(), *far]), chosen=["bf16-mixed", "16-true-eps"]))
    row = page.locator("[data-arm='16-true-eps']")
    mean = sum(100 * (x - y) for x, y in zip((0.5, 0.5, 0.7, 0.5, 0.5), ACCURACY["32-true"], strict=True)) / 5
    assert row.locator(".mp-ap-far-low").inner_text() == f"← −{abs(mean):.1f}"
    assert (row.locator(".mp-ap-dot").count(), "takes" in row.inner_text()) == (0, False)
    assert page.locator(".mp-ap-rows .mp-ap-far-low").inner_text() == "← 54.0"
    assert page.locator(".mp-ap-rows .mp-ap-dot").count() == 10
    ticks = [float(tick.rstrip(" %\u00a0")) for tick in page.locator(".mp-ap-rows .mp-ap-tick").all_inner_texts()]
    assert min(ticks) > 79  # the axis is that of the others
    press(page, "seed 2")
    assert page.locator(".mp-ap-rows .mp-ap-far-low").inner_text() == "← 70.0"


def test_one_seed_alone_gives_another_order_than_the_next(show):
    page = show(picker())
    said = set()
    for seed in range(5):
        press(page, f"seed {seed}")
        widget = picker(seed=seed)
        assert text(page, "summary") == page.locator("[role=status]").inner_text() == widget.summary
        said.add(widget.summary.partition(". ")[0].partition(": ")[2])
        assert page.locator(".mp-ap-bar").count() == 3  # one for each arm that has a number, and no dot
        assert page.locator(".mp-ap-rows .mp-ap-dot").count() == 0
        assert page.locator(".mp-ap-gaps").is_hidden()
        assert page.locator("th.mp-ap-now").inner_text() == f"seed {seed}"
        best = page.locator("tr:has(td.mp-ap-now.mp-ap-first) th").inner_text()
        assert widget.summary.startswith(f"Seed {seed} alone says: {best}, then")
    assert len(said) == 2
    ranks = [row.inner_text().split() for row in page.locator(".mp-ap-ranks tbody tr").all()]
    group, row = FIVE["groups"][0], arm_words.quantity_of(FIVE, "accuracy")
    wanted = arm_words.ranked(group, ["32-true", *CHOSEN], row)
    assert ranks == [[arm, *map(str, numbers)] for arm, numbers in wanted.items()]
    press(page, "all 5 seeds")
    assert page.locator(".mp-ap-ranks").is_hidden()
    assert page.locator(".mp-ap-rows .mp-ap-dot").count() == 15


def test_the_axis_stays_from_seed_to_seed(show):
    page = show(picker())
    axis = text(page, "axis")
    for seed in range(5):
        press(page, f"seed {seed}")
        assert text(page, "axis") == axis


def test_the_loss_has_its_curves_to_where_they_end(show):
    page = show(picker())
    assert page.locator(".mp-ap-curves").is_hidden()
    choose(page, "Quantity", "loss")
    assert page.locator(".mp-ap-curves").is_visible()
    lines = page.locator(".mp-ap-lines path:not(.mp-ap-stop)")
    points = [path.get_attribute("d").count("L") + 1 for path in lines.all()]
    assert points == [FIVE["points"]] * 3 + [1]  # 16-true was NaN in the first part
    first, last = (float(pair.split()[1]) for pair in re.findall(r"[ML]([^ML]+)", lines.first.get_attribute("d"))[::15])
    assert first < last  # down the page
    assert page.locator(".mp-ap-stop").count() == 1
    assert page.get_by_text("the loss became NaN").is_visible()
    press(page, "seed 2")
    assert text(page, "summary") == picker(quantity="loss", seed=2).summary
    choose(page, "Quantity", "accuracy")
    assert page.locator(".mp-ap-curves").is_hidden()


def test_records_of_two_devices_are_never_mixed(show):
    runs = [*five_seeds(), *(run("32-true", seed, 0.9, device=GPU) for seed in (0, 1))]
    data = arms_of([*runs, run("bf16-mixed", 1, 0.91, device=GPU)])
    page = show(picker(data))
    press(page, "seed 4")
    choose(page, "Recorded on", "Some GPU (GPU), small")
    widget = picker(data, chosen=CHOSEN, baseline="32-true", device=0)
    widget.device = 1
    assert verdicts(page) == {arm: found.text for arm, found in widget.verdicts.items()}
    assert verdicts(page)["bf16-mixed"].replace("\u00a0", " ") == "one pair, so no interval: +1.0 points"
    assert verdicts(page)["16-mixed"] == "not recorded"
    assert page.get_by_role("group", name="Conclude from").get_by_role("button").all_inner_texts() == [
        "all 2 seeds",
        "seed 0",
        "seed 1",
    ]
    assert page.locator("p.mp-ap-what").last.inner_text().startswith("Recorded on Some GPU (GPU), small: random")
    assert box(page, "16-mixed").is_checked()
    box(page, "16-mixed").uncheck()


def test_one_device_needs_no_choice_and_is_named(show):
    page = show(picker())
    assert combobox(page, "Recorded on").count() == 0
    assert "Recorded on Some CPU (CPU, 2 threads), small" in page.locator(".mp-arm-picker").inner_text()


def test_the_arms_are_explained(show):
    page = show(picker())
    page.get_by_text("What the recipes are").click()
    assert page.get_by_text(FIVE["notes"]["16-true-moments"]).is_visible()


def test_everything_works_with_the_keyboard_alone(show):
    page = show(picker())
    combobox(page, "Baseline").focus()
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the first seed
    assert text(page, "summary") == picker(seed=0).summary
    assert page.evaluate("() => document.activeElement.textContent") == "seed 0"
    for _ in range(5):
        page.keyboard.press("Tab")
    page.keyboard.press("Space")  # the first arm that can be chosen
    assert not box(page, "16-mixed").is_checked()
    assert page.evaluate("() => document.activeElement.type") == "checkbox"


# The page


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_jumps_as_it_starts_and_the_plot_stays_from_seed_to_seed(show, viewport):
    page = show(picker(EVERY), viewport=viewport)
    kept, taken = heights(page)
    assert abs(kept - taken) < 6
    tops = set()
    for seed in ("all 5 seeds", "seed 0", "seed 3"):
        press(page, seed)
        tops.add(page.locator(".mp-ap-summary").bounding_box()["y"])
    assert len(tops) == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_targets_are_large_enough_and_nothing_overflows_or_is_too_small(show, viewport, theme):
    page = show(picker(EVERY, chosen=list(COMPARED)), viewport=viewport, theme=theme)
    for quantity, seed in itertools.product(("accuracy", "loss", "tflops", "weights"), ("all 5 seeds", "seed 1")):
        choose(page, "Quantity", quantity)
        press(page, seed)
        assert page.evaluate("() => document.documentElement.scrollWidth") == viewport["width"]
        small = page.evaluate(
            """() => [...document.querySelectorAll("button, select, label, input, summary")]
                 .map((node) => [node.textContent, node.getBoundingClientRect()])
                 .filter(([, box]) => box.width < 24 || box.height < 24 || box.right > innerWidth)
                 .map(([name]) => name)"""
        )
        assert small == []
        cut = (
            "(nodes) => nodes.filter((node) => node.scrollWidth > node.clientWidth + 1).map((node) => node.textContent)"
        )
        assert page.locator(".mp-ap :is(label, p:not(.mp-unseen), td, th, li, .mp-ap-row)").evaluate_all(cut) == []
    sizes = page.evaluate(
        "() => [...document.querySelectorAll('.mp-panel *')].map((node) => parseFloat(getComputedStyle(node).fontSize))"
    )
    assert min(sizes) >= 12.8  # 0.8rem


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_axe_finds_no_barrier(show, theme, viewport):
    page = show(picker(), theme=theme, color_scheme=theme, viewport=viewport)
    page.get_by_text("What the recipes are").click()
    for quantity, seed in (("accuracy", "all 5 seeds"), ("loss", "all 5 seeds"), ("loss", "seed 1")):
        choose(page, "Quantity", quantity)
        press(page, seed)
        assert barriers(page) == []


def test_in_forced_colours_what_is_pressed_can_be_told(show):
    page = show(picker(), forced_colors="active")
    width = "(node) => getComputedStyle(node).borderTopWidth"
    pressed, other = page.locator(".mp-ap-seeds button").all()[:2]
    assert (pressed.evaluate(width), other.evaluate(width)) == ("3px", "1px")
    tick = "(node) => getComputedStyle(node, '::before').content"
    assert box(page, "16-mixed").evaluate(tick) == "none"  # the browser draws its own


def test_two_widgets_on_one_page_are_independent(show):
    page = show(picker(), picker(chosen=["16-mixed"]))
    first, second = page.locator(".mp-arm-picker").all()
    first.get_by_role("button", name="seed 1").click()
    assert second.locator(".mp-ap-summary").inner_text() == picker(chosen=["16-mixed"]).summary


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    widget = picker()
    page = hosted(widget)
    choose(page, "Quantity", "seconds")
    choose(page, "Baseline", "16-mixed")
    box(page, "16-true").uncheck()
    press(page, "seed 3")
    sent = page.evaluate("() => model.sent.at(-1)")
    widget.set_state({key: sent[key] for key in ("quantity", "baseline", "chosen", "device", "seed")})
    assert (widget.quantity, widget.baseline, widget.seed) == ("seconds", "16-mixed", 3)
    assert widget.others == ["32-true", "bf16-mixed"]
    assert text(page, "summary") == widget.summary
    page.evaluate(
        "() => { Object.assign(model.state, { quantity: 'accuracy', seed: null }); model.fire('change:seed'); }"
    )
    assert text(page, "summary").startswith("Test accuracy, against 16-mixed, each comparison taken alone: ")
    assert combobox(page, "Quantity").input_value() == "accuracy"
