"""Checks of `practice/debugging`."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

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


# --- What an answer has to leave as it was ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _State:
    """What a model holds beside its modules, by the paths of its weights and buffers, parameters or modules."""

    values: dict[str, torch.Tensor]
    frozen: dict[str, bool]
    gradients: dict[str, torch.Tensor | None]
    training: dict[str, bool]
    hooks: dict[str, list[Callable]]

    @classmethod
    def of(cls, model: nn.Module) -> "_State":
        """Copy the state of a model."""
        parameters, modules = dict(model.named_parameters()), dict(model.named_modules())
        return cls(
            {name: value.clone() for name, value in model.state_dict().items()},
            {name: not p.requires_grad for name, p in parameters.items()},
            {name: None if p.grad is None else p.grad.clone() for name, p in parameters.items()},
            {name: module.training for name, module in modules.items()},
            {name: [*m._forward_hooks.values(), *m._forward_pre_hooks.values()] for name, m in modules.items()},
        )


def _own_hook(module: nn.Module, args: tuple, output: torch.Tensor) -> None:
    """Do nothing, as a hook that was on the model before."""


def _marked(model: nn.Module) -> nn.Module:
    """Give a model what is easily lost: a frozen weight, a gradient, a part in eval mode and a hook."""
    parameters, last = list(model.parameters()), list(model.modules())[-1]
    last.eval()
    last.register_forward_hook(_own_hook)
    if parameters:
        parameters[0].requires_grad_(False)
        parameters[-1].grad = torch.ones_like(parameters[-1])
    return model


def _changed(model: nn.Module, before: _State) -> str | None:
    """Say what is not as it was; None where all is."""
    now = _State.of(model)
    for name, value in now.values.items():
        if value.dtype != before.values[name].dtype:
            return f"The model is in {value.dtype} now: `.to` works in place, so convert a copy (copy.deepcopy)."
        if not torch.equal(value, before.values[name]):
            moves = "" if name in now.frozen else " A forward pass moves this buffer: run a copy (copy.deepcopy)."
            return f"{name} of the model has changed.{moves}"
    for name, hooks in now.hooks.items():
        if any(hook not in before.hooks[name] for hook in hooks):
            return "Your hooks are still on the model. register_forward_hook returns a handle: `.remove()` it."
        if hooks != before.hooks[name]:
            return (
                "Your hooks are removed, but a hook that was there before is gone too. Remove yours by their handles."
            )
    for name, training in now.training.items():
        if training != before.training[name]:
            called = repr(name) if name else "The model"
            return f"{called} is in {'training' if training else 'eval'} mode now, and was not before."
    for name, frozen in now.frozen.items():
        if frozen != before.frozen[name]:
            return f"requires_grad of {name!r} is {not frozen} now, and was not before."
        old, new = before.gradients[name], now.gradients[name]
        if (old is None) != (new is None) or (old is not None and not torch.equal(old, new)):
            return f"The gradient of {name!r} is not what it was before."
    for name, module in model.named_modules():
        if getattr(module.forward, "__func__", None) is not type(module).forward:
            return f"forward of {name!r} is still replaced."
    return None


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


class _Loud(nn.Sequential):
    """A Sequential with a fault of its own, before its modules."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(_overflow(x))


class _Branches(nn.Module):
    """Three modules side by side, which run in another order than that of their registration, or of their names."""

    def __init__(self):
        super().__init__()
        self.a = _Apply(_overflow)
        self.b = nn.Sequential(nn.Linear(3, 3), _Apply(_overflow))
        self.c = nn.Sequential(nn.Sequential(nn.Linear(3, 3), _Apply(_overflow)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(x) + self.c(x) + self.a(x)


def _three(module: nn.Module, last: nn.Module) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        return nn.Sequential(nn.Linear(3, 3), module, last)


def _same(x: torch.Tensor) -> torch.Tensor:
    return x


def _overflow(x: torch.Tensor) -> torch.Tensor:
    return (x.abs() + 100).exp()  # in float32 beyond the end


def _log_of_zero(x: torch.Tensor) -> torch.Tensor:
    return (x - x).log()


def _times_zero(x: torch.Tensor) -> torch.Tensor:
    return 0 * x


def _nothing_over_nothing(x: torch.Tensor) -> torch.Tensor:
    return (x - x) / (x - x)


@exercise(asks=FIRST_BAD, takes="first_bad")
def check_first_bad(answer) -> Outcome:
    """A function (model, x) -> the path of the first module that breaks what it got, None without one."""
    broken = _broken()
    for model, x, right, hint in broken:
        before = _State.of(_marked(model))
        returned = answer(model, x)
        if returned is ... or (returned is None and all(answer(model, x) is None for model, x, *_ in _broken())):
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet, for any model with an infinity in it.")
        if returned != right:
            return not_yet(_wrong_module(returned, right, model) + (f" {hint}" if hint else ""))
        if fault := _changed(model, before):
            return not_yet(fault)
    ones = torch.ones(2, 3)
    if (returned := answer(_model(_same, _same), ones)) is not None:
        return not_yet(f"All numbers of this model are finite, but {returned!r} was named. Return None.")
    if (returned := answer(_model(_same), torch.full((2, 3), torch.nan))) is not None:
        return not_yet(f"The input itself was NaN, so no module is the birth; {returned!r} got it from outside.")
    if (returned := answer(_Keyword(), torch.full((2, 3), torch.nan))) is not None:
        return not_yet(f"{returned!r} got its NaN by keyword. With with_kwargs=True a hook gets these inputs as well.")
    return correct("It names the birth, first in time and innermost, and leaves the model as it was.")


def _broken() -> list[tuple[nn.Module, torch.Tensor, str, str]]:
    """Models that break, each with an input, the path of the birth, and a hint."""
    cases = (
        ((_same, _overflow, _same), "1", ""),
        ((_same, _same, _nothing_over_nothing), "2", "The numbers before this NaN are finite."),
        ((_overflow, _same, _overflow), "0", "Two modules make an infinity here: name the first in time."),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        branches, loud = _Branches(), _Loud(nn.Linear(3, 3))
    ones, masked = torch.ones(2, 3), torch.full((2, 3), -torch.inf)
    softmax = nn.Sequential(_Apply(_same), nn.Softmax(-1))
    return [
        *((_model(*functions), ones, right, hint) for functions, right, hint in cases),
        (_three(_Apply(_overflow), nn.ReLU()), ones, "1", "It makes infinities, and nothing here is ever NaN."),
        (softmax, masked, "1", "Its input is −∞, as in a mask, but its output is NaN, which is another kind."),
        (
            branches,
            ones,
            "b.1",
            "Three modules make an infinity of finite numbers: name the first in the order of time.",
        ),
        (
            _three(_Apply(_log_of_zero), _Apply(_times_zero)),
            ones,
            "1",
            "This −∞ comes from finite numbers, so it is a birth; the NaN after it is an echo.",
        ),
        (_three(loud, nn.ReLU()), ones, "1", ""),
    ]


def _wrong_module(returned: object, right: str, model: nn.Module) -> str:
    names = [name for name, _ in model.named_modules()]
    if returned is None:
        own = ", which has children: its own forward makes it" if list(model.get_submodule(right).children()) else ""
        return f"You returned None; the birth is in {right!r}{own}."
    if returned == "":
        return "You named the model itself: modules inside it end earlier, and one of them is the birth."
    if returned not in names:
        return f"{returned!r} is not the path of a module; named_modules() gives paths such as {right!r}."
    if returned == names[-1] and not str(returned).startswith(f"{right}."):
        return f"You named {returned!r}, the last module; the birth is in {right!r}."
    if str(returned).startswith(f"{right}."):
        return f"You named {returned!r}, but its input was broken already. Compare output with input for each module."
    if right.startswith(f"{returned}."):
        return f"You named {returned!r}, which contains the birth: {right!r} ends earlier."
    return f"You named {returned!r}; the birth is in {right!r}."


# --- A comparison with float32 ----------------------------------------------------------------------------------------


class _Late(nn.Module):
    """A model whose layers run neither in the order of their registration nor in that of their names."""

    def __init__(self):
        super().__init__()
        self.head, self.stem, self.body = nn.Linear(16, 4), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.stem(x)))


class _Counter(nn.Module):
    """A module with a buffer that counts the forward passes, as that of a BatchNorm does."""

    def __init__(self):
        super().__init__()
        self.register_buffer("passes", torch.tensor(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        return x / 3


def _compared() -> list[tuple[nn.Module, torch.dtype, str]]:
    """Models to compare, each with the dtype of the copy, and a hint on what is special about it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        inner = nn.Sequential(nn.Linear(16, 8), nn.Tanh())
        in_place = nn.SiLU(inplace=True), nn.Linear(16, 16), nn.ReLU(inplace=True), inner, nn.Linear(8, 4)
        zeros = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4))
        half, brain = torch.float16, torch.bfloat16
        models = [
            (nn.Sequential(*in_place), brain, ""),
            (_Late(), brain, "The order is that in which the modules run."),
            (
                _around(_Apply(_square), nn.Tanh()),
                half,
                "Where the copy is not finite, the error is infinite, not NaN.",
            ),
            (zeros, brain, "Where both outputs are zeros, the error is 0."),
            (_around(_Apply(_cancel)), brain, ""),
            (_around(_Apply(_split)), brain, "Where only the float32 output is zero, the error is infinite."),
            (_around(_Counter()), brain, ""),
        ]
    nn.init.zeros_(zeros[1].weight)
    nn.init.zeros_(zeros[1].bias)
    return [(_marked(model), dtype, hint) for model, dtype, hint in models]


def _around(*modules: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(16, 16), *modules, nn.Linear(16, 4))


def _square(x: torch.Tensor) -> torch.Tensor:
    return (x.abs() + 10) * 1e5 - 1e5 * x.abs()  # in float16, inf - inf


def _cancel(x: torch.Tensor) -> torch.Tensor:
    return (x + 200) - 200  # in bfloat16, whole numbers


def _split(x: torch.Tensor) -> torch.Tensor:
    return 1 - ((0 * x + 256) + 1 - 256)  # 0, but in bfloat16 1, because 257 is rounded to 256


Outputs = dict[str, torch.Tensor]


def _both_outputs(
    model: nn.Module, x: torch.Tensor, dtype: torch.dtype, keep: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[Outputs, Outputs]:
    """Return what the modules without children return in float32 and in `dtype`, as `keep` keeps it."""

    def outputs(which: nn.Module, inputs: torch.Tensor) -> Outputs:
        kept = {}
        for name, module in which.named_modules():
            if not list(module.children()):
                module.register_forward_hook(lambda _, __, out, name=name: kept.update({name: keep(out.detach())}))
        which(inputs)
        return kept

    return outputs(deepcopy(model), x.clone()), outputs(deepcopy(model).to(dtype), x.to(dtype))


def _layer_errors(wide: Outputs, narrow: Outputs, *, over: Outputs | None = None) -> dict[str, float]:
    """Return the relative errors; `over`: the outputs by whose norms to divide, where they are not those of `wide`."""
    return {
        name: _relative(narrow[name].double(), exact.double(), (over or wide)[name].double())
        for name, exact in wide.items()
    }


def _relative(narrow: torch.Tensor, exact: torch.Tensor, over: torch.Tensor) -> float:
    if not narrow.isfinite().all():
        return math.inf
    off = (narrow - exact).norm()
    return (off / over.norm()).item() if off else 0.0


def _slips(model: nn.Module, x: torch.Tensor, dtype: torch.dtype) -> dict[str, list[dict[str, float]]]:
    """Return the errors that foreseen slips give, by what is said to them."""
    wide, narrow = _both_outputs(model, x, dtype, torch.clone)
    rounded = {name: (narrow[name] - out.to(dtype)).norm() / out.to(dtype).norm() for name, out in wide.items()}
    shared = (
        _layer_errors(*_both_outputs(model, x, dtype, keep)) for keep in (torch.Tensor.detach, torch.Tensor.float)
    )
    return {
        "A module in place overwrites the output of the layer before it: clone what a hook gets. `.float()` of a "
        "float32 tensor makes no copy.": list(shared),
        "Compute the difference in float32 or wider.": [{name: value.item() for name, value in rounded.items()}],
        "Divide by the norm of the float32 output, not by that of the copy's.": [
            _layer_errors(wide, narrow, over=narrow)
        ],
    }


@exercise(asks=LAYER_ERRORS, takes="layer_errors")
def check_layer_errors(answer) -> Outcome:
    """A function (model, x, dtype) -> the relative error of each leaf module's output, in the order of running."""
    draw = torch.Generator().manual_seed(2)
    x = torch.randn(8, 16, generator=draw)
    for model, dtype, hint in _compared():
        right = _layer_errors(*_both_outputs(model, x, dtype, torch.clone))
        before, own_x = _State.of(model), x.clone()
        returned = answer(model, own_x, dtype)
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return a dict of errors.")
        if not isinstance(returned, dict):
            return not_yet(f"Return a dict from paths to errors, not a {type(returned).__name__}.")
        if not torch.equal(own_x, x):
            return not_yet(
                "`x` has changed. A module that works in place writes into its input: give it a clone of `x`."
            )
        if fault := _changed(model, before):
            return not_yet(fault)
        if fault := _errors_fault(returned, right, _slips(model, x, dtype), model, hint):
            return not_yet(fault)
    return correct("Every layer is compared, in the order of running, and the model and x are as they were.")


def _errors_fault(
    returned: dict, right: dict[str, float], slips: dict[str, list[dict[str, float]]], model: nn.Module, hint: str
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
            matching = [text for text, runs in slips.items() if any(_near(value, errors[name]) for errors in runs)]
            advice = hint if exact in (0, math.inf) else (matching or [DEFINITION])[0]
            return (
                f"The error of {name!r}, a {type(names[name]).__name__}, is {exact:.4g}, but you returned {value:.4g}. "
                f"{advice}"
            )
    return None


DEFINITION = (
    "It is the 2-norm of the difference over the 2-norm of the float32 output, computed in float32 or wider, "
    "from one run of each whole model."
)


def _near(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=1e-3)
