"""The checks of `your_machine` accept what is right and name the misconception in what is not."""

import pytest

from utils import machine
from utils.checks import your_machine as checks
from utils.checks.outcome import CORRECT, NOT_YET

CELLS = [("bfloat16", "exp"), ("float16", "matmul"), ("float8_e4m3fn", "add")]
GRID = {
    CELLS[0]: ("emulated", "torch computes in float32"),
    CELLS[1]: ("emulated", "processor reports no fp16 product"),
    CELLS[2]: ("error", "NotImplementedError"),
    ("bfloat16", "matmul"): ("native", "avx512_bf16"),
    ("float16", "cast"): ("runs", "nothing tells"),
}


@pytest.fixture
def grid(monkeypatch):
    """A grid that does not depend on this machine."""
    monkeypatch.setattr(checks, "_live_grid", lambda: GRID)


def test_the_grid_is_that_of_this_machine():
    checks._live_grid.cache_clear()
    grid = checks._live_grid()
    live = {(cell.dtype, cell.operation): cell.status for cell in machine.capabilities()}
    assert {cell: status for cell, (status, _) in grid.items()} == live
    assert set(CELLS) <= set(live)


def test_three_right_cells(grid):
    outcome = checks.check_three_cells(dict(zip(CELLS, ("emulated", "emulated", "error"), strict=True)))
    assert outcome.status == CORRECT, outcome


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("native", "emulated", "error"), "2 of 3 right. bfloat16 exp: it runs, but in float32"),
        (("emulated", "native", "error"), "no instruction of this machine multiplies"),
        (("emulated", "error", "error"), "it runs. torch has a way"),
        (("emulated", "emulated", "native"), "does not run here at all"),
        (("slow", "emulated", "error"), "'slow' is not one of native, emulated, runs, error"),
    ],
)
def test_a_wrong_cell_gets_a_hint(grid, words, hint):
    outcome = checks.check_three_cells(dict(zip(CELLS, words, strict=True)))
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_a_native_cell_and_an_unknown_one_get_a_hint(grid):
    assert "an instruction for it" in checks.check_three_cells({("bfloat16", "matmul"): "emulated"}).message
    assert "nothing tells how" in checks.check_three_cells({("float16", "cast"): "native"}).message
    assert "not a cell of the grid" in checks.check_three_cells({("int7", "matmul"): "native"}).message


RIGHT = {"T4": "16-mixed", "A100": "bf16-mixed", "H200": "bf16-mixed", "CPU": "32-true", "loss scaler": ["T4"]}


@pytest.mark.parametrize("scaled", [["T4"], "T4", {"T4"}, ("T4",)])
def test_the_four_recipes(scaled):
    assert checks.check_pick_recipes(RIGHT | {"loss scaler": scaled}).status == CORRECT


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"T4": "bf16-mixed"}, "emulated (compute capability 7.5)"),
        ({"T4": "32-true"}, "leaves the tensor cores idle"),
        ({"T4": "16-true"}, "small updates are rounded away"),
        ({"A100": "16-mixed"}, "costs a loss scaler"),
        ({"A100": "64-true"}, "does not need it"),
        ({"H200": "bf16-true"}, "Keep float32 weights"),
        ({"H200": "32-true"}, "leaves most of the card idle"),
        ({"H200": "fp8"}, "'fp8' is none of these recipes"),
        ({"CPU": "16-mixed"}, "f16c, which converts"),
        ({"CPU": "bf16-mixed"}, "f16c, which converts"),
        ({"loss scaler": ["T4", "A100"]}, "nothing to scale"),
        ({"loss scaler": ["T4", "CPU"]}, "A loss scaler is for float16"),
        ({"loss scaler": []}, "float16 gradients underflow"),
        ({"loss scaler": ["T4", "K80"]}, "K80 is not one of the four"),
    ],
)
def test_a_wrong_recipe_gets_a_hint(change, hint):
    outcome = checks.check_pick_recipes(RIGHT | change)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_a_missing_card_is_named():
    assert "No answer yet for CPU" in checks.check_pick_recipes({k: v for k, v in RIGHT.items() if k != "CPU"}).message


TIMED = {"n": 256, "milliseconds": 0.5}
RATE = 2 * 256**3 / 0.5e-3 / 1e9


@pytest.mark.parametrize(
    "value", [RATE, 1.01 * RATE, (2 * 256 - 1) * 256**2 / 0.5e-3 / 1e9, f"{RATE}", "2 * 256**3 / 0.5 / 1e6"]
)
def test_the_rate_within_two_percent(value):
    assert checks.check_gigaflops(TIMED | {"gigaflops": value}).status == CORRECT


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (RATE / 2, "2 n**3 operations"),
        (RATE / 1e3, "milliseconds"),
        (RATE * 1e3, "Giga is 10**9"),
        (RATE * 1e9, "operations a second"),
        (RATE / 1e6, "million times too small"),
        (RATE / 256, "That counts 2 n**2"),
        (RATE / 512, "That counts n**2"),
        (1.1 * RATE, "Count the operations"),
        ("fast", "not a number"),
    ],
)
def test_a_slip_in_the_rate_is_named(value, hint):
    outcome = checks.check_gigaflops(TIMED | {"gigaflops": value})
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def right(facts):
    if facts["kind"] == "cuda":
        return float(facts["capability"]) >= 8
    return any("bf16" in flag for flag in facts["flags"])


def test_a_right_capability_test():
    assert checks.check_multiplies_bfloat16(right).status == CORRECT


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (
            lambda facts: facts["capability"] >= "8.0" if facts["kind"] == "cuda" else right(facts),
            "How does Python order two texts?",
        ),
        (lambda facts: right(facts) if facts["kind"] == "cuda" else True, "says nothing of that machine"),
        (lambda facts: True, "It says True for a T4 (7.5)"),
        (
            lambda facts: right(facts) if facts["kind"] == "cuda" else any("16" in f for f in facts["flags"]),
            "Its flags: f16c",
        ),
        (lambda facts: facts["no such key"], "KeyError"),
        (True, "needs the function itself"),
    ],
)
def test_a_wrong_capability_test_gets_a_hint(wrong, hint):
    outcome = checks.check_multiplies_bfloat16(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message
