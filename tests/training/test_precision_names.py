"""The table of names is true: each name is that of its recipe, and is called where its library is installed."""

import dataclasses
import importlib.util
import warnings

import pytest
import torch

from utils.experiments import fabric
from utils.training import precision_names, recipes
from utils.training.precision_names import FLOAT16_ON_A_CPU, NAMES, OLD

CPU = torch.device("cpu")
ACCELERATE = importlib.util.find_spec("accelerate") is not None
EACH = [pytest.param(name, names, id=name) for name, names in NAMES.items()]


def test_the_table_names_the_arms_of_the_comparison():
    assert tuple(NAMES) == recipes.COMPARED


@pytest.mark.parametrize(("name", "names"), EACH)
def test_the_line_of_torch_does_what_the_recipe_says(name, names):
    recipe = recipes.find_recipe(name)
    for line in names.torch.split(" and a")[0].split(" and "):
        model, before = torch.nn.Linear(2, 2), torch.get_float32_matmul_precision()
        try:
            made = eval(line, {"torch": torch, "model": model, "device": "cpu", "AdamW": dict})
            if "autocast" in line:
                assert (made.fast_dtype, made.device) == (recipe.compute, "cpu")
            elif "model" in line:
                assert made.weight.dtype is recipe.weights
            elif "AdamW" in line:
                assert made == {"eps": recipe.epsilon}
            else:
                assert torch.get_float32_matmul_precision() == recipe.float32_matmul
        finally:
            torch.set_float32_matmul_precision(before)
    assert ("GradScaler" in names.torch) is recipe.needs_loss_scaling


@pytest.mark.parametrize(("name", "names"), EACH)
def test_what_no_name_says_is_what_the_recipe_has_beyond_the_one_of_that_name(name, names):
    recipe, plain = recipes.find_recipe(name), recipes.find_recipe(names.lightning)
    differs = dataclasses.replace(recipe, name=plain.name, note=plain.note) != plain
    assert bool(names.by_hand) is differs
    assert differs is (names.lightning != name)


@pytest.mark.parametrize(("name", "names"), EACH)
def test_the_two_settings_of_transformers_give_the_recipe_of_lightning(name, names):
    recipe = recipes.find_recipe(names.lightning)
    assert getattr(torch, names.weights) is recipe.weights
    assert {"no": None, "fp16": torch.float16, "bf16": torch.bfloat16}[names.accelerate] is recipe.compute


def test_the_arguments_of_transformers_exist_and_are_off_unless_asked_for():
    from transformers import TrainingArguments

    defaults = {field.name: field.default for field in dataclasses.fields(TrainingArguments)}
    asked = dict(names.arguments.split("=") for names in NAMES.values() if names.arguments)
    assert set(asked) == {"tf32", "fp16", "bf16", "adam_epsilon"}
    assert not any(defaults[name] for name in ("tf32", "fp16", "bf16"))
    assert defaults["adam_epsilon"] == 1e-8


def test_the_dtype_of_transformers_is_that_of_the_weights(tmp_path):
    from transformers import DistilBertConfig, DistilBertModel

    config = DistilBertConfig(dim=16, n_heads=2, n_layers=1, hidden_dim=16, vocab_size=8, max_position_embeddings=8)
    DistilBertModel(config).save_pretrained(tmp_path)
    for dtype in {names.weights for names in NAMES.values()}:
        loaded = DistilBertModel.from_pretrained(tmp_path, dtype=getattr(torch, dtype))
        assert {weight.dtype for weight in loaded.parameters()} == {getattr(torch, dtype)}


# What is made of an argument on a CPU


def training_arguments(**arguments: object) -> precision_names.LibraryAnswer:
    """Ask transformers which precision it hands to accelerate; without accelerate, the answer is an ImportError."""
    from transformers import TrainingArguments

    where = {"output_dir": "unused", "report_to": []}
    return precision_names.answer(lambda: TrainingArguments(**where, **arguments).mixed_precision)


@pytest.mark.parametrize(
    ("arguments", "precision"),
    [({}, "no"), ({"fp16": True}, "fp16"), ({"bf16": True}, "bf16")],
)
def test_training_arguments_hand_their_precision_to_accelerate_or_ask_for_it(arguments, precision):
    answer = training_arguments(use_cpu=True, **arguments)
    if ACCELERATE:
        assert (answer.returned, answer.messages) == (precision, ())
    else:
        assert (answer.returned, answer.kinds) == (None, ("ImportError",))
        assert "accelerate" in answer.messages[0]


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what is missing without a GPU")
def test_transformers_wants_to_hear_that_bfloat16_is_meant_for_a_cpu():
    answer = training_arguments(bf16=True)
    assert (answer.returned, answer.kinds) == (None, ("ValueError",))
    assert "use_cpu" in answer.messages[0]


def test_float16_on_a_cpu_has_three_answers():
    assert [fallback.runs for fallback in FLOAT16_ON_A_CPU] == ["16-mixed", "bf16-mixed", "32-true"]
    assert all(fallback.runs in recipes.LIGHTNING_NAMES for fallback in FLOAT16_ON_A_CPU)


def test_torch_does_float16_on_a_cpu_when_it_is_asked_to():
    model, scaler = torch.nn.Linear(2, 2), torch.amp.GradScaler("cpu")
    with torch.autocast("cpu", torch.float16):
        out = model(torch.ones(1, 2))
    scaler.scale(out.float().sum() / 4).backward()
    assert out.dtype is torch.float16
    assert model.bias.grad[0] == 2.0**14


def test_lightning_makes_of_it_what_the_table_says():
    (row,) = (fallback for fallback in FLOAT16_ON_A_CPU if fallback.library == "Lightning")
    answer = fabric.ask_precision(row.ask.split('"')[1], device=CPU)
    assert (answer.returned, *answer.kinds) == (row.runs, row.says)


@pytest.mark.skipif(not ACCELERATE, reason="accelerate is not installed")
def test_accelerate_says_fp16_on_a_cpu_and_computes_in_float32():
    from accelerate import Accelerator

    answer = precision_names.answer(lambda: Accelerator(cpu=True, mixed_precision="fp16"))
    assert (answer.returned.mixed_precision, answer.messages) == ("fp16", ())
    assert (answer.returned.scaler, answer.returned.native_amp) == (None, False)


def test_an_answer_keeps_warnings_and_errors_in_order_and_lets_other_errors_through():
    def call():
        warnings.warn("first", DeprecationWarning, stacklevel=1)
        raise ValueError("a: b")

    answer = precision_names.answer(call)
    assert (answer.returned, answer.messages) == (None, ("DeprecationWarning: first", "ValueError: a: b"))
    assert answer.kinds == ("DeprecationWarning", "ValueError")
    assert precision_names.answer(lambda: 3) == precision_names.LibraryAnswer(3, ())
    with pytest.raises(KeyError):
        precision_names.answer(lambda: {}["missing"])


def test_old_names_mean_the_names_of_today():
    assert set(OLD.values()) <= set(recipes.LIGHTNING_NAMES)
    assert not set(OLD) & set(NAMES)
