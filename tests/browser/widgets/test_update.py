"""Update in a real browser: its steps against Python's, and what a reader does and is told."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.browser.widget_page import DESK, PHONE, barriers, calls_of
from utils.checks.number_text import read_number
from utils.formats import FLOAT32, FORMATS
from utils.rounding import quantize, toward_zero
from utils.widgets.shared.numbers.exact_rounding import quantize_exact
from utils.widgets.update import HOLDABLE, USUAL, Update, gap_beside, kahan_updated, updated

KEYS = {"ties to even": "ties_to_even", "toward zero": "toward_zero", "Kahan": "kahan", "float32 master": "master"}


def press(page, name):
    page.get_by_role("button", name=name).first.click()


def type_into(page, what, text):
    field = page.get_by_label({"w": "w, the weight", "dw": "dw, added to it: −lr·g"}[what], exact=True)
    field.fill(text)
    field.press("Enter")


def said(page):
    return page.locator(".mp-up-said").inner_text()


def message(page):
    return page.locator(".mp-up-message").inner_text()


def spoken(page):
    return page.locator("[role=status]").inner_text()


def facts(page):
    rows = page.locator(".mp-up-facts > div").all()
    return {row.locator("dt").inner_text(): row.locator("dd").inner_text() for row in rows}


def table(page):
    """{way: (stored, of the way)}."""
    rows = page.locator(".mp-up-table tbody tr").all()
    texts = [row.locator("th, td").all_inner_texts() for row in rows]
    return {name.split("\n")[0].split("  ")[0]: (stored, way.strip()) for name, stored, way in texts}


def row(page, name):
    cells = page.locator(".mp-up-table tbody tr", has_text=name).locator("td").all_inner_texts()
    return " ".join(cells[0].split()), cells[1].strip().replace("\xa0", " ")


# Twins: the page's arithmetic against Python's

HARNESS = """
const text = (number) => number.kind === "finite" ? `${number.sign ? "-" : ""}${number.num}/${number.den}` : number.kind;
const read = (source) => words.parseNumber(source);
window.calls = {
  one: (name, weight, update) => {
    const fmt = words.FORMATS[name];
    const one = words.oneUpdate(words.readWeight(weight, fmt).code, read(update), fmt);
    const { ties_to_even, toward_zero, stochastic, kahan, master } = one.results;
    return { w: text(one.w), exact: text(one.exact), share: text(one.share), even: text(ties_to_even.stored), zero: text(toward_zero.stored),
      low: text(stochastic.stored), high: text(stochastic.other), chance: text(stochastic.chance), kahan: text(kahan.stored), c: text(kahan.c),
      master: text(master.master), copy: text(master.stored) };
  },
  many: (name, w, update, count) => {
    const many = words.manyUpdates({ fmt: words.FORMATS[name], w, update: read(update), count });
    return Object.fromEntries(Object.entries(many).map(([key, value]) => [key, Array.isArray(value) ? value.map(String) : String(value)]));
  },
  odd: (x, update) => String(words.oddAdder(read(update))(x)),
  places: (name, weight, update, keeping) => {
    const fmt = words.FORMATS[name];
    const { code } = words.readWeight(weight, fmt);
    const places = words.linePlaces(words.oneUpdate(code, read(update), fmt), code, read(update), keeping, fmt);
    return { zone: places.zone, to: places.to, ticks: places.ticks.map(({ at }) => at), stored: places.stored.map(({ at }) => at) };
  },
  verdict: (name, weight, update, keeping) => {
    const fmt = words.FORMATS[name];
    const dw = read(update);
    return words.verdict(words.oneUpdate(words.readWeight(weight, fmt).code, dw, fmt), dw, keeping, fmt);
  },
};
"""  # noqa: E501


call = calls_of("update/widget", HARNESS)


def as_number(text):
    """A value of the page as a float; no sign of a zero."""
    return {"infinity": math.inf, "nan": math.nan}.get(text) if text in ("infinity", "nan") else float(Fraction(text))


def as_float(text):
    return float(text.replace("Infinity", "inf"))


def cases(fmt, count):
    """Weights of the format and updates near its gaps there: ties, fractions, either sign."""
    rng = np.random.default_rng(seed=fmt.bits + fmt.mantissa_bits)
    low, high = max(fmt.emin - 2, -40), min(fmt.emax, 40)
    for _ in range(count):
        weight = float(quantize(rng.choice([-1, 1]) * 2.0 ** rng.uniform(low, high), fmt, saturate=True))
        step = gap_beside(weight, fmt, below=False)
        halves = [Fraction(1, 2), Fraction(1, 4), Fraction(3, 2), Fraction(1, 2) + Fraction(1, 2**90), Fraction(1, 3)]
        any_size = Fraction(int(rng.integers(1, 10**6)), 10**6) * 2 ** int(rng.integers(0, 4))
        share = any_size if rng.random() < 0.6 else halves[rng.integers(len(halves))]
        yield weight, int(rng.choice([-1, 1])) * share * step


@pytest.mark.parametrize("name", HOLDABLE)
def test_one_update_is_what_python_makes_of_it(call, name):
    fmt = FORMATS[name]
    for weight, update in cases(fmt, 60):
        got = call("one", name, str(Fraction(weight)), str(update))
        total = Fraction(weight) + update
        assert (Fraction(got["w"]), Fraction(got["exact"])) == (Fraction(weight), total)
        assert Fraction(got["share"]) == abs(update) / (gap_beside(weight, fmt, below=update < 0) / 2)
        wanted = {
            "even": quantize_exact(total, fmt) if total else 0.0,
            "zero": quantize_exact(total, fmt, toward_zero) if total else 0.0,
            "kahan": kahan_updated(weight, update, fmt)[0],
            "master": quantize_exact(total, FLOAT32) if total else 0.0,
            "copy": updated(weight, update, fmt, "master"),
        }
        for key, value in wanted.items():
            got_value = as_number(got[key])
            if key != "zero" and not math.isfinite(value):
                assert not math.isfinite(got_value)
            else:
                assert abs(got_value) == abs(value), (key, weight, update)
        if math.isfinite(wanted["kahan"]):  # and of what is left over
            assert as_number(got["c"]) == kahan_updated(weight, update, fmt)[1]
        if got["high"] not in ("infinity", "nan"):  # the mean of what stochastic rounding gives is the exact sum
            chance = Fraction(got["chance"])
            if abs(total) <= Fraction(fmt.max):
                assert (1 - chance) * Fraction(got["low"]) + chance * Fraction(got["high"]) == total


@pytest.mark.parametrize("name", HOLDABLE)
def test_many_updates_end_where_pythons_do(call, name):
    fmt = FORMATS[name]
    for weight, update in cases(fmt, 12):
        got = call("many", name, weight, str(update), 30)
        for key in ("ties_to_even", "toward_zero"):
            np.testing.assert_equal(abs(as_float(got[key])), abs(updated(weight, update, fmt, key, 30)))
        w, c = kahan_updated(weight, update, fmt, 30)
        if math.isfinite(w):
            assert [as_float(text) for text in got["kahan"]] == [w, c]
        else:
            assert not math.isfinite(as_float(got["kahan"][0]))
        assert abs(as_float(got["master"][0])) == abs(updated(weight, update, fmt, "master", 30)) or not math.isfinite(
            as_float(got["master"][0])
        )


@pytest.mark.parametrize(
    ("x", "update"),
    [
        (1.0, "1/3"),
        (1.0, "1e-3"),
        (1.0, "2^-8 + 2^-200"),
        (1.0, "2^-8 - 2^-200"),
        (2.0**-140, "1e-3"),
        (0.0, "1e-400"),
        (0.0, "-1e-400"),
        (0.25, "-0.25 - 2^-100"),
        (0.25, "-0.25"),
        (-1.5, "1.5 + 1/3*2^-60"),
        (0.3, "-0.1"),
        (-0.05, "0.1"),
        (2.0**100, "1/7"),
        (5.0, "2^1000/3"),
    ],
)
def test_a_sum_rounded_to_odd_tells_the_side_of_everything(call, x, update):
    total = Fraction(x) + read_number(update)
    got = Fraction(as_float(call("odd", x, update)))
    last = Fraction(np.spacing(abs(float(got)))) if got else Fraction(5e-324)
    assert abs(got - total) < last
    if got != total:
        assert (got / last).numerator % 2 == 1


def test_stochastic_rounding_is_right_on_average_and_spreads_as_it_must(call):
    """Facts 3.7: mean 2.0002, standard deviation 0.086 for 1 + 1000 x 1e-3 in bfloat16."""
    runs = [as_float(text) for text in call("many", "bfloat16", 1.0, "1e-3", 1000)["stochastic"]]
    assert len(runs) == 100
    assert abs(np.mean(runs) - 2) < 5 * 0.086 / math.sqrt(len(runs))
    assert abs(np.std(runs, ddof=1) / 0.086 - 1) < 5 / math.sqrt(2 * (len(runs) - 1))
    assert runs == [as_float(text) for text in call("many", "bfloat16", 1.0, "1e-3", 1000)["stochastic"]]  # one seed


def test_the_line_shows_the_dead_zone_of_each_rule(call):
    def zone(update, keeping):
        return call("places", "bfloat16", "1", update, keeping)["zone"]

    scale = 50 / 1.7  # percent for one gap above 1
    assert zone("1e-3", "ties_to_even") == pytest.approx([50 - scale / 4, 50 + scale / 2])
    assert zone("1e-3", "toward_zero") == pytest.approx([50, 50 + scale])
    assert zone("1e-3", "stochastic") is None
    places = call("places", "bfloat16", "1", "1e-3", "ties_to_even")
    assert places["to"] == pytest.approx(50 + scale * 0.128)
    assert (places["ticks"][0], places["stored"]) == (50, [50])
    assert call("places", "bfloat16", "1", "1e-3", "stochastic")["stored"] == pytest.approx([50, 50 + scale])
    assert len(call("places", "bfloat16", "1", "1", "ties_to_even")["ticks"]) == 1  # 128 of them have no room


@pytest.mark.parametrize(
    ("name", "weight", "update", "keeping", "kind", "text"),
    [
        ("bfloat16", "1", "0", "ties_to_even", "kept", "The update is 0: there is nothing to add."),
        ("bfloat16", "1", "2^-8", "ties_to_even", "lost", "Lost: dw is exactly half a gap, a tie, and the even"),
        ("bfloat16", "1", "2^-7", "ties_to_even", "kept", "Kept in full: w + dw is a value of bfloat16."),
        ("bfloat16", "1", "0.005", "ties_to_even", "kept", "Moved, rounded: w moves by 0.0078125, which is ≈\xa01.56"),
        ("bfloat16", "1", "0.005", "toward_zero", "lost", "Lost: dw is 0.64 of a gap, and away from zero only"),
        ("bfloat16", "1", "-1e-4", "toward_zero", "kept", "Moved, rounded: w moves by 0.00390625, which is ≈\xa039.1"),
        ("bfloat16", "1", "1e-3", "kahan", "held", "Kept in c: w stays, and c ≈\xa00.0009995 is added to"),
        ("float16", "1", "1e-9", "kahan", "lost", "Lost: c should keep dw, but dw is 0 in float16."),
        ("bfloat16", "1", "1e-3", "master", "held", "Kept in the master, now ≈\xa01.001; its bfloat16 copy stays."),
        ("bfloat16", "1", "1e-9", "master", "lost", "Lost even in float32"),
        (
            "float16",
            "65504",
            "100",
            "ties_to_even",
            "lost",
            "Out of range: w + dw = 65604 is beyond 65504, the largest",
        ),
        ("float16", "1", "1e6", "kahan", "lost", "Out of range: w + dw = 1000001 is beyond 65504"),
    ],
)
def test_the_verdict_says_what_became_of_it(call, name, weight, update, keeping, kind, text):
    got = call("verdict", name, weight, update, keeping)
    assert got["kind"] == kind
    assert got["text"].startswith(text), got["text"]


# What a reader does


def test_the_first_view_says_that_the_update_is_lost(show):
    page = show(Update())
    assert said(page) == "Lost: dw is 0.256 of half a gap, so the nearest value to w + dw is w."
    assert facts(page) == {
        "w as stored": "1",
        "w + dw exactly": "1.001",
        "half the gap to the next": "0.00390625 above; |dw| is 0.256 of it",
        "stored": "1",
    }
    assert row(page, "exactly")[0] == "2"
    assert row(page, "ties to even") == ("1", "0 %")
    assert row(page, "Kahan")[0].startswith("2 c ≈ 0.00316")
    assert row(page, "float32 master") == ("2 master ≈ 2.0000467", "100 %")
    assert spoken(page) == ""


def test_each_way_of_keeping_has_its_own_answer(show):
    page = show(Update())
    for way, start in [
        ("toward zero", "Lost: dw is 0.128 of a gap"),
        (
            "stochastic",
            "Kept on average: w becomes 1 with a chance of 87.2\xa0%, 1.0078125 with 12.8\xa0%.",
        ),
        ("Kahan", "Kept in c: w stays"),
        ("float32 master", "Kept in the master, now ≈\xa01.001"),
        ("ties to even", "Lost: dw is 0.256"),
    ]:
        press(page, way)
        assert said(page).startswith(start)
        assert spoken(page) == said(page)
        assert page.get_by_role("button", name=way).get_attribute("aria-pressed") == "true"
        assert page.locator(".mp-up-chosen").inner_text().startswith(way)


def test_the_same_update_beside_another_weight(show):
    page = show(Update(update="1e-4"))
    texts = [" ".join(text.split()) for text in page.locator(".mp-up-other").all_inner_texts()]
    assert texts == [
        "w = 1 0.0256 of half a gap: lost",
        "w = 0.05 0.819 of half a gap: lost",
        "w = 0.001 26.2 half gaps: moves",
    ]
    page.locator(".mp-up-other").nth(2).click()
    assert said(page).startswith("Moved, rounded")
    assert page.locator(".mp-up-other").nth(2).get_attribute("aria-pressed") == "true"
    assert facts(page)["w as stored"] == "0.00099945068359375 for 0.001"
    page.locator(".mp-up-other").nth(1).click()
    assert said(page).startswith("Lost: dw is 0.819 of half a gap")


@pytest.mark.parametrize(
    ("way", "verdict", "fates"),
    [
        ("ties to even", "Lost", ["lost", "lost", "moves"]),
        ("toward zero", "Lost", ["0.0128 of a gap: lost", "0.41 of a gap: lost", "13.1 of a gap: moves"]),
        ("stochastic", "Kept on average", ["moves in 1.28 %", "moves in 41 %", "half gaps: moves"]),
        ("Kahan", "Kept in c", ["kept in c", "kept in c", "moves"]),
        ("float32 master", "Kept in the master", ["kept in the master", "kept in the master", "moves"]),
    ],
)
def test_other_weights_are_kept_the_same_way(show, way, verdict, fates):
    page = show(Update("0.05", "1e-4"))
    press(page, way)
    assert said(page).startswith(verdict)
    texts = [text.replace("\xa0", " ") for text in page.locator(".mp-up-other").all_inner_texts()]
    assert all(text.endswith(fate) for text, fate in zip(texts, fates, strict=True)), texts


@pytest.mark.parametrize(
    ("widget", "labels"),
    [
        (Update("0.05", "-1e-4"), ["0.04980", "w = 0.05005", "0.05029"]),
        (Update(), ["0.99609375", "w = 1", "1.0078125"]),
        (Update("-0.3", "1e-4", "float16"), ["−0.30029", "w = −0.30005", "−0.29980"]),
    ],
)
def test_a_weight_and_its_neighbours_have_equally_many_decimals(show, widget, labels):
    assert show(widget).locator(".mp-up-label").all_inner_texts() == labels


def test_a_copy_of_the_master_is_all_of_the_way_though_it_is_rounded(show):
    page = show(Update("0.05", "-1e-4"))
    assert row(page, "float32 master")[1] == "100 %"
    assert page.locator("caption").inner_text() == "From 0.050049, 1000 updates of −1e-4"


def test_the_examples_are_what_they_say_whatever_was_chosen_before(show):
    page = show(Update("3", "1", "float16", keeping="master", count=1))
    press(page, "exactly half a gap, 10 times")
    assert page.get_by_label("Format").input_value() == "bfloat16"
    assert page.get_by_role("button", name="ties to even").get_attribute("aria-pressed") == "true"
    assert said(page).startswith("Lost: dw is exactly half a gap, a tie")
    press(show(Update(format="float16", formats=["float16"], keeping="kahan")), "1 + 0.001")


def test_the_examples_set_everything(show):
    page = show(Update("3", "1", "float16", count=1))
    press(page, "w − lr·g")
    assert "dw = −lr·g = −0.0003" in message(page)
    assert facts(page)["w + dw exactly"] == "0.4997"
    assert page.get_by_label("dw, added to it: −lr·g", exact=True).input_value() == "-1e-3*0.3"
    press(page, "exactly half a gap, 10 times")
    assert said(page).startswith("Lost: dw is exactly half a gap, a tie")
    press(page, "1 + 0.001")
    assert row(page, "ties to even") == ("1", "0 %")


def test_sliders_meet_powers_of_two(show):
    page = show(Update("0.05", "-1e-4"))
    weight, update = page.get_by_role("slider").all()
    weight.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.get_by_label("w, the weight", exact=True).input_value() == "0.0625"
    page.keyboard.press("ArrowLeft")
    assert page.get_by_label("w, the weight", exact=True).input_value() == "0.0546875"
    assert said(page).startswith("Lost")
    update.focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_label("dw, added to it: −lr·g", exact=True).input_value() == "-2^-13"


def test_sliders_move_by_quarters_of_a_binade_and_by_tenths_of_a_decade(show):
    page = show(Update())
    weight, update = page.get_by_role("slider").all()
    weight.focus()
    page.keyboard.press("ArrowLeft")
    assert page.get_by_label("w, the weight", exact=True).input_value() == "0.875"
    page.keyboard.press("Home")
    assert page.get_by_label("w, the weight", exact=True).input_value() == "2^-14"
    update.focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_label("dw, added to it: −lr·g", exact=True).input_value() == "0.0013"
    assert update.get_attribute("aria-valuetext") == "0.0013"
    type_into(page, "dw", "-1e-3")
    update.focus()
    page.keyboard.press("End")
    assert page.get_by_label("dw, added to it: −lr·g", exact=True).input_value() == "-10"
    page.wait_for_function("() => document.querySelector('.mp-up-table caption').textContent.includes('−10')")


def test_the_count_changes_the_table(show):
    page = show(Update(update="2^-9"))
    for text, exact, kahan in [("once", "1.001953125", "1"), ("100 times", "1.1953125", "1.1953125")]:
        press(page, text)
        assert row(page, "exactly")[0] == exact
        assert row(page, "Kahan")[0].split()[0] == kahan
    assert page.locator("caption").inner_text() == "From 1, 100 updates of 2^-9"


def test_bad_input_gets_one_sentence_and_loses_nothing(show):
    page = show(Update("0.5", "0.25"))
    before = page.locator(".mp-up-table").inner_text()
    for what, text, says in [
        ("w", "abc", "“abc” is not a number"),
        ("w", "1e39", "The weight 1e39 is beyond"),
        ("dw", "1,5", "decimal point"),
        ("dw", "inf", "The update inf is no finite number."),
        ("dw", "1/0", "division by zero"),
    ]:
        type_into(page, what, text)
        assert says in message(page)
        assert spoken(page) == message(page)
        assert page.locator("[aria-invalid=true]").input_value() == text
        assert page.locator("[aria-invalid=true]").count() == 1
        assert page.locator(".mp-up-table").inner_text() == before
        assert page.locator(".mp-up-earlier").count() == 1
    assert message(page).endswith("Below: still dw = 0.25.")
    type_into(page, "dw", "2^-3")
    assert page.locator("[aria-invalid=true], .mp-up-earlier, .mp-wrong").count() == 0
    assert facts(page)["w + dw exactly"] == "0.625"


def test_a_format_that_cannot_hold_the_weight_is_refused(show):
    page = show(Update("1000", "1"))
    page.get_by_label("Format").select_option("float8_e4m3fn")
    assert message(page).startswith(
        "The weight 1000 is beyond 448, the largest value of E4M3. The format stays bfloat16."
    )
    assert page.get_by_label("Format").input_value() == "bfloat16"
    type_into(page, "w", "junk")
    page.get_by_label("Format").select_option("float16")
    assert page.get_by_label("Format").input_value() == "float16"
    assert page.locator("[aria-invalid=true]").input_value() == "junk"
    assert message(page).endswith("Below: still w = 1000.")


def test_everything_works_with_the_keyboard_alone(show):
    page = show(Update())
    page.get_by_label("w, the weight", exact=True).focus()
    for _ in range(5):  # slider, dw, slider, format, the first example
        page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert "lr = 1e-3" in message(page)
    for _ in range(3):  # third example, ties to even, toward zero
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.get_by_role("button", name="toward zero").get_attribute("aria-pressed") == "true"


def test_two_widgets_on_one_page_are_independent(show):
    page = show(Update(), Update(format="float16"))
    first, second = page.locator(".mp-update").all()
    first.get_by_role("button", name="Kahan").click()
    assert first.locator(".mp-up-chosen").inner_text().startswith("Kahan")
    assert second.locator(".mp-up-chosen").inner_text().startswith("ties to even")


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_targets_are_large_enough_and_nothing_overflows_or_is_too_small(show, viewport):
    page = show(Update(), viewport=viewport)
    for name in USUAL:
        page.get_by_label("Format").select_option(name)
        for weight, update in [("1/3", "-1e-7/3"), ("-100", "1/3"), ("0.001", "3")]:
            type_into(page, "w", weight)
            type_into(page, "dw", update)
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
            cut = page.evaluate(
                """() => [...document.querySelectorAll(".mp-up-line")].flatMap((line) => [...line.children]
                     .filter((node) => node.textContent).map((node) => [node.textContent, node.getBoundingClientRect()])
                     .filter(([, box]) => box.left < line.getBoundingClientRect().left - 0.5
                        || box.right > line.getBoundingClientRect().right + 0.5).map(([text]) => text))"""
            )
            assert cut == [], (name, weight, update)


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_little_moves_while_the_way_of_keeping_changes(show, viewport):
    page = show(Update(), viewport=viewport)
    top = "() => document.querySelector('.mp-up-others').offsetTop"
    before = page.evaluate(top)
    for name in ["toward zero", "stochastic", "Kahan", "float32 master"]:
        press(page, name)
        assert abs(page.evaluate(top) - before) <= (48 if viewport is PHONE else 0), name


@pytest.mark.parametrize(("theme", "viewport"), [("light", DESK), ("dark", DESK), ("light", PHONE)])
def test_axe_finds_no_barrier(show, theme, viewport):
    page = show(Update(), theme=theme, color_scheme=theme, viewport=viewport)
    for way in ("ties to even", "stochastic", "Kahan", "junk"):
        press(page, way) if way != "junk" else type_into(page, "dw", way)
        assert barriers(page) == []


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    page = hosted(Update())
    press(page, "Kahan")
    press(page, "100 times")
    type_into(page, "dw", "2^-3")
    sent = page.evaluate("() => model.sent.at(-1)")
    assert (sent["keeping"], sent["count"], sent["update"]) == ("kahan", 100, "2^-3")
    Update(**{key: sent[key] for key in ("weight", "update", "format", "keeping", "count")})  # Python takes it
    page.evaluate("() => void Object.assign(model.state, { format: 'float16', weight: '2048', update: '1' })")
    page.evaluate("() => model.fire('change:weight')")
    assert facts(page)["w + dw exactly"] == "2049"


def test_a_dragged_slider_is_sent_when_it_is_let_go(hosted):
    page = hosted(Update())
    slider = page.get_by_role("slider").nth(1)
    steps = "Array.from({ length: 16 }, () => node.stepUp())"
    slider.evaluate(f"(node) => {{ {steps}; node.dispatchEvent(new Event('input')); }}")
    assert page.evaluate("() => model.sent.length") == 0
    update = page.get_by_label("dw, added to it: −lr·g", exact=True).input_value()
    assert float(facts(page)["w + dw exactly"]) == 1 + float(update) > 1.01
    slider.evaluate("(node) => node.dispatchEvent(new Event('change'))")
    assert page.evaluate("() => model.sent.map(({ update }) => update)") == [update]
