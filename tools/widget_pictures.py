"""Take the small pictures of the page "All widgets": python tools/widget_pictures.py, after `make book`.

A picture shows a widget's file as a desk shows it first, half as large, in the light. They are committed, because a
build has no browser; tests/browser/test_widget_files.py says which of them no longer fits.
"""

import io
import sys

from PIL import Image
from playwright.sync_api import sync_playwright

import browsers
from checkout import ROOT

SITE = ROOT / "_build" / "html" / "widgets"
PICTURES = ROOT / "book" / "_static" / "widgets"
WIDTH, TALLEST = 380, 420  # pixels of a picture; what is taller is cut
COLOURS = 24


def take(page, path):
    """The picture of a widget's file, as PNG bytes."""
    page.goto(path.as_uri())
    page.wait_for_selector("[data-mp-ready=true] .mp-panel")
    page.wait_for_timeout(300)
    shot = Image.open(io.BytesIO(page.locator(".mp-panel").first.screenshot())).convert("RGB")
    small = shot.resize((WIDTH, round(shot.height * WIDTH / shot.width)), Image.LANCZOS)
    few = small.crop((0, 0, WIDTH, min(small.height, TALLEST))).quantize(COLOURS, dither=Image.Dither.NONE)
    data = io.BytesIO()
    few.save(data, "PNG", optimize=True)
    return data.getvalue()


def main():
    """Take all pictures and say how large they are."""
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("*.png"):
        old.unlink()
    total = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsers.find(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 800, "height": 900}, reduced_motion="reduce")
        for path in sorted(SITE.glob("*.html")):
            data = take(page, path)
            (PICTURES / f"{path.stem}.png").write_bytes(data)
            total += len(data)
        browser.close()
    print(f"{len(list(PICTURES.glob('*.png')))} pictures, {total / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
