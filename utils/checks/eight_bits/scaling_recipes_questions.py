"""What `eight_bits/scaling_recipes` asks: who chooses a scale, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

P_STEP_BEFORE = Choice(
    "eight_bits/scaling_recipes/predict-step-before",
    "Each of the 250 steps takes its scale from the amax of the step before. In how many of them does the largest "
    "gradient saturate?",
    (
        Option(
            "In a handful: the spikes that can be seen",
            "Those are the jumps by a factor. A rise by a tenth saturates too, since the scale leaves no room at all.",
        ),
        Option(
            "In one of ten",
            "More. How often is a number above the one before it?",
        ),
        Option(
            "In about half of them",
            "A jagged series goes up as often as down, and each rise past half of a last bit is cut.",
            True,
        ),
        Option(
            "In nearly all: the series grows a thousandfold",
            "It grows in a jagged line. Wherever it falls, the old scale fits.",
        ),
    ),
    predict=True,
)
P_REMEDY = Choice(
    "eight_bits/scaling_recipes/predict-remedy",
    "Looking back one step, 119 of 250 steps saturate. Which remedy leaves fewer?",
    (
        Option(
            "The largest amax of 16 steps, without a margin",
            "It knows the peaks of 16 steps. This series climbs, and a new peak is in nobody's memory.",
        ),
        Option(
            "One step back, with a margin of one power of two",
            "Nearly all rises are smaller than a factor of two. The few spikes are left.",
            True,
        ),
        Option(
            "Both do about the same",
            "They do not: a memory helps against peaks that come back, a margin against new ones.",
        ),
    ),
    predict=True,
)
P_OUTLIER = Choice(
    "eight_bits/scaling_recipes/predict-outlier",
    "131,072 normal numbers share one scale, and one of them becomes 300. For which formats do the other values lose "
    "most of what they had?",
    (
        Option(
            "For E4M3 only: FP8 has three bits, and the outlier takes them",
            "The bits after the point stay, whatever the scale is. Only the exponent moves, and it has room.",
        ),
        Option(
            "For all three: all of them are scaled by the outlier",
            "They are. But a floating-point format of four exponent bits has room below, and a small value keeps its "
            "bits there.",
        ),
        Option(
            "For INT8 and E2M1",
            "Their smallest step is too coarse: 2.36 in INT8, and 25 in E2M1. E4M3 moves everything a few binades "
            "down, and loses nothing.",
            True,
        ),
        Option(
            "For E2M1 only: eight bits are enough",
            "INT8 has 127 steps up to 300. How wide is one?",
        ),
    ),
    predict=True,
)
P_RECIPES = Choice(
    "eight_bits/scaling_recipes/predict-recipes",
    "With one scale a tensor and gradients in E5M2, the weight gradients of this model are off by about 15 %. "
    "What do blocks of 128 with E4M3 everywhere make of it? The model has no outliers to speak of.",
    (
        Option(
            "Nothing: without outliers a local scale brings nothing",
            "True of the scale. But the format of the gradients is another one, with a bit more.",
        ),
        Option(
            "They get better, although there is no outlier to be shut in",
            "Not because of outliers: the gradients have three bits instead of two.",
            True,
        ),
        Option(
            "They get worse: E4M3 has too short a range for gradients",
            "Without scales it has. With a scale for every 128 values the range of a block is short too.",
        ),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

NEXT_SCALE = "scale for that tensor"
COMES_BACK = "what 7 comes back as"
SCALE_AFTER = "scale for the step after"
HISTORY = {
    NEXT_SCALE: Number(
        "eight_bits/scaling_recipes/history-scale",
        "E4M3, margin 1, the last amaxes were 0.5, 2 and 0.25. Which scale has the next tensor?",
        answer="112",
        says="448 / 2 / 2: the largest of the three, and one power of two left free.",
        wrong={
            "224": "That is without the margin: 448 / 2. A margin of 1 leaves one power of two free.",
            "448": "A margin makes the scale smaller, so that more fits.",
            "896": "That is from the latest amax, 0.25. The largest of the history counts.",
            "1792": "That is from the latest amax, 0.25, and without the margin. The largest of the history counts.",
            "32": "The 7 is not known yet: this is the scale for it, from the steps before.",
            "64": "The 7 is not known yet, and the margin is missing.",
            "14336": "E4M3 ends at 448; 57,344 is the end of E5M2.",
        },
        otherwise="Divide 448 by the largest amax of the history, then by 2 to the margin.",
        hints=("The largest of 0.5, 2 and 0.25 is 2.",),
    ),
    COMES_BACK: Number(
        "eight_bits/scaling_recipes/history-spike",
        "A 7 arrives. What does it come back as, after rounding with that scale and dividing by it?",
        answer="4",
        says="7 · 112 = 784 saturates at 448, and 448 / 112 = 4: the amax of the history times the margin's 2.",
        wrong={
            "7": "7 · 112 = 784, and E4M3 ends at 448.",
            "2": "That would be without the margin: 448 / 224.",
            "448": "That is the value that is stored. Divide it by the scale again.",
            "784": "That is 7 · 112. E4M3 ends at 448.",
            "NaN": "A cast may give NaN past the end; the recipe saturates before it.",
        },
        otherwise="Multiply, saturate at 448, divide.",
        hints=("7 · 112 = 784.",),
    ),
    SCALE_AFTER: Number(
        "eight_bits/scaling_recipes/history-after",
        "Which scale has the step after?",
        answer="32",
        says="The history is 2, 0.25, 7 now: 448 / 7 / 2. The amax is that of the tensor, not what was left of it.",
        wrong={
            "56": "That is from 4, what came back. The amax is taken before rounding: 7.",
            "64": "That is without the margin: 448 / 7.",
            "112": "The 7 has entered the history, and it is the largest.",
            "896": "That is from 0.25. The 7 has entered the history.",
        },
        otherwise="The oldest amax leaves the history, the 7 enters it.",
        hints=("The history is 2, 0.25 and 7.",),
    ),
}


def _first(margin: int, answer: int, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"eight_bits/scaling_recipes/first-step-{margin}",
        f"With a margin of {margin}: in which step does the largest value saturate first?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="Divide each amax by the largest of the three before it. Up to 2 to the margin it fits, and a little "
        "beyond, since 464 is still rounded to 448.",
        hints=("The quotients from step 2 on: 1, 1.025, 1.46, 1.67, 1.4, 1.74, 2.46, 1.03, 4.19.",),
    )


FIRST_0, FIRST_1, FIRST_2 = "margin 0", "margin 1", "margin 2"
FIRST_STEP = {
    FIRST_0: _first(
        0,
        4,
        says="3 / 2.05 = 1.46. In step 3 it was 459.2, above 448 too, and rounded down to it.",
        wrong={
            "3": "2.05 / 2 · 448 = 459.2. That is past 448, but nearer to it than to the 480 that would come next: it "
            "is rounded, not cut.",
            "2": "The same amax again lands on 448, which fits.",
            "1": "With a scale of 1, a 2 is far below 448.",
            "5": "Earlier: 3 after 2.05.",
        },
    ),
    FIRST_1: _first(
        1,
        8,
        says="30 / 12.2 = 2.46 is the first rise by more than 2.",
        wrong={
            "4": "3 / 2.05 = 1.46: with a margin of 1 there is room for a factor of 2.",
            "5": "5 / 3 = 1.67 still fits.",
            "7": "12.2 / 7 = 1.74 still fits.",
            "9": "31 / 30 fits in any case.",
            "10": "130 / 31 saturates too, but it is not the first.",
        },
    ),
    FIRST_2: _first(
        2,
        10,
        says="130 / 31 = 4.19, times 112 is 469.7: past 464, and cut.",
        wrong={
            "8": "30 / 12.2 = 2.46: with a margin of 2 there is room for a factor of 4.",
            "0": "There is one: 130 / 31 = 4.19. Is that too much for 4?",
            "9": "31 / 30 fits in any case.",
        },
    ),
}


def _count(name: str, text: str, answer: int, *, says: str, wrong: dict[str, str], hint: str) -> Number:
    return Number(
        f"eight_bits/scaling_recipes/wgrad-{name}",
        f"{text}: how many?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="A block holds 128 values along the axis that is summed over, the last one of each operand.",
        hints=(hint,),
    )


X_COLUMNS = "x, forward: columns of scales"
XT_ROWS = "x turned: rows of scales"
XT_COLUMNS = "x turned: columns of scales"
DYT_ROWS = "dy turned: rows of scales"
WGRAD_SCALES = {
    X_COLUMNS: _count(
        "x",
        X_COLUMNS,
        8,
        says="1024 / 128: the forward pass sums over the inputs.",
        wrong={
            "16": "That is 2048 / 128, along the tokens. The forward pass sums over the inputs.",
            "1024": "That is the number of values in a row. 128 of them share a scale.",
            "128": "That is the length of a block.",
            "2048": "Those are the rows of scales, one a token.",
            "4": "That is 512 / 128, of dy.",
        },
        hint="y = x w^T sums over the 1,024 inputs.",
    ),
    XT_ROWS: _count(
        "xt-rows",
        XT_ROWS,
        1024,
        says="The turned x is [1024, 2048], and each of its rows has its own scales.",
        wrong={
            "2048": "That is before it is turned: x is [2048, 1024], x turned [1024, 2048].",
            "8": "That would be a scale for 128 rows, as in tiles of 128x128.",
            "16": "Those are the columns of scales.",
            "512": "That is dy turned.",
        },
        hint="x turned is [1024, 2048].",
    ),
    XT_COLUMNS: _count(
        "xt-columns",
        XT_COLUMNS,
        16,
        says="2048 / 128: dw sums over the tokens, and a block is 128 tokens of one input.",
        wrong={
            "8": "That is the forward pass, blocks along the inputs. Here the sum is over tokens.",
            "2048": "128 tokens share a scale.",
            "1024": "Those are the rows.",
            "4": "That is 512 / 128. The sum is over the 2,048 tokens.",
        },
        hint="dw = dy^T x sums over the 2,048 tokens.",
    ),
    DYT_ROWS: _count(
        "dyt-rows",
        DYT_ROWS,
        512,
        says="dy turned is [512, 2048], with 16 scales in each row.",
        wrong={
            "2048": "That is dy as it is, [2048, 512], which dx = dy w takes.",
            "4": "That would be a scale for 128 rows.",
            "16": "Those are its columns.",
            "1024": "That is x turned.",
        },
        hint="dy turned is [512, 2048].",
    ),
}

BITS_64 = "bits a value, blocks of 1x64, scales in float32"
BITS_SQUARE = "bits a value, tiles of 32x32, scales in float32"
BYTES_TWICE = "bytes a value, two copies in blocks of 1x128, float32"
STORAGE = {
    BITS_64: Number(
        "eight_bits/scaling_recipes/storage-64",
        "How many bits a value, in blocks of 1x64 with scales in float32?",
        answer="8.5",
        says="8 + 32 / 64.",
        wrong={
            "8": "A scale for every 64 values is not free.",
            "8.0625": "The 4 bytes of a scale are 32 bits: 32 / 64.",
            "8.125": "That is with scales of 8 bits, such as E8M0.",
            "8.25": "That is for blocks of 128.",
            "0.5": "That is the share of the scale. The value has 8 bits too.",
            "40": "64 values share the 32 bits.",
        },
        otherwise="8 bits of the value, and its share of the 32 bits of a scale.",
        hints=("32 bits for 64 values.",),
        unit="bits",
    ),
    BITS_SQUARE: Number(
        "eight_bits/scaling_recipes/storage-square",
        "How many bits a value, in tiles of 32x32 with scales in float32?",
        answer="8.03125",
        says="8 + 32 / 1024.",
        wrong={
            "9": "A tile of 32x32 holds 1,024 values, not 32.",
            "8.5": "That is for 64 values a scale.",
            "8.0078125": "That is with scales of 8 bits.",
            "0.03125": "That is the share of the scale. The value has 8 bits too.",
        },
        otherwise="8 bits of the value, and its share of the 32 bits of a scale.",
        hints=("A tile holds 32 · 32 = 1,024 values.",),
        near=0.003,
        unit="bits",
    ),
    BYTES_TWICE: Number(
        "eight_bits/scaling_recipes/storage-twice",
        "How many bytes a value, for two copies in blocks of 1x128 with scales in float32?",
        answer="2.0625",
        says="Two times 8.25 bits are 16.5: more than bfloat16, which needs no second copy.",
        wrong={
            "16.5": "Those are bits.",
            "1.03125": "That is one copy; the backward pass needs the other axis too.",
            "2": "Two copies of the values, and their scales?",
            "8.25": "Those are the bits of one copy.",
            "2.03125": "Each copy has scales of its own.",
        },
        otherwise="8.25 bits for each copy, and 8 bits are a byte.",
        hints=("One copy: 8 + 32 / 128 bits.",),
        unit="bytes",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

FP8_PRODUCT = Task(
    "eight_bits/scaling_recipes/fp8-product",
    "Mend `fp8_product`: a product of two scaled E4M3 operands that is absurd, and sometimes NaN.",
)
