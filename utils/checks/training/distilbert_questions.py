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
)
SEEDS_NEEDED = Choice(
    "training/distilbert/seeds-needed",
    "Suppose that bf16-mixed really were a quarter of a point better in this model. The paired differences have a "
    "standard deviation of 0.4 points. How many seeds does it take to see the gain in four experiments out of five?",
    (
        Option(
            "five",
            "Five seeds give an interval of about ±0.5 points, so they would miss a quarter of a point most of the "
            "time.",
        ),
        Option("about twenty", "Yes. To see a difference half as large, you need four times as many seeds.", True),
        Option(
            "about a hundred",
            "That is enough for about a ninth of a point. The standard error falls with the square root of the number "
            "of seeds: with a hundred it is only 0.04 points.",
        ),
    ),
    predict=True,
)
LARGER_EPSILON = Choice(
    "training/distilbert/larger-epsilon",
    "One recorded recipe, 16-true-eps, keeps everything in float16 and sets ε to 0.0001, which float16 can hold. "
    "Nothing is divided by zero now. How well does this model learn with it?",
    (
        Option(
            "as well as in float32",
            "There is no NaN, but v is still 0 for most gradients, so the steps are not Adam's. Four of five seeds "
            "only guess.",
        ),
        Option(
            "a few points worse",
            "It is far worse than that. Where v is 0, a step is the gradient divided by ε, which is up to ten times "
            "too long or far too short. Four of five seeds do no better than guessing.",
        ),
        Option(
            "hardly better than guessing",
            "Yes. Four of five seeds never get beyond guessing. Without v, Adam's steps have the wrong length: up to "
            "ten times too long.",
            right=True,
        ),
    ),
    predict=True,
)
WRONG_BAR = Choice(
    "training/distilbert/wrong-bar",
    "Which bar of the memory chart cannot be right: float64 10.42 GB, float32 10.42, TF32 5.37, 16-mixed 4.31 or "
    "bf16-true 2.87?",
    (
        Option("float64", "10.42 GB is right for float64. How many bytes does one weight take in each recipe?"),
        Option(
            "float32",
            "TF32 stores everything in float32, so both need the same memory. The chart repeats the bar of float64.",
            right=True,
        ),
        Option("TF32", "5.37 GB is what the log says. TF32 changes how products are computed, not what is stored."),
        Option("16-mixed", "4.31 GB is what the log says: float32 weights and optimizer, smaller activations."),
        Option("bf16-true", "2.87 GB is what the log says: every tensor takes half the bytes of float32."),
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
        "3": "One of the three is a tie: the same number of correct answers. A tie favours neither recipe.",
        "4": "That is the count with 32-true as the baseline. Choose bf16-mixed instead.",
        "1": "Look at the seeds one by one: more than one has 16-mixed to the right of the baseline.",
        "5": "For some seeds 16-mixed is less accurate than bf16-mixed. Compare them seed by seed.",
        "0": "The mean is near 0, but single seeds are not. Look at each seed.",
    },
    otherwise="Not that. There are five seeds; count those with which 16-mixed is more accurate.",
    hints=("Choose bf16-mixed as the baseline and untick all but 16-mixed.", "The dots right of 0 favour 16-mixed."),
)
PLACE = Number(
    "training/distilbert/play-place",
    text="Make 32-true the baseline again and tick all recipes. With seed 3 alone, 16-mixed is the best. What is its "
    "place with seed 4 alone? Recipes with the same accuracy share a place.",
    answer="7",
    says="From first to seventh, with the same recipe: only the seed has changed.",
    wrong={
        "1": "That is its place with seed 3.",
        "5": "Recipes that tie share a place, but each of them counts: after three thirds, the next is sixth.",
        "8": "That is one place too low. Count the recipes that are more accurate, and add one.",
        "6": "Some recipes are not ticked yet, or you counted one too few. Six recipes are more accurate.",
    },
    otherwise="Not that. Tick every recipe, choose seed 4, and look at the table of ranks.",
    hints=("Every recipe has to be ticked.", "The table of ranks has a column for seed 4."),
)
PRICE = Choice(
    "training/distilbert/play-price",
    "Choose the memory of the optimizer. Which recipe with 16-bit weights needs as much as 32-true?",
    (
        Option("16-true-eps", "It needs half. A larger ε takes no memory, but it hardly helps either."),
        Option(
            "16-true-moments",
            "That is the price of the rescue: moments of 4 bytes each. Weights and gradients stay at 2 bytes.",
            right=True,
        ),
        Option("bf16-true", "It needs half: its moments are bfloat16."),
        Option("bf16-true-stochastic", "It needs half: random rounding has nothing to store."),
    ),
)

# --- Exercises --------------------------------------------------------------------------------------------------------

Z_OF_DIFFERENCE = Number(
    "training/distilbert/z-of-difference",
    text="The distance from 92.61 % to 92.15 %, each measured on 10,000 reviews of its own, in standard errors of the"
    " difference:",
    answer="1.226",
    says="About 1.2 standard errors. Two equally good networks differ by as much or more in about one of five such"
    " tests. On the same reviews, the standard error is usually smaller.",
    wrong={
        "1.7334": "Both accuracies were measured, so both carry an error: add the two variances, then take the root.",
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
        "2.6612": "You mixed points and shares: the difference is 0.0046 as a share.",
    },
    otherwise="Not that. Set 0.0046 equal to two standard errors of the difference and solve for n.",
    hints=(
        "The variance of the difference is (p (1 - p) + q (1 - q)) / n, and the numerator is 0.1408.",
        "n is 4 × 0.1408 / 0.0046².",
    ),
    tolerance=0.02,
)
PAIRED_INTERVAL = Task("training/distilbert/paired-interval", "My `paired_interval` pairs the runs seed by seed.")
RESCUE = Task("training/distilbert/rescue", "My `HalfAdam` trains float16 weights without a NaN.")
