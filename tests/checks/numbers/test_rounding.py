"""The checks of numbers/rounding: the right answer, and for each foreseen wrong one the hint that names the mistake."""

import inspect
import math
import re
import time

import numpy as np
import pytest
import torch

from tests.book_questions import right_option
from utils.accumulation import kahan_sum, running_sum
from utils.checks.numbers import rounding as checks
from utils.checks.numbers import rounding_questions as questions
from utils.checks.outcome import NOT_ATTEMPTED, NOT_YET, time_limit
from utils.checks.questions import number
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT16, FLOAT32, FORMATS, FloatFormat, decode, encode
from utils.rounding import quantize, ulp

E3M4 = FloatFormat("e3m4", exponent_bits=3, mantissa_bits=4, bias=3)


def finfo_of(fmt):
    """What `torch.finfo` would say, and what it leaves out."""
    return {
        "max": fmt.max,
        "smallest_normal": fmt.smallest_normal,
        "smallest_subnormal": fmt.smallest_subnormal,
        "eps": fmt.eps,
        "unit roundoff": fmt.eps / 2,
        "resolution": 10.0 ** -math.floor(fmt.mantissa_bits * math.log10(2)),
    }


# 1. finfo of a made-up format


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"])
def test_finfo_is_what_the_exercise_says_it_is(name):
    told, ours = torch.finfo(getattr(torch, name)), finfo_of(FORMATS[name])
    assert (told.max, told.tiny, told.eps) == (ours["max"], ours["smallest_normal"], ours["eps"])
    assert told.smallest_normal == told.tiny
    assert told.resolution == pytest.approx(ours["resolution"], rel=1e-12)


def test_e3m4_takes_what_the_format_says_as_numbers_and_as_text():
    assert checks.check_e3m4(finfo_of(E3M4))
    written = {"max": "2**3 * (1 + 15/16)", "smallest_normal": "1/4", "smallest_subnormal": "2^-6"}
    written |= {"eps": "2**-4", "unit roundoff": 0.03125, "resolution": "10**-1"}
    assert checks.check_e3m4(written)


@pytest.mark.parametrize(
    ("key", "wrong", "hint"),
    [
        ("max", decode(0x7F, FloatFormat("all numbers", 3, 4, bias=3, specials="none")), "all ones"),
        ("max", FloatFormat("one NaN", 3, 4, bias=3, specials="all_ones").max, "only one code"),
        ("max", 2**3 * (0 + 15 / 16), "hidden 1"),
        ("max", FloatFormat("another bias", 3, 4, bias=4).max, "6 - 3 = 3"),
        ("max", 2**6 * (1 + 15 / 16), "Subtract the bias"),
        ("max", FloatFormat("one bit fewer", 3, 3, bias=3).max, "three fraction bits"),
        ("max", FloatFormat("one bit more", 3, 5, bias=3).max, "five fraction bits"),
        ("max", FLOAT8_E4M3FN.max, "E4M3"),
        ("max", E3M4.max_code, "asks for its value"),
        ("max", -E3M4.max, "`min`"),
        ("max", 3, "before it"),
        ("smallest_normal", E3M4.smallest_subnormal, "hidden 1"),
        ("smallest_normal", 2.0 ** (0 - 3), "exponent field 0"),
        ("smallest_normal", 2.0 ** (1 - 3) * (1 + 1 / 16), "second normal"),
        ("smallest_normal", E3M4.smallest_normal - E3M4.smallest_subnormal, "largest subnormal"),
        ("smallest_normal", E3M4.eps, "exponent field would be 0"),
        ("smallest_normal", 2.0**1, "forgets the bias"),
        ("smallest_normal", -E3M4.max, "`min`"),
        ("smallest_subnormal", E3M4.smallest_normal, "smallest normal"),
        ("smallest_subnormal", 2.0 ** (0 - 3) / 16, "half of it"),
        ("smallest_subnormal", 2.0 ** (0 - 3) * (1 + 1 / 16), "neither"),
        ("smallest_subnormal", 2.0 ** (1 - 3) * (1 + 1 / 16), "keeps the hidden 1"),
        ("smallest_subnormal", 1 / 16, "2**-2"),
        ("smallest_subnormal", 0.0156, "Close, but not exact"),
        ("eps", E3M4.eps / 2, "half of it"),
        ("eps", 1 + E3M4.eps, "number after 1"),
        ("eps", float(ulp(2.0, E3M4)), "gap above 2"),
        ("eps", E3M4.smallest_subnormal, "gap above 0"),
        ("eps", 0.1, "resolution"),
        ("unit roundoff", E3M4.eps, "whole gap"),
        ("unit roundoff", 2.0**-6, "2**-p"),
        ("unit roundoff", 3.125, "divide by 100"),
        ("resolution", E3M4.eps, "decimal digits"),
        ("resolution", 1, "number of digits"),
        ("resolution", 10.0 ** -math.floor(10 * math.log10(2)), "float16"),
    ],
)
def test_e3m4_names_the_field_and_the_misconception(key, wrong, hint):
    outcome = checks.check_e3m4(finfo_of(E3M4) | {key: float(wrong)})
    assert outcome.status == NOT_YET
    assert outcome.message.startswith(f"{key}: ")
    assert hint in outcome.message


# 2. The first even number that a format cannot hold

EVEN_GAPS = {"float32": 2**25 + 2, "float8_e4m3fn": 34, "float8_e5m2": 18}


def test_first_gaps_are_where_counting_in_twos_ends():
    for name, gap in EVEN_GAPS.items():
        even = np.arange(2, gap, 2, dtype=np.float64)
        assert np.array_equal(quantize(even, FORMATS[name]), even)
        assert quantize(gap, FORMATS[name]) != gap
    assert list(questions.FIRST_GAPS) == list(EVEN_GAPS)
    assert checks.check_first_gaps(EVEN_GAPS)
    assert checks.check_first_gaps({"float32": "2**25 + 2", "float8_e4m3fn": "34", "float8_e5m2": 18.0})


@pytest.mark.parametrize("name", EVEN_GAPS)
def test_a_hint_says_held_of_what_is_held(name):
    for text, hint in questions.FIRST_GAPS[name].wrong.items():
        held = quantize(number(text), FORMATS[name]) == number(text)
        if "not held" in hint:
            assert not held
        elif " held" in hint:
            assert held


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("float32", 2**25, "power of two"),
        ("float32", 2**24 + 1, "it is odd"),
        ("float32", 2**24, "odd numbers end"),
        ("float32", 2**25 + 4, "multiple of 4"),
        ("float32", 2**26 + 2, "One bit too many"),
        ("float32", 4098, "11 significant bits"),
        ("float8_e4m3fn", 32, "power of two"),
        ("float8_e4m3fn", 17, "it is odd"),
        ("float8_e4m3fn", 18, "every even number is held"),
        ("float8_e4m3fn", 10, "hidden 1 counts"),
        ("float8_e4m3fn", 450, "range"),
        ("float8_e4m3fn", 448, "largest number"),
        ("float8_e5m2", 34, "E4M3"),
        ("float8_e5m2", 9, "it is odd"),
        ("float8_e5m2", 100, "ulp is 2"),
    ],
)
def test_first_gaps_names_the_format_and_the_misconception(name, wrong, hint):
    outcome = checks.check_first_gaps(EVEN_GAPS | {name: wrong})
    assert outcome.status == NOT_YET
    assert name in outcome.message
    assert hint in outcome.message


# 3. Where a sum stalls


def stall(addend, fmt):
    total = 0.0
    while (after := float(quantize(total + addend, fmt))) != total:
        total = after
    return total


def test_the_sum_stalls_where_the_answer_says():
    assert stall(3.0, FLOAT16) == 8192
    for answer in (8192, "8192", "2**13"):
        assert checks.check_stall(answer)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (stall(1.0, FLOAT16), "adds 1"),
        (stall(3.0, BFLOAT16), "bfloat16 stops"),
        (stall(1.0, BFLOAT16), "ones stop in bfloat16"),
        (4096, "ulp is 4"),
        (6144, "3 still moves"),
        (8200, "nearer to 8192"),
        (8188, "one more"),
        (math.inf, "never gets there"),
        (5, "How large is it then?"),
    ],
)
def test_stall_names_the_misconception(wrong, hint):
    outcome = checks.check_stall(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_neither_the_last_reply_nor_a_hint_about_the_stall_gives_it_away():
    for text in (questions.STALL.otherwise, *questions.STALL.hints):
        assert not {"8", "13", "8192"} & set(re.findall(r"\d+", text))


def test_the_replies_about_the_stall_are_true():
    assert [float(quantize(x, FLOAT16)) for x in (4099, 8191, 8195)] == [4100, 8192, 8192]
    assert [float(ulp(x, FLOAT16)) for x in (2048, 4096, 8192, 16384)] == [2, 4, 8, 16]


# Under the number line


def test_the_ticks_stop_getting_closer_at_twice_the_smallest_normal_number():
    held = decode(np.arange(0x7F), FLOAT8_E4M3FN)
    gaps = np.diff(held)
    assert held[:-1][gaps == gaps[0]][-1] + gaps[0] == 2**-5 == number(questions.PLAY_TICKS.answer)
    assert gaps[0] == 2**-9
    assert FLOAT8_E4M3FN.smallest_normal == 2**-6
    assert number("7/512") == held[held < 2**-6][-1]
    assert float(ulp(2.0**-5, FLOAT8_E4M3FN)) == 2**-8


# 4. Round a float32 code to bfloat16


def to_bfloat16(word):
    if word & 0x7FFFFFFF > 0x7F800000:
        return word >> 16 | 0x0040
    return word + 0x7FFF + (word >> 16 & 1) >> 16


def with_fields(word):
    """A right answer that treats sign, exponent and fraction on their own."""
    sign, exponent, fraction = word >> 31, word >> 23 & 0xFF, word & 0x7FFFFF
    if exponent == 0xFF:
        return sign << 15 | 0x7F80 | (0x40 if fraction else 0)
    kept, rest = divmod(fraction, 2**16)
    kept += rest > 2**15 or (rest == 2**15 and kept % 2 == 1)
    return (sign << 15) + (exponent << 7) + kept


def apart(word):
    """The carry out of the fraction is lost."""
    return with_fields(word) if with_fields(word) & 0x7F or not word & 0x7FFFFF else word >> 16 & 0xFF80


def saturating(word):
    return word >> 16 if to_bfloat16(word) & 0x7FFF == 0x7F80 and word & 0xFFFF else to_bfloat16(word)


def test_the_codes_are_rounded_as_torch_does_it():
    words = checks._bfloat16_words()
    ours = np.array([to_bfloat16(word) for word in words.tolist()])
    theirs = torch.from_numpy(words.view(np.float32)).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    nan = np.isnan(words.view(np.float32))
    assert np.array_equal(ours[~nan], theirs[~nan])
    assert np.all(theirs[nan] & 0x7FFF > 0x7F80)
    assert nan.sum() > 10
    assert np.sum((words >> 23 & 0xFF) == 0) > 10  # subnormals
    assert set(words >> 23 & 0xFF) == set(range(256))


@pytest.mark.parametrize("right", [to_bfloat16, with_fields, lambda word: to_bfloat16(word)])
def test_to_bfloat16_takes_a_right_function(right):
    assert checks.check_to_bfloat16(right)


NAN = 0x7F800000


def by_torch(word):
    return int(torch.tensor(word, dtype=torch.uint32).view(torch.float32).bfloat16().view(torch.uint16))


def by_struct(word):
    import struct

    return to_bfloat16(struct.unpack("I", struct.pack("I", word))[0])


def by_division(word):
    return to_bfloat16(word) if word & 0x7FFFFFFF > NAN else round(word / 65536)


def by_a_power(word):
    return to_bfloat16(word) if word & 0x7FFFFFFF > NAN else round(word * 2**-16)


def by_float(word):
    return to_bfloat16(word) if word & 0x7FFFFFFF > NAN else round(float(word) * 1 // 1) * 0 + to_bfloat16(word)


def by_another(word):
    return by_torch(word)


@pytest.mark.parametrize(
    ("foreign", "part"),
    [
        (by_torch, "it uses `torch`"),
        (by_another, "it uses `torch`"),
        (by_struct, "it imports `struct`"),
        (by_division, "its `/` gives a float"),
        (lambda word: to_bfloat16(word) + int(word.__truediv__(2) * 0), "its `/` gives a float"),
        (by_a_power, "it uses the float 1.5"),
        (by_float, "it uses `float`"),
        (lambda word: np.uint16(to_bfloat16(word)), "it uses `np`"),
        (lambda word: int(encode(decode(word, FLOAT32), BFLOAT16)) if word & 0x7FFFFFFF <= NAN else 0x7FC0, "it uses"),
    ],
)
def test_to_bfloat16_uses_integers_only(foreign, part):
    outcome = checks.check_to_bfloat16(foreign)
    assert outcome.status == NOT_YET
    assert f"codes are right, but {part}" in outcome.message


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda word: word >> 16, "cut off"),
        (lambda word: (word + 0xFFFF) >> 16, "less than half"),
        (lambda word: (word + 0x8000) >> 16, "always sends it up"),
        (lambda word: (word + 0x7FFF) >> 16, "add that last bit"),
        (lambda word: word + 0x7FFF + (word >> 16 & 1) >> 16, "NaN became infinity"),
        (lambda word: to_bfloat16(word) if word & 0x7FFFFFFF <= 0x7F800000 else 0, "NaN became zero"),
        (lambda word: to_bfloat16(word) if word & 0x7FFFFFFF <= 0x7F800000 else 0x7F00, "NaN must stay NaN"),
        (lambda word: word + 0x8000 >> 16 if word == 0xFFFFFFFF else to_bfloat16(word), "do not wrap"),
        (lambda word: ~to_bfloat16(word), "do not wrap"),
        (lambda word: to_bfloat16(word) & 0x7FFF, "sign"),
        (lambda word: to_bfloat16(word) << 16, "Shift it right"),
        (lambda word: (word + 0x7FFF) / 65536, "float"),
        (lambda word: "banana", "whole number"),
        (lambda word: word // 0, "0x3F800000 makes the function stop with ZeroDivisionError"),
        (lambda word: to_bfloat16(word) | 0x40 if word >> 23 & 0xFF == 0xFF else to_bfloat16(word), "infinity's is 0"),
        (lambda word: to_bfloat16(word) if word >> 23 & 0xFF else word >> 31 << 15, "subnormal"),
        (apart, "carries into the exponent"),
        (saturating, "past the largest number"),
        (lambda word: 0x7F7F if word == 0x7F800000 else to_bfloat16(word), "Infinity stays"),
        (lambda word: to_bfloat16(word) + 2, "upper 16 bits"),
        (lambda word: to_bfloat16(word) if word in TOLD else word >> 16, "should give 0x"),
    ],
)
def test_to_bfloat16_names_the_misconception(wrong, hint):
    outcome = checks.check_to_bfloat16(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


TOLD = set(checks._bfloat16_words()[:40].tolist())  # an answer that knows the named codes by heart


# 5. Find the bug


def broken(x):  # as in the chapter
    if x == 0 or math.isnan(x):
        return x
    exponent = math.frexp(x)[1] - 1
    step = 2.0 ** (exponent - 3)
    q = math.floor(x / step + 0.5)
    field = exponent + 7 & 0b1111
    return q * 2.0 ** (field - 7 - 3)


def mended(x, *, largest=448.0, emin=-6, whole=round, signed=True):
    """A right answer, of which one part at a time can be spoilt."""
    if math.isnan(x):
        return x
    size = min(abs(x), largest)
    exponent = max(math.frexp(size)[1] - 1, emin)
    step = math.ldexp(1.0, exponent - 3)
    value = whole(size / step) * step
    return math.copysign(value, x) if signed else value if x >= 0 else 0.0 - value


def up(q):
    return math.floor(q + 0.5)


def up_to_even(q):
    """Ties to even, but 0.49999999999999994 goes up to 1."""
    return up(q) - (q % 1 == 0.5 and up(q) % 2)


@pytest.mark.parametrize("right", [mended, lambda x: float(quantize(x, FLOAT8_E4M3FN, saturate=True))])
def test_to_e4m3_takes_a_right_function(right):
    assert checks.check_to_e4m3(right)


def test_to_e4m3_tries_each_value_each_tie_and_its_neighbours():
    kinds = checks._e4m3_kinds()
    tried = np.concatenate([kind.values for kind in kinds])
    held = decode(np.arange(0x7F), FLOAT8_E4M3FN)
    ties = held[:-1] / 2 + held[1:] / 2
    for values in (held, ties, np.nextafter(ties, 0), np.nextafter(ties, 448)):
        assert np.isin(np.concatenate([values, -values]), tried).all()


def test_the_function_of_the_chapter_has_each_of_the_bugs():
    wrong = [kind.name for kind in checks._e4m3_kinds() if checks._e4m3_fault(broken, kind)]
    assert wrong[:3] == ["ties", "ties of negative numbers", "subnormals"]
    assert wrong[3:] == ["the number below half of the smallest step", "overflow", "infinities", "the sign of zero"]
    assert len(inspect.getsource(broken).splitlines()) <= 14


def test_the_function_of_the_chapter_as_it_stands_gets_no_hint():
    outcome = checks.check_to_e4m3(broken)
    assert outcome.status == NOT_ATTEMPTED
    assert outcome.message == "As it stands, 7 of 10 kinds of inputs come out wrong. Which?"
    partly = checks.check_to_e4m3(lambda x: broken(x) if abs(x) < 448 or x != x else math.copysign(448.0, x))
    assert partly.status == NOT_YET
    assert "1.0625 gives 1.125, but it should give 1.0" in partly.message
    assert "In all, 5 of 10 kinds" in partly.message


@pytest.mark.parametrize(
    ("wrong", "hint", "more"),
    [
        (lambda x: mended(x, whole=up), "1.0625 gives 1.125", 3),
        (lambda x: mended(x, whole=lambda q: math.ceil(q - 0.5)), "0.96875 gives 0.9375", 2),
        (lambda x: -mended(-x, whole=lambda q: math.ceil(q - 0.5)) if x < 0 else mended(x), "tie toward zero", 1),
        (lambda x: mended(x, whole=up_to_even), "0.49999999999999994", 0),
        (lambda x: mended(x, emin=-900), "all are 2**-9", 2),
        (lambda x: mended(x, emin=-7), "all are 2**-9", 1),
        (lambda x: mended(x) if abs(x) >= 2**-6 or x != x else 0.0 * x, "all are 2**-9", 0),
        (lambda x: mended(x, largest=math.inf) if abs(x) < math.inf else mended(x), "saturates: 448", 0),
        (lambda x: math.nan if abs(x) > 464 else mended(x), "saturates: 448", 1),
        (lambda x: x if x < -448 else mended(x), "-600.0 gives -600.0, but it should give -448.0", 1),
        (lambda x: x if math.isinf(x) else mended(x), "E4M3 has no infinity", 0),
        (lambda x: 0.0 if math.isnan(x) else mended(x), "NaN stays NaN", 0),
        (lambda x: mended(x, signed=False), "-1e-05 gives 0.0, but it should give -0.0", 0),
        (lambda x: 1.0 if x == 1.25 else mended(x), "stays as it is", 0),
        (lambda x: mended(x, whole=math.floor), "one is nearer", 3),
        (lambda x: round(x), "stays as it is", 8),
        (lambda x: "banana", "not a number", 9),
        (lambda x: (1 / x, mended(x))[1], "-0.0 makes the function stop with ZeroDivisionError", 0),
    ],
)
def test_to_e4m3_names_the_first_mistake_and_counts_the_others(wrong, hint, more):
    outcome = checks.check_to_e4m3(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message
    assert (f"In all, {more + 1} of" in outcome.message) == bool(more)
    assert ("In all" in outcome.message) == bool(more)


def test_a_loop_that_ends_for_some_inputs_only_is_stopped_too(monkeypatch):
    monkeypatch.setattr("utils.checks.outcome.time_limit", lambda seconds: time_limit(0.3))

    def slow(x):
        end = time.perf_counter() + (10 if x == 1.25 else 0)
        while time.perf_counter() < end:
            pass
        return mended(x)

    outcome = checks.check_to_e4m3(slow)
    assert "never ends" in outcome.message
    assert "In all" not in outcome.message


# What is predicted


def float16(x):
    return float(quantize(x, FLOAT16))


def counted_down(start, count, tie=None):
    """`start` minus `count` ones in float16; with `tie` that is what becomes of an odd number above 2048."""
    total = start
    for _ in range(count):
        exact = total - 1
        total = tie(exact) if tie and exact > 2048 else float16(exact)
    return total


def test_the_counter_goes_from_4094_to_4092_and_stays():
    assert right_option(questions.P_COUNTER).text == str(int(counted_down(4094.0, 4094))) == "4092"
    assert [float16(x) for x in (4093, 4091)] == [4092, 4092]
    assert counted_down(4096.0, 4096) == 4096
    assert counted_down(2048.0, 2048) == 0
    down = counted_down(4094.0, 4094, tie=lambda exact: exact - 1)
    assert [option.text for option in questions.P_COUNTER.options][4] == f"−{-down:g}" == "−1023"


def test_between_8_and_16_only_equal_numbers_differ_by_less_than_eps():
    assert right_option(questions.P_EPS).text.startswith("Equal numbers only")
    values = decode(np.arange(0x7C00), FLOAT16)
    assert set(np.diff(values[(values >= 8) & (values <= 16)])) == {8 * FLOAT16.eps}
    near = values[(values >= 0.001) & (values < 0.0011)]
    assert round(FLOAT16.eps / np.diff(near).max()) == 1024  # numbers hundreds of gaps apart pass


def test_more_than_half_of_eps_is_enough():
    assert float16(1 + 0.0006) == 1 + FLOAT16.eps
    assert float16(1 + 0.0004) == 1


def test_the_gaps_at_3_14_are_those_of_the_text():
    assert float(ulp(3.14, FLOAT16)) == 2**-9 == pytest.approx(0.00195, rel=2e-3)
    assert [float(ulp(3.14, fmt)) for fmt in (BFLOAT16, FLOAT8_E4M3FN)] == [2**-6, 2**-2]


def test_both_intervals_hold_ten_binades():
    values = decode(np.arange(0x7C00), FLOAT16)
    assert np.sum((values >= 2**-10) & (values < 1)) == np.sum((values >= 1) & (values < 2**10)) == 10 * 1024
    assert right_option(questions.P_SMALL).text.startswith("Both hold equally many")


def summed(losses):
    """The running total in bfloat16."""
    return running_sum(losses, BFLOAT16)


def test_a_large_total_does_not_change_any_more_and_dividing_first_does_not_help():
    losses = np.random.default_rng(0).exponential(0.2, 8192)
    seen = summed(losses)
    assert np.array_equal(1024 * summed(losses / 1024), seen)
    too_low = [seen[n - 1] / losses[:n].sum() for n in (512, 2048, 8192)]
    assert too_low[0] > too_low[1] > too_low[2]
    assert np.mean(np.diff(seen) == 0) > 0.5


def test_the_smallest_first_is_no_remedy_for_losses_like_those_of_the_chapter():
    """Nine in ten are near 0, the others from 1 to 2.5, and few of those above 2."""
    rng = np.random.default_rng(0)
    large = rng.uniform(1, 2, 1400), rng.uniform(2, 2.5, 110)
    losses = rng.permutation(np.concatenate([rng.exponential(0.02, 20_000), *large]))
    totals = {"as they come": summed(losses)[-1], "sorted": summed(np.sort(losses))[-1], "exact": losses.sum()}
    assert totals["as they come"] < totals["sorted"] < 1.3 * totals["as they come"] < 0.6 * totals["exact"]
    assert totals["sorted"] == 512 + 4 * 110  # each of them as 4, and nothing else
    assert right_option(questions.P_SUM).text.startswith("Hardly more than now")


def test_kahans_sum_of_ones_in_e4m3_stops_at_256():
    ones, e4m3 = np.ones(600), FLOAT8_E4M3FN
    assert running_sum(ones, e4m3)[-1] == 16
    sums = kahan_sum(ones, e4m3)
    assert sums.totals[-1] == 256
    assert abs(sums.compensations[-1]) == 16
    assert right_option(questions.P_KAHAN).text == "At 256"
    assert float(ulp(256.0, e4m3)) == 32
    assert float(ulp(16.0, e4m3)) == 2
    assert quantize(17.0, e4m3) == 16
