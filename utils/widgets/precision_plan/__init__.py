"""PrecisionPlan: layer by layer, which products of a training step go to FP8, and what a data sheet promises of it."""

import html

import traitlets

from utils.cost.cards import ROOFS
from utils.widgets.precision_plan.facts import (
    CASTS,
    LEFT_OUT,
    MODELS,
    MOST,
    OTHERS,
    Float8Plan,
    Row,
    heads,
    make_facts,
    percent_text,
)
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.cost.roof_words import time_text
from utils.widgets.shared.static_table import static_table


class PrecisionPlan(BookWidget):
    """Choose which linear layers are multiplied in FP8; the page predicts shares, times and prints the call.

    `model`: one of `MODELS`. `texts` of `length` tokens each: the batch of a step. `recipe`: of
    `utils.training.float8_recipes`, one whose casts are known (`CASTS`). `device`: of `utils.cost.cards.ROOFS`, one
    with FP8. `exclude`: what `utils.training.float8_linear.convert` shall leave, kinds of layers ("lm_head") and whole
    blocks ("model.layers.0"); by default the head. All are read and set from Python while the page shows the widget;
    `plan` holds them, with what is said of them.

    Raises: ValueError for a name or a number that is not one of those.
    """

    book_name = "precision_plan"

    model = traitlets.Unicode("LLaMA 7B").tag(sync=True)
    texts = traitlets.Int(8).tag(sync=True)
    length = traitlets.Int(2048).tag(sync=True)
    recipe = traitlets.Unicode("fp8-current").tag(sync=True)
    device = traitlets.Unicode("H100 SXM").tag(sync=True)
    exclude = traitlets.List(traitlets.Unicode()).tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    def __init__(self, model: str = "LLaMA 7B", *, exclude: tuple[str, ...] | None = None, **kwargs):
        one_of(model, MODELS, "model")
        exclude = heads(model) if exclude is None else exclude
        super().__init__(model=model, exclude=list(exclude), facts=make_facts(), **kwargs)
        self._check(exclude)

    @property
    def plan(self) -> Float8Plan:
        """What the widget shows now."""
        return Float8Plan(self.model, self.texts, self.length, self.recipe, self.device, tuple(self.exclude))

    def _check(self, exclude: tuple[str, ...]) -> None:
        if self.texts * self.length > MOST:
            raise ValueError(f"{self.texts} texts of {self.length} tokens are more than {MOST:,} tokens")
        names = list(self.plan.names())
        if unknown := [name for name in exclude if name not in names]:
            kinds = [name for name in names if "." not in name]
            raise ValueError(
                f"exclude {unknown[0]!r} is no layer of {self.model}; there are {', '.join(kinds)}, {names[-1]}"
            )

    @traitlets.validate("model", "recipe", "device")
    def _valid_name(self, proposal) -> str:
        name = proposal["trait"].name
        devices = [device for device, roof in ROOFS.items() if "float8" in roof.peaks]
        return one_of(proposal["value"], {"model": MODELS, "recipe": CASTS, "device": devices}[name], name)

    @traitlets.validate("texts", "length")
    def _valid_count(self, proposal) -> int:
        if not 1 <= proposal["value"] <= MOST:
            raise ValueError(f"{proposal['trait'].name} {proposal['value']} is not in 1 to {MOST:,}")
        return proposal["value"]

    @traitlets.observe("model")
    def _leave_what_it_has(self, change) -> None:
        if not set(self.exclude) <= set(self.plan.names()):
            self.exclude = [*heads(self.model)]

    def __repr__(self) -> str:
        return f"PrecisionPlan({self.model!r}, {self.plan.code})"

    def static_html(self) -> str:
        """Say what the plan predicts, with every kind of layer in a table, for pages without JavaScript."""
        plan = self.plan
        what = f"{self.model}, {self.texts} × {self.length:,} tokens on {self.device}, {self.recipe}: {plan.verdict}"
        names = ("layers", "outputs × inputs", "in FP8", "operations", "bfloat16", "FP8 with casts", "why")
        rows = [_table_row(row, plan.operations) for row in plan.rows]
        return (
            f"<p>{html.escape(what)} Other plans can be tried here; that needs JavaScript.</p>"
            f"<p><code>{html.escape(plan.code)}</code></p>{static_table('mp-pp-static', names, rows)}"
            f"<p class='mp-static-note'>{html.escape(OTHERS)} {html.escape(LEFT_OUT)}</p>"
        )


def _table_row(row: Row, operations: int) -> tuple[str, ...]:
    return (
        row.kind.name,
        f"{row.outputs:,} × {row.inputs:,}",
        f"{row.converted} of {row.count}",
        percent_text(row.operations / operations),
        time_text(row.wide),
        time_text(row.narrow + row.casts) if row.fits else "–",
        row.kind.why if row.fits else "a size is no multiple of 16",
    )
