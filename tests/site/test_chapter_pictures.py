"""The extension that shows the pictures of the chapters on one page, on a small book; and the page of this book."""

import re

import pytest
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import book_rules as rules

PAGES = {
    "book/intro.rst": "First\n=====\n\n.. toctree::\n\n   part/index\n   pictures\n",
    "book/part/index.rst": "Part\n====\n\n.. toctree::\n\n   two\n   one\n   plain\n",
    "book/part/one.rst": "One\n===\n\n*What one says.*\n\n.. container:: cell tag_picture\n\n   .. figure:: one.png\n"
    "      :alt: one line\n\n      A line.\n",
    "book/part/two.rst": "Two *and* more\n==============\n\n*What two says.*\n\n.. container:: cell tag_picture\n\n"
    "   .. figure:: one.png\n      :alt: two lines\n\n      Two lines.\n",
    "book/part/plain.rst": "Plain\n=====\n\n*No picture.*\n",
    "book/pictures.rst": "Pictures\n========\n\n.. chapter-pictures:: part\n",
}

CONFIG = """\
extensions, root_doc = ["chapter_pictures"], "book/intro"

from docutils import nodes

def as_myst_does(app, doctree):  # docutils writes the class as tag-picture; a cell's text stands beside its image
    for node in list(doctree.findall(nodes.container)):
        node["classes"] = ["cell", "tag_picture"]
        next(node.findall(nodes.figure)).insert(1, nodes.literal_block("", "<Figure size 480x310>"))

def setup(app):
    app.connect("doctree-read", as_myst_does)
"""


@pytest.fixture
def build(tmp_path):
    """Build the pages, some of them changed, and give the HTML of the page of pictures."""

    def run(**changes):
        for name, text in {**PAGES, **changes}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "book/part/one.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        (tmp_path / "conf.py").write_text(CONFIG)
        app = Sphinx(tmp_path, tmp_path, tmp_path / "out", tmp_path / "trees", "html", status=None, warning=None)
        app.build()
        return (tmp_path / "out/book/pictures.html").read_text()

    return run


def shown(html):
    """Titles with their addresses, sentences, alternative texts and captions, in the order of the page."""
    found = re.finditer(
        r'href="(?P<to>part/[^"]*)"><strong>(?P<title>[^<]*)|<em>(?P<says>[^<]*)'
        r'|alt="(?P<alt>[^"]*)"|caption-text">(?P<caption>[^<]*)',
        html[html.index("<h1>Pictures") : html.index("clearer")],
    )
    return [" ".join(value for value in match.groups() if value) for match in found]


def test_the_pictures_stand_in_the_order_of_the_book(build):
    two = ["part/two.html Two and more", "What two says.", "two lines", "Two lines."]
    page = build()
    assert shown(page) == [*two, "part/one.html One", "What one says.", "one line", "A line."]
    assert "Figure size" not in page


def test_a_chapter_that_changed_is_shown_as_it_is_now(build):
    build()
    changed = PAGES["book/part/one.rst"].replace("A line.", "A better line.")
    assert shown(build(**{"book/part/one.rst": changed}))[-1] == "A better line."


def test_a_folder_without_pictures_is_an_error(build):
    with pytest.raises(ExtensionError, match="no chapter in book/nowhere has a picture"):
        build(**{"book/pictures.rst": "Pictures\n========\n\n.. chapter-pictures:: nowhere\n"})


def test_in_pictures_shows_each_part_with_a_picture():
    page = (rules.BOOK / "in_pictures.md").read_text()
    asked = re.findall(r"\{chapter-pictures\} (\S+)", page)
    pictured = {
        path.relative_to(rules.BOOK).parts[0].removesuffix(".ipynb")
        for path in rules.pages()
        if path.suffix == ".ipynb" and any("picture" in cell.tags for cell in rules.read_page(path))
    }
    assert sorted(asked) == sorted(pictured)
