"""The extension that keeps a width for columns of sentences: which columns it marks."""

import pytest
from docutils import nodes

import prose_columns


def table_of(*rows):
    """A table whose cells have these texts."""
    body = nodes.tbody()
    for texts in rows:
        body += nodes.row("", *(nodes.entry("", nodes.paragraph("", text)) for text in texts))
    return nodes.table("", nodes.tgroup("", body))


@pytest.mark.parametrize(
    ("length", "classes"), [(0, []), (40, []), (41, ["mp-prose"]), (160, ["mp-prose"]), (161, ["mp-prose-long"])]
)
def test_the_longest_cell_of_a_column_decides(length, classes):
    table = table_of(("name", "what to do"), ("a", "x" * length), ("b", "short"))
    prose_columns.mark(table)
    cells = list(table.findall(nodes.entry))
    assert cells[1]["classes"] == classes
    assert all(cell["classes"] == [] for cell in cells if cell is not cells[1])


def test_a_table_without_rows_is_left_alone():
    prose_columns.mark(nodes.table("", nodes.tgroup("", nodes.tbody())))
