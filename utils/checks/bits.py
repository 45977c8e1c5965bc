"""Checks of `numbers/bits`."""

import math

import numpy as np

from utils.checks.outcome import Outcome, as_code, as_number, correct, exercise, not_yet, same_number, time_limit
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT16, FORMATS, decode


@exercise
def check_flip_to_1_5625(answer) -> Outcome:
    """The float16 code of 1.5625: a BitFlip widget in float16, or a code."""
    if hasattr(answer, "code") and answer.format != "float16":
        return not_yet(f"The widget shows {answer.format}; switch it back to float16.")
    code = as_code(answer)
    if code < 0:
        return not_yet("A code is a pattern of bits, so it is never negative; the sign of the number is one of them.")
    if code >= 2**16:
        return not_yet(f"A float16 code has 16 bits; {code:#x} needs {code.bit_length()}.")
    value = float(decode(code, FLOAT16))
    if value == 1.5625:
        return correct("0 01111 1001000000: the hidden 1, plus 1/2, plus 1/16.")
    if value == -1.5625:
        return not_yet("The magnitude is right. The leftmost bit is the sign; it should be 0.")
    if 1 <= value < 2:
        return not_yet(f"{value} has the right exponent. 0.5625 = 1/2 + 1/16: which two fraction bits are worth that?")
    if math.isnan(value) or math.isinf(value):
        return not_yet(f"That code means {value}: all exponent bits are 1. For 2**0 the exponent field holds 15.")
    if abs(value) < FLOAT16.smallest_normal:
        return not_yet("All exponent bits are 0, so there is no hidden 1. For 2**0 the exponent field holds 15.")
    if code == 0b1100100000000000 or code == 0b11001:
        return not_yet(
            "That is 1.1001 written down as it stands. The leading 1 is hidden; the exponent needs its bias."
        )
    return not_yet(f"That is {value}. First make the exponent field 15 (its value minus 15 is 0), then the fraction.")


@exercise
def check_largest_e4m3(answer) -> Outcome:
    """The largest finite value of float8_e4m3fn."""
    value = as_number(answer)
    if value == 448:
        return correct("0 1111 110 is 2**8 * 1.75 = 448; only 0 1111 111 is taken, by NaN.")
    hints = {
        480: "2**8 * 1.875 would be 0 1111 111, and E4M3 spends that one code on NaN. What is the code below it worth?",
        240: "240 would be it if the whole top exponent were reserved, as in IEEE formats. E4M3 reserves one code.",
        256: "That is 2**8 with an empty fraction. How far can the fraction still grow?",
        0x7E: "0x7E is the right code. The question asks for its value.",
        57344: "That is E5M2's largest value. E4M3 has 4 exponent and 3 fraction bits.",
        224: "Check the exponent: the field holds 15, the bias is 7, so the power is 2**8, not 2**7.",
    }
    if value in hints:
        return not_yet(hints[value])
    if value < 0:
        return not_yet("The largest value is positive: the sign bit is 0.")
    return not_yet(f"{value:g} is not it. Write down the largest code that is not NaN, then decode it.")


@exercise
def check_smallest_subnormals(answer) -> Outcome:
    """A dict from format name to its smallest positive value, for float16, bfloat16, float8_e4m3fn and float8_e5m2."""
    wanted = [fmt.name for fmt in (FLOAT16, BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2)]
    if not isinstance(answer, dict):
        return not_yet(f"Give a dict with one value for each of {', '.join(wanted)}.")
    if missing := [name for name in wanted if name not in answer]:
        return not_yet(f"No answer yet for {', '.join(missing)}.")
    for name in wanted:
        fmt, value = FORMATS[name], as_number(answer[name])
        if value == fmt.smallest_subnormal:
            continue
        if math.isclose(value, fmt.smallest_subnormal, rel_tol=5e-3):
            return not_yet(f"{name}: that is it, rounded. It is a power of two: write it as 2**-something.")
        if value == fmt.smallest_normal:
            return not_yet(
                f"{name}: that is the smallest normal value. With exponent field 0 the fraction can go lower."
            )
        if value == 2.0**-fmt.bias * (1 + 2.0**-fmt.mantissa_bits):
            return not_yet(
                f"{name}: that keeps the hidden 1 and the exponent 0 - bias. Exponent field 0 means neither."
            )
        if value == 2.0 ** (-fmt.bias - fmt.mantissa_bits):
            return not_yet(f"{name}: half of it. Subnormals use the exponent 1 - bias = {fmt.emin}, not 0 - bias.")
        if value == fmt.eps:
            return not_yet(f"{name}: that is eps, the gap above 1. The question is about the gap above 0.")
        if value <= 0:
            return not_yet(f"{name}: the smallest positive value lies above 0.")
        return not_yet(f"{name}: {value:g} is not it. The code is 0...01: a fraction of 2**-{fmt.mantissa_bits}.")
    return correct("All four are 2**(1 - bias) * 2**-mantissa_bits: one step of the finest grid that the format has.")


@exercise
def check_flips_of_6(answer) -> Outcome:
    """A dict from bit number to the value of the float16 number 6 with that bit flipped, for bits 15, 14, 10 and 9."""
    if not isinstance(answer, dict):
        return not_yet("Give a dict with the new value for each of the bits 15, 14, 10 and 9.")
    if missing := [str(bit) for bit in (15, 14, 10, 9) if bit not in answer]:
        return not_yet(f"No answer yet for bit {', '.join(missing)}.")
    code, what = (
        0x4600,
        {15: "the sign", 14: "the top exponent bit", 10: "the last exponent bit", 9: "the first fraction bit"},
    )
    for bit in (15, 14, 10, 9):
        want, got = float(decode(code ^ 1 << bit, FLOAT16)), as_number(answer[bit])
        if math.isclose(got, want, rel_tol=5e-3):
            continue
        start = f"Bit {bit} is {what[bit]}"
        if got == -want:
            return not_yet(f"{start}: the size is right, the sign is not.")
        if bit == 14 and math.isclose(got, 6 * 2.0**16, rel_tol=5e-3):
            return not_yet(
                f"{start}. It is worth a factor of 2**16, but it is 1 now: flipping it takes the factor away."
            )
        if bit == 10 and got == 12:
            return not_yet(f"{start}. It is worth a factor of 2, but it is 1 now: flipping it takes the factor away.")
        if bit == 9 and got in (9, 2):
            return not_yet(f"{start}, worth half of the binade 4 to 8. It is 1 now: flipping it takes that half away.")
        return not_yet(f"{start}. The code of 6 is 0 10001 1000000000: flip that bit in it, then read the code again.")
    return correct("A 1 that becomes 0 takes its worth away; what an exponent bit is worth is a factor.")


@exercise
def check_decode_float16(answer) -> Outcome:
    """A function from a float16 code (int) to its value (float), tried on all 65,536 codes."""
    if not callable(answer):
        return not_yet(f"The check needs the function itself, as in check_decode_float16(decode16), not {answer!r}.")
    named = [
        (0x0000, "zero: exponent and fraction are 0"),
        (0x8000, "negative zero: only the sign is 1"),
        (0x0001, "the smallest subnormal: with exponent field 0 there is no hidden 1, and the power is 2**-14"),
        (0x03FF, "the largest subnormal, one step below 2**-14"),
        (0x7C00, "infinity: exponent field 31, fraction 0"),
        (0xFC00, "minus infinity"),
        (0x7C01, "NaN: exponent field 31, fraction not 0"),
        (0x3E00, "1.5, a normal value"),
    ]
    with time_limit(5.0):
        for code, what in named:
            got, want = float(answer(code)), float(decode(code, FLOAT16))
            if not same_number(got, want):
                return not_yet(f"Code 0x{code:04X} gives {got!r}, but it is {want!r} ({what}).")
        codes = np.arange(2**16)
        for code, want in zip(codes.tolist(), decode(codes, FLOAT16).tolist(), strict=True):
            if not same_number(got := float(answer(code)), want):
                return not_yet(f"Code 0x{code:04X} gives {got!r}, but it is {want!r}.")
    return correct("All 65,536 codes agree, zeros, subnormals, infinities and NaNs included.")


@exercise
def check_encode_0_3_e4m3(answer) -> Outcome:
    """The float8_e4m3fn code nearest to 0.3."""
    code = as_code(answer)
    hints = {
        0x29: "0x29 is 0.28125: the fraction was cut off at 0.001. 1.6 eighths are nearer to 2 than to 1.",
        0x2B: "0x2B is 0.34375, one step too far.",
        0xAA: "The magnitude is right, but the sign bit is 1.",
        0x52: "The fields are shifted by one bit: sign 0, then four exponent bits, then three fraction bits.",
        0x34: "0.3 = 1.2 * 2**-2, and -2 + 7 = 5 goes into four bits (0101), followed by three fraction bits.",
        0x6A: "That bias is 15. E4M3 has four exponent bits, and its bias is 7.",
        0x22: "The exponent is one too small: 0.3 = 1.2 * 2**-2, so the field holds -2 + 7 = 5.",
    }
    if code == 0x2A:
        return correct("0 0101 010 is 2**-2 * 1.25 = 0.3125, 4 % away from 0.3: no E4M3 value is nearer.")
    if code in hints:
        return not_yet(hints[code])
    if not 0 <= code < 2**8:
        return not_yet(f"An E4M3 code has 8 bits; {code:#x} does not fit.")
    return not_yet(f"0x{code:02X} decodes to {float(decode(code, FLOAT8_E4M3FN))}. Start from 0.3 = 1.2 * 2**-2.")
