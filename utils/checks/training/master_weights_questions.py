"""What `training/master_weights` asks: what people expect of a small update, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

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
        "100": "0.0002 is less than the gap in both binades, 2^-12 and 2^-11. But the border lies at half the gap.",
        "0": "In the binade from 2^-4 to 2^-3 the gap is 2^-11 = 0.000488. Is 0.0002 more than half of that?",
        "2/3": "Right as a fraction. The answer is asked for in percent.",
        "1/3": "That is the share that is stored, as a fraction. Percent of the lost ones are asked for.",
        "24.1": "2^-9 of the weight: below that everything is lost, but above it some is lost too. Inside a binade the "
        "gap is the same for all weights.",
        "78.7": "2^-8 of the weight: above that everything is stored, but below it some is stored too. Inside a binade "
        "the gap is the same for all weights.",
        "66": "Two thirds are 66.7 percent.",
    },
    otherwise="Take the two binades one by one: the gap, half of it, and whether 0.0002 is more. Then their widths.",
    hints=(
        "Inside a binade all weights have the same gap: 2^-12 from 2^-5 to 2^-4, and 2^-11 from 2^-4 to 2^-3.",
        "An update is lost where it is smaller than half the gap: than 0.000122 in the lower binade, than 0.000244 in "
        "the upper one. Compare 0.0002 with both.",
        "So one binade loses all of its updates, the other none. The lower one is 1/32 wide, the upper one 2/32: what "
        "share of the weights lies in each?",
    ),
    tolerance=0.0055,
    unit="%",
)


def _billions(name: str, kept: str, answer: int, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"training/master_weights/seven-billion{name}",
        f"{kept}: how many GB?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="Add up the bytes of one weight: the weight, its gradient, each mean, and what the store or autocast "
        "adds. Times seven that is the number of GB.",
        hints=(
            "Two bytes for a number of 16 bits, four for a float32. Seven billion of them are 14 GB and 28 GB.",
            "AdamW keeps two means, m and v, SGD with momentum one, SGD without it none.",
        ),
        unit="GB",
    )


SEVEN_BILLION = {
    "SGD with momentum, 32-true": _billions(
        "",
        "SGD with momentum, 32-true",
        84,
        says="Weight, gradient and one mean, 4 + 4 + 4 = 12 bytes: a mean less than AdamW.",
        wrong={
            "28": "That is the weights alone. Their gradients and the mean take room as well.",
            "56": "That is weights and gradients. Momentum is a mean of the gradients, one for each weight.",
            "112": "That is AdamW, with two means. Momentum is one.",
            "12": "Right for one weight, in bytes. There are seven billion.",
            "42": "Three numbers of two bytes. In 32-true each has four.",
        },
    ),
    "SGD with momentum, bf16-true-kahan": _billions(
        "-kahan",
        "SGD with momentum, bf16-true-kahan",
        56,
        says="Weight, gradient, mean and what rounding took away, each of two bytes: 8.",
        wrong={
            "42": "Weight, gradient and mean. Kahan's store keeps one number more, what rounding took away.",
            "70": "That is AdamW, with two means. Momentum is one.",
            "28": "Two numbers of two bytes. There are weight, gradient, mean, and what rounding took away.",
            "84": "No number of these is float32, and there is one mean only. Count four numbers of two bytes.",
            "112": "No number of these is float32. Count four of two bytes.",
            "8": "Right for one weight, in bytes. There are seven billion.",
        },
    ),
    "SGD without momentum, bf16-true-master": _billions(
        "-no-momentum",
        "SGD without momentum, bf16-true-master",
        56,
        says="2 + 2 for weight and gradient, 4 for the master, and nothing else: 8 bytes.",
        wrong={
            "28": "That is weights and gradients in bfloat16. The master has four bytes more.",
            "42": "The master is a float32 copy, of four bytes, beside the weight and not in its place.",
            "70": "The gradient has the dtype of the weight, two bytes.",
            "84": "Without momentum there is no mean to keep.",
            "112": "That is AdamW with a master. Here there are no means.",
            "8": "Right for one weight, in bytes. There are seven billion.",
        },
    ),
    "AdamW, bf16-true-master, bfloat16 moments": _billions(
        "-narrow-moments",
        "AdamW, bf16-true-master, bfloat16 moments",
        84,
        says="2 + 2 + 4 for weight, gradient and master, 2 + 2 for the moments: 12 bytes.",
        wrong={
            "112": "That is with float32 moments. Here m and v have two bytes each.",
            "56": "Are both moments in? Weight, gradient and master alone are 8 bytes.",
            "70": "Weight, gradient, master, m and v are five numbers, and the master has four bytes.",
            "98": "Only one of the five numbers is float32: the master.",
            "12": "Right for one weight, in bytes. There are seven billion.",
        },
    ),
    "AdamW, bf16-mixed, with the copies": _billions(
        "-mixed",
        "AdamW, bf16-mixed, with the copies",
        126,
        says="4 + 4 for weight and gradient, 8 for the moments, and 2 for the copy: 18 bytes, more than 32-true.",
        wrong={
            "112": "That is 32-true. Autocast's 16-bit copies are missing.",
            "84": "With autocast the weights are float32, and so are gradients, m and v. Only the copies are narrow.",
            "98": "The gradient of a float32 weight is float32.",
            "56": "That is bf16-true. With autocast the weights are float32, and the copies are narrow.",
            "140": "The copy has 16 bits: two bytes.",
            "18": "Right for one weight, in bytes. There are seven billion.",
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
