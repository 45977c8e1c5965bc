"""Sphinx extension: what there is to do in the book, found in the built pages, for the widget `progress`.

The places of goals and questions on a page get an anchor, and each page that has some gets a line that counts what is
done. When all pages are written, the widget `progress` on the contents page gets their list. Solutions and reference
pages hold nothing that counts.
"""

import html
import json
import re
from dataclasses import dataclass
from pathlib import Path

from lean_text import lean_script

PLACE = re.compile(r'<div\b[^>]*\bdata-mp-widget="([^"]+)"[^>]*>')
STATE = re.compile(r'\bdata-mp-state="([^"]*)"')
ANCHOR = re.compile(r'\bid="([^"]*)"')
PROGRESS = re.compile(r'<div\b[^>]*\bdata-mp-widget="progress"[^>]*>.*?</div>', re.DOTALL)
BOOK, APART = "book/", ("book/solutions/", "book/reference/")
LISTS = ("goals", "questions")  # the traits that hold what can be done; each item has an id and a text
CONTENTS = "your-progress"  # the heading of the contents page that the lines lead to
LINE = Path(__file__).with_name("progress_line.js")
LONGEST = 60  # characters of an exercise's text that a link shows


@dataclass(frozen=True)
class Exercise:
    """A goal or a question as a page shows it; `place` is the anchor of its widget."""

    id: str
    text: str
    place: str


def counts(docname):
    """Whether what is done on a page counts."""
    return docname.startswith(BOOK) and not docname.startswith(APART)


def chapter_of(docname):
    """The beginning of the ids of a page: "numbers/bits" for "book/numbers/bits"."""
    return docname.removeprefix(BOOK)


def items_of(tag):
    """The goals and questions in the state of a widget, given the tag of its place."""
    state = STATE.search(tag)
    values = json.loads(html.unescape(state[1])) if state else {}
    return [item for name in LISTS for item in values.get(name) or []]


def with_anchors(body):
    """The HTML of a page, its places of goals and questions with an id: that of the first one, without the chapter."""

    def mark(place):
        tag = place[0]
        items = items_of(tag)
        if not items or ANCHOR.search(tag):
            return tag
        return f'{tag[:-1]} id="solve-{items[0]["id"].rsplit("/", 1)[-1]}">'

    return PLACE.sub(mark, body)


def exercises(page):
    """All that can be solved on a page, as its HTML shows it, in its order."""
    solvable = []
    for tag in PLACE.finditer(page):
        anchor = ANCHOR.search(tag[0])
        name = anchor[1] if anchor else ""
        solvable += [Exercise(item["id"], short(item["text"]), name) for item in items_of(tag[0])]
    return solvable


def short(text):
    """The beginning of a question as plain text, cut at a word."""
    plain = " ".join(text.split("```")[0].replace("`", "").split()).rstrip(":")
    if len(plain) <= LONGEST:
        return plain
    return plain[:LONGEST].rsplit(" ", 1)[0].rstrip(",;:. ") + " …"


def faults(pages):
    """What is wrong with the ids of all pages, given as {docname: exercises}: one sentence each."""
    seen = {}
    for docname, solvable in pages.items():
        for exercise in solvable:
            if exercise.id in seen:
                yield f"{docname}: the id {exercise.id} is also used in {seen[exercise.id]}"
            if exercise.id.rsplit("/", 1)[0] != chapter_of(docname):
                yield f"{docname}: the id {exercise.id} does not begin with {chapter_of(docname)}/"
            seen.setdefault(exercise.id, docname)


def in_order(includes, root):
    """The pages in the order of the table of contents, given what each one includes."""
    yield root
    for name in includes.get(root, []):
        yield from in_order(includes, name)


def line(solvable, link):
    """The line of a page that counts its finished exercises: it is right before anything is painted."""
    count = len(solvable)
    words = "1 exercise to solve on this page" if count == 1 else f"{count} questions and exercises on this page"
    names = html.escape(" ".join(exercise.id for exercise in solvable))
    script = lean_script(LINE.read_text("utf8")).strip()
    return f'<p class="mp-solved"><a href="{link}" data-mp-ids="{names}">{words}</a></p>\n<script>{script}</script>\n'


def with_line(body, solvable, link):
    """The HTML of a page with the line at the end of its opening, before its first section."""
    start = body.find("<section", body.find("</h1>"))
    return body if start < 0 else body[:start] + line(solvable, link) + body[start:]


def prepare_page(app, pagename, templatename, context, doctree):
    """Return the page its anchors, and its line if it has something to solve."""
    if not counts(pagename) or "body" not in context:
        return
    context["body"] = with_anchors(context["body"])
    solvable = exercises(context["body"])
    if solvable:
        link = f"{app.builder.get_relative_uri(pagename, app.config.root_doc)}#{CONTENTS}"
        context["body"] = with_line(context["body"], solvable, link)


def fill(page, chapters):
    """The HTML of the contents page with the chapters in its widget."""
    from utils.widgets.progress import Progress

    widget = Progress(chapters=chapters)
    place = widget._repr_mimebundle_()[0]["text/html"]
    place = place.replace("<div ", f'<div style="--mp-chapters: {len(chapters)}" ', 1)
    return PROGRESS.sub(lambda _: place, page)


def collect(app, exception):
    """Write the list of all exercises into the contents page."""
    if exception is not None or app.builder.format != "html":
        return
    chapters = []
    root = app.config.root_doc
    for docname in in_order(app.env.toctree_includes, root):
        page = Path(app.builder.get_outfilename(docname))
        solvable = exercises(page.read_text("utf8")) if counts(docname) else []
        if solvable:
            address = app.builder.get_relative_uri(root, docname)
            items = [vars(exercise) for exercise in solvable]
            title = app.env.titles[docname].astext()
            chapters.append({"chapter": chapter_of(docname), "title": title, "page": address, "items": items})
    page = Path(app.builder.get_outfilename(root))
    page.write_text(fill(page.read_text("utf8"), chapters), "utf8")


def setup(app):
    """Connect the two steps."""
    app.connect("html-page-context", prepare_page)
    app.connect("build-finished", collect, priority=400)  # before the style sheets are cut down to what pages use
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
