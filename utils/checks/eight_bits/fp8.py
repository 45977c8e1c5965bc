"""Checks of `eight_bits/fp8`."""

from collections.abc import Callable

import torch

from utils.checks.eight_bits.fp8_questions import (
    COLUMN_MAJOR,
    LINEAR_STEP,
    SAFE_SCALE,
    THERE_AND_BACK,
    TO_CODES,
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
    says="The scale moved E4M3's window down to where the tensor lies, and changed no step's relative size.",
)


check_which_format = choice_table(
    WHICH_FORMAT, says="It is the width that decides, in binades. Where a tensor lies is the scale's business."
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


# --- A round trip -----------------------------------------------------------------------------------------------------


@exercise(asks=TO_CODES, takes="to_codes")
def check_to_codes(answer) -> Outcome:
    """A function x -> (codes, inv_scale) for a float32 tensor."""
    for x in _round_trips():
        returned = answer(x.clone())
        if _is_nothing(returned):
            return Outcome(NOT_ATTEMPTED, f"{NOTHING_YET} Return the codes, and what takes them back.")
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise Unreadable("Return two things: the codes, and the number that takes them back.")
        codes, back = returned
        if not torch.is_tensor(codes) or codes.shape != x.shape:
            raise Unreadable(f"The codes are a tensor of the shape of x, {list(x.shape)}; yours: {_kind(codes)}.")
        if codes.dtype != torch.float8_e4m3fn:
            raise Unreadable(f"The codes are {codes.dtype}: `.to(torch.float8_e4m3fn)` makes codes of E4M3.")
        if fault := _wrong_trip(codes.float(), _scalar(back, "What takes them back"), x):
            return not_yet(fault)
    return correct("amax lands at 448, everything else below it, and 1/scale takes it back.")


def _round_trips() -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    normal = torch.randn(64, 32, generator=draw)
    negative = normal.clone()
    negative[0, 0] = -40.0
    return [0.02 * normal, 1e-7 * normal, 1e5 * normal, negative]


def _wrong_trip(codes: torch.Tensor, back: float, x: torch.Tensor) -> str | None:
    """Say what is wrong with the codes and the factor that takes them back; None where nothing is."""

    def off(values: torch.Tensor) -> float:
        return float((values - x).norm() / x.norm())

    if codes.isnan().any():
        return "Some codes are NaN: a value was past 448 when it was cast. Is amax that of the magnitudes?"
    if torch.equal(codes, x.clamp(-448, 448).to(torch.float8_e4m3fn).float()):
        return "Nothing was scaled: multiply x by 448 / amax before the cast."
    if back and off(codes / back) < 0.05:
        return "You return the scale itself. The product, and this check, want what takes the codes back: 1 / scale."
    largest, signed = float(x.abs().amax()), float(x.amax())
    if largest > signed and abs(448 * back / signed - 1) < 1e-3:
        return "A large negative value saturates: amax is the largest magnitude, x.abs().amax()."
    if off(codes * back) < 0.05:
        top = float(codes.abs().amax())
        if top >= 224:  # half of it: a power of two does too
            return None
        return f"The largest code is {top:g}: the scale leaves room above. Take amax to 448, the largest value of E4M3."
    return f"Codes times your number are {off(codes * back):.0%} off x, where E4M3 is off by 3 %."


# --- Operand 2 --------------------------------------------------------------------------------------------------------


@exercise(asks=COLUMN_MAJOR, takes="column_major")
def check_column_major(answer) -> Outcome:
    """A function b -> the same matrix, column-major."""
    for rows, columns in ((64, 32), (32, 64), (48, 48)):
        values = torch.arange(rows * columns).remainder(251).view(rows, columns).float()
        b = values.to(torch.float8_e4m3fn)
        returned = answer(b.clone())
        if _is_nothing(returned):
            return Outcome(NOT_ATTEMPTED, f"{NOTHING_YET} Return the matrix.")
        if not torch.is_tensor(returned):
            raise Unreadable(f"Return a matrix; yours is {returned!r}.")
        if fault := _wrong_order(returned, b):
            return not_yet(fault)
    return correct("The same [K, N], and the numbers of a column side by side: strides (1, K).")


def _wrong_order(returned: torch.Tensor, b: torch.Tensor) -> str | None:
    rows, columns = b.shape
    if returned.shape != b.shape:
        turned = returned.shape == (columns, rows)
        return (
            f"b is [{rows}, {columns}], and yours is {list(returned.shape)}."
            + " Transposing alone gives another matrix: turn the memory, and then turn the axes back." * turned
        )
    if returned.dtype != b.dtype:
        return f"b is {b.dtype}, and yours is {returned.dtype}: the codes themselves should not change."
    if not torch.equal(returned.float(), b.float()):
        if torch.equal(returned.float(), b.float().t().reshape(b.shape)) or torch.equal(
            returned.float(), b.float().t()
        ):
            return "That is the transposed matrix: the same shape perhaps, other numbers in each place."
        return "The numbers have changed places: it should be the same matrix, in another order of memory."
    if returned.stride() == (columns, 1):
        return (
            f"It is still row-major, strides {returned.stride()}: `.contiguous()` makes row-major what is not, and"
            " leaves alone what is. Use it on the transposed matrix."
        )
    if returned.stride() != (1, rows):
        return f"The strides are {returned.stride()}; in a column-major matrix of {rows} rows they are (1, {rows})."
    return None


# --- Three products ---------------------------------------------------------------------------------------------------


@exercise(asks=LINEAR_STEP, takes="linear_step")
def check_linear_step(answer) -> Outcome:
    """A function (x, w, dy, product) -> (y, dx, dw)."""
    draw = torch.Generator().manual_seed(0)
    x, w, dy = (torch.randn(*shape, generator=draw) for shape in ((48, 64), (32, 64), (48, 32)))
    dy = 1e-5 * dy
    calls: list[tuple[str, str]] = []
    returned = answer(x, w, dy, _recorded(calls))
    if _is_nothing(returned):
        return Outcome(NOT_ATTEMPTED, f"{NOTHING_YET} Return y, dx and dw.")
    if not isinstance(returned, tuple | list) or len(returned) != 3 or not all(map(torch.is_tensor, returned)):
        raise Unreadable("Return three tensors: y, dx and dw.")
    right = {"y": _product(x, w, "E4M3", "E4M3")}
    right["dx"] = _product(dy, w.t(), "E5M2", "E4M3")
    right["dw"] = _product(dy.t(), x.t(), "E5M2", "E4M3")
    exact = {"y": x @ w.t(), "dx": dy @ w, "dw": dy.t() @ x}
    for product, (name, wanted) in zip(returned, right.items(), strict=True):
        if fault := _wrong_product(name, product, wanted, exact[name], calls):
            return not_yet(fault)
    return correct("Three products, three axes that are summed over: K, N and the tokens.")


def _product(a: torch.Tensor, b: torch.Tensor, a_fmt: str, b_fmt: str) -> torch.Tensor:
    """Return a @ b.t(), both scaled by their amax and rounded."""
    return quantize(a, FORMATS[a_fmt]).dequantize() @ quantize(b, FORMATS[b_fmt]).dequantize().t()


def _recorded(calls: list) -> Callable:
    """Return the `product` that the answer is given: it says what is wrong with its arguments, and notes formats."""

    def product(a, b, a_fmt, b_fmt):
        for operand in (a, b):
            if not torch.is_tensor(operand) or operand.dim() != 2:
                raise Unreadable(f"product takes two matrices; one of yours is {_kind(operand)}.")
        for name in (a_fmt, b_fmt):
            if name not in FORMATS:
                raise Unreadable(f'{name!r} is no format here: write "E4M3" or "E5M2".')
        if a.shape[1] != b.shape[1]:
            raise Unreadable(
                f"product(a, b, ...) sums over the last axis of both; yours are {list(a.shape)} and {list(b.shape)}. "
                "One of them has to be transposed first."
            )
        calls.append((a_fmt, b_fmt))
        return _product(a, b, a_fmt, b_fmt)

    return product


def _wrong_product(name, product, wanted, exact, calls) -> str | None:
    if product.shape != wanted.shape:
        turned = list(product.shape) == list(wanted.shape)[::-1]
        return f"{name} should be {list(wanted.shape)}, and is {list(product.shape)}." + " Transposed?" * turned

    def off(other: torch.Tensor) -> float:
        return float((product - other).norm() / other.norm())

    if off(wanted) < 1e-4:
        return None
    if off(exact) < 1e-4:
        return f"{name} is exact: it was not multiplied in FP8. Use product for it."
    if off(exact) < 0.2:
        both = calls and all(call == ("E4M3", "E4M3") for call in calls)
        if name != "y" and both:
            return f"{name} is close, but dy was rounded to E4M3: gradients go to E5M2, for its range."
        return f"{name} is close, but not what E4M3 for x and w and E5M2 for dy give: look at the formats."
    return f"{name} is another product: {off(exact):.0%} off the one in float32."


# --- Find the bug -----------------------------------------------------------------------------------------------------


@exercise(asks=SAFE_SCALE, takes="safe_scale")
def check_safe_scale(answer) -> Outcome:
    """A function x -> scale, positive and finite for every tensor."""
    for what, x in _tensors().items():
        returned = answer(x.clone())
        if _is_nothing(returned):
            return Outcome(NOT_ATTEMPTED, f"{NOTHING_YET} Return the scale.")
        scale = torch.tensor(_scalar(returned, "A scale"), dtype=torch.float32)
        if torch.is_tensor(returned) and returned.dtype != torch.float32:
            raise Unreadable(f"The scale is {returned.dtype}: scales are float32.")
        if not scale.isfinite() or scale <= 0:
            return not_yet(f"For {what} the scale is {float(scale):g}. {_HINTS[what]}")
        sound = 448 / x.abs().amax()
        if what in ("ordinary numbers", "very small numbers") and (scale / sound - 1).abs() > 1e-6:
            return not_yet(
                f"For {what} the scale is {float(scale):g}, and 448 / amax was sound: {float(sound):g}. What is added "
                "to every amax, or clamped too early, changes scales that were right."
            )
    return correct("A tensor of zeros keeps its zeros with any scale. What matters is that 0 times it is 0.")


_HINTS = {
    "a tensor of zeros": "448 / 0 is infinity, and 0 times infinity is NaN: so one batch of padding ends a run.",
    "ordinary numbers": "It should be 448 / amax.",
    "very small numbers": "It should be 448 / amax, which float32 still holds.",
    "an amax of 1e-40": "448 / 1e-40 is past the end of float32: infinity again, from an amax that is not 0.",
    "a tensor with an infinity": "448 / infinity is 0, and its inverse is infinity. Look at amax before you divide.",
    "a tensor with a NaN": "amax hands a NaN on. A comparison with NaN is false: `torch.where(amax > 0, ...)`.",
}


def _tensors() -> dict[str, torch.Tensor]:
    x = torch.randn(64, generator=torch.Generator().manual_seed(0))
    infinite, missing = x.clone(), x.clone()
    infinite[3], missing[3] = torch.inf, torch.nan
    tensors = (torch.zeros(64), x, 1e-9 * x, torch.full((64,), 1e-40), infinite, missing)
    return dict(zip(_HINTS, tensors, strict=True))
