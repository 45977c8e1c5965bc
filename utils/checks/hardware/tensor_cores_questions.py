"""What `hardware/tensor_cores` asks: what a product waits for, what TF32 does, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

WHY_SLOW = Choice(
    "hardware/tensor_cores/predict-why-slow",
    "As many multiplications, and several times the time. What does the processor do while it computes the row?",
    (
        Option(
            "It adds: each result of the row is a sum of 8192 products, each result of the square one of 512",
            "The sums are longer, but there are fewer of them. All in all there are as many additions.",
        ),
        Option(
            "It cannot divide the work: a single row goes to a single core",
            "Nothing forces it to: the 16384 results of the row are independent of each other. And with one core for "
            "both products the row takes several times as long too.",
        ),
        Option(
            "It waits for numbers: they come out of memory more slowly than it multiplies them",
            "Count how many numbers each of the two products has to read.",
            True,
        ),
        Option(
            "It pays a fixed price for every call, whatever the size",
            "Both are one call. A call costs microseconds, and milliseconds are missing.",
        ),
    ),
    predict=True,
)
HOW_MANY_TOKENS = Choice(
    "hardware/tensor_cores/predict-how-many-tokens",
    "From how many tokens at once does arithmetic, and not memory, decide how long this layer takes?",
    (
        Option(
            "From one: a layer of 16.8 million weights is work enough",
            "Work enough, but one multiply-add, two operations, for the two bytes of a weight: one operation a byte.",
        ),
        Option(
            "From about 20",
            "20 operations a byte is the ridge in float32. In bfloat16 the arithmetic is 15 times as fast.",
        ),
        Option(
            "From about 350",
            "Each token adds one operation for every byte of the weights, and a little less, since tokens move too.",
            True,
        ),
        Option(
            "Never: the weights do not fit into any cache",
            "These 33.6 MB would even fit into an H100's cache of 50 MB; the 13 GB of the whole model do not. What "
            "counts is how often a weight is used once it has come.",
        ),
    ),
    predict=True,
)
TIMES_IDENTITY = Choice(
    "hardware/tensor_cores/predict-times-identity",
    "x holds random float32 numbers, and I is the identity: ones and zeros, exact in every format. What is x @ I in "
    "TF32?",
    (
        Option(
            "Exactly x: a product with 1 and sums with 0 lose nothing",
            "They do lose nothing. But what is multiplied by 1 is no longer x.",
        ),
        Option(
            "x, each number cut or rounded to 11 significant bits",
            "The factors are cut or rounded before they are multiplied, and x is a factor.",
            True,
        ),
        Option(
            "x, but for the few numbers where the sum of 256 terms was unlucky",
            "All but one of the 256 terms are 0: there is nothing to round in the sum.",
        ),
        Option(
            "x rounded to 8 bits, as in bfloat16",
            "TF32 has bfloat16's exponent. Its fraction is float16's: 10 bits, and the hidden one.",
        ),
    ),
    predict=True,
)
ON_BY_DEFAULT = Choice(
    "hardware/tensor_cores/on-by-default",
    "A float32 network with convolutions and linear layers, on an A100, with torch as it is imported. What is "
    "computed in TF32?",
    (
        Option(
            "Nothing: TF32 has to be turned on",
            "For matrix products. Look at the row of the convolutions.",
        ),
        Option(
            "The convolutions, and not the linear layers",
            "Two switches, with two defaults.",
            True,
        ),
        Option(
            "The linear layers, and not the convolutions",
            "That was never the default. From torch 1.7 to 1.11 both were on; since 1.12 products are float32 unless "
            "you say otherwise.",
        ),
        Option(
            "Both",
            'Look at the row of the products: "highest" allows no rounding.',
        ),
    ),
)
WHO_GAINS = Choice(
    "hardware/tensor_cores/predict-who-gains",
    "Three steps on an H100: LLaMA trains on 2048 tokens, DistilBERT trains on 12 reviews, LLaMA writes one token. How "
    "many times as fast are their products at best, once TF32 is turned on?",
    (
        Option(
            "7.4 in all three: the card multiplies 7.4 times as fast",
            "It does, as long as it has something to multiply.",
        ),
        Option(
            "About 7, about 5, and nothing at all for the token",
            "The higher the roof, the more products lie below it on the slope. The token was there from the start.",
            True,
        ),
        Option(
            "About 7, about 5, and 2 for the token",
            "2 is what half the bytes would give. TF32 is stored in 32 bits.",
        ),
        Option(
            "About 4 in all three: a half of a step moves bytes and a half computes",
            "A product does one or the other. Its shape says which.",
        ),
    ),
    predict=True,
)

# --- Exercises --------------------------------------------------------------------------------------------------------


def _intensity(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"hardware/tensor_cores/intensity{name}",
        f"`{text}` in bfloat16: how many operations for each byte?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="2 M N K operations. M K + K N + M N numbers, of two bytes each. Divide.",
        hints=("A multiplication and its addition are two operations.", "The result is moved too."),
        tolerance=0.004,
        near=0.03,
        unit="operations per byte",
    )


ONE_ROW = "[1, 4096] @ [4096, 4096]"
CUBE = "[4096, 4096] @ [4096, 4096]"
SCORES = "[512, 64] @ [64, 512]"
INTENSITY = {
    ONE_ROW: _intensity(
        "",
        ONE_ROW,
        "4096/4098",
        says="One multiply-add for each weight of two bytes: nearly 1, whatever the size of the layer.",
        wrong={
            "2": "That is for each number. A number has two bytes.",
            "0.5": "Either you counted a multiplication and its addition as one, or four bytes a number.",
            "4096": "That would be for each number of the row. The 16.8 million weights are read too.",
        },
    ),
    CUBE: _intensity(
        "-cube",
        CUBE,
        "4096/3",
        says="2 · 4096³ / (2 · 3 · 4096²) = 4096 / 3. It grows with the side.",
        wrong={
            "4096": "That is without two of the three matrices: both factors are read, and the result is written.",
            "2048": "That is without the result. It has to be written.",
            "682.67": "Either you counted a multiplication and its addition as one, or four bytes a number.",
            "2730.67": "That is for each number. A number has two bytes.",
        },
    ),
    SCORES: _intensity(
        "-scores",
        SCORES,
        "51.2",
        says="The 512 × 512 scores are most of the bytes, and K = 64 is all the work there is for each.",
        wrong={
            "256": "That is without the result, which is the largest of the three matrices here.",
            "25.6": "Either you counted a multiplication and its addition as one, or four bytes a number.",
            "102.4": "That is for each number. A number has two bytes.",
            "64": "That counts the scores alone. The factors are read too.",
        },
    ),
}


def _rows(name: str, text: str, answer: int, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"hardware/tensor_cores/critical-batch{name}",
        f"{text}: bound by compute from which M on?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="Set 2 M N K / (2 (M K + K N + M N)) equal to the ridge and solve for M; then round up.",
        hints=(
            "The ridge is the peak over the bandwidth: 312e12 / 2039e9 for the A100.",
            "However large M is, the intensity stays below N K / (N + K).",
        ),
        tolerance=0.0,
        near=0.0,
        unit="rows",
    )


A100_LAYER = "A100, K = N = 4096"
L4_LAYER = "L4, K = N = 4096"
A100_SCORES = "A100, K = 64, N = 512"
CRITICAL = {
    A100_LAYER: _rows(
        "",
        A100_LAYER,
        166,
        says="153 operations a byte, and a little more, since the tokens themselves move as well.",
        wrong={
            "153": "That is the ridge. With M = 153 the intensity is less than 153: tokens in and out are bytes too.",
            "154": "That is the ridge, rounded up. Tokens in and out are bytes too, so it takes a few more.",
            "165": "Close: at 165 it is still below the ridge. Round up.",
            "77": "The intensity of bfloat16 is about M, not 2 M: two operations for a weight of two bytes.",
            "306": "The intensity of bfloat16 is about M, not M / 2: a multiplication and its addition are two.",
        },
    ),
    L4_LAYER: _rows(
        "-l4",
        L4_LAYER,
        503,
        says="Less than half of the A100's peak, and three times the batch: its memory is the slower part.",
        wrong={
            "403": "That is the ridge. Tokens in and out are bytes too, so it takes more.",
            "404": "That is the ridge, rounded up. Tokens in and out are bytes too, so it takes more.",
            "502": "Close: at 502 it is still below the ridge. Round up.",
            "166": "That is the A100. The L4 has another ridge.",
        },
    ),
    A100_SCORES: _rows(
        "-scores",
        A100_SCORES,
        0,
        says="It stays below N K / (N + K) = 57 operations a byte, and the ridge is at 153. A batch of texts is more "
        "such products, not a larger one.",
        wrong={
            "153": "That is the ridge. Is there an M with which this product gets there?",
            "512": "With M = 512 there are 51.2 operations for each byte, and the ridge is at 153.",
            "57": "That is the intensity that it never reaches, however large M is. What follows?",
        },
    ),
}


def _tf32(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"hardware/tensor_cores/tf32{name}",
        f"0.7 in TF32, {text}:",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="0.7 lies between 1/2 and 1. There, numbers with ten fraction bits are 2^-11 apart. How many such "
        "steps is it?",
        hints=("0.7 · 2048 = 1433.6.",),
        near=0.001,
    )


CUT_OFF = "cut off"
TO_NEAREST = "to nearest"
WENT_IN = "That is what went in. Ten fraction bits cannot hold it: count the steps of 1/2048."
TF32 = {
    CUT_OFF: _tf32(
        "",
        CUT_OFF,
        "1433/2048",
        says="1433.6 steps, and the rest is dropped.",
        wrong={
            "0.7": WENT_IN,
            "1434/2048": "That is to the nearest. To cut off is to go toward zero.",
            "2867/4096": "That is with eleven fraction bits: TF32 has ten, and the hidden bit.",
            "179/256": "That is bfloat16. TF32 has three fraction bits more: ten, and the hidden one.",
        },
    ),
    TO_NEAREST: _tf32(
        "-nearest",
        TO_NEAREST,
        "1434/2048",
        says="1433.6 steps are nearer to 1434. The error is two thirds of that of cutting here.",
        wrong={
            "0.7": WENT_IN,
            "1433/2048": "That is cut off. 1433.6 is nearer to 1434.",
            "2867/4096": "That is with eleven fraction bits: TF32 has ten, and the hidden bit.",
            "179/256": "That is bfloat16. TF32 has three fraction bits more: ten, and the hidden one.",
        },
    ),
}


def _float64(name: str, text: str, answer: int, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"hardware/tensor_cores/float64{name}",
        f"{text}: how many times as long as in float32?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="First find on which side of the ridge it lies, in either dtype. Then compare what decides: the two "
        "peaks, or the two numbers of bytes.",
        hints=("8 bytes instead of 4, and 19.5 instead of 19.5 TFLOP/s, or a 64th.",),
        tolerance=0.01,
        near=0.02,
        unit="times",
    )


A100_CUBE = "A100, 8192 × 8192 × 8192"
A100_ROW = "A100, 1 × 8192 × 8192"
RTX_CUBE = "RTX 4090, 8192 × 8192 × 8192"
RTX_ROW = "RTX 4090, 1 × 8192 × 8192"
FLOAT64 = {
    A100_CUBE: _float64(
        "",
        A100_CUBE,
        1,
        says="Compute bound, and both peaks are 19.5.",
        wrong={
            "2": "Twice the bytes, but the bytes do not decide here: it is compute bound. The peaks are 19.5 and 19.5.",
            "64": "That is a consumer card. The A100 has tensor cores for float64.",
            "32": "That is a consumer card, and halved. The A100 has tensor cores for float64.",
            "2.01": "9.7 TFLOP/s is float64 without tensor cores. A product can use them.",
        },
    ),
    A100_ROW: _float64(
        "-row",
        A100_ROW,
        2,
        says="Memory bound: twice the bytes, twice the time.",
        wrong={
            "1": "The peaks are equal, but the peak does not decide here. How many bytes has a float64?",
            "64": "That is a consumer card's peak. And the peak does not decide here.",
            "4": "A float64 has twice the bytes of a float32.",
        },
    ),
    RTX_CUBE: _float64(
        "-rtx",
        RTX_CUBE,
        64,
        says="Compute bound, and a 64th of the peak. Here the saying is true.",
        wrong={
            "1": "That is the A100. This card has no tensor cores for float64.",
            "2": "Twice the bytes, but the bytes do not decide here.",
            "128": "A 64th of the peak is 64 times as long. The bytes do not come on top: the longer time counts.",
        },
    ),
    RTX_ROW: _float64(
        "-rtx-row",
        RTX_ROW,
        2,
        says="1.29 TFLOP/s over 1008 GB/s is a ridge of 1.3, and the row has a quarter of an operation a byte: even a "
        "64th of the arithmetic is more than memory can feed.",
        wrong={
            "64": "Is it compute bound? Even at a 64th the ridge is at 1.3 operations a byte. How many has the row?",
            "1": "Memory decides. How many bytes has a float64?",
            "128": "Is it compute bound? Even at a 64th the ridge is at 1.3 operations a byte.",
        },
    ),
}
IN_TF32 = Task(
    "hardware/tensor_cores/in-tf32",
    "Find the bug: mend `in_tf32`, which runs a function with TF32 allowed and leaves torch as it found it. The "
    "function may ask `torch.get_float32_matmul_precision()`.",
)
