"""The twin of data.js: points in a square, in two classes, from additions and products alone."""

import numpy as np

from utils.widgets.shared.numbers.dice import dice

POINTS = 512  # of each set
NOISE = 0.06
TURN = (0.9995065603657316, 0.03141075907812829)  # cosine and sine of one 200th of a circle
SEED = 5


def _spiral() -> np.ndarray:
    noise = NOISE * (dice(SEED, POINTS).reshape(-1, 2) - 0.5)
    points, cos, sin = [], 1.0, 0.0
    for n, (right, up) in enumerate(noise):
        radius = 0.06 + (0.86 * n) / (POINTS / 2)
        x, y = radius * cos + right, radius * sin + up
        points += [(x, y, 0.0), (-x, -y, 1.0)]
        cos, sin = cos * TURN[0] - sin * TURN[1], sin * TURN[0] + cos * TURN[1]
    return np.array(points)


def _scattered(class_of) -> np.ndarray:
    """Return the first points of the square that belong to a class; `class_of(x, y)` is NaN where there is none."""
    x, y = (2 * dice(SEED, 8 * POINTS) - 1).reshape(-1, 2).T
    points = np.stack([x, y, class_of(x, y)], axis=1)
    return points[~np.isnan(points[:, 2])][:POINTS]


def _circle(x, y):
    square = x * x + y * y
    return np.select([square > 0.96, square < 0.24, square > 0.4], [np.nan, 1.0, 0.0], np.nan)


def _corners(x, y):
    return np.where(np.minimum(np.abs(x), np.abs(y)) < 0.06, np.nan, np.where(x * y > 0, 1.0, 0.0))


def points_of(kind: str) -> np.ndarray:
    """Return the points of "spiral", "circle" or "corners": float64 [512, 3], x, y and class."""
    if kind == "spiral":
        return _spiral()
    return _scattered({"circle": _circle, "corners": _corners}[kind])
