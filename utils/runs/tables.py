"""A table of a page as MyST Markdown, with citations and links in its cells; it scrolls in itself where it is too wide.

    Markdown(page_table("Speeds", ("what", "theirs"), [("bfloat16", "32 ms")]))

The cell that shows it needs `mystnb: {markdown_format: myst}` in its metadata.
"""

import re
from collections.abc import Iterable, Sequence

UNITS = "%|GB|GB/s|TB/s|TFLOP/s|mAP|min|ms|points|s|samples/s|steps|times|tok/s"


def page_table(label: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the table; `label` names its region for readers who cannot see it.

    A vertical bar in a cell is written as one; a number and its unit, one of `UNITS`, stay on one line.

    Raises: ValueError for a row that is not as long as the head.
    """
    lines = [tuple(head), ("---",) * len(head), *map(tuple, rows)]
    for line in lines:
        if len(line) != len(head):
            raise ValueError(f"a row of {len(line)} cells under {len(head)} headings: {line}")
    region = f'<div class="mp-scroll" tabindex="0" role="region" aria-label="{label}">'
    table = "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)
    return f"{region}\n\n{table}\n\n</div>\n"


def _cell(text: str) -> str:
    return re.sub(rf"(?<=\d) (?=(?:{UNITS})(?:[,;. )]|$))", "\u00a0", text.replace("|", r"\|"))
