"""KaTeX's style sheet and fonts from its npm package, checked against a hash and unpacked for the pages.

Sphinx sets the mathematics when it builds (the JavaScript for that comes with sphinxcontrib-katex); a page needs
only the style sheet and the fonts, and they must be of the same version.
"""

import shutil
import tarfile
import tempfile
from pathlib import Path

from checkout import ROOT, say
from npm_packages import fetch

KATEX = ROOT / "book" / "_static" / "vendor" / "katex"
VERSION = "0.16.22"  # what sphinxcontrib-katex 0.9.11 carries; with another one superscripts come out too large
# the registry's own integrity value for katex 0.16.22
SHA512 = "XCHRdUw4lf3SKBaJe4EvgqIuWwkPSo9XoeO8GjQW94Bp7TWv9hNhzZjZ+OH9yf1UmLygb7DIT5GSFQiyt16zYg=="
WANTED = ("package/LICENSE", "package/dist/katex.min.css", "package/dist/fonts/")


def unpack(archive, folder):
    """Copy the style sheet, the woff2 fonts and the licence out of the archive into `folder`."""
    with tarfile.open(archive) as package:
        for member in package.getmembers():
            if not member.isfile() or not member.name.startswith(WANTED):
                continue
            if "/fonts/" in member.name and not member.name.endswith(".woff2"):
                continue
            target = folder / member.name.removeprefix("package/").removeprefix("dist/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(package.extractfile(member).read())


def set_up():
    """Unpack KaTeX unless this version is there; an interrupted call leaves nothing half done."""
    version = KATEX / "VERSION"
    if version.exists() and version.read_text("utf8") == VERSION:
        return
    say(f"Fetching KaTeX {VERSION} for the pages.")
    KATEX.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=KATEX.parent) as work:
        fresh = Path(work, "katex")
        unpack(fetch("katex", VERSION, SHA512, Path(work)), fresh)
        (fresh / "VERSION").write_text(VERSION, "utf8")
        shutil.rmtree(KATEX, ignore_errors=True)
        fresh.rename(KATEX)
