"""What `training/master_weights` asks: what people expect of a small update, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task, wrong_line

# --- Predict, then run ------------------------------------------------------------------------------------------------

LOST_SHARE = Choice(
    "training/master_weights/predict-lost-share",
    "In the bfloat16 runs, what share of all updates left their weight exactly where it was?",
    (
        Option(
            "A few percent: a rounding error is small",
            "The error is at most 1/256 of the weight, which is small, but most of these updates are even smaller.",
        ),
        Option(
            "About half: rounding goes up as often as down",
            "That would need sums spread evenly over their gaps. Nearly all lie close to the old weight, so they are "
            "rounded back to it.",
        ),
        Option(
            "About nine in ten",
            "The smallest weights have gaps narrow enough for such steps, so about one update in ten gets through.",
            True,
        ),
        Option(
            "More than 99 in 100",
            "Not quite: the smallest weights have gaps narrow enough for such steps.",
        ),
    ),
    predict=True,
)
TEN_TIMES = Choice(
    "training/master_weights/predict-ten-times",
    "The learning rate grows from 1e-7 to 6e-3. What do the curves of the lost share look like, in bfloat16 and in "
    "float16?",
    (
        Option(
            "Each falls slowly, to a tenth of the share at ten times the rate, and both curves are the same",
            "A single update is lost or stored as a whole. The share counts the weights whose half gap is "
            "larger than the step. Float16's gaps are an eighth as wide as bfloat16's.",
        ),
        Option(
            "Each is a cliff, with everything lost below one rate and nothing above it; float16's lies at an eighth of "
            "bfloat16's rate",
            "It would be, if all weights lay in one binade. A small weight has small gaps, so it stores an update that "
            "a large weight loses.",
        ),
        Option(
            "Each falls from nearly all to nearly nothing within a few powers of ten; float16's lies at rates an "
            "eighth as large",
            "The weights are spread over a few binades, and each binade begins to store at its own rate. Float16's "
            "three extra bits make every gap an eighth as wide.",
            True,
        ),
        Option(
            "Both fall within a few powers of ten, but float16 loses more: its range ends early, so its curve lies at "
            "larger rates",
            "Range decides what a very small number becomes. Here the sum is about as large as the weight, in the "
            "middle of both ranges, so the number of significant bits decides.",
        ),
    ),
    predict=True,
)
STILL = Choice(
    "training/master_weights/predict-still",
    "With stochastic rounding this model learns as well as in float32. What share of its updates leave the weight "
    "exactly where it was?",
    (
        Option(
            "Almost none",
            "A weight can only move by whole gaps, and most steps are a small part of one. If nearly all steps moved "
            "the weight, it would move much too far.",
        ),
        Option(
            "About half",
            "It would be like tossing a coin only for a sum in the middle of the gap. Most steps are a small part of "
            "a gap, so most draws leave the weight unchanged.",
        ),
        Option(
            "About eight in ten",
            "Most steps are a small part of a gap, so most draws leave the weight unchanged. The others move it by a "
            "whole gap, so the mean is right.",
            True,
        ),
        Option(
            "As many as with rounding to nearest",
            "It is lower: some of the steps that rounding to nearest loses every time now get through.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

SMALLEST_AT_02 = Number(
    "training/master_weights/smallest-at-02",
    "bfloat16, ties to even. Enter 0.2 as w and 0.0001 as dw. Then select the slider below dw and press the right "
    "arrow key. Which power of two is the smallest dw that moves w?",
    answer="2^-11",
    says="Half the gap: 2^-11 = 0.000488. It is a tie, and the stored weight, 205 times 2^-10, is odd, so the tie goes "
    "to its neighbour.",
    wrong={
        "2^-10": "That is the whole gap to the neighbour. Where is the middle?",
        "2^-12": "That is half of what is needed: the middle of the gap is further away.",
        "2^-13": "That is half the gap at 0.05. At 0.2 the gap is wider.",
        "0.00048": "Close, but this update is still lost. Which power of two comes next on the slider?",
        "-2^-11": "Right in size. Give it without the sign.",
        "-11": "That is the exponent. Write 2^-11.",
        "11": "That is the exponent, without its sign. Write 2^-11.",
    },
    within={"0.00049 to 0.0008": "This moves w, but so does a smaller dw: its slider stops at each power of two."},
    otherwise="Choose bfloat16 and ties to even, and enter 0.2 as w. Move the slider of dw until the verdict changes "
    "from Lost to Moved.",
    tolerance=0.003,
)
SMALLEST_AT_026 = Number(
    "training/master_weights/smallest-at-026",
    "Do the same at w = 0.26, and at w = 0.245 for comparison. Which power of two is the smallest dw that moves 0.26?",
    answer="2^-10",
    says="Twice as much as at 0.2. A new binade begins between the two, at 2^-2 = 0.25, and the gap doubles. At "
    "0.245 the gap is still that of 0.2, and 2^-11 is enough.",
    wrong={
        "2^-11": "That is the answer at 0.2. Is it still enough at 0.26?",
        "2^-9": "That is the whole gap. Where is the middle?",
        "0.00097": "Close, but this update is still lost.",
        "-2^-10": "Right in size. Give it without the sign.",
        "-10": "That is the exponent. Write 2^-10.",
        "10": "That is the exponent, without its sign. Write 2^-10.",
    },
    within={"0.00098 to 0.0019": "This moves w, but so does a smaller dw: its slider stops at each power of two."},
    otherwise="Enter 0.26 as w, and move the slider of dw until the verdict changes from Lost to Moved.",
    tolerance=0.003,
)
RUNS_AHEAD = Number(
    "training/master_weights/runs-ahead",
    "bfloat16, ties to even, w = 1, dw = 0.005, 1000 times. The exact result is 6. At which weight does bfloat16 stop?",
    answer="2",
    says="Up to 2, every step is rounded up to a whole gap, 0.0078, so the weight runs ahead of the exact sum. At 2 "
    "the gap doubles, 0.005 is less than half of it, and every further step is lost.",
    wrong={
        "6": "That is the exact sum. Look at the row of ties to even.",
        "1": "0.005 is more than half the gap above 1, 0.0039, so the first step moves the weight.",
        "8.8125": "That would be right if the gap stayed at 0.0078. Where does the gap double?",
        "1.0078125": "That is the weight after one step. Choose 1000 times.",
    },
    within={"2.01 to 5.99": "Above 2 the gap is 0.0156. Is 0.005 more than half of it?"},
    otherwise="Enter 1 and 0.005, choose bfloat16 and 1000 times, and read the row of ties to even.",
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _lost(name: str, text: str, *, lost: bool, right: str, wrong: str) -> Choice:
    return Choice(
        f"training/master_weights/which-are-lost{name}",
        text,
        (Option("lost", right if lost else wrong, lost), Option("stored", wrong if lost else right, not lost)),
    )


WHICH_ARE_LOST = {
    "bfloat16, w = 1, dw = -0.003": _lost(
        "",
        "bfloat16, w = 1, dw = -0.003",
        lost=False,
        right="Below 1 the gap is 2^-8, and half of that is 0.00195. Upwards, 0.003 would be lost.",
        wrong="Half the gap above 1 is 0.0039, but this update goes down, into the binade below 1, whose gap is half "
        "as wide.",
    ),
    "bfloat16, w = 3, dw = 0.007": _lost(
        "-binade",
        "bfloat16, w = 3, dw = 0.007",
        lost=True,
        right="Between 2 and 4 the gap is 2^-6, and half of that is 0.0078.",
        wrong="At 1 it would be stored. But between 2 and 4 the gap is 2^-6. Is 0.007 more than half of that?",
    ),
    "float16, w = 0.3, dw = 0.0001": _lost(
        "-float16",
        "float16, w = 0.3, dw = 0.0001",
        lost=True,
        right="Between 2^-2 and 2^-1 float16's gap is 2^-12, and half of that is 0.000122.",
        wrong="float16's gaps are an eighth of bfloat16's, but 0.3 is a large weight: the gap there is 2^-12. Is "
        "0.0001 more than half of that?",
    ),
    "bfloat16, w = 258, dw = 1": _lost(
        "-tie",
        "bfloat16, w = 258, dw = 1",
        lost=False,
        right="From 256 on bfloat16 counts in twos. 259 is a tie between 258 and 260, and 260 = 130 times 2 is the "
        "even one.",
        wrong="From 256 on bfloat16 counts in twos, so 259 lies exactly half-way. Which is even, 258 / 2 or 260 / 2?",
    ),
}
PREDICT_THE_SHARE = Number(
    "training/master_weights/predict-the-share",
    "The weights of a layer are spread evenly between 2^-5 and 2^-3, in size: as many between 0.04 and 0.05 as between "
    "0.11 and 0.12. Every update is 0.0002, up or down. What share of the updates does bfloat16 lose?",
    answer="200/3",
    says="Above 2^-4 half the gap is 0.000244, so updates are lost; below 2^-4 it is 0.000122, so they are stored. The "
    "upper binade is twice as wide.",
    wrong={
        "100/3": "That is the share that is stored. To check: which of the two binades has the wider gaps?",
        "33": "That is close to the share that is stored. To check: which of the two binades has the wider gaps?",
        "50": "One of the two binades loses its updates, but the upper one is twice as wide, and the weights are "
        "spread evenly.",
        "100": "0.0002 is less than the gap in both binades, 2^-12 and 2^-11, but the limit is half the gap.",
        "0": "In the binade from 2^-4 to 2^-3 the gap is 2^-11 = 0.000488. Is 0.0002 more than half of that?",
        "2/3": "Right as a fraction. The question asks for percent.",
        "0.66": "Right as a fraction, if you round it to 0.67. The question asks for percent.",
        "1/3": "That is the stored share, as a fraction. The question asks for the lost share, in percent.",
        "0.33": "That is about the stored share, as a fraction. The question asks for the lost share, in percent.",
        "24.1": "Below 2^-9 of the weight every update is lost, but some above that are lost too. Inside a binade the "
        "gap is the same for all weights.",
        "78.7": "Above 2^-8 of the weight every update is stored, but some below that are stored too. Inside a binade "
        "the gap is the same for all weights.",
        "66": "Close, but rounded down too far. Give one more digit.",
    },
    otherwise="Take the two binades one by one: what is half the gap, and is 0.0002 more than that? Then compare "
    "the widths of the binades.",
    hints=(
        "Inside a binade all weights have the same gap: 2^-12 from 2^-5 to 2^-4, and 2^-11 from 2^-4 to 2^-3.",
        "An update is lost if it is smaller than half the gap, which is 0.000122 in the lower binade and 0.000244 in "
        "the upper one. Compare 0.0002 with both.",
        "So one binade loses all of its updates and the other loses none. The lower one is 1/32 wide, the upper one "
        "2/32: what share of the weights lies in each?",
    ),
    tolerance=0.0055,
    unit="%",
)


_SGD_HINTS = (
    "A 16-bit number takes two bytes and a float32 number four, so seven billion take 14 GB or 28 GB.",
    "AdamW keeps two moments, m and v; SGD with momentum keeps one, SGD without momentum none.",
)


def _billions(
    name: str,
    kept: str,
    answer: float,
    *,
    says: str,
    wrong: dict[str, str],
    within: dict[str, str] | None = None,
    hints: tuple[str, ...] = _SGD_HINTS,
    tolerance: float = 0.0,
) -> Number:
    gib = answer * 1e9 / 2**30
    return Number(
        f"training/master_weights/seven-billion{name}",
        f"{kept}: how many GB?",
        answer=str(answer),
        says=says,
        wrong=wrong
        | {
            f"{answer}e9": "Right in bytes. How many GB is that, at 10^9 bytes each?",
            f"{answer}e3": "Right in MB. A GB has 10^9 bytes.",
        },
        within={f"{gib - 0.4:.1f} to {gib + 0.4:.1f}": "Right in GiB, of 2^30 bytes. Here a GB has 10^9 bytes."}
        | (within or {}),
        otherwise="Add up the bytes per parameter: the weight, its gradient, each moment, and what the master or "
        "Kahan's number adds. Multiply by the number of parameters in billions for GB.",
        hints=hints,
        unit="GB",
        near=0,
        tolerance=tolerance,
    )


SEVEN_BILLION = {
    "SGD with momentum, 32-true": _billions(
        "",
        "SGD with momentum, 32-true",
        84,
        says="Weight, gradient and one moment, 4 + 4 + 4 = 12 bytes: one moment fewer than AdamW.",
        wrong={
            "28": "Those are only the weights. Their gradients and the moment take memory as well.",
            "56": "That is weights and gradients. Momentum keeps a running sum of the gradients for each weight.",
            "112": "That is AdamW, with two moments. SGD with momentum keeps one.",
            "12": "Right for one weight, in bytes. There are seven billion.",
            "42": "That is three numbers of two bytes. In 32-true each takes four.",
        },
    ),
    "SGD with momentum, bf16-true-kahan": _billions(
        "-kahan",
        "SGD with momentum, bf16-true-kahan",
        56,
        says="Weight, gradient, moment and what rounding took away take two bytes each: 8.",
        wrong={
            "42": "That is weight, gradient and moment. Kahan's method keeps one more number: what rounding took away.",
            "70": "That is AdamW, with two moments. SGD with momentum keeps one.",
            "28": "That is two numbers of two bytes. You need weight, gradient, moment, and what rounding took away.",
            "84": "None of these numbers is float32, and there is only one moment. Count four numbers of two bytes.",
            "112": "None of these numbers is float32. Count four of two bytes.",
            "8": "Right for one weight, in bytes. There are seven billion.",
        },
    ),
    "SGD without momentum, bf16-true-master": _billions(
        "-no-momentum",
        "SGD without momentum, bf16-true-master",
        56,
        says="2 + 2 for weight and gradient, 4 for the master, and nothing else: 8 bytes.",
        wrong={
            "28": "That is weights and gradients in bfloat16. The master adds four bytes.",
            "42": "The master is a float32 copy of four bytes. It is kept beside the weight, not instead of it.",
            "70": "The gradient has the dtype of the weight, two bytes.",
            "84": "Without momentum there is no moment to keep.",
            "112": "That is AdamW with a master. Here there are no moments.",
            "8": "Right for one weight, in bytes. There are seven billion.",
        },
    ),
    "SGD with momentum, bf16-true, split master": _billions(
        "-split",
        "SGD with momentum, bf16-true, split master",
        70,
        says="2 + 2 for weight and gradient, 2 for the lower half of the master, 4 for the float32 moment: 10 bytes.",
        wrong={
            "84": "That is with a full master. A split one stores only the 16 bits that the bfloat16 weight lacks.",
            "56": "With a master the moment is float32: four bytes.",
            "98": "That is AdamW, with two float32 moments. SGD with momentum keeps one.",
            "42": "That leaves out the moment or the master. Add up weight, gradient, lower half and moment.",
            "10": "Right for one weight, in bytes. There are seven billion.",
        },
    ),
    "AdamW, frozen bfloat16, float32 LoRA adapters": _billions(
        "-lora",
        "AdamW, frozen bfloat16, float32 LoRA adapters",
        17.36,
        says="14 GB for the frozen weights, and 16 bytes for each of the 210 million adapter parameters, 3.36 GB.",
        wrong={
            "14": "Those are the frozen weights. The adapters have weights, gradients and moments.",
            "3.36": "Those are the adapters. The frozen weights are in memory too, in bfloat16.",
            "112": "Only the adapters have gradients and moments, and they are 3 % of the parameters.",
            "115.36": "Frozen weights are bfloat16, and have no gradients and no moments.",
            "31.36": "Frozen weights are bfloat16, two bytes each, and have no gradients.",
            "28": "Frozen bfloat16 weights take two bytes each, and need no gradient.",
            "14.84": "That counts only the weights of the adapters. They have gradients and two moments as well.",
            "15.68": "The adapters are float32: 4 + 4 + 8 bytes for each of their parameters.",
            "18": "Only 3 % of the parameters take 16 bytes. Add the two amounts in GB, not the bytes per parameter.",
        },
        within={"17 to 17.5": "Close. Work out the adapters' share to two decimals of a GB, then add it."},
        hints=(
            "Frozen weights have no gradient and no moments: two bytes each.",
            "The adapters have 210 million parameters, each with a weight, a gradient and two moments in float32.",
        ),
        tolerance=0.003,
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

MASTER_ADAMW = Task(
    "training/master_weights/master-adamw",
    "Write `master_adamw`: one step of AdamW for a bfloat16 weight, with a float32 master and float32 moments.",
)
STOCHASTIC_ADD = Task(
    "training/master_weights/stochastic-add",
    "Write `add`: w + dw in bfloat16, rounded up or down at random so that it is right on average.",
)
MASTER_SGD = Task(
    "training/master_weights/master-sgd",
    "Fix the optimizer so that its masters help the network to learn.",
)
WRONG_LINE = wrong_line(
    "training/master_weights/wrong-line",
    text="Press the line with the bug.",
    code="""\
class MasterSGD:
    def __init__(self, weights, lr):
        self.weights, self.lr = list(weights), lr
        self.masters = [w.detach().float() for w in self.weights]
    def step(self):
        for weight, master in zip(self.weights, self.masters):
            master = weight.detach().float()
            master -= self.lr * weight.grad.float()
            weight.data.copy_(master)""",
    line=7,
    says="It rebuilds the master from the rounded weight, so whatever earlier steps added to the master is gone.",
    replies={
        1: "The name is fine.",
        2: "The optimizer needs the weights and a learning rate.",
        3: "`weights` may be a generator, which can be read only once, so a list of it is right.",
        4: "The masters begin as float32 copies of the weights, as they should.",
        5: "One step for all weights, with the name that torch's optimizers use.",
        6: "Each weight is paired with its own master, in the same order.",
        8: "The step is subtracted, in float32 and in place. Is `master` the tensor that was kept?",
        9: "The weight becomes a rounded copy of the master, in place. That is what the network reads.",
    },
)
