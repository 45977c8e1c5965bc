"""What `training/distilbert` asks: its predictions, and the answers that people really give to its exercises."""

from utils.checks.questions import Choice, Number, Option, Task

# --- The page ---------------------------------------------------------------------------------------------------------

EVIDENCE = Choice(
    "training/distilbert/evidence",
    "The first claim says that rounding regularises. Which of these accuracies speaks against it?",
    (
        Option(
            "float64",
            "It rounds even less than float32, so by the claim it should be no better. It is 2.2 points better.",
            right=True,
        ),
        Option(
            "float32", "It fits the claim: it is the worst, and most of the others round more. Which one rounds less?"
        ),
        Option("TF32", "It fits the claim: its products see fewer bits than float32's do, and it scores higher."),
        Option("bf16-true", "It fits the claim best: it rounds the most and scores the highest."),
    ),
    predict=True,
)
HOW_OFTEN_SEEN = Choice(
    "training/distilbert/how-often-seen",
    "Suppose that one recipe really is a quarter of a point better than another, and that s = 0.39 points. You "
    "compare the two in five pairs, and so do many colleagues. How many of you get a 95 % interval that excludes zero?",
    (
        Option(
            "one in five",
            "The interval reaches about 0.5 points to either side, twice the true difference. It excludes zero only "
            "where luck doubles the difference, so those who see it also overestimate it.",
            right=True,
        ),
        Option(
            "one in two",
            "That takes a true difference of nearly half a point. A quarter of a point is only half the half-width of "
            "the interval, so most of you miss it.",
        ),
        Option(
            "four in five",
            "With five pairs, that takes a true difference of about two thirds of a point; for a quarter of a point it "
            "takes more than 20 pairs.",
        ),
        Option(
            "19 in 20", "The 95 % say how often the interval contains the true difference, not how often it excludes 0."
        ),
    ),
    predict=True,
)
LARGER_EPSILON = Choice(
    "training/distilbert/step-with-larger-epsilon",
    "Set ε to 0.0001, which float16 can hold, and keep m and v in float16. Adam's first step should be one learning "
    "rate long. How long is it for a gradient of 0.005?",
    (
        Option(
            "one learning rate",
            "That is its length where v is stored. But v = 0.001 · 0.005² = 2.5e-8 is below 3e-8 and rounds to 0.",
        ),
        Option(
            "five learning rates",
            "That is m / ε without the bias correction. m is 0.0005, and divided by 0.1 it is g again.",
        ),
        Option(
            "fifty learning rates",
            "v rounds to 0, so only ε is left in the denominator: 0.005 / 0.0001. The larger ε removes the division by "
            "zero, but not its cause.",
            right=True,
        ),
        Option("infinitely long", "v does round to 0, but ε no longer does, so nothing is divided by zero."),
    ),
    predict=True,
)
MOST_MEMORY = Choice(
    "training/distilbert/most-memory",
    "The float32 run reserved 5.37 GB for 67 million parameters and batches of 12 reviews with 512 tokens. What takes "
    "most of it?",
    (
        Option("the weights", "They take 4 bytes each: 67 million of them are 0.27 GB, a twentieth."),
        Option("the gradients", "One per weight, 4 bytes each: as much as the weights, 0.27 GB, and no more."),
        Option("Adam's moments", "Two per weight, 8 bytes: 0.54 GB, the largest part set by the parameters alone."),
        Option(
            "the saved activations",
            "They grow with batch and length, not with the parameters, and they are the only part that autocast makes "
            "smaller.",
            right=True,
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

SEED_COUNT = Number(
    "training/distilbert/play-seed-count",
    text="Make bf16-mixed the baseline, with 16-mixed beside it. How many of the five seeds, each taken alone, would "
    "make you report that 16-mixed is more accurate?",
    answer="2",
    says="Two seeds favour 16-mixed, two favour bf16-mixed, and one is a tie.",
    wrong={
        "3": "That is the count against 32-true. Against bf16-mixed, three is what you get if you count the tie, which "
        "favours neither recipe.",
        "4": "Too many. In two of the five seeds 16-mixed lies clearly to the left of bf16-mixed.",
        "1": "Look at the seeds one by one: more than one has 16-mixed to the right of the baseline.",
        "5": "For some seeds 16-mixed is less accurate than bf16-mixed. Compare them seed by seed.",
        "0": "The mean is near 0, but single seeds are not. Look at each seed.",
    },
    otherwise="There are five seeds; count those with which 16-mixed is more accurate.",
    hints=("Choose bf16-mixed as the baseline and untick all but 16-mixed.", "The dots right of 0 favour 16-mixed."),
)
PLACE = Number(
    "training/distilbert/play-place",
    text="Make 32-true the baseline again and tick all recipes. With seed 3 alone, no recipe is more accurate than "
    "16-mixed. With seed 4 alone, how many are more accurate than 16-mixed?",
    answer="6",
    says="With seed 3, 16-mixed is the best recipe, and with seed 4 the seventh, although only the seed has changed.",
    wrong={
        "0": "That is the answer for seed 3. Choose seed 4.",
        "4": "Recipes that tie share a place in the table, but each of them counts.",
        "5": "One is missing. Is every recipe ticked?",
        "7": "That is its place with seed 4. How many recipes rank above it?",
    },
    otherwise="Tick every recipe, choose seed 4, and look at the table of ranks.",
    hints=("Every recipe has to be ticked.", "The table of ranks has a column for seed 4."),
)
ACTIVATIONS = Number(
    "training/distilbert/play-activations",
    text="Choose the memory of the saved activations, with 32-true as the baseline. By what share does "
    "bf16-mixed reduce it in the small model?",
    answer="21",
    unit="%",
    says="Autocast narrows only part of what is saved: norms, softmax and the loss still keep float32. In the small "
    "model it narrows less than in the model of the logs, for which we counted 27 %.",
    wrong={
        "79": "That is what is left. By how much has it fallen?",
        "0.21": "That is the share as a fraction. The field asks for it in percent.",
        "27": "That is our count for the pretrained model of the logs. The widget shows the small model.",
        "50": "That is bf16-true, where every tensor has half the bytes.",
        "9.2": "That is the difference in megabytes. The share is next to it.",
        "35": "That is what bf16-mixed keeps, in megabytes. By what share is it less than 32-true's?",
        "0": "That is the optimizer, or the weights: a mixed recipe keeps both in float32.",
    },
    otherwise="The row of bf16-mixed has the difference in megabytes, and then as a share.",
    hints=("The list of quantities has several kinds of memory.", "It is one fifth, roughly."),
    tolerance=0.02,
)

# --- Exercises --------------------------------------------------------------------------------------------------------

Z_OF_DIFFERENCE = Number(
    "training/distilbert/z-of-difference",
    text="The distance from 92.61 % to 92.15 %, each measured on 4,000 reviews of its own, in standard errors of the"
    " difference:",
    answer="0.7753",
    says="About 0.8 standard errors. Two equally good networks differ by as much or more in more than two out of five"
    " such tests. On the same reviews, the standard error is usually smaller.",
    wrong={
        "1.0963": "Both accuracies were measured, so both carry an error: add the two variances, then take the root.",
        "77.53": "You divided points by shares. Use one unit for both: 0.46 points and 0.59 points, say.",
        "0.5482": "The errors add as squares: 0.41 and 0.43 make 0.59, not 0.84.",
        "0.46": "That is the difference, 0.46 points. Divide it by its standard error.",
        "0.5933": "That is the standard error of the difference, in points. Divide 0.46 by it.",
        "1.2255": "That is for about 10,000 reviews, as above. Each of these test sets has 4,000.",
        "-0.7753": "The size is right. A distance has no sign.",
    },
    otherwise="The difference is 0.46 points; divide it by the root of the two variances' sum.",
    hints=(
        "One standard error is sqrt(p (1 - p) / n): 0.41 points for 92.61 %, 0.43 points for 92.15 %.",
        "The difference has a standard error of sqrt(0.41² + 0.43²) points.",
    ),
    tolerance=0.035,
)
TEST_SIZE = Number(
    "training/distilbert/test-size",
    text="Two test sets of equal size, with different reviews. How many reviews must each hold for the difference"
    " between 92.61 % and 92.15 % to be two standard errors?",
    answer="26612",
    unit="reviews",
    says="About 26,600 each, more than IMDb's test set has. Even that shows only which of two networks is better,"
    " not which of two recipes.",
    wrong={
        "16313": "The standard error falls with the square root of n: for half the error you need four times as many.",
        "13674": "Both accuracies carry an error. Yours has only the variance of 92.15 %.",
        "12937": "Both accuracies carry an error. Yours has only the variance of 92.61 %.",
        "6653": "That makes the difference one standard error. The exercise asks for two.",
        "13306": "The factor 2 goes inside the square: n grows fourfold when the error has to halve.",
        "53225": "That is both test sets together. How many does each hold?",
        "26.612": "Write the number without a separator: a dot is a decimal point here.",
        "2.6612": "You mixed points and shares: the difference is 0.0046 as a share.",
    },
    otherwise="The variance of the difference is 0.1408 / n, and its root should be half of 0.0046.",
    hints=(
        "The variance of the difference is (p (1 - p) + q (1 - q)) / n, and the numerator is 0.1408.",
        "n is 4 × 0.1408 / 0.0046².",
    ),
    tolerance=0.05,  # 1.2 standard errors, or 0.27 points for both, lead to 27,800 and 27,300
)
PAIRED_INTERVAL = Task("training/distilbert/paired-interval", "My `paired_interval` pairs the runs seed by seed.")
RESCUE = Task(
    "training/distilbert/rescue-in-six-bytes",
    "My `HalfAdam` trains float16 weights with six bytes per weight for m and v.",
)
