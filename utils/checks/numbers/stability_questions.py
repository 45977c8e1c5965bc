"""What `numbers/stability` asks: masks and variances that break, and five formulas to write so that they do not."""

from utils.checks.questions import Choice, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

P_EMPTY = Choice(
    "numbers/stability/predict-empty",
    "Why is the loss NaN?",
    (
        Option(
            "exp(-1e9) underflows, so every weight of the empty row is 0 / 0",
            "With a naive softmax that would be so. This one subtracts the largest score first, so one exponential is"
            " always exp(0) = 1. What is the largest score here?",
        ),
        Option(
            "In the empty row the largest score is minus infinity",
            "-1e9 is stored as -inf. Among finite scores, that gives the weight 0, as it should. In a row of nothing"
            " but -inf, the largest is -inf too, and -inf - (-inf) is NaN.",
            True,
        ),
        Option(
            "0 * -1e9 is NaN for all words that are not padding",
            "-1e9 is multiplied in float32 here, where it is finite. Had it been stored in float16 first, it would be"
            " -inf, 0 * -inf would be NaN, and no row would have an answer.",
        ),
        Option(
            "The empty row has no words, so it has no label either",
            "It has the label of the review that it replaced. Its logits are NaN before any label is looked at.",
        ),
    ),
    predict=True,
)
P_PADDING = Choice(
    "numbers/stability/predict-padding",
    "In a row of four padding tokens, every score is replaced by the lowest float16 number. What weights does the "
    "softmax give?",
    (
        Option("0, 0, 0, 0", "The weights of a softmax add up to 1 as long as its scores are finite."),
        Option("0.25 each", "All four scores are equal, and only differences count.", True),
        Option(
            "the same as for the original scores",
            "They were replaced, so nothing of them is left. Adding would have kept something.",
        ),
        Option("NaN", "-65504 is finite, and -65504 - (-65504) is 0."),
    ),
    predict=True,
)
P_VAR = Choice(
    "numbers/stability/predict-variance",
    "1,000 numbers between 198.4 and 201.8; their variance is 0.97. What is `(x * x).mean() - x.mean()**2` in float16?",
    (
        Option(
            "0.97",
            "Both terms are near 40,040, where float16 numbers are 32 apart. The 0.97 is lost before the subtraction.",
        ),
        Option(
            "0",
            "It would be, if only the two terms were rounded. The mean was rounded too, before it was squared.",
        ),
        Option(
            "-32",
            "The mean is stored as 200.125, a little too large, its square as 40064; the mean of the squares as 40032. "
            "Near 40,040 float16 numbers are 32 apart. Its root is NaN.",
            True,
        ),
        Option("inf", "40,040 is below 65504. For numbers near 300 both terms would be inf, and inf - inf is NaN."),
    ),
    predict=True,
)

# --- Exercises in code ------------------------------------------------------------------------------------------------

SOFTMAX = Task(
    "numbers/stability/stable-softmax",
    "Write `softmax16`: a softmax along the rows of a float16 tensor, for any logits and for masked rows.",
)
MASK = Task(
    "numbers/stability/mask-value",
    "Write `mask_value`: for each dtype a finite number that masks a score and never makes inf or NaN.",
)
NORM = Task(
    "numbers/stability/safe-norm",
    "Write `norm16`: the Euclidean norm of a float16 vector, in float16, for entries from 1e-7 to 60000.",
)
LOSS = Task(
    "numbers/stability/cross-entropy",
    "Fix the loss: a binary cross-entropy that gives NaN for correct, confident predictions in float16.",
)
SUM = Task(
    "numbers/stability/careful-sum",
    "Write `careful_sum`: add up to 1,001 float16 numbers with float16 additions only, and lose less than 0.2 %.",
)
