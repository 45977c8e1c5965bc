"""Tables: aligned text for commands, and MyST Markdown with citations and links in its cells for pages.

    Markdown(page_table("Speeds", ("what", "theirs"), [("bfloat16", "32 ms")]))

The cell that shows a page's table needs `mystnb: {markdown_format: myst}` in its metadata.
"""

import re
from collections.abc import Iterable, Sequence

UNITS = "%|GB|GB/s|TB/s|TFLOP/s|mAP|min|ms|points|s|samples/s|steps|times|tok/s"


def align(rows: list[tuple[str, ...]]) -> str:
    """Return rows as text in columns: the first column aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join((row[0].ljust(len(first)), *rest)))
    return "\n".join(lines)


def page_table(label: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that scrolls by itself where it is too wide; `label` names its region for screen readers.

    A vertical bar in a cell is escaped; a number and its unit, one of `UNITS`, stay on one line.

    Raises: ValueError for a row that is not as long as the head.
    """
    lines = [tuple(head), ("---",) * len(head), *map(tuple, rows)]
    for line in lines:
        if len(line) != len(head):
            raise ValueError(f"a row of {len(line)} cells under {len(head)} headings: {line}")
    region = f'<div class="mp-scroll" tabindex="0" role="region" aria-label="{label}">'
    table = "\n".join("| " + " | ".join(map(_escape, line)) + " |" for line in lines)
    return f"{region}\n\n{table}\n\n</div>\n"


def _escape(text: str) -> str:
    return re.sub(rf"(?<=\d) (?=(?:{UNITS})(?:[,;. )]|$))", "\u00a0", text.replace("|", r"\|"))
