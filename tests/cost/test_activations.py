"""The formulas give what autograd saves, to the byte."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from small_models import DROPOUTS, LENGTH, SMALL, adapted, batch, config, loss_of, trainer
from utils import measure, records
from utils.cost import activations
from utils.cost.activation_tables import COPIES, TABLES
from utils.cost.architectures import PROJECTIONS, Adapters, Architecture
from utils.training.batches import Batch
from utils.training.recipes import find_recipe
from utils.training.training_loop import Trainer
from utils.workloads import models

CPU = torch.device("cpu")


def saved(t: Trainer, given: Batch) -> int:
    # Without `recipe.on`, whose emulation of 16 bits, where a CPU needs it, rounds SDPA's float32 sums to 16 bits too.
    with measure.SavedBytes(t.model) as found:
        t.loss(given.to(t.device))
    return found.total


@pytest.mark.parametrize("name", ["64-true", "32-true", "16-mixed", "bf16-mixed", "bf16-true"])
@pytest.mark.parametrize("family", SMALL)
def test_the_formula_gives_the_saved_bytes(family, name):
    for dropouts, checkpointing in itertools.product(({}, DROPOUTS), (False, True)):
        if family == "llama" and dropouts:
            dropouts = {"attention_dropout": 0.1}
        a = replace(SMALL[family], **dropouts)
        t = trainer(a, name, checkpointing=checkpointing)
        for attention, padded, rows in itertools.product(activations.ATTENTIONS, (True, False), (1, 2)):
            t.model.set_attn_implementation(attention)
            how = {"batch": rows, "attention": attention, "checkpointing": checkpointing, "padded": padded}
            found = saved(t, batch(a, rows, padded=padded))
            assert activations.count_saved_bytes(a, t.recipe, length=LENGTH, device="cpu", **how) == found, (
                how,
                dropouts,
            )


def test_keys_that_heads_share_and_keys_of_their_own_are_both_counted():
    for groups in (1, 3, 6):
        a = replace(SMALL["llama"], groups=groups, tied=groups == 1)
        t = trainer(a, "bf16-mixed")
        for attention, padded in itertools.product(activations.ATTENTIONS, (True, False)):
            t.model.set_attn_implementation(attention)
            how = {"batch": 2, "attention": attention, "padded": padded}
            found = saved(t, batch(a, padded=padded))
            assert activations.count_saved_bytes(a, t.recipe, length=LENGTH, device="cpu", **how) == found, (
                groups,
                how,
            )


def saved_beside(model, recipe, given: Batch) -> int:
    with measure.SavedBytes(model) as found:
        loss_of(model, recipe, given)
    return found.total


HALF = {"llama": ("q_proj", "v_proj"), "gpt2": ("attn.c_attn",)}  # as in the paper of LoRA


@pytest.mark.parametrize("nf4", [False, True], ids=["lora", "qlora"])
@pytest.mark.parametrize("name", ["32-true", "16-mixed", "bf16-mixed", "bf16-true"])
@pytest.mark.parametrize("family", HALF)
def test_the_formula_gives_what_frozen_weights_and_adapters_save(family, name, nf4):
    """Frozen weights in 16 bits stand for NF4, which is widened to them: autograd keeps neither."""
    recipe = find_recipe(name)
    for names, dropouts, checkpointing in itertools.product(((), HALF[family]), ({}, DROPOUTS), (False, True)):
        if family == "llama":
            dropouts = {"attention_dropout": 0.1} if dropouts and not names else {}
        a, adapters = replace(SMALL[family], **dropouts), Adapters(5, nf4=nf4, projections=names)
        model = adapted(a, recipe, rank=5, names=names, shared=nf4)
        if checkpointing:
            models.checkpoint_blocks(model)
        for attention, padded, rows in itertools.product(activations.ATTENTIONS, (True, False), (1, 2)):
            if names == HALF["llama"] and attention == "eager":
                continue  # the keys of the first block have no gradient, so its queries are not kept
            model.set_attn_implementation(attention)
            how = {"batch": rows, "attention": attention, "checkpointing": checkpointing, "padded": padded}
            found = saved_beside(model, recipe, batch(a, rows, padded=padded))
            how |= {"length": LENGTH, "device": "cpu", "adapters": adapters}
            assert activations.count_saved_bytes(a, recipe, **how) == found, (how, dropouts)


@pytest.mark.parametrize("name", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("family", HALF)
def test_peft_saves_what_the_formula_says(family, name):
    peft = pytest.importorskip("peft")
    recipe, a, rank = find_recipe(name), SMALL[family], 5
    model = AutoModelForCausalLM.from_config(config(a)).to(recipe.arithmetic)
    model.set_attn_implementation("sdpa")
    settings = peft.LoraConfig(r=rank, target_modules=list(PROJECTIONS[family]))
    model = peft.get_peft_model(model, settings).train()
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    assert {weight.dtype for weight in trained} == {torch.float32}
    assert [weight.numel() for weight in trained] == list(Adapters(rank).weights(a))
    how = {"batch": 2, "length": LENGTH, "attention": "sdpa", "adapters": Adapters(rank)}
    assert activations.count_saved_bytes(a, recipe, **how) == saved_beside(model, recipe, batch(a))


def test_frozen_weights_save_less_and_no_copies_of_themselves():
    how = {"batch": 2, "length": 64, "attention": "sdpa", "device": "cuda"}
    a, recipe = SMALL["llama"], find_recipe("bf16-mixed")
    whole, lora, qlora = (
        activations.list_terms(a, recipe, **how, adapters=adapters)
        for adapters in (None, Adapters(4), Adapters(4, nf4=True))
    )
    totals = [sum(term.bytes for term in terms) for terms in (whole, lora, qlora)]
    assert totals == sorted(totals, reverse=True)
    copies = sum(term.bytes for term in lora if term.row.what == COPIES)
    first = 4 * 3 * a.width  # A of queries, keys and values in the first block
    assert copies == 2 * (Adapters(4).parameters(a) - first)


@pytest.mark.parametrize(
    ("name", "attention", "megabytes"),
    [
        ("32-true", "eager", 140.3),
        ("bf16-mixed", "eager", 85.3),
        ("bf16-true", "eager", 70.2),
        ("32-true", "sdpa", 140.3),  # a CPU has no fused kernel with dropout
        ("bf16-mixed", "sdpa", 108.9),
        ("bf16-true", "sdpa", 93.8),
    ],
)
def test_a_larger_model_gives_what_was_measured_of_it(name, attention, megabytes):
    a = Architecture("distilbert", 512, 128, 4, 4, 4, 512, 64, **DROPOUTS)
    found = activations.count_saved_bytes(
        a, find_recipe(name), batch=64, length=48, attention=attention, padded=False, device="cpu"
    )
    assert found / 1e6 == pytest.approx(megabytes, abs=0.06)


RESULTS = Path(__file__).resolve().parents[2] / "book" / "results"
RUNS = re.compile("^(watched-)?(distilbert|llama)(?!.*fp8)")  # the runs that train; FP8 has no formula
RECORDED = sorted(path for path in RESULTS.glob("*-seed0.json") if RUNS.match(path.name))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_run_saved_what_the_formula_says(path):
    record = records.load(path)
    settings, shape = record.settings, dict(record.settings["shape"])
    shape.pop("spread")
    shape = {"groups": shape["heads"], "attention_dropout": shape.get("dropout", 0.0)} | shape
    family = "llama" if "llama" in record.experiment else "distilbert"
    found = activations.count_saved_bytes(
        Architecture(family, **shape),
        find_recipe(record.recipe),
        batch=settings["batch"],
        length=settings.get("max_length") or settings["length"],
        device=record.device["kind"],
    )
    assert found == record.results["memory"]["saved_activations"]


def test_mixed_precision_saves_about_half_and_copies_of_the_weights():
    a = SMALL["llama"]
    terms = activations.list_terms(a, find_recipe("bf16-mixed"), batch=2, length=LENGTH)
    matrices = [size for size in a.weights() if size > a.vocabulary]
    copies = sum(term.bytes for term in terms if term.row.what == COPIES)
    assert copies == 2 * (sum(matrices) - a.vocabulary * a.width)  # of all but the embeddings
    assert sum(term.tensors for term in terms if term.row.what == COPIES) == len(matrices) - 1
    large = {"batch": 32, "length": 512, "attention": "sdpa"}
    whole = activations.count_saved_bytes(a, find_recipe("32-true"), **large)
    assert 0.5 < activations.count_saved_bytes(a, find_recipe("bf16-mixed"), **large) / whole < 0.95
    assert activations.count_saved_bytes(a, find_recipe("bf16-true"), **large) < activations.count_saved_bytes(
        a, find_recipe("bf16-mixed"), **large
    )


def test_eager_attention_makes_mixed_precision_save_more_than_float32_for_long_texts():
    a = SMALL["llama"]  # softmax in float32, and its copy in 16 bits for the product with the values
    short, long = (
        [activations.count_saved_bytes(a, find_recipe(name), batch=32, length=n) for name in ("32-true", "bf16-mixed")]
        for n in (8, 512)
    )
    assert short[0] > short[1]
    assert long[0] < long[1]


def test_the_square_of_the_length_goes_where_one_kernel_computes_attention():
    a, how = SMALL["gpt2"], {"batch": 2, "padded": False}
    eager = [activations.count_saved_bytes(a, find_recipe("32-true"), length=n, **how) for n in (64, 128, 256)]
    fused = [
        activations.count_saved_bytes(a, find_recipe("32-true"), length=n, attention="sdpa", **how)
        for n in (64, 128, 256)
    ]
    assert eager[2] - 2 * eager[1] > 4 * (eager[1] - 2 * eager[0]) > 0
    assert fused[2] - 2 * fused[1] == fused[1] - 2 * fused[0] < 0  # linear, with a constant


def test_dropout_masks_are_numbers_on_a_cpu_and_bools_on_a_gpu():
    a = SMALL["distilbert"]
    sizes = {}
    for device in activations.DEVICES:
        how = {"batch": 2, "length": LENGTH, "device": device}
        dry = activations.count_saved_bytes(a, find_recipe("32-true"), **how)
        terms = activations.list_terms(replace(a, **DROPOUTS), find_recipe("32-true"), **how)
        sizes[device] = sum(term.bytes for term in terms if term.row.what.startswith("dropout mask"))
        assert sum(term.bytes for term in terms) > dry
    assert sizes["cpu"] == 4 * sizes["cuda"] > 0


@pytest.mark.parametrize("family", SMALL)
def test_without_dropout_a_gpu_saves_what_a_cpu_saves_with_eager_attention(family):
    for name in ("32-true", "bf16-mixed"):
        on = [
            activations.count_saved_bytes(SMALL[family], find_recipe(name), batch=2, length=LENGTH, device=device)
            for device in activations.DEVICES
        ]
        # GPT-2's GELU raises to a power, which autocast does in float32 on CUDA alone.
        assert (on[0] == on[1]) is not (family == "gpt2" and name == "bf16-mixed"), (name, on)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["32-true", "16-mixed", "bf16-mixed", "bf16-true"])
@pytest.mark.parametrize("family", SMALL)
def test_the_formula_gives_what_a_gpu_saves_with_eager_attention(family, name):
    device = torch.device("cuda")
    for dropouts, checkpointing, rows in itertools.product(({}, DROPOUTS), (False, True), (1, 2)):
        a = replace(SMALL[family], **dropouts) if family != "llama" else SMALL[family]
        t = trainer(a, name, checkpointing=checkpointing, device=device)
        t.model.set_attn_implementation("eager")
        how = {"batch": rows, "checkpointing": checkpointing}
        found = saved(t, batch(a, rows))
        assert activations.count_saved_bytes(a, t.recipe, length=LENGTH, device="cuda", **how) == found, (how, dropouts)


def test_an_attention_or_a_device_without_a_formula_is_refused():
    for how in ({"attention": "flash_attention_2"}, {"device": "meta"}):
        with pytest.raises(ValueError, match="no formula for attention"):
            activations.count_saved_bytes(SMALL["gpt2"], find_recipe("32-true"), batch=1, length=4, **how)


def test_every_row_asks_for_conditions_and_sizes_that_there_are():
    known = set(SMALL["llama"].dimensions) | set("BSR")
    held = set()
    for padded, device, name, rows, attention in itertools.product(
        (True, False), activations.DEVICES, ("32-true", "bf16-true", "bf16-mixed"), (1, 2), activations.ATTENTIONS
    ):
        how = {"attention": attention, "checkpointing": False, "padded": padded, "device": device}
        held |= activations.conditions(replace(SMALL["gpt2"], **DROPOUTS), find_recipe(name), batch=rows, **how)
        for family, nf4 in itertools.product(HALF, (False, True)):
            how["adapters"] = Adapters(nf4=nf4)
            held |= activations.conditions(SMALL[family], find_recipe(name), batch=rows, **how)
    for table in TABLES.values():
        for row in (*table.once, *table.layer, *table.checkpointed, *table.mask):
            assert set(row.size) <= known, row
            assert {part for word in row.when.split() for part in word.split("|")} <= held, row
            assert row.dtype in activations.itemsizes(find_recipe("32-true")), row
