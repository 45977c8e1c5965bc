"""Sphinx extension: the book's widgets work in its pages without a kernel, and a page loads what its own widgets need.

The output of a widget is an element `data-mp-widget="name"` that holds a static form and the state. The ES module of a
widget is joined from parts (`BookWidget.part_names`), which widgets share. This extension writes files of parts into
`widgets/`: those that the same widgets need lie in one file, so that no page asks for a part twice, or for one that it
does not use. After them a page loads `book-widgets.js`, which joins the parts and mounts the widgets. The shared
colours and controls are in `book-widgets.css`, for every page, the rules of a widget in `widgets/<name>.css`.
"""

import importlib
import json
import os
import pkgutil
import re
import shutil
from pathlib import Path

from lean_text import lean_script, lean_style

SCRIPT, STYLE = "book-widgets.js", "book-widgets.css"
FOLDER = "widgets"
SHARED_STYLES = ("tokens", "book_widget")
LOADER = Path(__file__).with_name("widget_loader.js")
PLACE = re.compile(r'\bdata-mp-widget="([^"]+)"')
STYLE_PRIORITY = 501  # after the shared style sheet, and before book.css (800), which may say otherwise


def widget_classes():
    """Every widget of `utils.widgets`, by its name in a page."""
    import utils.widgets
    from utils.widgets.book_widget import BookWidget

    for module in pkgutil.iter_modules(utils.widgets.__path__):
        importlib.import_module(f"utils.widgets.{module.name}")
    return BookWidget.registry()


def bundles(widgets):
    """The parts of all widgets in files, by the name of the file: one for the parts that the same widgets need.

    A file is called like the widget, if it is the own file of one, else like its first part.
    """
    users = {}
    for name, widget in widgets.items():
        for part in widget.part_names():
            users.setdefault(part, []).append(name)
    found = {}
    for part, names in users.items():
        found.setdefault(tuple(names), []).append(part)
    return {next((part for part in parts if part in widgets), parts[0]): parts for parts in found.values()}


def part_script(parts, widgets):
    """The text of one file of parts: these, and of each widget among them the names of all its parts."""
    from utils.widgets.book_widget import read_part

    sources = {part: lean_script(read_part(part)) for part in parts}
    modules = {part: widgets[part].part_names() for part in parts if part in widgets}
    return f"(globalThis.mpParts ??= []).push([{json.dumps(sources, ensure_ascii=False)}, {json.dumps(modules)}]);\n"


def scripts(widgets):
    """The scripts below `_static`, by their path, as they follow each other: the parts, then the loader."""
    files = {f"{FOLDER}/{name}.js": part_script(parts, widgets) for name, parts in bundles(widgets).items()}
    return files | {SCRIPT: lean_script(LOADER.read_text("utf8"))}


def styles(widgets):
    """The style sheets below `_static`, by their path: the shared one first, then one for each widget."""
    import utils.widgets

    def read(name):
        return lean_style(Path(utils.widgets.__path__[0], f"{name}.css").read_text("utf8"))

    files = {STYLE: "\n".join(map(read, SHARED_STYLES))}
    return files | {f"{FOLDER}/{name}.css": read(name) for name in widgets}


def script(widgets):
    """The scripts of a page with all of these widgets, as one text."""
    return "".join(scripts(widgets).values())


def style(widgets):
    """The style sheets of a page with all of these widgets, as one text."""
    return "\n".join(styles(widgets).values())


def needed(body, widgets):
    """What the widgets of a page's HTML need: paths of scripts, and of style sheets besides the shared one."""
    names = set(PLACE.findall(body))
    if not names:
        return [], []
    parts = {part for name in names & widgets.keys() for part in widgets[name].part_names()}
    files = [f"{FOLDER}/{name}.js" for name, held in bundles(widgets).items() if parts.intersection(held)]
    return [*files, SCRIPT], [f"{FOLDER}/{name}.css" for name in widgets if name in names]


def write_assets(app):
    """Write the scripts and the style sheets where Sphinx looks for static files of the output."""
    if app.builder.format != "html":
        return
    app.mp_widgets = widget_classes()
    static = Path(app.outdir, "_static")
    shutil.rmtree(static / FOLDER, ignore_errors=True)
    (static / FOLDER).mkdir(parents=True)
    for path, text in (scripts(app.mp_widgets) | styles(app.mp_widgets)).items():
        (static / path).write_text(text, "utf8")


def add_files(app, pagename, templatename, context, doctree):
    """Load on a page what its widgets need, and nothing on a page without one."""
    scripts, styles = needed(context.get("body", ""), app.mp_widgets)
    for path in scripts:
        app.add_js_file(path, loading_method="defer")
    for path in styles:
        app.add_css_file(path, priority=STYLE_PRIORITY)


def setup(app):
    """Connect the two steps; kernels that Sphinx starts find `utils` even where it is not installed."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(app.srcdir), os.environ.get("PYTHONPATH")]))
    app.connect("builder-inited", write_assets)
    app.connect("html-page-context", add_files)
    app.add_css_file(STYLE)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
