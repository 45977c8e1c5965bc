"""Sphinx extension: what others show of a page: its title, the promise below its title, and a card with its part.

Search engines and messengers read the description in any case. A card is named by its whole address, so there are
cards only where the site's address is set (book_address.py); they are drawn when the book is built, one for each part.

sphinxext-opengraph 0.13 takes the first 200 characters of the whole text for the description, the list of goals below
the promise included and cut within a word, names the page by a relative address where the site has none, and draws a
card for each page.
"""

import re
from html import escape
from pathlib import Path

from docutils import nodes

from book_address import site_of

LONGEST = 200  # characters of a description: what messengers show of one
WIDTH, HEIGHT = 1200, 630  # pixels, the 1.91 : 1 of a large card
FOLDER = "_static/cards"
BITS = "0011110000000000"  # the number 1 in float16: one bit of sign, five of exponent, ten of fraction
PART = re.compile(r"book/(\w+)/")
WHOLE = "book"  # the card of pages that belong to no part


def description(doctree):
    """The first paragraph of a page as plain text, cut at a word; "" for a page without one."""
    for paragraph in doctree.findall(nodes.paragraph):
        words = paragraph.astext().split()
        if words:
            text = " ".join(words)
            return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0].rstrip(",;:.") + " …"
    return ""


def parts(titles):
    """The titles of the parts by the folder of their pages, given the titles of all pages."""
    folders = {name: title for name, title in titles.items() if name.endswith("/index")}
    return {PART.match(name)[1]: title for name, title in folders.items() if PART.match(name)}


def card_of(docname, titles):
    """The name of the card that a page shows."""
    part = PART.match(docname)
    return part[1] if part and part[1] in parts(titles) else WHOLE


def tags(docname, title, promise, book, site, titles):
    """The tags of a page's head, one a line. `site`: the address that the site has, or ""."""
    card = f"{site}{FOLDER}/{card_of(docname, titles)}.png"
    properties = {"og:type": "article", "og:site_name": book, "og:title": title, "og:description": promise}
    if site:
        properties |= {"og:url": f"{site}{docname}.html", "og:image": card, "og:image:alt": f"{book}: {title}"}
        properties |= {"og:image:width": WIDTH, "og:image:height": HEIGHT}
    named = {"description": promise, "twitter:card": "summary_large_image" if site else "summary"}
    pairs = [("property", *pair) for pair in properties.items()] + [("name", *pair) for pair in named.items()]
    return "\n".join(f'<meta {kind}="{key}" content="{escape(str(text))}" />' for kind, key, text in pairs if text)


def add_tags(app, pagename, templatename, context, doctree):
    """Put the tags into the head of a page that was written by people."""
    if doctree is None or pagename not in app.env.titles:
        return
    titles = {name: title.astext() for name, title in app.env.titles.items()}
    site = site_of(app.config)
    added = tags(pagename, titles[pagename], description(doctree), app.config.html_title, site, titles)
    context["metatags"] = f"{context.get('metatags', '')}\n{added}\n"


def draw(path, book, part):
    """Draw a card: the bits of a number, the book's name, and the part's where there is one."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    from utils.plots import EXPONENT, FRACTION, INK, INK_SOFT, PAPER, SIGN, TINTS

    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, HEIGHT))
    axes.set_axis_off()
    for place, bit in enumerate(BITS):
        color = SIGN if place == 0 else EXPONENT if place <= 5 else FRACTION
        left = 80 + 65 * place
        axes.add_patch(Rectangle((left, 380), 57, 110, facecolor=TINTS[color], edgecolor=color, linewidth=3))
        axes.text(left + 28, 432, bit, color=color, fontsize=32, ha="center", va="center", family="monospace")
    axes.text(80, 255, book, color=INK, fontsize=40, weight="bold", va="center")
    axes.text(80, 160, part, color=INK_SOFT, fontsize=28, va="center")
    figure.savefig(path)


def write_cards(app, exception):
    """Draw the cards where the site has an address."""
    if exception is not None or app.builder.format != "html" or not site_of(app.config):
        return
    folder = Path(app.outdir, FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    titles = {name: title.astext() for name, title in app.env.titles.items()}
    for name, part in {WHOLE: "One book, from one flipped bit to eight", **parts(titles)}.items():
        draw(folder / f"{name}.png", app.config.html_title, part)


def setup(app):
    """Connect the two steps."""
    app.connect("html-page-context", add_tags)
    app.connect("build-finished", write_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
