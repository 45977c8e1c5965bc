"""Each store against torch's AdamW in float32, and against its own arithmetic on paper."""

import copy
import math

import pytest
import torch
from torch import nn

from utils.training import optimizers
from utils.training.optimizers import AdamW, Kahan, Master, Nearest, Stochastic

STORES = [Nearest(), Master(), Stochastic(7), Kahan()]
each_store = pytest.mark.parametrize("store", STORES, ids=lambda store: type(store).__name__)
narrow = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])


def weights_of(seed: int, *, dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(33, 7), (5,), (), (130,)]
    return [nn.Parameter((0.05 * torch.randn(shape, generator=generator)).to(dtype)) for shape in shapes]


def groups(weights: list[nn.Parameter]) -> list[dict]:
    """Two groups with settings of their own, as for weights with decay and weights without."""
    return [
        {"params": weights[:2], "lr": 3e-3, "betas": (0.8, 0.95), "weight_decay": 0.1},
        {"params": weights[2:], "lr": 1e-2, "eps": 1e-5, "weight_decay": 0.0},
    ]


def train(optimizer: torch.optim.Optimizer, weights: list, *, steps: int, seed: int, dtype: torch.dtype) -> None:
    """Take steps with random gradients, drawn in `dtype`, of magnitudes from 2**-20 to 2**3; some weights have none."""
    generator = torch.Generator().manual_seed(seed)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step) ** 0.5)
    for step in range(steps):
        for place, weight in enumerate(weights):
            magnitude = 2.0 ** torch.randint(-20, 4, weight.shape, generator=generator)
            gradient = (torch.randn(weight.shape, generator=generator) * magnitude).to(dtype)
            weight.grad = None if (step + place) % 5 == 4 else gradient.to(weight.dtype)
        optimizer.step()
        schedule.step()


def tensors(optimizer: torch.optim.Optimizer, weights: list) -> list[torch.Tensor]:
    states = [optimizer.state[weight] for weight in weights]
    return [*weights, *(state[name] for state in states for name in state if name != "step")]


# Against torch


@each_store
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_every_store_gives_wide_weights_and_moments_equal_to_those_of_torch(store, dtype, seed):
    expected, found = (weights_of(seed, dtype=dtype) for _ in range(2))
    theirs = torch.optim.AdamW(groups(expected), foreach=False)
    ours = AdamW(groups(found), store=store)
    for optimizer, weights in ((theirs, expected), (ours, found)):
        train(optimizer, weights, steps=30, seed=seed, dtype=dtype)
    for a, b in zip(expected, found, strict=True):
        assert torch.equal(a, b), (a - b).abs().max()
        for name in ("exp_avg", "exp_avg_sq"):
            assert torch.equal(theirs.state[a][name], ours.state[b][name])


@pytest.mark.parametrize(
    "options",
    [{}, {"lr": 0.0}, {"eps": 0.0}, {"weight_decay": 0.0}, {"betas": (0.0, 0.9)}, {"betas": (0.9, 0.0)}],
    ids=str,
)
def test_the_defaults_and_the_ends_of_the_ranges_are_those_of_torch(options):
    expected, found = weights_of(4), weights_of(4)
    train(torch.optim.AdamW(expected, foreach=False, **options), expected, steps=5, seed=1, dtype=torch.float32)
    train(AdamW(found, **options), found, steps=5, seed=1, dtype=torch.float32)
    assert all(map(torch.equal, expected, found))


@narrow
def test_a_master_copy_is_what_torch_makes_of_float32_weights_with_the_same_gradients(dtype):
    begin = weights_of(1, dtype=dtype)
    wide = [nn.Parameter(weight.detach().float()) for weight in begin]
    train(torch.optim.AdamW(groups(wide), foreach=False), wide, steps=40, seed=3, dtype=dtype)
    optimizer = AdamW(groups(begin), store=Master())
    train(optimizer, begin, steps=40, seed=3, dtype=dtype)
    for weight, expected in zip(begin, wide, strict=True):
        assert torch.equal(optimizer.state[weight]["master"], expected)
        assert torch.equal(weight, expected.to(dtype))


def test_the_weights_learn_under_a_closure_and_its_loss_is_returned():
    weight = nn.Parameter(torch.tensor([2.0]))
    optimizer = AdamW([weight], lr=0.1, weight_decay=0.0)

    def closure():
        optimizer.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(20)]
    assert losses[0] == 4.0
    assert losses[-1] < 0.1


@each_store
@narrow
def test_states_have_the_dtypes_that_were_asked_for(store, dtype):
    for asked in (None, torch.float32, torch.bfloat16):
        weights = weights_of(0, dtype=dtype)
        optimizer = AdamW(weights, store=store, state_dtype=asked)
        train(optimizer, weights, steps=2, seed=0, dtype=dtype)
        state = optimizer.state[weights[0]]
        usual = torch.float32 if isinstance(store, Master) else dtype
        assert {state["exp_avg"].dtype, state["exp_avg_sq"].dtype} == {asked or usual}
        extra = {"Master": {"master": torch.float32}, "Kahan": {"compensation": dtype}}.get(type(store).__name__, {})
        assert {name: state[name].dtype for name in state.keys() - {"step", "exp_avg", "exp_avg_sq"}} == extra


# One by one: 1 + 1000 * 0.001


def climb(store: Nearest, *, dtype: torch.dtype, by: float, count: int = 1, steps: int = 1000) -> torch.Tensor:
    """Add `by` again and again to ones: a constant gradient of -1 moves AdamW by its learning rate each time."""
    weight = nn.Parameter(torch.ones(count, dtype=dtype))
    optimizer = AdamW([weight], lr=by, weight_decay=0.0, eps=0.0, store=store, state_dtype=torch.float32)
    weight.grad = torch.full_like(weight, -1)
    for _ in range(steps):
        optimizer.step()
    return weight.detach().double()


def test_a_thousand_thousandths_are_lost_to_nearest_and_kept_by_kahan_and_by_the_master():
    assert climb(Nearest(), dtype=torch.bfloat16, by=1e-3).item() == 1.0
    assert climb(Kahan(), dtype=torch.bfloat16, by=1e-3).item() == 2.0
    assert climb(Master(), dtype=torch.bfloat16, by=1e-3).item() == 2.0
    assert climb(Nearest(), dtype=torch.float16, by=1e-4).item() == 1.0
    assert climb(Kahan(), dtype=torch.float16, by=1e-4).item() == pytest.approx(1.1, abs=2**-11)


def test_stochastic_rounding_climbs_to_two_on_average_with_the_known_spread():
    ends = climb(Stochastic(3), dtype=torch.bfloat16, by=1e-3, count=4096)
    assert ends.std().item() == pytest.approx(0.086, abs=5 * 0.086 / math.sqrt(2 * 4096))  # facts, 3.7
    assert ends.mean().item() == pytest.approx(2.0, abs=5 * 0.086 / math.sqrt(4096))


@narrow
def test_stochastic_rounding_takes_one_of_the_two_neighbours_and_is_unbiased(dtype):
    generator = torch.Generator().manual_seed(5)
    new = 0.05 * torch.randn(64, generator=generator)
    weight, draws = torch.empty(64, dtype=dtype), 2000
    total = torch.zeros(64, dtype=torch.float64)
    nearest = new.to(dtype)
    other = torch.where(nearest.float() > new, _step_down(nearest), _step_up(nearest))
    low, high = torch.minimum(nearest, other).double(), torch.maximum(nearest, other).double()
    for number in range(draws):
        Stochastic(0).keep(new.clone(), weight, {}, number=number)
        total += weight.double()
        assert ((weight == nearest) | (weight == other)).all()
    p = (new.double() - low) / (high - low)
    bound = 5 * (high - low) * torch.sqrt(p * (1 - p) / draws)
    assert ((total / draws - new.double()).abs() <= bound).all()


@pytest.mark.parametrize("seed", [0, 2**16 - 1])
def test_the_first_and_the_last_seed_take_a_step(seed):
    ends = climb(Stochastic(seed), dtype=torch.bfloat16, by=2**-8, count=1000, steps=1)
    assert set(ends.tolist()) == {1.0, 1 + 2**-7}


def _step_up(x: torch.Tensor) -> torch.Tensor:
    return torch.nextafter(x, torch.full_like(x, torch.inf))


def _step_down(x: torch.Tensor) -> torch.Tensor:
    return torch.nextafter(x, torch.full_like(x, -torch.inf))


def test_stochastic_rounding_repeats_itself_on_any_number_of_threads_and_differs_by_seed_step_and_tensor():
    def ends(seed: int) -> list[torch.Tensor]:
        return list(climb(Stochastic(seed), dtype=torch.bfloat16, by=1e-3, count=300_000, steps=3).chunk(2))

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = ends(1)
        torch.set_num_threads(3)
        together = ends(1)
    finally:
        torch.set_num_threads(threads)
    assert all(map(torch.equal, alone, together))
    assert not torch.equal(alone[0], ends(2)[0])
    twins = [nn.Parameter(torch.ones(1000, dtype=torch.bfloat16)) for _ in range(2)]
    optimizer = AdamW(twins, lr=1e-3, store=Stochastic(1))
    moved = []
    for _ in range(2):
        before = [twin.detach().clone() for twin in twins]
        for twin in twins:
            twin.grad = torch.full_like(twin, -1)
        optimizer.step()
        moved += [twin.detach() != old for twin, old in zip(twins, before, strict=True)]
    assert not any(torch.equal(moved[a], moved[b]) for a in range(4) for b in range(a))


def test_the_pair_of_kahan_moves_by_a_two_to_the_minus_sixteenth_and_can_lose_half_of_it():
    """The bound of the docstring, where the compensation is at its largest and so has its widest gaps."""
    for step, lost in ((2**-16, 0.0), (2**-18, 1.0)):
        weight = torch.arange(1, 2, 2**-7).bfloat16()
        state = {"compensation": torch.full_like(weight, -(2**-8) * (1 - 2**-8))}  # almost half a gap
        before = [tensor.clone() for tensor in Kahan().kept(weight, state)]
        Kahan().keep(Kahan().value(weight, state) - step, weight, state, number=0)
        same = torch.stack([old == new for old, new in zip(before, Kahan().kept(weight, state), strict=True)]).all(0)
        assert same.double().mean().item() == lost, step


# What goes wrong in torch's loop, and what does not here


def first_step(optimizer_class, *, dtype: torch.dtype, gradient: float, **options) -> tuple[float, float]:
    weight = nn.Parameter(torch.ones(1, dtype=dtype))
    optimizer = optimizer_class([weight], **options)
    weight.grad = torch.full_like(weight, gradient)
    optimizer.step()
    return weight.item(), optimizer.state[weight]["exp_avg_sq"].item()


@pytest.mark.parametrize("foreach", [False, True])
def test_in_float16_the_eps_of_torch_is_zero_and_a_small_gradient_destroys_the_weight(foreach):
    options = {"dtype": torch.float16, "foreach": foreach}
    assert torch.tensor(1e-8, dtype=torch.float16) == 0
    assert math.isnan(first_step(torch.optim.AdamW, gradient=0.0, **options)[0])
    assert first_step(torch.optim.AdamW, gradient=5.4e-3, **options) == (-math.inf, 0.0)
    weight, v = first_step(torch.optim.AdamW, gradient=5.5e-3, **options)
    assert 0.999 < weight < 1
    assert v == 2**-24


@each_store
def test_in_float16_a_small_gradient_moves_our_weight_by_the_learning_rate(store):
    assert first_step(AdamW, dtype=torch.float16, gradient=0.0, store=store, weight_decay=0.0)[0] == 1.0
    weight, v = first_step(AdamW, dtype=torch.float16, gradient=5.4e-3, store=store, weight_decay=0.0)
    assert weight in (1 - 2**-10, 1 - 2**-11)  # 0.999, or rounded up at random
    assert (v == 0) == (not isinstance(store, Master))  # 0.001 g² is below 2**-25
    fused = first_step(torch.optim.AdamW, dtype=torch.float16, gradient=0.0, fused=True)[0]
    assert fused == 1.0  # the fused kernel computes in float32, as we do


@pytest.mark.parametrize("build", [lambda w: torch.optim.AdamW(w, lr=0.0), lambda w: AdamW(w, lr=0.0)])
def test_in_bfloat16_the_second_moment_never_shrinks(build):
    weight = nn.Parameter(torch.ones(1, dtype=torch.bfloat16))
    optimizer, seen = build([weight]), []
    for gradient in (1.0, *[1e-3] * 1000):
        weight.grad = torch.full_like(weight, gradient)
        optimizer.step()
        seen.append(optimizer.state[weight]["exp_avg_sq"].item())
    assert len(set(seen)) == 1  # float32 would be at 0.001 * 0.999**1000, a third of it


def test_a_decay_of_the_usual_size_is_lost_in_bfloat16_and_applied_by_the_others():
    """lr * weight_decay = 1e-6 of the weight, and half a gap is at least 2**-9 = 2e-3 of it."""
    ends = {}
    for store in STORES:
        weight = nn.Parameter(torch.linspace(0.01, 1, 1000).bfloat16())
        begin, options = weight.detach().double(), {"lr": 1e-4, "weight_decay": 1e-2}
        optimizer = AdamW([weight], store=store, **options)
        weight.grad = torch.zeros_like(weight)  # decay alone
        for _ in range(1000):
            optimizer.step()
        state = optimizer.state[weight]
        kept = state["master"].double() if isinstance(store, Master) else weight.detach().double()
        ends[type(store)] = (kept / begin).mean().item()
    theirs = nn.Parameter(begin.bfloat16())
    torch_loop = torch.optim.AdamW([theirs], **options)
    for _ in range(1000):
        theirs.grad = torch.zeros_like(theirs)
        torch_loop.step()
    assert torch.equal(theirs.detach().double(), begin)
    assert ends[Nearest] == 1.0
    exact = (1 - 1e-6) ** 1000
    assert ends[Master] == pytest.approx(exact, rel=1e-4)
    assert ends[Stochastic] == pytest.approx(exact, rel=5 * 2**-8 * math.sqrt(1000 * 1e-6 / 2**-8 / 1000))


def test_kahan_gathers_a_tiny_decay_until_the_gaps_of_its_compensation_swallow_it():
    weight = nn.Parameter(torch.full((1,), 1.5, dtype=torch.bfloat16))
    optimizer = AdamW([weight], lr=1e-4, weight_decay=1e-2, store=Kahan())
    for _ in range(1000):
        weight.grad = torch.zeros_like(weight)
        optimizer.step()
    # Each step is 1.5e-6. From 2**-11 on, half a gap of the compensation is 2**-19 = 1.9e-6.
    assert Kahan().value(weight.detach(), optimizer.state[weight]).item() == 1.5 - 2**-11
    assert 1.5 * (1 - 1e-6) ** 1000 < 1.5 - 2 * 2**-11


# State


@each_store
@narrow
def test_a_saved_state_goes_on_bit_for_bit(store, dtype):
    straight, first = (weights_of(2, dtype=dtype) for _ in range(2))
    one, two = (AdamW(groups(weights), store=store) for weights in (straight, first))
    for optimizer, weights in ((one, straight), (two, first)):
        train(optimizer, weights, steps=7, seed=1, dtype=dtype)
    second = [nn.Parameter(weight.detach().clone()) for weight in first]
    resumed = AdamW(groups(second), store=store)
    resumed.load_state_dict(copy.deepcopy(two.state_dict()))
    for optimizer, weights in ((one, straight), (resumed, second)):
        train(optimizer, weights, steps=7, seed=2, dtype=dtype)
    pairs = zip(tensors(one, straight), tensors(resumed, second), strict=True)
    assert all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)


def test_a_loaded_state_is_a_copy_and_that_of_another_store_is_refused():
    weights = weights_of(0, dtype=torch.bfloat16)
    optimizer = AdamW(weights, store=Master())
    train(optimizer, weights, steps=1, seed=0, dtype=torch.bfloat16)
    again = AdamW(weights, store=Master())
    again.load_state_dict(optimizer.state_dict())
    assert again.state[weights[0]]["master"] is not optimizer.state[weights[0]]["master"]
    with pytest.raises(ValueError, match="saved by another store than Kahan"):
        AdamW(weights, store=Kahan()).load_state_dict(optimizer.state_dict())


def test_a_copied_optimizer_knows_its_store():
    weights = weights_of(0)
    assert copy.deepcopy(AdamW(weights, store=Kahan(), state_dtype=torch.float32)).store == Kahan()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": -1.0}, r"lr -1.0 is negative or NaN; take 0 or more"),
        ({"lr": math.nan}, r"lr nan"),
        ({"eps": -1e-8}, r"eps -1e-08 is negative"),
        ({"weight_decay": -0.1}, r"weight_decay -0.1"),
        ({"betas": (0.9, 1.0)}, r"betas \(0.9, 1.0\) are not both in \[0, 1\)"),
        ({"betas": (1.0, 0.9)}, r"betas \(1.0, 0.9\) are not both"),
        ({"betas": (-0.1, 0.9)}, r"betas \(-0.1, 0.9\) are not both"),
        ({"state_dtype": torch.int8}, r"state_dtype torch.int8 holds no moments"),
    ],
)
def test_a_bad_number_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        AdamW(weights_of(0), **options)


def test_what_is_no_float_is_refused():
    with pytest.raises(ValueError, match=r"a parameter is torch\.int64"):
        AdamW([torch.ones(2, dtype=torch.int64)])
    with pytest.raises(ValueError, match=r"a parameter is torch\.complex64"):
        AdamW([nn.Parameter(torch.ones(2, dtype=torch.complex64))])
    table = nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(ValueError, match=r"a gradient is sparse; .* set sparse=False"):
        AdamW(table.parameters()).step()
    with pytest.raises(TypeError, match=r"take Nearest\(\), Master\(\)"):
        AdamW(weights_of(0), store=Master)
    with pytest.raises(ValueError, match="seed 65536 is not in"):
        Stochastic(2**16)


def test_the_arithmetic_is_float32_or_wider():
    kinds = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
    assert [optimizers.wide(kind) for kind in kinds] == [torch.float32] * 3 + [torch.float64]
