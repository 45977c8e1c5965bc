"""What `practice/capstone` asks: which plan fits and learns, what a report lacks, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

WHAT_A_TAKES = Choice(
    "practice/capstone/predict-what-a-takes",
    "In float32, plan A takes 55.1 MB. How many MB does it take in bf16-mixed, where its weights and moments stay "
    "float32?",
    (
        Option(
            "About 56: more than in float32, because a 16-bit copy of each weight is added",
            "The copies are added, but they take 1 MB. The inputs that the products keep are halved, which is more.",
        ),
        Option(
            "About 53: hardly less",
            "Its products are narrow, and most of what they keep is. But its softmax keeps float32 and gets a 16-bit "
            "copy on top, and weights, moments, norms and the loss stay float32.",
            True,
        ),
        Option(
            "About 33: weights, moments and the loss stay wide, and everything else is halved",
            "A mixed recipe also computes softmax and norms in float32, and keeps what their backward pass needs in "
            "float32.",
        ),
        Option(
            "About 28: half",
            "This would be half of every tensor. A mixed recipe has float32 weights, moments, norms and losses.",
        ),
    ),
    predict=True,
)
WHICH_LEARNS = Choice(
    "practice/capstone/predict-which-learns",
    "B and C fit, and both see the same 64 batches. Which of them predicts unseen text better?",
    (
        Option(
            "B: its width is larger",
            "In these 64 steps, and at this learning rate, most updates are large enough for bfloat16 weights. What B "
            "loses costs this model less than a quarter of its width would.",
            True,
        ),
        Option(
            "C: its weights are float32",
            "Float32 weights keep small updates. But most of B's updates are kept too, and for its float32 weights, C "
            "has to be a quarter narrower than B.",
        ),
        Option(
            "Neither: their bytes are equal",
            "The bytes are nearly the same. But C spends them on wide numbers and B on a wide model.",
        ),
    ),
    predict=True,
)
WHAT_D_REACHES = Choice(
    "practice/capstone/predict-what-d-gains",
    "Plan D is 1.5 times as wide as B, has float32 weights, and uses checkpointing. By how much is its held-out loss "
    "lower than B's, after the same 64 steps?",
    (
        Option(
            "It is not lower",
            "Checkpointing makes the activations again from the same inputs, by the same operations, in the same "
            "dtypes, so they are equal to the last bit. What is left is a wider model with float32 weights.",
        ),
        Option(
            "By less than 0.04",
            "There is more to learn from the text than a model of B's width can hold. C was behind mostly because of "
            "its width, and B could still use more.",
        ),
        Option(
            "By 0.04 to 0.17",
            "This model can use more width, and checkpointing made room for it. But the gain is smaller than from C "
            "to B, although the step in width is larger.",
            True,
        ),
        Option(
            "By more than 0.17",
            "From C to B, a smaller step in width lowered the loss by about that much. But the nearer the loss comes "
            "to the lowest that this text allows, the less another step lowers it.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_ROOM = Number(
    "practice/capstone/play-room",
    "Switch checkpointing on, and nothing else. By how many GB is the plan still too large, if a tenth of the card's "
    "24 GB is to stay free?",
    answer="5.37",
    says="27.0 GB against nine tenths of 24 GB. Checkpointing saves most of what autograd keeps, but this plan's "
    "weights, gradients and moments are more than the card.",
    wrong={
        "2.97": "This is the distance to all of the card. Keep a tenth of it free.",
        "3": "27.0 less all 24 GB is 3.0, but a tenth of the card is to stay free.",
        "27": "This is what the plan takes now. How much of the card may it use?",
        "16.69": "This is what checkpointing saves. What is left, and how much may it be?",
        "22.06": "This is without checkpointing. Switch it on.",
    },
    otherwise="Read the sum above the bar, and subtract nine tenths of 24 GB.",
    hints=("Nine tenths of 24 GB are 21.6 GB.",),
    tolerance=0.01,
    unit="GB",
)
PLAY_BATCH = Number(
    "practice/capstone/play-batch",
    "Press Reset, then switch on checkpointing and 8-bit Adam. The weights stay float32, and a tenth of the card stays "
    "free. How many sequences of 1,024 tokens can the batch have at most?",
    answer="6",
    says="At 6 it takes 21.5 GB. Each further sequence adds 0.94 GB, mostly at the loss.",
    wrong={
        "2": "This is the batch at the start, 17.7 GB. How much does one more sequence add?",
        "7": "22.4 GB fit on the card, but leave less than a tenth of it free.",
        "8": "23.3 GB fit on the card, but leave hardly anything free.",
        "5": "20.5 GB fit. Does one more sequence fit, too?",
        "0": "Both changes are needed: with only one of them, no batch fits.",
    },
    otherwise="Raise the batch until the sum above the bar is more than nine tenths of 24 GB.",
    hints=("Nine tenths of 24 GB are 21.6 GB.",),
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

LOGITS = Number(
    "practice/capstone/logits",
    "One sequence of 8,192 tokens, a vocabulary of 128,256 as in Llama 3, and a loss in float32. When its backward "
    "pass begins, it makes two gradients, one of the log-probabilities and one of the logits. How many GB are they "
    "together?",
    "8.405",
    "That is more than the weights of many models, and the log-probabilities that the loss keeps are half as much "
    "again. Some kernels never store the logits.",
    wrong={
        "4.2": "This is one of them. The backward pass of `cross_entropy` makes two such tensors.",
        "12.6": "This includes the log-probabilities, which autograd keeps. The question asks for the two gradients.",
        "7.83": "This is in GiB, with 2^30 bytes each. 1 GB is 10^9 bytes.",
        "2.1": "This is one of them, in 16 bits. The loss is float32 in every recipe of this book.",
        "16.8": "This is 16 bytes per logit, but there are two tensors of 4 bytes.",
        "67.2": "These are gigabits.",
        "8405385216": "These are bytes. 1 GB is 10^9 bytes.",
        "1.05": "This is the number of logits, in billions. How many bytes does each take, and how many tensors?",
    },
    otherwise="Tokens times vocabulary entries are the logits. Count two tensors of them, 4 bytes per value.",
    hints=("How many logits are there?", "8192 × 128256 × 4 × 2 bytes."),
    tolerance=0.02,
    unit="GB",
)

VOCABULARY = Number(
    "practice/capstone/vocabulary",
    "Plan B on the small card, with a vocabulary of 5,120 instead of 640, and 8 sequences of 152 tokens. What is the "
    "largest width at which it fits? Answer 0 if none does.",
    "0",
    "At any width, the two gradients alone take 49.8 MB. Use a smaller batch, the batch in parts, or a loss that takes "
    "the tokens in parts.",
    wrong={
        "128": "It fits with 640 entries. How many bytes are the two gradients now?",
        "96": "A narrower model keeps less, but the two gradients do not depend on the width.",
        "64": "Half the width halves much of what B keeps, but not the two gradients at the loss.",
        "16": "This is the smallest width that the heads can share. Do the two gradients fit, even without any model?",
    },
    otherwise="Begin with what no width changes: the two float32 gradients at the loss. The card has 48 MB.",
    hints=("There are 8 × 152 × 5120 logits.", "Two tensors of 4 bytes per value. Is this less than the card?"),
)

FITS, TOO_LARGE, BREAKS = "trains", "does not fit", "becomes NaN"


def _make_choice(answers: dict[str, str], name: str, text: str, right: str, says: dict[str, str]) -> Choice:
    """Make a choice among `answers`; `says`: what each, by its key there, is told."""
    options = tuple(Option(answer, says[key], answer == right) for key, answer in answers.items())
    return Choice(f"practice/capstone/{name}", text, options)


def _verdict(name: str, text: str, right: str, **says: str) -> Choice:
    options = {"fits": FITS, "large": TOO_LARGE, "breaks": BREAKS}
    return _make_choice(options, f"verdict-{name}", f"{text}: what happens to it on the small card?", right, says)


VERDICTS = {
    "32-true, width 112, batch 8": _verdict(
        "32-true-112",
        "32-true, width 112, batch 8",
        TOO_LARGE,
        fits="In float32, a width of 96 takes 45.3 MB and one of 128 takes 55.1. What lies halfway?",
        large="Its bytes lie about halfway between those of the two widths in float32 above, 45.3 and 55.1 MB, and "
        "the card has 48.",
        breaks="float32 has a wide range, so its gradients need no scale.",
    ),
    "16-mixed, width 96, batch 8": _verdict(
        "16-mixed-96",
        "16-mixed, width 96, batch 8",
        FITS,
        fits="It takes as many bytes as plan C, which fits: float16 and bfloat16 both take two bytes per value. And "
        "this recipe has a loss scaler.",
        large="It takes as many bytes as plan C: float16 and bfloat16 both take two bytes per value.",
        breaks="It has float32 weights and moments, so eps is not 0, and a loss scaler.",
    ),
    "16-true, width 64, batch 4": _verdict(
        "16-true",
        "16-true, width 64, batch 4",
        BREAKS,
        fits="Its optimizer state is float16, too. What is Adam's eps of 1e-8 there?",
        large="Plan C is larger in both width and batch, and it fits.",
        breaks="In float16, Adam's eps of 1e-8 is 0, and so are squares of small gradients: updates can divide by 0.",
    ),
    "bf16-mixed, width 128, batch 12, checkpointing": _verdict(
        "batch-12",
        "bf16-mixed, width 128, batch 12, checkpointing",
        FITS,
        fits="A with checkpointing takes 29.9 MB. The weights and Adam's moments, 5.8 MB of it, stay the same, and "
        "the rest grows by half, which makes 42 MB.",
        large="A with checkpointing takes 29.9 MB, weights and moments included. How much of it grows with the batch?",
        breaks="bfloat16 has the range of float32.",
    ),
    "bf16-mixed, width 128, batch 16, checkpointing": _verdict(
        "batch-16",
        "bf16-mixed, width 128, batch 16, checkpointing",
        TOO_LARGE,
        fits="A with checkpointing takes 29.9 MB. Only the weights and Adam's moments, 5.8 MB of it, do not double.",
        large="A with checkpointing takes 29.9 MB. The weights and Adam's moments, 5.8 MB of it, stay the same, and "
        "nearly all of the rest doubles.",
        breaks="bfloat16 has the range of float32.",
    ),
}

PREDICTION, DEVICE, HELD_OUT, SEEDS = "a prediction", "a device", "a held-out loss", "more seeds"


def _report(name: str, text: str, right: str, **says: str) -> Choice:
    options = {"prediction": PREDICTION, "device": DEVICE, "held": HELD_OUT, "seeds": SEEDS}
    return _make_choice(options, f"report-{name}", f"A report says: {text} What does it lack most?", right, says)


REPORTS = {
    "report A": _report(
        "a",
        "We predicted 45.6 MB and found 45.6 MB. After 64 steps on this CPU, the loss of the last training batches was "
        "0.21, over three seeds.",
        HELD_OUT,
        prediction="There is one, and it was right.",
        device="It is named.",
        held="The model learns from the last batches. How well does it do on other text?",
        seeds="There are three.",
    ),
    "report B": _report(
        "b",
        "Predicted 29.9 MB, found 29.9 MB, on this CPU. On held-out text our plan reaches 0.266 and the other one "
        "0.272, so ours is better. Both ran with seed 0.",
        SEEDS,
        prediction="The bytes were predicted.",
        device="It is named.",
        held="The loss is on held-out text.",
        seeds="Two seeds of one plan differ by more than this. One run of each cannot rank them.",
    ),
    "report C": _report(
        "c",
        "Predicted 31 ms per step and measured 46 ms. The loss on held-out text is 0.28 over three seeds.",
        DEVICE,
        prediction="There is one. It was off, and the report says so.",
        device="A time means nothing without the device, its threads and its load.",
        held="The loss is on held-out text.",
        seeds="There are three.",
    ),
    "report D": _report(
        "d",
        "A step took 45.2 MB on this CPU, which is no surprise. The loss on held-out text is 0.46 over three seeds.",
        PREDICTION,
        prediction="Without a number from before the run there is no difference to learn from.",
        device="It is named.",
        held="The loss is on held-out text.",
        seeds="There are three.",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

BAR = 0.22  # of the held-out loss, seed 0
PLAN = Task(
    "practice/capstone/your-plan",
    f"Choose a plan for the small card that takes a different number of bytes from every plan in the table, promise "
    f"this number before it runs, and bring the held-out loss down to {BAR}.",
)
