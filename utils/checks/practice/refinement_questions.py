"""What `practice/refinement` asks: when steps shrink an error, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

NARROW_RESIDUAL = Choice(
    "practice/refinement/predict-narrow-residual",
    "Same system, same float16 factors, x in float64. Only `b - A x` is computed in float32, from A, x and b rounded "
    "to it. How many digits of x are correct in the end?",
    (
        Option(
            "Two",
            "That is the first x. The first steps still gain digits, because the residual is large then, and float32 "
            "knows A x well enough to see it.",
        ),
        Option(
            "About five",
            "Float32 knows A x to seven digits, and a condition number of 100 takes up to two of them.",
            True,
        ),
        Option(
            "About seven",
            "Float32 holds A x to seven digits. On the way from A x to x, the condition number of 100 costs some "
            "of them.",
        ),
        Option(
            "Thirteen, after more steps",
            "Another step repairs nothing unless its residual is better, and that has the same rounding error again.",
        ),
    ),
    predict=True,
)
ENOUGH = Choice(
    "practice/refinement/predict-enough",
    "Layer 1 is solved with bfloat16 factors, so κu is about 3.5. After how many refinement steps has this model "
    "made nine tenths of the gain that the float64 refit makes over no refit?",
    (
        Option(
            "None: the first x is good enough",
            "A step gains less than a digit here, and float64's accuracy takes about fifteen of them. But this "
            "model's perplexity needs only the first digit or two of its weights.",
            True,
        ),
        Option(
            "Two or three",
            "Each of them brings x closer. But did this model need that?",
        ),
        Option(
            "About fifteen, when the backward error has reached float64's rounding",
            "That is when x is done. But how many digits of its weights does this model need?",
        ),
        Option(
            "It never gets there, because κu is above 1",
            "Between 1 and 30, refinement may converge, and here it does. But look at what it starts from.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_BORDER = Number(
    "practice/refinement/play-border",
    "With the residual in float64 and corrections by the factors, what is the largest condition number at which "
    "bfloat16 factors still reach the goal within 50 steps?",
    answer="2000",
    says="There κu is 7.8; at 5,000 they would take 55 steps. With float16 factors, the last one is 50,000, where κu "
    "is 24. Three more bits are a factor of 8 in the rule: above 1, it is only an order of magnitude.",
    wrong={
        "50000": "That is the last one for float16 factors. Choose bfloat16.",
        "20000": "With bfloat16 factors, the curve is flat there. Move the slider down.",
        "5000": "That is the first at which 50 steps are not enough. One position less.",
        "1000": "They do converge there, but also one position further up.",
        "500": "They do converge there, but also further up.",
        "256": "That is 1/u, where κu is 1. This system still converges somewhat above it.",
        "200": "That is about 1/u, where κu is 1. This system still converges somewhat above it.",
    },
    otherwise="Press bfloat16, and move the slider up until the table no longer says how many steps it took.",
    hints=("The positions of the slider are 1, 2 and 5 times each power of ten.",),
    near=0,
)
PLAY_COST = Number(
    "practice/refinement/play-cost",
    "Now set a condition number of 10^6, float16 factors, the residual in float64, and GMRES. A solve, with its "
    "product with A, takes 4 n² operations and a factorization 2/3 n³, and n is 32. How many factorizations do all "
    "solves together cost?",
    answer="7.3125",
    says="39 · 6/32. One factorization in float64 would have been much cheaper.",
    wrong={
        "39": "That is the number of solves. Compare their operations with those of a factorization.",
        "7": "Rounded too far. Give one decimal.",
        "1.21875": "That is 39/32, but a factorization takes 2/3 n³ operations, not 4 n³.",
        "0.1367": "That is the other way round: a factorization in units of the solves.",
    },
    within={
        "3.5 to 3.8": "Did you count both corrections, and the products with A? A solve alone takes 2 n² operations, "
        "and the product as many.",
    },
    otherwise="The sentence under the plot says how many solves there were. Multiply by 4 n² and divide by 2/3 n³.",
    hints=("4 n² / (2/3 n³) = 6/n.",),
    tolerance=0.01,
    unit="factorizations",
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _steps(name: str, text: str, answer: int, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"practice/refinement/steps{name}",
        f"{text}. After how many steps is the error at most 1e-12?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="After k steps the error is the first one times the factor to the power k. Take logarithms.",
        hints=("first error · factor^k ≤ 1e-12", "k ≥ log(1e-12 / first error) / log(factor), and k is an integer."),
        unit="steps",
    )


STEPS = {
    "first error 1e-2, factor 5e-3": _steps(
        "",
        "The first x is wrong by 1e-2, and a step multiplies the error by 5e-3",
        5,
        says="Four steps leave 6e-12, five leave 3e-14.",
        wrong={
            "4": "Four steps leave 6e-12. Round up.",
            "4.35": "The number of steps is an integer: round up.",
            "6": "6 would be right without the first x, which has two digits already.",
            "5.21": "That is for an error of 1 at the start. The first x is already right to 1e-2.",
        },
    ),
    "first error 1e-5, factor 1e-4": _steps(
        "-float32",
        "The first x is wrong by 1e-5, and a step multiplies the error by 1e-4",
        2,
        says="1e-5, 1e-9, 1e-13. Two steps cost next to nothing compared with the factors.",
        wrong={
            "1": "One step leaves 1e-9.",
            "3": "Count the steps after the first x: 1e-5, then 1e-9, then 1e-13.",
            "1.75": "The number of steps is an integer: round up.",
        },
    ),
    "first error 1e-2, factor 0.2": _steps(
        "-slow",
        "The first x is wrong by 1e-2, and a step multiplies the error by 0.2",
        15,
        says="Each step gains 0.7 digits, and ten are needed.",
        wrong={
            "14": "Fourteen steps leave 1.6e-12. Round up.",
            "14.3": "The number of steps is an integer: round up.",
            "16": "That is enough, but so is one fewer.",
            "18": "18 would be right without the first x, which has two digits already.",
            "10": "One digit per step would take a factor of 0.1.",
        },
    ),
}

SAFE, MAYBE, FAILS = "converges", "may converge", "fails"


def _verdict(name: str, text: str, right: str, **says: str) -> Choice:
    named = {SAFE: says["safe"], MAYBE: says["maybe"], FAILS: says["fails"]}
    return Choice(
        f"practice/refinement/converges{name}",
        f"{text}: by the rule, what does refinement do?",
        tuple(Option(option, hint, option == right) for option, hint in named.items()),
    )


CONVERGES = {
    "float32, condition 3e6": _verdict(
        "",
        "Factors in float32, condition number 3e6",
        SAFE,
        safe="3e6 · 2^-24 is 0.18.",
        maybe="3e6 · 2^-24 is 0.18. By the rule, it is uncertain only above 1.",
        fails="3e6 · 2^-24 is 0.18. By the rule, steps fail only above 30.",
    ),
    "float16, condition 3e4": _verdict(
        "-half",
        "Factors in float16, condition number 3e4",
        MAYBE,
        safe="3e4 · 2^-11 is 15. It may well: above 1 it depends on the matrix, so the rule does not promise it.",
        maybe="3e4 · 2^-11 is 15. `matrix(100, 3e4)` converges, in 36 steps; with another seed, it may not.",
        fails="3e4 · 2^-11 is 15. That is below 30, so it is worth a try: `matrix(100, 3e4)` converges.",
    ),
    "bfloat16, condition 3e4": _verdict(
        "-bfloat16",
        "Factors in bfloat16, condition number 3e4",
        FAILS,
        safe="3e4 · 2^-8 is 120. Bfloat16 has the range of float32, but only 8 bits of precision.",
        maybe="3e4 · 2^-8 is 120. At 39, steps with bfloat16 factors failed on this page.",
        fails="3e4 · 2^-8 is 120. It has float32's range, but what counts here is its precision.",
    ),
    "TF32, condition 1500": _verdict(
        "-tf32",
        "Factors in TF32, condition number 1500",
        SAFE,
        safe="TF32 has the 11 significant bits of float16, and 1500 · 2^-11 is 0.73.",
        maybe="TF32 has the 11 significant bits of float16: 1500 · 2^-11 is 0.73, below 1.",
        fails="TF32 has the 11 significant bits of float16, not 8: 1500 · 2^-11 is 0.73.",
    ),
    "float32, condition 3e10": _verdict(
        "-ill",
        "Factors in float32, condition number 3e10",
        FAILS,
        safe="3e10 · 2^-24 is 1800, far above 1.",
        maybe="3e10 · 2^-24 is 1800. On this page, 60 was already too much.",
        fails="3e10 · 2^-24 is 1800. Here `dsgesv` would fall back to float64.",
    ),
}

ROUNDED, NARROW_X, NARROW_R, REPLACED = (
    "the residual is computed with the rounded matrix",
    "x is kept in float16",
    "the residual is computed in float32",
    "x is replaced by the correction",
)


def _fault(name: str, right: str, **says: str) -> Choice:
    options = {ROUNDED: says["rounded"], NARROW_X: says["x"], NARROW_R: says["r"], REPLACED: says["replaced"]}
    return Choice(
        f"practice/refinement/bugs-{name}",
        f"Loop {name.upper()}: which fault is it?",
        tuple(Option(option, hint, option == right) for option, hint in options.items()),
    )


BUGS = {
    "loop A": _fault(
        "a",
        NARROW_R,
        rounded="Then the loop would solve another system, and the error would stay near that of the first x.",
        x="Float16 has gaps of 1e-3 above 1. This x is better than that.",
        r="It gains some digits and then stops, when the rounding of A x is as large as the residual.",
        replaced="Then x would be lost after one step, and the error above 1.",
    ),
    "loop B": _fault(
        "b",
        REPLACED,
        rounded="Then x would stay within about a percent of the exact solution.",
        x="Float16 keeps three digits. Here every other x has none.",
        r="A float32 residual gains some digits. Here x is lost after one step, and back after two.",
        replaced="A correction is small, so x becomes small. Then everything is missing, and the next correction is "
        "about the first x again.",
    ),
    "loop C": _fault(
        "c",
        ROUNDED,
        rounded="It converges as it should, but to the solution of another system. Its own residual cannot show that.",
        x="Then its residual could not fall to 1e-16, because x would not have the digits for that.",
        r="Then its residual could not fall to 1e-16, and the error would be smaller.",
        replaced="Its residual falls to 1e-16, so the corrections are added.",
    ),
    "loop D": _fault(
        "d",
        NARROW_X,
        rounded="Then the residual that the loop sees would fall to 1e-16.",
        x="An error of 5e-4 is half a gap of float16 between 1 and 2: each new x is rounded to float16.",
        r="With a residual in float32, the error would be smaller, about 1e-5.",
        replaced="Then x would be lost after one step, and the error above 1.",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

REFINED = Task(
    "practice/refinement/refined",
    "Write `refined(solve, a, b, steps)`: the x of the first solve, corrected `steps` times.",
)
