"""A Chromium or Chrome for the browser tests: the machine's own, else an installed one.

Chromium's headless shell comes first: it has the same engine without the windows, and opens a page in a fifth of the
time (0.06 against 0.30 s of CPU for a page with a widget, Chromium 156 on two cores).
"""

import os
import shutil
import subprocess

from checkout import PYTHON, SetUpError, run, say

NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
DEBIAN = ("chromium-headless-shell", "chromium")  # packages; older releases have only the second


def find():
    """The program that CHROME names, one on PATH, or Playwright's own; None where there is none."""
    named = os.environ.get("CHROME")
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, NAMES)), None) or playwright_chromium()


def playwright_chromium():
    """The Chromium that Playwright installed earlier, or None."""
    if not PYTHON.exists():
        return None
    code = (
        "from playwright.sync_api import sync_playwright as p\nwith p() as play: print(play.chromium.executable_path)"
    )
    done = subprocess.run([str(PYTHON), "-c", code], capture_output=True, text=True, check=False)
    return shutil.which(done.stdout.strip()) if done.returncode == 0 and done.stdout.strip() else None


def install_from_debian():
    """Install the first of Debian's packages that this release has.

    Raises:
        SetUpError: where it has none, or apt-get fails.
    """
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--no-install-recommends"]
    run(["apt-get", "update"], "apt-get update failed", env=quiet)
    for package in DEBIAN[:-1]:
        try:
            return run([*install, package], f"apt-get could not install {package}", env=quiet)
        except SetUpError as error:
            say(str(error))
    return run([*install, DEBIAN[-1]], f"apt-get could not install {DEBIAN[-1]}", env=quiet)


def set_up_from_debian():
    """Install Debian's package where no browser is found and apt-get asks for no password.

    It needs nothing of the environment, so it may run while that is made. A failure is printed and left to `set_up`.
    """
    if os.environ.get("CHROME") or os.geteuid() != 0 or not shutil.which("apt-get") or find():
        return
    say("No Chromium or Chrome found: installing Debian's package with apt-get.")
    try:
        install_from_debian()
    except SetUpError as error:
        say(f"{error} Trying Playwright's Chromium.")


def set_up():
    """Install Playwright's browser in the user's cache where none is found, after `set_up_from_debian`.

    Raises:
        SetUpError: with one sentence that says what to do.
    """
    if find():
        return
    named = os.environ.get("CHROME")
    if named:
        raise SetUpError(f"CHROME names {named}, which is not a program here.")
    say("No Chromium or Chrome found: installing Playwright's Chromium into your cache folder (180 MB).")
    try:
        run([str(PYTHON), "-m", "playwright", "install", "chromium"], "Playwright could not install Chromium")
    except SetUpError as error:
        raise SetUpError(f"The browser tests need Chromium or Chrome; install one, or set CHROME. ({error})") from None
    if not find():
        raise SetUpError("The browser tests need Chromium or Chrome; install one, or set CHROME to its path.")
