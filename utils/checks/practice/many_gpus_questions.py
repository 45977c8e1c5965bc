"""What `practice/many_gpus` asks: sums over many ranks, their bytes, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

WHO_IS_WRONG = Choice(
    "practice/many_gpus/who-is-wrong",
    "Two processes in float32 and one process part in the eighth digit. Which of the two is wrong?",
    (
        Option(
            "The two: something was lost on the wire",
            "Float32 numbers travelled in float32. Nothing of them was lost.",
        ),
        Option(
            "The one: its batch is larger, so its sums have larger errors",
            "Its sums are longer, but nobody says that they are the worse ones: both are a rounding or two away.",
        ),
        Option(
            "Neither: the same terms were added in another order, and each addition was rounded correctly",
            "A sum of 32 texts was cut into two of 16, already in the first loss. The exact sum is a third number.",
            True,
        ),
        Option(
            "Both: the seed was not set, so each run draws other numbers",
            "Another seed would show in the first digit or two, and these runs repeat to the last one.",
        ),
    ),
    predict=True,
)
RING_OF_MANY = Choice(
    "practice/many_gpus/predict-ring-of-many",
    "1,024 ranks, each with the gradient 1 for every weight. What mean does a ring in bfloat16 find?",
    (
        Option("1, give or take a rounding", "That would be so if few roundings were on the way. A ring has 1,023."),
        Option(
            "About 0.97: every hop loses a little",
            "It is not a little, and not at every hop: nothing at all is lost up to the 256th rank.",
        ),
        Option(
            "0.25",
            "At 256 the sum stops: the ones of 768 ranks are rounded away. 256 / 1024.",
            True,
        ),
        Option(
            "Infinity: the sum overflows", "Bfloat16 has the exponents of float32. It has few digits, not few powers."
        ),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _bytes(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"practice/many_gpus/bytes-on-the-wire{name}",
        f"{text}: how many gigabytes does each of the 8 GPUs send in a step?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="An all-reduce sends 2 * 7/8 of the array, a gather or a reduce-scatter 7/8 of it.",
        hints=("List the arrays that go round: how many numbers, of how many bytes, and how often.",),
        tolerance=0.001,
        unit="GB",
    )


DDP32 = "DDP, float32 gradients"
DDP16 = "DDP, bfloat16 gradients"
FSDP32 = "FSDP2, bfloat16 weights, float32 gradients"
FSDP16 = "FSDP2, bfloat16 weights and gradients"
BYTES_ON_THE_WIRE = {
    DDP32: _bytes(
        "",
        DDP32,
        "49",
        says="2 * 7/8 * 7 * 4.",
        wrong={
            "28": "That is the array itself. How often does it go round, and how much of it?",
            "56": "Nearly: a rank keeps one chunk of eight to itself in each half.",
            "24.5": "That is one half of it, the reduce-scatter. The sums have to come back.",
            "196": "That would be every gradient to every other rank.",
            "45.63": "That is in GiB. Count in units of 10^9 bytes.",
        },
    ),
    DDP16: _bytes(
        "-16",
        DDP16,
        "24.5",
        says="Half of the bytes a number, half of the bytes.",
        wrong={
            "49": "That is float32.",
            "28": "Nearly: a rank keeps one chunk of eight to itself in each half.",
            "12.25": "That is the reduce-scatter alone. The sums have to come back.",
            "14": "That is the array itself.",
            "22.82": "That is in GiB. Count in units of 10^9 bytes.",
        },
    ),
    FSDP32: _bytes(
        "-fsdp",
        FSDP32,
        "49",
        says="Two gathers of 12.25 and one reduce-scatter of 24.5: as much as DDP in float32.",
        wrong={
            "36.75": "That is with only one gather, or with a scatter of 16 bits. Here gradients have 4 bytes.",
            "61.25": "Which of the two has 2 bytes? The weights, which are gathered twice; the gradients have 4.",
            "73.5": "Gradients are only scattered: no rank needs the sums of the others. And weights have 2 bytes.",
            "45.63": "That is in GiB. Count in units of 10^9 bytes.",
            "24.5": "That is the gradients alone, or the weights alone.",
            "56": "7/8 of each array is sent.",
            "98": "Each gather, and the scatter, is half of an all-reduce.",
        },
    ),
    FSDP16: _bytes(
        "-fsdp-16",
        FSDP16,
        "36.75",
        says="Three times 7/8 * 14.",
        wrong={
            "24.5": "That is two gathers, or one and the scatter: there are three.",
            "49": "With gradients in float32. Here they have 2 bytes.",
            "42": "7/8 of each array is sent.",
            "12.25": "That is one of the three.",
            "34.23": "That is in GiB. Count in units of 10^9 bytes.",
        },
    ),
}


def _weight(place: int, answer: str, *, says: str, wrong: dict[str, str], order: str) -> Number:
    return Number(
        f"practice/many_gpus/ring-by-hand{f'-{place}' if place else ''}",
        f"Ranks 0, 1, 2 have 1, 256, 1. Which sum does weight {place} get from the ring in bfloat16?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise=f"Chunk {place} sets out from rank {place}: {order}. Round after each addition.",
        hints=("From 256 to 512 bfloat16 has every second number, and 257 is a tie: it goes to 256.",),
    )


EXACT = "That is the exact sum. Which additions were rounded on the way?"
RING_BY_HAND = {
    "weight 0": _weight(
        0,
        "256",
        says="(1 + 256) + 1: the first 1 is lost, then the second.",
        order="its 1, then 256, then the 1 of rank 2",
        wrong={
            "258": f"{EXACT} The two ones do not meet before the 256.",
            "257": "257 needs nine significant bits; bfloat16 has eight.",
        },
    ),
    "weight 1": _weight(
        1,
        "256",
        says="(256 + 1) + 1.",
        order="256, then the 1 of rank 2, then that of rank 0",
        wrong={
            "258": f"{EXACT} Here 256 comes first, and each 1 meets it alone.",
            "257": "Bfloat16 has no 257.",
        },
    ),
    "weight 2": _weight(
        2,
        "258",
        says="(1 + 1) + 256: the ones meet first, and 2 is a whole step at 256.",
        order="its 1, then the 1 of rank 0, then 256",
        wrong={
            "256": "Chunk 2 sets out from rank 2 and comes to rank 0 next: the two ones meet first.",
            "257": "There is no 257, and here nothing is lost.",
        },
    ),
}


def _mean(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str], hint: str) -> Number:
    return Number(
        f"practice/many_gpus/mean-of-ones{name}",
        f"{text}, each with the gradient 1: what is the mean, divided after the sum?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="Find the total at which another 1 is half of the last bit, or that no 1 ever meets; divide by N.",
        hints=(hint,),
    )


RING_BFLOAT16 = "ring in bfloat16, 2,048 ranks"
RING_FLOAT16 = "ring in float16, 4,096 ranks"
TREE_BFLOAT16 = "tree in bfloat16, 2,048 ranks"
MEAN_OF_ONES = {
    RING_BFLOAT16: _mean(
        "",
        RING_BFLOAT16,
        "1/8",
        says="The total stops at 256.",
        wrong={
            "1": "After 256 ranks each further 1 is a tie that goes to even: nothing arrives.",
            "256": "That is the sum. Divide by the ranks.",
            "1/4": "That was for 1,024 ranks.",
            "1/16": "At 128 the gap is 1: a one still counts. It stops at 256.",
        },
        hint="Bfloat16 has 8 significant bits: from 2^8 on the gap is 2.",
    ),
    RING_FLOAT16: _mean(
        "-float16",
        RING_FLOAT16,
        "1/2",
        says="The total stops at 2048.",
        wrong={
            "1": "Float16 counts to 2048 in ones, and no further.",
            "2048": "That is the sum. Divide by the ranks.",
            "1/4": "At 1024 the gap is 1: a one still counts. It stops at 2048.",
            "1/16": "That is bfloat16. Float16 has three bits more.",
        },
        hint="Float16 has 11 significant bits: from 2^11 on the gap is 2.",
    ),
    TREE_BFLOAT16: _mean(
        "-tree",
        TREE_BFLOAT16,
        "1",
        says="1 + 1, 2 + 2, 4 + 4: a tree adds equals, and every sum is a power of two.",
        wrong={
            "1/8": "That is the ring. With 2^k ranks no 1 of a tree ever meets a large total.",
            "1/2": "Eleven levels, and at each two equal numbers are added: is any of these sums rounded?",
            "2048": "That is the sum. Divide by the ranks.",
        },
        hint="Write down the first three levels.",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

FLOAT32_REDUCE = Task(
    "practice/many_gpus/float32-reduce",
    "Write `float32_reduce`: the mean of bfloat16 gradients, added and divided in float32, rounded once.",
)
SHARDED_NORM = Task(
    "practice/many_gpus/sharded-norm",
    "Write `sharded_norm`: the norm of all gradients, of which every rank has a part.",
)
