"""What `hardware/memory` asks: where the bytes of a step are, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

WHERE_IS_IT = Choice(
    "hardware/memory/predict-where-it-is",
    "16-mixed multiplies in half of the bits, and takes a fifth less memory. Where is the rest?",
    (
        Option(
            "The products did shrink to a half, but their 16-bit copies of the weights take up most of what was saved",
            "There are such copies, and they cost. But they take two bytes a weight: a tenth of a gigabyte here, and "
            "more than one and a half are missing.",
        ),
        Option(
            "Most tensors of a step are no inputs of a product: they are still stored in 32 bits",
            "Weights, gradients, Adam's two means, and a part of what the backward pass needs.",
            True,
        ),
        Option(
            "The log shows what torch has reserved, not what is in use: in use it was a half",
            "Reserved is more than allocated, by a tenth or so. That cannot turn a half into a fifth, and bf16-true "
            "was measured in the same way.",
        ),
        Option(
            "A GPU allocates in blocks of a fixed size, and two 16-bit numbers take as much as two 32-bit ones",
            "A block holds millions of numbers, and twice as many of 16 bits.",
        ),
    ),
    predict=True,
)
BATCH_OF_ONE = Choice(
    "hardware/memory/predict-batch-of-one",
    "Now the same network with one review at a time instead of twelve. How much less memory does 16-mixed take than "
    "float32?",
    (
        Option(
            "Also a fifth: the same tensors are narrow, whatever the batch",
            "The same tensors are narrow. But they have become smaller, and the others have not.",
        ),
        Option(
            "More than a fifth: a small batch has less overhead",
            "What does not shrink with the batch is no overhead: it is weights, gradients and moments.",
        ),
        Option(
            "Next to nothing",
            "What mixed precision makes narrow grows with the batch; what it leaves alone does not, and the copies of "
            "the weights come on top.",
            True,
        ),
        Option(
            "A half, since there are hardly any activations to be kept in float32",
            "Then there is hardly anything left that is narrow.",
        ),
    ),
    predict=True,
)
DTYPE_OF_THE_SECOND_TIME = Choice(
    "hardware/memory/predict-second-time",
    "x is float32, as after a layer norm. The first pass runs under autocast and gives bfloat16. The backward pass "
    "runs outside of it, as torch's documentation asks, and calls the same function again. In "
    "which dtype does it compute?",
    (
        Option(
            "bfloat16: the function and its input are the same",
            "They are, and both are float32. What made it bfloat16 was a state of the thread.",
        ),
        Option(
            "float32: nothing says bfloat16 there any more",
            "Weights and input are float32, and autocast is off.",
            True,
        ),
        Option(
            "Neither: torch raises an error, since the gradient is bfloat16",
            "A gradient has to have the dtype of what it is the gradient of, or it is cast. Here it is cast.",
        ),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _gigabytes(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str], tolerance: float = 0.005):
    return Number(
        f"hardware/memory/seven-billion{name}",
        f"{text}: how many GB?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="Write down the bytes of one weight: the weight, its gradient, m, v, a copy if there is one. Then "
        "times seven, since a billion bytes are a GB.",
        hints=(
            "A moment of 8 bits takes one byte, and 4 bytes more for each block of 256: 1 + 1/64.",
            "ZeRO stage 1 divides the moments by the number of cards, stage 3 everything.",
        ),
        tolerance=tolerance,
        unit="GB",
    )


EIGHT_BIT_TRUE = "bf16-true, 8-bit moments"
EIGHT_BIT_MIXED = "bf16-mixed, 8-bit moments"
STAGE_ONE = "bf16-mixed without copies, stage 1, 8 cards"
STAGE_THREE = "bf16-mixed without copies, stage 3, 8 cards"
SEVEN_BILLION = {
    EIGHT_BIT_TRUE: _gigabytes(
        "",
        EIGHT_BIT_TRUE,
        "42.2",
        says="2 + 2 for weight and gradient, 2.03 for both moments: 6.03 bytes.",
        wrong={
            "56": "That is with moments of bfloat16. Here each has one byte and a little.",
            "28": "That is weights and gradients. There are two moments, of a byte each.",
            "35": "That is with one moment. Adam has two.",
            "70.2": "That is with float32 weights and gradients. In bf16-true they have two bytes.",
            "6.03": "Right for one weight, in bytes. There are seven billion.",
        },
    ),
    EIGHT_BIT_MIXED: _gigabytes(
        "-mixed",
        EIGHT_BIT_MIXED,
        "84.2",
        says="4 + 4 + 2.03, and 2 for autocast's copy: 12.03 bytes. Without the copy it would fit.",
        wrong={
            "70.2": "That is what lies there between two steps. In a step autocast's 16-bit copies come on top.",
            "42.2": "That is bf16-true. With autocast weights and gradients are float32.",
            "126": "That is with float32 moments. Here each has one byte and a little.",
            "112": "That is with float32 moments and without the copies.",
            "12.03": "Right for one weight, in bytes. There are seven billion.",
        },
    ),
    STAGE_ONE: _gigabytes(
        "-stage-1",
        STAGE_ONE,
        "63",
        says="4 + 4 stay whole on every card, and 8 / 8 = 1 is left of the moments: 9 bytes.",
        wrong={
            "14": "That is stage 3. Stage 1 divides the moments alone.",
            "112": "That is one card. Eight cards share the moments.",
            "38.5": "That is stage 2, which divides the gradients too.",
            "9": "Right for one weight, in bytes. There are seven billion.",
            "56": "That is weights and gradients. An eighth of the moments is here as well.",
        },
    ),
    STAGE_THREE: _gigabytes(
        "-stage-3",
        STAGE_THREE,
        "14",
        says="16 / 8 = 2 bytes of each weight are on each card.",
        wrong={
            "112": "That is one card. Stage 3 divides everything by eight.",
            "63": "That is stage 1. Stage 3 divides gradients and weights too.",
            "38.5": "That is stage 2. Stage 3 divides the weights too.",
            "2": "Right for one weight, in bytes. There are seven billion.",
        },
    ),
}


def _bytes(name: str, text: str, answer: int, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"hardware/memory/sixteen-eighteen-twenty{name}",
        f"{text}: how many bytes for a parameter?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="Write one line for each tensor that is named, with its bytes: 4 for float32, 2 for 16 bits, 1 for "
        "8. Then add them up.",
        hints=("Adam's moments m and v are two tensors. A master is a copy beside the weight, not in its place.",),
        unit="bytes",
    )


COUNT_MASTERS = "bfloat16 weights and gradients; float32 master, m and v"
COUNT_WIDE_GRADIENTS = "the same, but the gradients are added up in float32"
COUNT_EIGHT_BITS = "the same, and m and v have 8 bits"
COUNT_AUTOCAST = "float32 weights, gradients, m and v; autocast's bfloat16 copies"
COUNT_KAHAN = "bfloat16 weights, gradients, m, v and Kahan's compensation"
SIXTEEN_EIGHTEEN_TWENTY = {
    COUNT_MASTERS: _bytes(
        "",
        COUNT_MASTERS,
        16,
        says="2 + 2 + 4 + 4 + 4.",
        wrong={
            "12": "Those are master, m and v. The 16-bit weight and its gradient are there too.",
            "14": "Is the gradient in? And the 16-bit weight beside its master?",
            "18": "The gradients have two bytes here.",
            "8": "All in 16 bits would be 8, without a master. Three of these tensors are float32.",
        },
    ),
    COUNT_WIDE_GRADIENTS: _bytes(
        "-wide-gradients",
        COUNT_WIDE_GRADIENTS,
        18,
        says="2 + 4 + 4 + 4 + 4.",
        wrong={
            "16": "A float32 gradient takes two bytes more.",
            "20": "The 16-bit gradients are gone here: the float32 ones stand in their place.",
        },
    ),
    COUNT_EIGHT_BITS: _bytes(
        "-eight-bits",
        COUNT_EIGHT_BITS,
        12,
        says="2 + 4 + 4 + 1 + 1.",
        wrong={
            "10": "The same as the line above, so the gradients are float32.",
            "11": "Two moments, of a byte each.",
            "14": "8 bits are one byte.",
            "15": "Both moments have 8 bits now.",
            "18": "m and v have one byte each now, not four.",
        },
    ),
    COUNT_AUTOCAST: _bytes(
        "-autocast",
        COUNT_AUTOCAST,
        18,
        says="4 + 4 + 4 + 4, and 2 for the copy: another 18, of other tensors.",
        wrong={
            "16": "That is float32 alone. Autocast's copies have two bytes.",
            "20": "The copies have two bytes each, and there is one for each weight.",
            "12": "With autocast the gradients are float32, and so are m and v.",
            "14": "With autocast the gradients are float32.",
        },
    ),
    COUNT_KAHAN: _bytes(
        "-kahan",
        COUNT_KAHAN,
        10,
        says="2 + 2 + 2 + 2 + 2: the compensation is one more bfloat16 number beside each weight.",
        wrong={
            "8": "That is without the compensation.",
            "12": "The compensation is bfloat16 as well: two bytes.",
            "5": "Those are five tensors, of two bytes each.",
            "16": "All five are bfloat16 here, and there is no master.",
            "18": "All five are bfloat16 here.",
        },
    ),
}
EVERY_K = Number(
    "hardware/memory/every-k",
    "A network of 144 blocks. What a block needs for its backward pass is 16 times its input. Only the input of every "
    "k-th block is kept, and the backward pass makes k blocks again at a time. Which k has the lowest peak?",
    answer="3",
    says="48 inputs and 3 × 16 = 48 for the blocks: 96 inputs' worth. With k = 2 it is 104, with k = 4 it is 100.",
    wrong={
        "1": "144 inputs and one block of 16: 160. A few more blocks at a time cost 16 each, and save many inputs.",
        "2": "72 inputs and two blocks of 16: 104. Try the next one.",
        "4": "36 inputs and four blocks of 16: 100. There is a better one below.",
        "12": "The square root of 144: right if a block needed as much as its input. Here it needs 16 times that, and "
        "12 blocks at a time take 192.",
        "9": "16 inputs and nine blocks of 16: 160. That is as much as with k = 1.",
        "144": "One input, and all blocks at a time: 2,304 and more. Nothing is saved.",
        "96": "That is the peak, in inputs. The question is which k gives it.",
    },
    otherwise="The peak is 144 / k inputs, and 16 k for the blocks that are made again. Try a few values of k.",
    hints=(
        "Count in inputs of a block. Kept: 144 / k. Alive while k blocks are made again: 16 k.",
        "A sum a / k + b k is smallest where both parts are equal.",
    ),
)

# --- Exercises in code ------------------------------------------------------------------------------------------------

QUANTIZE_BLOCKS = Task(
    "hardware/memory/quantize-blocks",
    "Write `quantize_blocks`: the 8-bit code of each value, and the largest magnitude of each block of 256.",
)
