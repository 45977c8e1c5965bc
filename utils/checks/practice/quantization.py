"""Checks of `practice/quantization`."""

import torch

from utils.checks.outcome import NOT_ATTEMPTED, Outcome, Unreadable, correct, exercise, not_yet, paper_table
from utils.checks.practice.quantization_questions import BITS_OF_A_WEIGHT, PACK, SCALE_AND_ZERO, SPLIT
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


# --- The split product ------------------------------------------------------------------------------------------------

_THRESHOLD = 6.0
CLOSE = (
    "it is not that of integers from -127 to 127, with a scale per row of x and of w and the outlier columns in "
    "floating point."
)


@exercise(asks=SPLIT, takes="split")
def check_split(answer) -> Outcome:
    """A function (x [M, K], w [N, K]) -> x @ w.t(), in int8 but for the columns of x with a magnitude of 6 or more."""
    close = None
    for x, w, what, hint in _products():
        returned = _called(answer, x, w)
        if isinstance(returned, Outcome):
            return returned
        exact = x.double() @ w.double().t()
        if returned.shape != exact.shape:
            return not_yet(f"x is {list(x.shape)} and w {list(w.shape)}; the product is not {list(returned.shape)}.")
        if not (returned.is_floating_point() and returned.isfinite().all()):
            return not_yet(f"{what}: the result is not a tensor of finite floating-point numbers.", hint)
        loud = (x.abs() >= _THRESHOLD).any(0)
        # Against what the usual columns make, for beside the loud ones every error looks small.
        usual = (x.masked_fill(loud, 0).double() @ w.double().t()).norm(dim=1)
        usual = usual.where(usual > 0, exact.norm(dim=1).clamp(min=1.0))  # all columns are loud, or all zeros
        off = (returned.double() - exact).norm(dim=1) / usual
        if off.max() > 0.03:
            message = f"{what}: a row is off by {float(off.max()):.0%} of what the usual columns make."
            return not_yet(message, hint)
        if close is None and not _is_of_integers(returned.double(), x, w, loud, usual):
            close = not_yet(f"{what}: the result is close, but {CLOSE}", hint)
    return correct("Outliers of either sign, in any column, and tokens of any size.") if close is None else close


def _is_of_integers(
    returned: torch.Tensor, x: torch.Tensor, w: torch.Tensor, loud: torch.Tensor, usual: torch.Tensor
) -> bool:
    if loud.all():
        return True
    # The scale of a row of w may be that of all its columns, or of the usual ones.
    products = (_int8_split(x, w, loud, amax) for amax in (w.abs().amax(1), w[:, ~loud].abs().amax(1)))
    return any(((returned - product).norm(dim=1) / usual).max() < 2e-3 for product in products)


def _int8_split(x: torch.Tensor, w: torch.Tensor, loud: torch.Tensor, w_amax: torch.Tensor) -> torch.Tensor:
    x, w = x.double(), w.double()
    usual = x.masked_fill(loud, 0)
    x_inv = (usual.abs().amax(1, keepdim=True) / 127).clamp(min=1e-300)
    w_inv = w_amax.double()[:, None] / 127
    narrow = (usual / x_inv).round() @ (w / w_inv).round().t()
    return narrow * x_inv * w_inv.t() + x[:, loud] @ w[:, loud].t()


def _products() -> list[tuple[torch.Tensor, torch.Tensor, str, str]]:
    """Return x, w, what is special, and the cause of a mistake with it."""
    draw = torch.Generator().manual_seed(0)
    x, w = torch.randn(24, 64, generator=draw).clamp(-4, 4), torch.randn(48, 64, generator=draw)
    up, down, quiet, once, still = (x.clone() for _ in range(5))
    up[:, 7] = 40 + x[:, 7].abs()
    down[:, [3, 20]] = -40 - x[:, [3, 20]].abs()
    quiet[5:] *= 0.01
    once[11, 30] = 50.0
    still[4] = 0
    uneven = w * torch.logspace(-3, 0, 48)[:, None]
    return [
        (x, w, "Without an outlier", "Nothing is to be split off here: int8, with a scale for each row of x and w."),
        (
            up,
            w,
            "With an outlier column",
            "Columns are large or not: `.any` runs over axis 0. And the columns that were taken out have to be "
            "multiplied as well, in floating point, and added.",
        ),
        (down, w, "With negative outliers", "An outlier is a magnitude: -40 is not greater than 6."),
        (
            quiet,
            w,
            "With tokens a hundred times smaller than others",
            "Each token has a scale of its own: `amax(1, keepdim=True)`.",
        ),
        (x, uneven, "With rows of w of different sizes", "Each row of w has a scale of its own as well."),
        (
            once,
            w,
            "With one outlier in one token",
            "The whole column leaves the int8 product, for all tokens. Its other values are multiplied in floating "
            "point too.",
        ),
        (still, w, "With a token of zeros", "0 / 0 is NaN. A token whose largest magnitude is 0 needs another scale."),
        (
            torch.full((2, 64), 7.0),
            w,
            "With outliers in all columns",
            "Nothing is left for int8, so the largest magnitude is 0, and 0 / 0 is NaN.",
        ),
    ]
