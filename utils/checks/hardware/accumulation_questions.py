"""What `hardware/accumulation` asks: what a long sum loses, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predictions ------------------------------------------------------------------------------------------------------

P_AT_ONCE = Choice(
    "hardware/accumulation/predict-at-once",
    "This unit adds 32 products at once: one addition for every 32 products, 128 additions for a sum of 4,096. Suppose "
    "it added them one at a time, in 4,096 additions, and still kept 14 bits. How large would the error be?",
    (
        Option(
            "About 32 times as large",
            "That would be right if 32 products were added exactly and only the total was cut. But this unit cuts "
            "every product before it adds it, so the number of additions does not matter.",
        ),
        Option(
            "About 6 times as large",
            "6 is about the square root of 32, but errors grow with a square root only when their signs vary. Here "
            "every error has the same sign, and the number of cuts is the number of products, whether they come "
            "singly or 32 at a time.",
        ),
        Option(
            "About the same",
            "The unit cuts every product before it adds it. Adding 32 of them at once saves additions, not cuts.",
            True,
        ),
        Option(
            "About half as large",
            "A single product is added to nearly the same total: while 32 products are added, a total of several "
            "hundred hardly changes, and the total decides where the products are cut.",
        ),
    ),
    predict=True,
)
P_SERVE = Choice(
    "hardware/accumulation/predict-serve",
    "A layer has been trained with the sums of its forward pass in the adder of 14 bits, and its results are right to "
    "within 1 %. Now it runs with exact sums, and nothing else changes. What happens to its results?",
    (
        Option(
            "They become a little more accurate, because the adder does",
            "They would if training had not adapted to the old adder. The weights were chosen so that the results came "
            "out right with the loss included.",
        ),
        Option(
            "They stay as they are: the weights are the same",
            "The weights are the same, but the sums are not: the old adder lost several percent of each.",
        ),
        Option(
            "They become too large",
            "In training, the adder lost several percent of each sum, and the weights grew to make up for it. With "
            "exact sums nothing is lost, so the results are too large by about as much.",
            True,
        ),
        Option(
            "They become too small",
            "The other way round: the narrow adder gave sums that were too small, and the weights grew to make up "
            "for it.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_PROMOTE = Number(
    "hardware/accumulation/play-promote",
    "Numbers uniform in [0, 1), K = 4,096, 14 bits with addends cut, 32 at once. What is the largest distance between "
    "two promotions, of those that the widget offers, for which the error stays below 2 %?",
    answer="1024",
    says="At 1,024 the error is about 1.4 %, at 2,048 about 3.1 %. The formula is stricter: by it, 1,024 would lose a "
    "little more than 2 %. But products of E4M3 numbers have at most 8 bits and lose less while the total is small.",
    wrong={
        "128": "That is the usual distance, and its error is far below 2 %. Larger distances are still fine.",
        "256": "The error is far below 2 % there, about ten times smaller. There is room for more than one step.",
        "512": "The error is about half a percent there. Try the next distance.",
        "2048": "Read its error again: it is above 2 %.",
        "4096": "With K = 4,096 that is no promotion before the end.",
        "10": "1,024 is 2^10. The number itself?",
    },
    otherwise="Set the promotion of A to one value after the other, run each, and read its error.",
    hints=("From one distance to the next, the error grows two- to fourfold. Look for the step across 2 %.",),
    unit="products",
)
PLAY_SWALLOWED = Number(
    "hardware/accumulation/play-swallowed",
    "Choose “one large, many small” and let B be promoted every 128. What share of the 4,096 products is swallowed "
    "in B, to one digit after the point?",
    answer="3.1",
    says="The large product swallows the 127 others before the first promotion. After that the register starts from 0, "
    "and every small product arrives.",
    wrong={
        "100": "Nearly all are swallowed in A, which is never promoted. B starts again from 0 after 128 products.",
        "99.98": "That is A, which is never promoted. Read the line of B.",
        "127": "That is the number of products swallowed. What share of 4,096 is it?",
        "0.031": "As a percentage?",
        "3": "Right, but rounded to a whole percent. What is the first digit after the point?",
        "0": "Before the first promotion the large product is still in the register.",
    },
    otherwise="Run to the end, and read the share in B's row. Its promotion has to be 128.",
    hints=("Only products that come before the first promotion meet the large one.",),
    tolerance=0.01,
    unit="%",
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _stall(
    name: str,
    text: str,
    answer: int,
    *,
    says: str,
    wrong: dict[str, str],
    hint: str,
    addend: str = "less than the whole last bit where it is cut. How many quarters lead there from 32?",
) -> Number:
    return Number(
        f"hardware/accumulation/stalls{name}",
        f"{text}: from a total of 32, after how many products of 1/4 does it stop growing?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="Find the power of two from which on the addend is lost: a half of the last bit where ties go to "
        f"even, {addend}",
        hints=("With p bits, the last bit of a total in [2^e, 2^(e + 1)) is worth 2^(e - p + 1).", hint),
        unit="products",
    )


STALL_FLOAT16 = "float16, ties to even"
STALL_BFLOAT16 = "bfloat16, ties to even"
STALL_CUT = "14 bits, cut off"
STALL_BLOCKS = "14 bits, cut off, 32 added exactly at a time"
EXACT_UNTIL = (
    "Until the last bit is worth more than 1/4, every total is a multiple of 1/4, and nothing is lost. So the sum is "
    "exact up to the total where it stops."
)
STALLS = {
    STALL_FLOAT16: _stall(
        "",
        STALL_FLOAT16,
        1920,
        says="At 512 the last bit is worth 1/2; 1/4 is half of it, and 512 is even. From 32 it is 480, in quarters.",
        hint=EXACT_UNTIL,
        wrong={
            "2048": "From 0 it would take 2,048 products. Here the total begins at 32.",
            "512": "That is the total where it stops. How many products lead there from 32?",
            "480": "That is how much the total grows. Each product is 1/4.",
            "1921": "The first product that is lost; 1,920 of them arrived.",
            "3968": "At 1024 a product is a quarter of the last bit. It is lost earlier: where it is half of it.",
            "896": "At 256 the last bit is worth 1/4, so a quarter still fits.",
        },
    ),
    STALL_BFLOAT16: _stall(
        "-bfloat16",
        STALL_BFLOAT16,
        128,
        says="At 64 the last bit is worth 1/2. From 32 to 64 it is 32, in quarters.",
        hint=EXACT_UNTIL,
        wrong={
            "256": "From 0 it would take 256 products. Here the total begins at 32.",
            "64": "The total stops at 64. How many products lead there from 32?",
            "32": "The total grows by 32. Each product is 1/4.",
            "129": "The first product that is lost; 128 of them arrived.",
            "0": "Bfloat16 has 8 significant bits, the hidden one included. At 32 its last bit is worth 1/4.",
            "384": "At 128 a product is a quarter of the last bit. It is lost earlier.",
        },
    ),
    STALL_CUT: _stall(
        "-cut",
        STALL_CUT,
        16256,
        says="At 4096 the last bit is worth 1/2, and what is less is cut off. From 32 it is 4,064, in quarters.",
        hint=EXACT_UNTIL,
        wrong={
            "16384": "From 0 it would take 16,384 products. Here the total begins at 32.",
            "4096": "That is the total where it stops. How many products lead there from 32?",
            "4064": "That is how much is added to the total. Each product is 1/4.",
            "16257": "The first product that is lost; 16,256 of them arrived.",
            "8064": "At 2048 the last bit is worth 1/4: a product still fits.",
            "32640": "The total stops well before 8192: a product is lost as soon as it is less than the last bit.",
        },
    ),
    STALL_BLOCKS: _stall(
        "-blocks",
        STALL_BLOCKS,
        524160,
        says="32 products are 8. It is lost when the last bit is worth 16, at 2^17: (2^17 - 32) / (1/4) = 524,160.",
        hint="The addend is the exact sum of 32 products, 8. Until the last bit is worth more than 8, every total is a "
        "multiple of 8, and nothing is lost.",
        addend="less than the whole last bit where it is cut. Here the addend is 8, the exact sum of 32 products. How "
        "many quarters lead there from 32?",
        wrong={
            "524288": "From 0 it would take 2^19 products. Here the total begins at 32.",
            "131072": "That is the total where it stops, 2^17. How many products lead there from 32?",
            "131040": "That is 2^17 - 32, by which the total grows. Each product is 1/4.",
            "508": "These blocks lead to 4096, where a single 1/4 is lost. An addend of 8 still fits there.",
            "520192": "That is 32 times 16,256. The total does go 32 times as far, but it begins at 32 both times.",
            "16380": "That is the number of blocks that arrive. Each of them has 32 products.",
            "524161": "Products come 32 at a time, and the block that begins with this one is lost.",
            "524192": "With these 32 products the total no longer grows: count those that arrived.",
            "16256": "That is one by one. Here 32 products, 8 together, meet the total at once.",
            "262016": "At 2^16 the last bit is worth 8: a block still fits.",
        },
    ),
}


NO_POWER = "That is within the bound, but not a power of two."
AT_THE_BOUND = "That is the bound. What is the largest power of two that is not above it?"


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


EVERY_ONE_PERCENT = "12 bits, 1 %"
EVERY_TENTH = "14 bits, 0.1 %"
EVERY_SIXTEEN = "16 bits, 0.1 %"
PROMOTE_EVERY = {
    EVERY_ONE_PERCENT: _every(
        "",
        EVERY_ONE_PERCENT,
        64,
        says="3 * 2^12 / 100 = 122.88.",
        wrong={
            "128": "128 / (3 * 2^12) is 1.04 %: a little too much.",
            "256": "With 14 bits that would be allowed. Here p is 12.",
            "32": "32 loses 0.26 %. Twice that is still allowed.",
            "6": "64 is 2^6. The number itself?",
            "40": "You left out the 3 of the formula, and 40 is no power of two.",
        },
        within={"122 to 125": AT_THE_BOUND, "65 to 122": NO_POWER, "33 to 63": NO_POWER},
    ),
    EVERY_TENTH: _every(
        "-tenth",
        EVERY_TENTH,
        32,
        says="3 * 2^14 / 1000 = 49.",
        wrong={
            "64": "64 / (3 * 2^14) is 0.13 %.",
            "128": "128 / (3 * 2^14) is 0.26 %.",
            "256": "256 / (3 * 2^14) is 0.52 %, five times too much.",
            "16": "16 loses 0.03 %. Twice that is still allowed.",
            "5": "32 is 2^5. The number itself?",
        },
        within={"49 to 50": AT_THE_BOUND, "33 to 49": NO_POWER, "17 to 31": NO_POWER},
    ),
    EVERY_SIXTEEN: _every(
        "-sixteen",
        EVERY_SIXTEEN,
        128,
        says="3 * 2^16 / 1000 = 196.6: two bits more allow four times as many.",
        wrong={
            "256": "256 / (3 * 2^16) is 0.13 %.",
            "64": "Two bits more are four times as many, not twice.",
            "32": "32 would be right for 14 bits. Here p is 16.",
            "7": "128 is 2^7. The number itself?",
        },
        within={"196 to 200": AT_THE_BOUND, "129 to 196": NO_POWER, "65 to 127": NO_POWER},
    ),
}

NOT_ALL_DIGITS = "That may be the right number, rounded. Write it exactly, as a power of two."

UNIT_A = "bits of unit A"
UNIT_B = "bits of unit B"
UNIT_B_CUTS = "unit B, x = 1.9 * 2**-12"
TWO_UNITS = {
    UNIT_A: Number(
        "hardware/accumulation/two-units",
        "How many significant bits does the total of unit A have?",
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
        "How many significant bits does the total of unit B have?",
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
            "2^-11": "That is the nearest. Look at what it made of 1.5 * 2^-13: the nearest would have been 2^-12.",
            "0": "2^-12 of it fits.",
            "1.9*2^-12": "The bits of 0.9 * 2^-12 lie beyond the last one.",
            "1.5*2^-12": "Half of the last bit does not fit either.",
        },
        within={"0.0002 to 0.00025": NOT_ALL_DIGITS},
        otherwise="The last bit is worth 2^-12. Does this unit round or cut? Look at 1.5 * 2^-13.",
        hints=("What came back for 1.5 * 2^-13? A unit that rounds to nearest would have returned 2^-12.",),
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
