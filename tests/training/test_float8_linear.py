import copy
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from utils.emulation.accumulators import ACCUMULATORS
from utils.emulation.scaled_tensor import quantize
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E5M2
from utils.scaling import DelayedScaling
from utils.training.float8_linear import Float8Linear, convert
from utils.training.float8_recipes import FLOAT8_RECIPES, find_float8_recipe

NAMES = tuple(FLOAT8_RECIPES)
SCALED = tuple(name for name in NAMES if not name.startswith("fp8-unscaled"))
E4M3, E5M2 = FLOAT8_E4M3FN, FLOAT8_E5M2


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def linear(k=256, n=128, *, bias=True):
    torch.manual_seed(0)
    return nn.Linear(k, n, bias)


def passes(layer, x, dy):
    """The result, and the gradients of x, weight and bias, of one forward and backward pass."""
    x = x.clone().requires_grad_()
    layer.zero_grad()
    y = layer(x)
    y.backward(dy.to(y.dtype))
    return y.detach(), x.grad, *(weight.grad.clone() for weight in layer.parameters())


def error(result, exact):
    return float((result - exact).norm() / exact.norm())


@pytest.mark.parametrize("name", SCALED)
def test_the_passes_are_those_of_the_float32_layer_within_the_error_of_the_formats(name):
    recipe, plain = FLOAT8_RECIPES[name], linear()
    x, dy = drawn(4, 40, 256), drawn(4, 40, 128, seed=1) * 1e-4
    layer = Float8Linear.of(plain, name)
    passes(layer, x, dy)  # so that delayed scaling has seen a step
    y, dx, dw, db = passes(layer, x, dy)
    exact_y, exact_dx, exact_dw, exact_db = passes(plain, x, dy)
    forward, backward = (fmt.eps / 2 / 3**0.5 for fmt in (recipe.forward, recipe.backward))
    for result, exact, bound in (
        (y, exact_y, (2 * forward**2) ** 0.5),
        (dx, exact_dx, (forward**2 + backward**2) ** 0.5),
        (dw, exact_dw, (forward**2 + backward**2) ** 0.5),
    ):
        # An error evenly spread over half a gap, for both factors: the root mean square of a rounding at its worst.
        assert bound / 4 < error(result, exact) < bound
    assert torch.allclose(db, exact_db)


@pytest.mark.parametrize("name", NAMES)
def test_the_three_products_are_those_that_the_recipe_tells(name):
    recipe, layer = FLOAT8_RECIPES[name], Float8Linear.of(linear(bias=False), name).eval()
    x, w, dy = drawn(64, 256), layer.weight.detach(), drawn(64, 128, seed=1)
    y, dx, dw = passes(layer, x, dy)
    tensors = {"x": x, "w": w, "dy": dy} | {"xᵀ": x.t(), "wᵀ": w.t(), "dyᵀ": dy.t()}
    scales = {"scale": 1.0} if recipe.history else {}
    for gemm, result in zip(recipe.gemms, (y, dx, dw), strict=True):
        sides = (
            quantize(tensors[side.tensor].contiguous(), side.fmt, side.scaling, **scales)
            for side in (gemm.left, gemm.right)
        )
        left, right = (side.dequantize() for side in sides)
        assert torch.allclose(result, left @ right.t(), rtol=1e-5, atol=1e-5), gemm.name


def test_formats_and_axes_of_the_recipes():
    block = {gemm.name: gemm for gemm in FLOAT8_RECIPES["fp8-block"].gemms}
    assert [(one.left.scaling, one.right.scaling) for one in block.values()] == [
        ("1x128", "128x128"),
        ("1x128", "128x128"),
        ("1x128", "1x128"),
    ]
    assert [side.shape for side in (block["wgrad"].left, block["wgrad"].right)] == ["[N, M]", "[K, M]"]
    hybrid = FLOAT8_RECIPES["fp8-delayed"].gemms
    assert [(one.left.fmt, one.right.fmt) for one in hybrid] == [(E4M3, E4M3), (E5M2, E4M3), (E5M2, E4M3)]
    assert {name for name in NAMES if FLOAT8_RECIPES[name].backward is E5M2} == {
        "fp8-unscaled",
        "fp8-current",
        "fp8-delayed",
    }


def test_gradients_below_e4m3_are_lost_without_a_scale():
    x, dy = drawn(64, 256), drawn(64, 128, seed=1) * 1e-4  # E4M3's smallest value is 2**-9
    lost = passes(Float8Linear.of(linear(), "fp8-unscaled-e4m3"), x, dy)
    kept = passes(Float8Linear.of(linear(), "fp8-unscaled"), x, dy)
    assert not lost[1].any()
    assert not lost[2].any()
    assert error(kept[2], passes(linear(), x, dy)[2]) < 0.2


@pytest.mark.parametrize("name", ["fp8-current", "fp8-row", "fp8-block", "fp8-mx"])
def test_rows_of_any_number_shape_and_stride_give_what_they_give_alone(name):
    layer = Float8Linear.of(linear(), name).eval()
    x = drawn(256, 21).t()  # 21 rows, column-major
    y = layer(x)
    assert y.shape == (21, 128)
    assert torch.allclose(y, layer(x.contiguous()))
    assert torch.allclose(layer(x.contiguous().view(3, 7, 256)).view(21, 128), y)
    if name != "fp8-current":  # there all rows share a scale
        assert torch.allclose(layer(x[5]), y[5], atol=1e-5)
    dy = drawn(128, 21, seed=1).t()
    both = [passes(layer, values, gradient)[2] for values, gradient in ((x, dy), (x.contiguous(), dy.contiguous()))]
    assert torch.allclose(*both)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch_passes_both_ways(name):
    layer = Float8Linear.of(linear(), name)
    y, dx, dw, db = passes(layer, torch.empty(0, 5, 256), torch.empty(0, 5, 128))
    assert y.shape == (0, 5, 128)
    assert dx.shape == (0, 5, 256)
    assert not dw.any()
    assert not db.any()


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_of_zeros_gives_zeros(name):
    layer, zeros = Float8Linear.of(linear(), name), torch.zeros(16, 128)
    _, dx, dw, db = passes(layer, drawn(16, 256), zeros)
    assert not any(gradient.any() for gradient in (dx, dw, db))
    y, *_ = passes(layer, torch.zeros(16, 256), zeros)
    assert torch.equal(y, layer.bias.expand(16, 128))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [torch.inf, -torch.inf, torch.nan])
def test_what_is_not_finite_shows_and_harms_no_other_row(name, bad):
    layer, x, dy = Float8Linear.of(linear(), name), drawn(32, 256), drawn(32, 128, seed=1)
    clean = layer.eval()(x)
    x[3, 7] = bad
    y = layer(x)
    assert y[3].isnan().all()
    assert torch.equal(y[:3], clean[:3])
    assert torch.equal(y[4:], clean[4:])
    dy[5, 2] = bad
    _, dx, dw, _ = passes(layer, drawn(32, 256), dy)
    assert dx[5].isnan().all()
    assert dx[6:].isfinite().all()
    assert dw[2].isnan().all()
    assert dw[3:].isfinite().all()


def test_finite_values_past_the_range_saturate():
    layer = Float8Linear.of(linear(16, 16, bias=False), "fp8-unscaled")
    with torch.no_grad():
        layer.weight.copy_(torch.eye(16))
    assert torch.equal(layer(torch.full((1, 16), 1e6)), torch.full((1, 16), 448.0))


def test_delayed_scaling_moves_as_the_reference_does():
    layer = Float8Linear.of(linear(), "fp8-delayed")
    formats = {"x": E4M3, "w": E4M3, "dy": E5M2}
    reference = {tensor: DelayedScaling(fmt, history=16) for tensor, fmt in formats.items()}
    for step in range(20):
        x, dy = drawn(16, 256, seed=step) * 2.0 ** (step % 7), drawn(16, 128, seed=-step) * 10.0 ** -(step % 5)
        y, *_ = passes(layer, x, dy)
        used = float(reference["x"].scale)
        fake = (
            quantize(x, E4M3, scale=used).dequantize()
            @ quantize(layer.weight, E4M3, scale=reference["w"].scale).dequantize().t()
        )
        assert torch.allclose(y, fake + layer.bias, atol=1e-4)
        for tensor, values in (("x", x), ("w", layer.weight), ("dy", dy)):
            expected = reference[tensor].update(values.detach().abs().amax().numpy())
            assert float(getattr(layer, f"scale_{tensor}")) == float(expected)
    assert torch.equal(layer.amax_history_x, torch.from_numpy(reference["x"].history))


def test_delayed_scaling_stands_still_without_gradients_and_in_evaluation():
    layer, x = Float8Linear.of(linear(), "fp8-delayed"), drawn(16, 256)
    with torch.no_grad():
        layer(x)
    passes(layer.eval(), x, drawn(16, 128))
    assert not any(getattr(layer, f"amax_history_{tensor}").any() for tensor in ("x", "w", "dy"))


def test_the_backward_pass_uses_the_scales_of_its_forward_pass():
    layer, x = Float8Linear.of(linear(bias=False), "fp8-delayed"), drawn(16, 256)
    first = layer(x)  # at scale 1
    layer(1000 * x).sum().backward()  # moves the scales
    layer.zero_grad()
    dy = drawn(16, 128).clamp(-1, 1)  # within the range of the ones before
    first.backward(dy)
    alone = passes(Float8Linear.of(linear(bias=False), "fp8-unscaled"), x, dy)
    assert error(layer.weight.grad, alone[2]) < 0.1  # dy alone is rounded at another scale


@pytest.mark.parametrize("name", NAMES)
def test_state_survives_a_round_trip(name):
    layer = Float8Linear.of(linear(), name)
    for step in range(3):
        passes(layer, drawn(16, 256, seed=step), drawn(16, 128, seed=step))
    again = Float8Linear.of(linear(), name)
    again.load_state_dict(copy.deepcopy(layer.state_dict()))
    assert torch.equal(layer(drawn(16, 256)), again(drawn(16, 256)))
    plain = set(linear().state_dict())
    delayed = {f"{kind}_{tensor}" for kind in ("amax_history", "scale") for tensor in ("x", "w", "dy")}
    assert set(layer.state_dict()) == (plain | delayed if name == "fp8-delayed" else plain)


def test_the_state_of_delayed_scaling_stays_float32_when_the_model_is_cast():
    layer = Float8Linear.of(linear(), "fp8-delayed")
    passes(layer, drawn(16, 256), drawn(16, 128))
    before = layer.scale_x.clone()
    layer = nn.Sequential(layer).to(torch.bfloat16)[0]
    assert layer.weight.dtype is torch.bfloat16
    assert torch.equal(layer.scale_x, before)
    assert layer.amax_history_dy.dtype is torch.float32
    assert layer(drawn(16, 256).bfloat16()).dtype is torch.bfloat16


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", NAMES)
def test_under_autocast_results_have_its_dtype_and_gradients_that_of_the_weights(name, dtype):
    layer, x = Float8Linear.of(linear(), name), drawn(16, 256).requires_grad_()
    with torch.autocast("cpu", dtype=dtype):
        y = layer(x)
    y.float().sum().backward()
    assert y.dtype is dtype
    assert x.grad.dtype is layer.weight.grad.dtype is torch.float32
    wide = Float8Linear.of(linear(), name)(x)
    assert (y.float() - wide).abs().max() < 4 * torch.finfo(dtype).eps * wide.abs().max()


@pytest.mark.parametrize("name", ["fp8-current", "fp8-row", "fp8-block", "fp8-mx"])
def test_what_the_backward_pass_needs_is_kept_in_eight_bits(name):
    layer, x, kept = Float8Linear.of(linear(), name), drawn(64, 256).requires_grad_(), []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        layer(x)
    large = [tensor for tensor in kept if tensor.numel() >= layer.weight.numel() // 2]
    assert sorted(tensor.shape for tensor in large) == [(256, 64), (256, 128)]  # x and w, transposed
    assert {tensor.dtype.itemsize for tensor in large} == {1}


def test_no_gradient_is_computed_that_nobody_wants():
    layer = Float8Linear.of(linear(), "fp8-current")
    layer.weight.requires_grad_(False)
    x = drawn(16, 256).requires_grad_()
    layer(x).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None
    with torch.no_grad():
        assert layer(x).grad_fn is None


def test_an_accumulator_takes_the_place_of_float32():
    layer = Float8Linear.of(linear(1024, 16), "fp8-current")
    x = drawn(16, 1024).abs()
    with torch.no_grad():
        layer.weight.abs_()
        wide = layer(x)
        layer.accumulator = ACCUMULATORS["fp8-aligned"]
        assert 1e-4 < error(layer(x), wide) < 0.05


def model():
    torch.manual_seed(0)
    block = nn.ModuleDict({"attention": nn.Linear(32, 32), "odd": nn.Linear(32, 30), "back": nn.Linear(30, 32)})
    shared = nn.Linear(32, 48)
    layers = {"block": block, "one": shared, "same": shared, "heads": nn.MultiheadAttention(32, 4)}
    return nn.ModuleDict(layers | {"classifier": nn.Linear(32, 16)})


def test_convert_replaces_in_place_and_says_what_it_left():
    plain = model()
    parameters, shapes = list(plain.parameters()), {name: one.shape for name, one in plain.named_parameters()}
    done = convert(plain, "fp8-current")
    assert done.converted == ("block.attention", "one")
    assert done.left == {
        "block.odd": "30×32, no multiples of 16",
        "block.back": "32×30, no multiples of 16",
        "heads.out_proj": "a NonDynamicallyQuantizableLinear",
        "classifier": "excluded",
    }
    assert [id(one) for one in plain.parameters()] == [id(one) for one in parameters]
    assert {name: one.shape for name, one in plain.named_parameters()} == shapes
    assert plain["one"] is plain["same"]
    assert isinstance(plain["block"]["attention"], Float8Linear)
    assert str(done).startswith("2 of 6 linear layers in fp8-current, 42.6 % of their weights; left: block.odd (30×32")


def test_an_optimizer_made_before_goes_on():
    plain = nn.Sequential(nn.Linear(32, 32), nn.Linear(32, 32))
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    before = plain[0].weight.detach().clone()
    convert(plain, "fp8-current")
    plain(drawn(16, 32)).square().sum().backward()
    optimizer.step()
    assert not torch.equal(plain[0].weight, before)


@pytest.mark.parametrize("exclude", ["0", ("0",), ("block",)])
def test_layers_are_excluded_by_a_name_or_a_part_of_one(exclude):
    plain = nn.ModuleDict({"0": nn.Linear(32, 32), "block": nn.Sequential(nn.Linear(32, 32)), "x": nn.Linear(16, 16)})
    done = convert(plain, "fp8-row", exclude)
    left = {"0": {"0", "block.0"}, "block": {"block.0"}}[exclude[0]]
    assert set(done.left) == left


def test_conversions_that_do_nothing_are_refused():
    with pytest.raises(ValueError, match=re.escape("no linear layer to convert: classifier (excluded)")):
        convert(nn.ModuleDict({"classifier": nn.Linear(32, 32)}), "fp8-current")
    with pytest.raises(ValueError, match="this model is one linear layer"):
        convert(nn.Linear(32, 32), "fp8-current")
    with pytest.raises(ValueError, match="unknown FP8 recipe 'fp9'; the known ones are fp8-unscaled, "):
        convert(nn.Sequential(nn.Linear(32, 32)), "fp9")
    with pytest.raises(ValueError, match="in_features is 30, no multiple of 16"):
        Float8Linear.of(nn.Linear(30, 32), "fp8-current")


def test_a_converted_layer_draws_no_random_numbers():
    torch.manual_seed(0)
    expected = torch.rand(1)
    plain = nn.Linear(32, 32)
    torch.manual_seed(0)
    Float8Linear.of(plain, "fp8-current")
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_learns_under_every_scaled_recipe(name):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 16))
    convert(net, name)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    x = drawn(64, 32)
    target = x[:, :16].sign()
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = 0.1 * F.mse_loss(net(x), target)  # so that gradients lie below E4M3's smallest value
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert (losses[-1] < 0.3 * losses[0]) is (name != "fp8-unscaled-e4m3")


def test_a_recipe_says_that_a_cpu_emulates_it():
    for name in NAMES:
        assert find_float8_recipe(name).emulated("cpu")
        assert find_float8_recipe(name).remark("cpu") == (
            "emulated: a CPU multiplies FP8 values in float32, so the speed says nothing about FP8"
        )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("n", [128, 512])  # of 512 the scales of 128x128 fill their columns: dgrad has another layout
def test_kernels_and_emulation_give_the_same_passes(name, n):
    if reason := FLOAT8_RECIPES[name].why_emulated("cuda"):
        pytest.skip(reason)
    x, dy = drawn(4, 40, 256), drawn(4, 40, n, seed=1) * 1e-4
    with torch.autocast("cpu", torch.bfloat16), torch.autocast("cuda", torch.bfloat16):  # as every recipe has it
        on_cpu = passes(Float8Linear.of(linear(n=n), name), x, dy)
        on_gpu = passes(Float8Linear.of(linear(n=n).cuda(), name), x.cuda(), dy.cuda())
    for one, other in zip(on_gpu, on_cpu, strict=True):
        assert error(one.cpu().float(), other.float()) < 2.0**-7
