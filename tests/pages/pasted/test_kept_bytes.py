"""The script that opens `hardware/memory`, as a reader changes it for a mixture of experts."""

import pytest
import torch

import book_rules as rules

PAGE = rules.BOOK / "hardware" / "memory.ipynb"
SIZES = "hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2"
WIDE = {
    "LlamaConfig()": f"MixtralConfig({SIZES}, vocab_size=100)",
    "LlamaForCausalLM": "MixtralForCausalLM",
    "2048": "32",
}
NARROW = {
    "config = ": "torch.set_default_dtype(torch.bfloat16)\nconfig = ",
    ', torch.autocast("cpu", torch.bfloat16)': "",
}


@pytest.fixture(autouse=True)
def usual_dtype():
    yield
    torch.set_default_dtype(torch.float32)


def run(changes):
    source = next(cell.source for cell in rules.read_page(PAGE) if cell.kind == "code")
    for old, new in changes.items():
        assert old in source
        source = source.replace(old, new)
    names = {"__name__": "pasted"}
    exec(compile(source, "pasted.py", "exec"), names)
    return names["parts"]


def test_a_mixture_of_experts_is_counted_with_bfloat16_weights():
    parts = run(WIDE | NARROW)
    assert parts["gradients"] == parts["weights"] == parts["Adam's moments"] / 2
    assert parts["kept for backward, torch.bfloat16"] > 0


def test_a_mixture_of_experts_is_not_counted_under_autocast():
    """When this fails, the page's sentence about mixtures of experts can go."""
    with pytest.raises(RuntimeError, match="BF16"):
        run(WIDE)
