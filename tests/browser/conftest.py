"""What the browser tests share: the built site, a server for it, a browser, and a page that is watched."""

import importlib.util
import json
import socketserver
import sys
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Error, sync_playwright

import browsers
from tests.browser.widget_page import DESK
from utils.widgets.shared.book_widget import BookWidget

SITE = Path(__file__).parents[2] / "_build" / "html"
EXTENSIONS = Path(__file__).parents[2] / "book" / "_ext"
QUIET = [
    "--no-sandbox",  # in a container Chromium runs as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items):
    """Every test of this folder needs the site and a browser."""
    here = Path(__file__).parent
    for item in items:
        if here in Path(item.path).parents:
            item.add_marker(pytest.mark.browser)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder and prints nothing; the icon that a browser asks for by itself is nothing as well."""

    def do_GET(self):
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Answers requests in threads that end with the test process."""

    daemon_threads = True
    allow_reuse_address = True


@pytest.fixture(scope="session")
def site():
    """The folder of the built HTML book."""
    if not (SITE / "index.html").exists():
        pytest.fail(f"{SITE} holds no built book; run `make book` first", pytrace=False)
    return SITE


@pytest.fixture(scope="session")
def serving(site):
    """A function that starts a local server for the built book with a handler, and gives its address, no slash."""
    servers = []

    def serve(handler):
        servers.append(Server(("127.0.0.1", 0), partial(handler, directory=str(site))))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def http_site(serving):
    """The address of a local server for the built book, without a slash at its end."""
    return serving(QuietHandler)


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium or Chrome for the whole session (Playwright's synchronous interface)."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browsers.find(), args=QUIET)
        yield chromium
        chromium.close()


@dataclass
class PageWatch:
    """A page and everything that went wrong in it since it was opened."""

    page: object
    foreign: list = field(default_factory=list)
    missing: list = field(default_factory=list)
    console: list = field(default_factory=list)

    @property
    def problems(self):
        """One line for each request to another host, each failed request and each error of a script."""
        return (
            [f"request to another host: {url}" for url in self.foreign]
            + [f"not found: {url}" for url in self.missing]
            + [f"console: {text}" for text in self.console]
        )

    def open(self, url):
        """Open `url`, wait until every widget has started or failed and is laid out, and return the page."""
        self.page.goto(url, wait_until="load")
        self.page.evaluate(LAID_OUT)
        return self.page

    def forget(self):
        """Begin anew: what went wrong so far was another test's."""
        for told in (self.foreign, self.missing, self.console):
            told.clear()


# What watches sizes is called once a frame, after the layout: by the second frame after the start it has drawn.
LAID_OUT = """
async () => {
  const frame = () => new Promise((go) => requestAnimationFrame(go));
  const waiting = () => [...document.querySelectorAll("[data-mp-widget]")].filter((place) => !place.dataset.mpReady);
  for (let end = performance.now() + 30000; waiting().length; await frame()) {
    if (performance.now() > end) throw new Error(`${waiting()[0].dataset.mpWidget} has not started for 30 s`);
  }
  await frame();
  await frame();
}
"""


def is_local(url):
    """True for an address that needs no network: a file, text in the page, or this machine's own server."""
    parts = urlsplit(url)
    return parts.scheme in {"file", "data", "blob", "about"} or parts.hostname in {"127.0.0.1", "localhost"}


def is_cut_short(request):
    """True for a request that the browser itself gave up, as it left the page (index.html leads on at once)."""
    return request.failure == "net::ERR_ABORTED"


def failed(request):
    """One line for a request that got no answer."""
    return f"{request.url} ({request.failure})"


def watch(page):
    """Record what `page` asks for and what fails in it."""
    watched = PageWatch(page)
    page.on("request", lambda request: is_local(request.url) or watched.foreign.append(request.url))
    page.on("requestfailed", lambda request: is_cut_short(request) or watched.missing.append(failed(request)))
    page.on(
        "response",
        lambda response: response.status >= 400 and watched.missing.append(f"{response.url} ({response.status})"),
    )
    page.on("console", lambda message: message.type == "error" and watched.console.append(message.text))
    page.on("pageerror", lambda error: watched.console.append(str(error)))
    return watched


@pytest.fixture
def page_watch(browser):
    """A function that opens a watched page; its keyword arguments go to the browser context.

    `page_watch(viewport={"width": 390, "height": 844}).open(url)`; every page is closed after the test.
    """
    contexts = []

    def new_page(**options):
        contexts.append(browser.new_context(**options))
        return watch(contexts[-1].new_page())

    yield new_page
    for context in contexts:
        context.close()


class KeptPages:
    """Pages that go from test to test, for a new one that is watched takes as long as a short test.

    What is undone between two tests: the page's address and its storage, other pages that it opened, the mouse, the
    size of its window and the media that it is told of. A test that gives a page scripts of its own or routes takes
    `page_watch`.
    """

    def __init__(self):
        self._free = defaultdict(list)

    def take(self, browser, options, script=None):
        """A watched page of a browser, in a context with these options; `script` runs before each page's own.

        With a script it loads everything anew each time, as a reader's first page does, for the script watches that.
        """
        free = self._free[browser, script, json.dumps(options, sort_keys=True)]
        if free:
            return free.pop()
        watched = watch(browser.new_context(**options).new_page())
        if script is not None:
            watched.page.add_init_script(script)
            watched.page.context.new_cdp_session(watched.page).send("Network.setCacheDisabled", {"cacheDisabled": True})
        return watched

    def give_back(self, watched, options, script=None):
        """Make a page like a new one; where it cannot be, because the test has closed it, say, there is one less."""
        page, browser = watched.page, watched.page.context.browser
        try:
            for other in page.context.pages:
                if other is not page:
                    other.close()
            page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
            page.goto("about:blank")
            page.mouse.up()
            page.mouse.move(0, 0)
            page.emulate_media(**{name: options.get(name, usual) for name, usual in MEDIA.items()})
            if page.viewport_size != options["viewport"]:
                page.set_viewport_size(options["viewport"])
        except Error:
            page.context.close()
        else:
            watched.forget()
            self._free[browser, script, json.dumps(options, sort_keys=True)].append(watched)


MEDIA = {"media": "screen", "color_scheme": "light", "reduced_motion": "no-preference", "forced_colors": "none"}


@pytest.fixture(scope="session")
def kept_pages():
    """The pages that the tests of widgets, and of all pages of the book, take in turn."""
    return KeptPages()


@pytest.fixture
def kept_watch(browser, kept_pages):
    """A function that gives one of the `kept_pages`: `kept_watch(script, viewport=DESK, color_scheme="dark")`.

    The script may be left out, the viewport may not; the keyword arguments are those of the browser context.
    """
    taken = []

    def take(script=None, **options):
        taken.append((kept_pages.take(browser, options, script), options, script))
        return taken[-1][0]

    yield take
    for watched, options, script in taken:
        kept_pages.give_back(watched, options, script)


@cache
def widget_assets():
    """The Sphinx extension `book_widgets`, which writes the script and the style sheet of a page with widgets."""
    sys.path.insert(0, str(EXTENSIONS))  # its own modules stand beside it
    try:
        spec = importlib.util.spec_from_file_location("book_widgets", EXTENSIONS / "book_widgets.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(EXTENSIONS))
    return module


def widget_html(widget):
    """The place of a widget in a page; text is taken as HTML."""
    return widget if isinstance(widget, str) else widget._repr_mimebundle_()[0]["text/html"]


GROUND = {"light": "#ffffff", "dark": "#14181e"}
INK = {"light": "#1c1f24", "dark": "#e6e9ee"}


@pytest.fixture
def show(browser, page_watch, kept_pages, tmp_path):
    """A function that opens a page with the given widgets and the assets that the Sphinx extension writes.

    `show(*widgets, theme="light", scripts=(), **options)`: `scripts` run before the page's own, `options` go to the
    browser context, which is a desk's unless they say otherwise. The page's problems are `show.watched.problems`;
    there must be none when the test ends. Without scripts it is a page of `kept_pages`.
    """
    registry, taken = BookWidget.registry(), []

    def open_page(*widgets, theme="light", scripts=(), **options):
        assets, body = widget_assets(), "\n".join(map(widget_html, widgets))
        names = set(assets.PLACE.findall(body))  # as on a page of the book: its own widgets alone
        shown = {name: widget for name, widget in registry.items() if name in names}
        (tmp_path / "widgets.js").write_text(assets.script(shown), "utf8")
        (tmp_path / "widgets.css").write_text(assets.style(shown), "utf8")
        (tmp_path / "page.html").write_text(
            f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Widgets</title>'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            '<link rel="stylesheet" href="widgets.css"><script defer src="widgets.js"></script>'
            f"<style>body {{ margin: 0 auto; max-width: 760px; padding: 16px; font-family: system-ui;"
            f" background: {GROUND[theme]}; color: {INK[theme]} }} a {{ color: var(--mp-accent) }}</style></head>"
            f"<body><main><h1>Widgets</h1><h2>Play</h2>{body}</main></body></html>",
            "utf8",
        )
        options = {"viewport": DESK, **options}
        if scripts:
            watched = page_watch(**options)
        else:
            watched = kept_pages.take(browser, options)
            taken.append((watched, options))
        open_page.watched = watched
        for script in scripts:
            watched.page.add_init_script(script)
        url = (tmp_path / "page.html").as_uri()
        if options.get("java_script_enabled", True):
            return watched.open(url)
        watched.page.goto(url)
        return watched.page

    yield open_page
    problems = open_page.watched.problems
    for watched, options in taken:
        kept_pages.give_back(watched, options)
    assert problems == []


@pytest.fixture
def hosted(browser):
    """A function that gives a page in which a notebook's front end holds the widget: `hosted(widget)`.

    The page has `model` (with `sent`, `state`, `set`, `fire`), `el`, `cleanup` and the `listeners` still there.
    """
    pages = []

    def open_page(widget):
        page = browser.new_page()
        pages.append(page)
        page.evaluate(HOST, [type(widget).esm_source(), widget.book_state()])
        return page

    yield open_page
    for page in pages:
        page.close()


HOST = """
async ([source, state]) => {
  // An anywidget host in short: a model with events, and a count of the listeners that are still there.
  const listeners = [];
  const model = {
    sent: [], state: { ...state },
    get: (key) => model.state[key],
    set: (key, value) => { model.state[key] = value; },
    save_changes: () => model.sent.push({ ...model.state }),
    on: (name, call) => listeners.push([name, call]),
    off: (name, call) => listeners.splice(listeners.findIndex(([at, known]) => at === name && known === call), 1),
    fire: (name) => listeners.filter(([at]) => at === name).forEach(([, call]) => call()),
  };
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const widget = (await import(url)).default;
  const el = document.body.appendChild(document.createElement("div"));
  const cleanup = await widget.render({ model, el });
  Object.assign(window, { model, el, cleanup, listeners });
}
"""
