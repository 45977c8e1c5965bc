"""The checks of practice/debugging: the right answer, and for each foreseen wrong one the hint that names it."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_leaves

from utils.checks.outcome import NOT_ATTEMPTED, NOT_YET
from utils.checks.practice import debugging, debugging_questions
from utils.checks.practice.debugging_questions import (
    A100,
    BIRTHS,
    CPU,
    EXP,
    H100,
    LOG,
    NARROW,
    RECIPES,
    SOFTMAX,
    SQRT,
    T4,
    UPDATE,
)
from utils.cost.cards import GIGABYTE
from utils.cost.decide import decide
from utils.diagnostics.nan_hunter import NanHunter

RIGHT = dict(zip(BIRTHS, (EXP, SQRT, SOFTMAX, LOG, UPDATE), strict=True))


def test_the_births_are_those_that_the_hunter_finds():
    found = {}
    for name, run in {"a": naive, "b": twins, "c": masked, "d": sure}.items():
        model = torch.nn.Identity()
        hunter = NanHunter(model, operations=True)
        with hunter.step(1):
            run()
        found[name] = hunter.first.operation, hunter.first.stage
    assert found["a"] == ("exp", "forward")
    assert found["b"] == ("div", "backward")
    assert found["c"] == ("_softmax", "forward")
    assert found["d"] == ("log", "forward")
    weight = torch.ones(1, dtype=torch.float16, requires_grad=True)
    weight.grad = torch.zeros_like(weight)
    torch.optim.Adam([weight], foreach=False).step()
    assert weight.isnan()
    assert debugging.check_births(RIGHT)


def naive():
    e = torch.tensor([12.0, 11.0]).half().exp()
    return e / e.sum()


def twins():
    a = torch.ones(3, requires_grad=True)
    ((a - torch.ones(3)).square().sum().sqrt() + 1).backward()


def masked():
    padding = torch.tensor([[True, True], [False, True]])
    return torch.zeros(2, 2).masked_fill(padding, -torch.inf).softmax(-1)


def sure():
    p = torch.sigmoid(torch.tensor(8.0).bfloat16())
    return -(1 * p.log() + 0 * (1 - p).log())


@pytest.mark.parametrize("name", BIRTHS)
def test_every_echo_gets_a_sentence(name):
    for option in BIRTHS[name].options:
        outcome = debugging.check_births(RIGHT | {name: option.text})
        assert bool(outcome) == (option.text == RIGHT[name])
        assert outcome or option.says in outcome.message


def test_the_recipes_are_those_of_the_tree():
    wanted = {
        T4: decide("T4", "fine_tune", "DistilBERT", batch=12, length=512),
        A100: decide("A100", "train", "GPT-2", memory_gb=80, batch=8, length=1_024),
        H100: decide("H100", "generate", "LLaMA 7B"),
        CPU: decide("CPU", "fine_tune", "DistilBERT", length=128),
        NARROW: decide("A100", "fine_tune", "LLaMA 7B", memory_gb=48),
    }
    assert all(decision.fits for decision in wanted.values())
    assert debugging.check_recipes({name: decision.recipe for name, decision in wanted.items()})
    assert round(wanted[NARROW].total / GIGABYTE) == 42  # as the reply says
    assert pytest.approx(54, abs=0.1) == 2 * 4 * 6.738
    for name, question in RECIPES.items():
        right = {key: decision.recipe for key, decision in wanted.items()}
        for option in question.options:
            if option.text != right[name]:
                assert option.says in debugging.check_recipes(right | {name: option.text}).message


@pytest.mark.parametrize("wrong", [1.3 * each for each in (16, 8, 12, 2, 10)])
def test_each_forgotten_part_of_the_memory_is_named(wrong):
    assert debugging.check_expected(23.4)
    outcome = debugging.check_expected(wrong)
    assert outcome.status == NOT_YET
    assert outcome.message != debugging_questions.EXPECTED.otherwise


# --- The hunter


def finite(values):
    return all(bool(v.isfinite().all()) for v in tree_leaves(values) if torch.is_tensor(v))


def hunter(fault=""):
    def first_bad(model, x):
        guilty = []

        def looking(name):
            def look(module, given, output):
                if fault == "nan alone":
                    bad = bool(output.isnan().any())
                else:
                    bad = not finite(output)
                if bad and (fault == "any output" or finite(given)):
                    guilty.append(name)

            return look

        hooks = [module.register_forward_hook(looking(name)) for name, module in model.named_modules()]
        model(x)
        for hook in () if fault == "hooks stay" else hooks:
            hook.remove()
        if fault == "last":
            return guilty[-1] if guilty else None
        if fault == "not a path":
            return "Linear"
        return guilty[0] if guilty else None

    return first_bad


def test_a_right_hunter_is_right():
    assert debugging.check_first_bad(hunter())


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("any output", "What it got was broken already"),
        ("nan alone", "nothing here is ever NaN"),
        ("hooks stay", "Your hooks are still on the model"),
        ("last", "You named the model itself"),
        ("not a path", "'Linear' is no path"),
    ],
)
def test_a_hunter_with_a_fault_is_told_which(fault, said):
    outcome = debugging.check_first_bad(hunter(fault))
    assert outcome.status == NOT_YET
    assert said in outcome.message


def test_a_hunter_that_accuses_healthy_models_is_told_so():
    outcome = debugging.check_first_bad(lambda model, x: hunter()(model, x) or "0")
    assert "All numbers of this model are finite" in outcome.message


def test_a_hunter_that_ignores_its_input_is_told_so():
    def look(model, x):
        return hunter()(model, x) or (None if finite(x) else "0")

    assert "the input itself was NaN" in debugging.check_first_bad(look).message.replace("The", "the")


def test_nothing_yet_is_not_attempted():
    assert debugging.check_first_bad(lambda model, x: None).status == NOT_ATTEMPTED
    assert debugging.check_sure_loss(lambda z, y: None).status == NOT_ATTEMPTED


# --- The loss


def of_torch(z, y):
    return F.binary_cross_entropy_with_logits(z.float(), y, reduction="none")


def by_hand(z, y):
    z = z.float() * (1 - 2 * y)
    return z.clamp(min=0) + torch.log1p(torch.exp(-z.abs()))


@pytest.mark.parametrize("loss", [of_torch, by_hand])
def test_a_loss_without_a_probability_is_right(loss):
    assert debugging.check_sure_loss(loss)


def probability(z, y):
    p = torch.sigmoid(z)
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p))


def epsilon(z, y):
    p = torch.sigmoid(z.float())
    return -(y * torch.log(p + 1e-8) + (1 - y) * torch.log(1 - p + 1e-8))


def clamped(z, y):
    return of_torch(z.clamp(-30, 30), y)


def straight(z, y):
    z = z.float() * (1 - 2 * y)
    return torch.where(z > 50, z.detach(), F.softplus(z.clamp(max=50)))


def exploding(z, y):
    z = z.float() * (1 - 2 * y)
    return torch.where(z > 50, z, torch.log1p(torch.exp(z)))


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (probability, "a probability was formed"),
        (epsilon, "An epsilon or a clamp"),
        (clamped, "An epsilon or a clamp"),
        (straight, "has to hear of it"),
        (lambda z, y: of_torch(-z, y), "Is it −log p"),
        (exploding, "the gradient for z"),
        (lambda z, y: of_torch(z, y).mean(), "one loss for each"),
        (lambda z, y: z @ y, "stop with RuntimeError"),
    ],
)
def test_a_wrong_loss_is_told_why(loss, said):
    outcome = debugging.check_sure_loss(loss)
    assert outcome.status == NOT_YET
    assert said in outcome.message


@pytest.mark.parametrize("check", [debugging.check_first_bad, debugging.check_sure_loss])
def test_what_is_no_function_is_said(check):
    assert "needs the function itself" in check(3).message
