"""What `eight_bits/block_formats` asks: which values share a scale, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task, wrong_line

# --- Predict, then run ------------------------------------------------------------------------------------------------

ROW = Choice(
    "eight_bits/block_formats/predict-row",
    "A common fix for outliers is one scale per row instead of one per tensor. Each row of these layers has 128 "
    "weights. What is the perplexity of this model then?",
    (
        Option(
            "Within 2 % of float32",
            "Every row also has an outlier of its own, because the enlarged column crosses all rows.",
        ),
        Option(
            "Higher than that, but below 10",
            "Every row has its own outlier, but its size differs: half of the rows keep more than a third of their "
            "other weights.",
            True,
        ),
        Option(
            "Between 10 and 640",
            "In most rows the enlarged weight is small enough for a part of the others to survive.",
        ),
        Option(
            "Above 640, as with one scale",
            "The enlarged column does cross every row. What counts now is each row's own weight in that column, and "
            "in some rows that weight is small.",
        ),
    ),
    predict=True,
)
RULE = Choice(
    "eight_bits/block_formats/predict-even",
    "Normally distributed numbers in blocks of 32, in E2M1. Averaged over many blocks, rounding the exponent up or "
    "down gives nearly the same error, about 11.5 %. What does EVEN give?",
    (
        Option(
            "The same as down",
            "EVEN does round down, but only after it has rounded amax. In the table above, amax 7.5 rounds to 8, the "
            "next power of two, so the exponent is one larger than FLOOR's.",
        ),
        Option(
            "Something between the two",
            "The exponent of each block is rounded either up or down, but not by chance: EVEN rounds up exactly where "
            "clipping would cost most.",
        ),
        Option(
            "Less than either",
            "An amax between 6 and 7 saturates and loses less than a seventh, while the other 31 values keep their "
            "finer gaps. Only from 7 on does EVEN double the gaps.",
            True,
        ),
        Option(
            "More than either",
            "The rounded amax only chooses between two powers of two. The values themselves are rounded once.",
        ),
    ),
    predict=True,
)
ROTATE = Choice(
    "eight_bits/block_formats/predict-rotate",
    "Numbers with heavy tails, in E2M1. They are rotated in blocks of 16 before they are rounded, and turned back "
    "afterwards. Where does the error become smaller?",
    (
        Option(
            "Everywhere: a rotation spreads outliers, and narrow formats suffer from outliers",
            "The neighbours of an outlier suffer, because they share its scale. In a block of 16 these are few, and "
            "the outlier itself loses little.",
        ),
        Option(
            "Nowhere: a rotation keeps lengths, so it keeps errors",
            "It keeps the length of an error that has been made. But other numbers are rounded now, with another "
            "largest magnitude.",
        ),
        Option(
            "With one scale for the tensor and in MX blocks, but not in NVFP4",
            "The more values share a scale with the outlier, the more there is to gain by spreading it.",
            True,
        ),
        Option(
            "Most of all in NVFP4, whose blocks have the size of the rotation",
            "Then the outlier is spread over its own block and nowhere else. Without the rotation only 15 neighbours "
            "suffered.",
        ),
    ),
    predict=True,
)
SIX = Choice(
    "eight_bits/block_formats/predict-six",
    "One channel of activations is 32 times as large as the others, and each tensor has a single scale. E2M3 has two "
    "exponent bits and three fraction bits, E3M2 the reverse. Which of the two keeps this model closer to float32?",
    (
        Option(
            "E2M3, by a wide margin",
            "For values near the largest, three fraction bits halve the error. The other values lie five binades "
            "below the largest. Where does E2M3's range end?",
        ),
        Option(
            "E3M2, by a wide margin",
            "Its normal numbers reach down over seven binades, E2M3's over three. Below that, values have fewer bits, "
            "or none.",
            True,
        ),
        Option(
            "They are about equal",
            "Both have as many bits, but the outlier decides which kind is needed: range or precision.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_SATURATED = Number(
    "eight_bits/block_formats/play-saturated",
    "Start from the values called “normal”, and choose MXFP8 E4M3 with the exponent rounded down. The value "
    "of the largest magnitude is −1.911. What number is −1.911 read back as?",
    answer="-1.75",
    says="The exponent is 0 − 8, so inv_scale is 2^-8. The largest number of E4M3, 448, is read as 448/256 = 1.75.",
    wrong={
        "1.75": "That is the magnitude. The value is negative.",
        "-1.911": "That is x. What does the editor show after “Back”?",
        "-1.875": "That is what it becomes with the exponent rounded up.",
        "-448": "That is the number of E4M3. Multiply it by inv_scale, as the last step of the editor does.",
        "-2": "It would round to 2 if E4M3 had that number at this scale. It ends at 1.75.",
        "-1.5": "That is what E2M1 makes of it.",
    },
    otherwise="Choose MXFP8 E4M3 and the rule that rounds down, press the value −1.911, and read the step “Back”.",
)
PLAY_KEPT = Number(
    "eight_bits/block_formats/play-kept",
    "Start from “powers of two”: 8, −4, 2, −1 and so on, each half the size of the one before. How many of the 32 does "
    "MXFP8 E4M3 keep from becoming 0?",
    answer="18",
    says="8 is scaled to 2^8, E4M3's largest power of two, and its smallest subnormal number is 2^-9. From 8 to -9 "
    "there are 18 exponents, and all are stored exactly.",
    wrong={
        "14": "That many become 0. How many are left of 32?",
        "4": "That is E2M1. Choose E4M3.",
        "15": "Those are the normal numbers, from 2^8 to 2^-6. The subnormal ones count too.",
        "17": "Count both ends: from 8 down to -9.",
        "19": "The next one, 2^-10 after scaling, is half of the smallest number. It is a tie, and ties go to the even "
        "code, 0.",
        "32": "That is E5M2, which has one exponent bit more. Choose E4M3.",
    },
    otherwise="Choose “powers of two” and MXFP8 E4M3. The verdict says how many became 0.",
)
PLAY_BIT = Number(
    "eight_bits/block_formats/play-bit",
    "Start from “normal” in MXFP4, rounded down, and flip the lowest bit of the scale. The codes stay the same. By "
    "which factor does every decoded value change?",
    answer="1/2",
    says="The byte was 125, an odd number, so its lowest bit was 1. It becomes 124, and the exponent falls by one.",
    wrong={
        "2": "It would be if the bit had been 0. Here it was 1.",
        "-1": "That is the change of the exponent. What does it do to the values?",
        "1": "The codes stay, but what they are worth changes.",
        "124": "That is the new byte.",
        "4": "That is the second bit from the right. Flip the last one.",
    },
    otherwise="Press the last bit of the scale, and read what the editor says.",
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


_FROM_AMAX = (
    "First the power of two at or below amax, then minus the exponent of the format's largest number, then plus 127."
)


def _byte(
    name: str,
    text: str,
    answer: str,
    *,
    says: str,
    wrong: dict[str, str],
    hints: tuple[str, ...],
    otherwise: str = _FROM_AMAX,
) -> Number:
    return Number(
        f"eight_bits/block_formats/scale-byte{name}",
        f"{text}: which byte is the scale?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise=otherwise,
        hints=hints,
    )


BYTE_FLOOR = "E2M1, amax 53"
BYTE_SMALL = "E2M1, amax 0.01"
BYTE_E4M3 = "E4M3, amax 100"
BYTE_E3M2 = "E3M2, amax 0.3"
BYTE_CEIL = "E2M1, amax 13, exponent up"
_E2M1 = "E2M1's largest number is 6 = 1.5 × 4, so its largest exponent is 2."
SCALE_BYTE = {
    BYTE_FLOOR: _byte(
        "",
        BYTE_FLOOR,
        "130",
        says="32 = 2^5 is the power of two below 53. 5 - 2 = 3, and the code of 2^3 is 130.",
        wrong={
            "132": "That is the code of 2^5. The format reaches up to 2^2 by itself: subtract that.",
            "3": "That is the exponent. The byte is the exponent plus 127.",
            "131": "That rounds the exponent up: log2 of 53 lies between 5 and 6, and this rule takes 5.",
            "5": "That is the exponent of 53. Subtract the format's, and add the bias.",
            "134": "Subtract the format's exponent: 5 - 2, not 5 + 2.",
        },
        hints=(_E2M1, "An exponent e has the code e + 127."),
    ),
    BYTE_SMALL: _byte(
        "-small",
        BYTE_SMALL,
        "118",
        says="The power of two below 0.01 is 2^-7 = 0.0078. -7 - 2 = -9, and 127 - 9 = 118.",
        wrong={
            "119": "-6 is not below: 2^-6 is 0.0156. Floor goes down for negative numbers too, to -7.",
            "120": "That is the code of 2^-7, which is below 0.01. Subtract the format's exponent.",
            "122": "Subtract the format's exponent: -7 - 2, not -7 + 2.",
            "-7": "That is the exponent of 0.01. Subtract the format's, and add the bias.",
            "-9": "That is the exponent. The byte is the exponent plus 127.",
            "121": "That is -6, without the format's exponent. And -6 is not below.",
        },
        hints=("Which power of two is just below 0.01? 2^-7 = 1/128.", _E2M1),
    ),
    BYTE_E4M3: _byte(
        "-e4m3",
        BYTE_E4M3,
        "125",
        says="64 = 2^6 is below 100. 6 - 8 = -2, and 127 - 2 = 125.",
        wrong={
            "133": "That is the code of 2^6. E4M3 reaches 2^8 by itself.",
            "131": "That is with E2M1's exponent 2. E4M3's largest number is 448 = 1.75 × 2^8.",
            "126": "Either the exponent went up, to 7 for 100, or E4M3's bias 7 was taken for its largest exponent, 8.",
            "-2": "That is the exponent. The byte is the exponent plus 127.",
        },
        hints=("E4M3's largest number is 448 = 1.75 × 2^8.",),
    ),
    BYTE_E3M2: _byte(
        "-e3m2",
        BYTE_E3M2,
        "121",
        says="0.25 = 2^-2 is below 0.3, and 28 = 1.75 × 2^4. -2 - 4 = -6, and 127 - 6 = 121.",
        wrong={
            "125": "That is the code of 2^-2. Subtract the format's exponent.",
            "122": "Either the exponent went up, to -1 for 0.3, though 2^-1 is not below 0.3; or E3M2's bias 3 was "
            "taken for its largest exponent, 4.",
            "129": "Subtract the format's exponent: -2 - 4, not -2 + 4.",
            "123": "That is with E2M1's exponent 2. E3M2's largest number is 28 = 1.75 × 2^4.",
            "-6": "That is the exponent. The byte is the exponent plus 127.",
        },
        hints=("28 = 1.75 × 2^4.",),
    ),
    BYTE_CEIL: _byte(
        "-ceil",
        BYTE_CEIL,
        "129",
        says="13/6 is more than 2, so 2^1 is too small: take 2^2, whose code is 129.",
        wrong={
            "128": "That is the exponent rounded down: with 2^1, 13 would become 6.5, and E2M1 ends at 6.",
            "2": "That is the exponent. The byte is the exponent plus 127.",
            "131": "Take the format's largest number out: what is the least power of two s with 13 / s at most 6?",
            "130": "That is the code of 2^3. With 2^2 the 13 becomes 3.25, which fits already.",
            "127": "With 2^0, 13 is far beyond E2M1's 6.",
        },
        otherwise="The exponent of the least power of two s with 13 / s at most 6, plus 127.",
        hints=("The least power of two s for which 13 / s is at most 6.",),
    ),
}


def _bits(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"eight_bits/block_formats/bits{name}",
        f"{text}: how many bits per value?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="The bits of a value, plus the bits of the scale divided by how many values share it.",
        near=0.001,  # 8.13, 4.06 and 4.03 are rounded; 4.015625 is a wrong count
        hints=("How many values share a scale, and how many bits does it have?",),
        unit="bits",
    )


BITS_64 = "E5M2, a byte for 64"
BITS_128 = "E2M1, a byte for 128"
BITS_E3M2 = "E3M2, E4M3 scales for 16"
BITS_FLOAT16 = "E2M3, a float16 scale for 64"
BITS_SQUARES = "E2M1, E4M3 scales for 16 x 16"
BITS_FOR_A_VALUE = {
    BITS_64: _bits(
        "-64",
        BITS_64,
        "8.125",
        says="8 + 8/64.",
        wrong={
            "8": "That is without the scale: a byte for 64 values.",
            "8.25": "That is a byte for 32 values. Here 64 share it.",
            "16": "The byte is shared by 64 values.",
            "8.015625": "That is one bit for 64 values. A byte has eight.",
        },
    ),
    BITS_128: _bits(
        "-128",
        BITS_128,
        "4.0625",
        says="4 + 8/128.",
        wrong={
            "4": "That is without the scale.",
            "4.25": "That is a byte for 32 values. Here 128 share it.",
            "12": "The byte is shared by 128 values.",
            "4.0078125": "That is one bit for 128 values. A byte has eight.",
        },
    ),
    BITS_E3M2: _bits(
        "-e3m2",
        BITS_E3M2,
        "6.5",
        says="6 + 8/16: E3M2 has a sign bit, three exponent bits and two fraction bits.",
        wrong={
            "6": "That is without the scales.",
            "6.25": "That is a byte for 32 values. Here 16 share it.",
            "5.5": "E3M2 has a sign bit, too.",
            "8": "E4M3 has 8 bits, not 32.",
        },
    ),
    BITS_FLOAT16: _bits(
        "-float16",
        BITS_FLOAT16,
        "6.25",
        says="6 + 16/64: as much as a byte for 32.",
        wrong={
            "6": "That is without the scale.",
            "6.125": "That is a scale of a byte. A float16 has 16 bits.",
            "6.5": "That is a float32 scale, or 32 values per scale.",
            "5.25": "E2M3 has a sign bit, too.",
            "6.03125": "A float16 has two bytes, so 16 bits.",
        },
    ),
    BITS_SQUARES: _bits(
        "-squares",
        BITS_SQUARES,
        "4.03125",
        says="4 + 8/256 = 4 + 1/32.",
        wrong={
            "4.5": "That is a row of 16. A square of 16 × 16 has 256 values.",
            "4.25": "That is 32 values per byte. 16 + 16 is 32, but 16 × 16 is 256.",
            "4": "Nearly: a byte for 256 values still counts.",
            "4.00390625": "That is one bit for 256 values. A byte has eight.",
            "4.125": "That is a float32 scale. E4M3 has 8 bits.",
        },
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

NVFP4_SQUARES = Task(
    "eight_bits/block_formats/nvfp4-squares",
    "Write `nvfp4_squares`: NVFP4 of a matrix with one E4M3 scale for each square of 16 × 16, and one for the tensor.",
)
ROTATED_PRODUCT = Task(
    "eight_bits/block_formats/rotated-product",
    "Write `rotated_product`: both factors rotated in blocks of 16, rounded by `change`, and multiplied.",
)
SCALE_BYTES = Task(
    "eight_bits/block_formats/scale-bytes",
    "Fix `scale_bytes`: the E8M0 byte of each block of 32, for E2M1, with the exponent rounded down.",
)
WRONG_LINE = wrong_line(
    "eight_bits/block_formats/wrong-line",
    text="A row whose largest value is 6.5 gets the byte 129 instead of 127. The last line causes half "
    "of this error of 2. Press the line that causes the other half.",
    code="""\
def scale_bytes(x):
    amax = x.max(axis=1)
    exponent = np.round(np.log2(amax)) - 2
    return (exponent + 128).astype(np.uint8)""",
    line=3,
    says="log2 of 6.5 is 2.70, which np.round makes 3. Rounded down it is 2, and 2 - 2 = 0.",
    replies={
        1: "The name is fine.",
        2: "For 6.5 it is right.",
        4: "That line adds 128, where E8M0's bias is 127. This explains 128, but not 129.",
    },
)
