"""The checks of numbers/bits: the right answer, and for each foreseen wrong one the hint that names the mistake."""

import ast
import math

import numpy as np
import pytest

import book_rules as rules
from tests.book_questions import right_option
from utils.checks.numbers import bits
from utils.checks.numbers import bits_questions as questions
from utils.checks.outcome import NOT_YET
from utils.formats import (
    BFLOAT16,
    FLOAT6_E3M2FN,
    FLOAT8_E4M3FN,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2,
    FLOAT8_E5M2FNUZ,
    FLOAT16,
    decode,
    encode,
)
from utils.widgets.bit_flip import BitFlip

THREE = (FLOAT8_E4M3FNUZ, FLOAT8_E5M2FNUZ, FLOAT6_E3M2FN)


@pytest.mark.parametrize("answer", [0x3E40, "0x3E40", "0b0011111001000000", "0 01111 1001000000"])
def test_code_1_5625_takes_the_code_in_every_notation(answer):
    assert bits.check_code_1_5625(answer)


def test_code_1_5625_takes_a_widget_and_asks_for_its_format():
    assert bits.check_code_1_5625(BitFlip(format="float16", code=0x3E40))
    assert "float16" in bits.check_code_1_5625(BitFlip(format="bfloat16", code=0x3FC8)).message


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (0xBE40, "sign"),
        (0x3E00, "1/2 + 1/16"),
        (0x7E40, "all exponent bits are 1"),
        (0x0240, "no hidden 1"),
        (0b1100100000000000, "bias"),
        (0x4240, "exponent field, which is 15"),
        ("0 01111 10010000", "without 2 zeros at the end: 14 bits"),
        ("0x3E4", "without 4 zeros at the end: 12 bits"),
        ("0 01111 1001", "without 6 zeros at the end: 10 bits"),
        ("0 01111 10010000000", "one zero too many at the end: 17 bits"),
        ("1 01111 0110000000", "leftmost bit is the sign"),
        ("0 1111 1000", "Write all 16 bits"),
        (0x13E40, "16 bits"),
        (-1, "never negative"),
    ],
)
def test_code_1_5625_names_the_misconception(answer, hint):
    outcome = bits.check_code_1_5625(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (480, "bias is 8"),
        (448, "largest value of E4M3"),
        (224, "no infinity"),
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


def question_code(instead=None):
    """The function of the question about lines, with its wrong line exchanged."""
    question, lines = questions.WRONG_LINE, []
    for option in question.options:
        line = option.text.removeprefix("```\n").removesuffix("\n```")
        lines.append(instead if option.right and instead else line)
    scope = {}
    exec("\n".join(lines), scope)
    return scope["to_bfloat16"]


def test_the_wrong_line_fails_at_half_of_the_ties_and_mended_it_does_not():
    wrong = question_code()
    right_line = right_option(questions.WRONG_LINE).says.split("`")[-2]
    mended = question_code(f"    {right_line}")
    tops = [*range(0, 0x7F80, 37), 0x7F7F, 0x7F80, *range(0x8000, 0xFF80, 41)]
    misses = 0
    for top in tops:
        rests = (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF) if top & 0x7FFF < 0x7F80 else (0,)
        words = np.array([top << 16 | rest for rest in rests], dtype=np.uint32)
        want = encode(words.view(np.float32), BFLOAT16).tolist()
        assert [mended(word) for word in words.tolist()] == want
        got = [wrong(word) for word in words.tolist()]
        faults = [rest for rest, a, b in zip(rests, got, want, strict=True) if a != b]
        assert faults in ([], [0x8000])
        misses += len(faults)
    assert 0.4 < misses / len(tops) < 0.6
    for word in (0x7F800001, 0xFF800001, 0x7FC00000, 0x7FFFFFFF):
        assert np.isnan(decode(wrong(word), BFLOAT16))


def of_the_page(name):
    """A function that the chapter defines, alone with `math`."""
    sources = [cell.source for cell in rules.read_page(rules.BOOK / "numbers/bits.ipynb") if cell.kind == "code"]
    source = next(source for source in sources if f"def {name}(" in source)
    (made,) = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    scope = {"math": math}
    exec(ast.unparse(made), scope)
    return scope[name]


@pytest.mark.parametrize(
    ("fmt", "layout"),
    [(FLOAT16, (5, 10, 15)), (FLOAT8_E5M2, (5, 2, 15)), (FLOAT8_E4M3FN, (4, 3, 7, False))],
    ids=str,
)
def test_the_decoder_of_the_page_has_the_cases_that_others_forget(fmt, layout):
    codes = np.arange(2**fmt.bits)
    got = [of_the_page("decode")(code, *layout) for code in (0, 1, 2**fmt.bits - 1)]
    assert got[:2] == [0.0, fmt.smallest_subnormal]
    assert math.isnan(got[2])
    decoder = of_the_page("decode")
    np.testing.assert_array_equal([decoder(code, *layout) for code in codes.tolist()], decode(codes, fmt))


def test_the_encoder_of_the_page_is_right_at_every_tie():
    numbers = decode(np.arange(0x7C00), FLOAT16)
    ties = np.append((numbers[1:] + numbers[:-1]) / 2, 65520.0)
    encoder = of_the_page("encode")
    for values in (ties, -ties, numbers):
        assert [encoder(value, 5, 10, 15) for value in values.tolist()] == encode(values, FLOAT16).tolist()


def test_smallest_subnormals_takes_numbers_and_expressions():
    assert bits.check_smallest_subnormals({fmt.name: fmt.smallest_subnormal for fmt in THREE})
    written = {"float8_e4m3fnuz": "2**-10", "float8_e5m2fnuz": "2^-17", "float6_e3m2fn": "1/16"}
    assert bits.check_smallest_subnormals(written)


@pytest.mark.parametrize("fmt", THREE, ids=str)
@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda f: f.smallest_normal, "smallest normal"),
        (lambda f: 2.0**-f.bias * (1 + 2.0**-f.mantissa_bits), "hidden 1"),
        (lambda f: 2.0 ** (-f.bias - f.mantissa_bits), "half of it"),
        (lambda f: f.eps, lambda f: "smallest normal" if f.eps == f.smallest_normal else "eps"),
        (lambda f: 0.0, "above 0"),
        (lambda f: 3 * f.smallest_subnormal, "0...01"),
        (lambda f: 1.0004 * f.smallest_subnormal, "not exact"),
    ],
)
def test_smallest_subnormals_names_the_format_and_the_misconception(fmt, wrong, hint):
    answer = {f.name: f.smallest_subnormal for f in THREE} | {fmt.name: wrong(fmt)}
    outcome = bits.check_smallest_subnormals(answer)
    assert outcome.status == NOT_YET
    assert fmt.name in outcome.message
    assert (hint(fmt) if callable(hint) else hint) in outcome.message


def test_the_smallest_value_of_a_format_with_another_bias_is_named():
    right = {fmt.name: fmt.smallest_subnormal for fmt in THREE}
    pairs = ((FLOAT8_E4M3FNUZ, FLOAT8_E4M3FN, "E4M3"), (FLOAT8_E5M2FNUZ, FLOAT8_E5M2, "E5M2"))
    for fmt, other, name in pairs:
        message = bits.check_smallest_subnormals(right | {fmt.name: other.smallest_subnormal}).message
        assert f"{name}, w" in message
        assert f"is {other.bias}" in message
        assert f"is {fmt.bias}" in message


def test_what_the_table_of_the_page_says_of_other_formats_is_not_the_answer():
    for copied in ("1.4e-45", "9.2e-41", "6e-8", "1.5e-5", "0.00195", "2^-9", "2^-24"):
        for fmt in THREE:
            answer = {f.name: f.smallest_subnormal for f in THREE} | {fmt.name: copied}
            assert bits.check_smallest_subnormals(answer).status == NOT_YET


FLIPS = {15: -6, 14: "6 * 2**-16", 10: 3, 8: 7}


def test_flips_of_6_takes_the_four_values_and_tells_of_a_rounded_one():
    assert bits.check_flips_of_6(FLIPS)
    assert bits.check_flips_of_6(FLIPS | {14: "9.155e-5"})  # as print shows it
    assert "more digits" in bits.check_flips_of_6(FLIPS | {14: 9.2e-5}).message
    assert bits.check_flips_of_6(FLIPS | {14: 9.1e-5}).status == NOT_YET


@pytest.mark.parametrize(
    ("bit", "value", "hint"),
    [
        (15, 6, "the sign is not"),
        (14, "6 * 2**16", "takes the factor away"),
        (10, 12, "takes the factor away"),
        (8, 5, "a quarter of the binade"),
        (14, 1, "read the code again"),
    ],
)
def test_flips_of_6_names_the_bit_and_the_misconception(bit, value, hint):
    outcome = bits.check_flips_of_6(FLIPS | {bit: value})
    assert outcome.status == NOT_YET
    assert f"Bit {bit}" in outcome.message
    assert hint in outcome.message


VALUES = decode(np.arange(2**16), FLOAT16).tolist()


def e4m3fnuz(code):
    return float(decode(code, FLOAT8_E4M3FNUZ))


def of_the_page_with_bias_8(code, ieee=False):
    return of_the_page("decode")(code, 4, 3, 8, ieee)


def without_cases(code):
    sign = -1 if code >> 7 else 1
    return sign * 2.0 ** ((code >> 3 & 15) - 8) * (1 + (code & 7) / 8)


@pytest.mark.parametrize(
    ("decoder", "hint"),
    [
        (of_the_page_with_bias_8, "0x80"),  # copied from the page
        (lambda code: of_the_page_with_bias_8(code, ieee=True), "0x80"),
        (lambda code: math.nan if code == 0x80 else of_the_page_with_bias_8(code), "0x7F"),
        (lambda code: math.nan if code == 0x80 else of_the_page_with_bias_8(code, ieee=True), "highest exponent"),
        (lambda code: of_the_page("decode")(code, 4, 3, 7, False), "exponent field 8"),
        (without_cases, "zero"),
        (lambda code: 0.0 if code & 0x7F == 0 else e4m3fnuz(code), "no -0"),
        (lambda code: e4m3fnuz(code) / (1 if code & 0x78 else 2), "smallest subnormal"),
        (lambda code: abs(e4m3fnuz(code)), "minus"),
        (lambda code: e4m3fnuz(code) if code != 0x12 else 1.0, "0x12"),
        (lambda code: [][0], "IndexError"),
    ],
    ids=["page", "IEEE", "E4M3 end", "IEEE end", "bias 7", "no cases", "-0", "subnormals", "sign", "one", "raises"],
)
def test_decode_e4m3fnuz_names_the_first_wrong_code(decoder, hint):
    outcome = bits.check_decode_e4m3fnuz(decoder)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_decode_e4m3fnuz_takes_a_right_decoder():
    assert bits.check_decode_e4m3fnuz(e4m3fnuz)
    assert bits.check_decode_e4m3fnuz(
        lambda code: math.nan if code == 0x80 else (-1) ** (code >> 7) * of_the_page("decode")(code & 0x7F, 5, 3, 8)
    )


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
        ("0 0101 01", "without one zero at the end: 7 bits"),
        ("0 101 01", "without one zero"),  # the same number
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
