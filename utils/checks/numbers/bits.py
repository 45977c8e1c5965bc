"""Checks of `numbers/bits`."""

import math

from utils.checks.numbers.bits_questions import (
    ALL_16,
    CODE_1_5625,
    DECODE_FNUZ,
    FLIPS_OF_6,
    LARGEST_E4M3FNUZ,
    NEAREST_0_3,
    SMALLEST,
)
from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    as_code,
    correct,
    exercise,
    foreseen,
    not_yet,
    paper,
    paper_table,
    same_number,
)
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E4M3FNUZ, FLOAT16, decode


@exercise(asks=CODE_1_5625)
def check_code_1_5625(answer) -> Outcome:
    """The float16 code of 1.5625: a BitFlip widget in float16, or a code."""
    if hasattr(answer, "code") and answer.format != "float16":
        return not_yet(f"The widget shows {answer.format}; switch it back to float16.")
    code = as_code(answer)
    if (message := foreseen(CODE_1_5625, code)) is not None:
        return message
    if code < 0:
        return not_yet("A code is a pattern of bits, so it is never negative; the sign of the number is one of them.")
    if code >= 2**16:
        return not_yet(f"A float16 code has 16 bits; {code:#x} needs {code.bit_length()}.")
    value = float(decode(code, FLOAT16))
    if 1 <= value < 2:
        return not_yet(f"{value} has the right exponent. 0.5625 = 1/2 + 1/16: which two fraction bits are worth that?")
    if math.isnan(value) or math.isinf(value):
        return not_yet(f"That code means {value}: all exponent bits are 1. For 2**0 the exponent field holds 15.")
    if abs(value) < FLOAT16.smallest_normal:
        return not_yet(f"Read as 16 bits, all exponent bits of that are 0, so there is no hidden 1. {ALL_16}")
    return not_yet(f"As a float16 code that is {value}. {ALL_16}")


check_largest_e4m3fnuz = paper(LARGEST_E4M3FNUZ)
check_smallest_subnormals = paper_table(
    SMALLEST,
    says="All three are 2**(1 - bias) * 2**-mantissa_bits: one step of the finest grid that the format has.",
)
check_flips_of_6 = paper_table(
    FLIPS_OF_6,
    says="Flipping a fraction bit from 1 to 0 subtracts what the bit is worth, and from 0 to 1 adds it. Flipping an "
    "exponent bit multiplies or divides by a factor.",
    name="bit {}",
)


@exercise(asks=DECODE_FNUZ, takes="decode_fnuz", seconds=5)
def check_decode_e4m3fnuz(answer) -> Outcome:
    """A function from a float8_e4m3fnuz code (int) to its value (float), tried on all 256 codes."""
    named = [
        (0x44, "exponent field 8, fraction 4 of 8"),
        (0xC4, "the same with a minus"),
        (0x00, "zero: exponent and fraction are 0"),
        (0x01, "the smallest subnormal: with exponent field 0 there is no hidden 1, and the power is 2**-7"),
        (0x07, "the largest subnormal, one step below 2**-7"),
        (0x80, "there is no -0: its code is the NaN"),
        (0x78, "the highest exponent field, 15, holds numbers"),
        (0x7F, "no NaN and no infinity: the largest number"),
        (0xFF, "the smallest number"),
    ]
    if (returned := answer(named[0][0])) is None or returned is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the value.")
    for code, what in [*named, *((code, "") for code in range(2**8))]:
        got, want = float(answer(code)), float(decode(code, FLOAT8_E4M3FNUZ))
        if not same_number(got, want):
            return not_yet(f"Code 0x{code:02X} gives {got!r}, but it is {want!r}{what and f' ({what})'}.")
    return correct("All 256 codes agree: one zero, one NaN, no infinity, and numbers up to ±240.")


@exercise(asks=NEAREST_0_3)
def check_encode_0_3_e4m3(answer) -> Outcome:
    """The float8_e4m3fn code nearest to 0.3."""
    code = as_code(answer)
    if (message := foreseen(NEAREST_0_3, code)) is not None:
        return message
    if not 0 <= code < 2**8:
        return not_yet(f"An E4M3 code has 8 bits; {code:#x} does not fit.")
    value = float(decode(code, FLOAT8_E4M3FN))
    return not_yet(f"0x{code:02X} decodes to {value}. Write all eight bits; start from 0.3 = 1.2 * 2**-2.")
