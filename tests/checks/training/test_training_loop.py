"""The checks of training/training_loop: right answers, and for each foreseen wrong one the hint that names it."""

import copy
import itertools
import math
import textwrap

import pytest
import torch
from torch import nn

from utils.checks.outcome import NOT_YET
from utils.checks.questions import CORRECT, judge
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
    "no clip, no zero_grad: after the second unscale_": (2 + 512) / 256,
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
        ("no clip, no zero_grad: after the second unscale_", 4, "`backward` adds 512"),
        ("no clip, no zero_grad: after the second unscale_", 2, "left in it from the first step"),
        ("no clip, no zero_grad: after the second unscale_", 2.008, "not exact"),
    ],
)
def test_units_name_the_mistake(line, answer, hint):
    says(training_loop.check_units(UNITS | {line: answer}), hint)


# --- 3: accumulation


def grouped(unscale="group", divide=len, clip="group", zero="group", whole=False):
    def answer(weights, losses, optimizer, scaler, parts):
        size = max(len(losses), 1) if whole else parts
        for start in range(0, len(losses), size):
            group = losses[start : start + size]
            for loss in group:
                scaler.scale(loss() / (divide(group) if divide is len else divide)).backward()
                if unscale != "group":
                    scaler.unscale_(optimizer)
                if unscale == "part, and update" and loss is not group[-1]:
                    scaler.update()
                if clip == "part":
                    nn.utils.clip_grad_norm_(weights, 1.0)
            if unscale == "group":
                scaler.unscale_(optimizer)
            if clip == "group":
                nn.utils.clip_grad_norm_(weights, 1.0)
            scaler.step(optimizer)
            scaler.update()
            if zero == "group":
                optimizer.zero_grad()

    return answer


def counted(first=False, last="stepped", divisor="own"):
    """The form of the exercise: a counter, and what is left at the end."""

    def answer(weights, losses, optimizer, scaler, parts):
        def step():
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(weights, 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

        for n, loss in enumerate(losses):
            size = min(parts, len(losses) - n // parts * parts) if divisor == "own" else parts
            scaler.scale(loss() / size).backward()
            if n % parts == 0 if first else (n + 1) % parts == 0:
                step()
        if last == "stepped" and len(losses) % parts:
            step()
        if last == "stepped always":
            step()
        if last == "dropped":
            optimizer.zero_grad()

    return answer


def divided_at_the_end(weights, losses, optimizer, scaler, parts):
    for start in range(0, len(losses), parts):
        group = losses[start : start + parts]
        for loss in group:
            scaler.scale(loss()).backward()
        scaler.unscale_(optimizer)
        for w in weights:
            w.grad /= len(group)
        nn.utils.clip_grad_norm_(weights, 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def clips_each_value(weights, losses, optimizer, scaler, parts):
    for start in range(0, len(losses), parts):
        group = losses[start : start + parts]
        for loss in group:
            scaler.scale(loss() / len(group)).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_value_(weights, 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


@pytest.mark.parametrize("right", [grouped(), counted(), divided_at_the_end])
def test_accumulated_epoch_takes_the_mean_of_each_group(right):
    outcome = training_loop.check_accumulated_epoch(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("wrong", "seen", "cause"),
    [
        (counted(first=True, divisor="parts"), "move by 0.25; it moved by 0.05", "after the first part of a group"),
        (counted(last="dropped"), "groups of 2, so the weight should move by 1; it moved by 0.5", "No step was taken"),
        (counted(divisor="parts"), "groups of 2, so the weight should move by 1; it moved by 0.75", "By how many"),
        (counted(last="stepped always"), "it raises", "a group that has at least one part"),
        (grouped(divide=1), "should move by 0.25; it moved by 0.5", "That is the sum. Divide each loss"),
        (grouped(whole=True), "should move by 0.5; it moved by 0.25", "one step for the whole epoch"),
        (grouped(unscale="part, and update"), "it moved by 0.2", "last part alone"),
        (grouped(unscale="part"), "in groups of 2: it raises", "once, after its last `backward`"),
        (grouped(clip="part"), "it moved by 0.00", "divided by S twice"),
        (grouped(clip="none"), "in groups of 2, so the weight should move by 2; it moved by 14", "limit of 1 is for"),
        (grouped(zero="never"), "`.grad` still holds 0.25", "Clear it after the last step"),
        (clips_each_value, "the norm is 1.27", "all gradients together"),
    ],
)
def test_accumulated_epoch_folds_the_cause(wrong, seen, cause):
    folds(training_loop.check_accumulated_epoch(wrong), seen, cause)


def test_accumulated_epoch_wants_one_half_for_one_overflow():
    def halves_twice(weights, losses, optimizer, scaler, parts):
        grouped()(weights, losses, optimizer, scaler, parts)
        if weights[0].grad is None and any(loss().isinf() or loss().isnan() for loss in losses):
            scaler.update(scaler.get_scale() / 2)

    folds(training_loop.check_accumulated_epoch(halves_twice), "from 1024 to 256", "once for the group")


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


def second_gradient(instead=None, size=INF, growth_interval=2000):
    """The gradient that the second optimizer steps with, where that of the first is `size` and its own is 0.25."""
    a, b = (nn.Parameter(torch.zeros(1)) for _ in range(2))
    scope = {"first": torch.optim.SGD([a], lr=1.0), "second": torch.optim.SGD([b], lr=1.0)}
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=growth_interval)
    scope |= {"scaler": scaler, "loss": (a * size + b * 0.25).sum()}
    exec(lines_of(questions.TWO_OPTIMIZERS, instead), scope)
    return -b.item()


def test_the_pressed_line_of_two_optimizers_doubles_or_halves_a_gradient_where_the_scale_moves():
    assert second_gradient() == 0.5
    assert second_gradient(size=1.0) == 0.25
    assert second_gradient(size=1.0, growth_interval=1) == 0.125
    assert second_gradient(instead="") == 0.25
    assert second_gradient(instead="", size=1.0, growth_interval=1) == 0.25


def test_the_metric_stalls_where_the_answer_says():
    def accuracy(dtype):
        right = torch.zeros((), dtype=dtype)
        for start in range(0, 100_000, 64):
            right += torch.ones(min(64, 100_000 - start), dtype=torch.bool).sum()
        return right.item() / 100_000

    assert accuracy(torch.bfloat16) == float(questions.METRIC.answer)
    assert accuracy(torch.int64) == 1.0


def test_the_metric_that_torch_divides_is_told_what_item_returns():
    quotient = (torch.tensor(16384, dtype=torch.bfloat16) / 100_000).item()
    for answer in (quotient, 0.1641, 0.164):  # its value, what torch prints, and what somebody may have rounded
        assert "`total.item()` is a Python number" in judge(questions.METRIC, answer).message
    assert judge(questions.METRIC, 0.16384).status == CORRECT
    assert all("percentage" in judge(questions.METRIC, percent).message for percent in (16.384, 16.4))


def test_the_limit_of_the_widgets_task_is_the_smallest_that_changes_nothing():
    def after(limit, gradient=0.5):
        weight = nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([weight], lr=1.0)
        scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
        scaler.scale((weight * gradient).sum()).backward()
        nn.utils.clip_grad_norm_([weight], limit)
        scaler.unscale_(optimizer)
        return weight.grad.item()

    limit = float(questions.LIMIT_TIMES_S.answer)
    assert after(limit) == pytest.approx(0.5, rel=1e-6)
    assert after(limit / 2) == pytest.approx(0.25, rel=1e-6)
    for near in (32700, 32767):
        assert after(near) < 0.49999
        assert "still changes the gradients" in judge(questions.LIMIT_TIMES_S, near).message
    for large in (32769, 40000):
        assert after(large) == pytest.approx(0.5, rel=1e-7)
        assert "not the smallest" in judge(questions.LIMIT_TIMES_S, large).message


def test_the_narrow_sum_of_the_prediction_is_what_torch_leaves_in_grad():
    def left(dtype):
        weight = nn.Parameter(torch.zeros(1, dtype=dtype))
        for _ in range(512):
            (weight * 3.0).sum().backward()
        return weight.grad.item()

    (said,) = [option.text for option in questions.NARROW_SUM.options if option.right]
    assert left(torch.bfloat16) == float(said)
    assert left(torch.float32) == 3 * 512


# --- 5: accumulate


def accumulate(weights, parts):
    for w in weights:
        w.grad = torch.zeros_like(w)
    total = 0
    for part in parts:
        loss_sum, tokens = part()
        loss_sum.backward()
        total += tokens
    for w in weights:
        w.grad /= max(total, 1)


def running_mean(weights, parts):
    for w in weights:
        w.grad = None
    seen = 0
    for part in parts:
        loss_sum, tokens = part()
        if not tokens:
            continue
        for w in weights:
            if w.grad is not None:
                w.grad *= seen / (seen + tokens)
        seen += tokens
        (loss_sum / seen).backward()


@pytest.mark.parametrize("right", [accumulate, running_mean])
def test_accumulate_takes_the_mean_over_tokens(right):
    outcome = training_loop.check_accumulate(right)
    assert outcome, outcome.message


def divides(by, at_end=lambda tokens: 1, zero=True):
    """`by` gets the tokens of a part, those so far and the number of parts, `at_end` the list of all tokens."""

    def answer(weights, parts):
        for w in weights if zero else ():
            w.grad = None
        counts = []
        for part in parts:
            loss_sum, tokens = part()
            counts.append(tokens)
            (loss_sum / by(tokens, sum(counts), len(parts))).backward()
        for w in weights:
            w.grad /= at_end(counts)

    return answer


def one(*given):
    return 1


def keeps_the_last(weights, parts):
    old = [w.grad for w in weights]
    accumulate(weights, parts)
    for w, grad in zip(weights, old, strict=True):
        if w.grad.item() == 0:
            w.grad = grad


def only_the_first_weight(weights, parts):
    rest = [None if w.grad is None else w.grad.clone() for w in weights[1:]]
    accumulate(weights, parts)
    for w, grad in zip(weights[1:], rest, strict=True):
        w.grad = grad if grad is not None else w.grad
        if grad is not None:
            w.grad = grad + weights[0].grad


def all_at_once(weights, parts):
    for w in weights:
        w.grad = None
    done = [part() for part in parts]
    (sum(loss for loss, _ in done) / max(sum(tokens for _, tokens in done), 1)).backward()


def twice(weights, parts):
    tokens = max(sum(part()[1] for part in parts), 1)
    for w in weights:
        w.grad = None
    for part in parts:
        (part()[0] / tokens).backward()


def one_part_only(weights, parts):
    accumulate(weights, parts[:1])


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (divides(lambda n, seen, k: n * k), "mean of the means"),
        (divides(lambda n, seen, k: n), "sum of the means"),
        (divides(one), "That is the sum. Divide"),
        (divides(lambda n, seen, k: k), "The loss is a mean over tokens"),
        (divides(lambda n, seen, k: seen), "divided by the tokens seen so far"),
        (divides(one, lambda counts: counts[-1]), "tokens of the last part only"),
        (divides(one, sum, zero=False), "previous batch is still in it"),
        (divides(one, sum), "no token at all"),
        (divides(lambda n, seen, k: max(n, 1) * k), "mean of the means"),
        (all_at_once, "all of them are in memory at once"),
        (twice, "called more than once"),
        (one_part_only, "1 of them were called"),
        (keeps_the_last, "It should be 0 (or None)"),
        (only_the_first_weight, "previous batch is still in it"),
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

    says(training_loop.check_resume((save_and_step, restore)), "`save` changes the run that it saves")


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
