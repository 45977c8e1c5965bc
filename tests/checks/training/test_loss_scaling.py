"""The checks of training/loss_scaling: the right answer, and for each foreseen wrong one the hint that names it."""

import math
import re

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

from tests.book_questions import right_option
from utils.checks.outcome import NOT_YET
from utils.checks.training import loss_scaling, loss_scaling_questions

INF, NAN = math.inf, math.nan


# --- What the predictions claim


def test_a_schedule_with_the_comparison_turned_round_moves_only_on_skipped_steps():
    right = right_option(loss_scaling_questions.INVERTED)
    assert right.text == "12 steps into the warm-up of 500"
    run, moved = OneWeight(), 0
    run.scaler = torch.amp.GradScaler("cpu")
    run.scaler.scale(torch.ones(()))
    for n in range(10_000):
        before = run.scaler.get_scale()
        moved += run.after(n % 800 != 5 or n > 9_000) < before
    assert moved == 12


def test_a_gradient_that_overflows_in_float16_is_infinite_while_the_scaled_loss_is_finite():
    weight = torch.tensor([1e-3], requires_grad=True)
    loss = (weight.half() * 1e-3).float().sum() * 2.0**36
    loss.backward()
    assert loss.isfinite()
    assert weight.grad.isinf()


# --- 1: the mean over a page

PAGE = {"gradient": 1 / 50_000 / 32_768, "smallest scale": 64}


def test_the_gradient_of_a_page_is_what_autograd_gives_and_64_is_the_smallest_scale():
    logits = torch.zeros(1, 50_000, requires_grad=True)
    (nn.functional.cross_entropy(logits, torch.tensor([7])) / (32 * 1024)).backward()
    gradient = logits.grad[0, 0]
    assert gradient.item() == pytest.approx(PAGE["gradient"], rel=1e-5)
    assert [(gradient * scale).half().item() for scale in (32, 64)] == [0.0, 2.0**-24]
    assert 2.0**17 * gradient >= 2.0**-14 > 2.0**16 * gradient  # the hint for 131072
    assert loss_scaling.check_mean_over_a_page(PAGE)
    for rounded in ("6.1e-10", "6e-10", "1/1638400000"):
        assert loss_scaling.check_mean_over_a_page({"gradient": rounded, "smallest scale": "2**6"})


@pytest.mark.parametrize(
    ("key", "answer", "hint"),
    [
        ("gradient", 1 / 50_000, "divide by their number"),
        ("gradient", 2.0**-15, "That is 1/N"),
        ("gradient", (1 / 50_000 - 1) / 2**15, "the right word"),
        ("gradient", (1 - 1 / 50_000) / 2**15, "right word's gradient"),
        ("gradient", 1 / 50_000 / 32, "not over the 32 texts"),
        ("gradient", 1 / 50_000 / 1024, "all 32 texts"),
        ("gradient", 2.0**-30, "not 2^15"),
        ("gradient", 32_768 / 50_000, "not a sum"),
        ("gradient", math.log(50_000) / 32_768, "the loss"),
        ("gradient", 2 / 50_000 / 32_768, "square"),
        ("gradient", -PAGE["gradient"], "positive"),
        ("gradient", 1, "over how many tokens"),
        ("gradient", 5.9e-10, "over how many tokens"),
        ("smallest scale", 6, "not its exponent"),
        ("smallest scale", 32, "still becomes 0"),
        ("smallest scale", 128, "so is half as much"),
        ("smallest scale", 256, "so is a smaller scale"),
        ("smallest scale", 1024, "more than enough"),
        ("smallest scale", 65536, "usual initial scale"),
        ("smallest scale", 131072, "all its bits"),
        ("smallest scale", 1 / 64, "smaller"),
        ("smallest scale", 1, "without a scale"),
        ("smallest scale", 48.83, "next power of two"),
        ("smallest scale", 97.66, "is rounded up"),
        ("smallest scale", 49, "Multiply 6.1e-10"),
    ],
)
def test_the_mean_over_a_page_names_the_misconception(key, answer, hint):
    outcome = loss_scaling.check_mean_over_a_page(PAGE | {key: answer})
    assert outcome.status == NOT_YET
    assert outcome.message.startswith(key.capitalize()) or outcome.message.startswith(key)
    assert hint in outcome.message


# --- 2: a trace

TRACE = {"skipped": 4, "last of three": 1001}
SKIPPED = (1, 2, 3, 2004)


class OneWeight:
    """A GradScaler with its default settings, driven by whether the gradient of each step is finite."""

    def __init__(self, first=65536.0):
        self.scaler = torch.amp.GradScaler("cpu", init_scale=first)
        self.weight = nn.Parameter(torch.zeros(1))
        self.optimizer = torch.optim.SGD([self.weight], lr=0.0)
        self.scaler.scale(torch.ones(()))  # a scaler starts with its first loss

    def after(self, finite):
        self.weight.grad = torch.tensor([0.0 if finite else INF])
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return self.scaler.get_scale()


def scales_after(skipped, steps=3000):
    run = OneWeight()
    return {n: run.after(n not in skipped) for n in range(1, steps + 1)}


def test_the_trace_is_what_a_grad_scaler_gives():
    scales = scales_after(SKIPPED)
    assert [scales[n] for n in (3, 2002, 2003, 2004)] == [8192, 8192, 16384, 8192]
    assert scales[3000] == 8192


@pytest.mark.parametrize("last", [1001, 1002, 2001, 2004, 3000])
def test_a_run_with_three_skips_may_have_the_same_log(last):
    middle = min(last - 1, 1500)
    assert scales_after((1, middle, last))[3000] == 8192


@pytest.mark.parametrize("last", [3, 500, 999, 1000])
def test_a_run_whose_third_and_last_skip_is_earlier_has_another_log(last):
    for first_two in ((1, 2), (1, last - 1), (last - 2, last - 1)):
        assert scales_after((*first_two, last))[3000] == 16384


def test_the_trace_takes_a_count_and_a_step():
    assert loss_scaling.check_read_a_trace(TRACE)
    assert len(SKIPPED) == TRACE["skipped"]
    assert loss_scaling.check_read_a_trace({"skipped": "4", "last of three": torch.tensor(1001)})


def test_nothing_that_the_count_says_gives_the_step_away():
    count = loss_scaling_questions.READ_A_TRACE["skipped"]
    said = " ".join((count.text, count.says, count.otherwise, *count.wrong.values(), *count.hints))
    assert not re.search(r"\b1,?00[01]\b|1,?999", said)


@pytest.mark.parametrize(
    ("skipped", "hint"),
    [
        (1, "at the start"),
        (2, "How many halvings"),
        (3, "16384 become 8192"),
        (5, "How many are there at the end"),
        (2000, "were taken"),
        (8, "is 8 times 8192"),
        (7, "Count the halvings"),
        ([1, 2, 3, 2004], "not a number"),
    ],
)
def test_the_trace_names_the_misconception(skipped, hint):
    outcome = loss_scaling.check_read_a_trace(TRACE | {"skipped": skipped})
    assert outcome.status == NOT_YET
    assert outcome.message.startswith("skipped: ")
    assert hint in outcome.message


@pytest.mark.parametrize(
    ("last", "hint"),
    [
        (1000, "2,000 good steps in a row"),
        (3, "from 4 to 2,003"),
        (999, "more than 2,000 good steps follow"),
        (1002, "can come earlier"),
        (2004, "can come earlier"),
        (3000, "can come earlier"),
        (0, "between 1 and 3,000"),
        (3001, "between 1 and 3,000"),
    ],
)
def test_the_last_of_three_skips_has_hints_of_its_own(last, hint):
    outcome = loss_scaling.check_read_a_trace(TRACE | {"last of three": last})
    assert outcome.status == NOT_YET
    assert outcome.message.startswith("last of three: ")
    assert hint in outcome.message


# --- 3: the clip


def order(*actions):
    """A training step that does these things in this order."""

    def step(model, loss, optimizer, scaler):
        scale = scaler.get_scale()  # before anything

        def by_hand():
            for parameter in model.parameters():
                parameter.grad /= scale

        def one_by_one():
            for parameter in model.parameters():
                clip_grad_norm_([parameter], 1.0)

        def back():
            for parameter in model.parameters():
                parameter.grad *= scale

        todo = {
            "multiply": back,
            "clip to 65536": lambda: clip_grad_norm_(model.parameters(), 65536.0),
            "zero": optimizer.zero_grad,
            "backward": lambda: scaler.scale(loss).backward(),
            "plain backward": lambda: loss.backward(),
            "unscale": lambda: scaler.unscale_(optimizer),
            "divide": by_hand,
            "clip": lambda: clip_grad_norm_(model.parameters(), 1.0),
            "clip to the scale": lambda: clip_grad_norm_(model.parameters(), scale),
            "clip each": one_by_one,
            "clip values": lambda: nn.utils.clip_grad_value_(model.parameters(), 1.0),
            "step": lambda: scaler.step(optimizer),
            "plain step": lambda: optimizer.step(),
            "update": lambda: scaler.update(),
        }
        for action in actions:
            todo[action]()

    return step


@pytest.mark.parametrize(
    "right",
    [
        order("zero", "backward", "clip to the scale", "step", "update"),
        order("backward", "clip to the scale", "step", "update", "zero"),
        order("backward", "clip to the scale", "step", "zero", "update"),
        order("zero", "backward", "divide", "clip", "multiply", "step", "update"),
    ],
)
def test_clipped_step_takes_every_way_to_clip_true_gradients_without_unscale(right):
    outcome = loss_scaling.check_clipped_step(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    "unscaled",
    [
        order("zero", "backward", "unscale", "clip", "step", "update"),
        order("zero", "backward", "clip to the scale", "unscale", "step", "update"),
    ],
)
def test_a_step_that_calls_unscale_is_told_that_the_limit_can_carry_the_scale(unscaled):
    outcome = loss_scaling.check_clipped_step(unscaled)
    assert outcome.status == NOT_YET
    assert "your code calls `unscale_`" in outcome.message
    assert "the limit can carry it too" in outcome.hint


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (order("zero", "backward", "clip", "step", "update"), "in the same unit"),
        (order("zero", "backward", "clip", "unscale", "step", "update"), "in the same unit"),
        (order("zero", "backward", "clip to 65536", "step", "update"), "has halved the scale since then"),
        (order("zero", "backward", "divide", "clip", "step", "update"), "divided by the scale twice"),
        (order("zero", "backward", "unscale", "divide", "clip", "step", "update"), "divided by the scale twice"),
        (order("zero", "backward", "step", "unscale", "clip", "update"), "unscale_ comes too late"),
        (order("zero", "backward", "unscale", "unscale", "clip", "step", "update"), "once in each step"),
        (order("zero", "backward", "unscale", "clip", "step"), "scaler.update() at the end of each step is missing"),
        (order("zero", "backward", "clip", "step"), "in the same unit"),
        (order("zero", "backward", "clip to the scale", "step"), "scaler.update() at the end of each step is missing"),
        (order("zero", "backward", "step", "update"), "The gradients were not clipped"),
        (order("zero", "backward", "step", "clip", "update"), "only after the step"),
        (order("zero", "backward", "plain step"), "still the scaled gradients"),
        (order("zero", "backward", "clip", "plain step"), "it was 0.5 and needed no clipping"),
        (order("zero", "backward", "unscale", "clip", "plain step", "update"), "skips such a step"),
        (order("zero", "backward", "unscale", "clip each", "step", "update"), "was clipped on its own"),
        (order("zero", "backward", "unscale", "clip values", "step", "update"), "or each value"),
        (order("backward", "clip to the scale", "step", "update"), "zero_grad before each backward"),
        (order("backward", "zero", "clip to the scale", "step", "update"), "zero_grad belongs before backward"),
        (order("zero", "plain backward", "clip", "step", "update"), "through scaler.scale(loss)"),
        (order("zero", "plain backward", "clip", "plain step"), "through scaler.scale(loss)"),
        (order("zero", "backward", "divide", "clip", "plain step", "update"), "let the scaler take the scale out"),
        (order("zero", "backward", "clip to the scale", "step", "update", "update"), "more than once"),
    ],
)
def test_clipped_step_tells_what_was_seen_and_folds_the_mistake(wrong, hint):
    outcome = loss_scaling.check_clipped_step(wrong)
    assert outcome.status == NOT_YET
    assert outcome.message.split()[0] in ("Step", "After")
    assert hint in outcome.hint
    assert hint not in outcome.message


def test_the_step_of_the_exercise_shows_numbers_and_no_cause():
    outcome = loss_scaling.check_clipped_step(order("zero", "backward", "clip", "step", "update"))
    assert outcome.message == (
        "Step 1 has a gradient of norm 0.5, and the limit is 1. It should move the weights by [0.3, 0, 0.4], but "
        "your step moves them by [9.16e-06, 0, 1.22e-05]."
    )


def test_what_torch_refuses_is_seen_and_the_reason_folded():
    outcome = loss_scaling.check_clipped_step(order("zero", "backward", "step", "unscale", "clip", "update"))
    assert outcome.message == "Step 1 stops with RuntimeError: unscale_() is being called after step()."


def test_a_clip_that_raises_on_an_overflow_is_told_that_an_overflow_is_no_error():
    def strict(model, loss, optimizer, scaler):
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        scaler.step(optimizer)
        scaler.update()

    outcome = loss_scaling.check_clipped_step(strict)
    assert outcome.message.startswith("Step 3 stops with RuntimeError")
    assert "not an error" in outcome.hint


def test_a_step_with_another_limit_is_refused():
    def half_the_limit(model, loss, optimizer, scaler):
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 0.25)
        scaler.step(optimizer)
        scaler.update()

    assert "Print the norm right before the clip" in loss_scaling.check_clipped_step(half_the_limit).hint


# --- 4: the schedule


def scheduled(test, *, zero=True, step=True, update=True, early=False, times=1):
    """The step of the exercise, with another comparison of the scales."""

    def one_step(losses, optimizers, scaler, schedules):
        before = scaler.get_scale()
        for loss, optimizer in zip(losses, optimizers, strict=True):
            if zero:
                optimizer.zero_grad()
            scaler.scale(loss).backward()
            if early:
                schedules[optimizers.index(optimizer)].step()
            if step:
                scaler.step(optimizer)
            else:
                scaler.unscale_(optimizer)
                optimizer.step()
        if update:
            scaler.update()
        if not early and test(scaler.get_scale(), before):
            for _ in range(times):
                for schedule in schedules:
                    schedule.step()

    return one_step


def each(stepped, *new_scale):
    """A step in which `stepped` tells, of each optimizer, whether it has stepped; `new_scale` is given to `update`."""

    def one_step(losses, optimizers, scaler, schedules):
        answers = []
        for loss, optimizer in zip(losses, optimizers, strict=True):
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            answers.append(stepped(optimizer, scaler))
        scaler.update(*new_scale)
        for schedule, answer in zip(schedules, answers, strict=True):
            if answer:
                schedule.step()

    return one_step


def gradients_of(optimizer):
    return [weight.grad for group in optimizer.param_groups for weight in group["params"]]


def by_looking_at_the_gradients(optimizer, scaler):
    scaler.step(optimizer)
    return all(grad.isfinite().all() for grad in gradients_of(optimizer))


def by_the_norm(optimizer, scaler):
    scaler.unscale_(optimizer)
    norm = nn.utils.get_total_norm(gradients_of(optimizer))
    scaler.step(optimizer)
    return norm.isfinite()


def by_a_hook(optimizer, scaler):
    stepped = []
    optimizer.register_step_post_hook(lambda *_: stepped.append(True))  # never removed: the old ones do no harm
    scaler.step(optimizer)
    return bool(stepped)


def by_a_wrapped_step(optimizer, scaler):
    stepped, old = [], optimizer.step
    optimizer.step = lambda *a, **k: (stepped.append(True), old(*a, **k))[1]
    scaler.step(optimizer)
    optimizer.step = old
    return bool(stepped)


def by_the_scale_after_each_update(losses, optimizers, scaler, schedules):
    for loss, optimizer, schedule in zip(losses, optimizers, schedules, strict=True):
        optimizer.zero_grad()
        before = scaler.get_scale()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() >= before:
            schedule.step()


def by_a_hook_with_two_updates(losses, optimizers, scaler, schedules):
    for loss, optimizer, schedule in zip(losses, optimizers, schedules, strict=True):
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        taken = by_a_hook(optimizer, scaler)
        scaler.update()
        if taken:
            schedule.step()


def by_looking_at_the_weights(optimizer, scaler):
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    before = [weight.detach().clone() for weight in weights]
    scaler.step(optimizer)
    return any(not torch.equal(old, new) for old, new in zip(before, weights, strict=True))


def by_what_step_returns(optimizer, scaler):
    return scaler.step(optimizer) is not None


def by_the_last_gradients(losses, optimizers, scaler, schedules):
    for loss, optimizer in zip(losses, optimizers, strict=True):
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        finite = all(grad.isfinite().all() for grad in gradients_of(optimizer))
    scaler.update()
    for schedule in schedules:
        if finite:
            schedule.step()


def crossed(losses, optimizers, scaler, schedules):
    each(by_looking_at_the_gradients)(losses, optimizers, scaler, schedules[::-1])


def if_any(losses, optimizers, scaler, schedules):
    answers = []
    for loss, optimizer in zip(losses, optimizers, strict=True):
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        answers.append(by_looking_at_the_gradients(optimizer, scaler))
    scaler.update()
    for schedule in schedules:
        if any(answers):
            schedule.step()


@pytest.mark.parametrize(
    "how", [by_looking_at_the_gradients, by_the_norm, by_a_hook, by_a_wrapped_step], ids=lambda how: how.__name__
)
def test_scheduled_step_takes_every_way_to_know_that_the_step_was_taken(how):
    outcome = loss_scaling.check_scheduled_step(each(how))
    assert outcome, outcome.message
    assert outcome.message == (
        "Of 16 steps, the first optimizer took 13 and the second 12, and each schedule moved as often as its optimizer "
        "stepped."
    )


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (scheduled(float.__ge__), "it cannot tell them apart"),
        (scheduled(float.__eq__), "Do not go by the scale"),
        (scheduled(float.__lt__), "only when the scale has fallen"),
        (scheduled(lambda new, old: True), "every time, even after a skipped step"),
        (scheduled(lambda new, old: False), "never move"),
        (each(by_what_step_returns), "here it is None in either case"),
        (each(by_looking_at_the_weights), "is also taken"),
        (scheduled(float.__gt__), "when its own optimizer has stepped"),
        (by_the_last_gradients, "follow the second optimizer"),
        (crossed, "with the other optimizer"),
        (if_any, "Check each optimizer separately"),
        (scheduled(float.__ge__, times=2), "when its own optimizer has stepped"),
        (scheduled(None, early=True), "had the learning rate of the next one"),
        (scheduled(float.__ge__, update=False), "scaler.update() at the end"),
        (by_the_scale_after_each_update, "the scale would grow twice as often"),
        (by_a_hook_with_two_updates, "the scale would grow twice as often"),
        (each(by_a_hook, 65536.0), "without an argument"),
        (scheduled(float.__ge__, zero=False), "zero_grad, scale, backward"),
        (scheduled(float.__ge__, step=False), "Leave the skipping to scaler.step"),
        (lambda losses, optimizers, scaler, schedules: schedules[0].step(), "zero_grad, scale, backward"),
    ],
)
def test_scheduled_step_tells_what_was_seen_and_folds_the_mistake(wrong, hint):
    outcome = loss_scaling.check_scheduled_step(wrong)
    assert outcome.status == NOT_YET
    assert re.search(r"\bstep \d", outcome.message, re.IGNORECASE)
    assert hint in outcome.hint
    assert hint not in outcome.message


@pytest.mark.parametrize(
    ("wrong", "seen"),
    [
        (
            scheduled(float.__ge__),
            "The second optimizer took step 2, and the first skipped it. The schedule of the second optimizer did not "
            "move.",
        ),
        (
            scheduled(lambda new, old: True),
            "The first optimizer skipped step 2, and the second took it. The schedule of the first optimizer moved.",
        ),
        (
            scheduled(float.__ge__, times=2),
            "The first optimizer took step 1, and the second took it too. The schedule of the first optimizer moved 2 "
            "times.",
        ),
    ],
)
def test_a_schedule_that_is_wrong_is_shown_in_the_first_such_step_and_folded(wrong, seen):
    outcome = loss_scaling.check_scheduled_step(wrong)
    assert outcome.hint.startswith(seen)
    number = re.search(r"step (\d+)", seen)[1]
    assert (
        outcome.message == f"After step {number}, a schedule has not moved as often as its own optimizer has stepped."
    )


def test_no_two_habits_of_a_schedule_look_alike():
    rules = [loss_scaling.RIGHT_MOVES, *(rule for rule, _ in loss_scaling.HABITS)]
    assert len({tuple(rule) for rule in rules}) == len(rules)


# --- 5: what is lost


def lost_share(grads, dtype, scale=1.0):
    alive = grads[grads != 0]
    return ((alive * scale).to(dtype) == 0).float().mean() if len(alive) else 0.0


def by_sums(grads, dtype, scale=1.0):
    lost = ((grads * scale).to(dtype) == 0) & (grads != 0)
    return (lost.sum() / (grads != 0).sum()).nan_to_num(0).item()


@pytest.mark.parametrize("right", [lost_share, by_sums])
def test_lost_share_takes_every_way_to_count(right):
    outcome = loss_scaling.check_lost_share(right)
    assert outcome, outcome.message
    assert "bfloat16 loses 0% without any" in outcome.message


def cast_first(grads, dtype, scale=1.0):
    alive = grads[grads != 0]
    return ((alive.to(dtype) * scale) == 0).float().mean() if len(alive) else 0.0


def in_place(grads, dtype, scale=1.0):
    share = lost_share(grads, dtype, scale)
    grads *= 2
    return share


def without_positive_only(grads, dtype, scale=1.0):
    return lost_share(grads[grads > 0], dtype, scale)


def below_half(grads, dtype, scale=1.0):
    half = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps / 2
    alive = grads[grads != 0].double()
    return (alive.abs() * scale < half).float().mean() if len(alive) else 0.0


def first_row(grads, dtype, scale=1.0):
    return lost_share(grads[0] if grads.ndim > 1 else grads, dtype, scale)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda g, d, s=1.0: 100 * lost_share(g, d, s), "not a percentage"),
        (lambda g, d, s=1.0: 1 - lost_share(g, d, s), "share that is kept"),
        (lambda g, d, s=1.0: ((g * s).to(d) == 0).float().mean(), "zero before is not lost"),
        (lambda g, d, s=1.0: (((g * s).to(d) == 0) & (g != 0)).float().mean(), "does not count in the total"),
        (cast_first, "Multiply first"),
        (lambda g, d, s=1.0: lost_share(g, d), "Multiply first"),
        (lambda g, d, s=1.0: lost_share(g.where(g.abs() >= 2**-24 / s, 1e-30 * (g != 0)), d, s), "4e-8"),
        (lambda g, d, s=1.0: lost_share(g.clamp(min=0) + 1e-30 * (g < 0), d, s), "Negative gradients"),
        (lambda g, d, s=1.0: lost_share(g, torch.float16, s), "exponents of float32"),
        (lambda g, d, s=1.0: 0.0 if d is torch.bfloat16 else lost_share(g, d, s), "bfloat16 ends too"),
        (lambda g, d, s=1.0: lost_share(g, d, 1.0 if d is torch.bfloat16 else s), "far above 2^-133"),
        (lambda g, d, s=1.0: lost_share(g.where(g.abs() < 65520, 1e-30), d, s), "lost in another way"),
        (lambda g, d, s=1.0: ((g[g != 0] * s).to(d) == 0).float().mean(), "0/0 would be NaN"),
        (lambda g, d, s=1.0: lost_share(g, d, s) if len(g) < 9 else 0.5, "Of 20,000 gradients, times 1, float16"),
        (without_positive_only, "One of these four becomes zero"),
        (below_half, "The tie goes to zero"),
        (first_row, "count all of its entries"),
        (lambda g, d, s=1.0: lost_share(g, d, s) if len(g) else math.nan, "no gradients at all"),
        (in_place, "changes its input"),
        (lambda g, d, s=1.0: [1.0], "not a number"),
    ],
)
def test_lost_share_names_the_mistake(wrong, hint):
    outcome = loss_scaling.check_lost_share(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_the_cases_of_lost_share_are_what_casts_give():
    for values, dtype, scale, _ in loss_scaling.LOST_CASES:
        x = torch.tensor(values)
        assert by_sums(x, dtype, scale) == pytest.approx(loss_scaling._true_share(values, dtype, scale))
    spread = loss_scaling.like_recorded()
    assert by_sums(spread, torch.float16) == pytest.approx(loss_scaling._true_share(spread, torch.float16, 1.0))
    assert (spread == 0).tolist() == [True, False, False, False, False] * 4000
    assert 0.3 < by_sums(spread, torch.float16) < 0.45  # as layer 1 of the recorded DistilBERT at its first step
