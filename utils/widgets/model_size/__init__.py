"""ModelSize: the bytes of a training step on each card, stacked, against what the card holds."""

import html
from dataclasses import asdict

import traitlets

from utils.cost.architectures import NAMED, Architecture
from utils.cost.cards import card_bytes
from utils.widgets.model_size.facts import (
    CHANGES,
    COSTS,
    ITEMS,
    LEFT_OUT,
    MOST,
    MOST_RANK,
    MemoryPlan,
    bytes_text,
    choices,
    make_facts,
)
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.static_table import static_table

COUNTS = ("batch", "length", "accumulate", "shards")
OWN = ""  # the name of a model whose sizes are the reader's


class ModelSize(BookWidget):
    """Choose a model, a recipe and a card; the page answers with the bytes of each item, and whether they fit.

    `model`: a name in `utils.cost.architectures.NAMED`, or an `Architecture`, whose sizes `sizes` then holds; `model`
    is "". `recipe`: one of `utils.training.recipes.RECIPES`. `card`: a name of `cards.CARDS`; `memory`: of one card in
    GB, 0 for the least that it is sold with. `method` and `rank`: all weights, or LoRA or QLoRA on every linear layer
    of the blocks; a classifier has no adapters. The others are arguments of `utils.cost.memory.predict`. All are read
    and set from Python while the page shows the widget; `plan` holds them, with what is said of them: `ledger`,
    `savings`, `largest_batch`, `verdict`, `sentence`.

    Raises: ValueError for a name or a number that is not one of those.
    """

    book_name = "model_size"

    model = traitlets.Unicode("LLaMA 7B").tag(sync=True)
    sizes = traitlets.Dict().tag(sync=True)
    method = traitlets.Unicode("full").tag(sync=True)
    rank = traitlets.Int(16).tag(sync=True)
    recipe = traitlets.Unicode("bf16-mixed").tag(sync=True)
    optimizer = traitlets.Unicode("adamw").tag(sync=True)
    batch = traitlets.Int(1).tag(sync=True)
    length = traitlets.Int(512).tag(sync=True)
    attention = traitlets.Unicode("sdpa").tag(sync=True)
    checkpointing = traitlets.Bool(False).tag(sync=True)
    padded = traitlets.Bool(True).tag(sync=True)
    accumulate = traitlets.Int(1).tag(sync=True)
    shards = traitlets.Int(1).tag(sync=True)
    stage = traitlets.Int(0).tag(sync=True)
    card = traitlets.Unicode("H100").tag(sync=True)
    memory = traitlets.Float(0.0).tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    def __init__(self, model: str | Architecture = "LLaMA 7B", **kwargs):
        if isinstance(model, Architecture):
            model, kwargs = OWN, {"sizes": asdict(model), **kwargs}
        super().__init__(model=model, **kwargs)
        _ = self.architecture, self.plan.room

    @traitlets.default("facts")
    def _facts(self) -> dict:
        return make_facts()

    @property
    def architecture(self) -> Architecture:
        """The sizes of the model."""
        return Architecture(**self.sizes) if self.model == OWN else NAMED[self.model]

    @property
    def plan(self) -> MemoryPlan:
        """What the widget shows now, with its ledger and its sentences."""
        named = (
            "method",
            "rank",
            "recipe",
            "optimizer",
            "attention",
            "checkpointing",
            "padded",
            "stage",
            "card",
            "memory",
            *COUNTS,
        )
        return MemoryPlan(architecture=self.architecture, **{name: getattr(self, name) for name in named})

    @traitlets.validate("model")
    def _valid_model(self, proposal) -> str:
        if proposal["value"] != OWN:
            return one_of(proposal["value"], NAMED, "model")
        if not self.sizes:
            raise ValueError("a model without a name needs sizes; pass an Architecture")
        return OWN

    @traitlets.validate("sizes")
    def _valid_sizes(self, proposal) -> dict:
        if proposal["value"]:
            Architecture(**proposal["value"])
        return proposal["value"]

    @traitlets.validate("method", "recipe", "optimizer", "attention", "stage", "card")
    def _valid_choice(self, proposal):
        name = proposal["trait"].name
        return one_of(proposal["value"], choices()[name], name)

    @traitlets.validate(*COUNTS)
    def _valid_count(self, proposal) -> int:
        if not 1 <= proposal["value"] <= MOST:
            raise ValueError(f"{proposal['trait'].name} {proposal['value']} is not in 1 to {MOST:,}")
        return proposal["value"]

    @traitlets.validate("rank")
    def _valid_rank(self, proposal) -> int:
        if not 1 <= proposal["value"] <= MOST_RANK:
            raise ValueError(f"rank {proposal['value']} is not in 1 to {MOST_RANK:,}")
        return proposal["value"]

    @traitlets.validate("memory")
    def _valid_memory(self, proposal) -> float:
        card_bytes(self.card, proposal["value"])
        return proposal["value"]

    def __repr__(self) -> str:
        return (
            f"ModelSize({self.model or self.architecture!r}, {self.recipe!r}, batch={self.batch}: {self.plan.verdict})"
        )

    def static_html(self) -> str:
        """Show the ledger and what each change saves as tables, for pages without JavaScript."""
        ledger, plan = self.plan.ledger, self.plan
        items = [(words, bytes_text(getattr(ledger, item))) for item, (words, _) in ITEMS.items()]
        items.append(("together", bytes_text(ledger.total)))
        saved = [(name, _saving_text(plan.savings[name]), COSTS[name]) for name in CHANGES]
        what = f"{self.model or 'this model'}, {self.recipe}, {self.batch} × {self.length} tokens, on {self.card}"
        return (
            f"<p>{html.escape(what)}: {html.escape(plan.verdict)} {html.escape(plan.sentence)} Other models, recipes"
            " and cards can be tried here; that needs JavaScript.</p>"
            f"{static_table('mp-ms-static', ('what', 'bytes'), items)}"
            f"{static_table('mp-ms-static', ('one change', 'saves', 'costs'), saved)}"
            f"<p class='mp-static-note'>{html.escape(LEFT_OUT)}</p>"
        )


def _saving_text(size: int | None) -> str:
    return "–" if size is None else bytes_text(size)
