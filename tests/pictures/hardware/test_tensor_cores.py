"""The picture of `hardware/tensor_cores` says what the roofline says."""

import pytest

from utils.cost.cards import ROOFS
from utils.cost.roofline import Gemm
from utils.pictures.hardware.tensor_cores import DTYPES, two_waits


def bars(ax):
    """The lengths of the bars, moving and computing, of each type."""
    lengths = [bar.get_width() for bar in ax.patches]
    return list(zip(lengths[::2], lengths[1::2], strict=True))


@pytest.mark.parametrize(("column", "m"), [(0, 1), (1, 4096)])
def test_the_longer_bar_is_the_time_of_the_roofline(column, m):
    ax = two_waits().axes[2 + column]
    gemm, roof = Gemm(m, 4096, 4096), ROOFS["H100 SXM"]
    longer = [max(pair) for pair in bars(ax)]
    assert longer == pytest.approx([roof.predicted_ms(gemm, dtype) for dtype in DTYPES])
    assert [moving > computing for moving, computing in bars(ax)] == [m == 1] * 4
    texts = [text.get_text() for text in ax.texts]
    assert [text for text in texts if text.endswith("µs")] == [f"{1e3 * ms:.0f} µs" for ms in longer]


def test_tf32_shortens_no_moving():
    for ax in two_waits().axes[2:]:
        (moving, _), (same, _), (half, _), _ = bars(ax)
        assert moving == same == pytest.approx(2 * half)
