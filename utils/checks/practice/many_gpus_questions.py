"""What `practice/many_gpus` asks: sums over many ranks, their bytes, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

RING_OF_MANY = Choice(
    "practice/many_gpus/predict-ring-of-many",
    "1,024 processes each have the gradient 1. Bfloat16 has 8 significant bits, and the sum is rounded at every hop. "
    "What is the mean?",
    (
        Option(
            "1, give or take a rounding",
            "It would be if there were only a few roundings. A ring has 1,023, and after a while all of them go the "
            "same way.",
        ),
        Option(
            "About 0.97: every hop loses a little",
            "The loss is not small, and not at every hop: nothing at all is lost up to the 256th process.",
        ),
        Option(
            "0.25",
            "The sum stops at 256, and the ones of the other 768 processes are rounded away: 256 / 1024.",
            True,
        ),
        Option("0.5", "Half of the ones would be a sum of 512. The integers of bfloat16 have gaps before that."),
        Option(
            "Infinity: the sum overflows",
            "Bfloat16 has the exponents of float32, so its range is no problem here. Its precision is.",
        ),
    ),
    predict=True,
)
BESIDE_OTHERS = Choice(
    "practice/many_gpus/beside-others",
    "A layer processes the same text twice in float32, with the same weights: once alone, and once as a row of a "
    "batch of 32. Do the two results agree to the last bit?",
    (
        Option(
            "Yes: the numbers and the dtype are the same",
            "They are, and the exact results would be equal. But the roundings depend on how the work is divided.",
        ),
        Option(
            "Yes: a matrix product never adds numbers of two texts",
            "It does not. But each number of one text is a sum too, and the shape of the batch may decide how the sum "
            "is cut into parts.",
        ),
        Option(
            "Not always: it depends on the size of the batch",
            "For another shape, the library may choose another kernel, which adds the same products of the same text "
            "in another order.",
            True,
        ),
        Option(
            "Not always: run it again, and other digits differ",
            "A product of the same shape usually repeats to the last bit on one processor. It is the shape that has "
            "changed here, not chance.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_TREE = Number(
    "practice/many_gpus/play-tree",
    "Keep the ones, and set the number of products, which stand for ranks, to 259. What does the tree, lane B, find?",
    answer="260",
    says="256 of the ones make an exact 256, and the last three make 3. Then 259 is a tie between 258 and 260, and it "
    "goes to 260: a tree can also find too much.",
    wrong={
        "259": "That is the exact sum. Does bfloat16 have this number?",
        "256": "That is the ring, lane A.",
        "258": "Close. What are the last two numbers that the tree adds, and how is a tie decided?",
        "257": "Bfloat16 has only even integers there.",
        "512": "That is the sum for 512 ranks. Change the number of products.",
    },
    otherwise="Type 259 into the field for the number of products, go to the last addition, and read lane B.",
    hints=("A number in the middle between two neighbours goes to the one with an even significand.",),
    near=0,
)
PLAY_QUARTERS = Number(
    "practice/many_gpus/play-quarters",
    "Now let 512 ranks each send 1/4. At which sum does the ring, lane A, stop?",
    answer="64",
    says="64 is 256 quarters: a power of two scales every sum exactly. So if each of 512 ranks divides its 1 by 512 "
    "first, exactly as many terms are lost. Other sizes stall elsewhere: of 5s, a ring adds 371.",
    wrong={
        "256": "That is where ones stop. Which sum has a gap so wide that 1/4 is only half of it?",
        "128": "That is the exact sum, and the tree finds it.",
        "32": "Between 32 and 64 the gap is 1/4, so a quarter still counts.",
        "1/4": "That is one term. Go to the last addition.",
        "512": "That is the number of ranks.",
    },
    otherwise="Choose 1/4 for each number, go to the last addition, and read lane A.",
    hints=("A term is lost if it is half of the gap above an even sum.",),
    near=0,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _bytes(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"practice/many_gpus/bytes-on-the-wire{name}",
        f"{text}: how many gigabytes does each of the 8 GPUs send per step?",
        answer=answer,
        says=says,
        wrong=wrong | {f"{answer}e9": "That is in bytes. Give it in units of 10^9 bytes."},
        otherwise="An all-reduce sends 2 * 7/8 of the array, a gather or a reduce-scatter 7/8 of it.",
        hints=("List the arrays that go round: how many numbers they have, of how many bytes, and how often they go.",),
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
            "56": "Close, but in each half a rank keeps one of the eight chunks to itself.",
            "24.5": "That is the reduce-scatter alone. The sums have to come back.",
            "196": "That would be every gradient, sent to every other rank.",
            "45.63": "That is in GiB. Count in units of 10^9 bytes.",
        },
    ),
    DDP16: _bytes(
        "-16",
        DDP16,
        "24.5",
        says="Half as many bytes per number, so half as many in all.",
        wrong={
            "49": "How many bytes does a bfloat16 number have?",
            "28": "Close, but in each half a rank keeps one of the eight chunks to itself.",
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
            "36.75": "That is with only one gather, or with gradients of fewer bytes. Here they have 4.",
            "61.25": "Did you swap the dtypes? The weights, gathered twice, have 2 bytes, and the gradients have 4.",
            "73.5": "Gradients are only reduce-scattered: no rank needs the sums of others. And weights have 2 bytes.",
            "45.63": "That is in GiB. Count in units of 10^9 bytes.",
            "24.5": "That is the gradients alone, or the weights alone. Add the two.",
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
            "24.5": "That is two of the messages: two gathers, or one gather and the scatter. There are three.",
            "49": "Did you count 4 bytes for a gradient? Here it has 2.",
            "42": "7/8 of each array is sent.",
            "12.25": "That is one of the three.",
            "34.23": "That is in GiB. Count in units of 10^9 bytes.",
        },
    ),
}


def _weight(place: int, answer: str, *, says: str, wrong: dict[str, str], order: str) -> Number:
    return Number(
        f"practice/many_gpus/ring-by-hand{f'-{place}' if place else ''}",
        f"Ranks 0, 1, 2 have 1, 256, 2. Which sum does weight {place} get from the ring in bfloat16?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise=f"Chunk {place} starts on rank {place}: {order}. Round after each addition.",
        hints=("From 256 to 512 bfloat16 has every second integer. A tie goes to the one whose half is even.",),
        near=0,
    )


EXACT = "That is the exact sum, and bfloat16 does not have it."
RING_BY_HAND = {
    "weight 0": _weight(
        0,
        "258",
        says="1 + 256 is 257, a tie that goes to 256. Then 256 + 2 is 258.",
        order="its 1, then the 256 of rank 1, then the 2 of rank 2",
        wrong={
            "259": EXACT,
            "260": "That is one rounding of the exact sum. Here 1 + 256 is rounded first.",
            "256": "The 1 is lost, but the 2 is a whole gap.",
            "257": "Bfloat16 has no 257: it has only 8 significant bits.",
        },
    ),
    "weight 1": _weight(
        1,
        "260",
        says="256 + 2 is exactly 258. Then 258 + 1 is 259, a tie that goes to 260, because 130 is even and 129 is not.",
        order="its 256, then the 2 of rank 2, then the 1 of rank 0",
        wrong={
            "259": EXACT,
            "258": "258 is right after the first addition. What becomes of the 1 of rank 0, and how is a tie decided?",
            "256": "The 2 is a whole gap at 256, so it counts.",
            "257": "Bfloat16 has no 257.",
        },
    ),
    "weight 2": _weight(
        2,
        "260",
        says="2 + 1 is 3, and 3 + 256 is 259, a tie that goes to 260.",
        order="its 2, then the 1 of rank 0, then the 256 of rank 1",
        wrong={
            "259": EXACT,
            "258": "Close. 3 + 256 is not a bfloat16 number. How is a tie decided?",
            "256": "The small ones meet first, and 3 is more than half a gap.",
            "257": "Bfloat16 has no 257.",
        },
    ),
}


def _mean(name: str, text: str, answer: str, *, says: str, wrong: dict[str, str], hint: str) -> Number:
    return Number(
        f"practice/many_gpus/mean-of-equals{name}",
        f"{text.capitalize()}: what is the mean, divided after the sum?",
        answer=answer,
        says=says,
        wrong=wrong,
        otherwise="Find the sum at which one more gradient is at most half of the gap, or show that there is none; "
        "then divide by the number of ranks.",
        hints=(hint,),
        near=0,
    )


RING_OF_THREES = "gradient 3, ring in bfloat16, 2,048 ranks"
RING_FLOAT16 = "gradient 1, ring in float16, 4,096 ranks"
TREE_BFLOAT16 = "gradient 1, tree in bfloat16, 2,048 ranks"
MEAN_OF_EQUALS = {
    RING_OF_THREES: _mean(
        "",
        RING_OF_THREES,
        "1/2",
        says="Between 512 and 1024 the gap is 4, and 3 is rounded to 4. At 1024 the gap is 8, 3 is less than half of "
        "it, and the sum stops: 1024 / 2048.",
        wrong={
            "3": "That is the exact mean. At some sum a 3 is less than half of the gap.",
            "1/8": "256 is where ones stop. A 3 is more than half of the gap there.",
            "1/4": "At 512 the gap is 4, and 3 is more than half of it: it counts, as 4.",
            "3/8": "That is 256 threes, 768. But sums are rounded on the way there, and beyond it a 3 still counts.",
            "1": "At 1024 the gap is 8, and 3 is less than half of it, so the sum does not reach 2048.",
            "1024": "That is the sum. Divide by the number of ranks.",
        },
        hint="Write down the gaps of bfloat16 from 256, 512 and 1024 on, and compare half of each with 3.",
    ),
    RING_FLOAT16: _mean(
        "-float16",
        RING_FLOAT16,
        "1/2",
        says="Float16 has 11 significant bits, so the sum stops at 2048.",
        wrong={
            "1": "Float16 counts to 2048 in ones, and no further.",
            "2048": "That is the sum. Divide by the number of ranks.",
            "1/4": "At 1024 the gap is 1, so a one still counts. The sum goes on to 2048.",
            "1/16": "That is for bfloat16. Float16 has three bits more.",
        },
        hint="Float16 has 11 significant bits: from 2^11 on the gap is 2.",
    ),
    TREE_BFLOAT16: _mean(
        "-tree",
        TREE_BFLOAT16,
        "1",
        says="1 + 1, 2 + 2, 4 + 4: the tree adds equal numbers, and every sum is a power of two.",
        wrong={
            "1/8": "That is the ring. With 2^k ranks no 1 of a tree ever meets a large sum.",
            "1/2": "There are eleven levels, and at each of them two equal numbers are added. Is any of these sums "
            "rounded?",
            "2048": "That is the sum. Divide by the number of ranks.",
        },
        hint="Write down the first three levels.",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

FLOAT32_REDUCE = Task(
    "practice/many_gpus/float32-reduce",
    "Write `float32_reduce`: the mean over the examples of all ranks, computed in float32, rounded once.",
)
SHARDED_NORM = Task(
    "practice/many_gpus/sharded-norm",
    "Write `sharded_norm`: the norm of all gradients, of which each rank has a part.",
)
