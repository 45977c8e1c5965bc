"""Checks of `eight_bits/fp8_training`."""

import statistics

from torch import nn

from utils.checks.eight_bits.fp8_training_questions import BREAK_EVEN, FILTER, FP8_LM, RULE_OUT, SEEDS
from utils.checks.outcome import NOT_ATTEMPTED, Outcome, correct, exercise, not_yet, paper, paper_table
from utils.runs.seeds_needed import critical_t

check_seeds = paper(SEEDS)
check_break_even = paper(BREAK_EVEN)
check_fp8_lm = paper_table(
    FP8_LM,
    says="Both counts are right. They count different tensors, and the two speeds belong to different batches.",
)

# --- Ruling out -------------------------------------------------------------------------------------------------------

FIVE = (-1.3, -0.4, 0.1, 0.5, 1.1)  # a shape of five differences; `_differences` gives it a mean and a standard error
EQUAL_WAYS = (-0.25, 0.25)
NOTHING = "The function returns nothing yet; return True or False."
INSIDE = "mean - t * error and mean + t * error must both lie between lower and upper; t for 95 % on one side."
# mean, standard error, bounds, verdict, and what it says of a function that has another one; the grossest error first
CASES = (
    (
        0.0,
        0.5,
        EQUAL_WAYS,
        False,
        "Five differences with mean 0 and a standard error of 0.5 rule nothing out: their interval ends at -1.07 and"
        " 1.07. Finding no difference is no proof that there is none.",
    ),
    (
        0.1,
        0.01,
        EQUAL_WAYS,
        True,
        "A mean of 0.1 with a standard error of 0.01 lies well below 0.25. It also differs from 0, but that is another"
        " question: a small difference may be real.",
    ),
    (0.4, 0.01, EQUAL_WAYS, False, "A mean of 0.4 with a standard error of 0.01 lies beyond 0.25."),
    (
        -0.4,
        0.01,
        EQUAL_WAYS,
        False,
        "A mean of -0.4 is as far away as one of 0.4. Both ends of the interval must lie between the bounds.",
    ),
    (
        -0.6,
        0.05,
        (-1.0, 0.25),
        True,
        "A mean of -0.6 with a standard error of 0.05 lies well between -1 and 0.25. Compare each end with its own"
        " bound: how far the mean is from 0 does not matter.",
    ),
    (
        0.3,
        0.01,
        (-1.0, 0.25),
        False,
        "A mean of 0.3 with a standard error of 0.01 is above an upper bound of 0.25, however low the lower bound is.",
    ),
    (
        -0.1,
        0.1,
        (-0.25, 1.0),
        False,
        "Five differences with mean -0.1 and a standard error of 0.1: the mean is above -0.25, but its interval begins"
        " at -0.31. Both ends have to be inside, each with its own bound: here its lower end is not.",
    ),
    (
        0.1,
        0.1,
        (-1.0, 0.25),
        False,
        "Five differences with mean 0.1 and a standard error of 0.1: the mean is below 0.25, but its interval ends at"
        " 0.31. Both ends have to be inside, each with its own bound: here its upper end is not.",
    ),
    (
        0.2,
        0.01,
        (0.3, 0.5),
        False,
        "A mean of 0.2 does not lie between 0.3 and 0.5. Both bounds may have the same sign: take them as they are.",
    ),
    (
        -0.2,
        0.01,
        (-0.5, -0.3),
        False,
        "A mean of -0.2 does not lie between -0.5 and -0.3. Both bounds may have the same sign: take them as they are.",
    ),
    (
        0.4,
        0.01,
        (0.3, 0.5),
        True,
        "A mean of 0.4 with a standard error of 0.01 lies well between 0.3 and 0.5. Both bounds may have the same sign:"
        " take them as they are.",
    ),
    (
        0.0,
        0.1,
        (-0.35, 0.35),
        True,
        "Five differences with mean 0 and a standard error of 0.1 stay below 0.35: 2.13 * 0.1. The mean of n varies"
        " less than one of them, by the root of n.",
    ),
    (
        0.0,
        0.085,
        EQUAL_WAYS,
        True,
        "Five differences with mean 0 and a standard error of 0.085 have an interval from -0.18 to 0.18. One of them"
        " lies below -0.25, but the question is where their true mean lies, not each difference.",
    ),
    (
        0.0,
        0.1,
        EQUAL_WAYS,
        True,
        "Each of the two bounds is tested on its own side at 5 %, so take t for 95 %, which is the interval of 90 %:"
        " `seeds_needed.critical_t(n - 1, 0.05)`.",
    ),
    (
        0.0,
        0.125,
        EQUAL_WAYS,
        False,
        "Five differences with a standard error of 0.125: 2.13 of it are 0.27, more than the bound. Take Student's t"
        " for n - 1 degrees of freedom, and the spread of a sample, `statistics.stdev`.",
    ),
)


def _differences(mean: float, error: float) -> list[float]:
    """Return five differences with this mean and this standard error of the mean."""
    middle, spread = statistics.fmean(FIVE), statistics.stdev(FIVE)
    return [mean + (value - middle) / spread * error * len(FIVE) ** 0.5 for value in FIVE]


def _is_nothing(returned: object) -> bool:
    return returned is None or returned is ...


@exercise(asks=RULE_OUT, takes="rules_out", seconds=5)
def check_rules_out(answer) -> Outcome:
    """A function (by_seed, lower, upper) -> bool: whether the interval of 90 % lies between the two bounds."""
    for mean, error, bounds, wanted, says in CASES:
        returned = answer(_differences(mean, error), *bounds)
        if _is_nothing(returned):
            if all(_is_nothing(answer(_differences(*case[:2]), *case[2])) for case in CASES):
                return Outcome(NOT_ATTEMPTED, NOTHING)
            ends = f"{bounds[0]:g} and {bounds[1]:g}"
            return not_yet(
                f"For five differences with mean {mean:g}, a standard error of {error:g} and the bounds {ends} it"
                f" returns {returned}. Return True or False in every case."
            )
        if str(returned) not in ("True", "False"):
            return not_yet(f"It returns {returned!r}; return True or False.")
        if bool(returned) != wanted:
            return not_yet(says, INSIDE)
    if bool(answer([0.0, 0.0, 0.0, 0.0, 0.5], *EQUAL_WAYS)):
        return not_yet(
            "Four differences of 0 and one of 0.5 have a mean of 0.1 and a standard error of 0.1: the interval ends at"
            " 0.31. Take the mean: the median is 0 here.",
            INSIDE,
        )
    if not bool(answer([0.01, -0.01], *EQUAL_WAYS)):
        return not_yet(
            "Two differences are enough if they lie as close together as 0.01 and -0.01: their interval ends at"
            f" {critical_t(1, 0.05) * 0.01:.2f}.",
            INSIDE,
        )
    if bool(answer([0.1, -0.1], -0.3, 0.3)):
        return not_yet(
            f"Two pairs say little about their spread: Student's t is {critical_t(1, 0.05):.1f} there, so the interval"
            " is wider than this bound. 1.645 is for many pairs.",
            INSIDE,
        )
    if bool(answer([0.1], *EQUAL_WAYS)):
        return not_yet("One difference says nothing about the spread, so it rules nothing out: return False.")
    return correct("This is how a claim of equality is tested: it needs runs, and too few of them never pass.")


# --- What stays in 16 bits --------------------------------------------------------------------------------------------

BLOCKS, ENDS = 24, (0, 1, 22, 23)
# width, outputs of k_proj and v_proj, width of the MLP: in the first, k_proj and v_proj do not fit, in the second all
# layers do, in the third none does, although the sum of 24 and 40 is a multiple of 16
MODELS = ((256, 40, 688), (256, 64, 688), (24, 40, 64))


@exercise(asks=FILTER, takes="in_fp8")
def check_in_fp8(answer) -> Outcome:
    """A function (layer, name) -> bool, as torchao's `module_filter_fn`: the layers between the ends of a LLaMA."""
    layers = [layer for sizes in MODELS for layer in _layers(*sizes).items()]
    fault, nothing = "", []
    for name, layer in layers:
        try:
            returned = answer(layer, name)
        except TimeoutError:
            raise
        except Exception as error:  # a learner's mistake, whatever it is
            return not_yet(f"For {name} it stops with {type(error).__name__}: {error}")
        if _is_nothing(returned):
            nothing.append(name)
        elif str(returned) not in ("True", "False"):
            return not_yet(f"For {name} it returns {returned!r}; return True or False.")
        else:
            fault = fault or _fault(name, layer, bool(returned))
    if len(nothing) == len(layers):
        return Outcome(NOT_ATTEMPTED, NOTHING)
    if fault:
        return not_yet(fault)
    if nothing:
        return not_yet(f"For {nothing[0]} it returns None. Return True or False for every layer.")
    return correct("`convert_to_float8_training(model, module_filter_fn=in_fp8)` takes it as it is.")


def _layers(width: int, keys: int, inner: int) -> dict[str, nn.Linear]:
    """Return the linear layers of a LLaMA by name, without memory for their weights."""
    sizes = {  # inputs, outputs
        **{"self_attn.q_proj": (width, width), "self_attn.k_proj": (width, keys), "self_attn.v_proj": (width, keys)},
        **{"self_attn.o_proj": (width, width), "mlp.gate_proj": (width, inner), "mlp.up_proj": (width, inner)},
        "mlp.down_proj": (inner, width),
    }
    named = {f"model.layers.{block}.{name}": size for block in range(BLOCKS) for name, size in sizes.items()}
    named["lm_head"] = (width, 1024)
    return {name: nn.Linear(*size, bias=False, device="meta") for name, size in named.items()}


def _fault(name: str, layer: nn.Linear, converted: bool) -> str:
    """Say what is wrong with a layer's fate; empty where nothing is."""
    if name == "lm_head":
        return "lm_head goes to FP8. It is the head: its outputs are the logits." if converted else ""
    block = int(name.split(".")[2])
    odd = [
        f"{size} {kind}" for kind, size in (("inputs", layer.in_features), ("outputs", layer.out_features)) if size % 16
    ]
    if converted and block in ENDS:
        return f"{name} goes to FP8, but block {block} is one of the first two or the last two. Blocks count from 0."
    if converted and odd:
        return f"{name} goes to FP8, but it has {' and '.join(odd)}, and a GPU's product needs a multiple of 16."
    if not converted and block not in ENDS and not odd:
        if block >= 10:
            return (
                f"{name} stays wide. Its name begins like that of block {str(block)[0]}, but it is block {block}:"
                " compare whole parts of the name."
            )
        sizes = f"{layer.in_features} → {layer.out_features}"
        return f"{name} ({sizes}) stays wide, but block {block} is in the middle, and both sizes are multiples of 16."
    return ""
