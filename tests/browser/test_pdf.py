"""Two pages of the book as a PDF, and a page on paper: nothing is cut off, and the contents lead to the chapters."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pypdf import PdfReader

import pdf

ROOT = Path(__file__).parents[2]
PAGES = ("book/numbers/index", "book/numbers/bits")
PAPER_WIDTH = 680  # CSS pixels between the margins of A4: 180 mm
WIDER = """width => [...document.querySelectorAll("main *")]
  .filter((element) => !element.closest("svg") && element.getBoundingClientRect().right > width + 1)
  .map((element) => `${element.tagName}.${element.className} ${element.textContent.slice(0, 40)}`)"""


@pytest.fixture(scope="module")
def printed(site, tmp_path_factory):
    """The PDF of two pages."""
    path = tmp_path_factory.mktemp("pdf") / "book.pdf"
    command = [sys.executable, str(ROOT / "tools" / "pdf.py"), "--output", str(path), *PAGES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+ pages, \d+\.\d MB", done.stdout)
    return PdfReader(path)


def test_the_pdf_has_pages_an_outline_and_links_to_its_chapters(printed):
    assert 10 <= len(printed.pages) <= 60
    part, chapters = printed.outline
    assert (part.title, chapters[0].title) == ("Numbers", "Bits")
    numbers = pdf.page_numbers(printed)
    assert numbers["numbers-index"] == 3  # behind the cover and the contents
    assert numbers["numbers-bits"] == 4
    annotations = [note.get_object() for page in printed.pages for note in page.get("/Annots", ())]
    assert sum(note["/Subtype"] == "/Link" for note in annotations) >= 3
    assert printed.stream.seek(0, 2) < 4e6


def test_nothing_is_wider_than_the_paper(printed, page_watch):
    page = page_watch(viewport={"width": PAPER_WIDTH, "height": 1000}).page
    page.emulate_media(media="print")
    page.goto((pdf.PAPER / "book.html").as_uri())
    assert page.evaluate(WIDER, PAPER_WIDTH) == []
    assert page.locator("img").count() > 0
    assert page.evaluate("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")


def test_the_contents_show_the_numbers_of_the_pages(printed):
    text = (pdf.PAPER / "book.html").read_text("utf8")
    assert '<a href="#numbers-bits"><span>Bits</span><span class="mp-number">4</span></a>' in text


def test_a_page_on_paper_is_light_and_open_and_then_as_it_was(page_watch, site):
    opened = page_watch(color_scheme="dark").open(f"{site.as_uri()}/book/numbers/bits.html")
    folded_ones = "document.querySelectorAll('article details:not([open])').length"
    state = f"[document.documentElement.dataset.theme, {folded_ones}]"
    theme, folded = opened.evaluate(state)
    assert (theme, folded > 0) == ("dark", True)
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.evaluate(state) == ["light", 0]
    opened.emulate_media(media="print")
    assert not opened.locator(".bd-sidebar-primary").is_visible()
    assert opened.locator("article h1").is_visible()
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.evaluate(state) == [theme, folded]
