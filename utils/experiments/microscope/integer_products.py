"""Test products of whole numbers: up to where every sum is exact, and what the result is beyond."""

import torch

from utils.experiments.microscope.crafted_sums import Matmul, Probe
from utils.experiments.microscope.findings import Finding

ROWS, COLUMNS = 32, 32  # CUDA wants more than 16 rows, and the other sizes in multiples of 8
PLACES = 2**17 + 32  # 2**17 times (-128)**2 is 2**31; the others have room for ones


def look_at_integers(matmul: Matmul, *, dtype: torch.dtype, device: torch.device | str = "cpu") -> Finding:
    """Find out how many bits a total of int8 products has, from sums of 2**e + 1 for e up to 30, and from 2**31.

    `matmul`: (a, b) -> a @ b of int8 [32, K] and [K, 32]. Raises: ValueError for another dtype and what `matmul`
    raises.
    """
    if dtype is not torch.int8:
        raise ValueError(f"{dtype} is no dtype of this look; use torch.int8, and microscope.look for floating ones")
    exponents = range(14, 32)
    a = torch.zeros(ROWS, PLACES, dtype=dtype)
    b = torch.full((PLACES, COLUMNS), -128, dtype=dtype)
    b[-1] = 1
    for row, exponent in enumerate(exponents):
        a[row, : 2 ** (exponent - 14)] = -128
        a[row, -1] = exponent < 31
    result = matmul(a.to(device), b.to(device)).cpu()  # [32, K] @ [K, 32] -> [32, 32]
    exact = [2**exponent + (exponent < 31) for exponent in exponents]
    sums = result[: len(exact), 0].tolist()
    first_wrong = next((n for n, (x, y) in enumerate(zip(sums, exact, strict=True)) if x != y), None)
    return Finding(
        dtype="int8",
        output=str(result.dtype).removeprefix("torch."),
        shape=(ROWS, COLUMNS, PLACES),
        factor_bits=8,
        exact_products=sums[0] == exact[0],
        precision=None if first_wrong is None else exponents[first_wrong],
        exact_sums=first_wrong is not None and exponents[first_wrong] == 31,
        overflow=None if first_wrong is None else exponents[first_wrong],
        past_overflow={-(2**31): "wraps to -2^31", 2**31 - 1: "stays at 2^31 - 1"}.get(sums[-1]),
        everywhere=bool((result == result[:, :1]).all()),
        evidence=tuple(
            Probe("whole numbers", ((0, (-128.0, -128.0)),), float(wanted), (0, PLACES), float(result))
            for wanted, result in zip(exact, sums, strict=True)
        ),
    )
