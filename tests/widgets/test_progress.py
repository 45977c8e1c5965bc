"""What there is to solve: found in the HTML of pages, with its anchors, its faults and its line; the widget's forms."""

import re
from types import SimpleNamespace

import pytest

import book_progress
from book_progress import Exercise
from tests.page_states import states_in
from utils.checks.questions import Number, Task, placeholder
from utils.widgets.bit_flip import BitFlip, Goal
from utils.widgets.progress import NOTE, Progress
from utils.widgets.quiz import Quiz

LARGEST = Number("numbers/bits/largest", "The largest `E4M3` number:", "448", "Yes.", otherwise="No.")
DECODE = Task("numbers/bits/decode", "My `decode` is right.\n```\ndecode(0)\n```\nNot before.")
GOALS = [Goal("numbers/bits/one", "Make 1.", kind="one"), Goal("numbers/bits/half", "Make one half.", value="0.5")]
CHAPTERS = [
    {
        "chapter": "numbers/bits",
        "title": "Bits & bytes",
        "page": "numbers/bits.html",
        "items": [{"id": "numbers/bits/one", "text": "Make 1.", "place": "solve-one"}],
    }
]


def output(widget):
    return widget._repr_mimebundle_()[0]["text/html"]


PAGE = f"""<section id="bits"><h1>Bits</h1><p>Opening.</p>
<section id="play"><h2>Play</h2>{output(BitFlip(goals=GOALS))}{output(BitFlip())}</section>
<section id="exercises">{output(Quiz(LARGEST, DECODE))}</section></section>"""
FOUND = [
    Exercise("numbers/bits/one", "Make 1.", "solve-one"),
    Exercise("numbers/bits/half", "Make one half.", "solve-one"),
    Exercise("numbers/bits/largest", "The largest E4M3 number", "solve-largest"),
    Exercise("numbers/bits/decode", "My decode is right.", "solve-largest"),
]


def test_goals_and_questions_are_found_in_the_order_of_the_page_with_the_anchors_of_their_widgets():
    page = book_progress.with_anchors(PAGE)
    assert book_progress.exercises(page) == FOUND
    assert re.findall(r'<div class="mp-widget"[^>]* id="([^"]*)">', page) == ["solve-one", "solve-largest"]
    assert book_progress.with_anchors(page) == page
    assert re.sub(r' id="solve-[^"]*"', "", page) == PAGE


def test_a_placeholder_with_an_anchor_of_its_own_keeps_it():
    place = output(Quiz(LARGEST)).replace("<div ", '<div id="mine" ', 1)
    assert book_progress.with_anchors(place) == place
    assert book_progress.exercises(place)[0].place == "mine"


def test_questions_of_a_page_without_a_kernel_are_found_too():
    assert [found.id for found in book_progress.exercises(placeholder([LARGEST, DECODE], "<p>…</p>"))] == [
        "numbers/bits/largest",
        "numbers/bits/decode",
    ]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("Make 1.", "Make 1."),
        ("The code of `0.3`:", "The code of 0.3"),
        ("A line\nand `code`.", "A line and code."),
        ("Which line is wrong?\n```\nx\n```\nLook.", "Which line is wrong?"),
        (
            "What share of the positive float16 numbers is smaller than 1, and why is it so?",
            "What share of the positive float16 numbers is smaller than …",
        ),
        ("x" * 60, "x" * 60),
    ],
)
def test_a_link_shows_the_beginning_of_a_question_as_plain_text(text, short):
    assert book_progress.short(text) == short
    assert len(short) <= book_progress.LONGEST + 2


def test_an_id_that_is_used_twice_or_of_another_chapter_is_a_fault():
    here, there = Exercise("numbers/bits/one", "", ""), Exercise("numbers/rounding/one", "", "")
    machine = Exercise("your_machine/one", "", "")
    assert list(book_progress.faults({"book/numbers/bits": [here], "book/your_machine": [machine]})) == []
    assert list(book_progress.faults({"book/numbers/bits": [here, here]})) == [
        "book/numbers/bits: the id numbers/bits/one is also used in book/numbers/bits"
    ]
    assert list(book_progress.faults({"book/numbers/bits": [here], "book/numbers/rounding": [there, here]})) == [
        "book/numbers/rounding: the id numbers/bits/one is also used in book/numbers/bits",
        "book/numbers/rounding: the id numbers/bits/one does not begin with numbers/rounding/",
    ]


@pytest.mark.parametrize(
    ("docname", "counted"),
    [
        ("book/numbers/bits", True),
        ("book/your_machine", True),
        ("book/intro", True),
        ("book/solutions/bits", False),
        ("book/reference/formats", False),
        ("search", False),
    ],
)
def test_solutions_and_reference_pages_do_not_count(docname, counted):
    assert book_progress.counts(docname) is counted


def test_chapters_come_in_the_order_of_the_table_of_contents():
    includes = {"root": ["a", "part"], "part": ["c", "b"], "b": ["d"]}
    assert list(book_progress.in_order(includes, "root")) == ["root", "a", "part", "c", "b", "d"]


def page_of(docname, body):
    """What `prepare_page` makes of the body of a page."""
    builder = SimpleNamespace(get_relative_uri=lambda one, other: f"from {one} to {other}")
    app = SimpleNamespace(builder=builder, config=SimpleNamespace(root_doc="book/intro"))
    context = {"body": body}
    book_progress.prepare_page(app, docname, "page.html", context, None)
    return context["body"]


def test_a_page_with_exercises_gets_one_small_line_at_the_end_of_its_opening():
    page = page_of("book/numbers/bits", PAGE)
    before, line = page.split('<p class="mp-solved">')
    assert before.endswith("<p>Opening.</p>\n")
    assert line.startswith(
        '<a href="from book/numbers/bits to book/intro#your-progress" data-mp-ids="numbers/bits/one '
    )
    assert ">4 questions and exercises on this page</a></p>\n<script>" in line
    assert line.split("</script>\n")[1].startswith('<section id="play">')
    added = len(page) - len(book_progress.with_anchors(PAGE))
    assert added - len(" ".join(found.id for found in FOUND)) < 1000


@pytest.mark.parametrize(
    ("docname", "body"),
    [("book/numbers/bits", f"<h1>Bits</h1>{output(BitFlip())}<section></section>"), ("book/solutions/bits", PAGE)],
)
def test_a_page_where_nothing_counts_stays_as_it_is(docname, body):
    assert page_of(docname, body) == body


def test_the_contents_page_gets_the_list_in_the_place_of_the_empty_one():
    page = f"<p>before</p>{output(Progress())}<p>after</p>{output(BitFlip())}"
    filled = book_progress.fill(page, CHAPTERS)
    assert filled.startswith('<p>before</p><div style="--mp-chapters: 1" class="mp-widget" data-mp-widget="progress" ')
    assert filled.endswith(f"</div><p>after</p>{output(BitFlip())}")
    state = states_in(filled)[0]
    assert state["chapters"] == CHAPTERS
    assert book_progress.fill(filled, CHAPTERS) == filled


def test_a_notebook_says_that_the_pages_count():
    assert NOTE in output(Progress())
    assert repr(Progress()) == "Progress(0 chapters)"
    assert (
        Progress(chapters=CHAPTERS)
        .static_html()
        .endswith('<ul><li><a href="numbers/bits.html">Bits &amp; bytes</a>: 1 exercise</li></ul>')
    )
