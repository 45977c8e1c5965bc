"""RecipePicker: a card, a task and a size in; a recipe, its reason, its bytes and its lines of torch out."""

import html

import traitlets

from utils.cost.architectures import NAMED
from utils.cost.cards import CARDS, NATIVE, TENSOR, TYPES
from utils.cost.decide import TASKS
from utils.widgets.recipe_picker.advice import SOURCE, Advice, advise, facts
from utils.widgets.shared.book_widget import BookWidget


class RecipePicker(BookWidget):
    """Pick a card, a task and a size; the page answers with a recipe, its reason, its bytes, and lines to copy.

    `card`: a name of `CARDS`; `task`: one of `TASKS`; `parameters`: how many; `memory`: in GB, 0 for what the card is
    sold with. All are read and set from Python while the page shows the widget; `recipe` and `advice` follow them.
    Raises: ValueError for what `advise` would refuse.
    """

    book_name = "recipe_picker"

    card = traitlets.Unicode("T4").tag(sync=True)
    task = traitlets.Unicode("fine_tune").tag(sync=True)
    parameters = traitlets.Int(NAMED["DistilBERT"].parameters).tag(sync=True)
    memory = traitlets.Float(0.0).tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    @traitlets.default("facts")
    def _facts(self) -> dict:
        return facts()

    @traitlets.validate("card", "task", "parameters", "memory")
    def _valid(self, proposal):
        state = {"card": self.card, "task": self.task, "parameters": self.parameters, "memory": self.memory}
        state[proposal["trait"].name] = proposal["value"]
        advise(state.pop("card"), state.pop("task"), **state)
        return proposal["value"]

    @property
    def advice(self) -> Advice:
        """What the widget answers now."""
        return advise(self.card, self.task, parameters=self.parameters, memory=self.memory)

    @property
    def recipe(self) -> str:
        """The name of the recipe that it recommends now, one of `utils.training.recipes.RECIPES`."""
        return self.advice.recipe

    def __repr__(self) -> str:
        return f"RecipePicker({self.card!r}, {self.task!r}, parameters={self.parameters:,}, recipe={self.recipe!r})"

    def static_html(self) -> str:
        """Show what the picker knows as a table, for pages without JavaScript."""
        heads = ["card", "multiplies natively", *TASKS.values()]
        rows = []
        for name, card in CARDS.items():
            own = ", ".join(TYPES[kind] for kind, state in card.support.items() if state in (TENSOR, NATIVE))
            picks = [advise(name, task, parameters=NAMED["DistilBERT"].parameters).recipe for task in TASKS]
            rows.append([card.label, own, *picks])
        head = "".join(f"<th scope='col'>{html.escape(text)}</th>" for text in heads)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows)
        return (
            "<p>The recipe for a small model on each card. The picker, which also counts bytes, needs JavaScript.</p>"
            f"<table class='mp-rp-static'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p class='mp-static-note'>{html.escape(SOURCE)}</p>"
        )
