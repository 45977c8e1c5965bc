"""Sphinx extension: a downloaded notebook says what it needs, and the site carries that: the book's code in one file.

A page's notebook imports `utils` and reads recorded runs, so it does not run alone. The archive holds both, the pinned
requirements, and every notebook in its place, without outputs; a README and a Makefile (book/_ext/archive); the scripts
of the cookbook; and the tools in one file each. It stands beside the first page, and each page's menu of downloads
names it. The committed notebooks do not change.
"""

import json
import zipfile
from pathlib import Path

import book_scripts
import single_files
from book_address import site_of

NAME = "mixed-precision-book"  # the folder in the archive, and the archive without its suffix
ARCHIVE = f"{NAME}.zip"
ROOT_FILES = ("LICENSE", "CITATION.cff", "requirements.txt", "pyproject.toml")
CODE = ("utils/**/*.py", "utils/**/*.js", "utils/**/*.css")
READ = (
    "book/cookbook/requirements.txt",
    "book/results/*.json",
    "book/reference/*.toml",
    "book/_static/*.csv",
    "book/**/*.bib",
)
PATTERNS = (*CODE, *READ, "book/**/*.ipynb", "book/**/*.md")
OWN = Path(__file__).with_name("archive")  # what stands at the top of the archive, and only there
APART = {"_ext", "_build", ".ipynb_checkpoints", "__pycache__"}
DATE = (2026, 1, 1, 0, 0, 0)  # one date for all files: the same code gives the same archive
NOTE_ID = "how-to-run-this"
NOTE = f"""*This is the notebook of a page of the book* {{title}}. *It imports the book's code, and does not run alone.
Take* {{archive}} *from the menu of downloads of that page, and unpack it. In its folder `{NAME}`:*

```
python3 -m venv .venv
.venv/bin/pip install -r requirements.txt
.venv/bin/pip install --no-deps --no-build-isolation --editable .
.venv/bin/jupyter lab {{place}}
```"""


def note(place, title, site):
    """The first cell of a downloaded notebook. `place`: its path in the book; `site`: the site's address, or ""."""
    archive = f"[`{ARCHIVE}`]({site}{ARCHIVE})" if site else f"`{ARCHIVE}`"
    text = NOTE.format(title=title, archive=archive, place=place)
    return {"cell_type": "markdown", "id": NOTE_ID, "metadata": {}, "source": text}


def with_note(notebook, place, title, site):
    """The JSON of a notebook with the note on top, and once."""
    cells = [cell for cell in notebook["cells"] if cell.get("id") != NOTE_ID]
    return {**notebook, "cells": [note(place, title, site), *cells]}


def without_outputs(notebook):
    """The JSON of a notebook as nobody has run it."""
    cells = [
        {**cell, "outputs": [], "execution_count": None} if cell["cell_type"] == "code" else cell
        for cell in notebook["cells"]
    ]
    return {**notebook, "cells": cells}


def sources(root):
    """The files of the archive below `root`, in order."""
    paths = {path for pattern in PATTERNS for path in root.glob(pattern)} | {root / name for name in ROOT_FILES}
    return sorted(path for path in paths if path.is_file() and APART.isdisjoint(path.relative_to(root).parts))


def contents(root, note):
    """The files of the archive: {place: bytes}, in order. `note`: where the single files come from."""
    packed = {path.relative_to(root).as_posix(): path.read_bytes() for path in sources(root)}
    for place, content in packed.items():
        if place.endswith(".ipynb"):
            lean = without_outputs(json.loads(content))
            packed[place] = json.dumps(lean, indent=1, ensure_ascii=False).encode()
    packed |= {path.name: path.read_bytes() for path in OWN.iterdir()}
    packed |= {f"scripts/{name}": source.encode() for name, source in book_scripts.scripts(root).items()}
    packed |= {f"single_files/{name}": content for name, content in single_files.files(root, note).items()}
    return dict(sorted(packed.items()))


def pack(root, archive, note):
    """Write the archive of the code below `root`."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for place, content in contents(root, note).items():
            info = zipfile.ZipInfo(f"{NAME}/{place}", DATE)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            file.writestr(info, content)


def add_button(app, pagename, templatename, context, doctree):
    """Name the archive in the menu of downloads of a page that is a notebook."""
    if context.get("page_source_suffix") != ".ipynb":
        return
    for button in context.get("header_buttons", []):
        if button.get("label") == "download-buttons":
            archive = {
                "type": "link",
                "url": context["pathto"](ARCHIVE, 1),
                "text": "code",
                "tooltip": "Download the book's code, which the notebook needs",
                "icon": "fas fa-file-zipper",
                "label": "download-code-button",
            }
            button["buttons"].insert(1, archive)


def write(app, exception):
    """Put the note into the notebooks of the site, and the archive beside its first page."""
    if exception is not None or app.builder.format != "html":
        return
    import utils

    site, title = site_of(app.config), app.config.html_title
    folder = Path(app.outdir, "_sources")
    for path in folder.rglob("*.ipynb"):
        place = path.relative_to(folder).as_posix()
        notebook = with_note(json.loads(path.read_text("utf8")), place, title, site)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf8")
    pack(Path(utils.__path__[0]).parent, Path(app.outdir, ARCHIVE), single_files.note_of(app.config))


def setup(app):
    """Connect the two steps."""
    app.connect("html-page-context", add_button, priority=502)  # the theme adds its buttons at 501
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
