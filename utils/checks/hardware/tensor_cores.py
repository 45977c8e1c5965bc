"""Checks of `hardware/tensor_cores`."""

import functools
import warnings
from collections.abc import Callable, Mapping

import torch

from utils.checks.hardware.tensor_cores_questions import CRITICAL, FLOAT64, IN_TF32, INTENSITY, TF32
from utils.checks.outcome import NOT_ATTEMPTED, Outcome, correct, exercise, not_yet, paper_table
from utils.emulation import float32_matmul as precision

PRODUCTS = "torch.backends.cuda.matmul.fp32_precision"
# What torch.set_float32_matmul_precision does not touch.
OTHERS = [name for name in (*precision.OLD, *precision.NEW) if "cudnn" in name or "mkldnn.conv" in name]

check_intensity = paper_table(
    INTENSITY,
    says="A row, a cube, and a product with one small side. The smallest side limits how often a number is used.",
)
_check_critical_batch = paper_table(
    CRITICAL,
    says="The same layer, two cards, two batches. And a shape for which no batch is large enough.",
)


@functools.wraps(_check_critical_batch)
def check_critical_batch(answer=...) -> Outcome:
    """Judge the rows M; "never" is another word for 0."""
    if isinstance(answer, Mapping):
        answer = {key: 0 if str(rows).strip().lower() == "never" else rows for key, rows in answer.items()}
    return _check_critical_batch(answer)


check_tf32 = paper_table(TF32, says="Ten bits of the fraction, and two ways to lose the other thirteen.")
check_float64 = paper_table(
    FLOAT64,
    says="1, 2 or 64, depending on the card and the shape. The measured 24.59 / 21.75 = 1.13 is nearest to the first: "
    "mostly large products, on a card with one peak for both.",
)


# --- Find the bug -----------------------------------------------------------------------------------------------------


class _Planted(Exception):
    """What the function raises that is to be run."""


@exercise(asks=IN_TF32, takes="in_tf32")
def check_in_tf32(answer) -> Outcome:
    """A function that calls what it is given with TF32 allowed, returns its result, and restores the switches."""
    with precision.restored(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the old switches say that they are old
        asked: list[str] = []
        for before in ("highest", "high", "medium"):
            outcome = _fault(answer, before, asked)
            if outcome is not None:  # an Outcome is true only where the answer is right
                return outcome
    if "medium" in asked:
        return correct(
            'What was set before is set again. "medium" allows TF32 on CUDA; on a CPU it allows bfloat16, which keeps '
            '8 bits and not 11. "high" says what is meant.'
        )
    return correct("TF32 is on inside, the older switch can be read there, and afterwards it is what it was before.")


def _fault(answer: Callable, before: str, told: list[str]) -> Outcome | None:
    """Run it once where `before` is set, and once on a function that raises; say what is wrong, None for nothing.

    What the old switch says inside is added to `told`.
    """
    seen = []

    def watched():
        seen.append((precision.read(PRODUCTS), precision.switches()[precision.OLD_PRODUCTS]))
        return "the result"

    torch.set_float32_matmul_precision(before)
    others = _others()
    result = answer(watched)
    if not seen and (result is None or result is ...):
        return Outcome(NOT_ATTEMPTED, "The function that is given is not called yet.")
    if not seen:
        return not_yet("The function that is given is not called.")
    if len(seen) > 1:
        return not_yet(f"The function was called {len(seen)} times. Call it once.")
    inside, asked = seen[0]
    told.append(asked)
    if inside != "tf32":
        return not_yet(f"While the function runs, {PRODUCTS} is {inside!r}: TF32 is not allowed.")
    if result != "the result":
        return not_yet(f"It returns {result!r} and not what the function returned.")
    if asked.startswith("RuntimeError"):
        return not_yet(
            f'If "{before}" was set before, torch.get_float32_matmul_precision() raises RuntimeError while the '
            "function runs.",
            hint="The given function may call torch.get_float32_matmul_precision(). Allow TF32 with "
            'torch.set_float32_matmul_precision("high"), which sets the newer switch too.',
        )
    if left := _left(before):
        return not_yet(
            f'It was "{before}" before the call, and afterwards it is {left}.',
            hint="Read the switch before you change it, and set it to what you read.",
        )
    if changed := [name for name, value in _others().items() if value != others[name]]:
        return not_yet(
            f"Afterwards {changed[0]} is {_others()[changed[0]]}. It was {others[changed[0]]} before.",
            hint="Only products are asked for. Convolutions have switches of their own: leave them alone.",
        )
    return _fault_of_raising(answer, before)


def _fault_of_raising(answer: Callable, before: str) -> Outcome | None:
    def raising():
        raise _Planted

    torch.set_float32_matmul_precision(before)
    try:
        answer(raising)
    except _Planted:
        if left := _left(before):
            return not_yet(
                f'When the function raises, the switch is {left} afterwards. It was "{before}".',
                hint="Put what has to happen in any case into `finally`.",
            )
        return None
    return not_yet("When the function raises, its exception is swallowed. Let it through.")


def _others() -> dict[str, str]:
    every = precision.switches()
    return {name: every[name] for name in OTHERS}


def _left(before: str) -> str:
    """Say what the old switch tells now; empty where that is `before`."""
    setting = precision.switches()[precision.OLD_PRODUCTS]
    if setting.startswith("RuntimeError"):
        return "a mix of old and new, which cannot be read"
    return "" if setting == before else f'"{setting}"'
