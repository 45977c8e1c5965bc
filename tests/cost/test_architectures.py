"""The number of parameters is exact, and that of the models which transformers builds."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, DistilBertForSequenceClassification

from small_models import config
from utils.cost import architectures
from utils.cost.architectures import Architecture
from utils.workloads import models

PUBLISHED = {
    "DistilBERT": 66_955_010,
    "GPT-2": 124_439_808,
    "GPT-2 medium": 354_823_168,
    "GPT-2 large": 774_030_080,
    "GPT-2 XL": 1_557_611_200,
    "LLaMA 7B": 6_738_415_616,
    "LLaMA 13B": 13_015_864_320,
    "LLaMA 33B": 32_528_943_616,
    "LLaMA 65B": 65_285_660_672,
    "Llama 2 70B": 68_976_648_192,
    "Llama 3 8B": 8_030_261_248,
}


def test_the_parameters_are_those_of_the_released_models():
    assert {name: named.parameters for name, named in architectures.NAMED.items()} == PUBLISHED


@pytest.mark.parametrize("name", ["DistilBERT", "GPT-2", "LLaMA 7B", "Llama 2 70B"])
@pytest.mark.parametrize("turned", [False, True], ids=["head as named", "head the other way"])
def test_every_weight_is_one_of_the_model_that_transformers_builds(name, turned):
    named = replace(architectures.find_architecture(name), layers=2)
    if turned and named.family != "distilbert":
        named = replace(named, tied=not named.tied)
    with torch.device("meta"):
        if named.family == "distilbert":
            model = DistilBertForSequenceClassification(config(named))
        else:
            model = AutoModelForCausalLM.from_config(config(named))
    assert Counter(named.weights()) == Counter(weight.numel() for weight in model.parameters())
    assert named.parameters == models.count_parameters(model)


@pytest.mark.parametrize("name", architectures.NAMED)
def test_an_architecture_is_read_from_its_configuration(name):
    named = architectures.find_architecture(name)
    assert architectures.read_config(config(named)) == named


def test_what_has_no_formula_is_refused():
    bert = AutoConfig.for_model("bert")
    with pytest.raises(ValueError, match="no formula for a model of type 'bert'"):
        architectures.read_config(bert)
    with pytest.raises(ValueError, match="no formula for a model of type None"):
        architectures.read_config(None)
    with pytest.raises(ValueError, match="hidden_act 'relu'"):
        architectures.read_config(AutoConfig.for_model("llama", hidden_act="relu"))
    with pytest.raises(ValueError, match="head_dim 64"):
        architectures.read_config(AutoConfig.for_model("llama", head_dim=64))
    with pytest.raises(ValueError, match=r"embd_pdrop 0\.2 and resid_pdrop 0\.1"):
        architectures.read_config(AutoConfig.for_model("gpt2", embd_pdrop=0.2))
    with pytest.raises(ValueError, match="unknown model 'GPT-5'; the known ones are DistilBERT"):
        architectures.find_architecture("GPT-5")


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="unknown family 'bert'"):
        Architecture("bert", 100, 32, 2, 4, 4, 64, 16)
    with pytest.raises(ValueError, match="width 30, 4 heads and 4 groups do not fit"):
        Architecture("gpt2", 100, 30, 2, 4, 4, 64, 16)
    with pytest.raises(ValueError, match="4 heads and 3 groups do not fit"):
        Architecture("llama", 100, 32, 2, 4, 3, 64, 16)
