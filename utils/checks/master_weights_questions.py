"""What `training/master_weights` asks: what people expect of a small update, and what is said to each answer."""

from utils.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

WHERE_DO_THEY_GO = Choice(
    "training/master_weights/predict-where-they-go",
    "In every step the network is told correctly what to do, and it learns next to nothing. Where does it get lost?",
    (
        Option(
            "In the backward pass: gradients underflow to 0",
            "bfloat16 has the exponents of float32: what is not 0 in float32 is not 0 here either.",
        ),
        Option(
            "In the gradients: rounded to 8 bits, they are noise",
            "Eight bits are two or three digits, and the sign is right. A step in a direction that is right within a "
            "hundredth still goes downhill.",
        ),
        Option(
            "At the end: the step is right, and storing the new weight rounds it away",
            "The sum of weight and step is computed, and the nearest bfloat16 number to it is the old weight.",
            True,
        ),
        Option(
            "In the products: with 8 bits the network cannot tell a good review from a bad one",
            "The same products learn as well as float32 once only the keeping of the weights is changed: that comes "
            "further down.",
        ),
    ),
    predict=True,
)
TEN_TIMES = Choice(
    "training/master_weights/predict-ten-times",
    "With a learning rate of 0.00001 bfloat16 is going to lose nine updates of ten here. What do the curves of the "
    "lost share look like as the learning rate grows, in bfloat16 and in float16?",
    (
        Option(
            "Ten times the rate, a tenth of the share: both fall slowly, float16 with an eighth of bfloat16's share",
            "An update is not lost by a part of it. It is lost or it is stored, and the share counts weights: those "
            "whose half gap is larger than the step.",
        ),
        Option(
            "Each is a cliff: below one learning rate all is lost, above it nothing; float16's lies further left",
            "So it would be if all weights lay in one binade. A small weight has small gaps: it stores what a large "
            "one loses.",
        ),
        Option(
            "Each falls from nearly all to nearly nothing within two powers of ten; float16's is the same curve, at "
            "rates an eighth as large",
            "The weights are spread over a few binades, and each binade drops out at its own rate. Three more bits "
            "make every gap an eighth as wide.",
            True,
        ),
        Option(
            "float16 loses more: its range ends early, so its curve lies further right",
            "Range decides what a very small number becomes. Here the sum is about as large as the weight, in the "
            "middle of both ranges; what counts is the number of bits.",
        ),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _lost(name: str, text: str, *, lost: bool, right: str, wrong: str) -> Choice:
    return Choice(
        f"training/master_weights/which-are-lost{name}",
        text,
        (Option("lost", right if lost else wrong, lost), Option("stored", wrong if lost else right, not lost)),
    )


WHICH_ARE_LOST = {
    "bfloat16, w = 1, dw = 0.003": _lost(
        "",
        "bfloat16, w = 1, dw = 0.003",
        lost=True,
        right="Above 1 the next bfloat16 is 1 + 2^-7. Half of that gap is 0.0039.",
        wrong="The next bfloat16 above 1 is 1.0078. Is 1.003 nearer to it than to 1?",
    ),
    "bfloat16, w = 1, dw = 0.005": _lost(
        "-stored",
        "bfloat16, w = 1, dw = 0.005",
        lost=False,
        right="1.005 is nearer to 1.0078 than to 1: more is stored than was asked for.",
        wrong="0.005 is less than eps = 2^-7 = 0.0078, the whole gap. The border is half of the gap.",
    ),
    "bfloat16, w = 0.05, dw = -0.0001": _lost(
        "-small",
        "bfloat16, w = 0.05, dw = -0.0001",
        lost=True,
        right="Between 2^-5 and 2^-4 the gap is 2^-12, and half of it 0.000122.",
        wrong="Both numbers are far inside bfloat16's range. What counts is the gap at 0.05: between 2^-5 and 2^-4 it "
        "is 2^-12.",
    ),
    "float16, w = 0.05, dw = -0.0001": _lost(
        "-float16",
        "float16, w = 0.05, dw = -0.0001",
        lost=False,
        right="float16's gap there is 2^-15 = 0.00003, an eighth of bfloat16's.",
        wrong="float16 has three bits more than bfloat16, so each gap is an eighth as wide: 2^-15 = 0.00003 here.",
    ),
    "float16, w = 2048, dw = 1": _lost(
        "-tie",
        "float16, w = 2048, dw = 1",
        lost=True,
        right="From 2048 on float16 counts in twos. 2049 is a tie, and it goes to the even neighbour, 2048.",
        wrong="From 2048 on float16 counts in twos: 2049 lies exactly half-way. Which neighbour is the even one?",
    ),
    "bfloat16, w = 0.03, dw = 0.0001": _lost(
        "-binade-below",
        "bfloat16, w = 0.03, dw = 0.0001",
        lost=False,
        right="0.03 is below 2^-5 = 0.03125: the gap is 2^-13 there, and half of it 0.00006.",
        wrong="At 0.05 it is lost. But 0.03 lies below 2^-5 = 0.03125, in the next binade, whose gap is half as wide.",
    ),
}
PREDICT_THE_SHARE = Number(
    "training/master_weights/predict-the-share",
    "The weights of a layer are spread evenly between 2^-5 and 2^-3, in size: as many between 0.04 and 0.05 as between "
    "0.11 and 0.12. Every update is 0.0002, up or down. What share of the updates does bfloat16 lose?",
    answer="200/3",
    says="Above 2^-4 half the gap is 0.000244: lost. Below it is 0.000122: stored. The upper binade is twice as wide.",
    wrong={
        "100/3": "That is the share that is stored. Or which of the two binades has the wider gaps?",
        "50": "One binade of the two, that is right. But the upper one is twice as wide, and the weights are spread "
        "evenly.",
        "100": "0.0002 is less than the whole gap in both binades, 2^-12 and 2^-11. The border is half of it.",
        "0": "In the binade from 2^-4 to 2^-3 the gap is 2^-11 = 0.000488. What is half of it?",
        "2/3": "Right as a fraction. The answer is asked for in per cent.",
        "1/3": "That is the share that is stored, as a fraction. Per cent of the lost ones are asked for.",
        "24.1": "2^-9 of the weight: below that everything is lost, but above it some is lost too. Inside a binade the "
        "gap is the same for all weights.",
        "78.7": "2^-8 of the weight: above that everything is stored, but below it some is stored too. Inside a binade "
        "the gap is the same for all weights.",
        "66": "Two thirds are 66.7 per cent.",
    },
    otherwise="Take the two binades one by one: the gap, half of it, and whether 0.0002 is more. Then their widths.",
    hints=(
        "From 2^-5 to 2^-4 the gap is 2^-12, from 2^-4 to 2^-3 it is 2^-11.",
        "Half of them: 0.000122 and 0.000244. One binade loses the update, the other stores it.",
        "The binades are 1/32 and 2/32 wide.",
    ),
    tolerance=0.0055,
    unit="%",
)


def _bytes(name: str, recipe: str, answer: int, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"training/master_weights/bytes-a-weight{name}",
        f"{recipe}: bytes for each weight, with its gradient and what the optimizer keeps",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="Add up: the weight, its gradient, Adam's two moments, and what the store keeps beside them.",
        hints=("Two bytes for a number of 16 bits, four for a float32.", "Adam keeps two moments, m and v."),
        unit="bytes",
    )


BYTES_A_WEIGHT = {
    "32-true": _bytes(
        "",
        "32-true",
        16,
        says="Weight, gradient, m and v: 4 + 4 + 4 + 4.",
        wrong={
            "4": "That is the weight alone. Its gradient and Adam's two moments take room as well.",
            "8": "That is weight and gradient. What does Adam keep for each weight?",
            "12": "Three numbers of four. There are the weight, the gradient, and two moments.",
            "20": "In 32-true the weight is float32 already; there is no second copy.",
            "18": "In 32-true nothing has 16 bits, so there is no narrow copy either.",
        },
    ),
    "bf16-true": _bytes(
        "-bf16",
        "bf16-true",
        8,
        says="Four numbers of two bytes: half of 32-true.",
        wrong={
            "2": "That is the weight alone.",
            "4": "That is weight and gradient. What does Adam keep for each weight?",
            "6": "Three numbers of two. There are the weight, the gradient, and two moments.",
            "12": "The moments are bfloat16 too here; float32 moments come with a master.",
            "16": "That is 32-true. Here each of the four numbers has two bytes.",
            "10": "Nothing is kept beside the weight here: no compensation.",
        },
    ),
    "bf16-true-stochastic": _bytes(
        "-stochastic",
        "bf16-true-stochastic",
        8,
        says="Random bits are drawn and forgotten: not a byte more than bf16-true.",
        wrong={
            "10": "The random bits are not kept: they are drawn anew in each step.",
            "12": "Nothing is float32 between two steps here; only the sum is, for a moment.",
            "4": "That is weight and gradient. Adam's two moments are there as well.",
            "6": "Three numbers of two. There are the weight, the gradient, and two moments.",
            "16": "Nothing wide is kept here: stochastic rounding does without a master.",
        },
    ),
    "bf16-true-kahan": _bytes(
        "-kahan",
        "bf16-true-kahan",
        10,
        says="One more 16-bit number, what the last rounding took away.",
        wrong={
            "8": "Kahan's store remembers what the last rounding took away. That is one number more.",
            "12": "What the rounding took away is kept in bfloat16, in two bytes and not in four.",
            "4": "That is the pair of weight and rest. Gradient and moments are missing.",
            "6": "Weight, gradient and rest. Adam's two moments are missing.",
            "16": "No number of these is float32. Count five of two bytes.",
            "14": "Are the moments float32 here? Only a master brings those.",
        },
    ),
    "bf16-true-master": _bytes(
        "-master",
        "bf16-true-master",
        16,
        says="2 + 2 for weight and gradient, 4 for the master, 4 + 4 for the moments: as much as 32-true.",
        wrong={
            "8": "A master is a float32 copy beside the weight, and the moments are float32 with it.",
            "10": "The master has four bytes, and beside it the moments are float32.",
            "12": "Are all five there, and are the moments float32? Weight, gradient, master, m and v.",
            "14": "Weight, gradient, master, m and v are five numbers. Is one of the 16-bit numbers missing?",
            "18": "The gradient has the dtype of the weight, two bytes. A float32 copy of it lives for a moment only.",
            "20": "Two of the five, weight and gradient, have two bytes only.",
        },
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

MASTER_ADAMW = Task(
    "training/master_weights/master-adamw",
    "Write `master_adamw`: a step of AdamW for a bfloat16 weight, with a float32 master and float32 moments.",
)
STOCHASTIC_ADD = Task(
    "training/master_weights/stochastic-add",
    "Write `add`: w + dw in bfloat16, rounded up or down at random so that it is right on average.",
)
MASTER_SGD = Task(
    "training/master_weights/master-sgd",
    "Find the bug: mend an optimizer whose float32 masters do not help the network to learn.",
)
