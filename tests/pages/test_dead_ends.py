"""No page sends a reader into a dead end: a label "W21" that says nothing, or a figure that is "not recorded yet".

What is wrong on the web is said in words where it is linked; its number stands only in the errata. If a GPU's figure
belongs on a page, it is a published one. A page that is still being rewritten is named below, and has to leave the
list as soon as it has no such words.
"""

import json
import re

import pytest

import book_rules as rules

UNFINISHED = {"a bare number of the errata": set(), "not recorded yet": set()}
NUMBERED = {"reference/errata.ipynb"}  # the page whose entries have the numbers
WIDTHS = r"(?![48]\b)"  # weights of 4 and 8 bits are W4 and W8 in the papers
LABELS = (re.compile(rf"\bW{WIDTHS}\d{{1,2}}\b"), re.compile(r"\[W\d{1,2}\]\("))
TARGET = re.compile(r"\]\([^)\s]*\)|\{(?:doc|ref)\}`[^`]*`")  # where a link leads, which nobody reads
WAITING = re.compile("not recorded yet|not yet recorded", re.IGNORECASE)
DRAWN = re.compile(r"data:image/[^\"')]+|[A-Za-z0-9+/=]{80,}")  # letters by chance


def texts(path):
    """What a reader sees of a page: its text, its code, and the outputs that are no pictures."""
    for cell in rules.read_page(path):
        if "remove-cell" not in cell.tags:
            yield cell.source
            for output in cell.outputs:
                data = output.get("data", {})
                shown = [data[kind] for kind in data if kind.startswith("text/")]
                yield DRAWN.sub("", "\n".join([*map(str, shown), str(output.get("text", ""))]))


def labels(text):
    """The numbers of errata that stand there as words, those of links among them."""
    bare = LABELS[0].findall(TARGET.sub("]", text))
    return bare + LABELS[1].findall(text)


def words(path, page=""):
    """Each fault and the words that make it; `page` is its name below book/."""
    every = list(texts(path))
    return {
        "a bare number of the errata": [] if page in NUMBERED else [word for text in every for word in labels(text)],
        "not recorded yet": [word for text in every for word in WAITING.findall(text)],
    }


PAGES = {path.relative_to(rules.BOOK).as_posix(): path for path in rules.pages()}
WIDGETS = {
    f"widgets/{folder.name}": [path for path in sorted(folder.rglob("*")) if path.suffix in {".py", ".js"}]
    for folder in sorted((rules.ROOT / "utils" / "widgets").iterdir())
    if folder.is_dir()
}


@pytest.mark.parametrize("fault", UNFINISHED)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_dead_end_unless_it_is_listed_and_then_it_has(page, fault):
    found = words(PAGES[page], page)[fault]
    if page in UNFINISHED[fault]:
        assert found, f"take {page} off the list"
    else:
        assert found == []


@pytest.mark.parametrize("widget", WIDGETS)
def test_a_widget_says_nothing_of_the_kind_unless_it_is_listed(widget):
    found = [word for path in WIDGETS[widget] for word in WAITING.findall(path.read_text("utf8"))]
    assert bool(found) == (widget in UNFINISHED["not recorded yet"]), f"take {widget} off the list, or change its words"


def test_only_what_exists_is_listed():
    assert set().union(*UNFINISHED.values()) <= PAGES.keys() | WIDGETS.keys()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("is often copied ([W21](#w21))", ["W21", "[W21]("]),
        ("as W9 says", ["W9"]),
        ("[W8](#w8)", ["[W8]("]),
        ("[this is wrong](#w21)", []),
        ("[wrong](../reference/errata.ipynb#W21)", []),
        ("W8A8 and W4A16, and W8 is int8", []),
    ],
)
def test_a_label_is_found_and_a_width_is_none(text, found):
    assert labels(text) == found


def test_words_in_an_output_count_and_those_of_a_picture_do_not(tmp_path):
    def page(**data):
        cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": "show()", "execution_count": None}
        output = {"output_type": "display_data", "metadata": {}, "data": data}
        path = tmp_path / "page.ipynb"
        book = {"cells": [cell | {"outputs": [output]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        path.write_text(json.dumps(book), "utf8")
        return {fault: bool(found) for fault, found in words(path).items()}

    both = dict.fromkeys(UNFINISHED, True)
    assert page(**{"text/html": "<p>W21</p><p>Not recorded yet.</p>"}) == both
    assert page(**{"text/html": "<img src='data:image/png;base64,x+W21/not'>"}) == dict.fromkeys(UNFINISHED, False)
    assert page(**{"image/png": "W21"}) == dict.fromkeys(UNFINISHED, False)
