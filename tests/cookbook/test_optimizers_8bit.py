"""What the recipe for 8-bit optimizers promises: bytes per parameter, losses near float32's, resuming to the bit."""

import json
import re

import pytest

import book_rules as rules
import recipe_scripts

# The script imports torchao, and transformers finds torchao in a process that has it: so its functions run elsewhere.
DRIVER = """
import json, logging, runpy
import bitsandbytes as bnb
import torch
from torch import nn

logging.disable(logging.WARNING)
script = runpy.run_path("{file}")

def step(optimizer, *tensors):
    for w in tensors:
        w.grad = torch.ones_like(w)
    optimizer.step()

answers = {{}}
for name, body in {bodies}.items():
    answers[name] = {{}}
    exec(body, dict(globals(), found=answers[name]))
print(json.dumps(answers))
"""
WIDE, EIGHT, FOUR = 2 * 4, 2 * (1 + 4 / 256), 2 * (1 / 2 + 4 / 128)  # bytes per parameter
FACTS = {
    "small tensors": """
for name in ("bitsandbytes AdamW8bit", "torchao AdamW8bit"):
    tensors = [nn.Parameter(torch.ones(count)) for count in (4095, 4096, 4097)]
    optimizer = script["OPTIMIZERS"][name](tensors)
    step(optimizer, *tensors)
    found[name] = [script["state_bytes"](optimizer.state[w]) / w.numel() < 3 for w in tensors]
norm = nn.Parameter(torch.ones(4096))
optimizer = bnb.optim.AdamW8bit([norm], min_8bit_size=4097)
step(optimizer, norm)
found["min_8bit_size"] = [script["state_bytes"](optimizer.state[norm]) / norm.numel()]
""",
    "manager": """
manager = bnb.optim.GlobalOptimManager.get_instance()
first, seen = nn.Embedding(64, 64), []
manager.register_module_override(first, "weight", {"optim_bits": 32})
step(bnb.optim.AdamW8bit(first.parameters()), first.weight)
for forget in (False, True):
    if forget:
        manager.initialize()
    second = nn.Linear(64, 64, bias=False)
    optimizer = bnb.optim.AdamW8bit(second.parameters())
    step(optimizer, second.weight)
    seen.append(str(optimizer.state[second.weight]["state1"].dtype))
found["seen"] = seen
stable = bnb.nn.StableEmbedding(64, 64)
found["norm"] = isinstance(stable.norm, nn.LayerNorm)
""",
    "rate": """
w = nn.Parameter(torch.ones(4096))
optimizer = script["AdamW8bit"]([w], lr=1e-3)
optimizer.param_groups[0]["lr"].fill_(1e-4)
step(optimizer, w)
found["moved"] = (1 - w).max().item()
optimizer.param_groups[0]["lr"] = 1e-4
try:
    step(optimizer, w)
except RuntimeError as error:
    found["error"] = str(error)
""",
    "codes": """
w = nn.Parameter(torch.ones(4096))
optimizer = script["AdamW4bit"]([w])
step(optimizer, w)
found["codes"] = optimizer.state[w]["exp_avg_sq"].qmap.tolist()
""",
}


def found_by(bodies, folder):
    driver = DRIVER.format(file=recipe_scripts.file_of("optimizers_8bit"), bodies=repr(bodies))
    return json.loads(recipe_scripts.drive("optimizers_8bit", driver, folder))


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """Run all of FACTS in one process: the libraries take seconds to import."""
    return found_by(FACTS, tmp_path_factory.mktemp("facts"))


def test_it_runs_as_it_stands_with_the_bytes_and_losses_of_the_page(tmp_path):
    done = recipe_scripts.run_as_shown("optimizers_8bit", tmp_path)
    heads = re.findall(r"(\w+ \w+): loss ([\d.]+), resumed bit for bit: (\w+)", done.stdout)
    sizes = re.findall(r"bytes per parameter: (.*)", done.stdout)
    loss, size = {}, {}
    for (name, value, same), line in zip(heads, sizes, strict=True):
        assert same == "True", name
        loss[name], words = float(value), line.split()
        size[name] = dict(zip(words[::2], map(float, words[1::2]), strict=True))
    for name in ("bitsandbytes AdamW8bit", "torchao AdamW8bit", "torchao AdamWFp8"):
        if name in loss:
            assert abs(loss[name] - loss["torch AdamW"]) < 0.1
            assert size[name]["2.weight"] == size[name]["4.weight"] == round(EIGHT, 3)
            assert size[name]["0.weight"] == (WIDE if name.startswith("bits") else round(EIGHT, 3))
            assert size[name]["2.bias"] == WIDE
    assert loss["torchao AdamW4bit"] > loss["torch AdamW"] + 1
    assert size["torchao AdamW4bit"]["2.weight"] == pytest.approx(FOUR, abs=6e-4)
    assert set(size["torch AdamW"].values()) == {WIDE}


def test_a_new_process_resumes_to_the_bit_and_without_the_state_it_would_not(tmp_path):
    body = """
name, first, forget = "bitsandbytes AdamW8bit", {first}, lambda self, state: None
for key in ("whole", "resumed", "without state"):
    if key == "whole" and not first:
        continue
    if key == "without state":
        bnb.optim.AdamW8bit.load_state_dict = forget
    model, *_ = script["train"](name, resume=key != "whole")
    found[key] = [w.view(torch.int32).sum(dtype=torch.int64).item() for w in model.parameters()]
"""
    whole = found_by({"run": body.format(first=True)}, tmp_path)["run"]
    again = found_by({"run": body.format(first=False)}, tmp_path)["run"]
    assert whole["whole"] == whole["resumed"] == again["resumed"]
    assert again["without state"] != whole["whole"]


def test_the_table_follows_from_the_blocks():
    page = rules.markdown(rules.read_page(recipe_scripts.COOKBOOK / "optimizers_8bit.ipynb"))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    for (*_, size, billions), wanted in zip(rows[2:], (WIDE, EIGHT, FOUR), strict=True):
        assert float(size.rpartition("= ")[2]) == round(wanted, 2)
        assert float(billions.removesuffix(" GB")) == round(7 * wanted, 1)


def test_both_libraries_leave_small_tensors_and_torchao_those_that_blocks_do_not_divide(facts):
    found = facts["small tensors"]
    assert found.pop("min_8bit_size") == [WIDE]
    assert found == {"bitsandbytes AdamW8bit": [False, True, True], "torchao AdamW8bit": [False, True, False]}


def test_the_manager_hands_a_module_override_to_a_later_model(facts):
    found = facts["manager"]
    assert found == {"seen": ["torch.float32", "torch.uint8"], "norm": True}


def test_a_rate_set_by_hand_raises_in_torchao_and_fill_does_not(facts):
    found = facts["rate"]
    assert found["moved"] == pytest.approx(1e-4 * 1.01, rel=0.01)  # Adam's first step, and a decay of 0.01
    assert "fill_" in found["error"]


def test_the_smallest_code_for_the_second_moment_is_a_sixteenth_in_4_bits(facts):
    found = facts["codes"]
    assert found["codes"] == [number / 16 for number in range(1, 17)]


def test_the_trainer_takes_both_names_and_keeps_embeddings_wide():
    import inspect

    from transformers import trainer, training_args

    names = {name.value for name in training_args.OptimizerNames}
    assert {"adamw_bnb_8bit", "paged_adamw_8bit"} <= names
    source = inspect.getsource(trainer.Trainer.create_optimizer)
    assert 'register_module_override(module, "weight", {"optim_bits": 32})' in source


@pytest.mark.gpu
def test_a_gpu_gives_the_same_bytes_and_resumes(tmp_path):
    test_it_runs_as_it_stands_with_the_bytes_and_losses_of_the_page(tmp_path)


@pytest.mark.gpu
def test_a_paged_optimizer_has_the_same_bytes(tmp_path):
    body = """
w = nn.Parameter(torch.ones(512, 512, device="cuda"))
optimizer = bnb.optim.PagedAdamW8bit([w])
step(optimizer, w)
found["size"] = script["state_bytes"](optimizer.state[w]) / w.numel()
"""
    assert found_by({"paged": body}, tmp_path)["paged"]["size"] == EIGHT
