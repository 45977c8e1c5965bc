"""The detector that opens `numbers/limits`, taken from its page as a reader copies it."""

import linecache
import os
import traceback

import pytest
import torch
from torch import nn

import book_rules as rules

PAGE = rules.BOOK / "numbers" / "limits.ipynb"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The names that the first cell of the page defines."""
    source = next(cell.source for cell in rules.read_page(PAGE) if cell.kind == "code")
    file = tmp_path_factory.mktemp("copied") / "pasted.py"
    file.write_text(source, "utf8")
    names = {"__name__": "pasted"}
    exec(compile(source, file, "exec"), names)
    linecache.clearcache()
    return names


def found(page, function):
    with page["FirstNonFinite"]() as watch:
        function()
    return watch.found


def test_its_example_names_the_layer_and_the_line(page):
    first, second = page["watch"].found
    assert first.splitlines()[:2] == ["inf from aten.addmm.default", "    in Sequential.0"]
    assert first.splitlines()[2].startswith("    at pasted.py:")
    assert second.startswith("NaN from aten.native_layer_norm.default\n    in Sequential.1")
    assert page["before"] == {}


def test_a_mask_of_minus_infinity_does_not_hide_an_overflow(page):
    def softmax():
        scores = torch.tensor([13.0, 12.0, 1.0]).half() + torch.tensor([0.0, 0.0, -torch.inf]).half()
        e = scores.exp()
        return e / e.sum()

    exp, div = found(page, softmax)
    assert exp.startswith("inf from aten.exp.default\n    in no module\n    at test_first_non_finite.py:")
    assert div.startswith("NaN from aten.div.Tensor")


def test_the_backward_pass_and_the_update_are_seen(page):
    class Root(nn.Module):
        def forward(self, x):
            return (0 * x).sqrt()

    model = nn.Sequential(nn.Linear(2, 2), Root())
    div = found(page, lambda: model(torch.ones(1, 2)).sum().backward())[0]
    assert "aten.div.Tensor\n    in Sequential.1\n" in div
    weight = torch.ones(1, dtype=torch.float16, requires_grad=True)
    weight.grad = torch.full_like(weight, 1e-3)
    (update,) = found(page, torch.optim.Adam([weight], foreach=False).step)
    assert update.startswith("-inf from aten.addcdiv_.default")


def test_sparse_gradients_are_looked_at(page):
    table = nn.Embedding(4, 2, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters())

    def step(factor):
        (table(torch.tensor([1, 1])).sum() * factor).backward()
        optimizer.step()

    assert found(page, lambda: step(1.0)) == []
    assert found(page, lambda: step(torch.zeros(()).log()))[0].startswith("-inf from aten.log.default")
    assert page["kinds"](table.weight.grad) == {"-inf"}


def test_a_nan_that_is_older_than_the_step_is_not_listed_but_found_in_its_holder(page):
    model, batch = nn.Linear(2, 2), {"x": torch.ones(1, 2)}
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        model(batch["x"]).sum().backward()
        optimizer.step()

    step()
    batch["x"][0, 0] = torch.nan
    assert found(page, step) == []
    assert page["kinds"](batch) == page["kinds"](model.weight) == page["kinds"](optimizer.state_dict()) == {"NaN"}


def test_an_overflow_to_an_infinity_that_a_mask_holds_already_is_not_listed(page):
    scores, mask = torch.tensor([-60000.0, 0.0]).half(), torch.tensor([-60000.0, -torch.inf]).half()
    assert found(page, lambda: scores + mask) == []
    assert found(page, lambda: torch.tensor([1 + 1j]) / 0) == []  # complex numbers are skipped


def test_a_nan_that_numpy_wrote_is_not_listed(page):
    x = torch.empty(2)
    x.numpy()[:] = torch.nan
    assert found(page, lambda: x + 1) == []


def test_a_thread_without_a_line_of_the_reader_is_no_error(page, monkeypatch):
    def of_torch_alone():  # and of the class itself, as in the backward thread of a GPU
        return [f for f in traceback.extract_stack() if f.name in ("place", "__torch_dispatch__")]

    monkeypatch.setitem(page, "extract_stack", of_torch_alone)
    x = torch.zeros(1, requires_grad=True)
    assert found(page, lambda: x.sqrt().sum().backward()) == ["inf from aten.div.Tensor\n    in no module"]


def test_libraries_whose_name_begins_with_torch_are_the_readers_lines(page, monkeypatch):
    place = os.path.join(os.path.dirname(torch.__path__[0]), "torchvision", "ops.py")
    theirs = traceback.FrameSummary(place, 7, "forward", lookup_line=False, line="x.log()")
    own = [traceback.FrameSummary("pasted.py", n, "", lookup_line=False, line="") for n in (1, 2)]
    monkeypatch.setitem(page, "extract_stack", lambda: [theirs, *own])
    (log,) = found(page, lambda: torch.zeros(1).log())
    assert log.splitlines()[-1] == "    at ops.py:7: x.log()"


@pytest.mark.parametrize("dtype", [torch.float8_e5m2, torch.bfloat16, torch.float64])
def test_every_width_is_looked_at(page, dtype):
    assert page["kinds"]([torch.tensor([1.0, torch.inf]).to(dtype), 2, "text", None]) == {"inf"}
    assert page["kinds"]({"a": (torch.nan, -torch.inf)}) == {"NaN", "-inf"}
    assert page["kinds"]([torch.tensor([3]), 1e300, torch.empty(0)]) == set()


def test_nothing_is_listed_for_healthy_code_and_new_memory(page):
    model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    assert found(page, lambda: model(torch.randn(3, 2)).sum().backward()) == []
    assert found(page, lambda: [torch.empty(1000) for _ in range(20)]) == []
