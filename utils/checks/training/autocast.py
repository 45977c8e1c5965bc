"""Checks of `training/autocast`."""

import contextlib
import copy
import itertools
import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    Unreadable,
    choice_table,
    correct,
    exercise,
    not_yet,
)
from utils.checks.training.autocast_questions import (
    CAST_TO,
    COLLECT,
    NO_SECOND_CAST,
    UPHILL,
    WHAT_COMES_OUT,
)
from utils.diagnostics.dtype_probe import COMPUTE, DtypeProbe

HALF, WIDE, DOUBLE = torch.bfloat16, torch.float32, torch.float64


@contextlib.contextmanager
def _outside_autocast() -> Iterator[None]:
    """Begin outside any context, whatever was left open before, and leave all as it was found."""
    enabled, dtype = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    cache, depth, gradients = torch.is_autocast_cache_enabled(), _depth(), torch.is_grad_enabled()
    try:
        _set_autocast(False, HALF, True, 0)
        torch.set_grad_enabled(True)
        yield
    finally:
        _set_autocast(enabled, dtype, cache, depth)
        torch.set_grad_enabled(gradients)


def _set_autocast(enabled: bool, dtype: torch.dtype, cache: bool, depth: int) -> None:
    torch.set_autocast_enabled("cpu", enabled)
    torch.set_autocast_dtype("cpu", dtype)
    torch.set_autocast_cache_enabled(cache)
    while _depth() > depth:
        torch.autocast_decrement_nesting()
    while _depth() < depth:
        torch.autocast_increment_nesting()
    torch.clear_autocast_cache()


def _depth() -> int:
    """How many contexts are open."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def _context() -> torch.autocast:
    return torch.autocast("cpu", dtype=HALF)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# --- What comes out ---------------------------------------------------------------------------------------------------


def _dtype_name(returned) -> str:
    name = str(returned).strip().lower().removeprefix("torch.")
    return {"bf16": "bfloat16", "fp32": "float32", "float": "float32"}.get(name, name)


check_what_comes_out = choice_table(
    WHAT_COMES_OUT,
    says="Of these, only the product is cast, and its gradient on the way back. On a CPU the others, the loss "
    "included, run in the dtype that comes in, or in the wider of two. `F.mse_loss` would be cast to float32.",
    read=_dtype_name,
)


# --- A rule of your own -----------------------------------------------------------------------------------------------

HALF16 = torch.float16
CASTS = (  # rule, dtypes, low, right answers, and what to think of another one
    ("narrow", [WIDE, WIDE], HALF, ([HALF, HALF],), "A narrow operation gets its inputs in the low dtype."),
    ("wide", [HALF, HALF], HALF, ([WIDE, WIDE],), "A wide operation gets its inputs in float32."),
    ("follows", [WIDE, WIDE], HALF, ([WIDE, WIDE],), "Whatever comes in: such an operation is left alone."),
    ("follows", [HALF], HALF, ([HALF],), "Whatever comes in: such an operation is left alone."),
    ("follows", [HALF, WIDE], HALF, ([HALF, WIDE],), "Whatever comes in is not the widest: each keeps its dtype."),
    ("promote", [HALF, WIDE], HALF, ([WIDE, WIDE],), "The widest of the inputs is float32, so all are cast to it."),
    ("promote", [WIDE, HALF, HALF], HALF, ([WIDE] * 3,), "The widest may come first; return one dtype per input."),
    ("promote", [HALF, HALF], HALF, ([HALF, HALF],), "The widest of these is bfloat16: no cast."),
    ("promote", [WIDE, WIDE], HALF, ([WIDE, WIDE],), "No input has the low dtype, so it does not count."),
    ("narrow", [WIDE, HALF], HALF, ([HALF, HALF],), "An input that already has the low dtype keeps it."),
    ("wide", [WIDE, HALF], HALF, ([WIDE, WIDE],), "An input that is already float32 stays float32."),
    ("narrow", [WIDE, WIDE], HALF16, ([HALF16] * 2,), "The low dtype is an argument: here it is float16."),
    ("narrow", [HALF], HALF16, ([HALF16],), "The low dtype is float16 here, and the input has another dtype."),
    ("wide", [HALF16], HALF16, ([WIDE],), "The low dtype is float16 here. Wide still means float32."),
    ("narrow", [DOUBLE, WIDE], HALF, ([DOUBLE, HALF],), "Float64 is never cast down, but the other input is."),
    ("wide", [DOUBLE, HALF], HALF, ([DOUBLE, WIDE],), "From float64 to float32 is a cast down too."),
    ("promote", [DOUBLE, DOUBLE], HALF, ([DOUBLE, DOUBLE],), "The widest of these is float64."),
    ("promote", [DOUBLE, HALF], HALF, ([DOUBLE] * 2, [DOUBLE, HALF]), "Float64 is never cast down."),  # torch: the 2nd
    ("promote", [WIDE, DOUBLE], HALF, ([DOUBLE] * 2, [WIDE, DOUBLE]), "Float64 is never cast down, nor to float32."),
    ("promote", [HALF, WIDE, DOUBLE], HALF, ([DOUBLE] * 3, [WIDE, WIDE, DOUBLE]), "The widest may come last."),
)


@exercise(asks=CAST_TO, takes="cast_to")
def check_cast_to(answer) -> Outcome:
    """A function (rule, dtypes, low) to the list of dtypes in which an operation gets its inputs."""
    for count, (rule, dtypes, low, right, hint) in enumerate(CASTS):
        copy = list(dtypes)
        got = answer(rule, copy) if low == HALF else answer(rule, copy, low)
        if count == 0 and (got is None or got is ...):
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return a list of dtypes.")
        call = f"cast_to({rule!r}, {_shown(dtypes)}{'' if low == HALF else f', {_name(low)}'})"
        if copy != dtypes:
            return not_yet(f"{call} changes the list that it is given. Make a new one.")
        if isinstance(got, torch.dtype):
            return not_yet(f"{call} gives {_name(got)}, one dtype. Return a list, one for each input.")
        if not isinstance(got, list | tuple):
            return not_yet(f"{call} gives {got!r}; it should be a list of {len(dtypes)} dtypes.")
        if list(got) not in right:
            return not_yet(f"{call} should be {_shown(right[0])}, yours is {_shown(got)}. {hint}")
    return correct(f"Four rules, {len(CASTS)} calls. The rest of autocast is lists of names and a cache.")


def _shown(dtypes) -> str:
    return "[" + ", ".join(_name(dtype) if isinstance(dtype, torch.dtype) else repr(dtype) for dtype in dtypes) + "]"


# --- Find the bug: the gradient uphill --------------------------------------------------------------------------------

REACHES = (1.0, 2.0)  # the first is the default


@exercise(asks=UPHILL, takes="uphill_gradients")
def check_uphill(answer) -> Outcome:
    """A function (model, loss_of, reach) to the gradients at weights moved by `reach` times the gradients.

    Both forward passes run under autocast; afterwards the weights are as before, and no context is open.
    """
    with _outside_autocast(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 4))
        batch, labels = torch.randn(32, 16), torch.arange(32) % 4
        for reach in REACHES:
            dtypes = []

            def loss_of(module: nn.Module) -> torch.Tensor:
                out = module(batch)
                dtypes.append(out.dtype)  # noqa: B023 (called in this round alone)
                return F.cross_entropy(out, labels)

            before = copy.deepcopy(model)
            start, want = _two_gradients(model, batch, labels, reach)
            got = answer(model, loss_of) if reach == REACHES[0] else answer(model, loss_of, reach)
            if got is None or got is ...:
                return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the second gradients.")
            if fault := _gradients_fault(got, want) or _forward_fault(dtypes) or _moved(model, before):
                return not_yet(fault)
            if _error(got, want) > 0.05:
                return _wrong_place(got, start, want)
    return correct("The second forward pass reads the moved weights, because it makes its own copies.")


def _two_gradients(model: nn.Module, batch: torch.Tensor, labels: torch.Tensor, reach: float) -> list:
    """Return the gradients at the weights of `model`, and those at the weights moved by `reach` times the first."""
    gradients, twin = [], copy.deepcopy(model)
    for _ in range(2):
        with _context():
            loss = F.cross_entropy(twin(batch), labels)
        gradients.append(torch.autograd.grad(loss, list(twin.parameters())))
        twin = copy.deepcopy(twin)  # other tensors: in no cache
        with torch.no_grad():
            for weight, step in zip(twin.parameters(), gradients[-1], strict=True):
                weight += reach * step
    return gradients


def _gradients_fault(got, want: tuple) -> str:
    shapes = [list(gradient.shape) for gradient in want]
    if not isinstance(got, list | tuple) or not all(isinstance(gradient, torch.Tensor) for gradient in got):
        return f"The function should return one gradient per parameter, a list of {len(want)} tensors."
    if [list(gradient.shape) for gradient in got] != shapes:
        return f"The gradients should have the shapes of the parameters, {', '.join(map(str, shapes))}."
    if any(gradient.dtype != WIDE for gradient in got):
        return "A gradient is not float32. Ask for the gradients of the weights, not of copies of them."
    return ""


def _forward_fault(dtypes: list[torch.dtype]) -> str:
    if len(dtypes) != 2:
        return f"`loss_of` was called {len(dtypes)} times, but should be called twice: at the weights and uphill."
    if WIDE in dtypes:
        which = "Both forward passes run" if dtypes[0] == dtypes[1] else "One of the two forward passes runs"
        return f"{which} in float32. Each should run under autocast."
    return ""


def _moved(model: nn.Module, before: nn.Module) -> str:
    """Say what the call has left changed, or give ""."""
    if torch.is_autocast_enabled("cpu") or _depth():
        return "After the call an autocast context is still open."
    for weight, old in zip(model.parameters(), before.parameters(), strict=True):
        if not (weight.dtype == old.dtype and weight.requires_grad):
            return "After the call a weight has another dtype, or no longer requires a gradient."
        if (off := (weight - old).abs().max().item()) > 1e-5:
            return f"After the call the weights are not where they were: one is off by {off:.3g}. Undo the step."
    return ""


def _error(got, want) -> float:
    """Return the error of some gradients, relative to their norm."""
    return math.sqrt(sum((a - b).square().sum().item() for a, b in zip(got, want, strict=True))) / _norm(want)


def _norm(gradients) -> float:
    return math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))


def _wrong_place(got, start, want) -> Outcome:
    if _error(got, start) < 1e-3:
        return not_yet(
            f"The gradients have norm {_norm(got):.4f}, the same as at the weights with which the function began. At "
            f"the weights that it moved to, the norm is {_norm(want):.4f}.",
            hint="The float32 weights do move. Which numbers does the second forward pass read, and how long does "
            "autocast keep them?",
        )
    return not_yet(
        f"The gradients are off by {_error(got, want):.0%}. They should be those at `weight + reach * step` of every "
        "weight, where `step` is its first gradient."
    )


# --- No second cast ---------------------------------------------------------------------------------------------------

NARROW, BROAD, ROWS = 64, 256, (5, 9)


class _Given(nn.Module):
    """The layer of the exercise."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(NARROW, BROAD), nn.Linear(BROAD, NARROW)
        self.scale = nn.Parameter(torch.ones(BROAD))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x) * self.scale))


@exercise(asks=NO_SECOND_CAST, takes="Layer")
def check_no_second_cast(answer) -> Outcome:
    """A class of layers with the parameters of `Layer`, its result within 2 %, that casts no activation but its input.

    It is looked at under autocast with `DtypeProbe`, which sees the casts that autocast makes; an operation on inputs
    of two dtypes casts too, inside, and counts.
    """
    if isinstance(answer, nn.Module):
        return not_yet(f"The check needs the class itself, as in check_no_second_cast(Layer), not {answer!r}.")
    with _outside_autocast(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        reference, layer = _Given(), answer()
        if not isinstance(layer, nn.Module):
            return not_yet(f"Layer() gives {layer!r}; it should be a torch.nn.Module.")
        with torch.no_grad():
            reference.scale.copy_(torch.exp2(torch.randn(BROAD)))
        if fault := _other_parameters(layer, reference):
            return not_yet(fault)
        layer.load_state_dict(reference.state_dict())
        if (fault := _cast_fault(layer)) is not None:
            return fault
        for fault in (_other_result(layer, reference), _other_gradient(layer, reference)):
            if fault:
                return not_yet(fault)
    return correct(
        "Only one activation is cast, the input. All other casts are of parameters, or of tensors computed from "
        "them, and do not grow with the batch."
    )


def _other_parameters(layer: nn.Module, reference: nn.Module) -> str:
    mine, wanted = dict(layer.named_parameters()), dict(reference.named_parameters())
    if mine.keys() != wanted.keys() or layer.state_dict().keys() != reference.state_dict().keys():
        return f"The layer should keep its parameters: {', '.join(wanted)}. Yours has {', '.join(mine) or 'none'}."
    for name, weight in wanted.items():
        if mine[name].shape != weight.shape:
            return f"{name} should keep its shape, {list(weight.shape)}."
        if mine[name].dtype != weight.dtype:
            return (
                f"{name} itself is {_name(mine[name].dtype)} now, and small updates of it would be rounded away. Keep "
                "it in float32, and cast a copy of it in `forward`."
            )
    return ""


def _cast_fault(layer: nn.Module) -> Outcome | None:
    """Say that an activation is cast more often than it has to be, and where in the hint, or give None."""
    seen = []
    for rows in ROWS:
        x = torch.randn(rows, NARROW)
        with DtypeProbe(layer) as probe, _context():
            layer(x)
        seen.append(probe)
    steps = [step for step in probe.steps if step.kind == COMPUTE]
    mixed = [step for step in steps if len(set(step.inputs)) > 1]
    products = [step.dtype for step in steps if step.op in ("addmm", "mm", "bmm", "linear", "matmul")]
    if not mixed and (_name(HALF) not in products or _name(WIDE) in products):
        return not_yet(
            "The products run in float32 now, so nothing is cast, but nothing is gained either. Leave them to autocast."
        )
    # Casts of activations grow with the rows of the batch; those of weights, or of what is made of them, do not.
    low, high = (sum(step.bytes for step in probe.casts()) for probe in seen)
    a_row = (high - low) // (ROWS[1] - ROWS[0])
    more = a_row - 2 * NARROW
    message = (
        f"For each row of the input the casts write {a_row} bytes: {2 * NARROW} for the input, and {more} more, which "
        f"is room for {more // 2} numbers of two bytes."
        if more > 0
        else ""
    )
    if mixed:
        op, dtypes = mixed[0].op.strip("_"), " and ".join(dict.fromkeys(mixed[0].inputs))
        inside = "One operation gets inputs of two dtypes and converts one of them inside its kernel. "
        hint = (
            f"The operation `{op}` gets {dtypes}. To work in the wider dtype, it casts `h` up. Which of its two inputs "
        )
        return not_yet((inside + message).strip(), hint=hint + "is cheaper to cast yourself?")
    if message:
        return not_yet(message, hint="Another activation, or the same one again, is cast in `forward`.")
    return None


def _other_result(layer: nn.Module, reference: nn.Module) -> str:
    x = torch.randn(32, NARROW)
    with torch.no_grad():
        want = reference(x)
        plain = contextlib.nullcontext()
        for where, context, bound in (("Under autocast", _context(), 0.02), ("Without autocast", plain, 1e-5)):
            try:
                with context:
                    got = layer(x)
            except RuntimeError as error:
                return f"{where} the layer stops with: {error}. Ask `h` for its dtype: `.to(h.dtype)`."
            if not isinstance(got, torch.Tensor) or got.shape != want.shape:
                return f"{where} the layer should give a tensor of shape {list(want.shape)}."
            off = ((got.float() - want).abs().max() / want.abs().max()).item()
            if off <= 0.02 and not off <= bound:
                return (
                    f"{where} the result is off by {off:.2%} of the largest value: something is rounded to bfloat16 "
                    "there as well. Ask `h` for its dtype instead of naming one: `.to(h.dtype)`."
                )
            if not off <= bound:
                return (
                    f"{where} the result is off by {off:.1%} of the largest value. Is `scale` still there, and in its "
                    "place? It is all ones only at the beginning."
                )
    return ""


def _other_gradient(layer: nn.Module, reference: nn.Module) -> str:
    x = torch.randn(32, NARROW)
    for module in (layer, reference):
        with _context():
            out = module(x)
        out.float().square().sum().backward()
    for (name, weight), wanted in zip(layer.named_parameters(), reference.parameters(), strict=True):
        if weight.grad is None:
            return f"{name} no longer gets a gradient: a cast has a derivative, `.data` and `.detach()` have none."
        off = ((weight.grad - wanted.grad).abs().max() / wanted.grad.abs().max()).item()
        if not off <= 0.1:
            return f"The gradient of {name} is off by {off:.0%} of the largest value."
    return ""


# --- Average the messages ---------------------------------------------------------------------------------------------

COLLECT_WAYS = ("index_add", "scatter_add", "index_put", "scatter_reduce", "index_reduce")


@exercise(asks=COLLECT, takes="collect")
def check_collect(answer) -> Outcome:
    """A function (messages [N, D], index [N], places) to the means [places, D], in the dtype of the messages.

    With bfloat16 and float32 messages, under autocast and without; the sums are made in float32 or wider.
    """
    with _outside_autocast():
        first = answer(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 1]), 3)
        if first is None or first is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the means.")
        with _Collecting() as seen:
            for dtype, under in itertools.product((WIDE, HALF), (False, True)):
                for messages, index, places, hint in _collect_cases():
                    arguments = (messages.to(dtype), index, places)
                    if fault := _collect_fault(answer, *arguments, under=under, hint=hint):
                        where = f"{_name(dtype)} messages, {'under' if under else 'without'} autocast"
                        return not_yet(f"With {where}: {fault}")
        if seen.message:
            return not_yet(seen.message)
    return correct(
        "Nothing is added, counted or divided in bfloat16, whatever context is open, and the cast comes last."
    )


def _collect_cases() -> Iterator[tuple[torch.Tensor, torch.Tensor, int, str]]:
    """Messages, index, number of places, and what to think of where a mean is wrong."""
    draw = torch.Generator().manual_seed(0)
    several = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0], [8.0, 80.0]])
    yield several, torch.tensor([0, 1, 0, 2]), 3, "Two messages go to place 0; the mean is half of their sum."
    yield (
        several,
        torch.tensor([3, 3, 1, 1]),
        5,
        "A place without a message has the mean 0, though 0 / 0 is not a number.",
    )
    yield (
        torch.randn(6, 3, generator=draw),
        torch.tensor([2, 0, 1, 5, 4, 3]),
        6,
        "A single message should arrive unchanged; multiplying by a 0-1 matrix rounds it under autocast.",
    )
    yield (
        torch.full((4096, 2), 0.3),
        torch.zeros(4096, dtype=torch.long),
        2,
        "A bfloat16 sum of these stops at 128, and a bfloat16 count at 256.",
    )
    yield (
        torch.tensor([[256.0], *[[1.0]] * 8, [-256.0]]),
        torch.zeros(10, dtype=torch.long),
        1,
        "256 + 1 is 256 in bfloat16. In which dtype are the messages added?",
    )
    yield torch.zeros(0, 3), torch.zeros(0, dtype=torch.long), 2, "Without a message every mean is 0."
    yield (
        torch.randn(500, 4, generator=draw),
        torch.randint(40, (500,), generator=draw),
        40,
        "Is the mean rounded twice, as a bfloat16 sum and again as a quotient? Cast last.",
    )


def _collect_fault(
    answer: Callable, messages: torch.Tensor, index: torch.Tensor, places: int, *, under: bool, hint: str
) -> str:
    """Say how the means are wrong, or give ""."""
    wide, before = messages.double(), (messages.clone(), index.clone())
    want = torch.zeros(places, messages.shape[1], dtype=DOUBLE)
    size = torch.zeros_like(want)
    for message, place in zip(wide, index.tolist(), strict=True):
        want[place] += message
        size[place] += message.abs()
    count = torch.bincount(index, minlength=places).clamp(min=1)[:, None]
    want, size = want / count, size / count
    try:
        with _context() if under else contextlib.nullcontext():
            got = answer(messages, index, places)
    except RuntimeError as error:
        if "same scalar type" in str(error) or "dtype" in str(error):
            raise Unreadable(
                f"torch refuses: {error}. The place and the messages must have the same dtype: `messages.float()`."
            ) from None
        raise
    if not (torch.equal(messages, before[0]) and torch.equal(index, before[1])):
        return "the function changes its input."
    if not isinstance(got, torch.Tensor):
        return f"the function gives {type(got).__name__}; it should give a tensor."
    if got.shape != want.shape:
        return f"the result has shape {list(got.shape)}, but should have {list(want.shape)}, a row for each place."
    if got.dtype != messages.dtype:
        return f"the result is {_name(got.dtype)}; it should have the dtype of the messages. Cast at the end."
    # bfloat16: half a gap; and what float32 additions may lose, one after the other
    slack = 2e-5 * size + (2.0**-8 * want.abs() if messages.dtype == HALF else 0)
    wrong = ~((got.double() - want).abs() <= slack)
    if wrong.any():
        row, column = wrong.nonzero()[0].tolist()
        difference = f"the mean at place {row}, column {column}, is {float(got[row, column]):.6g}, but should be "
        difference += f"{float(want[row, column]):.6g}."
        if column and not wrong[:, 0].any() and not got[:, 1:].any():
            return (
                difference + " Column 0 is right: `scatter_add` takes its index entry by entry, so expand it to [N, D]."
            )
        return f"{difference} {hint}"
    return ""


class _Collecting(TorchFunctionMode):
    """Notes, in `message`, an operation that adds 16-bit values at places."""

    message = ""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "").strip("_")
        values = [*args, *(kwargs or {}).values()]
        narrow = any(isinstance(value, torch.Tensor) and value.dtype == HALF for value in values)
        if not self.message and narrow and name in COLLECT_WAYS:
            self.message = (
                f"The means are right, by luck: `{name}` gets bfloat16 inputs. This version adds rows in float32 "
                "internally, but nothing guarantees that, and in one dimension such a sum stops at 128. Add in float32."
            )
        return func(*args, **(kwargs or {}))
