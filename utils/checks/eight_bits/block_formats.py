"""Checks of `eight_bits/block_formats`."""

import numpy as np

from utils.checks.eight_bits.block_formats_questions import (
    BITS_FOR_A_VALUE,
    NVFP4_SQUARES,
    ROTATED_PRODUCT,
    SCALE_BYTE,
    SCALE_BYTES,
)
from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    Unreadable,
    correct,
    exercise,
    not_yet,
    paper_table,
)
from utils.formats import FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E8M0FNU, encode
from utils.quantization.rotation import hadamard, rotate
from utils.scaling import SCALINGS, Scaling, quantize_tiles, shared_exponent

SQUARES = Scaling("nvfp4-2d", "NVFP4, 16×16", (16, 16), FLOAT8_E4M3FN, tensor_scale=True, source="arXiv 2509.25149")

check_scale_byte = paper_table(
    SCALE_BYTE, says="One byte for 32 values, and every code is a power of two but 255, which is NaN."
)
check_bits_for_a_value = paper_table(
    BITS_FOR_A_VALUE, says="A scale costs its bits divided by the values that share it."
)


def _called(name: str, answer, *arguments) -> np.ndarray | Outcome:
    """Call a learner's function on copies; raises Unreadable where it changes them or returns no array."""
    copies = [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]
    returned = answer(*copies)
    if returned is None or returned is ...:
        return Outcome(NOT_ATTEMPTED, f"`{name}` returns nothing yet.")
    for before, after in zip(arguments, copies, strict=True):
        if isinstance(before, np.ndarray) and not np.array_equal(before, after, equal_nan=True):
            raise Unreadable(f"`{name}` changes what it is given. Make a new array.")
    try:
        return np.asarray(returned)
    except ValueError:
        raise Unreadable(f"Return one NumPy array, not {type(returned).__name__}.") from None


# --- NVFP4 in squares -------------------------------------------------------------------------------------------------


@exercise(asks=NVFP4_SQUARES, takes="nvfp4_squares")
def check_nvfp4_squares(answer) -> Outcome:
    """A function w -> the values that NVFP4 with one scale for 16 × 16 gives back; float32 [R, C]."""
    for w, hint in _matrices():
        returned = _called("nvfp4_squares", answer, w)
        if isinstance(returned, Outcome):
            return returned
        if returned.shape != w.shape:
            return not_yet(f"w is {list(w.shape)}, and so should be what you return; it is {list(returned.shape)}.")
        if fault := _squares_fault(returned.astype(np.float64), w):
            return not_yet(f"{fault} {hint}".strip())
    return correct("And the transpose of a matrix gives the transpose: forward and backward see the same numbers.")


def _matrices() -> list[tuple[np.ndarray, str]]:
    """Return matrices, and what to think of where one of them alone goes wrong."""
    draw = np.random.default_rng(0)
    w = draw.standard_normal((48, 64)).astype(np.float32)
    small, spread = np.float32(1e-4) * w, w.copy()
    spread[:16] *= np.float32(3e-3)
    zeros = w.copy()
    zeros[16:32, 16:32] = 0
    halves = (draw.integers(-12, 13, (48, 64)) / 2).astype(np.float32)
    halves[::16, ::16] = 6  # in each square
    halves[0, 0] = 21  # 6 * 448 / 21 = 128: the other squares have the scale 1, in whichever order it is worked out
    return [
        (w, ""),
        (small, "All of the matrix is small here."),
        (spread, "The first rows are much smaller here."),
        (zeros, "One square holds zeros alone here: 0 / 0 is NaN."),
        (halves, "Many values lie halfway between two of E2M1 here: each goes to the one whose code is even."),
    ]


def _squares_fault(returned: np.ndarray, w: np.ndarray) -> str | None:
    """Say what is wrong with what was given back for w; None where nothing is."""

    def is_that_of(scaling: Scaling) -> bool:
        return _near(returned, quantize_tiles(w, FLOAT4_E2M1FN, scaling).dequantize(), w)

    if is_that_of(SQUARES):
        return None
    if np.isnan(returned).any():
        return "There is a NaN in what you return."
    if is_that_of(SCALINGS["nvfp4"]):
        return "Those are the blocks of the chapter, 1 × 16. A square has 16 rows and 16 columns, and one scale."
    if is_that_of(Scaling("1x256", "", (1, 256), FLOAT8_E4M3FN, tensor_scale=True)) or _near(returned, _runs(w), w):
        return "256 numbers in a row of memory are no square: reshape to [R/16, 16, C/16, 16], and take axes 1 and 3."
    if is_that_of(Scaling("square", "", (16, 16))):
        return "The scale of a square is a float32 here. NVFP4 stores it in E4M3: round it, and use what was stored."
    if is_that_of(Scaling("one level", "", (16, 16), FLOAT8_E4M3FN)):
        return "There is one level: E4M3 scales without the tensor's. Move them into E4M3's range first."
    if _near(returned, quantize_tiles(w, FLOAT4_E2M1FN, SQUARES).values, w):
        return "Those are the values of E2M1. Multiply them by their scales."
    return "That is not NVFP4 in squares: amax of each square, one scale for the tensor, E4M3 for the square's, E2M1."


def _near(returned: np.ndarray, right: np.ndarray, w: np.ndarray) -> bool:
    """Whether all but a few values agree: another order of float32 steps moves a tie now and then."""
    close = np.abs(returned - right) <= 1e-5 * np.abs(right) + 1e-9 * np.abs(w).max()  # False for a NaN
    return bool(np.mean(close) > 0.995)


def _runs(w: np.ndarray) -> np.ndarray:
    """Quantize 256 neighbours in memory at a time, across the rows."""
    scaling = Scaling("runs", "", (1, 256), FLOAT8_E4M3FN, tensor_scale=True)
    return quantize_tiles(w.reshape(1, -1), FLOAT4_E2M1FN, scaling).dequantize().reshape(w.shape)


# --- A rotated product ------------------------------------------------------------------------------------------------


@exercise(asks=ROTATED_PRODUCT, takes="rotated_product")
def check_rotated_product(answer) -> Outcome:
    """A function (x, w, change) -> the product of x and w, both rotated in blocks of 16 and given to `change`."""
    draw = np.random.default_rng(0)
    x, w = draw.standard_normal((20, 64)), draw.standard_normal((24, 64))
    seen: list[np.ndarray] = []

    def watch(factor):
        seen.append(np.array(factor))
        return factor

    returned = _called("rotated_product", answer, x, w, watch)
    if isinstance(returned, Outcome):
        return returned
    if fault := _product_fault(returned, x, w):
        return not_yet(fault)
    if fault := _change_fault(seen, x, w):
        return not_yet(fault)
    changed = _called("rotated_product", answer, x, w, lambda factor: 2 * np.asarray(factor))
    if not np.allclose(changed, 4 * x @ w.T):
        return not_yet("What `change` returns is not what is multiplied: use its result, of both factors.")
    return correct("The product is the same, and what is rounded are other numbers.")


def _product_fault(returned: np.ndarray, x: np.ndarray, w: np.ndarray) -> str | None:
    right = x @ w.T
    if returned.shape != right.shape:
        shape = list(returned.shape)
        return f"x is {list(x.shape)} and w {list(w.shape)}: the product is {list(right.shape)}, not {shape}."
    if np.allclose(returned, right):
        return None
    for times in (16, 64, 256):
        if np.allclose(returned, times * right):
            return f"The product is {times} times too large: the rows of H have length 1, so divide ±1 by the root."
    if np.allclose(returned, rotate(x) @ w.T):
        return "One factor is rotated, the other is not. The rotations cancel only if both have theirs."
    return "With a `change` that changes nothing this is not x @ w.T: rotate both along K, the last axis, by one H."


def _change_fault(seen: list[np.ndarray], x: np.ndarray, w: np.ndarray) -> str | None:
    if len(seen) < 2:
        return f"`change` is called {len(seen)} times: each factor has to be rounded, after it was rotated."
    if any(np.allclose(factor, x) for factor in seen if factor.shape == x.shape):
        return "`change` sees x before the rotation: rotate first, then round."
    if not any(_is_rotated(factor, x) for factor in seen):
        if any(_same_magnitudes(factor, x @ hadamard(x.shape[1])) for factor in seen):
            return "The whole axis is rotated at once. Rotate blocks of 16."
        return "`change` sees an x that is not rotated in blocks of 16 by a Hadamard matrix."
    if not any(_is_rotated(factor, w) for factor in seen):
        return "`change` sees x rotated, and not w."
    return None


def _is_rotated(factor: np.ndarray, x: np.ndarray) -> bool:
    """Whether each block of 16 of a factor, or of its transpose, is that of x times a Hadamard matrix, any of them."""
    if _same_magnitudes(factor, rotate(x)):
        return True
    if factor.size != x.size or not np.isfinite(factor).all():
        return False
    return any(_is_turned(part.reshape(len(x), -1, 16), x.reshape(len(x), -1, 16)) for part in (factor, factor.T))


def _is_turned(after: np.ndarray, before: np.ndarray) -> bool:
    """Whether every block [:, b, :] was multiplied by an orthogonal matrix with entries of ±1/4."""
    for block in range(before.shape[1]):
        turn = np.linalg.lstsq(before[:, block], after[:, block])[0]  # [16, 16], from 20 rows or more
        if not np.allclose(before[:, block] @ turn, after[:, block]):
            return False
        if not (np.allclose(np.abs(turn), 1 / 4) and np.allclose(turn @ turn.T, np.eye(16))):
            return False
    return True


def _same_magnitudes(first: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays hold the same magnitudes, in any order: signs and transposes are free."""
    return first.size == other.size and np.allclose(*(np.sort(np.abs(part), axis=None) for part in (first, other)))


# --- The byte of a scale ----------------------------------------------------------------------------------------------


@exercise(asks=SCALE_BYTES, takes="scale_bytes")
def check_scale_bytes(answer) -> Outcome:
    """A function x -> the E8M0 bytes of its rows, uint8 [blocks], for E2M1 and by the rule of OCP MX."""
    for x, what, hint in _blocks():
        with np.errstate(all="ignore"):
            returned = _called("scale_bytes", answer, x)
        if isinstance(returned, Outcome):
            return returned
        if returned.shape != (len(x),):
            return not_yet(
                f"x has {len(x)} blocks, so there should be as many bytes; yours are {list(returned.shape)}."
            )
        right = _bytes(x)
        if not np.array_equal(returned, right):
            at = int(np.flatnonzero(returned != right)[0])
            return not_yet(f"{what}: the byte is {returned[at]}, and should be {right[at]}.", hint)
    return correct("Negative and tiny blocks, powers of two and their lower neighbours, zeros and NaN.")


def _bytes(x: np.ndarray) -> np.ndarray:
    amax = np.abs(x).max(axis=1)
    exponent = shared_exponent(np.nan_to_num(amax), FLOAT4_E2M1FN)
    bytes_ = encode(np.ldexp(1.0, exponent), FLOAT8_E8M0FNU)
    return np.where(np.isnan(amax), 255, bytes_).astype(np.uint8)


def _blocks() -> list[tuple[np.ndarray, str, str]]:
    """Return blocks, what is in them, and the cause of a mistake with them."""

    def of(*tops: float) -> np.ndarray:
        rows = np.zeros((len(tops), 32), np.float32)
        rows[:, 3], rows[:, 7] = tops, np.float32(tops) / 4
        return rows

    below = [float(np.nextafter(np.float32(2.0**e), np.float32(0))) for e in (-10, 0, 3, 20)]
    return [
        (of(4.0), "The largest value is 4", "4 is 2^2, so the exponent is 0, and the code of 2^0 is 127."),
        (of(6.5), "The largest value is 6.5", "The rule is floor. `np.round` goes up from half a binade on."),
        (of(-7.0), "The largest magnitude is 7, of -7", "`x.max` is the largest value. Take magnitudes first."),
        (of(0.01, 1e-20, 1e20), "The largest value is far from 1", "The exponent less 2, plus 127."),
        (
            of(*below),
            "The largest value is a hair below a power of two",
            "`np.log2` of a float32 is rounded, and lands on the power itself. `np.frexp` is exact.",
        ),
        (of(0.0), "All values are zero", "E8M0 has no zero; the code is 0, as the exercise says."),
        (of(1.0, np.nan), "The second block holds a NaN", "255 is NaN: it says that the block is lost."),
        (of(1e-38), "The largest value is 1e-38", "The exponent ends at -127: what would be below stays there."),
    ]
