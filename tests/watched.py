"""Synthetic records of exponents, of the form that `utils.training.watch` writes, with shares that are known."""

import copy
import math

import numpy as np

STEPS = (1, 50, 300)
GROUPS = ("embeddings", "layer 1", "layer 2", "head")
# Where each kind lives: the exponent in its middle and its spread, at the first step and at the last.
PLACES = {
    "weights": ((-5, 1.2), (-5, 1.4)),
    "activations": ((-1, 2.0), (0, 2.2)),
    "activation gradients": ((-20, 3.0), (-26, 4.0)),
    "weight gradients": ((-13, 3.0), (-18, 4.0)),
    "updates": ((-11, 1.5), (-15, 2.0)),
}


def histogram(x):
    """Count the values of an array by binades, with NumPy's exponents: an oracle for what the widgets are given."""
    size = np.abs(np.asarray(x, np.float64).ravel())
    kept = size[np.isfinite(size) & (size > 0)]
    exponents = np.frexp(kept)[1] - 1
    low = int(exponents.min()) if kept.size else 0
    powers, counts = np.unique(exponents[np.frexp(kept)[0] == 0.5], return_counts=True)
    return {
        "low": low,
        "counts": np.bincount(exponents - low).tolist() if kept.size else [],
        "zeros": int((size == 0).sum()),
        "infinite": int(np.isinf(size).sum()),
        "nan": int(np.isnan(size).sum()),
        "amax": float(kept.max(initial=0.0)),
        "powers": {str(e): int(n) for e, n in zip(powers, counts, strict=True)},
    }


def crafted(counts, low, *, zeros=0, infinite=0, nan=0, significand=1.0):
    """A histogram of given counts; the largest value is `significand` times its power of two."""
    amax = significand * math.ldexp(1.0, low + len(counts) - 1) if counts else 0.0
    return {"low": low, "counts": list(counts), "zeros": zeros, "infinite": infinite, "nan": nan, "amax": amax}


# 435 of 1000 below 2**-25, 560 from there to 2**-14, 5 above; with 136 zeros, 12 % of all.
SHARES = crafted([435, 0, 0, 0, 0, 560, *[0] * 11, 5], -30, zeros=136)


def record(histograms=None, steps=STEPS, groups=GROUPS, **more):
    """A record of exponents; without `histograms` a bell for each kind, group and step, at the places above."""
    if histograms is None:
        histograms = {
            kind: {
                group: [_bell(kind, i, at / max(len(steps) - 1, 1)) for at in range(len(steps))]
                for i, group in _groups_of(kind, groups)
            }
            for kind in PLACES
        }
    text = {"model": "DistilBERT, 2 layers of width 64", "recipe": "32-true", "data": "generated reviews"}
    return copy.deepcopy(
        {
            **text,
            "device": "cpu",
            "date": "2026-11-21",
            "steps": list(steps),
            "groups": list(groups),
            "kinds": list(histograms),
            "histograms": histograms,
            **more,
        }
    )


def one(histogram_, kind="activation gradients", group="head"):
    """A record of one histogram."""
    return record({kind: {group: [histogram_]}}, steps=[1], groups=[group])


def _groups_of(kind, groups):
    return [(i, group) for i, group in enumerate(groups) if (kind, group) != ("activations", "embeddings")]


def _bell(kind, group, progress):
    (start, narrow), (end, wide) = PLACES[kind]
    middle, spread = start + (end - start) * progress - group / 2, narrow + (wide - narrow) * progress
    exponents = np.arange(-60, 20)
    counts = np.floor(1e5 * np.exp(-(((exponents - middle) / spread) ** 2) / 2) / spread).astype(int)
    kept = np.flatnonzero(counts)
    return crafted(
        counts[kept[0] : kept[-1] + 1].tolist(),
        int(exponents[kept[0]]),
        zeros=int(counts.sum() // 8) if kind == "activation gradients" else 0,
        significand=1.25,
    )


def run_of_a_scaler(steps=300, seed=3):
    """A trace and the largest gradients of its steps: what a scaler with short intervals does over noisy maxima."""
    from utils.widgets.scale_cockpit import replay

    rng = np.random.default_rng(seed)
    amaxes = np.float32(np.exp2(0.5 - np.arange(steps) / steps + 0.7 * rng.normal(size=steps))).astype(float).tolist()
    settings = {"init_scale": 2.0**16, "growth_interval": 50, "growth_factor": 2.0, "backoff_factor": 0.5}
    scales, skipped = replay([*amaxes, 0.0], **settings)
    changes = [[step, scales[step]] for step in range(1, steps + 1) if step == 1 or scales[step] != scales[step - 1]]
    trace = {"init": 2.0**16, "growth_interval": 50, "steps": steps, "changes": changes, "skipped": skipped}
    return trace, amaxes
