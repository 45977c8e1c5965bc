"""Checks of `training/loss_scaling`."""

import math
import warnings
from collections.abc import Callable

import torch
from torch import nn

from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    Unreadable,
    as_number,
    correct,
    exercise,
    not_yet,
    paper_table,
)
from utils.checks.training.loss_scaling_questions import (
    CLIPPED_STEP,
    LOST_SHARE,
    MEAN_OVER_A_PAGE,
    READ_A_TRACE,
    SCHEDULED_STEP,
)
from utils.emulation.exponent_histogram import histogram
from utils.formats import BFLOAT16, FLOAT16
from utils.loss_scaling import next_scale

check_mean_over_a_page = paper_table(
    MEAN_OVER_A_PAGE,
    says="2^-25 is 49 times as large as 6.1e-10, so 64 is enough, and 65536 has ten powers of two to spare.",
)


check_read_a_trace = paper_table(
    READ_A_TRACE,
    says="There are three halvings in three steps, 2,000 good steps before the scale grows, and a skip right after "
    "that. A log with only two entries cannot tell this run from one with three skips, so log the scale at every step.",
)


# --- Find the bug: the clip -------------------------------------------------------------------------------------------

SCALE = 65536.0


class _Toy(nn.Module):
    """Three weights in two parameters, all 0 at first; `loss(g)` has the gradient g."""

    def __init__(self):
        super().__init__()
        self.matrix, self.bias = nn.Parameter(torch.zeros(1, 2)), nn.Parameter(torch.zeros(1))

    def loss(self, gradient: list[float]) -> torch.Tensor:
        return (torch.cat([self.matrix.flatten(), self.bias]) * torch.tensor(gradient)).sum()

    def weights(self) -> torch.Tensor:
        return torch.cat([self.matrix.detach().flatten(), self.bias.detach()])


class _Scaler(torch.amp.GradScaler):
    """A GradScaler that notes which of its methods a learner has called."""

    def __init__(self, growth_interval: int = 2000):
        super().__init__("cpu", init_scale=SCALE, growth_interval=growth_interval)
        self.called = []

    def scale(self, outputs):
        self.called.append("scale")
        return super().scale(outputs)

    def unscale_(self, optimizer):
        self.called.append("unscale_")
        return super().unscale_(optimizer)

    def step(self, optimizer, *args, **kwargs):
        self.called.append("step")
        before = len(self.called)
        try:
            return super().step(optimizer, *args, **kwargs)
        finally:
            del self.called[before:]  # step calls unscale_ by itself

    def update(self, new_scale=None):
        self.called.append("update")
        return super().update(new_scale)


BELOW, ABOVE, OVERFLOW = [0.3, 0.0, 0.4], [3.0, 0.0, -4.0], [1e36, 1.0, 0.0]  # norms 0.5 and 5; 1e36 * 65536 is inf


@exercise(asks=CLIPPED_STEP, takes="clipped_step")
def check_clipped_step(answer) -> Outcome:
    """A function (model, loss, optimizer, scaler) that clips the gradient to the norm 1 and steps, without `unscale_`.

    It is run with a real GradScaler that starts at 65536, on gradients below and above the limit and on an overflow.
    """
    model, scaler = _Toy(), _Scaler()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer.zero_grad()  # the first call imports much, and is not the learner's time
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, gradient in enumerate((BELOW, ABOVE, OVERFLOW, BELOW, ABOVE), 1):
            before, seen = model.weights(), len(scaler.called)
            try:
                answer(model, model.loss(gradient), optimizer, scaler)
            except (RuntimeError, AssertionError) as error:
                return _misuse(error, number, scaler.called[seen:])
            moved = before - model.weights()
            if number == 1 and not scaler.called and not moved.any():
                return Outcome(NOT_ATTEMPTED, "The function does nothing yet: no weight has moved.")
            if (fault := _clip_fault(moved, gradient, number)) is not None:
                return fault
            if "scale" not in scaler.called:
                return not_yet(
                    f"Step {number} moves the weights as it should, but this check runs in float32. In float16, the "
                    "step would lose the small gradients.",
                    "The loss has to go through scaler.scale(loss).",
                )
            scale = SCALE if number < 3 else SCALE / 2
            if scaler.get_scale() != scale:
                return not_yet(
                    f"After step {number} the scale should be {scale:g}, but it is {scaler.get_scale():g}.",
                    "Call scaler.update() once, at the end of each step. It halves the scale after an overflow.",
                )
    if "unscale_" in scaler.called:
        return not_yet(
            "All five steps move the weights as they should, but your code calls `unscale_`.",
            "The gradients may keep the scale, because the limit can carry it too.",
        )
    return correct(
        "At every scale, a norm of 0.5 is left alone, a norm of 5 is cut to 1, and a step that overflows is skipped."
    )


def _misuse(error: Exception, number: int, called: list[str]) -> Outcome:
    """Say what the scaler refused, in which step, and as a hint why."""
    message = str(error)
    again = "already been called" in message or "after step" in message
    if "after step" in message and "step" in called:
        why = "unscale_ comes too late: the optimizer has already stepped. Clip between unscale_ and step."
    elif again and called.count("unscale_") > 1:
        why = "unscale_ may divide the gradients only once, so call it once in each step."
    elif again and number > 1:
        why = "The scaler has not closed the previous step: scaler.update() at the end of each step is missing."
    elif "non-finite" in message:
        why = "A step that overflows is not an error. Let the norm be infinite, and scaler.step will skip the step."
    elif "_scale is None" in message or "scale" not in called:
        why = "The loss has to go through scaler.scale(loss) before backward()."
    elif "prior to update" in message and called.count("update") > 1:
        why = "update() is called more than once in this step. Call it once, at the end."
    elif "prior to update" in message:
        why = "update() relies on what unscale_ and step have seen: let the scaler take the scale out and step."
    elif "No inf checks" in message:
        why = "There were no gradients to look at. zero_grad belongs before backward, or after the whole step."
    else:
        why = "Print which methods of the scaler are called, and in what order."
    return not_yet(f"Step {number} stops with {type(error).__name__}: {message}", why)


def _clip_fault(moved: torch.Tensor, gradient: list[float], number: int) -> Outcome | None:
    """Say how the weights should not have moved (with a learning rate of 1, by the clipped gradient), or give None."""
    g = torch.tensor(gradient)
    if gradient is OVERFLOW:
        if not moved.any():
            return None
        return not_yet(
            f"Step {number} overflows and should be skipped, but your step moves the weights by {_shown(moved)}.",
            "scaler.step(optimizer) skips such a step, but optimizer.step() does not.",
        )
    norm = float(g.norm())
    want = g / max(norm, 1.0)
    if torch.allclose(moved, want, rtol=1e-4, atol=1e-6):
        return None
    seen = f"Step {number} has a gradient of norm {norm:g}, and the limit is 1. It should move the weights by "
    seen += f"{_shown(want)}, but your step moves them by {_shown(moved)}."
    if number > 3 and not moved.any():
        return not_yet(
            seen,
            "The infinite gradients of the previous step are still there. Call zero_grad before each backward, or "
            "after the whole step.",
        )
    habits = {
        "That is 65536 times too little, with and without clipping, because the gradients were divided by the scale "
        "twice. scaler.step divides them too, unless unscale_ has already done so.": g / SCALE,
        "What norm do the gradients have when they are clipped? If they still carry the scale, they are clipped to 1 "
        "and then divided by the scale. The gradients and the limit have to be in the same unit.": g
        / norm
        / (SCALE if number < 3 else SCALE / 2),
        "The limit fitted the first scale, but the overflow has halved the scale since then.": 2 * g / norm,
        "These are still the scaled gradients. scaler.unscale_ or scaler.step takes the scale out, but optimizer.step "
        "does not.": g * SCALE,
        "The norm is 1, but it was 0.5 and needed no clipping: the scaled gradients were clipped. Also, optimizer.step "
        "does not take the scale out. scaler.step does, and it skips a step that overflows.": g / norm,
        "The gradients were not clipped, or only after the step. Clip them between backward and step.": g,
        "Each parameter, or each value, was clipped on its own. The limit is for the norm of all gradients together, "
        "so make one call of clip_grad_norm_ with model.parameters().": torch.tensor([3 / 3.0, 0.0, -4 / 4.0]),
    }
    if norm > 1:
        habits.pop(next(message for message in habits if message.startswith("The norm is 1")))
    why = next(
        (message for message, wrong in habits.items() if torch.allclose(moved, wrong, rtol=1e-3, atol=1e-9)),
        "The order is scale, backward, clip, step, update. Print the norm right before the clip.",
    )
    return not_yet(seen, why)


def _shown(x: torch.Tensor) -> str:
    return "[" + ", ".join(f"{v:.3g}" for v in x.tolist()) + "]"


# --- Find the bug: the schedule ---------------------------------------------------------------------------------------

GROWTH_INTERVAL = 3
# Of each step, what the two optimizers meet. The scale grows in the steps 5, 12 and 15: three good ones in a row.
KINDS = (
    ("good", "good"),
    ("skipped", "good"),
    ("good", "good"),
    ("still", "good"),
    ("good", "good"),
    ("good", "skipped"),
    ("skipped", "skipped"),
    ("good", "skipped"),
    ("skipped", "good"),
    ("good", "good"),
    ("good", "still"),
    ("good", "good"),
    ("good", "good"),
    ("good", "good"),
    ("good", "good"),
    ("good", "skipped"),
)
STILL = [0.0, 0.0, 0.0]  # a gradient that is zero: the step is taken, and no weight moves
NAMES = ("first", "second")


@exercise(asks=SCHEDULED_STEP, takes="scheduled_step")
def check_scheduled_step(answer) -> Outcome:
    """A function (losses, optimizers, scaler, schedules): each schedule moves once for each step of its optimizer.

    It is run with a real GradScaler that grows after three good steps, and on steps in which both optimizers, either or
    none overflows.
    """
    models, scaler = (_Toy(), _Toy()), _Scaler(growth_interval=GROWTH_INTERVAL)
    optimizers = [torch.optim.SGD(model.parameters(), lr=1.0) for model in models]
    optimizers[0].zero_grad()  # as above
    schedules = [torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 2.0**-n) for optimizer in optimizers]
    moves = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, kinds in enumerate(KINDS, 1):
            before, counts = [model.weights() for model in models], [schedule.last_epoch for schedule in schedules]
            seen, rates = len(scaler.called), [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
            gradients = [torch.tensor({"skipped": OVERFLOW, "still": STILL}.get(kind, BELOW)) for kind in kinds]
            losses = [model.loss(gradient.tolist()) for model, gradient in zip(models, gradients, strict=True)]
            try:
                answer(losses, list(optimizers), scaler, list(schedules))
            except (RuntimeError, AssertionError) as error:
                return _misuse(error, number, scaler.called[seen:])
            moved = [old - model.weights() for old, model in zip(before, models, strict=True)]
            moves.append(tuple(schedule.last_epoch - count for schedule, count in zip(schedules, counts, strict=True)))
            if number == 1 and not scaler.called and not moved[0].any() and moves == [(0, 0)]:
                return Outcome(NOT_ATTEMPTED, "The function does nothing yet: no weight has moved.")
            for which, (move, gradient, rate, kind) in enumerate(zip(moved, gradients, rates, kinds, strict=True)):
                place = f"Step {number} of the {NAMES[which]} optimizer"
                if (
                    fault := _step_fault(move, gradient, rate=rate, place=place, skipped=kind == "skipped")
                ) is not None:
                    return fault
            if (fault := _update_fault(scaler, number, scaler.called[seen:].count("update"))) is not None:
                return fault
    if moves != RIGHT_MOVES:
        return _schedule_fault(moves)
    first, second = map(sum, zip(*moves, strict=True))
    return correct(
        f"Of {len(KINDS)} steps, the first optimizer took {first} and the second {second}, and each schedule moved as "
        "often as its optimizer stepped."
    )


def _step_fault(
    moved: torch.Tensor, gradient: torch.Tensor, *, rate: float, place: str, skipped: bool
) -> Outcome | None:
    """Say how the weights should not have moved, or give None."""
    if skipped:
        return (
            not_yet(f"{place} overflows, but the weights still move.", "Leave the skipping to scaler.step.")
            if moved.any()
            else None
        )
    if torch.allclose(moved, rate * gradient, rtol=1e-3, atol=1e-7):
        return None
    seen = f"{place} should move the weights by {_shown(rate * gradient)}, but moves them by {_shown(moved)}."
    if torch.allclose(moved, rate / 2 * gradient, rtol=1e-3, atol=1e-7):
        why = "The schedule moved before the optimizer, so this step had the learning rate of the next one."
    elif not moved.any():
        why = "Are the previous gradients still there? Call zero_grad, scale, backward and step for each optimizer."
    else:
        why = "Only the schedules need fixing. The calls of zero_grad, scale, backward, step and one update were right."
    return not_yet(seen, why)


def _update_fault(scaler: _Scaler, number: int, updates: int) -> Outcome | None:
    """Say what is wrong with the scale after a step, or with how often it was updated in it, or give None."""
    if updates > 1:
        return not_yet(
            f"In step {number}, your function calls scaler.update() {updates} times.",
            "To the scaler, each update ends a step, so the scale would grow twice as often. Both optimizers take part "
            "in one step: call update once, after the loop.",
        )
    scale, good = SCALE, 0
    for kinds in KINDS[:number]:
        scale, good = next_scale(scale, good, "skipped" in kinds, growth_interval=GROWTH_INTERVAL)
    if scaler.get_scale() == scale or not updates:  # without an update, the next step stops
        return None
    return not_yet(
        f"After step {number}, the scale should be {scale:g}, but it is {scaler.get_scale():g}.",
        "Call scaler.update() without an argument, so that the scaler adapts the scale itself.",
    )


def _moves(rule: Callable[[tuple[str, str], int, bool], bool]) -> list[tuple[int, int]]:
    """How the schedules move by a rule of the kinds of a step, the optimizer, and whether the scale has grown."""
    moves, good = [], 0
    for kinds in KINDS:
        good = 0 if "skipped" in kinds else good + 1
        grown = good == GROWTH_INTERVAL
        good = 0 if grown else good
        moves.append(tuple(int(rule(kinds, which, grown)) for which in (0, 1)))
    return moves


RIGHT_MOVES = _moves(lambda kinds, which, grown: kinds[which] != "skipped")
HABITS = (
    (
        _moves(lambda kinds, which, grown: "skipped" not in kinds),
        "In this step, one optimizer overflows and the other does not. The scale falls in either case, so it cannot "
        "tell them apart. What else differs between them: the gradients, or whether `optimizer.step` is called?",
    ),
    (
        _moves(lambda kinds, which, grown: kinds != ("skipped", "skipped")),
        "Both schedules move when at least one optimizer has stepped. Check each optimizer separately.",
    ),
    (
        _moves(lambda kinds, which, grown: "skipped" not in kinds and not grown),
        "Both optimizers share one scale, so it falls when either of them overflows, and when it grows, both have "
        "stepped. Do not go by the scale.",
    ),
    (
        _moves(lambda kinds, which, grown: "skipped" in kinds),
        "The schedules move only when the scale has fallen, that is, when a step was skipped.",
    ),
    (_moves(lambda kinds, which, grown: True), "The schedules move every time, even after a skipped step."),
    (
        _moves(lambda kinds, which, grown: False),
        "The schedules never move. Do you go by what scaler.step returns? That is what optimizer.step returns, and "
        "here it is None in either case.",
    ),
    (
        _moves(lambda kinds, which, grown: kinds[which] == "good"),
        "A step with a gradient of zero is also taken, although no weight moves.",
    ),
    (
        _moves(lambda kinds, which, grown: kinds[1 - which] != "skipped"),
        "Each schedule moves with the other optimizer.",
    ),
    (
        _moves(lambda kinds, which, grown: kinds[0] != "skipped"),
        "Both schedules follow the first optimizer.",
    ),
    (
        _moves(lambda kinds, which, grown: kinds[1] != "skipped"),
        "Both schedules follow the second optimizer. Is a loop variable used after the loop?",
    ),
)


def _schedule_fault(moves: list[tuple[int, int]]) -> Outcome:
    """Name the first step in which a schedule is wrong; the hint says what it did, and by what rule, if that is known.

    Which optimizer skipped is part of the hint, because the page shows the message before the first attempt.
    """
    step, which = next(
        (n, which) for n, pair in enumerate(moves) for which in (0, 1) if pair[which] != RIGHT_MOVES[n][which]
    )
    did = {0: "did not move", 1: "moved"}.get(moves[step][which], f"moved {moves[step][which]} times")
    own, others = ("skipped" if KINDS[step][n] == "skipped" else "took" for n in (which, 1 - which))
    seen = (
        f"The {NAMES[which]} optimizer {own} step {step + 1}, and the {NAMES[1 - which]} {others} it"
        f"{' too' if own == others else ''}. The schedule of the {NAMES[which]} optimizer {did}."
    )
    why = next(
        (why for rule, why in HABITS if moves == rule),
        "Each schedule should move once, and only when its own optimizer has stepped.",
    )
    return not_yet(
        f"After step {step + 1}, a schedule has not moved as often as its own optimizer has stepped.", f"{seen} {why}"
    )


# --- Does bfloat16 need it? -------------------------------------------------------------------------------------------

DTYPES = {torch.float16: FLOAT16, torch.bfloat16: BFLOAT16}
LOST_CASES = (  # gradients, dtype, scale, and what to think of where the share is wrong
    ([1.0, 3.0, -1e-9, 2.0], torch.float16, 1.0, "One of these four becomes zero."),
    ([0.0, 0.0, 1e-9, 1.0], torch.float16, 1.0, "What was zero before is not lost, and does not count in the total."),
    (
        [1.0, 1e-6, 1e-7, 4e-8],
        torch.float16,
        1.0,
        "4e-8 is more than half of the smallest subnormal, so it is rounded up.",
    ),
    (
        [1e-9, 3e-9, 1.0, 2.0],
        torch.float16,
        16.0,
        "Multiply first, in float32, because what the cast has made zero stays zero.",
    ),
    ([-1.0, -2.0, -1e-7, 1.0], torch.float16, 1.0, "Negative gradients count as well as positive ones."),
    (
        [1e-9, 1e-20, 1e-30, 1.0],
        torch.bfloat16,
        1.0,
        "bfloat16 has the exponents of float32, so it keeps all of these.",
    ),
    (
        [1e-41, 1e-40, 1.0, 2.0],
        torch.bfloat16,
        1.0,
        "bfloat16 ends too, at 2^-133, and 1e-41 is less than half of that. Cast, and count the zeros.",
    ),
    (
        [1e-41, 2e-41, 1.0, 2.0],
        torch.bfloat16,
        2.0**10,
        "After multiplication by 1,024, all of these are far above 2^-133.",
    ),
    ([1e5, 1.0], torch.float16, 1.0, "1e5 becomes infinite in float16. It is lost in another way, but it is not zero."),
    (
        [2.0**-25, 1.0],
        torch.float16,
        1.0,
        "2^-25 is exactly half of the smallest float16 number. The tie goes to zero, so cast instead of comparing.",
    ),
    ([[1e-9, 1.0], [0.0, 2.0]], torch.float16, 1.0, "Here the gradients are a matrix, so count all of its entries."),
    ([0.0, 0.0], torch.float16, 1.0, "No gradient can be lost here, and 0/0 would be NaN. The share is 0."),
    ([], torch.float16, 1.0, "There are no gradients at all here. The share is 0."),
)


@exercise(asks=LOST_SHARE, takes="lost_share")
def check_lost_share(answer) -> Outcome:
    """A function (grads, dtype, scale=1.0) to the share of the non-zero gradients that become zero in `dtype`."""
    first = answer(torch.tensor([1.0, 2.0, 3.0, 1e-9]), torch.float16)
    if first is None or first is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet. Return the share.")
    if as_number(first) in (25, 75):
        return not_yet("One of [1, 2, 3, 1e-9] is lost. Return a share between 0 and 1, not a percentage.")
    if as_number(first) == 0.75:
        return not_yet("One of [1, 2, 3, 1e-9] is lost, a share of 0.25. Yours is the share that is kept.")
    for values, dtype, scale, hint in LOST_CASES:
        got, want = _lost(answer, torch.tensor(values), dtype, scale), _true_share(values, dtype, scale)
        if not math.isclose(got, want, abs_tol=1e-6):
            times = f", times {scale:g}" if scale != 1 else ""
            return not_yet(
                f"Of {values}{times}, {_name(dtype)} loses a share of {want:g}, but yours is {got:g}. {hint}"
            )
    gradients = like_recorded()
    shares = {}
    for dtype in DTYPES:
        for scale in (1.0, 2.0**8, 2.0**16):
            got, want = _lost(answer, gradients, dtype, scale), _true_share(gradients, dtype, scale)
            if not math.isclose(got, want, abs_tol=1e-6):
                return not_yet(
                    f"Of {gradients.numel():,} gradients, times {scale:g}, {_name(dtype)} loses {want:.3%}, but your "
                    f"function gives {got:.3%}."
                )
            shares[dtype, scale] = want
    return correct(
        f"Of the {gradients.numel():,} random gradients, float16 loses {shares[torch.float16, 1.0]:.1%} without a "
        f"scale and {shares[torch.float16, 2.0**16]:.2%} with a scale of 65536. bfloat16 loses "
        f"{shares[torch.bfloat16, 1.0]:.0%} without any scale."
    )


def like_recorded() -> torch.Tensor:
    """Gradients [20000] spread like those of a first layer that was watched: around 2^-24, over some 25 binades."""
    draw = torch.Generator().manual_seed(0)
    spread = torch.exp2(-24 + 3 * torch.randn(20_000, generator=draw))
    sign = 1 - 2 * torch.randint(0, 2, (20_000,), generator=draw)
    return spread * sign * (torch.arange(20_000) % 5 > 0)  # every fifth is zero


def _true_share(gradients, dtype: torch.dtype, scale: float) -> float:
    return histogram(torch.as_tensor(gradients)).flushed(DTYPES[dtype], scale)


def _lost(answer: Callable, gradients: torch.Tensor, dtype: torch.dtype, scale: float) -> float:
    before = gradients.clone()
    got = as_number(answer(gradients, dtype, scale) if scale != 1 else answer(gradients, dtype))
    if not torch.equal(gradients, before):
        raise Unreadable("The function changes its input. Make a new tensor: `grads * scale`, not `grads *= scale`.")
    return got


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
