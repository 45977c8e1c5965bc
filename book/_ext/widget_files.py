"""Sphinx extension: each widget as one HTML file for slides, lectures and blogs, and `{all-widgets}`, the list of them.

A file in `widgets/` below the site holds the widget as a page of the book shows it first: its state, its form without
JavaScript, and the scripts and styles that it needs. It asks for no other file, takes a state from its address like a
page does, and names the book, its licence and the chapter. The list has the widgets in the order of the book.
"""

import html
import json
import struct
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import book_widgets
from chapter_pictures import in_order
from used_styles import Used, lean_sheet

NOT_ALONE = {"progress", "quiz"}  # they belong to their page
OWN_ADDRESS = {"playground"}  # an empty state in the address would be another one than that of the page
FOLDER = "widgets"
PICTURES = "_static/widgets"  # by tools/widget_pictures.py
PICTURE_FILES = Path(__file__).parents[1] / PICTURES
LOOK = """body { margin: 0 auto; max-width: 47rem; padding: 0.5rem 1rem 1rem; font: 16px/1.5 system-ui, sans-serif;
  background: var(--mp-paper); color: var(--mp-ink); }
h1 { margin: 0.5rem 0 0; font-size: 1.2rem; }
h1 + p, footer { margin: 0; color: var(--mp-ink-soft); font-size: 0.9rem; }
a { color: var(--mp-accent); }
[data-mp-widget] { margin-block: 1.5rem; } /* that of its panel, before it starts */
@media (scripting: enabled) {
  [data-mp-widget]:not([data-mp-ready]) { min-height: var(--mp-height, 44rem); }
  @media (max-width: 576px) { [data-mp-widget]:not([data-mp-ready]) { min-height: var(--mp-height, 66rem); } }
}"""
THEME = (
    'document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";'
)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} – {book}</title>
<meta name="description" content="{sentence}">
<style>{style}</style>
<script>{theme}</script>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{sentence}</p>
{place}
</main>
<footer>From the book “{book}”, chapter “{chapter}”. {copyright}. Text: CC BY 4.0. Code: BSD-3-Clause.</footer>
<script>{script}</script>
</body>
</html>
"""


class all_widgets(nodes.General, nodes.Element):
    """The place of the list until every page is read."""


class AllWidgets(SphinxDirective):
    """The directive, without an argument."""

    def run(self):
        """Leave the place."""
        self.env.metadata[self.env.docname]["all_widgets"] = True
        return [all_widgets()]


def first_places(env):
    """The HTML of each widget's first place in the book, and the page where it is, by the widget's name."""
    places = {}
    for docname in in_order(env, env.config.root_doc):
        path = Path(env.doc2path(docname))
        if path.suffix != ".ipynb":
            continue
        for cell in json.loads(path.read_text("utf8"))["cells"]:
            for output in cell.get("outputs", []):
                text = "".join(output.get("data", {}).get("text/html", ""))
                for name in book_widgets.PLACE.findall(text):
                    if name not in NOT_ALONE:
                        places.setdefault(name, (docname, text))
    return places


def sentence_of(widget):
    """The first sentence of the class: what the widget is for."""
    return " ".join(widget.__doc__.split("\n\n")[0].split())


def title_of(widget):
    """The name of a widget as words: "BitFlip" is "Bit flip"."""
    return widget.book_name.replace("_", " ").capitalize().replace("gpu", "GPU")


def page_of(app, widget, docname, place):
    """The text of a widget's file."""
    script = book_widgets.script({widget.book_name: widget}).replace("</script", "<\\/script")
    style = book_widgets.style({widget.book_name: widget}) + LOOK
    return PAGE.format(
        title=title_of(widget),
        book=html.escape(app.config.html_title),
        sentence=html.escape(sentence_of(widget)),
        style=lean_sheet(style, Used([place], [script])),  # the shared controls that this widget has none of go
        theme=THEME,
        place=place,
        chapter=html.escape(app.env.titles[docname].astext()),
        copyright=html.escape(f"© {app.config.copyright}"),
        script=script,
    )


def write_files(app, exception):
    """Write the files, before the step that gives each page its policy."""
    if exception is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir, FOLDER)
    folder.mkdir(exist_ok=True)
    for name, (docname, text) in first_places(app.env).items():
        place = BeautifulSoup(text, "html.parser").find(attrs={"data-mp-widget": name})
        for link in place.find_all("a"):  # to pages that a copy of the file does not have beside it
            link.unwrap()
        page = page_of(app, app.mp_widgets[name], docname, str(place))
        (folder / f"{name}.html").write_text(page, "utf8")


def size_of(path):
    """The width and the height of a PNG file in pixels, which its first chunk holds; the page keeps that room free."""
    return struct.unpack(">II", path.read_bytes()[16:24])


def entry(app, docname, name, target):
    """The entry of a widget in the list: its picture, a sentence, its place in the book and its file."""
    widget = app.mp_widgets[name]
    up = "../" * docname.count("/")
    title = nodes.strong("", f"{title_of(widget)}.")
    sentence = nodes.inline("", f" {sentence_of(widget)} ")
    chapter = app.env.titles[target].astext()
    uri = app.builder.get_relative_uri(docname, target)
    links = [
        nodes.reference("", chapter, refuri=uri if name in OWN_ADDRESS else f"{uri}#{name}?", internal=True),
        nodes.Text(" · "),
        nodes.reference("", "alone", refuri=f"{up}{FOLDER}/{name}.html", internal=True),
    ]
    alt = f"{title_of(widget)} as its page shows it first."
    width, height = size_of(PICTURE_FILES / f"{name}.png")
    image = (
        f'<img class="mp-widget-picture" src="{up}{PICTURES}/{name}.png" alt="{html.escape(alt)}" loading="lazy"'
        f' width="{width}" height="{height}">'
    )
    parts = [nodes.raw("", image, format="html"), nodes.paragraph("", "", title, sentence, *links)]
    return nodes.container("", *parts, classes=["mp-widget-entry"])


def show(app, doctree, docname):
    """Put the list where a page asks for it."""
    for place in list(doctree.findall(all_widgets)):
        places = first_places(app.env)
        place.replace_self([entry(app, docname, name, target) for name, (target, _) in places.items()])


def always_again(app, env):
    """Write the list again whenever the book is built: a chapter may have changed."""
    return [name for name in env.found_docs if "all_widgets" in env.metadata.get(name, {})]


def setup(app):
    """Connect the steps."""
    app.add_node(all_widgets)
    app.add_directive("all-widgets", AllWidgets)
    app.connect("env-updated", always_again)
    app.connect("doctree-resolved", show)
    app.connect("build-finished", write_files, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
