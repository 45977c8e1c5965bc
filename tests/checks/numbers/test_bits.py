"""The checks of numbers/bits: the right answer, and for each foreseen wrong one the hint that names the mistake."""

import math

import numpy as np
import pytest

from tests.book_questions import right_option
from utils.checks.numbers import bits
from utils.checks.numbers import bits_questions as questions
from utils.checks.outcome import NOT_YET
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E4M3FNUZ, FLOAT8_E5M2, FLOAT16, decode, encode
from utils.widgets.bit_flip import BitFlip

FOUR = (FLOAT16, BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2)


@pytest.mark.parametrize("answer", [0x3E40, "0x3E40", "0b0011111001000000", "0 01111 1001000000"])
def test_flip_to_1_5625_takes_the_code_in_every_notation(answer):
    assert bits.check_flip_to_1_5625(answer)


def test_flip_to_1_5625_takes_a_widget_and_asks_for_its_format():
    assert bits.check_flip_to_1_5625(BitFlip(format="float16", code=0x3E40))
    assert "float16" in bits.check_flip_to_1_5625(BitFlip(format="bfloat16", code=0x3FC8)).message


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (0xBE40, "sign"),
        (0x3E00, "1/2 + 1/16"),
        (0x7E40, "all exponent bits are 1"),
        (0x0240, "no hidden 1"),
        (0b1100100000000000, "bias"),
        (0x4240, "exponent field 15"),
        (0x13E40, "16 bits"),
        (-1, "never negative"),
    ],
)
def test_flip_to_1_5625_names_the_misconception(answer, hint):
    outcome = bits.check_flip_to_1_5625(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (480, "bias is 8"),
        (448, "largest value of E4M3"),
        (224, "only NaN"),
        (120, "reserved"),
        (128, "fraction"),
        (256, "too far"),
        (0x7F, "value"),
        (-240, "sign"),
        (7, "largest code"),
    ],
)
def test_largest_e4m3fnuz_names_the_misconception(answer, hint):
    outcome = bits.check_largest_e4m3fnuz(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_largest_e4m3fnuz_is_that_of_the_format():
    assert bits.check_largest_e4m3fnuz(FLOAT8_E4M3FNUZ.max)


def encoder(instead=None):
    """The function of the question about lines, with its wrong line exchanged."""
    question, lines = questions.WRONG_LINE, []
    for option in question.options:
        line = option.text.removeprefix("```\n").removesuffix("\n```")
        lines.append(instead if option.right and instead else line)
    scope = {"math": math}
    exec("\n".join(lines), scope)
    return scope["encode16"]


def test_the_wrong_line_fails_at_ties_alone_and_mended_it_does_not():
    numbers = decode(np.arange(0x7C00), FLOAT16)
    ties = (numbers[1:] + numbers[:-1]) / 2
    above = ties[1:]  # just below the first tie, 2**-25, the addition of 0.5 rounds up by itself
    beside = np.concatenate([np.nextafter(above, 0), np.nextafter(above, 1e9), [65519.9, 65520.0, 1e9]])
    mended = encoder("    steps = round(size / 2.0 ** (e - 10))")
    for values in (numbers, -numbers, beside, -beside):
        want = encode(values, FLOAT16).tolist()
        assert [encoder()(value) for value in values.tolist()] == want
        assert [mended(value) for value in values.tolist()] == want
    want = encode(ties, FLOAT16).tolist()
    assert [mended(value) for value in ties.tolist()] == want
    assert np.mean([encoder()(value) != code for value, code in zip(ties.tolist(), want, strict=True)]) > 0.4


def test_smallest_subnormals_takes_numbers_and_expressions():
    assert bits.check_smallest_subnormals({fmt.name: fmt.smallest_subnormal for fmt in FOUR})
    written = {"float16": "2**-24", "bfloat16": "2**-133", "float8_e4m3fn": "2^-9", "float8_e5m2": "1/65536"}
    assert bits.check_smallest_subnormals(written)


@pytest.mark.parametrize("fmt", FOUR, ids=str)
@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda f: f.smallest_normal, "smallest normal"),
        (lambda f: 2.0**-f.bias * (1 + 2.0**-f.mantissa_bits), "hidden 1"),
        (lambda f: 2.0 ** (-f.bias - f.mantissa_bits), "half of it"),
        (lambda f: f.eps, "eps"),
        (lambda f: 0.0, "above 0"),
        (lambda f: 3 * f.smallest_subnormal, "0...01"),
        (lambda f: 1.0004 * f.smallest_subnormal, "rounded"),
    ],
)
def test_smallest_subnormals_names_the_format_and_the_misconception(fmt, wrong, hint):
    answer = {f.name: f.smallest_subnormal for f in FOUR} | {fmt.name: wrong(fmt)}
    outcome = bits.check_smallest_subnormals(answer)
    assert outcome.status == NOT_YET
    assert fmt.name in outcome.message
    assert hint in outcome.message


FLIPS = {15: -6, 14: "6 * 2**-16", 10: 3, 9: 4}


def test_flips_of_6_takes_the_four_values_and_a_rounded_one():
    assert bits.check_flips_of_6(FLIPS)
    assert bits.check_flips_of_6(FLIPS | {14: 9.16e-5})


@pytest.mark.parametrize(
    ("bit", "value", "hint"),
    [
        (15, 6, "the sign is not"),
        (14, "6 * 2**16", "takes the factor away"),
        (10, 12, "takes the factor away"),
        (9, 2, "half of the binade"),
        (14, 1, "read the code again"),
    ],
)
def test_flips_of_6_names_the_bit_and_the_misconception(bit, value, hint):
    outcome = bits.check_flips_of_6(FLIPS | {bit: value})
    assert outcome.status == NOT_YET
    assert f"Bit {bit}" in outcome.message
    assert hint in outcome.message


VALUES = decode(np.arange(2**16), FLOAT16).tolist()


def right(code):
    return VALUES[code]  # decoded at once: 65,536 calls of `decode` take longer than a check may on a busy machine


def without_cases(code):
    sign = -1 if code >> 15 else 1
    return sign * 2.0 ** ((code >> 10 & 31) - 15) * (1 + (code & 1023) / 1024)


@pytest.mark.parametrize(
    ("decoder", "hint"),
    [
        (without_cases, "zero"),
        (lambda code: 0.0 if code & 0x7FFF == 0 else right(code), "negative zero"),
        (lambda code: right(code) if code & 0x7C00 or code & 0x7FFF == 0 else 2 * right(code), "no hidden 1"),
        (lambda code: math.inf if code & 0x7C00 == 0x7C00 else right(code), "minus infinity"),
        (lambda code: right(code) if code != 0x1234 else 1.0, "0x1234"),
        (lambda code: [][0], "IndexError"),
    ],
    ids=["bug of the web", "-0", "subnormals", "sign of infinity", "one code", "raises"],
)
def test_decode_float16_names_the_first_wrong_code(decoder, hint):
    outcome = bits.check_decode_float16(decoder)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_decode_float16_takes_a_right_decoder():
    assert bits.check_decode_float16(right)


@pytest.mark.parametrize("answer", [0x2A, "0x2a", "0b00101010", "0 0101 010"])
def test_encode_0_3_takes_the_code_in_every_notation(answer):
    assert bits.check_encode_0_3_e4m3(answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (0x29, "cut off"),
        (0x2B, "too far"),
        (0xAA, "sign"),
        (0x52, "shifted"),
        (0x6A, "7"),
        (0x22, "too small"),
        (0x12A, "8 bits"),
        (0x30, "0.5"),
        (0.3, "not a code"),
    ],
)
def test_encode_0_3_names_the_misconception(answer, hint):
    outcome = bits.check_encode_0_3_e4m3(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_the_predictions_of_the_chapter_are_true():
    values = np.array(VALUES)
    positive = values[(values > 0) & np.isfinite(values)]
    assert right_option(questions.SHARE_BELOW_ONE).text == "about a half"
    assert 0.45 < np.mean(positive < 1) < 0.55
    assert int(right_option(questions.NAN_CODES).text) == np.isnan(values).sum()


@pytest.mark.parametrize(
    ("code", "value"),
    [("0xBE40", -1.5625), ("0x3E00", 1.5), ("0x3E04", 1.5 + 1 / 256), ("0x3F20", 1 + 1 / 2 + 1 / 4 + 1 / 32)],
)
def test_the_wrong_codes_are_what_their_hints_say(code, value):
    assert code in questions.CODE_1_5625.wrong
    assert VALUES[int(code, 16)] == value
