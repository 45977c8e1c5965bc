"""The checks of training/autocast: the right answer, and for each foreseen wrong one the hint that names it."""

import copy
import itertools
import re
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch import bfloat16, nn
from torch._dynamo.backends.common import aot_autograd

import book_rules
from tests.book_questions import right_option
from utils.checks.outcome import NOT_YET
from utils.checks.training import autocast, autocast_questions
from utils.diagnostics import autocast_table
from utils.diagnostics.autocast_docs import documented
from utils.diagnostics.autocast_operations import Operation
from utils.diagnostics.dtype_probe import DtypeProbe
from utils.widgets.op_lookup import OpLookup

DTYPES = {
    "h @ w": "bfloat16",
    "torch.relu(h)": "float32",
    "h @ w + h": "float32",
    "torch.softmax(h @ w + h, -1)": "float32",
    "(h @ w).square().mean()": "bfloat16",
    "w.grad, after backward": "float32",
}


def under():
    return torch.autocast("cpu", dtype=bfloat16)


@pytest.fixture(autouse=True)
def nothing_is_left_open():
    """Every check leaves autocast as it found it, also after a function that does not."""
    before = (torch.is_autocast_enabled("cpu"), autocast._depth(), torch.is_grad_enabled(), torch.get_rng_state())
    yield
    after = (torch.is_autocast_enabled("cpu"), autocast._depth(), torch.is_grad_enabled(), torch.get_rng_state())
    assert before[:3] == after[:3] == (False, 0, True)


# --- What the predictions claim


def test_in_one_context_the_weights_move_and_the_forward_pass_reads_old_copies():
    torch.manual_seed(0)
    x = torch.randn(64, 8)
    y = x.sum(1, keepdim=True)
    norms, losses = [], []
    for outermost in (True, False):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            if outermost or not losses[6:]:
                outer = under()
                outer.__enter__()
            loss = F.mse_loss(model(x), y)
            if outermost:
                outer.__exit__(None, None, None)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            losses.append(loss.item())
            norms.append(model[0].weight.norm().item())
        if not outermost:
            outer.__exit__(None, None, None)
    assert len(set(losses[:6])) == 6
    assert len(set(losses[6:])) == 1
    assert len(set(norms[6:])) == 6
    assert min(b - a for a, b in itertools.pairwise(norms[6:])) > 0


@pytest.mark.parametrize(("outer", "end"), [(True, "4"), (False, "2.64")])
def test_the_weight_ends_where_the_question_says(outer, end):
    weight = torch.ones(1, 1, requires_grad=True)
    with under() if outer else nullcontext():
        for _ in range(6):
            with under():
                loss = F.mse_loss(F.linear(torch.ones(1, 1), weight), torch.full((1, 1), 3.0))
            (gradient,) = torch.autograd.grad(loss, weight)
            with torch.no_grad():
                weight -= gradient / 8
    options = {option.text.partition(":")[0] for option in autocast_questions.STALE.options}
    assert end in options
    assert weight.item() == pytest.approx(float(end), abs=0.02)
    assert (right_option(autocast_questions.STALE).text.partition(":")[0] == end) == outer


BIG_FIRST, BIG_LAST = [256.0] + [1.0] * 8, [1.0] * 8 + [256.0]


def gradient_of_uses(inputs, **options):
    weight = torch.ones(1, 1, requires_grad=True)
    with torch.autocast("cpu", dtype=bfloat16, **options):
        loss = sum(F.linear(torch.tensor([[x]]), weight).float().sum() for x in inputs)
    loss.backward()
    assert weight.grad.dtype == torch.float32
    return weight.grad.item()


def test_gradients_of_a_shared_copy_are_added_in_bfloat16():
    first, last = gradient_of_uses(BIG_FIRST), gradient_of_uses(BIG_LAST)
    assert (first, last) == (264, 256)
    assert right_option(autocast_questions.SHARED).text == f"`big_first` {first:.0f}, `big_last` {last:.0f}"
    assert {gradient_of_uses(inputs, cache_enabled=False) for inputs in (BIG_FIRST, BIG_LAST)} == {264}


def bytes_kept(layers, rounds, cache):
    sizes, out = {}, torch.randn(8, 64)

    def pack(tensor):
        sizes[tensor.data_ptr()] = tensor
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x),
        torch.autocast("cpu", dtype=bfloat16, cache_enabled=cache),
    ):
        for layer in layers * rounds:
            out = layer(out)
    return sum(tensor.nbytes for tensor in sizes.values() if tensor.shape == (64, 64))


def test_in_training_the_cache_keeps_no_more_than_the_backward_pass_needs():
    layers = [nn.Linear(64, 64, bias=False) for _ in range(4)]
    assert bytes_kept(layers, 1, cache=True) == bytes_kept(layers, 1, cache=False)
    assert bytes_kept(layers, 3, cache=True) < bytes_kept(layers, 3, cache=False)


def test_a_copy_made_without_gradients_is_kept_and_has_its_link():
    layer, x = nn.Linear(4, 4, bias=False), torch.ones(1, 4)
    with DtypeProbe(layer) as probe, under():
        with torch.no_grad():
            layer(x)
        out = layer(x)
    out.float().sum().backward()
    assert [step.parameter for step in probe.casts()].count("weight") == 1
    assert layer.weight.grad is not None


def test_a_graph_merges_equal_casts():
    counts, layers = [], nn.ModuleList(nn.Linear(8, 8, bias=False) for _ in "qkv")

    def keep(graph, inputs):
        counts.append(sum("_to_copy" in node.name for node in graph.graph.nodes if node.op == "call_function"))
        return make_boxed_func(graph.forward)

    def three(x):
        q, k, v = (layer(x) for layer in layers)
        return q * k + v

    backend = aot_autograd(fw_compiler=keep, partition_fn=min_cut_rematerialization_partition)
    with under():
        torch.compile(three, backend=backend)(torch.randn(2, 8))
    with DtypeProbe(layers) as probe, under():
        three(torch.randn(2, 8))
    assert (counts[0], len(probe.casts())) == (4, 6)


def test_two_narrow_dtypes_fail_on_a_cached_weight():
    layer, x = nn.Linear(4, 4), torch.ones(1, 4)
    with under():
        layer(x)
        with torch.autocast("cpu", dtype=torch.float16):
            with pytest.raises(RuntimeError, match="same dtype"):
                layer(x)
            torch.clear_autocast_cache()
            assert layer(x).dtype == torch.float16


def test_decorators_of_another_device_do_nothing():
    def dtypes(device):
        class Product(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type=device, cast_inputs=torch.float32)
            def forward(ctx, a, b):
                return a @ b

            @staticmethod
            def backward(ctx, grad):
                return None, None

        with under():
            inside = Product.apply(torch.ones(2, 2), torch.ones(2, 2)).dtype
        return inside, Product.apply(torch.ones(2, 2).bfloat16(), torch.ones(2, 2).bfloat16()).dtype

    assert dtypes("cpu") == (torch.float32, bfloat16)
    assert dtypes("cuda") == (bfloat16, bfloat16)


def test_the_tasks_under_the_lookup_are_right():
    rows = {row["name"]: (row["here"], row["there"]) for row in OpLookup().rows}
    differ = {name for name, (here, there) in rows.items() if here != there}
    names = [option.text.split("`")[1] for option in autocast_questions.MATRIX_VECTOR.options]
    assert (
        [name for name in names if name in differ]
        == ["mv"]
        == [right_option(autocast_questions.MATRIX_VECTOR).text.split("`")[1]]
    )
    names = [option.text.strip("`") for option in autocast_questions.SOFTPLUS.options]
    assert [name for name in names if rows[name][1] == "wide"] == ["softplus"]
    assert right_option(autocast_questions.SOFTPLUS).text == "`softplus`"
    a, b, c = (torch.ones(2, 2) for _ in "abc")
    with under():
        assert c.addmm_(a, b).dtype == torch.float32
        assert torch.addmm(c, a, b).dtype == bfloat16
    assert right_option(autocast_questions.IN_PLACE).text.startswith("float32")


def test_the_table_that_opens_the_chapter_says_what_the_lists_say():
    """Each operation named in it has the rule of its line, on both devices."""
    rules = {"casts down to 16 bits (`narrow`)": "narrow", "casts to float32 (`wide`)": "wide"}
    rules |= {"widest of its inputs (`promote`)": "promote", "whatever comes in (`follows`)": "follows"}
    rules |= {"refuses, with an error": "error"}
    rows = {row["name"]: {"cpu": row["here"], "cuda": row["there"]} for row in OpLookup().rows}
    text = book_rules.markdown(book_rules.read_page(book_rules.BOOK / "training" / "autocast.ipynb"))
    seen = 0
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] not in rules:
            continue
        cuda, cpu = cells[1:]
        cpu = cuda if cpu == "the same" else cpu.replace("those", cuda)
        for device, cell in (("cuda", cuda), ("cpu", cpu)):
            for name in re.findall(r"`(\w+)`", cell):
                if name in rows:
                    assert rows[name][device] == rules[cells[0]], (name, device)
                    seen += 1
    assert seen > 60


@pytest.mark.parametrize(
    ("name", "cuda"),
    [("scatter_add", True), ("scatter_add_", False), ("index_put", True), ("index_add", False), ("index_add_", False)],
)
def test_what_the_lists_say_of_sums_by_an_index(name, cuda):
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert has(f"aten::{name}", "AutocastCUDA") == cuda
    assert not has(f"aten::{name}", "AutocastCPU")


def test_the_lookup_counts_what_the_chapter_counts():
    cpu = {row.name: row.rule for row in autocast_table.measure("cpu", bfloat16)}
    asked = {row.name: row.rule for row in autocast_table.ask_without_gpu(torch.float16)}
    cuda = asked | {name: documented(name, "cuda") for name in cpu if name not in asked}
    shown = {row["name"]: (row["here"], row["there"]) for row in OpLookup().rows}
    assert shown == {name: (rule, cuda[name]) for name, rule in cpu.items()}


# --- 1: what comes out


def test_the_dtypes_are_those_that_come_out():
    h, w = torch.randn(4, 4), nn.Parameter(torch.randn(4, 4))
    with under():
        found = {key: str(eval(key, globals(), {"h": h, "w": w}).dtype) for key in list(DTYPES)[:-1]}
        loss = (h @ w).square().mean()
    loss.backward()
    found["w.grad, after backward"] = str(w.grad.dtype)
    assert {key: value.removeprefix("torch.") for key, value in found.items()} == DTYPES
    assert autocast.check_what_comes_out(DTYPES)
    assert autocast.check_what_comes_out(found)
    assert autocast.check_what_comes_out({key: getattr(torch, value) for key, value in DTYPES.items()})


@pytest.mark.parametrize(
    ("key", "hint"),
    list(
        zip(
            DTYPES,
            ["made for", "on no list", "wider dtype", "its input", "looks up the names", "passes the cast"],
            strict=True,
        )
    ),
)
def test_a_wrong_dtype_gets_its_hint(key, hint):
    wrong = {"bfloat16": "float32", "float32": "bf16"}[DTYPES[key]]
    outcome = autocast.check_what_comes_out(DTYPES | {key: wrong})
    assert outcome.status == NOT_YET
    assert outcome.message.startswith(key)
    assert hint in outcome.message


def test_the_formula_of_a_loss_is_float32_on_cuda_and_the_replies_say_so():
    h, square = (
        autocast_questions.WHAT_COMES_OUT["(h @ w).square().mean()"],
        Operation("square", "test", lambda x: (x(2, 2) @ x(2, 2)).square().mean()),
    )
    [row] = autocast_table.ask_without_gpu(bfloat16, [square])
    assert row.of_wide == row.of_narrow == "float32"
    assert "On CUDA" in next(option.says for option in h.options if option.right)


def test_what_comes_out_says_what_it_cannot_read():
    assert (
        "is not one of these: bfloat16, float32" in autocast.check_what_comes_out(DTYPES | {"h @ w": "float16"}).message
    )


# --- 2: a rule of your own

WIDTH = {torch.float64: 8, torch.float32: 4, bfloat16: 2, torch.float16: 2}


def cast_to(rule, dtypes, low=bfloat16):
    if rule == "follows":
        return dtypes
    if rule == "promote":
        return [max(dtypes, key=WIDTH.get)] * len(dtypes)
    goal = low if rule == "narrow" else torch.float32
    return [dtype if dtype == torch.float64 else goal for dtype in dtypes]


def as_torch_promotes(rule, dtypes, low=bfloat16):
    if rule != "promote":
        return tuple(cast_to(rule, dtypes, low))
    wide = torch.float32 in dtypes
    return [torch.float32 if wide and dtype != torch.float64 else dtype for dtype in dtypes]


@pytest.mark.parametrize("right", [cast_to, as_torch_promotes])
def test_cast_to_takes_the_four_rules(right):
    outcome = autocast.check_cast_to(right)
    assert outcome, outcome.message


def variant(**rules):
    """`cast_to` with another function for some rules."""
    return lambda rule, dtypes, low=bfloat16: rules.get(rule, lambda d, low: cast_to(rule, d, low))(dtypes, low)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (variant(narrow=lambda d, low: d), "in the low dtype"),
        (variant(wide=lambda d, low: d), "in float32"),
        (variant(follows=lambda d, low: [low] * len(d)), "left alone"),
        (variant(follows=lambda d, low: cast_to("promote", d)), "not the widest"),
        (variant(promote=lambda d, low: [min(d, key=WIDTH.get)] * len(d)), "The widest of the inputs"),
        (variant(promote=lambda d, low: [d[1 % len(d)]] * len(d)), "widest may come first"),
        (variant(promote=lambda d, low: [torch.float32] * len(d)), "no cast"),
        (variant(promote=lambda d, low: [max(d, key=WIDTH.get)]), "should be [float32, float32]"),
        (variant(promote=lambda d, low: [low] * len(d) if set(d) == {torch.float32} else cast_to("promote", d)), "low"),
        (variant(narrow=lambda d, low: [bfloat16] * len(d)), "here it is float16"),
        (variant(narrow=lambda d, low: [low] * len(d)), "never cast down"),
        (variant(wide=lambda d, low: [torch.float32] * len(d)), "float64 to float32 is a cast down"),
        (variant(promote=lambda d, low: [torch.float32 if torch.float32 in d else low] * len(d)), "float64"),
        (variant(promote=lambda d, low: [torch.float32 if torch.float32 in d else d[0]] * len(d)), "nor to float32"),
        (lambda rule, d, low=bfloat16: cast_to(rule, d, low)[0], "one dtype"),
        (lambda rule, d, low=bfloat16: {"all": low}, "should be a list"),
        (lambda rule, d, low=bfloat16: [str(x) for x in cast_to(rule, d, low)], "'torch.bfloat16'"),
        (lambda rule, d, low=bfloat16: d.clear() or [low, low], "changes the list"),
    ],
)
def test_cast_to_names_the_mistake(wrong, hint):
    outcome = autocast.check_cast_to(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- 3: the gradient uphill


def as_given(model, loss_of, reach=1.0, between=lambda: None, **options):
    weights = list(model.parameters())
    with torch.autocast("cpu", dtype=bfloat16, **options):
        steps = torch.autograd.grad(loss_of(model), weights)
        move(weights, steps, reach)
        between()
        uphill = torch.autograd.grad(loss_of(model), weights)
        move(weights, steps, -reach)
    return uphill


@torch.no_grad()
def move(weights, steps, reach):
    for weight, step in zip(weights, steps, strict=True):
        weight += reach * step


def uphill_with(fault=""):
    def uphill_gradients(model, loss_of, reach=1.0):
        weights = list(model.parameters())
        with torch.autocast("cpu", dtype=bfloat16, enabled=fault != "float32"):
            loss = loss_of(model)
        steps = torch.autograd.grad(loss, weights)
        signs = {"downhill": -1, "twice": 2, "fixed": 1 / reach}
        move(weights, steps, reach * signs.get(fault, 1))
        with torch.autocast("cpu", dtype=bfloat16, enabled=fault not in ("float32", "second in float32")):
            loss = loss_of(model)
        uphill = torch.autograd.grad(loss, weights)
        if fault != "stays":
            move(weights, steps, -reach * signs.get(fault, 1))
        return list(uphill)

    return uphill_gradients


def without_a_cache(model, loss_of, reach=1.0):
    return as_given(model, loss_of, reach, cache_enabled=False)


def emptied(model, loss_of, reach=1.0):
    return as_given(model, loss_of, reach, torch.clear_autocast_cache)


def on_a_twin(model, loss_of, reach=1.0):
    weights, twin = list(model.parameters()), copy.deepcopy(model)
    with under():
        steps = torch.autograd.grad(loss_of(model), weights)
        move(twin.parameters(), steps, reach)
        return torch.autograd.grad(loss_of(twin), list(twin.parameters()))


@pytest.mark.parametrize("right", [uphill_with(), without_a_cache, emptied, on_a_twin])
def test_uphill_takes_every_way_to_new_copies(right):
    outcome = autocast.check_uphill(right)
    assert outcome, outcome.message


def left_open(model, loss_of, reach=1.0):
    under().__enter__()
    torch.set_autocast_cache_enabled(False)
    return uphill_with()(model, loss_of, reach)


def once(model, loss_of, reach=1.0):
    with under():
        return torch.autograd.grad(loss_of(model), list(model.parameters()))


def in_bfloat16(model, loss_of, reach=1.0):
    return [gradient.bfloat16() for gradient in uphill_with()(model, loss_of, reach)]


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (uphill_with("float32"), "Both forward passes run in float32"),
        (uphill_with("second in float32"), "One of the two forward passes"),
        (uphill_with("downhill"), "should be those at"),
        (uphill_with("twice"), "should be those at"),
        (uphill_with("fixed"), "should be those at"),
        (uphill_with("stays"), "Undo the step"),
        (left_open, "still open"),
        (once, "called 1 times"),
        (in_bfloat16, "not float32"),
        (lambda *given: uphill_with()(*given)[0], "one gradient per parameter"),
        (lambda *given: uphill_with()(*given)[:2], "shapes of the parameters"),
    ],
)
def test_uphill_names_the_mistake(wrong, hint):
    outcome = autocast.check_uphill(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_an_old_copy_is_told_by_what_is_seen_and_its_cause_is_in_the_hint():
    outcome = autocast.check_uphill(as_given)
    assert outcome.status == NOT_YET
    assert "the same as at the weights with which the function began" in outcome.message
    found, wanted = map(float, re.findall(r"0\.\d{4}", outcome.message))
    assert found != wanted
    assert not any(cause in outcome.message for cause in ("cop", "cache", "context"))
    assert "how long does autocast keep them" in outcome.hint


def test_a_context_that_was_left_open_before_does_no_harm():
    context = under()
    context.__enter__()
    try:
        assert autocast.check_uphill(uphill_with())
        assert (torch.is_autocast_enabled("cpu"), autocast._depth()) == (True, 1)
    finally:
        context.__exit__(None, None, None)


# --- 4: the operation that casts twice


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)
        self.scale = nn.Parameter(torch.ones(256))

    def forward(self, x):
        h = self.up(x)
        h = h * self.scale
        return self.down(F.gelu(h))


def layer_with(forward, dtype=torch.float32, **more):
    class Mended(Layer):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(self.scale.detach().to(dtype))
            for name, value in more.items():
                setattr(self, name, value)

    Mended.forward = forward
    return Mended


def casts_the_scale(self, x):
    h = self.up(x)
    return self.down(F.gelu(h * self.scale.to(h.dtype)))


def folds_the_scale(self, x):
    h = F.linear(x, self.up.weight * self.scale[:, None], self.up.bias * self.scale)
    return self.down(F.gelu(h))


@pytest.mark.parametrize("right", [casts_the_scale, folds_the_scale])
def test_no_second_cast_takes_what_casts_parameters_alone(right):
    outcome = autocast.check_no_second_cast(layer_with(right))
    assert outcome, outcome.message


def in_float32(self, x):
    with torch.autocast("cpu", enabled=False):
        return Layer.forward(self, x)


def without_scale(self, x):
    return self.down(F.gelu(self.up(x)))


def scale_after(self, x):
    h = F.gelu(self.up(x))
    return self.down(h * self.scale.to(h.dtype))


def by_data(self, x):
    h = self.up(x)
    return self.down(F.gelu(h * self.scale.data.to(h.dtype)))


def named_dtype(self, x):
    h = self.up(x.to(bfloat16))
    return self.down(F.gelu(h * self.scale.to(bfloat16)))


def names_the_dtype_of_the_scale(self, x):
    return self.down(F.gelu(self.up(x) * self.scale.bfloat16()))


def there_and_back(self, x):
    h = self.up(x)
    return self.down(F.gelu((h.float() * self.scale).to(h.dtype)))


def twice_the_input(self, x):
    h = self.up(x) + 0 * F.linear(x, self.up.weight)
    return self.down(F.gelu(h * self.scale.to(h.dtype)))


def in_place(self, x):
    return self.down(F.gelu(self.up(x).mul_(self.scale)))


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (layer_with(in_float32), "run in float32 now"),
        (layer_with(without_scale), "Is `scale` still there"),
        (layer_with(scale_after), "in its place"),
        (layer_with(by_data), "scale no longer gets a gradient"),
        (layer_with(named_dtype), "Without autocast the layer stops"),
        (layer_with(names_the_dtype_of_the_scale), "something is rounded to bfloat16"),
        (layer_with(casts_the_scale, bfloat16), "small updates of it"),
        (layer_with(casts_the_scale, extra=nn.Parameter(torch.ones(1))), "should keep its parameters"),
        (layer_with(casts_the_scale, scale=nn.Parameter(torch.ones(1))), "its shape, [256]"),
        (layer_with(lambda self, x: casts_the_scale(self, x)[0]), "tensor of shape"),
        (Layer(), "class itself"),
        (lambda: 3, "should be a torch.nn.Module"),
    ],
)
def test_no_second_cast_names_the_mistake(wrong, hint):
    outcome = autocast.check_no_second_cast(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


@pytest.mark.parametrize(
    ("wrong", "seen", "hint"),
    [
        (
            Layer,
            "640 bytes: 128 for the input, and 512 more, which is room for 256 numbers",
            "`mul` gets bfloat16 and float32",
        ),
        (layer_with(in_place), "converts one of them inside its kernel", "`mul` gets bfloat16 and float32"),
        (layer_with(there_and_back), "write 1664 bytes: 128 for the input", "Another activation"),
        (layer_with(twice_the_input), "write 256 bytes", "Another activation"),
    ],
)
def test_a_second_cast_is_told_in_bytes_and_named_in_the_hint(wrong, seen, hint):
    outcome = autocast.check_no_second_cast(wrong)
    assert outcome.status == NOT_YET
    assert seen in outcome.message
    assert "mul" not in outcome.message.replace("multiplied", "")
    assert "scale" not in outcome.message
    assert hint in outcome.hint


def test_a_cast_inside_a_kernel_is_not_told_in_bytes_that_are_right():
    message = autocast.check_no_second_cast(layer_with(in_place)).message
    assert "bytes" not in message


# --- 5: sum the messages


def mean(total, index):
    return total / torch.bincount(index, minlength=len(total)).clamp(min=1)[:, None]


def collect(messages, index, places):
    place = torch.zeros(places, messages.shape[1])
    return mean(place.index_add_(0, index, messages.float()), index).to(messages.dtype)


def by_scatter(messages, index, places):
    place = messages.new_zeros(places, messages.shape[1], dtype=torch.float32)
    place = place.scatter_add(0, index[:, None].expand_as(messages), messages.float())
    return mean(place, index).to(messages.dtype)


def by_index_put(messages, index, places):
    place = torch.zeros(places, messages.shape[1], dtype=torch.float64)
    return mean(place.index_put((index,), messages.double(), accumulate=True), index).to(messages.dtype)


def by_loop(messages, index, places):
    rows = [messages[index == place].float().sum(0) for place in range(places)]
    return mean(torch.stack(rows), index).to(messages.dtype)


def by_reduce(messages, index, places):
    place = torch.zeros(places, messages.shape[1])
    return place.index_reduce(0, index, messages.float(), "mean", include_self=False).to(messages.dtype)


@pytest.mark.parametrize("right", [collect, by_scatter, by_index_put, by_loop, by_reduce])
def test_collect_takes_every_sum_in_float32_or_wider(right):
    outcome = autocast.check_collect(right)
    assert outcome, outcome.message
    assert "float32" not in outcome.message  # one of these adds in float64


def test_one_rounding_is_asked_of_bfloat16_messages_alone():
    """A float32 sum of many float32 messages is off by several units in the last place."""
    messages, index = (
        torch.rand(4096, 8, generator=torch.Generator().manual_seed(0)),
        torch.zeros(4096, dtype=torch.long),
    )
    for dtype, lowest, highest in ((torch.float32, 2, 100), (bfloat16, 0, 0.51)):
        given = messages.to(dtype)
        exact = given.double().mean(0)
        unit = torch.exp2(exact.log2().floor()) * torch.finfo(dtype).eps
        off = ((collect(given, index, 1)[0].double() - exact).abs() / unit).max().item()
        assert lowest <= off <= highest


def as_it_comes(messages, index, places):
    return mean(messages.new_zeros(places, messages.shape[1]).index_add_(0, index, messages), index).to(messages.dtype)


def by_bfloat16_index_put(messages, index, places):
    place = messages.new_zeros(places, messages.shape[1])
    return mean(place.index_put_((index,), messages, accumulate=True), index).to(messages.dtype)


def wide_place(messages, index, places):
    return mean(torch.zeros(places, messages.shape[1]).index_add_(0, index, messages), index).to(messages.dtype)


def by_assignment(messages, index, places):
    place = torch.zeros(places, messages.shape[1])
    place[index] += messages.float()
    return mean(place, index).to(messages.dtype)


def by_product(messages, index, places):
    chosen = F.one_hot(index, places).T.float()
    return mean(chosen @ messages.float(), index).to(messages.dtype)


def without_expand(messages, index, places):
    place = torch.zeros(places, messages.shape[1])
    return mean(place.scatter_add_(0, index[:, None], messages.float()), index).to(messages.dtype)


def only_those_named(messages, index, places):
    return torch.stack([messages[index == p].float().mean(0) for p in index.unique()]).to(messages.dtype)


def sums(messages, index, places):
    return torch.zeros(places, messages.shape[1]).index_add_(0, index, messages.float()).to(messages.dtype)


def mean_of_nothing(messages, index, places):
    return torch.stack([messages[index == p].float().mean(0) for p in range(places)]).to(messages.dtype)


def counts_in_bfloat16(messages, index, places):
    count = torch.zeros(places, dtype=messages.dtype).index_add_(0, index, torch.ones(len(index), dtype=messages.dtype))
    total = torch.zeros(places, messages.shape[1]).index_add_(0, index, messages.float())
    return (total / count.float().clamp(min=1)[:, None]).to(messages.dtype)


def rounds_twice(messages, index, places):
    return mean(sums(messages, index, places), index).to(messages.dtype)


def needs_a_message(messages, index, places):
    if not len(index):
        return messages
    return collect(messages, index, places)


def eats_them(messages, index, places):
    out = collect(messages, index, places)
    messages.zero_()
    return out


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (as_it_comes, "rounded twice"),  # wrong, or right by luck, as the kernel has it
        (by_bfloat16_index_put, "stops at 128"),
        (counts_in_bfloat16, "count at 256"),
        (rounds_twice, "rounded twice"),
        (wide_place, "messages.float()"),
        (by_assignment, "half of their sum"),
        (by_product, "single message"),
        (without_expand, "expand it"),
        (only_those_named, "a row for each place"),
        (sums, "half of their sum"),
        (mean_of_nothing, "without a message"),
        (lambda m, i, p: collect(m.float(), i, p), "the dtype of the messages"),
        (lambda m, i, p: collect(m.bfloat16(), i, p).to(m.dtype), "single message"),
        (eats_them, "changes its input"),
        (needs_a_message, "has shape [0, 3]"),
        (lambda m, i, p: collect(m, i, p).tolist(), "gives list"),
    ],
)
def test_collect_names_the_mistake(wrong, hint):
    outcome = autocast.check_collect(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_collect_does_not_take_what_is_right_by_luck():
    def lucky(messages, index, places):  # the right means, and an operation on 16-bit messages on the way
        torch.zeros(places, messages.shape[1], dtype=bfloat16).index_add_(0, index, messages.bfloat16())
        return collect(messages, index, places)

    assert "by luck: `index_add` gets bfloat16" in autocast.check_collect(lucky).message


def test_in_one_dimension_a_bfloat16_sum_stops_at_128():
    messages, index = torch.full((4096,), 0.3, dtype=bfloat16), torch.zeros(4096, dtype=torch.long)
    assert torch.zeros(1, dtype=bfloat16).index_add_(0, index, messages).item() == 128
    assert torch.zeros(1, dtype=bfloat16).index_put_((index,), messages, accumulate=True).item() == 128
