"""Sphinx extension: the book's widgets work in its pages without a kernel.

The output of a widget is an element `data-mp-widget="name"` that holds a static form and the state. This extension
writes one script with the source of every widget and the loader that mounts them, and one style sheet.
"""

import importlib
import json
import os
import pkgutil
from pathlib import Path

SCRIPT, STYLE = "book-widgets.js", "book-widgets.css"
SHARED_STYLES = ("tokens", "book_widget")
LOADER = Path(__file__).with_name("widget_loader.js")


def widget_classes():
    """Every widget of `utils.widgets`, by its name in a page."""
    import utils.widgets
    from utils.widgets.book_widget import BookWidget

    for module in pkgutil.iter_modules(utils.widgets.__path__):
        importlib.import_module(f"utils.widgets.{module.name}")
    return BookWidget.registry()


def script(widgets):
    """The text of the page script: the parts of all ES modules, each part once, then the loader that joins them."""
    from utils.widgets.book_widget import read_part

    parts = {name: list(widget.part_names()) for name, widget in widgets.items()}
    sources = {part: read_part(part) for part in sorted({part for names in parts.values() for part in names})}
    tables = f"const PARTS = {json.dumps(sources)};\nconst WIDGETS = {json.dumps(parts)};\n"
    return tables + LOADER.read_text("utf8")


def style(widgets):
    """The text of the style sheet: the shared colours and controls once, then each widget's own rules."""
    import utils.widgets

    folder = Path(utils.widgets.__path__[0])
    return "\n".join((folder / f"{name}.css").read_text("utf8") for name in (*SHARED_STYLES, *widgets))


def write_assets(app):
    """Write the script and the style sheet where Sphinx looks for static files of the output."""
    if app.builder.format != "html":
        return
    widgets = widget_classes()
    static = Path(app.outdir, "_static")
    static.mkdir(parents=True, exist_ok=True)
    (static / SCRIPT).write_text(script(widgets), "utf8")
    (static / STYLE).write_text(style(widgets), "utf8")


def add_script(app, pagename, templatename, context, doctree):
    """Load the script on the pages that hold a widget, and on no other."""
    if "data-mp-widget=" in context.get("body", ""):
        app.add_js_file(SCRIPT, loading_method="defer")


def setup(app):
    """Connect the two steps; kernels that Sphinx starts find `utils` even where it is not installed."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(app.srcdir), os.environ.get("PYTHONPATH")]))
    app.connect("builder-inited", write_assets)
    app.connect("html-page-context", add_script)
    app.add_css_file(STYLE)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
