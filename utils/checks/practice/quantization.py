"""Checks of `practice/quantization`."""

import torch

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
from utils.checks.practice.quantization_questions import BITS_OF_A_WEIGHT, PACK, SCALE_AND_ZERO, SPLIT, WHICH_EIGHT
from utils.quantization.integers import pack_int4, unpack_int4

NOTHING_YET = "The function returns nothing yet."

check_scale_and_zero = paper_table(
    SCALE_AND_ZERO, says="The grid that covers only what is there has a step that is smaller by two fifths."
)
check_bits_of_a_weight = paper_table(
    BITS_OF_A_WEIGHT, says="What a group stores is divided by those who share it, and by nobody else."
)
check_which_eight = choice_table(
    WHICH_EIGHT, says="Even steps for what lies close together, binades for what does not."
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
    codes = every.reshape(32, 16)
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
    if torch.equal(packed, pack_int4(codes.view(32, -1, 2).flip(-1).reshape(codes.shape))):
        return "The first of a pair goes into the high nibble, the second into the low one; yours are the other way."
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
    swapped = codes.view(32, -1, 2).flip(-1).reshape(codes.shape)
    if torch.equal(back, swapped):
        return "`unpack` gives the low nibble first. The first code lies in the high one."
    return "`unpack` does not give back what was packed: 0x3B is 3 and -5."


# --- The split product ------------------------------------------------------------------------------------------------


@exercise(asks=SPLIT, takes="split")
def check_split(answer) -> Outcome:
    """A function (x [M, K], w [N, K]) -> x @ w.t(), in int8 but for the columns of x with a magnitude of 6 or more."""
    for x, w, what, hint in _products():
        returned = _called(answer, x, w)
        if isinstance(returned, Outcome):
            return returned
        exact = x.double() @ w.double().t()
        if returned.shape != exact.shape:
            return not_yet(f"x is {list(x.shape)} and w {list(w.shape)}; the product is not {list(returned.shape)}.")
        if not (returned.is_floating_point() and returned.isfinite().all()):
            return not_yet(f"{what}: the result is not a tensor of finite floating-point numbers.", hint)
        # Against what the usual columns make, for beside the loud ones every error looks small.
        usual = x.masked_fill((x.abs() >= 6).any(0), 0).double() @ w.double().t()
        off = (returned.double() - exact).norm(dim=1) / usual.norm(dim=1)
        if off.max() > 0.03:
            return not_yet(f"{what}: a row is off by {float(off.max()):.0%} of what the usual columns make.", hint)
        if off.max() < 1e-4:
            return not_yet(f"{what}: the result is exact, so nothing went through int8.")
    return correct("Outliers of either sign, in any column, and tokens of any size.")


def _products() -> list[tuple[torch.Tensor, torch.Tensor, str, str]]:
    """Return x, w, what is special, and the cause of a mistake with it."""
    draw = torch.Generator().manual_seed(0)
    x, w = torch.randn(24, 64, generator=draw).clamp(-4, 4), torch.randn(48, 64, generator=draw)
    up, down, quiet = x.clone(), x.clone(), x.clone()
    up[:, 7] = 40 + x[:, 7].abs()
    down[:, [3, 20]] = -40 - x[:, [3, 20]].abs()
    quiet[5:] *= 0.01
    return [
        (x, w, "Without an outlier", "Nothing is to be split off here: int8, with a scale for each row of x and w."),
        (
            up,
            w,
            "With an outlier column",
            "A column is loud: it goes down the tokens, so `.any` runs over axis 0. And what was taken out has to be "
            "multiplied too, in wide numbers, and added.",
        ),
        (down, w, "With negative outliers", "An outlier is a magnitude: -40 is not greater than 6."),
        (
            quiet,
            w,
            "With tokens a hundred times smaller than others",
            "Each token has a scale of its own: `amax(1, keepdim=True)`.",
        ),
    ]
