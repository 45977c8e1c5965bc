"""Edited chapters keep their form and budgets, and what they say at once is true and runs alone (lesson_rules.py)."""

import builtins
import math
import re
import subprocess
import symtable
import sys

import pytest
import torch

import book_rules as rules
import lesson_rules as lessons
from utils import formats
from utils.cost import cards, decide

CHAPTERS = [path for path in rules.pages() if rules.is_chapter(path) and lessons.is_edited(path)]


def name(path):
    return path.relative_to(rules.BOOK).with_suffix("").as_posix()


@pytest.mark.parametrize("rule", lessons.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", CHAPTERS, ids=name)
def test_an_edited_chapter_keeps_the_rule(path, rule):
    assert list(rule(rules.read_page(path))) == []


# It is a notebook's first code, so that nbval runs it in a new kernel and compares what it prints. That it is a program
# as well, and needs nothing of a notebook or of the book's folders, is seen without running it.


@pytest.mark.parametrize("path", CHAPTERS, ids=name)
def test_the_code_of_in_short_is_a_program_that_prints_what_the_page_shows(path):
    cell = next(cell for cell in rules.read_page(path) if cell.kind == "code")
    assert unknown_names(cell.source) == []
    assert {output.get("name", output.output_type) for output in cell.outputs} <= {"stdout"}


def unknown_names(source):
    """The names that a program reads and neither gives a value nor imports, as a notebook's `display` is one."""
    top = symtable.symtable(source, "pasted.py", "exec")  # raises SyntaxError at a command such as %timeit
    given = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    given |= set(dir(builtins)) | {"__name__", "__file__"}
    tables, unknown = [top], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        read = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced() and symbol.is_global()}
        unknown |= read - given
    return sorted(unknown)


def test_names_that_nothing_gives_are_found():
    assert unknown_names("import math\nx = [math.pi for _ in range(3)]\ndef f(y):\n    return x, y, print") == []
    assert unknown_names("import math as m\ndef f(y):\n    return display(y), math.pi\nclass A:\n    n = np.pi") == [
        "display",
        "math",
        "np",
    ]
    with pytest.raises(SyntaxError):
        unknown_names("%timeit 1")


def test_the_first_page_gives_the_answer_code_and_a_table_first():
    """It has no exercises and no picture of its own: a widget opens it."""
    cells = rules.read_page(rules.BOOK / "intro.ipynb")
    parts = lessons.sections(cells)
    assert [heading for heading in parts if heading][:2] == ["In short", "I have a task"]
    text, code, table = parts["In short"]
    assert lessons.words_of(text.source.partition("\n")[2]) <= lessons.MAX_IN_SHORT
    assert lessons.is_shown(code)
    assert lessons.TABLE.search(table.source)
    assert lessons.reading_minutes(cells) <= 10


def test_the_code_of_the_first_page_runs_alone():
    code = next(cell for cell in rules.read_page(rules.BOOK / "intro.ipynb") if lessons.is_shown(cell))
    done = subprocess.run([sys.executable, "-c", code.source], capture_output=True, text=True, check=True)
    assert done.stdout == "".join(output["text"] for output in code.outputs)


def rows(text):
    """The cells of the first table of a Markdown text, without its header."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


NAMED = {"E5M2": "float8_e5m2", "E4M3": "float8_e4m3fn"}


def section(name, heading):
    """The Markdown of one section of a chapter."""
    return rules.markdown(lessons.sections(rules.read_page(rules.BOOK / f"{name}.ipynb"))[heading])


def test_the_table_of_formats_in_bits_is_that_of_the_formats():
    table = rows(section("numbers/bits", ""))
    assert len(table) == 5
    for label, fields, bias, *limits in table:
        fmt = formats.FORMATS[NAMED.get(label, label)]
        assert fields == f"1 + {fmt.exponent_bits} + {fmt.mantissa_bits}"
        assert int(bias) == fmt.bias
        exact = (fmt.max, fmt.smallest_normal, fmt.smallest_subnormal, fmt.eps)
        for text, value in zip(limits, exact, strict=True):
            digits = len(text.partition("e")[0].replace(".", "").strip("0"))
            assert float(text) == float(f"{value:.{digits - 1}e}"), (label, text)


def test_the_table_of_flips_in_bits_is_that_of_the_formats():
    table = rows(section("numbers/bits", "Flipping a bit"))
    assert len(table) == 5
    for label, bit, factor in table:
        fmt = formats.FORMATS[NAMED.get(label, label)]
        assert int(bit) == fmt.bits - 2
        power = 2 ** (fmt.exponent_bits - 1)
        about = re.search(r"about \$([\d.]+) \\times 10\^{(\d+)}\$", factor)
        assert factor.replace("{", "").replace("}", "").startswith(f"$2^{power}$")
        if about:
            assert float(f"{about[1]}e{about[2]}") == float(f"{2.0**power:.1e}")
        else:
            assert factor.split()[-1] == f"{2**power:,}"


def is_written(text, value):
    """Whether a table writes this number so, in as many digits as it shows."""
    if text in {"∞", "NaN", "0"}:
        return str(float(text.replace("∞", "inf"))) == str(value)
    digits = len(text.partition("e")[0].replace(".", "").strip("0"))
    return float(text) == (value if value == int(value) < 1e6 else float(f"{value:.{digits - 1}e}"))


def test_a_number_is_compared_in_the_digits_that_are_shown():
    assert is_written("3.39e38", 3.3895e38)
    assert is_written("∞", math.inf)
    assert is_written("NaN", math.nan)
    assert is_written("65504", 65504.0)
    wrong = [("3.4e38", 3.3e38), ("∞", 448.0), ("448", math.nan), ("0", 1e-9), ("65500", 65504.0)]
    assert not any(is_written(text, value) for text, value in wrong if not math.isnan(value))
    assert not is_written("0", math.nan)


def test_the_table_of_casts_in_limits_is_what_torch_stores():
    table = rows(section("numbers/limits", "Too large"))
    assert len(table) == 6
    for label, name, largest, past, infinity in table:
        dtype = getattr(torch, name.strip("`"))
        top = torch.finfo(dtype).max
        assert is_written(largest, top), label
        for text, value in ((past, 2 * top), (infinity, math.inf)):
            for count in (1, 100):  # one by one, and in the vectors of the processor
                for sign in (1, -1):
                    (stored,) = set(
                        map(str, torch.full((count,), sign * value, dtype=torch.float64).to(dtype).tolist())
                    )
                    assert is_written(text, sign * float(stored)), (label, stored)


def test_the_table_of_small_numbers_in_limits_is_that_of_the_formats():
    table = rows(section("numbers/limits", "Too small"))
    assert [row[0] for row in table] == ["float16", "bfloat16", "float32"]
    for label, normal, smallest, *stored in table:
        fmt, dtype = formats.FORMATS[label], getattr(torch, label)
        assert is_written(normal, fmt.smallest_normal)
        assert is_written(smallest, fmt.smallest_subnormal)
        for text, x in zip(stored, (1e-8, 1e-40), strict=True):
            assert is_written(text, torch.tensor(x, dtype=torch.float64).to(dtype).item()), (label, x)


TRAINED_IN = {"bf16-mixed": "bfloat16 autocast", "16-mixed": "float16 autocast, loss scaling"}


def test_the_two_times_of_float16_in_your_machine_differ_as_the_page_says():
    printed = [text for cell in rules.read_page(rules.BOOK / "your_machine.ipynb") for text in texts_of(cell)]
    script, turns = (
        float(re.search(pattern, text)[1])
        for pattern, text in (
            (r"\nfloat16 +([\d.]+) ms", next(text for text in printed if "TFLOP/s" in text)),
            (r"\nfloat16 .* ([\d.]+)\n", next(text for text in printed if text.startswith("milliseconds"))),
        )
    )
    assert 1.5 < script / turns < 2.5  # "twice as slow"


def texts_of(cell):
    """What a cell of code printed."""
    return [output["text"] for output in cell.outputs if output.output_type == "stream"] if cell.kind == "code" else []


def test_the_table_of_hardware_in_your_machine_is_that_of_the_cards():
    table = [row for row in rows(section("your_machine", "")) if "CPU" not in row[0]]
    listed = [name for row in table for name in row[0].split(", ")]
    assert sorted(listed) == sorted(card.label.removeprefix("AMD ") for card in cards.CARDS.values() if card.roof())
    by_label = {card.label.removeprefix("AMD "): card for card in cards.CARDS.values()}
    for names, recipe, native, to_float32, to_tf32 in table:
        for card in map(by_label.get, names.split(", ")):
            own = {cards.TYPES[kind] for kind, how in card.support.items() if how == cards.TENSOR}
            assert set(native.split(", ")) == own - {"float64", "float32"}
            peaks = card.roof().peaks
            assert int(to_float32) == round(peaks["float16"] / peaks["float32"])
            assert to_tf32 == (f"{peaks['float16'] / peaks['tf32']:.0f}" if "tf32" in peaks else "–")
            assert recipe == TRAINED_IN[decide.suited(card, "train")[0]]


A_TABLE = "| a |\n| --- |\n| 1 |"
SHORT = "# Title\n\n*A sentence.*\n\n**In short.** "


def page(*cells):
    made = {tuple: lambda cell: rules.Cell(*cell), str: lambda text: rules.Cell("markdown", text)}
    return [made.get(type(cell), lambda cell: cell)(cell) for cell in cells]


def code(lines=1, *tags):
    return "code", "\n".join(["x = 1"] * lines), tags


def test_a_chapter_without_in_short_is_found():
    assert list(lessons.in_short(page("# Title\n\nText.", "## The puzzle"))) == [
        "the page does not begin with its title, a sentence in italics and **In short.**",
        "In short has no code to paste behind it",
        "In short has no table",
        'In short has no picture (a cell tagged "picture")',
    ]
    assert list(lessons.in_short(page(SHORT + "word " * 121, code(), A_TABLE, code(1, "picture")))) == [
        "In short has 121 words, at most 120 are allowed"
    ]
    assert list(lessons.in_short(page(SHORT + "word", code(), A_TABLE, code(1, "picture")))) == []


def test_code_that_is_folded_is_not_to_paste():
    found = list(lessons.in_short(page(SHORT + "word", code(1, "hide-input"), A_TABLE, code(1, "picture"))))
    assert found == ["In short has no code to paste behind it"]


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        (["word " * 3001], "3001 words, at most 3000 are allowed"),
        ([code()] * 31, "31 code cells, at most 30 are allowed"),
        ([code(7)] * 2 + [code()], "the median cell has 7 lines, at most 6 are allowed"),
        ([code(15)] * 2 + [code()] * 8, "one cell in ten has 15 lines or more, at most 14 are allowed"),
    ],
)
def test_what_is_too_long_is_found(cells, fault):
    assert list(lessons.budgets(page(*cells))) == [fault]


def test_a_chapter_at_its_limits_is_allowed():
    assert list(lessons.budgets(page("word " * 3000, *[code(6)] * 26, *[code(14)] * 4))) == []
    assert list(lessons.budgets(page(*[code(25)], *[code()] * 9))) == []  # one in ten may be longer


def test_words_are_those_of_the_text():
    text = (
        "## A title\n\nTwo words $x = 1$ and `code` {cite}`someone2020`, 3 too.\n\n| a | b |\n| --- | --- |\n| 1 | – |"
    )
    assert lessons.words_of(text + "\n\n```python\nx = 1\n```") == 2 + 3 + 2 + 3


def test_the_time_is_that_of_the_formula():
    cells = page("word " * 900, code(30), "## Exercises\n\n" + "word " * 900)
    assert lessons.reading_minutes(cells) == 10  # 5 of words and 2 of code
    assert lessons.exercise_minutes(cells) == 0
    stated = page("**Reading** 10 minutes, **exercises** 0. " + "word " * 896, *cells[1:])
    assert list(lessons.stated_time(stated)) == []
    assert list(lessons.stated_time(page("**Reading** 5 minutes, **exercises** 0. word"))) == []
    assert list(lessons.stated_time(page("word"))) == ["no **Reading** 5 minutes, **exercises** 0."]
    wrong = page("**Reading** 10 minutes, **exercises** 5. word")
    assert list(lessons.stated_time(wrong)) == ["it states 10 and 5 minutes, the formula gives 5 and 0"]
    assert list(lessons.stated_time(page("**Reading** 50 minutes, **exercises** 0. " + "word " * 8400))) == [
        "50 minutes to read, at most 45 are allowed"
    ]


def test_the_order_of_the_sections_is_kept():
    assert list(lessons.order(page("# T", "## The puzzle", "## Why", "## Exercises", "## Further", "## Sources"))) == []
    assert list(lessons.order(page("# T", "## The puzzle", "## Why", "## Exercises", "## Sources"))) == []
    assert list(lessons.order(page("# T", "## Why", "## Sources", "## Exercises"))) == [
        "the first section is not The puzzle",
        "the page does not end with Exercises, Further (if any) and Sources, but with Why, Sources, Exercises",
    ]
