"""A chapter as this book makes it, and as Jupyter Book 1.x makes it by default: weight, requests, faults, shift.

The default book is made in a temporary folder from the chapter's own notebook with an empty configuration, and runs it
once. A default page asks other hosts for MathJax, and for the widget runtime where it shows a widget as ipywidgets
stores it. Without a network these do not come: they are named, and counted with what they weighed when they were
measured with Jupyter Book 1.0.4 from their npm packages, gzipped.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import pages

sys.path.insert(0, str(pages.ROOT / "tools"))

CHAPTER = "book/numbers/bits"
NOT_LOADED_KB = {"mathjax@": 265, "html-manager@": 935}  # part of an address -> what it brings along
TOC = "format: jb-book\nroot: page\n"
CONFIG = 'title: The default\nbibtex_bibfiles: [references.bib]\nexecute: {execute_notebooks: "force", timeout: 300}\n'
MATHEMATICS = (
    "parse:\n  myst_enable_extensions: [amsmath, colon_fence, dollarmath, deflist, attrs_block, attrs_inline]\n"
)


def default_site(folder):
    """Build the chapter in a folder with Jupyter Book's own settings; return the folder of its HTML.

    Raises: RuntimeError where Jupyter Book makes no page.
    """
    from build import build

    shutil.copy2(pages.ROOT / f"{CHAPTER}.ipynb", folder / "page.ipynb")
    shutil.copy2(pages.ROOT / "book" / "references.bib", folder)
    (folder / "_toc.yml").write_text(TOC, "utf8")
    (folder / "_config.yml").write_text(CONFIG + MATHEMATICS, "utf8")
    build(folder, folder)  # links to the other chapters lead nowhere, which are warnings
    site = folder / "_build" / "html"
    if not (site / "page.html").is_file():
        raise RuntimeError(f"Jupyter Book made no page of {CHAPTER}")
    return site


def row(browser, base, site, name):
    """Measure a page, print its row, and return its weight in kilobytes and what it asked other hosts for."""
    seen = pages.visit(browser, f"{base}/{name}", 1280)
    files = pages.weights(seen.asked, site)
    total = sum(files.values()) / 1000
    print(
        f"{name:<26} {total:6.0f} {len(files):6} {len(seen.foreign):8} {len(seen.faults):7} {seen.shift:7.3f}",
        flush=True,
    )
    return total, seen


def main():
    """Print both pages and their ratio; the exit code is 1 where ours is not lighter or has a fault."""
    if not (pages.SITE / "index.html").exists():
        print("There is no built book; run `make book` first.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as work, pages.chromium() as browser:
        site = default_site(Path(work))
        print(f"{'page':<26} {'kB':>6} {'files':>6} {'foreign':>8} {'faults':>7} {'shift':>7}")
        with pages.served(pages.SITE) as base:
            ours, own = row(browser, base, pages.SITE, f"{CHAPTER}.html")
        with pages.served(site) as base:
            default, seen = row(browser, base, site, "page.html")
    print("asked of other hosts by the default page:", *sorted(seen.foreign), sep="\n    ")
    print("its faults:", *seen.faults, sep="\n    ")
    whole = default + sum(size for part, size in NOT_LOADED_KB.items() if any(part in url for url in seen.foreign))
    print(f"ours {ours:.0f} kB; default {default:.0f} kB measured, {whole:.0f} kB with what other hosts send")
    print(f"ratio {ours / default:.2f} to what was measured, {ours / whole:.2f} to all of it")
    return int(own.faults != [] or own.foreign != set() or ours >= default)


if __name__ == "__main__":
    sys.exit(main())
