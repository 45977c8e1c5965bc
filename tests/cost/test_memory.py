"""The ledger that is predicted is the one that is measured, and the numbers of ZeRO's paper come out of it."""

import json
from dataclasses import asdict, replace
from math import prod

import pytest
import torch
from torch import nn

from small_models import DROPOUTS, LENGTH, SMALL, adapted, batch, loss_of, trainer
from utils import measure
from utils.cost import architectures, memory
from utils.cost.live_bytes import LiveBytes
from utils.cost.memory import Ledger
from utils.training.eight_bit_moments import Blockwise
from utils.training.optimizers import AdamW
from utils.training.recipes import RECIPES, find_recipe

TYPICAL = replace(SMALL["distilbert"], **DROPOUTS)


def stepped(a, name: str, **how):
    t = trainer(a, name, **how)
    t.model.set_attn_implementation("eager")
    with t.recipe.on(t.device):
        t.step(batch(a))
    return t


@pytest.mark.parametrize("family", SMALL)
@pytest.mark.parametrize("name", RECIPES)
def test_the_prediction_is_what_is_measured(name, family):
    t = stepped(SMALL[family], name)
    ledger = memory.measure_ledger(t, batch(SMALL[family]))
    assert ledger == memory.predict(t.model, name, batch=2, length=LENGTH)
    assert ledger == memory.predict(SMALL[family], t.recipe, batch=2, length=LENGTH, device="cpu")
    assert ledger == memory.of_tensors(t.model, t.optimizer, lambda: t.loss(batch(SMALL[family])))


def test_a_module_says_by_itself_how_it_attends_and_whether_it_checkpoints():
    for attention, checkpointing in (("sdpa", False), ("eager", True)):
        t = stepped(TYPICAL, "bf16-mixed", checkpointing=checkpointing)
        t.model.set_attn_implementation(attention)
        found = memory.predict(t.model, "bf16-mixed", batch=2, length=LENGTH)
        assert found == memory.measure_ledger(t, batch(TYPICAL))
        how = {"batch": 2, "length": LENGTH, "attention": attention, "checkpointing": checkpointing}
        assert found == memory.predict(TYPICAL, "bf16-mixed", device="cpu", **how)
    how = {"batch": 2, "length": LENGTH, "padded": False}
    t.model.set_attn_implementation("sdpa")
    assert memory.predict(t.model, "bf16-mixed", **how) == memory.measure_ledger(t, batch(TYPICAL, padded=False))


def with_optimizer(precision: str, build) -> tuple[Ledger, nn.Module]:
    a = replace(TYPICAL, width=60, hidden=200)  # some tensors above the 4,096 values from which moments have 8 bits
    t = trainer(a, precision)
    t.optimizer = build(list(t.model.parameters()))
    t.loss(batch(a)).backward()
    t.optimizer.step()
    return memory.measure_ledger(t, batch(a)), t.model


@pytest.mark.parametrize(("name", "momentum"), [("sgd-momentum", 0.9), ("sgd", 0.0)])
@pytest.mark.parametrize("precision", ["32-true", "bf16-true"])
def test_gradient_descent_is_predicted_as_measured(precision, name, momentum):
    found, model = with_optimizer(precision, lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=momentum))
    assert found == memory.predict(model, precision, optimizer=name, batch=2, length=LENGTH)


@pytest.mark.parametrize("precision", ["32-true", "bf16-true"])
def test_moments_of_eight_bits_are_predicted_as_measured(precision):
    found, model = with_optimizer(precision, lambda weights: AdamW(weights, state_dtype=Blockwise()))
    assert found == memory.predict(model, precision, optimizer="adamw-8bit", batch=2, length=LENGTH)


class Keeping(torch.autograd.Function):
    """An operation on the weight that saves a tensor of our choice for its backward pass."""

    @staticmethod
    def forward(ctx, weight, kept):
        ctx.save_for_backward(kept)
        return weight.sum()


@pytest.mark.parametrize(
    ("kept", "casts"),
    [
        pytest.param(lambda weight: weight.bfloat16(), 12, id="a cast"),
        pytest.param(lambda weight: weight.bfloat16().t().contiguous(), 12, id="a cast, transposed"),
        pytest.param(lambda weight: weight.bfloat16() + 1, 0, id="other values"),
        pytest.param(lambda weight: weight.clone(), 0, id="the same dtype"),
        pytest.param(lambda weight: weight.to(torch.float8_e4m3fn), 0, id="FP8"),
        pytest.param(lambda weight: weight.bfloat16().flatten(), 0, id="a vector"),
        pytest.param(lambda weight: weight.bfloat16()[:1], 0, id="a part"),
    ],
)
def test_a_cast_is_a_matrix_of_the_weights_in_16_bits(kept, casts):
    layer = nn.Linear(3, 2, bias=False)
    tensor = kept(layer.weight.detach())
    optimizer = torch.optim.SGD(layer.parameters())
    ledger = memory.of_tensors(layer, optimizer, lambda: Keeping.apply(layer.weight, tensor))
    assert ledger.casts == casts
    assert ledger.activations == tensor.untyped_storage().nbytes()


def test_measuring_changes_no_weight_and_draws_no_number():
    t = stepped(TYPICAL, "32-true")
    before = [weight.detach().clone() for weight in t.model.parameters()]
    state = torch.get_rng_state()
    memory.measure_ledger(t, batch(TYPICAL))
    assert torch.equal(state, torch.get_rng_state())
    assert all(map(torch.equal, before, t.model.parameters()))


@pytest.mark.parametrize("name", ["32-true", "bf16-mixed", "bf16-true", "bf16-true-master"])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_adapters_are_predicted_as_measured(family, name):
    """Weights, gradients, moments and saved tensors after a step of LoRA, and all but the weights those of QLoRA."""
    recipe, model = find_recipe(name), adapted(SMALL[family], find_recipe(name), rank=5)
    model.set_attn_implementation("sdpa")
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = recipe.adamw(trained, torch.device("cpu"), lr=1e-3)
    loss_of(model, recipe, batch(SMALL[family])).backward()
    optimizer.step()
    ledger = memory.of_tensors(model, optimizer, lambda: loss_of(model, recipe, batch(SMALL[family])))
    how = {"batch": 2, "length": LENGTH, "attention": "sdpa", "device": "cpu", "rank": 5}
    assert ledger == memory.predict(SMALL[family], name, method="lora", **how)
    four = memory.predict(SMALL[family], name, method="qlora", **how)
    assert (four.gradients, four.optimizer, four.parameters) == (ledger.gradients, ledger.optimizer, ledger.parameters)
    assert four.weights < ledger.weights


def test_lora_and_qlora_of_a_7b_model():
    """40 million trained numbers of 6.74 billion; the frozen ones in 2 bytes, or in NF4 but for embeddings and head."""
    how = {"length": 2_048, "attention": "sdpa", "checkpointing": True}
    lora, qlora = (memory.predict("LLaMA 7B", "bf16-mixed", method=method, **how) for method in ("lora", "qlora"))
    assert lora.parameters - 6_738_415_616 == 39_976_960
    assert lora.weights == 2 * 6_738_415_616 + 4 * 39_976_960
    assert [round(ledger.total / 1e9, 2) for ledger in (lora, qlora)] == [15.47, 5.86]
    assert (lora.gradients, lora.master) == (4 * 39_976_960, 0)
    assert lora.activations == qlora.activations
    assert lora.logits == qlora.logits == 2 * 4 * 2_048 * 32_000


def test_before_the_first_step_there_are_neither_gradients_nor_moments():
    ledger = memory.measure_ledger(trainer(TYPICAL, "bf16-true-master"), batch(TYPICAL))
    assert (ledger.gradients, ledger.optimizer, ledger.master) == (0, 0, 0)
    assert ledger.weights == 2 * TYPICAL.parameters


def test_the_sums_are_those_of_their_parts():
    ledger = Ledger(weights=1, master=2, gradients=4, optimizer=8, activations=64, casts=32, parameters=5, logits=128)
    assert ledger.at_rest == 11
    assert ledger.total == 207  # the casts are activations
    assert ledger.per_parameter == 3


@pytest.mark.parametrize(
    ("name", "each"),
    [
        ("64-true", 32),
        ("32-true", 16),
        ("16-mixed", 16),
        ("bf16-mixed", 16),
        ("16-true", 8),
        ("16-true-moments", 12),
        ("bf16-true-master", 16),
        ("bf16-true-kahan", 10),
        ("bf16-true-stochastic", 8),
    ],
)
def test_a_recipe_takes_so_many_bytes_a_parameter(name, each):
    ledger = memory.predict("LLaMA 7B", name, batch=0)
    assert ledger.per_parameter == pytest.approx(each, abs=1e-6)  # torch's AdamW has its step counters besides
    assert (ledger.activations, ledger.casts) == (0, 0)


def test_eight_bits_take_a_little_over_two_bytes_a_parameter():
    ledger = memory.predict("LLaMA 7B", "32-true", optimizer="adamw-8bit", batch=0)
    assert ledger.optimizer / ledger.parameters == pytest.approx(2 * (1 + 4 / 256), rel=1e-3)


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_zero_gives_what_its_paper_says(stage, gigabytes):
    # Figure 1 of arXiv 1910.02054: 7.5 billion parameters on 64 processes.
    whole = Ledger(
        15_000_000_000,
        30_000_000_000,
        15_000_000_000,
        60_000_000_000,
        activations=0,
        casts=0,
        parameters=7_500_000_000,
    )
    assert whole.sharded(64, stage=stage).total / 1e9 == pytest.approx(gigabytes, abs=0.05)


@pytest.mark.parametrize("stage", memory.STAGES)
def test_one_process_has_nothing_to_divide(stage):
    how = {"batch": 2, "length": 64}
    alone = memory.predict("GPT-2", "bf16-mixed", **how, shards=1, stage=stage)
    assert alone == memory.predict("GPT-2", "bf16-mixed", **how)
    assert alone.casts > 0


def test_shards_divide_what_their_stage_divides_and_round_up():
    whole = memory.predict("GPT-2", "bf16-mixed", batch=2, length=64)
    for stage, divided in enumerate([[], ["master", "optimizer"], ["gradients"], ["weights"]]):
        part = memory.predict("GPT-2", "bf16-mixed", batch=2, length=64, shards=7, stage=stage)
        for name in divided:
            assert getattr(part, name) == -(-getattr(whole, name) // 7)
        assert (part.gradients == whole.gradients) is (stage < 2)
        assert (part.weights == whole.weights) is (stage < 3)
        assert part.activations == whole.activations - (whole.casts if stage == 3 else 0)
        assert part.parameters == whole.parameters
        assert part.logits == whole.logits > 0
    assert whole.sharded(1, stage=2) == whole


def test_accumulation_keeps_the_activations_of_one_part():
    how = {"length": 64, "attention": "sdpa"}
    parts = memory.predict("GPT-2", "bf16-mixed", batch=8, accumulate=3, **how)
    assert parts == memory.predict("GPT-2", "bf16-mixed", batch=3, **how)


@pytest.mark.parametrize("optimizer", ["adamw", "adamw-8bit"])
def test_parts_with_checkpointing_count_the_copies_in_autocasts_cache(optimizer):
    """They are alive at the loss of the second part, when the gradients of the first are there."""
    how = {"length": 64, "attention": "sdpa", "optimizer": optimizer}
    plain, again, parts = (
        memory.predict("LLaMA 7B", "bf16-mixed", batch=4 * n, accumulate=n, checkpointing=on, **how)
        for n, on in ((1, False), (1, True), (2, True))
    )
    assert parts.casts == plain.casts > 50 * again.casts
    assert replace(parts, activations=again.activations, casts=again.casts) == again
    assert parts.total - again.total == plain.casts - again.casts
    how |= {"checkpointing": True, "cached": False}
    assert memory.predict("LLaMA 7B", "bf16-mixed", batch=8, accumulate=2, **how) == again


def test_checkpointing_keeps_a_fraction_of_the_activations_and_nothing_else():
    plain, ours = (memory.predict("LLaMA 7B", "bf16-true", batch=4, length=512, checkpointing=on) for on in (0, 1))
    assert ours.activations < plain.activations / 10
    assert replace(plain, activations=ours.activations) == ours


def peak_of(trainer, batches) -> int:
    """The most bytes of tensors at once while gradients of these batches are added up."""
    trainer.optimizer.zero_grad()
    with LiveBytes([*trainer.model.parameters(), *measure.optimizer_tensors(trainer.optimizer)]) as live:
        for given in batches:
            trainer.loss(given).backward()
    return live.peak


@pytest.mark.parametrize("name", ["32-true", "bf16-mixed", "bf16-true"])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_with_many_words_a_step_peaks_where_the_loss_ends(family, name):
    """The end of the loss is the peak, and a second part of the batch finds the gradients of the first: the total."""
    a, rows = replace(SMALL[family], vocabulary=20_000), 32  # more tokens than the model is wide
    t = stepped(a, name)
    ledger = memory.predict(t.model, name, batch=rows, length=LENGTH)
    assert ledger.logits == 2 * 4 * rows * LENGTH * 20_000
    peaks = [peak_of(t, parts * [batch(a, rows)]) for parts in (1, 2)]
    assert peaks[0] == pytest.approx(ledger.total - ledger.gradients, rel=2e-3)
    assert peaks[1] == pytest.approx(ledger.total, rel=2e-3)


@pytest.mark.parametrize("name", ["32-true", "bf16-mixed", "bf16-true"])
def test_a_second_part_with_checkpointing_peaks_at_the_total(name):
    """A wide model and few tokens: nearly all of the bytes are weights, gradients, moments and autocast's copies."""
    a = replace(SMALL["llama"], width=240, hidden=1_024, layers=4, vocabulary=100)
    t = stepped(a, name, checkpointing=True)
    ledger = memory.predict(t.model, name, batch=2, length=LENGTH, accumulate=2)
    assert peak_of(t, 2 * [batch(a, 1)]) == pytest.approx(ledger.total, rel=0.03)  # one more gradient


def test_a_loss_that_is_no_cross_entropy_has_no_logits():
    layer = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(layer.parameters())
    assert memory.of_tensors(layer, optimizer, lambda: layer(torch.ones(4, 3)).square().mean()).logits == 0
    mean = memory.of_tensors(
        layer, optimizer, lambda: nn.functional.cross_entropy(layer(torch.ones(4, 3)), torch.ones(4).long())
    )
    assert mean.logits == 2 * 4 * 4 * 2


def test_any_module_has_a_ledger_without_activations():
    layer = nn.Linear(8, 4)
    assert memory.predict(layer, "32-true", batch=0) == Ledger(144, 0, 144, 288 + 2 * 4, 0, 0, 36)
    with pytest.raises(ValueError, match="no formula for a model of type None"):
        memory.predict(layer, "32-true", batch=1)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"model": "GPT-5"}, "unknown model 'GPT-5'"),
        ({"recipe": "8-true"}, "unknown recipe '8-true'"),
        ({"optimizer": "lion"}, "unknown optimizer 'lion'"),
        ({"batch": -1}, "a batch of -1 texts of 512 tokens in 1 parts"),
        ({"length": 0}, "a batch of 1 texts of 0 tokens"),
        ({"accumulate": 0}, "in 0 parts"),
        ({"stage": 4}, "stage 4 over 1 shards"),
        ({"shards": 0}, "stage 0 over 0 shards"),
        ({"attention": "flash"}, "no formula for attention 'flash'"),
        ({"device": "tpu"}, "on 'tpu'"),
        ({"method": "dora"}, "unknown method 'dora'; the known ones are full, lora, qlora"),
        ({"method": "lora", "rank": 0}, "rank 0 leaves nothing to train"),
        ({"method": "lora", "projections": ("q_proj",)}, "no projection 'q_proj' in a gpt2; take some of attn.c_attn"),
        ({"method": "lora", "projections": ("mlp.c_fc",)}, "attention has to have one"),
        ({"model": "DistilBERT", "method": "lora"}, "no adapters for distilbert"),
    ],
)
def test_what_is_not_known_is_refused(how, message):
    with pytest.raises(ValueError, match=message):
        memory.predict(**{"model": "GPT-2"} | how)


def by_hand(data: dict, case: dict) -> dict:
    """The ledger of a case from the data of a page alone, as a page computes it."""
    usual = {"recipe": "32-true", "optimizer": "adamw", "batch": 1, "length": 512, "attention": "eager"}
    usual |= {"checkpointing": False, "padded": True, "accumulate": 1, "shards": 1, "stage": 0, "device": "cuda"}
    usual |= {"method": "full", "rank": 16}
    case = usual | case
    sizes, bytes_of = data["architectures"][case["model"]], data["recipes"][case["recipe"]]
    batch, cpu = -(-case["batch"] // case["accumulate"]), case["device"] == "cpu"
    head = sizes["width"] // sizes["heads"]
    values = {"B": batch, "S": case["length"], "V": sizes["vocabulary"], "D": sizes["width"], "F": sizes["hidden"]}
    values |= {"H": sizes["heads"], "E": head, "G": sizes["groups"] * head, "Q": 3 * sizes["width"]}
    values |= {"P": sizes["positions"], "C": sizes["classes"], "R": case["rank"]}
    projections, adapted = data["projections"][sizes["family"]], case["method"] != "full"
    words = {"padded" if case["padded"] else "full", case["device"]}
    if adapted:
        cast = "mixed" in bytes_of["words"]
        words |= {"true", "frozen", "cast" if cast else "uncast", *projections}
        words |= {"copied" if cast and case["method"] == "lora" else "shared"}
        words |= {"recast"} if bytes_of["compute"] != 4 else set()
    else:
        words |= set(bytes_of["words"])
    widths = bytes_of | ({"weights": bytes_of["compute"], "wide": max(4, bytes_of["compute"])} if adapted else {})
    kernel = "math" if sizes["attention_dropout"] and cpu else "fused"
    words |= {"eager" if case["attention"] == "eager" else kernel}
    words |= {"single"} if batch == 1 else set()
    words |= set() if case["checkpointing"] else {"plain"}
    for name in ("dropout", "attention_dropout", "head_dropout"):
        words |= {name.replace("_", "-")} if sizes[name] else set()

    def size(letters: str) -> int:
        return prod(values[letter] for letter in letters)

    saved, layers = data["saved"][sizes["family"]], sizes["layers"]
    rows = [(row, 1) for row in saved["once"] + (saved["mask"] if case["checkpointing"] else [])]
    rows += [(row, layers) for row in saved["checkpointed" if case["checkpointing"] else "layer"]]
    cached = case["checkpointing"] and case["accumulate"] > 1  # autocast's copies, beside the gradients

    def holds(row: dict, words: set) -> bool:
        return all(words & set(word.split("|")) for word in row["when"].split())

    rows = [(row, times) for row, times in rows if holds(row, words) and not (cached and row["what"] == data["copies"])]
    if cached:
        plain = [(row, 1) for row in saved["once"]] + [(row, layers) for row in saved["layer"]]
        rows += [each for each in plain if each[0]["what"] == data["copies"] and holds(each[0], words | {"plain"})]
    activations = casts = logits = 0
    for row, times in rows:
        found = times * row["count"] * size(row["size"]) * widths[row["dtype"]]
        activations += found
        casts += found if row["what"] == data["copies"] else 0
        logits += 2 * found if row["what"] == data["logits"] else 0
    table = data["weights"][sizes["family"]]
    weights = table["once"] + ([] if sizes["tied"] else table["head"]) + layers * table["layer"]
    each = [size(letters) for letters in weights]
    frozen, base = 0, sum(each)
    if adapted:
        frozen = bytes_of["compute"] * base
        if case["method"] == "qlora":
            for n in layers * [size(letters) for letters in table["layer"] if len(letters) == 2]:
                blocks = -(-n // 64)
                frozen += -(-n // 2) + blocks + 4 * -(-blocks // 256) - bytes_of["compute"] * n
        each = layers * [size(f"R{one}") for shape in projections.values() for one in shape]
    optimizer = data["optimizers"][case["optimizer"]]
    if "block" in optimizer:
        long = [n + 4 * -(-n // optimizer["block"]) if n >= optimizer["least"] else 4 * n for n in each]
        moments = optimizer["moments"] * sum(long)
    else:
        moments = optimizer["moments"] * bytes_of[optimizer["bytes_of"]] * sum(each)
        moments += bytes_of["counter"] * len(each) if optimizer["counted"] else 0
    kept = {
        "weights": (frozen + bytes_of["weights"] * sum(each), 3),
        "master": (bytes_of["master"] * sum(each), 1),
        "gradients": (bytes_of["gradients"] * sum(each), 2),
        "optimizer": (moments, 1),
    }
    parts = {name: -(-n // case["shards"]) if case["stage"] >= at else n for name, (n, at) in kept.items()}
    whole = case["stage"] < 3
    parts |= {"activations": activations - (0 if whole else casts), "casts": casts if whole else 0}
    return parts | {"parameters": sum(each) + (base if adapted else 0), "logits": logits}


def test_a_page_can_compute_every_vector_from_the_data_alone():
    data = json.loads(json.dumps(memory.widget_data()))
    assert len(data["vectors"]) == len(memory.VECTORS)
    for vector in data["vectors"]:
        case = {name: value for name, value in vector.items() if name != "ledger"}
        assert by_hand(data, case) == vector["ledger"] == asdict(memory.predict(**case)), case


def test_the_vectors_ask_for_every_choice():
    asked = {
        name: {case.get(name) for case in memory.VECTORS}
        for name in ("optimizer", "stage", "attention", "device", "method")
    }
    assert asked["optimizer"] >= set(memory.OPTIMIZERS) - {"adamw"}
    assert asked["stage"] >= {1, 2, 3}
    assert asked["method"] >= {"lora", "qlora"}
    assert "sdpa" in asked["attention"]
    assert "cpu" in asked["device"]
    families = {architectures.find_architecture(case["model"]).family for case in memory.VECTORS}
    assert families == set(architectures.FAMILIES)
    assert {find_recipe(case["recipe"]).weights for case in memory.VECTORS} == {
        torch.float64,
        torch.float32,
        torch.bfloat16,
        torch.float16,
    }
