"""What `numbers/bits` asks: its predictions, and the answers that people really give to its exercises."""

from utils.checks.questions import Choice, Number, Option, Task, number, wrong_line
from utils.formats import FLOAT6_E3M2FN, FLOAT8_E4M3FNUZ, FLOAT8_E5M2FNUZ, FloatFormat

FLIPPED_ANSWERS = Choice(
    "numbers/bits/flipped-answers",
    "With PyTorch on the CPU that made this page, what happens to the answers of the network?",
    (
        Option(
            "They stay as they were: one weight among so many cannot matter.",
            "That holds for most flips, as the next output shows. But a single huge number can drown all the others.",
        ),
        Option(
            "Some change, and most stay as they were.",
            "That would happen if the layer norm after this layer followed its formula, as the live experiment shows."
            " PyTorch's routine on this CPU goes another way: both scores of every review are NaN.",
        ),
        Option(
            "Every review gets the same answer, as the huge number drowns all others.",
            "It drowns the others, but only in some words of each review. And on this CPU a later step turns"
            " those words into NaN, which spreads to the rest: no review gets an answer.",
        ),
        Option(
            "There are none: both scores of every review are NaN.",
            "The weight is finite, and still no score is. On this CPU some step in between turns a huge number"
            " into NaN; the live experiment finds it, and what the formula of that step would have given.",
            right=True,
        ),
    ),
    predict=True,
)
SHARE_BELOW_ONE = Choice(
    "numbers/bits/share-below-one",
    "What share of the positive float16 numbers is smaller than 1?",
    (
        Option("one in 65,504", "That would be so if the numbers were equally spaced. They crowd towards zero."),
        Option("about a quarter", "More than that: of the 31 exponents in use, about half mean powers below 2**0."),
        Option("about a half", "Each exponent has 1024 numbers, and half of the exponents lie below 2**0.", right=True),
        Option("nearly all", "About as many powers of two lie above 1 as below it, each with the same 1024 numbers."),
    ),
    predict=True,
)
NAN_CODES = Choice(
    "numbers/bits/nan-codes",
    "How many different float16 codes mean NaN?",
    (
        Option("one", "E4M3 has one for each sign. Float16 reserves a whole value of the exponent field."),
        Option("two", "Two is the number of infinities, one for each sign. NaN may have any fraction that is not 0."),
        Option("1023", "That counts the fractions that are not 0. Each comes with either sign."),
        Option("2046", "1023 fractions that are not 0, with either sign: 3 % of all codes.", right=True),
    ),
    predict=True,
)


def _zeros_off(code: int, fmt: str, bits: int, missing: int, extra: int) -> dict[str, str]:
    """Return the hint to a code that was written with up to so many zeros too few, or too many, at its end."""
    hints = {}
    for off in (*range(-missing, 0), *range(1, extra + 1)):
        zeros = "one zero" if abs(off) == 1 else f"{abs(off)} zeros"
        slip = f"with {zeros} too many at the end" if off > 0 else f"without {zeros} at the end"
        shifted = code << off if off > 0 else code >> -off
        hints[f"0x{shifted:X}"] = f"That is the right code {slip}: {bits + off} bits, but {fmt} code has {bits}."
    return hints


ALL_16 = "Write all 16 bits: the sign, five for the exponent field, which is 15, and ten for the fraction."
CODE_1_5625 = Number(
    "numbers/bits/code-1-5625",
    text="The float16 code of 1.5625 (write it like `0x1234` or `0 00100 1000110100`):",
    answer="0x3E40",
    says="0 01111 1001000000: the hidden 1, plus 1/2, plus 1/16.",
    wrong={
        "0xBE40": "The magnitude is right. The leftmost bit is the sign; it should be 0.",
        **_zeros_off(0x3E40, "a float16", 16, missing=6, extra=2),
        "0x3E00": "1.5 has the right exponent. 0.5625 = 1/2 + 1/16: which two fraction bits are worth that?",
        "0x3E04": "The fourth fraction bit from the left is worth 1/16: 1/2, 1/4, 1/8, 1/16. You set the eighth.",
        "0x3F20": "That stores the leading 1 as well, as the first fraction bit. It is hidden: only 1001 is stored.",
        "0x7E40": "That code means NaN: all exponent bits are 1. For 2**0 the exponent field holds 15.",
        "0x0240": "All exponent bits are 0, so there is no hidden 1. For 2**0 the exponent field holds 15.",
        "0xC800": "That is 1.1001, which is 1.5625 in binary. The leading 1 is hidden; the exponent needs its bias.",
        "0b11001": "Those are the binary digits of 1.5625. A code has three fields: the exponent needs its bias, 15.",
        "1.5625": "That is the value. The question asks for its sixteen bits.",
        "0x3C09": "The fraction is counted from its left end: 1001 comes first, then six zeros.",
    },
    within={
        "0x3C00 to 0x3FFF": "Sign and exponent are right. The fraction is not: 0.5625 = 1/2 + 1/16.",
        "0xBC00 to 0xBFFF": "The exponent is right. The leftmost bit is the sign: it should be 0. Then the fraction.",
    },
    otherwise=f"That is another code. {ALL_16}",
    hints=(
        "1.5625 lies between 1 and 2, so the power is 2**0. Which exponent field means 0, with a bias of 15?",
        "The exponent field is 01111. The hidden 1 is not stored: the fraction field begins with 1001.",
        "Sign 0, exponent 01111, fraction 1001000000. In groups of four: 0011 1110 0100 0000.",
    ),
)
LARGEST_E4M3FNUZ = Number(
    "numbers/bits/largest-e4m3fnuz",
    text="The largest value of E4M3FNUZ:",
    answer="240",
    says="0 1111 111 is a number here: 2**(15 - 8) * 1.875 = 240.",
    wrong={
        "480": "Check the exponent: the field holds 15, the bias is 8, so the power is 2**7, not 2**8.",
        "448": "448 is the largest value of E4M3. FNUZ has another bias, and it keeps no code for NaN at this end.",
        "224": "That leaves the last code for NaN or infinity. Here there is no infinity, and NaN is 1 0000 000.",
        "120": "120 would be right if the whole top exponent were reserved, as in IEEE formats. Here none of it is.",
        "128": "That is 2**7 with an empty fraction. How far can the fraction still grow?",
        "256": "2**8 is one binade too far: the field ends at 15, and 15 - 8 = 7.",
        "0x7F": "0x7F is the right code. The question asks for its value.",
        "-240": "The largest value is positive: the sign bit is 0.",
    },
    otherwise="Not that. Write down the largest code that is not NaN, then decode it.",
    hints=(
        "The only NaN is 1 0000 000. Which code is the largest with sign 0?",
        "It is 0 1111 111. The exponent field is 15, the bias 8; the fraction field is 7 of 8.",
    ),
    near=0.0,  # 241 is another mistake than to have rounded
)


def _smallest(fmt: FloatFormat, fields: str, sibling: tuple[str, str] = ("", "")) -> Number:
    """Make the question; `sibling` is the value of a format with the same fields and another bias, and its hint."""
    exponent, steps = fmt.emin - fmt.mantissa_bits, 2**fmt.mantissa_bits
    foreseen = (  # where two of them are one number, the first speaks
        *([sibling] if sibling[0] else []),
        (f"2^{fmt.emin}", "That is the smallest normal value. With exponent field 0 the fraction can go lower."),
        (
            f"2^-{fmt.bias} * {steps + 1}/{steps}",
            "That keeps the hidden 1 and the exponent 0 - bias. Exponent field 0 means neither.",
        ),
        (
            f"2^{fmt.emin} * {steps + 1}/{steps}",
            "That is the second normal value: it keeps the hidden 1. Exponent field 0 has none.",
        ),
        (
            f"2^{exponent - 1}",
            f"That is half of it. Subnormals use the exponent 1 - bias = {fmt.emin}, not 0 - bias.",
        ),
        (f"2^-{fmt.mantissa_bits}", "That is eps, the gap above 1. The question is about the gap above 0."),
        (f"2^-{fmt.bias}", "That reads exponent field 0 as a power of two. It has a rule of its own: no hidden 1."),
        (f"{2.0**fmt.emin:.2g}", "That is the smallest normal value. With exponent field 0 the fraction goes lower."),
        ("0", "The smallest positive value lies above 0."),
        ("1", "1 is its code, read as a whole number. The question asks for its value."),
    )
    values = [number(text) for text, _ in foreseen]
    return Number(
        f"numbers/bits/smallest-{fmt.name.replace('_', '-')}",
        text=f"The smallest positive value of `{fmt.name}` ({fields}):",
        answer=f"2^{exponent}",
        says=f"One step of the fraction, 2**-{fmt.mantissa_bits}, at the lowest exponent, {fmt.emin}.",
        wrong={text: hint for i, (text, hint) in enumerate(foreseen) if values[i] not in values[:i]},
        otherwise=f"Not that. The code is 0...01: a fraction of 2**-{fmt.mantissa_bits}, and no hidden 1.",
        hints=(
            "Exponent field 0 and the last fraction bit: there is no hidden 1, so the significand is that bit alone.",
            f"The power is 2**(1 - {fmt.bias}), and the last of {fmt.mantissa_bits} fraction bits is worth"
            f" 2**-{fmt.mantissa_bits}.",
        ),
        near=0.03,  # 0.00098 for 2**-10
    )


SMALLEST = {
    fmt.name: _smallest(fmt, *facts)
    for fmt, *facts in (
        (
            FLOAT8_E4M3FNUZ,
            "4 exponent bits, 3 fraction bits, bias 8",
            ("2^-9", "That is the smallest value of E4M3, whose bias is 7. Here the bias is 8."),
        ),
        (
            FLOAT8_E5M2FNUZ,
            "5 exponent bits, 2 fraction bits, bias 16",
            (
                "2^-16",
                "Two slips lead there: the bias of E5M2, which is 15 (here it is 16), or a power of two for exponent"
                " field 0, which has a rule of its own: no hidden 1.",
            ),
        ),
        (FLOAT6_E3M2FN, "3 exponent bits, 2 fraction bits, bias 3"),
    )
}
READ_AGAIN = "The code of 6 is 0 10001 1000000000: flip that bit in it, then read the code again."
OPPOSITE = "The size is right, the sign is not: it has a bit of its own."
FLIPS_OF_6 = {
    15: Number(
        "numbers/bits/flip-15-of-6",
        text="6 with bit 15 flipped:",
        answer="-6",
        says="The sign bit only changes the sign.",
        wrong={"6": "The size is right, the sign is not. The sign bit is 0 now, and becomes 1."},
        otherwise=f"It is the sign. {READ_AGAIN}",
        hints=("Bit 15 is the first of the sixteen, bit 0 the last.",),
    ),
    14: Number(
        "numbers/bits/flip-14-of-6",
        text="6 with bit 14 flipped (you may write it with a power, like `5*2^7`):",
        answer="6*2^-16",
        says="The exponent field falls from 17 to 1, and the number by a factor of 2**16: 1.5 * 2**-14.",
        wrong={
            "6*2^16": "The bit is worth a factor of 2**16, but it is 1 now: flipping it takes the factor away.",
            "-6*2^-16": OPPOSITE,
            "2^-14": "Nearly: the exponent is right. The fraction stays as it was, so the significand is still 1.5.",
            "6*2^-15": "The exponent field falls by 16, from 17 to 1, not to 2.",
        },
        otherwise=f"It is the top exponent bit. {READ_AGAIN}",
        hints=("The exponent field is 17, 10001 in binary. Without its first bit it is 1.",),
        tolerance=0.001,  # 9.155e-5, as print shows it
    ),
    10: Number(
        "numbers/bits/flip-10-of-6",
        text="6 with bit 10 flipped:",
        answer="3",
        says="The exponent field falls from 17 to 16, which halves the number.",
        wrong={
            "12": "The bit is worth a factor of 2, but it is 1 now: flipping it takes the factor away.",
            "-3": OPPOSITE,
            "4": "Bit 10 lies left of the fraction, which has the bits 9 to 0. It is the last exponent bit.",
        },
        otherwise=f"It is the last exponent bit. {READ_AGAIN}",
        hints=("The exponent field is 17, 10001 in binary, and bit 10 is its last bit.",),
    ),
    8: Number(
        "numbers/bits/flip-8-of-6",
        text="6 with bit 8 flipped:",
        answer="7",
        says="The second fraction bit is worth a quarter of the binade from 4 to 8.",
        wrong={
            "5": "The bit is worth 1, a quarter of the binade from 4 to 8. But it is 0 now, so flipping it adds 1.",
            "4": "That flips the first fraction bit. Bit 8 is the second.",
            "6.5": "The bit is worth a quarter of the binade from 4 to 8, not an eighth.",
            "7.5": "The bit is worth a quarter of the binade from 4 to 8, not of the number.",
            "8": "The bit is worth a quarter of the binade from 4 to 8, not half of it.",
            "24": "That multiplies by 4, as an exponent bit can. This is the second fraction bit.",
            "-7": OPPOSITE,
        },
        otherwise=f"It is the second fraction bit. {READ_AGAIN}",
        hints=("The fraction field is 1000000000, so the significand is 1 + 1/2. What is the next bit worth?",),
    ),
}
NEAREST_0_3 = Number(
    "numbers/bits/code-0-3-e4m3",
    text="The E4M3 code nearest to 0.3 (write it like `0x65` or `0 1100 101`):",
    answer="0x2A",
    says="0 0101 010 is 2**-2 * 1.25 = 0.3125, 4 % away from 0.3: no E4M3 value is nearer.",
    wrong={
        "0x29": "0x29 is 0.28125: the fraction was cut off to 001. 1.6 eighths are nearer to 2 than to 1.",
        "0x2B": "0x2B is 0.34375, one step too far.",
        "0xAA": "The magnitude is right, but the sign bit is 1.",
        "0x52": "The fields are shifted by one bit: sign 0, then four exponent bits, then three fraction bits.",
        "0x34": "0.3 = 1.2 * 2**-2, and -2 + 7 = 5 goes into four bits (0101), followed by three fraction bits.",
        "0x6A": "That bias is 15. E4M3 has four exponent bits, and its bias is 7.",
        "0x22": "The exponent is one too small: 0.3 = 1.2 * 2**-2, so the field holds -2 + 7 = 5.",
        **_zeros_off(0x2A, "an E4M3", 8, missing=1, extra=0),
        "0.3125": "That is its value. The question asks for its eight bits.",
        "0.3": "That is the number itself. The question asks for the eight bits of the nearest code.",
    },
    otherwise="That is another code. Write all eight bits; start from 0.3 = 1.2 * 2**-2.",
    hints=(
        "The largest power of two in 0.3 is 2**-2. Which exponent field means -2, with a bias of 7?",
        "0.3 / 2**-2 = 1.2, and 0.2 is 1.6 eighths. Which whole number is nearest?",
        "Sign 0, exponent field 0101, fraction field 010.",
    ),
)
WRONG_LINE = wrong_line(
    "numbers/bits/wrong-line-bfloat16",
    text="This function takes the code of a float32 number and returns the code of the nearest bfloat16 number. It is"
    " right for all but about one code in 130,000. Press the line with the bug.",
    code="""\
def to_bfloat16(word):
    top, rest = word >> 16, word & 0xFFFF
    is_nan = word & 0x7FFFFFFF > 0x7F800000
    if is_nan:
        return top | 0x0040
    rounds_up = rest >= 0x8000
    return top + rounds_up""",
    line=6,
    says="`rest` is 0x8000 exactly halfway between two neighbours. Such a tie goes to the even one, not always up:"
    " `rounds_up = rest + (top & 1) > 0x8000`.",
    replies={
        1: "The name and the argument are fine.",
        2: "The upper half of a float32 has bfloat16's fields; what rounding decides on is the lower half.",
        3: "Python does `&` before `>`. Without the sign, the codes above 0x7F800000, infinity, are the NaNs.",
        4: "A NaN must not be rounded as a number is, so the function returns it first.",
        5: "A NaN whose fraction bits all lie in the lower half would become infinity. Setting one bit prevents that.",
        7: "True counts as 1. A carry into the exponent is right: it leads to the next binade, or to infinity.",
    },
)
DECODE_FNUZ = Task("numbers/bits/decode-e4m3fnuz", "My `decode_fnuz` is right for all 256 codes.")
