"""Checks of `your_machine`."""

import itertools
import math
import random

from utils.checks.outcome import NOT_ATTEMPTED, Outcome, choice_table, correct, exercise, not_yet, paper
from utils.checks.your_machine_questions import BFLOAT16_NATIVE, LAUNCH, PICKS, VERDICT

check_recipes = choice_table(
    PICKS,
    says="Only B and D multiply a 16-bit format. `f16c` and `avx512_vnni` multiply neither float16 nor bfloat16.",
)
check_rate_of_a_launch = paper(LAUNCH)


def _machine(kind: str, *, capability: str | None = None, flags: tuple[str, ...] = ()) -> dict:
    return {"kind": kind, "capability": capability, "flags": list(flags)}


MACHINES = {  # what `machine.facts()` says of them, and whether they multiply bfloat16
    "a T4": (_machine("cuda", capability="7.5"), False),
    "a V100": (_machine("cuda", capability="7.0"), False),
    "an A100": (_machine("cuda", capability="8.0"), True),
    "an RTX 3090": (_machine("cuda", capability="8.6"), True),
    "an H200": (_machine("cuda", capability="9.0"), True),
    "a B200": (_machine("cuda", capability="10.0"), True),
    "a CPU with AVX2": (_machine("cpu", flags=("f16c",)), False),
    "a CPU with AVX-512 and no bfloat16": (_machine("cpu", flags=("avx512_vnni", "f16c")), False),
    "a CPU with AVX512-FP16 alone": (_machine("cpu", flags=("avx512_fp16", "avx512_vnni", "f16c")), False),
    "a CPU with AVX512-BF16": (_machine("cpu", flags=("avx512_bf16", "avx512_vnni", "f16c")), True),
    "a CPU with AMX": (_machine("cpu", flags=("amx_bf16", "amx_int8", "amx_tile", "f16c")), True),
    "an Arm CPU with bfloat16": (_machine("cpu", flags=("bf16",)), True),
}


@exercise(asks=BFLOAT16_NATIVE, takes="multiplies_bfloat16", seconds=5)
def check_multiplies_bfloat16(answer) -> Outcome:
    """A function from what `machine.facts()` says of a machine to whether it multiplies bfloat16 natively."""
    if all((returned := answer(dict(facts))) is None or returned is ... for facts, _ in MACHINES.values()):
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return True or False.")
    if all(bool(answer(dict(facts))) == _on_the_page(facts) for facts, _ in MACHINES.values()):
        return Outcome(NOT_ATTEMPTED, "It answers as the function on the page does. Find the two bugs.")
    for name, (facts, native) in MACHINES.items():
        if (got := bool(answer(dict(facts)))) != native:
            told = (
                f"capability {facts['capability']!r}" if facts["capability"] else f"flags {', '.join(facts['flags'])}"
            )
            return not_yet(f"It says {got} for {name} ({told}); it should say {native}.", _machine_hint(facts, got))
    return correct(f"All {len(MACHINES)} machines are right: what they report counts, not what happens to run here.")


def _on_the_page(facts: dict) -> bool:
    """What the function with the two bugs says."""
    return facts["kind"] == "cpu" or facts["capability"] >= "8.0"


def _machine_hint(facts: dict, got: bool) -> str:
    if facts["kind"] == "cpu" and got:
        return "Does the answer depend on the flags? A product that runs here says nothing about another machine."
    if facts["kind"] == "cpu":
        return "Look for the part of the name that the flags of all processors with bfloat16 products share."
    if facts["capability"] == "10.0":
        return "How does Python compare two strings?"
    return "Tensor cores multiply bfloat16 from compute capability 8.0 on."


SAME, WORDS = "no difference", ("faster", "slower", "no difference")
TRIALS = 300
MOST_ALARMS = 0.05
SMALL, LARGE = 1.07, 1.2  # a difference that must not be called one, and one that must be seen
NOISE = ((12, 0.1), (20, 0.3), (50, 0.02), (50, 0.1))  # turns, and the noise of equal and nearly equal calls


def draw_turns(turns: int, *, factor: float, noise: float, interrupted: float, seed: int) -> tuple[list, list]:
    """Return the times of two calls, the second `factor` times as long, on a machine that slows down by half."""
    generator = random.Random(seed)

    def draw(mean: float) -> list[float]:
        spikes = (1 + 2 * (generator.random() < interrupted) for _ in range(turns))
        return [
            mean * (1 + turn / turns / 2) * spike * generator.lognormvariate(0, noise)
            for turn, spike in enumerate(spikes)
        ]

    return draw(1.0), draw(factor)


@exercise(asks=VERDICT, takes="verdict", seconds=20)
def check_verdict(answer) -> Outcome:
    """A function from the times of two calls that took turns to "faster", "slower" or "no difference"."""

    def says(turns: int, **how) -> list:
        pairs = (draw_turns(turns, seed=seed, **how) for seed in range(TRIALS))
        return [answer(list(ours), list(theirs)) for ours, theirs in pairs]

    first = answer(*draw_turns(12, factor=1.0, noise=0.1, interrupted=0.0, seed=0))
    if first is None or first is ...:
        return Outcome(NOT_ATTEMPTED, f"The function returns nothing yet; return one of {', '.join(map(repr, WORDS))}.")
    for factor, (turns, noise), spikes in itertools.product((1.0, SMALL, 1 / SMALL), NOISE, (0.0, 0.1)):
        replies = says(turns, factor=factor, noise=noise, interrupted=spikes)
        if strange := [word for word in replies if word not in WORDS]:
            return not_yet(f"It returned {strange[0]!r}; return one of {', '.join(map(repr, WORDS))}.")
        alarms = sum(word != SAME for word in replies) / TRIALS
        bound = MOST_ALARMS + 3 * math.sqrt(MOST_ALARMS * (1 - MOST_ALARMS) / TRIALS)
        if alarms > bound and factor == 1:
            return not_yet(
                f"Two equal calls, {turns} turns: it sees a difference in {alarms:.0%} of {TRIALS} trials.",
                "If the calls are equal, each is equally likely to win a turn. How many wins out of"
                f" {turns} are unlikely?",
            )
        if alarms > bound:
            return not_yet(
                f"A difference of 7 %, which does not interest you, {turns} turns, noise of {noise:.0%}: it sees one in"
                f" {alarms:.0%} of {TRIALS} trials.",
                "The sign test asks whether one call is faster at all, and noise can lift the median ratio above 1.1."
                " When does the first call win a turn by more than 10 %? Compare the two times of the same turn: both"
                " grow during the measurement.",
            )
    for turns, spikes in ((12, 0.0), (20, 0.06), (50, 0.1)):
        for factor, wanted in ((LARGE, "faster"), (1 / LARGE, "slower")):
            replies = says(turns, factor=factor, noise=0.03, interrupted=spikes)
            against = "slower" if wanted == "faster" else "faster"
            if replies.count(against) > TRIALS // 20:
                return not_yet(
                    f"It says {against!r} where the first call is the {wanted} one: its times are"
                    f" {1 / factor:.2f} times the other's."
                )
            if replies.count(wanted) < 0.8 * TRIALS:
                return not_yet(
                    f"A real difference of 20 %, {turns} turns: seen in only {replies.count(wanted) / TRIALS:.0%} of"
                    f" {TRIALS} trials.",
                    _missed_hint(turns),
                )
    if answer([1.0] * 12, [1.0] * 12) != SAME:
        return not_yet("Twelve times of 1.0 for each call: that is no difference.")
    return correct("It finds a difference of 20 % on a machine that slows down, and rarely sees one that is not there.")


def _missed_hint(turns: int) -> str:
    if turns == 12:
        return (
            "The machine slows down during the measurement, and is interrupted now and then. Compare the two times of"
            " the same turn with each other."
        )
    return (
        f"It passed with 12 turns. With {turns}, an interruption can cost the faster call several turns, but as many"
        " losses are still unlikely between equal calls: add up the ways to lose 0, 1, 2, ... turns."
    )
