"""Checks of `eight_bits/fp8`."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from utils.checks.eight_bits.fp8_questions import (
    LINEAR_STEP,
    SATURATING_CAST,
    THERE_AND_BACK,
    TO_FNUZ,
    WHICH_FORMAT,
)
from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    Unreadable,
    choice_table,
    correct,
    exercise,
    not_yet,
    paper_table,
)
from utils.emulation.scaled_tensor import quantize
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E5M2

FORMATS = {"E4M3": FLOAT8_E4M3FN, "E5M2": FLOAT8_E5M2}
NOTHING_YET = "The function returns nothing yet."

check_there_and_back = paper_table(
    THERE_AND_BACK,
    says="The scale moved E4M3's codes down to where the tensor lies, and left their relative spacing as it was.",
)


check_which_format = choice_table(
    WHICH_FORMAT, says="The width decides, in binades. Where a tensor lies does not matter, because the scale moves it."
)


def _is_nothing(returned) -> bool:
    return returned is None or returned is ...


def _scalar(returned, name: str) -> float:
    """Read one number, also from a tensor of one element. Raises: Unreadable for anything else."""
    if (
        torch.is_tensor(returned)
        and returned.numel() == 1
        and not returned.is_complex()
        and returned.dtype != torch.bool
    ):
        return float(returned)
    if isinstance(returned, float | int) and not isinstance(returned, bool):
        return float(returned)
    raise Unreadable(f"{name} is one number for the whole tensor; yours is {_kind(returned)}.")


def _kind(returned) -> str:
    return f"a tensor {list(returned.shape)} of {returned.dtype}" if torch.is_tensor(returned) else repr(returned)


def _changed(pairs: Mapping[str, tuple[torch.Tensor, torch.Tensor]]) -> str:
    """Name the tensors, each beside what it was, that a function has changed; "" if there are none."""
    return " and ".join(f"`{name}`" for name, (now, before) in pairs.items() if not _same_bytes(now, before))


def _same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors agree in shape and bytes, so that a NaN equals itself."""
    return a.shape == b.shape and torch.equal(*(tensor.contiguous().view(-1).view(torch.uint8) for tensor in (a, b)))


def _verdict(fault: str | None, changed: str) -> Outcome | None:
    """Say what is wrong with a result, and which tensors were changed; None if nothing is."""
    if fault:
        return not_yet(fault + f" Your function also changed {changed}." * bool(changed))
    if changed:
        return not_yet(f"The result is right, but your function also changed {changed}, which it was given.")
    return None


# --- From E4M3 to E4M3FNUZ -------------------------------------------------------------------------------------------


@exercise(asks=TO_FNUZ, takes="to_fnuz")
def check_to_fnuz(answer) -> Outcome:
    """A function (codes, inv_scale) -> (codes, inv_scale) in E4M3FNUZ."""
    for codes in _stored_tensors():
        inv_scale = torch.tensor(1 / 1600)
        own = codes.clone(), inv_scale.clone()
        returned = answer(*own)
        if _is_nothing(returned):
            return Outcome(NOT_ATTEMPTED, f"{NOTHING_YET} Return the codes, and the number that takes them back.")
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise Unreadable("Return two things: the codes, and the number that takes them back.")
        turned, back = returned
        if not torch.is_tensor(turned) or turned.shape != codes.shape:
            raise Unreadable(f"The codes are a tensor of shape {list(codes.shape)}; yours: {_kind(turned)}.")
        if turned.dtype != torch.float8_e4m3fnuz:
            raise Unreadable(f"The codes are {turned.dtype}: bytes become codes with `.view(torch.float8_e4m3fnuz)`.")
        back = _scalar(back, "The number that takes them back")
        fault = _wrong_conversion(turned.float(), back / float(inv_scale), codes.float())
        changed = _changed({"codes": (own[0], codes), "inv_scale": (own[1], inv_scale)})
        if (wrong := _verdict(fault, changed)) is not None:
            return wrong
    return correct("Every number means what it meant, minus zero became zero, and what was NaN still is.")


def _stored_tensors() -> list[torch.Tensor]:
    """Return tensors of E4M3 codes: ordinary ones, some with minus zeros, all 256 codes, none."""
    draw = torch.Generator().manual_seed(0)
    ordinary = torch.randn(16, 32, generator=draw).clamp(min=0.01).to(torch.float8_e4m3fn)
    zeros = ordinary.float()
    zeros[::3, ::2] = -0.0
    every = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn)
    return [ordinary, zeros.to(torch.float8_e4m3fn), every, every.view(16, 16).t(), every[:0]]


def _wrong_conversion(read: torch.Tensor, factor: float, wanted: torch.Tensor) -> str | None:
    """Say what is wrong with the values `read`, taken back by `factor` times the old number; None if nothing is."""
    if not read.numel():
        return None
    if (read.isnan() & (wanted == 0)).any():
        return "Some zeros came out as NaN. Which code is minus zero in E4M3, and what is it in E4M3FNUZ?"
    if (lost := read[wanted.isnan() & ~read.isnan()]).numel():
        cause = ": the two NaN codes of E4M3 are ±240 in E4M3FNUZ, whose only NaN is 0x80"
        cause *= bool((lost.abs() == 240).all())
        return f"A NaN came out as {lost[0]:g}{cause}. A broken weight would no longer show."
    sound = ~wanted.isnan()
    if read[sound].isnan().any():
        return "Some numbers came out as NaN: E4M3FNUZ ends at 240, and a value past it has no code there."
    values = read[sound] * factor
    if torch.allclose(values, wanted[sound], rtol=1e-6, atol=0):
        return None
    some = sound & (wanted != 0)
    ratios = read[some] * factor / wanted[some]
    for ratio, says in _RATIOS.items():
        if torch.allclose(ratios, torch.tensor(ratio)):
            return says
    if math.isclose(factor, 1, rel_tol=1e-6):
        return "Large values have changed: E4M3FNUZ ends at 240, where E4M3 goes to 448. Change the scale as well."
    return "The numbers have changed. Their bytes need not: the same byte means half as much in E4M3FNUZ."


_RATIOS = {
    0.5: "Every value is half of what it was: the bytes are right, and the number that takes them back is not yet.",
    0.25: "Every value is a quarter of what it was. You halved the number that takes the codes back: double it.",
    2.0: "Every value is twice what it was: the number that takes the codes back is twice too large.",
}


# --- Three products ---------------------------------------------------------------------------------------------------

TOKENS = 50  # no multiple of 16


@exercise(asks=LINEAR_STEP, takes="linear_step")
def check_linear_step(answer) -> Outcome:
    """A function (x, w, dy, product) -> (y, dx, dw)."""
    draw = torch.Generator().manual_seed(0)
    x, w, dy = (torch.randn(*shape, generator=draw) for shape in ((TOKENS, 64), (32, 64), (TOKENS, 32)))
    inputs = {"x": x, "w": w, "dy": 1e-5 * dy}
    own = {name: tensor.clone() for name, tensor in inputs.items()}
    calls: list[_Call] = []
    returned = answer(*own.values(), _recorded(calls, inputs))
    if _is_nothing(returned):
        return Outcome(NOT_ATTEMPTED, f"{NOTHING_YET} Return y, dx and dw.")
    if not isinstance(returned, tuple | list) or len(returned) != 3 or not all(map(torch.is_tensor, returned)):
        raise Unreadable("Return three tensors: y, dx and dw.")
    fault = _wrong_step(dict(zip(("y", "dx", "dw"), returned, strict=True)), **inputs, calls=calls)
    changed = _changed({name: (own[name], inputs[name]) for name in inputs})
    if not fault and len(calls) < 3:
        times = ("never called", "called only once", "called only twice")[len(calls)]
        fault = f"The numbers are right, but product was {times}. Let it make all three."
    if (wrong := _verdict(fault, changed)) is not None:
        return wrong
    return correct("Three products sum over three axes, and zeros fill up the tokens without changing a sum.")


def _product(a: torch.Tensor, b: torch.Tensor, a_format: str, b_format: str) -> torch.Tensor:
    """Return a @ b.t(), both scaled by their amax and rounded."""
    return quantize(a, FORMATS[a_format]).dequantize() @ quantize(b, FORMATS[b_format]).dequantize().t()


@dataclass(frozen=True)
class _Call:
    """A call of product: of which tensors its operands hold values ("" for neither), their formats and amaxes."""

    of: tuple[str, str]
    formats: tuple[str, str]
    amaxes: tuple[float, float]


def _recorded(calls: list[_Call], inputs: Mapping[str, torch.Tensor]) -> Callable:
    """Return the `product` that the answer is given: it says what is wrong with its arguments, and notes its calls."""

    def product(a, b, a_format, b_format):
        for operand in (a, b):
            if not torch.is_tensor(operand) or operand.dim() != 2:
                raise Unreadable(f"product takes two matrices; one of yours is {_kind(operand)}.")
        for name in (a_format, b_format):
            if name not in FORMATS:
                raise Unreadable(f'{name!r} is no format here: write "E4M3" or "E5M2".')
        sizes = f"{list(a.shape)} and {list(b.shape)}"
        if a.shape[1] != b.shape[1]:
            raise Unreadable(
                f"product(a, b, ...) sums over the last axis of both; yours are {sizes}. "
                "One of them has to be transposed first."
            )
        if a_format == b_format == "E5M2":
            raise Unreadable("product refuses two operands in E5M2, as cuBLAS does.")
        if a.shape[1] % 16:
            raise Unreadable(
                f"product refuses {sizes}, as an H100 does: the axis that it sums over, {a.shape[1]}, is no multiple "
                "of 16. What can you add to both operands that changes no sum?"
            )
        if b.shape[0] % 16:
            remedy = "Rows of zeros can be added, and cut from the result." if a.shape[0] % 16 else SWAP
            raise Unreadable(
                f"product refuses {sizes}, as an H100 does: the rows of the second operand, {b.shape[0]}, are no "
                f"multiple of 16. {remedy}"
            )
        calls.append(
            _Call(
                of=(_whose(a, inputs), _whose(b, inputs)),
                formats=(a_format, b_format),
                amaxes=(float(a.abs().amax()), float(b.abs().amax())),
            )
        )
        return _product(a, b, a_format, b_format)

    return product


SWAP = "Those of the first may be any number, so the two can change places."


def _whose(operand: torch.Tensor, inputs: Mapping[str, torch.Tensor]) -> str:
    """Return the name of the tensor most of whose values `operand` holds, "" if it holds none."""
    values = operand[operand != 0]
    shared = {name: int(torch.isin(values, tensor).sum()) for name, tensor in inputs.items()}
    best = max(shared, key=shared.get)
    return best if shared[best] else ""


FACTORS = {"y": ("x", "w"), "dx": ("dy", "w"), "dw": ("dy", "x")}
WANTED_FORMAT = {"x": "E4M3", "w": "E4M3", "dy": "E5M2"}


def _wrong_step(returned: Mapping[str, torch.Tensor], *, x, w, dy, calls: list[_Call]) -> str | None:
    """Say what is wrong with y, dx and dw; None if nothing is."""
    right = {"y": _product(x, w, "E4M3", "E4M3")}
    right["dx"] = _product(dy, w.t(), "E5M2", "E4M3")
    right["dw"] = _product(dy.t(), x.t(), "E5M2", "E4M3")
    exact = {"y": x @ w.t(), "dx": dy @ w, "dw": dy.t() @ x}
    fewer = TOKENS // 16 * 16
    if returned["dw"].shape == exact["dw"].shape:
        cut = dy[:fewer].t() @ x[:fewer]
        if float((returned["dw"] - cut).norm() / cut.norm()) < 0.1 < float((exact["dw"] - cut).norm() / cut.norm()):
            return f"dw leaves out the last {TOKENS - fewer} tokens. Every token has a say in a weight."
    amaxes = {name: float(tensor.abs().amax()) for name, tensor in (("x", x), ("w", w), ("dy", dy))}
    for name, product in returned.items():
        own = [call for call in calls if set(call.of) == set(FACTORS[name])]
        if fault := _wrong_product(name, product, right[name], exact[name], own, amaxes):
            return fault
    return None


def _wrong_product(name, product, wanted, exact, calls, amaxes) -> str | None:
    if product.shape != wanted.shape:
        turned = list(product.shape) == list(wanted.shape)[::-1]
        padded = name != "dw" and product.shape[0] > TOKENS and product.shape[1] == wanted.shape[1]
        return (
            f"{name} should be {list(wanted.shape)}, and is {list(product.shape)}."
            + " Transposed?" * turned
            + " Rows that you added have to go again." * padded
        )

    def off(other: torch.Tensor) -> float:
        return float((product - other).norm() / other.norm())

    if off(wanted) < 1e-4:
        return None
    if off(exact) < 1e-4:
        return f"{name} is exact: it was not multiplied in FP8. Use product for it."
    if off(exact) < 0.2:
        return f"{name} is close, but {_what_differs(name, product, calls, amaxes)}"
    return f"{name} is another product: {off(exact):.0%} off the one in float32."


def _what_differs(name: str, product: torch.Tensor, calls: list[_Call], amaxes: Mapping[str, float]) -> str:
    """Say how a product that is close was made differently; `calls` are those of its own two factors."""
    if product.dtype in (torch.bfloat16, torch.float16):
        return f"its dtype is {product.dtype}. Leave everything in float32, as it was given."
    first, second = FACTORS[name]
    if not calls:
        return f"product was not called with {first} and {second} as they were given."
    for call in calls:
        for factor, fmt in zip(call.of, call.formats, strict=True):
            if fmt != WANTED_FORMAT[factor]:
                why = (
                    "Here gradients are to be in E5M2, for its range."
                    if factor == "dy"
                    else "Here activations and weights are to be in E4M3, for its precision."
                )
                return f"{factor} was rounded to {fmt}. {why}"
    if len(calls) > 1:
        return f"product was called {len(calls)} times for it, each time with scales of its own. Once is enough."
    for factor, amax in zip(calls[0].of, calls[0].amaxes, strict=True):
        if amax > amaxes[factor]:
            return f"what you added to {factor} is larger than its amax, so its scale is another one. Add zeros."
    return f"not what one product of all of {first} and {second} gives. Did you leave out rows, or change its result?"


# --- A cast that saturates --------------------------------------------------------------------------------------------

LAST_THAT_ROUNDS_TO_448 = 464.0


@exercise(asks=SATURATING_CAST, takes="cast")
def check_saturating_cast(answer) -> Outcome:
    """A function (x, scale) -> codes of E4M3."""
    for what, (x, scale) in _casts().items():
        own, factor = x.clone(), torch.tensor(scale)
        with _CastsWatched() as casts:
            returned = answer(own, factor)
        if _is_nothing(returned):
            return Outcome(NOT_ATTEMPTED, f"{NOTHING_YET} Return the codes.")
        if not torch.is_tensor(returned) or returned.shape != x.shape:
            raise Unreadable(f"The codes are a tensor of the shape of x, {list(x.shape)}; yours: {_kind(returned)}.")
        if returned.dtype != torch.float8_e4m3fn:
            raise Unreadable(f"The codes are {returned.dtype}: `.to(torch.float8_e4m3fn)` makes codes of E4M3.")
        scaled = (x.double() * scale).clamp(-448, 448).float()
        wanted = torch.where(x.isfinite(), scaled, torch.nan).to(torch.float8_e4m3fn).float()
        fault = _wrong_cast(returned.float(), wanted, x, scale, what)
        changed = _changed({"x": (own, x), "scale": (factor, torch.tensor(scale))})
        if (wrong := _verdict(fault, changed)) is not None:
            return wrong
        if casts.past_the_end:
            return not_yet(
                f"With {what}: the codes are right here, but values past 448 reach the cast, and what it makes of them "
                "depends on the version of torch. Limit them before."
            )
    return correct("Large values saturate, and a run that breaks still shows it.")


class _CastsWatched(TorchDispatchMode):
    """Notes whether a value that E4M3 cannot hold is left to the cast, whose answer depends on the version of torch."""

    past_the_end = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if torch.is_tensor(result) and result.dtype == torch.float8_e4m3fn:
            wide = [arg for arg in args if torch.is_tensor(arg) and arg.dtype.is_floating_point]
            wide = [arg for arg in wide if arg.dtype != torch.float8_e4m3fn]
            self.past_the_end |= any(bool((arg.float().abs() > LAST_THAT_ROUNDS_TO_448).any()) for arg in wide)
        return result


def _casts() -> dict[str, tuple[torch.Tensor, float]]:
    x = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    broken = x.clone()
    broken[0, :4] = torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0])
    huge = x.clone()
    huge[1, :3] = torch.tensor([1e35, -1e35, 1e-40])
    return {
        "ordinary values": (x, 100.0),
        "values past 448": (x, 1000.0),
        "a tensor with infinities and a NaN": (broken, 100.0),
        "values whose product with the scale overflows float32": (huge, 1e10),
        "a tensor without values": (x[:0], 1.0),
    }


def _wrong_cast(stored, wanted, x, scale, what) -> str | None:
    if torch.equal(stored.nan_to_num(nan=1000.0), wanted.nan_to_num(nan=1000.0)):
        return None
    where = f"With {what}:"
    if (limited := stored[x.isinf() & (stored.abs() == 448)]).numel():
        return f"{where} an infinity came out as {limited[0]:g}, so nobody will see that this run broke."
    if (x.isnan() & ~stored.isnan()).any():
        return f"{where} a NaN came out as a number."
    if (x.isinf() & ~stored.isnan()).any():
        return f"{where} an infinity came out as a number."
    if (broken := x.isfinite() & stored.isnan()).any():
        return f"{where} {_why_nan(broken, x, scale)}"
    finite = x.isfinite()
    for factor, says in ((1.0, "Nothing was scaled."), (1 / scale, "You divided by the scale: multiply by it.")):
        other = (x.double() * factor).clamp(-448, 448).float().to(torch.float8_e4m3fn).float()
        if scale != 1 and torch.equal(stored[finite], other[finite]):
            return f"{where} the codes are those of x times {factor:g}. {says}"
    if bool(((_place(stored) - _place(wanted)).abs()[finite] <= 1).all()):
        count = int((stored != wanted)[finite].sum())
        return (
            f"{where} {count} of {int(finite.sum())} codes are neighbours of the right ones. Is anything rounded "
            "before the cast, or is the scale not quite the one given?"
        )
    return f"{where} the codes are not those of x times scale. Multiply first, then limit, then cast."


def _why_nan(broken: torch.Tensor, x: torch.Tensor, scale: float) -> str:
    """Say why finite values, where `broken` is true, may have come out as NaN."""
    if bool((x * scale)[broken].isinf().all()):
        return "a finite value came out as NaN. Ask x whether it is finite, not the product."
    if bool(((x.double() * scale)[broken].abs() > 448).all()):
        return "a finite value past 448 came out as NaN. It should become 448, with its sign."
    if bool(broken[x.isfinite()].all()) and not bool(x.isfinite().all()):
        return "all finite values came out as NaN: only the entries that are not finite should."
    return "a finite value came out as NaN."


def _place(values: torch.Tensor) -> torch.Tensor:
    """Return the place of values of E4M3 among all of them, by size; both zeros have the place 0."""
    codes = values.to(torch.float8_e4m3fn).view(torch.uint8).int()
    return torch.where(codes < 128, codes, 128 - codes)
