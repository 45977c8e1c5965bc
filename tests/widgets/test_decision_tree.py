"""DecisionTree in Python: its state, its sentences, and its static page."""

import json
import re
from pathlib import Path

import pytest

from utils.cost.cards import CARDS
from utils.cost.decide import TASKS, decide
from utils.widgets.decision_tree import DecisionTree
from utils.widgets.decision_tree.facts import CHAPTERS, MEND, make_facts, page_of, path, verdict
from utils.widgets.decision_tree.symptoms import SYMPTOMS

ROOT = Path(__file__).parents[2]


def test_it_answers_as_the_module_does():
    widget = DecisionTree(card="RTX 4090", task="fine_tune", model="GPT-2 XL", batch=8, length=1_024)
    assert widget.decision == decide("RTX 4090", "fine_tune", "GPT-2 XL", batch=8, length=1_024)
    assert "GPT-2 XL on RTX 4090" in repr(widget)
    widget.task = MEND
    assert widget.decision is None
    assert repr(widget) == "DecisionTree('NaN after many good steps')"


def test_the_way_names_every_lever_and_ends_with_the_answer():
    steps = path(decide("H100", "fine_tune", batch=8))
    assert steps[0] == ["Which type should the H100 multiply in?", "bfloat16: bf16-mixed."]
    assert steps[-1][1].endswith("it fits.")
    assert len(steps) == 5
    assert path(decide("T4", "train", "DistilBERT", length=128))[0][1].endswith("16-mixed, with a loss scaler.")
    assert path(decide("A100", "train", "Llama 2 70B"))[-1][0] == "Over how many cards would it fit?"


def test_every_lever_of_every_decision_has_a_question():
    for card in CARDS:
        for task in TASKS:
            for model in ("GPT-2", "LLaMA 13B", "Llama 2 70B"):
                decision = decide(card, task, model, batch=4, cards=8)
                assert len(path(decision)) == 2 + len(decision.taken) + (not decision.fits)


def test_a_verdict_has_the_bandwidth_where_it_speaks_of_tokens():
    assert "4,800 GB/s" in verdict(decide("H200", "generate"))
    assert "tokens/s" not in verdict(decide("RTX 3090", "generate"))
    assert verdict(decide("T4", "train")).endswith("too much for one card.")


def test_the_static_page_has_the_answer_and_every_symptom():
    text = re.sub("<[^>]+>", " ", DecisionTree().static_html())
    assert verdict(DecisionTree().decision) in text
    for symptom in SYMPTOMS.values():
        assert symptom.words in text


def test_the_static_page_links_each_look_to_its_chapter():
    shown = re.findall(r"→ (?:<a href='([^']+)'>)?([^<]+)", DecisionTree().static_html())
    looks = [chapter for symptom in SYMPTOMS.values() for _, chapter in symptom.looks]
    assert shown == [(page_of(chapter), CHAPTERS[chapter]) for chapter in looks]
    assert page_of("hardware/memory") == "../hardware/memory.html"  # from practice/
    assert page_of("practice/debugging") == ""  # the page that the widget is on


def test_every_chapter_that_a_symptom_names_has_a_title():
    assert {chapter for symptom in SYMPTOMS.values() for _, chapter in symptom.looks} <= CHAPTERS.keys()
    assert [name for name, *_ in make_facts()["symptoms"]] == list(SYMPTOMS)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_that_is_named_is_in_the_book_under_this_title(chapter):
    page = ROOT / "book" / f"{chapter}.ipynb"
    title = "".join(json.loads(page.read_text("utf8"))["cells"][0]["source"]).splitlines()[0]
    own = CHAPTERS[chapter] == "this chapter"
    assert own or title == f"# {CHAPTERS[chapter]}"
    assert own == ("DecisionTree(" in page.read_text("utf8"))
    assert f"- file: book/{chapter}\n" in (ROOT / "_toc.yml").read_text("utf8")


@pytest.mark.parametrize(
    "wrong",
    [{"card": "P100"}, {"task": "fly"}, {"symptom": "hiccups"}, {"batch": 0}, {"cards": 5_000}, {"memory": -1.0}],
)
def test_what_the_module_refuses_is_refused(wrong):
    with pytest.raises(ValueError, match=str(next(iter(wrong.values())))):
        DecisionTree(**wrong)
