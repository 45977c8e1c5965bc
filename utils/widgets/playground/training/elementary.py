"""The twin of elementary.js: exp, tanh and log1p from additions, products and quotients alone, on float64 arrays."""

import math

import numpy as np

LN2_HIGH = 0.6931471803691238  # ln 2 in two parts; the first has 20 zeros at its end, so that k times it is exact
LN2_LOW = 1.9082149292705877e-10
EXP_TERMS = [1 / math.factorial(n) for n in range(1, 15)]  # 1/1!, 1/2!, ... 1/14!
LOG_TERMS = [2 / (2 * n + 1) for n in range(18)]
ITSELF = 2.0**-28  # tanh(x) is x to the last bit up to here
LARGEST = 700.0  # beyond it exp(x) is taken as infinite


def _near_zero(r: np.ndarray) -> np.ndarray:
    """Return exp(r) - 1 for |r| <= ln(2) / 2."""
    total = np.full_like(r, EXP_TERMS[13])
    for term in EXP_TERMS[12::-1]:
        total = total * r + term
    return total * r


def _expm1(x: np.ndarray) -> np.ndarray:
    """Return exp(x) - 1 for x from 0 to `LARGEST`."""
    k = np.floor(x / (LN2_HIGH + LN2_LOW) + 0.5)
    r = x - k * LN2_HIGH - k * LN2_LOW
    power = np.ldexp(1.0, k.astype(np.int32))
    return np.where(k == 0, _near_zero(r), power * _near_zero(r) + (power - 1))


def tanh(x: np.ndarray) -> np.ndarray:
    """Return the hyperbolic tangent of x, float64 of its shape; NaN stays NaN."""
    size = np.abs(x)
    e = _expm1(2 * np.clip(np.nan_to_num(size), 0, 22))
    y = np.where(size > 22, 1.0, e / (e + 2))
    return np.where(size >= ITSELF, np.where(x < 0, -y, y), x)


def _exp_of_minus(size: np.ndarray) -> np.ndarray:
    """Return exp(-size) for size >= 0, 0 beyond `LARGEST`."""
    return np.where(size > LARGEST, 0.0, 1 / (1 + _expm1(np.clip(np.nan_to_num(size), 0, LARGEST))))


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)), float64 of the shape of x; NaN stays NaN."""
    e = _exp_of_minus(np.abs(x))
    return np.where(np.isnan(x), np.nan, np.where(x < 0, e / (1 + e), 1 / (1 + e)))


def softplus(x: np.ndarray) -> np.ndarray:
    """Return log(1 + exp(x)), float64 of the shape of x; NaN stays NaN."""
    u = _exp_of_minus(np.abs(x))
    s = u / (2 + u)  # log(1 + u) = 2 atanh(s), with s at most 1/3
    square = s * s
    total = np.full_like(s, LOG_TERMS[17])
    for term in LOG_TERMS[16::-1]:
        total = total * square + term
    return np.where(np.isnan(x), np.nan, np.where(x < 0, 0.0, x) + total * s)
