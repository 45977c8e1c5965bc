"""Each recipe produces the dtypes that it claims, and float16 without hardware equals float16 with it."""

import pytest
import torch
from torch import nn

from utils import batches, fine_tuning, machine, measure, models, recipes
from utils.fast_half import HALVES, FastHalf
from utils.optimizers import Kahan, Master, Stochastic
from utils.recipes import PLAIN, RECIPES

CPU = torch.device("cpu")
SHAPE = models.Shape(vocabulary=20, width=16, layers=1, heads=2, hidden=32, positions=16)


@pytest.fixture
def batch() -> batches.Batch:
    ids = torch.randint(5, 20, (4, 8), generator=torch.Generator().manual_seed(0))
    return batches.Batch(ids, torch.ones_like(ids), torch.tensor([0, 1, 0, 1]))


def trainer_for(recipe: recipes.Recipe) -> fine_tuning.Trainer:
    schedule = fine_tuning.Schedule(learning_rate=1e-3)
    return fine_tuning.Trainer(models.distilbert(SHAPE), recipe=recipe, device=CPU, schedule=schedule, steps=4)


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


def test_the_plain_recipes_are_those_of_lightning_and_step_with_the_optimizer_of_torch():
    assert PLAIN == ("64-true", "32-true", "16-mixed", "bf16-mixed", "16-true", "bf16-true")
    for name, recipe in RECIPES.items():
        assert (type(trainer_for(recipe).optimizer) is torch.optim.AdamW) == (recipe.store is None), name


@pytest.mark.parametrize(
    ("name", "store", "bytes_each"),
    [
        ("16-true-master", Master, 12),
        ("bf16-true-master", Master, 12),
        ("bf16-true-kahan", Kahan, 6),
        ("bf16-true-stochastic", Stochastic, 4),
        ("bf16-true", None, 4),
        ("32-true", None, 8),
    ],
)
def test_the_optimizer_of_a_recipe_keeps_its_weights_in_its_store(name, store, bytes_each, batch):
    recipe = recipes.recipe(name)
    trainer = trainer_for(recipe)
    with recipe.on(CPU):
        trainer.step(batch)
    assert store is None or type(trainer.optimizer.store) is store
    tensors = measure.optimizer_tensors(trainer.optimizer)
    assert measure.tensor_bytes(tensors) == bytes_each * models.parameters(trainer.model)


def test_the_weights_of_a_float16_model_survive_their_first_steps_with_a_master_copy(batch):
    finite = {}
    for name in ("16-true", "16-true-master"):
        trainer = trainer_for(recipes.recipe(name))
        with trainer.recipe.on(CPU):
            trainer.step(batch)
        finite[name] = all(weight.isfinite().all() for weight in trainer.model.parameters())
    assert finite == {"16-true": False, "16-true-master": True}


def test_a_seed_reaches_what_is_rounded_at_random_and_nothing_else():
    assert recipes.recipe("bf16-true-stochastic").seeded(5).store == Stochastic(5)
    assert recipes.recipe("bf16-true-stochastic").seeded(0) == recipes.recipe("bf16-true-stochastic")
    assert recipes.recipe("bf16-true-kahan").seeded(5) == recipes.recipe("bf16-true-kahan")


def test_an_unknown_recipe_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="unknown recipe 'fp17'; the known ones are 64-true, 32-true, 16-mixed"):
        recipes.recipe("fp17")


def test_a_recipe_pins_float32_products_and_restores_what_was_set():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with recipes.recipe("32-true").on(CPU):
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_recipe_is_emulated_where_the_processor_reports_no_such_product(monkeypatch):
    monkeypatch.setattr(machine, "_cpu_report", lambda: {"avx512_bf16": True, "avx512_fp16": False})
    assert [name for name, recipe in RECIPES.items() if recipe.emulated(CPU)] == [
        "16-mixed",
        "16-mixed-unscaled",
        "16-true",
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
