"""AskGpu: what the reader's own GPU answers to small WGSL kernels, beside recorded answers and those of IEEE 754."""

import html
import json
from pathlib import Path

import traitlets

from utils.widgets.ask_gpu import ieee
from utils.widgets.ask_gpu.readings import MISSING, OPEN, answer_of
from utils.widgets.ask_gpu.rows import ROWS, SECTIONS, TOPICS, rows_of_page
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.static_table import static_table

RECORDED = Path(__file__).with_name("recorded")
DEVICES = ("swiftshader", "lavapipe")
DIFFER = "differ"  # the rows where two devices disagree


class AskGpu(BookWidget):
    """Ask your own GPU how it rounds, adds and forgets, and compare its answers with those of other devices.

    `only`: a key of `TOPICS` to show its rows alone, "differ" for the rows where two devices disagree, "" for all; it
    is read and set from Python while the page shows the widget. What the reader's GPU answers stays in the page: it is
    no trait, so neither Python nor an address has it.

    Raises: ValueError for an unknown `only`.
    """

    book_name = "ask_gpu"

    rows = traitlets.List(traitlets.Dict()).tag(sync=True)
    topics = traitlets.List(traitlets.List()).tag(sync=True)
    sections = traitlets.Dict().tag(sync=True)
    recorded = traitlets.List(traitlets.Dict()).tag(sync=True)
    only = traitlets.Unicode("range").tag(sync=True)

    def __init__(self, only: str = "range", **kwargs):
        topics = [list(topic) for topic in TOPICS.items()]
        super().__init__(
            rows=rows_of_page(), topics=topics, sections=SECTIONS, recorded=load_devices(), only=only, **kwargs
        )

    @traitlets.validate("only")
    def _valid_only(self, proposal) -> str:
        return one_of(proposal["value"], ("", DIFFER, *TOPICS), "only")

    def __repr__(self) -> str:
        return f"AskGpu({len(self.rows)} rows, {len(self.recorded)} devices, only={self.only!r})"

    def static_html(self) -> str:
        """Show all recorded answers as a table, for pages without JavaScript."""
        heads = ("what was computed", *(device["name"] for device in self.recorded), "WGSL allows")
        table = static_table(
            "mp-ag-static",
            heads,
            (
                (row.what, *(answer_of(row, device) for device in self.recorded),
                 f"{row.allows} (§ {row.section})")
                for row in ROWS
            ),
        )  # fmt: skip
        about = "; ".join(f"{device['name']}: {device['about']}" for device in self.recorded)
        sections = "; ".join(f"{number} {title}" for number, title in SECTIONS.items())
        return (
            f"<p>{html.escape(about)}.</p>{table}<p>WGSL, draft of August 2026: {html.escape(sections)}.</p>"
            "<p class='mp-static-note'>Asking your own GPU needs JavaScript.</p>"
        )


def load_devices() -> list[dict]:
    """Return the table's devices, IEEE 754 first: `name`, `about`, `answers`, and what stands for a missing answer.

    That is the row's entry in `remarks`, or else `missing`.
    """
    ieee754 = {"answers": ieee.answer_all(), "missing": OPEN, "remarks": ieee.REMARKS}
    devices = [{"name": "IEEE 754", "about": "nothing fused except fma", **ieee754}]
    for name in DEVICES:
        record = json.loads((RECORDED / f"{name}.json").read_text("utf8"))
        about = f"{record['renderer']}, {record['browser']}, {record['date']}"
        answers = {"answers": record["answers"], "missing": MISSING, "remarks": {}}
        devices.append({"name": record["name"], "about": about, **answers})
    return devices
