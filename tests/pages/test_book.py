"""The rules of the book, applied to every page; a failure names the page. The rules themselves: book_rules.py."""

import re

import pytest
import yaml

import book_rules as rules
import lesson_rules
import notebooks

PAGES = rules.pages()
NOTEBOOKS = notebooks.book_notebooks()
CHAPTERS = [path for path in PAGES if rules.is_chapter(path)]
ROOT_PAGES = [rules.ROOT / name for name in ("README.md", "CONTRIBUTING.md")]
RULES = (
    rules.banned_words,
    rules.bare_links,
    rules.long_cells,
    rules.wide_cells,
    rules.complaints,
    rules.forbidden_code,
    rules.first_cell,
    rules.figures,
    rules.admonitions,
)


def name(path):
    return str(path.relative_to(rules.ROOT))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", PAGES, ids=name)
def test_page_keeps_the_rule(path, rule):
    assert list(rule(rules.read_page(path))) == []


OLDER = [path for path in CHAPTERS if not lesson_rules.is_edited(path)]


@pytest.mark.parametrize("path", OLDER, ids=name)
def test_chapter_follows_the_skeleton(path):
    assert list(rules.skeleton(rules.read_page(path))) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_notebook_is_run_normal_and_static(path):
    assert notebooks.check(path) == []


@pytest.mark.parametrize("path", ROOT_PAGES, ids=name)
def test_the_repository_speaks_plainly_too(path):
    assert list(rules.banned_words(rules.read_page(path))) == []


def test_the_table_of_contents_names_every_page_once():
    toc = yaml.safe_load((rules.ROOT / "_toc.yml").read_text("utf8"))
    named = sorted(rules.toc_files(toc))
    assert named == sorted(name(path.with_suffix("")) for path in PAGES)


@pytest.fixture(scope="module")
def bibliography():
    return rules.bibliography((rules.BOOK / "references.bib").read_text("utf8"))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_citation_is_in_the_bibliography(path, bibliography):
    assert rules.citation_keys(rules.read_page(path)) - set(bibliography) == set()


def test_every_reference_can_be_found(bibliography):
    assert {key for key, fields in bibliography.items() if fields.isdisjoint({"doi", "url", "eprint"})} == set()


def tokens():
    """The colours of each mode: {"light": {"--mp-ink": "#1c1f24", ...}, "dark": ...}."""
    text = (rules.ROOT / "utils" / "widgets" / "shared/page/tokens.css").read_text("utf8")
    blocks = re.findall(r"\{[^}]*\}", text)
    light, dark = (dict(re.findall(r"(--mp-[\w-]+):\s*(#[0-9a-f]{6})", block)) for block in blocks)
    assert light.keys() == dark.keys()
    return {"light": light, "dark": dark}


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize(
    ("text", "ground"),
    [(field, f"{field}-tint") for field in ("sign", "exponent", "fraction")]
    + [
        (color, ground)
        for color in ("ink", "ink-soft", "accent", "sign", "exponent", "fraction", "good", "bad")
        for ground in ("paper", "surface")
    ],
)
def test_text_stands_out_from_its_ground(mode, text, ground):
    colors = tokens()[mode]
    assert rules.contrast(colors[f"--mp-{text}"], colors[f"--mp-{ground}"]) >= 4.5  # WCAG 2.2, 1.4.3 (AA)


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("edge", ["border", "focus"])
def test_edges_stand_out_from_the_page(mode, edge):
    colors = tokens()[mode]
    assert rules.contrast(colors[f"--mp-{edge}"], colors["--mp-paper"]) >= 3  # WCAG 2.2, 1.4.11 (AA)
