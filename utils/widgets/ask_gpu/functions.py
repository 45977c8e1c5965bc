"""The functions that AskGpu asks for: their inputs, and errors against what WGSL allows; the twin of functions.js."""

import numpy as np

INPUTS_EACH = 256
GOLDEN = 0.6180339887498949


def _table(make) -> np.ndarray:
    i = np.arange(INPUTS_EACH)
    return np.float32(make(i, i * GOLDEN % 1)).astype(np.float64)


INPUTS = {
    "wide": _table(lambda i, t: (1 + t) * 2.0 ** (i % 21 - 10)),
    "other": _table(lambda i, t: (2 - t) * 2.0 ** (i % 13 - 6)),
    "exponents": _table(lambda i, t: 16 * t - 8),
    "around1": _table(lambda i, t: (1 + t) * 2.0 ** (i % 7 - 3)),
    "angles": _table(lambda i, t: 6.28 * t - 3.14),
}
ARGUMENTS = {
    "reciprocal": "wide",
    "division": "wide",
    "sqrt": "wide",
    "exp": "exponents",
    "log": "around1",
    "sin": "angles",
}
EXACT = {  # float64
    "reciprocal": 1 / INPUTS["wide"],
    "division": INPUTS["wide"] / INPUTS["other"],
    "sqrt": np.sqrt(INPUTS["wide"]),
    "exp": np.exp(INPUTS["exponents"]),
    "log": np.log(INPUTS["around1"]),
    "sin": np.sin(INPUTS["angles"]),
}


def ulp(x: np.ndarray) -> np.ndarray:
    """Return the distance of the two float32 numbers around each x (WGSL, "Floating Point Accuracy")."""
    return 2.0 ** (np.maximum(np.frexp(np.abs(x))[1] - 1, -126) - 23)


def allowed_error(name: str) -> np.ndarray:
    """Return the error that WGSL allows for each input ("Accuracy of Concrete Floating Point Expressions")."""
    x, exact = INPUTS[ARGUMENTS[name]], EXACT[name]
    if name == "sqrt":  # as wrong as 1.0 / inverseSqrt(x): 2 ulp, then 2.5
        inverse = 1 / exact
        return np.abs(1 / (inverse - 2 * ulp(inverse)) - exact) + 2.5 * ulp(exact)
    if name == "exp":
        return (3 + 2 * np.abs(x)) * ulp(exact)
    if name == "log":
        return np.where((x >= 0.5) & (x <= 2), 2.0**-21, 3 * ulp(exact))
    if name == "sin":
        return np.full(len(x), 2.0**-11)
    return 2.5 * ulp(exact)


def measure_errors(name: str, results: np.ndarray) -> list[float]:
    """Return the largest error in ulp, the largest share of the allowed one, and how many are not the nearest float32.

    `results`: [256], float32. Where WGSL bounds the absolute error, a result does not count for the first.
    """
    x, exact = INPUTS[ARGUMENTS[name]], EXACT[name]
    finite = np.isfinite(results)
    error = np.where(finite, np.abs(np.where(finite, results, 0) - exact), np.inf)
    absolute = {"log": (x >= 0.5) & (x <= 2), "sin": np.full(len(x), True)}.get(name, np.full(len(x), False))
    ulps = np.max(np.where(absolute, 0, error / ulp(exact)))
    share = np.max(error / allowed_error(name))
    return [float(f"{ulps:.3g}"), float(f"{share:.3g}"), int(np.sum(results != np.float32(exact)))]
