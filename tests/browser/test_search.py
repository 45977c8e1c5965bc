"""The search of the built book: what an engineer asks, what the page weighs, and how it is used.

`search_queries.csv` holds the queries: the page that should come first, and others that answer as well. The first
three results must hold one of them. Pages below book/cookbook/ may be patterns, for their names are still to come.
"""

import csv
import gzip
import json
import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import npm_packages

SITE = Path(__file__).parents[2] / "_build" / "html"
QUERIES = Path(__file__).with_name("search_queries.csv")
NODE = npm_packages.node_folder() / "bin" / "node"
ASK = """
const [folder, ...queries] = process.argv.slice(1);
require(`${folder}/search_index.js`);
require(`${folder}/search_ranking.js`);
const book = new MpBook(mpIndex);
const best = ({ sections: [{ section }] }) => book.address(section);
console.log(JSON.stringify({
  every: book.sections.map((section) => book.address(section)),
  answers: queries.map((query) => book.search(query).results.slice(0, 3).map(best)),
}));
"""
HEAVIEST = 256_000  # bytes of the page and of everything that it loads, gzipped
LOADED = re.compile(r'<(?:script|link)\b[^>]*\b(?:src|href)="([^"#:?]+\.(?:js|css|svg))')
SHOWN = """() => [...document.querySelectorAll("ul.search > li")].map((item) => [
  item.querySelector("a").textContent, item.querySelector("a").getAttribute("href"),
  item.querySelector("p.context")?.textContent ?? "",
  [...item.querySelectorAll(".highlighted")].map((word) => word.textContent.toLowerCase()),
])"""


@pytest.fixture(scope="module")
def asked():
    """The rows of the table, the first three addresses for each of its queries, and the address of each section."""
    with QUERIES.open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    command = [NODE, "-e", ASK, SITE / "_static", *(row["query"] for row in rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    return rows, answer["answers"], answer["every"]


def wanted(row):
    """The pages that answer a query, and sections where it names one."""
    return [row["first"], *row["also"].split()]


def fits(address, pattern):
    """Whether an address is a page, or the section of one, that a pattern names."""
    place = address.removeprefix("book/").replace(".html", "")
    return fnmatch(place if "#" in pattern else place.partition("#")[0], pattern)


def test_the_right_page_is_among_the_first_three_for_each_query(asked):
    rows, answers, _ = asked
    assert len(rows) == 38
    wrong = {
        row["query"]: addresses
        for row, addresses in zip(rows, answers, strict=True)
        if not any(fits(address, pattern) for address in addresses for pattern in wanted(row))
    }
    assert wrong == {}


@pytest.mark.parametrize("query", ["CUDA out of memory", "OOM"])
def test_a_query_about_running_out_of_memory_finds_the_recipe_first(asked, query):
    rows, answers, _ = asked
    (found,) = (addresses for row, addresses in zip(rows, answers, strict=True) if row["query"] == query)
    assert fits(found[0], "cookbook/out_of_memory")


def test_the_pages_that_the_queries_want_are_there(asked):
    rows, _, every = asked
    patterns = {pattern for row in rows for pattern in wanted(row) if not pattern.startswith("cookbook/")}
    assert [pattern for pattern in sorted(patterns) if not any(fits(address, pattern) for address in every)] == []


def test_each_section_of_the_index_is_a_place_on_its_page(asked):
    ids = {}
    lost = []
    for address in asked[2]:
        page, _, anchor = address.partition("#")
        if page not in ids:
            ids[page] = set(re.findall(r'\sid="([^"]+)"', (SITE / page).read_text("utf8")))
        if anchor and anchor not in ids[page]:
            lost.append(address)
    assert lost == []


def test_the_search_weighs_at_most_256_kb():
    page = (SITE / "search.html").read_text("utf8")
    files = ["search.html", *dict.fromkeys(LOADED.findall(page))]
    sizes = {name: len(gzip.compress((SITE / name).read_bytes(), 9)) for name in files}
    assert "_static/search_index.js" in sizes
    assert sum(sizes.values()) <= HEAVIEST, sizes
    left = [
        name
        for name in ("searchindex.js", "_static/searchtools.js", "_static/language_data.js")
        if (SITE / name).exists()
    ]
    assert left == []


def summary(page, text):
    """Wait until the line above the results holds a text."""
    page.locator(".search-summary", has_text=text).wait_for()


def test_results_come_while_typing_from_a_file_and_lead_to_their_section(page_watch, site):
    watched = page_watch()
    page, loaded = watched.page, []
    page.on("request", lambda request: loaded.append(request.url))
    page.goto(f"{site.as_uri()}/search.html?q=loss+scaling")
    summary(page, "pages")
    results = page.evaluate(SHOWN)
    assert results[0][0].startswith("Loss scaling")
    assert max(len(quoted) for _, _, quoted, _ in results) < 400
    assert all(quoted and marked for _, _, quoted, marked in results[:5])
    assert [url for url in loaded if "/html/book/" in url] == []  # no page was fetched to be cut
    page.locator(".bd-search-container input").fill("")
    summary(page, "Type a name")
    assert page.evaluate("location.search") == ""
    page.keyboard.type("bf16", delay=20)
    summary(page, "also for bfloat16")
    assert page.evaluate("location.search") == "?q=bf16"
    assert {"bfloat16"} <= {word for *_, marked in page.evaluate(SHOWN) for word in marked}
    page.keyboard.type(" zzyzx", delay=20)
    summary(page, "No section has all the words")
    page.locator(".bd-search-container input").fill("zzyzx")
    summary(page, "Nothing in the book matches “zzyzx”")
    assert page.evaluate(SHOWN) == []
    page.locator(".bd-search-container input").fill("where nan comes from")
    summary(page, "page")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    target = page.evaluate("document.activeElement.getAttribute('href')")
    assert target == "book/numbers/limits.html#where-nan-comes-from"
    page.keyboard.press("Enter")
    page.wait_for_url("**/limits.html*")
    place = urlsplit(page.url).fragment
    assert page.locator(f"[id='{place}']").count() == 1
    page.go_back()
    summary(page, "page")
    assert page.locator(".bd-search-container input").input_value() == "where nan comes from"
    assert watched.problems == []


def test_the_keys_and_the_field_of_a_page_lead_to_the_search(page_watch, site):
    watched = page_watch()
    page = watched.page
    page.goto(f"{site.as_uri()}/book/numbers/bits.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("tf32")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=tf32*")
    summary(page, "pages")
    first = page.evaluate(SHOWN)[0][1].partition("#")[0]
    assert first in ("book/cookbook/tf32.html", "book/hardware/tensor_cores.html")
    page.locator("main h1").first.click()
    page.keyboard.press("Control+k")
    assert page.evaluate("document.activeElement === document.querySelector('.bd-search-container input')")
    assert watched.problems == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_the_search_is_accessible_and_fits(scheme, width, page_watch, site):
    from axe_playwright_python.sync_playwright import Axe

    watched = page_watch(viewport={"width": width, "height": 900}, color_scheme=scheme)
    watched.page.goto(f"{site.as_uri()}/search.html?q=E4M3")
    summary(watched.page, "pages")
    assert watched.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    violations = Axe().run(watched.page).response["violations"]
    assert [rule["id"] for rule in violations if rule["impact"] in {"serious", "critical"}] == []
