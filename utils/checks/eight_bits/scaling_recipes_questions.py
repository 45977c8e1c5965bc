"""What `eight_bits/scaling_recipes` asks: who chooses a scale, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

P_STEP_BEFORE = Choice(
    "eight_bits/scaling_recipes/predict-step-before",
    "Steps 2 to 250 each take their scale from the amax of the step before. In how many of these 249 steps does the "
    "largest gradient saturate?",
    (
        Option(
            "In a handful: the spikes that can be seen",
            "Those are only the large jumps. A rise by a tenth saturates too, because the scale leaves no room at all.",
        ),
        Option(
            "In about one in ten",
            "In more. How often is a number clearly larger than the one before it?",
        ),
        Option(
            "In about half of them",
            "This series rises about as often as it falls, and every rise of 7.1 % or more saturates.",
            True,
        ),
        Option(
            "In nearly all: the series grows a thousandfold",
            "It grows in a jagged line. Wherever it falls, the old scale fits.",
        ),
    ),
    predict=True,
)
P_COPIES = Choice(
    "eight_bits/scaling_recipes/predict-copies",
    "The values of x are normally distributed. One copy is quantized in blocks along its rows, the other in blocks "
    "along its columns, with exact scales in float32. After dividing by the scales, what share of the values differs "
    "between the copies?",
    (
        Option(
            "None: both copies have the same 3 fraction bits of the same numbers",
            "They would if only the exponent changed. But 448 / amax is rarely a power of two, so each copy rounds "
            "a different multiple of the value.",
        ),
        Option(
            "A few percent: the values near the middle of a gap",
            "That would be so if both copies rounded to the same grid. With a different scale the whole grid lies "
            "elsewhere.",
        ),
        Option(
            "About half",
            "Rounding up or down is no coin toss here: the two grids have hardly a number in common.",
        ),
        Option(
            "Nearly all of them",
            "Two scales whose ratio is no power of two give two grids that have hardly a number in common.",
            True,
        ),
    ),
    predict=True,
)
P_RECIPES = Choice(
    "eight_bits/scaling_recipes/predict-recipes",
    "This model has no outliers to speak of. Its weight gradient is computed with one scale per tensor and gradients "
    "in E5M2 (A), with one scale per tensor and E4M3 throughout (B), and with blocks of 128 and E4M3 throughout (C). "
    "How do the errors compare, on average over eight batches?",
    (
        Option(
            "A and B about the same, C much smaller",
            "That would be so if the scales decided. In a model without outliers the fraction bits do more.",
        ),
        Option(
            "A largest, then B, and C only a little smaller than B",
            "E4M3 has three fraction bits instead of two, which brings most of the gain. Blocks bring the rest.",
            True,
        ),
        Option(
            "B largest: without blocks, E4M3 has too short a range for gradients",
            "Without any scale it has. In this model one scale per tensor is enough to move the gradients into its "
            "range.",
        ),
        Option(
            "C much larger than B: every block is rounded with a scale of its own",
            "A different scale moves the grid, but the relative gaps stay the same.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_LAST = Number(
    "eight_bits/scaling_recipes/play-last",
    "In the first widget, choose the gradients of layer 1, attention.k_lin, with a history of 16, and add a spike of "
    "2^6 in step 100. Which is the last step whose scale comes from the spike?",
    answer="116",
    says="Step 116 looks back on steps 100 to 115. The spike itself saturates in step 100, and in the 16 steps after "
    "it 4 to 7 binades of the format stay unused.",
    wrong={
        "100": "In step 100 the spike is not known yet: its scale comes from steps 84 to 99.",
        "101": "That is the first one.",
        "115": "Step 115 looks back on steps 99 to 114. And the next step?",
        "117": "Step 117 looks back on steps 101 to 116, and the spike is gone.",
        "16": "It lasts for 16 steps. Which step is the last of them?",
    },
    otherwise="Set the step after the spike and read where its scale comes from, until the spike is no longer "
    "among those steps.",
)
PLAY_MARGIN = Number(
    "eight_bits/scaling_recipes/play-margin",
    "In the first widget, remove your spike and set the history to 1 step. What is the smallest margin with which no "
    "step of these gradients saturates?",
    answer="3",
    says="One step rises by more than a factor of 4, so it saturates with a margin of 2. With a history of 16 a margin "
    "of 2 is enough here.",
    wrong={
        "0": "Without a margin about half of the steps saturate.",
        "1": "Some steps rise by more than a factor of 2.",
        "2": "One step still saturates. Is the history 1?",
        "4": "That works, but a smaller one does too.",
        "8": "A margin of m leaves a factor of 2^m. The question asks for m.",
    },
    otherwise="Raise the margin from 0 and read the sentence below the curve.",
)
PLAY_COARSEST = Choice(
    "eight_bits/scaling_recipes/play-coarsest",
    "In the second widget, set an outlier of 300 and look at E2M1. Which is the coarsest choice of scales with which "
    "the error of the rest stays below 20 %?",
    (
        Option("one scale per tensor", "With it all other values become 0."),
        Option(
            "one scale per row",
            "The outlier is in one row of 128, and only that row pays. If a whole column were large, every row would.",
            True,
        ),
        Option("blocks of 1×128", "These work, but there is a coarser choice."),
        Option("NVFP4, blocks of 1×16", "This works, but there are coarser choices."),
    ),
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

NEXT_SCALE = "scale for that tensor"
COMES_BACK = "what 7 comes back as"
SCALE_AFTER = "scale for the step after"
HISTORY = {
    NEXT_SCALE: Number(
        "eight_bits/scaling_recipes/history-scale",
        "E4M3, margin 1, the last amaxes were 0.5, 2 and 0.25. What scale does the next tensor get?",
        answer="112",
        says="448 / 2 / 2: the largest of the three, and one power of two left free.",
        wrong={
            "224": "That is without the margin: 448 / 2. A margin of 1 leaves one power of two free.",
            "448": "A margin makes the scale smaller, so that more fits.",
            "896": "That is from the latest amax, 0.25. The largest of the history counts.",
            "1792": "That is from the latest amax, 0.25, and without the margin. The largest of the history counts.",
            "32": "That already uses the 7. The scale that the 7 meets comes from 0.5, 2 and 0.25.",
            "64": "That already uses the 7, and has no margin. The scale that the 7 meets comes from 0.5, 2 and 0.25.",
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
            "NaN": "A plain cast may give NaN past the end, but the recipe saturates first.",
        },
        otherwise="Multiply, saturate at 448, divide.",
        hints=("Multiply the 7 by its scale. Is the product past 448?",),
    ),
    SCALE_AFTER: Number(
        "eight_bits/scaling_recipes/history-after",
        "What scale does the step after it get?",
        answer="32",
        says="The history is now 2, 0.25 and 7: 448 / 7 / 2. The amax is the tensor's, not that of what was left.",
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
        f"With a margin of {margin}: in which step does the largest value first saturate?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="Divide each amax by the largest of the three before it. A quotient up to 2 to the margin fits, and "
        "one slightly above it too, because 464 is still rounded to 448.",
        hints=("The quotients from step 2 on: 1, 1.025, 1.46, 1.67, 1.4, 1.74, 2.46, 1.03, 4.19.",),
    )


FIRST_0, FIRST_1, FIRST_2 = "margin 0", "margin 1", "margin 2"
FIRST_STEP = {
    FIRST_0: _first(
        0,
        4,
        says="3 / 2.05 = 1.46. Step 3 gives 459.2, which is also above 448 but is rounded down to it.",
        wrong={
            "3": "2.05 / 2 · 448 = 459.2. That is past 448, but nearer to it than to the 480 that would come next: it "
            "is rounded and does not saturate.",
            "2": "The same amax again lands on 448, which fits.",
            "1": "With a scale of 1, a 2 is far below 448.",
            "5": "There is an earlier one.",
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
            "9": "31 / 30 = 1.03 fits.",
            "10": "130 / 31 saturates too, but it is not the first.",
        },
    ),
    FIRST_2: _first(
        2,
        10,
        says="130 / 31 = 4.19, times 112 is 469.7: past 464, so it saturates.",
        wrong={
            "8": "30 / 12.2 = 2.46: with a margin of 2 there is room for a factor of 4.",
            "0": "There is one: 130 / 31 = 4.19. Is that too much for 4?",
            "9": "31 / 30 = 1.03 fits.",
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
XT_ROWS = "x transposed: rows of scales"
XT_COLUMNS = "x transposed: columns of scales"
DYT_ROWS = "dy transposed: rows of scales"
WGRAD_SCALES = {
    X_COLUMNS: _count(
        "x",
        X_COLUMNS,
        8,
        says="1024 / 128: the forward pass sums over the inputs.",
        wrong={
            "16": "Those would be blocks of tokens. The forward pass sums over the inputs.",
            "1024": "That is the number of values in a row. 128 of them share a scale.",
            "128": "That is the length of a block.",
            "2048": "Those are the rows of scales, one per token.",
            "4": "That is 512 / 128, of dy.",
        },
        hint="y = x w^T sums over the 1,024 inputs.",
    ),
    XT_ROWS: _count(
        "xt-rows",
        XT_ROWS,
        1024,
        says="The transposed x is [1024, 2048], and each of its rows has its own scales.",
        wrong={
            "2048": "That is before it is transposed: x is [2048, 1024], its transpose [1024, 2048].",
            "8": "That would be one scale for 128 rows, as in tiles of 128x128.",
            "16": "The question is about rows. Each row of the transposed x has scales of its own.",
            "512": "That is the transposed dy.",
        },
        hint="The transposed x is [1024, 2048].",
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
        says="The transposed dy is [512, 2048], with 16 scales in each row.",
        wrong={
            "2048": "That is dy as it is, [2048, 512], which dx = dy w takes.",
            "4": "That would be one scale for 128 rows.",
            "16": "Those are its columns.",
            "1024": "That is the transposed x.",
        },
        hint="The transposed dy is [512, 2048].",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

FP8_PRODUCT = Task(
    "eight_bits/scaling_recipes/fp8-product",
    "Fix `fp8_product`: a product of two scaled E4M3 operands that is absurd, and sometimes NaN.",
)
LOST_SHARES = Task(
    "eight_bits/scaling_recipes/lost-shares",
    "Complete `lost_shares`: what share of the values that are not 0 saturates in E4M3, and what share becomes 0.",
)
