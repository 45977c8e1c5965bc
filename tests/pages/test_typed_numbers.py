"""Measurements in the prose come out of cells, out of records or from a source: a typed one needs a reason.

typed_numbers.csv holds the reasons: a number may be chosen, worked out in its sentence, a format's own, or shown or
cited close by.
"""

import csv

import pytest

import book_rules as rules

with (rules.ROOT / "tests" / "typed_numbers.csv").open(encoding="utf8", newline="") as file:
    REASONS = list(csv.DictReader(file))


def found(path):
    """The sentences of a page that hold a typed measurement."""
    return list(rules.typed_measurements(rules.read_page(path)))


def name(path):
    return str(path.relative_to(rules.BOOK))


@pytest.mark.parametrize("path", rules.pages(), ids=name)
def test_a_typed_measurement_has_a_reason(path):
    known = [row["text"] for row in REASONS if row["page"] == name(path)]
    assert [sentence for sentence in found(path) if not any(text in sentence for text in known)] == []


@pytest.mark.parametrize("row", REASONS, ids=lambda row: row["text"])
def test_a_reason_is_still_needed(row):
    assert row["why"].split(":")[0] in {"chosen", "worked out", "a format's", "shown", "cited"}
    assert any(row["text"] in sentence for sentence in found(rules.BOOK / row["page"]))


def text(*paragraphs):
    return [rules.Cell("markdown", "\n\n".join(paragraphs))]


@pytest.mark.parametrize(
    "sentence", ["It took 12.5 ms.", "That is 1,400 GB/s.", "Half, or 47.3 % less.", "It is 3 times as fast."]
)
def test_a_typed_measurement_is_found(sentence):
    assert list(rules.typed_measurements(text("## In code", sentence))) == [sentence]


@pytest.mark.parametrize(
    "paragraphs",
    [
        ("It took {glue:text}`time:.1f` ms.",),
        ("It took 12.5 ms {cite}`someone2020`.",),
        ("By {cite}`someone2020`:", "| 12.5 ms |"),
        ("## By hand", "That is 12.5 ms."),
        ('They say "3 times as fast".',),
        ("With $12$ s of `3 ms`.",),
        ("The norm of 12 sums, 3 sets.",),
    ],
)
def test_what_has_a_source_or_is_no_measurement_is_free(paragraphs):
    assert list(rules.typed_measurements(text(*paragraphs))) == []
