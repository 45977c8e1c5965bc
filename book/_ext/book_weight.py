"""Sphinx extension: the files of the site cut down to what its pages use, once all of them are written."""

import re
from pathlib import Path

from sphinx.errors import ExtensionError

import icon_font
import joined_files
import math_fonts
import page_images
import used_styles
from lean_text import LICENCE, lean_script

FIRST_COMMENT = re.compile(r"\s*/\*.*?\*/", re.DOTALL)


def lean_scripts(static):
    """Take comments and indentation out of the theme's scripts, and remove Bootstrap's, which no page loads.

    A first comment that names a licence stays, and a script that is minified already is left alone.
    """
    for path in sorted([*static.glob("*.js"), *static.glob("scripts/*.js")]):
        text = path.read_text("utf8")
        if text.count("\n") > len(text) / 200:
            head = FIRST_COMMENT.match(text)
            kept = head[0].strip() + "\n" if head and LICENCE.search(head[0]) else ""
            path.write_text(kept + lean_script(text), "utf8")
    (static / "scripts" / "bootstrap.js").unlink(missing_ok=True)


def lighten(app, exception):
    """Cut fonts and style sheets down to what is used, and convert the plots, once all pages are written."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    try:
        joined_files.remove(static)
        lean_scripts(static)
        icon_font.write(static)
        math_fonts.write(static)
        used_styles.write(static)
        joined_files.write(static)
        page_images.write(app.outdir)
    except ValueError as error:
        raise ExtensionError(str(error)) from error


def setup(app):
    """Connect the step above."""
    app.connect("build-finished", lighten, priority=900)  # the theme writes pygments.css at 500
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
