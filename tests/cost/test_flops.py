"""The formulas give what torch counts."""

import dataclasses

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from small_models import flops_of_products
from utils.cost import flops
from utils.training import batches, training_loop
from utils.training.recipes import find_recipe
from utils.workloads import models

CPU = torch.device("cpu")
SHAPE = models.DistilBertShape(vocabulary=30, width=24, layers=3, heads=3, hidden=40, positions=32)
LLAMA = models.LlamaShape(vocabulary=30, width=24, layers=2, heads=6, groups=3, hidden=40, positions=32)


def counted(model, rows: int, length: int, labels: torch.Tensor) -> tuple[int, int]:
    """What torch counts for one step of training, and the formula."""
    model.set_attn_implementation("eager")
    schedule = training_loop.Schedule(learning_rate=1e-3)
    trainer = training_loop.Trainer(model, recipe=find_recipe("32-true"), device=CPU, schedule=schedule, steps=1)
    ids = torch.randint(5, 30, (rows, length), generator=torch.Generator().manual_seed(0))
    with trainer.recipe.on(CPU), FlopCounterMode(display=False) as counter:
        trainer.step(batches.Batch(ids, torch.ones_like(ids), labels))
    return flops_of_products(counter), flops.count_step_flops(model.config, rows, length)


@pytest.mark.parametrize(("rows", "length"), [(1, 8), (4, 16), (3, 32)])
def test_a_step_of_distilbert_takes_the_operations_that_torch_counts(rows, length):
    found, formula = counted(models.build_distilbert(SHAPE), rows, length, torch.zeros(rows, dtype=torch.long))
    assert formula == found


@pytest.mark.parametrize("groups", [6, 3, 1])
def test_a_step_of_llama_takes_the_operations_that_torch_counts(groups):
    shape = dataclasses.replace(LLAMA, groups=groups)
    found, formula = counted(models.build_llama(shape), 4, 16, torch.zeros(4, 16, dtype=torch.long))
    assert formula == found


def test_another_kind_of_model_is_refused():
    with pytest.raises(ValueError, match="no formula for a gpt2; there is one for distilbert, llama"):
        flops.count_step_flops(type("Config", (), {"model_type": "gpt2"}), 1, 1)
