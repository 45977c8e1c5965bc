"""The glossary: every entry with a chapter, and in Chinese if there is a word; the bibliography: every work cited."""

import re
from pathlib import Path

import pybtex.database
import pytest

import notebooks

BOOK = Path(__file__).resolve().parents[2] / "book"
REFERENCE = BOOK / "reference"
CHINESE = re.compile(r"[\u4e00-\u9fff]")
MARKED = re.compile(r"\[([^]]*)\]\{\.language-zh-Hans\}")


def entries():
    """The glossary's entries: [English term, Chinese terms] and the definition."""
    page = MARKED.sub(r"\1", (REFERENCE / "glossary.md").read_text("utf8"))
    body = re.search(r"```\{glossary\}\n:sorted:\n(.*?)```", page, re.DOTALL)[1]
    for block in body.strip().split("\n\n"):
        term, definition = block.split("\n")
        yield term.split(" · "), definition


def test_every_entry_has_an_english_term_and_a_definition_and_its_chinese_terms_are_chinese():
    for (english, *chinese), definition in entries():
        assert not CHINESE.search(english), english
        assert len(chinese) <= 1, english  # none where Chinese texts use the English word
        assert all(CHINESE.search(terms) for terms in chinese), english
        assert definition.startswith("  "), english


def test_few_entries_have_no_chinese_term():
    alone = [words[0] for words, _ in entries() if len(words) == 1]
    assert alone == ["bfloat16", "E8M0", "logits", "NaN", "NVFP4", "TF32"]


def test_no_term_stands_twice_and_the_english_ones_are_in_order():
    terms = [term.lower() for words, _ in entries() for term in words]
    assert len(set(terms)) == len(terms)
    english = [words[0].lower() for words, _ in entries()]
    assert english == sorted(english)


@pytest.mark.parametrize(("terms", "definition"), [pytest.param(*entry, id=entry[0][0]) for entry in entries()])
def test_every_definition_ends_with_a_chapter_that_uses_the_word(terms, definition):
    target = re.search(r"\[[^\]]+\]\(\.\./([^)]+)\)$", definition)[1]
    text = " ".join(cell.source for cell in notebooks.loads((BOOK / target).read_text("utf8")).cells)
    word = re.sub(r"[^a-z0-9]+", " ", terms[0].lower()).rstrip("s")
    assert word in re.sub(r"[^a-z0-9]+", " ", text.lower()), target


def test_every_work_of_the_bibliography_is_cited():
    works = set(pybtex.database.parse_file(BOOK / "references.bib", "bibtex").entries)
    pages = [path.read_text("utf8") for kind in ("*.md", "*.ipynb") for path in BOOK.rglob(kind)]
    roles = [keys for page in pages for keys in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", page)]
    assert works - {key.strip() for keys in roles for key in keys.split(",")} == set()


@pytest.mark.parametrize(
    "path", [path for kind in ("*.md", "*.ipynb") for path in sorted(BOOK.rglob(kind))], ids=lambda path: path.stem
)
def test_chinese_words_say_their_language(path):
    """For speech, fonts and line breaks: docutils makes `lang` of this class."""
    assert not CHINESE.search(MARKED.sub("", path.read_text("utf8")))
