"""What `training/loss_scaling` asks: what people expect of a loss scale, and what is said to each foreseen answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

SHARE_OF_ZEROS = Choice(
    "training/loss_scaling/predict-share-of-zeros",
    "In the float16 run, what share of the weight gradients of the first two layers is exactly zero after the last "
    "step?",
    (
        Option(
            "About a tenth",
            "A tenth would hardly be noticed: most weights would still move. But these two layers learn nothing.",
        ),
        Option(
            "About a half",
            "The other half would still point downhill, so these layers would learn, only more slowly.",
        ),
        Option(
            "Nearly all; a few large ones survive",
            "That is close. But a gradient that reaches these layers has been multiplied by the last layer's weights, "
            "and even the largest one falls below 2^-25 there. None survives.",
        ),
        Option(
            "All of them",
            "Some gradients survive at the output. On the way down they are multiplied by the last layer's weights, "
            "which are small, and then even the largest falls below 2^-25. Once a gradient is 0, every layer below "
            "gets 0 as well.",
            True,
        ),
    ),
    predict=True,
)
PLATEAU = Choice(
    "training/loss_scaling/predict-plateau",
    "Several values of S bring the R² of this network within 0.05 of the best. Divide the largest of them by the "
    "smallest: about what do you get?",
    (
        Option(
            "About 30",
            "Then S would have to be chosen with care, and again whenever the gradients change. The range is wider: "
            "float16 covers 40 powers of two, from 2^-24 to 2^16, and these gradients need only part of them.",
        ),
        Option(
            "About 2,000",
            "The range is wider: float16 covers 40 powers of two, from 2^-24 to 2^16, and the gradients that matter "
            "here need about half of them.",
        ),
        Option(
            "About 500,000",
            "From 2^9 to 2^28. Float16 covers 40 powers of two, and the gradients that matter here need about half of "
            "them. The rest is room for S.",
            True,
        ),
        Option(
            "More than a billion",
            "That is more than 2^30. It would leave ten powers of two, a factor of a thousand, for the gradients "
            "themselves, but they differ by more than that.",
        ),
    ),
    predict=True,
)
INVERTED = Choice(
    "training/loss_scaling/predict-inverted",
    "A run of 10,000 steps uses this code. Its warm-up takes 500 steps of the schedule, and 12 steps overflow. Where "
    "is the learning rate at the end?",
    (
        Option(
            "Where it should be: at the end of the schedule",
            "For that the schedule would have to move after the steps that were taken. After those the scale is the "
            "same or larger, so `<` is false.",
        ),
        Option(
            "Twelve steps short of the end",
            "That is what `>=` would give. After a step that was taken the scale is the same or larger, so `<` is "
            "false.",
        ),
        Option(
            "At 4 or 5 of the 500 steps of the warm-up",
            "The scale grows once in 2,000 good steps, so that would be `>`. Which way does `<` point?",
        ),
        Option(
            "At 12 of the 500 steps of the warm-up",
            "The scale falls exactly when a step is skipped, and `<` moves the schedule only then: twelve times. A run "
            "that never overflows keeps its first learning rate for ever.",
            True,
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

RESCUED = Number(
    "training/loss_scaling/play-rescued",
    "1. Stay at step 250, with the activations, and drag the loss scale up from 1. From which scale on does none of "
    "these gradients become zero?",
    answer="2^21",
    says="At 2^21 none is lost, but the box says that the step would be skipped: the largest of all gradients, a "
    "weight gradient, overflows. So do not aim to lose nothing. At 2^20 less than one in ten thousand is lost, and the "
    "step is taken.",
    wrong={
        "21": "21 is the exponent. Give the scale itself, 2^21.",
        "20": "20 is an exponent, and at 2^20 the line still says that a few become zero: less than 0.01 %.",
        "2^20": "At 2^20 less than 0.01 % still becomes zero. Which scale is the first at which none does?",
        "2^22": "None becomes zero at 2^22, but none does at half that scale either.",
        "2^16": "At 2^16 a few still become zero: less than 0.01 %. Go on until the line says none.",
    },
    otherwise="Read the line below the picture: at which scale does it first say that none becomes zero?",
    hints=("The box about the step does not matter here; look at the sentence below the bars.", "It is above 2^16."),
)
DESCENT = Number(
    "training/loss_scaling/play-descent",
    "2. Initial scale 2^30, growth interval 10: how many steps does the scaler skip before it takes the first?",
    answer="11",
    says="One skipped step per halving, from 2^30 down to 2^19.",
    wrong={
        "12": "12 is the first step that is taken. How many come before it?",
        "10": "After ten halvings the scale is 2^20. Move the step slider: is the eleventh step taken?",
        "2000": "2,000 is the default growth interval.",
        "19": "2^19 is the scale of the first step that is taken. How many halvings lead there from 2^30?",
        "30": "Each skipped step halves the scale, but it need not fall to 1.",
    },
    otherwise="Move the slider of the training step up from 1 and read the box: which step is the first one taken?",
    hints=("Each skipped step halves the scale.",),
    near=0.0,
)
OFTEN = Number(
    "training/loss_scaling/play-often",
    "3. Initial scale 2^16, growth interval 2: how many of the 250 steps does the scaler skip?",
    answer="73",
    says="That is nearly a third of the training. With an interval of 2,000, probing costs about one step in 2,000.",
    wrong={
        "29": "That is about the share in percent. How many steps is that?",
        "177": "That is how many are taken. How many are skipped?",
        "0": "That is the result with PyTorch's interval of 2,000. Set the growth interval to 2.",
    },
    otherwise="The line below the stairs counts the skipped steps. Did you set 2^16, interval 2, factors 2 and 0.5?",
    hints=("Press *PyTorch's defaults*, then set the growth interval to 2.",),
    near=0.0,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

MEAN_OVER_A_PAGE = {
    "gradient": Number(
        "training/loss_scaling/mean-over-a-page",
        "50,000 words, all equally probable; the loss is the mean over 32 texts of 1,024 tokens. The gradient for the "
        "logit of a wrong word:",
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
            "-1/50000/32768": "The size is right. A wrong word's logit should fall, so its gradient is positive.",
            "1/32768/32768": "50,000 is not 2^15. Take 1/50,000.",
            "32768/50000": "Divide by N: the loss is a mean, not a sum.",
            "3.302e-4": "That is the loss, log(50,000), divided by N. The gradient is p / N.",
            "2/50000/32768": "A factor of 2 comes from a square. The cross-entropy has none: p / N.",
        },
        otherwise="p / N: what is the probability of one word, and over how many tokens is the mean taken?",
        hints=("p is 1 / 50,000, the same for every word.", "N = 32 × 1,024 = 32,768."),
        tolerance=0.01,
        near=0.03,
    ),
    "smallest scale": Number(
        "training/loss_scaling/mean-over-a-page-scale",
        "The smallest loss scale, among the powers of two, that keeps this gradient from becoming zero in float16 (the "
        "scale itself, not its exponent):",
        answer="64",
        says="64 × 6.1e-10 = 3.9e-8 lies above 2^-25, so it is rounded up to 2^-24, the smallest float16.",
        wrong={
            "6": "64 is 2^6. Give the scale itself, not its exponent.",
            "-6": "A scale above 1 has a positive exponent; and give the scale itself.",
            "1/64": "That makes the gradient smaller. What do you multiply by?",
            "32": "32 × 6.1e-10 = 1.95e-8. That is below 2^-25 = 2.98e-8, so still 0.",
            "128": "128 is enough, but so is half as much: anything above 2^-25, half of the smallest float16, is "
            "rounded up to that number.",
            "256": "That is enough, but so is a smaller scale. From which scale on is the product above 2^-25?",
            "131072": "That makes it a normal number, with all its bits. Less is enough to stay above zero.",
            "65536": "That is the usual first scale. This gradient needs much less.",
            "1024": "More than enough. Go down: from which scale on is the product above 2^-25?",
            "1": "6.1e-10 is below 2^-25 = 2.98e-8: without a scale it is 0.",
            "48.8282": "That is the exact factor to 2^-25. Which is the next power of two?",
            "97.6564": "That is the factor to 2^-24, the smallest float16. Above 2^-25, half of it, rounding goes up.",
        },
        otherwise="Multiply 6.1e-10 by 2, 4, 8, ... until it is more than 2^-25 = 2.98e-8, half-way from 0 to the "
        "smallest float16.",
        hints=("In float16, everything up to 2^-25 = 2.98e-8 becomes 0.", "2.98e-8 / 6.1e-10 is 48.8."),
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
        says="Steps 1, 2 and 3 are skipped. Steps 4 to 2,003 are 2,000 good ones in a row, so the scale grows, and "
        "step 2,004 is skipped.",
        wrong={
            "2": "A skip halves the scale. How many halvings lead from 65536 to 8192?",
            "3": "Those are the three at the start. And how did 16384 become 8192 at the end?",
            "1": "That is the one at the end. And how did 65536 become 8192 at the start?",
            "5": "A skip halves, 2,000 good steps in a row double. Three halvings at the start: how many at the end?",
            "2000": "2,000 is how many steps in a row were taken.",
            "8": "65536 is 8 times 8192. How many halvings is that?",
        },
        otherwise="65536, 32768, 16384, 8192 at the start: count the halvings, there and at the end.",
        hints=("65536 / 8192 = 8, three halvings in three steps.", "In step 2,004 the scale falls once more."),
    ),
    "unseen": Number(
        "training/loss_scaling/read-a-trace-unseen",
        "All later steps are taken. Your log holds the scale at the start and after steps 1,000, 2,000, 3,000 and so "
        "on. Which skipped step leaves no trace in the log?",
        answer="2004",
        says="After steps 1,000, 2,000 and 3,000 the scale is 8192: the growth in step 2,003 hides the skip after it.",
        wrong={
            "3": "The log shows 65536 at the start and 8192 after step 1,000: the scale was halved three times.",
            "1": "After step 1,000 the scale is an eighth of what it was at the start. That is a trace of this skip, "
            "too.",
            "2": "The scales at the start and after step 1,000 differ by three halvings. This skip is one of them.",
            "2003": "Before step 2,004 the scale has doubled, so step 2,003 was taken: a scale never grows after a "
            "skip.",
            "2005": "8192 is the scale after step 2,004, so it was step 2,004 that halved it.",
            "2000": "After step 2,000 the scale is 8192, as before: that step was taken.",
        },
        otherwise="What is the scale after steps 1,000, 2,000 and 3,000? Which skip lies between two equal values?",
        hints=("The scale after steps 1,000 and 2,000 is 8192.", "It grows in step 2,003, and is 8192 again after ..."),
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

CLIPPED_STEP = Task(
    "training/loss_scaling/clipped-step",
    "Find the bug: fix the clipping in a training step, without `unscale_`.",
)
SCHEDULED_STEP = Task(
    "training/loss_scaling/scheduled-step",
    "Find the bug: fix a training step with two optimizers that also moves their learning-rate schedules.",
)
LOST_SHARE = Task(
    "training/loss_scaling/lost-share",
    "Write `lost_share`: the share of nonzero gradients that becomes zero in a dtype after scaling.",
)
