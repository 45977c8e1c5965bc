"""The form of a chapter that has been edited for three readers: the answer first, and budgets of words, cells and time.

A chapter that has *In short* is an edited one; the others still have the skeleton of `book_rules`.
"""

import math
import re
import statistics

import book_rules as rules
from book_progress import PLACE, items_of

MAX_IN_SHORT = 120  # words before the first code
MAX_WORDS = 3000
MAX_CELLS = 30
MAX_MEDIAN_LINES, MAX_P90_LINES = 6, 14
MAX_READING_MINUTES = 45
WORDS_A_MINUTE = 180
SECONDS_A_LINE = 4
PREDICTION_MINUTES, PAPER_MINUTES, CODE_MINUTES = 1, 2, 8
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
TIME = re.compile(r"\*\*Reading\*\* (\d+) minutes, \*\*exercises\*\* (\d+)\. ")
TABLE = re.compile(r"^\|.*\|\n\| *:?---", re.MULTILINE)


def is_edited(path):
    """Whether a chapter has its new form, as its opening says."""
    return "**In short.**" in rules.read_page(path)[0].source


def words_of(text):
    """The number of words of Markdown, without code, mathematics, directives' options and tables' frames."""
    text = rules.CITATION.sub("", rules.OPTION.sub("", text))
    plain = re.sub(r"^\|[-| :]+\|$", "", rules.prose(text), flags=re.MULTILINE)
    return sum(any(sign.isalnum() for sign in word) for word in plain.replace("|", " ").split())


def sections(cells):
    """The cells of each section of a page, by its heading; "" is what comes before the first one."""
    found, heading = {"": []}, ""
    for cell in cells:
        if cell.kind == "markdown" and (match := re.match(r"## (.+)", cell.source)):
            heading = match[1].strip()
        found.setdefault(heading, []).append(cell)
    return found


def is_shown(cell):
    """Whether a reader of the page sees the code of this cell without opening it."""
    return cell.kind == "code" and not HIDDEN & set(cell.tags)


def code_lines(cell):
    """The number of lines of a cell that are not blank."""
    return sum(bool(line.strip()) for line in cell.source.splitlines())


def items(cells):
    """The questions and goals that these cells show."""
    shown = [output.get("data", {}).get("text/html", "") for cell in cells for output in cell.outputs]
    return [item for html in shown for place in PLACE.finditer("".join(html)) for item in items_of(place[0])]


def reading_minutes(cells):
    """The minutes that a page takes without its exercises, rounded up to five."""
    read = [cell for heading, part in sections(cells).items() if heading != "Exercises" for cell in part]
    lines = sum(code_lines(cell) for cell in read if is_shown(cell))
    minutes = words_of(rules.markdown(read)) / WORDS_A_MINUTE + lines * SECONDS_A_LINE / 60
    return 5 * math.ceil((minutes + PREDICTION_MINUTES * len(items(read))) / 5)


def exercise_minutes(cells):
    """The minutes that the exercises of a page take, rounded up to five: two on paper, eight in code."""
    asked = items(sections(cells).get("Exercises", []))
    minutes = sum(CODE_MINUTES if item.get("kind") == "task" else PAPER_MINUTES for item in asked)
    return 5 * math.ceil(minutes / 5)


def in_short(cells):
    """What is missing where a page opens: a sentence, In short, code that is shown, a table, and the picture."""
    opening = sections(cells)[""]
    texts = [cell.source for cell in opening if cell.kind == "markdown"]
    first = texts[0] if texts else ""
    start = re.match(r"# .+\n\n\*[^*].+\*\n\n\*\*In short\.\*\* (?P<text>.+)", first, re.DOTALL)
    if not start:
        yield "the page does not begin with its title, a sentence in italics and **In short.**"
    elif (count := words_of(start["text"])) > MAX_IN_SHORT:
        yield f"In short has {count} words, at most {MAX_IN_SHORT} are allowed"
    if len(opening) < 2 or not is_shown(opening[1]):
        yield "In short has no code to paste behind it"
    if not TABLE.search("\n\n".join(texts)):
        yield "In short has no table"
    if not any("picture" in cell.tags for cell in opening):
        yield 'In short has no picture (a cell tagged "picture")'


def order(cells):
    """Headings that every chapter has, and that are missing or out of order."""
    found = [heading for heading in sections(cells) if heading]
    if found[:1] != ["The puzzle"]:
        yield "the first section is not The puzzle"
    if found[-3:] not in (["Exercises", "Further", "Sources"], [*found[-3:-2], "Exercises", "Sources"]):
        yield f"the page does not end with Exercises, Further (if any) and Sources, but with {', '.join(found[-3:])}"


def budgets(cells):
    """What is longer than a chapter may be."""
    if (count := words_of(rules.markdown(cells))) > MAX_WORDS:
        yield f"{count} words, at most {MAX_WORDS} are allowed"
    code = [cell for cell in cells if cell.kind == "code" and "remove-cell" not in cell.tags]
    if len(code) > MAX_CELLS:
        yield f"{len(code)} code cells, at most {MAX_CELLS} are allowed"
    lengths = sorted(code_lines(cell) for cell in code if is_shown(cell))
    if lengths and (median := statistics.median(lengths)) > MAX_MEDIAN_LINES:
        yield f"the median cell has {median} lines, at most {MAX_MEDIAN_LINES} are allowed"
    if lengths and (long := lengths[math.ceil(0.9 * len(lengths)) - 1]) > MAX_P90_LINES:
        yield f"one cell in ten has {long} lines or more, at most {MAX_P90_LINES} are allowed"


def stated_time(cells):
    """The time that a page states, where it is missing, or not that of the formula, or too long."""
    stated = TIME.search(rules.markdown(cells))
    wanted = reading_minutes(cells), exercise_minutes(cells)
    if not stated:
        yield f"no **Reading** {wanted[0]} minutes, **exercises** {wanted[1]}."
    elif (int(stated[1]), int(stated[2])) != wanted:
        yield f"it states {stated[1]} and {stated[2]} minutes, the formula gives {wanted[0]} and {wanted[1]}"
    if wanted[0] > MAX_READING_MINUTES:
        yield f"{wanted[0]} minutes to read, at most {MAX_READING_MINUTES} are allowed"


def replies(cells):
    """Broken code of an exercise whose reply can be read before anything was tried, which gives a part away; or whose
    fold does not say that the box to tick is in it."""
    for cell in cells:
        said = "".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)
        first = cell.source.strip().partition("\n")[0]
        if said.startswith("→ Not yet") and "hide-output" not in cell.tags:
            yield f"the reply to `{first}` stands open (tag it hide-output)"
        if "hide-output" in cell.tags and "checks.check_" in cell.source and "box to tick" not in str(cell.rendering):
            yield f"the fold below `{first}` does not name the box to tick (mystnb: code_prompt_show)"


RULES = (in_short, order, budgets, stated_time, replies)
