"""Checks of `training/training_loop`: each runs the learner's step on gradients made for it, and reads the weights."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from utils.checks.outcome import NOT_ATTEMPTED, Outcome, correct, exercise, not_yet, paper_table
from utils.checks.training.training_loop_questions import (
    ACCUMULATE,
    ACCUMULATED_EPOCH,
    RESUME,
    UNITS,
)

INF = math.inf

check_units = paper_table(
    UNITS, says="Two rules: clip and log only after unscale_, and clear .grad, because it outlives the step."
)


class _Probe:
    """One weight, SGD with a learning rate of 1, and a scaler whose scale begins at 1024 and does not grow."""

    def __init__(self, growth_interval: int = 1000):
        self.weight = nn.Parameter(torch.zeros(1))
        self.optimizer = torch.optim.SGD([self.weight], lr=1.0)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=growth_interval)

    def loss(self, gradient: float) -> torch.Tensor:
        """A loss whose true gradient is this number."""
        return (self.weight * gradient).sum()

    @property
    def value(self) -> float:
        return self.weight.item()


def _near(got: float, want: float) -> bool:
    return math.isclose(got, want, rel_tol=1e-4, abs_tol=1e-7)


# --- Find the bug: accumulation ---------------------------------------------------------------------------------------


@exercise(asks=ACCUMULATED_EPOCH, takes="accumulated_epoch", seconds=20)
def check_accumulated_epoch(answer) -> Outcome:
    """A function (weights, losses, optimizer, scaler, parts): a clipped step for each group of so many losses."""
    cases = (  # the gradients of the parts, how many make a group, and how far the weight should move
        ((0.1, 0.4), 2, 0.25),
        ((0.1, 0.2, 0.3, 0.4), 2, 0.5),
        ((3.0, -2.6, 0.4), 3, 0.8 / 3),
        ((0.1, 0.2, 0.3, 0.4, 0.5), 2, 1.0),
        ((0.1, 0.3), 4, 0.2),
        ((), 2, 0.0),
        ((INF, 0.5, 0.25, 0.35), 2, 0.3),
        ((0.5, INF, 0.1), 2, 0.1),
        ((8.0, 4.0, 8.0), 2, 2.0),
        ((0.2, 0.4, 0.9), 1, 1.5),
    )
    probe, moved_at_all = _Probe(), False
    for gradients, parts, moves in cases:
        before, scale = probe.value, probe.scaler.get_scale()
        losses = [lambda g=g: probe.loss(g) for g in gradients]
        shown = f"The parts have the gradients {gradients}, in groups of {parts}"
        try:
            answer([probe.weight], losses, probe.optimizer, probe.scaler, parts)
        except RuntimeError as error:
            return not_yet(
                f"{shown}: it raises: {error}",
                "`unscale_` belongs to the group: call it once, after its last `backward`.",
            )
        except AssertionError as error:
            return not_yet(
                f"{shown}: it raises: {error}", "`step` and `update` belong only to a group that has at least one part."
            )
        moved = before - probe.value
        moved_at_all |= moved != 0
        if not _near(moved, moves):
            if not moved_at_all and probe.weight.grad is None:
                return Outcome(NOT_ATTEMPTED, "The function does not move a weight yet.")
            return not_yet(
                f"{shown}, so the weight should move by {moves:g}; it moved by {moved:g}.",
                _accumulated(gradients, parts, moves, moved),
            )
        if probe.weight.grad is not None and probe.weight.grad.item() != 0:
            return not_yet(
                f"{shown}. The weight moved as it should, but `.grad` still holds {probe.weight.grad.item():g}.",
                "Clear it after the last step as well: the next epoch adds to whatever it finds.",
            )
        if probe.scaler.get_scale() != (scale / 2 if INF in gradients else scale):
            return not_yet(
                f"{shown}, and the scale went from {scale:g} to {probe.scaler.get_scale():g}.",
                "An overflow halves the scale, once for the group; nothing else changes it here.",
            )
    if (fault := _clipped_together(answer)) is not None:
        return fault
    return correct("All parts of a group count equally, the limit acts on their mean, and the last group is not lost.")


def _clipped_together(answer) -> Outcome | None:
    """Say what is wrong where two weights with gradients below the limit have a norm above it; None if all is well."""
    weights = [nn.Parameter(torch.zeros(1)) for _ in range(2)]
    optimizer = torch.optim.SGD(weights, lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    answer(weights, [lambda: (sum(weights) * 0.9).sum()] * 2, optimizer, scaler, 2)
    moved = [-weight.item() for weight in weights]
    want = 0.5**0.5  # 0.9 each: a norm of 1.27, clipped to 1
    if all(_near(way, want) for way in moved):
        return None
    return not_yet(
        f"Two weights have a gradient of 0.9 each, so the norm is 1.27. Each should move by {want:.3f}; they moved "
        f"by {moved[0]:g} and {moved[1]:g}.",
        "The limit is for the norm of all gradients together, not for each gradient.",
    )


def _accumulated(gradients: tuple, parts: int, moves: float, moved: float) -> str:
    """Name the cause of a weight that moved by another length."""
    groups = [gradients[start : start + parts] for start in range(0, len(gradients), parts)]
    if INF in gradients:
        return "A part overflows: skip the step of its group, and no other step."
    if not groups:
        return "There are no parts, so there is no step to take."
    last, full = groups[-1], [group for group in groups if len(group) == parts]
    if len(last) < parts:
        if _near(moved, sum(sum(group) / parts for group in full)):
            return "No step was taken for the last group, which has fewer parts."
        if _near(moved, sum(sum(group) / parts for group in groups)):
            return "The last group has fewer parts. By how many must its losses be divided?"
    if _near(moved, sum(group[0] / parts for group in groups)) or (
        len(groups) == 1 and _near(moved, gradients[0] / parts)
    ):
        return "The step comes after the first part of a group. After which n should it come, if n counts from 0?"
    if len(groups) > 1 and _near(moved, sum(gradients) / len(gradients)):
        return "That is one step for the whole epoch. Each group has a step of its own."
    if _near(moved, sum(gradients)) or any(sum(group) > 1 and _near(moved, 1.0) for group in groups):
        return "That is the sum. Divide each loss by the number of parts in its group."
    if len(groups) == 1 and math.isclose(moved, gradients[-1] / parts, rel_tol=0.02):
        return (
            "That is the last part alone: the others were divided by S once too often. Call `unscale_` once per group."
        )
    if abs(moved) > 100:
        return "These are gradients in units of S: call `unscale_` before the clip and the step."
    if 0 < abs(moved) < abs(moves) / 50:
        return "That was clipped in units of S, or divided by S twice."
    if any(abs(gradient) > 1 for gradient in gradients):
        return "The limit of 1 is for the mean over all parts of a group, after that mean is complete and unscaled."
    if math.isclose(moved, moves, rel_tol=0.01):
        return "A thousandth of the previous group's gradient is still in `.grad`."
    return ""


# --- Accumulate = big batch -------------------------------------------------------------------------------------------


@exercise(asks=ACCUMULATE, takes="accumulate", seconds=20)
def check_accumulate(answer) -> Outcome:
    """A function (weights, parts) that leaves the gradient of the mean over all tokens in `.grad`.

    A part is a function that gives the sum of the losses of its tokens, and their number.
    """
    cases = (  # of each part, the gradients of its tokens
        ((1.0,), (5.0, 3.0, 3.0)),
        ((4.0,), (0.0, 0.0, 0.0)),
        ((1.0, 2.0, 3.0), (5.0,), (0.5, 0.5)),
        ((2.0, 4.0),),
        ((2.0, 4.0), (), (1.0,)),
        ((1.0,), (3.0,) * 12, (2.0, 4.0)),
        ((), ()),
    )
    weights = [nn.Parameter(torch.zeros(1)) for _ in range(2)]
    for parts in cases:
        want = sum(map(sum, parts)) / max(sum(map(len, parts)), 1)
        order: list[bool] = []
        before = [0.0 if weight.grad is None else weight.grad.item() for weight in weights]
        answer(weights, _parts(weights, parts, order))
        if len(order) > len(parts):
            return not_yet("A part was called more than once. Each call is a forward pass; call each part once.")
        if not any(parts):
            if any(weight.grad is not None and weight.grad.item() != 0 for weight in weights):
                return not_yet(_without_tokens([weight.grad for weight in weights]))
            continue
        if any(weight.grad is None for weight in weights):
            return Outcome(NOT_ATTEMPTED, "There is no gradient in `.grad` yet.")
        if len(order) < len(parts):
            return not_yet(f"There are {len(parts)} parts, but only {len(order)} of them were called.")
        for weight, old in zip(weights, before, strict=True):
            if not _near(weight.grad.item(), want):
                return not_yet(_tokens(parts, want, weight.grad.item(), old))
        if not all(order):
            return not_yet(
                "The gradient is right, but all parts were computed before the first backward, so all of them are "
                "in memory at once, and one big batch would do as well. Call `backward` after each part."
            )
    return correct(
        "Computed part by part and divided by the tokens of the whole batch, this is the gradient of the big batch."
    )


def _without_tokens(grads: list) -> str:
    """Say what a batch that holds padding alone has left in `.grad`."""
    got = next(grad.item() for grad in grads if grad is not None and grad.item() != 0)
    start = f"One batch holds only padding, no token at all, and `.grad` is {got:g} after it. "
    if math.isnan(got):
        return start + "0/0 is NaN. Which divisor is safe here and changes nothing elsewhere?"
    return start + "It should be 0 (or None): the gradient of the previous batch is still in it."


def _parts(weights: list, parts: tuple, order: list[bool]) -> list:
    """The functions that the learner gets; `order` notes whether the parts before were through with their backward."""
    due, arrived = [0], [0]

    def note(grad):
        arrived[0] += 1
        return grad

    def part(tokens: tuple):
        def forward():
            order.append(arrived[0] >= due[0])
            own = sum(weights)  # each weight has the gradient of the sum
            if tokens:  # the backward pass of a part without tokens may be left out
                due[0] += 1
                own.register_hook(note)
            return (own * torch.tensor([sum(tokens)])).sum(), len(tokens)

        return forward

    return [part(tokens) for tokens in parts]


def _tokens(parts: tuple, want: float, got: float, before: float) -> str:
    full = [part for part in parts if part]
    shown = " and ".join(f"[{', '.join(f'{g:g}' for g in part)}]" for part in parts)
    start = (
        f"The tokens of the parts have the gradients {shown}. The mean over all of them is {want:g}; yours is {got:g}."
    )
    means = [sum(part) / len(part) for part in full]
    if math.isnan(got) or math.isinf(got):
        return start + " A part may hold only padding. It then has no tokens, and 0/0 is NaN."
    tokens = max(sum(map(len, parts)), 1)
    if before and any(_near(got, want + left) for left in (before, before / tokens)):
        return start + " The gradient of the previous batch is still in it. Clear it first."
    for divisor in {len(parts), len(full)}:
        if _near(got, sum(means) / divisor):
            return start + " That is the mean of the means: parts with few tokens count too much."
    if _near(got, sum(means)):
        return start + " That is the sum of the means."
    if _near(got, sum(map(sum, parts))):
        return start + " That is the sum. Divide by the number of all tokens."
    if _near(got, sum(map(sum, parts)) / len(parts)):
        return start + " That was divided by the number of parts. The loss is a mean over tokens."
    if _near(got, sum(sum(part) / sum(map(len, parts[: n + 1])) for n, part in enumerate(parts) if part)):
        return start + " Each part was divided by the tokens seen so far. Earlier parts need the whole count too."
    if full and _near(got, sum(map(sum, parts)) / len(parts[-1] or full[-1])):
        return start + " That was divided by the tokens of the last part only."
    return start


# --- Bitwise resume ---------------------------------------------------------------------------------------------------


class SmallTraining:
    """A small float16 run with everything that can be forgotten: dropout, Adam, a schedule, a scaler, an order.

    `step()` takes one step on the next batch. `model`, `optimizer`, `schedule` and `scaler` have `state_dict`;
    dropout draws from torch's global generator, and `order`, a `torch.Generator`, draws the batches.
    """

    def __init__(self, seed: int = 0):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 1e-2, total_steps=40)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=2)
        self.order = torch.Generator().manual_seed(seed)
        draw = torch.Generator().manual_seed(0)
        self.x = torch.randn(256, 8, generator=draw)
        self.y = torch.sin(self.x @ torch.randn(8, 4, generator=draw))

    def step(self) -> float:
        """Train on the next batch and return its loss."""
        rows = torch.randint(256, (16,), generator=self.order)
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            prediction = self.model(self.x[rows])
        loss = F.mse_loss(prediction.float(), self.y[rows])
        self.scaler.scale(loss).backward()
        scale = self.scaler.get_scale()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.scaler.get_scale() >= scale:
            self.schedule.step()
        return loss.item()


PARTS = {  # what lives on, and what is said where it was not restored
    "the weights": "Without the weights, there is nothing to resume: model.state_dict().",
    "the moments of Adam": "Without them, the next steps are those of a new run: optimizer.state_dict().",
    "the schedule": "A new schedule would warm up again: schedule.state_dict().",
    "the scale": "The scaler found its scale in earlier steps; a new scaler has not: scaler.state_dict().",
    "torch's global generator": "Dropout draws from it: torch.get_rng_state() and torch.set_rng_state(state).",
    "the order of the batches": "A new generator draws the first batches again: order.get_state() and set_state.",
}


def _pieces(t: SmallTraining) -> dict[str, list]:
    """What lives on after a step, as copies that can be compared."""
    moments = [
        values[name]
        for values in t.optimizer.state_dict()["state"].values()
        for name in ("exp_avg", "exp_avg_sq", "step")
    ]
    schedule = [t.schedule.last_epoch, t.optimizer.param_groups[0]["lr"]]
    scaler = t.scaler.state_dict()
    results = {
        "the weights": list(t.model.state_dict().values()),
        "the moments of Adam": moments,
        "the schedule": schedule,
        "the scale": [scaler["scale"], scaler["_growth_tracker"]],
        "torch's global generator": [torch.get_rng_state()],
        "the order of the batches": [t.order.get_state()],
    }
    return copy.deepcopy(results)


def _same(first: list, other: list) -> bool:
    return len(first) == len(other) and all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in zip(first, other, strict=True)
    )


@exercise(asks=RESUME, seconds=20)
def check_resume(answer) -> Outcome:
    """A pair (save, restore): save(t) gives the state of a `SmallTraining`, restore(t, state) puts it into another."""
    if not (isinstance(answer, tuple | list) and len(answer) == 2 and all(map(callable, answer))):
        return not_yet("The check needs both functions, as in check_resume((save, restore)).")
    save, restore = answer
    with torch.random.fork_rng(devices=[]):
        whole = SmallTraining()
        losses = [whole.step() for _ in range(20)]
        stopped = SmallTraining()
        for _ in range(10):
            stopped.step()
        there = _pieces(stopped)
        state = save(stopped)
        if state is None or state is ...:
            return Outcome(NOT_ATTEMPTED, "`save` returns nothing yet.")
        if changed := [name for name, piece in _pieces(stopped).items() if not _same(piece, there[name])]:
            return not_yet(f"`save` changes the run that it saves: {', '.join(changed)}.")
        if [stopped.step() for _ in range(10)] != losses[10:]:
            return not_yet("The run that was saved continues differently. `save` must leave it as it is.")
        later = _pieces(stopped)
        fresh = SmallTraining(seed=1)
        made = fresh.model
        restore(fresh, state)
        if not isinstance(fresh, SmallTraining) or fresh.model is not made:
            return not_yet("Load the state into the parts of the new run. Replacing them cuts the optimizer off.")
        for name, piece in _pieces(fresh).items():
            if _same(piece, there[name]):
                continue
            if _same(piece, later[name]):
                return not_yet(
                    f"{name[0].upper()}{name[1:]}: what you restored is the state of ten steps later. `state_dict` "
                    "returns references to tensors that keep changing. Copy it (copy.deepcopy), or write it to a file."
                )
            return not_yet(f"After `restore`, one part is not as it was: {name}. {PARTS[name]}")
        if [fresh.step() for _ in range(10)] != losses[10:] or not _same(
            _pieces(fresh)["the weights"], later["the weights"]
        ):
            return not_yet("All parts are as they were, but the next steps differ. Is one of the parts shared?")
    return correct(
        "Ten steps, a stop and ten more give the losses and weights of the run that was never stopped, bit for bit."
    )
