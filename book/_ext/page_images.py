"""The plots of the built pages: smaller files, a second one for the dark theme, loaded when they come near.

The committed notebooks keep the plot as matplotlib drew it; only the copies in the built site change. A lossless WebP
is a quarter smaller than the best PNG of the same pixels.
"""

import re
from pathlib import Path

import numpy as np
from PIL import Image

import dark_plots

PALETTE = 64  # colours that are kept exactly; a plot has a few hues and their blends with the ground
NEAR = 20  # of 255: any other colour may move so far, in each channel, to one of them
PLOT = re.compile(r"[0-9a-f]{64}\.png")  # MyST-NB names the picture of a cell by its hash
TAG = re.compile(r"<img [^>]*>")
SIZE = re.compile(r' style="width: (\d+)px; height: (\d+)px;"')
ADDRESS = re.compile(r'((?:src|href)="(?:\.\./)*_images/)([0-9a-f]{64})\.png"')
LOSSLESS = {"lossless": True, "quality": 100, "method": 4}  # 6 takes 40 times as long for 1 % less


def few_colors(pixels):
    """The picture with rare colours replaced by a frequent one that is near: [h, w, 3] uint8 -> the same.

    It packs a third smaller. Pillow's own `quantize` moves rare colours any distance, and white paper by three steps.
    """
    codes = pixels.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    unique, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    colors = np.stack([unique >> 16, unique >> 8 & 255, unique & 255], axis=1).astype(np.int32)
    frequent = np.argsort(-counts, kind="stable")[:PALETTE]
    distances = np.abs(colors[:, None] - colors[frequent]).max(axis=2)  # [colours, at most PALETTE]
    nearest = frequent[distances.argmin(axis=1)]
    kept = np.where(distances.min(axis=1) <= NEAR, nearest, np.arange(len(colors)))
    return colors[kept][places].reshape(pixels.shape).astype(np.uint8)


def opaque(path):
    """The pixels of a picture in few colours, [h, w, 3] uint8, or None where it shows what lies below it."""
    with Image.open(path) as image:
        if image.mode != "RGB" and image.convert("RGBA").getchannel("A").getextrema() != (255, 255):
            return None
        return few_colors(np.asarray(image.convert("RGB")))


def dark_name(name):
    """The name of a plot's dark file, given that of the light one, both without an ending."""
    return f"{name}-dark"


def convert(path):
    """Write a plot's WebP beside it, and a dark one where it is drawn on white paper; remove the PNG.

    Returns: whether there is a dark one; None for a picture that stays as it is. A plot is named by its content, so
    what an earlier build wrote stays, unless this code is newer.
    """
    light, dark = path.with_suffix(".webp"), path.with_name(f"{dark_name(path.stem)}.webp")
    code = max(Path(module).stat().st_mtime for module in (__file__, dark_plots.__file__))
    if not (light.exists() and light.stat().st_mtime > code):
        pixels = opaque(path)
        if pixels is None:
            return None
        Image.fromarray(pixels).save(light, **LOSSLESS)
        dark.unlink(missing_ok=True)
        if dark_plots.is_on_paper(pixels):
            Image.fromarray(dark_plots.dark_plot(pixels)).save(dark, **LOSSLESS)
    path.unlink()
    return dark.exists()


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


def show_converted(html, dark):
    """The HTML of a page with the converted plots: `dark` says for the name of each whether it has a dark file.

    A picture with both is there twice, and book.css shows one; a browser does not load the other, which is lazy.
    """

    def link(link_tag):
        return f'{link_tag[1]}{link_tag[2]}.webp"' if link_tag[2] in dark else link_tag[0]

    def twice(tag):
        name = ADDRESS.search(tag[0])
        light = ADDRESS.sub(link, tag[0])
        if not name or not dark.get(name[2]):
            return light
        both = ("light", light), ("dark", light.replace(f"{name[2]}.webp", f"{dark_name(name[2])}.webp"))
        return "".join(text.replace("<img ", f'<img class="mp-plot-{theme}" ', 1) for theme, text in both)

    return ADDRESS.sub(link, TAG.sub(twice, html))


def write(folder):
    """Convert every plot of the site in `folder`, and show the new files in its pages."""
    plots = [path for path in Path(folder, "_images").glob("*.png") if PLOT.fullmatch(path.name)]
    done = {path.stem: convert(path) for path in plots}
    dark = {name: has_dark for name, has_dark in done.items() if has_dark is not None}
    for path in Path(folder).rglob("*.html"):
        page = path.read_text("utf8")
        shown = show_converted(page, dark)
        if shown != page:
            path.write_text(shown, "utf8")
