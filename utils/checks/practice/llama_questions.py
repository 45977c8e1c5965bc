"""What `practice/llama` asks: where the time of a token goes, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task, wrong_line

# --- Predictions ------------------------------------------------------------------------------------------------------

SHARE = Choice(
    "practice/llama/predict-share",
    "The bfloat16 run reads 13.2 GB of weights per token, from a memory that can deliver 1,555 GB/s. What share of "
    "this bandwidth did it use?",
    (
        Option(
            "About 14 %",
            "13.2 GB times 16.70 tokens/s are 221 GB/s. On average, six sevenths of the bandwidth were not used.",
            True,
        ),
        Option(
            "About 46 %",
            "That is the gain over float32, which does not say how busy the memory is. Multiply the bytes per "
            "token by the tokens/s.",
        ),
        Option(
            "About 73 %",
            "That is 1.46 of the factor 2 that half the bytes should give. It compares two runs with each other, and "
            "neither with the card.",
        ),
        Option(
            "Nearly 100 %",
            "A single sequence should be limited by the memory. But then it would generate 1,555 / 13.2 = 118 "
            "tokens/s, and it generated 16.70.",
        ),
    ),
    predict=True,
)
NO_BYTES = Choice(
    "practice/llama/predict-no-bytes",
    "Put both runs into this equation: 26.4 GB at 11.47 tokens/s, and 13.2 GB at 16.70. If the weights had no bytes at "
    "all, how many tokens/s would this program generate?",
    (
        Option(
            "About 17",
            "That is the rate in bfloat16, as if bytes took no time at all. But float32 was slower, so on this "
            "line they do.",
        ),
        Option(
            "About 24",
            "That is 16.70 times 1.46, one more halving at the same factor. On a line each halving gains less "
            "time than the one before.",
        ),
        Option(
            "About 31",
            "87.2 and 59.9 ms differ by 27.3 ms for 13.2 GB. Take off another 27.3 ms, and 32.6 ms are left. So no "
            "format brings this program to twice its bfloat16 speed.",
            True,
        ),
        Option(
            "About 118",
            "That is what the memory allows for 13.2 GB, with nothing else to wait for. Here the bytes are gone, "
            "the rest "
            "is not.",
        ),
    ),
    predict=True,
)
INT4 = Choice(
    "practice/llama/predict-int4",
    "The compiled step generates 104.9 tokens/s in bfloat16, from 13.3 GB per token, on a card with 2,039 GB/s. "
    "In int4 "
    "the program counts 4.4 GB. How many tokens/s did it generate?",
    (
        Option(
            "About 105",
            "Something other than bytes was the limit of the plain loop. The compiled bfloat16 step moves 1,397 "
            "GB/s, so bytes do matter now.",
        ),
        Option(
            "About 200",
            "It was 196.8, or 1.9 times as many for 3.0 times fewer bytes.",
            True,
        ),
        Option(
            "About 320",
            "That is three times as many, for a third of the bytes. It would need the same GB/s in both formats and no "
            "other time. The int4 step reached 863 GB/s, not 1,397.",
        ),
        Option(
            "About 460",
            "That is 2,039 / 4.4, what the memory allows by its data sheet. Even bfloat16 stays a third below its own.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

FROM_WHICH_BATCH = Number(
    "practice/llama/play-batch",
    "LLaMA 7B in int4, groups of 32, on the A100 SXM 40 GB, context 1. At which setting of the batch slider does "
    "computing "
    "take over?",
    answer="64",
    says="In bfloat16 it is 256. The products are in 16 bits either way, so a sequence computes as long, but there are "
    "fewer bytes to wait for. Narrow weights help small batches, and large ones hardly.",
    wrong={
        "256": "That is bfloat16. Press int4, groups of 32.",
        "128": "It is true at 128, but not for the first time. Or is it int8 that is pressed?",
        "61": "That is where it happens. The slider moves in powers of two; which one is the first beyond it?",
        "56": (
            "That is 200 times 4.5/16, nearly right. The slider moves in powers of two; which one is the first "
            "beyond it?"
        ),
        "50": (
            "That is a quarter of 200, nearly right. The slider moves in powers of two; which one is the first "
            "beyond it?"
        ),
        "512": "It is true at 512, but not for the first time.",
        "32": "At 32 the bytes still decide.",
    },
    otherwise='Set the context to 1, raise the batch, and read the verdict: "The bytes decide" or "Computing decides".',
    within={"60 to 63": "It happens at about that batch. The slider moves in powers of two; take the first beyond it."},
    unit="sequences",
)
EQUAL_CACHES = Number(
    "practice/llama/play-context",
    "Llama 3 8B in bfloat16, with a batch of 64, keys and values in 8 bits without a scale. At which context do the "
    "caches hold as many bytes as the weights that are read? The slider gets you close; work out the number.",
    answer="3579",
    tolerance=0.005,
    says="In 8 bits, one token of one sequence takes 65,536 bytes, so 15.0 GB are 229,000 of them: 3,579 for "
    "each of 64 "
    "sequences.",
    wrong={
        "229033": "That is one sequence. Here 64 of them share the memory.",
        "229000": "That is one sequence. Here 64 of them share the memory, too.",
        "114516": "That is one sequence, with keys and values in 16 bits.",
        "2048": "At 2,048 the caches hold 8.6 GB. The slider moves in powers of two: work out the number between them.",
        "4096": (
            "At 4,096 the caches hold 17.2 GB. The slider moves in powers of two: work out the number between them."
        ),
        "3523": "That counts a 16-bit scale for each key and each value. Here they have no scale: 8 bits per number.",
        "1789": "That is with keys and values in 16 bits.",
        "895": "That is with a key and a value for each of the 32 query heads. Here four of them share one.",
        "7158": "Each token has a key and a value: 2 · 32 · 8 · 128 numbers of one byte.",
    },
    otherwise="One token of one sequence leaves 2 · 32 · 8 · 128 numbers of one byte. The weights are 15.0 GB.",
    hints=("How many tokens, of whichever sequence, take 15.0 GB? Then divide by 64.",),
    unit="tokens",
)
OF_THE_LIMIT = Number(
    "practice/llama/play-share",
    "Llama 2 70B with int8 weights on the A100 SXM 80 GB, batch 1, context 128. What share of the bandwidth, in "
    "percent, "
    "does the published rate use?",
    answer="65",
    tolerance=0.01,
    says="The 7B model reached 52 % with the same program. With ten times the bytes per token, the time that does not "
    "depend on bytes weighs less.",
    wrong={
        "54": "That is int4. Press int8 in the table.",
        "52": "That is LLaMA 7B. Choose Llama 2 70B.",
        "69": "That is LLaMA 7B in bfloat16. Choose Llama 2 70B, and press int8.",
        "0.65": "That is a fraction. In percent it is a hundred times that.",
        "19.13": "That is the rate. Its share of the bandwidth stands beside it.",
        "29.5": "That is the limit, in tokens/s. The share stands beside the measured rate.",
    },
    otherwise="Choose Llama 2 70B and the A100 SXM 80 GB, press int8, and read the last column.",
    unit="%",
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _at_most(
    name: str, text: str, answer: str, *, says: str, wrong: dict[str, str], hints: tuple[str, ...] = ()
) -> Number:
    return Number(
        f"practice/llama/at-most{name}",
        f"7 billion weights, 1,400 GB/s. {text}: how many tokens/s at most?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="Count the GB that one step reads. Divide 1,400 by that, and multiply by the number of sequences.",
        hints=("A step reads every weight once, and generates one token of each sequence.", *hints),
        tolerance=0.01,
        unit="tokens/s",
    )


ONE_TEXT = "bfloat16, one sequence"
INT4_TEXT = "int4, a bfloat16 scale for every 32 weights, one sequence"
EIGHT_TEXTS = "bfloat16, 8 short sequences"
LONG_CACHE = "bfloat16, one sequence, whose cache takes 7 GB"
AT_MOST = {
    ONE_TEXT: _at_most(
        "",
        ONE_TEXT,
        "100",
        says="14 GB per token.",
        wrong={
            "50": "That is float32. A bfloat16 weight has 2 bytes.",
            "200": "That is one byte per weight. A bfloat16 weight has 2.",
            "10": "14 GB, not 140.",
            "107.4": "1,400 GB/s are decimal gigabytes, and 7 billion weights of 2 bytes are 14 of them, not 13.04.",
            "0.01": "That is the time per token, in seconds.",
        },
    ),
    INT4_TEXT: _at_most(
        "-int4",
        INT4_TEXT,
        "355.6",
        says="4 + 16/32 = 4.5 bits per weight, 3.94 GB.",
        wrong={
            "400": "That is without the scales: 16 bits for every 32 weights, half a bit for each.",
            "320": "That is 5 bits per weight, as with a zero point beside each scale. Here there is only the scale.",
            "311.1": "That is 4.5 GB. 4.5 is the number of bits per weight; how many GB are that for 7 billion?",
            "70": "16 bits are shared by 32 weights; a weight does not have its own.",
            "88.9": "That is 18 bits per weight. It has 4, and its share of 16.",
            "100": "That is bfloat16.",
        },
        hints=("4 bits for each weight, and 16 bits that 32 of them share.",),
    ),
    EIGHT_TEXTS: _at_most(
        "-eight-texts",
        EIGHT_TEXTS,
        "800",
        says="14 GB per step, and each step generates eight tokens.",
        wrong={
            "100": "That is the number of steps. Each generates one token of every sequence.",
            "12.5": "The weights are read once for all sequences, not once for each.",
        },
    ),
    LONG_CACHE: _at_most(
        "-cache",
        LONG_CACHE,
        "66.7",
        says="14 + 7 = 21 GB per token. The cache was written token by token, but all of it is read for each.",
        wrong={
            "100": "That is without the cache. Attention reads all of it for each token.",
            "33.3": "That is 42 GB. Each is read once per token: 14 and 7.",
            "200": "That is the cache alone. The weights are read too.",
            "50": "That is 28 GB. The cache takes 7, the weights 14.",
        },
        hints=("What does attention read in each step, besides the weights?",),
    ),
}


def _not_bytes(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str], unit: str) -> Number:
    return Number(
        f"practice/llama/not-bytes{name}",
        f"10 GB of weights: 40 tokens/s. 5 GB: 50 tokens/s. With t = a + bytes/B: {text}?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="Turn rates into times first: 40 tokens/s are 25 ms per token.",
        hints=("The two times differ by what 5 GB take.", "Times add up. Rates do not."),
        tolerance=0.005,
        unit=unit,
    )


WAITING, SPEED, QUARTER = "a, in ms", "B, in GB/s", "tokens/s with 2.5 GB"
NOT_BYTES = {
    WAITING: _not_bytes(
        "",
        WAITING,
        "15",
        says="25 and 20 ms differ by 5 ms, for 5 GB. So the first 5 GB take 5 of the 20 ms, and 15 are left.",
        wrong={
            "5": "That is what 5 GB take. What is left when they are taken off?",
            "10": "That is what 10 GB take. What is left of 25 ms?",
            "20": "That is the time with 5 GB. A part of it is for the bytes.",
            "25": "That is the time with 10 GB. A part of it is for the bytes.",
            "16.7": "That is 1/60 s: rates were put on a line. Put the times on it.",
            "60": "That is the rate at 0 GB if rates lie on a line. Times do, and they give ms.",
            "66.7": "That is 1/a, in tokens/s.",
            "0.015": "That is in seconds. In ms it is a thousand times that.",
        },
        unit="ms",
    ),
    SPEED: _not_bytes(
        "-speed",
        SPEED,
        "1000",
        says="5 GB in 5 ms.",
        wrong={
            "1": "That is GB per millisecond. Per second it is a thousand times that.",
            "400": "That is 10 GB times 40 tokens/s, as if nothing else took time.",
            "250": "That is 5 GB times 50 tokens/s, as if nothing else took time.",
            "500": "That is 5 GB for 10 tokens/s more. Rates do not add up; take the times, 25 and 20 ms.",
        },
        unit="GB/s",
    ),
    QUARTER: _not_bytes(
        "-quarter",
        QUARTER,
        "57.1",
        says="15 + 2.5 = 17.5 ms. Each halving gains less.",
        wrong={
            "62.5": "That is a quarter more, as with the first halving. But only the part for the bytes is halved.",
            "60": "That is ten more, as with the first halving. But times add up, rates do not.",
            "55": "That is five more, half the last gain. But times add up, rates do not.",
            "100": "That is twice 50, as if there were nothing but bytes.",
            "66.7": "That is with no bytes at all.",
            "17.5": "That is the time, in ms. How many of them are in a second?",
        },
        unit="tokens/s",
    ),
}


SHARED_KEYS = "There are 8 keys per layer and token, not 40."


def _long_text(
    name: str, text: str, answer: str, *, says: str, wrong: dict[str, str], unit: str, keys: str = SHARED_KEYS
) -> Number:
    return Number(
        f"practice/llama/long-text{name}",
        f"48 layers, 40 query heads of width 128, 8 key-value heads, 16 bits: {text}?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="Multiply: keys and values, layers, key-value heads, width of a head, bytes per number.",
        hints=("A key has 128 numbers, and so has a value.", keys),
        tolerance=0.005,
        unit=unit,
    )


FOR_ONE, UNSHARED, FOR_ALL = (
    "bytes per token",
    "bytes per token without sharing, 40 key-value heads",
    "GB for 16 sequences of 8,192 tokens",
)
LONG_TEXT = {
    FOR_ONE: _long_text(
        "",
        FOR_ONE,
        "196608",
        says="2 · 48 · 8 · 128 numbers of 2 bytes.",
        wrong={
            "98304": "A factor of two is missing: a number has 2 bytes, and there are values as well as keys.",
            "983040": "Five query heads share one key and one value. Count the key-value heads.",
            "393216": "That is a factor of two too many: 16 bits are 2 bytes.",
            "4096": "That is one layer. There are 48.",
            "1024": "That is the width of all keys of one layer. There are values, and 48 layers.",
            "3145728": "That is 16 times too much: 16 bits are 2 bytes, and only one sequence is asked for.",
            "1572864": "That is in bits.",
            "192": "That is in KiB. The question asks for bytes.",
        },
        unit="bytes",
    ),
    UNSHARED: _long_text(
        "-unshared",
        UNSHARED,
        "983040",
        says="Five times as many: nearly a megabyte per token.",
        wrong={
            "196608": "That is with sharing. Without it each of the 40 heads has a key and a value.",
            "39322": "Now there are more keys, not fewer.",
            "7864320": "That is in bits.",
            "960": "That is in KiB. The question asks for bytes.",
            "20480": "That is one layer. There are 48.",
            "491520": "A factor of two is missing: a number has 2 bytes, and there are values as well as keys.",
        },
        unit="bytes",
        keys="Without sharing there are 40 keys per layer and token, one for each query head.",
    ),
    FOR_ALL: _long_text(
        "-all",
        FOR_ALL,
        "25.77",
        says="196,608 bytes · 8,192 · 16. Twice the sequences would take twice as much; the weights stay the same.",
        wrong={
            "128.8": "That is without sharing.",
            "1.61": "That is one sequence. Each of the 16 has a cache of its own.",
            "12.88": "A factor of two is missing: a number has 2 bytes, and there are values as well as keys.",
            "24": "That is GiB. A GB is a billion bytes here.",
            "26": "Nearly. Write it with one decimal.",
        },
        unit="GB",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

WRITE = Task(
    "practice/llama/write",
    "Write `write`: continue a prompt with the most probable token again and again, with a cache, no token read twice.",
)
WRONG_SHARE = """\
def share_of_bandwidth(model, seconds, tokens, batch, GBps):
    table = model.get_input_embeddings().weight
    weights = sum(p.nbytes for p in model.parameters()) - table.nbytes
    steps = tokens * batch
    moved = weights * steps / seconds
    return moved / (1e9 * GBps)"""
WRONG_LINE = wrong_line(
    "practice/llama/wrong-line",
    text="A server generates `tokens` tokens for each of `batch` short sequences, all sequences at once; this takes "
    "`seconds` seconds. The function should return the share of the bandwidth that was used to read the weights. For a "
    "batch of 8 it returns 3.1. The head is not tied to the embeddings. Press the wrong line.",
    code=WRONG_SHARE,
    line=4,
    says="One step reads the weights once and generates a token of every sequence: `steps = tokens`. Then 3.1 becomes "
    "0.39.",
    replies={
        1: "The arguments are enough: how long, how many tokens, how fast the memory is.",
        2: "This is the table of the input embeddings, of which a step reads one row per sequence.",
        3: "All parameters but the table are read in each step. With tied weights the table would have to stay, but "
        "here the head is a matrix of its own.",
        5: "Bytes per step, times steps, over seconds: bytes per second.",
        6: "Bytes per second over bytes per second. A GB is a billion bytes, as on data sheets.",
    },
)
