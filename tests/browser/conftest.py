"""What the browser tests share: the built site, a server for it, a browser, and a page that is watched."""

import os
import shutil
import socketserver
import threading
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

import pytest

SITE = Path(__file__).parents[2] / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
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


def find_browser():
    """The program named by CHROME or found on PATH, or None: Playwright then takes its own."""
    return os.environ.get("CHROME") or next(filter(None, map(shutil.which, BROWSERS)), None)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder and prints nothing."""

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
def http_site(site):
    """The address of a local server for the built book, without a slash at its end."""
    with Server(("127.0.0.1", 0), partial(QuietHandler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium or Chrome for the whole session (Playwright's synchronous interface)."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_browser(), args=QUIET)
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
        """Open `url`, wait until every widget of the page has started or failed, and return the page."""
        self.page.goto(url, wait_until="load")
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('[data-mp-widget]')].every(place => place.dataset.mpReady)"
        )
        return self.page


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
