"""What the LoRA recipe promises: only adapters train, they load to the bit, and the bytes are those on the page."""

import json
import re

import pytest

import book_rules as rules
import recipe_scripts
from utils.cost import memory
from utils.cost.architectures import NAMED, Adapters
from utils.cost.decide import decide

LLAMA = NAMED["LLaMA 7B"]
# peft imports torchao where it is installed, so the script is loaded in a process of its own
LOOK = """
import json, os, sys, weakref
import torch
sys.path.insert(0, os.getcwd())
import train_lora as script
from peft import PeftModel, prepare_model_for_kbit_training

torch.manual_seed(0)
script.STEPS = 4
script.make_folder("tiny-model")
rows = list(script.make_data("tiny-model"))
batch = script.make_batch(rows[:4])
found = {"rows": [[row.tolist() for row in pair] for pair in rows[:1]]}
found["labels"] = batch["labels"].tolist()

def bits(model):
    return {name.replace("base_model.model.", "").replace("base_layer.", ""): value.clone()
            for name, value in model.state_dict().items() if "lora_" not in name}

def off(model, y):
    return float((model(**batch).logits - y).norm() / y.norm())

for method in ("lora", "qlora"):
    base = script.load_base("tiny-model", method)
    before, one = bits(base), base.model.layers[0].mlp.up_proj.weight
    if method == "qlora":
        state = one.quant_state
        parts = one.nbytes + state.absmax.nbytes + state.state2.absmax.nbytes
        found["nf4"] = dict(weights=64 * 128, bytes=parts, kind=state.quant_type, compute=str(state.dtype))
        found["kept"] = [str(layer.weight.dtype) for layer in (base.lm_head, base.model.embed_tokens)]
    model = script.train("tiny-model", method, rows)
    names = [name for name, weight in model.named_parameters() if weight.requires_grad]
    after = bits(model)
    model.save_pretrained("adapters")
    y = model(**batch).logits.detach()
    again = PeftModel.from_pretrained(script.load_base("tiny-model", method), "adapters")
    short = script.make_batch(rows[:1])  # without padding
    width = short["input_ids"].shape[1]
    alone = again(**short).logits[0]
    dtypes = {weight.dtype for weight in model.parameters() if weight.requires_grad}
    base = script.load_base("tiny-model", method)
    base = base.dequantize() if method == "qlora" else base
    found[method] = dict(
        only_adapters=all("lora_" in name for name in names),
        trained=sum(w.numel() for w in model.parameters() if w.requires_grad),
        moved=any(bool(w.any()) for n, w in model.named_parameters() if "lora_B" in n),
        dtypes=[str(dtype) for dtype in dtypes],
        unchanged=all(torch.equal(after[name], value) for name, value in before.items()),
        same=off(again, y),
        padding=float((alone - y[0, :width]).norm() / alone.norm()),
        file=os.path.getsize("adapters/adapter_model.safetensors"),
        merged=off(PeftModel.from_pretrained(base, "adapters").merge_and_unload(), y),
        original=off(PeftModel.from_pretrained(script.load_base("tiny-model", "lora"), "adapters")
                     .merge_and_unload(), y),
        again=off(again.merge_and_unload(), y),
    )
    alive = weakref.ref(model)
    del model
    found[method]["freed"] = alive() is None
base = prepare_model_for_kbit_training(script.load_base("tiny-model", "qlora"))
layers = base.lm_head, base.model.embed_tokens, base.model.norm
found["prepared"] = [str(layer.weight.dtype) for layer in layers]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    printed = recipe_scripts.drive("lora", LOOK, tmp_path_factory.mktemp("lora"))
    return json.loads(printed.splitlines()[-1])


def page():
    return rules.markdown(rules.read_page(recipe_scripts.COOKBOOK / "lora.ipynb"))


def row(name):
    """Return the numbers of a row of the page's table."""
    (line,) = (line for line in page().splitlines() if line.startswith(f"| {name}"))
    return [float(cell.split()[0]) for cell in line.strip("| ").split("|")[1:]]


def tiny():
    """Return the numbers that are trained in the script's model: 16 for each input and output of a layer."""
    return 16 * 2 * (4 * (64 + 64) + 3 * (64 + 128))


def test_it_runs_as_it_stands(tmp_path):
    done = recipe_scripts.run_as_shown("lora", tmp_path)
    assert f"trainable params: {tiny():,} " in done.stdout
    assert done.stdout.splitlines()[-1] == "merged, logits off by less than 2%: True"
    assert (tmp_path / "merged" / "model.safetensors").exists()


def test_a_missing_folder_is_named_in_one_line(tmp_path):
    done = recipe_scripts.run("lora", tmp_path, "nowhere")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "nowhere is missing: give a model's folder"


@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_only_the_adapters_are_trained_and_in_float32(found, method):
    assert found[method]["only_adapters"]
    assert found[method]["trained"] == tiny()
    assert found[method]["moved"]
    assert found[method]["dtypes"] == ["torch.float32"]
    assert found[method]["unchanged"]  # every frozen tensor, to the bit


@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_saved_adapters_give_the_same_logits(found, method):
    # on some processors bitsandbytes takes another kernel for a model that was loaded than for the one that was trained
    assert found[method]["same"] <= {"lora": 0.0, "qlora": 0.01}[method]
    assert 4 * tiny() < found[method]["file"] < 4 * tiny() + 8_192  # float32 and a header
    assert found[method]["freed"]  # so that the next model has room


def test_labels_leave_out_prompts_and_padding(found):
    ((ids, labels),) = found["rows"]
    assert len(ids) == len(labels)
    answer = [token for token in labels if token != -100]
    assert ids[-len(answer) :] == answer  # "0" and the end of the text
    assert len(answer) == 2
    assert found["labels"][0][: len(labels)] == labels
    assert set(found["labels"][0][len(labels) :]) <= {-100}


@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_padding_on_the_right_leaves_the_logits(found, method):
    assert found[method]["padding"] < 0.02  # sums in another order, in bfloat16


def test_merging_moves_the_logits_by_a_rounding_only_beside_the_weights_of_training(found):
    assert 0 < found["lora"]["merged"] < 0.02
    right = found["qlora"]["merged"]
    assert right < 0.02
    assert found["qlora"]["original"] > 3 * right
    assert found["qlora"]["again"] > 3 * right


def test_a_weight_in_nf4_takes_as_many_bits_as_the_page_says(found):
    nf4 = found["nf4"]
    assert nf4["kind"] == "nf4"
    # 4 bits a code, 8 for each 64 weights; 8,192 weights have their float32 for themselves, larger layers share
    assert 8 * nf4["bytes"] == nf4["weights"] * (4 + 8 / 64) + 32
    assert f"{4 + 8 / 64 + 32 / 16_384:.3f} bits" in page()
    assert found["kept"] == ["torch.bfloat16"] * 2
    assert found["prepared"] == ["torch.float32"] * 3


def test_the_table_agrees_with_the_ledger():
    narrow = {"attention": "sdpa", "checkpointing": True, "length": 2048}
    recipes = {"lora": "bf16-mixed", "qlora": "16-mixed"}
    ledgers = [memory.predict(LLAMA, recipe, method=method, **narrow) for method, recipe in recipes.items()]
    adapters = Adapters(16).parameters(LLAMA)
    assert f"{adapters:,}" in page()
    assert row("frozen weights") == [round((ledger.weights - 4 * adapters) / 1e9, 1) for ledger in ledgers]
    assert row("adapters") == [round(16 * adapters / 1e9, 1)] * 2
    assert row("activations") == [round(ledger.activations / 1e9, 1) for ledger in ledgers]
    assert row("gradients of the logits") == [round(ledger.logits / 1e9, 1) for ledger in ledgers]
    texts = int(re.search(r"STEPS, SIZE, .* = \d+, (\d+), 2048", recipe_scripts.script_of("lora"))[1])
    assert row("total") == [
        round((ledger.total + (texts - 1) * (ledger.activations + ledger.logits)) / 1e9, 1) for ledger in ledgers
    ]
    wide = 2 * LLAMA.parameters  # all weights in 16 bits; the layers in NF4 are freed after the last one is widened
    narrow = ledgers[1].weights - 4 * adapters - 2 * 2 * 32_000 * 4096
    assert row("merging") == [round(wide / 1e9, 1), round((wide + narrow) / 1e9, 1)]
    assert f"{4 * adapters / 1e6:.0f} MB" in page()
    assert f"about {16 * LLAMA.parameters / 1e9:.0f} GB" in page()
    whole = decide("H100", "fine_tune", "LLaMA 7B")
    assert [pulled.lever for pulled in whole.taken] == ["checkpointing", "8-bit Adam"]
    assert f"[{whole.total / 1e9:.1f} GB]" in page()
    widened = 2 * (2 * 32_000 * 4096 + 65 * 4096)
    assert f"{widened / 1e9:.1f} GB more" in page()


@pytest.mark.gpu
def test_a_gpu_trains_both_ways(tmp_path):
    for method in ("lora", "qlora"):
        done = recipe_scripts.run("lora", tmp_path, "tiny-model", method)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "merged, logits off by less than 2%: True"
