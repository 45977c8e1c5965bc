"""The checks of practice/debugging: the right answer, and for each foreseen wrong one the hint that names it."""

from copy import deepcopy
from functools import partial

import pytest
import torch
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
    for name, run in {"a": naive, "b": constant, "c": causal, "d": by_hand}.items():
        model = torch.nn.Identity()
        hunter = NanHunter(model, operations=True)
        with hunter.step(1):
            run()
        found[name] = hunter.first.operation, hunter.first.stage
    assert found["a"] == ("exp", "forward")
    assert found["b"] == ("div", "backward")
    assert found["c"] == ("_softmax", "forward")
    assert found["d"] == ("log", "forward")
    weight = torch.tensor([65_000.0]).half().requires_grad_()
    weight.grad = torch.tensor([-30_000.0]).half()
    torch.optim.SGD([weight], lr=0.1).step()
    assert weight.isinf()
    assert debugging.check_births(RIGHT)


def naive():
    e = torch.tensor([12.0, 11.0]).half().exp()
    return e / e.sum()


def constant():
    x = torch.ones(4, requires_grad=True)
    y = x / (x.var().sqrt() + 1)
    assert y.isfinite().all()
    y.sum().backward()


def causal():
    seen = torch.ones(4, 4).tril(-1).bool()
    return torch.zeros(4, 4).masked_fill(~seen, -torch.inf).softmax(-1)


def by_hand():
    share = torch.tensor([0.0, 20.0]).half().softmax(-1)
    assert share.tolist() == [0, 1]  # as a reply says
    return -share.log()[0]


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


def test_an_option_with_a_comma_is_not_taken_for_two():
    message = debugging.check_births(RIGHT | {"a constant row": "sqrt"}).message
    assert "'sqrt' is not one of these: exp; log; sqrt, backward; softmax; the update." in message


@pytest.mark.parametrize("wrong", [1.3 * each for each in (16, 14, 8, 12, 4, 2, 10)])
def test_each_forgotten_part_of_the_memory_is_named(wrong):
    assert debugging.check_expected(23.4)
    outcome = debugging.check_expected(wrong)
    assert outcome.status == NOT_YET
    assert outcome.message != debugging_questions.EXPECTED.otherwise


# --- The hunter


def finite(values):
    return all(bool(v.isfinite().all()) for v in tree_leaves(values) if torch.is_tensor(v))


def kinds(values):
    tests = {"NaN": torch.isnan, "Inf": torch.isposinf, "-Inf": torch.isneginf}
    floats = [v for v in tree_leaves(values) if torch.is_tensor(v)]
    return {kind for kind, test in tests.items() if any(test(v).any() for v in floats)}


def hunter(fault=""):
    def first_bad(model, x):
        guilty = []

        def look(name, module, args, kwargs, output):
            given = args if fault == "no keywords" else (args, kwargs)
            if fault == "leaves" and list(module.children()):
                return
            if fault == "no Sequential" and isinstance(module, torch.nn.Sequential):
                return
            if fault == "no -inf":
                bad = kinds(given) <= {"-Inf"} and bool(kinds(output) - kinds(given) - {"-Inf"})
            elif fault == "nan alone":
                bad = bool(output.isnan().any()) and finite(given)
            elif fault == "any output":
                bad = not finite(output)
            elif fault == "finite inputs":
                bad = finite(given) and not finite(output)
            elif fault == "kinds alone":
                bad = bool(kinds(output) - kinds(given))
            else:
                bad = kinds(given) <= {"-Inf"} and bool(kinds(output) - kinds(given))
            if bad:
                guilty.append(name)

        names = [name for name, _ in model.named_modules()]
        hooks = [
            module.register_forward_hook(partial(look, names[-1] if fault == "late" else name), with_kwargs=True)
            for name, module in model.named_modules()
        ]
        if fault == "eval":
            model.eval()
        model(x)
        for hook in () if fault in ("hooks stay", "clear") else hooks:
            hook.remove()
        for module in model.modules() if fault == "clear" else ():
            module._forward_hooks.clear()
        if guilty and fault == "last":
            return guilty[-1]
        if guilty and fault == "longest":
            return max(guilty, key=len)
        if guilty and fault in ("registered first", "registered last"):
            inner = [name for name in names if name in guilty and not any(g.startswith(f"{name}.") for g in guilty)]
            inner = [name for name in inner if name] or inner
            return inner[0 if fault == "registered first" else -1]
        if fault == "not a path":
            return "Linear"
        return guilty[0] if guilty else None

    return first_bad


def test_a_right_hunter_is_right():
    assert debugging.check_first_bad(hunter())


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("any output", "its input was broken already"),
        ("kinds alone", "its input was broken already"),
        ("late", "the last module"),
        ("finite inputs", "which is another kind"),
        ("no keywords", "got its NaN by keyword"),
        ("nan alone", "nothing here is ever NaN"),
        ("hooks stay", "Your hooks are still on the model"),
        ("last", "You named the model itself"),
        ("not a path", "'Linear' is not the path"),
        ("no -inf", "This −∞ comes from finite numbers"),
        ("registered first", "in the order of time"),
        ("registered last", "in the order of time"),
        ("longest", "in the order of time"),
        ("leaves", "You returned None; the birth is in '1', which has children: its own forward makes it."),
        ("no Sequential", "its own forward makes it"),
        ("clear", "a hook that was there before is gone"),
        ("eval", "is in eval mode now"),
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
    assert debugging.check_layer_errors(lambda model, x, dtype: None).status == NOT_ATTEMPTED


# --- The comparison


def errors(fault=""):
    def layer_errors(model, x, dtype):
        if fault == "eval":
            model.eval()
        elif fault == "frozen":
            model.requires_grad_(False)
        elif fault == "gradients":
            model(x.clone().requires_grad_().clone()).sum().backward()
        elif fault == "zero_grad":
            model.zero_grad()
        elif fault == "x":
            x.add_(1)
        elif fault == "forward":
            first = next(model.children())
            first.forward = lambda given, right=first.forward: right(given)
        elif fault == "clear":
            for module in model.modules():
                module._forward_hooks.clear()

        def outputs(which, given):
            kept = {} if fault != "registered" else {n: None for n, m in which.named_modules() if not [*m.children()]}

            def keep(name, module, args, output):
                copied = output.detach() if fault == "no clone" else output.detach().clone()
                kept[name] = output.detach().float() if fault == "float, no clone" else copied
                if fault == "fed wide" and which is not wide_model:
                    given = wide_inputs[name].to(dtype)
                    kept[name] = module.forward(given).detach().clone()
                elif fault == "fed wide":
                    wide_inputs[name] = args[0].detach().clone()

            every = which.named_modules()
            hooks = [
                module.register_forward_hook(partial(keep, name))
                for name, module in every
                if fault == "containers" or not list(module.children())
            ]
            which(given)
            for hook in () if fault == "hooks stay" else hooks:
                hook.remove()
            return kept

        wide_inputs = {}
        wide_model = model if fault in ("model itself", "hooks stay") else deepcopy(model)
        wide = outputs(wide_model, x if fault == "x itself" else x.clone())
        narrow = outputs((model if fault == "in place" else deepcopy(model)).to(dtype), x.to(dtype))
        found = {}
        for name, exact in wide.items():
            low = narrow[name] if fault == "narrow" else narrow[name].double()
            order = torch.inf if fault == "largest" else 2
            below = low if fault == "over narrow" else exact.to(low.dtype)
            off = ((low - exact.to(low.dtype)).norm(order) / below.norm(order)).item()
            if fault == "no division":
                off = (low - exact.to(low.dtype)).norm().item()
            if fault == "zero wide" and not exact.any():
                off = 0.0
            if fault != "nan" and not narrow[name].isfinite().all():
                off = float("inf")
            found[name] = 0.0 if fault != "zeros" and not exact.any() and not narrow[name].any() else off
        if fault == "sorted":
            return dict(sorted(found.items()))
        return list(found.values()) if fault == "list" else found

    return layer_errors


def test_right_errors_are_right():
    assert debugging.check_layer_errors(errors())


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("in place", "convert a copy"),
        ("no clone", "in place overwrites the output of the layer before it: clone"),
        ("float, no clone", "in place overwrites the output of the layer before it: clone"),
        ("hooks stay", "Your hooks are still on the model"),
        ("containers", "contains other modules"),
        ("narrow", "in float32 or wider"),
        ("registered", "the modules run as"),
        ("nan", "infinite, not NaN"),
        ("zeros", "the error is 0"),
        ("list", "Return a dict"),
        ("sorted", "the modules run as"),
        ("over narrow", "Divide by the norm of the float32 output"),
        ("zero wide", "only the float32 output is zero"),
        ("largest", "the 2-norm of the difference over the 2-norm"),
        ("no division", "the 2-norm of the difference over the 2-norm"),
        ("fed wide", "from one run of each whole model"),
        ("x itself", "`x` has changed"),
        ("x", "`x` has changed"),
        ("model itself", "run a copy"),
        ("eval", "is in eval mode now"),
        ("frozen", "requires_grad of"),
        ("gradients", "The gradient of"),
        ("zero_grad", "The gradient of"),
        ("forward", "forward of '0' is still replaced"),
        ("clear", "a hook that was there before is gone"),
    ],
)
def test_wrong_errors_are_told_why(fault, message):
    outcome = debugging.check_layer_errors(errors(fault))
    assert outcome.status == NOT_YET
    assert message in outcome.message


@pytest.mark.parametrize("fault", ["no clone", "float, no clone", "largest", "no division", "fed wide", "over narrow"])
def test_what_is_computed_in_float32_is_not_told_to_be(fault):
    assert "Compute the difference in float32" not in debugging.check_layer_errors(errors(fault)).message


@pytest.mark.parametrize("check", [debugging.check_first_bad, debugging.check_layer_errors])
def test_what_is_no_function_is_said(check):
    assert "needs the function itself" in check(3).message


# --- Questions


def test_the_hunter_with_the_wrong_line_names_the_last_module():
    namespace = {"kinds": kinds}
    exec(debugging_questions.HUNTER, namespace)
    outcome = debugging.check_first_bad(namespace["first_bad"])
    assert "the last module" in outcome.message
    assert debugging_questions.WRONG_LINE.options[6].right


def test_the_tree_answers_as_the_tasks_say():
    task = {"task": "fine_tune", "model": "LLaMA 7B", "batch": 8, "length": 2_048}
    one, two = (decide("H100", **task, cards=cards).levers for cards in (1, 2))
    (gone,) = set(one) - set(two)
    assert gone == next(option.text for option in debugging_questions.PLAY_LEVER.options if option.right)
    totals = {"35.7": (40, 2), "15.5": (40, 1), "69.8": (80, 1), "55.9": (80, 2)}
    for text, (memory, cards) in totals.items():
        total = decide("A100", **task, cards=cards, memory_gb=memory).total
        assert float(text) == pytest.approx(total / GIGABYTE, abs=0.05)
        assert text == debugging_questions.PLAY_TOTAL.answer or text in debugging_questions.PLAY_TOTAL.wrong
