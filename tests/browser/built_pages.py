"""The pages of the built site, parsed; each is read once."""

from functools import cache
from pathlib import Path

from bs4 import BeautifulSoup

SITE = Path(__file__).parents[2] / "_build" / "html"


@cache
def parse_page(path):
    """The parsed page at `path`, a `Path`."""
    return BeautifulSoup(path.read_text("utf8"), "html.parser")
