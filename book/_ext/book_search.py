"""Sphinx extension: the search shows an excerpt of the book's prose below each page that it finds.

Sphinx's own search would fetch every page that it found, half a megabyte each, and cut its excerpt out of code and
outputs; from file:// it could fetch nothing. Here the search page loads one file with the prose of all pages, section
by section, and `search_excerpts.js` takes the excerpts from it: with a server and without.
"""

import json
import re
from pathlib import Path

from docutils import nodes

from lean_text import lean_script

INDEX, CALL = "searchindex.js", "Search.setIndex("  # Sphinx's own
PROSE, EXCERPTS = "search_prose.js", "search_excerpts.js"
SOURCE = Path(__file__).with_name(EXCERPTS)
TEXT = (nodes.paragraph, nodes.term)  # what people wrote, without code and outputs
SIGNS = {
    r"\times": "×",
    r"\cdot": "·",
    r"\le": "≤",
    r"\ge": "≥",
    r"\pm": "±",
    r"\approx": "≈",
    r"\ldots": "…",
    r"\,": " ",
}
SIGN = re.compile(r"\\(?:[a-zA-Z]+|[^a-zA-Z])")
POWER = re.compile(r"\^(?:\{([-−\d]+)\}|(\d))")
RAISED = str.maketrans("0123456789-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻")


def section_of(node):
    """The innermost section around a node; None for the cell of a table, whose words are no sentences."""
    while node is not None and not isinstance(node, nodes.section):
        node = None if isinstance(node, nodes.entry) else node.parent
    return node


def title_of(section):
    """The text of a section's title."""
    return section.next_node(nodes.title).astext()


def plain(formula):
    """A short formula as one line of text: "2^{-14} \\times 3" as "2⁻¹⁴ × 3"; of other commands the name stays."""
    raised = POWER.sub(lambda power: (power[1] or power[2]).translate(RAISED), formula)
    named = SIGN.sub(lambda sign: SIGNS.get(sign[0], sign[0].lstrip("\\")), raised)
    return named.translate({ord("{"): None, ord("}"): None})


def text_of(node):
    """The words of a paragraph, its formulas in plain text."""
    pieces = node.findall(nodes.Text)
    return " ".join(
        "".join(plain(piece) if isinstance(piece.parent, nodes.math) else piece for piece in pieces).split()
    )


def prose(doctree):
    """The sections of a page in order: (anchor, title, text), those with text alone."""
    sections = {}
    for node in doctree.findall(lambda node: isinstance(node, TEXT)):
        section = section_of(node)
        if section is not None:
            sections.setdefault(section["ids"][0], (section, []))[1].append(text_of(node))
    return [(anchor, title_of(section), " ".join(texts)) for anchor, (section, texts) in sections.items()]


def keep(app, pagename, templatename, context, doctree):
    """Remember the prose of a page."""
    if doctree is not None:
        app.mp_prose[pagename] = prose(doctree)


def start(app):
    """Begin with no prose."""
    app.mp_prose = {}


def without_lost_words(script):
    """Sphinx's index without words that are on no page: those of texts that were there in an earlier build."""
    index = json.loads(script.removeprefix(CALL).removesuffix(")"))
    for kind in ("terms", "titleterms"):
        index[kind] = {word: pages for word, pages in index[kind].items() if pages != []}
    return f"{CALL}{json.dumps(index)})"


def write(app, exception):
    """Write the two scripts, and mend the index."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    text = json.dumps(app.mp_prose, ensure_ascii=False, separators=(",", ":"))
    (static / PROSE).write_text(f"globalThis.mpProse = {text};\n", "utf8")
    (static / EXCERPTS).write_text(lean_script(SOURCE.read_text("utf8")), "utf8")
    index = Path(app.outdir, INDEX)
    index.write_text(without_lost_words(index.read_text("utf8")), "utf8")


def setup(app):
    """Connect the steps; pages that other processes wrote would be missing."""
    app.connect("builder-inited", start)
    app.connect("html-page-context", keep)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": False, "version": "1"}
