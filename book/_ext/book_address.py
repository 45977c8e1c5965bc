"""Sphinx extension: where the book and its repository can be found by others, shown only where that is set.

`public_address` in _config.yml is the one place. What is not set there is not shown anywhere: a page has no button and
no link that could lead nowhere. With a `repository` a page gets its source, issue and launch buttons; with a `site` it
gets its canonical address, and the site gets a sitemap.xml. Social cards (book_cards.py) and the citation
(tools/cite.py) read the same place.
"""

from html import escape
from pathlib import Path
from urllib.parse import quote, urlsplit

from sphinx.errors import ExtensionError

from book_progress import in_order

KEYS = ("site", "repository", "branch", "binder", "colab", "jupyterhub")
BINDER, COLAB = "https://mybinder.org", "https://colab.research.google.com"
ICON = "fas fa-code-branch"  # the pages carry the theme's solid icons alone, and no brand's


def checked(address):
    """The settings with a slash at the end of `site`, and the branch and the launchers that a repository comes with.

    Raises ValueError for a name that is none of KEYS, for an address that is not https, and for a branch or a launcher
    without a repository.
    """
    if unknown := sorted(address.keys() - set(KEYS)):
        raise ValueError(f"public_address knows {', '.join(KEYS)}, not {', '.join(unknown)}")
    known = {name: str(value).strip() for name, value in address.items() if value}
    for name, value in known.items():
        parts = urlsplit(value)
        if name != "branch" and (parts.scheme != "https" or not parts.hostname):
            raise ValueError(f"public_address: {name} has to begin with https://, and is {value!r}")
    if "repository" not in known:
        if known.keys() - {"site"}:
            raise ValueError("public_address: a branch or a launcher needs the repository")
    else:
        known["repository"] = known["repository"].rstrip("/").removesuffix(".git")
        known.setdefault("branch", "main")
        known.setdefault("binder", BINDER)
        if urlsplit(known["repository"]).hostname == "github.com":
            known.setdefault("colab", COLAB)  # it opens notebooks from there alone
    if "site" in known:
        known["site"] = known["site"].rstrip("/") + "/"
    return known


def theme_options(address):
    """What the theme shows of checked settings: nothing without a repository."""
    if "repository" not in address:
        return {}
    launchers = {f"{name}_url": address.get(key, "") for name, key in
                 (("binderhub", "binder"), ("colab", "colab"), ("jupyterhub", "jupyterhub"))}  # fmt: skip
    return {
        "repository_url": address["repository"],
        "repository_branch": address["branch"],
        "path_to_docs": "",
        "use_repository_button": True,
        "use_source_button": True,
        "use_issues_button": True,
        "launch_buttons": {"notebook_interface": "jupyterlab", **launchers},
    }


def settle(app, config):
    """Check the settings, and tell Sphinx and the theme before either looks."""
    try:
        config.public_address = checked(config.public_address)
    except ValueError as error:
        raise ExtensionError(str(error)) from error
    config.html_theme_options = {**config.html_theme_options, **theme_options(config.public_address)}
    config.html_baseurl = config.public_address.get("site", "")


def plain_icons(app, pagename, templatename, context, doctree):
    """Give the repository's buttons an icon that the pages have: the theme would take a brand's."""
    for button in context.get("header_buttons", []):
        for one in (button, *button.get("buttons", [])):
            if one.get("icon", "").startswith("fab "):
                one["icon"] = ICON


def sitemap(site, pages):
    """The text of a sitemap.xml with the given paths below `site`."""
    places = "".join(f"  <url><loc>{escape(site + quote(page))}</loc></url>\n" for page in pages)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return f"{head}{places}</urlset>\n"


def write_sitemap(app, exception):
    """Write sitemap.xml where the address of the site is set, and remove an older one where it is not."""
    if exception is not None or app.builder.format != "html":
        return
    path, site = Path(app.outdir, "sitemap.xml"), app.config.public_address.get("site")
    if not site:
        path.unlink(missing_ok=True)
        return
    names = dict.fromkeys(in_order(app.env.toctree_includes, app.config.root_doc))
    path.write_text(sitemap(site, [app.builder.get_target_uri(name) for name in names]), "utf8")


def setup(app):
    """Register `public_address` and connect the steps."""
    app.add_config_value("public_address", {}, "html", [dict])
    app.connect("config-inited", settle)
    app.connect("html-page-context", plain_icons, priority=502)  # the theme adds its buttons at 501
    app.connect("build-finished", write_sitemap)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
