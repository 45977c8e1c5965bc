"""Hadamard rotations: they spread an outlier over its block before it is quantized, and leave products as they are."""

import math

import numpy as np

from utils.rounding import as_float64


def hadamard(n: int) -> np.ndarray:
    """Return the orthonormal Hadamard matrix of Sylvester's construction: float64 [n, n], entries of ±1/sqrt(n).

    Raises: ValueError where n is not a power of two.
    """
    if n < 1 or n & (n - 1):
        raise ValueError(f"n {n} is not a power of two; Sylvester's construction doubles, 1, 2, 4, ...")
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h / math.sqrt(n)


def rotate(x, block: int = 16, *, signs=None) -> np.ndarray:
    """Multiply each block of the last axis by a Hadamard matrix: float64 of the shape of x.

    An outlier's weight is spread over its block. `signs`: `block` numbers of ±1 that multiply the values first, which
    makes a random rotation of it. A product is left as it is where both factors are rotated along the axis that is
    summed over: rotate(a) @ rotate(b).T = a @ b.T. Source: arXiv 2509.25149.
    Raises: ValueError where the blocks do not fill the axis.
    """
    x = as_float64(x)
    if x.ndim == 0 or x.shape[-1] % block:
        raise ValueError(f"blocks of {block} do not fill the last axis of {x.shape}; pad it with zeros first")
    h = hadamard(block) if signs is None else np.asarray(signs, np.float64)[:, None] * hadamard(block)
    return (x.reshape(-1, block) @ h).reshape(x.shape)
