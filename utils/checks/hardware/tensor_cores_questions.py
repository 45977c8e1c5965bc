"""What `hardware/tensor_cores` asks: what a product waits for, what TF32 does, and the reply to each answer."""

from utils.checks.questions import Choice, Number, Option, Task, number

# --- Predictions ------------------------------------------------------------------------------------------------------

SQUARE_ON_L4 = Choice(
    "hardware/tensor_cores/predict-square-on-l4",
    "If each card reaches the limits of its data sheet, how long does the square product take in float32 on the L4?",
    (
        Option(
            "About half as long as on the V100: the L4 multiplies almost twice as fast",
            "Its arithmetic alone would take 8.9 µs. How long do its three matrices take at 300 GB/s?",
        ),
        Option(
            "About 0.6 times as long: on the L4, this product has to wait for memory, too",
            "Its 3.1 MB take 10.5 µs to move on the L4, which is longer than the 8.9 µs of its arithmetic.",
            True,
        ),
        Option(
            "About 1.5 times as long: the L4 moves bytes a third as fast, but multiplies almost twice as fast",
            "The two rates do not combine: the longer of the two times counts, and the other one hides behind it.",
        ),
        Option(
            "3 times as long, like the row: the L4's memory moves a third of the bytes per second",
            "The V100's memory is not what it waits for there: its bytes move in 3.5 µs, and its arithmetic takes "
            "17.1 µs.",
        ),
    ),
    predict=True,
)
HOW_MANY_TOKENS = Choice(
    "hardware/tensor_cores/predict-how-many-tokens",
    "How many tokens at once does it take for arithmetic, and not memory, to decide how long this layer takes?",
    (
        Option(
            "One: 16.8 million weights are enough work",
            "One token does two operations for each weight of two bytes: one operation per byte, far below the ridge.",
        ),
        Option(
            "About 20",
            "20 operations per byte is the ridge in float32. In bfloat16 the arithmetic is 15 times as fast.",
        ),
        Option(
            "About 150",
            "150 tokens are about 140 operations per byte: two operations for a weight of two bytes, not of one.",
        ),
        Option(
            "About 295: that is the ridge",
            "At 295 tokens it is 258 operations per byte: the tokens themselves and their results move too.",
        ),
        Option(
            "About 350",
            "Each token adds one operation per byte of the weights. It takes more than 295, because the tokens "
            "themselves move too.",
            True,
        ),
        Option(
            "No number is enough: the weights do not fit into a cache",
            "These 33.6 MB would fit into an H100's cache of 50 MB; the 13 GB of a whole model do not. What counts is "
            "how often a weight is used once it has arrived.",
        ),
    ),
    predict=True,
)
NINE_PRODUCTS = Choice(
    "hardware/tensor_cores/predict-nine-products",
    "How many products of bfloat16 numbers does one product of two float32 numbers take, if no bit of either factor is "
    "dropped?",
    (
        Option("2", "Two parts hold 16 of the 24 bits, and each part of one factor meets each part of the other."),
        Option("3", "Three parts hold one factor. The other one has three parts, too."),
        Option("4", "That is for two parts per factor, which hold 16 of the 24 bits."),
        Option(
            "6",
            "That leaves out the three smallest of the products of three parts and three parts, which is nearly "
            "enough. But then some bits are dropped.",
        ),
        Option("9", "Three parts of 8 bits per factor, and each of one factor meets each of the other.", True),
    ),
    predict=True,
)
ATTENTION_FP8 = Choice(
    "hardware/tensor_cores/predict-attention-fp8",
    "By the roofline of an H100, TF32 makes the products of DistilBERT's attention 1.3 times as fast as float32, and "
    "bfloat16 makes them 2.6 times as fast. How many times as fast as float32 does FP8 make them?",
    (
        Option(
            "2.6 times, as in bfloat16: they are bound by memory, and a higher peak does not help",
            "A higher peak does not help. But fewer bytes do, and FP8 moves fewer.",
        ),
        Option(
            "2.8 times: the 512 × 512 matrix of a head is nearly all that moves, and it keeps 16 bits",
            "It keeps 16 bits where it is the result. In most of these products it is a factor, with one byte per "
            "number.",
        ),
        Option(
            "3.8 times: the factors take half of bfloat16's bytes, and the results as many as before",
            "Where the 512 × 512 matrix is the result, FP8 is 1.1 times as fast as bfloat16; where it is a factor, "
            "1.8 times.",
            True,
        ),
        Option(
            "5.1 times: half of bfloat16's bytes",
            "The factors have half the bytes. The results keep 16 bits, and some are the largest matrix of their "
            "product.",
        ),
        Option(
            "29.6 times: the ratio of the peaks",
            "They would have to be bound by arithmetic in FP8. They are bound by memory in TF32 already.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_TF32 = Number(
    "hardware/tensor_cores/play-tf32",
    "N = K = 4096. What is the smallest number of tokens M for which TF32 on the H100 is faster than float32 "
    "on the H200?",
    answer="41",
    says="At 40 the H200 is still ahead. With fewer tokens TF32 on the H100 takes 20 µs, bound by memory, as "
    "float32 there does, and the H200's memory is faster. From 41 on even the H100 is bound by its arithmetic in "
    "float32.",
    wrong={
        "40": "Close: at 40 the H200 is still faster, by a little.",
        "42": "TF32 is ahead there, but one token fewer is already enough.",
        "20": "That is the ridge in float32, in operations per byte. A token adds half an operation per byte.",
        "346": "From there on TF32 on the H100 is bound by compute. It is ahead long before.",
        "29": "That is where float32 on the H200 becomes bound by compute. TF32 on the H100 needs a few more rows.",
    },
    within={
        "1 to 28": "There float32 on the H200 is faster: moving decides on both, and the H200 moves 4800 GB/s.",
        "30 to 39": "There float32 on the H200 is still faster: it is already bound by compute, but takes less than "
        "the 20.4 µs that the H100 needs for moving.",
        "43 to 131072": "It is faster there, but it was already with fewer tokens.",
    },
    otherwise="Note the predicted time of TF32 on the H100 and of float32 on the H200 for the same M. Halve the step "
    "between an M where one wins and an M where the other wins.",
    hints=("Below which M is float32 on the H100 still bound by memory?",),
    near=0.0,
    unit="tokens",
)
PLAY_CUBE = Choice(
    "hardware/tensor_cores/play-cube",
    "Press “8,192 cube”. In float32 on the H100, this product takes at least 16.4 ms. Which of these is the only "
    "one below 0.3 ms?",
    (
        Option("FP8 on the H200", "0.556 ms, as on the H100: they have the same peak, and the cube is compute bound."),
        Option("bfloat16 on the B200", "0.489 ms. One of the others halves this."),
        Option("FP8 on the MI300X", "0.42 ms: close, but its peak in FP8 is not high enough."),
        Option("FP8 on the B200", "0.244 ms: 67 times as fast, as its peak is 67 times as high.", True),
    ),
)

# --- Exercises --------------------------------------------------------------------------------------------------------


def _intensity(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str]) -> Number:
    near = (factor * number(answer) for factor in (0.995, 1.005))
    return Number(
        f"hardware/tensor_cores/intensity{name}",
        f"`{text}` in FP8, with a result of 16 bits: how many operations per byte?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="2 M N K operations. One byte for each of the M K + K N numbers of the factors, and two for each of "
        "the M N results. Divide.",
        hints=("A multiplication and its addition are two operations.", "The result is moved too, in two bytes each."),
        within={" to ".join(f"{end:.6g}" for end in near): "Close, but not to three digits."},
        tolerance=0.001,
        near=0.0,
        unit="operations per byte",
    )


FEW_ROWS = "[8, 4096] @ [4096, 4096]"
CUBE = "[4096, 4096] @ [4096, 4096]"
SCORES = "[512, 64] @ [64, 512]"
INTENSITY = {
    FEW_ROWS: _intensity(
        "-few",
        FEW_ROWS,
        "65536/4120",
        says="Two operations per row for each weight of one byte: nearly 16. The rows themselves and the result, which "
        "keeps 16 bits, are a little more to move.",
        wrong={
            "16": "That counts only the weights. The eight rows and their results are moved too.",
            "15.94": "That is with a result of 8 bits. It is written in 16.",
            "7.97": "That is bfloat16, or a multiplication and its addition counted as one operation.",
            "8": "In FP8 a weight has one byte, and a multiplication and its addition are two operations.",
            "2": "That is one row. Each of the eight rows uses every weight.",
        },
    ),
    CUBE: _intensity(
        "-cube",
        CUBE,
        "2048",
        says="2 · 4096³ / (4 · 4096²), with two of the four bytes for the result. It grows with the side.",
        wrong={
            "1365.33": "That is bfloat16. In FP8 the factors have one byte per number.",
            "2730.67": "That is with a result of 8 bits. It is written in 16.",
            "4096": "That is without the result. It has to be written.",
            "1024": "Did you count a multiplication and its addition as one operation?",
        },
    ),
    SCORES: _intensity(
        "-scores",
        SCORES,
        "512/9",
        says="The 512 × 512 scores are most of the bytes, and they keep 16 bits. So FP8 does not double the intensity "
        "of bfloat16, which is 51.2: it adds a ninth.",
        wrong={
            "51.2": "That is bfloat16. In FP8 the factors have one byte per number.",
            "102.4": "That is with a result of 8 bits. It is written in 16.",
            "512": "That is without the result, which is the largest of the three matrices here.",
            "64": "That counts the scores alone. The factors are read too.",
            "28.44": "Did you count a multiplication and its addition as one operation?",
        },
    ),
}


def _rows(
    name: str, text: str, answer: int, *, says: str, wrong: dict[str, str], within: dict[str, str] | None = None
) -> Number:
    return Number(
        f"hardware/tensor_cores/critical-batch{name}",
        f"{text}: what is the smallest M that makes it compute bound?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="Set 2 M N K / (2 (M K + K N + M N)) equal to the ridge and solve for M; then round up.",
        hints=(
            "The ridge is the peak over the bandwidth.",
            "However large M is, the intensity stays below N K / (N + K).",
        ),
        within=within or {},
        tolerance=0.0,
        near=0.0,
        unit="rows",
    )


A100_LAYER = "A100, K = N = 4096"
L4_LAYER = "L4, K = N = 4096"
L4_NARROW = "L4, K = 256, N = 512"
NEVER_REACHED = "That is the intensity that it never reaches, however large M is. What follows?"
CRITICAL = {
    A100_LAYER: _rows(
        "",
        A100_LAYER,
        166,
        says="153 operations per byte, and a little more, because the tokens themselves move as well.",
        wrong={
            "153": "That is the ridge. With M = 153 the intensity is less than 153: tokens in and out are bytes too.",
            "154": "That is the ridge, rounded up. Tokens in and out are bytes too, so it takes a few more.",
            "165.4": "That is where it meets the ridge. Rows are whole numbers: round up.",
            "165": "Close: at 165 it is still below the ridge. Round up.",
            "167": "Close, but one row fewer is enough.",
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
            "504": "Close, but one row fewer is enough.",
            "166": "That is the A100. The L4 has another ridge.",
        },
    ),
    L4_NARROW: _rows(
        "-narrow",
        L4_NARROW,
        0,
        says="It stays below N K / (N + K) = 171 operations per byte, and the ridge is at 403. On the A100 the same "
        "layer gets over the ridge of 153, but only from 1480 rows on.",
        wrong={
            "403": "That is the ridge. Is there an M with which this product gets there?",
            "404": "That is the ridge, rounded up. Is there an M with which this product gets there?",
            "503": "That is the wider layer. How large can the intensity get with K = 256 and N = 512?",
            "1480": "That is the A100. The L4 has another ridge.",
            "171": NEVER_REACHED,
        },
        within={
            "170 to 171": NEVER_REACHED,
            "-296 to -295": "A negative M: no number of rows brings it to the ridge. What follows?",
        },
    ),
}


def _tf32(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"hardware/tensor_cores/tf32-of-0-31{name}",
        f"0.31 in TF32, {text}:",
        answer=answer,
        says=says,
        wrong={"0.31": "That is what went in. Ten fraction bits cannot hold it: count steps.", **wrong},
        otherwise="Which steps do ten fraction bits make where 0.31 lies? How many such steps is it?",
        hints=(
            "Between which powers of two does 0.31 lie?",
            "Between 1 and 2, the steps are 1/1024. Between 1/2 and 1 they are half as large, and so on.",
        ),
        near=0.001,
    )


CUT_OFF = "cut off"
TO_NEAREST = "to nearest"
OF_ONE = "That counts steps of 1/1024, which are those between 1 and 2. Between which powers of two does 0.31 lie?"
TF32 = {
    CUT_OFF: _tf32(
        "",
        CUT_OFF,
        "1269/4096",
        says="0.31 is 1269.76 steps of 1/4096, and the rest is dropped.",
        wrong={
            "317/1024": OF_ONE,
            "1270/4096": "That is to the nearest. To cut off is to go toward zero.",
            "2539/8192": "That is with eleven fraction bits: TF32 has ten, and the hidden bit.",
            "158/512": "That is bfloat16. TF32 has three fraction bits more: ten, and the hidden one.",
        },
    ),
    TO_NEAREST: _tf32(
        "-nearest",
        TO_NEAREST,
        "1270/4096",
        says="1269.76 steps of 1/4096 are nearer to 1270. The error is a third of that of cutting here.",
        wrong={
            "317/1024": OF_ONE,
            "1269/4096": "That is cut off. 1269.76 is nearer to 1270.",
            "1271/4096": "That is one step too far: 1269.76 is nearer to 1270.",
            "2539/8192": "That is with eleven fraction bits: TF32 has ten, and the hidden bit.",
            "159/512": "That is bfloat16. TF32 has three fraction bits more: ten, and the hidden one.",
        },
    ),
}


def _float64(name: str, text: str, answer: int, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"hardware/tensor_cores/float64{name}",
        f"{text}: how many times as long as in float32 does float64 take?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="First find on which side of the ridge it lies, in either dtype. Then compare what decides: the two "
        "peaks, or the two numbers of bytes.",
        hints=("Bytes: 8 instead of 4. Peak: the same on the A100, a 64th on the RTX 4090.",),
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
        says="1.29 TFLOP/s over 1008 GB/s is a ridge of 1.3, and the row has a quarter of an operation per byte: even "
        "a 64th of the arithmetic is more than memory can feed.",
        wrong={
            "64": "Is it compute bound? Even at a 64th the ridge is at 1.3 operations per byte. How many has the row?",
            "1": "Memory decides. How many bytes has a float64?",
            "128": "Is it compute bound? Even at a 64th the ridge is at 1.3 operations per byte.",
        },
    ),
}
IN_TF32 = Task(
    "hardware/tensor_cores/in-tf32",
    "Find the bug: `in_tf32` should run a function with TF32 allowed and leave the older switch as it found it. "
    "The function may call `torch.get_float32_matmul_precision()`.",
)
