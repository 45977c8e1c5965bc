"""The picture of `practice/llama`: half the bytes shorten a plain loop by half a kernel, a compiled step by half."""

import pytest

from utils import plots
from utils.pictures.practice.llama import KERNELS, LAUNCH_TIME, READ_TIME, ROWS, one_token

PLAIN_WIDE, PLAIN_NARROW, WIDE, NARROW = range(4)  # the tokens, from the top


@pytest.fixture
def tokens():
    """The boxes of each token from the left, its launches apart: (start, end) of each."""
    lanes = {}
    for box in one_token().axes[0].patches:
        lane = lanes.setdefault((box.get_y(), _color(box) == plots.INK_SOFT), [])
        lane.append((box.get_x() - 0.04, box.get_x() + box.get_width() + 0.04))
    kernels = [sorted(lanes[lane]) for lane in sorted(lanes, reverse=True) if not lane[1]]
    launches = [sorted(lanes[lane]) for lane in sorted(lanes, reverse=True) if lane[1]]
    return list(zip(launches, kernels, strict=True))


def _color(box):
    return "#" + "".join(f"{round(255 * part):02x}" for part in box.get_edgecolor()[:3])


def end(token):
    return token[1][-1][1]


def test_each_token_has_all_kernels_and_a_compiled_one_a_single_launch(tokens):
    assert [len(kernels) for _, kernels in tokens] == [KERNELS] * 4
    assert [len(launches) for launches, _ in tokens] == [KERNELS, KERNELS, 1, 1]
    assert len({color for _, color, _, _ in ROWS} | {plots.INK_SOFT}) == len(ROWS) + 1


def test_no_kernel_starts_before_its_launch_or_before_the_last_one_has_ended(tokens):
    for launches, kernels in tokens:
        for n, (start, _) in enumerate(kernels):
            assert start >= launches[min(n, len(launches) - 1)][1] - 1e-9
            assert n == 0 or start >= kernels[n - 1][1] - 1e-9


def test_half_the_bytes_shorten_a_plain_loop_by_half_a_kernel(tokens):
    assert end(tokens[PLAIN_WIDE]) == pytest.approx(LAUNCH_TIME * KERNELS + READ_TIME)
    assert end(tokens[PLAIN_WIDE]) - end(tokens[PLAIN_NARROW]) == pytest.approx(READ_TIME / 2)


def test_half_the_bytes_halve_all_but_the_launch_of_a_compiled_step(tokens):
    wide, narrow = (end(tokens[row]) - LAUNCH_TIME for row in (WIDE, NARROW))
    assert wide == pytest.approx(KERNELS * READ_TIME)
    assert narrow == pytest.approx(wide / 2)
