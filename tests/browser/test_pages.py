"""Every built page, from file:// and over http: nothing missing, nothing foreign, no error, accessible, steady."""

import importlib.util
import json
import threading
import time
from pathlib import Path

import pytest

from tests.browser import axe_page
from tests.browser.conftest import LAID_OUT, QuietHandler

SITE = Path(__file__).parents[2] / "_build" / "html"
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
PAGES = sorted(str(page.relative_to(SITE)) for page in SITE.rglob("*.html") if "_static" not in page.parts)
LEADS_ON = "index.html"  # to the first page, at once
CHAPTERS = [page for page in PAGES if page.startswith("book/")]
MAX_SHIFT = 0.01  # a tenth of web.dev's bound for a cumulative layout shift that a reader does not notice
MAX_SHIFT_ARRIVING = 0.1  # a table finds its widths anew with each part of it: on a busy machine up to 0.02
WATCH_SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const { hadRecentInput, startTime, value, sources } of list.getEntries()) {
    const moved = sources.map(({ node }) => `${node?.nodeName}.${node?.className ?? ""}`);
    if (!hadRecentInput) window.shifts.push({ startTime, value, moved });
  }
}).observe({ type: "layout-shift", buffered: true });
"""
# a page's parts have all arrived when its parser has come to its end
JUMPS = """
([most, mostArriving]) => {
  const { domInteractive } = performance.getEntriesByType("navigation")[0];
  const told = (when, bound, shifts) => {
    const sum = shifts.reduce((total, { value }) => total + value, 0);
    return sum > bound ? [`the page jumps by ${sum} ${when}: ${shifts.flatMap(({ moved }) => moved).slice(0, 8)}`] : [];
  };
  return [
    ...told("while it arrives", mostArriving, window.shifts.filter(({ startTime }) => startTime <= domInteractive)),
    ...told("after it has arrived", most, window.shifts.filter(({ startTime }) => startTime > domInteractive)),
  ];
}
"""


def test_the_site_has_pages(site):
    assert (site / "index.html").exists()
    assert "book/intro.html" in CHAPTERS


# The first is drawn before it is asked for the next one.
SECOND_FRAME = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
WIDE = """
() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll("main *")]
    .filter((element) => element.getBoundingClientRect().right > width + 1)
    .slice(0, 5)
    .map((element) => `${element.tagName}.${element.className} is wider than the page`);
}
"""


# After a change of width, and after unfolding, the page tells anew which boxes scroll and so take the keyboard.
REACHED = """
() => ![...document.querySelectorAll("pre, .pst-scrollable-table-container")].some((box) =>
  box.scrollWidth > box.clientWidth && box.tabIndex < 0)
"""


# At a desk, tables and the code in sight need no scrolling sideways; what is printed may be longer, and folded code.
SCROLLING = """
() => [...document.querySelectorAll("article .cell_input pre, article .cell_output, article .text_html, " +
    "article .pst-scrollable-table-container")]
  .filter((box) => box.checkVisibility() && (box.matches("pre") || box.querySelector("table") !== null))
  .filter((box) => box.scrollWidth > box.clientWidth + 1)
  .map((box) => `${box.scrollWidth - box.clientWidth} pixels of "${box.innerText.slice(0, 60)}" are out of sight`)
"""


def trouble_in(watched, page, url, scheme):
    """Open a page with axe in it, and list what is wrong: requests, errors, theme, jumps, wide parts, widgets off."""
    opened = watched.open(url)
    drawn = time.monotonic()
    axe_page.start(opened)  # takes about as long as what comes late, and may jump
    opened.wait_for_timeout(max(0, 300 - 1000 * (time.monotonic() - drawn)))
    jumps = opened.evaluate(JUMPS, [MAX_SHIFT, MAX_SHIFT_ARRIVING])
    theme = opened.evaluate("document.documentElement.dataset.theme")
    # the page for an address that leads nowhere follows the system without a script
    other = [f"the theme is {theme}"] if page in CHAPTERS and theme != scheme else []
    states = opened.eval_on_selector_all(
        "[data-mp-widget]", "places => places.map((place) => [place.dataset.mpWidget, place.dataset.mpReady])"
    )
    off = [f"{name} did not start" for name, ready in states if ready != "true"]
    return [*watched.problems, *jumps, *other, *opened.evaluate(WIDE), *off]


# Each page once at a desk in the light and once on a phone in the dark, with all that is folded open: colours come
# with the theme and room with the width. The two other pairs are judged on one page of each kind, further down.


@pytest.mark.parametrize("page", [page for page in PAGES if page != LEADS_ON])
def test_page_opens_from_a_file_at_a_desk_in_the_light_and_axe_finds_nothing_serious(page, kept_watch, site):
    watched = kept_watch(WATCH_SHIFTS, viewport=DESK, color_scheme="light")
    assert trouble_in(watched, page, (site / page).as_uri(), "light") == []
    assert watched.page.evaluate(SCROLLING) == []
    assert axe_page.serious(watched.page) == []
    assert watched.problems == []


@pytest.mark.parametrize("page", [page for page in PAGES if page != LEADS_ON])
def test_page_opens_over_http_on_a_phone_in_the_dark_and_axe_finds_nothing_serious(
    page, kept_watch, http_site, missing_rules
):
    watched = kept_watch(WATCH_SHIFTS, viewport=PHONE, color_scheme="dark")
    assert trouble_in(watched, page, f"{http_site}/{page}", "dark") == []
    opened = watched.page
    if page != "404.html" and not page.startswith("widgets/"):  # which bring their own style
        assert opened.evaluate(MATCHING, missing_rules(opened)) == []  # the theme's, that an element needs
    axe_page.unfold(opened)
    opened.wait_for_function(REACHED)
    assert axe_page.serious(opened) == []
    assert watched.problems == []


def test_the_page_of_a_widget_does_not_jump_on_a_slow_machine(page_watch, site):
    watched = page_watch(viewport=DESK)
    watched.page.add_init_script(WATCH_SHIFTS)
    slow = watched.page.context.new_cdp_session(watched.page)
    slow.send("Emulation.setCPUThrottlingRate", {"rate": 8})  # it is painted before its widget starts
    opened = watched.open((site / "widgets" / "code_line.html").as_uri())
    opened.wait_for_timeout(300)
    assert opened.evaluate(JUMPS, [0, 0]) == []


def test_what_comes_late_and_pushes_the_page_is_a_jump(page_watch, site):
    watched = page_watch(viewport=DESK)
    watched.page.add_init_script(WATCH_SHIFTS)
    opened = watched.open((site / "book/intro.html").as_uri())
    opened.evaluate("document.querySelector('article').insertAdjacentHTML('afterbegin', '<p>late</p>'.repeat(9))")
    opened.evaluate(SECOND_FRAME)
    opened.wait_for_timeout(100)
    (jump,) = opened.evaluate(JUMPS, [MAX_SHIFT, MAX_SHIFT_ARRIVING])
    assert "after it has arrived" in jump


class Hesitant(QuietHandler):
    """Sends a page up to its first button, and the rest once it is told that this much has been seen."""

    seen = threading.Event()

    def do_GET(self):
        if not self.path.endswith(".html"):
            super().do_GET()
            return
        page = (SITE / self.path.lstrip("/")).read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        button = page.index(b"</button>", page.index(b"dropdown-download-buttons"))
        self.wfile.write(page[:button])
        self.seen.wait(30)
        self.wfile.write(page[button:])


# What a phone on a slow line shows first. The buttons at the right of the page's head end where they begin.
def test_a_page_that_arrives_in_two_parts_does_not_jump(page_watch, serving):
    watched = page_watch(viewport=PHONE)
    watched.page.add_init_script(WATCH_SHIFTS)
    watched.page.goto(f"{serving(Hesitant)}/book/numbers/bits.html", wait_until="commit")
    watched.page.wait_for_selector(".dropdown-download-buttons button", state="attached")
    watched.page.evaluate(SECOND_FRAME)
    first = watched.page.evaluate("document.querySelector('article') === null")
    Hesitant.seen.set()
    watched.page.wait_for_load_state()
    watched.page.evaluate(LAID_OUT)
    assert first
    assert watched.page.evaluate(JUMPS, [0, 0]) == []
    assert watched.page.locator(".theme-switch-button").is_visible()


@pytest.mark.parametrize("over", ["file", "http"])
def test_the_first_page_leads_on(over, page_watch, http_site, site):
    watched = page_watch()
    watched.page.goto(f"{http_site}/{LEADS_ON}" if over == "http" else (site / LEADS_ON).as_uri())
    watched.page.wait_for_url("**/book/intro.html")
    watched.page.wait_for_selector('[data-mp-widget="bit_flip"][data-mp-ready="true"]', state="attached")
    assert watched.problems == []


def test_a_plot_on_a_phone_scrolls_in_its_place_and_its_caption_stays(page_watch, site):
    opened = page_watch(viewport=PHONE).open((site / "book/eight_bits/fp8.html").as_uri())
    found = opened.evaluate(
        """() => [...document.querySelectorAll("main figure")].map((figure) => {
          const caption = figure.querySelector("figcaption");
          const before = caption.getBoundingClientRect().left;
          figure.scrollLeft = 100;
          const moved = figure.scrollLeft;
          return [figure.querySelector("img").offsetWidth, moved, caption.getBoundingClientRect().left - before];
        })"""
    )
    wide = [moved for width, moved, _ in found if width >= 500]
    assert wide
    assert set(wide) == {100}
    assert {caption for _, _, caption in found} == {0}


# What is folded away is the reply to broken code; the browser itself unfolds it.
WITHOUT_STATIC_FORM = """
() => [...document.querySelectorAll("[data-mp-widget]")].filter((place) => place.closest("details:not([open])")
    ? !place.textContent.trim() : !place.innerText.trim() || place.getBoundingClientRect().height === 0)
  .map((place) => `${place.dataset.mpWidget} has no static form`)
"""


@pytest.mark.parametrize("page", CHAPTERS)
def test_page_without_javascript_shows_its_text_and_the_static_widgets(page, kept_watch, site):
    opened = kept_watch(viewport=DESK, java_script_enabled=False).page
    opened.goto((site / page).as_uri())
    assert opened.locator("article h1").first.is_visible()
    assert opened.evaluate(WITHOUT_STATIC_FORM) == []


def test_a_widget_without_a_static_form_is_named(kept_watch):
    opened = kept_watch(viewport=DESK, java_script_enabled=False).page
    fold, text = "<details><summary>Reply</summary>{}</details>", "<p>text</p>"
    place = '<div data-mp-widget="{}">{}</div>'
    right = place.format("shown", text) + fold.format(place.format("folded", text))
    opened.set_content(right + place.format("empty", "") + fold.format(place.format("empty_fold", "")))
    assert opened.evaluate(WITHOUT_STATIC_FORM) == ["empty has no static form", "empty_fold has no static form"]


# The selectors of a sheet of the theme, and which of them the built sheet lacks. A selector stands with the one that is
# looked for: what matches with a state or an exception matches without.
SELECTORS = r"""
(text) => {
  const rulesOf = (sheet) => [...sheet.cssRules].flatMap((rule) =>
    rule.selectorText ? [rule.selectorText] : rule.cssRules ? rulesOf(rule) : []);
  const selectorsOf = (sheet) =>
    [...new Set(rulesOf(sheet).flatMap((list) => list.split(/,(?![^(]*\))/)).map((one) => one.trim()))];
  const whole = new CSSStyleSheet();
  whole.replaceSync(text);
  const kept = new Set(selectorsOf([...document.styleSheets].find((sheet) => sheet.href?.includes("/book-theme.css"))));
  const any = ":nth-child(n)";
  const states = /:(not\([^()]*(\([^()]*\)[^()]*)*\)|(hover|active|focus(-visible|-within)?|visited|link)(?![a-z-]))/g;
  const parts = /::[a-z-]+(\([^)]*\))?|:(before|after)(?![a-z-])/g;
  const bare = (selector) => selector.replace(states, any).replace(parts, "").replace(/(^|[ >+~])$/, "$1*");
  const all = selectorsOf(whole);
  // classes without which it matches nothing; none are told of a selector with a function or an attribute
  const classes = (plain) => (/[[(\\]/.test(plain.replaceAll(any, "")) ? [] : plain.match(/(?<=\.)[\w-]+/g) ?? []);
  const missing = all.filter((selector) => !kept.has(selector));
  const kinds = missing.map((selector) => [selector, bare(selector), classes(bare(selector))]);
  return { all: all.length, kept: all.length - missing.length, missing: kinds };
}
"""
MATCHING = """
(missing) => {
  const there = new Set([...document.querySelectorAll("[class]")].flatMap(({ classList }) => [...classList]));
  return JSON.parse(missing).filter(([, plain, classes]) =>
    classes.every((name) => there.has(name)) && document.querySelector(plain)).map(([selector]) => selector);
}
"""
SHEETS = (
    "pydata_sphinx_theme/theme/pydata_sphinx_theme/static/styles/pydata-sphinx-theme.css",
    "sphinx_book_theme/theme/sphinx_book_theme/static/styles/sphinx-book-theme.css",
    "sphinx_design/static/sphinx-design.min.css",
    "myst_nb/static/mystnb.css",
    "sphinx_togglebutton/_static/togglebutton.css",
)


THEME = "[...document.styleSheets].find((sheet) => sheet.href?.includes('/book-theme.css')).href"


@pytest.fixture(scope="session")
def missing_rules():
    """A function: the theme's selectors that the sheet of a page lacks, found once for each such sheet, as JSON."""
    packages, known = Path(importlib.util.find_spec("sphinx").origin).parents[1], {}

    def find(opened):
        theme = opened.evaluate(THEME)
        if theme not in known:
            sheets = {path: opened.evaluate(SELECTORS, (packages / path).read_text("utf8")) for path in SHEETS}
            assert sum(sheet["kept"] for sheet in sheets.values()) < sum(sheet["all"] for sheet in sheets.values()) / 2
            missing = [(f"{path}: {one}", *how) for path in SHEETS for one, *how in sheets[path]["missing"]]
            known[theme] = json.dumps(missing)
        return known[theme]

    return find


# A chapter with widgets, folds, tables and plots; its solutions; a recipe; a wide table; pages without a notebook.
KINDS = (
    "book/numbers/bits.html",
    "book/solutions/bits.html",
    "book/cookbook/lora.html",
    "book/reference/formats.html",
    "search.html",
    "genindex.html",
)


@pytest.mark.parametrize("page", KINDS)
def test_axe_finds_nothing_serious_after_the_width_and_the_theme_change(page, page_watch, http_site):
    watched = page_watch(viewport=DESK, color_scheme="light")
    opened = watched.open(f"{http_site}/{page}")
    axe_page.start(opened)
    axe_page.unfold(opened)
    opened.set_viewport_size(PHONE)
    opened.wait_for_function(REACHED)
    axe_page.settle(opened)
    barriers = {"at 390 pixels, light": axe_page.serious(opened)}
    opened.emulate_media(color_scheme="dark")
    if page in CHAPTERS:
        opened.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    opened.set_viewport_size(DESK)
    axe_page.settle(opened)  # the list of chapters comes in, and the column narrows
    opened.wait_for_function(REACHED)
    barriers["at 1280 pixels, dark"] = axe_page.serious(opened)
    assert {where: found for where, found in barriers.items() if found} == {}
    assert watched.problems == []


def test_a_watched_page_reports_what_goes_wrong(page_watch, http_site):
    watched = page_watch()
    watched.page.goto(f"{http_site}/_static/book.css")  # a place of the site that no page's policy guards
    watched.page.route("http://192.0.2.1/*", lambda route: route.abort())
    content = (
        f'<img src="{http_site}/no-such-file.png"><img src="http://192.0.2.1/foreign.png">'
        "<script>throw new Error('broken on purpose')</script>"
    )
    with watched.page.expect_response("**/no-such-file.png"):
        watched.page.set_content(content)
    text = "\n".join(watched.problems)
    assert "no-such-file.png (404)" in text
    assert "request to another host: http://192.0.2.1/foreign.png" in text
    assert "broken on purpose" in text
