"""The pages of the built site, parsed; each is read once."""

import re
from functools import cache
from pathlib import Path

from bs4 import BeautifulSoup

SITE = Path(__file__).parents[2] / "_build" / "html"
COLOR = re.compile(r'<span class="\w{1,3}">([^<]*)</span>')  # half of the elements of all pages colour a word of code


@cache
def parse_page(path):
    """The parsed page at `path`, a `Path`, with its code in one colour."""
    return BeautifulSoup(COLOR.sub(r"\1", path.read_text("utf8")), "html.parser")


@cache
def places(path):
    """What an address may name in the page at `path`: its ids and names, and the names of its widgets."""
    ids, widgets = set(), set()
    for element in parse_page(path).find_all(True):
        ids.update(element[key] for key in ("id", "name") if key in element.attrs)
        widgets.add(element.get("data-mp-widget"))
    return ids, widgets
