"""Sphinx extension: where the book can be found by others, shown only where that is set.

Jupyter Book's own settings say it: `html.baseurl`, `repository` and `launch_buttons` in _config.yml. The site gets a
sitemap.xml; social cards (book_cards.py), downloads, 404.html and the citation (tools/cite.py) read `site_of` too.
"""

from html import escape
from pathlib import Path
from urllib.parse import quote, urlsplit

from sphinx.errors import ExtensionError

from book_progress import in_order

ICON = "fas fa-code-branch"  # the pages carry the theme's solid icons alone, and no brand's


def checked(address):
    """Return an address with a slash at its end, or "" for none.

    Raises: ValueError for one that is not https.
    """
    address = str(address or "").strip()
    parts = urlsplit(address)
    if address and (parts.scheme != "https" or not parts.hostname):
        raise ValueError(f"an address has to begin with https://, and is {address!r}")
    return address.rstrip("/") + "/" if address else ""


def site_of(config):
    """Return the address of the site as `checked` does, given Sphinx's configuration.

    Raises: ExtensionError for one that is not https.
    """
    try:
        return checked(config.html_baseurl)
    except ValueError as error:
        raise ExtensionError(f"html_baseurl: {error}") from error


def plain_icons(app, pagename, templatename, context, doctree):
    """Return the repository's buttons an icon that the pages have: the theme would take a brand's."""
    for button in context.get("header_buttons", []):
        for link in (button, *button.get("buttons", [])):
            if link.get("icon", "").startswith("fab "):
                link["icon"] = ICON


def sitemap(site, pages):
    """The text of a sitemap.xml with the given paths below `site`."""
    places = "".join(f"  <url><loc>{escape(site + quote(page))}</loc></url>\n" for page in pages)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return f"{head}{places}</urlset>\n"


def write_sitemap(app, exception):
    """Write sitemap.xml where the address of the site is set, and remove an older one where it is not.

    sphinx-sitemap 2.9 warns where there is no address, lists 404.html and the search too, and starts a process.
    """
    if exception is not None or app.builder.format != "html":
        return
    path, site = Path(app.outdir, "sitemap.xml"), site_of(app.config)
    if not site:
        path.unlink(missing_ok=True)
        return
    names = dict.fromkeys(in_order(app.env.toctree_includes, app.config.root_doc))
    path.write_text(sitemap(site, [app.builder.get_target_uri(name) for name in names]), "utf8")


def setup(app):
    """Connect the steps."""
    app.connect("config-inited", lambda app, config: site_of(config))  # a wrong address ends the build at once
    app.connect("html-page-context", plain_icons, priority=502)  # the theme adds its buttons at 501
    app.connect("build-finished", write_sitemap)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
