"""What `hardware/accumulation` asks: what a long sum loses, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

P_FOURTEEN = Choice(
    "hardware/accumulation/predict-fourteen-bits",
    "Rounding the inputs to 4 bits made the results wrong by 0.07 %. Now the total keeps 14 bits while 4,096 products "
    "are added to it. What does that cost on top?",
    (
        Option(
            "Next to nothing, a thousandth of 0.07 %: the total is a thousand times finer than the inputs",
            "It is, at each step. But there are 4,096 steps, and nothing says that their errors cancel.",
        ),
        Option(
            "About as much again",
            "That would be right if the errors of the total went up and down: rounded to nearest, these totals spread "
            "by about 0.09 %. But what does not fit is dropped, and that is something else.",
        ),
        Option(
            "About ten times as much",
            "The right direction. Even more is lost.",
        ),
        Option(
            "Nearly a hundred times as much",
            "Several percent. The errors of the inputs cancel, and these do not.",
            True,
        ),
    ),
    predict=True,
)
P_ONES = Choice(
    "hardware/accumulation/predict-ones",
    "A row of 4,096 ones times a column of 4,096 ones, both float16, result float16. What does torch's `@` give on the "
    "device that you have?",
    (
        Option(
            "2048, like the loop: float16 cannot count any further",
            "One float16 total that takes them one by one cannot. A wider one can, and so can several float16 totals.",
        ),
        Option(
            "4096",
            "Operands and result are float16, the total in between is wider. How wide, one right answer does not say.",
            True,
        ),
        Option(
            "Something in between: the row is cut into parts, and each part stalls for itself",
            "Parts of at most 2048 ones do not stall, and float16 holds their sums: that would give 4096 as well.",
        ),
        Option(
            "An infinity: the sum leaves float16",
            "Float16 goes up to 65504.",
        ),
    ),
    predict=True,
)
P_LLAMA = Choice(
    "hardware/accumulation/predict-llama",
    "The FP8 totals of 14 bits were wrong by 7 % in the puzzle. What do they do to the perplexity of this model?",
    (
        Option(
            "It rises by some percent, like the sums",
            "A perplexity is no sum of those products, and these sums are shorter than those of the puzzle.",
        ),
        Option(
            "It changes in the third or fourth decimal",
            "The sums are short, and most of them cancel: little is there to drift.",
            True,
        ),
        Option(
            "It doubles: the errors of the layers multiply",
            "Each layer begins with a norm and adds its result to a stream that goes past it: errors add up more than "
            "they multiply.",
        ),
        Option(
            "It becomes infinite or NaN",
            "That takes an overflow. These totals have the exponents of float32.",
        ),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _stall(name: str, text: str, answer: int, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"hardware/accumulation/stalls{name}",
        f"{text}: after how many products of 1/4 does the total stop growing?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="Find the power of two from which on the addend is lost: a half of the last bit where ties go to "
        "even, less than the whole last bit where it is cut. Then divide by 1/4.",
        hints=(
            "With p bits, the last bit of a total in [2^e, 2^(e + 1)) is worth 2^(e - p + 1).",
            "Below that power of two every total is a multiple of 1/4, so nothing is lost on the way.",
        ),
        unit="products",
    )


STALL_FLOAT16 = "float16, ties to even"
STALL_BFLOAT16 = "bfloat16, ties to even"
STALL_CUT = "14 bits, cut off"
STALL_BLOCKS = "14 bits, cut off, 32 added exactly at a time"
STALLS = {
    STALL_FLOAT16: _stall(
        "",
        STALL_FLOAT16,
        2048,
        says="At 512 the last bit is worth 1/2; 1/4 is half of it, and 512 is even.",
        wrong={
            "512": "That is the total where it stops. Each product is 1/4.",
            "2049": "The first product that is lost; 2048 of them arrived.",
            "4096": "At 1024 a product is a quarter of the last bit. It is lost earlier: where it is half of it.",
            "8192": "At 2048 a one is lost. A quarter is lost earlier.",
            "1024": "At 256 the last bit is worth 1/4, so a quarter still fits.",
        },
    ),
    STALL_BFLOAT16: _stall(
        "-bfloat16",
        STALL_BFLOAT16,
        256,
        says="At 64 the last bit is worth 1/2.",
        wrong={
            "64": "That is the total where it stops. Each product is 1/4.",
            "128": "Bfloat16 has 8 significant bits, the hidden one included. At 32 its last bit is worth 1/4.",
            "512": "At 128 a product is a quarter of the last bit. It is lost earlier.",
            "1024": "At 256 a one is lost. A quarter is lost earlier.",
        },
    ),
    STALL_CUT: _stall(
        "-cut",
        STALL_CUT,
        16384,
        says="At 4096 the last bit is worth 1/2, and what is less is cut off.",
        wrong={
            "4096": "That is the total where it stops. Each product is 1/4.",
            "8192": "At 2048 the last bit is worth 1/4: a product still fits.",
            "32768": "At 8192 it is long over: a product is lost as soon as it is less than the last bit.",
            "65536": "At 16384 the last bit is worth 2. A quarter is lost as soon as it is less than the last bit.",
        },
    ),
    STALL_BLOCKS: _stall(
        "-blocks",
        STALL_BLOCKS,
        524288,
        says="32 products are 8. That is lost when the last bit is worth 16, at 2^17, and 2^17 / (1/4) = 2^19.",
        wrong={
            "131072": "That is the total where it stops, 2^17. Each product is 1/4.",
            "16384": "That is one by one. Here 32 products, 8 together, meet the total at once.",
            "262144": "At 2^16 the last bit is worth 8: a block still fits.",
            "65536": "These are blocks, or half of a total: count products of 1/4.",
        },
    ),
}


NO_POWER = "Within the bound, and no power of two."
AT_THE_BOUND = "That is the bound. The largest power of two that is not above it?"


def _every(name: str, text: str, answer: int, *, says: str, wrong: dict[str, str], within: dict[str, str]) -> Number:
    return Number(
        f"hardware/accumulation/promote-every{name}",
        f"{text}: what is the largest power of two?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        within=within,
        otherwise="Put N for K: N / (3 * 2^p) is the loss of each part, and the sum of the parts loses the same share. "
        "Solve for N, then go down to a power of two.",
        hints=("Only what is lost between two promotions counts: the wide total loses nothing to speak of.",),
        unit="products",
    )


EVERY_ONE_PERCENT = "14 bits, 1 %"
EVERY_TENTH = "14 bits, 0.1 %"
EVERY_SIXTEEN = "16 bits, 0.1 %"
PROMOTE_EVERY = {
    EVERY_ONE_PERCENT: _every(
        "",
        EVERY_ONE_PERCENT,
        256,
        says="3 * 2^14 / 100 = 491.",
        wrong={
            "512": "512 / (3 * 2^14) is 1.04 %: a little too much.",
            "128": "That is DeepSeek's choice; by the formula it loses about 0.26 %. More is allowed here.",
            "163": "Without the 3: each binade loses half as much as the next one, of half as much.",
        },
        within={"490 to 500": AT_THE_BOUND, "257 to 490": NO_POWER, "129 to 255": NO_POWER},
    ),
    EVERY_TENTH: _every(
        "-tenth",
        EVERY_TENTH,
        32,
        says="3 * 2^14 / 1000 = 49.",
        wrong={
            "64": "64 / (3 * 2^14) is 0.13 %.",
            "128": "128 / (3 * 2^14) is 0.26 %.",
            "256": "That is for 1 %.",
            "16": "16 loses 0.03 %. Twice that is still allowed.",
        },
        within={"49 to 50": AT_THE_BOUND, "33 to 49": NO_POWER, "17 to 31": NO_POWER},
    ),
    EVERY_SIXTEEN: _every(
        "-sixteen",
        EVERY_SIXTEEN,
        128,
        says="3 * 2^16 / 1000 = 197: two bits more allow four times as many.",
        wrong={
            "256": "256 / (3 * 2^16) is 0.13 %.",
            "64": "Two bits more are four times as many, not twice.",
            "32": "That is for 14 bits.",
        },
        within={"196 to 200": AT_THE_BOUND, "129 to 196": NO_POWER, "65 to 127": NO_POWER},
    ),
}

UNIT_A = "bits of unit A"
UNIT_B = "bits of unit B"
UNIT_B_CUTS = "unit B, x = 1.9 * 2**-12"
TWO_UNITS = {
    UNIT_A: Number(
        "hardware/accumulation/two-units",
        "How many significant bits has the total of unit A?",
        answer="11",
        says="1 and a last bit of 2^-10: eleven places. And 3/4 of the last one became a whole: it rounds. Float16?",
        wrong={
            "10": "Those are the places after the point. The leading 1 is a bit too.",
            "12": "That 1.5 * 2^-11 came back as something is rounding; 2^-11 itself was lost.",
        },
        otherwise="Find the smallest power of two that comes back as it is: that is what the last bit is worth.",
        hints=("1 + 2^-j needs j + 1 significant bits.",),
        unit="bits",
    ),
    UNIT_B: Number(
        "hardware/accumulation/two-units-b",
        "How many significant bits has the total of unit B?",
        answer="13",
        says="The last bit is worth 2^-12.",
        wrong={
            "12": "Those are the places after the point. The leading 1 is a bit too.",
            "14": "2^-13 would have to come back. It was lost.",
            "11": "2^-11 and 2^-12 came back as well.",
        },
        otherwise="Find the smallest power of two that comes back as it is: that is what the last bit is worth.",
        hints=("1 + 2^-j needs j + 1 significant bits.",),
        unit="bits",
    ),
    UNIT_B_CUTS: Number(
        "hardware/accumulation/two-units-cut",
        "What does unit B leave of x = 1.9 * 2^-12?",
        answer="2^-12",
        says="Unit B cuts: 1.5 * 2^-13, three quarters of its last bit, is nearer to 2^-12 and came back as 0.",
        wrong={
            "2^-11": "That is the nearest. Look what it made of 1.5 * 2^-13: the nearest would have been 2^-12.",
            "0": "2^-12 of it fits.",
            "1.9*2^-12": "The bits of 0.9 * 2^-12 lie beyond the last one.",
            "1.5*2^-12": "Half of the last bit does not fit either.",
        },
        otherwise="The last bit is worth 2^-12. Does this unit round or cut? Look at 1.5 * 2^-13.",
        hints=("1.5 * 2^-13 is three quarters of the last bit: nearer to 2^-12 than to 0.",),
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

LIMITED_SUM = Task(
    "hardware/accumulation/limited-sum",
    "Write `limited_sum`: a total that is cut to `bits` significant bits after each addition.",
)
PROMOTED_SUM = Task(
    "hardware/accumulation/promoted-sum",
    "Write `promoted_sum`: a narrow total that moves to a wide one after every `n` products.",
)
