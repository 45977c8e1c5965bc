"""The number of parameters is exact, and that of the models which transformers builds."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, DistilBertForSequenceClassification

from small_models import SMALL, adapted, config
from utils.cost import architectures
from utils.cost.architectures import NAMED, Adapters, Architecture, nf4_bytes
from utils.training.recipes import find_recipe
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


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_adapters_have_the_sizes_of_lora_layers_on_a_real_model(family):
    """Counted on a model of transformers with A and B beside each linear layer of its blocks, all else frozen."""
    a = SMALL[family]
    model = adapted(a, find_recipe("bf16-mixed"), rank=5)
    found = [weight.numel() for weight in model.parameters() if weight.requires_grad]
    assert found == list(Adapters(5).weights(a))
    assert Adapters(5).parameters(a) == sum(found)
    frozen = sum(weight.numel() for weight in model.parameters()) - sum(found)
    assert Adapters(5).frozen_bytes(a, 2) == 2 * frozen == 2 * a.parameters


def test_adapters_of_llama_7b_have_40_million_numbers():
    """As peft counts them; 8.4 million on queries and values, 0.12 % of the model, as in the paper of LoRA."""
    assert Adapters(16).parameters(NAMED["LLaMA 7B"]) == 39_976_960
    assert Adapters(16, projections=("q_proj", "v_proj")).parameters(NAMED["LLaMA 7B"]) == 8_388_608


def test_nf4_with_double_quantization_takes_4_127_bits_a_weight():
    """Dettmers et al. 2023, section 3: 0.127 bits of constants instead of 0.5, so 0.373 are saved."""
    bits = 8 * nf4_bytes(2**24) / 2**24
    assert bits == 4 + 8 / 64 + 32 / (64 * 256)
    assert round(0.5 - (bits - 4), 3) == 0.373
    assert nf4_bytes(65) == 33 + 2 + 4  # the last block is shorter


def test_qlora_stores_the_matrices_of_the_blocks_in_nf4():
    a = NAMED["LLaMA 7B"]
    outside = 2 * 32_000 * 4_096 + 65 * 4_096  # embeddings, head and norms
    found = Adapters(nf4=True).frozen_bytes(a, 2)
    assert found == pytest.approx(2 * outside + 4.126953125 / 8 * (a.parameters - outside), rel=1e-9)
    assert round(found / 1e9, 2) == 3.87


@pytest.mark.parametrize("shape", [(64, 64), (100, 37), (96, 1_000)])
def test_nf4_is_what_bitsandbytes_keeps(shape):
    functional = pytest.importorskip("bitsandbytes.functional")
    codes, state = functional.quantize_4bit(torch.randn(shape), quant_type="nf4", compress_statistics=True)
    kept = codes.nbytes + state.absmax.nbytes + state.state2.absmax.nbytes
    assert nf4_bytes(shape[0] * shape[1]) == kept


def test_no_adapters_where_there_is_no_place_for_them():
    with pytest.raises(ValueError, match="no adapters for distilbert"):
        list(Adapters().weights(SMALL["distilbert"]))
    with pytest.raises(ValueError, match="rank 0 leaves nothing to train"):
        Adapters(0)
    assert [a.adaptable for a in SMALL.values()] == [False, True, True]
