"""Sphinx extension: the page that a server shows for an address that leads nowhere, 404.html.

A server answers with it at any depth, so it carries its own style and script, and its links find the site by
themselves: `not_found.js` says where the site begins, and which page the reader may have meant. Where the site's
address is set, the links are whole and need no script.

sphinx-notfound-page 1.1 writes the theme's page, with its links and files below a prefix that has to be known when the
book is built. This book is read from folders and hosts that nobody knows then.
"""

from html import escape
from pathlib import Path

from sphinx import addnodes

from book_address import site_of
from book_progress import in_order
from lean_text import lean_script, lean_style

NAME = "404"
STYLE, SCRIPT = (Path(__file__).with_name(f"not_found.{kind}") for kind in ("css", "js"))


def contents(toctrees, titles, uri):
    """The table of contents as HTML: a list for each part.

    `toctrees`: pairs of a caption, or None, and names of pages. `uri`: the link to a page, given its name.
    """
    lists = []
    for caption, names in toctrees:
        items = "".join(f'<li><a href="{escape(uri(name))}">{escape(titles[name])}</a></li>' for name in names)
        lists.append((f"<h2>{escape(caption)}</h2>" if caption else "") + f"<ul>{items}</ul>")
    return "\n".join(lists)


def toctrees_of(doctree, includes):
    """The captions of the lists on the first page, and their pages with the pages below them."""
    for tree in doctree.findall(addnodes.toctree):
        yield tree.get("caption"), [page for _, name in tree["entries"] for page in in_order(includes, name)]


def style():
    """The page's own rules, below the book's colours."""
    import utils.widgets

    tokens = Path(utils.widgets.__path__[0], "shared/page/tokens.css").read_text("utf8")
    return lean_style(tokens + STYLE.read_text("utf8"))


def fill(app, pagename, templatename, context, doctree):
    """Return the template what it shows."""
    if pagename != NAME:
        return
    site, root = site_of(app.config), app.config.root_doc
    titles = {name: title.astext() for name, title in app.env.titles.items()}
    trees = [(None, [root]), *toctrees_of(app.env.get_doctree(root), app.env.toctree_includes)]
    context["mp_contents"] = contents(trees, titles, lambda name: f"{site}{name}.html")
    context["mp_site"], context["mp_style"] = site, style()
    context["mp_script"] = lean_script(SCRIPT.read_text("utf8")).strip()


def add_page(app, config):
    """Ask Sphinx for the page."""
    config.html_additional_pages = {**config.html_additional_pages, NAME: "not_found.html"}


def setup(app):
    """Connect the two steps."""
    app.connect("config-inited", add_page)
    app.connect("html-page-context", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
