"""The picture of `practice/capstone` has the numbers that the chapter's script prints."""

import re

import pytest

import book_rules as rules
from utils import plots
from utils.cost.architectures import Architecture
from utils.cost.memory import predict
from utils.pictures.practice import capstone

SIZES = {"vocabulary": 128_256, "width": 3_072, "layers": 28, "heads": 24, "groups": 8, "hidden": 8_192}
LLAMA_3B = Architecture("llama", **SIZES, positions=4_096, tied=True)
CELLS = rules.read_page(rules.BOOK / "practice" / "capstone.ipynb")


def printed():
    """The peaks of each plan, as the first cell of the chapter prints them."""
    text = "".join(output.get("text", "") for output in CELLS[1].outputs)
    return [tuple(map(float, re.findall(r"\d+\.\d", line))) for line in text.splitlines()]


def test_the_peaks_are_those_of_the_script():
    assert printed() == list(capstone.PEAKS.values())


def test_weights_moments_and_gradients_are_those_of_the_model():
    ledger = predict(LLAMA_3B, "bf16-mixed", batch=0)
    assert ledger.at_rest / 1e9 == pytest.approx(capstone.AT_REST, abs=0.06)
    assert ledger.gradients / 1e9 == pytest.approx(capstone.GRADIENTS, abs=0.06)


def test_the_highest_moment_of_each_plan_is_marked_and_every_lever_moves_it():
    marked = []
    for ax, peaks in zip(capstone.three_moments().axes, capstone.PEAKS.values(), strict=True):
        labels = {text.get_text(): text for text in ax.texts if text.get_text().endswith(" GB")}
        bold = [text.get_text() for text in labels.values() if text.get_weight() == "bold"]
        assert list(labels) == [f"{size:.1f} GB" for size in peaks]
        assert bold == [f"{max(peaks):.1f} GB"]
        assert labels[bold[0]].get_color() == plots.SIGN
        marked.append(peaks.index(max(peaks)))
    assert marked == [1, 2, 1]


def test_the_line_goes_through_the_peaks():
    for ax, peaks in zip(capstone.three_moments().axes, capstone.PEAKS.values(), strict=True):
        x, y = ax.lines[0].get_data()
        for (begin, end), peak in zip(capstone.PHASES.values(), peaks, strict=True):
            inside = y[(x >= begin) & (x <= end)]
            assert peak in inside
