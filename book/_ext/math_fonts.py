"""KaTeX's fonts with the characters alone that the book's formulas show."""

import re
from pathlib import Path

from bs4 import BeautifulSoup

from icon_font import subset_font
from used_styles import checksum

FOLDER = Path("vendor", "katex")
FONT = re.compile(r"url\((fonts/([\w-]+\.woff2))\)")
FORMULAS = 'class="katex'


def characters(pages):
    """The code points of the characters that the formulas of HTML texts show."""
    found = set()
    for page in pages:
        if FORMULAS in page:
            for formula in BeautifulSoup(page, "html.parser").select(".katex-html"):
                found.update(map(ord, formula.get_text()))
    return found


def write(static):
    """Cut the fonts in the built `_static` folder down, and give each its checksum in the style sheet."""
    folder = static / FOLDER
    codes = characters(path.read_text("utf8") for path in static.parent.rglob("*.html") if static not in path.parents)
    for path in folder.glob("fonts/*.woff2"):
        path.write_bytes(subset_font(path, codes, flavor="woff2"))
    sheet = folder / "katex.min.css"
    stamped = FONT.sub(lambda found: f"url({found[1]}?v={checksum(folder / found[1])})", sheet.read_text("utf8"))
    sheet.write_text(stamped, "utf8")
