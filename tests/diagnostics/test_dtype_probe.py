"""DtypeProbe sees autocast's casts as operations, in the right modules, forward and backward, and changes nothing."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from utils.diagnostics.dtype_probe import COMPUTE, MOVE, DtypeProbe, Recast, Stage, Summary
from utils.workloads.models import DistilBertShape, LlamaShape, build_distilbert, build_llama

BF16 = torch.bfloat16
SIZES = {"vocabulary": 50, "width": 16, "layers": 2, "heads": 2, "hidden": 32, "positions": 16}
IDS = torch.arange(8).reshape(1, 8) + 3
DOWN = ("float32", "bfloat16")
LAYER = "distilbert.transformer.layer.0"


def probed(model, *, autocast=True, **batch):
    """Record a forward and a backward pass."""
    with DtypeProbe(model) as probe:
        with torch.autocast("cpu", dtype=BF16, enabled=autocast):
            loss = model(input_ids=IDS, **batch).loss
        loss.backward()
    return probe


@pytest.fixture(scope="module")
def bert():
    return build_distilbert(DistilBertShape(**SIZES), attention="eager").eval()


@pytest.fixture(scope="module")
def of_bert(bert):
    return probed(bert, labels=torch.zeros(1, dtype=torch.long))


@pytest.fixture(scope="module")
def of_llama():
    return probed(build_llama(LlamaShape(**SIZES, groups=1, tied=True)), labels=IDS, use_cache=False)


def test_the_casts_of_autocast_are_seen_before_the_operation_that_needs_them():
    model = nn.Linear(4, 3)
    with DtypeProbe(model) as probe, torch.autocast("cpu", dtype=BF16):
        model(torch.ones(2, 4))
    *casts, product = [step for step in probe.steps if step.kind != MOVE]
    assert {(step.op, step.inputs, step.outputs) for step in casts} == {("_to_copy", ("float32",), ("bfloat16",))}
    # in C++ the order in which arguments are cast is the compiler's
    assert {step.parameter: step.bytes for step in casts} == {"": 2 * 2 * 4, "weight": 2 * 4 * 3, "bias": 2 * 3}
    assert (product.op, product.inputs, product.outputs) == ("addmm", ("bfloat16",) * 3, ("bfloat16",))
    assert (product.kind, product.bytes, product.parameter) == (COMPUTE, 0, "")


def test_it_makes_no_difference_whether_autocast_is_entered_first():
    model, found = nn.Linear(4, 3), []
    with torch.autocast("cpu", dtype=BF16), DtypeProbe(model) as probe:
        model(torch.ones(2, 4))
    found.append(probe.steps)
    with DtypeProbe(model) as probe, torch.autocast("cpu", dtype=BF16):
        model(torch.ones(2, 4))
    assert found == [probe.steps]


@pytest.mark.parametrize(
    ("module", "op", "dtype"),
    [
        (f"{LAYER}.attention.q_lin", "addmm", "bfloat16"),
        (f"{LAYER}.attention", "_softmax", "bfloat16"),
        (f"{LAYER}.sa_layer_norm", "native_layer_norm", "float32"),
        (f"{LAYER}.ffn.activation", "gelu", "bfloat16"),
        (LAYER, "add", "float32"),
        ("distilbert.embeddings.word_embeddings", "embedding", "float32"),
        ("", "_log_softmax", "float32"),
    ],
)
def test_each_operation_stands_at_its_module_with_its_dtype(of_bert, module, op, dtype):
    found = {step.dtype for step in of_bert.steps if (step.module, step.op) == (module, op) and not step.backward}
    assert found == {dtype}


def test_the_backward_pass_runs_in_the_dtypes_of_the_forward_pass_at_the_same_modules(of_bert):
    def dtypes(op, backward):
        return {(s.module, s.dtype) for s in of_bert.steps if s.op == op and s.backward == backward}

    assert dtypes("mm", True) == dtypes("addmm", False)
    assert dtypes("native_layer_norm_backward", True) == dtypes("native_layer_norm", False)
    assert dtypes("_softmax_backward_data", True) == dtypes("_softmax", False)
    assert len(dtypes("mm", True)) == 14  # six products in each of two layers, two in the head


def test_gradients_of_weights_are_cast_to_float32_once_for_each_weight(bert, of_bert):
    linears = {name for name, module in bert.named_modules() if isinstance(module, nn.Linear)}
    up = [step for step in of_bert.casts() if step.backward and step.dtype == "float32" and step.module in linears]
    shared = 3 * 2 + 2 * 1  # q, k, v and lin1 of two layers, the head: their inputs were cast for each of them
    assert len(up) == 2 * len(linears) + shared + 1


def test_without_autocast_there_is_no_cast(bert):
    probe = probed(bert, autocast=False, labels=torch.zeros(1, dtype=torch.long))
    assert probe.casts() == probe.recasts() == []
    assert {dtype for part in probe.summary() for dtype in part.dtypes} == {"float32"}


def test_the_probe_changes_no_number(bert):
    labels = torch.zeros(1, dtype=torch.long)
    bert.zero_grad()
    probed(bert, labels=labels)
    seen = [weight.grad.clone() for weight in bert.parameters()]
    bert.zero_grad()
    with torch.autocast("cpu", dtype=BF16):
        loss = bert(input_ids=IDS, labels=labels).loss
    loss.backward()
    assert all(torch.equal(one, weight.grad) for one, weight in zip(seen, bert.parameters(), strict=True))
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in bert.modules())


def test_a_weight_is_cast_once_with_the_cache_and_each_time_without():
    class Thrice(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4, bias=False)

        def forward(self, x):
            return self.linear(self.linear(self.linear(x)))

    model, casts = Thrice(), {}
    for cached in (True, False):
        with DtypeProbe(model) as probe, torch.autocast("cpu", dtype=BF16, cache_enabled=cached):
            model(torch.ones(2, 4))
        casts[cached] = [step for step in probe.casts() if step.parameter]
    assert [len(casts[True]), len(casts[False])] == [1, 3]
    assert [step.repeated for step in casts[False]] == [False, True, True]
    assert probe.recasts() == [Recast("linear.weight", "float32 to bfloat16", 3, 2 * 32, ("linear",), False)]


def test_q_k_and_v_cast_the_same_input_three_times(of_bert):
    names = tuple(f"{LAYER}.attention.{name}_lin" for name in "qkv")
    assert Recast("activation", "float32 to bfloat16", 3, 2 * 2 * 8 * 16, names, False) in of_bert.recasts()
    assert len(of_bert.recasts()) == 2  # one in each layer


def test_a_cast_there_and_back_is_found_and_one_of_a_changed_tensor_is_not():
    class Model(nn.Module):
        def forward(self, x):
            there = x.bfloat16()
            back = there.float()  # a round trip
            y = x * 2
            changed = y.bfloat16()
            changed.add_(1)
            return back + changed.float()

    model = Model()
    with DtypeProbe(model) as probe:
        model(torch.ones(2, 4))
    assert probe.recasts() == [Recast("activation", "float32 to bfloat16 and back", 2, 32, ("",), True)]
    assert [step.round_trip for step in probe.casts()] == [False, True, False, False]


def test_a_cast_to_a_third_dtype_is_no_round_trip():
    class Model(nn.Module):
        def forward(self, x):
            return x.bfloat16().half()

    model = Model()
    with DtypeProbe(model) as probe:
        model(torch.ones(2, 4))
    assert [step.outputs for step in probe.casts()] == [("bfloat16",), ("float16",)]
    assert probe.recasts() == []


def test_what_needs_no_gradient_takes_no_part_of_the_backward_pass():
    class Silent(nn.Module):
        def forward(self, x):
            torch.zeros(2).add(1)
            return x

    model = nn.Sequential(nn.Linear(2, 2), Silent())
    with DtypeProbe(model) as probe:
        model(torch.ones(1, 2)).backward(torch.ones(1, 2))
    assert {step.module for step in probe.steps if step.backward} == {"0"}


def test_a_cast_parts_two_boxes_that_would_be_one():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x):
            total = self.act(x) + 1
            return total.bfloat16(), total * 2 - 1

    model = Model()
    with DtypeProbe(model) as probe:
        model(torch.ones(2, 4))
    assert probe.stages() == [
        Stage("act", "relu", "float32", ()),
        Stage("add", "add", "float32", ()),
        Stage("mul, sub", "", "float32", (DOWN,)),
    ]


def test_a_tensor_that_was_changed_in_place_is_another_one():
    class Model(nn.Module):
        def forward(self, x):
            first = x.bfloat16()
            x.add_(1)
            return first + x.bfloat16()

    model = Model()
    with DtypeProbe(model) as probe:
        model(torch.ones(2, 4))
    assert probe.recasts() == []
    assert len(probe.casts()) == 2


def test_the_stages_of_a_distilbert_layer(of_bert):
    stages = of_bert.stages(LAYER)
    assert [stage.label for stage in stages] == [
        "q_lin",
        "k_lin",
        "v_lin",
        "matmul",
        "mul",
        "softmax",
        "matmul",
        "out_lin",
        "add",
        "sa_layer_norm",
        "lin1",
        "activation",
        "lin2",
        "add",
        "output_layer_norm",
    ]
    assert stages[0] == Stage("q_lin", "linear", "bfloat16", (DOWN,) * 3)  # its input, weight and bias
    assert stages[7] == Stage("out_lin", "linear", "bfloat16", (DOWN,) * 2)  # its input is narrow already
    assert [stage.label for stage in stages if stage.dtype == "float32"] == [
        "add",
        "sa_layer_norm",
        "add",
        "output_layer_norm",
    ]


def test_the_stages_of_a_llama_layer(of_llama):
    stages = {stage.label: stage for stage in of_llama.stages("model.layers.0")}
    assert stages["input_layernorm"] == Stage("input_layernorm", "", "float32", ())
    assert stages["q_proj"] == Stage("q_proj", "linear", "bfloat16", (DOWN,) * 2)
    assert stages["attention"].casts == (DOWN,) * 2  # rotated queries and keys are float32, values are not
    assert stages["act_fn"] == Stage("act_fn", "silu", "bfloat16", ())


def test_a_module_that_was_not_seen_is_refused_with_those_that_were(of_bert):
    with pytest.raises(ValueError, match=r"no operation of a module 'layer\.9' was recorded; there are distilbert"):
        of_bert.stages("layer.9")


def test_the_summary_counts_by_module_and_depth(of_bert):
    parts = {part.module: part for part in of_bert.summary()}
    query = parts[f"{LAYER}.attention.q_lin"]
    sizes = 16 * 16 + 16 + 8 * 16
    assert query == Summary(query.module, {"bfloat16": 4, "float32": 1}, 6, (2 + 4) * sizes)
    whole = {part.module: part for part in of_bert.summary(depth=1)}
    assert set(whole) == {"", "distilbert", "pre_classifier", "classifier"}
    assert sum(part.casts for part in whole.values()) == len(of_bert.casts())
    assert sum(part.bytes for part in whole.values()) == sum(step.bytes for step in of_bert.casts())


def test_the_forward_pass_that_checkpointing_repeats_stands_at_its_module():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))

        def forward(self, x):
            return checkpoint(self.block, x, use_reentrant=False)

    model = Model()
    with DtypeProbe(model) as probe:
        with torch.autocast("cpu", dtype=BF16):
            loss = model(torch.ones(2, 4)).sum()
        loss.backward()
    assert [step.module for step in probe.steps if step.op == "addmm"] == ["block.0", "block.2", "block.0"]
    assert {step.dtype for step in probe.steps if step.op == "addmm"} == {"bfloat16"}


def test_an_error_in_the_model_leaves_no_hook_and_no_mode():
    class Broken(nn.Module):
        def forward(self, x):
            raise RuntimeError("broken")

    model = nn.Sequential(nn.Linear(2, 2), Broken())
    with pytest.raises(RuntimeError, match="broken"), DtypeProbe(model) as probe:
        model(torch.ones(1, 2))
    count = len(probe.steps)
    model[0](torch.ones(1, 2))
    assert len(probe.steps) == count
    assert all(not module._forward_hooks for module in model.modules())


def test_inference_mode_can_be_probed():
    model = nn.Linear(4, 4)
    with torch.inference_mode(), DtypeProbe(model) as probe, torch.autocast("cpu", dtype=BF16):
        F.relu(model(torch.ones(2, 4)))
    assert [(step.op, step.dtype) for step in probe.steps if step.kind == COMPUTE] == [
        ("linear", "bfloat16"),
        ("relu", "bfloat16"),
    ]
    assert [step.bytes for step in probe.casts() if step.parameter == "weight"] == [2 * 4 * 4]
