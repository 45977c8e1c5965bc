"""What `practice/quantization` asks: how far codes move, which weights share a scale, and a reply to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

SHARE = Choice(
    "practice/quantization/predict-share",
    "X has exactly the scales of the second model, and the same integers to choose from. What share of its weights are "
    "not rounded to the nearest integer?",
    (
        Option(
            "About one in a hundred",
            "Too few. Even if each of them had moved by a whole step, X's weights would be only about 6 % further off "
            "than those of the second model.",
        ),
        Option(
            "About one in six",
            "Weights close to a tie move more often, because that costs little. But about a fifth of those that moved "
            "were less than a quarter of a step away from the nearest integer.",
            True,
        ),
        Option(
            "About one in two",
            "Too many. Even if only the weights closest to a tie had moved, X's would be more than half again as far "
            "off as those of the second model.",
        ),
        Option(
            "Nearly all",
            "If every weight went to its second-nearest integer, X's would be more than two and a half times as far "
            "off.",
        ),
    ),
    predict=True,
)
GROUPS = Choice(
    "practice/quantization/predict-groups",
    "Weights that are normally distributed have a scale per 128. A fifth bit would more than halve their error. How "
    "small would the groups have to be for four bits to halve it?",
    (
        Option(
            "64",
            "That leaves 92 % of the error. What counts is the largest weight that shares the scale, and that shrinks "
            "slowly with their number.",
        ),
        Option(
            "32",
            "That leaves 83 % of the error. In standard deviations, the largest of 128 weights is 2.83 on average, and "
            "the largest of 32 is 2.35.",
        ),
        Option(
            "16",
            "That leaves 73 % of the error. The scales then cost one bit per weight, as much as a fifth bit, which "
            "leaves only 47 %.",
        ),
        Option(
            "About 4",
            "That leaves 48 % of the error. The scales then cost four bits per weight, as much as the codes.",
            True,
        ),
    ),
    predict=True,
)
COLUMNS = Choice(
    "practice/quantization/predict-columns",
    "One column of x is 256 times as large as the others, in every token. `int8_product` multiplies integers, adds "
    "over the columns, and applies its scales to the sums. Which scales for x would keep all columns precise, the "
    "large one and the others?",
    (
        Option(
            "One per token, as now",
            "Every token contains the large value. Its scale has to carry it, so a step is about twice as large as the "
            "other values, and about half of them or more become 0.",
        ),
        Option(
            "One per column of x",
            "They would keep them. But such a scale belongs to one term of each sum, and can no longer be applied when "
            "the terms have been added.",
        ),
        Option(
            "A larger one per token, so that the large value saturates",
            "That keeps the others. But the large value would be cut to a small part of itself, and it enters every "
            "output.",
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
    "For which inputs does `round_for_outputs` round every weight to the nearest integer?",
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
            "For inputs with orthogonal features",
            "Then H is diagonal, and so is U: no column can make up for another, and no weight is moved.",
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
    "Move the outlier to 0.4, at any place, in four bits with a symmetric grid. What is the largest group for which "
    "fewer than 30 % of the other weights become 0?",
    answer="32",
    says="24 to 27 % of them become 0, depending on the place of the outlier. In groups of 64 it is 33 to 37 %.",
    wrong={
        "64": "In groups of 64, 33 to 37 % of the other weights become 0.",
        "16": "In groups of 16, 18 to 21 % become 0. A larger group will do as well.",
        "128": "In groups of 128, 51 to 52 % become 0.",
        "256": "That is the whole row, where 83 to 84 % become 0.",
        "8": "In groups of 8, 14 to 16 % become 0. A larger group will do as well.",
        "4.5": "That is what it costs in bits. The question asks for the group.",
    },
    otherwise="Move the size of the groups, and read the share of zeros.",
    hints=("The table under the row shows the share for every size of the groups.",),
)
PLAY_ZERO = Number(
    "practice/quantization/play-zero",
    "The same, asymmetric: what is the largest group now?",
    answer="64",
    says="24 to 27 % become 0. The outlier is positive, and with a zero point no code is spent on numbers below the "
    "smallest weight.",
    wrong={
        "128": "In groups of 128, 35 to 37 % become 0. Is the outlier at 0.4?",
        "32": "In groups of 32, 18 to 22 % become 0. A larger group will do as well.",
        "256": "In the whole row, 54 % become 0.",
        "16": "In groups of 16, 14 to 16 % become 0. A larger group will do as well.",
        "8": "In groups of 8, 11 to 13 % become 0. A larger group will do as well.",
        "4.375": "That is what it costs in bits. The question asks for the group.",
    },
    otherwise="Press “asymmetric”, move the size of the groups, and read the share of zeros.",
)
PLAY_BITS = Number(
    "practice/quantization/play-bits",
    "How many bits per weight does the second solution save compared with the first?",
    answer="0.125",
    says="4.375 instead of 4.5: a zero point for 64 weights costs less than a second scale.",
    wrong={
        "-0.125": "That is the right size, but it saves bits: 4.375 is less than 4.5.",
        "4.375": "That is what the second one takes. Subtract it from what the first one takes.",
        "4.5": "That is what the first one takes. Subtract what the second one takes.",
        "0.25": "That would be groups of 64 without zero points, 4.25 bits.",
        "-0.25": "That compares groups of 32 with a zero point and without one. The second solution has groups of 64.",
        "0.3125": "That would be groups of 128 with zero points, 4.1875 bits.",
        "0.375": "That is what the second one takes beyond 4 bits.",
        "0.5": "That is what the first one takes beyond 4 bits.",
    },
    otherwise="Read the bits per weight in both cases, and subtract.",
    unit="bits",
    tolerance=0.05,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _number(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str], otherwise: str, **how) -> Number:
    return Number(
        f"practice/quantization/{name}", text, answer=answer, says=says, wrong=wrong, otherwise=otherwise, **how
    )


_RANGE = "A group of weights reaches from -0.6 to 2.4, in four bits."
SCALE_AND_ZERO = {
    "symmetric: the scale": _number(
        "symmetric-scale",
        f"{_RANGE} Symmetric: what is the scale?",
        "35/12",
        says="7 / 2.4: the larger magnitude becomes the largest code.",
        wrong={
            "12/35": "That is `inv_scale`. A weight is multiplied by the scale.",
            "0.34": "That is `inv_scale`, rounded. A weight is multiplied by the scale.",
            "2.9": "Give three digits, or 7 / 2.4.",
            "5": "A symmetric grid reaches as far down as up, here from -2.4 to 2.4.",
            "6.25": "Fifteen codes reach from -2.4 to 2.4: the largest is 7.",
            "10/3": "-8 stays unused; the largest code is 7 on both sides.",
            "35/3": "The scale has to carry the larger magnitude, 2.4, and not 0.6.",
        },
        otherwise="The largest code, 7, over the largest magnitude.",
        tolerance=0.003,
        near=0.01,
        hints=("Which code does 2.4 get?",),
    ),
    "symmetric: the code of 1.0": _number(
        "symmetric-code",
        f"{_RANGE} Symmetric: which code does 1.0 get?",
        "3",
        says="1.0 times 2.92 is 2.92.",
        wrong={
            "2": "To nearest, not down: 2.92 is nearer to 3.",
            "35/12": "Codes are whole numbers: round.",
            "5": "Multiply 1.0 by the scale of the symmetric grid, and round.",
            "8": "On a symmetric grid, the largest code is 7.",
        },
        otherwise="Multiply by the scale and round to nearest.",
    ),
    "asymmetric: the scale": _number(
        "asymmetric-scale",
        f"{_RANGE} Asymmetric: what is the scale?",
        "5",
        says="15 / 3: sixteen codes have fifteen steps between them.",
        wrong={
            "16/3": "Sixteen codes have fifteen steps between them.",
            "6.25": "The range begins at -0.6: it is 3 long, not 2.4.",
            "25/3": "From -0.6 to 2.4 it is 3, not 1.8.",
            "0.2": "That is `inv_scale`. A weight is multiplied by the scale.",
            "35/12": "That is the symmetric one.",
            "7/3": "There are codes from 0 to 15 now, not to 7.",
            "10": "That is the scale of the example in the text, whose range is half as long.",
        },
        otherwise="The largest code, 15, over the length of the range.",
        hints=("How long is the range, and how many steps does it have?",),
    ),
    "asymmetric: the zero point": _number(
        "zero-point",
        f"{_RANGE} Asymmetric: what is the zero point?",
        "3",
        says="-0.6 gets the code 0, so 0 lies three steps above it.",
        wrong={
            "-3": "It is a code, and codes begin at 0. Does the weight 0 lie above or below the smallest weight?",
            "12": "That is the distance of 0 from the other end.",
            "0": "The code 0 belongs to -0.6. Which one does the weight 0 get?",
            "8": "That is the middle of the codes; 0 is not the middle of this range.",
            "0.6": "In steps, not in weights: multiply by the scale.",
            "-0.6": "That is a weight. A zero point is a code: count steps.",
        },
        otherwise="The code that the weight 0 gets: how many steps lie between it and the smallest weight?",
    ),
    "asymmetric: the code of 1.0": _number(
        "asymmetric-code",
        f"{_RANGE} Asymmetric: which code does 1.0 get?",
        "8",
        says="1.0 times 5, and 3 for the zero point.",
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
        tolerance=1e-9,
        unit="bits",
    )


BITS_OF_A_WEIGHT = {
    "int4, groups of 40": _bits(
        "",
        "int4, groups of 40",
        "4.4",
        says="4 + 16/40.",
        wrong={
            "4": "That is without the scales.",
            "4.2": "A scale has 16 bits here, not a byte.",
            "4.6": "There is no zero point in this one.",
            "4.8": "That would be a float32 per group.",
            "20": "The scale is shared by 40 weights.",
        },
    ),
    "int4 with zero points, groups of 80": _bits(
        "-zero-points",
        "int4 with zero points, groups of 80",
        "4.3",
        says="4 + (16 + 8)/80.",
        wrong={
            "4.2": "That is without the zero points.",
            "4.1": "That is the zero points without the scales.",
            "4.4": "A zero point has 8 bits, not 16.",
            "4.6": "That is a group of 40.",
        },
    ),
    "int8, groups of 40, scales of 8 bits": _bits(
        "-int8",
        "int8, groups of 40, scales of 8 bits",
        "8.2",
        says="8 + 8/40.",
        wrong={
            "4.2": "That is int4.",
            "8": "That is without the scales.",
            "8.4": "That is a scale of 16 bits.",
            "8.8": "That is a float32 per group.",
        },
    ),
    "NF4, groups of 128, a float32 per group": _bits(
        "-nf4",
        "NF4, groups of 128, a float32 per group",
        "4.25",
        says="4 + 32/128.",
        wrong={
            "4.125": "A float32 has 32 bits, not 16.",
            "4.5": "That is a group of 64.",
            "4": "That is without the float32 of each group.",
            "4.127": "That is with double quantization, in groups of 64.",
            "4.03125": "A float32 has four bytes, so 32 bits.",
        },
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

PACK = Task(
    "practice/quantization/pack",
    "Write `pack` and `unpack`: two codes of four bits per byte, the first in the high nibble, and back.",
)
SMOOTH = Task(
    "practice/quantization/smooth",
    "Fix `smooth_product`: it moves a factor per column from x to w, then takes the int8 product.",
)
