"""What `training/distilbert` asks: its predictions, and the answers that people really give to its exercises."""

from utils.checks.questions import Choice, Number, Option, Task

EVIDENCE = Choice(
    "training/distilbert/evidence",
    "Rounding noise is said to regularise. One of the six numbers speaks against that. Which?",
    (
        Option("float64", "It rounds the least of all, so it should be the worst. It is not.", right=True),
        Option("float32", "It fits the story: it rounds less than the others, and is worse. Which rounds even less?"),
        Option("TF32", "It fits the story: its products see fewer bits than those of float32, and it is better."),
        Option("bf16-true", "It fits the story best: it rounds the most and scores the highest."),
    ),
)
SEED_SPREAD = Choice(
    "training/distilbert/seed-spread",
    "How far apart are the best and the worst float32 run? All are tested on the same 2,000 reviews; only the seed"
    " differs.",
    (
        Option("below 0.1 points", "Too little: another seed means other first weights and another order of reviews."),
        Option("about 1 point", "The seed alone moves it by more than most published recipes differ.", right=True),
        Option("5 points or more", "Too much: each run sees the same reviews for as long, and learns much the same."),
    ),
    predict=True,
)
WHO_FAILS = Choice(
    "training/distilbert/who-fails",
    "Eleven recipes, five seeds each. Two of them end at guessing or not far from it. One of the two is in this"
    " list: which?",
    (
        Option(
            "16-mixed",
            "Its products are float16, but weights, gradients and Adam are float32, and a loss scaler watches over it.",
        ),
        Option("16-true", "Everything is float16. The question is which part of that is the cause.", right=True),
        Option(
            "16-true-moments",
            "Weights, gradients and products are as narrow as in the one that fails. It differs in Adam alone, and"
            " trains.",
        ),
        Option(
            "bf16-true",
            "It has the fewest significant bits of all, 8 against 11 in float16. If too little precision were the"
            " cause, it would be the first to fail.",
        ),
    ),
    predict=True,
)
STANDARD_ERROR = Number(
    "training/distilbert/standard-error",
    text="The standard error of an accuracy of 81 % on 2,000 reviews:",
    answer="0.8772",
    unit="percentage points",
    says="About 0.88 points for one network. A difference of two errs by the root of 2 times that.",
    wrong={
        "0.008772": "Right as a share. The question asks for percentage points: multiply by 100.",
        "0.007695": "That is the variance, p (1 - p) / n. The standard error is its root.",
        "39.23": "That is the spread of a single answer. The mean of n answers varies less, by the root of n.",
        "1.719": "That is half of a 95 % interval, 1.96 standard errors. Give one standard error.",
        "0.3923": "That is the spread of a single answer, as a share. Divide by the root of n, then multiply by 100.",
        "0.00007695": "That is the variance as a share, p (1 - p) / n. Take its root, then multiply by 100.",
        "0.0196": "That divides by n outside of the root: p (1 - p) / n goes into the root as a whole.",
        "2.0125": "That leaves (1 - p) out: inside the root stands p (1 - p) / n.",
    },
    otherwise="Not that. Take sqrt(p (1 - p) / n) with p = 0.81 and n = 2,000, then times 100.",
    hints=("p (1 - p) / n is 0.81 × 0.19 / 2,000.", "The root of 0.00007695, times 100."),
    tolerance=0.03,
)
Z_OF_DIFFERENCE = Number(
    "training/distilbert/z-of-difference",
    text="The distance from 92.61 % to 92.15 %, each on 10,000 reviews of its own, in standard errors of the"
    " difference:",
    answer="1.226",
    says="About 1.2 standard errors. Less than 2, so chance alone produces such a gap often. (On the same reviews the"
    " errors are correlated, and this one is usually smaller.)",
    wrong={
        "1.7334": "Both accuracies were measured, so both err: add the two variances before you take the root.",
        "122.6": "You divided points by shares. Use one unit for both: 0.46 points and 0.38 points, say.",
        "0.867": "The errors add as squares: 0.26 and 0.27 make 0.38, not 0.53.",
        "0.46": "That is the difference, 0.46 points. Divide it by its standard error.",
        "0.3752": "That is the standard error of the difference, in points. Divide 0.46 by it.",
        "-1.226": "The size is right. A distance has no sign.",
    },
    otherwise="Not that. The difference is 0.46 points; divide it by the root of the two variances' sum.",
    hints=(
        "One standard error is sqrt(p (1 - p) / n): 0.26 points for 92.61 %, 0.27 points for 92.15 %.",
        "The difference has a standard error of sqrt(0.26² + 0.27²) points.",
    ),
    tolerance=0.05,
)
WRONG_BAR = Choice(
    "training/distilbert/wrong-bar",
    "Which bar of the memory chart cannot be right?",
    (
        Option("float64", "10.42 GB is right for float64. Count the bytes of one weight in each of the five recipes."),
        Option(
            "float32",
            "TF32 stores float32, so both need the same memory: 5.37 GB in the logs. 10.42 is float64's.",
            right=True,
        ),
        Option("TF32", "5.37 GB is what the log says. TF32 changes how products are computed, not what is stored."),
        Option(
            "16-mixed",
            "Mixed keeps float32 weights and states, and saves on activations only: 4.31 GB is right.",
        ),
        Option(
            "bf16-true",
            "All tensors in half the bytes of float32, and nearly half the memory of the right float32 bar.",
        ),
    ),
)
PAIRED_INTERVAL = Task("training/distilbert/paired-interval", "My `paired_interval` pairs the runs seed by seed.")
RESCUE = Task("training/distilbert/rescue", "My `HalfAdam` trains float16 weights without a NaN.")
