"""Checks of `eight_bits/scaling_recipes`."""

import math

import numpy as np
import torch

from utils.checks.eight_bits.scaling_recipes_questions import (
    FIRST_STEP,
    FP8_PRODUCT,
    HISTORY,
    LOST_SHARES,
    WGRAD_SCALES,
)
from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    correct,
    exercise,
    not_yet,
    paper_table,
)
from utils.formats import FLOAT8_E4M3FN
from utils.rounding import quantize

CASES = ((1.0, 1.0), (16.0, 0.5), (100.0, 3.0), (512.0, 512.0))  # the scales; the last ones let values saturate

check_history = paper_table(
    HISTORY,
    says="A spike comes back as the largest value that its scale lets in: the largest amax of the history, times 2 to "
    "the margin. The next step knows the spike.",
)
check_first_step = paper_table(
    FIRST_STEP,
    says="Each step of the margin makes room for another factor of 2, and rounding for a little more.",
)
check_wgrad_scales = paper_table(
    WGRAD_SCALES,
    says="The blocks follow the axis that is summed over, so each tensor is quantized twice.",
)


@exercise(asks=FP8_PRODUCT, takes="fp8_product")
def check_fp8_product(answer) -> Outcome:
    """A function (x, w, scale_x, scale_w) -> x @ w.T, from operands that are scaled, saturated and rounded to E4M3."""
    x, w = _operands()
    for scale_x, scale_w in CASES:
        returned = answer(x.copy(), w.copy(), scale_x, scale_w)
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the product.")
        product, right = np.asarray(returned, np.float64), fp8_product(x, w, scale_x, scale_w)
        if product.shape != right.shape:
            return not_yet(f"The product of {x.shape} and {w.shape} turned is {right.shape}, not {product.shape}.")
        if not _same(product, right):
            return not_yet(*_fault(product, x, w, scale_x, scale_w))
    return correct("The scales go in on the way to the codes, and out of the sum again; what does not fit saturates.")


def fp8_product(x, w, scale_x, scale_w, *, saturate: bool = True, back: float | None = None) -> np.ndarray:
    """Multiply two scaled E4M3 operands; `back`: what the sum is multiplied by, by default 1 / both scales."""
    qx = quantize(x * scale_x, FLOAT8_E4M3FN, saturate=saturate)
    qw = quantize(w * scale_w, FLOAT8_E4M3FN, saturate=saturate)
    return (qx @ qw.T) * (1 / (scale_x * scale_w) if back is None else back)


def _operands() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((5, 16)), rng.standard_normal((3, 16))


def _same(product: np.ndarray, right: np.ndarray) -> bool:
    return bool(np.allclose(product, right, rtol=1e-6, atol=1e-9 * np.nanmax(np.abs(right)), equal_nan=True))


def _fault(product: np.ndarray, x: np.ndarray, w: np.ndarray, scale_x: float, scale_w: float) -> tuple[str, str]:
    """Say what was seen of a wrong product, and give away its cause."""
    right = fp8_product(x, w, scale_x, scale_w)
    scales = f"With scales of {scale_x:g} and {scale_w:g}"
    if np.isnan(product).any() or np.isinf(product).any():
        return (
            f"{scales} the product holds NaN or infinity, and no operand does.",
            "x * scale is past 448 here, and quantize gives NaN there unless it is told to saturate.",
        )
    both = scale_x * scale_w
    backs = {
        both: "The sum is multiplied by the scales a second time. What takes them out is their inverse.",
        1.0: "The scales are still in the sum. Divide by both of them.",
        1 / scale_x: "The scale of w is still in the sum.",
        1 / scale_w: "The scale of x is still in the sum.",
    }
    for back, hint in backs.items():
        if _same(product, fp8_product(x, w, scale_x, scale_w, back=back)):
            ratio = np.linalg.norm(product) / np.linalg.norm(right)
            return f"{scales} the product is {ratio:.4g} times as large as it should be.", hint
    if _same(product, x @ w.T):
        return f"{scales} nothing was rounded: this is x @ w.T.", "Both operands have to go through E4M3."
    beyond = [
        quantize(operand * scale, FLOAT8_E4M3FN, saturate=True) for operand, scale in ((x, scale_x), (w, scale_w))
    ]
    if _same(product, beyond[0] @ beyond[1].T / scale_x**2) or _same(product, beyond[0] @ beyond[1].T / scale_w**2):
        return f"{scales} the product is off by a factor.", "Each operand has its own scale: divide by both."
    off = np.linalg.norm(product - right) / np.linalg.norm(right)
    return f"{scales} the product is off by {off:.2%} of its norm.", "Compare the operands with x * scale, rounded."


# --- What a scale loses

HIGHEST = 464.0  # the largest number that is still rounded to 448
LOWEST = 2.0**-10  # the largest that is rounded to 0: half of the smallest number

# A tensor, a scale, and what is said of a wrong answer where it shows first.
LOST_CASES: tuple[tuple[str, torch.Tensor, float], ...] = (
    ("two values of four saturate", torch.tensor([1.0, -2.0, 500.0, -1000.0]), 1.0),
    ("the scale is 200, and 3 and -4 saturate", torch.tensor([[1.0, -2.0], [3.0, -4.0]]), 200.0),
    ("one value of four becomes 0", torch.tensor([1.0, 2.0, -3.0, 0.0001]), 1.0),
    ("two of four values are 0 before", torch.tensor([0.0, 0.0, 0.0001, 1.0]), 1.0),
    ("448 and -448 are the largest numbers of E4M3", torch.tensor([448.0, -448.0, 1.0, 2.0]), 1.0),
    ("450 and 464 are rounded down to 448, 465 is not", torch.tensor([450.0, -464.0, 465.0, 1.0]), 1.0),
    ("0.0015 is rounded up to 2^-9, 2^-10 down to 0", torch.tensor([0.0015, -0.00195, 2.0**-10, 1.0]), 1.0),
    ("x is infinite once it is scaled", torch.tensor([1e38, 1.0]), 100.0),
    ("x holds zeros only", torch.zeros(3), 2.0),
    ("x is empty", torch.zeros(0), 2.0),
    ("x has no axis", torch.tensor(600.0), 1.0),
)

_LOST_HINT = (
    "Scale x. Count the values that would be rounded past 448, and those whose code is 0; `quantize` returns NumPy."
)
_LOST_HINTS = {
    "two of four values are 0 before": "Divide by the number of values that are not 0, and count none of the others.",
    "448 and -448 are the largest numbers of E4M3": "A value that is exactly 448 has lost nothing. Compare the scaled "
    "value, not its code.",
    "450 and 464 are rounded down to 448, 465 is not": "The next number would be 480. Up to the middle, 464, a value "
    "is rounded down to 448.",
    "0.0015 is rounded up to 2^-9, 2^-10 down to 0": "The smallest number is 2^-9. Up to half of it, a value "
    "becomes 0.",
    "x is infinite once it is scaled": "An infinity is past the end too.",
    "x holds zeros only": "A mean of no values is NaN: return 0 for both shares.",
    "x is empty": "A mean of no values is NaN: return 0 for both shares.",
}


@exercise(asks=LOST_SHARES, takes="lost_shares")
def check_lost_shares(answer) -> Outcome:
    """A function (x, scale) -> (share that saturates in E4M3, share that becomes 0), of the values that are not 0."""
    for words, x, scale in LOST_CASES:
        before = x.clone()
        returned = answer(x, scale)
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return two shares.")
        if not torch.equal(x, before):
            return not_yet("The function changes x. Leave it as it is.")
        shares = _read_shares(returned)
        if shares is None:
            return not_yet("Return two Python floats: the share that saturates, and the share that becomes 0.")
        right = lost_shares(x, scale)
        for name, share, wanted in zip(("saturates", "becomes 0"), shares, right, strict=True):
            if not math.isclose(share, wanted, rel_tol=1e-5, abs_tol=1e-7):
                message = f"Where {words}: the share that {name} is {wanted:.4g}, not {share:.4g}."
                return not_yet(message, _LOST_HINTS.get(words, _LOST_HINT))
    return correct("It counts what saturates and what becomes 0, and nothing that was merely rounded.")


def lost_shares(x: torch.Tensor, scale: float) -> tuple[float, float]:
    """Return what shares of the values that are not 0 saturate in E4M3, and become 0."""
    scaled = x[x != 0].double() * scale
    if not scaled.numel():
        return 0.0, 0.0
    return (scaled.abs() > HIGHEST).double().mean().item(), (scaled.abs() <= LOWEST).double().mean().item()


def _read_shares(returned) -> tuple[float, float] | None:
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        return None
    if not all(isinstance(share, float | int) and not isinstance(share, bool) for share in returned):
        return None
    return float(returned[0]), float(returned[1])
