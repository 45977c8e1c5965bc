"""Checks of `numbers/stability`."""

import math
from collections.abc import Mapping

import torch
from torch.overrides import TorchFunctionMode

from utils.checks.numbers.stability_questions import LOSS, MASK, NORM, SOFTMAX
from utils.checks.outcome import NOT_ATTEMPTED, Outcome, as_number, correct, exercise, not_yet

INF, NAN = math.inf, math.nan
HALF = torch.float16


# --- A stable softmax -------------------------------------------------------------------------------------------------

SUBTRACT = "Subtract the maximum of the row first; then no exponent is above 0."
SOFTMAX_CASES = (  # rows of logits, and the hint if the result is wrong
    ([[12, 11, 10]], "exp overflows above 11.09. " + SUBTRACT),
    ([[10, 10, 10]], "No exponential overflows here, but their sum, 66096, does. " + SUBTRACT),
    ([[60000, 59968, 60000]], "A wider dtype only moves the limit: exp(60000) is inf in float64 too. " + SUBTRACT),
    ([[-60000, -60000]], "All exponentials underflow to 0, and 0/0 is NaN. " + SUBTRACT),
    (
        [[60000, 60000], [0, 1]],
        "Take the maximum of each row. With the maximum of the whole tensor, the other rows underflow to 0/0.",
    ),
    ([[0, -INF, 1]], "A logit of -inf is masked: its weight is 0, and the other weights add up to 1."),
    ([[5]], "If a row has only one entry, the weight of that entry is 1."),
)
MASKED_ROW = (
    "A row of nothing but -inf should give zeros. Its maximum is -inf, and -inf - (-inf) is NaN. If you subtract 0 "
    "instead, the sum is 0, and 0/0 is NaN too. Adding 1e-8 does not help, because float16 stores 1e-8 as 0."
)
LONG_ROW = (
    "The exponentials are all 1, and their sum is above 65504. Add them in float32: `e.sum(-1, dtype=torch.float32)`."
)


@exercise(asks=SOFTMAX, takes="softmax16", seconds=5)
def check_softmax16(answer) -> Outcome:
    """A function from float16 logits [B, N] to float16 weights [B, N], softmax along each row.

    It is tried on logits up to 60000, on masked entries (-inf, weight 0) and on fully masked rows (all weights 0).
    """
    first = torch.tensor([[1.0, 2, 3], [3, 2, 2]], dtype=HALF)
    try:
        got = answer(first.clone())
    except RuntimeError as error:
        if "size of tensor" not in str(error):
            raise
        return not_yet(
            "Rows of 3 entries and one number per row do not broadcast. With keepdim=True the shape stays [B, 1]."
        )
    if got is None or got is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the weights.")
    if fault := _not_half_like(got, first) or _softmax_habit(got, first):
        return not_yet(fault)
    for rows, hint in SOFTMAX_CASES:
        if fault := _wrong_softmax(answer, torch.tensor(rows, dtype=HALF), hint):
            return not_yet(fault)
    lost = answer(torch.tensor([[1, NAN, 2]], dtype=HALF))
    if not lost.isnan().any():
        return not_yet(
            f"softmax16([[1, nan, 2]]) is {_shown(lost)}: the NaN is hidden. Only rows of -inf need a special case."
        )
    masked = torch.tensor([[-INF, -INF], [0, 0]], dtype=HALF)
    if fault := _wrong_softmax(answer, masked, MASKED_ROW):
        return not_yet(fault)
    if fault := _wrong_softmax(answer, torch.zeros(1, 70_000, dtype=HALF), LONG_ROW):
        return not_yet(fault)
    generator = torch.Generator().manual_seed(0)
    for n in (2, 7, 64):
        for spread in (0.01, 3, 1000):
            x = (spread * torch.randn(5, n, generator=generator)).to(HALF)
            if fault := _wrong_softmax(answer, x, "Compare with torch.softmax on this input, step by step."):
                return not_yet(fault)
    return correct("Large logits and long rows work, and a row of nothing but -inf gives zeros instead of NaN.")


def _softmax(x: torch.Tensor) -> torch.Tensor:
    """The softmax of each row in float64; a row of -inf gives zeros."""
    return torch.nan_to_num(torch.softmax(x.double(), -1), nan=0.0)


def _softmax_habit(got: torch.Tensor, x: torch.Tensor) -> str:
    """Name what was computed in place of the softmax of each row, or give ""."""
    x, got = x.double(), got.double()
    habits = {
        "Each column sums to 1. Take the maximum and the sum along each row: dim=-1.": torch.softmax(x, 0),
        "The whole tensor sums to 1, but each row should. Take the maximum and the sum along each row: dim=-1.": (
            torch.softmax(x.flatten(), 0).view_as(x)
        ),
        "That is the log of the softmax; the task asks for the weights.": torch.log_softmax(x, -1),
        "The rows do not sum to 1 yet: divide by the sum of each row.": torch.exp(x - x.amax(-1, keepdim=True)),
    }
    return next((message for message, wrong in habits.items() if torch.allclose(got, wrong, rtol=0.02, atol=1e-3)), "")


def _wrong_softmax(answer, x: torch.Tensor, hint: str) -> str:
    """Say what is wrong with the weights of x, or give ""."""
    copy = x.clone()
    got, want = answer(copy), _softmax(x)
    if fault := _not_half_like(got, x):
        return fault
    if not torch.equal(copy, x):
        return "The function changes its input. Make a new tensor: `x = x - m`, not `x -= m`."
    # 2 %: x - max is stored with 11 bits, and near the underflow of exp, at -17.3, half an ulp of it is 0.8 %
    wrong = ~torch.isclose(got.double(), want, rtol=0.02, atol=2.0**-22)
    if not wrong.any():
        return ""
    row = int(wrong.any(-1).nonzero()[0])
    if x.numel() <= 4:
        return f"softmax16({_shown(x)}): row {row} is {_shown(got[row])}, but should be {_shown(want[row])}. {hint}"
    at = int(wrong[row].nonzero()[0])
    return (
        f"In a row of {x.shape[1]} logits from {float(x[row].min()):g} to {float(x[row].max()):g}, weight {at} is "
        f"{float(got[row, at]):.4g}, but should be {float(want[row, at]):.4g}. {hint}"
    )


def _not_half_like(got, x: torch.Tensor) -> str:
    """Say how `got` is not a float16 tensor of the shape of `x`, or give ""."""
    if not isinstance(got, torch.Tensor):
        return f"The function returns {type(got).__name__}; it should return a tensor."
    if got.shape != x.shape:
        return f"For an input of shape {list(x.shape)} the result has shape {list(got.shape)}; the two should be equal."
    if got.dtype != HALF:
        return f"The result is {got.dtype}; it should be torch.float16."
    return ""


def _shown(x: torch.Tensor) -> str:
    """A small tensor as readers write it: [12, 11, 10]."""
    if x.dim() == 0:
        return f"{float(x):.4g}" if abs(float(x)) < 1e4 or not math.isfinite(float(x)) else f"{float(x):.0f}"
    return "[" + ", ".join(_shown(part) for part in x) + "]"


# --- A safe mask value ------------------------------------------------------------------------------------------------


@exercise(asks=MASK, takes="mask_value", seconds=5)
def check_mask_value(answer) -> Outcome:
    """A function from a torch dtype to the number that, added to scores from -20000 to 20000, masks them.

    In float16, bfloat16 and float32: finite, masked weights of exactly 0, and no NaN if a whole row is masked.
    """
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        returned = answer(dtype)
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, f"The function returns nothing for {dtype} yet.")
        if fault := _mask_fault(as_number(returned), dtype):
            return not_yet(fault)
    return correct("It is finite, leaves room for the score, and puts a masked score far enough below any kept one.")


def _mask_fault(value: float, dtype: torch.dtype) -> str:
    """Say what goes wrong when `value` masks scores of `dtype`, or give ""."""
    name, largest = _name(dtype), torch.finfo(dtype).max
    stored = torch.tensor(value, dtype=torch.float64).to(dtype)
    if math.isnan(value):
        return f"{name}: NaN masks nothing; it spreads to every weight of the row."
    if value >= 0:
        return (
            f"{name}: adding {value:g} to a score does not lower it. A mask value is negative, with a large magnitude."
        )
    if math.isinf(value):
        return f"{name}: -inf works until a whole row is masked. Then -inf - (-inf) is NaN. Use a finite number."
    if stored.isinf():
        return (
            f"{name}: {value:g} is below the lowest number, {-largest:.6g}, so it is stored as -inf. Use a number that "
            "stays finite."
        )
    kept, masked = torch.tensor([-20000, 20000], dtype=dtype)  # the lowest score is kept, the highest is masked
    weight = float(torch.softmax(torch.stack([kept, masked + stored]), -1)[1])
    if weight > 0:
        return (
            f"{name}: {value:g} is not low enough. If the score -20000 is kept and 20000 is masked, the masked score "
            f"still gets the weight {weight:.2g}. After the mask it must be far enough below the kept score."
        )
    for scores in ([-20000] * 3, [-20000, 0, 20000], [20000] * 3):
        masked = torch.tensor(scores, dtype=dtype) + stored
        if torch.softmax(masked, -1).isnan().any():
            return (
                f"{name}: in a row that is fully masked, the scores {scores} become {_shown(masked)}, and the weights "
                f"become NaN. {float(stored):.6g} leaves no room for the score, so their sum overflows."
            )
    return ""


# --- A safe RMS norm --------------------------------------------------------------------------------------------------

NORM_CASES = (  # rows, eps, and the hint if the result is wrong
    (
        [[300, 400, -300, -400]],
        1e-5,
        "The squares 90,000 and 160,000 are above 65504, and a number divided by inf is 0. Scale before you square.",
    ),
    (
        [[0.001, -0.001]],
        1e-5,
        "Here eps is larger than the squares. If you divide the entries by m, their squares are divided by m**2, so "
        "eps must be divided by m**2 too. Torch computes `eps / t` as `(1 / t) * eps`, and 1 / t is inf for t below "
        "1.5e-5, so use `(eps**0.5 / m) ** 2`.",
    ),
    (
        [[1e-6, -1e-6]],
        1e-5,
        "The squares round to 0 unless you scale, and eps divided by the square of 1e-6 is above 65504. What is the "
        "smallest number that you need to divide by, given that eps is under the root too?",
    ),
    ([[0, 0, 0]], 1e-5, "In a row of zeros the largest magnitude is 0, and 0/0 is NaN. The result should be 0."),
    ([[0.001, -0.001]], 1e-6, "The result was right for eps = 1e-5. Do you use the eps that was passed?"),
    ([[300, 400], [0.003, 0.004]], 1e-6, "Scale each row by its own largest magnitude: dim=-1, keepdim=True."),
    (
        [[60000] * 4],
        1e-5,
        "The number that you divide by must not overflow. Scale, take the root, and then undo the scaling.",
    ),
    (
        [[60000, 1e-7, -3]],
        1e-5,
        "Entries far smaller than the largest do not matter, but they must not break the result.",
    ),
    ([[60] * 4096], 1e-5, "4,096 squares of 60 add up to 14,745,600. Scale before you add."),
)


@exercise(asks=NORM, takes="rms_norm16", seconds=5)
def check_rms_norm16(answer) -> Outcome:
    """A function from float16 rows [B, N] and an eps to x / sqrt(mean(x^2) + eps), computed in float16.

    Right within 1 % for entries up to 60000, rows of zeros, and an eps of 1e-5 or 1e-6.
    """
    first = torch.tensor([[2, -2, 2], [1, 1, 1]], dtype=HALF)
    with _Watch(NORM_TABOO, "and float32 needs the same trick for entries beyond 1.8e19") as watch:
        got = answer(first.clone(), 1e-5)
    if got is None or got is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the rows, divided by their RMS.")
    if fault := watch.message or _not_half_like(got, first):
        return not_yet(fault)
    if fault := _wrong_norm(answer, first, 1e-5):
        return not_yet(f"{fault} Divide each row by the root of the mean of its own squares: dim=-1, keepdim=True.")
    for rows, eps, hint in NORM_CASES:
        if fault := _wrong_norm(answer, torch.tensor(rows, dtype=HALF), eps):
            return not_yet(f"{fault} {hint}")
    lost = answer(torch.tensor([[1, NAN], [3, 3]], dtype=HALF), 1e-5)
    if not lost[0].isnan().any() or lost[1].isnan().any():
        return not_yet(
            f"rms_norm16([[1, nan], [3, 3]]) is {_shown(lost)}. A NaN must stay visible in its row and reach no other."
        )
    generator = torch.Generator().manual_seed(0)
    for n in (2, 5, 64):
        for exponent in range(-6, 4):
            x = (torch.randn(3, n, generator=generator) * 10.0**exponent).to(HALF)
            for eps in (1e-5, 1e-6):
                if fault := _wrong_norm(answer, x, eps):
                    return not_yet(f"{fault} Digits are lost if the scaled squares and the scaled eps are all tiny.")
    return correct("You scale the entries and eps before you square, so nothing overflows and no row becomes 0/0.")


def _wrong_norm(answer, x: torch.Tensor, eps: float) -> str:
    """Say how the RMS norm of x is wrong, or give ""."""
    copy = x.clone()
    got = answer(copy, eps)
    if fault := _not_half_like(got, x):
        return fault
    if not torch.equal(copy, x):
        return "The function changes its input. Make a new tensor: `x = x / m`, not `x /= m`."
    want = x.double() / (x.double().square().mean(-1, keepdim=True) + eps).sqrt()
    wrong = ~torch.isclose(got.double(), want, rtol=0.01, atol=2.0**-22)
    if not wrong.any():
        return ""
    row = int(wrong.any(-1).nonzero()[0])
    shown = f"of {x.shape[1]} entries up to {float(x[row].abs().max()):.4g}" if x.shape[1] > 4 else _shown(x[row])
    at = slice(None) if x.shape[1] <= 4 else slice(int(wrong[row].nonzero()[0]), int(wrong[row].nonzero()[0]) + 1)
    return f"Row {shown}, eps {eps:g}: your result is {_shown(got[row, at])}, but it should be {_shown(want[row, at])}."


NORM_TABOO = {
    "norm": "Torch's own norm computes in float32 internally. Write it yourself: scale, square, mean, root.",
    "dist": "Torch's own norm computes in float32 internally. Write it yourself: scale, square, mean, root.",
}


class _Watch(TorchFunctionMode):
    """Notes, in `message`, the first step that leaves float16, or that leaves the work to torch's own function.

    `taboo`: parts of the names of such functions, with what to say; `why_half`: why a wider dtype does not count.
    """

    def __init__(self, taboo: Mapping[str, str], why_half: str) -> None:
        super().__init__()
        self.taboo, self.why_half, self.message = taboo, why_half, ""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        took = any(isinstance(value, torch.Tensor) and value.dtype == HALF for value in args)
        wide = isinstance(out, torch.Tensor) and out.dtype in (torch.float32, torch.float64, torch.bfloat16)
        name = getattr(func, "__name__", "")
        if self.message:
            return out
        if reply := next((reply for part, reply in self.taboo.items() if part in name), ""):
            self.message = reply
        elif name in ("tolist", "item", "numpy"):
            self.message = "Python's and NumPy's numbers are wider than float16. Use only float16 tensors."
        elif took and wide:
            self.message = (
                f"One step goes from float16 to {_name(out.dtype)}. Stay in float16: a wider dtype only moves the "
                f"limit, {self.why_half}."
            )
        return out


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# --- Find the bug -----------------------------------------------------------------------------------------------------

LOGITS = (0, 1, -1, 3, -3, 5, -5, 8, -8, 9, -9, 12, -12, 20, -20, 100, -100, 1000, -1000, 60000, -60000)


LOSS_TABOO = {
    "cross_entropy": "That is torch's own loss. Write it yourself, with exponentials and logarithms of float16 numbers."
}
ROUNDED_AWAY = (
    "The formula is right, but float16 rounds the small part away: 1.0001 is stored as 1, and 9.0001 as 9. Compute "
    "log(1 + x) as log1p(x), and do not add it to a large number that cancels later."
)


@exercise(asks=LOSS, takes="bce16", seconds=5)
def check_bce16(answer) -> Outcome:
    """A function from float16 logits and targets to the binary cross-entropy of each, computed in float16.

    Right within 1 % of the loss, or within 1e-5, which is where float16 has few digits left.
    """
    pairs = [(z, y) for y in (1, 0, 0.5) for z in LOGITS]
    z, y = (torch.tensor(column, dtype=HALF) for column in zip(*pairs, strict=True))
    with _Watch(LOSS_TABOO, "and in float32 1 - sigmoid(17) is 0 as well") as watch:
        got = answer(z.clone(), y.clone())
    if got is None or got is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the losses.")
    if watch.message:
        return not_yet(watch.message)
    if isinstance(got, torch.Tensor) and got.shape == ():
        return not_yet("That is one number. Return the loss of each logit, not their mean.")
    if fault := _not_half_like(got, z):
        return not_yet(fault)
    got = got.double()
    want = (z.double().clamp(min=0) - z.double() * y.double()) + torch.log1p(torch.exp(-z.double().abs()))
    times_off = ((got - want).abs() / torch.clamp(0.01 * want, min=1e-5)).nan_to_num(nan=INF)
    if times_off.max() <= 1:
        return correct("max(z, 0) - z y + log1p(exp(-|z|)): no sigmoid is rounded to 0 or 1, so there is no log of 0.")
    at = int(times_off.argmax())
    return not_yet(
        f"For z = {float(z[at]):g} and y = {float(y[at]):g} the loss is {want[at]:.4g}, but yours is {got[at]:.4g}. "
        + _loss_hint(got, want, z=z, y=y)
    )


def _loss_hint(got: torch.Tensor, want: torch.Tensor, *, z: torch.Tensor, y: torch.Tensor) -> str:
    """Name what makes these losses wrong."""
    if torch.allclose(got, want, rtol=0.01, atol=0.005):
        return ROUNDED_AWAY
    if torch.allclose(got[z.abs() <= 5], -want[z.abs() <= 5], rtol=0.05):
        return "The sign is wrong."
    if torch.allclose(got[z.abs() <= 5], want.view(3, -1)[[1, 0, 2]].flatten()[z.abs() <= 5], rtol=0.05):
        return "y and 1 - y are swapped: for a target of 1, a large logit is right."
    sizes = z[~got.isfinite()].abs()
    if sizes.numel() and sizes.min() > 11.09:
        return (
            "For z above 11.09, exp(z) is inf. For z below -17.33, the sigmoid is 0, whose log is -inf. Then inf - inf "
            "or 0 * inf is NaN. Use exp(-|z|), which is at most 1, and do not take the log of a sigmoid."
        )
    if got.isnan().any():
        return (
            "Print p for this z and the argument of each log, in float16. If p is rounded to 0 or 1, the information "
            "that the loss needs is gone, and no later step brings it back. Work from z."
        )
    if (got.abs() > 65000).any():
        return (
            "log(0) or exp(z) above 11.09 is infinite, and 65504 in its place is not the right loss either. Use "
            "exp(-|z|), which is at most 1."
        )
    ends = got[(y == 1) & (z < -20)]
    if ends.min() > 1 and ends.max() - ends.min() < 1:
        return (
            f"The loss stops growing at {float(ends[-1]):.3g}, however wrong the logit is: an eps or a clamp caps it, "
            "and its gradient is 0 there. The true loss grows like |z|. Work from z, not from p."
        )
    return "Start from log(1 + exp(-z)) for y = 1, and write it so that no exponent is positive."
