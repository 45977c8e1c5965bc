"""Checks of `eight_bits/fp8_training`."""

import statistics
from dataclasses import replace

from torch import nn

from utils.checks.eight_bits.fp8_training_questions import BREAK_EVEN, EXCLUDE, FP8_LM, RULE_OUT, SEEDS
from utils.checks.outcome import NOT_ATTEMPTED, Outcome, correct, exercise, not_yet, paper, paper_table
from utils.runs.seeds_needed import critical_t
from utils.training.float8_linear import convert
from utils.workloads import language_task, models

check_seeds = paper(SEEDS)
check_break_even = paper(BREAK_EVEN)
check_fp8_lm = paper_table(
    FP8_LM,
    says="Both counts are right, and so are both speeds. They differ in their tensors, and in their batch.",
)

# --- Ruling out -------------------------------------------------------------------------------------------------------

FIVE = (-1.3, -0.4, 0.1, 0.5, 1.1)  # a shape of five differences; `_differences` gives it a mean and a standard error
BOUND = 0.25
INSIDE = "mean - t * error and mean + t * error both have to lie inside of -bound ... bound; t for 95 % on one side."
# mean, standard error, bound, verdict, and what it says of a function that has another one; the grossest error first
CASES = (
    (
        0.0,
        0.5,
        BOUND,
        False,
        "Five differences with mean 0 and a standard error of 0.5 rule nothing out, and your function says otherwise:"
        " their interval is four times as wide as the bound. That none was found is no proof that there is none.",
    ),
    (
        0.1,
        0.01,
        BOUND,
        True,
        "A mean of 0.1 with a standard error of 0.01 lies below 0.25 for certain. It also differs from 0, and that is"
        " another question: a small difference may be real.",
    ),
    (0.4, 0.01, BOUND, False, "A mean of 0.4 with a standard error of 0.01 lies beyond the bound of 0.25."),
    (
        -0.4,
        0.01,
        BOUND,
        False,
        "A mean of -0.4 is as far away as one of 0.4. Both ends of the interval have to lie inside of the bounds.",
    ),
    (
        0.0,
        0.1,
        0.35,
        True,
        "Five differences with mean 0 and a standard error of 0.1 stay below 0.35: 2.13 * 0.1. The mean of n varies"
        " less than one of them, by the root of n.",
    ),
    (
        0.0,
        0.1,
        BOUND,
        True,
        "Each of the two bounds is tested on its own side at 5 %, so take t for 95 %, which is the interval of 90 %:"
        " `critical(n - 1, 0.05)`.",
    ),
    (
        0.0,
        0.125,
        BOUND,
        False,
        "Five differences with a standard error of 0.125: 2.13 of it are 0.27, more than the bound. Take Student's t"
        " for n - 1 degrees of freedom, and the spread of a sample, `statistics.stdev`.",
    ),
)


def _differences(mean: float, error: float) -> list[float]:
    """Return five differences with this mean and this standard error of the mean."""
    middle, spread = statistics.fmean(FIVE), statistics.stdev(FIVE)
    return [mean + (value - middle) / spread * error * len(FIVE) ** 0.5 for value in FIVE]


@exercise(asks=RULE_OUT, takes="rules_out", seconds=5)
def check_rules_out(answer) -> Outcome:
    """A function (by_seed, bound) -> bool: whether the interval of 90 % lies within plus and minus the bound."""
    for mean, error, bound, wanted, says in CASES:
        returned = answer(_differences(mean, error), bound)
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return True or False.")
        if str(returned) not in ("True", "False"):
            return not_yet(f"It returns {returned!r}; return True or False.")
        if bool(returned) != wanted:
            return not_yet(says, INSIDE)
    if bool(answer([0.1, -0.1], 0.3)):
        return not_yet(
            f"Two pairs know their spread badly: Student's t is {critical_t(1, 0.05):.1f} there, and the interval"
            " wider than this bound. 1.645 is for many pairs.",
            INSIDE,
        )
    return correct("So is a claim of equality tested: it needs runs, and too few of them never pass.")


# --- What stays in 16 bits --------------------------------------------------------------------------------------------

BLOCKS = (3, 4)
NAMES = "A block has a dotted name, model.layers.0, and its name stands for all layers in it."


@exercise(asks=EXCLUDE, takes="excluded")
def check_excluded(answer) -> Outcome:
    """A function: number of blocks -> what to hand to `convert(exclude=...)`; head, first and last block stay."""
    for blocks in BLOCKS:
        if (returned := answer(blocks)) is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return a tuple of names.")
        if fault := _fault(returned, blocks):
            return not_yet(fault, NAMES)
    return correct("Only the blocks in the middle multiply in FP8. The widget says what that costs in time.")


def _fault(names: object, blocks: int) -> str:
    """Say what `convert` makes of the names that it should not; empty where it leaves what was asked for."""
    if (
        isinstance(names, str)
        or not isinstance(names, tuple | list | set)
        or not all(isinstance(n, str) for n in names)
    ):
        return f"It returns {names!r}; return a tuple of names, such as ('lm_head',)."
    converted, left = _converted(tuple(names), blocks)
    kept = {f"model.layers.{block}" for block in (0, blocks - 1)}
    if "lm_head" in converted:
        return "The head is in FP8: your `exclude` takes the place of the usual one, so the head has to be in it."
    for name in converted:
        if name.rsplit(".", 2)[0] in kept:
            return f"Of {blocks} blocks {name} is in FP8. Blocks are counted from 0 to {blocks - 1}."
    for name in left:
        if name != "lm_head" and name.rsplit(".", 2)[0] not in kept:
            return f"{name} stays in 16 bits too, and it is in neither of the two blocks."
    return ""


def _converted(names: tuple[str, ...], blocks: int) -> tuple[list[str], list[str]]:
    """Convert a small LLaMA; return the layers in FP8 and those that were left."""
    shape = replace(language_task.SMALL.shape.widened(32), heads=2, groups=2, vocabulary=64, layers=blocks)
    model = models.build_llama(shape, seed=0)
    linear = [name for name, layer in model.named_modules() if isinstance(layer, nn.Linear)]
    try:
        converted = [*convert(model, "fp8-current", exclude=names).converted]
    except ValueError:  # nothing is left to convert
        converted = []
    return converted, [name for name in linear if name not in converted]
