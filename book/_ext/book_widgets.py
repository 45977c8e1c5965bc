"""Sphinx extension: the book's widgets work in its pages without a kernel, and a page loads what its own widgets need.

The output of a widget is an element `data-mp-widget="name"` that holds a static form and the state. The JavaScript of a
widget is a file and those that it imports (`BookWidget.modules`), which widgets share. This extension writes them as
functions into scripts in `widgets/`: what the same pages need lies in one script, so that no page asks for a file
twice, or for one that it does not use, and for few scripts. After them a page loads `book-widgets.js`, which calls the
functions and mounts the widgets. The shared colours and controls are in `book-widgets.css`, for every page, the rules
of a widget in `widgets/<name>.css`.
"""

import importlib
import os
import pkgutil
import re
import shutil
from pathlib import Path

from lean_text import lean_script, lean_style

SCRIPT, STYLE = "book-widgets.js", "book-widgets.css"
FOLDER = "widgets"
LOADER = Path(__file__).with_name("widget_loader.js")
PLACE = re.compile(r'\bdata-mp-widget=\\?"([^"\\]+)\\?"')  # in HTML, and in the JSON of a notebook
STYLE_PRIORITY = 501  # after the shared style sheet, and before book.css (800), which may say otherwise


def widget_classes():
    """Every widget of `utils.widgets`, by its name in a page."""
    import utils.widgets
    from utils.widgets.shared.book_widget import BookWidget

    for module in pkgutil.iter_modules(utils.widgets.__path__):
        importlib.import_module(f"utils.widgets.{module.name}")
    return BookWidget.registry()


def bundles(widgets, pages=()):
    """The JavaScript of all widgets in scripts, by the script's name: one for the files that the same pages need.

    `pages`: the names of the widgets of each page; a widget that is on none counts as a page. A script is called like
    the first widget whose own file it holds, or else like its first file. Each maps the names of its files to the
    files, which stand after those that they import.
    """
    files, users = {}, {}
    for number, names in enumerate([*pages, *({name} for name in widgets if not any(name in page for page in pages))]):
        for name in (name for name in widgets if name in names):
            for file, module in widgets[name].modules().items():
                files[file] = module
                users.setdefault(file, {})[number] = True
    held = {}
    for file, numbers in users.items():
        held.setdefault(tuple(numbers), {})[file] = files[file]
    own = {f"{name}/widget": name for name in widgets}
    return {
        next((own[file] for file in files if file in own), next(iter(files)).replace("/", "-")): files
        for files in held.values()
    }


def file_script(files):
    """The text of one script: these files as functions, for the loader."""
    functions = "".join(lean_script(module.as_function) for module in files.values())  # each is in many scripts
    return f'"use strict";\n(globalThis.mpParts??=[]).push({{\n{functions}}});\n'


def scripts(widgets, pages=()):
    """The scripts below `_static`, by their path, as they follow each other: the files, then the loader."""
    texts = {f"{FOLDER}/{name}.js": file_script(files) for name, files in bundles(widgets, pages).items()}
    return texts | {SCRIPT: lean_script(LOADER.read_text("utf8"))}


def styles(widgets):
    """The style sheets below `_static`, by their path: the shared one first, then one for each widget."""
    from utils.widgets.shared.book_widget import SHARED_STYLES
    from utils.widgets.shared.modules import WIDGETS

    def read(name):
        return lean_style((WIDGETS / f"{name}.css").read_text("utf8"))

    sheets = {STYLE: "\n".join(map(read, SHARED_STYLES))}
    return sheets | {f"{FOLDER}/{name}.css": read(f"{name}/widget") for name in widgets}


def script(widgets):
    """The scripts of a page with all of these widgets, as one text."""
    return "".join(scripts(widgets).values())


def style(widgets):
    """The style sheets of a page with all of these widgets, as one text."""
    return "\n".join(styles(widgets).values())


def needed(body, widgets, pages=()):
    """What the widgets of a page's HTML need: paths of scripts, and of style sheets besides the shared one."""
    names = set(PLACE.findall(body))
    if not names:
        return [], []
    files = {file for name in names & widgets.keys() for file in widgets[name].modules()}
    paths = [f"{FOLDER}/{name}.js" for name, held in bundles(widgets, pages).items() if files & held.keys()]
    return [*paths, SCRIPT], [f"{FOLDER}/{name}.css" for name in widgets if name in names]


def widgets_of_pages(env):
    """The names of the widgets that stand in the source of each page, and of many pages with the same ones once."""
    pages = {frozenset(PLACE.findall(Path(env.doc2path(name)).read_text("utf8"))) for name in env.found_docs}
    return sorted(sorted(names) for names in pages)


def write_assets(app, env):
    """Write the scripts and the style sheets where Sphinx looks for static files of the output."""
    if app.builder.format != "html":
        return
    app.mp_widgets, app.mp_pages = widget_classes(), widgets_of_pages(env)
    static = Path(app.outdir, "_static")
    shutil.rmtree(static / FOLDER, ignore_errors=True)
    (static / FOLDER).mkdir(parents=True)
    for path, text in (scripts(app.mp_widgets, app.mp_pages) | styles(app.mp_widgets)).items():
        (static / path).write_text(text, "utf8")


def add_files(app, pagename, templatename, context, doctree):
    """Load on a page what its widgets need, and nothing on a page without one."""
    scripts, styles = needed(context.get("body", ""), app.mp_widgets, app.mp_pages)
    for path in scripts:
        app.add_js_file(path, loading_method="defer")
    for path in styles:
        app.add_css_file(path, priority=STYLE_PRIORITY)


def setup(app):
    """Connect the two steps; kernels that Sphinx starts find `utils` even where it is not installed."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(app.srcdir), os.environ.get("PYTHONPATH")]))
    app.connect("env-updated", write_assets)
    app.connect("html-page-context", add_files)
    app.add_css_file(STYLE)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
