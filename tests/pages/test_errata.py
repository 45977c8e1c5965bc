"""The errata of the web: every number once, each with a cell, an authority and a chapter, and a table that agrees."""

import re
from dataclasses import dataclass, field

import pytest

import book_rules as rules

PAGE = rules.BOOK / "reference" / "errata.ipynb"
NUMBERS = range(1, 51)
MOST_LINES = 8  # of a cell: the truth fits on a card
ENTRY = re.compile(r"\(w(\d+)\)=\n### W(\d+): (.+)")
ROW = re.compile(r"^\| \[W(\d+)\]\(#w(\d+)\) \| (.+?) \| (.+?) \|$", re.MULTILINE)
LINK = re.compile(r"\]\((\.\./[^)#]+)(?:#([^)]+))?\)")
MOST_WORDS = 9  # of a claim in the table, in about six


@dataclass
class Entry:
    """One erratum: its number by target and by heading, its group, its text and its code cells."""

    target: int
    number: int
    title: str
    group: str
    text: str
    code: list = field(default_factory=list)


def entries(cells):
    """The entries of the page, in its order."""
    found, group = [], None
    for cell in cells:
        heading = re.search(r"^## (.+)$", cell.source, re.MULTILINE) if cell.kind == "markdown" else None
        group = heading[1] if heading else group
        starts = list(ENTRY.finditer(cell.source)) if cell.kind == "markdown" else []
        assert len(starts) <= 1, f"one cell holds {[start[0] for start in starts]}"
        if starts:
            target, number, title = starts[0].groups()
            found.append(Entry(int(target), int(number), title, group, cell.source[starts[0].start() :]))
        elif cell.kind == "code" and found:
            found[-1].code.append(cell)
        elif found and not heading:
            found[-1].text += "\n\n" + cell.source
    return found


def slug(title):
    """The anchor of a heading, as MyST makes it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def anchors(path):
    """The anchors of all headings of a page, and its explicit targets."""
    text = rules.markdown(rules.read_page(path))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {slug(heading) for heading in headings} | set(re.findall(r"^\((.+)\)=$", text, re.MULTILINE))


CELLS = rules.read_page(PAGE)
ENTRIES = entries(CELLS)
EVERY = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"W{entry.number}")


def test_every_number_is_there_once():
    assert sorted(entry.number for entry in ENTRIES) == list(NUMBERS)


def test_a_group_counts_upward():
    groups = {}
    for entry in ENTRIES:
        groups.setdefault(entry.group, []).append(entry.number)
    assert len(groups) == 6
    assert all(numbers == sorted(numbers) for numbers in groups.values())
    ordered = [entry.group for entry in ENTRIES]
    assert ordered == sorted(ordered, key=list(groups).index)  # no group comes twice


@EVERY
def test_the_anchor_is_the_number(entry):
    assert entry.target == entry.number


@EVERY
def test_it_says_who_says_so(entry):
    assert entry.text.count("*They say:*") == 1


@EVERY
def test_a_cell_shows_it(entry):
    assert entry.code
    for cell in entry.code:
        assert sum(bool(line.strip()) for line in cell.source.splitlines()) <= MOST_LINES
        assert max(map(len, cell.source.splitlines())) <= 80
    shown = [output for cell in entry.code for output in cell.outputs]
    assert any(output.output_type in ("stream", "execute_result", "display_data") for output in shown)


@EVERY
def test_it_names_an_authority(entry):
    last = entry.text.strip().splitlines()[-1]
    authority = re.match(r"\*Authority:\* (.+?) \*Chapter:\* ", last)
    assert authority, last
    assert "{cite" in authority[1] or re.search("arithmetic|the cell", authority[1])


@EVERY
def test_it_leads_to_a_chapter(entry):
    links = LINK.findall(entry.text.split("*Chapter:*")[-1])
    assert links
    for path, anchor in links:
        page = (PAGE.parent / path).resolve()
        assert rules.is_chapter(page), path
        assert page.exists(), path
        assert anchor in anchors(page) or not anchor, f"{path} has no #{anchor}"


@EVERY
def test_its_chapters_link_back_once(entry):
    """Whoever reads the refutation finds the row; more than one link a chapter would be noise."""
    for path, _ in LINK.findall(entry.text.split("*Chapter:*")[-1]):
        text = rules.markdown(rules.read_page((PAGE.parent / path).resolve()))
        assert text.count(f"(#w{entry.number})") == 1, path


def test_the_table_has_a_row_for_each_in_order():
    rows = ROW.findall(rules.markdown(CELLS))
    assert [int(number) for number, *_ in rows] == list(NUMBERS)
    for number, target, claim, _ in rows:
        assert number == target
        assert len(claim.split()) <= MOST_WORDS, claim
