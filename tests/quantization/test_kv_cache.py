"""A rounded cache: what attention reads is rounded once, and nothing else is."""

import pytest
import torch

from utils import llama
from utils.cost.token_bytes import kv_bytes
from utils.formats import FORMATS
from utils.quantization.integers import quantize
from utils.quantization.kv_cache import CACHE_FORMATS, rounded_cache
from utils.workloads import models

SHAPE = models.LlamaShape(
    vocabulary=40, width=32, layers=2, heads=4, groups=2, hidden=32, positions=64, tied=True, spread=0.3
)
IDS = torch.arange(30) + 2


@pytest.fixture
def model() -> torch.nn.Module:
    return models.build_llama(SHAPE, seed=1)


def kept(model, name: str) -> list[torch.Tensor]:
    cache = rounded_cache(model.config, name)
    with torch.no_grad():
        model(input_ids=IDS[None, :20], past_key_values=cache, use_cache=True)
        model(input_ids=IDS[None, 20:], past_key_values=cache, use_cache=True)
    assert cache.get_seq_length() == 30
    return [part for layer in cache.layers for part in (layer.keys, layer.values)]


@pytest.mark.parametrize("name", [name for name, one in CACHE_FORMATS.items() if one.fmt and not one.scaled])
def test_what_is_kept_are_numbers_of_the_format(model, name):
    codes = FORMATS[name].torch_dtype
    for part in kept(model, name):
        assert part.dtype is torch.float32
        assert torch.equal(part.to(codes).float(), part)


@pytest.mark.parametrize("bits", [8, 4])
def test_integers_share_a_scale_in_each_vector(model, bits):
    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(0))
    found = CACHE_FORMATS[f"int{bits}"].rounded(x)
    for at in ((0, 0, 0), (1, 2, 4), (0, 1, 3)):
        assert torch.equal(found[at], quantize(x[at][None], bits).dequantize()[0])


def test_scaled_floats_use_the_whole_range_in_each_vector():
    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(0))
    x[0, 0, 0] = 0
    scaled, plain = CACHE_FORMATS["float8_e4m3fn-scaled"], CACHE_FORMATS["float8_e4m3fn"]
    whole = x[1, 2, 4] * 2.0**-12  # without a scale, most of it is below E4M3's smallest
    inv_scale = (whole.abs().max() / 448).bfloat16().float()
    expected = (whole / inv_scale).to(torch.float8_e4m3fn).float() * inv_scale
    assert torch.equal(scaled.rounded(whole[None])[0], expected)
    assert (scaled.rounded(whole) - whole).abs().max() < (plain.rounded(whole) - whole).abs().max() / 4
    assert torch.equal(scaled.rounded(x)[0, 0, 0], torch.zeros(8))


def test_the_first_layer_keeps_the_rounded_keys_of_a_plain_cache(model):
    plain, narrow = kept(model, "float32"), kept(model, "float8_e4m3fn")
    assert torch.equal(narrow[0], plain[0].to(torch.float8_e4m3fn).float())
    assert not torch.equal(narrow[2], plain[2].to(torch.float8_e4m3fn).float())  # its inputs have read the first cache


def test_float32_loses_nothing_and_fewer_bits_lose_more(model):
    def lost(name: str) -> float:
        return llama.agreement(model, model, IDS, cache=lambda: rounded_cache(model.config, name)).kl

    assert lost("float32") == 0
    assert 0 < lost("float16") < lost("bfloat16") < lost("int8") < lost("int4")
    assert lost("float8_e4m3fn") < lost("float8_e5m2")


def test_bits_are_those_of_the_stored_tensors(model):
    width = 8
    x = torch.randn(6, width)
    for bits in (8, 4):
        assert CACHE_FORMATS[f"int{bits}"].bits_per_number(width) == quantize(x, bits).bits_per_weight
    assert CACHE_FORMATS["float16"].bits_per_number(width) == 16
    assert CACHE_FORMATS["float8_e4m3fn-scaled"].bits_per_number(width) == 8 + 16 / width
    assert kv_bytes(model, tokens=1, bits=CACHE_FORMATS["int8"].bits_per_number(width)) == 2 * 2 * 16 * 10 / 8


def test_an_unknown_format_is_refused(model):
    with pytest.raises(ValueError, match="unknown cache format 'int3'; the known ones are float32"):
        rounded_cache(model.config, "int3")
