"""Loops that a reader copies: a gradient is cleared before the next one is added to it."""

import ast

import pytest
import torch

import book_rules as rules

PAGES = [path for path in rules.pages() if path.suffix == ".ipynb"]
MASTERS = rules.read_page(rules.BOOK / "training" / "master_weights.ipynb")


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


@pytest.fixture
def arms(monkeypatch, capsys):
    """Run the page's two cells, with each backward pass watched: what is printed, and the gradients found before it."""
    hooks, loop = [cell.source for cell in MASTERS if cell.kind == "code"][:2]
    scope, found, backward = {}, [], torch.Tensor.backward

    def watched(loss, *given, **named):
        found.append([p.grad is not None and bool(p.grad.any()) for p in scope["model"].parameters()])
        return backward(loss, *given, **named)

    exec(hooks, scope)
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "backward", watched)
        exec(loop, scope)
    return capsys.readouterr().out, found


def test_both_arms_of_the_first_comparison_begin_each_step_without_gradients(arms):
    _, found = arms
    assert len(found) == 2000
    assert not any(map(any, found))


def test_the_first_comparison_prints_what_the_page_shows_and_masters_reach_float32(arms):
    printed, _ = arms
    (loop,) = (cell for cell in MASTERS if cell.source.startswith("for masters in"))
    assert printed == "".join(output["text"] for output in loop.outputs)
    bfloat16, masters = (float(line.split()[-1]) for line in printed.splitlines())
    assert bfloat16 > masters + 0.4
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(1000):
        x = torch.randn(64, 16).bfloat16().float()
        loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.zero_grad()
    assert loss.item() == pytest.approx(masters, abs=0.01)
