"""What the recipe for int8 and int4 weights promises: the stored bits, nearby logits, and a head that stays wide."""

import json

import pytest

import book_rules as rules
import recipe_scripts
from utils.cost.architectures import NAMED

LLAMA = NAMED["LLaMA 7B"]
K = 128  # the rows of up_proj in the script's model
BITS = {"torchao int8": 8 + 40 / K, "bitsandbytes int8": 8 + 32 / K, "bitsandbytes NF4": 4 + 8 / 64 + 32 / 16_384}
# torchao must not be imported into the process of the tests: transformers would find it in all others
LOOK = """
import inspect, json, os, sys
import torch
sys.path.insert(0, os.getcwd())
import load_quantized as script

found = {}
for tied in (False, True):
    torch.manual_seed(0)
    sizes = dict(hidden_size=128, intermediate_size=256, num_attention_heads=4)
    config = script.transformers.LlamaConfig(
        vocab_size=256, num_hidden_layers=2, tie_word_embeddings=tied, **sizes)
    script.transformers.LlamaForCausalLM(config).to(script.dtype).save_pretrained("model")
    tokens = script.make_tokens(256)
    plain = script.load("model")
    right = plain(tokens).logits.float()
    for name, config in script.configs():
        model = script.load("model", config)
        layers = [layer for layer in model.model.layers.modules() if isinstance(layer, torch.nn.Linear)]
        bits = [script.bits_per_weight(layer) for layer in layers if layer.in_features == 128]
        y = model(tokens).logits
        model.save_pretrained("saved")
        again = script.AutoModelForCausalLM.from_pretrained("saved", device_map=script.device)
        found[f"{name}, {'tied' if tied else 'untied'}"] = dict(
            bits=[min(bits), max(bits)], layers=len(layers),
            off=float((y.float() - right).norm() / right.norm()),
            again=torch.equal(again(tokens).logits, y),
            head=torch.equal(model.lm_head.weight, plain.lm_head.weight),
            embeddings=torch.equal(model.model.embed_tokens.weight, plain.model.embed_tokens.weight))
int4 = script.TorchAoConfig(script.Int4WeightOnlyConfig(
    group_size=128, int4_packing_format="tile_packed_to_4d")).quant_type
default = script.Int4WeightOnlyConfig()
found["int4"] = [int4.group_size, int4.int4_packing_format, default.int4_packing_format]
plain = script.BitsAndBytesConfig(load_in_4bit=True)
found["bitsandbytes"] = [plain.bnb_4bit_quant_type, str(plain.bnb_4bit_compute_dtype)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    printed = recipe_scripts.drive("int8_int4_inference", LOOK, tmp_path_factory.mktemp("quantized"))
    return json.loads(printed.splitlines()[-1])


def page():
    return rules.markdown(rules.read_page(recipe_scripts.COOKBOOK / "int8_int4_inference.ipynb"))


def test_it_runs_as_it_stands(tmp_path):
    done = recipe_scripts.run_as_shown("int8_int4_inference", tmp_path)
    lines = done.stdout.splitlines()
    assert len(lines) >= 3
    for line, (name, bits) in zip(lines, BITS.items(), strict=False):
        assert line.startswith(f"{name:18} {bits:.2f} bits per weight, head torch.bfloat16, ")
        assert line.endswith(": True")


def test_a_missing_folder_is_named_in_one_line(tmp_path):
    done = recipe_scripts.run("int8_int4_inference", tmp_path, "nowhere")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "nowhere is missing: give a model's folder"


@pytest.mark.parametrize("tied", ["tied", "untied"])
@pytest.mark.parametrize("name", BITS)
def test_bits_logits_and_what_is_left_out(found, name, tied):
    model = found[f"{name}, {tied}"]
    assert model["layers"] == 14
    assert model["bits"] == pytest.approx([BITS[name]] * 2, abs=1e-9)
    assert 0 < model["off"] < (0.03 if "int8" in name else 0.25)
    assert model["head"]
    assert model["embeddings"]
    assert model["again"]


def test_the_defaults_are_those_of_the_pitfalls(found):
    assert found["int4"] == [128, "tile_packed_to_4d", "plain"]
    assert found["bitsandbytes"] == ["fp4", "torch.float32"]


def test_the_bytes_of_7b_are_those_of_the_page():
    linear = 32 * (4 * 4096**2 + 3 * 4096 * 11_008)
    wide = 2 * (LLAMA.parameters - linear)  # embeddings, head and norms
    both = [round((linear * (8 + part / 4096) / 8 + wide) / 1e9, 1) for part in (40, 32)]
    assert both == [7.0, 7.0]
    rows = {"bfloat16": 16, "int8": 8 + 40 / 4096, "torchao int4": 4 + 32 / 128, "bitsandbytes NF4": 4.127}
    for name, bits in rows.items():
        (line,) = (line for line in page().splitlines() if line.startswith(f"| {name}") and "GB" in line)
        assert f"| {(linear * bits / 8 + wide) / 1e9:.1f} GB |" in line
    assert f"{BITS['bitsandbytes NF4']:.3f}" in page()
    assert f"at most {8 + 40 / 4096:.2f} bits" in page()


@pytest.mark.gpu
def test_a_gpu_runs_torchaos_int4(tmp_path):
    done = recipe_scripts.run_as_shown("int8_int4_inference", tmp_path)
    assert done.stdout.splitlines()[-1].endswith(": True")
