"""AskGpu: its oracle, the same words in Python and JavaScript, recorded answers in words, and every way to fail."""

import json
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tests.page_states import state_of
from tests.widgets.shared.test_modules import run_node
from utils import formats
from utils.formats import FLOAT16, FLOAT32
from utils.widgets.ask_gpu import DEVICES, RECORDED, AskGpu, ieee, load_devices
from utils.widgets.ask_gpu.functions import ARGUMENTS, EXACT, INPUTS, allowed_error, measure_errors, ulp
from utils.widgets.ask_gpu.readings import (
    MISSING,
    OPEN,
    ORDERS,
    answer_of,
    kept_ones,
    name_order,
    pairs_of,
    read_answer,
)
from utils.widgets.ask_gpu.rows import ROWS, SECTIONS, TOPICS, WHY
from utils.widgets.shared.modules import WIDGETS

FOLDER = (WIDGETS / "ask_gpu").as_uri()
ROW = {row.name: row for row in ROWS}
IEEE, *OTHERS = load_devices()
BY_NAME = {device["name"]: device for device in OTHERS}
ORDER_OPEN = ("dot", "order_subgroup", "atomics")  # clause 9.4
RECOMMENDED = ("exp", "log", "sin")  # clause 9.2


def call(module, name, *arguments):
    """What a function of a file of the widget returns in Node.js, as JSON."""
    script = f"""const {{ {name} }} = await import("{FOLDER}/{module}.js");
    console.log(JSON.stringify({name}(...given)));"""
    return run_node(script, arguments)


def state():
    return state_of(AskGpu())


# The rows and the kernels


def test_every_answer_of_a_kernel_has_a_row_and_every_row_a_kernel():
    script = f"""const {{ KERNELS }} = await import("{FOLDER}/kernels.js");
    console.log(JSON.stringify(Object.values(KERNELS).flatMap(({{ outputs }}) => Object.keys(outputs))));"""
    assert sorted(run_node(script, None)) == sorted(ROW)


def test_rows_name_their_topic_and_a_section_of_wgsl():
    assert len(ROW) == len(ROWS)
    assert {row.topic for row in ROWS} == set(TOPICS)
    assert {row.section for row in ROWS} == set(SECTIONS)


def test_what_an_answer_means_belongs_to_a_row_and_reaches_the_page():
    assert set(WHY) <= set(ROW)
    assert {row["name"]: row["why"] for row in state()["rows"] if row["why"]} == WHY


def test_kernels_read_their_numbers_from_a_buffer():
    """No compiler can compute in advance: a kernel's text holds no number but 0.0, which fills a vector."""
    script = f"""const {{ KERNELS, sourceOf }} = await import("{FOLDER}/kernels.js");
    console.log(JSON.stringify(Object.values(KERNELS).map(sourceOf)));"""
    for source in run_node(script, None):
        assert set(re.findall(r"\b\d+\.\d+", source)) <= {"0.0"}
        assert "src[" in source


@pytest.mark.parametrize(("needs", "kernels"), [("shader-f16", {"cast", "half"}), ("subgroups", {"subgroup"})])
def test_a_kernel_enables_what_it_needs(needs, kernels):
    script = f"""const {{ KERNELS }} = await import("{FOLDER}/kernels.js");
    console.log(JSON.stringify(Object.keys(KERNELS).filter((name) => KERNELS[name].needs === given)));"""
    assert set(run_node(script, needs)) == kernels


# The oracle


def rounded(x, fmt):
    """A Fraction rounded to nearest, ties to even, in exact arithmetic of its own: a Fraction, or None past the end."""
    if x == 0:
        return x
    exponent = max(int(np.floor(float(mpmath.log(abs(mpmath.mpf(x.numerator) / x.denominator), 2)))), fmt.emin)
    gap = Fraction(2) ** (exponent - fmt.mantissa_bits)
    result = round(x / gap) * gap  # Python rounds a Fraction's ties to even
    return result if abs(result) <= Fraction(fmt.max) else None


class Exact:
    """A number of a format whose operations are exact Fractions that are then rounded."""

    def __init__(self, value, fmt):
        self.value, self.fmt = rounded(Fraction(value), fmt), fmt

    def __add__(self, other):
        return Exact(self.value + other.value, self.fmt)

    def __sub__(self, other):
        return Exact(self.value - other.value, self.fmt)

    def __mul__(self, other):
        return Exact(self.value * other.value, self.fmt)

    def code(self):
        return [int(formats.encode(float(self.value), self.fmt))]


def test_the_oracle_is_exact_arithmetic_rounded_after_each_operation():
    def f(x):
        return Exact(x, FLOAT32)

    def h(x):
        return Exact(x, FLOAT16)

    a, c = f(1 + 2**-12), f(-(1 + 2**-11))
    expected = {
        "subnormal_out": f(2**-126) * f(0.5),
        "subnormal_in": f(2**-127) * f(4),
        "fused": a * a + c,
        "fma": f(Fraction(1 + 2**-12) ** 2 - Fraction(1 + 2**-11)),
        "ones": ieee.add_in_turn(f(2**24 - 8), f(1), 16),
        "small_addends": ieee.add_in_turn(f(1), f(2**-25), 1024),
        "kahan": ieee.kahan_sum(f(1), f(2**-25), 1024),
        "two_sum": ieee.two_sum(f(1e10), f(1e-10))[1],
        "half_ones": ieee.add_in_turn(h(2040), h(1), 16),
        "half_subnormal": h(2**-14) * h(0.5),
        "half_fused": h(1 + 2**-6) * h(1 + 2**-6) + h(-(1 + 2**-5)),
        "half_kahan": ieee.kahan_sum(h(1), h(2**-12), 1024),
    }
    assert {name: value.code() for name, value in expected.items()} == {
        name: IEEE["answers"][name] for name in expected
    }
    assert (h(65504) + h(32)).value is None
    assert (h(60000) * h(2)).value is None


def test_what_would_be_fused_is_another_answer():
    square = Fraction(1 + 2**-12) ** 2
    assert square - Fraction(1 + 2**-11) == Fraction(2) ** -24
    assert IEEE["answers"]["fused"] == [0]
    assert read_answer(ROW["fma"], IEEE["answers"]) == "fused, rounded once"  # clause 5.4.1
    assert Fraction(1 + 2**-6) ** 2 - Fraction(1 + 2**-5) == Fraction(2) ** -12


def test_ieee_has_no_answer_where_it_leaves_the_order_open_or_only_recommends():
    assert set(ROW) - set(IEEE["answers"]) == {*ORDER_OPEN, *RECOMMENDED}
    words = {name: answer_of(row, IEEE) for name, row in ROW.items()}
    assert {words[name] for name in ORDER_OPEN} == {OPEN}
    assert {words[name] for name in RECOMMENDED} == {"recommends the nearest float32"}
    assert words["pack_rounding"] == words["quantize_rounding"] == words["cast_rounding"] == "to nearest, ties to even"
    assert words["pack_top"] == words["quantize_top"] == "65504, ∞, ∞"
    assert (words["nan_unequal"], words["infinity_minus"], words["overflow"]) == ("true", "NaN", "∞")
    assert (words["kahan"], words["ones"]) == ("1 + 2⁻¹⁵, exact", "stops at 2²⁴")


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_exact_values_are_exact_enough_to_round(name):
    mpmath.mp.prec = 120
    function = {
        "reciprocal": lambda x, _: 1 / x,
        "division": lambda x, y: x / y,
        "sqrt": lambda x, _: mpmath.sqrt(x),
        "exp": lambda x, _: mpmath.exp(x),
        "log": lambda x, _: mpmath.log(x),
        "sin": lambda x, _: mpmath.sin(x),
    }[name]
    for x, y, value in zip(INPUTS[ARGUMENTS[name]], INPUTS["other"], EXACT[name], strict=True):
        right = function(mpmath.mpf(float(x)), mpmath.mpf(float(y)))
        assert abs(right - value) < 2**-20 * float(ulp(np.float64(value)))
        significand, exponent = right.man_exp
        exact = int(mpmath.sign(right)) * int(significand) * Fraction(2) ** exponent
        assert Fraction(float(np.float32(value))) == rounded(exact, FLOAT32)


def test_rounding_to_nearest_is_half_an_ulp_at_most():
    for name in ARGUMENTS:
        ulps, share, others = measure_errors(name, np.float32(EXACT[name]))
        assert ulps <= 0.5
        assert share <= 0.21
        assert others == 0


# Errors against WGSL


@pytest.mark.parametrize("name", ARGUMENTS)
def test_errors_are_measured_alike_in_python_and_in_the_page(name):
    rng = np.random.default_rng(4)
    right = np.float32(EXACT[name])
    steps = rng.integers(-9, 10, size=(3, len(right)))
    steps[0] = 0
    for off in steps:
        results = (right.view(np.int32) + off.astype(np.int32)).view(np.float32)
        found = call("functions", "measureErrors", name, [float(x) for x in results])
        assert found == pytest.approx(measure_errors(name, results), rel=0.006)  # both are rounded to three digits


@pytest.mark.parametrize(("name", "bound"), [("division", 2.5), ("exp", 3 + 2 * 8), ("reciprocal", 2.5)])
def test_the_allowed_errors_are_those_of_the_specification(name, bound):
    in_ulps = allowed_error(name) / ulp(EXACT[name])
    assert np.max(in_ulps) == pytest.approx(bound, abs=0.1)
    exact = EXACT[name]
    at_bound = np.float32(exact + 1.2 * allowed_error(name))
    assert measure_errors(name, at_bound)[1] > 1


def test_sin_and_log_near_one_have_absolute_bounds():
    assert set(allowed_error("sin")) == {2.0**-11}
    x = INPUTS["around1"]
    near = (x >= 0.5) & (x <= 2)
    assert set(allowed_error("log")[near]) == {2.0**-21}
    assert np.all(allowed_error("log")[~near] == 3 * ulp(EXACT["log"][~near]))
    assert np.abs(INPUTS["angles"]).max() < np.pi


def test_an_infinite_result_is_no_number_to_forgive():
    results = np.float32(EXACT["exp"])
    results[3] = np.inf
    assert measure_errors("exp", results)[1] == np.inf


# Orders


@pytest.mark.parametrize("n", [4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("order", ORDERS)
def test_an_order_is_named_alike_in_python_and_in_the_page(order, n):
    kept = kept_ones(ORDERS[order](n), n)
    assert name_order(n, kept) == order
    assert call("orders", "nameOrder", n, kept) == order
    assert [list(pair) for pair in pairs_of(n)] == call("orders", "pairsOf", n)


def test_another_order_has_no_name():
    kept = kept_ones(ORDERS["chain"](8), 8)
    kept[2] += 1
    assert name_order(8, kept) is call("orders", "nameOrder", 8, kept) is None
    wide = [6] * len(pairs_of(8))
    assert name_order(8, wide) == call("orders", "nameOrder", 8, wide) == "wide"


# Recorded answers, in words


@pytest.mark.parametrize("device", [IEEE, *OTHERS], ids=lambda device: device["name"])
def test_the_page_reads_recorded_answers_as_python_does(device):
    rows = state()["rows"]
    script = f"""const {{ answerOf }} = await import("{FOLDER}/readings.js");
    const [rows, device] = given;
    console.log(JSON.stringify(rows.map((row) => answerOf(row, device))));"""
    assert run_node(script, [rows, device]) == [answer_of(row, device) for row in ROWS]


@pytest.mark.parametrize(
    ("name", "row", "words"),
    [
        ("SwiftShader", "subnormal_out", "0, flushed"),
        ("SwiftShader", "kahan", "1 + 2⁻¹⁵, exact"),
        ("SwiftShader", "quantize_rounding", "toward zero"),
        ("SwiftShader", "pack_top", "65504, ∞, NaN"),
        ("SwiftShader", "order_subgroup", "4 numbers, neighbours first, then these pairs"),
        ("SwiftShader", "half_ones", MISSING),
        ("lavapipe", "subnormal_out", "2⁻¹²⁷, kept"),
        ("lavapipe", "kahan", "1, simplified away"),
        ("lavapipe", "two_sum", "0, simplified away"),
        ("lavapipe", "infinity_minus", "0"),
        ("lavapipe", "nan_unequal", "false"),
        ("lavapipe", "nan_bits", "true"),
        ("lavapipe", "quantize_rounding", "to nearest, ties to even"),
        ("lavapipe", "quantize_subnormals", "flushed to 0"),
        ("lavapipe", "cast_subnormals", "kept, and rounded to nearest"),
        ("lavapipe", "half_ones", "stops at 2048"),
        ("lavapipe", "half_excess", "∞"),
        ("lavapipe", "half_kahan", "1, simplified away"),
        ("lavapipe", "order_subgroup", "8 numbers, one after another"),
    ],
)
def test_a_recorded_answer_in_words(name, row, words):
    assert read_answer(ROW[row], BY_NAME[name]["answers"]) == words


@pytest.mark.parametrize("name", DEVICES)
def test_a_record_says_what_was_measured_and_when(name):
    record = json.loads((RECORDED / f"{name}.json").read_text("utf8"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["measured"])
    assert re.search(r"\d+\.\d+", record["version"])
    assert record["software"] is True
    assert set(record["answers"]) <= set(ROW)


@pytest.mark.parametrize("name", BY_NAME)
def test_recorded_devices_stay_within_the_errors_that_wgsl_allows(name):
    assert all(BY_NAME[name]["answers"][function][1] <= 1 for function in ARGUMENTS)


def test_an_unforeseen_answer_is_shown_as_its_numbers():
    odd = {"fused": [int(formats.encode(2.0**-23, FLOAT32))], "half_ones": [0x6801], "overflow": [0x7FC00001]}
    rows = [row for row in state()["rows"] if row["name"] in odd]
    for row in rows:
        words = call("readings", "readAnswer", row, odd)
        assert words not in {text for _, text in row["reading"]["cases"]}
    assert read_answer(ROW["overflow"], odd) == "NaN"
    assert read_answer(ROW["half_ones"], odd) == "2050"


# Sentences


def verdict(answers):
    return call("words", "verdictText", state()["rows"], answers, IEEE)


def test_the_verdict_counts_and_says_whether_wgsl_allows_the_rest():
    asked = [name for name in BY_NAME["lavapipe"]["answers"] if name in IEEE["answers"]]
    rows = [ROW[name] for name in asked]
    same = sum(read_answer(r, IEEE["answers"]) == read_answer(r, BY_NAME["lavapipe"]["answers"]) for r in rows)
    said = verdict(BY_NAME["lavapipe"]["answers"])
    assert said == (
        f"The kernels got the answer of IEEE 754 in {same} of the {len(rows)} rows that it decides. "
        "No other answer seen here breaks WGSL’s rules."
    )
    decided = len(ROWS) - len(ORDER_OPEN) - len(RECOMMENDED)
    assert verdict(IEEE["answers"]) == (
        f"The kernels got the answer of IEEE 754 in {decided} of the {decided} rows that it decides."
    )


def test_a_gpu_whose_fma_rounds_once_gains_a_row():
    wrong = BY_NAME["SwiftShader"]["answers"]
    right = {**wrong, "fma": IEEE["answers"]["fma"]}
    decided = [ROW[name] for name in IEEE["answers"] if name in right]
    same = sum(read_answer(row, right) == read_answer(row, IEEE["answers"]) for row in decided)
    assert f"in {same} of the {len(decided)} rows" in verdict(right)
    assert f"in {same - 1} of the {len(decided)} rows" in verdict(wrong)


def test_an_answer_beyond_wgsl_is_named_for_exp_too_which_ieee_only_recommends():
    assert "WGSL does not allow that of exp(x)" in verdict({**IEEE["answers"], "exp": [60.0, 3.1, 250]})


def test_errors_say_how_many_inputs_were_tried():
    answers = BY_NAME["SwiftShader"]["answers"]
    assert read_answer(ROW["exp"], answers) == "errors up to 7.66 ulp in 256 inputs, 58.9 % of the allowed"
    assert read_answer(ROW["sin"], answers) == "errors up to 38.8 % of the allowed in 256 inputs"
    assert read_answer(ROW["sqrt"], answers) == "the nearest float32 for all 256 inputs"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"exp": [60.0, 3.1, 250]}, "WGSL does not allow that of exp(x), from −8 to 8."),
        ({"cast_subnormals": [0, 0, 0]}, "WGSL does not allow that of f16(x): 2⁻¹⁵, 2⁻²⁴, 1.5 · 2⁻²⁵."),
        ({"ones": [0]}, "Unlike any answer foreseen: 2²⁴ − 8, plus 16 ones in turn."),
    ],
)
def test_the_verdict_names_what_wgsl_does_not_allow_and_what_nobody_foresaw(change, words):
    assert verdict({**BY_NAME["lavapipe"]["answers"], **change}).endswith(words)


@pytest.mark.parametrize("name", BY_NAME)
def test_the_sentences_are_about_a_kernel_and_never_about_the_gpu(name):
    answers = BY_NAME[name]["answers"]
    sentences = call("words", "briefTexts", state()["rows"], answers)
    assert len(sentences) >= 8
    assert not any("atomics" in sentence for sentence in sentences)  # WGSL has none for floats
    assert all(sentence.endswith(".") and "{}" not in sentence for sentence in sentences)
    assert "your GPU" not in " ".join([*sentences, verdict(answers)])


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (
            {"vendor": "google", "architecture": "swiftshader", "software": True},
            "The browser names the vendor “google” and the architecture “swiftshader”. That is a software renderer:"
            " the processor computed this, no GPU.",
        ),
        ({"vendor": "apple", "architecture": "", "software": False}, "The browser names the vendor “apple”."),
        ({"vendor": "", "architecture": "", "software": False}, "The browser names neither vendor nor architecture."),
    ],
)
def test_the_device_is_called_what_the_browser_calls_it(facts, words):
    assert call("words", "deviceText", facts) == words


@pytest.mark.parametrize(
    ("features", "refused", "said", "unsaid"),
    [
        (["shader-f16", "subgroups"], [], [], ["float16", "subgroups", "refused"]),
        (["subgroups"], [], ["does not offer float16 in shaders"], ["subgroups", "refused"]),
        (["shader-f16"], [], ["does not offer subgroups"], ["float16"]),
        ([], ["pack"], ["does not offer float16", "subgroups either", "refused one kernel;"], []),
        (["shader-f16", "subgroups"], ["pack", "half"], ["refused 2 kernels;"], []),
    ],
)
def test_what_was_not_asked_gets_a_sentence(features, refused, said, unsaid):
    text = call("words", "missingText", {"features": features, "refused": refused})
    assert all(words in text for words in said)
    assert all(words not in text for words in unsaid)


# The class


def test_the_state_is_json_without_an_answer_of_the_reader():
    page = state()
    assert set(page) == {"rows", "topics", "sections", "recorded", "only"}
    assert [topic for topic, _ in page["topics"]] == list(TOPICS)
    assert [device["name"] for device in page["recorded"]] == ["IEEE 754", "SwiftShader", "lavapipe"]
    assert page["only"] == "range"


def test_a_bad_choice_of_rows_is_refused_by_name():
    with pytest.raises(ValueError, match="only 'gpu' is not one of"):
        AskGpu("gpu")


def test_the_static_form_is_the_whole_table():
    text = AskGpu().static_html()
    assert text.count("scope='row'") == len(ROWS)
    assert "<td>rounded twice</td>" in text
    assert "(§ 15.7.5)" in text
    assert all(title in text for title in SECTIONS.values())
    assert repr(AskGpu("sums")) == f"AskGpu({len(ROWS)} rows, 3 devices, only='sums')"
