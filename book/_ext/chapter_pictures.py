"""Sphinx extension: `{chapter-pictures} numbers` shows the picture of each chapter of a folder, in the book's order.

The picture, its caption and its alternative text are those of the chapter; above them stand the chapter's title, which
is a link, and its first sentence. A chapter without a cell tagged "picture" is left out.
"""

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective


class chapter_pictures(nodes.General, nodes.Element):
    """The place of a folder's pictures until every chapter is read."""


class ChapterPictures(SphinxDirective):
    """The directive: one argument, a folder beside the page or the name of a page beside it."""

    required_arguments = 1

    def run(self):
        """Leave the place."""
        return [chapter_pictures(folder=self.arguments[0])]


def in_order(env, name):
    """The names of all pages below `name`, as the table of contents lists them."""
    yield name
    for child in env.toctree_includes.get(name, ()):
        yield from in_order(env, child)


def picture_of(doctree):
    """A chapter's picture with its caption, in a cell of its own as there, or None."""
    cells = (node for node in doctree.findall(nodes.container) if "tag_picture" in node["classes"])
    for cell in cells:
        figure = next(cell.findall(nodes.figure)).deepcopy()
        for text in list(figure.findall(nodes.literal_block)):  # what a terminal would show instead
            text.parent.remove(text)
        return nodes.container("", figure, classes=cell["classes"])
    return None


def sentence_of(doctree):
    """The sentence in italics below a chapter's title."""
    paragraph = next(doctree.findall(nodes.paragraph))
    return next(paragraph.findall(nodes.emphasis)).deepcopy()


def link_to(app, docname, target):
    """A paragraph with a chapter's title, linked."""
    address = app.builder.get_relative_uri(docname, target)
    title = app.env.titles[target].astext()
    link = nodes.reference("", "", nodes.strong("", title), refuri=address, internal=True, classes=["mp-picture-title"])
    return nodes.paragraph("", "", link)


def show(app, doctree, docname):
    """Put the pictures of the chapters where a page asks for them."""
    env = app.env
    for place in list(doctree.findall(chapter_pictures)):
        start = docname.rpartition("/")[0] + "/" + place["folder"]
        shown = []
        for name in in_order(env, env.config.root_doc):
            if name == start or name.startswith(start + "/"):
                chapter = env.get_doctree(name)
                if picture := picture_of(chapter):
                    sentence = nodes.paragraph("", "", sentence_of(chapter))
                    shown += [link_to(app, docname, name), sentence, picture]
        if not shown:
            raise ExtensionError(f"{docname}: no chapter in {start} has a picture")
        place.replace_self(shown)


def always_again(app, env):
    """Write the pages with pictures again whenever the book is built: a chapter may have changed."""
    return [name for name in env.found_docs if "chapter_pictures" in env.metadata.get(name, {})]


def note_place(app, doctree):
    """Remember the pages that show pictures."""
    if next(doctree.findall(chapter_pictures), None):
        app.env.metadata[app.env.docname]["chapter_pictures"] = True


def setup(app):
    """Connect the steps."""
    app.add_node(chapter_pictures)
    app.add_directive("chapter-pictures", ChapterPictures)
    app.connect("doctree-read", note_place)
    app.connect("env-updated", always_again)
    app.connect("doctree-resolved", show)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
