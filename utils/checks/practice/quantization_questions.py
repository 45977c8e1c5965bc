"""What `practice/quantization` asks: who shares a scale, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

P_MYSTERY = Choice(
    "practice/quantization/predict-mystery",
    "X has the format, the scales and the bytes of the second model. Its weights are further off, and its predictions "
    "nearer. What did its maker know?",
    (
        Option(
            "The loss: the model was trained for some steps after it was rounded",
            "No gradient was computed, and no label was seen. All that was needed are sixteen texts.",
        ),
        Option(
            "A better scale for each row",
            "The scales are the same, bit for bit. Only codes differ.",
        ),
        Option(
            "The inputs of the layers: which errors add up in an output, and which cancel",
            "Nobody looks at a weight. What is looked at is the output, and in it errors can pay for each other.",
            True,
        ),
        Option(
            "Nothing: a few codes were changed at random, and it was luck",
            "Changed at random, all of them would make it worse. You can try that.",
        ),
    ),
    predict=True,
)
P_GROUPS = Choice(
    "practice/quantization/predict-groups",
    "From a scale for each 128 weights to a scale for each 32, in four bits. How much smaller does the error of the "
    "weights become?",
    (
        Option(
            "To a quarter: a quarter as many weights share a scale",
            "What counts is not how many share it but the largest of them. That shrinks slowly with their number.",
        ),
        Option(
            "To a half",
            "Then the largest of 32 would have to be half as large as the largest of 128. It is 2.35 against 2.83.",
        ),
        Option(
            "By about a sixth",
            "The step is the largest magnitude over 7, and 2.35 / 2.83 is 0.83.",
            True,
        ),
        Option(
            "Not at all: the codes are the same fifteen",
            "The codes are. What one step between them is worth follows the largest weight of the group.",
        ),
    ),
    predict=True,
)
P_COLUMNS = Choice(
    "practice/quantization/predict-columns",
    "One column of x is 256 times as large as the others, in every token. Which scales for x would save the other "
    "columns, in a product of integers that is summed over all columns?",
    (
        Option(
            "One for each token: that is finer than one for the tensor",
            "Every token holds the loud value. Each row's scale has to carry it, and the rest of the row pays.",
        ),
        Option(
            "One for each column of x",
            "It would save them, and it cannot leave the sum: each addend would have to be scaled by itself, before "
            "it is added.",
        ),
        Option(
            "None that could leave the sum",
            "The scales that can, of a row or of the tensor, all carry the outlier; the one that would help changes "
            "from addend to addend. So the column has to leave the sum instead.",
            True,
        ),
        Option(
            "Any, if it is chosen smaller, so that the outlier saturates",
            "A saturated outlier is an error as large as the outlier, in every output. It is loud because it matters.",
        ),
    ),
    predict=True,
)
P_UNRELATED = Choice(
    "practice/quantization/unrelated",
    "For which inputs does this loop choose exactly the codes of rounding to nearest?",
    (
        Option(
            "For inputs that are all equal",
            "Then every weight can pay for every other, as in the example of two.",
        ),
        Option(
            "For inputs of which no two go together, so that H is diagonal",
            "Then no column can do anything for another one: U is diagonal too, and nothing is moved.",
            True,
        ),
        Option(
            "For inputs that are small",
            "H is small then, and its inverse large; a factor in front of all of H changes no choice.",
        ),
        Option(
            "Never, for H is never zero",
            "It need not be zero. Look at what the loop adds to the later columns: which entries of U are that?",
        ),
    ),
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
        f"{text}: how many bits for a weight?",
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
    "NF4, groups of 64, a float32 for each": _bits(
        "-nf4",
        "NF4, groups of 64, a float32 for each",
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


def _eight(name: str, text: str, *, fp8: str, int8: str, right: str) -> Choice:
    hints = {"FP8": fp8, "INT8": int8}
    return Choice(
        f"practice/quantization/{name}",
        f"{text[0].upper()}{text[1:]}: FP8 or INT8?",
        tuple(Option(name, says, name == right) for name, says in hints.items()),
    )


WEIGHTS = "a weight matrix, normal numbers"
LOUD = "activations with one column 300 times as large as the rest"
EVEN = "numbers spread evenly between -1 and 1"
BINADES = "gradients whose magnitudes span 30 binades"
WHICH_EIGHT = {
    WEIGHTS: _eight(
        "which-weights",
        WEIGHTS,
        fp8="Most normal numbers lie within two binades of each other. There the 127 even steps are finer than E4M3's "
        "eight in a binade.",
        int8="The step is about 1/36 of the standard deviation. E4M3 is finer only for the few near zero.",
        right="INT8",
    ),
    LOUD: _eight(
        "which-loud",
        LOUD,
        fp8="The others lie eight binades below amax, where E4M3 is as precise as anywhere.",
        int8="The step is amax / 127, and all other columns are smaller than that: zeros.",
        right="FP8",
    ),
    EVEN: _eight(
        "which-even",
        EVEN,
        fp8="Half of these numbers lie in the top binade, where E4M3 has eight values and INT8 sixty-four.",
        int8="Even steps for even numbers.",
        right="INT8",
    ),
    BINADES: _eight(
        "which-binades",
        BINADES,
        fp8="E4M3 reaches seventeen binades below its largest value or so, E5M2 thirty.",
        int8="Its smallest code above zero is seven binades below the largest. All below is lost.",
        right="FP8",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

PACK = Task(
    "practice/quantization/pack",
    "Write `pack` and `unpack`: two codes of four bits in a byte, the first in the high nibble, and back.",
)
SPLIT = Task(
    "practice/quantization/split",
    "Mend `split`: a product in int8, in which the columns of x with outliers are multiplied in wide numbers.",
)
