"""Playground: a small network that trains in the page, with a number format for each of its tensors."""

import html
import json

import traitlets

from utils.widgets.playground.presets import PRESETS, TOUR
from utils.widgets.playground.training.setup import (
    BATCHES,
    DATA,
    GROWTHS,
    NAMES,
    OPTIMIZERS,
    PUSHES,
    RATES,
    ROUNDINGS,
    SCALE_POWERS,
    SEEDS,
    TENSORS,
    Setup,
)
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of

OFFERED = {
    "format": list(NAMES),
    "rule": list(ROUNDINGS),
    "data": list(DATA),
    "optimizer": list(OPTIMIZERS),
    "rate": list(RATES),
    "batch": list(BATCHES),
    "push": list(PUSHES),
    "growth": list(GROWTHS),
    "seed": list(SEEDS[:5]),
    "scale": ["none", "dynamic", *(2**power for power in SCALE_POWERS)],
}


class Playground(BookWidget):
    """Train a network with two hidden layers of 16 units on points in a square, in number formats of your choice.

    `preset`: the name of a setting in `PRESETS`; or `setup`, a `Setup`. `watched`: the tensor whose histogram is shown.
    `tour`: whether the tasks are shown; `autorun`: whether training begins as soon as the widget is seen. Setting
    `goal` from Python trains up to that step. Read from Python: `steps`, `loss` (the mean of the last 50 steps),
    `accuracy`, `curve` (rows of step, loss, the float32 loss, loss scale) and `solved`, the ids of the solved tasks.

    Raises: ValueError for an unknown preset or tensor, and for a value that no knob offers.
    """

    book_name = "playground"

    setup = traitlets.Dict().tag(sync=True)
    watched = traitlets.Unicode("gradients").tag(sync=True)
    goal = traitlets.Int(0).tag(sync=True)
    autorun = traitlets.Bool(True).tag(sync=True)
    steps = traitlets.Int(0).tag(sync=True)
    loss = traitlets.Float(None, allow_none=True).tag(sync=True)
    accuracy = traitlets.Float(0.0).tag(sync=True)
    curve = traitlets.List().tag(sync=True)
    goals = traitlets.List(traitlets.Dict()).tag(sync=True)
    solved = traitlets.List(traitlets.Unicode()).tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    def __init__(self, preset: str = "float32", *, setup: Setup | None = None, tour: bool = True, **kwargs):
        by_name = {start.name: start for start in PRESETS}
        begin = by_name[one_of(preset, by_name, "preset")]
        super().__init__(
            setup=vars(setup or begin.setup),
            goals=[task.as_json() for task in TOUR] if tour else [],
            watched=kwargs.pop("watched", begin.watched),
            facts={
                "presets": [start.as_json() for start in PRESETS],
                "offered": OFFERED,
            },
            **kwargs,
        )

    @traitlets.validate("setup")
    def _valid_setup(self, proposal) -> dict:
        return vars(Setup(**proposal["value"]))

    @traitlets.validate("watched")
    def _valid_watched(self, proposal) -> str:
        return one_of(proposal["value"], TENSORS, "tensor")

    def __repr__(self) -> str:
        return f"Playground({json.dumps(self.setup)}, steps={self.steps})"

    def static_html(self) -> str:
        """List the settings and what to look for, for pages without JavaScript."""
        rows = "".join(
            f"<tr><th>{html.escape(start.label)}</th><td>{html.escape(start.says)}</td></tr>" for start in PRESETS
        )
        return (
            "<p>A network with two hidden layers of 16 units, trained in the page, with a number format for each "
            "tensor. These settings are offered:</p>"
            f'<table class="mp-play-static"><thead><tr><th>setting</th><th>what happens</th></tr></thead>'
            f"<tbody>{rows}</tbody></table>"
            '<p class="mp-static-note">Here the network trains, and every format can be changed; that needs '
            "JavaScript.</p>"
        )
