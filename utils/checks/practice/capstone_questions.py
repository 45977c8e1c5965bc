"""What `practice/capstone` asks: which plan lives, what a report lacks, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

WHAT_A_TAKES = Choice(
    "practice/capstone/predict-what-a-takes",
    "B is A in narrower formats, and C is A with a narrower model. So if one of the three is too large, it is A. "
    "How many MB does a step of A take?",
    (
        Option(
            "27.5: half of its float32 twin",
            "That would be half of every tensor. Which of them have 16 bits in a mixed recipe?",
        ),
        Option(
            "About 40: weights and moments stay wide, and all else is halved",
            "Is all else halved? Softmax, norms and the loss are float32 in a mixed recipe as well.",
        ),
        Option(
            "More than the card has: hardly less than its twin",
            "Its products are narrow. Weights, moments, softmax, norms and the loss are not, and 16-bit copies come on "
            "top.",
            True,
        ),
        Option(
            "More than its twin, for the copies come on top",
            "They do. But what the products keep has half of its bytes, and that is more than the copies.",
        ),
    ),
    predict=True,
)
WHICH_LEARNS = Choice(
    "practice/capstone/predict-which-learns",
    "B and C fit. Both get the same 64 batches. Which of them predicts text better that it has not seen?",
    (
        Option(
            "C: its weights are float32, so no update is lost",
            "Hardly one is, and it costs a quarter of the width. The next cell shows the price.",
        ),
        Option(
            "B: it is wider",
            "In so few steps, and at this learning rate, most updates are large enough for bfloat16. A meter below "
            "counts the others. The width is worth more.",
            True,
        ),
        Option(
            "The same: both have about as many bytes",
            "They have. The question is what the bytes are spent on.",
        ),
    ),
    predict=True,
)
SAME_LOSSES = Choice(
    "practice/capstone/predict-same-losses",
    "Plan A once with checkpointing and once without it, the same seed, on a machine that has room for both. How far "
    "apart are their losses after five steps?",
    (
        Option(
            "As far as two seeds are: the activations are other ones",
            "They are made again from the same inputs, by the same operations, in the same dtypes.",
        ),
        Option(
            "In the last digits: other roundings",
            "Another order of a sum would do that. Here every operation is repeated as it was.",
        ),
        Option("Not at all, to the last bit", "The forward pass is taken twice, and gives the same twice.", True),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

LOGITS = Number(
    "practice/capstone/logits",
    "One text of 8,192 tokens, a vocabulary of 128,256 as Llama 3 has it, and a loss in float32. At the moment of the "
    "loss the gradient of the logits exists twice. How many GB are these two?",
    "8.405",
    "More than the weights of many a model. That is why there are kernels that never write the logits down.",
    wrong={
        "4.2": "That is one of them. `cross_entropy` goes back in two operations, and each returns such a tensor.",
        "2.1": "One of them, and in 16 bits. The loss is float32 whatever the recipe.",
        "16.8": "That is 16 bytes for each logit. It is two tensors of 4 bytes.",
        "67.2": "Those are gigabits.",
        "1.05": "That is the number of logits, in billions. How many bytes has each, and how often is it there?",
    },
    otherwise="Tokens times vocabulary are the logits. Two tensors of them, 4 bytes a value, 1 GB is 10^9 bytes.",
    hints=("How many logits are there?", "8192 × 128256 × 4 × 2 bytes."),
    tolerance=0.02,
    unit="GB",
)

VOCABULARY = Number(
    "practice/capstone/vocabulary",
    "Plan B on the small card, with a vocabulary of 5,120 instead of 640, and 8 texts of 152 tokens. What is the "
    "largest width at which it fits? 0, if none does.",
    "0",
    "At any width: the gradient of the logits, twice, is more than the card. Take a smaller batch, the batch in parts, "
    "or a loss that takes the tokens in parts.",
    wrong={
        "128": "It fitted with 640 entries. How many bytes is the gradient of the logits now, twice?",
        "96": "A narrower model keeps less. The gradient of the logits does not know how wide the model is.",
        "16": "The smallest that the heads can share. Does the gradient of the logits fit, twice, without any model?",
    },
    otherwise="Begin with what no width changes: the gradient of the logits, twice, in float32. The card has 48 MB.",
    hints=("8 × 152 × 5120 logits.", "Two tensors of 4 bytes a value. Is that less than the card?"),
)

FITS, TOO_LARGE, NO_SCALE, NO_PROMISE = "trains", "does not fit", "loses its gradients", "cannot be promised"


def _make_choice(answers: dict[str, str], name: str, text: str, right: str, says: dict[str, str]) -> Choice:
    """Make a choice among `answers`; `says`: what each, by its key there, is told."""
    options = tuple(Option(answer, says[key], answer == right) for key, answer in answers.items())
    return Choice(f"practice/capstone/{name}", text, options)


def _verdict(name: str, text: str, right: str, **says: str) -> Choice:
    options = {"fits": FITS, "large": TOO_LARGE, "scale": NO_SCALE, "promise": NO_PROMISE}
    return _make_choice(options, f"verdict-{name}", f"{text}: what becomes of it on the small card?", right, says)


VERDICTS = {
    "32-true, width 128, batch 8": _verdict(
        "32-true",
        "32-true, width 128, batch 8",
        TOO_LARGE,
        fits="Plan A did not fit, and keeps less than this one.",
        large="It keeps more than A, which was too large already.",
        scale="float32 has 24 bits and a wide range. There is nothing to be scaled.",
        promise="The ledger knows float32 best of all.",
    ),
    "16-mixed, width 64, batch 4": _verdict(
        "16-mixed",
        "16-mixed, width 64, batch 4",
        FITS,
        fits="Half of the batch, half of the width, and a loss scaler. What it does not have on a CPU is a speed.",
        large="Which of the plans in the chapter is smaller than this one, in width and in batch?",
        scale="16-mixed brings its loss scaler along.",
        promise="Its bytes are those of bf16-mixed, and the ledger has a formula for them.",
    ),
    "16-true-eps, width 64, batch 4": _verdict(
        "16-true-eps",
        "16-true-eps, width 64, batch 4",
        NO_SCALE,
        fits="A larger eps keeps Adam from dividing by 0. What keeps a gradient of 2^-26 from becoming 0?",
        large="It is smaller than plan C in every respect.",
        scale="Its eps is mended. Without a loss scale small gradients end as 0, and their squares in v even sooner.",
        promise="The ledger knows 16-bit weights. The trouble comes earlier.",
    ),
    "fp8-current, width 96, batch 8, on a CPU": _verdict(
        "fp8-current",
        "fp8-current, width 96, batch 8, on a CPU",
        NO_PROMISE,
        fits="It would run, in float32 products of values that were rounded to FP8. What would you promise of it?",
        large="Nobody has counted what its layers keep. How do you know?",
        scale="Its recipe has a scale for each tensor, made from the tensor itself.",
        promise="The device emulates the products, and no ledger says what such layers keep.",
    ),
    "bf16-mixed, width 192, batch 8, checkpointing": _verdict(
        "checkpointing",
        "bf16-mixed, width 192, batch 8, checkpointing",
        FITS,
        fits="With checkpointing one block at a time has its activations, so there is room for a wider model.",
        large="Without checkpointing it would be. How many blocks have their activations at once with it?",
        scale="bfloat16 has the range of float32.",
        promise="Checkpointing is in the ledger.",
    ),
}

PREDICTION, DEVICE, HELD_OUT, SEEDS = "a prediction", "a device", "text that was held out", "more seeds"


def _report(name: str, text: str, right: str, **says: str) -> Choice:
    options = {"prediction": PREDICTION, "device": DEVICE, "held": HELD_OUT, "seeds": SEEDS}
    return _make_choice(options, f"report-{name}", f"Somebody reports: {text} What does it lack most?", right, says)


REPORTS = {
    "report A": _report(
        "a",
        "We predicted 45.6 MB and found 45.6 MB. After 64 steps on this CPU the loss of the last batches was 0.21, "
        "over three seeds.",
        HELD_OUT,
        prediction="There is one, and it was right.",
        device="It is named.",
        held="The last batches are text that the model learns from. How well does it do on other text?",
        seeds="There are three.",
    ),
    "report B": _report(
        "b",
        "Predicted 29.9 MB, found 29.9 MB, on this CPU. On held-out text our plan reaches 0.272 and the other "
        "one 0.266, so the other one is better. One run each.",
        SEEDS,
        prediction="The bytes were predicted.",
        device="It is named.",
        held="The loss is that of held-out text.",
        seeds="Two runs differ by that much when nothing but their seed differs. One run each cannot tell them apart.",
    ),
    "report C": _report(
        "c",
        "Predicted 31 ms a step and measured 46 ms, the loss on held-out text is 0.28 over three seeds.",
        DEVICE,
        prediction="There is one. It was off, and the report says so.",
        device="A time without a device, its threads and its load is nobody's time.",
        held="The loss is that of held-out text.",
        seeds="There are three.",
    ),
    "report D": _report(
        "d",
        "A step took 45.2 MB on this CPU, which is no surprise. On held-out text the loss is 0.46 over three seeds.",
        PREDICTION,
        prediction="Whoever writes nothing down before is never surprised, and learns nothing from the difference.",
        device="It is named.",
        held="The loss is that of held-out text.",
        seeds="There are three.",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

BAR = 0.22  # of the held-out loss, seed 0
PLAN = Task(
    "practice/capstone/your-plan",
    f"Choose a plan for the small card that is not in the table, write its bytes down before it runs, and bring the "
    f"held-out loss to {BAR}.",
)
