"""RecipePicker's facts are those of the rest of the book, and its lines of torch run."""

import itertools

import pytest
import torch

from utils import recipe_facts as facts
from utils import recipes
from utils.recipe_facts import CARDS, CODE, GENERATING_BYTES, MODELS, TASKS, TRAINING_BYTES, advise
from utils.widgets.recipe_picker import RecipePicker

ALL = list(itertools.product(CARDS, TASKS))


@pytest.mark.parametrize("name", TRAINING_BYTES)
def test_training_bytes_are_those_of_the_recipe(name):
    recipe, size = recipes.recipe(name), TRAINING_BYTES[name]
    assert size.weights == recipe.weights.itemsize
    assert size.gradients == recipe.gradients.itemsize
    assert size.optimizer == 2 * recipe.optimizer.itemsize  # Adam keeps two moments
    assert size.copies == (recipe.compute.itemsize if recipe.compute else 0)


@pytest.mark.parametrize("name", facts.DTYPES)
def test_dtypes_and_loss_scaling_are_those_of_the_recipe(name):
    recipe = recipes.recipe(name)
    assert facts.DTYPES[name] == str(recipe.arithmetic).removeprefix("torch.")
    assert recipe.needs_loss_scaling == (name == "16-mixed")


@pytest.mark.parametrize("name", GENERATING_BYTES)
def test_generating_takes_the_weights_alone(name):
    assert GENERATING_BYTES[name].total == recipes.recipe(name).weights.itemsize


@pytest.mark.parametrize("name", [name for name, card in CARDS.items() if card.capability])
def test_a_card_supports_what_the_grid_of_the_machine_asks_for(name):
    """`utils.machine.narrow_matmul` draws the same lines: float16 from 5.3, bfloat16 from 8.0, FP8 from 8.9."""
    card = CARDS[name]
    major, minor = map(int, card.capability.split("."))
    assert card.support["float16"] == facts.TENSOR
    assert (card.support["bfloat16"] == facts.TENSOR) == ((major, minor) >= (8, 0))
    assert (card.support["float8"] == facts.TENSOR) == ((major, minor) >= (8, 9))
    assert (card.support["tf32"] == facts.TENSOR) == ((major, minor) >= (8, 0))


# CUDA Programming Guide, table "Input Data Types Supported by Tensor Core Acceleration per Compute Capability"
GUIDE = """
     FP64 TF32 BF16 FP16 FP8 FP6 FP4
7.5  -    -    -    yes  -   -   -
8.0  yes  yes  yes  yes  -   -   -
8.6  -    yes  yes  yes  -   -   -
8.9  -    yes  yes  yes  yes -   -
9.0  yes  yes  yes  yes  yes -   -
10.0 yes  yes  yes  yes  yes yes yes
"""


@pytest.mark.parametrize("line", GUIDE.strip("\n").splitlines()[1:], ids=lambda line: line.split()[0])
def test_tensor_cores_take_the_types_of_nvidias_table(line):
    capability, *marks = line.split()
    columns = ["float64", "tf32", "bfloat16", "float16", "float8", "float6", "float4"]
    wanted = tuple(name for name, mark in zip(columns, marks, strict=True) if mark == "yes")
    assert facts.TENSOR_CORES[capability] == wanted


@pytest.mark.parametrize("model", MODELS)
def test_the_examples_have_the_parameters_of_the_real_models(model):
    from transformers import (
        DistilBertConfig,
        DistilBertForSequenceClassification,
        GPT2Config,
        GPT2LMHeadModel,
        LlamaConfig,
        LlamaForCausalLM,
    )

    seven = {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32}
    seventy = {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64}
    build = {
        "DistilBERT": lambda: DistilBertForSequenceClassification(DistilBertConfig(num_labels=2)),
        "GPT-2": lambda: GPT2LMHeadModel(GPT2Config()),
        "LLaMA 7B": lambda: LlamaForCausalLM(LlamaConfig(vocab_size=32000, **seven)),
        "Llama 2 70B": lambda: LlamaForCausalLM(LlamaConfig(vocab_size=32000, num_key_value_heads=8, **seventy)),
    }[model]
    with torch.device("meta"):
        assert sum(parameter.numel() for parameter in build().parameters()) == MODELS[model]


class Tiny(torch.nn.Linear):
    """A model that can be trained and can `generate`, as far as the lines of the picker ask for it."""

    def __init__(self):
        super().__init__(4, 4)

    def generate(self, ids):
        return self(ids.to(self.weight.dtype))


LINES = [(task, recipe) for task in CODE for recipe in CODE[task]]


def run_lines(task, recipe, *, old_gradient=None):
    """Run the lines to copy on a seeded model; return their names and the dtypes that the model computed in."""
    torch.manual_seed(0)
    model, used = Tiny(), []
    model.weight.grad = None if old_gradient is None else torch.full_like(model.weight, old_gradient)

    def loss_of(model, batch):
        out = model(batch.to(model.weight.dtype))
        used.append(out.dtype)
        return out.float().square().mean()

    names = {"torch": torch, "model": model, "loss_of": loss_of, "batch": torch.ones(2, 4), "ids": torch.ones(2, 4)}
    names["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.5)
    names["before"] = model.weight.detach().clone()
    exec(CODE[task][recipe].replace("{device}", "cpu").replace("{dtype}", facts.DTYPES[recipe]), names)
    return names, used


@pytest.mark.parametrize(("task", "recipe"), LINES)
def test_the_lines_to_copy_run_and_do_what_the_recipe_says(task, recipe):
    assert len(CODE[task][recipe].splitlines()) <= 8, CODE[task][recipe]
    names, used = run_lines(task, recipe)
    expected = recipes.recipe(recipe)
    assert names["model"].weight.dtype is expected.weights
    if task == "generate":
        assert names["text"].dtype is expected.weights
    else:
        assert used == [expected.arithmetic]
        assert not torch.equal(names["model"].weight.float(), names["before"]), "the step changed nothing"


@pytest.mark.parametrize(("task", "recipe"), [line for line in LINES if line[0] != "generate"])
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


def test_the_sum_is_bytes_times_parameters():
    advice = advise("A100", "fine_tune", parameters=MODELS["LLaMA 7B"], memory=80)
    assert advice.recipe == "bf16-true"  # 18 bytes for each of 6.7e9 parameters are 121 GB
    assert advice.total == 8 * 6_738_415_616
    assert advice.spare == 80 * 10**9 - advice.total


def test_training_from_scratch_never_gives_up_float32_weights():
    for card in CARDS:
        advice = advise(card, "train", parameters=10**12)
        assert not advice.fits
        assert advice.bytes.weights == 4


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
