"""What `practice/refinement` asks: when steps shrink an error, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

P_AGAIN = Choice(
    "practice/refinement/predict-again",
    "The first x has two right digits. Now compute in float64 what is missing, b - A x, give that to the same float16 "
    "factors, and add what they say to x. Do so six times. How many digits of x are right then?",
    (
        Option(
            "Two: the same factors make the same mistake again",
            "They are wrong by one percent again. But by one percent of what?",
        ),
        Option(
            "Three or four: that is what float16 holds",
            "The factors are float16. x is not, and neither is what is missing.",
        ),
        Option(
            "Seven: the factors were computed with float32 sums",
            "Their sums are float32, but their numbers were rounded to float16. Neither is the limit here.",
        ),
        Option(
            "About fourteen",
            "Each step adds two digits and more, until float64 has no more of them.",
            True,
        ),
    ),
    predict=True,
)
P_RESIDUAL = Choice(
    "practice/refinement/predict-residual",
    "Three precisions are in these lines: that of the factors, that of b - A x, and that of x. Float16 factors did no "
    "harm. Now compute b - A x in float32, and leave the rest as it was. How many digits of x are right in the end?",
    (
        Option(
            "Fourteen, in more steps: an error of the residual is repaired in the next step",
            "The next step sees the same wrong residual again. Nothing else tells it what is missing.",
        ),
        Option(
            "Seven, as many as float32 holds",
            "The residual knows A x to seven digits. From there to x the condition takes some more.",
        ),
        Option(
            "Five or so",
            "Float32 knows A x to seven digits, and this matrix, of condition 100, takes up to two of them.",
            True,
        ),
        Option(
            "Two, as in the first x",
            "The first steps still gain: what is missing is large then, and seven digits of A x show it.",
        ),
    ),
    predict=True,
)
P_EIGHT = Choice(
    "practice/refinement/predict-eight",
    "The condition of the second system, of layer 1, is about 900, and a number in E4M3 is off by up to 1/16. What can "
    "be done with factors in E4M3?",
    (
        Option(
            "Nothing: 900 times 1/16 is far above 1",
            "So a step makes things worse. That is true of steps that do what the factors say.",
        ),
        Option(
            "Refinement works, in some thirty steps",
            "It did, where the condition was 44. Here a step makes the error larger.",
        ),
        Option(
            "Refinement fails, and GMRES with the same factors finds every digit",
            "As directions to search in they are good enough.",
            True,
        ),
        Option(
            "Nothing at all: E4M3 ends at 448, and the entries of this matrix are larger",
            "Scale it. Rows and columns may be multiplied by powers of two.",
        ),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _steps(name: str, text: str, answer: int, *, says: str, wrong: dict[str, str]) -> Number:
    return Number(
        f"practice/refinement/steps{name}",
        f"{text}. After how many steps is it at most 1e-12?",
        answer=str(answer),
        says=says,
        wrong=wrong,
        otherwise="After k steps the error is the first one times the factor to the power k. Take logarithms.",
        hints=("first error · factor^k ≤ 1e-12", "k ≥ log(1e-12 / first error) / log(factor), and k is whole."),
        unit="steps",
    )


STEPS = {
    "first error 1e-2, factor 5e-3": _steps(
        "",
        "The first x is wrong by 1e-2, and a step multiplies the error by 5e-3",
        5,
        says="Four steps leave 6e-12, five 3e-14.",
        wrong={
            "4": "Four steps leave 6e-12. Round up.",
            "4.35": "A step is made or not: round up.",
            "6": "6 would be right if nothing was known at first: the first x has two digits already.",
        },
    ),
    "first error 1e-5, factor 1e-4": _steps(
        "-float32",
        "The first x is wrong by 1e-5, and a step multiplies the error by 1e-4",
        2,
        says="1e-5, 1e-9, 1e-13: two steps cost next to nothing beside the factors.",
        wrong={
            "1": "One step leaves 1e-9.",
            "3": "Count the steps after the first x: 1e-5, then 1e-9, then 1e-13.",
            "1.75": "A step is made or not: round up.",
        },
    ),
    "first error 1e-2, factor 0.2": _steps(
        "-slow",
        "The first x is wrong by 1e-2, and a step multiplies the error by 0.2",
        15,
        says="Each step gains 0.7 digits, and ten are to be gained.",
        wrong={
            "14": "Fourteen steps leave 1.6e-12. Round up.",
            "18": "18 would be right if nothing was known at first: the first x has two digits already.",
            "10": "A digit a step would take a factor of 0.1.",
        },
    ),
}

SAFE, MAYBE, FAILS = "converges", "may converge", "fails"


def _verdict(name: str, text: str, right: str, **says: str) -> Choice:
    named = {SAFE: says["safe"], MAYBE: says["maybe"], FAILS: says["fails"]}
    return Choice(
        f"practice/refinement/converges{name}",
        f"{text}: what do steps with these factors do?",
        tuple(Option(option, hint, option == right) for option, hint in named.items()),
    )


CONVERGES = {
    "float32, condition 1e6": _verdict(
        "",
        "Factors in float32, condition 1e6",
        SAFE,
        safe="1e6 · 2^-24 is 0.06.",
        maybe="1e6 · 2^-24 is 0.06. There is no maybe so far below 1.",
        fails="1e6 · 2^-24 is 0.06, well below 1.",
    ),
    "float16, condition 1e4": _verdict(
        "-half",
        "Factors in float16, condition 1e4",
        MAYBE,
        safe="1e4 · 2^-11 is 4.9: above 1 nothing is promised.",
        maybe="1e4 · 2^-11 is 4.9: the worst case would fail, and ours took some fifteen steps.",
        fails="1e4 · 2^-11 is 4.9. That is above 1, where nothing is promised. Ours converged there.",
    ),
    "bfloat16, condition 1e4": _verdict(
        "-bfloat16",
        "Factors in bfloat16, condition 1e4",
        FAILS,
        safe="1e4 · 2^-8 is 39. Bfloat16 has the range of float32, and 8 bits.",
        maybe="1e4 · 2^-8 is 39. At 39 ours failed.",
        fails="1e4 · 2^-8 is 39. Its range is that of float32, and range is not asked for here.",
    ),
    "TF32, condition 1e3": _verdict(
        "-tf32",
        "Factors in TF32, condition 1e3",
        SAFE,
        safe="TF32 has the 11 bits of float16: 1e3 · 2^-11 is 0.5.",
        maybe="TF32 has the 11 significant bits of float16: 1e3 · 2^-11 is 0.5, below 1.",
        fails="TF32 has the 11 significant bits of float16, not 8: 1e3 · 2^-11 is 0.5.",
    ),
    "float32, condition 1e10": _verdict(
        "-ill",
        "Factors in float32, condition 1e10",
        FAILS,
        safe="1e10 · 2^-24 is 600, far above 1.",
        maybe="1e10 · 2^-24 is 600. At 60 ours failed.",
        fails="1e10 · 2^-24 is 600: here dsgesv turns to float64.",
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
        rounded="Then the loop would solve another system, and be wrong by about as much as the first x.",
        x="Float16 has a gap of 1e-3 above 1. This x is better than that.",
        r="Better than the first x by some digits, and then no more: what is missing drowns in the rounding of A x.",
        replaced="Then the error would not fall at all.",
    ),
    "loop B": _fault(
        "b",
        REPLACED,
        rounded="Then x would stay near the right one, within a percent or so.",
        x="Float16 keeps three digits. Here not one is left.",
        r="A float32 residual gains some digits. Here x is lost after one step, and back after two.",
        replaced="What is missing is small, so x becomes small; then all is missing, and x is about the first x again.",
    ),
    "loop C": _fault(
        "c",
        ROUNDED,
        rounded="It converges as it should: to the solution of another system. Its own residual cannot tell.",
        x="Then its residual could not fall to 1e-16: x would not have the digits for that.",
        r="Then its residual could not fall to 1e-16, and the error would be smaller.",
        replaced="Its residual falls to 1e-16, so the corrections are added.",
    ),
    "loop D": _fault(
        "d",
        NARROW_X,
        rounded="Then the residual that the loop sees would fall to 1e-16.",
        x="An error of 5e-4 is half a gap of float16 between 1 and 2: each new x is rounded to it.",
        r="A residual in float32 gets further: to an error of some 1e-5.",
        replaced="Then there would be no error as small as this.",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

REFINED = Task(
    "practice/refinement/refined",
    "Write `refined(solve, a, b, steps)`: the x of the first solve, corrected `steps` times.",
)
