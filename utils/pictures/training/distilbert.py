"""The picture of `training/distilbert`: the same comparison, told by one seed, by another, and by all five."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from utils import measure, plots, records
from utils.pictures.drawing import WIDTH_INCHES
from utils.runs import experiment

NARROWER = ("32-true-medium", "16-mixed", "bf16-mixed", "16-true-moments", "bf16-true", "bf16-true-stochastic")
HIGH, LOW = 0, 4  # the seeds that are followed
STEP, NEAR = 0.18, 0.08  # rows and points: how far above one another dots of a row stand, and how near they lie then
LEFT, REACH = -2.35, 1.25  # points: where the names begin, and how far the differences reach


def _recorded_differences() -> dict[str, np.ndarray]:
    """Return the accuracy of each narrower recipe minus that of 32-true, in points, by recipe and seed."""
    every = records.load_all(experiment="distilbert")
    runs = [run for run in every if (run.size, run.data_name, run.device["kind"]) == ("small", "imdb", "cpu")]
    gaps = experiment.compare_by_seed(runs)
    return {name: 100 * np.array(gaps[name].by_seed) for name in NARROWER}


def seed_by_seed() -> Figure:
    """Draw the differences from float32, a row per recipe: a dot per seed, two seeds as lines, and the interval."""
    differences = _recorded_differences()
    rows = np.arange(len(differences))
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 4.3))
    ax.axvspan(0, REACH, color=plots.EXPONENT_TINT, alpha=0.5, linewidth=0, zorder=0)
    ax.axvspan(-REACH, 0, color=plots.SIGN_TINT, alpha=0.5, linewidth=0, zorder=0)
    ax.axvline(0, color=plots.INK_SOFT, linewidth=1)
    for row, by_seed in zip(rows, differences.values(), strict=True):
        seeds = [HIGH, LOW, *(seed for seed in range(len(by_seed)) if seed not in (HIGH, LOW))]  # these two stay in row
        below = {seed: (abs(by_seed[seeds[:i]] - by_seed[seed]) < NEAR).sum() for i, seed in enumerate(seeds)}
        others = seeds[2:]
        ax.plot(
            by_seed[others],
            [row - STEP * below[seed] for seed in others],
            "o",
            color=plots.INK_SOFT,
            markersize=4,
            alpha=0.7,
        )
        mean, half = measure.mean_interval(by_seed)
        ax.errorbar(mean, row + 0.3, xerr=half, fmt="|", color=plots.INK, capsize=3, linewidth=1.6)
    for seed, color, marker in ((HIGH, plots.EXPONENT, "o"), (LOW, plots.SIGN, "s")):
        line = [by_seed[seed] for by_seed in differences.values()]
        ax.plot(line, rows, marker=marker, color=color, linewidth=1.6, markersize=6)
        far = int(np.argmax(line)) if seed == HIGH else 1
        place = (line[far], far - 0.36, "center") if seed == HIGH else (line[far] - 0.08, far, "right")
        ax.text(*place[:2], f"seed {seed}", ha=place[2], va="center", fontsize=10, color=color)
    for row, name in zip(rows, differences, strict=True):
        ax.text(LEFT, row, name.replace("-stoch", "-\nstoch"), ha="left", va="center", fontsize=9.5, color=plots.INK)
    ax.text(REACH / 2, -0.75, "better", ha="center", va="center", fontsize=10, color=plots.EXPONENT)
    ax.text(-REACH / 2, -0.75, "worse", ha="center", va="center", fontsize=10, color=plots.SIGN)
    ax.set(xlim=(LEFT, REACH), ylim=(len(rows) - 0.4, -1.05), yticks=[], xticks=[-1, -0.5, 0, 0.5, 1])
    ax.set_xlabel("accuracy minus that of float32, in points", x=(0 - LEFT) / (REACH - LEFT))
    ax.grid(visible=False)
    ax.spines["left"].set_visible(False)
    return fig
