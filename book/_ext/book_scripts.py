"""Sphinx extension: the script of a recipe is a file of the site too, beside its page, and a link above it fetches it.

The file holds the script alone: the cell of a page in `book/cookbook` that is tagged `script`. Its name is the first
word of its first line, "# train_float16.py: what it does".
"""

import json
import re
from pathlib import Path

FOLDER = "book/cookbook"
CELL = re.compile(r'<div class="cell [^"]*\btag_script\b')  # how MyST-NB writes the cell
NAME = re.compile(r"# ([a-z0-9_]+\.py): ")
LINK = '<p class="mp-script-file"><a href="{name}" download>Download <code>{name}</code></a></p>\n'


def script_of(path):
    """Return (file name, source) of the script in a notebook, or None where no cell is tagged `script`.

    Raises: ValueError for a script whose first line does not give its name.
    """
    for cell in json.loads(path.read_text("utf8"))["cells"]:
        if "script" in cell["metadata"].get("tags", ()):
            source = "".join(cell["source"])
            if not (name := NAME.match(source)):
                raise ValueError(f'{path.name}: a script begins with "# name.py: what it does", not {source[:40]!r}')
            return name[1], source + "\n"
    return None


def scripts(root):
    """Return {file name: source} of all recipes of the book below `root`."""
    return dict(filter(None, map(script_of, sorted((root / FOLDER).glob("*.ipynb")))))


def add_link(app, pagename, templatename, context, doctree):
    """Put the link above the script of a page."""
    path = Path(app.srcdir, pagename).with_suffix(".ipynb")
    if pagename.startswith(f"{FOLDER}/") and path.exists() and (script := script_of(path)):
        context["body"] = CELL.sub(lambda cell: LINK.format(name=script[0]) + cell[0], context["body"], count=1)


def write(app, exception):
    """Write the scripts beside their pages."""
    if exception is None and app.builder.format == "html" and (Path(app.srcdir) / FOLDER).is_dir():
        for name, source in scripts(Path(app.srcdir)).items():
            Path(app.outdir, FOLDER, name).write_text(source, "utf8")


def setup(app):
    """Connect the two steps."""
    app.connect("html-page-context", add_link)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
