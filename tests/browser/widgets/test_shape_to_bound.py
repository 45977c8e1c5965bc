"""ShapeToBound in a real browser: its arithmetic and its words against Python's, and what a reader does."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from tests.browser.widget_page import (
    DESK,
    PHONE,
    after_each,
    barriers,
    calls_of,
    cut_off,
    cut_off_choices,
    heights,
    small_targets,
    smallest_text,
)
from utils.cost.cards import ROOFS
from utils.cost.roofline import Gemm, Roof
from utils.widgets.shape_to_bound import ShapeToBound
from utils.widgets.shape_to_bound import facts as words
from utils.widgets.shared.cost.roof_words import time_text
from utils.widgets.shared.words.amounts import few_digits

OWN = Roof("Some CPU, 2 threads", {"float32": 0.125, "bfloat16": 0.25}, 20.0, "made up for the tests", measured=True)
POINTS = [
    {"device": OWN.name, "dtype": "float32", "m": m, "n": 4096, "k": 4096}
    | {"ms": 1.25 * OWN.predicted_ms(Gemm(m, 4096, 4096), "float32")}
    for m in (1, 8, 64, 512)
]

# A least M is a BigInt, which no page hands over: as text.
HARNESS = """
window.calls = {
  ...words,
  said: (facts, cases) => cases.map(({ shape, dtype, roof, record }) => {
    const one = words.sbCase(shape, words.typeOf(facts, dtype), roof);
    return {
      intensity: one.intensity, ridge: one.ridge, moved: one.moved, moving: one.moving, computing: one.computing,
      ms: one.ms, reached: one.reached, bound: one.bound, limit: one.limit,
      least: one.least === null ? null : String(one.least),
      verdict: words.sbVerdict(one), prediction: words.sbPrediction(one), record: words.sbRecord(one, record),
      rows: words.sbRows(one), change: words.sbChange(facts, one),
    };
  }),
  times: (all) => all.map((ms) => words.timeText(ms)),
};
"""


call = calls_of("shape_to_bound/widget", HARNESS)


def measured(**settings):
    """A widget whose page has a measured roof and points on it."""
    return ShapeToBound(roofs=[OWN], recorded=POINTS, **{"device": OWN.name, "dtype": "float32", "m": 512} | settings)


def random_roofs(rng):
    """Roofs of the data sheets, and measured ones whose numbers have all their digits."""
    yield from ROOFS.values()
    for i in range(5):
        peaks = {dtype: 10 ** rng.uniform(-2, 3) for dtype in words.LABELS if rng.integers(4)}
        yield Roof(f"measured {i}", peaks | {"float32": 1 / 3}, 10 ** rng.uniform(0, 4), "made up", measured=True)


def random_cases(count, seed):
    rng = np.random.default_rng(seed)
    roofs = list(random_roofs(rng))
    for i in range(count):
        roof = roofs[i % len(roofs)]
        sizes = (int(2 ** rng.uniform(0, 17)) if rng.integers(4) else int(2 ** rng.integers(0, 18)) for _ in range(3))
        case = words.GemmCase(Gemm(*sizes), str(rng.choice(list(words.modelled(roof)))), roof)
        yield replace(case, recorded=("Some GPU", case.ms * 10 ** rng.uniform(-1, 4))) if rng.integers(2) else case


def page_case(case):
    record = case.recorded and {"device": case.recorded[0], "ms": case.recorded[1]}
    return {"shape": asdict(case.gemm), "dtype": case.dtype, "roof": asdict(case.roof), "record": record}


def python_case(case):
    least = words.least_rows(case.gemm.n, case.gemm.k, case.dtype, case.roof)
    return {
        "intensity": case.intensity,
        "ridge": case.roof.ridge(case.dtype),
        "moved": case.moved,
        "moving": case.moving_ms,
        "computing": case.computing_ms,
        "ms": case.ms,
        "reached": case.roof.attainable(case.intensity, case.dtype),
        "bound": case.bound,
        "limit": words.row_limit(case.gemm.n, case.gemm.k, case.dtype),
        "least": None if least is None else str(least),
        **{name: getattr(case, name) for name in ("verdict", "prediction", "record", "rows", "change")},
    }


def test_the_page_has_the_numbers_and_the_words_of_python_in_2000_random_cases(call):
    tie = replace(OWN, peaks={"float32": 16.0}, bandwidth=1000.0)  # reached exactly by 64 rows
    cases = [*random_cases(2_000, seed=7), words.GemmCase(Gemm(64, 128, 128), "float32", tie)]
    got = call("said", words.make_facts((), (), {}), [page_case(case) for case in cases])
    for case, said in zip(cases, got, strict=True):
        assert said == python_case(case), case  # numbers to the last bit


def test_times_are_written_as_python_writes_them(call):
    rng = np.random.default_rng(8)
    all_ms = [10 ** rng.uniform(-9, 6) for _ in range(500)] + [0.99949e-3, 0.9996e-3, 0.9995, 0.9996, 999.4, 999.6, 1.0]
    assert call("times", all_ms) == [time_text(ms) for ms in all_ms]


def test_ceilings_lie_by_their_height_and_do_not_cover_each_other(call):
    roof = asdict(ROOFS["H100 SXM"])
    facts = words.make_facts((), (), {})
    assert call("ceilingsOf", facts, roof) == [
        [1978.9, ["float8"]],
        [989.4, ["float16", "bfloat16"]],
        [494.7, ["tf32"]],
        [66.9, ["float64", "float32"]],
    ]
    assert call("spreadDown", [0.9, 0.89, 0.5, 0.2], 0.0625, 0.125) == [0.9, 0.8375, 0.5, 0.2]
    assert call("spreadDown", [0.9, 0.1, 0.05, 0.0], 0.0625, 0.125) == [0.9, 0.25, 0.1875, 0.125]


# What a reader does


def field(page, label):
    kinds = (page.get_by_role(role, name=label, exact=True) for role in ("combobox", "textbox", "slider"))
    return next(kinds).or_(next(kinds)).or_(next(kinds))


def text_of(page, name):
    return page.locator(f".mp-sb-{name}").inner_text()


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def type_into(page, label, text):
    field(page, label).fill(text)
    field(page, label).press("Enter")


def assert_shows(page, case):
    """The page says what Python says of a case."""
    said = page.locator(".mp-sb-result").inner_text()
    for sentence in (case.verdict, case.prediction, case.record, case.rows, case.change):
        assert sentence.replace("\u00a0", " ") in said.replace("\u00a0", " ")


def test_it_starts_with_what_python_set(show):
    widget = ShapeToBound(m=64, n=11_008, dtype="float8", device="H200 SXM")
    page = show(widget)
    assert_shows(page, widget.case)
    assert [field(page, label).input_value() for label in ("M, rows of C", "N, columns of C", "K, summed over")] == [
        "64",
        "11,008",
        "4,096",
    ]
    assert page.locator(".mp-sb-type [aria-pressed=true]").inner_text() == "FP8"
    assert field(page, "Device").input_value() == "H200 SXM"
    assert page.locator(".mp-sb-source").inner_text().startswith(f"The roof: {ROOFS['H200 SXM'].source}; float64 on")


def test_each_control_changes_the_answer(show):
    widget = ShapeToBound()
    page, case = show(widget), widget.case
    for label, text, change in (
        ("M, rows of C", "512", {"m": 512}),
        ("N, columns of C", "1,000", {"n": 1_000}),
        ("K, summed over", "77", {"k": 77}),
    ):
        type_into(page, label, text)
        case = replace(case, gemm=replace(case.gemm, **change))
        assert_shows(page, case)
    press(page, "TF32")
    assert_shows(page, replace(case, dtype="tf32"))
    field(page, "Device").select_option("L4")
    case = replace(case, dtype="tf32", roof=ROOFS["L4"])
    assert_shows(page, case)
    assert page.get_by_role("status").inner_text() == f"{case.verdict} {case.prediction}"


@pytest.mark.parametrize("story", words.STORIES)
def test_a_story_is_one_press_away(show, story):
    page = show(ShapeToBound(m=3, n=5, k=7))
    press(page, story)
    assert_shows(page, words.GemmCase(words.STORIES[story], "bfloat16", ROOFS["H100 SXM"]))
    assert page.get_by_role("group", name="Start from").locator("[aria-pressed=true]").all_inner_texts() == [story]


def test_the_lead_says_which_side_counts_the_tokens_of_a_weight_gradient(show):
    assert words.STORIES["their weight gradient"].k == words.STORIES["32 × 512 tokens"].m
    assert "in the gradient of its weights, K counts the tokens" in text_of(show(ShapeToBound()), "lead")


OPTION = """
(select, [group, label]) => [...select.options]
  .find((option) => option.text === label && option.parentNode.label === group).value
"""


def test_products_of_models_can_be_chosen_and_are_recognised(show):
    page = show(ShapeToBound())
    for products in words.PRODUCTS.values():
        for label, gemm in products.items():
            picker = field(page, "Known product")
            value = picker.evaluate(OPTION, [group_of(label, gemm), label])
            picker.select_option(value)
            assert_shows(page, words.GemmCase(gemm, "bfloat16", ROOFS["H100 SXM"]))
            assert picker.input_value() == value
    type_into(page, "M, rows of C", "3")
    assert field(page, "Known product").input_value() == ""


def group_of(label, gemm):
    return next(group for group, products in words.PRODUCTS.items() if products.get(label) == gemm)


def test_a_slider_goes_by_powers_of_two_and_the_point_moves_up_the_roof(show):
    page = show(ShapeToBound(m=3))
    slider = field(page, "M, by powers of two")
    assert slider.get_attribute("aria-valuetext") == "3"
    slider.focus()
    places = []
    for power in range(3, 8):
        page.keyboard.press("ArrowRight")
        assert field(page, "M, rows of C").input_value() == str(2**power)
        assert slider.get_attribute("aria-valuetext") == str(2**power)
        places.append(dot_of(page))
    assert places == sorted(places)
    assert len({up for _, up in places}) == len(places)
    case = ShapeToBound(m=128).case
    assert page.get_by_role("status").inner_text() == f"{case.verdict} {case.prediction}"
    page.keyboard.press("End")
    assert field(page, "M, rows of C").input_value() == "131,072"


def dot_of(page):
    """Where the dot is to be, as shares of the plot."""
    style = page.locator(".mp-sb-dot").evaluate("(node) => [node.style.left, node.style.bottom]")
    return tuple(float(share.rstrip("%")) / 100 for share in style)


@pytest.mark.parametrize("m", [1, 40, 346, 16_384])
@pytest.mark.parametrize("device", ["H100 SXM", "L4"])
def test_the_point_stands_on_its_roof(show, m, device):
    case = ShapeToBound(m=m, device=device).case
    page = show(ShapeToBound(m=m, device=device))
    across, up = dot_of(page)
    roof = case.roof
    assert across == pytest.approx((np.log10(case.intensity) + 1) / 5, abs=1e-4)
    low, high = np.log10(roof.bandwidth / 1e4), np.log10(3 * max(roof.peaks.values()))
    assert up == pytest.approx((np.log10(roof.attainable(case.intensity, "bfloat16")) - low) / (high - low), abs=1e-4)
    path = page.locator(".mp-sb-roof").get_attribute("d")
    (x0, y0), (x1, y1), (x2, y2) = (map(float, pair.split()) for pair in path.removeprefix("M").split("L"))
    assert (x0, y0, x2) == (0, 1, 1)
    assert y1 == y2  # flat from the ridge on
    on_roof = 1 - (y0 + (y1 - y0) * min(across / x1, 1))
    assert up == pytest.approx(on_roof, abs=1e-3)


def test_the_bars_have_the_lengths_of_the_times(show):
    case = ShapeToBound(m=512, n=512, k=64).case
    page = show(ShapeToBound(m=512, n=512, k=64))
    track = page.locator(".mp-sb-track").first.bounding_box()["width"]
    moving, computing = (page.locator(f".mp-sb-{name}").bounding_box()["width"] for name in ("moving", "computing"))
    assert moving == pytest.approx(track, abs=1)
    assert computing == pytest.approx(track * case.computing_ms / case.moving_ms, abs=1)
    assert page.locator(".mp-sb-recorded").is_hidden()


def test_the_least_rows_can_be_taken(show):
    page = show(ShapeToBound())
    press(page, "take M = 346")
    case = ShapeToBound(m=346).case
    assert case.bound == "compute"
    assert_shows(page, case)
    press(page, "attention scores")
    none = page.get_by_role("button", name="no M to take")
    assert none.get_attribute("aria-disabled") == "true"
    none.dispatch_event("click")
    assert field(page, "M, rows of C").input_value() == "512"


def test_more_rows_than_the_field_holds_are_named_and_not_offered(show):
    roof = replace(OWN, name="slow memory", peaks={"float32": 1.0}, bandwidth=1000 * (128 / 12 + 1e-4) ** -1)
    n = k = 64  # the limit is 2 N K / (4 K + 4 N) = 16 operations per byte
    roof = replace(roof, bandwidth=1000 / 15.9999)
    least = words.least_rows(n, k, "float32", roof)
    assert least > words.MOST
    widget = ShapeToBound(roofs=[roof], device="slow memory", dtype="float32", n=n, k=k)
    page = show(widget)
    assert f"from M = {least:,} on" in text_of(page, "rows")
    assert page.get_by_role("button", name="no M to take").count() == 1


def test_the_table_has_the_product_in_every_type(show):
    page = show(ShapeToBound(m=64, device="V100 SXM2"))
    rows = [row.inner_text().split("\t") for row in page.locator(".mp-sb-types tbody tr").all()]
    roof = ROOFS["V100 SXM2"]
    moved = {"float64": "138 million", "float32": "69.2 million", "float16": "34.6 million"}
    for (dtype, label), row in zip(words.LABELS.items(), rows, strict=True):
        assert row[0] == label
        if dtype not in roof.peaks:
            assert set(row[1:]) == {"–"}
            continue
        case = words.GemmCase(Gemm(64, 4096, 4096), dtype, roof)
        wanted = [moved[dtype], few_digits(case.intensity), few_digits(roof.ridge(dtype))]
        assert row[1:] == [*wanted, case.bound, time_text(case.ms)]
    assert page.locator("[aria-current=true] th").inner_text() == "float16"


def test_a_type_that_the_device_lacks_is_not_taken_and_the_status_says_so(show):
    page = show(ShapeToBound(device="V100 SXM2"))
    button = page.get_by_role("button", name="bfloat16", exact=True)
    assert button.get_attribute("aria-disabled") == "true"
    button.dispatch_event("click")
    assert page.get_by_role("status").inner_text() == "V100 SXM2 has no products in bfloat16."
    assert text_of(page, "lacking") == "V100 SXM2 has no products in bfloat16."
    assert page.locator(".mp-sb-type [aria-pressed=true]").inner_text() == "float16"
    press(page, "float32")
    assert page.locator(".mp-sb-lacking").is_hidden()


@pytest.mark.parametrize(
    ("dtype", "device", "instead"),
    [("float8", "A100 SXM 80 GB", "bfloat16"), ("bfloat16", "T4", "float16"), ("tf32", "V100 SXM2", "float32")],
)
def test_on_another_device_a_type_that_it_lacks_gives_way_as_in_python(show, dtype, device, instead):
    widget = ShapeToBound(dtype=dtype)
    page = show(widget)
    field(page, "Device").select_option(device)
    widget.device = device
    assert page.locator(".mp-sb-type [aria-pressed=true]").inner_text() == words.LABELS[instead]
    assert_shows(page, widget.case)
    switched = f"{device} has no products in {words.LABELS[dtype]}. Now {words.LABELS[instead]}."
    assert text_of(page, "lacking") == switched
    assert page.get_by_role("status").inner_text().startswith(f"{switched} {widget.case.verdict}")
    field(page, "Device").select_option("H100 SXM")
    assert page.locator(".mp-sb-lacking").is_hidden()


def test_a_recorded_point_stands_below_its_prediction(show):
    widget = measured()
    page = show(widget)
    assert_shows(page, widget.case)
    assert "80 % of the predicted speed" in widget.case.record.replace("\u00a0", " ")
    assert page.locator(".mp-sb-mark").count() == len(POINTS)
    this, dot = (page.locator(name).bounding_box() for name in (".mp-sb-this", ".mp-sb-dot"))
    assert this["x"] == pytest.approx(dot["x"] + dot["width"] / 2, abs=1)
    assert this["y"] > dot["y"] + dot["height"] / 2
    assert text_of(page, "this") == "recorded"
    assert page.get_by_text("Diamonds: recorded.").is_visible()
    assert page.locator(".mp-sb-dot-word").inner_text() == "predicted"
    assert page.locator(".mp-sb-recorded").is_visible()
    head = page.locator(".mp-sb-types thead").inner_text()
    assert head.split("\t")[-1].strip() == "recorded"
    assert "The recorded point is at" in page.get_by_role("img").get_attribute("aria-label")
    for label in ("M, rows of C", "N, columns of C", "K, summed over"):
        size = field(page, label).input_value()
        type_into(page, label, "513")
        assert page.locator(".mp-sb-this").count() == 0
        assert "ecorded" not in text_of(page, "bars")
        type_into(page, label, size)
        assert page.locator(".mp-sb-this").count() == 1
    picker = field(page, "Known product")
    picker.select_option(label="64 × 4096 × 4096")
    assert field(page, "M, rows of C").input_value() == "64"
    press(page, "bfloat16")
    assert page.locator(".mp-sb-mark").count() == 0
    assert picker.locator("optgroup").count() == len(words.PRODUCTS)


def test_a_point_below_the_picture_is_left_out_unless_it_is_asked_for(show):
    slow = [{"device": OWN.name, "dtype": "float32", "m": 4, "n": 4, "k": 4, "ms": 1.0}]
    page = show(ShapeToBound(roofs=[OWN], recorded=slow + POINTS, device=OWN.name, dtype="float32"))
    assert page.locator(".mp-sb-mark").count() == len(POINTS)
    field(page, "Known product").select_option(label="4 × 4 × 4")
    assert page.locator(".mp-sb-mark").count() == len(POINTS) + 1
    assert page.locator(".mp-sb-this").evaluate("(node) => node.style.bottom") == "0%"


def test_a_measured_roof_is_called_so(show):
    page = show(measured())
    assert field(page, "Device").locator("option:checked").inner_text() == "Some CPU, 2 threads, measured"
    assert field(page, "Device").locator("optgroup").evaluate_all("(all) => all.map(({ label }) => label)") == [
        "data sheets",
        "measured",
    ]
    assert text_of(page, "source").startswith("The roof: made up for the tests. The prediction is idealized")


def test_points_stand_beside_the_data_sheet_that_is_named(show):
    name = "NVIDIA H100 80GB HBM3"
    points = [{"device": name, "dtype": "bfloat16", "m": 1, "n": 4096, "k": 4096, "ms": 0.0125}]
    widget = ShapeToBound(recorded=points, sheets={name: "H100 SXM"})
    page = show(widget)
    assert_shows(page, widget.case)
    assert f"Recorded on {name}: 12.5" in page.locator(".mp-sb-bars").inner_text()


def test_without_any_record_the_table_has_no_column_for_it(show):
    page = show(ShapeToBound())
    assert page.get_by_role("columnheader", name="recorded").count() == 0


@pytest.mark.parametrize("text", ["many", "0", "2.5", "2,04", "131,073", ""])
def test_junk_gets_a_sentence_and_changes_nothing(show, text):
    page = show(ShapeToBound())
    before = text_of(page, "verdict")
    type_into(page, "N, columns of C", text)
    assert page.get_by_role("alert").inner_text() == (
        f"N: “{text}” is not a whole number from 1 to 131,072. Below stands the answer to the last valid input."
    )
    assert page.locator("[aria-invalid=true]").input_value() == text
    assert text_of(page, "verdict") == before
    assert page.get_by_role("group", name="Answer to the last valid input").count() == 1
    type_into(page, "N, columns of C", "4096")
    assert page.get_by_role("alert").count() == 0
    assert page.get_by_role("group", name="Answer", exact=True).count() == 1


def test_it_can_be_used_with_the_keyboard_alone(show):
    page = show(ShapeToBound())
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the second story
    assert field(page, "M, rows of C").input_value() == "16,384"
    field(page, "M, rows of C").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("32")
    page.keyboard.press("Tab")  # to its slider
    assert_shows(page, ShapeToBound(m=32).case)
    page.keyboard.press("ArrowRight")
    assert field(page, "M, rows of C").input_value() == "64"
    page.get_by_role("button", name="FP8", exact=True).focus()
    page.keyboard.press("Space")
    assert_shows(page, ShapeToBound(m=64, dtype="float8").case)


# The page


@pytest.mark.parametrize("width", [320, 390, 700, 1280])
def test_nothing_scrolls_sideways_or_is_cut_off(show, width):
    widget = measured(m=131_072, n=131_072, k=131_072)
    page = show(widget, viewport={"width": width, "height": 900})
    for device, dtype in ((OWN.name, "bfloat16"), ("H200 SXM", "FP8"), ("A100 SXM 80 GB", "float64")):
        field(page, "Device").select_option(device)
        press(page, dtype)
        for story in (None, "one token", "attention scores"):
            if story:
                press(page, story)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width
            assert cut_off(page, ".mp-panel :is(th, td, button, p:not(.mp-unseen), .mp-sb-lane, .mp-input)") == []


OVERLAPS = """
() => {
  const names = ["labels > span", "zone-word > span", "ridge-word", "dot-word", "this > span"];
  const boxOf = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const { left, right, top, bottom } = range.getBoundingClientRect();
    return { left, right, top: top + 1, bottom: bottom - 1, text: node.textContent };
  };
  const nodes = names.flatMap((name) => [...document.querySelectorAll(`.mp-sb-${name}`)]);
  const boxes = nodes.filter((node) => node.checkVisibility() && node.textContent).map(boxOf);
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => meet(a, b)).map((b) => `${a.text}, ${b.text}`));
}
"""


DOT_WORDS = "() => document.querySelectorAll('.mp-sb-dot-word:not([data-at=nowhere])').length"


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_no_two_words_of_the_picture_meet(show, size):
    page = show(measured(), viewport=size)
    words_seen = 0
    for device in (OWN.name, *ROOFS):
        field(page, "Device").select_option(device)
        actions = []
        for dtype in page.locator(".mp-sb-type [aria-disabled=false]").all_text_contents():
            actions += [(".mp-sb-type button", dtype), *(("button", story) for story in words.STORIES)]
        for action, (meeting, word) in after_each(page, actions, OVERLAPS, DOT_WORDS, frames=0):
            assert meeting == [], (device, action)
            words_seen += word if action[0] == "button" else 0
    assert words_seen > 150  # of about 180


def test_the_word_of_the_point_finds_another_place_when_the_page_grows(show):
    page = show(ShapeToBound(m=32 * 512, device="RTX 4090", dtype="float8"), viewport=PHONE)
    before = page.locator(".mp-sb-dot-word").get_attribute("data-at")
    page.set_viewport_size(DESK)
    page.wait_for_function("(at) => document.querySelector('.mp-sb-dot-word').dataset.at !== at", arg=before)
    assert page.evaluate(OVERLAPS) == []


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_words_of_every_choice_have_room(show, size):
    assert cut_off_choices(show(measured(), viewport=size)) == []


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_height_that_is_kept_free_is_about_the_one_it_takes(show, size):
    kept, taken = heights(show(ShapeToBound(), viewport=size))
    assert abs(kept - taken) <= 3


def test_targets_are_large_enough_and_text_is_not_small(show):
    page = show(measured(), viewport=PHONE)
    assert small_targets(page) == []
    assert smallest_text(page) >= 12.8


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_axe_finds_no_barrier(show, theme, size):
    page = show(measured(), theme=theme, color_scheme=theme, viewport=size)
    assert barriers(page) == []
    field(page, "Device").select_option("H100 SXM")
    press(page, "one token")
    type_into(page, "K, summed over", "junk")
    assert barriers(page) == []


def test_the_bars_and_what_is_pressed_can_be_told_in_forced_colors(show):
    page = show(measured(), forced_colors="active")
    ground = "(node) => getComputedStyle(node).background"
    grounds = [bar.evaluate(ground) for bar in page.locator(".mp-sb-bar").all()]
    assert len(set(grounds)) == 3
    width = "(node) => getComputedStyle(node).borderTopWidth"
    pressed, other = (page.get_by_role("button", name=name, exact=True) for name in ("float32", "bfloat16"))
    assert (pressed.evaluate(width), other.evaluate(width)) == ("3px", "1px")


def test_nothing_moves_by_itself_for_who_asked_for_that(show):
    page = show(ShapeToBound(), reduced_motion="reduce")
    assert page.locator(".mp-sb-dot").evaluate("(node) => getComputedStyle(node).transitionDuration") == "0s"


def test_two_widgets_on_one_page_are_independent(show):
    page = show(ShapeToBound(), ShapeToBound(m=77))
    first, second = page.locator(".mp-shape-to-bound").all()
    first.get_by_role("button", name="8,192 cube").click()
    assert second.locator(".mp-sb-verdict").inner_text() == ShapeToBound(m=77).case.verdict


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    widget = ShapeToBound()
    page = hosted(widget)
    type_into(page, "M, rows of C", "9")
    assert page.evaluate("() => model.sent.at(-1).m") == 9
    field(page, "Device").select_option("V100 SXM2")
    sent = page.evaluate("() => model.sent.at(-1)")
    assert (sent["device"], sent["dtype"]) == ("V100 SXM2", "float16")
    widget.set_state({name: sent[name] for name in ("m", "n", "k", "dtype", "device")})
    assert_shows(page, widget.case)
    # the kernel's device arrives before its type does: the page takes one that the device has
    page.evaluate("() => Object.assign(model.state, { device: 'T4', dtype: 'float8' })")
    page.evaluate("() => model.fire('change:device')")
    assert_shows(page, words.GemmCase(Gemm(9, 4096, 4096), "float16", ROOFS["T4"]))
