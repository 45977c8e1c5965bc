"""What the recipe of the KV cache promises: bytes counted equal to bytes predicted, and a window in full precision."""

import json
import re
import sys

import pytest

import book_rules as rules
import recipe_scripts

BITS = ("16 bits", "8 bits", "4 bits")

# a line of Python stands in for the extension that it would compile
DRIVER = """
import json
from types import SimpleNamespace

import torch
from optimum.quanto.library.extensions.cpp import ext
from transformers.cache_utils import Fp8QuantizedLayer

import kv_cache as script


def unpack(packed, bits):
    return torch.cat([(packed >> shift) & (2**bits - 1) for shift in range(0, 8, bits)])


ext._lib = SimpleNamespace(unpack=unpack)
model = script.make_model()
prompt = torch.randint(512, (2, 192), device=script.device)
result = {}
for kind in script.CACHES:
    cache = script.make_cache(model.config, kind)
    with torch.no_grad():
        model(prompt, past_key_values=cache)
    result[kind] = [script.cache_bytes(cache), script.predicted_bytes(model.config, 192, kind, batch=2)]
with torch.no_grad():  # the 4-bit cache goes on
    cache = script.make_cache(model.config, "4 bits")
    model(prompt, past_key_values=cache)
    windows = []
    for token in range(130):
        model(prompt[:, :1], past_key_values=cache)
        keys, codes = cache.layers[0].keys, cache.layers[0]._quantized_keys
        windows.append([keys.shape[-2] if keys.ndim == 4 else 0, str(keys.dtype), codes.shape[2]])
result["windows"] = windows
layer = Fp8QuantizedLayer()
layer.update(torch.ones(1, 1, 4, 8), torch.ones(1, 1, 4, 8))
keys, _ = layer.update(torch.full((1, 1, 1, 8), 3.0), torch.ones(1, 1, 1, 8))
result["clipped"] = float(keys[0, 0, -1, 0])
open("result.json", "w").write(json.dumps(result))
"""


@pytest.fixture(scope="module")
def page():
    return rules.markdown(rules.read_page(recipe_scripts.COOKBOOK / "kv_cache.ipynb"))


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kv")
    recipe_scripts.drive("kv_cache", DRIVER, folder)
    return json.loads((folder / "result.json").read_text("utf8"))


def test_it_runs_as_it_stands(tmp_path):
    done = recipe_scripts.run_as_shown("kv_cache", tmp_path)
    found = re.findall(r"(.* bits): ([\d,]+) bytes for 256 tokens, ([\d,]+) predicted", done.stdout)
    assert [kind for kind, *_ in found] == list(BITS)
    assert "32 tokens written" in done.stdout


@pytest.mark.parametrize("kind", BITS)
def test_the_cache_has_the_bytes_of_the_formula(result, kind):
    counted, predicted = result[kind]
    scales = 2 * 2 * 4 if kind == "8 bits" else 0  # two layers, keys and values, a float32 each
    assert counted == predicted + scales


def test_the_newest_tokens_stay_in_16_bits_until_there_are_128(result):
    windows = result["windows"]
    assert [size for size, *_ in windows] == [*range(1, 128), 0, 1, 2]
    assert {dtype for _, dtype, _ in windows} == {"torch.bfloat16"}
    assert [length for *_, length in windows] == 127 * [192] + 3 * [320]


def test_fp8_clips_to_the_largest_of_the_prompt(result):
    assert result["clipped"] == 1.0


def test_the_gigabytes_of_the_page(page):
    layers, heads, width = 32, 8, 128
    assert f"Llama 3.1 8B has {layers} layers and {heads} such heads of dimension {width}:" in page
    assert "| 32,768 tokens | 131,072 tokens |" in page
    for size in (2, 1, 0.5 + 4 / 64):
        short, long = (2 * layers * heads * width * tokens * size / 1e9 for tokens in (32_768, 131_072))
        assert f"| {size} | {short:.2f} GB | {long:.2f} GB |" in page


def test_a_model_without_head_dim_is_predicted_too(tmp_path):
    """Qwen2's configuration has none."""
    code = """
import sys
sys.argv = sys.argv[1:]
import runpy
script = runpy.run_path(sys.argv[0])
from transformers import Qwen2Config
config = Qwen2Config(hidden_size=896, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2)
print(hasattr(config, "head_dim"), script["predicted_bytes"](config, 10, "16 bits"))
"""
    done = recipe_scripts.run("kv_cache", tmp_path, start=(sys.executable, "-c", code))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", str(2 * 24 * 2 * 64 * 10 * 2)]
