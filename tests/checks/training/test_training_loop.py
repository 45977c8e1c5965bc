"""The checks of training/training_loop: right answers, and for each foreseen wrong one the hint that names it."""

import copy
import itertools
import math
import textwrap

import pytest
import torch
from torch import nn

from utils.checks.outcome import NOT_YET
from utils.checks.training import training_loop
from utils.checks.training import training_loop_questions as questions

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
    "after unscale_": 2,
    "then clipped to 0.5": 0.5,
    "clipped to 0.5, then unscale_": 0.5 / 256,
    "second step without zero_grad": (2 + 512) / 256,
}


def test_units_are_what_torch_leaves_in_grad():
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)

    def after(*calls, limit=0.5):
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        actions = {
            "backward": lambda: scaler.scale((weight * 2.0).sum()).backward(),
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
        ("after backward", 2, "multiplied by S before"),
        ("after unscale_", 512, "divided it by S"),
        ("then clipped to 0.5", 2, "limit is 0.5"),
        ("clipped to 0.5, then unscale_", 0.5, "while it was in units of S"),
        ("second step without zero_grad", 4, "`backward` adds 512"),
        ("second step without zero_grad", 2, "left in it from the first step"),
        ("second step without zero_grad", 2.008, "rounded"),
    ],
)
def test_units_name_the_mistake(line, answer, hint):
    says(training_loop.check_units(UNITS | {line: answer}), hint)


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
        (accumulated(divide=False), "should move by 0.25; it moved by 0.5", "That is the sum. Divide each loss"),
        (accumulated(unscale="each", updates="each"), "it moved by 0.2", "last part alone"),
        (accumulated(unscale="each"), "With 2 parts it raises", "once, after the last `backward`"),
        (accumulated(clip="each"), "it moved by 0.00", "divided by S twice"),
        (accumulated(clip="none"), "should move by 1; it moved by 6", "once it is complete and unscaled"),
        (accumulated(zero=False), "should move by 0.25; it moved by 0.25", "the batch before is still in `.grad`"),
    ],
)
def test_accumulated_step_folds_the_cause(wrong, seen, cause):
    folds(training_loop.check_accumulated_step(wrong), seen, cause)


def test_accumulated_step_wants_the_norm_of_all_gradients():
    def clips_each_value(weights, losses, optimizer, scaler):
        optimizer.zero_grad()
        for loss in losses:
            scaler.scale(loss() / len(losses)).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_value_(weights, 1.0)
        scaler.step(optimizer)
        scaler.update()

    folds(training_loop.check_accumulated_step(clips_each_value), "the norm is 1.27", "all gradients together")


def test_accumulated_step_says_nothing_false_of_a_running_divisor():
    def divides_by_the_parts_so_far(weights, losses, optimizer, scaler):
        optimizer.zero_grad()
        for n, loss in enumerate(losses, 1):
            scaler.scale(loss() / n).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(weights, 1.0)
        scaler.step(optimizer)
        scaler.update()

    outcome = training_loop.check_accumulated_step(divides_by_the_parts_so_far)
    says(outcome, "should move by 0.25; it moved by 0.3")
    assert "last part" not in (outcome.hint or "")


def test_accumulated_step_wants_one_half_for_one_overflow():
    def halves_for_each_part(weights, losses, optimizer, scaler):
        accumulated()(weights, losses, optimizer, scaler)
        if weights[0].grad.isinf().any() or weights[0].grad.isnan().any():
            scaler.update(scaler.get_scale() / 2)

    folds(training_loop.check_accumulated_step(halves_for_each_part), "from 1024 to 256", "once for the batch")


# --- Press the line


def lines_of(question, instead=None):
    """The code of a question about lines; `instead` takes the place of its wrong line, and leaves it out if empty."""
    lines = []
    for option in question.options:
        line = option.text.removeprefix("```\n").removesuffix("\n```")
        lines += [line] if instead is None or not option.right else [instead] * bool(instead)
    return "\n".join(lines)


def scales_of_the_puzzle(instead=None):
    """The scale after each of four steps, of which the first three overflow as long as it is above 2**10."""
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scope = {
        "optimizer": optimizer,
        "scaler": torch.amp.GradScaler("cpu", init_scale=2.0**12),
        "weights": [weight],
        "get_total_norm": nn.utils.get_total_norm,
        "clip_grad_norm_": nn.utils.clip_grad_norm_,
        "schedule": torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0),
    }
    code = "def step(loss):\n" + textwrap.indent(lines_of(questions.STOPPED, instead), "    ")
    exec(code, scope)
    scales = []
    for _ in range(4):
        too_large = scope["scaler"].get_scale() > 2.0**10
        scope["step"]((weight * (INF if too_large else 0.5)).sum())
        scales.append(math.log2(scope["scaler"].get_scale()))
    return scales, weight.item()


def test_the_pressed_line_of_the_puzzle_keeps_the_scale_up_and_without_it_the_scale_comes_down():
    assert scales_of_the_puzzle() == ([12, 12, 12, 12], 0.0)
    scales, weight = scales_of_the_puzzle("    pass")
    assert scales == [11, 10, 10, 10]
    assert weight == -1.0


def second_gradient(instead=None, size=INF):
    """The gradient that the second optimizer steps with, where that of the first is `size` and its own is 0.25."""
    a, b = (nn.Parameter(torch.zeros(1)) for _ in range(2))
    scope = {"first": torch.optim.SGD([a], lr=1.0), "second": torch.optim.SGD([b], lr=1.0)}
    scope |= {"scaler": torch.amp.GradScaler("cpu", init_scale=1024.0), "loss": (a * size + b * 0.25).sum()}
    exec(lines_of(questions.TWO_OPTIMIZERS, instead), scope)
    return -b.item()


def test_the_pressed_line_of_two_optimizers_doubles_a_gradient_where_the_other_overflows():
    assert second_gradient() == 0.5
    assert second_gradient(size=1.0) == 0.25
    assert second_gradient(instead="") == 0.25


def accuracy_of_ones(samples, instead=None):
    """What the code of the question says of a model that is right about everything, in batches of 64."""
    code = lines_of(questions.NARROW_METRIC, instead).replace('"cuda"', '"cpu"').replace(".cuda()", "")
    scope = {"torch": torch}
    exec(code, scope)
    loader = [(part, torch.ones(len(part), dtype=torch.long)) for part in torch.ones(samples).split(64)]
    right = torch.tensor([0.0, 1.0])
    model = type("Model", (nn.Module,), {"forward": lambda self, x: right.expand(len(x), 2)})()
    return scope["evaluate"](model, loader)


def test_the_pressed_line_of_the_metric_is_right_on_few_samples_and_wrong_on_many():
    assert accuracy_of_ones(100) == 1.0
    assert accuracy_of_ones(100_000) < 0.3
    exact = '    seen, right = 0, torch.zeros((), dtype=torch.int64, device="cuda")'
    assert accuracy_of_ones(100_000, exact) == 1.0


def test_the_narrow_sum_of_the_prediction_is_what_torch_leaves_in_grad():
    weight = nn.Parameter(torch.zeros(1, dtype=torch.bfloat16))
    for _ in range(512):
        weight.sum().backward()
    (said,) = [option.text for option in questions.NARROW_SUM.options if option.right]
    assert weight.grad.item() == float(said)


# --- 5: accumulate


def accumulate(weights, parts):
    tokens = max(sum(n for _, n in parts), 1)
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
        w.grad /= max(sum(n for _, n in parts), 1)


def without_empty_parts(weights, parts):
    tokens = sum(n for _, n in parts)
    for w in weights:
        w.grad = None
    for loss_sum, n in parts:
        if n:
            (loss_sum() / tokens).backward()


@pytest.mark.parametrize("right", [accumulate, divided_in_grad, without_empty_parts])
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


def keeps_the_last(weights, parts):
    if any(n for _, n in parts):
        accumulate(weights, parts)


def only_the_first_weight(weights, parts):
    weights[0].grad = None
    for loss_sum, _ in parts:
        (loss_sum() / max(sum(n for _, n in parts), 1)).backward()


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
        (divides(lambda n, parts: sum(m for _, m in parts)), "no token at all"),
        (keeps_the_last, "It should be 0 (or None)"),
        (only_the_first_weight, "batch before is still in it"),
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
