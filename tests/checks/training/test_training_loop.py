"""The checks of training/training_loop: right answers, and for each foreseen wrong one the hint that names it."""

import copy
import itertools
import math

import pytest
import torch
from torch import nn

from utils.checks.outcome import NOT_YET
from utils.checks.training import training_loop

INF = math.inf


def says(outcome, hint):
    assert outcome.status == NOT_YET
    assert hint in outcome.message, outcome.message


def folds(outcome, seen, cause):
    """The message tells what was seen and leaves the cause, which is the exercise, to the hint."""
    says(outcome, seen)
    assert cause in outcome.hint, outcome.hint
    assert cause not in outcome.message
    assert outcome.hint not in outcome.message


# --- 1: units

UNITS = {
    "after backward": 512,
    "after unscale_": 0.5,
    "then clipped to 0.25": 0.25,
    "clipped to 0.25, then unscale_": 0.25 / 1024,
    "second step without zero_grad": (0.5 + 512) / 1024,
}


def test_units_are_what_torch_leaves_in_grad():
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)

    def after(*calls, limit=0.25):
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        actions = {
            "backward": lambda: scaler.scale((weight * 0.5).sum()).backward(),
            "unscale": lambda: scaler.unscale_(optimizer),
            "clip": lambda: nn.utils.clip_grad_norm_([weight], limit),
            "update": scaler.update,
        }
        weight.grad = None
        for call in calls:
            actions[call]()
        return pytest.approx(weight.grad.item(), rel=1e-5)

    assert list(UNITS.values()) == [
        after("backward"),
        after("backward", "unscale"),
        after("backward", "unscale", "clip"),
        after("backward", "clip", "unscale"),
        after("backward", "unscale", "update", "backward", "unscale"),
    ]
    assert training_loop.check_units(UNITS)


@pytest.mark.parametrize(
    ("line", "answer", "hint"),
    [
        ("after backward", 0.5, "multiplied by S before"),
        ("after unscale_", 512, "divided it by S"),
        ("then clipped to 0.25", 0.5, "limit is 0.25"),
        ("clipped to 0.25, then unscale_", 0.25, "while it was in units of S"),
        ("second step without zero_grad", 1, "`backward` adds 512"),
        ("second step without zero_grad", 0.5, "left in it from the first step"),
    ],
)
def test_units_name_the_mistake(line, answer, hint):
    says(training_loop.check_units(UNITS | {line: answer}), hint)


# --- 2: the careful step


def careful(weights, loss, optimizer, scaler):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(weights, 1.0)
    scaler.step(optimizer)
    scaler.update()


def careful_by_hand(weights, loss, optimizer, scaler):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    if nn.utils.get_total_norm([w.grad for w in weights]).isfinite():
        nn.utils.clip_grad_norm_(weights, 1.0)
        scaler.step(optimizer)
    scaler.update()


def careful_with_a_new_scale(weights, loss, optimizer, scaler):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    if not nn.utils.get_total_norm([w.grad for w in weights]).isfinite():
        scaler.update(scaler.get_scale() / 2)
        return
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(weights, 1.0)
    scaler.step(optimizer)
    scaler.update()


@pytest.mark.parametrize("right", [careful, careful_by_hand, careful_with_a_new_scale])
def test_careful_step_takes_what_comes_down_again(right):
    outcome = training_loop.check_careful_step(right)
    assert outcome, outcome.message


def puzzle(weights, loss, optimizer, scaler):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    norm = nn.utils.get_total_norm([w.grad for w in weights]) / scaler.get_scale()
    if not norm.isfinite():
        return
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(weights, 1.0)
    scaler.step(optimizer)
    scaler.update()


def unscale_then_return(weights, loss, optimizer, scaler):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    if not nn.utils.clip_grad_norm_(weights, 1.0).isfinite():
        return
    scaler.step(optimizer)
    scaler.update()


def no_update_at_all(weights, loss, optimizer, scaler):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(weights, 1.0)
    scaler.step(optimizer)


def update_then_return(weights, loss, optimizer, scaler):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    if not nn.utils.get_total_norm([w.grad for w in weights]).isfinite():
        scaler.update()
        return
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(weights, 1.0)
    scaler.step(optimizer)
    scaler.update()


def in_place_of_infinities(number):
    def answer(weights, loss, optimizer, scaler):
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        for w in weights:
            w.grad.nan_to_num_(0.0, number, -number)
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(weights, 1.0)
        scaler.step(optimizer)
        scaler.update()

    return answer


def past_the_scaler(weights, loss, optimizer, scaler):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(weights, 1.0)
    optimizer.step()
    scaler.update()


def clip_first(weights, loss, optimizer, scaler):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(weights, 1.0)
    scaler.step(optimizer)
    scaler.update()


def no_clip(weights, loss, optimizer, scaler):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def no_zero(weights, loss, optimizer, scaler):
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def still_scaled(weights, loss, optimizer, scaler):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    optimizer.step()


UNMOVED = "did not move. The scale was 1024 before this step, and it is 1024 after it"


@pytest.mark.parametrize(
    ("wrong", "seen", "cause"),
    [
        (puzzle, UNMOVED, "Which line does that, and is it reached?"),
        (unscale_then_return, UNMOVED, "Which line does that, and is it reached?"),
        (no_update_at_all, "Step 2 raises", "`update` ends an iteration, and it is needed in every step"),
        (update_then_return, "Step 2 raises", "one of them must come before it"),
        (in_place_of_infinities(0.0), UNMOVED, "has to come down"),
        (in_place_of_infinities(1.0), "moved by 0.000976562", "Leave such a step out"),
        (past_the_scaler, "the weight is nan after it", "The infinity has reached it"),
        (clip_first, "In step 1 the true gradient is 0.5", "`unscale_` first"),
        (no_clip, "the limit is 1, and the weight moved by 4", "It was not clipped"),
        (no_zero, "step 3 is finite, and the scale fell from 512 to 256", "an earlier step is still there"),
        (still_scaled, "moved by 512", "got gradients in units of S"),
    ],
)
def test_careful_step_folds_the_cause(wrong, seen, cause):
    folds(training_loop.check_careful_step(wrong), seen, cause)


def test_careful_step_that_raises_is_told_so():
    says(training_loop.check_careful_step(lambda *given: 1 / 0), "ZeroDivisionError")


# --- 3: accumulation


def accumulated(unscale=1, divide=True, clip="end", step=True, updates=1, zero=True):
    def answer(weights, losses, optimizer, scaler):
        if zero:
            optimizer.zero_grad()
        for n, loss in enumerate(losses):
            scaler.scale(loss() / len(losses) if divide else loss()).backward()
            if unscale == "each":
                scaler.unscale_(optimizer)
                if n < len(losses) - 1 and updates == "each":
                    scaler.update()
            if clip == "each":
                nn.utils.clip_grad_norm_(weights, 1.0)
        if unscale == 1:
            scaler.unscale_(optimizer)
        if clip == "end":
            nn.utils.clip_grad_norm_(weights, 1.0)
        if step:
            scaler.step(optimizer)
        scaler.update()

    return answer


def divided_at_the_end(weights, losses, optimizer, scaler):
    optimizer.zero_grad()
    for loss in losses:
        scaler.scale(loss()).backward()
    scaler.unscale_(optimizer)
    for w in weights:
        w.grad /= len(losses)
    nn.utils.clip_grad_norm_(weights, 1.0)
    scaler.step(optimizer)
    scaler.update()


@pytest.mark.parametrize("right", [accumulated(), divided_at_the_end])
def test_accumulated_step_takes_the_mean_of_all_parts(right):
    outcome = training_loop.check_accumulated_step(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("wrong", "seen", "cause"),
    [
        (accumulated(divide=False), "should move by 0.3; it moved by 0.6", "That is the sum. Divide each loss"),
        (accumulated(unscale="each", updates="each"), "it moved by 0.2", "last part alone"),
        (accumulated(unscale="each"), "With 2 parts it raises", "once, after the last `backward`"),
        (accumulated(clip="each"), "it moved by 0.00", "divided by S twice"),
        (accumulated(clip="none"), "should move by 1; it moved by 6", "once it is complete and unscaled"),
        (accumulated(zero=False), "should move by 0.25; it moved by 0.25", "the batch before is still in `.grad`"),
    ],
)
def test_accumulated_step_folds_the_cause(wrong, seen, cause):
    folds(training_loop.check_accumulated_step(wrong), seen, cause)


def test_accumulated_step_wants_one_half_for_one_overflow():
    def halves_for_each_part(weights, losses, optimizer, scaler):
        accumulated()(weights, losses, optimizer, scaler)
        if weights[0].grad.isinf().any() or weights[0].grad.isnan().any():
            scaler.update(scaler.get_scale() / 2)

    folds(training_loop.check_accumulated_step(halves_for_each_part), "from 1024 to 256", "once for the batch")


# --- 4: two optimizers


def two(loss, first, second, scaler):
    for optimizer in (first, second):
        optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()


def two_with_unscale(loss, first, second, scaler):
    for optimizer in (first, second):
        optimizer.zero_grad()
    scaler.scale(loss).backward()
    for optimizer in (second, first):
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
    scaler.update()


@pytest.mark.parametrize("right", [two, two_with_unscale])
def test_two_optimizers_takes_one_update(right):
    outcome = training_loop.check_two_optimizers(right)
    assert outcome, outcome.message


def update_between(loss, first, second, scaler):
    for optimizer in (first, second):
        optimizer.zero_grad()
    scaler.scale(loss).backward()
    for optimizer in (first, second):
        scaler.step(optimizer)
        scaler.update()


def two_updates_at_the_end(loss, first, second, scaler):
    two(loss, first, second, scaler)
    scaler.update()


def no_update(loss, first, second, scaler):
    for optimizer in (first, second):
        optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(first)
    scaler.step(second)


def both_or_none(loss, first, second, scaler):
    for optimizer in (first, second):
        optimizer.zero_grad()
    scaler.scale(loss).backward()
    grads = [p.grad for o in (first, second) for p in o.param_groups[0]["params"]]
    for optimizer in (first, second):
        scaler.unscale_(optimizer)
    if all(g.isfinite().all() for g in grads):
        scaler.step(first)
        scaler.step(second)
    scaler.update()


def second_past_the_scaler(loss, first, second, scaler):
    for optimizer in (first, second):
        optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(first)
    second.step()
    scaler.update()


@pytest.mark.parametrize(
    ("wrong", "seen", "cause"),
    [
        (update_between, "second optimizer should move by 0.25, not by 0.5", "a scale that they never had"),
        (two_updates_at_the_end, "it raises", "nothing to go by right after another one"),
        (no_update, "step 2 raises", "After both steps the scaler needs its `update`"),
        (both_or_none, "should move by 0.25, not by 0.", "One optimizer's overflow is not the other's"),
        (second_past_the_scaler, "should move by 0.25, not by 256", "in units of S"),
    ],
)
def test_two_optimizers_folds_the_cause(wrong, seen, cause):
    folds(training_loop.check_two_optimizers(wrong), seen, cause)


# --- 5: accumulate


def accumulate(weights, parts):
    tokens = sum(n for _, n in parts)
    for w in weights:
        w.grad = None
    for loss_sum, _ in parts:
        (loss_sum() / tokens).backward()


def divided_in_grad(weights, parts):
    for w in weights:
        w.grad = torch.zeros_like(w)
    for loss_sum, _ in parts:
        loss_sum().backward()
    for w in weights:
        w.grad /= sum(n for _, n in parts)


@pytest.mark.parametrize("right", [accumulate, divided_in_grad])
def test_accumulate_takes_the_mean_over_tokens(right):
    outcome = training_loop.check_accumulate(right)
    assert outcome, outcome.message


def divides(by, skip_empty=False, zero=True):
    def answer(weights, parts):
        for w in weights if zero else ():
            w.grad = None
        for loss_sum, n in parts:
            if n or not skip_empty:
                (loss_sum() / by(n, parts)).backward()

    return answer


def all_at_once(weights, parts):
    for w in weights:
        w.grad = None
    (sum(loss_sum() for loss_sum, _ in parts) / sum(n for _, n in parts)).backward()


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (divides(lambda n, parts: n * len(parts)), "mean of the means"),
        (divides(lambda n, parts: n), "sum of the means"),
        (divides(lambda n, parts: 1), "That is the sum. Divide"),
        (divides(lambda n, parts: len(parts)), "The loss is a mean over tokens"),
        (divides(lambda n, parts: sum(m for _, m in parts), zero=False), "batch before is still in it"),
        (divides(lambda n, parts: n / (n / sum(m for _, m in parts)) if n else math.nan), "0/0 is NaN"),
        (all_at_once, "all of them are in memory at once"),
    ],
)
def test_accumulate_names_the_mistake(wrong, hint):
    says(training_loop.check_accumulate(wrong), hint)


# --- 6: resume


def state_of(t, without=()):
    parts = {
        "model": t.model.state_dict(),
        "optimizer": t.optimizer.state_dict(),
        "schedule": t.schedule.state_dict(),
        "scaler": t.scaler.state_dict(),
        "dropout": torch.get_rng_state(),
        "order": t.order.get_state(),
    }
    return {name: part for name, part in parts.items() if name not in without}


def save(t):
    return copy.deepcopy(state_of(t))


def restore(t, state):
    for name, part in state.items():
        if name == "dropout":
            torch.set_rng_state(part)
        elif name == "order":
            t.order.set_state(part)
        else:
            getattr(t, name).load_state_dict(part)


def test_resume_takes_all_six_parts():
    before = torch.get_rng_state()
    outcome = training_loop.check_resume((save, restore))
    assert outcome, outcome.message
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("part", "hint"),
    [
        ("model", "model.state_dict()"),
        ("optimizer", "optimizer.state_dict()"),
        ("schedule", "schedule.state_dict()"),
        ("scaler", "scaler.state_dict()"),
        ("dropout", "get_rng_state"),
        ("order", "order.get_state()"),
    ],
)
def test_resume_names_what_is_missing(part, hint):
    says(training_loop.check_resume((lambda t: copy.deepcopy(state_of(t, {part})), restore)), hint)


def test_resume_names_a_state_that_is_a_reference():
    says(training_loop.check_resume((state_of, restore)), "the state of ten steps later")


def test_resume_names_a_save_that_disturbs():
    def save_and_step(t):
        state = save(t)
        t.step()
        return state

    says(training_loop.check_resume((save_and_step, restore)), "`save` changes the training that it saves")


def test_resume_names_a_replaced_model():
    def replace(t, state):
        restore(t, state)
        t.model = copy.deepcopy(t.model)

    says(training_loop.check_resume((save, replace)), "cuts the optimizer off")


def test_the_small_training_overflows_and_drops_out():
    with torch.random.fork_rng(devices=[]):
        t = training_loop.SmallTraining()
        scales = []
        for _ in range(20):
            t.step()
            scales.append(t.scaler.get_scale())
    assert {b / a for a, b in itertools.pairwise(scales)} == {0.5, 1.0, 2.0}
    assert any(isinstance(module, nn.Dropout) for module in t.model)
