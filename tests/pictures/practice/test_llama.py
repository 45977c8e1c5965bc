"""The picture of `practice/llama`: kernels start when they are launched, and half the bytes help only when compiled."""

import pytest
from matplotlib.patches import Rectangle

from utils.pictures.practice.llama import (
    KERNELS,
    LAUNCH,
    LAUNCH_TIME,
    READ_TIME,
    ROWS,
    launched_at_once,
    launched_one_by_one,
    one_token,
)


def end(starts_of, share):
    return starts_of(share * READ_TIME)[-1] + share * READ_TIME


def test_half_the_bytes_shorten_a_plain_loop_by_half_a_kernel():
    assert end(launched_one_by_one, 1) == pytest.approx(LAUNCH_TIME * KERNELS + READ_TIME)
    assert end(launched_one_by_one, 1) - end(launched_one_by_one, 0.5) == pytest.approx(READ_TIME / 2)


def test_half_the_bytes_halve_all_but_the_launch_of_a_compiled_step():
    wide, narrow = (end(launched_at_once, share) - LAUNCH_TIME for share in (1, 0.5))
    assert wide == 2 * narrow == KERNELS * READ_TIME


def test_a_loop_that_reads_slower_than_it_launches_has_no_gaps():
    starts = launched_one_by_one(2 * LAUNCH_TIME)
    assert [later - sooner for sooner, later in zip(starts, starts[1:], strict=False)] == pytest.approx(
        [2 * LAUNCH_TIME] * (KERNELS - 1)
    )


def test_the_plain_loops_have_a_launch_for_each_kernel_and_the_compiled_ones_have_one():
    boxes = [patch for patch in one_token().axes[0].patches if isinstance(patch, Rectangle)]
    launches = [box for box in boxes if box.get_width() == pytest.approx(LAUNCH_TIME - 0.08)]
    assert len(launches) == 2 * KERNELS + 2
    assert len(boxes) - len(launches) == 2 * len(ROWS) * KERNELS
    assert len({box.get_edgecolor() for box in launches}) == 1
    assert LAUNCH not in {color for _, color, _, _ in ROWS}
