"""What a machine with IEEE 754 arithmetic answers to each kernel of AskGpu: the oracle of its rows.

Each operation is rounded to nearest, ties to even, in the order in which the kernel writes it. Nothing is fused except
fma, a single operation that rounds once (clause 5.4.1). The standard fixes no order for a reduction such as dot (clause
9.4) and none for concurrent additions, so `dot`, `order_subgroup` and `atomics` have no answer. It recommends correctly
rounded exp, log and sin, but does not require them (clause 9.2), so these have `REMARKS` instead of an answer.
"""

import numpy as np

from utils import formats
from utils.formats import FLOAT16, FLOAT32
from utils.widgets.ask_gpu.functions import EXACT, measure_errors
from utils.widgets.ask_gpu.readings import ORDERS, kept_ones

TO_FLOAT16 = (
    *(1 + 3 * 2**-11, 1 + 2**-11, 1 + 2**-11 + 2**-20, -(1 + 3 * 2**-11)),
    *(2**-15, 2**-24, 1.5 * 2**-25),
    *(65519, 65520, 1e6),
)
LOOP_PLACES, TREE_PLACES = 16, 64
REMARKS = dict.fromkeys(("exp", "log", "sin"), "recommends the nearest float32")


def answer_all() -> dict[str, list[float]]:
    """Return an answer by the name of its row: codes, counts of ones, or what `measure_errors` gives."""
    with np.errstate(all="ignore"):
        answers = {**_in_float32(), **_in_float16()}
    for name, parts in {"rounding": (0, 4), "subnormals": (4, 7), "top": (7, 10)}.items():
        codes = [int(formats.encode(x, FLOAT16)) for x in TO_FLOAT16[slice(*parts)]]
        answers[f"pack_{name}"] = answers[f"cast_{name}"] = codes
        answers[f"quantize_{name}"] = [int(formats.encode(formats.decode(code, FLOAT16), FLOAT32)) for code in codes]
    for name, exact in EXACT.items():
        if name not in REMARKS:
            answers[name] = measure_errors(name, np.float32(exact))
    answers["order_loop"] = [LOOP_PLACES, *kept_ones(ORDERS["chain"](LOOP_PLACES), LOOP_PLACES)]
    answers["order_tree"] = [TREE_PLACES, *kept_ones(ORDERS["halves"](TREE_PLACES), TREE_PLACES)]
    return answers


def kahan_sum(start, addend, times: int):
    """Return start + addend + addend + ... by Kahan's sum, in the type of `start`."""
    total, correction = start, start - start
    for _ in range(times):
        y = addend - correction
        new = total + y
        correction = (new - total) - y
        total = new
    return total


def add_in_turn(start, addend, times: int):
    """Return the running sum after so many additions, each rounded to the type of `start`."""
    for _ in range(times):
        start = start + addend
    return start


def two_sum(a, b):
    """Return a + b rounded, and what the rounding lost (Knuth)."""
    x = a + b
    high = x - a
    return x, (a - (x - high)) + (b - high)


def _in_float32() -> dict[str, list[int]]:
    f = np.float32
    nan, over = f(np.nan), f(3e38) * f(10)
    a, c = f(1 + 2**-12), f(-(1 + 2**-11))
    values = {
        "subnormal_out": f(2**-126) * f(0.5),
        "subnormal_in": f(2**-127) * f(4),
        "overflow": over,
        "division_by_zero": f(1) / f(0),
        "infinity_minus": over - over,
        "fused": a * a + c,
        "fma": f(float(a) * float(a) + float(c)),  # exact in float64
        "ones": add_in_turn(f(2**24 - 8), f(1), 16),
        "small_addends": add_in_turn(f(1), f(2**-25), 1024),
        "kahan": kahan_sum(f(1), f(2**-25), 1024),
        "two_sum": two_sum(f(1e10), f(1e-10))[1],
    }
    bits = int((nan * f(1)).view(np.uint32))
    is_nan = (bits & 0x7F800000) == 0x7F800000 and bits & 0x7FFFFF != 0
    codes = {name: [int(value.view(np.uint32))] for name, value in values.items()}
    return {**codes, "nan_unequal": [int(nan != nan)], "nan_bits": [int(is_nan)]}


def _in_float16() -> dict[str, list[int]]:
    h = np.float16  # NumPy rounds the float32 result again, which changes no sum, product or quotient of float16
    a = h(1 + 2**-6)
    values = {
        "half_ones": add_in_turn(h(2040), h(1), 16),
        "half_top": h(65504) + h(32),
        "half_excess": (h(60000) * h(2)) / h(4),
        "half_subnormal": h(2**-14) * h(0.5),
        "half_fused": a * a + h(-(1 + 2**-5)),
        "half_kahan": kahan_sum(h(1), h(2**-12), 1024),
    }
    return {name: [int(value.view(np.uint16))] for name, value in values.items()}
