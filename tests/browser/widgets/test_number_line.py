"""NumberLine in a real browser: its arithmetic against utils.rounding, its geometry, and what a reader does with it."""

import json
import re
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from tests.browser.widget_page import DESK, PHONE, barriers, module_page, source_of
from tests.oracles import finite_values, midpoints
from utils.checks.number_text import read_number
from utils.formats import FORMATS, encode
from utils.rounding import quantize, ulp
from utils.widgets.number_line import RULES, NumberLine
from utils.widgets.shared.book_widget import BookWidget

SMALL = [name for name, fmt in FORMATS.items() if fmt.bits <= 8]
DETERMINISTIC = [name for name, rule in RULES.items() if rule]

HARNESS = """
const read = (texts) => texts.map((text) => parseNumber(text));
const fractionOf = ({ sign, num, den }) => `${sign ? "-" : ""}${num}/${den}`;
const viewOf = ([low, high]) => ({ low: parseNumber(low), high: parseNumber(high) });
window.calls = {
  results: (name, texts, saturate) => read(texts).map((x) => {
    const all = resultsOf(x, FORMATS[name], { saturate });
    return Object.fromEntries(Object.entries(all).map(([rule, list]) =>
      [rule, list.map(({ code, chance }) => [code.toString(), `${chance.num}/${chance.den}`])]));
  }),
  gaps: (name, texts) => read(texts).map((x) => ulpPower(x, FORMATS[name])),
  places: (name, texts) => read(texts).map((x) => {
    const { place, exact, share } = placeBelow(x, FORMATS[name]);
    return [place.toString(), exact, `${share.num}/${share.den}`];
  }),
  values: (name, places) => places.map((place) => fractionOf(valueAtPlace(BigInt(place), FORMATS[name]))),
  count: (name, [low, high]) => countBetween(parseNumber(low), parseNumber(high), FORMATS[name]).toString(),
  // Every bin against the rounding itself: at its ends, its middle, and a little beyond its ends.
  binFaults(name, rule) {
    const fmt = FORMATS[name];
    const faults = [];
    for (let place = firstPlace(fmt); place <= lastPlace(fmt); place += 1n) {
      const { from, to, fromClosed, toClosed } = binOf(place, fmt, rule);
      const little = powerOfTwo(fmt.emin - fmt.mantissa_bits - 6);
      const probes = [[valueAtPlace(place, fmt), true]];
      if (from) probes.push([from, fromClosed], [sumOfNumbers(from, little), true], [subtract(from, little), false]);
      if (to) probes.push([to, toClosed], [subtract(to, little), true], [sumOfNumbers(to, little), false]);
      if (!from && fmt.signed) probes.push([finite(1, 10n ** 400n), true]);
      if (!to) probes.push([finite(0, 10n ** 400n), true]);
      for (const [x, inside] of probes) {
        const { code, overflow } = round(x, fmt, { rounding: rule });
        const there = placeOfCode(code, fmt);
        const kept = there === place && !overflow; // what saturates has a bin of its own
        if (kept !== inside) faults.push(`${exactText(x)} goes to place ${there}; in the bin of ${place}: ${inside}`);
      }
    }
    return faults;
  },
  runs: (name, bounds, pixels) => runsInView(viewOf(bounds), pixels, FORMATS[name]).map((run) =>
    ({ ...run, from: run.from.toString(), to: run.to.toString() })),
  ticks(name, bounds, pixels) {
    const fmt = FORMATS[name];
    const view = viewOf(bounds);
    const scale = pixelScale(view, pixels);
    return runsInView(view, pixels, fmt).filter(({ dense }) => !dense).flatMap(({ from, to }) =>
      Array.from({ length: Number(to - from) + 1 }, (_, i) => scale(valueAtPlace(from + BigInt(i), fmt))));
  },
  scaled: (bounds, pixels, texts) => read(texts).map(pixelScale(viewOf(bounds), pixels)),
  dragged: (name, bounds, pixels, places) =>
    places.map((at) => exactText(draggedTo(viewOf(bounds), pixels, at, FORMATS[name]))),
  fine(name, bounds, x, direction, steps) {
    const path = [];
    for (let at = parseNumber(x); path.length < steps;) {
      at = fineStep(at, direction, viewOf(bounds), FORMATS[name]);
      path.push(exactText(at));
    }
    return path;
  },
  valueSteps(name, x, direction, steps) {
    const path = [];
    for (let at = parseNumber(x); path.length < steps;) {
      at = valueStep(at, direction, FORMATS[name]);
      if (!at) break;
      path.push(exactText(at));
    }
    return path;
  },
  texts: (list) => read(list).map(exactText),
  view(name, which, x) {
    const view = namedView(which, { fmt: FORMATS[name], x: parseNumber(x) });
    return view && [exactText(view.low), exactText(view.high)];
  },
  wander(name, bounds, moves) {
    let view = viewOf(bounds);
    const fmt = FORMATS[name];
    const about = finite(0, 0n);
    for (const move of moves) {
      if (move === "+") view = zoomView(view, { num: 1n, den: 2n, about, fmt });
      else if (move === "-") view = zoomView(view, { num: 2n, den: 1n, about, fmt });
      else view = panView(view, move === ">" ? 0.37 : -0.37, fmt);
    }
    const bits = ({ num, den }) => num.toString(2).length + den.toString(2).length;
    return [exactText(view.low), exactText(view.high), Math.max(bits(view.low), bits(view.high))];
  },
  fit: (labels, pixels) =>
    fitLabels(labels.map(([at, name, decimal]) => ({ at, name, decimal })), pixels, (text) => 8 * text.length),
  pair: (points, widths, pixels) => placePair(points, widths, pixels),
  triangles: (shapes, pixels) => trianglesPaths(shapes, 0, 100, pixels),
  marks: (name, bounds, pixels, rule) => {
    const [fmt, view] = [FORMATS[name], viewOf(bounds)];
    const scale = pixelScale(view, pixels);
    const places = placesWithBins(runsInView(view, pixels, fmt), view, fmt);
    return tieMarks(places, rule, { fmt, scale, pixels }).map(({ at, up }) => [Math.round(at * 100) / 100, up]);
  },
  bins: (name, bounds, pixels, rule) => {
    const [fmt, view] = [FORMATS[name], viewOf(bounds)];
    const scale = pixelScale(view, pixels);
    return binShapes(placesWithBins(runsInView(view, pixels, fmt), view, fmt), rule, { fmt, scale, pixels })
      .map(({ place, left, right, even }) => [place.toString(), Math.round(left), Math.round(right), even]);
  },
  roll(num, den, count, values) {
    let i = 0;
    const outcomes = [{}, { chance: { num: BigInt(num), den: BigInt(den) } }];
    return rollResults(outcomes, count, () => values[i++ % values.length]);
  },
  words: (name, x, rule, saturate) => explainRule(parseNumber(x), rule, FORMATS[name], { shown: x, saturate }).text,
  facts: (name, x) => factsAbout(parseNumber(x), FORMATS[name]),
  lastBits: (name, place) => lastBitText(BigInt(place), FORMATS[name]),
  chance: (num, den) => chanceText({ num: BigInt(num), den: BigInt(den) }),
};
"""


@pytest.fixture(scope="module")
def line(browser):
    """Call a function of the harness in a real browser: line("results", "float16", ["0.3"], False)."""
    with module_page(browser, source_of("number_line/widget") + HARNESS) as call:
        yield call


@pytest.fixture
def show(show):
    """Open a page that holds the given widgets, and wait for their pictures."""

    def open_page(*widgets, **options):
        page = show(*widgets, **options)
        if options.get("java_script_enabled", True):
            page.wait_for_function("() => document.querySelector('.mp-nl-picture text')")
        open_page.watched = show.watched
        return page

    return open_page


def e4m3(x="0.3", low="0", high="1", **kwargs):
    return NumberLine("float8_e4m3fn", x=x, low=low, high=high, **kwargs)


def x_field(page):
    return page.get_by_label("x, any number")


def type_x(page, text):
    x_field(page).fill(text)
    x_field(page).press("Enter")


def said(page):
    return page.locator(".mp-nl-said").inner_text().replace("\u00a0", " ")


def cells(page, rule):
    """The texts of a rule's row: stored, error, code."""
    row = page.locator(f"tr[data-rule={rule}] td")
    return [text.replace("\u00a0", " ").strip() for text in row.all_inner_texts()]


def handle(page):
    return page.get_by_role("slider")


def at_number(page, number):
    """The pixel of a number on the stage of a widget whose view is 0 to 1."""
    box = page.locator(".mp-nl-stage").bounding_box()
    return box["x"] + number * box["width"], box["y"]


# The arithmetic of the page.


def samples(name):
    """Values, middles, quarters, their neighbours, both ends and beyond, of both signs: as float64."""
    fmt = FORMATS[name]
    if fmt.bits <= 8:
        low, middle, _ = midpoints(fmt)
    else:
        edge = np.array([fmt.smallest_subnormal, fmt.smallest_normal, 1.0, fmt.max / 3, fmt.max])
        low = quantize(edge, fmt)
        step = ulp(low, fmt)
        with np.errstate(over="ignore"):
            middle = low + step / 2
    with np.errstate(over="ignore"):
        values = np.concatenate(
            [low, middle, (low + middle) / 2, np.nextafter(middle, 0), np.nextafter(middle, np.inf)]
        )
        values = np.concatenate([values, [0.0, 1.5 * fmt.max, 4 * fmt.max, fmt.smallest_subnormal / 4]])
    values = values[np.isfinite(values)]
    return np.concatenate([values, -values])


def as_text(value):
    value = float(value)
    top, bottom = abs(value).as_integer_ratio()
    return f"{'-' if np.signbit(value) else ''}{top}*2^{1 - bottom.bit_length()}"


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_the_page_rounds_as_utils_rounding_does(line, name, saturate):
    fmt, values = FORMATS[name], samples(name)
    got = line("results", name, [as_text(value) for value in values], saturate)
    for rule in DETERMINISTIC:
        expected = encode(values, fmt, RULES[rule], saturate=saturate)
        for value, result, code in zip(values, got, expected, strict=True):
            assert result[rule] == [[str(int(code)), "1/1"]], f"{rule} at {value!r}"


@pytest.mark.parametrize("name", FORMATS)
def test_the_chances_of_stochastic_rounding_are_those_of_python(line, name):
    fmt, values = FORMATS[name], samples(name)[:: 3 if FORMATS[name].bits == 8 else 1]
    texts = [as_text(value) for value in values] + ["1/3", "-1/3", "3.1415", "2/3 * 2^-9"]
    widget = NumberLine(name)
    for text, result in zip(texts, line("results", name, texts, False), strict=True):
        widget.x = text
        outcomes = widget.results()["stochastic"]
        codes = encode(np.array([value for value, _ in outcomes]), fmt)
        got = [(code, Fraction(chance)) for code, chance in result["stochastic"]]
        assert got == [(str(int(code)), chance) for code, (_, chance) in zip(codes, outcomes, strict=True)], text


@pytest.mark.parametrize("name", FORMATS)
def test_what_no_double_holds_is_rounded_once(line, name):
    fmt = FORMATS[name]
    texts = [
        "1/3",
        "-2/3",
        f"1 + 2^{-fmt.mantissa_bits - 1} + 1e-40",
        "1e-320",
        "-1e-320",
        "1e400",
        "-1e400",
        "10/3 * 2^-24",
    ]
    widget = NumberLine(name)
    for text, result in zip(texts, line("results", name, texts, False), strict=True):
        widget.x = text
        for rule, outcomes in widget.results().items():
            codes = encode(np.array([value for value, _ in outcomes]), fmt)
            assert [code for code, _ in result[rule]] == [str(int(code)) for code in codes], (rule, text)


@pytest.mark.parametrize("name", FORMATS)
def test_the_gap_is_that_of_utils_rounding(line, name):
    values = samples(name)
    got = [2.0**power for power in line("gaps", name, [as_text(value) for value in values])]
    np.testing.assert_array_equal(got, ulp(values, FORMATS[name]))


@pytest.mark.parametrize("name", SMALL)
def test_places_count_the_values_from_zero(line, name):
    fmt = FORMATS[name]
    values = finite_values(fmt)
    texts = [f"{value.numerator}/{value.denominator}" for value in values]
    assert [place for place, _, _ in line("places", name, texts)] == [str(i) for i in range(len(values))]
    assert [Fraction(text) for text in line("values", name, [str(i) for i in range(len(values))])] == values
    thirds = [f"{a.numerator}/{a.denominator} * 2/3 + {b.numerator}/{b.denominator} * 1/3" for a, b in pairwise(values)]
    expected = [(i, Fraction(1, 3)) for i in range(len(thirds))]
    assert [(int(place), Fraction(share)) for place, _, share in line("places", name, thirds)] == expected
    if fmt.signed:
        negative = line("places", name, [f"-({text})" for text in thirds])
        assert [(int(place), Fraction(share)) for place, _, share in negative] == [
            (-i - 1, Fraction(2, 3)) for i in range(len(thirds))
        ]


@pytest.mark.parametrize(
    ("name", "bounds", "count"),
    [
        ("float8_e4m3fn", ["0", "1"], 57),
        ("float8_e4m3fn", ["-1000", "1000"], 253),
        ("float4_e2m1fn", ["-7", "7"], 15),
        ("float8_e8m0fnu", ["-5", "2^127"], 255),
        ("float16", ["0.1", "0.10001"], 0),
        ("float64", ["1", "2"], 2**52 + 1),
    ],
)
def test_the_values_in_view_are_counted(line, name, bounds, count):
    assert line("count", name, bounds) == str(count)


@pytest.mark.parametrize("rule", DETERMINISTIC)
@pytest.mark.parametrize("name", SMALL)
def test_every_bin_holds_what_the_rule_sends_to_its_value_and_nothing_else(line, name, rule):
    assert line("binFaults", name, rule) == []


# The geometry of the picture.

VIEWS = [
    ("float8_e4m3fn", ["0", "1"]),
    ("float8_e4m3fn", ["-500", "500"]),
    ("float16", ["0", "1"]),
    ("float16", ["-70000", "70000"]),
    ("bfloat16", ["-3e38", "3e38"]),
    ("float32", ["0", "2^-148"]),
    ("float64", ["0", "1e308"]),
    ("float64", ["1", "1 + 2^-45"]),
    ("float4_e2m1fn", ["-7", "7"]),
    ("float8_e8m0fnu", ["-1", "2^120"]),
    ("float8_e5m2fnuz", ["2^-18", "2^-12"]),
    ("tf32", ["0.9", "1.1"]),
    ("float16", ["1", "1.29"]),
]


@pytest.mark.parametrize("pixels", [300, 718, 1400])
@pytest.mark.parametrize(("name", "bounds"), VIEWS)
def test_at_most_150_ticks_are_drawn_and_none_stand_close(line, name, bounds, pixels):
    ticks = line("ticks", name, bounds, pixels)
    assert len(ticks) <= 151
    assert ticks == sorted(ticks)
    assert all(b - a >= 3.99 for a, b in pairwise(ticks))


@pytest.mark.parametrize(("name", "bounds"), VIEWS)
def test_the_runs_hold_every_value_in_view_once(line, name, bounds):
    runs = line("runs", name, bounds, 700)
    total = sum(int(run["to"]) - int(run["from"]) + 1 for run in runs)
    assert str(total) == line("count", name, bounds)
    places = [(int(run["from"]), int(run["to"])) for run in runs]
    assert places == sorted(places)
    assert len(runs) < 60


def test_a_view_maps_to_pixels_however_far_off_doubles_are(line):
    assert line("scaled", ["0", "1"], 700, ["0", "1/2", "1", "-1"]) == [0, 350, 700, -700]
    assert line("scaled", ["0", "2^-1074"], 700, ["2^-1075"]) == [350]
    assert line("scaled", ["-2^1025", "2^1025"], 700, ["0", "2^1024"]) == [350, 525]
    assert line("scaled", ["1", "1 + 2^-60"], 512, ["1 + 2^-61", "1 + 2^-62"]) == [256, 128]


def test_a_drag_stops_on_values_and_middles_and_else_on_short_decimals(line):
    bounds = ["0.25", "0.375"]  # E4M3: values 1/32 apart, 175 pixels on this screen
    assert line("dragged", "float8_e4m3fn", bounds, 700, [0, 3, 87, 90, 175, 172]) == [
        "0.25",
        "0.25",
        "0.265625",
        "0.265625",
        "0.28125",
        "0.28125",
    ]
    for text in line("dragged", "float8_e4m3fn", bounds, 700, [20, 40.5, 130, 600.25]):
        assert len(text) <= 6, text  # a ten-thousandth: less than a pixel


def test_a_drag_lands_within_a_pixel_of_the_finger(line):
    for name, bounds in VIEWS:
        places = [1.5, 77.25, 350, 640.75]
        texts = line("dragged", name, bounds, 700, places)
        assert all(abs(a - b) <= 4.1 for a, b in zip(line("scaled", bounds, 700, texts), places, strict=True)), name


def test_fine_steps_go_along_short_decimals_and_stop_at_each_value_and_middle(line):
    right = line("fine", "float8_e4m3fn", ["0", "1"], "0.29", 1, 7)
    assert right == ["0.295", "0.296875", "0.3", "0.305", "0.31", "0.3125", "0.315"]
    left = line("fine", "float8_e4m3fn", ["0", "1"], "0.315", -1, 6)
    assert left == ["0.3125", "0.31", "0.305", "0.3", "0.296875", "0.295"]
    over_zero = line("fine", "float4_e2m1fn", ["-7", "7"], "0.1", -1, 3)
    assert over_zero == ["0.05", "0", "-0.05"]
    assert len(set(line("fine", "float8_e4m3fn", ["400", "600"], "440", 1, 60))) == 60


def test_steps_by_one_value_cross_zero_and_end_at_the_ends(line):
    assert line("valueSteps", "float4_e2m1fn", "1.2", -1, 99) == [
        "1",
        "0.5",
        "0",
        "-0.5",
        "-1",
        "-1.5",
        "-2",
        "-3",
        "-4",
        "-6",
    ]
    assert line("valueSteps", "float4_e2m1fn", "5", 1, 9) == ["6"]
    assert line("valueSteps", "float4_e2m1fn", "1e9", -1, 2) == ["6", "4"]
    assert line("valueSteps", "float4_e2m1fn", "-1e9", 1, 2) == ["-6", "-4"]
    assert line("valueSteps", "float8_e8m0fnu", "-3", 1, 1) == line("texts", ["2^-127"])
    assert line("valueSteps", "float8_e8m0fnu", "-3", -1, 1) == []


def test_numbers_travel_as_texts_that_python_reads_back(line):
    texts = ["0.3", "1/3", "-2^-149", "2^-1074", "2^1023", "1 + 2^-52", "-0", "1e-7", "12345678901234567890", "5e-324"]
    for text, written in zip(texts, line("texts", texts), strict=True):
        assert read_number(written) == read_number(text), written


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("which", ["x", "one", "subnormals", "end"])
def test_each_named_view_shows_what_its_name_says(line, name, which):
    fmt = FORMATS[name]
    for x in ["0.3", "0", "-5", "1e300", "-1e300", "2^-140"]:
        bounds = line("view", name, which, x)
        if which == "subnormals" and not fmt.has_zero:
            assert bounds is None
            continue
        low, high = map(read_number, bounds)
        points = {
            "x": [read_number(x)],
            "one": [1],
            "subnormals": [0, Fraction(fmt.smallest_normal)],
            "end": [Fraction(fmt.max)],
        }
        assert all(low <= point <= high for point in points[which]), (x, bounds)
        if which == "one":
            assert 4 <= int(line("count", name, bounds)) <= 20


def test_bounds_stay_small_however_far_the_view_wanders(line):
    low, high, bits = line("wander", "float32", ["0", "1"], "+++>>+>--<+>+++<->>+" * 20)
    assert bits < 400
    assert len(low) < 60
    assert len(high) < 60
    deep = line("wander", "float16", ["0", "4"], "+" * 60)
    assert line("count", "float16", deep[:2]) in {"2", "3"}  # zooming in ends with two values in view
    wide = line("wander", "float4_e2m1fn", ["-1", "1"], "-" * 60)
    assert line("count", "float4_e2m1fn", wide[:2]) == "15"


def test_labels_that_would_touch_give_way_to_the_more_important(line):
    kept = line("fit", [[350, "", "0"], [352, "2⁰", "1"], [700, "max", "448"], [60, "", "0.25"], [1, "", "12345"]], 700)
    assert [label["decimal"] for label in kept] == ["0", "448", "0.25"]
    assert kept[1]["right"] == 700  # moved into the picture
    assert all(label["left"] >= 0 for label in kept)


@pytest.mark.parametrize("points", [[0, 3], [350, 352], [698, 700], [100, 600], [-50, 900]])
def test_the_two_neighbours_labels_never_overlap_and_stay_in_the_picture(line, points):
    a, b = line("pair", points, [80, 120], 700)
    assert b - a >= 100 + 10 - 1e-9
    assert a >= 40 - 1e-9
    assert b <= 640 + 1e-9


def test_the_marks_point_to_the_even_neighbour_on_both_sides_of_zero(line):
    up = dict(line("marks", "float4_e2m1fn", ["-7", "7"], 700, "ties_to_even"))
    # values ... -1 -0.5 0 0.5 1 1.5 2 3 4 6; a middle at m stands at pixel 50 * (m + 7)
    assert {at / 50 - 7: way for at, way in up.items()} == {
        -7: False,
        -5: True,
        -3.5: False,
        -2.5: True,
        -1.75: False,
        -1.25: True,
        -0.75: False,
        -0.25: True,
        0.25: False,
        0.75: True,
        1.25: False,
        1.75: True,
        2.5: False,
        3.5: True,
        5: False,
        7: True,
    }
    away = line("marks", "float4_e2m1fn", ["-7", "7"], 700, "ties_away")
    assert all(way == (at > 350) for at, way in away)
    assert line("marks", "float4_e2m1fn", ["-7", "7"], 700, "toward_zero") == []


def test_bins_lie_beside_each_other_and_the_darker_ones_end_in_0(line):
    bins = line("bins", "float4_e2m1fn", ["0", "4"], 800, "ties_to_even")
    assert bins == [
        ["0", 0, 50, True],
        ["1", 50, 150, False],
        ["2", 150, 250, True],
        ["3", 250, 350, False],
        ["4", 350, 500, True],
        ["5", 500, 700, False],
        ["6", 700, 800, True],
    ]
    down = line("bins", "float4_e2m1fn", ["0", "4"], 800, "toward_zero")
    assert [bin[1:3] for bin in down] == [[0, 100], [100, 200], [200, 300], [300, 400], [400, 600], [600, 800]]


def test_the_strip_of_stochastic_rounding_shows_the_chances_as_heights(line):
    even, odd = line("triangles", [{"left": 0, "right": 100, "even": True}], 60)
    # the lower value (even) keeps the upper part: all of it at 0, two fifths at 60
    assert even == "M0 0H60V40L0 100Z"
    assert odd == "M0 100H60V40L0 100Z"


def test_a_roll_counts_what_the_chances_give(line):
    assert line("roll", 3, 5, 100, [(i + 0.5) / 100 for i in range(100)]) == [40, 60]
    assert line("roll", 1, 3, 3, [0.0, 0.33, 0.34]) == [1, 2]


# The words.


@pytest.mark.parametrize(
    ("name", "x", "rule", "saturate", "says"),
    [
        (
            "float8_e4m3fn",
            "0.3",
            "ties_to_even",
            False,
            "0.3 lies between 0.28125 and 0.3125. The nearer one is 0.3125.",
        ),
        (
            "float8_e4m3fn",
            "0.296875",
            "ties_to_even",
            False,
            "0.296875 is exactly halfway between 0.28125 and 0.3125: the neighbour whose last bit is 0 wins, 0.3125.",
        ),
        (
            "float4_e2m1fn",
            "-2.5",
            "ties_to_even",
            False,
            "−2.5 is exactly halfway between −3 and −2: the neighbour whose last bit is 0 wins, −2.",
        ),
        (
            "float4_e2m1fn",
            "-2.5",
            "ties_away",
            False,
            "−2.5 is exactly halfway between −3 and −2: away from zero means −3.",
        ),
        (
            "float8_e4m3fn",
            "-0.3",
            "toward_zero",
            False,
            "−0.3 lies between −0.3125 and −0.28125. The one nearer to zero is −0.28125, however near the other is.",
        ),
        (
            "float8_e4m3fn",
            "0.3",
            "stochastic",
            False,
            "0.3 lies between 0.28125 and 0.3125. It goes up with 60\u00a0% and down with 40\u00a0%: "
            "the nearer, the likelier, and on average x itself.",
        ),
        ("float8_e4m3fn", "0.25", "ties_away", False, "0.25 is a value of E4M3: every rule keeps it."),
        (
            "float8_e4m3fn",
            "464",
            "ties_to_even",
            False,
            "464 is exactly halfway between 448 and 480, where the next value would be. The tie goes to 448.",
        ),
        (
            "float8_e5m2",
            "61440",
            "ties_to_even",
            False,
            "61440 is exactly halfway between 57344 and 65536, where the next value would be. "
            "The tie goes out: that is an overflow, stored as ∞.",
        ),
        (
            "float8_e4m3fn",
            "460",
            "ties_to_even",
            False,
            "460 lies beyond 448, the largest value. But it is nearer to 448 than to 480, "
            "where the next value would be: "
            "no overflow below 464.",
        ),
        (
            "float8_e4m3fn",
            "500",
            "ties_to_even",
            False,
            "500 lies beyond 448, the largest value. "
            "It is past 464, half a gap out: that is an overflow, stored as NaN.",
        ),
        (
            "float8_e4m3fn",
            "500",
            "ties_to_even",
            True,
            "500 lies beyond 448, the largest value. It is past 464, half a gap out: "
            "the conversion saturates and stores 448.",
        ),
        (
            "float8_e4m3fn",
            "500",
            "toward_zero",
            False,
            "500 lies beyond 448, the largest value. Toward zero, no finite number overflows on this side: 448.",
        ),
        (
            "float8_e5m2",
            "-1e9",
            "toward_negative",
            False,
            "-1e9 lies beyond −57344, the most negative value. This rule leads outward: "
            "that is an overflow, stored as −∞.".replace("-1e9", "−1e9"),
        ),
        (
            "float8_e4m3fn",
            "456",
            "stochastic",
            False,
            "456 lies beyond 448, the largest value. With 75\u00a0% it goes back to 448; "
            "with 25\u00a0% that is an overflow, stored as NaN.",
        ),
        (
            "float8_e8m0fnu",
            "-1",
            "ties_to_even",
            False,
            "E8M0 has neither zero nor sign: −1 becomes NaN, whatever the rule.",
        ),
        (
            "float8_e8m0fnu",
            "3",
            "ties_to_even",
            False,
            "3 is exactly halfway between 2 and 4. Counted in gaps it is 1.5; of 1 and 2 the even one is 2, so 4 wins.",
        ),
        (
            "float8_e8m0fnu",
            "1e-60",
            "toward_zero",
            False,
            "1e-60 lies below the smallest value of E8M0, and without a zero there is one way to go: "
            "≈\u00a05.88 × 10⁻³⁹.",
        ),
    ],
)
def test_the_lesson_says_what_the_rule_does(line, name, x, rule, saturate, says):
    assert line("words", name, x, rule, saturate) == says


@pytest.mark.parametrize(
    ("name", "x", "gap", "nearest", "relative"),
    [
        (
            "float8_e4m3fn",
            "0.3",
            "2⁻⁵ = 0.03125",
            "0.3125, 0.0125 away = 0.4 ulp",
            "≈ 0.0417, that is 0.667 u (u = 2⁻⁴)",
        ),
        ("float8_e4m3fn", "0.25", "2⁻⁵ = 0.03125", "x itself", "0"),
        (
            "float8_e4m3fn",
            "0.001",
            "2⁻⁹ = 0.001953125",
            "0.001953125, 0.000953125 away = 0.488 ulp",
            "≈ 0.953; no bound below 2⁻⁶, the smallest normal",
        ),
        ("float8_e4m3fn", "500", "2⁵ = 32", "448, 52 away = 1.625 ulp", "no bound: x is beyond the largest value"),
        ("float8_e8m0fnu", "-1", "none: E8M0 holds positive numbers only", "none", "none"),
    ],
)
def test_gap_distance_and_relative_error_are_said(line, name, x, gap, nearest, relative):
    facts = [text.replace("\u00a0", " ") for _, text in line("facts", name, x)]
    assert facts == [gap, nearest, relative]


def test_the_last_bits_of_long_significands_are_shown_alone(line):
    assert line("lastBits", "float8_e4m3fn", "41") == ["1.00", "1"]
    assert line("lastBits", "float8_e4m3fn", "-2") == ["0.01", "0"]
    assert line("lastBits", "float32", str(0x3DCCCCCD)) == ["…0110", "1"]


def test_chances_are_said_with_three_digits_and_never_as_certain(line):
    pairs = [(3, 5), (1, 3), (1, 16), (1, 10**6), (10**6 - 1, 10**6), (1, 1), (0, 1)]
    texts = [line("chance", str(a), str(b)).replace("\u00a0", " ") for a, b in pairs]
    assert texts == ["60 %", "33.3 %", "6.3 %", "below 0.1 %", "above 99.9 %", "100 %", "0 %"]


# The widget in a page.


def test_it_opens_with_the_line_the_lesson_and_the_six_rules(show):
    page = show(e4m3())
    assert said(page) == "0.3 lies between 0.28125 and 0.3125. The nearer one is 0.3125."
    assert page.locator(".mp-nl-count").inner_text() == "57 values of E4M3 from 0 to 1."
    assert cells(page, "ties_to_even") == ["→ 0.3125", "+0.4", "0x2A"]
    assert cells(page, "toward_zero") == ["← 0.28125", "−0.6", "0x29"]
    assert cells(page, "stochastic") == ["← 0.28125 (40 %)\n→ 0.3125 (60 %)", "−0.6\n+0.4", "0x29\n0x2A"]
    assert page.locator("[role=status]").inner_text() == ""  # nothing is read out when the page opens
    labels = page.locator(".mp-nl-picture text").all_text_contents()
    assert {"x = 0.3", "2⁻¹", "0.5", "gap 2⁻⁴"} <= set(labels)


CODES = "(rows) => Object.fromEntries(rows.map((row) => [row.dataset.rule, row.querySelectorAll('td')[2].textContent]))"


@pytest.mark.parametrize("name", FORMATS)
def test_the_table_shows_what_utils_rounding_gives(show, name):
    fmt = FORMATS[name]
    page = show(NumberLine("float16", formats=list(FORMATS)))
    page.get_by_label("Format").select_option(name)
    step = fmt.eps
    for value in [
        1 + 1.5 * step,
        1 + 2.5 * step,
        -1 - 1.5 * step,
        fmt.smallest_subnormal / 2,
        -0.75 * fmt.smallest_subnormal,
        fmt.max * 0.999 + 0.1,
    ]:
        type_x(page, as_text(value))
        shown = page.locator("tr[data-rule]").evaluate_all(CODES)
        for rule in DETERMINISTIC:
            code = int(encode(np.float64(value), fmt, RULES[rule]))
            assert int(shown[rule], 16) == code, f"{rule} at {value!r}"


def test_a_tie_is_shown_as_a_tie_with_the_last_bits(show):
    page = show(e4m3(x="0.296875"))
    assert "is exactly halfway" in said(page)
    bits = page.locator(".mp-nl-bits").inner_text().replace("\u00a0", " ")
    assert bits == "0.28125 has the significand 1.001, 0.3125 has 1.010"
    assert page.locator(".mp-nl-last").all_inner_texts() == ["1", "0"]
    assert page.locator(".mp-nl-winner").inner_text().replace("\u00a0", " ") == "0.3125 has 1.010"
    page.locator("tr[data-rule=ties_away] label").click()
    assert said(page).endswith("away from zero means 0.3125.")
    assert page.locator(".mp-nl-bits").inner_text() == ""


def test_the_mouse_drags_x_and_the_picture_follows(show):
    page = show(e4m3())
    x, _ = at_number(page, 0.3)
    knob = handle(page).bounding_box()
    assert abs(knob["x"] + knob["width"] / 2 - x) < 1
    page.mouse.move(x, knob["y"] + 18)
    page.mouse.down()
    page.mouse.move(x + 20, knob["y"] + 18, steps=3)
    goal, _ = at_number(page, 0.64)
    page.mouse.move(goal, knob["y"] + 80, steps=5)
    assert page.locator("[role=status]").inner_text() == ""  # silent while it moves
    page.mouse.up()
    assert 0.62 < float(x_field(page).input_value()) < 0.66
    assert cells(page, "ties_to_even")[0].endswith("0.625") or cells(page, "ties_to_even")[0].endswith("0.6875")
    assert page.locator("[role=status]").text_content().startswith(x_field(page).input_value())
    assert page.locator(".mp-nl-count").inner_text() == "57 values of E4M3 from 0 to 1."


def test_a_click_on_the_line_puts_x_there_and_a_drag_of_the_line_moves_it(show):
    page = show(e4m3())
    x, y = at_number(page, 0.75)
    page.mouse.click(x + 1, y + 130)
    assert x_field(page).input_value() == "0.75"  # the magnet: a value is near
    page.mouse.move(x, y + 130)
    page.mouse.down()
    page.mouse.move(x - 100, y + 130, steps=4)
    page.mouse.up()
    assert x_field(page).input_value() == "0.75"
    low = float(page.locator(".mp-nl-count").inner_text().split(" from ")[1].split(" to ")[0].replace("≈\u00a0", ""))
    width = page.locator(".mp-nl-stage").bounding_box()["width"]
    assert abs(low - 100 / width) < 0.01


def test_the_keys_move_x_finely_or_by_one_value(show):
    page = show(e4m3(x="0.29"))
    handle(page).focus()
    for key, x in [
        ("ArrowRight", "0.295"),
        ("ArrowRight", "0.296875"),
        ("Shift+ArrowRight", "0.3125"),
        ("PageUp", "0.34375"),
        ("PageDown", "0.3125"),
        ("ArrowLeft", "0.31"),
        ("End", "1"),
        ("Home", "0"),
        ("ArrowLeft", "-0.0009765625"),
    ]:
        page.keyboard.press(key)
        assert x_field(page).input_value() == x or key == "ArrowLeft", key
    assert float(x_field(page).input_value()) < 0
    assert page.locator(".mp-nl-count").inner_text() != "57 values of E4M3 from 0 to 1."  # the view has followed
    text = handle(page).get_attribute("aria-valuetext")
    assert "between" in text or "a value of E4M3" in text


def test_there_is_no_value_past_the_last(show):
    page = show(e4m3(x="448"))
    handle(page).focus()
    page.keyboard.press("PageUp")
    assert said(page) == "There is no value above 448 in E4M3."
    assert x_field(page).input_value() == "448"


def test_a_typed_number_is_kept_as_it_was_typed(show):
    page = show(e4m3())
    type_x(page, "1/3")
    assert x_field(page).input_value() == "1/3"
    assert said(page).startswith("1/3 lies between 0.3125 and 0.34375.")
    assert cells(page, "stochastic")[0] == "← 0.3125 (33.3 %)\n→ 0.34375 (66.7 %)"
    type_x(page, "2^-24")
    page.get_by_label("Format").select_option("float16")
    assert x_field(page).input_value() == "2^-24"
    assert said(page) == "2^-24 is a value of float16: every rule keeps it."
    type_x(page, "300")  # out of view: the view goes there
    assert handle(page).get_attribute("class") == "mp-nl-handle"


@pytest.mark.parametrize("junk", ["abc", "", "inf", "nan", "1,5", "1/0"])
def test_junk_gets_one_sentence_and_changes_nothing(show, junk):
    page = show(e4m3())
    before = [cells(page, rule) for rule in RULES]
    type_x(page, junk)
    assert page.locator(".mp-nl-said.mp-wrong").count() == 1
    assert "inf" not in said(page).replace(junk, "") or junk == "inf"
    assert x_field(page).input_value() == junk
    assert x_field(page).get_attribute("aria-invalid") == "true"
    assert [cells(page, rule) for rule in RULES] == before
    assert said(page).endswith("The table is still that of 0.3.")
    type_x(page, "0.5")
    assert "still" not in said(page)
    assert page.locator(".mp-nl-said.mp-wrong").count() == 0


def test_stochastic_rounding_draws_two_arrows_as_thick_as_their_chances(show):
    page = show(e4m3(rounding="stochastic", low="0.25", high="0.375"))
    widths = [float(path.get_attribute("stroke-width")) for path in page.locator(".mp-nl-arrow").all()]
    assert widths == [3.4, 4.6]  # 1 + 6 * 0.4, 1 + 6 * 0.6
    assert {"40\u00a0%", "60\u00a0%"} <= set(page.locator(".mp-nl-chance").all_text_contents())
    page.evaluate("() => { let i = 0; Math.random = () => (i++ % 100 + 0.5) / 100; }")
    page.get_by_role("button", name="roll 100 times").click()
    assert (
        page.locator(".mp-nl-rolled").inner_text()
        == "100 draws: 0.28125: 40×, 0.3125: 60×. Their mean is 0.3; x is 0.3."
    )
    handle(page).focus()
    page.keyboard.press("ArrowRight")
    assert "100 draws" not in page.locator(".mp-nl-rolled").inner_text()  # the sample was of another x


def test_the_chosen_rule_has_its_bins(show):
    page = show(NumberLine("float4_e2m1fn", "2.7", low="0", high="4"))
    width = page.locator(".mp-nl-stage").bounding_box()["width"]

    def chosen():
        """The bin of x, from where and how wide, as numbers on the line."""
        box = page.locator(".mp-nl-chosen").evaluate("(path) => [path.getBBox().x, path.getBBox().width]")
        return [round(4 * side / width, 3) for side in box]

    assert chosen() == [2.5, 1]
    page.get_by_role("radio", name="toward zero").check()
    assert cells(page, "toward_zero")[0] == "← 2"
    assert chosen() == [2, 1]
    page.get_by_role("radio", name="stochastic").check()
    assert page.locator(".mp-nl-chosen").count() == 0


def test_the_views_with_names(show):
    page = show(e4m3())
    count = page.locator(".mp-nl-count")
    page.get_by_role("button", name="the end", exact=True).click()
    assert count.inner_text() == "5 values of E4M3 from 320 to 576."
    labels = page.locator(".mp-nl-picture text").all_text_contents()
    assert {"max", "448", "no value", "480", "becomes NaN"} <= set(labels)
    page.get_by_label("saturate").check()
    assert "saturates: 448" in page.locator(".mp-nl-picture text").all_text_contents()
    page.get_by_role("button", name="around 1", exact=True).click()
    assert count.inner_text() == "13 values of E4M3 from 0.5 to 1.5."
    page.get_by_role("button", name="subnormals", exact=True).click()
    assert count.inner_text().endswith("The smallest above 0 is 2⁻⁹.")
    assert "subnormal, gap 2⁻⁹" in page.locator(".mp-nl-picture text").all_text_contents()
    page.get_by_role("button", name="around x", exact=True).click()
    assert count.inner_text() == "9 values of E4M3 from ≈\u00a00.1906 to ≈\u00a00.4094."


def test_the_threshold_of_overflow_is_drawn_for_the_rules_to_nearest(show):
    page = show(NumberLine("float8_e5m2", "61440", low="50000", high="80000"), viewport=DESK)
    labels = page.locator(".mp-nl-picture text").all_text_contents()
    assert {"max + ½ ulp", "61440"} <= set(labels)
    page.get_by_role("radio", name="toward zero").check()
    assert "max + ½ ulp" not in page.locator(".mp-nl-picture text").all_text_contents()
    assert not any(text.startswith("becomes") for text in page.locator(".mp-nl-picture text").all_text_contents())


def test_zoom_and_pan_buttons(show):
    page = show(e4m3(x="0.5"))
    count = page.locator(".mp-nl-count")
    page.get_by_role("button", name="zoom in").click()
    assert " from 0.25 to 0.75." in count.inner_text()
    page.get_by_role("button", name="move right").click()
    assert " from 0.5 to 1." in count.inner_text()
    page.get_by_role("button", name="move left").click()
    page.get_by_role("button", name="zoom out").click()
    assert " from 0 to 1." in count.inner_text()
    for _ in range(12):
        page.get_by_role("button", name="zoom in").click()
    assert said(page) == "There is nothing finer to see."


@pytest.mark.parametrize(
    ("name", "x"),
    [("float8_e4m3fn", x) for x in ("2.1", "2.19", "0.3", "0.01", "-440", "447", "1e9", "0")]
    + [("float16", "2.1"), ("float16", "-65519"), ("float8_e8m0fnu", "0.3"), ("float8_e8m0fnu", "447")],
)
def test_zooming_in_never_ends_without_two_values(show, name, x):
    page = show(NumberLine(name, x))
    for _ in range(60):
        before = page.locator(".mp-nl-count").inner_text()
        page.get_by_role("button", name="zoom in").click()
        count = page.locator(".mp-nl-count").inner_text()
        assert not count.startswith(("No value", "One value")), count
        if said(page) == "There is nothing finer to see.":
            assert count == before
            break
    else:
        raise AssertionError("zooming in does not end")
    if x in ("2.1", "2.19", "0.3"):
        assert handle(page).get_attribute("class") == "mp-nl-handle"  # x is still in view


def test_an_x_outside_the_view_is_said_to_be_there(show):
    page = show(e4m3(x="1.5", low="1", high="2"))
    bits, texts = page.locator(".mp-nl-bits"), page.locator(".mp-nl-picture text")
    assert bits.inner_text() == ""
    page.get_by_role("button", name="subnormals", exact=True).click()
    assert bits.inner_text() == "x = 1.5 is to the right of this view: choose “around x” to see it."
    assert "x = 1.5 is to the right →" in texts.all_text_contents()
    page.get_by_role("button", name="the end", exact=True).click()
    assert "← x = 1.5 is to the left" in texts.all_text_contents()
    page.get_by_role("button", name="around x", exact=True).click()
    assert bits.inner_text() == ""
    assert "x = 1.5" in texts.all_text_contents()


def test_the_row_of_stochastic_rounding_offers_the_roll(show):
    page = show(e4m3())
    offer = page.get_by_text("choose it to roll")
    assert offer.is_visible()
    offer.click()
    assert page.get_by_role("button", name="roll 100 times").is_visible()
    assert not offer.is_visible()


def test_the_legend_speaks_of_bands(show):
    page = show(e4m3())
    assert "A band holds all that goes to its value" in page.locator(".mp-nl-legend").inner_text()


def test_without_subnormals_there_is_a_hole(show):
    page = show(e4m3())
    button = page.get_by_role("button", name="no subnormals")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert "Without subnormals: a hole 2³ gaps wide" in page.locator(".mp-nl-picture text").all_text_contents()
    assert page.locator(".mp-nl-hole").count() == 1
    assert said(page).startswith("Without subnormal numbers nothing would lie between 0 and 2⁻⁶")
    assert said(page).endswith("The table below still has them.")
    tall = page.locator(".mp-nl-picture").bounding_box()["height"]
    page.get_by_role("button", name="the end", exact=True).click()
    assert page.locator(".mp-nl-hole, .mp-nl-hole-text").count() == 0
    assert page.locator(".mp-nl-picture").bounding_box()["height"] < tall
    page.get_by_role("button", name="subnormals", exact=True).click()
    assert page.locator(".mp-nl-hole").count() == 1
    button.click()
    assert page.locator(".mp-nl-hole").count() == 0


def test_bounds_that_look_alike_are_said_once(show):
    page = show(NumberLine("float64", "0.1"))
    assert page.locator(".mp-nl-count").inner_text() == "7 values of float64, all ≈\u00a00.1."


def test_where_there_is_one_way_a_roll_says_so(show):
    page = show(e4m3(x="-500", rounding="stochastic"))
    assert page.locator(".mp-nl-rolled").inner_text() == "Here there is one way to go."
    page.get_by_role("button", name="roll 100 times").click()
    assert page.locator(".mp-nl-rolled").inner_text() == "All 100 draws give NaN: there is one way to go."


def test_e8m0_has_neither_zero_nor_subnormals(show):
    page = show(NumberLine("float8_e8m0fnu", "-1"))
    assert cells(page, "toward_positive") == ["NaN", "—", "0xFF"]
    assert "becomes NaN" in page.locator(".mp-nl-picture text").all_text_contents()
    page.get_by_role("button", name="subnormals", exact=True).click(force=True)  # dimmed, but it says why
    assert said(page) == "E8M0 has neither zero nor subnormal numbers."
    type_x(page, "1e-60")
    assert cells(page, "toward_zero")[2] == "0x00"


def test_the_picture_never_holds_many_nodes(show):
    page = show(NumberLine("float64", "0.3", low="0", high="1", formats=list(FORMATS)))
    nodes = "() => document.querySelectorAll('.mp-nl-picture *').length"
    for name in FORMATS:
        page.get_by_label("Format").select_option(name)
        assert page.evaluate(nodes) < 120, name
    page.get_by_label("Format").select_option("float16")
    assert page.locator(".mp-nl-count").inner_text() == "15,361 values of float16 from 0 to 1."
    assert any("1,024 values" in text or "512 values" in text for text in page.locator("svg text").all_text_contents())


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("rule", ["ties_to_even", "stochastic"])
def test_nothing_moves_while_x_is_dragged(show, viewport, rule):
    page = show(e4m3(rounding=rule), viewport=viewport)
    top = "() => document.querySelector('.mp-nl-facts').offsetTop - document.querySelector('.mp-panel').offsetTop"
    before = page.evaluate(top)
    handle(page).focus()
    for _ in range(60):
        page.keyboard.press("ArrowRight")
        assert page.evaluate(top) == before, said(page)


@pytest.mark.parametrize("name", FORMATS)
def test_on_a_phone_every_target_is_large_enough_and_nothing_overflows(show, name):
    page = show(NumberLine(name, "1/3"), viewport=PHONE)
    assert page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, input[type=text], select, label, [role=slider]")]
             .filter((node) => node.offsetParent && !node.matches(".mp-field"))
             .map((node) => [node.getAttribute("aria-label") ?? node.textContent, node.getBoundingClientRect()])
             .filter(([, box]) => box.width < 24 || box.height < 24 || box.right > innerWidth)
             .map(([name]) => name)"""
    )
    assert small == []
    outside = page.evaluate(
        """() => [...document.querySelectorAll(".mp-nl-picture text")]
             .map((node) => [node.textContent, node.getBoundingClientRect()])
             .filter(([, box]) => box.left < 16 || box.right > innerWidth - 16).map(([text]) => text)"""
    )
    assert outside == []
    sizes = page.evaluate(
        "() => [...document.querySelectorAll('.mp-panel *')].map((node) => parseFloat(getComputedStyle(node).fontSize))"
    )
    assert min(sizes) >= 12.8  # 0.8rem


def test_a_finger_drags_x_and_lets_the_page_scroll_elsewhere(show):
    page = show(e4m3(), viewport=PHONE, has_touch=True)
    styles = "(node) => getComputedStyle(node).touchAction"
    assert handle(page).evaluate(styles) == "none"
    assert page.locator(".mp-nl-stage").evaluate(styles) == "pan-y"


def test_the_picture_follows_the_width(show):
    page = show(e4m3(), viewport=DESK)
    wide = page.locator(".mp-nl-axis").first.get_attribute("d")
    page.set_viewport_size(PHONE)
    page.wait_for_function("(wide) => document.querySelector('.mp-nl-axis').getAttribute('d') !== wide", arg=wide)
    end = float(page.locator(".mp-nl-axis").first.get_attribute("d").split("H")[1])
    assert end == page.locator(".mp-nl-stage").bounding_box()["width"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(show, theme):
    page = show(e4m3(x="0.296875"), theme=theme, color_scheme=theme)
    for rule, junk in [("ties_to_even", None), ("stochastic", "junk"), ("toward_zero", "464")]:
        page.locator(f"tr[data-rule={rule}] label").click()
        if junk:
            type_x(page, junk)
        # preload: axe would fetch the style sheets again, which a browser refuses for file://
        assert barriers(page) == [], rule


def test_two_widgets_on_one_page_are_independent(show):
    page = show(e4m3(), NumberLine("float16", "0.3"))
    first, second = page.locator(".mp-number-line").all()
    first.get_by_role("radio", name="toward zero").check()
    assert second.get_by_role("radio", name="ties to even").is_checked()
    assert first.get_by_role("radio", name="toward zero").is_checked()


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    widget = e4m3()
    page = hosted(widget)
    handle(page).focus()
    page.keyboard.press("Shift+ArrowRight")
    page.get_by_role("button", name="zoom in").click()
    page.get_by_role("radio", name="toward zero").check()
    sent = page.evaluate("() => model.sent.at(-1)")
    assert (sent["x"], sent["rounding"]) == ("0.3125", "toward_zero")
    widget.set_state(
        {key: sent[key] for key in ("format", "x", "low", "high", "rounding", "saturate")}
    )  # Python takes it
    assert widget.results()["toward_zero"] == ((0.3125, 1),)
    page.evaluate("() => void Object.assign(model.state, { x: '-1/3', format: 'float4_e2m1fn', low: '-1', high: '0' })")
    page.evaluate("() => model.fire('change:x')")
    assert x_field(page).input_value() == "-1/3"
    assert page.get_by_label("Format").input_value() == "float4_e2m1fn"
    assert cells(page, "ties_to_even")[0] == "← −0.5"
    page.evaluate("() => void Object.assign(model.state, { low: '3', high: '2' })")
    page.evaluate("() => model.fire('change:low')")  # half of a change: no view at all
    assert "values of E2M1" in page.locator(".mp-nl-count").inner_text()


def test_the_module_stands_alone(line):
    source = NumberLine.esm_source()
    assert not re.search(
        r"^\s*import\b|\bimport\(|https?://(?!www\.w3\.org/2000/svg)|fetch\(", source, flags=re.MULTILINE
    )
    assert json.loads(json.dumps(NumberLine().book_state())) == NumberLine().book_state()
    assert "number_line" in BookWidget.registry()
