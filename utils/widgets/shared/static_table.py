"""The table of a widget's static form, which stands in a page where JavaScript does not run."""

import html
from collections.abc import Iterable, Sequence


def static_table(style: str, heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as HTML, its texts escaped. `style`: its CSS class; the first text of a row is the row's head."""
    head = "".join(f"<th scope='col'>{html.escape(text)}</th>" for text in heads)
    body = "".join(
        f"<tr><th scope='row'>{html.escape(name)}</th>{''.join(f'<td>{html.escape(text)}</td>' for text in cells)}</tr>"
        for name, *cells in rows
    )
    return f"<table class='{style}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
