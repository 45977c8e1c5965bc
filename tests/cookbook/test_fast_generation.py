"""What the recipe of generation promises: the tokens of both caches, and limits that agree with the book's cards."""

import importlib
import re

import pytest
import torch
from transformers.generation import CompileConfig

import book_rules as rules
import recipe_scripts
from utils.cost import token_bytes
from utils.cost.cards import CARDS


@pytest.fixture(scope="module")
def script():
    return recipe_scripts.load("fast_generation")


@pytest.fixture(scope="module")
def model(script):
    return script.make_model()


@pytest.fixture(scope="module")
def page():
    return rules.markdown(rules.read_page(recipe_scripts.COOKBOOK / "fast_generation.ipynb"))


def test_it_runs_as_it_stands(tmp_path):
    done = recipe_scripts.run_as_shown("fast_generation", tmp_path)
    assert "equal tokens: 64 of 64" in done.stdout


def test_no_two_tokens_are_nearly_tied(script, model):
    """So the same tokens come out of any order of the sums."""
    torch.manual_seed(0)
    prompt = torch.randint(512, (1, 32), device=script.device)
    text = script.generate(model, prompt, 16)
    with torch.no_grad():
        best = model(text).logits[0, 31:-1].float().topk(2).values
    assert (best[:, 0] - best[:, 1]).min() > 1e-4 * best.abs().max()


def test_the_bytes_of_a_token_are_those_of_the_book(script, model):
    assert script.bytes_per_token(model) + model.get_input_embeddings().weight[0].nbytes == (
        token_bytes.bytes_per_token(model, context=0).weights - sum(b.nbytes for b in model.buffers())
    )


def test_the_script_knows_the_bandwidths_of_the_book(script):
    boards = [board for card in CARDS.values() for board in card.boards if board.roof]
    for part, bandwidth in script.BANDWIDTH.items():
        (board,) = (board for board in boards if board.device.endswith(part))
        assert bandwidth == board.roof.bandwidth


# bits per weight in the columns of the table; int4 in groups of 32 has a scale and a zero point of 16 bits each
BITS = {"bfloat16": 16, "int8": 8, "int4": 4 + 2 * 16 / 32}


@pytest.fixture(scope="module")
def sizes():
    return {
        name: token_bytes.predict("LLaMA 7B", weight_bits=bits, head_bits=bits).weights for name, bits in BITS.items()
    }


def test_the_table_is_bandwidth_divided_by_bytes(page, sizes):
    columns = " | ".join(f"{name}, {size / 1e9:.1f} GB" for name, size in sizes.items())
    assert f"| card | GB/s | {columns} |" in page
    rows = re.findall(r"^\| ([^|]+), (\d+) GB \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", page, re.MULTILINE)
    assert len(rows) == 7
    for name, memory, bandwidth, *speeds in rows:
        bytes_per_second = 1e9 * CARDS[name].roof(int(memory)).bandwidth
        assert int(bandwidth.replace(",", "")) == CARDS[name].roof(int(memory)).bandwidth
        assert speeds == [f"{bytes_per_second / size:,.0f}" for size in sizes.values()]


def test_the_estimate_is_the_limit_times_the_published_share(page, sizes):
    published = re.search(r"([\d.]+) in bfloat16, ([\d.]+) in int8 and ([\d.]+) in int4", page).groups()
    a100, h100 = CARDS["A100"].roof(80).bandwidth, CARDS["H100"].roof(80).bandwidth
    shares = [float(rate) * size / (1e9 * a100) for rate, size in zip(published, sizes.values(), strict=True)]
    assert (
        "That is {:.0%}, {:.0%} and {:.0%} of the limit".format(*shares).replace("%", "", 2).replace("%", " %") in page
    )
    speeds = [share * 1e9 * h100 / size for share, size in zip(shares, sizes.values(), strict=True)]
    assert "an H100 would generate {:.0f}, {:.0f} and {:.0f} tokens/s: an estimate".format(*speeds) in page


@pytest.mark.parametrize(("cache", "compiled"), [("static", True), ("dynamic", False)])
def test_generate_compiles_with_a_static_cache_alone(script, model, monkeypatch, cache, compiled):
    """The step is not compiled here: what would compile it is asked for, as on a GPU."""
    asked = []
    monkeypatch.setattr(model, "get_compiled_call", lambda config: asked.append(config) or model.__call__)
    monkeypatch.setattr(CompileConfig, "_compile_all_devices", True)
    monkeypatch.setattr(model.generation_config, "compile_config", CompileConfig(), raising=False)
    script.generate(model, torch.ones(1, 4, dtype=torch.long, device=script.device), 3, cache)
    assert bool(asked) == compiled


@pytest.mark.gpu
def test_a_gpu_is_not_faster_than_its_memory(script, model):
    name = torch.cuda.get_device_name()
    limits = [width for part, width in script.BANDWIDTH.items() if name.endswith(part)]
    if not limits:
        pytest.skip(f"the script does not know {name}")
    prompt = torch.randint(512, (1, 32), device=script.device)
    assert 1 / script.seconds_per_token(model, prompt) < 1e9 * limits[0] / script.bytes_per_token(model)


def test_a_tensor_of_codes_and_scales_counts_what_it_stores(script):
    class Quantized:
        nbytes = 200  # what it would take in 16 bits
        codes, scales = torch.zeros(100, dtype=torch.int8), torch.zeros(2)

        def __tensor_flatten__(self):
            return ["codes", "scales"], None

    assert script.stored(Quantized()) == 108
    assert script.stored(torch.zeros(3)) == 12


def test_which_quantized_models_are_compiled():
    def may_compile(name, kind):
        module = importlib.import_module(f"transformers.quantizers.quantizer_{name}")
        return "is_compileable" in vars(getattr(module, kind))  # the base class says no

    assert may_compile("torchao", "TorchAoHfQuantizer")
    for name, kind in (
        ("bnb_8bit", "Bnb8BitHfQuantizer"),
        ("bnb_4bit", "Bnb4BitHfQuantizer"),
        ("gptq", "GptqHfQuantizer"),
        ("awq", "AwqQuantizer"),
    ):
        assert not may_compile(name, kind)
