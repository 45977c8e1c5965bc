"""The compiled way to generate, on a GPU. No record rests on it, and it takes a compiler and a minute."""

import pytest
import torch

from utils.workloads import models
from utils.workloads.generation import generate
from utils.workloads.models import LlamaShape

SHAPE = LlamaShape(width=64, heads=4, groups=2, hidden=128, layers=2, positions=32, vocabulary=64)


@pytest.mark.gpu
def test_the_compiled_way_writes_the_same_tokens_on_a_gpu():
    model = models.build_llama(SHAPE, seed=1)
    prompt = torch.arange(4)[None]
    expected = generate(model, prompt, tokens=12)
    assert torch.equal(generate(model.cuda(), prompt.cuda(), tokens=12, way="compiled").cpu(), expected)
