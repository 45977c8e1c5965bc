"""The extension that folds what follows a prediction: which parts of a page go into a box."""

import html
import json
import re

from docutils import nodes

import answer_folds


def quiz(*questions):
    """A cell whose output asks these questions, as a node of a page."""
    state = html.escape(json.dumps({"questions": questions}, sort_keys=True))
    place = f'<div class="mp-widget" data-mp-widget="quiz" data-mp-state="{state}"></div>'
    return nodes.container("", nodes.raw("", place, format="html"))


ASKED = {"id": "part/page/guess", "kind": "choice", "predict": True}
OTHER = {"id": "part/page/other", "kind": "choice", "predict": True}
PLAIN = {"id": "part/page/plain", "kind": "choice"}


def folded(*children):
    """What a section holds after folding: paragraphs and sections by their text, the box as <id and >."""
    section = nodes.section("", *children)
    answer_folds.fold(section)
    return [
        "<" + re.search(r'data-mp-answer="([^"]*)"', child.astext())[1].rpartition("/")[2]
        if isinstance(child, nodes.raw) and "data-mp-answer" in child.astext()
        else ">"
        if isinstance(child, nodes.raw)
        else "?"
        if isinstance(child, nodes.container)
        else child.astext()
        for child in section.children
    ]


def test_what_follows_a_prediction_is_folded_up_to_the_next_section():
    text, answer, more = (nodes.paragraph("", word) for word in ("text", "answer", "more"))
    after = nodes.section("", nodes.paragraph("", "after"))
    assert folded(text, quiz(ASKED), answer, more, after) == ["text", "?", "<guess", "answer", "more", ">", "after"]


def test_each_prediction_has_a_box_of_its_own_and_a_plain_question_none():
    one, two = nodes.paragraph("", "one"), nodes.paragraph("", "two")
    assert folded(quiz(ASKED), one, quiz(OTHER), two) == ["?", "<guess", "one", ">", "?", "<other", "two", ">"]
    assert folded(quiz(PLAIN), nodes.paragraph("", "one")) == ["?", "one"]


def test_a_section_folds_nothing_for_the_one_around_it():
    inner = nodes.section("", quiz(ASKED), nodes.paragraph("", "inside"))
    outer = nodes.section("", inner, nodes.paragraph("", "after"))
    answer_folds.fold(outer)
    assert len(outer.children) == 2
    answer_folds.fold(inner)
    assert len(inner.children) == 4
