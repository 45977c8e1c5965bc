"""The loop to paste of `training/training_loop`: its own test finds what was not saved, and a NaN reaches no weight."""

import pytest
import torch

import book_rules as rules

(SCRIPT,) = (
    cell.source for cell in rules.read_page(rules.BOOK / "training/training_loop.ipynb") if "script" in cell.tags
)
SAME, OTHER = "the same bits: True", "the same bits: False"
LOAD = "        part.load_state_dict(state[name])"


def run(capsys, *changes):
    """The names that the script leaves and the last line that it prints, after some of its text is replaced."""
    code = SCRIPT
    for old, new in changes:
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    scope = {"__name__": "pasted"}
    exec(code, scope)
    return scope, capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    "change",
    [(LOAD, f"        if name != {name!r}:\n    {LOAD}") for name in ("model", "optimizer", "schedule", "scaler")]
    + [
        ('    torch.set_rng_state(state["random"])\n', ""),
        ("order.manual_seed(epoch)", "order.manual_seed(epoch - start)"),
    ],
    ids=["model", "optimizer", "schedule", "scaler", "random state", "place in the data"],
)
def test_the_resumed_run_differs_if_one_part_was_not_restored(change, capsys):
    assert SAME in run(capsys)[1]
    assert OTHER in run(capsys, change)[1]


def test_bfloat16_resumes_to_the_bit(capsys):
    assert SAME in run(capsys, ("dtype = torch.float16", "dtype = torch.bfloat16"))[1]


NAN_ROW = ("data = TensorDataset", "x[5] = float('nan')\ndata = TensorDataset")


def test_float16_skips_a_row_of_nan_and_bfloat16_stops_before_it_saves(monkeypatch, capsys):
    scope, _ = run(capsys, NAN_ROW)
    assert all(weight.isfinite().all() for weight in scope["whole"].parameters())
    saved = []
    monkeypatch.setattr(torch, "save", lambda *given: saved.append(given))
    with pytest.raises(RuntimeError, match="non-finite"):
        run(capsys, NAN_ROW, ("dtype = torch.float16", "dtype = torch.bfloat16"))
    assert not saved


def test_a_forward_pass_of_nan_stops_the_float16_run(capsys):
    with pytest.raises(FloatingPointError, match="NaN in the forward pass"):
        run(capsys, ("data = TensorDataset", "x[:] = float('nan')\ndata = TensorDataset"))
