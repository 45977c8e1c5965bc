"""The checks of training/master_weights: the right answer, and for each foreseen wrong one the hint that names it."""

import functools
import itertools
import random
from fractions import Fraction

import pytest
import torch
from torch import bfloat16

from utils.checks.outcome import NOT_YET
from utils.checks.questions import CORRECT, judge, number
from utils.checks.training import master_weights, master_weights_questions
from utils.formats import BFLOAT16
from utils.rounding import quantize, ulp
from utils.widgets.update import updated

LOST = {
    "bfloat16, w = 1, dw = -0.003": False,
    "bfloat16, w = 3, dw = 0.007": True,
    "float16, w = 0.3, dw = 0.0001": True,
    "bfloat16, w = 258, dw = 1": False,
}
BILLIONS = dict(zip(master_weights_questions.SEVEN_BILLION, (84, 56, 56, 70, 17.36), strict=True))


# --- What the predictions claim


def test_float16_loses_at_an_eighth_of_the_rate_what_bfloat16_loses():
    draw = torch.Generator().manual_seed(0)
    weights = (0.05 * torch.randn(20_000, generator=draw)).to(bfloat16)

    def share(dtype, rate):
        w = weights.to(dtype)
        return (w + rate == w).double().mean().item()

    for rate in (1e-5, 3e-5, 1e-4, 3e-4):
        # four in a thousand are subnormal or nearly so in float16
        assert share(torch.float16, rate / 8) == pytest.approx(share(bfloat16, rate), abs=0.005)
    assert share(bfloat16, 1e-5) > 0.9
    assert share(bfloat16, 1e-3) < 0.01


# --- Play


def first_that_moves(weight):
    """The smallest size of an update, in either direction, that moves a bfloat16 weight."""
    w = float(quantize(weight, BFLOAT16))
    sizes = sorted(float(Fraction(k, 64) * Fraction(2) ** -11) for k in range(1, 4 * 64))
    return [next(s for s in sizes if float(quantize(w + sign * s, BFLOAT16)) != w) for sign in (1, -1)]


@pytest.mark.parametrize(
    ("question", "weight"),
    [(master_weights_questions.SMALLEST_AT_02, 0.2), (master_weights_questions.SMALLEST_AT_026, 0.26)],
)
def test_the_smallest_update_is_half_a_gap_either_way(question, weight):
    up, down = first_that_moves(weight)
    assert up == down == number(question.answer)
    assert judge(question, up).status == CORRECT
    assert judge(question, float(f"{up:.3g}")).status == CORRECT  # as many digits as a reader copies


def test_below_a_quarter_the_same_kind_of_tie_moves_at_half_the_size():
    assert first_that_moves(0.245) == [2.0**-11, 2.0**-11]


@pytest.mark.parametrize(("question", "answer"), [("SMALLEST_AT_02", 0.0005), ("SMALLEST_AT_026", 0.001)])
def test_an_update_that_moves_the_weight_is_told_that_a_smaller_one_does_too(question, answer):
    outcome = judge(getattr(master_weights_questions, question), answer)
    assert outcome.status == NOT_YET
    assert "so does a smaller dw" in outcome.message


def test_rounding_up_runs_ahead_and_stops_at_two():
    assert updated(1.0, Fraction("0.005"), BFLOAT16, "ties_to_even", 1000) == 2.0
    assert judge(master_weights_questions.RUNS_AHEAD, 2).status == CORRECT


# --- 1: which are lost


def test_the_answers_are_what_torch_does():
    for key, lost in LOST.items():
        name, w, dw = (part.rpartition("= ")[2] for part in key.split(", "))
        weight = torch.tensor(float(w), dtype=getattr(torch, name))
        assert bool(weight + float(dw) == weight) == lost, key
    assert master_weights.check_which_are_lost(LOST)
    assert master_weights.check_which_are_lost({key: "lost" if lost else "stored" for key, lost in LOST.items()})
    assert master_weights.check_which_are_lost({key: torch.tensor(lost) for key, lost in LOST.items()})


@pytest.mark.parametrize(
    ("key", "hint"),
    list(zip(LOST, ["below 1", "2^-6", "large weight", "Which is even"], strict=True)),
)
def test_a_wrong_fate_gets_its_hint(key, hint):
    outcome = master_weights.check_which_are_lost(LOST | {key: not LOST[key]})
    assert outcome.status == NOT_YET
    assert outcome.message.startswith(key)
    assert hint in outcome.message


def test_which_are_lost_says_what_it_cannot_read():
    outcome = master_weights.check_which_are_lost(LOST | {"bfloat16, w = 258, dw = 1": "perhaps"})
    assert "not one of these: lost, stored" in outcome.message


# --- 2: predict the share


def test_two_thirds_of_the_updates_are_lost():
    weights = torch.linspace(2**-5, 2**-3, 300_001, dtype=torch.float64).to(bfloat16)
    for update in (0.0002, -0.0002):
        lost = (weights.float() + update).to(bfloat16) == weights
        assert lost.double().mean().item() == pytest.approx(2 / 3, abs=0.003)
    assert ulp(0.06, BFLOAT16) / 2 < 0.0002 < ulp(0.07, BFLOAT16) / 2
    for answer in (200 / 3, 66.7, 67, "200/3", 66.67):
        assert master_weights.check_predict_the_share(answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (33.3, "stored"),
        (33, "stored"),
        (0.66, "percent"),
        (0.33, "fraction"),
        (50, "twice as wide"),
        (100, "half the gap"),
        (0, "2^-11"),
        (0.667, "percent"),
        (0.333, "fraction"),
        (100 * (0.125 - 0.0002 * 2**9) / (0.125 - 0.03125), "2^-9 of the weight"),
        (100 * (0.125 - 0.0002 * 2**8) / (0.125 - 0.03125), "2^-8 of the weight"),
        (66, "one more digit"),
        (12, "one by one"),
    ],
)
def test_predict_the_share_names_the_mistake(answer, hint):
    outcome = master_weights.check_predict_the_share(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- 3: seven billion weights


def kept_bytes(dtype, optimizer_of):
    """The bytes for each weight of `dtype` that are there after a step: itself, its gradient, the state."""
    weight = torch.nn.Parameter(torch.ones(1000, dtype=dtype))
    weight.grad = torch.ones_like(weight)
    optimizer = optimizer_of([weight], lr=1e-3)
    optimizer.step()
    state = (kept for kept in optimizer.state[weight].values() if torch.is_tensor(kept) and kept.dim())
    return sum(tensor.nbytes for tensor in (weight, weight.grad, *state)) / 1000


def test_the_gigabytes_are_those_of_the_optimizers():
    assert master_weights.check_seven_billion(BILLIONS)
    momentum = functools.partial(torch.optim.SGD, momentum=0.9)
    float32_mean = kept_bytes(torch.float32, momentum) - kept_bytes(torch.float32, torch.optim.SGD)
    adapters = kept_bytes(torch.float32, torch.optim.AdamW)
    measured = {
        "SGD with momentum, 32-true": kept_bytes(torch.float32, momentum),
        "SGD with momentum, bf16-true-kahan": kept_bytes(bfloat16, momentum) + 2,
        "SGD without momentum, bf16-true-master": kept_bytes(bfloat16, torch.optim.SGD) + 4,
        "SGD with momentum, bf16-true, split master": kept_bytes(bfloat16, torch.optim.SGD) + 2 + float32_mean,
        "AdamW, frozen bfloat16, float32 LoRA adapters": 2 + 0.03 * adapters,
    }
    assert {name: 7 * size for name, size in measured.items()} == pytest.approx(BILLIONS)


@pytest.mark.parametrize("answer", [17, 17.0, 17.2, 17.3, 17.5, 17.45])
def test_a_sum_for_the_adapters_that_was_rounded_is_no_power_of_two(answer):
    question = master_weights_questions.SEVEN_BILLION["AdamW, frozen bfloat16, float32 LoRA adapters"]
    outcome = judge(question, answer)
    assert outcome.status == NOT_YET
    assert "two decimals" in outcome.message
    assert judge(question, 17.4).status == judge(question, 17.36).status == CORRECT


def test_the_hints_for_the_adapters_speak_of_adapters():
    rows = list(master_weights_questions.SEVEN_BILLION.values())
    assert all("210 million" in hint or "frozen" in hint.lower() for hint in rows[-1].hints)
    assert not set(rows[-1].hints) & set(rows[0].hints)


@pytest.mark.parametrize(
    ("row", "answer", "hint"),
    [
        ("SGD with momentum, 32-true", 28, "only the weights"),
        ("SGD with momentum, 32-true", 112, "two moments"),
        ("SGD with momentum, 32-true", 12, "Right for one weight"),
        ("SGD with momentum, bf16-true-kahan", 42, "one more number"),
        ("SGD with momentum, bf16-true-kahan", 84, "None of these"),
        ("SGD without momentum, bf16-true-master", 42, "not instead of it"),
        ("SGD without momentum, bf16-true-master", 84, "no moment"),
        ("SGD with momentum, bf16-true, split master", 84, "full master"),
        ("SGD with momentum, bf16-true, split master", 56, "moment is float32"),
        ("SGD with momentum, bf16-true, split master", 7, "Add up"),
        ("AdamW, frozen bfloat16, float32 LoRA adapters", 14, "The adapters have"),
        ("AdamW, frozen bfloat16, float32 LoRA adapters", 14.84, "two moments"),
        ("AdamW, frozen bfloat16, float32 LoRA adapters", 31.36, "no gradients"),
        ("SGD with momentum, 32-true", 84e9, "Right in bytes"),
        ("SGD with momentum, 32-true", 84_000, "Right in MB"),
        ("SGD with momentum, 32-true", 78.2, "Right in GiB"),
        ("SGD with momentum, bf16-true-kahan", 52.2, "Right in GiB"),
        ("AdamW, frozen bfloat16, float32 LoRA adapters", 16.2, "Right in GiB"),
    ],
)
def test_seven_billion_names_the_mistake(row, answer, hint):
    outcome = master_weights.check_seven_billion(BILLIONS | {row: answer})
    assert outcome.status == NOT_YET
    assert row in outcome.message
    assert hint in outcome.message


# --- 4: AdamW with a master


def adamw_with(*faults):
    """An AdamW with a master and with faults, each the name of one."""

    @torch.no_grad()
    def master_adamw(weight, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01):
        if "hard-coded" in faults:
            lr, betas, eps, decay = 1e-3, (0.9, 0.999), 1e-8, 0.01
        kept = bfloat16 if "bfloat16 moments" in faults else torch.float32
        if not state:
            state |= {"t": 0, "w": weight.float(), "m": torch.zeros_like(weight, dtype=kept)}
            if "bfloat16 master" in faults:
                state["w"] = weight.clone()
            state["v"] = torch.zeros_like(state["m"])
        state["t"] = 1 if "t stays" in faults else state["t"] + 1
        narrow = (weight.grad * weight.grad).float()
        narrow_mean = ((1 - betas[0]) * weight.grad).float()
        narrow_squares = ((1 - betas[1]) * weight.grad * weight.grad).float()
        g, w = weight.grad.float(), weight.float() if "re-read" in faults else state["w"]
        if "coupled" in faults:
            g = g + decay * w
        elif not {"decay last", "no decay"} & set(faults):
            w = w * (1 - (1 if "decay without lr" in faults else lr) * decay)
        mean, square = (1 - betas[0]) * g, (1 - betas[1]) * (narrow if "narrow square" in faults else g**2)
        if "narrow mean" in faults:
            mean = narrow_mean
        if "narrow squares" in faults:
            square = narrow_squares
        state["m"] = (betas[0] * state["m"].float() + mean).to(kept)
        state["v"] = (betas[1] * state["v"].float() + square).to(kept)
        t = state["t"] - ("t from 0" in faults)
        c, d = (1, 1) if "uncorrected" in faults else (1 - betas[0] ** t, 1 - betas[1] ** t)
        m, v = state["m"].float() / c, state["v"].float() / d
        root = v.sqrt() + eps
        if "eps inside" in faults:
            root = (v + eps).sqrt()
        elif "eps early" in faults:
            root = (state["v"].float().sqrt() + eps) / d**0.5
        elif "no eps" in faults:
            root = v.sqrt()
        w = w - lr * m / root * (-1 if "uphill" in faults else 1)
        state["w"] = w * (1 - lr * decay) if "decay last" in faults else w
        if "bfloat16 master" in faults:
            state["w"] = state["w"].bfloat16()
        if "replaced" in faults:
            weight.data = state["w"].to(bfloat16)
        elif "float32" in faults:
            weight.data = state["w"]
        elif "not written" not in faults:
            weight.copy_(state["w"])
        if "cleared" in faults:
            weight.grad = None

    return master_adamw


def by_torch(weight, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01):
    if not state:
        state["w"] = torch.nn.Parameter(weight.detach().float())
        state["o"] = torch.optim.AdamW([state["w"]], lr=lr, betas=betas, eps=eps, weight_decay=decay)
    state["w"].grad = weight.grad.float()
    state["o"].step()
    weight.data.copy_(state["w"].data)


def in_double(weight, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01):
    w, m, v, t = state.get("all", (weight.detach().double(), 0.0, 0.0, 0))
    g, t = weight.grad.double(), t + 1
    m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
    w = w - lr * decay * w - lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)
    state["all"] = w, m, v, t
    with torch.no_grad():
        weight[:] = w.to(bfloat16)


@pytest.mark.parametrize("right", [adamw_with(), by_torch, in_double])
def test_master_adamw_takes_what_is_adamw(right):
    outcome = master_weights.check_master_adamw(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ("re-read", "read back from the rounded weight"),
        ("uncorrected", "began at 0"),
        ("t stays", "Count the steps"),
        ("t from 0", "count from 1"),
        ("decay last", "belongs before it"),
        ("coupled", "Adam with L2"),
        ("no decay", "decay is missing"),
        ("decay without lr", "not decay alone"),
        ("eps inside", "inside the root"),
        ("narrow square", "Widen the gradient first"),
        ("narrow mean", "(1 - beta1)"),
        ("narrow squares", "for v too"),
        ("eps early", "before v is corrected"),
        ("no eps", "0/0 without eps"),
        ("uphill", "uphill"),
        ("hard-coded", "all of its arguments"),
        ("bfloat16 moments", "is bfloat16"),
        ("replaced", "new memory"),
        ("float32", "has become float32"),
        ("bfloat16 master", "`clone()`"),
        ("not written", "has not moved"),
        ("cleared", "weight.grad to None"),
    ],
)
def test_master_adamw_names_the_mistake(fault, hint):
    outcome = master_weights.check_master_adamw(adamw_with(fault))
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_master_adamw_sees_a_gradient_that_is_never_widened():
    assert "(1 - beta1)" in master_weights.check_master_adamw(adamw_with("narrow mean", "narrow squares")).message


def test_master_adamw_sees_a_narrow_square_in_either_order():
    @torch.no_grad()
    def squared_first(weight, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01):
        if not state:
            state |= {"t": 0, "w": weight.float(), "m": torch.zeros(weight.shape), "v": torch.zeros(weight.shape)}
        state["t"] += 1
        state["m"] = betas[0] * state["m"] + (1 - betas[0]) * weight.grad
        state["v"] = betas[1] * state["v"] + (1 - betas[1]) * weight.grad**2
        m, v = (state[name] / (1 - beta ** state["t"]) for name, beta in zip("mv", betas, strict=True))
        state["w"] = state["w"] * (1 - lr * decay) - lr * m / (v.sqrt() + eps)
        weight.copy_(state["w"])

    assert "Widen the gradient first" in master_weights.check_master_adamw(squared_first).message


def test_master_adamw_wants_everything_in_the_state():
    everywhere = {}

    def one_state_for_all(weight, state, **settings):
        if not state:
            everywhere.clear()
            state["begun"] = True
        adamw_with()(weight, everywhere, **settings)

    assert "state of its own" in master_weights.check_master_adamw(one_state_for_all).message


def test_master_adamw_leaves_the_gradient_alone():
    def scales_it(weight, state, **settings):
        adamw_with()(weight, state, **settings)
        weight.grad.mul_(2)

    assert "weight.grad" in master_weights.check_master_adamw(scales_it).message


def test_master_adamw_goes_by_the_weight_and_not_by_what_is_returned():
    assert "has not moved" in master_weights.check_master_adamw(lambda *given, **named: 3).message


def test_master_adamw_has_a_word_for_what_it_does_not_know():
    def too_far(weight, state, lr=1e-3, **settings):
        adamw_with()(weight, state, lr=1.1 * lr, **settings)

    assert "line by line" in master_weights.check_master_adamw(too_far).message


# --- 5: stochastic addition


def with_bits(n=16, *, cut=True, dw_rounded=False, one=False, sign=1, low=0):
    def add(w, dw, draw):
        bits = (w.float() + (dw.bfloat16().float() if dw_rounded else dw)).view(torch.int32)
        noise = torch.randint(low, low + 2**n, (1,) if one else bits.shape, generator=draw, dtype=torch.int32)
        if sign < 0:
            noise = 2**16 - 1 - noise
        bits = bits + noise
        return (bits & -(2**16) if cut else bits).view(torch.float32).bfloat16()

    return add


def between_neighbours(w, dw, draw, chance=lambda part: part):
    exact = w.float() + dw
    low = exact.bfloat16()
    low = torch.where(low.float() > exact, torch.nextafter(low, torch.full_like(low, -1e30)), low)
    high = torch.nextafter(low, torch.full_like(low, 1e30))
    part = (exact - low.float()) / (high.float() - low.float())
    up = torch.rand(w.shape, generator=draw) < chance(part)
    return torch.where(up, high, low)


def compared(w, dw, draw, up=torch.lt):
    """The upper neighbour where a random number below 2**16 is less than the lower half."""
    bits = (w.float() + dw).view(torch.int32)
    low = bits & 0xFFFF
    drawn = torch.randint(2**16, bits.shape, generator=draw, dtype=torch.int32)
    return torch.where(up(drawn, low), bits - low + 2**16, bits - low).view(torch.float32).bfloat16()


@pytest.mark.parametrize("right", [with_bits(), with_bits(sign=-1), between_neighbours, compared])
def test_stochastic_add_takes_what_is_right_on_average(right):
    outcome = master_weights.check_stochastic_add(right)
    assert outcome, outcome.message


def nearest(w, dw, draw):
    return (w.float() + dw).bfloat16()


def cut_off(w, dw, draw):
    return ((w.float() + dw).view(torch.int32) & -(2**16)).view(torch.float32).bfloat16()


def global_noise(w, dw, draw):
    return with_bits()(w, dw, None)


def python_noise(w, dw, draw):
    return with_bits()(w, dw, torch.Generator().manual_seed(random.randrange(2**40)))


def seeded_inside(w, dw, draw):
    return with_bits()(w, dw, torch.Generator().manual_seed(7))


def gap_of_the_weight(w, dw, draw):
    """Right where the sum lies in the binade of the weight."""
    _, e = torch.frexp(torch.where(w == 0, dw, w.float()))
    gap = torch.ldexp(torch.ones(w.shape), e - 8)
    steps = (w.float() + dw) / gap
    return ((steps.floor() + (torch.rand(w.shape, generator=draw) < steps - steps.floor())) * gap).bfloat16()


def three_neighbours(w, dw, draw):
    """Right on average, and too far now and then."""
    new, far = with_bits()(w, dw, draw), torch.randint(-1, 2, w.shape, generator=draw)
    exact = cut_off(w, dw, draw).float() == w.float() + dw
    return torch.where(exact, new, (new.float() + far * 2.0**-7).bfloat16())


def in_place(w, dw, draw):
    return w.copy_(with_bits()(w, dw, draw))


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (nearest, "rounding to nearest, with nothing random"),
        (cut_off, "always cut off, towards 0"),
        (with_bits(cut=False), "rounds twice"),
        (with_bits(17), "more bits than are cut off"),
        (three_neighbours, "Only these two"),
        (with_bits(15), "not 15"),
        (with_bits(low=1), "0 to 65,535"),
        (global_noise, "do not come from `draw`"),
        (python_noise, "same state"),
        (seeded_inside, "no seed inside"),
        (with_bits(one=True), "draw a random number for each"),
        (with_bits(dw_rounded=True), "neither dw nor the sum"),
        (lambda w, dw, draw: between_neighbours(w, dw, draw, lambda p: (p > 0) * 0.5), "same chance"),
        (lambda w, dw, draw: between_neighbours(w, dw, draw, lambda p: (p > 0) * (1 - p)), "swapped"),
        (lambda w, dw, draw: between_neighbours(w, dw, draw, lambda p: p**2), "divided by the gap"),
        (lambda w, dw, draw: between_neighbours(w.abs(), dw.abs(), draw), "Mind the sign"),
        (lambda w, dw, draw: nearest(w, dw + 2**-9 * torch.rand(w.shape, generator=draw), draw), "rounds twice"),
        (lambda w, dw, draw: compared(w, dw, draw, torch.le), "`<=`"),
        (in_place, "changes its input"),
        (gap_of_the_weight, "two neighbours"),
        (lambda w, dw, draw: with_bits()(w, dw, draw).float(), "torch.float32"),
        (lambda w, dw, draw: with_bits()(w, dw, draw)[0], "shape [3]"),
        (lambda w, dw, draw: with_bits()(w, dw, draw).tolist(), "list"),
    ],
)
def test_stochastic_add_names_the_mistake(wrong, hint):
    outcome = master_weights.check_stochastic_add(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_the_exact_sums_are_bfloat16_numbers_and_the_others_lie_between_two():
    for w, dw in master_weights.EXACT:
        total = torch.tensor(w, dtype=bfloat16).double() + dw
        assert total.to(bfloat16) == total
    for w, dw in master_weights.BETWEEN:
        near, far, part = master_weights._neighbours(w, dw)
        total = torch.tensor(w, dtype=bfloat16).double() + torch.tensor(dw).double()
        assert total.item() == pytest.approx(near + part * (far - near), rel=1e-7)
        assert 0 < part < 1
        assert abs(near) < abs(far)


# --- 6: find the bug


def from_lines(drop=False):
    """The class of the question, with or without its wrong line."""
    lines = []
    for option in master_weights_questions.WRONG_LINE.options:
        if not (drop and option.right):
            lines.append(option.text.removeprefix("```\n").removesuffix("\n```"))
    scope = {}
    exec("\n".join(lines), scope)
    return scope["MasterSGD"]


def test_without_the_wrong_line_the_class_is_right():
    assert master_weights.check_master_sgd(from_lines(drop=True))
    assert "rebuilds the master" in master_weights.check_master_sgd(from_lines()).hint


def sgd_with(fault=""):
    class MasterSGD:
        def __init__(self, weights, lr):
            self.weights, self.lr = list(weights), lr
            self.masters = [w.detach().float() for w in self.weights]
            if fault == "bfloat16 masters":
                self.masters = [w.detach().clone() for w in self.weights]

        def step(self):
            for at, (weight, master) in enumerate(zip(self.weights, self.masters, strict=True)):
                if fault == "as given":
                    master = weight.detach().float()
                if fault == "rebound":
                    master = master - self.lr * weight.grad.float()
                elif fault == "put back":
                    master = self.masters[at] = master - self.lr * weight.grad.float()
                else:
                    rate = {"uphill": -self.lr, "no rate": 1}.get(fault, self.lr)
                    master -= rate * weight.grad.float()
                if fault == "float32":
                    weight.data = master
                elif fault == "replaced":
                    weight.data = master.bfloat16()
                elif fault != "not written":
                    weight.data.copy_(master)

    return MasterSGD


@pytest.mark.parametrize("right", [sgd_with(), sgd_with("put back")])
def test_master_sgd_takes_what_sums_in_float32(right):
    outcome = master_weights.check_master_sgd(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ("as given", "rebuilds the master from the rounded weight"),
        ("bfloat16 masters", "what bfloat16 alone gives"),
        ("rebound", "start plus the last update"),
        ("uphill", "uphill"),
        ("no rate", "learning rate"),
        ("not written", "into them"),
    ],
)
def test_master_sgd_names_the_mistake_to_whoever_asks(fault, hint):
    outcome = master_weights.check_master_sgd(sgd_with(fault))
    assert outcome.status == NOT_YET
    assert hint in outcome.hint
    assert "master" not in outcome.message.lower()
    assert hint not in outcome.message


def test_master_sgd_keeps_the_dtype_of_the_weight():
    assert "has become float32" in master_weights.check_master_sgd(sgd_with("float32")).message


def test_master_sgd_takes_new_memory_and_says_who_misses_it():
    outcome = master_weights.check_master_sgd(sgd_with("replaced"))
    assert outcome, outcome.message
    assert "new memory" in outcome.message
    assert "new memory" not in master_weights.check_master_sgd(sgd_with()).message


def test_a_network_reads_a_weight_in_new_memory():
    layer = torch.nn.Linear(1, 1, bias=False, dtype=bfloat16)
    optimizer = sgd_with("replaced")(layer.parameters(), 0.01)
    optimizer.masters[0].fill_(1.0)
    layer.weight.grad = torch.full_like(layer.weight, -1.0)
    optimizer.step()
    optimizer.step()
    assert layer(torch.ones(1, 1, dtype=bfloat16)).item() == torch.tensor(1.02).bfloat16().item()


def test_the_page_shows_what_the_broken_class_does_and_not_why():
    outcome = master_weights.check_master_sgd(sgd_with("as given"))
    assert outcome.message == "A weight of 1 and 60 small updates add up to 1.0293; you get 1."


def test_master_sgd_wants_the_class_and_a_step():
    ready = sgd_with()([], 0.1)
    assert "the class itself" in master_weights.check_master_sgd(ready).message
    assert "no method `step`" in master_weights.check_master_sgd(lambda weights, lr: 3).message


def test_a_quarter_of_the_updates_alone_would_reach_the_weight():
    starts, gradients = master_weights._sgd_start()
    updates = [master_weights.SGD_LR * pair[0].double() for pair in itertools.islice(gradients, 20)]
    kept = torch.stack([(starts[0].double() - update).to(bfloat16) != starts[0] for update in updates])
    assert not kept.any()  # at a weight of 1 none does
    small = torch.stack([(starts[1].double() - update).to(bfloat16) != starts[1] for update in updates])
    assert 0.2 < small.double().mean() < 1
