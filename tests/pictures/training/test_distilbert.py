"""The picture of `training/distilbert` says what its records say."""

import numpy as np
import pytest

from utils import measure
from utils.pictures.training import distilbert
from utils.training.recipes import COMPARED


def test_every_dot_is_a_run_and_every_bar_its_interval():
    found = distilbert._recorded_differences()
    (ax,) = distilbert.seed_by_seed().axes
    drawn = [line for line in ax.lines if line.get_marker() in ("o", "s")]
    places = [(round(x, 6), round(y, 6)) for line in drawn for x, y in zip(*line.get_data(), strict=True)]
    assert len(set(places)) == len(places)  # no dot hides another
    dots = sorted((x, round(y)) for x, y in places)
    wanted = sorted((round(gap, 6), row) for row, by_seed in enumerate(found.values()) for gap in by_seed)
    assert dots == wanted
    assert max(abs(x) for x, _ in dots) < distilbert.REACH
    for bar, by_seed in zip(ax.containers, found.values(), strict=True):
        mean, half = measure.mean_interval(by_seed)
        (low, high), _ = bar.lines[2][0].get_segments()[0].T
        assert (low, high) == pytest.approx((mean - half, mean + half))


def test_one_seed_says_better_and_the_other_worse_as_the_caption_counts():
    found = np.array(list(distilbert._recorded_differences().values()))
    assert ((found[:, distilbert.HIGH] > 0).sum(), (found[:, distilbert.HIGH] < 0).sum()) == (5, 1)
    assert ((found[:, distilbert.LOW] > 0).sum(), (found[:, distilbert.LOW] < 0).sum()) == (2, 4)
    intervals = [measure.mean_interval(row) for row in found]
    assert sum(abs(mean) <= half for mean, half in intervals) == 4


def test_the_rows_are_all_narrower_recipes_that_learned():
    wider_or_equal = {"64-true", "32-true", "32-true-high"}  # the last computes as 32-true on the CPU of the records
    failed = {"16-true", "16-true-eps"}
    assert set(distilbert.NARROWER) == set(COMPARED) - wider_or_equal - failed
