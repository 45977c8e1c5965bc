"""Checks of `practice/debugging`."""

import torch
import torch.nn.functional as F
from torch import nn

from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    choice_table,
    correct,
    exercise,
    not_yet,
    paper,
)
from utils.checks.practice.debugging_questions import BIRTHS, EXPECTED, FIRST_BAD, RECIPES, SURE_LOSS

check_births = choice_table(
    BIRTHS,
    says="Five births, five kinds: forward, backward, in a mask that was meant, in a loss, and in the update.",
)
check_recipes = choice_table(RECIPES, says="Those are the answers of utils.cost.decide.")
check_expected = paper(EXPECTED)


# --- A hunter ---------------------------------------------------------------------------------------------------------


class _Step(nn.Module):
    """A module that does what it is told between two linear layers of its own."""

    def __init__(self, function):
        super().__init__()
        self.into, self.out, self.function = nn.Linear(3, 3), nn.Linear(3, 3), function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.function(self.into(x)))


class _Apply(nn.Module):
    """A module that is one function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def _model(*functions) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(*map(_Step, functions))


def _infinite() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        return nn.Sequential(nn.Linear(3, 3), _Apply(_overflow), nn.ReLU())


def _same(x: torch.Tensor) -> torch.Tensor:
    return x


def _overflow(x: torch.Tensor) -> torch.Tensor:
    return (x.abs() + 100).exp()  # in float32 beyond the end


def _nothing_over_nothing(x: torch.Tensor) -> torch.Tensor:
    return (x - x) / (x - x)


@exercise(asks=FIRST_BAD, takes="first_bad")
def check_first_bad(answer) -> Outcome:
    """A function (model, x) -> the path of the first module that breaks finite numbers, None where all is well."""
    cases = (
        ((_same, _overflow, _same), "1", ""),
        ((_same, _same, _nothing_over_nothing), "2", "The numbers before this NaN are finite."),
        ((_overflow, _same, _overflow), "0", "Two modules make an infinity here: name the first in time."),
    )
    if (returned := answer(_model(_overflow), torch.ones(2, 3))) is None or returned is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet, for a model with an infinity in it.")
    models = [(_model(*functions), right, hint) for functions, right, hint in cases]
    models.append((_infinite(), "1", "It makes infinities, and nothing here is ever NaN."))
    for model, right, hint in models:
        returned = answer(model, torch.ones(2, 3))
        if returned != right:
            return not_yet(_wrong_module(returned, right, model) + (f" {hint}" if hint else ""))
        if any(module._forward_hooks or module._forward_pre_hooks for module in model.modules()):
            return not_yet("Your hooks are still on the model. register_forward_hook returns a handle: `.remove()` it.")
    if (returned := answer(_model(_same, _same), torch.ones(2, 3))) is not None:
        return not_yet(f"All numbers of this model are finite, and {returned!r} was named. Return None.")
    if (returned := answer(_model(_same), torch.full((2, 3), torch.nan))) is not None:
        return not_yet(f"The input itself was NaN, so no module is the birth; {returned!r} got it from outside.")
    return correct("It names the birth, in time and innermost, and leaves the model as it was.")


def _wrong_module(returned: object, right: str, model: nn.Module) -> str:
    names = [name for name, _ in model.named_modules()]
    if returned == "":
        return "You named the model itself: modules inside it end earlier, and one of them is the birth."
    if returned not in names:
        return f"{returned!r} is no path of a module; named_modules() gives paths such as {right!r}."
    if str(returned).startswith(f"{right}."):
        return (
            f"You named {returned!r}. What it got was broken already: ask of each module whether its input is finite,"
            " too."
        )
    return f"You named {returned!r}; the birth is in {right!r}."


# --- A loss -----------------------------------------------------------------------------------------------------------


@exercise(asks=SURE_LOSS, takes="sure_loss")
def check_sure_loss(answer) -> Outcome:
    """A function (z, y) -> the loss of each: z bfloat16 logits from -300 to 300, y float targets 0 or 1."""
    z = torch.tensor([0.25, 1.0, -1.0, 5.0, -5.0, 8.0, -8.0, 20.0, -20.0, 120.0, -120.0, 300.0, -300.0])
    z = torch.cat([z, z]).bfloat16().requires_grad_()
    y = torch.cat([torch.ones(13), torch.zeros(13)])
    loss = answer(z, y)
    if loss is None or loss is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the loss of each logit.")
    if not torch.is_tensor(loss) or loss.shape != z.shape:
        return not_yet(f"Return one loss for each of the {len(z)} logits, a tensor.")
    if fault := _loss_fault(loss, z, y):
        return not_yet(fault)
    (slope,) = torch.autograd.grad(loss.float().sum(), z)
    exact = (torch.sigmoid(z.detach().double()) - y).float()
    if not slope.isfinite().all():
        at = int((~slope.isfinite()).nonzero()[0])
        return not_yet(f"The losses are right, but the gradient for z = {z[at].item():g} is {slope[at].item()}.")
    off = (slope.float() - exact).abs() > 0.02
    if off.any():
        at = int(off.nonzero()[0])
        return not_yet(
            f"For z = {z[at].item():g} and y = {y[at].item():g} the gradient is {slope[at].item():g} instead of "
            f"{exact[at].item():.2g}: a network that is sure and wrong has to hear of it. Does something clamp?"
        )
    return correct("Losses and gradients are right, however sure the network is.")


def _loss_fault(loss: torch.Tensor, z: torch.Tensor, y: torch.Tensor) -> str | None:
    """Say what is wrong with the losses; None where nothing is."""
    wide = z.detach().double()
    exact = F.softplus(torch.where(y == 1, -wide, wide))
    got = loss.detach().double()
    if not got.isfinite().all():
        at = int((~got.isfinite()).nonzero()[0])
        return (
            f"For z = {z[at].item():g} and y = {y[at].item():g} the loss is {got[at].item()}: "
            "a probability was formed, and it was rounded to 0 or 1."
        )
    off = (got - exact).abs() > 0.01 * exact + 1e-3
    if not off.any():
        return None
    at = int(off.nonzero()[0])
    message = (
        f"For z = {z[at].item():g} and y = {y[at].item():g} the loss is {got[at].item():.4g}, not {exact[at]:.4g}."
    )
    if got[at] < exact[at] and exact[at] > 10:
        return f"{message} An epsilon or a clamp keeps it finite, and makes every sure mistake cost the same."
    return f"{message} Is it −log p for y = 1, and −log(1 − p) for y = 0?"
