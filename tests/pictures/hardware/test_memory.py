"""The picture of `hardware/memory` says what the ledger says."""

import pytest

from utils.cost.cards import CARDS, card_bytes
from utils.cost.memory import predict
from utils.pictures.hardware import memory


def bars(ax):
    """The bars of each row, from the left."""
    rows = {}
    for bar in sorted(ax.patches, key=lambda bar: bar.get_x()):
        rows.setdefault(round(bar.get_y() + bar.get_height() / 2), []).append(bar)
    return [rows[row] for row in sorted(rows)]


def test_each_bar_is_as_long_as_its_ledger_and_says_so():
    (ax,) = memory.training_ledger().axes
    said = [text.get_text() for text in ax.texts]
    for parts, (recipe, how) in zip(bars(ax), memory.WAYS.values(), strict=True):
        total = predict("LLaMA 7B", recipe, **memory.TEXT, **how).total / 1e9
        assert parts[-1].get_x() + parts[-1].get_width() == pytest.approx(total, rel=1e-9)
        assert f"{total:.1f}" in said


def test_every_way_takes_less_than_the_one_before_and_the_caption_is_true():
    (ax,) = memory.training_ledger().axes
    ends = [parts[-1].get_x() + parts[-1].get_width() for parts in bars(ax)]
    assert ends == sorted(ends, reverse=True)
    assert [end <= 0.9 * 80 for end in ends] == [False, False, True, True, True, True]
    assert [end <= 0.9 * 24 for end in ends] == [False, False, False, False, True, True]


def test_the_lines_are_where_the_cards_end():
    (ax,) = memory.training_ledger().axes
    ends = [parts[-1].get_x() + parts[-1].get_width() for parts in bars(ax)]
    for size, card in memory.CARDS.items():
        rows = [round(line.get_ydata().mean()) for line in ax.lines if set(line.get_xdata()) == {size}]
        assert rows == [row for row, end in enumerate(ends) if end < size]
        assert card_bytes(card) == size * 10**9
        assert card in CARDS
