"""The site around the pages, in a browser: the page for a lost address, the way from page to page."""

import json
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

import serve
from tests.browser.built_pages import SITE, parse_page

PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.glob("book/**/*.html"))
FIRST = "book/intro.html"


def parsed(page):
    return parse_page(SITE / page)


@pytest.fixture(scope="module")
def served(site, tmp_path_factory):
    """The address of the site on the server of `make serve`, in a folder of its own below the root."""
    root = tmp_path_factory.mktemp("server")
    (root / "books").mkdir()
    (root / "books" / "mixed").symlink_to(site)
    (root / "404.html").symlink_to(site / "404.html")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(serve.QuietHandler, directory=str(root))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/books/mixed"
        server.shutdown()


@pytest.mark.parametrize(
    ("error", "told"), [(BrokenPipeError(), False), (ConnectionResetError(), False), (ZeroDivisionError(), True)]
)
def test_a_browser_that_hangs_up_is_no_error_of_the_server(error, told, capsys):
    with serve.open_server(serve.QuietHandler) as server:
        try:
            raise error
        except (OSError, ZeroDivisionError):
            server.handle_error(None, ("127.0.0.1", 1))
    assert ("Traceback" in capsys.readouterr().err) is told


@pytest.mark.parametrize(
    ("lost", "found"),
    [
        ("book/training/loss-scaling.html", "book/training/loss_scaling.html"),
        ("book/numbers/bit.html", "book/numbers/bits.html"),
        ("book/hardware/loss_scaling.html", "book/training/loss_scaling.html"),
        ("book/eight_bits/block_formats/", "book/eight_bits/block_formats.html"),
        ("deep/below/rounding.html", "book/numbers/rounding.html"),
    ],
)
def test_a_lost_address_leads_to_the_page_that_was_meant(lost, found, page_watch, served):
    watched = page_watch()
    answer = watched.page.goto(f"{served}/{lost}")
    assert answer.status == 404
    watched.page.locator("html[data-ready]").wait_for()
    likely = watched.page.locator(".likely a")
    assert likely.get_attribute("href") == f"{served}/{found}"
    likely.click()
    watched.page.wait_for_load_state("load")
    assert watched.page.url == f"{served}/{found}"


def test_the_page_for_a_lost_address_links_and_searches_at_any_depth(page_watch, served):
    watched = page_watch()
    watched.page.goto(f"{served}/book/a/b/c/quite-unlike-anything.html")
    watched.page.locator("html[data-ready]").wait_for()
    assert not watched.page.locator(".likely").is_visible()
    links = watched.page.eval_on_selector_all("nav a", "links => links.map((link) => link.href)")
    assert sorted(links) == sorted(f"{served}/{page}" for page in PAGES)
    watched.page.fill("input[name=q]", "rounding")
    watched.page.click("button")
    watched.page.locator("ul.search > li").first.wait_for()
    assert watched.page.url.startswith(f"{served}/search.html?q=rounding")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_for_a_lost_address_is_accessible(scheme, width, page_watch, served):
    from axe_playwright_python.sync_playwright import Axe

    watched = page_watch(viewport={"width": width, "height": 900}, color_scheme=scheme)
    watched.page.goto(f"{served}/book/training/loss-scale.html")
    watched.page.locator("html[data-ready]").wait_for()
    assert watched.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    found = Axe().run(watched.page).response["violations"]
    assert [rule["id"] for rule in found if rule["impact"] in {"serious", "critical"}] == []


def test_the_pages_form_one_chain_with_titles():
    page, seen, before = FIRST, [], None
    while page:
        here = parsed(page)
        seen.append(page)
        ways = {}
        for side in ("left-prev", "right-next"):
            link = here.select_one(f"a.{side}")
            assert link is None or link.select_one(".prev-next-title").get_text(strip=True)
            target = (
                link and (SITE / page).parent.joinpath(link["href"]).resolve().relative_to(SITE.resolve()).as_posix()
            )
            ways[side] = target
        assert ways["left-prev"] == before
        page, before = ways["right-next"], page
    assert sorted(seen) == PAGES


def test_every_recipe_offers_its_script_as_a_file():
    recipes = [page for page in PAGES if page.startswith("book/cookbook/") and not page.endswith("index.html")]
    assert len(recipes) >= 18
    for page in recipes:
        (link,) = parsed(page).select(".mp-script-file a[download]")
        script = (SITE / page).parent / link["href"]
        assert script.read_text("utf8").startswith(f"# {link['href']}: ")
        assert parsed(page).select_one(".tag_script pre").get_text().strip() == script.read_text("utf8").strip()


@pytest.mark.parametrize(("touch", "seen"), [(True, "1"), (False, "0")])
def test_copy_buttons_are_seen_without_a_mouse_and_that_of_a_script_always(touch, seen, page_watch, served):
    watched = page_watch(viewport={"width": 390, "height": 900}, has_touch=touch, is_mobile=touch)
    watched.page.goto(f"{served}/book/cookbook/fsdp2.html")
    watched.page.locator("button.copybtn").nth(1).wait_for(state="attached")
    opacity = "button => getComputedStyle(button).opacity"
    assert watched.page.locator(".tag_script button.copybtn").first.evaluate(opacity) == "1"
    other = watched.page.locator(".highlight:not(.tag_script *) button.copybtn").first
    assert other.evaluate(opacity) == seen


def test_every_notebook_page_offers_its_notebook_and_the_code():
    for page in PAGES:
        source = SITE / "_sources" / Path(page).with_suffix(".ipynb")
        links = [link["href"] for link in parsed(page).select(".dropdown-download-buttons a")]
        targets = [(SITE / page).parent.joinpath(link).resolve() for link in links]
        assert all(target.is_file() for target in targets)
        if source.exists():
            assert source.resolve() in targets
            assert (SITE / "mixed-precision-book.zip").resolve() in targets
            assert json.loads(source.read_text("utf8"))["cells"][0]["id"] == "how-to-run-this"


def test_a_notebook_downloads_over_http(page_watch, served):
    watched = page_watch(accept_downloads=True)
    opened = watched.open(f"{served}/book/numbers/bits.html")
    opened.click(".dropdown-download-buttons > button")
    with opened.expect_download() as download:
        opened.click(".dropdown-download-buttons a[href$='.ipynb']")
    assert download.value.suggested_filename == "bits.ipynb"


def test_the_menu_of_downloads_opens_for_hands_and_keys_and_closes(page_watch, served):
    watched = page_watch()
    page = watched.open(f"{served}/book/numbers/bits.html")
    opener, menu = page.locator(".dropdown-download-buttons > button"), page.locator(".dropdown-menu")
    heading = page.locator("article h1").first

    def state():
        return menu.is_visible(), opener.get_attribute("aria-expanded")

    assert state() == (False, "false")
    opener.click()
    heading.hover()  # the theme also opens it below the pointer
    assert state() == (True, "true")
    box = menu.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= page.evaluate("document.documentElement.clientWidth")
    heading.click()
    assert state() == (False, "false")
    opener.focus()
    for key, text in {"ArrowDown": ".ipynb", "ArrowUp": ".ipynb", "End": ".ipynb"}.items():
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.textContent.trim()") == text
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent.trim()") == "code"
    page.keyboard.press("Escape")
    assert state() == (False, "false")
    assert page.evaluate("document.activeElement.dataset.bsToggle") == "dropdown"
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.textContent.trim()") == ".pdf"
    page.keyboard.press("Tab")
    assert state() == (False, "false")
    assert watched.problems == []


def test_a_button_shows_its_name_to_the_pointer_and_to_the_keyboard(page_watch, served):
    page = page_watch().open(f"{served}/book/numbers/bits.html")
    button, tip = page.locator("button.theme-switch-button").last, page.locator("[role=tooltip]")
    for begin, end in ((button.hover, page.locator("article h1").first.hover), (button.focus, button.blur)):
        begin()
        tip.wait_for()
        assert tip.inner_text() == "Color mode"
        at, below = button.bounding_box(), tip.bounding_box()
        assert below["y"] >= at["y"] + at["height"]
        end()
        tip.wait_for(state="detached")
    button.focus()
    tip.wait_for()
    page.keyboard.press("Escape")
    tip.wait_for(state="detached")
    unnamed = page.eval_on_selector_all(
        "[data-bs-toggle]", "all => all.filter((one) => !one.textContent.trim() && !one.ariaLabel).map((one) => one.id)"
    )
    assert unnamed == []


def test_the_button_back_to_the_top_comes_when_a_reader_turns_back(page_watch, served):
    page = page_watch(viewport={"width": 390, "height": 844}).open(f"{served}/book/numbers/bits.html")
    back = page.locator("#pst-back-to-top")
    for place in (3000, 2500):
        assert not back.is_visible()
        page.evaluate("place => new Promise((go) => { onscroll = go; scrollTo(0, place) })", place)
    back.click()
    page.wait_for_function("scrollY === 0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_has_its_theme_and_its_fonts_before_the_theme_script_runs(scheme, page_watch, served):
    watched = page_watch(color_scheme=scheme)
    watched.page.route("**/pydata-sphinx-theme.js*", lambda route: route.abort())
    asked = []
    watched.page.on("request", lambda request: asked.append(request.url))
    watched.page.goto(f"{served}/book/numbers/bits.html")
    assert watched.page.evaluate("document.documentElement.dataset.theme") == scheme
    states = watched.page.evaluate("[...document.fonts].map((face) => [face.family, face.status])")
    assert {status for _, status in states} == {"loaded"}
    assert {"KaTeX_Main", "KaTeX_Math"} <= {family.strip('"') for family, _ in states}
    assert [url for url in asked if ".woff" in url] == []


def test_the_contents_page_counts_what_is_done(page_watch, site):
    opened = page_watch().open(f"{site.as_uri()}/{FIRST}")
    assert opened.locator("[data-mp-widget=progress] a").count() > 10
