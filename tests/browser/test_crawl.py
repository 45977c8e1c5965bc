"""What test_links.py and test_pages.py pass over: the links that scripts make, ids, style sheets, and mathematics.

| | from a file | over http |
| --- | --- | --- |
| links and places in the pages | test_links.py, in the files | the same addresses |
| links that scripts make | here, from the state of the widgets | the same addresses |
| foreign requests, missing files, errors | test_pages.py, every page | the same, in light and in dark |
| axe, with contrast | | test_pages.py: light and dark, 1280 and 390 pixels, there unfolded |

Firefox is not among the browsers of the tests. What it refuses and Chromium draws is checked in the files.
"""

import json
import re
from collections import Counter
from html import unescape
from pathlib import Path
from posixpath import normpath
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

SITE = Path(__file__).parents[2] / "_build" / "html"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
WIDGET = re.compile(r'data-mp-widget="(progress|decision_tree)"[^>]*?data-mp-state="([^"]*)"')
ID = re.compile(r'\sid="([^"]+)"')
POINTER = re.compile(r'\s(?:for|aria-labelledby|aria-describedby|aria-controls|headers)="([^"]+)"')
SCRIPTS = re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL)
FORMULA = re.compile(r"<math\b.*?</math>", re.DOTALL)
FETCHED = re.compile(r"url\(\s*[\"']?([^)\"']+)")
# MathML Core, sections 3.3.2 to 3.4.3: elements with a fixed number of children
CHILDREN = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3, "munderover": 3}


def text_of(page):
    """The HTML of a page."""
    return (SITE / page).read_text("utf8")


def tags(page):
    """The HTML of a page without the text of its scripts and style sheets."""
    return SCRIPTS.sub("", text_of(page))


def lead_nowhere(page, addresses):
    """Those relative addresses that name no file of the site, or no place in it."""
    for address in addresses:
        parts = urlsplit(address)
        path = normpath(f"{page}/../{parts.path}")
        if not (SITE / path).is_file():
            yield f"{address}: no such file"
        elif parts.fragment and parts.fragment not in ID.findall(text_of(path)):
            yield f"{address}: no such place"


def made_links(name, state):
    """The links that the script of a widget makes, now or after some clicks."""
    if name == "progress":
        for row in state["chapters"]:
            yield from (f"{row['page']}#{item['place']}" for item in row["items"] if row.get("page"))
    else:
        for _, _, looks in state["facts"]["symptoms"]:
            yield from (address for _, _, *page in looks for address in page if address)


def test_links_that_scripts_make_lead_somewhere():
    seen, dead = Counter(), []
    for page in PAGES:
        for name, state in WIDGET.findall(text_of(page)):
            links = set(made_links(name, json.loads(unescape(state))))
            seen[name] += len(links)
            dead += [f"{page}: {problem}" for problem in lead_nowhere(page, sorted(links))]
    assert dead == []
    assert seen["progress"] > 100
    assert "decision_tree" in seen


def test_ids_are_unique_and_labels_point_to_what_is_there():
    wrong = []
    for page in PAGES:
        html = tags(page)
        ids = Counter(ID.findall(html))
        pointers = {name for found in POINTER.findall(html) for name in found.split()}
        wrong += [f"{page}: {name} stands {count} times" for name, count in ids.items() if count > 1]
        wrong += [f"{page}: nothing is {name}" for name in sorted(pointers - ids.keys())]
    assert wrong == []


def test_every_file_that_a_style_sheet_names_is_there():
    sheets = sorted(SITE.rglob("*.css"))
    assert len(sheets) > 5
    wrong = [
        f"{sheet.relative_to(SITE)}: {address}"
        for sheet in sheets
        for address in FETCHED.findall(sheet.read_text("utf8"))
        if not address.startswith(("data:", "#")) and not (sheet.parent / urlsplit(address).path).is_file()
    ]
    assert wrong == []


def misshapen(formula):
    """The elements of a formula that have more or fewer children than MathML gives them."""
    for element in ElementTree.fromstring(formula).iter():
        name = element.tag.rpartition("}")[2]
        if len(element) != CHILDREN.get(name, len(element)):
            yield f"{name} with {len(element)} children"


def test_mathematics_is_well_formed_and_each_element_has_its_children():
    formulas = {formula: page for page in PAGES for formula in FORMULA.findall(text_of(page))}
    assert len(formulas) > 300
    wrong = [
        f"{page}: {fault} in {formula[-90:]}" for formula, page in formulas.items() for fault in misshapen(formula)
    ]
    assert wrong == []


@pytest.mark.parametrize(("inside", "count"), [("<mi>e</mi><mi>max</mi><mo/>", 1), ("<mi>e</mi><mn>2</mn>", 0)])
def test_a_misshapen_formula_is_found(inside, count):
    formula = f'<math xmlns="http://www.w3.org/1998/Math/MathML"><msub>{inside}</msub></math>'
    assert len(list(misshapen(formula))) == count


def test_a_dead_address_is_found():
    page = "book/numbers/bits.html"
    addresses = ["rounding.html#no-such-place", "lost.html", "rounding.html", "../intro.html"]
    assert list(lead_nowhere(page, addresses)) == [
        "rounding.html#no-such-place: no such place",
        "lost.html: no such file",
    ]
