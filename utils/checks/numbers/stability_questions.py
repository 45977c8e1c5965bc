"""What `numbers/stability` asks: masks and variances that break, and four formulas to write so that they do not."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

P_EMPTY = Choice(
    "numbers/stability/predict-empty",
    "Float16 stores -1e9 as minus infinity, and nearly every row has padding. Why does only the empty row have no "
    "answer?",
    (
        Option(
            "In the empty row every exponential underflows to 0, so every weight is 0 / 0",
            "That would be true of a naive softmax. This one subtracts the largest score first, so the largest"
            " exponent should be 0. What is the largest score here?",
        ),
        Option(
            "In the empty row the largest score is minus infinity, and it is subtracted from itself",
            "In every other row the largest score is finite, so a masked score becomes -inf minus a number, which is"
            " -inf, and its weight is 0. In the empty row, -inf - (-inf) is NaN.",
            True,
        ),
        Option(
            "0 * -1e9 is NaN for every word that is not padding",
            "Then every row with a word would have no answer. Torch multiplies a float16 tensor by a Python number in"
            " float32, where -1e9 is finite, and rounds the product: 0 stays 0.",
        ),
        Option(
            "The empty row has no words, so it has no label either",
            "It has the label of the review that it replaced. Its logits are NaN before any label is used.",
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
            "The scores were replaced, so nothing is left of them. Adding would have kept something.",
        ),
        Option("NaN", "-65504 is finite, and -65504 - (-65504) is 0."),
    ),
    predict=True,
)
P_VAR = Choice(
    "numbers/stability/predict-variance",
    "The variance of these 1,000 numbers, from 198.4 to 201.8, is 0.97. What is `(x * x).mean() - x.mean()**2` in "
    "float16?",
    (
        Option(
            "0.97",
            "Both terms are near 40,040, where float16 numbers are 32 apart. The 0.97 is lost before the subtraction.",
        ),
        Option(
            "0",
            "It would be 0 if only the two terms were rounded. But the mean was rounded too, before it was squared.",
        ),
        Option(
            "-32",
            "The mean is stored as 200.125, which is a little too large, and its square as 40064. The mean of the "
            "squares is stored as 40032. Near 40,040 float16 numbers are 32 apart. The square root of -32 is NaN.",
            True,
        ),
        Option(
            "32",
            "The spacing is right, but not the sign. The mean, 200.1, is stored as 200.125. Is its square too large or "
            "too small?",
        ),
        Option("inf", "40,040 is below 65504. For numbers near 300 both terms would be inf, and inf - inf is NaN."),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_SCORE = Number(
    "numbers/stability/play-score",
    "Take a row with a single score, in float16, and the softmax as written: exp, then divide. What is the largest "
    "score with two decimals whose weight is still 1?",
    answer="11.08",
    says="exp(11.09) would still fit, but float16 stores 11.09 as 11.09375, and the exponential of that is 65759.",
    wrong={
        "11.09": "exp(11.09) is 65513, which would fit. But which number does float16 store for 11.09? Type it above.",
        "11.0859375": "That is the largest float16 number that works. Rounded to two decimals it is 11.09, "
        "which is stored as the next float16 number up.",
        "11.090110718526951": "That is the logarithm of 65520. The score must have two decimals, and it is "
        "rounded when it is stored.",
        "65504": "That is the largest float16 number. Look for the score whose exponential comes close to it.",
        "65520": "From 65520 on, float16 rounds to inf. Look for the score whose exponential stays below that.",
    },
    within={
        "-65504 to 11.079": "Its weight is 1, but a larger score works too. Try one above.",
        "11.081 to 65503": "Its exponential is stored as inf, and inf / inf is NaN. Try a smaller score.",
    },
    otherwise="Keep one score in the widget and change it until its weight turns into NaN.",
    hints=(
        "The logarithm of 65520, where float16 begins to round to inf, is about 11.09.",
        "Float16 numbers near 11 are 1/128 apart. Look at what is stored.",
    ),
    near=0,
)
PLAY_COPIES = Number(
    "numbers/stability/play-many-copies",
    "A float16 row repeats the pair of scores 3 and 2, and the largest is subtracted first. What is the largest "
    "number of copies it can have before its weights become 0?",
    answer="47897",
    says="The exponentials are 1 and 0.36792, so each copy adds 1.36792. 47897 copies add up to 65519.3, which is "
    "rounded to 65504. One more takes the sum past 65520, where float16 rounds to inf, and 1 / inf is 0.",
    wrong={
        "47898": "With that many copies the sum passes 65520. Float16 rounds exp(-1) too, from 0.36788 to 0.36792.",
        "47885": "That keeps the sum below 65504. A slightly larger sum is still rounded down to it.",
        "47886": "That is where the sum passes 65504. A slightly larger sum is still rounded down to it.",
        "95794": "That is the number of scores. How many copies of the pair is that?",
        "65519": "That would be right for a single score. The second one adds exp(-1) to each copy.",
        "65520": "That would be about right for a single score. The second one adds exp(-1) to each copy.",
        "32759": "That counts both exponentials as 1. The second one is exp(-1).",
        "2048": "A running sum would stop growing early. Here the sum is rounded only once, at the end.",
        "inf": "The sum grows with the number of copies, and float16 has a largest number.",
    },
    within={
        "1 to 47896": "With that many copies the weights are not 0 yet, and there is room for more.",
        "47899 to 1e9": "With that many copies the sum is inf, but fewer copies are already enough for that.",
    },
    otherwise="Press “a long row” in the widget, type the two scores, and change the number of copies.",
    hints=(
        "How much does each copy add to the sum? Read the two exponentials in the widget.",
        "At what sum does float16 begin to round to inf? It is halfway between 65504 and 65536.",
    ),
    near=0,
)
PLAY_MASK = Number(
    "numbers/stability/play-mask",
    "All scores of a float16 row are the same whole number. All of them are padding, and the mask adds the lowest "
    "number to each score once. What is the largest score that makes every weight NaN?",
    answer="-16",
    says="-65504 - 16 is -65520, halfway between -65504 and -65536, and float16 rounds that tie to -inf. With -15 the "
    "sum is rounded back to -65504.",
    wrong={
        "-15": "-65519 is nearer to -65504 than to -65536, so it is stored as -65504.",
        "-32": "Float16 numbers are 32 apart there, but half of that is enough for the sum to be rounded to -inf.",
        "-1": "-65505 is rounded to -65504: the lowest number absorbs a small score.",
        "16": "Check the sign. Adding 16 moves away from the end of the range.",
        "0": "-65504 + 0 is -65504, which is finite.",
    },
    within={
        "-65504 to -17": "That makes every weight NaN, but so does a larger score.",
        "-14 to 65504": "The sum is rounded to a finite number, so the row gets equal weights. Try a lower score.",
    },
    otherwise="Give every score of the widget the same number, and look at the row of padding.",
    hints=(
        "What is the first number beyond -65504 that float16 stores as -inf?",
        "Compare with the number of copies in the question above.",
    ),
    near=0,
)

# --- Exercises in code ------------------------------------------------------------------------------------------------

SOFTMAX = Task(
    "numbers/stability/stable-softmax",
    "Write `softmax16`: a softmax along the rows of a float16 tensor, for any logits and for masked rows.",
)
MASK = Task(
    "numbers/stability/mask-value",
    "Write `mask_value`: for each dtype, a finite number that masks a score and never produces inf or NaN.",
)
NORM = Task(
    "numbers/stability/safe-rms-norm",
    "Write `rms_norm16`: x / sqrt(mean(x^2) + eps) for rows of float16 numbers from 1e-7 to 60000, in float16.",
)
LOSS = Task(
    "numbers/stability/cross-entropy",
    "Fix a binary cross-entropy that gives NaN in float16 for confident, correct predictions.",
)
