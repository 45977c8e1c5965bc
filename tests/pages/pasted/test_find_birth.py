"""`find_birth`, which opens `practice/debugging`, taken from its page as a reader copies it."""

import pytest
import torch
from torch import nn

import book_rules as rules

PAGE = rules.BOOK / "practice" / "debugging.ipynb"
X = torch.tensor([[3.0, 4.0]])


@pytest.fixture(scope="module")
def find_birth():
    source = next(cell.source for cell in rules.read_page(PAGE) if cell.kind == "code")
    names = {"__name__": "pasted"}
    exec(compile(source, "pasted.py", "exec"), names)
    return names["find_birth"]


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Squared(nn.Module):
    """A function between two modules."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(2, 2), nn.Linear(2, 1)

    def forward(self, x):
        hidden = self.up(x)
        return self.down((hidden.abs() + 1) * torch.inf)


def linear():
    return nn.Linear(2, 2)


def test_a_bad_batch_is_the_input_of_the_first_module(find_birth):
    model = nn.Sequential(linear(), linear())
    said = find_birth(model, lambda m: m(X * torch.nan).sum())
    assert said == "forward pass, input of module 0 (Linear)"


def test_a_function_between_two_modules_breaks_the_input_of_the_next(find_birth):
    model = nn.Sequential(linear(), Squared())
    assert find_birth(model, lambda m: m(X).sum()) == "forward pass, input of module 1.down (Linear)"


def test_a_module_that_returns_a_mask_is_not_accused(find_birth):
    mask = Apply(lambda x: x.masked_fill(torch.tensor([False, True]), -torch.inf))
    model = nn.Sequential(linear(), mask, nn.Softmax(-1))
    assert find_birth(model, lambda m: m(X)[0, 0]) == "all is finite"


def test_a_mask_over_a_whole_row_is_named_when_the_softmax_makes_it_nan(find_birth):
    mask = Apply(lambda x: x.masked_fill(torch.tensor(True), -torch.inf))
    model = nn.Sequential(linear(), mask, nn.Softmax(-1))
    assert find_birth(model, lambda m: m(X).sum()) == "forward pass, module 1 (Apply)"


def test_an_infinity_that_only_the_gradient_shows_is_told_with_its_module(find_birth):
    model = nn.Sequential(linear(), Apply(lambda x: (x * 0 + 1000).exp()), nn.Hardtanh())
    said = find_birth(model, lambda m: m(X).sum())
    assert said == "backward pass, at or just after 0.bias in forward order; first infinity: module 1 (Apply)"


def test_a_scale_that_is_too_large_is_seen_in_the_backward_pass_alone(find_birth):
    model = linear()
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    assert find_birth(model, lambda m: m(X).sum()) == "all is finite"
    said = find_birth(model, lambda m: 3e38 * m(X).sum())
    assert said == "backward pass, at or just after weight in forward order"


def test_a_birth_in_the_backward_pass_does_not_accuse_the_layers_after_it(find_birth):
    root = Apply(lambda x: x + 0 * (x - x.detach()).square().sum().sqrt())
    model = nn.Sequential(linear(), linear(), root, linear(), linear())
    said = find_birth(model, lambda m: m(X).sum())
    assert said == "backward pass, at or just after 1.bias in forward order"


def test_a_module_that_returns_a_mask_is_named_for_a_nan_that_is_born_later(find_birth):
    """What the page says of the limits of hooks."""
    mask = Apply(lambda x: x.masked_fill(torch.tensor([False, True]), -torch.inf))
    model = nn.Sequential(linear(), mask, nn.Softmax(-1), Apply(lambda x: x * 0 / 0))
    assert find_birth(model, lambda m: m(X).sum()) == "forward pass, module 1 (Apply)"


def test_a_float32_repeat_needs_the_weights_from_before_an_update(find_birth):
    """What the page says of further calls: the weights, and moments that are loaded after `model.float()`."""
    model = linear().bfloat16()
    optimizer = torch.optim.Adam(model.parameters())
    model(X.bfloat16()).sum().backward()
    optimizer.step()
    weights, moments = {k: v.clone() for k, v in model.state_dict().items()}, optimizer.state_dict()
    model.float().load_state_dict(weights)
    optimizer.load_state_dict(moments)
    assert find_birth(model, lambda m: m(X).sum(), optimizer) == "all is finite"


def test_no_hook_stays_and_the_weights_move_only_with_an_optimizer(find_birth):
    model = linear()
    before = model.weight.clone()
    find_birth(model, lambda m: m(X).sum())
    assert not model._forward_hooks
    assert torch.equal(model.weight, before)
    find_birth(model, lambda m: m(X).sum(), torch.optim.SGD(model.parameters(), lr=0.1))
    assert not torch.equal(model.weight, before)
