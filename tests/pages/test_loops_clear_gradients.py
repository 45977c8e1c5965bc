"""Loops that a reader copies: a gradient is cleared before the next one is added to it."""

import ast

import pytest

import book_rules as rules

PAGES = [path for path in rules.pages() if path.suffix == ".ipynb"]


def loops(source):
    """The innermost loops of a source that run a backward pass and take a step."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.For | ast.While) and trains(node)]
    return [loop for loop in found if not any(other is not loop and other in ast.walk(loop) for other in found)]


def called(node):
    return {call.func.attr for call in ast.walk(node) if isinstance(call, ast.Call) and hasattr(call.func, "attr")}


def trains(loop):
    return {"backward", "step"} <= called(loop)


def clears(loop):
    """Whether a loop clears the gradients, sets them to None, or makes its weights anew."""
    emptied = any(
        isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith(".grad") for node in ast.walk(loop)
    )
    return bool({"zero_grad", "Parameter"} & called(loop)) or emptied


def test_no_loop_of_the_book_adds_its_gradients_up_unseen():
    seen, forgot = 0, []
    for path in PAGES:
        for cell in rules.read_page(path):
            if cell.kind == "code" and "backward" in cell.source:
                found = loops(cell.source)
                seen += len(found)
                forgot += [f"{path.relative_to(rules.BOOK)}: {ast.unparse(x)}" for x in found if not clears(x)]
    assert seen > 20
    assert forgot == []


@pytest.mark.parametrize(
    ("line", "clear"), [("o.zero_grad()", True), ("p.grad = None", True), ("p = Parameter(w)", False), ("pass", False)]
)
def test_a_loop_that_clears_nothing_is_found(line, clear):
    (loop,) = loops(f"for _ in range(2):\n    for x in y:\n        f(x).backward()\n        o.step()\n        {line}")
    assert clears(loop) == clear
