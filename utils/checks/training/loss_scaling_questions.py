"""What `training/loss_scaling` asks: what people expect of a loss scale, and what is said to each foreseen answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

SHARE_OF_ZEROS = Choice(
    "training/loss_scaling/predict-share-of-zeros",
    "In the float16 run, after the last step: which share of the weight gradients of the first two layers is exactly "
    "zero?",
    (
        Option(
            "About a tenth",
            "A tenth would hardly be noticed: the next batch moves other weights. This run learns next to nothing.",
        ),
        Option(
            "About a half",
            "Half of them would still point downhill, and the network would learn, only more slowly.",
        ),
        Option(
            "Nearly all; a few large ones survive",
            "So it is in the last layer. On the way further down a gradient is multiplied by that layer's weights, "
            "which are about a thousandth here. Nothing is large enough for that.",
        ),
        Option(
            "All of them",
            "At the output some of it survives. Multiplied by the last layer's weights, which are about a thousandth "
            "here, all of it falls below 2^-25. Once it is 0, every layer further down gets 0.",
            True,
        ),
    ),
    predict=True,
)
THREE_REGIMES = Choice(
    "training/loss_scaling/predict-too-large",
    "What happens when S is far too large?",
    (
        Option(
            "The weights become NaN",
            "They would, if infinite gradients reached the optimizer. This loop looks at them first.",
        ),
        Option(
            "Steps are left out, in the end all of them, and nothing is learned",
            "Gradients overflow to infinity, the loop sees it and leaves the step out. It is loud, and it has a price: "
            "a step each time. A scaler that adapts also gives up half of its scale; here nobody lowers S, so every "
            "step is lost.",
            True,
        ),
        Option(
            "The gradients get better still: more of their bits survive",
            "A power of two changes exponents and no fraction. Once no gradient is subnormal, nothing is to be gained.",
        ),
        Option(
            "The scaled loss is infinite, and the run stops with an error",
            "The loss is a float32 here, with room up to 2^128. It is the gradients in float16 that run out of room. "
            "And an infinity is a value: no error is raised.",
        ),
    ),
    predict=True,
)
INVERTED = Choice(
    "training/loss_scaling/predict-inverted",
    "What do the last two lines do?",
    (
        Option(
            "They move the schedule after each step that was taken",
            "So they were meant. But after a step that was taken the scale is the same, or larger: `<` is false.",
        ),
        Option(
            "They move the schedule only when the step was left out",
            "The scale falls after an overflow, and then the step was left out. Steps that were taken do not count.",
            True,
        ),
        Option(
            "They move the schedule only when the scale has grown",
            "That would be `>`: once in 2,000 steps. Which way does `<` point?",
        ),
        Option(
            "They move the schedule every time",
            "In most steps the scale stays what it is, and a number is not smaller than itself.",
        ),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

MEAN_OVER_A_PAGE = {
    "gradient": Number(
        "training/loss_scaling/mean-over-a-page",
        "50,000 words, all equally probable; the loss is the mean over 32 texts of 1,024 tokens. The gradient by the "
        "logit of a word that was not the right one:",
        answer="1/50000/32768",
        says="p / N = 1/50,000 / 32,768, about 6.1e-10.",
        wrong={
            "1/50000": "That is the probability. The loss is a mean over 32 × 1,024 tokens, so divide by their number.",
            "1/32768": "That is 1/N. The gradient is the word's probability, divided by N.",
            "-1/32768": "That is nearly the gradient of the right word, (p - 1) / N. A wrong word has p / N.",
            "-49999/50000/32768": "That is the gradient of the right word, (p - 1) / N. A wrong word has p / N.",
            "49999/50000/32768": "(1 - p) / N is the size of the right word's gradient. A wrong word has p / N.",
            "1/50000/32": "The mean is over all tokens, 32 × 1,024, and not over the 32 texts.",
            "1/50000/1024": "The mean is over all tokens of all 32 texts, 32 × 1,024.",
            "-1/50000/32768": "The size is right. A wrong word's logit is to fall, so its gradient is positive.",
            "1/32768/32768": "50,000 is not 2^15. Take 1/50,000.",
            "32768/50000": "Divide by N: the loss is a mean, not a sum.",
            "3.302e-4": "That is the loss, log(50,000), divided by N. The gradient is p / N.",
            "2/50000/32768": "A factor of 2 comes from a square. The cross-entropy has none: p / N.",
        },
        otherwise="p / N, with p = 1/50,000 and N = 32 × 1,024.",
        hints=("N = 32 × 1,024 = 32,768.", "1 / 50,000 / 32,768."),
        tolerance=0.01,
    ),
    "smallest scale": Number(
        "training/loss_scaling/mean-over-a-page-scale",
        "The smallest power of two as a loss scale for which float16 does not turn it into zero:",
        answer="64",
        says="64 × 6.1e-10 = 3.9e-8 lies above 2^-25, so it is rounded up to 2^-24, the smallest float16.",
        wrong={
            "6": "64 is 2^6. Give the scale itself, not its exponent.",
            "-6": "A scale above 1 has a positive exponent; and give the scale itself.",
            "1/64": "That makes the gradient smaller. By what do you multiply?",
            "32": "32 × 6.1e-10 = 1.95e-8, and 2^-25 is 2.98e-8: below it, so still 0.",
            "128": "128 does it. But half as much does it too: what lies above 2^-25, half of the smallest float16, is "
            "rounded up to it.",
            "256": "It does, and so does a smaller one. From which scale on is the product above 2^-25?",
            "131072": "That makes it a normal number, with all its bits. To be more than zero it needs less.",
            "65536": "That is the usual first scale. This gradient is saved by much less.",
            "1024": "It does. Go down: from which scale on is the product above 2^-25?",
            "1": "6.1e-10 is below 2^-25 = 2.98e-8: without a scale it is 0.",
            "48.8282": "That is the exact factor to 2^-25. Which is the next power of two?",
            "97.6564": "That is the factor to 2^-24, the smallest float16. Above 2^-25, half of it, rounding goes up.",
        },
        otherwise="Multiply 6.1e-10 by 2, 4, 8, ... until it is more than 2^-25 = 2.98e-8, half-way from 0 to the "
        "smallest float16.",
        hints=("float16 makes 0 of everything up to 2^-25 = 2.98e-8.", "2.98e-8 / 6.1e-10 is 48.8."),
        tolerance=0.002,
        near=0.0,
    ),
}
READ_A_TRACE = {
    "skipped": Number(
        "training/loss_scaling/read-a-trace",
        "A scaler with the default settings starts at 65536. Before step 4 its scale is 8192, before step 2,004 it is "
        "16384, and after step 2,004 it is 8192. How many of these 2,004 steps were skipped?",
        answer="4",
        says="1, 2 and 3 halve it. 4 to 2,003 are 2,000 good steps in a row, so it grows; 2,004 is skipped.",
        wrong={
            "2": "A skip halves the scale. How many halvings lead from 65536 to 8192?",
            "3": "Three at the start. And what has made 8192 of 16384 at the end?",
            "1": "The one at the end. And what has made 8192 of 65536 at the start?",
            "5": "A skip halves, 2,000 good steps in a row double. Three halvings at the start: how many at the end?",
            "2000": "2,000 is how many steps in a row were taken.",
        },
        otherwise="65536, 32768, 16384, 8192 at the start: count the halvings, there and at the end.",
        hints=("65536 / 8192 = 8, three halvings in three steps.", "In step 2,004 it falls once more."),
    ),
    "unseen": Number(
        "training/loss_scaling/read-a-trace-unseen",
        "All later steps are taken. You write down the scale after every thousandth step only. Which skipped step "
        "leaves no trace in that log?",
        answer="2004",
        says="After the steps 1,000, 2,000 and 3,000 the scale is 8192: the growth in 2,003 hides the skip behind it.",
        wrong={
            "3": "65536 at the start and 8192 after step 1,000 are seen: something must have halved it three times.",
            "1": "After step 1,000 the scale is an eighth of what it was at the start. That is a trace of this skip, "
            "too.",
            "2": "The scale at the start and after step 1,000 differ by three halvings. This skip is one of them.",
            "2003": "Before step 2,004 the scale has doubled, so step 2,003 was taken: it never grows after a skip.",
            "2005": "8192 is the scale after step 2,004, so it was step 2,004 that halved it.",
            "2000": "After step 2,000 the scale is 8192, as before: that step was taken.",
        },
        otherwise="What is the scale after the steps 1,000, 2,000 and 3,000? Which change lies between two equal ones?",
        hints=("The scale after the steps 1,000 and 2,000 is 8192.", "It grows in 2,003, and is 8192 again after ..."),
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

NEXT_STATE = Task(
    "training/loss_scaling/next-state",
    "Write `next_state`: a dynamic loss scaler as one function, which decides like `torch.amp.GradScaler`.",
)
CLIPPED_STEP = Task(
    "training/loss_scaling/clipped-step",
    "Find the bug: mend a training step that clips its gradients.",
)
SCHEDULED_STEP = Task(
    "training/loss_scaling/scheduled-step",
    "Find the bug: mend a training step that also moves the schedule of the learning rate.",
)
LOST_SHARE = Task(
    "training/loss_scaling/lost-share",
    "Write `lost_share`: of the gradients that are not zero, the share that becomes zero in a dtype, after a scale.",
)
