"""Checks of `eight_bits/scaling_recipes`."""

import numpy as np

from utils.checks.eight_bits.scaling_recipes_questions import FIRST_STEP, FP8_PRODUCT, HISTORY, STORAGE, WGRAD_SCALES
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
    says="A spike comes back as the largest value that the scale lets in, the amax that it was made for times 2 to the "
    "margin. The step after knows of it.",
)
check_first_step = paper_table(
    FIRST_STEP,
    says="Each power of two of margin lets a rise by a factor of two pass, and rounding a little more.",
)
check_wgrad_scales = paper_table(
    WGRAD_SCALES,
    says="The blocks follow the axis that is summed over, so each tensor is quantised twice.",
)
check_storage = paper_table(
    STORAGE,
    says="Scales weigh little. Two copies weigh as much as 16 bits, and a little more.",
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
            "x * scale is past 448 here, and a plain cast to E4M3 gives NaN. Saturate when you quantize.",
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
