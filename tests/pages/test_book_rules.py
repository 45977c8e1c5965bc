"""Each rule of book_rules.py finds the fault in a small bad example, and none in a good one."""

import pytest

import book_rules as rules
from book_rules import Cell

PLOT = ({"data": {"image/png": "iVBOR"}},)
CAPTIONED = {"figure": {"caption": "Half of it vanishes."}, "image": {"alt": "A falling curve."}}


def text(source):
    return [Cell("markdown", source)]


def code(source, **options):
    return [Cell("code", source, **options)]


BAD = [
    (rules.banned_words, text("It is just 16 bits.")),
    (rules.banned_words, text(":::{note}\nObviously.\n:::")),
    (rules.banned_words, text("````{admonition} Box\n```{note}\nClearly.\n```\n````")),
    (rules.bare_links, text("See [FP8](../eight_bits/fp8#by-hand).")),
    (rules.long_cells, code("\n".join(f"x{n} = {n}" for n in range(26)))),
    (rules.long_cells, text("**In short.** Paste this.") + code("\n".join(f"x{n} = {n}" for n in range(46)))),
    (rules.long_cells, text("**In short.** Paste.") + code("x = 1") + code("\n".join(f"x{n} = 1" for n in range(26)))),
    (rules.wide_cells, code(f"x = {'1' * 90}")),
    (rules.forbidden_code, code("!pip install torch")),
    (rules.forbidden_code, code("%pip install torch")),
    (rules.forbidden_code, code("import sys\nsys.path.append('..')")),
    (rules.forbidden_code, code("from numpy import *")),
    (rules.first_cell, code("x = 1")),
    (rules.first_cell, code("import numpy as np\nx = np.zeros(3)")),
    (rules.first_cell, code("\n".join(f"import a{n}" for n in range(9)))),
    (rules.figures, text("![](bits.png)")),
    (rules.figures, text("```{figure} bits.png\n:alt: Sixteen boxes.\n```")),
    (rules.figures, text("```{figure} bits.png\nSixteen boxes.\n```")),
    (rules.figures, text("```{glue:figure} curve\n:name: fig\n```")),
    (rules.figures, code("plt.show()", outputs=PLOT)),
    (rules.figures, code("plt.show()", outputs=PLOT, rendering={"figure": CAPTIONED["figure"]})),
    (rules.admonitions, text(":::{note}\nOne.\n:::\n" * 4)),
    (rules.skeleton, text("## The puzzle\n\n## Sources")),
    (rules.skeleton, text("\n".join(f"## {heading}" for heading in reversed(rules.SKELETON)))),
]
GOOD = [
    (rules.banned_words, text("The code `just` and\n\n```python\nsimply = 1\n```\n\n$just$, adjust, justify.")),
    (rules.bare_links, text("See [FP8](fp8.ipynb#by-hand), [W1](#w1), [torch](https://pytorch.org/x) and `[a](b)`.")),
    (rules.long_cells, code("\n\n".join(f"x{n} = {n}" for n in range(25)))),
    (rules.long_cells, text("**In short.** Paste this.") + code("\n".join(f"x{n} = {n}" for n in range(45)))),
    (rules.wide_cells, code(f"x = {'1' * 90}", tags=("hide-input",))),
    (rules.forbidden_code, code("import sys\nfrom numpy import array")),
    (rules.first_cell, code("import numpy as np\nfrom utils import plots\n\nplots.style()")),
    (rules.first_cell, text("No code here.")),
    (rules.figures, text("![Sixteen boxes](bits.png)\n\n```{figure} bits.png\n:alt: Sixteen boxes.\nThey fit.\n```")),
    (rules.figures, code("plt.show()", outputs=PLOT, rendering=CAPTIONED)),
    (rules.admonitions, text(":::{note}\nOne.\n:::\n" * 3)),
    (rules.skeleton, text("\n".join(f"## {heading}" for heading in rules.SKELETON))),
]


def ids(cases):
    return [f"{rule.__name__}-{n}" for n, (rule, _) in enumerate(cases)]


@pytest.mark.parametrize(("rule", "cells"), BAD, ids=ids(BAD))
def test_a_fault_is_found(rule, cells):
    assert list(rule(cells)) != []


@pytest.mark.parametrize(("rule", "cells"), GOOD, ids=ids(GOOD))
def test_a_good_page_passes(rule, cells):
    assert list(rule(cells)) == []


def test_citations_are_read_from_text_with_several_keys():
    assert rules.citation_keys(text("See {cite:p}`one,two` and {cite}`three`.")) == {"one", "two", "three"}


def test_bibliography_lists_the_fields_of_each_entry():
    entries = rules.bibliography("@misc{one, title={T}, doi={10.1/1}}\n@misc{two, title={T}}")
    assert entries == {"one": {"title", "doi"}, "two": {"title"}}


def test_toc_files_are_found_at_every_depth():
    toc = {"root": "a", "parts": [{"caption": "file", "chapters": [{"file": "b", "sections": [{"file": "c"}]}]}]}
    assert sorted(rules.toc_files(toc)) == ["a", "b", "c"]


def test_pages_leave_out_what_begins_with_an_underscore_or_a_dot(tmp_path):
    for name in ("a.md", "part/b.ipynb", "_static/c.md", ".ipynb_checkpoints/d.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [path.name for path in rules.pages(tmp_path)] == ["a.md", "b.ipynb"]


def test_contrast_of_black_on_white_is_21():
    assert rules.contrast("#000000", "#ffffff") == pytest.approx(21)  # WCAG 2.2, definition of contrast ratio
    assert rules.contrast("#777777", "#777777") == 1
