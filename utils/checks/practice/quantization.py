"""Checks of `practice/quantization`."""

from dataclasses import dataclass

import torch

from utils.checks.outcome import NOT_ATTEMPTED, Outcome, Unreadable, correct, exercise, not_yet, paper_table
from utils.checks.practice.quantization_questions import BITS_OF_A_WEIGHT, PACK, SCALE_AND_ZERO, SMOOTH
from utils.quantization.integers import pack_int4, unpack_int4

NOTHING_YET = "The function returns nothing yet."

check_scale_and_zero = paper_table(
    SCALE_AND_ZERO, says="The grid that covers only the range in use has a step that is about two fifths smaller."
)
check_bits_of_a_weight = paper_table(
    BITS_OF_A_WEIGHT, says="What a group stores once is divided by the number of its weights."
)


def _called(answer, *arguments):
    """Return what the function makes of copies. Raises: Unreadable where it changes them, or returns no tensor."""
    copies = [argument.clone() for argument in arguments]
    returned = answer(*copies)
    if returned is None or returned is ...:
        return Outcome(NOT_ATTEMPTED, NOTHING_YET)
    if any(not torch.equal(before, after) for before, after in zip(arguments, copies, strict=True)):
        raise Unreadable("The function changes what it is given. Make a new tensor.")
    if not torch.is_tensor(returned):
        raise Unreadable(f"Return a tensor, not {type(returned).__name__}.")
    return returned


# --- Pack and unpack --------------------------------------------------------------------------------------------------


@exercise(asks=PACK)
def check_pack(answer) -> Outcome:
    """Two functions, (pack, unpack): int8 [N, K] -> uint8 [N, K / 2], and back."""
    if not (isinstance(answer, tuple | list) and len(answer) == 2 and all(map(callable, answer))):
        return not_yet(f"The check needs both functions, as in check_pack((pack, unpack)): {answer!r}.")
    pack, unpack = answer
    every = torch.cartesian_prod(torch.arange(-8, 8), torch.arange(-8, 8)).to(torch.int8)  # [256, 2]: each byte once
    for codes in (every.reshape(32, 16), every[:15].reshape(3, 10), every[5:6]):  # many rows, other shapes, one row
        packed = _called(pack, codes)
        if isinstance(packed, Outcome):
            return packed
        if fault := _packed_fault(packed, codes):
            return not_yet(fault)
        back = _called(unpack, pack_int4(codes))
        if isinstance(back, Outcome):
            return back
        if fault := _unpacked_fault(back, codes):
            return not_yet(fault)
    return correct("Every one of the 256 bytes, there and back.")


def _packed_fault(packed: torch.Tensor, codes: torch.Tensor) -> str | None:
    half = (codes.shape[0], codes.shape[1] // 2)
    if packed.shape != half:
        return f"[{codes.shape[0]}, {codes.shape[1]}] codes are [{half[0]}, {half[1]}] bytes, not {list(packed.shape)}."
    if packed.dtype != torch.uint8:
        return f"Bytes have the dtype torch.uint8, not {packed.dtype}."
    if torch.equal(packed, pack_int4(codes)):
        return None
    if torch.equal(packed, pack_int4(codes.view(len(codes), -1, 2).flip(-1).reshape(codes.shape))):
        return "The first of a pair goes into the high nibble, the second into the low one; yours are swapped."
    left, right = codes[:, : half[1]], codes[:, half[1] :]
    if torch.equal(packed, pack_int4(torch.stack([left, right], -1).flatten(1))):
        return "Neighbours share a byte: codes 0 and 1, 2 and 3. You put together the two halves of a row."
    positive = (codes[:, 0::2] >= 0) & (codes[:, 1::2] >= 0)
    if torch.equal(packed[positive], pack_int4(codes)[positive]):
        return "Codes of 0 and more are right. A negative one has ones in all its high bits: keep its four low ones."
    return "The byte of 3 and -5 is 0x3B: high nibble 3, low nibble 16 - 5."


def _unpacked_fault(back: torch.Tensor, codes: torch.Tensor) -> str | None:
    if back.shape != codes.shape:
        return f"`unpack` gives {list(back.shape)}, and should give the codes again, {list(codes.shape)}."
    if back.dtype != torch.int8:
        return f"`unpack` gives {back.dtype}; codes are torch.int8."
    if torch.equal(back, codes):
        return None
    if torch.equal(back, unpack_int4(pack_int4(codes), signed=False)):
        return "`unpack` gives 0 to 15. A nibble of 8 and more is negative: (n ^ 8) - 8."
    swapped = codes.view(len(codes), -1, 2).flip(-1).reshape(codes.shape)
    if torch.equal(back, swapped):
        return "`unpack` gives the low nibble first. The first code lies in the high one."
    return "`unpack` does not give back what was packed: 0x3B is 3 and -5."


# --- The smoothed product ---------------------------------------------------------------------------------------------

_EXACT = (
    "Round both to integers, with scales that are taken after smoothing; a factor comes from the largest magnitudes of "
    "two columns, one of x and one of w."
)
_CLOSE = 0.2  # of the error that the right product has: some codes at a tie may go the other way


@dataclass(frozen=True)
class _SmoothCase:
    """Inputs, what is special about them, and the cause of a mistake with them.

    `exact`: whether all right products have the same codes; if not, the result only has to be as close.
    """

    x: torch.Tensor
    w: torch.Tensor
    what: str
    hint: str
    alpha: float = 0.5
    exact: bool = True


@exercise(asks=SMOOTH, takes="smooth_product")
def check_smooth(answer) -> Outcome:
    """A function (x [M, K], w [N, K], alpha=0.5) -> x @ w.t(), in int8 after SmoothQuant's factors."""
    close = None
    for case in (cases := _smooth_cases()):
        more = () if case.alpha == 0.5 else (case.alpha,)
        returned = _called(lambda x, w, more=more: answer(x, w, *more), case.x, case.w)
        if isinstance(returned, Outcome):
            return returned
        product = case.x.double() @ case.w.double().t()
        if returned.shape != product.shape:
            sizes = f"x is {list(case.x.shape)} and w {list(case.w.shape)}"
            return not_yet(f"{sizes}; the product is not {list(returned.shape)}.")
        if not returned.is_floating_point():
            return not_yet(
                f"The result has the dtype {returned.dtype}; a product of scaled integers is floating point."
            )
        if not returned.isfinite().all():
            return not_yet(f"{case.what}: the result contains NaN or infinity.", case.hint)
        right = _smoothed(case.x, case.w, case.alpha)
        sizes = product.norm(dim=1).clamp(min=1e-9)
        error, off = ((y.double() - product).norm(dim=1) / sizes for y in (right, returned))
        if (off > 3 * error + 1e-6).any():
            worst = f"a row is off by {float(off.max()):.1%}; {float(error.max()):.1%} can be reached"
            message = f"{case.what}: {worst}."
            return not_yet(message, case.hint)
        if case.exact and close is None and (returned - right).norm() > _CLOSE * (right - product).norm():
            message = f"{case.what}: the result is close, but not that of smoothed integers from -127 to 127."
            close = not_yet(message, _EXACT if case is cases[0] else case.hint)
    return close if close is not None else correct("Large columns of either sign, tokens of any size, and zeros.")


def _smoothed(x: torch.Tensor, w: torch.Tensor, alpha: float) -> torch.Tensor:
    x, w = x.double(), w.double()
    of_x, of_w = (y.abs().amax(0) for y in (x, w))
    factor = (of_x**alpha / of_w ** (1 - alpha)).where((of_x > 0) & (of_w > 0), 1.0)
    x, w = x / factor, w * factor
    x_inv, w_inv = (y.abs().amax(1, keepdim=True).clamp(min=1e-300) / 127 for y in (x, w))
    return (x / x_inv).round() @ (w / w_inv).round().t() * x_inv * w_inv.t()


def _smooth_cases() -> list[_SmoothCase]:
    draw = torch.Generator().manual_seed(0)
    x, w = torch.randn(24, 64, generator=draw).clamp(-4, 4), torch.randn(48, 64, generator=draw)
    up, down, quiet, still, empty = (x.clone() for _ in range(5))
    up[:, 7] = 100 + x[:, 7].abs()
    down[:, [3, 20]] = -100 - x[:, [3, 20]].abs()
    quiet[5:] *= 0.01
    still[4] = 0
    empty[:, 9] = 0
    without = w.clone()
    without[:, 11] = 0
    uneven, rows = w * torch.logspace(-2, 0, 64), w * torch.logspace(-3, 0, 48)[:, None]
    ways = "A column that is large in x is divided by its factor, and the same column of w is multiplied by it."
    zeros = "0 / 0 is NaN. A largest magnitude of 0 needs a lower bound."
    return [
        _SmoothCase(up, w, "With a large column of x", ways),
        _SmoothCase(down, w, "With large negative columns", "A factor comes from magnitudes: max |x|."),
        _SmoothCase(up, uneven, "With columns of w of different sizes", "max |w| is taken for each column of w."),
        _SmoothCase(quiet, w, "With tokens of different sizes", "Each token has a scale: `amax(1, keepdim=True)`."),
        _SmoothCase(
            up,
            rows,
            "With rows of w of different sizes",
            "Each row of w has a scale, and it is that of the smoothed row.",
        ),
        _SmoothCase(x, uneven, "With alpha = 0.75", "`alpha` is an argument, and 1 - alpha belongs to w.", alpha=0.75),
        _SmoothCase(still, w, "With a token of zeros", zeros),
        _SmoothCase(empty, w, "With a column of zeros in x", zeros, exact=False),
        _SmoothCase(x, without, "With a column of zeros in w", zeros, exact=False),
    ]
