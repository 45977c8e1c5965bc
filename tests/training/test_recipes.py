"""Each recipe produces the dtypes that it claims, and float16 without hardware equals float16 with it."""

import copy

import pytest
import torch
from torch import nn

from utils import machine, measure
from utils.cost import memory
from utils.emulation.fast_half import HALVES, FastHalf
from utils.emulation.float32_matmul import restored, switches
from utils.runs import trained_models
from utils.training import batches, recipes, training_loop
from utils.training.float8_linear import Float8Linear
from utils.training.float8_recipes import FLOAT8_RECIPES, Float8Recipe
from utils.training.optimizers import Kahan, Master, Nearest, Stochastic
from utils.training.recipes import ALL_RECIPES, COMPARED, FLOAT8_MIXED, LIGHTNING_NAMES, RECIPES
from utils.workloads import models

CPU = torch.device("cpu")
SHAPE = models.DistilBertShape(vocabulary=20, width=16, layers=1, heads=2, hidden=32, positions=16)


@pytest.fixture
def batch() -> batches.Batch:
    ids = torch.randint(5, 20, (4, 8), generator=torch.Generator().manual_seed(0))
    return batches.Batch(ids, torch.ones_like(ids), torch.tensor([0, 1, 0, 1]))


def trainer_for(recipe: recipes.Recipe) -> training_loop.Trainer:
    schedule = training_loop.Schedule(learning_rate=1e-3)
    return training_loop.Trainer(models.build_distilbert(SHAPE), recipe=recipe, device=CPU, schedule=schedule, steps=4)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
def test_weights_gradients_states_and_logits_have_the_dtypes_of_the_recipe(recipe, batch):
    trainer = trainer_for(recipe)
    with recipe.on(CPU):
        trainer.step(batch)
        with recipe.autocast(CPU):
            logits = trainer.model(input_ids=batch.ids, attention_mask=batch.mask).logits
    parameters = list(trainer.model.parameters())
    assert {parameter.dtype for parameter in parameters} == {recipe.weights}
    assert {parameter.grad.dtype for parameter in parameters} == {recipe.gradients}
    moments = [
        trainer.optimizer.state[parameter][name] for parameter in parameters for name in ("exp_avg", "exp_avg_sq")
    ]
    assert {moment.dtype for moment in moments} == {recipe.optimizer}
    assert logits.dtype is recipe.arithmetic


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
def test_the_loss_is_computed_in_float32_or_wider(recipe, batch):
    trainer = trainer_for(recipe)
    with recipe.on(CPU):
        loss = trainer.loss(batch)
    assert loss.dtype is (torch.float64 if recipe.name == "64-true" else torch.float32)


def test_only_float16_under_autocast_scales_its_loss():
    assert [name for name, recipe in RECIPES.items() if recipe.scaler(CPU).is_enabled()] == ["16-mixed"]


def test_a_loss_scaler_grows_after_2000_good_steps_as_torchs_does_unless_told_otherwise():
    mixed = recipes.find_recipe("16-mixed")
    assert mixed.scaler(CPU).state_dict() == torch.amp.GradScaler("cpu").state_dict()
    assert mixed.scaler(CPU).get_growth_interval() == 2000
    assert mixed.scaler(CPU, growth_interval=7).get_growth_interval() == 7


def test_the_plain_recipes_are_those_of_lightning_and_step_with_the_optimizer_of_torch():
    assert LIGHTNING_NAMES == ("64-true", "32-true", "16-mixed", "bf16-mixed", "16-true", "bf16-true")
    for name, recipe in RECIPES.items():
        assert (type(trainer_for(recipe).optimizer) is torch.optim.AdamW) == (recipe.store is None), name


@pytest.mark.parametrize(
    ("name", "store", "bytes_each"),
    [
        ("16-true-master", Master, 12),
        ("bf16-true-master", Master, 12),
        ("bf16-true-kahan", Kahan, 6),
        ("bf16-true-stochastic", Stochastic, 4),
        ("16-true-moments", Nearest, 8),
        ("bf16-true", None, 4),
        ("32-true", None, 8),
    ],
)
def test_the_optimizer_of_a_recipe_keeps_its_weights_in_its_store(name, store, bytes_each, batch):
    recipe = recipes.find_recipe(name)
    trainer = trainer_for(recipe)
    with recipe.on(CPU):
        trainer.step(batch)
    assert store is None or type(trainer.optimizer.store) is store
    tensors = measure.optimizer_tensors(trainer.optimizer)
    assert measure.tensor_bytes(tensors) == bytes_each * models.count_parameters(trainer.model)


def test_a_float16_model_survives_its_first_step_with_a_larger_eps_float32_moments_or_a_master_copy(batch):
    finite = {}
    for name in ("16-true", "16-true-eps", "16-true-moments", "16-true-master"):
        trainer = trainer_for(recipes.find_recipe(name))
        with trainer.recipe.on(CPU):
            trainer.step(batch)
        finite[name] = all(weight.isfinite().all() for weight in trainer.model.parameters())
    assert finite == {"16-true": False, "16-true-eps": True, "16-true-moments": True, "16-true-master": True}


def test_the_eps_of_a_recipe_counts_before_that_of_the_schedule():
    assert torch.tensor(1e-8).half() == 0 < torch.tensor(1e-4).half()
    for name, eps in (("16-true", 1e-8), ("16-true-eps", 1e-4), ("32-true", 1e-8)):
        assert [group["eps"] for group in trainer_for(recipes.find_recipe(name)).optimizer.param_groups] == [eps]


def test_weights_of_16_bits_are_never_stepped_by_the_fused_kernel():
    gpu = torch.device("cuda")
    for name, recipe in RECIPES.items():
        assert (recipe.adamw_kernel(gpu) == "fused") == (recipe.store is None and recipe.weights.itemsize > 2), name
        assert (recipe.adamw_kernel(CPU) == "ours") == (recipe.store is not None), name
    assert {recipes.find_recipe(name).adamw_kernel(gpu) for name in ("16-true", "16-true-eps", "bf16-true")} == {
        "for-loop"
    }


@pytest.mark.parametrize(
    ("name", "device", "fused"),
    [("32-true", "cuda", True), ("16-mixed", "cuda", True), ("16-true", "cuda", False), ("32-true", "cpu", False)],
)
def test_the_optimizer_of_torch_is_fused_where_the_recipe_says_so(name, device, fused):
    optimizer = recipes.find_recipe(name).adamw([nn.Parameter(torch.ones(2))], torch.device(device))
    assert type(optimizer) is torch.optim.AdamW
    assert (optimizer.defaults["fused"], optimizer.defaults["foreach"]) == (fused, False)


def test_the_arms_are_eleven_recipes_in_the_order_of_the_chapter():
    assert " ".join(COMPARED) == (
        "64-true 32-true 32-true-high 32-true-medium 16-mixed bf16-mixed"
        " 16-true 16-true-eps 16-true-moments bf16-true bf16-true-stochastic"
    )
    assert set(COMPARED) <= RECIPES.keys()
    assert all(recipe.note for recipe in RECIPES.values())


# What a float32 product keeps


@pytest.mark.parametrize(("setting", "allowed"), [("highest", {24}), ("high", {24, 16, 11}), ("medium", {24, 11, 8})])
def test_a_float32_product_keeps_the_bits_that_its_error_tells(setting, allowed):
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(128, 128, generator=generator) for _ in range(2))
    exact, before = a.double() @ b.double(), torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(setting)
    try:
        bits = machine.product_bits(CPU)
        error = ((a @ b - exact).norm() / exact.norm()).item()
    finally:
        torch.set_float32_matmul_precision(before)
    assert bits in allowed
    # Each input is off by at most a unit roundoff of 2**-bits, about half of that on average.
    assert error < 2.0**-bits if bits < 24 else error < 1e-6, (bits, error)
    assert error > 2.0 ** -(bits + 3), (bits, error)


@pytest.mark.parametrize(
    ("bits", "same"),
    [
        pytest.param({"high": 24, "medium": 24}, ["32-true", "32-true"], id="a CPU without bfloat16 products"),
        pytest.param({"high": 24, "medium": 8}, ["32-true", None], id="a CPU with bfloat16 products"),
        pytest.param({"high": 11, "medium": 11}, [None, "32-true-high"], id="a GPU"),
    ],
)
def test_an_arm_says_when_the_device_makes_the_same_of_it_as_of_an_earlier_one(monkeypatch, bits, same):
    monkeypatch.setattr(machine, "product_bits", lambda on: bits.get(torch.get_float32_matmul_precision(), 24))
    arms = [recipes.find_recipe(name) for name in ("32-true-high", "32-true-medium")]
    assert [arm.same_as(CPU) for arm in arms] == same
    for arm, other in zip(arms, same, strict=True):
        assert (f"the same as {other}" in arm.remark(CPU)) == (other is not None)
        assert f"keeps {arm.product_bits(CPU)} significant bits" in arm.remark(CPU)
    assert recipes.find_recipe("32-true").same_as(CPU) is None
    assert recipes.find_recipe("32-true").remark(CPU) == ""


def test_arms_that_are_the_same_take_the_same_step(batch):
    for name in ("32-true-high", "32-true-medium"):
        arm = recipes.find_recipe(name)
        trainers = [trainer_for(arm), trainer_for(recipes.find_recipe(arm.same_as(CPU) or "32-true"))]
        for trainer in trainers:
            torch.manual_seed(0)  # dropout
            with trainer.recipe.on(CPU):
                trainer.step(batch)
        weights = [list(trainer.model.parameters()) for trainer in trainers]
        assert all(map(torch.equal, *weights)) == (arm.same_as(CPU) is not None), name


def test_an_emulated_arm_says_so(monkeypatch):
    monkeypatch.setattr(machine, "_cpu_report", lambda: {"avx512_bf16": True, "avx512_fp16": False})
    assert recipes.find_recipe("16-mixed").remark(CPU).startswith("emulated: this CPU has no float16 products")
    assert recipes.find_recipe("bf16-mixed").remark(CPU) == ""


def test_a_seed_reaches_what_is_rounded_at_random_and_nothing_else():
    assert recipes.find_recipe("bf16-true-stochastic").seeded(5).store == Stochastic(5)
    assert recipes.find_recipe("bf16-true-stochastic").seeded(0) == recipes.find_recipe("bf16-true-stochastic")
    assert recipes.find_recipe("bf16-true-kahan").seeded(5) == recipes.find_recipe("bf16-true-kahan")


def test_an_unknown_recipe_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="unknown recipe 'fp17'; the known ones are 64-true, 32-true, 32-true-high"):
        recipes.find_recipe("fp17")


def test_a_recipe_pins_float32_products_and_restores_what_was_set():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with recipes.find_recipe("32-true").on(CPU):
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_recipe_holds_and_restores_where_torchs_newer_switches_were_set_as_well():
    with restored():
        torch.backends.cuda.matmul.fp32_precision = "tf32"  # torch refuses to read the older switch from here on
        before = switches()
        with recipes.find_recipe("32-true").on(CPU):
            assert torch.get_float32_matmul_precision() == "highest"
            assert torch.backends.cuda.matmul.fp32_precision == "ieee"
        assert switches() == before


def test_a_recipe_is_emulated_where_the_processor_reports_no_such_product(monkeypatch):
    monkeypatch.setattr(machine, "_cpu_report", lambda: {"avx512_bf16": True, "avx512_fp16": False})
    assert [name for name, recipe in RECIPES.items() if recipe.emulated(CPU)] == [
        "16-mixed",
        "16-mixed-unscaled",
        "16-true",
        "16-true-eps",
        "16-true-moments",
        "16-true-master",
    ]
    monkeypatch.setattr(machine, "_cpu_report", lambda: {"avx512_bf16": True, "avx512_fp16": True})
    assert not any(recipe.emulated(CPU) for recipe in RECIPES.values())


@pytest.mark.parametrize("dtype", HALVES)
def test_the_emulated_product_is_the_float32_product_rounded_once(dtype):
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(24, 24, generator=generator).to(dtype) for _ in range(2))
    with FastHalf():
        product = a @ b
    assert product.dtype is dtype
    assert torch.equal(product, (a.float() @ b.float()).to(dtype))


@pytest.mark.parametrize(("dtype", "precision"), [(torch.float16, 11), (torch.bfloat16, 8)])
def test_the_emulated_product_differs_from_the_native_one_by_a_rounding_at_most(dtype, precision):
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(32, 32, generator=generator).to(dtype) for _ in range(2))
    native = a @ b
    with FastHalf():
        emulated = a @ b
    # Both add in float32, in different orders: where they differ, by one unit in the last of their places.
    ulp = torch.exp2(torch.frexp(native.float()).exponent - float(precision))
    assert ((native.float() - emulated.float()).abs() <= ulp).all()


@pytest.mark.parametrize("dtype", HALVES)
def test_emulation_covers_the_backward_pass_and_leaves_float32_alone(dtype):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 16, generator=generator)
    half, wide = nn.Linear(16, 4).to(dtype), nn.Linear(16, 4)
    wide.load_state_dict({name: value.float() for name, value in half.state_dict().items()})
    with FastHalf():
        half(x.to(dtype)).float().square().sum().backward()
        wide(x.to(dtype).float()).square().sum().backward()
    assert half.weight.grad.dtype is dtype
    assert wide.weight.grad.dtype is torch.float32
    torch.testing.assert_close(
        half.weight.grad.float(),
        wide.weight.grad,
        rtol=2e-2 if dtype is torch.float16 else 0.2,
        atol=2e-2 if dtype is torch.float16 else 0.2,
    )
    direct = nn.Linear(16, 4)
    direct.load_state_dict(wide.state_dict())
    direct(x.to(dtype).float()).square().sum().backward()
    assert torch.equal(direct.weight.grad, wide.weight.grad)


# FP8 layers


def test_the_recipes_with_fp8_layers_have_the_names_that_the_layers_have():
    assert list(FLOAT8_MIXED) == [*FLOAT8_RECIPES, "fp8-unscaled-loss-scale"]
    assert list(ALL_RECIPES) == [*RECIPES, *FLOAT8_MIXED]
    assert all(recipes.find_recipe(name).float8 is FLOAT8_RECIPES[name] for name in FLOAT8_RECIPES)
    assert all(recipe.note and recipe.float8 is None for recipe in RECIPES.values())


@pytest.mark.parametrize("name", FLOAT8_MIXED)
def test_linear_layers_but_the_head_multiply_in_fp8_and_everything_that_is_kept_is_float32(name, batch):
    trainer = trainer_for(recipes.find_recipe(name))
    before = [weight.clone() for weight in trainer.model.parameters()]
    with trainer.recipe.on(CPU):
        trainer.step(batch)
        with trainer.recipe.autocast(CPU):
            logits = trainer.model(input_ids=batch.ids, attention_mask=batch.mask).logits
    linears = {n: type(one) for n, one in trainer.model.named_modules() if isinstance(one, nn.Linear)}
    assert {n for n, kind in linears.items() if kind is nn.Linear} == {"pre_classifier", "classifier"}
    assert sum(kind is Float8Linear for kind in linears.values()) == 6
    parameters = list(trainer.model.parameters())
    assert {weight.dtype for weight in parameters} == {weight.grad.dtype for weight in parameters} == {torch.float32}
    assert {moment.dtype for moment in measure.optimizer_tensors(trainer.optimizer)} == {torch.float32}
    assert logits.dtype is torch.bfloat16
    assert not all(map(torch.equal, before, parameters))


def test_a_step_in_fp8_is_near_that_of_bfloat16_and_another_one_for_each_recipe(batch):
    losses = {}
    for name in ("bf16-mixed", *FLOAT8_MIXED):
        trainer = trainer_for(recipes.find_recipe(name))
        trainer.model.eval()  # without dropout
        with trainer.recipe.on(CPU):
            losses[name] = trainer.loss(batch).item()
    assert all(loss == pytest.approx(losses["bf16-mixed"], abs=0.02) for loss in losses.values()), losses
    assert losses["fp8-current"] != losses["fp8-mx"] != losses["bf16-mixed"] != losses["fp8-current"]


def test_small_gradients_are_zeros_in_e4m3_without_a_scale(batch):
    left = {}
    for name in ("fp8-unscaled-e4m3", "fp8-unscaled", "fp8-current", "bf16-mixed"):
        trainer = trainer_for(recipes.find_recipe(name))
        with trainer.recipe.on(CPU):
            (trainer.loss(batch) / 64).backward()
        gradient = trainer.model.distilbert.transformer.layer[0].ffn.lin2.weight.grad
        left[name] = (gradient != 0).float().mean().item()
    assert left["fp8-unscaled-e4m3"] == 0, left
    assert left["fp8-unscaled-e4m3"] < left["fp8-unscaled"] < left["fp8-current"] <= left["bf16-mixed"], left


def test_a_fixed_loss_scale_reaches_the_gradients_of_the_outputs_and_leaves_the_step_again(batch):
    outputs, norms, scales = {}, {}, {}
    for name in ("fp8-unscaled", "fp8-unscaled-loss-scale", "bf16-mixed"):
        trainer = trainer_for(recipes.find_recipe(name))
        trainer.model.eval()  # without dropout
        seen = []
        linear = trainer.model.distilbert.transformer.layer[0].ffn.lin2
        linear.register_full_backward_hook(lambda layer, dx, dy, seen=seen: seen.append(dy[0].float()))
        with trainer.recipe.on(CPU):
            assert trainer.step(batch)[1]
        outputs[name] = seen[0].norm().item()
        norms[name] = linear.weight.grad.norm().item()
        scales[name] = trainer.scaler.get_scale()
    assert scales == {"fp8-unscaled": 1, "fp8-unscaled-loss-scale": 2**14, "bf16-mixed": 1}
    assert outputs["fp8-unscaled-loss-scale"] == pytest.approx(2**14 * outputs["bf16-mixed"], rel=0.1), outputs
    assert norms["fp8-unscaled-loss-scale"] == pytest.approx(norms["bf16-mixed"], rel=0.1), norms


def test_a_fixed_loss_scale_halves_where_a_gradient_is_not_finite_and_never_grows(batch):
    trainer = trainer_for(recipes.find_recipe("fp8-unscaled-loss-scale"))
    before = [weight.clone() for weight in trainer.model.parameters()]
    weight = trainer.model.classifier.weight
    hook = weight.register_hook(lambda gradient: gradient * torch.inf)
    with trainer.recipe.on(CPU):
        assert not trainer.step(batch)[1]
        assert all(map(torch.equal, before, trainer.model.parameters()))
        hook.remove()
        assert trainer.step(batch)[1]
    assert trainer.scaler.get_scale() == 2**13
    assert trainer.scaler.get_growth_interval() > 2**30


def test_fp8_layers_are_emulated_on_every_cpu_and_their_remark_says_so(monkeypatch):
    monkeypatch.setattr(machine, "_cpu_report", lambda: {"avx512_bf16": True, "avx512_fp16": True})
    for recipe in FLOAT8_MIXED.values():
        assert recipe.emulated(CPU)
        assert recipe.remark(CPU).startswith("emulated: a CPU multiplies FP8 values in float32")
    with recipes.find_recipe("fp8-current").on(CPU):  # bfloat16 is there: nothing imitates it
        assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
    monkeypatch.setattr(Float8Recipe, "why_emulated", lambda recipe, device: "")
    assert not recipes.find_recipe("fp8-current").emulated(CPU)
    assert recipes.find_recipe("fp8-current").remark(CPU) == ""


def test_delayed_scales_go_on_where_a_checkpoint_was_taken(batch):
    first, second = (trainer_for(recipes.find_recipe("fp8-delayed")) for _ in range(2))
    with first.recipe.on(CPU):
        first.step(batch)
        second.load_state_dict(copy.deepcopy(first.state_dict()))
        histories = [name for name in second.state_dict()["model"] if "amax_history" in name]
        assert len(histories) == 18
        for trainer in (first, second):
            torch.manual_seed(0)  # dropout
            trainer.step(batch)
    mine, theirs = (trainer.state_dict()["model"] for trainer in (first, second))
    assert [name for name in mine if not torch.equal(mine[name], theirs[name])] == []


def test_the_ledger_of_a_recipe_with_fp8_layers_is_measured_and_predicted_without_its_activations(batch):
    trainer = trainer_for(recipes.find_recipe("fp8-current"))
    with trainer.recipe.on(CPU):
        trainer.step(batch)
    measured = memory.measure_ledger(trainer, batch)
    predicted = memory.predict(trainer.model, trainer.recipe, batch=0)
    assert 0 < measured.activations < memory.measure_ledger(_stepped("bf16-mixed", batch), batch).activations
    assert (predicted.weights, predicted.gradients) == (measured.weights, measured.gradients)
    assert (predicted.optimizer, predicted.activations) == (measured.optimizer, 0)
    with pytest.raises(ValueError, match="no formula for what fp8-current saves; measure it, or take batch=0"):
        memory.predict(trainer.model, "fp8-current", batch=2)


def _stepped(name: str, batch: batches.Batch) -> training_loop.Trainer:
    trainer = trainer_for(recipes.find_recipe(name))
    with trainer.recipe.on(CPU):
        trainer.step(batch)
    return trainer


def test_a_model_with_fp8_layers_is_not_kept():
    with pytest.raises(ValueError, match="a model trained in fp8-delayed is not kept: its FP8 layers would be lost"):
        trained_models.train_once(None, recipes.find_recipe("fp8-delayed"), seed=0, device=CPU, load=None)
