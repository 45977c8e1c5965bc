"""All 2**32 float32 inputs, in all formats: `make sweep`. Minutes a format; a sample runs with the other tests.

Each input is rounded by `fake_quantize` in both overflow modes and compared with two others: the reference, and
ml_dtypes or NumPy where they have the format.
"""

import numpy as np
import pytest
import torch

from oracles import oracle_dtype
from utils.fake_quantize import fake_quantize
from utils.formats import FLOAT8_E8M0FNU, FORMATS, TF32, FloatFormat
from utils.rounding import quantize

ALL = list(FORMATS.values())
PIECE = 2**22


def same_float32(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Elementwise: the same bits, or both NaN."""
    return (ours.view(np.uint32) == theirs.view(np.uint32)) | (np.isnan(ours) & np.isnan(theirs))


def library(x: np.ndarray, fmt: FloatFormat) -> np.ndarray | None:
    """What ml_dtypes or NumPy makes of x, as float32; None where no library has the format."""
    if fmt is TF32 or fmt.bits == 64:
        return None
    theirs = x.astype(oracle_dtype(fmt)).astype(np.float32)
    if not fmt.has_nan:
        theirs[np.isnan(x)] = np.nan  # ml_dtypes: 0 with either sign
    if fmt is FLOAT8_E8M0FNU:  # it rounds up between the two smallest values: tests/test_rounding.py
        theirs[(x > 2.0**-127) & (x < 1.5 * 2.0**-127)] = 2.0**-127
    return theirs


def check(code: np.ndarray, fmt: FloatFormat) -> None:
    """Compare the three on the float32 inputs with these codes; the failure prints codes and both results."""
    x = code.view(np.float32)
    with np.errstate(all="ignore"):
        for saturate in (False, True):
            ours = fake_quantize(torch.from_numpy(x), fmt, saturate=saturate).numpy()
            answers = [quantize(x, fmt, saturate=saturate).astype(np.float32)]
            if not saturate and (theirs := library(x, fmt)) is not None:
                answers.append(theirs)
            for answer in answers:
                bad = ~same_float32(ours, answer)
                assert not bad.any(), [
                    (hex(c), float(a), float(b)) for c, a, b in zip(code[bad], ours[bad], answer[bad], strict=True)
                ][:5]


@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_a_sample_of_float32_inputs_rounds_alike_everywhere(fmt):
    """2**21 codes: each upper half of a code with 32 random lower halves."""
    rng = np.random.default_rng(seed=1)
    upper = np.arange(2**16, dtype=np.uint32) << np.uint32(16)
    for _ in range(32):
        check(upper | rng.integers(0, 2**16, 2**16).astype(np.uint32), fmt)


@pytest.mark.sweep
@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_all_float32_inputs_round_alike_everywhere(fmt, capsys):
    for start in range(0, 2**32, PIECE):
        check(np.arange(start, start + PIECE, dtype=np.uint64).astype(np.uint32), fmt)
        if start % 2**28 == 0:
            with capsys.disabled():
                print(f"\n{fmt}: {start / 2**32:.0%} of 2**32 done", end="", flush=True)
