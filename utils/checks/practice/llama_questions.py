"""What `practice/llama` asks: where the time of a token goes, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

WHY_NOT_TWO = Choice(
    "practice/llama/predict-why-not-two",
    "Half of the bytes, a faster multiplier, and 1.46 times the speed. Why not at least twice?",
    (
        Option(
            "Only the weights were halved: the cache of keys and values stayed in float32 and has to be read too",
            "This program kept none. And one of 50 tokens would have two thousandths of the bytes of the weights.",
        ),
        Option(
            "A large part of the time of a token has nothing to do with bytes or with arithmetic",
            "It is there in both runs, and no format makes it shorter.",
            True,
        ),
        Option(
            "The card widens each bfloat16 weight to float32 before it multiplies, and that takes time",
            "Its tensor cores take bfloat16 as it is.",
        ),
        Option(
            "One token at a time is too small a product for tensor cores, so the arithmetic takes as long as before",
            "It is too small for them. But two operations for each weight and token are hardly any arithmetic: with"
            " thirty tokens read, it takes a few of 60 ms.",
        ),
    ),
    predict=True,
)
NO_BYTES = Choice(
    "practice/llama/predict-no-bytes",
    "Take the line through the two runs at its word. If the weights had no bytes at all, how many tokens a second "
    "would that program have written?",
    (
        Option(
            "About 17, as in bfloat16: it was not the bytes that bound it",
            "So it would be if the launches hid behind the card's work: the larger of the two, not their sum. The line"
            " adds them, and to it the bytes are nearly half of the time.",
        ),
        Option(
            "About 31",
            "1 / 32.6 ms. No format at all would have brought it to twice the speed that it had.",
            True,
        ),
        Option("About 118, what the memory allows", "That is the limit with 13.2 GB and nothing else to wait for."),
        Option("Thousands", "Then a would have to be below a millisecond; it is some thirty."),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _at_most(
    name: str, text: str, answer: str, *, says: str, wrong: dict[str, str], hints: tuple[str, ...] = ()
) -> Number:
    return Number(
        f"practice/llama/at-most{name}",
        f"7 billion weights, 1,400 GB/s. {text}: how many tokens a second at most?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="Count the GB that one step reads. Then 1,400 divided by that, times the texts.",
        hints=("A step reads every weight once, and writes one token of each text.", *hints),
        tolerance=0.01,
        unit="tokens/s",
    )


ONE_TEXT = "bfloat16, one text"
INT4 = "int4, a bfloat16 scale for every 32 weights, one text"
EIGHT_TEXTS = "bfloat16, 8 texts, short ones"
LONG_CACHE = "bfloat16, one text, whose cache has 7 GB"
AT_MOST = {
    ONE_TEXT: _at_most(
        "",
        ONE_TEXT,
        "100",
        says="14 GB for a token.",
        wrong={
            "50": "That is float32. A bfloat16 weight has 2 bytes.",
            "200": "That is one byte a weight. A bfloat16 weight has 2.",
            "10": "14 GB, not 140.",
        },
    ),
    INT4: _at_most(
        "-int4",
        INT4,
        "355.6",
        says="4 + 16/32 = 4.5 bits a weight, 3.94 GB.",
        wrong={
            "400": "That is without the scales: 16 bits for every 32 weights, half a bit for each.",
            "311": "That is 5 bits a weight. 16 bits for 32 weights are half a bit.",
            "70": "16 bits are shared by 32 weights; each does not have its own.",
            "88.9": "That is 18 bits a weight. It has 4, and its share of 16.",
        },
        hints=("4 bits for each weight, and 16 bits that 32 of them share.",),
    ),
    EIGHT_TEXTS: _at_most(
        "-eight-texts",
        EIGHT_TEXTS,
        "800",
        says="14 GB for a step, and each step writes eight tokens.",
        wrong={
            "100": "That is the number of steps. Each writes a token of every text.",
            "12.5": "The weights are read once for all texts, not once for each.",
        },
    ),
    LONG_CACHE: _at_most(
        "-cache",
        LONG_CACHE,
        "66.7",
        says="14 + 7 = 21 GB for a token. It was written over a long time, and is read for each token.",
        wrong={
            "100": "That is without the cache. Attention reads all of it for each token.",
            "33.3": "That is 42 GB. Each is read once for a token: 14 and 7.",
            "200": "That is the cache alone. The weights are read too.",
        },
    ),
}


def _not_bytes(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str], unit: str) -> Number:
    return Number(
        f"practice/llama/not-bytes{name}",
        f"10 GB of weights: 40 tokens a second. 5 GB: 50. With t = a + bytes/B: {text}?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="Turn rates into times first: 40 tokens a second are 25 ms for each.",
        hints=("The two times differ by what 5 GB take.", "Times add up. Rates do not."),
        tolerance=0.005,
        unit=unit,
    )


WAITING, SPEED, QUARTER = "a, in ms", "B, in GB/s", "tokens a second with 2.5 GB"
NOT_BYTES = {
    WAITING: _not_bytes(
        "",
        WAITING,
        "15",
        says="25 and 20 ms differ by 5, for 5 GB. So 5 GB take 5 ms, and 15 are left.",
        wrong={
            "5": "That is what 5 GB take. What is left when they are taken off?",
            "10": "That is what 10 GB take. What is left of 25 ms?",
            "20": "That is the time with 5 GB. A part of it goes by the bytes.",
            "25": "That is the time with 10 GB. A part of it goes by the bytes.",
            "30": "Rates do not lie on a line in the bytes; times do.",
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
            "1": "GB a millisecond. In a second it is a thousand times that.",
            "400": "That is 10 GB times 40 tokens: as if nothing else took time.",
            "250": "That is 5 GB times 50 tokens: as if nothing else took time.",
        },
        unit="GB/s",
    ),
    QUARTER: _not_bytes(
        "-quarter",
        QUARTER,
        "57.1",
        says="15 + 2.5 = 17.5 ms. Each halving brings less.",
        wrong={
            "62.5": "That is a quarter more, as the first halving brought. But only what goes by bytes is halved.",
            "60": "Ten more, as the first halving brought. But times add up, rates do not.",
            "55": "Five more tokens, half of the last gain. Times add up, rates do not.",
            "100": "That is twice 50, as if there were nothing but bytes.",
            "66.7": "That is with no bytes at all: 15 ms.",
            "17.5": "Right as a time, in ms. How many of them are in a second?",
        },
        unit="tokens/s",
    ),
}


def _long_text(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str], unit: str) -> Number:
    return Number(
        f"practice/llama/long-text{name}",
        f"32 layers, 32 heads of queries of width 128, 8 heads of keys and values, 16 bits: {text}?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="Multiply: keys and values, layers, heads that have a key, the width of a head, bytes of a number.",
        hints=("A key has 128 numbers, a value too.", "There are 8 keys in a layer for each token, not 32."),
        tolerance=0.005,
        unit=unit,
    )


FOR_ONE, UNSHARED, FOR_ALL = (
    "bytes for one token",
    "the same without sharing, 32 heads of keys and values",
    "GB for 16 texts of 8,192 tokens",
)
LONG_TEXT = {
    FOR_ONE: _long_text(
        "",
        FOR_ONE,
        "131072",
        says="2 · 32 · 8 · 128 numbers of 2 bytes.",
        wrong={
            "65536": "Those are the numbers, or the keys alone: a number has 2 bytes, and there are values as well.",
            "524288": "That is with a key for each of the 32 heads. Four of them share one.",
            "262144": "16 bits are 2 bytes; or there is a factor of two too many.",
            "4096": "That is one layer. There are 32.",
            "1024": "That is the width of all keys of one layer. There are values, and 32 layers.",
            "2097152": "That is 16 times too much: one token of one text, and 2 bytes a number.",
        },
        unit="bytes",
    ),
    UNSHARED: _long_text(
        "-unshared",
        UNSHARED,
        "524288",
        says="Four times as many: half a megabyte, as in LLaMA 7B.",
        wrong={
            "131072": "That is with sharing. Without it each of the 32 heads has a key and a value.",
            "32768": "More heads have keys now, not fewer.",
        },
        unit="bytes",
    ),
    FOR_ALL: _long_text(
        "-all",
        FOR_ALL,
        "17.18",
        says="131,072 bytes · 8,192 · 16: more than the weights, which have 16 GB.",
        wrong={
            "68.7": "That is without sharing.",
            "1.074": "That is one text. Each of the 16 has a cache of its own.",
            "8.59": "Those are the keys alone. There are as many values.",
            "16": "That is GiB. A GB is a billion bytes here; write it with two decimals.",
            "17": "Nearly. Write it with two decimals.",
        },
        unit="GB",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

WRITE = Task(
    "practice/llama/write",
    "Write `write`: the most probable tokens after a prompt, with a cache, no token read twice.",
)
