"""The page's arithmetic (codec.js, number_text.js) is that of utils.formats, code for code."""

import base64
import math
import random
from bisect import bisect_left
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from tests.browser.widget_page import module_page, source_of
from tests.oracles import SMALL, all_codes, finite_values, same_bits
from utils import rounding
from utils.formats import FLOAT32, FLOAT64, FORMATS, FloatFormat, decode, encode

NAMES = [fmt.name for fmt in SMALL]
RULES = ["ties_to_even", "ties_away", "toward_zero", "toward_positive", "toward_negative"]
KINDS = ["zero", "subnormal", "normal", "infinity", "nan"]

# Arrays travel as base64 text: 64-bit codes do not survive as JSON numbers.
HARNESS = """
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
const text = (array) => {
  const all = new Uint8Array(array.buffer);
  let out = "";
  for (let i = 0; i < all.length; i += 32768) out += String.fromCharCode(...all.subarray(i, i + 32768));
  return btoa(out);
};
const toDouble = ({ kind, sign, significand, power }) =>
  (sign ? -1 : 1) * (kind === "nan" ? NaN : kind === "infinity" ? Infinity : Number(significand) * 2 ** power);
export function decodeAll(name, codes) {
  return text(Float64Array.from(new BigUint64Array(bytes(codes)), (code) => toDouble(decode(code, FORMATS[name]))));
}
export function encodeAll(name, values, options) {
  const doubles = new BigUint64Array(bytes(values)); // the bits of the float64 values
  return text(BigUint64Array.from(doubles, (bits) => encode(valueOf(bits, FORMATS.float64), FORMATS[name], options)));
}
export function encodeTexts(name, texts) {
  return texts.map((line) => encode(parseNumber(line), FORMATS[name]).toString());
}
export function classifyAll(name, codes) {
  const kinds = ["zero", "subnormal", "normal", "infinity", "nan"];
  const indexOf = (code) => kinds.indexOf(classify(code, FORMATS[name]));
  return text(Uint8Array.from(new BigUint64Array(bytes(codes)), indexOf));
}
export function neighboursAll(name, codes) {
  const none = (1n << 64n) - 1n;
  const pairs = [...new BigUint64Array(bytes(codes))].map((code) => neighbours(code, FORMATS[name]));
  return text(BigUint64Array.from(pairs.flatMap(({ down, up }) => [down ?? none, up ?? none])));
}
export function decimals(name, codes) {
  return [...new BigUint64Array(bytes(codes))].map((code) => exactDecimal(code, FORMATS[name]));
}
export function shortest(name, codes) {
  return [...new BigUint64Array(bytes(codes))].map((code) =>
    digitsText(shortestDigits(code, FORMATS[name]), { sign: fields(code, FORMATS[name]).sign, ascii: true }));
}
export function refusal(name, line) {
  try {
    return `no refusal: ${encode(parseNumber(line), FORMATS[name])}`;
  } catch (error) {
    return error instanceof NumberTextError || error instanceof RangeError ? error.message : `other: ${error}`;
  }
}
"""


@pytest.fixture(scope="module")
def codec(browser):
    """Call a function of the harness in a real browser: codec("decodeAll", "float16", codes)."""

    with module_page(browser, source_of("bit_flip/widget") + HARNESS) as call:
        yield call


def packed(array) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def codes_text(codes) -> str:
    return packed(np.asarray(codes, dtype=np.uint64))


def values_text(values) -> str:
    return packed(np.asarray(values, dtype=np.float64))


def unpacked(text: str, dtype) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


@cache
def codes_of(name: str) -> np.ndarray:
    """All codes up to 19 bits; 100,000 random patterns, and the ends of every region, of the wider formats."""
    fmt = FORMATS[name]
    if fmt.bits <= 19:
        return all_codes(fmt).astype(np.uint64)
    rng = np.random.default_rng(seed=fmt.bits)
    patterns = rng.integers(0, 2**fmt.bits, size=100_000, dtype=np.uint64, endpoint=False)
    hidden, inf = 2**fmt.mantissa_bits, fmt.inf_code
    edges = [0, 1, 2, hidden - 1, hidden, hidden + 1, fmt.max_code - 1, fmt.max_code, inf, inf + 1, fmt.nan_code]
    edges += [edge + fmt.sign_code for edge in edges]
    return np.concatenate([patterns, np.array(edges, dtype=np.uint64)])


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_has_the_value_that_utils_formats_gives(codec, name):
    codes = codes_of(name)
    got = unpacked(codec("decodeAll", name, codes_text(codes)), np.float64)
    expected = decode(codes, FORMATS[name])
    wrong = np.flatnonzero(~same_bits(got, expected))
    assert wrong.size == 0, f"code {codes[wrong[0]]:#x}: {got[wrong[0]]!r} instead of {expected[wrong[0]]!r}"


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_is_in_its_class(codec, name):
    fmt, codes = FORMATS[name], codes_of(name)
    got = unpacked(codec("classifyAll", name, codes_text(codes)), np.uint8)
    value = decode(codes, fmt)
    size = np.abs(value)
    expected = np.select(
        [np.isnan(value), np.isinf(value), value == 0, size < fmt.smallest_normal],
        [KINDS.index(kind) for kind in ("nan", "infinity", "zero", "subnormal")],
        KINDS.index("normal"),
    )
    wrong = np.flatnonzero(got != expected)
    assert wrong.size == 0, f"code {codes[wrong[0]]:#x} is called {KINDS[got[wrong[0]]]}"


@pytest.mark.parametrize("name", FORMATS)
def test_encoding_the_value_of_a_code_gives_the_code_back(codec, name):
    codes = codes_of(name)
    values = decode(codes, FORMATS[name])
    numbers = ~np.isnan(values)
    got = unpacked(codec("encodeAll", name, values_text(values[numbers])), np.uint64)
    wrong = np.flatnonzero(got != codes[numbers])
    assert wrong.size == 0, f"code {codes[numbers][wrong[0]]:#x} came back as {got[wrong[0]]:#x}"


@cache
def rounding_inputs(fmt: FloatFormat) -> np.ndarray:
    """Every midpoint with both its float64 neighbours, values beyond both ends, specials, and their negatives."""
    grid = np.unique(np.abs(decode(codes_of(fmt.name), fmt)))
    grid = grid[np.isfinite(grid)]
    end = fmt.max + float(rounding.ulp(fmt.max, fmt))
    middle = (grid[:-1] + grid[1:]) / 2 if fmt.bits < 64 else np.empty(0)
    last = (fmt.max + end) / 2 if fmt.bits < 64 else np.inf
    tiny = fmt.smallest_subnormal / 2 if fmt.bits < 64 else 0.0
    special = np.array([last, end, 2 * fmt.max, tiny, tiny / 2, 5e-324, 1.7976931348623157e308, 0.0, np.inf])
    points = np.concatenate([middle, special])
    with np.errstate(over="ignore"):
        points = np.concatenate([points, np.nextafter(points, 0), np.nextafter(points, np.inf)])
    return np.concatenate([points, -points])


@pytest.mark.parametrize("saturate", [False, True], ids=["overflowing", "saturating"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", [*NAMES, "tf32", "float32"])
def test_midpoints_and_overflow_round_as_in_utils_rounding(codec, name, rule, saturate):
    fmt = FORMATS[name]
    values = rounding_inputs(fmt)
    if fmt.bits > 8 and (rule != "ties_to_even" or saturate):
        values = np.concatenate([values[::97], values[-40:]])
    options = {"rounding": rule, "saturate": saturate}
    got = unpacked(codec("encodeAll", name, values_text(values), options), np.uint64)
    with np.errstate(over="ignore"):  # x / ulp(x) overflows for x far beyond the format
        expected = encode(values, fmt, rounding=getattr(rounding, rule), saturate=saturate)
    wrong = np.flatnonzero(got != expected)
    assert wrong.size == 0, f"{values[wrong[0]]!r} became {got[wrong[0]]:#x} instead of {expected[wrong[0]]:#x}"


def test_stochastic_rounding_goes_up_with_the_probability_of_the_fraction(codec):
    # 1 + 3/4 ulp of E2M1 at 1 (spacing 1/2): up to 1.5 in 3 of 4 draws. n = 20000: five sigma is 0.0153.
    n = 20_000
    values = np.full(n, 1 + 0.75 * 0.5)
    got = unpacked(codec("encodeAll", "float4_e2m1fn", values_text(values), {"rounding": "stochastic"}), np.uint64)
    assert set(got.tolist()) == {2, 3}
    assert abs(np.mean(got == 3) - 0.75) < 5 * math.sqrt(0.75 * 0.25 / n)


@pytest.mark.parametrize("name", FORMATS)
def test_neighbours_are_the_next_values_in_order(codec, name):
    fmt, codes = FORMATS[name], codes_of(name)
    pairs = unpacked(codec("neighboursAll", name, codes_text(codes)), np.uint64).reshape(-1, 2)
    none = np.uint64(2**64 - 1)
    values = decode(codes, fmt)
    if fmt.bits > 19:
        assert_steps_of_numpy(pairs, values, fmt)
        return
    order = np.unique(values[~np.isnan(values)])  # -0 and +0 are one value
    place = np.searchsorted(order, values)
    for side, step in ((0, -1), (1, 1)):
        at = place + step
        there = ~np.isnan(values) & (at >= 0) & (at < order.size)
        assert np.array_equal(pairs[:, side] != none, there)
        assert np.array_equal(decode(pairs[there, side], fmt), order[at[there]])
    # stepping down to zero gives +0 and stepping up to it -0, where the format has both
    if fmt.has_negative_zero:
        assert pairs[1, 0] == 0
        assert pairs[fmt.sign_code + 1, 1] == fmt.sign_code


def assert_steps_of_numpy(pairs, values, fmt):
    dtype = np.dtype(fmt.name)
    inside = np.isfinite(values)
    with np.errstate(over="ignore"):
        below = np.nextafter(values[inside].astype(dtype), dtype.type(-np.inf))
        above = np.nextafter(values[inside].astype(dtype), dtype.type(np.inf))
    assert np.array_equal(decode(pairs[inside, 0], fmt), below.astype(np.float64))
    assert np.array_equal(decode(pairs[inside, 1], fmt), above.astype(np.float64))


def plain(value: float) -> str:
    text = f"{Decimal(value):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@pytest.mark.parametrize("name", FORMATS)
def test_the_exact_decimal_has_every_digit(codec, name):
    fmt, codes = FORMATS[name], codes_of(name)
    step = {16: 1, 19: 61, 32: 50, 64: 100}.get(fmt.bits, 1)
    codes = np.concatenate([codes[::step], codes[-24:]])
    values = decode(codes, fmt)
    codes, values = codes[np.isfinite(values)], values[np.isfinite(values)]
    got = codec("decimals", name, codes_text(codes))
    for code, value, text in zip(codes, values, got, strict=True):
        assert text == plain(value), f"code {code:#x}"


def test_the_longest_decimal_of_float64_has_767_significant_digits(codec):
    [text] = codec("decimals", "float64", codes_text([2**52 - 1]))  # the largest subnormal
    assert len(text.removeprefix("0.").lstrip("0")) == 767
    assert Fraction(text) == Fraction(2**52 - 1, 2**1074)


@pytest.mark.parametrize("name", FORMATS)
def test_the_shortest_decimal_reads_back_to_its_code(codec, name):
    fmt, codes = FORMATS[name], codes_of(name)
    step = {16: 7, 19: 601, 32: 101, 64: 199}.get(fmt.bits, 1)
    values = decode(codes, fmt)
    codes = codes[np.isfinite(values)][::step]
    texts = codec("shortest", name, codes_text(codes))
    assert codec("encodeTexts", name, texts) == [str(code) for code in codes]
    if name in ("float16", "float32", "float64"):  # NumPy's shortest text, with the same digits
        dtype = np.dtype(name).type
        for text, value in zip(texts, decode(codes, fmt), strict=True):
            assert Decimal(text) == Decimal(np.format_float_scientific(dtype(value), unique=True)), text


def nearest_code(exact: Fraction, fmt: FloatFormat) -> int:
    """Round with ties to even by searching the sorted list of all values: no arithmetic in common with the codec."""
    values = listed(fmt.name)
    size = abs(exact)
    sign = fmt.sign_code if exact < 0 else 0
    end = 2 * values[-1] - values[-2]
    at = bisect_left(values, size)
    if at == len(values):
        half = (values[-1] + end) / 2
        if size < half or (size == half and fmt.max_code % 2 == 0) or not fmt.has_nan:
            return sign | fmt.max_code
        return sign | fmt.inf_code if fmt.has_inf else fmt.nan_code
    if at == 0:
        return sign
    below, above = size - values[at - 1], values[at] - size
    up = above < below or (above == below and at % 2 == 0)
    return sign | (at if up else at - 1)


@cache
def listed(name: str) -> list[Fraction]:
    return finite_values(FORMATS[name])


def random_texts(fmt: FloatFormat, *, count: int) -> list[str]:
    """Decimals over the whole range and a little beyond, and near misses of midpoints with up to 40 digits."""
    pick = random.Random(fmt.bits)
    low, high = math.log10(fmt.smallest_subnormal) - 1, math.log10(fmt.max) + 1
    texts = []
    for _ in range(count):
        digits = pick.randrange(1, 10 ** pick.choice([1, 3, 17, 30]))
        exponent = round(pick.uniform(low, high)) - len(str(digits)) + 1
        texts.append(f"{pick.choice(['', '-'])}{digits}e{exponent}")
    return texts


@pytest.mark.parametrize("name", ["float16", "float8_e5m2", "float8_e4m3fn", "float6_e2m3fn", "float4_e2m1fn"])
def test_text_is_rounded_once_from_its_exact_value(codec, name):
    fmt = FORMATS[name]
    values = listed(name)
    texts = random_texts(fmt, count=4000)
    tiny = Fraction(1, 10**40)
    for a, b in list(pairwise(values))[:: max(1, len(values) // 1500)]:
        middle = (a + b) / 2  # its decimal, and one that lies 1e-40 to either side: a double cannot tell them apart
        texts += [decimal_text(middle), decimal_text(middle + tiny), decimal_text(middle - tiny)]
    expected = [str(nearest_code(Fraction(text), fmt)) for text in texts]
    got = codec("encodeTexts", name, texts)
    wrong = [(text, g, e) for text, g, e in zip(texts, got, expected, strict=True) if g != e]
    assert not wrong, wrong[0]


def decimal_text(value: Fraction) -> str:
    """The exact decimal of a fraction whose denominator has only the factors 2 and 5."""
    places = max(value.denominator.bit_length(), 41)
    digits = value * 10**places
    assert digits.denominator == 1
    return f"{digits.numerator}e-{places}"


def test_decimal_text_becomes_the_float64_of_python(codec):
    texts = random_texts(FLOAT64, count=10_000)
    expected = np.array([float(text) for text in texts]).view(np.uint64)
    assert codec("encodeTexts", "float64", texts) == [str(code) for code in expected]


def test_decimal_text_becomes_float32_without_passing_through_float64(codec):
    # 1 + 2**-24 is halfway between two float32; 1e-30 more must go up, though float64 cannot hold that
    middle = Fraction(1) + Fraction(1, 2**24)
    texts = [
        decimal_text(middle + Fraction(1, 10**30)),
        decimal_text(middle),
        decimal_text(middle - Fraction(1, 10**30)),
    ]
    assert codec("encodeTexts", "float32", texts) == [str(0x3F800001), str(0x3F800000), str(0x3F800000)]
    texts = random_texts(FLOAT32, count=10_000)
    for text, got in zip(texts, codec("encodeTexts", "float32", texts), strict=True):
        exact = Fraction(text)
        value = float(decode(int(got), FLOAT32))
        if math.isinf(value):
            assert abs(exact) >= Fraction(FLOAT32.max) + Fraction(2) ** (FLOAT32.emax - 24), text
            continue
        error = abs(Fraction(value) - exact)
        with np.errstate(over="ignore"):
            others = [np.nextafter(np.float32(value), np.float32(side)) for side in (-np.inf, np.inf)]
        errors = [abs(Fraction(float(other)) - exact) for other in others if np.isfinite(other)]
        assert error < min(errors) or (error == min(errors) and int(got) % 2 == 0), text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", 1.5),
        (" 0x1.8p-3 ", 0.1875),
        ("0x3c00", 15360.0),
        ("-0X.8P1", -1.0),
        ("0b1.01", 1.25),
        ("1/3", 1 / 3),
        ("2^-14", 2.0**-14),
        ("2**-14", 2.0**-14),
        ("-2^2", -4.0),
        ("2^-2^1", 0.25),
        ("1 + 2^-10", 1 + 2.0**-10),
        ("(1+3/4)*2^3", 14.0),
        ("5.96 × 10⁻⁸", 5.96e-8),
        ("−1", -1.0),
        ("6.02e23", 6.02e23),
        ("1_000", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("inf", np.inf),
        ("-Infinity", -np.inf),
        ("∞", np.inf),
        ("-∞", -np.inf),
        ("0", 0.0),
        ("-0", -0.0),
        ("-0.0e9", -0.0),
        ("--1", 1.0),
        ("1-1", 0.0),
        ("2*-3", -6.0),
        ("1e400", np.inf),
        ("-1e-400", -0.0),
        ("NaN", np.nan),
    ],
)
def test_what_a_reader_may_type_is_read_exactly(codec, text, value):
    [code] = codec("encodeTexts", "float64", [text])
    assert int(code) == int(encode(value, FLOAT64))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("float16", "", "Type a number first"),
        ("float16", "hello", "“hello” is not a number"),
        ("float16", "1,5", "decimal point instead of the comma"),
        ("float16", "131,072", "Leave out commas between thousands: 131072"),
        ("float16", "-1,234,567.8", "between thousands: -1234567.8"),
        ("float16", "1,23,456", "decimal point instead of the comma"),
        ("float16", "1 2", "is not a number"),
        ("float16", "1.2.3", "is not a number"),
        ("float16", "0x", "is not a number"),
        ("float16", "1e", "is not a number"),
        ("float16", "1+", "is not a number"),
        ("float16", "(1", "bracket"),
        ("float16", "1/0", "division by zero"),
        ("float16", "0^-1", "division by zero"),
        ("float16", "2^0.5", "whole number"),
        ("float16", "1e999999999", "Exponents up to 5000"),
        ("float16", "2^99999999999999999999", "Exponents up to 5000"),
        ("float16", "9^9^9^9", "Exponents up to 5000"),
        ("float16", "9" * 3000, "at most 2000"),
        ("float4_e2m1fn", "nan", "E2M1 has no NaN"),
    ],
)
def test_junk_is_refused_with_a_sentence(codec, name, text, says):
    assert says in codec("refusal", name, text)


def test_a_tie_and_an_ordinary_case_by_hand(codec):
    # 2049 lies between 2048 and 2050 in float16; 0.1 is 0x2E66 (IEEE 754-2019 binary16, by hand in numbers/bits)
    assert codec("encodeTexts", "float16", ["2049", "2051", "0.1", "65519.99", "65520"]) == [
        str(code) for code in (0x6800, 0x6802, 0x2E66, 0x7BFF, 0x7C00)
    ]
    assert codec("encodeTexts", "float8_e4m3fn", ["0.3", "448", "464", "464.01"]) == [
        str(code) for code in (0x2A, 0x7E, 0x7E, 0x7F)
    ]
