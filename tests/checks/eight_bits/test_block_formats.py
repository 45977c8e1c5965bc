"""The checks of eight_bits/block_formats: the right answer, and for each foreseen wrong one the hint that names it."""

import numpy as np
import pytest

from utils.checks.eight_bits import block_formats, block_formats_questions
from utils.checks.outcome import NOT_YET
from utils.checks.questions import ROUNDED, judge
from utils.formats import (
    FLOAT4_E2M1FN,
    FLOAT6_E2M3FN,
    FLOAT6_E3M2FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    FLOAT16,
    encode,
)
from utils.quantization.rotation import hadamard, rotate
from utils.rounding import quantize
from utils.scaling import SCALINGS, Scaling, quantize_tiles, shared_exponent

E2M1, E3M2, E4M3, E5M2 = FLOAT4_E2M1FN, FLOAT6_E3M2FN, FLOAT8_E4M3FN, FLOAT8_E5M2


def byte(amax, fmt, rule="floor"):
    return int(encode(np.ldexp(1.0, shared_exponent(amax, fmt, rule=rule)), FLOAT8_E8M0FNU))


def test_the_bytes_are_those_of_the_reference():
    answers = (byte(53, E2M1), byte(0.01, E2M1), byte(100, E4M3), byte(0.3, E3M2), byte(13, E2M1, "rceil"))
    assert block_formats.check_scale_byte(dict(zip(block_formats_questions.SCALE_BYTE, answers, strict=True)))


def test_the_bits_are_those_of_the_scalings():
    table = {
        block_formats_questions.BITS_64: Scaling("", "", (1, 64), FLOAT8_E8M0FNU, "floor").bits_per_value(E5M2),
        block_formats_questions.BITS_128: Scaling("", "", (1, 128), FLOAT8_E8M0FNU, "floor").bits_per_value(E2M1),
        block_formats_questions.BITS_E3M2: SCALINGS["nvfp4"].bits_per_value(E3M2),
        block_formats_questions.BITS_FLOAT16: Scaling("", "", (1, 64), FLOAT16).bits_per_value(FLOAT6_E2M3FN),
        block_formats_questions.BITS_SQUARES: block_formats.SQUARES.bits_per_value(E2M1),
    }
    assert block_formats.check_bits_for_a_value(table)


@pytest.mark.parametrize("name", block_formats_questions.BITS_FOR_A_VALUE)
def test_only_a_rounded_number_of_bits_is_called_close(name):
    question = block_formats_questions.BITS_FOR_A_VALUE[name]
    whole = int(float(question.answer))
    others = {whole + bits / shared for bits in (1, 2, 4, 8, 16, 32) for shared in (16, 32, 64, 128, 256, 512)}
    for value in others - {float(question.answer)}:
        assert judge(question, value).message != ROUNDED, value
    rounded = round(float(question.answer), 2)
    if rounded != float(question.answer):
        assert judge(question, rounded).message == ROUNDED


def test_a_slip_is_not_taken_for_another_one_with_the_same_byte():
    up = int(np.ceil(np.log2(100))) - E4M3.emax + 127
    assert up == 7 - 8 + 127 == 6 - E4M3.bias + 127  # the exponent of 100 up, or the bias for the largest exponent
    for said in ("7 for 100", "bias 7"):
        assert said in judge(block_formats_questions.SCALE_BYTE[block_formats_questions.BYTE_E4M3], up).message
    up = int(np.ceil(np.log2(0.3))) - E3M2.emax + 127
    assert up == -2 - E3M2.bias + 127
    for said in ("-1 for 0.3", "bias 3"):
        assert said in judge(block_formats_questions.SCALE_BYTE[block_formats_questions.BYTE_E3M2], up).message


# --- NVFP4 in squares

TABLE = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
SIGNED = np.concatenate([-TABLE[:0:-1], TABLE])


def to_even(x):
    return quantize(x, E2M1, saturate=True)


def nearest_in_a_table(x):
    return SIGNED[np.abs(x[..., None] - SIGNED).argmin(-1)]


def away_from_zero(x):
    return np.copysign(TABLE[np.digitize(np.abs(x), (TABLE[1:] + TABLE[:-1]) / 2)], x)


def towards_zero(x):
    return np.copysign(TABLE[np.digitize(np.abs(x), (TABLE[1:] + TABLE[:-1]) / 2, right=True)], x)


TIES = {"table": nearest_in_a_table, "away": away_from_zero, "towards 0": towards_zero}


def squares(fault=""):
    def nvfp4_squares(w):
        rows, columns = w.shape
        tiles = w.reshape(rows // 16, 16, columns // 16, 16)
        amax = np.abs(tiles).max(axis=(1, 3), keepdims=True)
        tensor_scale = np.float32(6 * 448) / amax.max()
        if fault == "448 alone":
            tensor_scale = np.float32(448) / amax.max()
        wanted = amax / np.float32(6) * tensor_scale
        if fault == "power of two":
            wanted = 2 ** np.ceil(np.log2(np.maximum(wanted, np.float32(2.0**-9))))
        stored = np.float32(quantize(wanted, E4M3, saturate=True))
        if fault != "zeros":
            stored = np.maximum(stored, np.float32(2.0**-9))
        inv_scale = stored * (1 / tensor_scale)
        with np.errstate(all="ignore"):
            values = TIES.get(fault, to_even)(tiles / inv_scale)
        if fault == "values":
            return values.reshape(w.shape)
        if fault == "in place":
            w *= 2
        y = (values * inv_scale).reshape(w.shape).astype(np.float32)
        return y.T if fault == "transposed" else y

    return nvfp4_squares


def with_scaling(scaling):
    return lambda w: quantize_tiles(w, E2M1, scaling).dequantize()


def in_another_order(w):
    tiles = w.reshape(w.shape[0] // 16, 16, -1, 16)
    amax = np.abs(tiles).max(axis=(1, 3), keepdims=True)
    decode = amax.max() / np.float32(6 * 448)
    stored = np.float32(quantize(np.maximum(amax, np.float32(1e-30)) / decode / np.float32(6), E4M3, saturate=True))
    inv_scale = np.maximum(stored, np.float32(2.0**-6)) * decode
    return np.float32(to_even(tiles / inv_scale) * inv_scale).reshape(w.shape)


@pytest.mark.parametrize("right", [squares(), with_scaling(block_formats.SQUARES), in_another_order])
def test_squares_may_be_written_in_any_way(right):
    outcome = block_formats.check_nvfp4_squares(right)
    assert outcome, outcome.message


def test_squares_of_the_transpose_are_the_transpose():
    w = np.random.default_rng(3).standard_normal((32, 48)).astype(np.float32)
    assert np.array_equal(squares()(w.T), squares()(w).T)
    rows = with_scaling(SCALINGS["nvfp4"])
    assert not np.array_equal(rows(w[:, :32].T), rows(w[:, :32]).T)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (squares("values"), "values of E2M1"),
        (squares("in place"), "changes what it is given"),
        (squares("transposed"), "so should be what you return"),
        (squares("zeros"), "zeros alone"),
        (with_scaling(SCALINGS["nvfp4"]), "16 rows and 16 columns"),
        (block_formats._runs, "no square"),
        (with_scaling(Scaling("square", "", (16, 16))), "float32 here"),
        (with_scaling(Scaling("one level", "", (16, 16), E4M3)), "one level"),
        (with_scaling(SCALINGS["mx"]), "not NVFP4"),
        *((squares(ties), "whose code is even") for ties in TIES),
        (squares("448 alone"), "not NVFP4"),
        (squares("power of two"), "not NVFP4"),
        (with_scaling(Scaling("16x1", "", (16, 1), E4M3, tensor_scale=True)), "not NVFP4"),
        (lambda w: None, "nothing yet"),
    ],
)
def test_squares_name_the_mistake(wrong, hint):
    outcome = block_formats.check_nvfp4_squares(wrong)
    assert not outcome
    assert hint in outcome.message


# --- A rotated product


def product(fault=""):
    def rotated_product(x, w, change):
        h = hadamard(x.shape[1] if fault == "whole" else 16)
        if fault == "unnormalised":
            h = h * 4

        def turn(a):
            return (a.reshape(-1, len(h)) @ h).reshape(a.shape)

        if fault == "one":
            return change(turn(x)) @ change(w).T
        if fault == "before":
            return turn(change(x)) @ turn(change(w)).T
        if fault == "no change":
            return turn(x) @ turn(w).T
        if fault == "only x":
            change(turn(w))
            return change(turn(x)) @ turn(w).T
        if fault == "not rotated":
            return change(x[:, ::-1]) @ change(w[:, ::-1]).T
        if fault == "signs alone":
            return change(x * np.tile([1.0, -1.0], 32)) @ change(w * np.tile([1.0, -1.0], 32)).T
        if fault == "any rotation":
            h = np.linalg.qr(np.random.default_rng(2).standard_normal((16, 16)))[0]
        if fault == "blocks of 4":
            h = hadamard(4)
        if fault == "strided":
            x, w = (part.reshape(len(part), 16, -1).swapaxes(1, 2).reshape(part.shape) for part in (x, w))
        y = change(turn(x)) @ change(turn(w)).T
        return y.T if fault == "transposed" else y

    return rotated_product


def with_signs(x, w, change):
    signs = np.where(np.arange(16) % 3, 1.0, -1.0)

    def turn(a):
        return (a.reshape(-1, 16) @ (hadamard(16) * signs)).reshape(a.shape)

    return change(turn(x)) @ change(turn(w)).T


def with_signs_first(x, w, change):
    signs = np.where(np.arange(16) % 3, 1.0, -1.0)
    return change(rotate(x, signs=signs)) @ change(rotate(w, signs=signs)).T


def with_signs_for_each_block(x, w, change):
    signs = np.random.default_rng(1).choice([-1.0, 1.0], x.shape[1])
    return change(rotate(x * signs)) @ change(rotate(w * signs)).T


def transposed_first(x, w, change):
    turned, other = (rotate(factor, signs=[-1] * 5 + [1] * 11) for factor in (x, w))
    return change(turned.T).T @ change(other.T)


@pytest.mark.parametrize(
    "right", [product(), with_signs, with_signs_first, with_signs_for_each_block, transposed_first]
)
def test_the_rotated_product_may_be_written_in_any_way(right):
    outcome = block_formats.check_rotated_product(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ("unnormalised", "16 times too large"),
        ("whole", "whole axis"),
        ("one", "One factor is rotated"),
        ("before", "before the rotation"),
        ("no change", "called 0 times"),
        ("only x", "not what is multiplied"),
        ("not rotated", "not rotated in blocks"),
        ("signs alone", "not rotated in blocks"),
        ("any rotation", "not rotated in blocks"),
        ("blocks of 4", "not rotated in blocks"),
        ("strided", "not rotated in blocks"),
        ("transposed", "the product is [20, 24]"),
    ],
)
def test_the_rotated_product_names_the_mistake(fault, hint):
    outcome = block_formats.check_rotated_product(product(fault))
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- The byte of a scale


def bytes_of(fault=""):
    def scale_bytes(x):
        amax = x.max(axis=1) if fault == "signed" else np.abs(x).max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            if fault == "log2":
                exponent = np.floor(np.log2(np.maximum(amax, np.float32(1e-45)))) - 2
            elif fault == "round":
                exponent = np.round(np.log2(np.maximum(amax, np.float32(1e-45)))) - 2
            else:
                exponent = np.frexp(amax)[1] - 1.0 - 2
        exponent = exponent if fault == "no floor" else np.maximum(exponent, -127)
        code = exponent + (128 if fault == "bias" else 127)
        if fault != "zeros":
            code = np.where(amax == 0, 0, code)
        if fault != "nan":
            code = np.where(np.isnan(amax), 255, code)
        return np.nan_to_num(code).astype(int).astype(np.uint8)

    return scale_bytes


def test_the_bytes_of_blocks():
    outcome = block_formats.check_scale_bytes(bytes_of())
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("fault", "seen", "hint"),
    [
        ("bias", "is 4:", "127"),
        ("round", "6.5", "floor"),
        ("signed", "of -7", "magnitudes"),
        ("log2", "a hair below", "frexp"),
        ("zeros", "All values are zero", "no zero"),
        ("nan", "holds a NaN", "255"),
        ("no floor", "1e-38", "-127"),
    ],
)
def test_the_bytes_name_the_mistake(fault, seen, hint):
    outcome = block_formats.check_scale_bytes(bytes_of(fault))
    assert outcome.status == NOT_YET
    assert seen in outcome.message
    assert hint in outcome.hint


@pytest.mark.parametrize("name", ["nvfp4_squares", "rotated_product", "scale_bytes"])
def test_a_result_is_no_function(name):
    assert "function itself" in getattr(block_formats, f"check_{name}")(3).message
