"""Checks of `your_machine`."""

import functools
from collections.abc import Mapping

from utils.checks.outcome import NOT_ATTEMPTED, Outcome, as_number, correct, exercise, not_yet
from utils.checks.your_machine_questions import BFLOAT16_NATIVE, NOT_SCALED, PICKS, RATE, THREE_CELLS, TRUE_WEIGHTS
from utils.training.recipes import LIGHTNING_NAMES

STATUSES = ("native", "emulated", "runs", "error")


@functools.cache
def _live_grid() -> dict[tuple[str, str], tuple[str, str]]:
    """Status and reason by (dtype, operation), measured once in this kernel."""
    from utils import machine

    return {(cell.dtype, cell.operation): (cell.status, cell.how) for cell in machine.capabilities()}


@exercise(asks=THREE_CELLS)
def check_three_cells(answer) -> Outcome:
    """A dict from (dtype, operation) to a status, held against the grid of this machine."""
    if not isinstance(answer, Mapping) or not answer:
        return not_yet("Give a dict with a status for each cell; a key looks like ('bfloat16', 'matmul').")
    for word in answer.values():
        if word not in STATUSES:
            return not_yet(f"{word!r} is not one of {', '.join(STATUSES)}.")
    grid = _live_grid()
    for cell in answer:
        if cell not in grid:
            return not_yet(f"{cell} is not a cell of the grid; a key looks like ('bfloat16', 'matmul').")
    right = [cell for cell, word in answer.items() if grid[cell][0] == word]
    if len(right) == len(answer):
        return correct("All of them. Now look at the grid for the other cells.")
    cell = next(cell for cell in answer if cell not in right)
    hint = _cell_hint(answer[cell], grid[cell][0], operation=cell[1])
    return not_yet(f"{len(right)} of {len(answer)} right. {cell[0]} {cell[1]}: {hint}")


def _cell_hint(returned: str, status: str, *, operation: str) -> str:
    if status == "error":
        return "it does not run here at all. Storing numbers in a format takes less than computing with them."
    if returned == "error":
        return "it runs. torch has a way even where the hardware has none."
    if status == "emulated" and operation in ("matmul", "autocast linear", "conv2d"):
        return "it runs, but no instruction of this machine multiplies that format. What does torch do instead?"
    if status == "emulated":
        return "it runs, but in float32, and the result is rounded. Fast products do not make every operation native."
    if status == "native":
        return "this machine has an instruction for it. Ask it, as the section In code does."
    return "it runs, and nothing tells how."


@exercise(asks=PICKS.values())
def check_pick_recipes(answer) -> Outcome:
    """A dict with a recipe for "T4", "A100", "H200" and "CPU", and under "loss scaler" the cards that need one."""
    wanted = {"T4": "16-mixed", "A100": "bf16-mixed", "H200": "bf16-mixed", "CPU": "32-true"}
    if not isinstance(answer, Mapping):
        return not_yet(f'Give a dict with a recipe for each of {", ".join(wanted)}, and with "loss scaler".')
    missing = [name for name in (*wanted, "loss scaler") if name not in answer]
    if missing:
        return not_yet(f"No answer yet for {', '.join(missing)}.")
    for name, recipe in wanted.items():
        returned = answer[name]
        if returned not in LIGHTNING_NAMES:
            return not_yet(f"{name}: {returned!r} is none of these recipes: {', '.join(LIGHTNING_NAMES)}.")
        if returned != recipe:
            return not_yet(f"{name}: {_recipe_hint(name, returned)}")
    scaled = {answer["loss scaler"]} if isinstance(answer["loss scaler"], str) else set(answer["loss scaler"])
    if scaled & {"A100", "H200"}:
        return not_yet(NOT_SCALED)
    if "CPU" in scaled:
        return not_yet("In float32 the gradients do not underflow. A loss scaler is for float16.")
    if "T4" not in scaled:
        return not_yet("One of these recipes computes in float16, and float16 gradients underflow below 2**-24.")
    if scaled != {"T4"}:
        return not_yet(f"{', '.join(sorted(scaled - {'T4'}))} is not one of the four machines.")
    return correct(
        "The T4 has float16 tensor cores only, so it pays with a loss scaler; the newer cards do not have to."
    )


def _recipe_hint(card: str, returned: str) -> str:
    if returned == "64-true":
        return "float64 is for what float32 cannot resolve. A fine-tuning does not need it."
    options = PICKS["A100" if card == "H200" else card].options
    return next((option.says for option in options if option.text == returned), TRUE_WEIGHTS)


@exercise(asks=RATE)
def check_gigaflops(answer) -> Outcome:
    """A dict with the side "n" of the matrices, the time in "milliseconds" and the reader's "gigaflops" a second."""
    if not isinstance(answer, Mapping):
        return not_yet('Give a dict with "n", "milliseconds" and "gigaflops".')
    if missing := [key for key in ("n", "milliseconds", "gigaflops") if key not in answer]:
        return not_yet(f"No answer yet for {', '.join(missing)}.")
    n, milliseconds = as_number(answer["n"]), as_number(answer["milliseconds"])
    got = as_number(answer["gigaflops"])
    want = 2 * n**3 / (milliseconds / 1e3) / 1e9
    slips = {
        0.5: "Half of it. Each product of two numbers is followed by an addition: that makes 2 n**3 operations.",
        1e-3: "A thousand times too small: the time is in milliseconds, and a second has a thousand of them.",
        1e3: "A thousand times too large. Giga is 10**9; did you divide by 10**6, or take the time in microseconds?",
        1e9: "Those are operations a second. Divide by 10**9 for GFLOP/s.",
        1e-6: "A million times too small: 2 n**3 over seconds, then over 10**9.",
        1 / n: "That counts 2 n**2. There are n**2 results, and each takes n products and n additions.",
        0.5 / n: "That counts n**2. There are n**2 results, and each takes n products and n additions.",
    }
    for factor, hint in slips.items():
        if abs(got / want - factor) <= 0.02 * factor:
            return not_yet(hint)
    if abs(got / want - 1) <= 0.02:
        return correct(f"2 x {n:.0f}**3 = {2 * n**3:,.0f} operations in {milliseconds:.3g} ms: {want:.3g} GFLOP/s.")
    return not_yet("Count the operations of the product, divide by the time in seconds, then by 10**9.")


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
    for name, (facts, native) in MACHINES.items():
        if (got := bool(answer(dict(facts)))) != native:
            return not_yet(_machine_hint(name, facts, got))
    return correct(f"All {len(MACHINES)} machines, by what they report and not by what happened to run.")


def _machine_hint(name: str, facts: dict, got: bool) -> str:
    if facts["kind"] == "cpu" and got:
        return (
            f"It says that {name} multiplies bfloat16. A product that ran here says nothing of that machine,"
            f" nor how it ran. Its flags: {', '.join(facts['flags'])}."
        )
    if facts["capability"] == "10.0":
        return f"It says {got} for {name}, whose capability is '10.0'. How does Python order two texts?"
    told = facts["capability"] or ", ".join(facts["flags"])
    return f"It says {got} for {name} ({told}); it should say {not got}."
