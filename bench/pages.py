"""What a page weighs and how soon its widget answers: bytes gzipped, as a share of the goal, in a real browser.

Weight: what the page asks for until it is still, each file gzipped once; plots further down load when a reader comes
near, and count where the browser asks for them. Peer: the same page as Jupyter Book 1.x makes it by
default (684 kB, 265 kB of MathJax and 935 kB of widget runtime, measured with Jupyter Book 1.0.4).
Ready: from navigation to a working widget, from the local disk, and at 20 Mbit/s with 40 ms of delay.
"""

import functools
import gzip
import statistics
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
sys.path.insert(0, str(ROOT / "tools"))

GOAL_KB, AIM_KB = 250, 200
GOAL_READY_S = 2.4
DEFAULT_PAGE_KB = 684 + 265 + 935
ROUNDS = 5
SLOW = {"offline": False, "latency": 40, "downloadThroughput": 20e6 / 8, "uploadThroughput": 20e6 / 8}
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
READY = """() => document.querySelector("[data-mp-widget]")
    && [...document.querySelectorAll("[data-mp-widget]")].every((place) => place.dataset.mpReady)"""


@functools.cache
def packed(path):
    """The gzipped bytes of a file."""
    return gzip.compress(path.read_bytes(), 6)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves the site, each text file gzipped, as a host on the web does."""

    def do_GET(self):
        path = Path(self.translate_path(unquote(self.path)))
        if not path.is_file():
            self.send_error(404)
            return
        body = packed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def weigh(browser, address):
    """Files that a page asks for, with their gzipped size in bytes."""
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address, wait_until="networkidle")
    page.close()
    paths = {SITE / unquote(urlsplit(url).path).lstrip("/") for url in asked if url.startswith("http")}
    return {path: len(packed(path)) for path in paths if path.is_file()}


def ready_seconds(browser, address, slow):
    """Median seconds from navigation until every widget works, in a fresh context each time."""
    times = []
    for _ in range(ROUNDS):
        context = browser.new_context()
        page = context.new_page()
        if slow:
            session = context.new_cdp_session(page)
            session.send("Network.enable")
            session.send("Network.emulateNetworkConditions", SLOW)
        page.goto(address, wait_until="commit")
        page.wait_for_function(READY)
        times.append(page.evaluate("performance.now()") / 1000)
        context.close()
    return statistics.median(times)


def report(browser, base):
    """Print the table of all chapters' pages; return True where the heaviest is within the goal."""
    print(f"{'page':<34} {'files':>5} {'kB':>6} {'of goal':>8} {'of default':>10}   heaviest files")
    heaviest, widgets = 0.0, []
    for file in sorted((SITE / "book").rglob("*.html")):
        name = str(file.relative_to(SITE))
        files = weigh(browser, f"{base}/{name}")
        total = sum(files.values()) / 1000
        heaviest = max(heaviest, total)
        top = sorted(files.items(), key=lambda item: -item[1])[:3]
        words = ", ".join(f"{path.name[-24:]} {size / 1000:.0f}" for path, size in top)
        ratios = f"{total / GOAL_KB:8.2f} {total / DEFAULT_PAGE_KB:10.2f}"
        print(f"{name:<34} {len(files):5} {total:6.0f} {ratios}   {words}")
        if "data-mp-widget" in file.read_text("utf8"):
            widgets.append(name)
    print(f"goal {GOAL_KB} kB, aim {AIM_KB} kB; heaviest page {heaviest:.0f} kB, ratio {heaviest / GOAL_KB:.2f}")
    for name in widgets:
        fast, slow = (ready_seconds(browser, f"{base}/{name}", slow=slow) for slow in (False, True))
        print(f"{name}: widgets ready after {fast:.2f} s, at 20 Mbit/s {slow:.2f} s, ratio {slow / GOAL_READY_S:.2f}")
    return heaviest <= GOAL_KB


def main():
    """Weigh every page of the built book; the exit code is 1 where one is heavier than the goal."""
    from playwright.sync_api import sync_playwright

    import browsers

    if not (SITE / "index.html").exists():
        print("There is no built book; run `make book` first.", file=sys.stderr)
        return 1
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(SITE))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browsers.find(), args=QUIET)
            good = report(browser, f"http://127.0.0.1:{server.server_address[1]}")
            browser.close()
        server.shutdown()
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
