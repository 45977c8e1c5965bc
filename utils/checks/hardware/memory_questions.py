"""What `hardware/memory` asks: where the bytes of a step are, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- The puzzle -------------------------------------------------------------------------------------------------------

BATCH_OF_ONE = Choice(
    "hardware/memory/predict-batch-of-one",
    "The card is nearly full with one review of 512 tokens at a time, in float32. You switch to 16-mixed to make room. "
    "How much less memory does the step take?",
    (
        Option(
            "A fifth less: the same tensors become narrow, whatever the batch",
            "The same tensors become narrow, but now they hold one review instead of twelve. The others are as large "
            "as before.",
        ),
        Option(
            "More than a fifth: a small batch has less overhead",
            "What does not shrink with the batch is not overhead. It is weights, gradients and moments, and these stay "
            "float32.",
        ),
        Option(
            "Next to nothing: at most a few percent, up or down",
            "What autocast narrows grows with the batch. What it leaves alone does not, and the 16-bit copies of the "
            "weights are added to it.",
            True,
        ),
        Option(
            "Half, because there are hardly any activations left that stay in float32",
            "There are also hardly any left that become narrow.",
        ),
    ),
    predict=True,
)

# --- Sections ---------------------------------------------------------------------------------------------------------

DTYPE_OF_THE_SECOND_TIME = Choice(
    "hardware/memory/predict-second-time",
    "A function begins with a linear layer; its weights and x are float32. `Again.apply(function, x)` runs under "
    "autocast, so the layer returns bfloat16. `backward()` is called outside of autocast, as torch's documentation "
    "asks, and runs the function again. In which dtype does the layer compute then?",
    (
        Option(
            "bfloat16",
            "The function and its input are the same, and both are float32. It was autocast that made the result "
            "bfloat16, and `autocast` is off during the backward pass.",
        ),
        Option(
            "float32",
            "Weights and input are float32, and autocast is off during the backward pass.",
            True,
        ),
        Option(
            "Neither: torch raises an error",
            "Torch casts a gradient to the dtype of the tensor that it belongs to, so there is no error.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

LOGITS_OF_LLAMA_3 = Number(
    "hardware/memory/play-logits",
    "Choose Llama 3 8B, a batch of 4, a length of 8,192 and checkpointing. How many GB do the gradients of the logits "
    "take?",
    answer="33.6",
    says="That is more than its float32 weights, 32.1 GB. Each of 32,768 tokens has two float32 gradients for each of "
    "128,256 words.",
    tolerance=0.003,
    unit="GB",
    wrong={
        "2.1": "That is for one text of 2,048 tokens. Set the batch to 4 and the length to 8,192.",
        "8.41": "That is one text of 8,192 tokens. Set the batch to 4.",
        "16.8": "That is one of the two tensors. The row counts both.",
        "36.4": "That is what autograd keeps, the activations. The gradients of the logits have a row of their own.",
        "8.39": "That is LLaMA 7B, with 32,000 words. Choose Llama 3 8B.",
    },
    otherwise="Set the four fields, and read the row of the gradients of the logits.",
    hints=("The row is the last one before the sum.",),
)
BATCH_OF_QLORA = Number(
    "hardware/memory/play-qlora",
    "Press Reset, then choose QLoRA, checkpointing and the RTX 4090. How many texts of 2,048 tokens fit at most?",
    answer="12",
    says="Each text takes 1.357 GB: 0.833 for what autograd keeps and 0.524 for the gradients of the logits.",
    wrong={
        "5": "That is LoRA, whose frozen weights have 16 bits. Choose QLoRA.",
        "7": "That is a card with 16 GB. Choose the RTX 4090.",
        "1": "That is the batch you start with. Read the largest batch, below the changes.",
        "0": "Without LoRA or QLoRA nothing fits on this card. Choose QLoRA under *Trained*.",
    },
    otherwise="Set the three fields, and read the largest batch that fits below the list of changes.",
    hints=("The largest batch is below the list of changes.",),
)
REST_OF_SHARDING = Choice(
    "hardware/memory/play-sharding",
    "Press Reset, then look at the last rows of the list of changes. Sharding over 8 cards, in stage 3, saves 107.6 GB "
    "(shown as 108). Weights, gradients and moments take 107.8 GB, and seven eighths of them are 94.3 GB. What else "
    "goes away?",
    (
        Option(
            "Autocast's 16-bit copies of the weights",
            "They are 13.2 GB. In stage 3, FSDP2's `MixedPrecisionPolicy` gathers a layer's weights in 16 bits when "
            "it runs, and drops them afterwards. Under autocast in place of the policy, the copies would stay until "
            "the backward pass.",
            True,
        ),
        Option(
            "The activations, because each card keeps an eighth of them",
            "Every card has its own text, so its activations are all its own. Press the button and compare the rows.",
        ),
        Option(
            "The gradients of the logits",
            "They belong to the text of each card, and are only 0.5 GB.",
        ),
        Option(
            "Nothing: stage 3 leaves a card nothing but activations",
            "An eighth of weights, gradients and moments stays on each card, 13.5 GB.",
        ),
    ),
)

# --- Live experiment --------------------------------------------------------------------------------------------------

LARGEST_LEVER = Choice(
    "hardware/memory/predict-lever",
    "DistilBERT, reviews of 512 tokens, a card with 24 GB. In bf16-mixed with fused attention, 200 reviews fit into a "
    "step. You may change one thing. Which lets the most reviews fit?",
    (
        Option(
            "8-bit moments",
            "They save 0.4 GB, which is room for four more reviews.",
        ),
        Option(
            "bf16-true instead of bf16-mixed",
            "Weights, gradients and moments halve, and more of the activations are narrow. That makes 253 reviews.",
        ),
        Option(
            "Checkpointing",
            "It cuts what each review keeps to about a ninth.",
            True,
        ),
        Option(
            "Eager instead of fused attention",
            "Eager attention keeps the scores of every pair of tokens, so fewer reviews fit: 88.",
        ),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _gigabytes(
    name: str, text: str, answer: str, *, says: str, wrong: dict[str, str], hint: str, tolerance: float = 0.005
):
    return Number(
        f"hardware/memory/seven-billion{name}",
        f"{text}: how many GB?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="Write down the bytes of one parameter: weight, gradient, m, v, and a copy if there is one. Multiply "
        "by seven, because a billion bytes are a GB.",
        hints=(hint,),
        tolerance=tolerance,
        unit="GB",
    )


_SCALES_COUNT = 0.001  # a tolerance: the scales of both moments are 0.2 GB
_NO_SCALES = "That leaves out the scales of the blocks. Give one decimal."
_BLOCKS = "An 8-bit moment takes one byte, plus 4 bytes for each block of 256: 1 + 1/64."
_STAGES = "ZeRO stage 1 divides the moments by the number of cards, stage 3 everything."
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
        hint=_BLOCKS,
        tolerance=_SCALES_COUNT,
        wrong={
            "42": _NO_SCALES,
            "56": "That is with bfloat16 moments. Here each takes one byte and a little.",
            "28": "That is weights and gradients. Add two moments of one byte each.",
            "35": "That is with one moment. Adam has two.",
            "70.2": "That is with float32 weights and gradients. In bf16-true they have two bytes.",
            "6.03": "Right for one parameter, in bytes. There are seven billion.",
        },
    ),
    EIGHT_BIT_MIXED: _gigabytes(
        "-mixed",
        EIGHT_BIT_MIXED,
        "84.2",
        says="4 + 4 + 2.03, and 2 for autocast's copy: 12.03 bytes. Without the copy it would fit.",
        hint=_BLOCKS,
        tolerance=_SCALES_COUNT,
        wrong={
            "84": _NO_SCALES,
            "70.2": "That is without autocast's 16-bit copies, which a step adds.",
            "42.2": "That is bf16-true. With autocast weights and gradients are float32.",
            "126": "That is with float32 moments. Here each takes one byte and a little.",
            "112": "That is with float32 moments and without the copies.",
            "12.03": "Right for one parameter, in bytes. There are seven billion.",
        },
    ),
    STAGE_ONE: _gigabytes(
        "-stage-1",
        STAGE_ONE,
        "63",
        says="Every card keeps 4 + 4, and an eighth of the moments, 8 / 8 = 1: 9 bytes.",
        hint=_STAGES,
        wrong={
            "14": "That is stage 3. Stage 1 divides only the moments.",
            "112": "That is one card. Eight cards share the moments.",
            "77": "That counts autocast's copies too. Here they are left out.",
            "57.8": "That is with 8-bit moments. Here they are float32.",
            "38.5": "That is stage 2, which divides the gradients too.",
            "9": "Right for one parameter, in bytes. There are seven billion.",
            "56": "That is weights and gradients. Add an eighth of the moments.",
        },
    ),
    STAGE_THREE: _gigabytes(
        "-stage-3",
        STAGE_THREE,
        "14",
        says="Each card keeps 16 / 8 = 2 bytes per parameter.",
        hint=_STAGES,
        wrong={
            "112": "That is one card. Stage 3 divides everything by eight.",
            "63": "That is stage 1. Stage 3 divides gradients and weights too.",
            "15.75": "That counts autocast's copies too. Here they are left out.",
            "38.5": "That is stage 2. Stage 3 divides the weights too.",
            "2": "Right for one parameter, in bytes. There are seven billion.",
        },
    ),
}


_MOMENTS = "Adam's moments m and v are two tensors."
_MASTER = "A master is kept in addition to the weight that computes."
_COPY = "The copy is kept in addition to the float32 weight."


def _bytes(name: str, text: str, answer: int, *, says: str, wrong: dict[str, str], hint: str) -> Number:
    scales = {f"{answer}.01 to {answer}.05": "Leave out the scales of the blocks here."} if "8-bit" in text else {}
    return Number(
        f"hardware/memory/sixteen-eighteen-twenty{name}",
        f"{text}: how many bytes per parameter?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="Write one line for each tensor, with its bytes: 4 for float32, 2 for 16 bits, 1 for 8 bits. Then "
        "add them up.",
        within=scales,
        hints=(hint,),
        unit="bytes",
    )


COUNT_MASTERS = "FP8 weights; bfloat16 gradients; float32 master, m and v"
COUNT_WIDE_GRADIENTS = "bfloat16 weights; gradients in float32 only; float32 master; 8-bit m and v"
COUNT_AUTOCAST = "float32 weights and gradients; autocast's bfloat16 copies; 8-bit m and v"
COUNT_MOMENTUM = "float32 weights and gradients; autocast's bfloat16 copies; SGD's momentum"
COUNT_KAHAN = "bfloat16 weights, gradients and Kahan's compensation; 8-bit m and v"
SIXTEEN_EIGHTEEN_TWENTY = {
    COUNT_MASTERS: _bytes(
        "-fp8-weights",
        COUNT_MASTERS,
        15,
        says="1 + 2 + 4 + 4 + 4.",
        hint=f"{_MOMENTS} {_MASTER}",
        wrong={
            "12": "That is master, m and v. Add the FP8 weight and the gradient.",
            "13": "That is without the gradients, which take two bytes.",
            "14": "That is with FP8 gradients, or without the FP8 weight. Count five tensors.",
            "16": "That is with a bfloat16 weight. FP8 takes one byte.",
            "11": "That is without the master, or with one moment.",
        },
    ),
    COUNT_WIDE_GRADIENTS: _bytes(
        "-wide-gradients-8-bit",
        COUNT_WIDE_GRADIENTS,
        12,
        says="2 + 4 + 4 + 1 + 1.",
        hint=f"{_MOMENTS} {_MASTER}",
        wrong={
            "10": "That is with bfloat16 gradients. They are kept in float32 here.",
            "11": "There are two moments, of one byte each.",
            "14": "That has bfloat16 gradients beside the float32 ones, or moments of two bytes.",
            "18": "That is with float32 moments. Here each takes one byte.",
            "8": "That is without the master, which takes four bytes.",
        },
    ),
    COUNT_AUTOCAST: _bytes(
        "-autocast-8-bit",
        COUNT_AUTOCAST,
        12,
        says="4 + 4 + 1 + 1, and 2 for the copy: 12 again, but of different tensors.",
        hint=f"{_MOMENTS} {_COPY}",
        wrong={
            "10": "That is without autocast's copies, which have two bytes.",
            "11": "There are two moments, of one byte each.",
            "14": "There is one copy of each weight, of two bytes, and each moment takes one.",
            "18": "That is with float32 moments. Here each takes one byte.",
        },
    ),
    COUNT_MOMENTUM: _bytes(
        "-autocast-momentum",
        COUNT_MOMENTUM,
        14,
        says="4 + 4 + 4 + 2. SGD keeps one tensor per weight, in the dtype of the weight.",
        hint=f"SGD's momentum is one tensor. {_COPY}",
        wrong={
            "18": "That is Adam, with two moments. SGD keeps one momentum.",
            "12": "That has a momentum of 16 bits, or no copy. The momentum has the dtype of the weight, float32.",
            "10": "That is without the momentum.",
            "16": "That is Adam without the copies. SGD keeps one momentum, and autocast adds a copy.",
        },
    ),
    COUNT_KAHAN: _bytes(
        "-kahan-8-bit",
        COUNT_KAHAN,
        8,
        says="2 + 2 + 2 + 1 + 1: the compensation is one more bfloat16 number for each weight.",
        hint=f"{_MOMENTS} The compensation is kept in addition to the weight.",
        wrong={
            "6": "That is without the compensation.",
            "7": "There are two moments, of one byte each.",
            "10": "That is with bfloat16 moments, or with a float32 compensation. The compensation is bfloat16 here, "
            "and each moment takes one byte.",
            "12": "All but the moments are bfloat16 here, and the compensation takes the place of a master.",
        },
    ),
}
EVERY_K = Number(
    "hardware/memory/every-k-peak",
    "A network has 144 blocks. For its backward pass, a block needs 16 times as much memory as its input takes. You "
    "keep the input of every k-th block, and the backward pass recomputes k blocks at a time. How high is the lowest "
    "possible peak, in units of one input?",
    answer="96",
    says="With k = 3, 48 inputs are kept, and three blocks take 3 × 16 = 48. The peak is 104 with k = 2 and 100 with "
    "k = 4.",
    wrong={
        "3": "That is the best k. How high is the peak with it?",
        "48": "That is half of it: the inputs that are kept, or the blocks that are recomputed.",
        "100": "That is k = 4. A smaller k is better.",
        "104": "That is k = 2. Try the next one.",
        "144": "That is what the inputs of all blocks take. Fewer can be kept.",
        "160": "That is k = 1: 144 inputs and one block of 16. A second recomputed block costs 16 and saves 72 "
        "inputs. Go on as long as the next one pays.",
        "204": "That is k = 12, the square root of 144, which is right if a block needs only as much as its input. "
        "Here it needs 16 times that.",
    },
    otherwise="The peak is 144 / k inputs plus 16 k for the recomputed blocks. Try a few values of k, and keep the "
    "lowest sum.",
    hints=(
        "Use the size of an input as the unit. Kept: 144 / k. For k recomputed blocks: 16 k.",
        "A sum a / k + b k is smallest where both parts are equal.",
    ),
)

# --- Exercises in code ------------------------------------------------------------------------------------------------

QUANTIZE_BLOCKS = Task(
    "hardware/memory/quantize-blocks",
    "Write `quantize_blocks`: the 8-bit code of each value, and the largest magnitude of each block of 256.",
)
