"""RecipePicker's facts are those of the rest of the book, and its lines of torch run."""

import inspect
import itertools
from types import SimpleNamespace

import pytest
import torch

from utils.cost.cards import CARDS
from utils.cost.decide import TASKS
from utils.training import recipes
from utils.widgets.recipe_picker import RecipePicker
from utils.widgets.recipe_picker import advice as facts
from utils.widgets.recipe_picker.advice import CODE, advise

ALL = list(itertools.product(CARDS, TASKS))


@pytest.mark.parametrize("name", facts.DTYPES)
def test_dtypes_and_loss_scaling_are_those_of_the_recipe(name):
    recipe = recipes.find_recipe(name)
    assert facts.DTYPES[name] == str(recipe.arithmetic).removeprefix("torch.")
    assert recipe.needs_loss_scaling == (name == "16-mixed")


class Tiny(torch.nn.Linear):
    """A model that can be trained and can `generate`, as far as the lines of the picker ask for it."""

    def __init__(self):
        super().__init__(4, 4)
        self.checkpointing = False

    def generate(self, ids):
        return self(ids.to(self.weight.dtype))

    def gradient_checkpointing_enable(self, how):  # the only name before transformers 5.23
        self.checkpointing = how == {"use_reentrant": False}


RECIPES = [(task, recipe) for task in CODE for recipe in CODE[task] if recipe in facts.DTYPES]
ADAPTED = [(lever, recipe) for lever in facts.LOADED for recipe in ("32-true", "16-mixed", "bf16-mixed")]
LINES = [
    (task, recipe, once)
    for task, recipe in RECIPES
    for once in (
        "",
        *((facts.ONCE[name] for name in ("checkpointing", "8-bit Adam")) if "{once}" in CODE[task][recipe] else ()),
    )
]
STORED = [name for name in CODE["generate"] if name not in facts.DTYPES]


def run_lines(task, recipe, *, old_gradient=None, once=""):
    """Run the lines to copy on a seeded model; return their names and the dtypes that the model computed in."""
    torch.manual_seed(0)
    model, used = Tiny(), []
    model.weight.grad = None if old_gradient is None else torch.full_like(model.weight, old_gradient)

    def loss_of(model, batch):
        out = model(batch.to(model.weight.dtype))
        used.append(out.dtype)
        return out.float().square().mean()

    def eight_bits(parameters, lr):
        return torch.optim.SGD(parameters, lr=0.5)

    names = {"torch": torch, "model": model, "loss_of": loss_of, "batch": torch.ones(2, 4), "ids": torch.ones(2, 4)}
    names["bitsandbytes"] = SimpleNamespace(optim=SimpleNamespace(AdamW8bit=eight_bits))
    names["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.5)
    names["before"] = model.weight.detach().clone()
    lines = CODE[task][recipe].replace("{once}", once)
    exec(lines.replace("{device}", "cpu").replace("{dtype}", facts.DTYPES[recipe]), names)
    return names, used


@pytest.mark.parametrize(("task", "recipe", "once"), LINES)
def test_the_lines_to_copy_run_and_do_what_the_recipe_says(task, recipe, once):
    assert len(CODE[task][recipe].splitlines()) <= 8, CODE[task][recipe]
    names, used = run_lines(task, recipe, once=once)
    expected = recipes.find_recipe(recipe)
    assert names["model"].weight.dtype is expected.weights
    assert names["model"].checkpointing == ("checkpointing" in once)
    if task == "generate":
        assert names["text"].dtype is expected.weights
    else:
        assert used == [expected.arithmetic]
        assert not torch.equal(names["model"].weight.float(), names["before"]), "the step changed nothing"


@pytest.mark.parametrize("lever", STORED)
def test_the_lines_for_narrow_weights_load_them_narrow(lever):
    asked = {}

    def from_pretrained(name, **places):
        asked.update(places)
        return Tiny()

    loads = SimpleNamespace(from_pretrained=from_pretrained)
    fake = SimpleNamespace(BitsAndBytesConfig=dict, AutoModelForCausalLM=loads)
    names = {"torch": torch, "transformers": fake, "name": "a folder", "ids": torch.ones(2, 4)}
    exec(CODE["generate"][lever].replace("{device}", "cpu").replace("{dtype}", "float16"), names)
    bits = lever.split("-")[0]
    assert asked == {"device_map": "cpu", "dtype": torch.float16, "quantization_config": {f"load_in_{bits}bit": True}}
    assert names["text"].shape == (2, 4)


@pytest.mark.parametrize(("lever", "recipe"), ADAPTED)
@pytest.mark.parametrize("once", ["", facts.ONCE["checkpointing"]], ids=["plain", "checkpointing"])
def test_the_lines_for_adapters_train_these_alone(lever, recipe, once):
    asked = {}

    def from_pretrained(name, **places):
        asked.update(places)
        return Tiny()

    def get_peft_model(model, config):
        asked.update(config)
        model.weight.requires_grad_(False)
        model.bias.data = model.bias.data.float()  # the adapter of this model, in float32
        return model

    names = {"torch": torch, "model": Tiny(), "name": "a folder", "batch": torch.ones(2, 4)}
    names["peft"] = SimpleNamespace(LoraConfig=dict, get_peft_model=get_peft_model)
    loads = SimpleNamespace(from_pretrained=from_pretrained)
    names["transformers"] = SimpleNamespace(BitsAndBytesConfig=dict, AutoModelForCausalLM=loads)

    def loss_of(model, batch):
        out = batch.to(model.weight.dtype) @ model.weight.T + model.bias
        return out.float().square().mean()

    names["loss_of"] = loss_of
    code = facts.LOADED[lever] + CODE["train"][recipe]
    lines = (
        code.replace("{once}", once + facts.ONCE[lever])
        .replace("{device}", "cpu")
        .replace("{dtype}", facts.DTYPES[recipe])
    )
    exec(lines, names)
    trained = [weight for weight in names["model"].parameters() if weight.requires_grad]
    assert trained == names["optimizer"].param_groups[0]["params"] == [names["model"].bias]
    assert names["model"].checkpointing == bool(once)
    assert ("scaler" in names) == (recipe == "16-mixed")
    assert (asked["r"], asked["target_modules"]) == (16, "all-linear")
    if lever.startswith("QLoRA"):
        dtype = getattr(torch, facts.DTYPES[recipe])
        assert (asked["dtype"], asked["device_map"]) == (dtype, "cpu")
        nf4 = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}
        assert asked["quantization_config"] == nf4 | {"bnb_4bit_compute_dtype": dtype}
    else:
        assert names["model"].weight.dtype is getattr(torch, facts.DTYPES[recipe])


def test_the_libraries_have_what_the_lines_ask_for():
    import transformers

    kind = transformers.PreTrainedModel
    assert callable(getattr(kind, "activation_checkpointing_enable", None) or kind.gradient_checkpointing_enable)
    four = {"bnb_4bit_quant_type", "bnb_4bit_use_double_quant", "bnb_4bit_compute_dtype"}
    known = set(inspect.signature(transformers.BitsAndBytesConfig).parameters)
    assert {"load_in_8bit", "load_in_4bit"} | four <= known


def test_peft_has_what_the_lines_ask_for():
    peft = pytest.importorskip("peft")
    assert callable(peft.get_peft_model)
    assert {"r", "target_modules"} <= set(inspect.signature(peft.LoraConfig).parameters)


@pytest.mark.parametrize(("task", "recipe"), [line for line in RECIPES if line[0] != "generate"])
def test_the_gradient_of_the_step_before_does_not_enter(task, recipe):
    fresh, again = (run_lines(task, recipe, old_gradient=old)[0]["model"].weight for old in (None, 1e6))
    assert torch.equal(fresh, again)


@pytest.mark.parametrize(("card", "task"), ALL)
def test_no_card_is_sent_to_a_recipe_that_it_emulates_while_another_would_do(card, task):
    advice = advise(card, task, parameters=1_000_000)
    assert advice.fits
    assert not advice.emulated
    assert advice.recipe in recipes.RECIPES
    assert advice.reason in facts.REASONS
    assert advice.code


def test_the_answer_for_7b_is_that_of_the_decision():
    assert facts.NAMED["LLaMA 7B"].parameters == 6_738_415_616
    advice = advise("T4", "generate", parameters=6_738_415_616)
    assert (advice.recipe, advice.levers) == ("16-true", ("8-bit weights",))  # 14.6 GB in 16 bits are over 14.4
    assert advice.items == {"weights": 6_738_415_616, "cache": 2**30}
    assert advice.spare == 9 * 16 * 10**8 - advice.total
    assert "load_in_8bit" in advice.code
    advice = advise("H100", "fine_tune", parameters=6_738_415_616)
    assert (advice.recipe, advice.levers) == ("bf16-mixed", ("checkpointing", "8-bit Adam"))
    assert advice.code.index("float()") < advice.code.index("checkpointing_enable") < advice.code.index("AdamW8bit")
    advice = advise("RTX 4090", "fine_tune", parameters=6_738_415_616)
    assert (advice.recipe, advice.levers, advice.scaler) == ("bf16-mixed", ("checkpointing", "LoRA"), False)
    assert round(advice.total / 1e9, 1) == 15.5
    assert 'r=16, target_modules="all-linear"' in advice.code
    advice = advise("T4", "fine_tune", parameters=6_738_415_616)
    assert (advice.recipe, advice.levers, advice.scaler) == ("16-mixed", ("checkpointing", "QLoRA"), True)
    assert advice.reason == "adapters-16-mixed"
    assert "load_in_4bit" in advice.code
    assert "GradScaler" in advice.code


def test_every_lever_of_every_answer_has_a_sentence():
    for card, task in ALL:
        for parameters in (10**6, 10**9, 7 * 10**9, 10**12):
            advice = advise(card, task, parameters=parameters)
            assert set(advice.levers) <= facts.LEVERS.keys()
            assert advice.reason in facts.REASONS
            code = advice.code.replace('{"device_map', "").replace('{"bnb_4bit', "").replace('{"use_reentrant', "")
            assert "{" not in code


def test_training_from_scratch_never_gives_up_float32_weights():
    for card in CARDS:
        advice = advise(card, "train", parameters=10**12)
        assert not advice.fits
        assert advice.items["weights"] == 4 * 10**12


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"card": "GTX 9000"}, "card 'GTX 9000' is not one of"),
        ({"task": "dream"}, "task 'dream' is not one of"),
        ({"parameters": 0}, "1 to 1e\\+13 parameters, not 0"),
        ({"memory": -1.0}, "memory -1.0 GB is not between"),
    ],
)
def test_junk_is_refused_and_changes_nothing(change, complaint):
    picker = RecipePicker()
    before = picker.book_state()
    with pytest.raises(ValueError, match=complaint):
        picker.set_trait(*next(iter(change.items())))
    assert picker.book_state() == before


def test_the_recipe_follows_the_state():
    picker = RecipePicker(card="T4", task="fine_tune")
    assert picker.recipe == "16-mixed"
    picker.card = "H200"
    assert picker.recipe == "bf16-mixed"
    picker.task = "generate"
    assert picker.recipe == "bf16-true"


def test_the_static_form_names_every_card_and_its_recipe():
    form = RecipePicker().static_html()
    for card in CARDS.values():
        assert card.label in form
    assert form.count("16-mixed</td>") >= 4
