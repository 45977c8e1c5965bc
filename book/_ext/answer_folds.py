"""Sphinx extension: what follows a prediction, up to the next heading, is folded until the reader has answered it.

A prediction is a question with `predict` in the output of a cell (`utils.checks.questions.Choice`). What follows it in
its section, often the output that shows the answer and the paragraph that explains it, goes into one box. The box opens
when the question is answered, or on a button; without JavaScript and on paper it is open and has a title.
"""

import html
import json
import re
from pathlib import Path

from docutils import nodes

from lean_text import lean_script

SCRIPT = Path(__file__).with_name("answer_folds.js")
STATE = re.compile(r'\bdata-mp-widget="quiz" data-mp-state="([^"]*)"')
START = """\
<div class="mp-answer" data-mp-answer="{id}">
<p class="mp-answer-title">What happens</p>
<p class="mp-answer-show"><button type="button">Show what happens</button> or answer first.</p>
<div class="mp-answer-body">
"""
END = "</div></div>\n"


def predictions(node):
    """The ids of the predictions that a node of the page asks for."""
    states = [state for raw in node.findall(nodes.raw) for state in STATE.findall(raw.astext())]
    questions = [question for state in states for question in json.loads(html.unescape(state))["questions"]]
    return [question["id"] for question in questions if question.get("predict")]


def fold(section):
    """Put what follows each prediction of a section into a box, up to the next prediction or subsection."""
    folded, is_open = [], False
    for child in section.children:
        asked = [] if isinstance(child, nodes.section) else predictions(child)
        if is_open and (asked or isinstance(child, nodes.section)):
            folded.append(nodes.raw("", END, format="html"))
            is_open = False
        folded.append(child)
        if asked:
            folded.append(nodes.raw("", START.format(id=asked[0]), format="html"))
            is_open = True
    if is_open:
        folded.append(nodes.raw("", END, format="html"))
    section.children = folded


def fold_page(app, doctree, docname):
    """Fold what follows the predictions of a page."""
    if app.builder.format == "html":
        for section in doctree.findall(nodes.section):
            fold(section)


def add_script(app, pagename, templatename, context, doctree):
    """Put the script into the pages that have a fold."""
    if "data-mp-answer=" in context.get("body", ""):
        app.add_js_file(None, body=lean_script(SCRIPT.read_text("utf8")).strip())


def setup(app):
    """Connect the two steps."""
    app.connect("doctree-resolved", fold_page)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
