"""What `practice/quantization` asks: how far codes move, which weights share a scale, and a reply to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

SHARE = Choice(
    "practice/quantization/predict-share",
    "X has the integers and the scales of the second model, bit for bit. What share of its weights are not rounded to "
    "the nearest integer?",
    (
        Option(
            "About one in a hundred",
            "Too few. Even if each of them had moved by a whole step, X's weights would be only about 6 % further off "
            "than those of the second model.",
        ),
        Option(
            "About one in six",
            "Most of these weights lie between two integers that are almost equally near, so the wrong one costs "
            "little.",
            True,
        ),
        Option(
            "About one in two",
            "Too many. Even if only the weights closest to a tie had moved, X's would be more than half again as far "
            "off as those of the second model.",
        ),
        Option(
            "Nearly all",
            "If every weight went to its second nearest integer, X's would be more than two and a half times as far "
            "off.",
        ),
    ),
    predict=True,
)
GROUPS = Choice(
    "practice/quantization/predict-groups",
    "Four bits, and weights that are nearly normal numbers. With a scale per 32 weights instead of one per 128, how "
    "much smaller is the error of the weights?",
    (
        Option(
            "By about a sixth",
            "The step follows the largest magnitude of the group: on average 2.35 standard deviations among 32 normal "
            "numbers, and 2.83 among 128. The ratio is 0.83.",
            True,
        ),
        Option(
            "By about a half",
            "Then the largest of 32 numbers would have to be half as large as the largest of 128. In standard "
            "deviations, they are 2.35 and 2.83.",
        ),
        Option(
            "By about three quarters: a quarter as many weights share a scale",
            "What counts is the largest weight that shares the scale, and that shrinks slowly with their number.",
        ),
        Option(
            "Not at all: the fifteen integers are the same",
            "The integers are. The width of a step between two of them follows the largest weight of the group.",
        ),
    ),
    predict=True,
)
COLUMNS = Choice(
    "practice/quantization/predict-columns",
    "One column of x is 256 times as large as the others, in every token. `int8_product` multiplies integers, adds "
    "over the columns, and applies its scales to the sums. Which scales for x would save the other columns?",
    (
        Option(
            "One per token, as now",
            "Every token contains the large value. Its scale has to carry it, and nearly all its other values become "
            "0.",
        ),
        Option(
            "One per column of x",
            "They would save them. But such a scale belongs to one term of each sum, and can no longer be applied "
            "when the terms have been added.",
        ),
        Option(
            "A larger one per token, so that the large value saturates",
            "The large value would be cut to a small part of itself, and it enters every output.",
        ),
        Option(
            "None that can be applied to the sums",
            "All terms of a sum have to share such a scale, so it has to carry the large value. The column has to "
            "leave the product instead.",
            True,
        ),
    ),
    predict=True,
)
UNRELATED = Choice(
    "practice/quantization/unrelated",
    "For which inputs does this loop round every weight to the nearest integer?",
    (
        Option(
            "For inputs that are all equal",
            "There, every weight can make up for every other, as in the example with two.",
        ),
        Option(
            "For inputs that are small",
            "Then H is small and its inverse large. A factor in front of H changes no choice.",
        ),
        Option(
            "For inputs whose products cancel over the tokens, so that H is diagonal",
            "Then U is diagonal too: no column can make up for another, and no weight is moved.",
            True,
        ),
        Option(
            "For none, because H is never zero",
            "It need not be zero. Which entries of U does the loop pass on to the later columns?",
        ),
    ),
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_GROUP = Number(
    "practice/quantization/play-group",
    "Keep the outlier of 0.5, in four symmetric bits. What is the largest group for which fewer than 30 % of the other "
    "weights become 0?",
    answer="32",
    says="28 % of them become 0. In groups of 64 it is 39 %.",
    wrong={
        "64": "In groups of 64, 39 % of the other weights become 0.",
        "16": "In groups of 16, 21 % become 0. A larger group will do as well.",
        "128": "In groups of 128, more than half become 0.",
        "256": "That is the whole row, where more than 90 % become 0.",
        "8": "In groups of 8, 15 % become 0. A larger group will do as well.",
        "4.5": "That is what it costs in bits. The question asks for the group.",
    },
    otherwise="Move the size of the groups, and read the share of zeros.",
    hints=("Halve the group until the share falls below 30 %.",),
)
PLAY_ZERO = Number(
    "practice/quantization/play-zero",
    "The same, asymmetric: what is the largest group now?",
    answer="64",
    says="29 % become 0. The outlier is positive, and with a zero point no code is spent on numbers below the smallest "
    "weight.",
    wrong={
        "32": "In groups of 32, 21 % become 0. A larger group will do as well.",
        "128": "In groups of 128, 40 % become 0.",
        "256": "In the whole row, 62 % become 0.",
        "16": "In groups of 16, 16 % become 0. A larger group will do as well.",
        "8": "In groups of 8, 12 % become 0. A larger group will do as well.",
        "4.375": "That is what it costs in bits. The question asks for the group.",
    },
    otherwise="Press “asymmetric”, move the size of the groups, and read the share of zeros.",
)
PLAY_BITS = Number(
    "practice/quantization/play-bits",
    "How many bits per weight does the second solution save against the first?",
    answer="0.125",
    says="4.375 instead of 4.5: a zero point for 64 weights costs less than a second scale.",
    wrong={
        "-0.125": "That is the right size, but it saves bits: 4.375 is less than 4.5.",
        "4.375": "That is what the second one takes. Subtract it from what the first one takes.",
        "4.5": "That is what the first one takes. Subtract what the second one takes.",
        "0.25": "That would be groups of 64 without zero points, 4.25 bits.",
        "-0.25": "That compares groups of 32 with a zero point and without one. The second solution has groups of 64.",
        "0.375": "That is what the second one takes beyond 4 bits.",
        "0.5": "That is what the first one takes beyond 4 bits.",
    },
    otherwise="Read the bits per weight in both cases, and subtract.",
    unit="bits",
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _number(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str], otherwise: str, **how) -> Number:
    return Number(
        f"practice/quantization/{name}", text, answer=answer, says=says, wrong=wrong, otherwise=otherwise, **how
    )


_RANGE = "A group of weights reaches from -0.3 to 1.2, in four bits."
SCALE_AND_ZERO = {
    "symmetric: the scale": _number(
        "symmetric-scale",
        f"{_RANGE} Symmetric: what is the scale?",
        "35/6",
        says="7 / 1.2: the larger magnitude becomes the largest code.",
        wrong={
            "6/35": "That is `inv_scale`. A weight is multiplied by the scale.",
            "0.17": "That is `inv_scale`, rounded. A weight is multiplied by the scale.",
            "10": "That is the asymmetric one, which covers only what is there.",
            "12.5": "Fifteen codes reach from -1.2 to 1.2: the largest is 7.",
            "20/3": "-8 stays unused; the largest code is 7 on both sides.",
            "70/3": "The scale has to carry the larger magnitude, 1.2, and not 0.3.",
        },
        otherwise="The largest code, 7, over the largest magnitude.",
        tolerance=0.003,
        near=0.01,
        hints=("Which code does 1.2 get?",),
    ),
    "symmetric: the code of 0.5": _number(
        "symmetric-code",
        f"{_RANGE} Symmetric: which code does 0.5 get?",
        "3",
        says="0.5 times 5.83 is 2.92.",
        wrong={
            "2": "To nearest, not down: 2.92 is nearer to 3.",
            "35/12": "Codes are whole numbers: round.",
            "5": "That is 0.5 times 10, the asymmetric scale.",
            "8": "That is the asymmetric code.",
        },
        otherwise="Multiply by the scale and round to nearest.",
    ),
    "asymmetric: the scale": _number(
        "asymmetric-scale",
        f"{_RANGE} Asymmetric: what is the scale?",
        "10",
        says="15 / 1.5: sixteen codes have fifteen steps between them.",
        wrong={
            "32/3": "Sixteen codes have fifteen steps between them.",
            "12.5": "The range begins at -0.3: it is 1.5 long, not 1.2.",
            "50/3": "From -0.3 to 1.2 it is 1.5, not 0.9.",
            "0.1": "That is `inv_scale`. A weight is multiplied by the scale.",
            "35/6": "That is the symmetric one.",
            "14/3": "There are codes from 0 to 15 now, not to 7.",
        },
        otherwise="The largest code, 15, over the length of the range.",
        hints=("How long is the range, and how many steps does it have?",),
    ),
    "asymmetric: the zero point": _number(
        "zero-point",
        f"{_RANGE} Asymmetric: what is the zero point?",
        "3",
        says="-0.3 gets the code 0, so 0 lies three steps above it.",
        wrong={
            "-3": "It is a code, and codes begin at 0. It lies three steps above the smallest weight.",
            "12": "That is the distance of 0 from the other end.",
            "0": "The code 0 belongs to -0.3. Which one does the weight 0 get?",
            "8": "That is the middle of the codes; 0 is not the middle of this range.",
            "0.3": "In steps, not in weights: multiply by the scale.",
            "-0.3": "That is a weight. A zero point is a code: count steps.",
        },
        otherwise="The code that the weight 0 gets: how many steps lie between it and the smallest weight?",
    ),
    "asymmetric: the code of 0.5": _number(
        "asymmetric-code",
        f"{_RANGE} Asymmetric: which code does 0.5 get?",
        "8",
        says="0.5 times 10, and 3 for the zero point.",
        wrong={
            "5": "That is without the zero point.",
            "2": "The zero point is added on the way in, and taken off on the way back.",
            "3": "That is the symmetric code.",
        },
        otherwise="Multiply by the scale, round, and add the zero point.",
    ),
}


def _bits(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str]) -> Number:
    return _number(
        f"bits{name}",
        f"{text}: how many bits per weight?",
        answer,
        says=says,
        wrong=wrong,
        otherwise="The bits of a code, plus all bits of a group's scale and zero point divided by its size.",
        hints=("How many bits does a group store beside its codes?",),
        unit="bits",
    )


BITS_OF_A_WEIGHT = {
    "int4, groups of 64": _bits(
        "",
        "int4, groups of 64",
        "4.25",
        says="4 + 16/64.",
        wrong={
            "4": "That is without the scales.",
            "4.5": "That is a group of 32.",
            "4.125": "A scale has 16 bits here, not a byte.",
            "4.375": "There is no zero point in this one.",
            "20": "The scale is shared by 64 weights.",
        },
    ),
    "int4 with zero points, groups of 128": _bits(
        "-zero-points",
        "int4 with zero points, groups of 128",
        "4.1875",
        says="4 + (16 + 8)/128.",
        wrong={
            "4.125": "That is without the zero points.",
            "4.0625": "That is the zero points without the scales.",
            "4.25": "A zero point has 8 bits, not 16.",
            "4.375": "That is a group of 64.",
        },
    ),
    "int8, groups of 32": _bits(
        "-int8",
        "int8, groups of 32",
        "8.5",
        says="8 + 16/32.",
        wrong={
            "4.5": "That is int4.",
            "8": "That is without the scales.",
            "8.25": "A scale has 16 bits here, not a byte.",
            "9": "A float32 would be that.",
        },
    ),
    "NF4, groups of 64, a float32 per group": _bits(
        "-nf4",
        "NF4, groups of 64, a float32 per group",
        "4.5",
        says="4 + 32/64.",
        wrong={
            "4.25": "A float32 has 32 bits.",
            "5": "That is a group of 32.",
            "4": "That is without the float32 of each group.",
            "4.0625": "A float32 has four bytes, so 32 bits.",
        },
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

PACK = Task(
    "practice/quantization/pack",
    "Write `pack` and `unpack`: two codes of four bits per byte, the first in the high nibble, and back.",
)
SPLIT = Task(
    "practice/quantization/split",
    "Fix `split`: a product in int8 in which the columns of x with outliers are multiplied in floating point.",
)
