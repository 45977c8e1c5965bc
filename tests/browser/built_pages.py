"""The pages of the built site, parsed; each is read once."""

from functools import cache
from pathlib import Path

from bs4 import BeautifulSoup

SITE = Path(__file__).parents[2] / "_build" / "html"


@cache
def parse_page(path):
    """The parsed page at `path`, a `Path`."""
    return BeautifulSoup(path.read_text("utf8"), "html.parser")


@cache
def places(path):
    """What an address may name in the page at `path`: its ids and names, and the names of its widgets."""
    ids, widgets = set(), set()
    for element in parse_page(path).find_all(True):
        ids.update(element[key] for key in ("id", "name") if key in element.attrs)
        widgets.add(element.get("data-mp-widget"))
    return ids, widgets
