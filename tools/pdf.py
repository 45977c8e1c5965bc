"""The whole book as one PDF: the built pages, put together and printed by the browser that the tests use.

The book is printed twice: the first time shows on which page each chapter begins, the second has these numbers in its
contents. Links between pages lead inside the PDF, whose outline holds all headings.
Usage: .venv/bin/python tools/pdf.py [--output FILE] [PAGE ...], a page as in _toc.yml; without one, all of them.
"""

import argparse
import sys
import time
from io import BytesIO
from pathlib import Path

import yaml
from pypdf import PdfReader
from pypdf.errors import PyPdfError

import browsers
from cite import address
from one_page import OnePage, not_written

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "_build" / "html"
PAPER = ROOT / "_build" / "pdf"
MINUTES = 20  # how long the browser may take for one printing
FOOTER = (
    '<div style="font: 8px sans-serif; color: #4c545f; width: 100%; padding: 0 15mm; display: flex;'
    ' justify-content: space-between"><span class="title"></span><span class="pageNumber"></span></div>'
)


def page_numbers(reader):
    """Return the page, counted from 1, of each place that something links to: {name: page}."""
    places = reader.named_destinations.items()  # PDF names, which begin with a slash
    return {name.removeprefix("/"): reader.get_destination_page_number(place) + 1 for name, place in places}


def about(places):
    """The lines of the cover, from CITATION.cff, and the address where the book has one."""
    facts = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    lines = [facts["abstract"], f"Version {facts['version']}, {facts['date-released']}"]
    lines.append("Text: CC BY 4.0. Code: BSD-3-Clause. Widgets are shown as they are without a browser.")
    if place := places.get("site") or places.get("repository"):
        lines.append(f'<a href="{place}">{place}</a>')
    return lines


def print_page(browser, path):
    """Print an HTML file and return the PDF."""
    page = browser.new_page(java_script_enabled=False)
    page.set_default_timeout(MINUTES * 60_000)
    page.goto(path.as_uri(), wait_until="load", timeout=MINUTES * 60_000)
    pdf = page.pdf(
        prefer_css_page_size=True,
        print_background=True,
        outline=True,
        tagged=True,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=FOOTER,
    )
    page.close()
    return pdf


def write(book, path):
    """Print the book into the file `path` and return its number of pages."""
    from playwright.sync_api import sync_playwright

    path.parent.mkdir(parents=True, exist_ok=True)
    source = PAPER / "book.html"
    source.parent.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsers.find(), args=["--no-sandbox", "--disable-gpu"])
        source.write_text(book.html({}), "utf8")
        numbers = page_numbers(PdfReader(BytesIO(print_page(browser, source))))
        source.write_text(book.html(numbers), "utf8")
        pdf = print_page(browser, source)
        browser.close()
    printed = PdfReader(BytesIO(pdf))
    if page_numbers(printed) != numbers:
        raise ValueError("the numbers in the contents moved the chapters; nothing was written")
    path.write_bytes(pdf)
    return len(printed.pages)


def main(arguments):
    """Write the PDF and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=PAPER / "mixed-precision-bit-by-bit.pdf")
    parser.add_argument("pages", nargs="*", help="pages as in _toc.yml; all of them without one")
    options = parser.parse_args(arguments)
    if not (BUILT / "index.html").exists():
        print(f"{BUILT} holds no built book; run `make book` first", file=sys.stderr)
        return 1
    start, places = time.monotonic(), address()
    try:
        book = OnePage(ROOT, BUILT, about(places), options.pages, places.get("site", ""))
        count = write(book, options.output)
    except (ValueError, OSError, PyPdfError) as error:
        print(not_written(error, options.output), file=sys.stderr)
        return 1
    size, seconds = options.output.stat().st_size / 1e6, time.monotonic() - start
    print(f"{options.output}: {count} pages, {size:.1f} MB, {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
