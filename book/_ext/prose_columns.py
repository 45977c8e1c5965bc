"""Sphinx extension: a column of a table that holds sentences keeps a width on a phone, so that its rows stay low.

On a narrow screen a table scrolls in its place, and a browser makes every column as narrow as its longest word allows:
a sentence would stand one word to a line. The class on the head of such a column is read by `book.css`.
"""

from docutils import nodes

SENTENCE, SENTENCES = 40, 160  # characters of a column's longest cell


def rows_of(table):
    """The rows of a table, its head first, each as the list of its cells."""
    return [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]


def mark(table):
    """Give the first cell of each column that holds sentences a class: "mp-prose", or "mp-prose-long"."""
    for column in zip(*rows_of(table), strict=False):
        longest = max(len(cell.astext()) for cell in column)
        if longest > SENTENCE:
            column[0]["classes"].append("mp-prose-long" if longest > SENTENCES else "mp-prose")


def mark_page(app, doctree, docname):
    """Mark the columns of all tables of a page."""
    if app.builder.format == "html":
        for table in doctree.findall(nodes.table):
            mark(table)


def setup(app):
    """Connect the step."""
    app.connect("doctree-resolved", mark_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
