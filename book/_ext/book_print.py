"""Sphinx extension: a printed page is light and shows what is folded; book_print.css holds the rules of paper."""

from pathlib import Path

from lean_text import lean_script

SCRIPT = Path(__file__).with_name("print_page.js")


def setup(app):
    """Put the few lines into every page: a file of its own would be one more request."""
    app.add_js_file(None, body=lean_script(SCRIPT.read_text("utf8")).strip())
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
