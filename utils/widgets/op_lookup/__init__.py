"""OpLookup: what autocast does to an operation, by name, on the device that was measured and on the other."""

import html
from collections.abc import Sequence

import traitlets

from utils.diagnostics.autocast_docs import ALSO, ERROR, INSIDE, NATIVE, PROMOTE, RULES, UNLISTED, documented
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of

DIFFERS = "differs"  # the filter for operations whose two rules are not the same
LABELS = {"cpu": "CPU", "cuda": "CUDA"}


class OpLookup(BookWidget):
    """Find an operation, and see what autocast does to it: measured here, and as documented for the other device.

    `rows`: what `utils.diagnostics.autocast_table.measure` gives, None for that of the CPU in bfloat16; `device`: where
    it was measured, "cpu" or "cuda"; `version`: of torch, None for the one that runs. `query`: the text in the search
    field. `rule`: a key of `RULES` to show its operations alone, "differs" for those whose two rules differ, "" for
    all. `query` and `rule` are read and set from Python while the page shows the widget.

    Raises: ValueError for an unknown device or rule.
    """

    book_name = "op_lookup"

    rows = traitlets.List(traitlets.Dict()).tag(sync=True)
    rules = traitlets.List(traitlets.Dict()).tag(sync=True)
    heads = traitlets.List(traitlets.Unicode()).tag(sync=True)
    query = traitlets.Unicode("").tag(sync=True)
    rule = traitlets.Unicode("").tag(sync=True)

    def __init__(self, rows: Sequence | None = None, *, device: str = "cpu", version: str | None = None, **kwargs):
        one_of(device, LABELS, "device")
        if version is None:
            import torch

            version = torch.__version__.partition("+")[0]
        if rows is None:
            import torch

            from utils.diagnostics.autocast_table import measure

            rows = measure(device, torch.bfloat16)
        other = next(name for name in LABELS if name != device)
        super().__init__(
            rows=[_row(row, device, other) for row in rows],
            rules=[{"name": name, "label": rule.label, "why": rule.why} for name, rule in RULES.items()],
            heads=[f"{LABELS[device]}: measured, torch {version}", f"{LABELS[other]}: documented"],
            **kwargs,
        )

    @traitlets.validate("rule")
    def _valid_rule(self, proposal) -> str:
        options = ("", *RULES, DIFFERS)
        if proposal["value"] not in options:
            raise ValueError(f"rule {proposal['value']!r} is not one of {', '.join(filter(None, options))}")
        return proposal["value"]

    def __repr__(self) -> str:
        return f"OpLookup({len(self.rows)} operations, query={self.query!r}, rule={self.rule!r})"

    def static_html(self) -> str:
        """Show all operations as a table, for pages without JavaScript."""
        body, group = "", None
        for row in self.rows:
            if row["group"] != group:
                group = row["group"]
                body += f"<tr><th colspan='3' scope='rowgroup'>{html.escape(group)}</th></tr>"
            cells = (_words(row["here"], row["here_note"]), _words(row["there"], row["there_note"]))
            text = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            body += f"<tr><th scope='row'>{html.escape(row['name'])}</th>{text}</tr>"
        head = "".join(f"<th scope='col'>{html.escape(text)}</th>" for text in ("operation", *self.heads))
        why = "".join(f"<li>{html.escape(f'{rule.label}: {rule.why}')}</li>" for rule in RULES.values())
        return (
            f"<p>What autocast does to an operation:</p><ul>{why}</ul>"
            f"<table class='mp-ol-static'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            "<p class='mp-static-note'>Searching in it needs JavaScript.</p>"
        )


def _words(rule: str, note: str) -> str:
    return f"{RULES[rule].label} ({note})" if note else RULES[rule].label


def _row(row, device: str, other: str) -> dict:
    """Describe a row for the page: its names, its two rules by name, and what else there is to say of each."""
    mixes = len(row.of_mixed) > 0 and set(row.of_mixed) == {ERROR} and row.rule != ERROR
    real = UNLISTED[other].get(row.name)
    rule = PROMOTE if row.name in NATIVE else documented(row.name, other)
    return {
        "name": row.name,
        "also": list(ALSO.get(row.name, ())),
        "group": row.group,
        "here": row.rule,
        "here_note": "a mix raises" if mixes else INSIDE[device].get(row.name, ""),
        "there": real or rule,
        "there_note": "not in the docs, but in torch 2.13" if real else INSIDE[other].get(row.name, ""),
    }
