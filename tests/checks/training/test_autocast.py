"""The checks of training/autocast: the right answer, and for each foreseen wrong one the hint that names it."""

import itertools
import re

import pytest
import torch
import torch.nn.functional as F
from torch import bfloat16, nn

import book_rules
from tests.book_questions import right_option
from utils.checks.outcome import NOT_YET
from utils.checks.training import autocast, autocast_questions
from utils.diagnostics import autocast_table
from utils.diagnostics.autocast_docs import documented
from utils.widgets.op_lookup import OpLookup

DTYPES = {
    "h @ w": "bfloat16",
    "torch.relu(h)": "float32",
    "h @ w + h": "float32",
    "torch.softmax(h @ w, -1)": "bfloat16",
    "F.mse_loss(h @ w, h)": "float32",
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
    assert "no forward pass reads" in right_option(autocast_questions.STALE).text


def nine_uses(weight):
    inputs = [torch.ones(1, 1)] * 8 + [torch.full((1, 1), 256.0)]
    return sum(F.linear(x, weight).float().sum() for x in inputs)


@pytest.mark.parametrize(("cache", "gradient"), [(True, 256), (False, 264)])
def test_gradients_of_a_shared_copy_are_added_in_bfloat16(cache, gradient):
    weight = torch.ones(1, 1, requires_grad=True)
    with torch.autocast("cpu", dtype=bfloat16, cache_enabled=cache):
        loss = nine_uses(weight)
    loss.backward()
    assert weight.grad.dtype == torch.float32
    assert weight.grad.item() == gradient
    if cache:
        assert right_option(autocast_questions.SHARED).text.startswith("256: the gradients are added in bfloat16")


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
    rules = {"runs in 16 bits": "narrow", "runs in float32": "wide", "runs in the widest input dtype": "promote"}
    rules |= {"follows its inputs": "follows", "raises an error": "error"}
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
        loss = F.mse_loss(h @ w, h)
    loss.backward()
    found["w.grad, after backward"] = str(w.grad.dtype)
    assert {key: value.removeprefix("torch.") for key, value in found.items()} == DTYPES
    assert autocast.check_what_comes_out(DTYPES)
    assert autocast.check_what_comes_out(found)
    assert autocast.check_what_comes_out({key: getattr(torch, value) for key, value in DTYPES.items()})


@pytest.mark.parametrize(
    ("key", "hint"),
    list(zip(DTYPES, ["made for", "on no list", "wider dtype", "CUDA", "Losses", "passes the cast"], strict=True)),
)
def test_a_wrong_dtype_gets_its_hint(key, hint):
    wrong = {"bfloat16": "float32", "float32": "bf16"}[DTYPES[key]]
    outcome = autocast.check_what_comes_out(DTYPES | {key: wrong})
    assert outcome.status == NOT_YET
    assert outcome.message.startswith(key)
    assert hint in outcome.message


def test_what_comes_out_says_what_it_cannot_read():
    assert "is none of bfloat16, float32" in autocast.check_what_comes_out(DTYPES | {"h @ w": "float16"}).message


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
        (variant(promote=lambda d, low: [d[1 % len(d)]] * len(d)), "widest may stand first"),
        (variant(promote=lambda d, low: [torch.float32] * len(d)), "no cast"),
        (variant(promote=lambda d, low: [max(d, key=WIDTH.get)]), "should be [float32, float32]"),
        (variant(promote=lambda d, low: [low] * len(d) if set(d) == {torch.float32} else cast_to("promote", d)), "low"),
        (variant(narrow=lambda d, low: [bfloat16] * len(d)), "here it is float16"),
        (variant(narrow=lambda d, low: [low] * len(d)), "never cast down"),
        (variant(wide=lambda d, low: [torch.float32] * len(d)), "float64 to float32 is down"),
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


# --- 3: the evaluation


def evaluate_with(fault=""):
    def evaluate(model, batch):
        model.train(fault == "training mode")
        dtype = torch.float16 if fault == "float16" else bfloat16
        with torch.set_grad_enabled(fault == "graph"), torch.autocast("cpu", dtype=dtype, enabled=fault != "float32"):
            out = model(batch)
        model.train(fault != "stays in eval")
        return out

    return evaluate


def as_given(model, batch):
    context = under()
    context.__enter__()
    model.eval()
    with torch.no_grad():
        out = model(batch)
    model.train()
    return out


def closes_by_hand(model, batch):
    context = under()
    context.__enter__()
    model.eval()
    try:
        with torch.inference_mode():
            out = model(batch).float()
    finally:
        context.__exit__(None, None, None)
    model.train()
    return out


@under()
def decorated(model, batch):
    before = model.training
    model.eval()
    with torch.no_grad():
        out = model(batch)
    model.train(before)
    return out


@pytest.mark.parametrize("right", [evaluate_with(), closes_by_hand, decorated])
def test_evaluate_takes_what_leaves_the_training_as_it_was(right):
    outcome = autocast.check_evaluate(right)
    assert outcome, outcome.message


def only_switched_off(model, batch):
    out = as_given(model, batch)
    torch.set_autocast_enabled("cpu", False)
    return out


def only_emptied(model, batch):
    out = as_given(model, batch)
    torch.clear_autocast_cache()
    return out


def without_gradients_for_ever(model, batch):
    out = evaluate_with()(model, batch)
    torch.set_grad_enabled(False)
    return out


def in_bfloat16(model, batch):
    model.bfloat16().eval()
    with torch.no_grad():
        out = model(batch.bfloat16())
    model.train()
    return out


def freezes(model, batch):
    model.requires_grad_(False)
    return evaluate_with()(model, batch)


def restores_half(model, batch):
    out = evaluate_with("stays in eval")(model, batch)
    model.training = True
    return out


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (evaluate_with("stays in eval"), "in evaluation mode: the training"),
        (restores_half, "in evaluation mode: the training"),
        (evaluate_with("training mode"), "dropout"),
        (evaluate_with("float32"), "ran in float32"),
        (evaluate_with("graph"), "graph"),
        (without_gradients_for_ever, "gradients are switched off"),
        (in_bfloat16, "weight is bfloat16"),
        (freezes, "ask for no gradient"),
        (lambda model, batch: evaluate_with()(model, batch).argmax(-1), "tensor of shape"),
        (lambda model, batch: evaluate_with()(model, batch).tolist(), "not list"),
    ],
)
def test_evaluate_names_the_mistake(wrong, hint):
    outcome = autocast.check_evaluate(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def switches_on(model, batch):
    out = evaluate_with()(model, batch)
    torch.set_autocast_enabled("cpu", True)
    return out


@pytest.mark.parametrize(
    ("wrong", "seen", "hint"),
    [
        (as_given, "multiplied by 1.5", "still on, and the nesting is 1, not 0: a context was entered and never left"),
        (only_emptied, "multiplied by 1.5", "still on, and the nesting is 1"),
        (only_switched_off, "multiplied by 1.5", "is off, and the nesting is 1"),
        (switches_on, "gives bfloat16 outside of any `with`", "leaves autocast switched on"),
    ],
)
def test_an_open_context_is_told_by_what_is_seen_and_named_in_the_hint(wrong, seen, hint):
    outcome = autocast.check_evaluate(wrong)
    assert outcome.status == NOT_YET
    assert seen in outcome.message
    assert not any(cause in outcome.message for cause in ("left", "entered", "nest", "cache", "open", "still"))
    assert hint in outcome.hint


def test_the_old_copies_are_told_with_numbers():
    before, after, right = map(float, re.findall(r"\d\.\d{3}", autocast.check_evaluate(as_given).message))
    assert before == after < right


def test_a_context_that_was_left_open_before_does_no_harm():
    context = under()
    context.__enter__()
    try:
        assert autocast.check_evaluate(evaluate_with())
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
        (layer_with(scale_after), "at its place"),
        (layer_with(by_data), "scale gets no gradient"),
        (layer_with(named_dtype), "Without autocast the layer stops"),
        (layer_with(names_the_dtype_of_the_scale), "something is rounded to bfloat16 there"),
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
        (Layer, "write 640 bytes", "`mul` gets bfloat16 and float32"),
        (layer_with(in_place), "write 128 bytes", "`mul` gets bfloat16 and float32"),
        (layer_with(there_and_back), "write 1664 bytes", "Another activation"),
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


# --- 5: sum the messages


def collect(messages, index, places):
    place = torch.zeros(places, messages.shape[1])
    return place.index_add_(0, index, messages.float()).to(messages.dtype)


def by_scatter(messages, index, places):
    place = messages.new_zeros(places, messages.shape[1], dtype=torch.float32)
    place = place.scatter_add(0, index[:, None].expand_as(messages), messages.float())
    return place.to(messages.dtype)


def by_index_put(messages, index, places):
    place = torch.zeros(places, messages.shape[1], dtype=torch.float64)
    return place.index_put((index,), messages.double(), accumulate=True).to(messages.dtype)


def by_loop(messages, index, places):
    rows = [messages[index == place].float().sum(0) for place in range(places)]
    return torch.stack(rows).to(messages.dtype)


@pytest.mark.parametrize("right", [collect, by_scatter, by_index_put, by_loop])
def test_collect_takes_every_float32_sum(right):
    outcome = autocast.check_collect(right)
    assert outcome, outcome.message


def as_it_comes(messages, index, places):
    return messages.new_zeros(places, messages.shape[1]).index_add_(0, index, messages)


def by_bfloat16_index_put(messages, index, places):
    place = messages.new_zeros(places, messages.shape[1])
    return place.index_put_((index,), messages, accumulate=True)


def wide_place(messages, index, places):
    return torch.zeros(places, messages.shape[1]).index_add_(0, index, messages).to(messages.dtype)


def by_assignment(messages, index, places):
    place = torch.zeros(places, messages.shape[1])
    place[index] += messages.float()
    return place.to(messages.dtype)


def by_product(messages, index, places):
    chosen = F.one_hot(index, places).T.float()
    return (chosen @ messages.float()).to(messages.dtype)


def without_expand(messages, index, places):
    place = torch.zeros(places, messages.shape[1])
    return place.scatter_add_(0, index[:, None], messages.float()).to(messages.dtype)


def only_those_named(messages, index, places):
    return torch.stack([messages[index == p].float().sum(0) for p in index.unique()]).to(messages.dtype)


def mean(messages, index, places):
    count = torch.bincount(index, minlength=places).clamp(min=1)[:, None]
    return (collect(messages.float(), index, places) / count).to(messages.dtype)


def mean_of_nothing(messages, index, places):
    rows = [messages[index == p].float().mean(0) * (index == p).sum() for p in range(places)]
    return torch.stack(rows).to(messages.dtype)


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
        (as_it_comes, "ollect in float32"),  # wrong, or right by luck, as the kernel has it
        (by_bfloat16_index_put, "stops at 128"),
        (wide_place, "messages.float()"),
        (by_assignment, "has both of them"),
        (by_product, "single message"),
        (without_expand, "expand it"),
        (only_those_named, "a row for each place"),
        (mean, "has both of them"),
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
    def lucky(messages, index, places):  # the right sums, and an operation on 16-bit messages on the way
        torch.zeros(places, messages.shape[1], dtype=bfloat16).index_add_(0, index, messages.bfloat16())
        return collect(messages, index, places)

    assert "by luck: `index_add` gets bfloat16" in autocast.check_collect(lucky).message


def test_in_one_dimension_a_bfloat16_sum_stops_at_128():
    messages, index = torch.full((4096,), 0.3, dtype=bfloat16), torch.zeros(4096, dtype=torch.long)
    assert torch.zeros(1, dtype=bfloat16).index_add_(0, index, messages).item() == 128
    assert torch.zeros(1, dtype=bfloat16).index_put_((index,), messages, accumulate=True).item() == 128
