"""The loss scalers against `torch.amp.GradScaler`, call for call: gradients, weights, scale, state, and errors."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.amp import GradScaler

from utils.loss_scaling import DynamicLossScaler, StaticLossScaler, next_scale

DTYPES = (torch.float32, torch.bfloat16, torch.float64)
BITS = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float64: torch.int64}
OPTIMIZERS = (
    lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9),
    lambda weights: torch.optim.AdamW(weights, lr=0.01, foreach=False),
    lambda weights: torch.optim.Adam(weights, lr=0.01, foreach=True),
)
# float32 entries of a gradient: mostly harmless, and now and then what a scale makes of the others in float16.
HARMLESS = [1.0, -0.3, 3e-6, 1e-3, 0.0, -0.0, 2.0**-149, -1e-41, 7.0, 1e-30]
WILD = [math.inf, -math.inf, math.nan, 3e38, -2e36, 1e34, 1e30]


def bits(tensor):
    return tensor.detach().contiguous().view(BITS[tensor.dtype]).tolist()


def state_bits(optimizer):
    """The optimizer's state, tensors as bits, in the order of the weights."""
    return [
        {name: bits(value) if value.is_floating_point() else value.tolist() for name, value in entry.items()}
        for entry in optimizer.state_dict()["state"].values()
    ]


class Side:
    """A scaler with some weights and their optimizers; what it does is recorded, to be compared with another side."""

    def __init__(self, scaler, count=1, make=OPTIMIZERS):
        self.scaler = scaler
        self.weights = [[torch.nn.Parameter(torch.arange(1.0, 5).to(dtype)) for dtype in DTYPES] for _ in range(count)]
        self.optimizers = [make[n % len(make)](weights) for n, weights in enumerate(self.weights)]

    def backward(self, n, factors):
        """d loss / d weight = factors, in the dtype of each weight."""
        loss = sum((weight * torch.tensor(factors, dtype=weight.dtype)).float().sum() for weight in self.weights[n])
        self.scaler.scale(loss).backward()

    def clip(self, n):
        torch.nn.utils.clip_grad_norm_(self.weights[n], 0.5)

    def grad_bits(self):
        return [[None if w.grad is None else bits(w.grad) for w in weights] for weights in self.weights]

    def seen(self):
        """All that can be seen from outside."""
        return {
            "scale": self.scaler.get_scale(),
            "state": self.scaler.state_dict(),
            "gradients": self.grad_bits(),
            "weights": [[bits(w) for w in weights] for weights in self.weights],
            "optimizers": [state_bits(optimizer) for optimizer in self.optimizers],
        }


def outcome(function, *args, **kwargs):
    """What a call returns, or the type of what it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error)


def one_weight(scaler, value=1.0, dtype=torch.float32, lr=1.0):
    """A weight, its optimizer, and a function that gives it a gradient."""
    weight = torch.nn.Parameter(torch.tensor([value], dtype=dtype))
    optimizer = torch.optim.SGD([weight], lr=lr)

    def backward(gradient=1.0):
        weight.grad = None
        scaler.scale((weight.float() * gradient).sum()).backward()

    return weight, optimizer, backward


def run(scaler, gradients):
    """Train one weight with these gradients; return the scale after each step, and the weight."""
    weight, optimizer, backward = one_weight(scaler)
    scales = []
    for gradient in gradients:
        backward(gradient)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales, weight.item()


def assert_same(left, right):
    assert left.scaler.get_scale() == right.scaler.get_scale()
    assert left.seen() == right.seen()


# decisions


def test_the_rule_by_itself_is_what_grad_scaler_does():
    settings = {"growth_factor": 3.0, "backoff_factor": 0.3, "growth_interval": 3}
    for scale in (2.0**-149, 1e-3, 1.0, 65536.0, 1.2e38):
        for tracker in (0, 1, 2, 5):  # 5: the interval was set below the count
            for overflowed in (False, True):
                theirs = GradScaler("cpu", init_scale=scale, **settings)
                weight, optimizer, backward = one_weight(theirs)
                backward()
                theirs._growth_tracker.fill_(tracker)
                weight.grad.fill_(math.inf if overflowed else 1.0)
                theirs.step(optimizer)
                theirs.update()
                ours = next_scale(float(np.float32(scale)), tracker, overflowed, **settings)
                assert ours == (theirs.get_scale(), theirs._get_growth_tracker()), (scale, tracker, overflowed)
    assert next_scale(65536.0, 1999, False) == (131072.0, 0)  # torch's defaults
    assert next_scale(65536.0, 1998, False) == (65536.0, 1999)
    assert next_scale(65536.0, 1999, True) == (32768.0, 0)


def test_the_inverse_of_the_scale_is_copied_once_for_each_device(monkeypatch):
    scaler, copies, usual = DynamicLossScaler(), [], torch.Tensor.to
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(5)]
    scaler.scale(sum(weight.sum() for weight in weights)).backward()

    def to(tensor, *args, **kwargs):
        copies.extend([tensor.dtype] if tensor.dtype == torch.float32 else [])  # the others say whether all is finite
        return usual(tensor, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "to", to)
    scaler.unscale_(torch.optim.SGD(weights, lr=1.0))
    assert copies == [torch.float32]
    assert all(weight.grad.tolist() == [1.0, 1.0] for weight in weights)


def state(scale, tracker=0, interval=3):
    return {
        "scale": scale,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": interval,
        "_growth_tracker": tracker,
    }


def call(side, name, *args):
    """Do one step of a schedule; return its result, or the type of what it raises."""
    if name in ("backward", "clip"):
        return outcome(getattr(side, name), *args)
    if name == "zero_grad":
        return [optimizer.zero_grad() for optimizer in side.optimizers]
    if name in ("unscale_", "step"):
        args = (side.optimizers[args[0]],)
    return outcome(getattr(side.scaler, name), *args)


def iteration(rng, count):
    """Yield the calls of one iteration: accumulated gradients, some clipped, one optimizer in ten left out."""
    yield ("zero_grad",)
    for n in range(count):
        if n and rng.random() < 0.1:
            continue
        wild = rng.random() < 0.25
        for _ in range(rng.integers(1, 3)):
            factors = rng.choice(HARMLESS, 4)
            factors[rng.integers(4)] = rng.choice(WILD if wild else HARMLESS)
            yield "backward", n, factors.tolist()
        if rng.random() < 0.6:
            yield "unscale_", n
            if rng.random() < 0.7:
                yield "clip", n
        yield "step", n
    yield "update", *([float(rng.choice([4.0, 0.7, 3e38]))] if rng.random() < 0.05 else [])
    if rng.random() < 0.1:
        yield "set_growth_interval", int(rng.integers(1, 6))
    if rng.random() < 0.05:
        yield "set_growth_factor", float(rng.choice([2.0, 1.1]))
        yield "set_backoff_factor", float(rng.choice([0.5, 0.7]))
    if rng.random() < 0.05:
        yield "load_state_dict", state(float(rng.choice([1.0, 2.0**-130, 2.0**-149, 2.0**126])), int(rng.integers(4)))


def random_settings(rng):
    return {
        "init_scale": float(np.float32(rng.choice([2.0**16, 1.0, 1000.0, 0.1, 3e37, 2.0**-120]))),
        "growth_factor": float(rng.choice([2.0, 1.5, 10.0, 1.0001])),
        "backoff_factor": float(rng.choice([0.5, 0.3, 0.9, 0.001])),
        "growth_interval": int(rng.choice([1, 2, 3, 5])),
    }


@pytest.mark.parametrize("seed", range(12))
def test_every_call_of_a_random_training_does_what_grad_scaler_does(seed):
    rng = np.random.default_rng(seed)
    count = 2 + seed % 2
    chosen = random_settings(rng)
    ours, theirs = Side(DynamicLossScaler(**chosen), count), Side(GradScaler("cpu", **chosen), count)
    scales = []
    for _ in range(60):
        for name, *args in iteration(rng, count):
            results = [call(side, name, *args) for side in (ours, theirs)]
            assert results[0] == results[1], (name, args)
            assert not isinstance(results[0], type), f"{name} is legal here, and raises {results[0]}"
            if name != "backward":
                assert_same(ours, theirs)
        scales.append(ours.scaler.get_scale())
    assert (np.diff(scales) > 0).any()  # the schedule did make it grow,
    assert (np.diff(scales) < 0).any()  # and back off


@pytest.mark.parametrize("seed", range(4))
def test_a_static_scaler_decides_like_a_grad_scaler_whose_factors_are_1(seed):
    rng = np.random.default_rng(100 + seed)
    scale = random_settings(rng)["init_scale"]
    theirs = GradScaler("cpu", init_scale=scale, growth_interval=2000)
    theirs.set_growth_factor(1.0)
    theirs.set_backoff_factor(1.0)
    sides = ours, theirs = Side(StaticLossScaler(scale), 2), Side(theirs, 2)
    skipped = 0
    for _ in range(40):
        for name, *args in iteration(rng, 2):
            if not name.startswith(("set_", "load_")):
                results = [call(side, name, *(args if name != "update" else ())) for side in sides]
                assert results[0] == results[1], (name, args)
                assert not isinstance(results[0], type), f"{name} is legal here, and raises {results[0]}"
                seen = [side.seen() for side in sides]
                for each in seen:
                    each["state"]["_growth_tracker"] = None  # theirs counts, to no effect
                assert seen[0] == seen[1]
        skipped += ours.scaler.skipped
        assert ours.scaler.get_scale() == scale
    assert skipped > 0


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scale", [2.0**16, 1.0, 1000.0, 0.1, 2.0**-127, 2.0**127, 3.0, 2.0**-140, 0.0], ids=str)
def test_unscaled_gradients_have_the_bits_that_torch_gives_them(dtype, scale):
    if dtype is torch.bfloat16:
        codes = torch.arange(2**16).to(torch.uint16).view(dtype)
    else:
        random = np.random.default_rng(0).bytes(2**16 * dtype.itemsize)
        codes = torch.frombuffer(bytearray(random), dtype=dtype)
    codes = codes[~codes.isnan()]  # of a NaN only being one is compared below
    shapes = [codes, codes[:7], codes[5], codes[:0], codes[: len(codes) // 6 * 6].view(-1, 6).t()[::2]]
    kept = []
    for scaler in (DynamicLossScaler(), GradScaler("cpu")):
        weights = [torch.nn.Parameter(torch.zeros_like(grad)) for grad in shapes]
        for weight, grad in zip(weights, shapes, strict=True):
            weight.grad = grad.clone()
        scaler.load_state_dict(state(scale))
        scaler.scale(torch.ones(()))
        scaler.unscale_(torch.optim.SGD(weights, lr=1.0))
        kept.append([weight.grad for weight in weights])
    for ours, theirs in zip(*kept, strict=True):
        assert torch.equal(ours.isnan(), theirs.isnan())
        assert bits(ours.nan_to_num(nan=1.0, posinf=math.inf, neginf=-math.inf)) == bits(
            theirs.nan_to_num(nan=1.0, posinf=math.inf, neginf=-math.inf)
        )


def test_the_inverse_of_the_scale_is_rounded_to_float32_and_multiplied():
    scaler = StaticLossScaler(41.0)
    weight, optimizer, backward = one_weight(scaler)
    backward(5 / 41)  # times 41 is 5 again
    assert weight.grad.item() == 5.0
    scaler.unscale_(optimizer)
    product, quotient = np.float32(5) * np.float32(1 / 41), np.float32(5) / np.float32(41)
    assert weight.grad.item() == product != quotient


@pytest.mark.parametrize("make", [lambda: DynamicLossScaler(growth_interval=1), lambda: StaticLossScaler(8.0)])
def test_one_optimizer_is_skipped_and_the_other_steps(make):
    side = Side(make(), 2)
    before = side.scaler.get_scale()
    for n, value in enumerate([math.nan, 1.0]):
        side.backward(n, [1.0, 1.0, value, 1.0])
        side.scaler.step(side.optimizers[n])
    side.scaler.update()
    assert [torch.equal(ws[0], torch.arange(1.0, 5)) for ws in side.weights] == [True, False]
    assert side.scaler.get_scale() == (before / 2 if isinstance(side.scaler, DynamicLossScaler) else 8.0)
    assert side.scaler.skipped == 1


def test_skipped_is_about_the_last_iteration_alone():
    scaler = DynamicLossScaler(init_scale=4.0)
    _, optimizer, backward = one_weight(scaler)
    seen = []
    for gradient in (1.0, math.inf, math.nan, 1.0):
        backward(gradient)
        scaler.step(optimizer)
        before = scaler.skipped
        scaler.update()
        seen.append((before, scaler.skipped))
    assert seen == [(0, 0), (0, 1), (1, 1), (1, 0)]


@pytest.mark.parametrize("gradients", [(1.0, 1.0), (math.inf, 1.0), (math.nan, -math.inf)], ids=str)
def test_skipped_counts_the_optimizers(gradients):
    side = Side(DynamicLossScaler(), 2)
    for n, gradient in enumerate(gradients):
        side.backward(n, [gradient, 1.0, 1.0, 1.0])
        side.scaler.step(side.optimizers[n])
    side.scaler.update()
    assert side.scaler.skipped == 2 - np.isfinite(gradients).sum()


def test_clipping_before_the_step_needs_unscaled_gradients():
    norms = []
    for unscale in (True, False):
        scaler = DynamicLossScaler()
        weight, optimizer, backward = one_weight(scaler)
        backward(3.0)
        if unscale:
            scaler.unscale_(optimizer)
        norms.append(torch.nn.utils.clip_grad_norm_([weight], 1.0).item())
        scaler.step(optimizer)
        norms.append(1.0 - weight.item())
    assert norms[:2] == [3.0, pytest.approx(1.0)]
    assert norms[2] == 3.0 * 2**16
    assert 1.0 - 2.0**-16 * (1 - 1e-3) >= 1.0 - norms[3] >= 1.0 - 2.0**-16 * (1 + 1e-3)  # 65536 times too small


def test_step_returns_what_the_optimizer_returns_and_none_where_it_is_skipped():
    for scaler in (DynamicLossScaler(), GradScaler("cpu")):
        _, optimizer, backward = one_weight(scaler)
        optimizer.step = lambda *args, **kwargs: (args, kwargs)
        backward(1.0)
        assert scaler.step(optimizer, 1, two=2) == ((1,), {"two": 2})
        scaler.update()
        backward(math.inf)
        assert scaler.step(optimizer, 1, two=2) is None


# the ends of the scale


@pytest.mark.parametrize("make", [DynamicLossScaler, lambda **settings: GradScaler("cpu", **settings)])
def test_growth_to_infinity_is_refused_and_the_count_starts_anew(make):
    scaler = make(init_scale=2.0**126, growth_interval=2)
    scales, _ = run(scaler, [0.0] * 7)
    assert [math.log2(scale) for scale in scales] == [126, 127, 127, 127, 127, 127, 127]
    assert scaler.state_dict()["_growth_tracker"] == 1


@pytest.mark.parametrize("make", [DynamicLossScaler, lambda: GradScaler("cpu")])
def test_166_skips_in_a_row_take_the_scale_to_0_and_the_next_step_makes_the_weight_nan(make):
    scaler = make()
    scales, weight = run(scaler, [math.inf] * 166)
    assert (scales[-2:], weight) == ([2.0**-149, 0.0], 1.0)
    weight, optimizer, backward = one_weight(scaler)
    backward(3.0)
    assert weight.grad.item() == 0.0
    scaler.step(optimizer)
    scaler.update()
    assert math.isnan(weight.item())  # 0 * (1/0), after the check
    assert scaler.get_scale() == 0.0


@pytest.mark.parametrize(("exponent", "weight"), [(-126, -2.0), (-127, -2.0), (-128, -math.inf), (-149, -math.inf)])
@pytest.mark.parametrize("make", [DynamicLossScaler, lambda: GradScaler("cpu")])
def test_from_2_to_the_minus_128_down_the_inverse_overflows_and_nothing_is_skipped(make, exponent, weight):
    scaler = make()
    scaler.load_state_dict(state(2.0**exponent))
    assert run(scaler, [3.0])[1] == weight
    assert scaler.get_scale() == 2.0**exponent


@pytest.mark.parametrize("make", [DynamicLossScaler, lambda **settings: GradScaler("cpu", **settings)])
def test_an_interval_set_below_the_count_stops_growth_until_an_overflow(make):
    scaler = make(init_scale=16.0, growth_interval=10)
    run(scaler, [1.0] * 7)
    scaler.set_growth_interval(5)
    scales, _ = run(scaler, [1.0] * 20)
    assert set(scales) == {16.0}
    scales, _ = run(scaler, [math.inf, *[1.0] * 5])
    assert (scales[0], scales[-1]) == (8.0, 16.0)


def test_the_settings_can_be_read_and_set():
    for scaler in (DynamicLossScaler(4.0, 3.0, 0.25, 7), GradScaler("cpu", 4.0, 3.0, 0.25, 7)):
        assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (3, 0.25, 7)
        scaler.set_growth_factor(5.0)
        scaler.set_backoff_factor(0.125)
        scaler.set_growth_interval(9)
        assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (5, 0.125, 9)
        assert scaler.is_enabled()
    static = StaticLossScaler(4.0)
    assert (static.get_growth_factor(), static.get_backoff_factor(), static.is_enabled()) == (1.0, 1.0, True)


def test_under_bfloat16_autocast_the_scale_only_grows_to_2_24_in_400_steps():
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(16, 8), torch.randn(16, 4)
    scaler = DynamicLossScaler(growth_interval=50)
    scales, skipped = [scaler.get_scale()], 0
    for _ in range(400):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = torch.nn.functional.mse_loss(model(x).float(), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        skipped += scaler.skipped
    assert (scales[-1], skipped, min(np.diff(scales))) == (2.0**24, 0, 0.0)


# what goes in


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_a_scaled_tensor_has_the_dtype_and_value_that_torch_gives_it(dtype, shape):
    x = torch.full(shape, 1.1, dtype=dtype)
    ours, theirs = DynamicLossScaler(1000.0).scale(x), GradScaler("cpu", 1000.0).scale(x)
    assert ours.dtype == theirs.dtype
    assert torch.equal(ours, theirs)
    if dtype is torch.float16:
        assert ours.dtype is (torch.float16 if shape else torch.float32)


def test_lists_tuples_and_other_iterables_are_scaled_as_torch_does_nested_or_not():
    one = torch.ones(2)
    for scaler in (DynamicLossScaler(8.0), GradScaler("cpu", 8.0)):
        nested = scaler.scale([one, (one, [2 * one])])
        assert isinstance(nested, list)
        assert isinstance(nested[1], tuple)
        assert nested[1][1][0].tolist() == [16.0, 16.0]
        lazy = scaler.scale(n * one for n in (1, 2))
        assert not isinstance(lazy, list | tuple)
        assert [x.tolist() for x in lazy] == [[8.0, 8.0], [16.0, 16.0]]


def test_an_iterable_that_nobody_has_read_has_scaled_nothing():
    for scaler in (DynamicLossScaler(), GradScaler("cpu")):
        _, optimizer, _ = one_weight(scaler)
        scaler.scale(x for x in [torch.ones(2)])
        assert outcome(scaler.step, optimizer) is AssertionError


@pytest.mark.parametrize("last", [1.0, math.inf, math.nan])
def test_sparse_gradients_are_unscaled_and_checked_as_torch_does(last):
    kept = []
    for scaler in (DynamicLossScaler(1000.0), GradScaler("cpu", 1000.0)):
        table = torch.nn.Embedding(5, 2, sparse=True)
        torch.nn.init.ones_(table.weight)
        optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
        factors = torch.tensor([[0.3], [0.7], [last]])
        scaler.scale((table(torch.tensor([1, 3, 3])) * factors).sum()).backward()
        assert not table.weight.grad.is_coalesced()
        scaler.step(optimizer)
        scaler.update()
        grad = table.weight.grad.to_dense().nan_to_num(7.0)
        kept.append((bits(grad), bits(table.weight), scaler.get_scale()))
    assert kept[0] == kept[1]
    assert kept[0][2] == (1000.0 if last == 1.0 else 500.0)


def test_sparse_values_that_overflow_only_when_added_pass_as_in_torch():
    for scaler in (DynamicLossScaler(1.0), GradScaler("cpu", 1.0)):
        weight = torch.nn.Parameter(torch.zeros(2))
        optimizer = torch.optim.SGD([weight], lr=1.0)
        weight.grad = torch.sparse_coo_tensor([[0, 0]], [3e38, 3e38], (2,), check_invariants=True)
        assert not weight.grad.is_coalesced()
        scaler.scale(torch.ones(()))
        scaler.step(optimizer)
        assert weight.tolist() == [-math.inf, 0.0]


@pytest.mark.parametrize("optimizer_class", [torch.optim.SGD, torch.optim.AdamW])
def test_a_fused_optimizer_ends_with_the_same_weights_for_a_power_of_two(optimizer_class):
    kept = []
    for scaler in (DynamicLossScaler(2.0**10, growth_interval=2), GradScaler("cpu", 2.0**10, growth_interval=2)):
        weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
        optimizer = optimizer_class([weight], lr=0.1, fused=True)
        for gradient in (0.3, math.inf, 0.7, 1e-9):
            optimizer.zero_grad()
            scaler.scale((weight * gradient).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
        kept.append((bits(weight), scaler.get_scale()))
    assert kept[0] == kept[1]


def test_where_a_fused_optimizer_takes_float16_gradients_in_torch_ours_refuse_them():
    outcomes = []
    for scaler in (DynamicLossScaler(), GradScaler("cpu")):
        weight = torch.nn.Parameter(torch.ones(2).half())
        optimizer = torch.optim.SGD([weight], lr=0.1, fused=True)
        scaler.scale((weight.float() * 0.1).sum()).backward()
        outcomes.append((outcome(scaler.step, optimizer), weight[0].item() == 1.0))
    assert outcomes == [(ValueError, True), (None, False)]


@pytest.mark.gpu
def test_on_cuda_the_decisions_are_those_of_grad_scaler_too():
    kept = []
    for scaler in (DynamicLossScaler(growth_interval=2), GradScaler("cuda", growth_interval=2)):
        weights = [torch.nn.Parameter(torch.ones(3, device=device)) for device in ("cuda", "cpu")]
        optimizer = torch.optim.SGD(weights, lr=0.1)
        for gradient in (0.3, math.inf, 0.7, 1e-9, 3e38, 1.0):
            optimizer.zero_grad()
            scaler.scale(sum((w * gradient).sum().to("cuda") for w in weights)).backward()
            scaler.step(optimizer)
            scaler.update()
        kept.append(([bits(w.cpu()) for w in weights], scaler.get_scale()))
    assert kept[0] == kept[1]


# misuse

CALLS = {
    "unscale_ twice": ["scale", "unscale_", "unscale_"],
    "unscale_ after step": ["scale", "step", "unscale_"],
    "step twice": ["scale", "step", "step"],
    "update without a step": ["scale", "update"],
    "update twice": ["scale", "step", "update", "update"],
    "unscale_ before any scale": ["unscale_"],
    "step before any scale": ["step"],
    "update before any scale": ["update"],
    "a new scale before any scale": ["new scale"],
    "step without gradients": ["zero_grad", "step"],
    "update after a step without gradients": ["zero_grad", "step", "update"],
    "unscale_ again after a step without gradients": ["zero_grad", "step", "scale", "unscale_"],
    "a closure": ["scale", "closure"],
    "a closure before any scale": ["closure"],
    "no closure by name": ["scale", "no closure"],
    "scale a number": ["scale a number"],
    "a new scale of two elements": ["scale", "two scales"],
    "a new scale with a gradient": ["scale", "scale with a gradient"],
    "the state of a disabled scaler": ["empty state"],
    "a state without the tracker": ["half a state"],
}


def misuse(side, name):
    scaler = side.scaler
    calls = {
        "scale": lambda: side.backward(0, [1.0, 1.0, 1.0, 1.0]),
        "clip": lambda: side.clip(0),
        "unscale_": lambda: scaler.unscale_(side.optimizers[0]),
        "step": lambda: scaler.step(side.optimizers[0]),
        "other scale": lambda: side.backward(1, [1.0, -2.0, 1.0, 1.0]),
        "other step": lambda: scaler.step(side.optimizers[1]),
        "zero_grad": lambda: (scaler.scale(torch.ones(())), side.optimizers[0].zero_grad())[1],
        "update": scaler.update,
        "new scale": lambda: scaler.update(2.0),
        "closure": lambda: scaler.step(side.optimizers[0], closure=lambda: 1.0),
        "no closure": lambda: scaler.step(side.optimizers[0], closure=None),
        "scale a number": lambda: scaler.scale(3.0),
        "two scales": lambda: scaler.update(torch.ones(2)),
        "scale with a gradient": lambda: scaler.update(torch.ones((), requires_grad=True)),
        "scale in a tensor": lambda: scaler.update(torch.tensor(0.7, dtype=torch.float64)),
        "empty state": lambda: scaler.load_state_dict({}),
        "half a state": lambda: scaler.load_state_dict({"scale": 8.0}),
        "state": lambda: scaler.load_state_dict(state(2.0**10, tracker=1)),
        "infinite": lambda: side.backward(0, [1.0, math.inf, 1.0, 1.0]),
    }
    return outcome(calls[name])


@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("enabled", [True, False], ids=["enabled", "disabled"])
def test_misuse_raises_what_torch_raises(calls, enabled):
    sides = Side(DynamicLossScaler(enabled=enabled)), Side(GradScaler("cpu", enabled=enabled))
    for name in calls:
        results = [misuse(side, name) for side in sides]
        assert results[0] == results[1], name
        assert_same(*sides)
    if enabled:
        assert isinstance(results[0], type)


ANY_ORDER = ["scale", "infinite", "unscale_", "step", "update"] * 3 + [
    "clip",
    "zero_grad",
    "other scale",
    "other step",
    "new scale",
    "scale in a tensor",
    "two scales",
    "state",
    "closure",
]


@given(st.lists(st.sampled_from(ANY_ORDER), max_size=25))
def test_calls_in_any_order_have_the_outcome_that_they_have_in_torch(calls):
    sides = [
        Side(scaler, 2, make=[lambda weights: torch.optim.SGD(weights, lr=0.1)])
        for scaler in (DynamicLossScaler(growth_interval=2), GradScaler("cpu", growth_interval=2))
    ]
    for name in calls:
        results = [misuse(side, name) for side in sides]
        assert results[0] == results[1], name
    assert_same(*sides)


def test_float16_gradients_are_refused_before_any_gradient_is_changed():
    for scaler in (DynamicLossScaler(), GradScaler("cpu")):
        weights = [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2).half())]
        optimizer = torch.optim.SGD(weights, lr=0.1)
        for weight in weights:
            weight.grad = torch.full_like(weight, 8.0)
        scaler.scale(torch.ones(()))
        for method in (scaler.unscale_, scaler.step, scaler.unscale_):
            with pytest.raises(ValueError, match=r"^Attempting to unscale FP16 gradients\."):
                method(optimizer)
        assert [weight.grad.tolist() for weight in weights] == [[8.0, 8.0]] * 2
        with pytest.raises(AssertionError):
            scaler.update()


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"growth_factor": 1.0}, "growth factor 1.0"), ({"backoff_factor": 1.0}, "backoff factor 1.0")],
    ids=str,
)
def test_a_factor_on_the_wrong_side_of_1_is_refused_unless_the_scaler_is_disabled(settings, message):
    with pytest.raises(AssertionError):
        GradScaler("cpu", **settings)
    with pytest.raises(AssertionError, match=message):
        DynamicLossScaler(**settings)
    assert not DynamicLossScaler(**settings, enabled=False).is_enabled()
    nearest = DynamicLossScaler(growth_factor=math.nextafter(1, 2), backoff_factor=math.nextafter(1, 0))
    assert nearest.get_growth_factor() > 1 > nearest.get_backoff_factor()


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan, 2.0**128, 2.0**-128, 1e-50], ids=str)
@pytest.mark.parametrize("make", [StaticLossScaler, DynamicLossScaler])
def test_a_scale_without_an_inverse_is_refused_and_named(make, scale):
    with pytest.raises(ValueError, match="must be a positive number between 2\\*\\*-128 and 2\\*\\*128"):
        make(scale)
    scaler = make(4.0)
    scaler.scale(torch.ones(()))
    with pytest.raises(ValueError, match="scale "):
        scaler.update(scale)
    assert scaler.get_scale() == 4.0


@pytest.mark.parametrize("scale", [2.0**-128 + 2.0**-149, (2 - 2.0**-23) * 2.0**127, 1, 0.1], ids=str)
@pytest.mark.parametrize("make", [StaticLossScaler, DynamicLossScaler])
def test_every_scale_with_an_inverse_is_taken_and_rounded_to_float32(make, scale):
    assert make(scale).get_scale() == np.float32(scale)
    scaler = make(4.0)
    scaler.scale(torch.ones(()))
    for new in (scale, torch.tensor([float(scale)])):
        scaler.update(new)
        assert scaler.get_scale() == np.float32(scale)


@pytest.mark.parametrize("make", [StaticLossScaler, DynamicLossScaler])
def test_errors_say_what_to_do(make):
    scaler = make(4.0)
    _, optimizer, backward = one_weight(scaler)
    for method, args in [(scaler.unscale_, [optimizer]), (scaler.step, [optimizer]), (scaler.update, [])]:
        with pytest.raises(AssertionError, match=rf"{method.__name__}\(\) before any scale\(\): call scaler.scale"):
            method(*args)
    scaler.scale(torch.ones(()))
    with pytest.raises(AssertionError, match="call step"):
        scaler.update()
    with pytest.raises(AssertionError, match=r"found no gradient: call backward\(\)"):
        scaler.step(optimizer)
    scaler.update(4.0)
    backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"divided these gradients already; call it once"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) after step\(\): call it before"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"already been called for this optimizer; call update\(\)"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="closure"):
        scaler.step(optimizer, closure=None)
    with pytest.raises(ValueError, match="cannot scale a float; give a tensor"):
        scaler.scale(3.0)
    with pytest.raises(RuntimeError, match="disabled"):
        scaler.load_state_dict({})


# disabled, saved and restored


def test_a_disabled_scaler_passes_everything_through():
    for scaler in (DynamicLossScaler(enabled=False), GradScaler("cpu", enabled=False)):
        loss = torch.ones(())
        assert scaler.scale(loss) is loss
        assert scaler.scale(3.0) == 3.0
        weight, optimizer, backward = one_weight(scaler)
        backward(2.0)
        scaler.unscale_(optimizer)
        scaler.unscale_(optimizer)
        assert weight.grad.item() == 2.0
        assert scaler.step(optimizer, closure=lambda: 5.0) == 5.0
        assert weight.item() == -1.0
        scaler.update()
        scaler.update(8.0)
        scaler.load_state_dict(state(8.0))
        assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)
        backward(math.inf)
        scaler.step(optimizer)
        assert weight.item() == -math.inf


@pytest.mark.parametrize("seed", range(3))
def test_a_state_can_be_handed_from_either_scaler_to_the_other_at_any_step(seed):
    rng = np.random.default_rng(seed)
    chosen = random_settings(rng)
    ours, theirs = Side(DynamicLossScaler(**chosen), 2), Side(GradScaler("cpu", **chosen), 2)
    trackers = set()
    for _ in range(20):
        for name, *args in iteration(rng, 2):
            assert call(ours, name, *args) == call(theirs, name, *args), name
        saved = ours.scaler.state_dict(), theirs.scaler.state_dict()
        trackers.add(saved[0]["_growth_tracker"])
        ours.scaler, theirs.scaler = DynamicLossScaler(7.0), GradScaler("cpu", 7.0)
        ours.scaler.load_state_dict(saved[1])
        theirs.scaler.load_state_dict(saved[0])
        assert_same(ours, theirs)
    assert len(trackers) > 1


def test_the_state_of_a_static_scaler_makes_a_grad_scaler_constant():
    theirs = GradScaler("cpu")
    theirs.load_state_dict(StaticLossScaler(128.0).state_dict())
    theirs.set_growth_interval(1)
    assert set(run(theirs, [1.0, math.inf, 1.0])[0]) == {128.0}


def test_a_static_scaler_takes_the_scale_of_any_state_and_stays_there():
    scaler = StaticLossScaler(4.0)
    scaler.load_state_dict(state(32.0, tracker=2, interval=1))
    assert scaler.state_dict() == StaticLossScaler(32.0).state_dict()
    assert set(run(scaler, [1.0, math.inf, 1.0])[0]) == {32.0}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda scaler: pickle.loads(pickle.dumps(scaler))])
def test_a_scaler_can_be_copied_between_two_iterations(copied):
    scaler = DynamicLossScaler(growth_interval=3)
    run(scaler, [1.0, 1.0])
    other = copied(scaler)
    assert run(other, [1.0])[0] == [2.0**17]
    assert scaler.get_scale() == 2.0**16
