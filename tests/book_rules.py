"""The rules of the book's pages, each a function that yields one line for each fault; test_book.py applies them.

A page is read from its source, Markdown or notebook, as a list of cells, so that the rules need no build.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import notebooks

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
CHAPTER_PARTS = ("numbers", "training", "hardware", "eight_bits", "practice")
MAX_CELL_LINES = 25
MAX_SCRIPT_LINES = 80
MAX_CELL_WIDTH = 86  # what fits beside both sidebars at 1280 pixels, and two for a closing bracket
MAX_IMPORT_LINES = 8
MAX_ADMONITIONS = 3
SKELETON = (
    "The puzzle",
    "By hand",
    "Predict, then run",
    "In code",
    "Play",
    "In the library",
    "Live experiment",
    "What you can do now",
    "Exercises",
    "Sources",
)
BANNED = re.compile(r"\b(simply|obviously|just|easily|clearly)\b", re.IGNORECASE)
COOKBOOK_PATH = 'sys.path.append(f"{sys.prefix}/cookbook")'  # where the recipes' own libraries are
FORBIDDEN_CODE = {
    "installs a package": re.compile(r"^\s*[!%]\s*(pip|conda|uv)\b", re.MULTILINE),
    "changes sys.path": re.compile(r"\bsys\.path\b"),
    "imports with a star": re.compile(r"^\s*from\s+\S+\s+import\s+\*", re.MULTILINE),
}
FENCE = re.compile(
    r"^(?P<mark>`{3,}|~{3,}|:{3,})(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=mark)[ \t]*$", re.MULTILINE | re.DOTALL
)
MATH = re.compile(r"\$\$.*?\$\$|(?<!\$)\$[^$\n]+\$", re.DOTALL)
CITATION = re.compile(r"\{cite(?::\w+)?\}`([^`]+)`")
IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\([^)]*\)")
PAGE_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)\s]*)?\)")
BOXES = "note|tip|hint|important|caution|warning|attention|danger|error"
ADMONITION = re.compile(rf"^[`:]{{3,}}\{{(?:{BOXES})\}}", re.MULTILINE)
OPTION = re.compile(r"^:(\w[\w-]*):[ \t]*(.*)$", re.MULTILINE)
UNITS = r"ns|[µu]s|ms|s|seconds?|[kMGT]B(?:/s)?|TFLOP/s|tokens a second|%|points?|times|dB|nats?"
MEASUREMENT = re.compile(rf"(?<![\w.,^/])\d[\d,]*(?:\.\d+)? ?(?:{UNITS})(?![\w/])")
FREE_SECTIONS = ("By hand", "Exercises")  # numbers worked out before the reader's eyes, and what an exercise gives


@dataclass(frozen=True)
class Cell:
    """One cell of a page; a Markdown page is a single cell."""

    kind: str  # "markdown" or "code"
    source: str
    tags: tuple[str, ...] = ()
    rendering: dict | None = None  # the cell's mystnb metadata
    outputs: tuple = ()


def read_page(path):
    """The cells of a Markdown page or of a notebook."""
    text = path.read_text("utf8")
    if path.suffix == ".md":
        return [Cell("markdown", text)]
    return [
        Cell(
            cell.cell_type,
            cell.source,
            tuple(cell.metadata.get("tags", ())),
            cell.metadata.get("mystnb", {}),
            tuple(cell.get("outputs", ())),
        )
        for cell in notebooks.loads(text).cells
    ]


def pages(folder=BOOK):
    """Every page below `folder`, sorted; what begins with an underscore is not a page."""
    found = [path for suffix in ("md", "ipynb") for path in folder.rglob(f"*.{suffix}")]
    hidden = re.compile(r"[_.]")
    return sorted(path for path in found if not any(hidden.match(part) for part in path.relative_to(folder).parts))


def is_chapter(path, folder=BOOK):
    """True for the pages that have the form of a chapter: those of the parts, and the one before them."""
    place = path.relative_to(folder)
    return place.as_posix() == "your_machine.ipynb" or (place.parts[0] in CHAPTER_PARTS and path.stem != "index")


def markdown(cells):
    """All Markdown of a page, in one text."""
    return "\n\n".join(cell.source for cell in cells if cell.kind == "markdown")


def directives(text):
    """Yield (name, argument, body) of each fenced directive, the nested ones too."""
    for fence in FENCE.finditer(text):
        directive = re.match(r"\{([^}]+)\}\s*(.*)", fence["info"])
        if directive:
            yield directive[1], directive[2].strip(), fence["body"]
            yield from directives(fence["body"])


def prose(text):
    """Markdown without fenced code, inline code, mathematics and citations; directives keep their text."""

    def keep_directive(fence):
        body = fence["body"]
        return keep_prose(body) if re.match(r"\{(?!code|math|glue|bibliography)", fence["info"]) else ""

    def keep_prose(part):
        return FENCE.sub(keep_directive, part)

    return re.sub(r"`+[^`]*`+", "", MATH.sub("", keep_prose(text)))


def typed_measurements(cells):
    """Numbers with a unit that stand in the prose, and neither come from a cell nor have a source beside them.

    A paragraph with a citation is free, and so are its neighbours, for a source often stands before a list or a table.
    Quoted claims are free, and the sections in which a number is worked out or given.
    """
    section, text = "", markdown(cells)
    blocks = [block.strip() for block in re.split(r"\n[ \t]*\n", text)]
    cited = [bool(CITATION.search(block)) for block in blocks]
    for n, block in enumerate(blocks):
        if block.startswith("## "):
            section = block[3:].splitlines()[0].strip()
        if section in FREE_SECTIONS or block.startswith("#") or any(cited[max(n - 1, 0) : n + 2]):
            continue
        for sentence in re.split(r"(?<=[.?!:;|]) |\n", re.sub(r'"[^"]*"', "", prose(block))):
            if MEASUREMENT.search(sentence):
                yield " ".join(sentence.split())


def banned_words(cells):
    """Words that tell a reader that something is easy."""
    for line in prose(markdown(cells)).splitlines():
        for word in BANNED.findall(line):
            yield f'"{word}" in: {line.strip()[:80]}'


def bare_links(cells):
    """Links to a page by its name alone: the built book follows them, an editor of notebooks wants the file's."""
    for target in PAGE_LINK.findall(prose(markdown(cells))):
        if not Path(target).suffix and not target.startswith("fig-"):  # a figure has a label and no file
            yield f"a link to {target}; name its file: {target}.ipynb or {target}.md"


def long_cells(cells):
    """Code cells of more than 25 lines that are not blank; a script that is copied whole may have 80."""
    for n, cell in enumerate(cells, start=1):
        lines = sum(bool(line.strip()) for line in cell.source.splitlines())
        if cell.kind == "code" and lines > (MAX_SCRIPT_LINES if "script" in cell.tags else MAX_CELL_LINES):
            yield f"cell {n} has {lines} lines"


def wide_cells(cells):
    """Lines of code that a reader would have to scroll for; folded and removed cells are free."""
    for n, cell in enumerate(cells, start=1):
        shown = cell.kind == "code" and not {"hide-input", "remove-input", "remove-cell"} & set(cell.tags)
        for line in cell.source.splitlines() if shown else ():
            if len(line) > MAX_CELL_WIDTH:
                yield f"cell {n} has a line of {len(line)} characters: {line.strip()[:60]}"


def complaints(cells):
    """What a library wrote to stderr, a warning say, in an output that the page shows."""
    for n, cell in enumerate(cells, start=1):
        for output in cell.outputs if "remove-cell" not in cell.tags else ():
            if output.get("name") == "stderr":
                yield f"cell {n} printed to stderr: {output['text'].splitlines()[0][:60]}"


def forbidden_code(cells):
    """Code that installs, changes where Python looks, or imports with a star."""
    for n, cell in enumerate(cells, start=1):
        for meaning, pattern in FORBIDDEN_CODE.items():
            if cell.kind == "code" and pattern.search(cell.source.replace(COOKBOOK_PATH, "")):
                yield f"cell {n} {meaning}"


def first_cell(cells):
    """The first code cell: at most eight lines of imports, then at most calls, such as `plots.style()`."""
    first = next((cell for cell in cells if cell.kind == "code"), None)
    if first is None or {"script", "remove-cell"} & set(first.tags):  # of a recipe
        return
    if "**In short.**" in markdown(cells):  # it is code to paste, and runs alone (lesson_rules.py)
        return
    lines = [line for line in first.source.splitlines() if line.strip()]
    if len(lines) > MAX_IMPORT_LINES:
        yield f"the first code cell has {len(lines)} lines, at most {MAX_IMPORT_LINES} are allowed"
    statements = ast.parse(first.source).body
    while statements and isinstance(statements[0], ast.Import | ast.ImportFrom):
        statements = statements[1:]
    if len(statements) == len(ast.parse(first.source).body):
        yield "the first code cell does not begin with imports"
    for statement in statements:
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
            yield f"the first code cell holds more than imports: {ast.unparse(statement)[:60]}"


def figures(cells):
    """Figures without a caption or without a text for those who cannot see them."""
    text = markdown(cells)
    for image in IMAGE.finditer(text):
        if not image["alt"].strip():
            yield f"image without alt text: {image.group()[:60]}"
    for name, argument, body in directives(text):
        options = dict(OPTION.findall(body))
        if name in {"figure", "image"} and not options.get("alt", "").strip():
            yield f"{name} {argument} without :alt:"
        if name in {"figure", "glue:figure"} and not OPTION.sub("", body).strip():
            yield f"{name} {argument} without a caption"
    for n, cell in enumerate(cells, start=1):
        shows_plot = any("image/png" in output.get("data", {}) for output in cell.outputs)
        if not shows_plot or "remove-output" in cell.tags:
            continue
        rendering = cell.rendering or {}
        if not str(rendering.get("figure", {}).get("caption", "")).strip():
            yield f"cell {n} shows a figure without a caption (mystnb: figure: caption)"
        if not str(rendering.get("image", {}).get("alt", "")).strip():
            yield f"cell {n} shows a figure without alt text (mystnb: image: alt)"


def skeleton(cells):
    """Headings of the skeleton of a chapter that are missing or out of order."""
    found = [line[3:].strip() for line in markdown(cells).splitlines() if line.startswith("## ")]
    for heading in SKELETON:
        if heading not in found:
            yield f'no heading "## {heading}"'
    present = [heading for heading in found if heading in SKELETON]
    if present != [heading for heading in SKELETON if heading in present]:
        yield f"the headings are out of order: {', '.join(present)}"


def admonitions(cells):
    """More boxes than a reader takes in."""
    count = len(ADMONITION.findall(markdown(cells)))
    if count > MAX_ADMONITIONS:
        yield f"{count} admonitions, at most {MAX_ADMONITIONS} are allowed"


def citation_keys(cells):
    """The keys that a page cites."""
    groups = CITATION.findall(markdown(cells))
    return {key.strip() for group in groups for key in group.split(",")}


def bibliography(text):
    """The entries of a BibTeX text: key to the set of its field names."""
    from pybtex.database import parse_string

    entries = parse_string(text, "bibtex").entries
    return {key: {field.lower() for field in entry.fields} for key, entry in entries.items()}


def toc_files(toc):
    """Every file that a parsed _toc.yml names."""
    if isinstance(toc, list):
        for part in toc:
            yield from toc_files(part)
    elif isinstance(toc, dict):
        yield from (value for key, value in toc.items() if key in {"file", "root"})
        for value in toc.values():
            yield from toc_files(value)


def luminance(color):
    """Relative luminance of "#rrggbb" (WCAG 2.2)."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)
