"""Sphinx extension: the search of the book, with an index, a ranking and a page of its own.

Sphinx's own search finds "room" where a reader asks for OOM, knows no other name of a thing, leads to the top of a
page, and answers after Enter. Here one file holds the text of all pages, section by section, with the names from their
code; `search_ranking.js` ranks the sections, and `search_page.js` shows them while a reader types: with a server and
without. What is the same thing under two names stands in `search_synonyms.txt`.
"""

import ast
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from docutils import nodes

from book_cards import parts
from lean_text import lean_script
from packed_text import pack

FOLDER = Path(__file__).parent
INDEX = "search_index.js"
SCRIPTS = ("search_ranking.js", "search_page.js")
SYNONYMS = FOLDER / "search_synonyms.txt"
THEIRS = ("searchindex.js", "_static/searchtools.js", "_static/language_data.js")  # Sphinx's own, which no page loads

# The weight of a page by the beginning of its name: the first one that fits counts.
WEIGHTS = {
    "book/cookbook/": 1.3,
    "book/reference/all_widgets": 0.25,
    "book/reference/bibliography": 0.25,
    "book/reference/coverage": 0.25,
    "book/reference/errata": 0.4,
    "book/reference/teaching": 0.25,
    "book/solutions/": 0.3,
    "book/reference/": 0.75,
    "book/": 1.0,
}
LABELS = {"solutions": "Solutions", "reference": "Reference"}  # of the folders that have no page of their own
LIGHT = 0.5  # of lighter pages the index holds the beginning of each section
# so it does of these, which repeat a chapter, ask about it or lead on
ASIDES = {"Exercises", "More", "Further", "Sources", "What you can do now"}
BRIEF = 155  # letters of such a beginning

TEXT = (nodes.paragraph, nodes.caption)  # what people wrote, without code and outputs
CELLS = (nodes.entry, nodes.citation)  # of these the single words
KINDS = (*TEXT, *CELLS, nodes.literal_block, nodes.raw)
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
ADDRESS = re.compile(r"\s*(?:URL: |doi:|https?://)\S*")  # of a source; nobody looks for it, and it packs badly
WORD = re.compile(r"\w+")
QUOTED = re.compile(r"[\w.-]{4,40}")  # a string of code that is a name: "bf16-mixed"
TELLING = re.compile(r"[A-Za-z]\w*[._A-Z\d]|[A-Z]|_")  # at the start of a name that is no everyday word
HEAD = re.compile(r"<th>([^<]+)</th>")  # of a table that code has shown
NUMBER = re.compile(r"[1-9]\d{2,}|\d?[^\W\d]\w+")  # what is worth finding in a table: words, and numbers like 65504
PLOTTING = re.compile(r"(?:plt|ax|axes|fig|figure|pd|plots|matplotlib|pandas|myst_nb|[A-Z]+_?[A-Z]+$)\b")
WIDESPREAD = 25  # sections; a name that more of them use says nothing about where to look


def anchor_of(node):
    """The anchor of a section, or of an entry of the glossary, which is found like one; None for any other node."""
    if isinstance(node, nodes.definition_list_item):
        node = node.next_node(nodes.term)
    elif not isinstance(node, nodes.section):
        return None
    return next(iter(node["ids"]), None)


def place_of(node):
    """The innermost section around a node; None in the cell of a table or a source, whose words are no sentences.

    Of such a cell itself it is the section around the table.
    """
    inside = node.parent
    while inside is not None and anchor_of(inside) is None:
        inside = None if isinstance(inside, CELLS) and not isinstance(node, CELLS) else inside.parent
    return inside


def title_of(place):
    """The text of a section's title."""
    return text_of(place.next_node(lambda node: isinstance(node, nodes.title | nodes.term)))


def plain(formula):
    """A short formula as one line of text: "2^{-14} \\times 3" as "2⁻¹⁴ × 3"; of other commands the name stays."""
    raised = POWER.sub(lambda power: (power[1] or power[2]).translate(RAISED), formula)
    named = SIGN.sub(lambda sign: SIGNS.get(sign[0], sign[0].lstrip("\\")), raised)
    return named.translate({ord("{"): None, ord("}"): None})


def text_of(node):
    """The words of a paragraph, its formulas in plain text."""
    pieces = node.findall(nodes.Text)
    joined = "".join(plain(piece) if isinstance(piece.parent, nodes.math) else piece for piece in pieces)
    return " ".join(ADDRESS.sub("", joined).split())


def dotted(node):
    """The names of a chain of attributes, from its end to its beginning: ["compile", "torch"] for torch.compile."""
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def names_of_node(node, modules):
    """What a reader may look for of one node of a syntax tree."""
    if isinstance(node, ast.Attribute):
        chain = list(dotted(node))[::-1]
        yield ".".join(chain) if chain[0] in modules else node.attr
    elif isinstance(node, ast.alias):
        yield node.name
    elif isinstance(node, ast.ImportFrom):
        yield node.module or ""
    elif isinstance(node, ast.keyword):
        yield node.arg or ""
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield node.func.id
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and QUOTED.fullmatch(node.value):
        yield node.value


def names(source):
    """The names that a piece of code takes from elsewhere or gives to others: {"torch.compile", "unscale_"}.

    Plain variables are none. Code that is no Python, as the lines of a shell, gives all of its longer words.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {word for word in re.findall(r"[A-Za-z_][\w.]{2,}", source)}
    modules = {"torch", "np"}
    modules |= {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    every = {name for node in ast.walk(tree) for name in names_of_node(node, modules)}
    inner = {name.rpartition(".")[0] for name in every if "." in name}  # "torch.nn" of "torch.nn.Linear"
    return {name for name in every - inner if len(name) > 2 and TELLING.match(name) and not PLOTTING.match(name)}


@dataclass
class Section:
    """What the index holds of one section of a page; an aside repeats a chapter or asks about it."""

    anchor: str
    title: str
    is_aside: bool
    texts: list = field(default_factory=list)
    code: set = field(default_factory=set)  # names
    cells: set = field(default_factory=set)  # words of its tables and sources

    @property
    def text(self):
        """The prose of the section."""
        return " ".join(self.texts)


def is_aside(section):
    """Whether a section, or one around it, repeats the chapter or asks about it."""
    while section is not None:
        if isinstance(section, nodes.section) and title_of(section) in ASIDES:
            return True
        section = section.parent
    return False


def prose(doctree):
    """The sections of a page in order."""
    places = [(anchor_of(node), node) for node in doctree.findall()]
    rows = {anchor: Section(anchor, title_of(node), is_aside(node)) for anchor, node in places if anchor}
    for node in doctree.findall(lambda node: isinstance(node, KINDS)):
        place = place_of(node)
        if place is None:
            continue
        row = rows[anchor_of(place)]
        if isinstance(node, nodes.raw):
            row.cells.update(word for head in HEAD.findall(node.astext()) for word in NUMBER.findall(head))
        elif isinstance(node, CELLS):
            row.cells.update(NUMBER.findall(text_of(node)))
        elif isinstance(node, TEXT):
            row.texts.append(text_of(node))
        elif "cell_input" in node.parent.get("classes", []) or node.get("language") in {"python", "bash"}:
            row.code |= names(node.astext())
    return list(rows.values())


def shortened(text):
    """The beginning of a text, cut at a word."""
    return text if len(text) <= BRIEF else f"{text[:BRIEF].rsplit(' ', 1)[0]} …"


def weight_of(docname):
    """The weight of a page among the results."""
    return next((weight for start, weight in WEIGHTS.items() if docname.startswith(start)), 1.0)


def label_of(docname, titles):
    """The part that a page belongs to, in words; "" for a page that stands alone."""
    folder = docname.split("/")[1] if docname.count("/") > 1 else ""
    return {**LABELS, **parts(titles)}.get(folder, "")


def synonyms(text):
    """The entries of the table, [words typed, words looked for too, whether only these are meant], and the spellings.

    Raises: ValueError for a line that is neither.
    """
    merged, instead, spellings = {}, set(), []
    for line in filter(None, (line.split("#")[0].strip() for line in text.splitlines())):
        sides = re.split(r"\s+(=|>|->)\s+", line)
        if len(sides) != 3:
            raise ValueError(f"no line of the table of synonyms: {line!r}")
        left, right = ([name.strip() for name in side.split(",")] for side in sides[::2])
        if left[0].endswith("*"):
            spellings.append((left[0].rstrip("*"), right[0].rstrip("*")))
            continue
        instead.update(name.lower() for name in left if sides[1] == "->")
        for name in left if sides[1] != "=" else [*left, *right]:
            others = right if sides[1] != "=" else [other for other in (*left, *right) if other != name]
            kept = merged.setdefault(name.lower(), [])
            kept.extend(other for other in others if other not in kept)
    return [[name, others, int(name in instead)] for name, others in merged.items()], spellings


def slug(title):
    """The anchor that a title usually gets: the index does not repeat it."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def packed(pages, titles, table):
    """The index as what JSON holds, given the sections of each page by its name.

    A page is [name, part, weight, [section, ...]]. A section is [title, text, names], with its anchor where that is
    not the slug of its title, or "", and with 1 if it is an aside.
    """
    spread = Counter(name for sections in pages.values() for section in sections for name in section.code)
    texts, index = [], []

    def held(text):
        texts.append(text)
        return len(texts) - 1

    for name in sorted(pages):
        rows = []
        for section in pages[name]:
            text, more = section.text, {word for word in section.code if spread[word] <= WIDESPREAD} | section.cells
            if section.is_aside or weight_of(name) < LIGHT:
                text, more = shortened(text), section.cells
            seen = set(WORD.findall(f"{section.title} {section.text}".lower()))
            more = sorted(word for word in more if word.lower() not in seen)
            anchor = "" if section.anchor == slug(section.title) else section.anchor
            row = [held(section.title), held(text), held("; ".join(more)), anchor, int(section.is_aside)]
            while not row[-1] and len(row) > 3:
                row.pop()
            rows.append(row)
        index.append([name, label_of(name, titles), weight_of(name), rows])
    words, coded = pack(texts)
    for *_, sections in index:
        for row in sections:
            row[:3] = [coded[place] for place in row[:3]]
    pairs, spellings = synonyms(table)
    return {"words": words, "pages": index, "synonyms": pairs, "spellings": spellings}


def keep(app, pagename, templatename, context, doctree):
    """Remember the text of a page."""
    if doctree is not None:
        app.mp_prose[pagename] = prose(doctree)


def start(app):
    """Begin with no text, and without Sphinx's own index."""
    app.mp_prose = {}
    if app.builder.format == "html":
        app.builder.search = False


def search_page(app):
    """The page of the search, which Sphinx leaves out together with its index."""
    if app.builder.format == "html":
        yield "search", {}, "search.html"


def write(app, exception):
    """Write the index and the scripts, and remove those of Sphinx."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    titles = {name: title.astext() for name, title in app.env.titles.items()}
    index = packed(app.mp_prose, titles, SYNONYMS.read_text("utf8"))
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    (static / INDEX).write_text(f"globalThis.mpIndex={text};\n", "utf8")
    for name in SCRIPTS:
        (static / name).write_text(lean_script((FOLDER / name).read_text("utf8")), "utf8")
    for name in THEIRS:
        Path(app.outdir, name).unlink(missing_ok=True)


def setup(app):
    """Connect the steps; pages that other processes wrote would be missing."""
    app.connect("builder-inited", start)
    app.connect("html-collect-pages", search_page)
    app.connect("html-page-context", keep)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": False, "version": "1"}
