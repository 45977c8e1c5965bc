"""DecisionTree: from a card, a task and a model to a recipe and its memory; from a symptom to where to look."""

import html

import traitlets

from utils.cost.decide import TASKS, Decision, decide
from utils.widgets.decision_tree.facts import CHAPTERS, ITEMS, LEFT_OUT, MEND, make_facts, page_of, path, verdict
from utils.widgets.decision_tree.symptoms import SYMPTOMS
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.words.amounts import bytes_text

DECIDES = ("card", "memory", "cards", "model", "optimizer", "batch", "length")


class DecisionTree(BookWidget):
    """Say what you have and what you want; the page answers with the way to a recipe, and with its memory.

    `task`: one of `decide.TASKS`, or "mend", which asks for a `symptom`, one of `symptoms.SYMPTOMS`. The
    others are arguments of `utils.cost.decide.decide`; `memory`: of a card in GB, 0 for the least that it is sold with.
    All are read and set from Python while the page shows the widget; `decision` follows them, None for "mend". Raises
    ValueError for what `decide` would refuse, and for an unknown symptom.
    """

    book_name = "decision_tree"

    task = traitlets.Unicode("fine_tune").tag(sync=True)
    symptom = traitlets.Unicode("nan later").tag(sync=True)
    card = traitlets.Unicode("H100").tag(sync=True)
    memory = traitlets.Float(0.0).tag(sync=True)
    cards = traitlets.Int(1).tag(sync=True)
    model = traitlets.Unicode("LLaMA 7B").tag(sync=True)
    optimizer = traitlets.Unicode("adamw").tag(sync=True)
    batch = traitlets.Int(8).tag(sync=True)
    length = traitlets.Int(2_048).tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    @traitlets.default("facts")
    def _facts(self) -> dict:
        return make_facts()

    @traitlets.validate("task", *DECIDES)
    def _valid(self, proposal):
        state = {name: getattr(self, name) for name in ("task", *DECIDES)} | {proposal["trait"].name: proposal["value"]}
        if state["task"] == MEND:
            state["task"] = "train"
        elif state["task"] == "generate" and proposal["trait"].name == "task" and state["model"] == "DistilBERT":
            return proposal["value"]  # its model comes next, as the page sends both
        decide(state.pop("card"), state.pop("task"), state.pop("model"), memory_gb=state.pop("memory"), **state)
        return proposal["value"]

    @traitlets.validate("symptom")
    def _valid_symptom(self, proposal) -> str:
        return one_of(proposal["value"], SYMPTOMS, "symptom")

    @property
    def decision(self) -> Decision | None:
        """What the widget answers now; None where it is asked about a symptom."""
        if self.task == MEND:
            return None
        how = {"optimizer": self.optimizer, "batch": self.batch, "length": self.length, "cards": self.cards}
        return decide(self.card, self.task, self.model, memory_gb=self.memory, **how)

    def __repr__(self) -> str:
        if self.task == MEND:
            return f"DecisionTree({SYMPTOMS[self.symptom].words!r})"
        return f"DecisionTree({TASKS[self.task]} {self.model} on {self.card}: {self.decision})"

    def static_html(self) -> str:
        """Show the way to the decision, and all symptoms with their looks, for pages without JavaScript."""
        parts = ["<p>Other cards, models and tasks can be asked for here; that needs JavaScript.</p>"]
        if self.decision:
            steps = [f"{question} {answer}" for question, answer in path(self.decision)]
            items = [(ITEMS[name], size) for name, size in self.decision.items.items() if size]
            rows = "".join(f"<tr><th scope='row'>{name}</th><td>{bytes_text(size)}</td></tr>" for name, size in items)
            what = f"{TASKS[self.task]}, {self.model}, {self.batch} × {self.length} tokens, on {self.card}"
            head = "<tr><th scope='col'>on each card</th><th scope='col'>bytes</th></tr>"
            parts += [f"<p>{html.escape(what)}: {html.escape(verdict(self.decision))}</p>", _list(steps)]
            parts += [f"<table><thead>{head}</thead><tbody>{rows}</tbody></table><p>{LEFT_OUT}</p>"]
        for symptom in SYMPTOMS.values():
            looks = "".join(f"<li>{html.escape(look)} → {_link(chapter)}</li>" for look, chapter in symptom.looks)
            parts.append(f"<p><strong>{html.escape(symptom.words)}</strong></p><ol>{looks}</ol>")
        return "".join(parts)


def _link(chapter: str) -> str:
    title, page = html.escape(CHAPTERS[chapter]), page_of(chapter)
    return f"<a href='{page}'>{title}</a>" if page else title


def _list(lines: list[str]) -> str:
    return "<ol>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ol>"
