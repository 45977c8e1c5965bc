"""A headless Firefox for the tests that Chromium alone would not settle, driven by WebDriver BiDi over a web socket.

Firefox speaks BiDi by itself (--remote-debugging-port), so that neither geckodriver nor Playwright's own Firefox is
needed. Commands and events: https://w3c.github.io/webdriver-bidi/
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import websocket

NAMES = ("firefox-esr", "firefox")
MISSING = (
    "no Firefox here: Debian's firefox-esr (80 MB, 300 MB installed) makes these tests run, or FIREFOX with its path"
)
START_SECONDS, ANSWER_SECONDS = 60, 120
PREFERENCES = """
user_pref("app.normandy.enabled", false);
user_pref("app.update.enabled", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.page", 0);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("extensions.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
"""
EVENTS = ["log.entryAdded", "network.beforeRequestSent", "network.fetchError", "network.responseCompleted"]


class FirefoxError(RuntimeError):
    """Firefox did not start, or answered a command with an error."""


def find():
    """The program that FIREFOX names, or one on PATH; None where there is none."""
    return next(filter(None, map(shutil.which, filter(None, [os.environ.get("FIREFOX"), *NAMES]))), None)


def is_local(url):
    """True for an address that needs no network; an empty page of Firefox's own is one."""
    parts = urlsplit(url)
    return parts.scheme in {"file", "data", "blob", "about", "resource", "chrome"} or parts.hostname == "127.0.0.1"


class Firefox:
    """A browser with one page: `call` a function, `open` an address; `problems` went wrong since the last `open`."""

    def __init__(self, address):
        self.socket = websocket.create_connection(f"{address}/session", suppress_origin=True, timeout=ANSWER_SECONDS)
        self.ids = itertools.count()
        self.problems = []
        self.version = self.command("session.new", capabilities={})["capabilities"]["browserVersion"]
        self.command("session.subscribe", events=EVENTS)
        self.context = self.command("browsingContext.getTree")["contexts"][0]["context"]

    def command(self, method, **params):
        """Send a command and return its result.

        Raises: FirefoxError for one that Firefox refuses.
        """
        sent = next(self.ids)
        self.socket.send(json.dumps({"id": sent, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer["type"] == "event":
                self.note(answer["method"], answer["params"])
            elif answer.get("id") == sent:
                if answer["type"] == "error":
                    raise FirefoxError(f"{method}: {answer['error']}: {answer['message']}")
                return answer["result"]

    def note(self, event, params):
        """Keep what an event says went wrong."""
        url = params.get("request", {}).get("url", "")
        if event == "log.entryAdded" and params["level"] == "error":
            self.problems.append(f"console: {params['text']}")
        elif event == "network.beforeRequestSent" and not is_local(url):
            self.problems.append(f"request to another host: {url}")
        elif event == "network.responseCompleted" and params["response"]["status"] >= 400:
            self.problems.append(f"not found: {url}")
        elif event == "network.fetchError" and params["errorText"] != "NS_BINDING_ABORTED":
            self.problems.append(f"not found: {url} ({params['errorText']})")

    def call(self, function, *arguments):
        """Return what a JavaScript function, perhaps async, makes of JSON values, as a JSON value."""
        done = self.command(
            "script.callFunction",
            functionDeclaration=f"async (text) => JSON.stringify((await ({function})(...JSON.parse(text))) ?? null)",
            arguments=[{"type": "string", "value": json.dumps(arguments)}],
            target={"context": self.context},
            awaitPromise=True,
        )
        if done["type"] == "exception":
            raise FirefoxError(done["exceptionDetails"]["text"])
        return json.loads(done["result"]["value"])

    def open(self, url, width=1280, height=800):
        """Open an address in a window of so many pixels, and wait until every widget has started or failed."""
        self.problems.clear()
        self.command("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height})
        self.command("browsingContext.navigate", context=self.context, url=url, wait="complete")
        self.wait_for("() => [...document.querySelectorAll('[data-mp-widget]')].every((one) => one.dataset.mpReady)")

    def wait_for(self, condition):
        """Wait until a JavaScript function returns something true; it is asked once a frame."""
        self.call(
            f"""async () => {{
              while (!({condition})()) await new Promise((go) => requestAnimationFrame(go));
            }}"""
        )


def address_of(process):
    """The address that Firefox prints once it listens; None if it ends without.

    A thread goes on reading, so that Firefox never waits for a full pipe.
    """
    said, found = [], threading.Event()

    def read():
        for line in process.stdout:
            if match := re.search(r"WebDriver BiDi listening on (ws://\S+)", line):
                said.append(match[1])
                found.set()
        found.set()

    threading.Thread(target=read, daemon=True).start()
    found.wait(START_SECONDS)
    return said[0] if said else None


@contextmanager
def running(program, profile):
    """Start Firefox with a new profile in the folder `profile`, and end it.

    Raises: FirefoxError where it does not start.
    """
    (profile / "user.js").write_text(PREFERENCES, "utf8")
    command = [program, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    # it refuses a home folder that belongs to another user
    with subprocess.Popen(command, env={**os.environ, "HOME": str(profile)}, **pipes) as process:
        try:
            address = address_of(process)
            if address is None:
                raise FirefoxError(f"{program} did not start within {START_SECONDS} s")
            yield Firefox(address)
        finally:
            process.terminate()
            process.wait()
