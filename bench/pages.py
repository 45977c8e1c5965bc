"""What a page weighs, how soon its widgets answer, whether it jumps or fails: in a real browser, against the goals.

Weight: what the page asks for until it is still, each file gzipped once; plots further down load when a reader comes
near, and count where the browser asks for them. Peer: `default_page.py` builds and measures the same page as Jupyter
Book 1.x makes it by default.
Shift: the cumulative layout shift at 1280 and at 390 pixels. Faults: requests to other hosts, failed ones, and errors
in the console, what the content security policy refuses among them.
Ready: from navigation until every widget works, on a fast line, and at 20 Mbit/s with 40 ms of delay.
"""

import contextlib
import functools
import gzip
import statistics
import sys
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
sys.path.insert(0, str(ROOT / "tools"))

GOAL_KB, AIM_KB = 250, 200
GOAL_READY_S = 2.4
MAX_SHIFT = 0.01  # a tenth of web.dev's bound for a shift that a reader does not notice
WIDTHS = (1280, 390)
ROUNDS = 5
SLOW = {"offline": False, "latency": 40, "downloadThroughput": 20e6 / 8, "uploadThroughput": 20e6 / 8}
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
READY = """() => document.querySelector("[data-mp-widget]")
    && [...document.querySelectorAll("[data-mp-widget]")].every((place) => place.dataset.mpReady)"""
WATCH_SHIFTS = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""


@dataclass
class Visit:
    """What a page asked for, and what went wrong: `shift` has no unit, `faults` are one line each."""

    asked: set
    shift: float
    faults: list

    @property
    def foreign(self):
        """The addresses on other hosts that were asked for."""
        return {url for url in self.asked if urlsplit(url).hostname not in {None, "127.0.0.1"}}


@functools.cache
def packed(path):
    """The gzipped bytes of a file."""
    return gzip.compress(path.read_bytes(), 6)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder, each file gzipped, as a host on the web does; a browser that leaves early is no error."""

    def do_GET(self):
        path = Path(self.translate_path(unquote(urlsplit(self.path).path)))
        if not path.is_file():
            self.send_error(404)
            return
        body = packed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    """Lets a browser's requests wait on a busy machine, where the usual queue of five would refuse some."""

    request_queue_size = 64


@contextlib.contextmanager
def served(folder):
    """The address of a server for a folder, without a slash at its end, while the context lasts."""
    with Server(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@contextlib.contextmanager
def chromium():
    """The machine's browser while the context lasts."""
    from playwright.sync_api import sync_playwright

    import browsers

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsers.find(), args=QUIET)
        yield browser
        browser.close()


def visit(browser, address, width):
    """Open a page at a width in pixels, and watch it until it asks for nothing more."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    asked, faults = set(), []
    page.add_init_script(WATCH_SHIFTS)
    page.on("request", lambda request: asked.add(request.url))
    page.on("requestfailed", lambda request: faults.append(f"{request.failure}: {request.url}"))
    page.on("console", lambda message: message.type == "error" and faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(address, wait_until="networkidle")
    shift = page.evaluate("window.shifted")
    page.close()
    return Visit({url for url in asked if url.startswith("http")}, shift, faults)


def weights(asked, site):
    """The gzipped size in bytes of each file that was asked for and lies in the folder `site`."""
    paths = {site / unquote(urlsplit(url).path).lstrip("/") for url in asked if urlsplit(url).hostname == "127.0.0.1"}
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


def report_page(browser, base, name):
    """Print the row of one page; return its kilobytes, its largest shift, and its faults."""
    visits = [visit(browser, f"{base}/{name}", width) for width in WIDTHS]
    files = weights(visits[0].asked, SITE)
    total, shift = sum(files.values()) / 1000, max(seen.shift for seen in visits)
    faults = [
        fault for seen in visits for fault in [*map("request to another host: {}".format, seen.foreign), *seen.faults]
    ]
    top = sorted(files.items(), key=lambda item: -item[1])[:3]
    words = ", ".join(f"{path.name[-24:]} {size / 1000:.0f}" for path, size in top)
    print(
        f"{name:<34} {len(files):5} {total:6.0f} {total / GOAL_KB:8.2f} {shift:7.3f} {len(faults):6}   {words}",
        flush=True,
    )
    for fault in faults:
        print(f"    {fault}")
    return total, shift, faults


def report(browser, base):
    """Print the table of all chapters' pages; return True where every page keeps to the goals."""
    print(f"{'page':<34} {'files':>5} {'kB':>6} {'of goal':>8} {'shift':>7} {'faults':>6}   heaviest files")
    names = [str(file.relative_to(SITE)) for file in sorted((SITE / "book").rglob("*.html"))]
    rows = [report_page(browser, base, name) for name in names]
    heaviest, shift, faults = max(row[0] for row in rows), max(row[1] for row in rows), sum(len(row[2]) for row in rows)
    above = sum(row[0] > AIM_KB for row in rows)
    ratio = heaviest / GOAL_KB
    print(f"goal {GOAL_KB} kB: heaviest page {heaviest:.0f} kB, ratio {ratio:.2f}; pages above {AIM_KB} kB: {above}")
    print(f"largest shift {shift:.3f}, ratio {shift / MAX_SHIFT:.2f} to the goal; faults: {faults}")
    late = 0.0
    for name in names:
        if 'data-mp-widget="' not in (SITE / name).read_text("utf8"):
            continue
        fast, slow = (ready_seconds(browser, f"{base}/{name}", slow=slow) for slow in (False, True))
        late = max(late, slow)
        print(
            f"{name}: widgets ready after {fast:.2f} s, at 20 Mbit/s {slow:.2f} s, ratio {slow / GOAL_READY_S:.2f}",
            flush=True,
        )
    print(f"goal {GOAL_READY_S} s at 20 Mbit/s: latest page {late:.2f} s, ratio {late / GOAL_READY_S:.2f}")
    return heaviest <= GOAL_KB and shift <= MAX_SHIFT and not faults and late <= GOAL_READY_S


def main():
    """Measure every page of the built book; the exit code is 1 where one misses a goal."""
    if not (SITE / "index.html").exists():
        print("There is no built book; run `make book` first.", file=sys.stderr)
        return 1
    with served(SITE) as base, chromium() as browser:
        return int(not report(browser, base))


if __name__ == "__main__":
    sys.exit(main())
