"""What `eight_bits/block_formats` asks: which values share a scale, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

P_OUTLIER = Choice(
    "eight_bits/block_formats/predict-outlier",
    "One column of 128 is 32 times as large, and the function is the same. Rounded to E2M1 with one scale for each "
    "tensor, what is its perplexity?",
    (
        Option(
            "As before: it is the same function, and one scale was enough for it",
            "It is the same function as long as nothing is rounded. What is rounded are the weights, and they differ.",
        ),
        Option(
            "A little higher: one column in 128 is less than a percent of the weights",
            "That column is fine, it lies on the largest codes. Look at what its scale does to the other 127.",
        ),
        Option(
            "Worse than that of a model that gives the same chance to each of the 640 tokens",
            "The scale is 32 times smaller for all of them. What was 1 is now 1/32, and E2M1's smallest number is 0.5.",
            True,
        ),
        Option(
            "NaN: 32 times the largest weight is beyond E2M1's 6",
            "The scale sees to that: the largest weight becomes 6. And E2M1 has no NaN.",
        ),
    ),
    predict=True,
)
P_BLOCK = Choice(
    "eight_bits/block_formats/predict-block",
    "Each row of such a layer has 128 weights, and one of them is the outlier. What happens with a scale for each 128, "
    "64, 32, 16, 8 neighbours?",
    (
        Option(
            "With a scale for the row all is well: each row has its own",
            "Its own scale, and its own outlier. Row by row the other 127 are lost as before, but for what is small.",
        ),
        Option(
            "Nothing helps until a block is a single weight: some block always holds the outlier",
            "Some block does, and is lost. The smaller it is, the fewer weights that is.",
        ),
        Option(
            "It gets better with each step: the outlier takes only its own block along",
            "A block of 16 loses 15 neighbours of 128, one of 64 loses 63.",
            True,
        ),
    ),
    predict=True,
)
P_CEIL = Choice(
    "eight_bits/block_formats/predict-ceil",
    "Normal numbers, blocks of 32, a power of two as scale. Rounding its exponent up saturates nothing. In which "
    "format does that lower the error?",
    (
        Option(
            "In both: a value that saturates is the largest of its block, and weighs most",
            "It does. But each exponent that was rounded up makes the gaps twice as wide for all 32. Where does that "
            "cost nothing?",
        ),
        Option(
            "In E4M3, and not in E2M1",
            "In E4M3 the gaps shrink along with the values, down to 2^-6. E2M1 has three binades, and below them every "
            "doubling of the gap sends more values to zero.",
            True,
        ),
        Option(
            "In E2M1, and not in E4M3",
            "E2M1 has the fewest values to lose at its bottom. That is where rounding up takes them from.",
        ),
        Option(
            "In neither: the standard would have chosen it",
            "The standard's rule is cheap to compute: it reads an exponent. It is not the one with the least error.",
        ),
    ),
    predict=True,
)
P_ROTATE = Choice(
    "eight_bits/block_formats/predict-rotate",
    "Numbers with heavy tails, in E2M1. Rotated in blocks of 16 before they are rounded, and turned back after: where "
    "does the error fall?",
    (
        Option(
            "Everywhere: a rotation spreads outliers, and outliers are what narrow formats suffer from",
            "What a value suffers from is sharing a scale with an outlier. In a block of 16 few do, and the outlier "
            "itself was nearly exact.",
        ),
        Option(
            "Nowhere: the rotation leaves lengths as they are, so it leaves errors as they are",
            "It leaves the length of an error as it is. But other numbers are rounded, with another amax.",
        ),
        Option(
            "With one scale for the tensor a lot, in MX blocks a little, in NVFP4 not at all",
            "The more values suffer from one outlier, the more there is to win by spreading it.",
            True,
        ),
        Option(
            "Most in NVFP4, whose blocks have the size of the rotation",
            "Then the rotation changes who in the block is large, and the block's scale has that to bear either way.",
        ),
    ),
    predict=True,
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


BYTE_FLOOR = "E2M1, amax 5.3"
BYTE_SMALL = "E2M1, amax 0.01"
BYTE_E4M3 = "E4M3, amax 100"
BYTE_CEIL = "E2M1, amax 7, exponent up"
BYTE_NAN = "NaN"
_E2M1 = "E2M1's largest number is 6 = 1.5 × 4, so its largest exponent is 2."
SCALE_BYTE = {
    BYTE_FLOOR: _byte(
        "",
        BYTE_FLOOR,
        "127",
        says="4 is the power of two below 5.3. 2 - 2 = 0, and the code of 2^0 is 127.",
        wrong={
            "129": "That is the exponent of 5.3. The format reaches up to 2^2 by itself: subtract that.",
            "0": "That is the exponent. The byte is the exponent plus 127.",
            "128": "That rounds up: log2 of 5.3 lies between 2 and 3, and the standard takes 2.",
            "2": "That is the exponent of 5.3. Subtract the format's, and add the bias.",
        },
        hints=(_E2M1, "An exponent e has the code e + 127."),
    ),
    BYTE_SMALL: _byte(
        "-small",
        BYTE_SMALL,
        "118",
        says="2^-7 is 0.0078, 2^-6 is 0.0156. -7 - 2 = -9, and 127 - 9 = 118.",
        wrong={
            "119": "-6 is not below: 2^-6 is 0.0156. Floor goes down for negative numbers too, to -7.",
            "120": "That is the code of 2^-7, which is below 0.01. Subtract the format's exponent.",
            "122": "Subtract the format's exponent: -7 - 2, not -7 + 2.",
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
            "126": "That is with 7, the bias of E4M3. Its largest exponent is 8.",
            "-2": "That is the exponent. The byte is the exponent plus 127.",
        },
        hints=("E4M3's largest number is 448 = 1.75 × 2^8.",),
    ),
    BYTE_CEIL: _byte(
        "-ceil",
        BYTE_CEIL,
        "128",
        says="7 / 6 is more than 1, so 2^0 does not do: 2^1, and the code 128.",
        wrong={
            "127": "That is the standard's rule: 7 would saturate at 6. Rounded up, nothing may.",
            "1": "That is the exponent. The byte is the exponent plus 127.",
            "130": "Take the format's largest number out: what is the least power of two s with 7 / s at most 6?",
            "129": "With 2 the 7 becomes 3.5 already, which fits. A smaller power of two does.",
        },
        otherwise="The exponent of the least power of two s with 7 / s at most 6, plus 127.",
        hints=("The least power of two s for which 7 / s is at most 6.",),
    ),
    BYTE_NAN: _byte(
        "-nan",
        BYTE_NAN,
        "255",
        says="0xFF, all ones. All other bytes are powers of two, from 2^-127 to 2^127.",
        wrong={
            "0": "0x00 is 2^-127: a small power of two. E8M0 has no zero, and no NaN there.",
            "254": "That is 2^127, the largest. One more.",
            "127": "That is 1.",
            "128": "That is 2.",
            "129": "That is 4.",
        },
        otherwise="It is one byte, 0 to 255. Exponents from -127 to 127 take 255 of the 256; which is left?",
        hints=("254 is 2^127.",),
    ),
}


def _bits(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"eight_bits/block_formats/bits{name}",
        f"{text}: how many bits for a value?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="The bits of a value, plus the bits of the scale divided by how many values share it.",
        hints=("How many values share a scale, and how many bits has it?",),
        unit="bits",
    )


BITS_MXFP4 = "MXFP4"
BITS_NVFP4 = "NVFP4"
BITS_MXFP6 = "MXFP6"
BITS_FLOAT32 = "E2M1, a float32 scale for 16"
BITS_SQUARES = "E2M1, E4M3 scales for 16 x 16"
BITS_FOR_A_VALUE = {
    BITS_MXFP4: _bits(
        "",
        BITS_MXFP4,
        "4.25",
        says="4 + 8/32.",
        wrong={
            "4": "That is without the scale: a byte for 32 values.",
            "4.5": "That is a byte for 16 values. An MX block has 32.",
            "12": "The byte is shared by 32 values.",
            "5": "That is a float32 scale. MX has a byte.",
        },
    ),
    BITS_NVFP4: _bits(
        "-nvfp4",
        BITS_NVFP4,
        "4.5",
        says="4 + 8/16; the 32 bits of the tensor are shared by all of it.",
        wrong={
            "4.25": "That is a byte for 32 values. A block of NVFP4 has 16.",
            "6.5": "The float32 scale is one for the tensor, not for a block.",
            "4": "That is without the scales.",
        },
    ),
    BITS_MXFP6: _bits(
        "-mxfp6",
        BITS_MXFP6,
        "6.25",
        says="6 + 8/32.",
        wrong={
            "6": "That is without the scale.",
            "6.5": "That is a byte for 16 values. An MX block has 32.",
            "8.25": "That is MXFP8.",
        },
    ),
    BITS_FLOAT32: _bits(
        "-float32",
        BITS_FLOAT32,
        "6",
        says="4 + 32/16: half as much again for the scales.",
        wrong={
            "4.5": "That is a scale of a byte. A float32 has 32 bits.",
            "5": "That is 32 values to a scale. Here it is 16.",
            "4.25": "A float32 has 32 bits, and 16 values share it.",
            "8": "A float32 has four bytes, so 32 bits: 32/16 on top.",
        },
    ),
    BITS_SQUARES: _bits(
        "-squares",
        BITS_SQUARES,
        "4.03125",
        says="4 + 8/256 = 4 + 1/32.",
        wrong={
            "4.5": "That is a row of 16. A square of 16 × 16 has 256 values.",
            "4.25": "That is 32 values to a byte. 16 + 16 is 32, 16 × 16 is 256.",
            "4": "Nearly: a byte for 256 values is still something.",
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
    "Mend `scale_bytes`: the E8M0 byte of each block of 32, for E2M1 and by the rule of the standard.",
)
