"""Checks of `practice/debugging`."""

import math
from copy import deepcopy

import torch
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
from utils.checks.practice.debugging_questions import BIRTHS, EXPECTED, FIRST_BAD, LAYER_ERRORS, RECIPES

check_births = choice_table(
    BIRTHS,
    says="Two in the forward pass, one in a loss, one in the backward pass and one in the update.",
)
check_recipes = choice_table(RECIPES, says="The decision tree gives the same answers.")
check_expected = paper(EXPECTED)


# --- A hunter ---------------------------------------------------------------------------------------------------------


class _Step(nn.Module):
    """A module that calls a function between two linear layers of its own."""

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


class _Keyword(nn.Module):
    """A module that hands its input on by keyword."""

    def __init__(self):
        super().__init__()
        self.inner = _Apply(_same)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x=x).nan_to_num()


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
    """A function (model, x) -> the path of the first module that breaks what it got, None without one."""
    cases = (
        ((_same, _overflow, _same), "1", ""),
        ((_same, _same, _nothing_over_nothing), "2", "The numbers before this NaN are finite."),
        ((_overflow, _same, _overflow), "0", "Two modules make an infinity here: name the first in time."),
    )
    if (returned := answer(_model(_overflow), torch.ones(2, 3))) is None or returned is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet, for a model with an infinity in it.")
    ones, masked = torch.ones(2, 3), torch.full((2, 3), -torch.inf)
    models = [(_model(*functions), ones, right, hint) for functions, right, hint in cases]
    models.append((_infinite(), ones, "1", "It makes infinities, and nothing here is ever NaN."))
    softmax = nn.Sequential(_Apply(_same), nn.Softmax(-1))
    models.append(
        (softmax, masked, "1", "Its input is −∞, as in a mask, but its output is NaN, which is another kind.")
    )
    for model, x, right, hint in models:
        returned = answer(model, x)
        if returned != right:
            return not_yet(_wrong_module(returned, right, model) + (f" {hint}" if hint else ""))
        if any(module._forward_hooks or module._forward_pre_hooks for module in model.modules()):
            return not_yet("Your hooks are still on the model. register_forward_hook returns a handle: `.remove()` it.")
    if (returned := answer(_model(_same, _same), ones)) is not None:
        return not_yet(f"All numbers of this model are finite, but {returned!r} was named. Return None.")
    if (returned := answer(_model(_same), torch.full((2, 3), torch.nan))) is not None:
        return not_yet(f"The input itself was NaN, so no module is the birth; {returned!r} got it from outside.")
    if (returned := answer(_Keyword(), torch.full((2, 3), torch.nan))) is not None:
        return not_yet(f"{returned!r} got its NaN by keyword. With with_kwargs=True a hook gets these inputs as well.")
    return correct("It names the birth, first in time and innermost, and leaves the model as it was.")


def _wrong_module(returned: object, right: str, model: nn.Module) -> str:
    names = [name for name, _ in model.named_modules()]
    if returned is None:
        return f"You returned None; the birth is in {right!r}."
    if returned == "":
        return "You named the model itself: modules inside it end earlier, and one of them is the birth."
    if returned not in names:
        return f"{returned!r} is not the path of a module; named_modules() gives paths such as {right!r}."
    if returned == names[-1] and not str(returned).startswith(f"{right}."):
        return f"You named {returned!r}, the last module; the birth is in {right!r}."
    if str(returned).startswith(f"{right}."):
        return f"You named {returned!r}, but its input was broken already. Compare output with input for each module."
    return f"You named {returned!r}; the birth is in {right!r}."


# --- A comparison with float32 ----------------------------------------------------------------------------------------


class _Late(nn.Module):
    """A model whose first layer in time is the last that is registered."""

    def __init__(self):
        super().__init__()
        self.second, self.first = nn.Linear(16, 4), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def _compared() -> dict[str, tuple[nn.Module, torch.dtype, str]]:
    """Models to compare, by what is special about them, with the dtype of the copy and a hint."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        in_place = nn.Sequential(
            nn.Linear(16, 16), nn.ReLU(inplace=True), nn.Sequential(nn.Linear(16, 8), nn.Tanh()), nn.Linear(8, 4)
        )
        late = _Late()
        overflow = nn.Sequential(nn.Linear(16, 16), _Apply(_square), nn.Tanh())
        zeros = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4))
    nn.init.zeros_(zeros[1].weight)
    nn.init.zeros_(zeros[1].bias)
    return {
        "in place": (in_place, torch.bfloat16, "A ReLU in place changes the output of the layer before it: clone."),
        "order": (late, torch.bfloat16, "The order is that in which the modules run."),
        "overflow": (overflow, torch.float16, "Where the copy is not finite, the error is infinite, not NaN."),
        "zeros": (zeros, torch.bfloat16, "Where both outputs are zeros, the error is 0."),
    }


def _square(x: torch.Tensor) -> torch.Tensor:
    return (x.abs() + 10) * 1e5 - 1e5 * x.abs()  # in float16, inf - inf


def _layer_errors(model: nn.Module, x: torch.Tensor, dtype: torch.dtype, *, clone: bool = True) -> dict[str, float]:
    """Return the right answer of the exercise; without `clone`, that of hooks whose outputs are overwritten later."""

    def outputs(which: nn.Module, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        kept, hooks = {}, []
        for name, module in which.named_modules():
            if not list(module.children()):
                hooks.append(
                    module.register_forward_hook(
                        lambda _, __, output, name=name: kept.update(
                            {name: output.detach().clone() if clone else output}
                        )
                    )
                )
        which(inputs)
        for hook in hooks:
            hook.remove()
        return kept

    wide, narrow = outputs(model, x), outputs(deepcopy(model).to(dtype), x.to(dtype))
    return {name: _relative(narrow[name].double(), exact.double()) for name, exact in wide.items()}


def _relative(narrow: torch.Tensor, exact: torch.Tensor) -> float:
    if not narrow.isfinite().all():
        return math.inf
    off = (narrow - exact).norm().item()
    return off / exact.norm().item() if off else 0.0


@exercise(asks=LAYER_ERRORS, takes="layer_errors")
def check_layer_errors(answer) -> Outcome:
    """A function (model, x, dtype) -> the relative error of each leaf module's output, in the order of running."""
    draw = torch.Generator().manual_seed(2)
    x = torch.randn(8, 16, generator=draw)
    for model, dtype, hint in _compared().values():
        right, overwritten = _layer_errors(model, x, dtype), _layer_errors(model, x, dtype, clone=False)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        returned = answer(model, x.clone(), dtype)
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return a dict of errors.")
        if not isinstance(returned, dict):
            return not_yet(f"Return a dict from paths to errors, not a {type(returned).__name__}.")
        if fault := _changed(model, before) or _errors_fault(returned, right, overwritten, model, hint):
            return not_yet(fault)
    return correct("Every layer is compared, in the order of running, and the model is as it was.")


def _changed(model: nn.Module, before: dict[str, torch.Tensor]) -> str | None:
    """Say what was left behind on the model; None where nothing was."""
    for name, value in model.state_dict().items():
        if value.dtype != before[name].dtype:
            return f"The model is in {value.dtype} now: `.to` works in place, so convert a copy (copy.deepcopy)."
        if not torch.equal(value, before[name]):
            return f"{name} of the model has changed."
    if any(module._forward_hooks or module._forward_pre_hooks for module in model.modules()):
        return "Your hooks are still on the model. register_forward_hook returns a handle: `.remove()` it."
    return None


def _errors_fault(
    returned: dict, right: dict[str, float], overwritten: dict[str, float], model: nn.Module, hint: str
) -> str | None:
    """Say what is wrong with the errors; None where nothing is."""
    names = dict(model.named_modules())
    if extra := [name for name in returned if name not in right]:
        if extra[0] in names:
            return f"{extra[0]!r} contains other modules: report only those without children."
        return f"{extra[0]!r} is not the path of a module; named_modules() gives paths such as {next(iter(right))!r}."
    if missing := [name for name in right if name not in returned]:
        return f"There is no error for {missing[0]!r}."
    if list(returned) != list(right):
        return f"The order is {list(returned)}, but the modules run as {list(right)}. {hint}"
    for name, exact in right.items():
        try:
            value = float(returned[name])
        except (TypeError, ValueError):
            return f"The error of {name!r} is not a number."
        if value != exact and not math.isclose(value, exact, rel_tol=0.01):
            advice = hint if math.isclose(value, overwritten[name], rel_tol=1e-3) else "Compute it in float32 or wider."
            if not math.isfinite(exact) or not exact:
                advice = hint
            return (
                f"The error of {name!r}, a {type(names[name]).__name__}, is {exact:.4g}, but you returned {value:.4g}. "
                f"{advice}"
            )
    return None
