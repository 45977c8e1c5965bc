"""The plots of the built pages: smaller files, loaded when they come near, with their place kept free.

The committed notebooks keep the plot as matplotlib drew it; only the copies in the built site change.
"""

import io
import re
from pathlib import Path

from PIL import Image

PALETTE = 256  # colours that a PNG's palette holds; a plot has a few hues and their blends with the ground
TAG = re.compile(r"<img [^>]*>")
SIZE = re.compile(r' style="width: (\d+)px; height: (\d+)px;"')


def palette(image):
    """The most frequent colours of an RGB image, as a palette: the colours of lines and areas stay exact."""
    counts = sorted(image.getcolors(image.width * image.height), key=lambda item: (-item[0], item[1]))
    sample = Image.new("P", (1, 1))
    sample.putpalette([channel for _, color in counts[:PALETTE] for channel in color])
    return sample


def shrink(path):
    """Rewrite an opaque PNG with a palette where that makes it smaller."""
    with Image.open(path) as image:
        if image.format != "PNG" or image.mode not in {"RGB", "RGBA"}:
            return
        if image.mode == "RGBA" and image.getchannel("A").getextrema() != (255, 255):
            return
        colors = image.convert("RGB")
    flat = colors.quantize(palette=palette(colors), dither=Image.Dither.NONE)
    out = io.BytesIO()
    flat.save(out, "PNG", optimize=True)
    if out.tell() < path.stat().st_size:
        path.write_bytes(out.getvalue())


def mend_tags(html):
    """Let the browser keep a picture's place at any width, and load it when a reader comes near.

    A fixed height in pixels would stretch the picture where the page is narrower than it.
    """

    def mend(tag):
        text = SIZE.sub(r' width="\1" height="\2"', tag.group())
        if "/_images/" in text or '"_images/' in text:
            text = text.replace("<img ", '<img loading="lazy" decoding="async" ', 1) if "loading=" not in text else text
        return text

    return TAG.sub(mend, html)


def write(folder):
    """Shrink every plot of the site in `folder`; what was shrunk by an earlier build is left alone."""
    for path in Path(folder, "_images").glob("*.png"):
        shrink(path)
