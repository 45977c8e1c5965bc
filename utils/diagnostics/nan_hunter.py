"""Where a run stops being finite: the first step, module, operation and dtype that turn finite numbers into others.

    hunter = NanHunter(model, optimizer, operations=True)
    for number, batch in enumerate(batches, 1):
        with hunter.step(number):
            ...  # zero_grad, forward, backward, step
        if hunter.first:
            break
    print(hunter.first)

Everything after that is an echo. With hooks alone the hunter names the module and costs little; with `operations` it
names the operation inside, and follows its infinity to the operation that makes NaN of it.
"""

import contextlib
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import torch
from torch import nn

from utils.diagnostics.nan_sightings import BACKWARD, BETWEEN, UPDATE, Modules, Operations, Ranges, Snapshot
from utils.diagnostics.nan_trail import INPUT, NAN, WEIGHTS, Chain, Trail, Values

WRAPPER = "_orig_mod."  # what torch.compile puts before the names of a model's modules


@dataclass(frozen=True)
class NanFinding:
    """The birth of an infinity or of a NaN, and what became of it.

    `stage`: "forward", "backward", "between backward and update" (unscaling, clipping), "update", or what was not
    finite before the step: "input", "weights". `module`: the innermost one, "" outside of all; of the last two stages
    of a step, the parameter. `operation`: by its name in ATen, "" where modules were watched. `kind`: "inf" or "nan".
    `given` and `made`: the floating tensors that went in and that came out. `meant`: the infinity stands in the code,
    as in a mask. `nan`: the operation in which an infinity became NaN, and its module. `echoes`: how many operations or
    modules had it afterwards. `gradients`, `weights`: the parameters that have it when the step ends.
    `excused`: it is a gradient beyond the loss scale, and the scaler left the step out.
    """

    step: int
    stage: str
    module: str
    operation: str
    kind: str
    inputs: tuple[Values, ...] = ()
    made: tuple[Values, ...] = ()
    meant: bool = False
    nan: tuple[str, str] | None = None
    echoes: int = 0
    gradients: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    excused: bool = False

    @property
    def dtype(self) -> str:
        """The dtype of the first result that is not finite."""
        return next((value.dtype for value in self.made if value.kind), "")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result that is not finite."""
        return next((value.shape for value in self.made if value.kind), ())

    def __str__(self) -> str:
        where = f"step {self.step}, {self.stage}, {self.module or 'outside the modules'}"
        result = f"{self.dtype} {list(self.shape)}"
        if self.stage in (INPUT, WEIGHTS):
            return f"{where}: {self.kind} in {result} before anything was computed"
        inputs = ", ".join(map(str, self.inputs))
        text = f"{where}: {self.kind} in {result}"
        text += f", {'written' if self.meant else 'made'} by {self.operation}" if self.operation else ""
        text += f" of {inputs}" if inputs else ""
        if self.nan:
            operation, module = self.nan
            text += f"; nan from {operation or 'there'} on, {f'in {module}' if module else 'outside the modules'}"
        return text + ("; excused: the loss scaler left the step out" if self.excused else "")


class NanHunter:
    """Looks at whole steps of training, and names the first place in each where finite numbers become others.

    `optimizer`: where there is one, what happens in its step is its update. `scaler`: its loss scaler; a gradient
    beyond a scale of 1 or more is that one's business, and `Finding.excused`. `operations`: True, or the numbers of
    the steps in which every operation is looked at; in the others, and with False, hooks look at every module.

    It changes no number. Compiled models run uncompiled inside, since a fused kernel has no operations to look at.
    Works under autocast and with layers in FP8, whose numbers are widened to look at them.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        *,
        scaler=None,
        operations: bool | Collection[int] = False,
    ):
        self.model, self.optimizer, self.scaler, self.operations = model, optimizer, scaler, operations
        self.findings: list[NanFinding] = []
        self.steps = 0  # that were looked at

    @property
    def first(self) -> NanFinding | None:
        """The first finding that the loss scaler does not excuse; None while all is well."""
        return next((finding for finding in self.findings if not finding.excused), None)

    @contextlib.contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Look at what happens inside: one step, or one forward pass. Also at what came before an exception."""
        ranges = Ranges()
        in_full = self.operations if isinstance(self.operations, bool) else number in self.operations
        observer = (Operations if in_full else Modules)(self.model, ranges)
        before, results = self._weights(ranges), []
        with contextlib.ExitStack() as hooks:
            for hook in self._hooks(observer, results):
                hooks.callback(hook.remove)
            try:
                with _uncompiled(), observer:
                    yield
            finally:
                after, gradients = self._weights(ranges), self._gradients(ranges)
                read = ranges.read()
                ends = {"results": results, "gradients": gradients, "weights": after}
                self.findings += self._found(number, Trail(read, observer, **ends), before)
                self.steps += 1

    def _hooks(self, observer: Operations | Modules, results: list[Snapshot]) -> list:
        def returned(module: nn.Module, inputs: tuple, output) -> None:
            results.extend(observer.looks(output))

        def updating(on: bool):
            def hook(*_) -> None:
                observer.updating = on

            return hook

        hooks = [self.model.register_forward_hook(returned)]
        if self.optimizer is not None:
            hooks.append(self.optimizer.register_step_pre_hook(updating(True)))
            hooks.append(self.optimizer.register_step_post_hook(updating(False)))
        return hooks

    def _weights(self, ranges: Ranges) -> dict[str, Snapshot]:
        return {_clean(name): ranges.look(weight, changed=True) for name, weight in self.model.named_parameters()}

    def _gradients(self, ranges: Ranges) -> dict[str, Snapshot]:
        gradients = ((_clean(name), weight.grad) for name, weight in self.model.named_parameters())
        return {name: ranges.look(gradient, changed=True) for name, gradient in gradients if gradient is not None}

    def _found(self, number: int, trail: Trail, before: dict[str, Snapshot]) -> list[NanFinding]:
        broken = [name for name, look in before.items() if trail.bad([look])]
        if broken:
            made = (trail.values(before[broken[0]]),)
            return [NanFinding(number, WEIGHTS, broken[0], "", made[0].kind, made=made, weights=tuple(broken))]
        return [self._finding(number, trail, chain) for chain in trail.chains if chain.counts]

    def _finding(self, number: int, trail: Trail, chain: Chain) -> NanFinding:
        # Of an infinity that is meant, what counts is the operation that could not bear it.
        birth = chain.nan if chain.birth.writes and chain.nan else chain.birth
        later = chain.nan if birth is not chain.nan else None
        late = birth.stage in (BACKWARD, BETWEEN)
        updated = chain.weights[0] if birth.stage == UPDATE and chain.weights else ""
        inputs = (trail.values(look) for look in birth.inputs if look.number >= 0)
        return NanFinding(
            step=number,
            stage=birth.stage,
            module=_clean(birth.module) or updated,
            operation=birth.operation,
            kind=NAN if birth is chain.nan else chain.kind,
            inputs=tuple(dict.fromkeys(inputs)),
            made=tuple(trail.values(look) for look in birth.made if look.number >= 0),
            meant=birth.writes,
            nan=(later.operation, _clean(later.module)) if later else None,
            echoes=chain.echoes,
            gradients=tuple(chain.gradients),
            weights=tuple(chain.weights),
            excused=late and not chain.weights and self._scaled(),
        )

    def _scaled(self) -> bool:
        """Whether a loss scale may be what made a gradient overflow; at less than 1 it is not."""
        return self.scaler is not None and self.scaler.is_enabled() and self.scaler.get_scale() >= 1


def _clean(name: str) -> str:
    return name.replace(WRAPPER, "").removesuffix(WRAPPER.rstrip("."))


def _uncompiled() -> contextlib.AbstractContextManager:
    """Return a context in which compiled code runs as it was written; nothing to do where nothing was compiled."""
    if "torch._dynamo" not in sys.modules:
        return contextlib.nullcontext()
    return torch.compiler.set_stance("force_eager")
