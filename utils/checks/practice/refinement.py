"""Checks of `practice/refinement`."""

from collections.abc import Callable

import numpy as np

from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    choice_table,
    correct,
    exercise,
    not_yet,
    paper_table,
)
from utils.checks.practice.refinement_questions import BUGS, CONVERGES, REFINED, STEPS
from utils.emulation.narrow_lu import factorize
from utils.emulation.refinement import matrix, product, residual_of
from utils.formats import FLOAT16, FLOAT32
from utils.rounding import quantize

SIZE, CONDITION, STEPS_MADE = 40, 100.0, (3, 0, 1, 8)  # the first tells the foreseen mistakes apart
SAME = 0.01  # of the error that is left: dividing r by its size moves x by up to 0.001 of it, as solves are in float32

check_steps = paper_table(
    STEPS,
    says="The first error is that of the factors too: good ones start closer, and gain more per step.",
)
check_converges = choice_table(
    CONVERGES,
    says="One product decides: κ times the unit roundoff of the factors. Their range plays no part in it.",
)
check_bugs = choice_table(
    BUGS,
    says="The error gives three of them away, and the fourth has a residual that is too small for its error.",
)

Solve = Callable[[np.ndarray], np.ndarray]


@exercise(asks=REFINED, takes="refined")
def check_refined(answer) -> Outcome:
    """A function (solve, a, b, steps) -> x; `solve` gives what float16 factors of a say for a right-hand side."""
    a, exact = matrix(SIZE, CONDITION, seed=7), np.linspace(1, 2, SIZE)
    b, calls = product(a, exact), []
    factors = factorize(a, FLOAT16)

    def solve(r) -> np.ndarray:
        calls.append(np.array(r, float))
        return factors.solve(np.asarray(r, np.float64))

    for steps in STEPS_MADE:
        calls.clear()
        theirs = a.copy(), b.copy()
        returned = answer(solve, *theirs, steps)
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return x.")
        solution = np.asarray(returned, np.float64)
        if solution.shape != exact.shape:
            return not_yet(f"x has the shape {solution.shape}; there are {SIZE} unknowns.")
        if not _near(solution, refined(factors.solve, a, b, steps), exact):
            return not_yet(_fault(solution, exact, factors.solve, a, b, steps, calls))
        if any((mine != own).any() for mine, own in zip((a, b), theirs, strict=True)):
            return not_yet("x is right, but the function has changed a or b. The caller may still need them.")
        if len(calls) > steps + 1:
            return not_yet(f"x is right, but it took {len(calls)} solves for {steps} steps; {steps + 1} are enough.")
        if len(calls) <= steps:
            return not_yet(f"x is right, but `solve` was called {len(calls)} times; {steps} steps take {steps + 1}.")
    return correct("Nine solves with factors of three digits, and x has fourteen correct digits.")


def _near(solution: np.ndarray, loops: np.ndarray, exact: np.ndarray) -> bool:
    return bool(np.abs(solution - loops).max() <= max(1e-12, SAME * np.abs(loops - exact).max()))


def refined(
    solve: Solve,
    a: np.ndarray,
    b: np.ndarray,
    steps: int,
    *,
    residual: Callable[..., np.ndarray] = residual_of,
    sign: float = 1.0,
    added: bool = True,
    kept: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> np.ndarray:
    """Refine; with a fault of choice."""
    x = kept(solve(b))
    for _ in range(steps):
        correction = sign * solve(residual(a, x, b))
        x = kept(x + correction) if added else correction
    return x


def _in_float32(a: np.ndarray, x: np.ndarray, b: np.ndarray) -> np.ndarray:
    return residual_of(a, x, b, fmt=FLOAT32)


def _of_rounded(a: np.ndarray, x: np.ndarray, b: np.ndarray) -> np.ndarray:
    return residual_of(quantize(a, FLOAT16), x, b)


def _subtracted_again(solve: Solve, a: np.ndarray, b: np.ndarray, steps: int) -> np.ndarray:
    """Refine with a right-hand side that becomes the residual, and from which a x is subtracted all the same."""
    x, left = solve(b), b
    for _ in range(steps):
        left = left - a @ x
        x = x + solve(left)
    return x


def _of_the_first_x(solve: Solve, a: np.ndarray, b: np.ndarray, steps: int) -> np.ndarray:
    x = solve(b)
    return x + steps * solve(residual_of(a, x, b))


def _is_float16(values: np.ndarray) -> bool:
    return bool((values == values.astype(np.float16)).all())


def _fault(
    solution: np.ndarray, exact: np.ndarray, solve: Solve, a: np.ndarray, b: np.ndarray, steps: int, calls: list
) -> str:
    """Say what is wrong with an x, after these right-hand sides of the solves."""
    after = f"After {steps} step{'' if steps == 1 else 's'}"
    if not np.isfinite(solution).all():
        return f"{after} x is not finite."
    if not calls:
        return "`solve` was never called. It gives the first x, and each correction."
    foreseen = [
        (refined(solve, a, b, steps, sign=-1.0), "The correction goes the wrong way: the residual is b - A x, added."),
        (refined(solve, a, b, steps, added=False), "The correction has taken the place of x. Add it to x."),
        (refined(solve, a, b, steps + 1), "One step too many: the first solve is no step."),
        (refined(solve, a, b, steps, residual=_of_rounded), "The residual is that of the rounded matrix. Take a."),
        (
            _subtracted_again(solve, a, b, steps),
            "b has become the residual: subtract a x from the original b each time.",
        ),
        (_of_the_first_x(solve, a, b, steps), "The residual is still that of the first x: compute it in each step."),
    ]
    if steps:
        foreseen[2:2] = [(refined(solve, a, b, steps - 1), "One step too few: `steps` corrections after the solve.")]
        foreseen[:0] = [(solve(b), "This is the x of the first solve: nothing was added.")]
    for value, hint in foreseen:
        if _near(solution, value, exact):
            return hint
    if (solution == solution.astype(np.float32)).all():
        return "x is kept in float32 or less. The corrections at the end are too small for that: keep it in float64."
    if len(calls) > 1 and _is_float16(calls[-1]):
        return "The residual is rounded to float16 before the solve, and becomes 0 there. Give `solve` the float64 one."
    if len(calls) <= steps:
        times = "once" if len(calls) == 1 else f"{len(calls)} times"
        return f"`solve` was called {times}; {steps} steps take {steps + 1}."
    # Not compared to the last digit: a product in float32 may be added in any order.
    good, rough = refined(solve, a, b, steps), refined(solve, a, b, steps, residual=_in_float32)
    off, expected = np.abs(solution - good).max(), np.abs(rough - good).max()
    if steps > 1 and expected / 30 <= off <= 30 * expected:
        return "x is right to float32, and no further: compute b - A x in float64."
    return f"{after} x is off by {off:.1e} from what the loop gives."


# --- Four broken loops ------------------------------------------------------------------------------------------------


def broken_loops(steps: int = 5) -> dict[str, list[tuple[float, float]]]:
    """Return for each loop of `BUGS` the largest error of x and the largest residual that the loop sees, by step."""
    a, exact = matrix(SIZE, CONDITION, seed=7), np.linspace(1, 2, SIZE)
    b = product(a, exact)
    factors = factorize(a, FLOAT16)
    faults = {
        "loop A": {"residual": _in_float32},
        "loop B": {"added": False},
        "loop C": {"residual": _of_rounded},
        "loop D": {"kept": lambda x: quantize(x, FLOAT16)},
    }
    counts = {}
    for name, fault in faults.items():
        seen = fault.get("residual", residual_of)
        xs = [refined(factors.solve, a, b, count, **fault) for count in range(steps + 1)]
        counts[name] = [(float(np.abs(x - exact).max()), float(np.abs(seen(a, x, b)).max())) for x in xs]
    return counts
