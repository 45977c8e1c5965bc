"""The comparison that opens `training/master_weights`: both arms clear their gradients, and masters reach float32."""

import pytest
import torch

import book_rules as rules

MASTERS = rules.read_page(rules.BOOK / "training" / "master_weights.ipynb")


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
