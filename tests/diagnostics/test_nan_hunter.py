"""The hunter of NaN: it names the culprit and not its echoes, changes no number, and leaves no hook."""

import pytest
import torch
from torch import nn

from utils.diagnostics.nan_hunter import NanHunter
from utils.diagnostics.nan_sightings import Ranges
from utils.emulation.fast_half import FastHalf
from utils.training import float8_linear
from utils.workloads import models

BOTH = pytest.mark.parametrize("operations", [False, True], ids=["modules", "operations"])


class Planted(nn.Module):
    """A chain a, bad, c of which `bad` does what it is told between two linear layers of its own."""

    def __init__(self, function, parameter=0.5):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.bad, self.c = nn.Linear(4, 4), Bad(function, parameter), nn.Linear(4, 1)

    def forward(self, x):
        return self.c(self.bad(self.a(x)))


class Bad(nn.Module):
    def __init__(self, function, parameter):
        super().__init__()
        self.into, self.out, self.function = nn.Linear(4, 4), nn.Linear(4, 4), function
        self.p = nn.Parameter(torch.tensor(parameter))

    def forward(self, x):
        return self.out(self.function(self.into(x), self.p))


X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))


def hunted(model, operations, *, dtype=torch.float32, optimizer=None, scaler=None, backward=True, x=X):
    model = model.to(dtype)
    hunter = NanHunter(model, optimizer, scaler=scaler, operations=operations)
    with hunter.step(1):
        loss = model(x.to(dtype)).float().square().mean()
        if backward:
            loss.backward()
        if optimizer:
            optimizer.step()
    return hunter


@BOTH
def test_what_is_finite_gives_no_finding(operations):
    model = Planted(lambda x, p: x * p)
    hunter = hunted(model, operations, optimizer=torch.optim.AdamW(model.parameters()))
    assert hunter.first is None
    assert hunter.findings == []
    assert hunter.steps == 1


@BOTH
def test_a_forward_overflow_is_found_in_its_module(operations):
    first = hunted(Planted(lambda x, p: (x * 0 + 12).exp()), operations, dtype=torch.float16).first
    assert (first.stage, first.module, first.dtype, first.shape) == ("forward", "bad", "float16", (3, 4))
    assert first.step == 1
    assert first.kind == ("inf" if operations else "nan")  # the linear layer after it makes NaN
    assert first.operation == ("exp" if operations else "")


def test_the_way_from_infinity_to_nan_is_followed():
    first = hunted(Planted(lambda x, p: (e := (x * 0 + 12).exp()) / e.sum(-1, keepdim=True)), True, dtype=torch.float16)
    first = first.first
    assert (first.operation, first.kind, first.nan) == ("exp", "inf", ("div", "bad"))
    assert (first.inputs[0].low, first.inputs[0].high) == (12, 12)
    assert "exp" in str(first)
    assert "nan from div on, in bad" in str(first)


@BOTH
def test_a_mask_of_minus_infinity_that_a_softmax_bears_is_no_finding(operations):
    def masked(x, p):
        return x.masked_fill(torch.tensor([True, False, False, False]), -torch.inf).softmax(-1)

    assert hunted(Planted(masked), operations).first is None


def test_a_row_that_is_masked_as_a_whole_is_blamed_on_the_softmax():
    def masked(x, p):
        return x.masked_fill(torch.tensor([[True], [False], [False]]), -torch.inf).softmax(-1)

    first = hunted(Planted(masked), True).first
    assert (first.module, first.operation, first.kind) == ("bad", "_softmax", "nan")


def test_an_overflow_beside_a_mask_of_minus_infinity_is_the_birth():
    def by_hand(x, p):
        e = (x.abs() + 100).masked_fill(torch.tensor([True, False, False, False]), -torch.inf).exp()
        return e / e.sum(-1, keepdim=True)

    first = hunted(Planted(by_hand), True).first
    assert (first.module, first.operation, first.kind, first.nan) == ("bad", "exp", "inf", ("div", "bad"))


def test_scores_that_overflow_where_a_mask_is_added_are_the_birth():
    def by_hand(x, p):
        mask = torch.zeros(4).masked_fill(torch.tensor([True, False, False, False]), -torch.inf)
        scores = 0 * x + 2e38
        return (scores + mask + scores).softmax(-1)

    first = hunted(Planted(by_hand), True).first
    assert (first.module, first.operation, first.kind) == ("bad", "add", "inf")


def test_an_infinity_that_is_absorbed_is_not_confused_with_the_one_that_harms():
    def both(x, p):
        harmless = 1 / (x * 0 + 1e5).half().exp()  # inf, then 0
        return (x + harmless.float()) / (x * 0)

    first = hunted(Planted(both), True).first
    assert first.operation == "div"
    assert first.dtype == "float32"


def test_nan_that_is_filled_in_where_an_infinity_was_is_blamed_on_the_infinity():
    def saturating(x, p):  # as a layer in FP8 does it
        broken = x / (x.detach() * 0)
        return broken.clamp(-448, 448).masked_fill(broken.isinf(), torch.nan)

    hunter = hunted(Planted(saturating), True, backward=False)
    assert [finding.operation for finding in hunter.findings] == ["div"]


def test_what_left_torch_and_came_back_is_still_an_echo():
    def through_numpy(x, p):
        return torch.from_numpy((x / 0).detach().numpy().copy())

    hunter = hunted(Planted(through_numpy), True, backward=False)
    assert [(finding.stage, finding.operation) for finding in hunter.findings] == [("forward", "div")]


@BOTH
def test_a_backward_pass_that_breaks_alone_is_found(operations):
    first = hunted(Planted(lambda x, p: x + (x * 0).square().sum(-1, keepdim=True).sqrt()), operations).first
    assert (first.stage, first.module) == ("backward", "bad")
    assert "a.weight" in first.gradients
    assert "c.weight" not in first.gradients
    assert not operations or (first.operation, first.kind, first.nan) == ("div", "inf", ("mul", "bad"))


@BOTH
def test_the_gradient_of_a_parameter_points_to_its_module(operations):
    first = hunted(Planted(lambda x, p: x + p.sqrt(), parameter=0.0), operations).first
    assert (first.stage, first.module, first.gradients) == ("backward", "bad", ("bad.p",))


@BOTH
def test_a_loss_outside_the_model_is_not_blamed_on_the_model(operations):
    model = Planted(lambda x, p: x)
    hunter = NanHunter(model, operations=operations)
    with hunter.step(4):
        ((model(X) * 0).sigmoid() - 0.5).log().mean().backward()
    assert (hunter.first.step, hunter.first.module) == (4, "")
    assert not operations or (hunter.first.stage, hunter.first.operation, hunter.first.kind) == (
        "forward",
        "log",
        "inf",
    )


@BOTH
def test_an_update_that_makes_nan_of_finite_gradients_is_found(operations):
    model = Planted(lambda x, p: x).half()
    optimizer = torch.optim.AdamW(model.parameters(), eps=1e-8, foreach=False)
    hunter = NanHunter(model, optimizer, operations=operations)
    with hunter.step(1):
        for weight in model.parameters():
            weight.grad = torch.zeros_like(weight)
        optimizer.step()
    assert (hunter.first.stage, hunter.first.dtype) == ("update", "float16")
    assert hunter.first.module == "a.weight"
    assert set(hunter.first.weights) == {n for n, _ in model.named_parameters()}
    assert not operations or hunter.first.operation == "addcdiv_"


@BOTH
def test_weights_and_inputs_that_were_broken_before_are_said(operations):
    model = Planted(lambda x, p: x)
    assert hunted(model, operations, x=X * torch.nan).first.stage == "input"
    with torch.no_grad():
        model.bad.out.weight[0, 0] = torch.inf
    first = hunted(model, operations).first
    assert (first.stage, first.module, first.kind) == ("weights", "bad.out.weight", "inf")


@BOTH
def test_a_gradient_beyond_the_loss_scale_is_excused_until_the_scale_is_below_1(operations):
    model = Planted(lambda x, p: x).float()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for scale, excused in ((2.0**24, True), (0.5, False)):
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        hunter = NanHunter(model, optimizer, scaler=scaler, operations=operations)
        with hunter.step(1), torch.autocast("cpu", torch.float16):
            optimizer.zero_grad()
            loss = model(1e3 * X if scale > 1 else X).float().square().mean()
            scaler.scale(loss if scale > 1 else loss * 1e9).backward()
            scaler.step(optimizer)
        assert [each.excused for each in hunter.findings] == [excused]
        assert (hunter.first is None) == excused


@BOTH
def test_attention_of_a_transformer_is_named_and_not_its_neighbours(operations):
    model = models.build_llama(models.LlamaShape(64, 32, 3, 2, 2, 64, 32)).half()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        for layer in (1, 2):
            model.model.layers[layer].self_attn.q_proj.weight *= 5e4
            model.model.layers[layer].self_attn.k_proj.weight *= 5e4
    hunter = NanHunter(model, operations=operations)
    with hunter.step(1), FastHalf():
        model(torch.arange(8)[None])
    assert hunter.first.module.startswith("model.layers.1.self_attn")


@BOTH
def test_fp8_layers_are_looked_at(operations):
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16))
    float8_linear.convert(model, "fp8-current", exclude=())
    hunter = NanHunter(model, operations=operations)
    x = torch.randn(16, 16, generator=torch.Generator().manual_seed(0))
    with hunter.step(1), torch.autocast("cpu", torch.bfloat16):
        model(x).float().sum().backward()
    assert hunter.first is None
    model[1].register_forward_pre_hook(lambda module, given: (given[0] * torch.inf,))
    with hunter.step(2), torch.autocast("cpu", torch.bfloat16):
        model(x)
    assert hunter.first.step == 2


@BOTH
def test_it_changes_no_number_and_leaves_no_hook(operations):
    def trained(hunting):
        model = Planted(lambda x, p: (x * p).tanh())
        optimizer = torch.optim.AdamW(model.parameters())
        hunter = NanHunter(model, optimizer, operations=operations)
        for number in range(3):
            with hunter.step(number) if hunting else torch.enable_grad():
                optimizer.zero_grad()
                model(X).square().mean().backward()
                optimizer.step()
        hooks = [each for module in model.modules() for each in (*module._forward_hooks, *module._forward_pre_hooks)]
        assert hooks == []
        assert not optimizer._optimizer_step_pre_hooks
        assert not optimizer._optimizer_step_post_hooks
        return torch.cat([weight.detach().flatten() for weight in model.parameters()])

    assert torch.equal(trained(True), trained(False))


@BOTH
def test_what_came_before_an_exception_is_kept(operations):
    model = Planted(lambda x, p: x / 0)
    hunter = NanHunter(model, operations=operations)

    def interrupted():
        with hunter.step(1):
            model(X)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert hunter.first.module == "bad"
    assert not model._forward_hooks


def test_operations_can_be_asked_for_in_some_steps_alone():
    model = Planted(lambda x, p: x / 0)
    hunter = NanHunter(model, operations={2})
    for number in (1, 2):
        with hunter.step(number):
            model(X)
    assert [finding.operation for finding in hunter.findings] == ["", "div"]


@BOTH
def test_a_compiled_model_is_hunted_uncompiled(operations):
    model = Planted(lambda x, p: x / 0)
    compiled = torch.compile(model, backend="eager")
    hunter = NanHunter(compiled, operations=operations)
    with hunter.step(1):
        compiled(X)
    assert hunter.first.module == "bad"


def test_uninitialised_memory_is_no_finding():
    def filled(x, p):
        raw = torch.empty_like(x)
        raw.view(torch.int32).fill_(0x7FC00000)  # NaN, as memory may hold it
        return x + torch.empty_like(raw).copy_(x)

    assert hunted(Planted(filled), True).first is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn])
def test_ranges_are_exact_in_every_dtype(dtype):
    ranges = Ranges()
    looks = [ranges.look(torch.tensor(values).to(dtype)) for values in ([-3.5, 2.0], [torch.nan, 1.0])]
    (low, high), (nan, _) = ranges.read()
    assert [look.number for look in looks] == [0, 1]
    assert (low, high) == (-3.5, 2.0)
    assert nan != nan


def test_a_tensor_is_looked_at_again_only_after_it_was_changed():
    ranges, x = Ranges(), torch.zeros(3)
    first, again = ranges.look(x), ranges.look(x)
    x[0] = 7
    assert first.number == again.number != ranges.look(x).number
    assert ranges.read()[-1] == (0, 7)


def test_logits_of_a_classifier_in_float16_point_to_the_naive_loss():
    model = models.build_distilbert(
        models.DistilBertShape(64, 32, 2, 2, 64, 32, dropout=0.0, head_dropout=0.0), attention="eager"
    )
    with torch.no_grad():
        model.classifier.bias.copy_(torch.tensor([0.0, 20.0]))
    hunter = NanHunter(model.half(), operations=True)
    with hunter.step(1), FastHalf():
        p = model(torch.arange(8)[None]).logits.softmax(-1)
        loss = -(torch.log(1 - p[:, 1]) * 0 + torch.log(p[:, 1]))
        loss.mean().backward()
    assert (hunter.first.operation, hunter.first.module, hunter.first.nan) == ("log", "", ("mul", ""))
