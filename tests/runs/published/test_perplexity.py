"""Published perplexities: a source for each, and the same numbers on the page of the cookbook that has them as well."""

import re

import pytest

import book_rules as rules
from utils.runs.published.perplexity import PERPLEXITY, WIDE

BIBLIOGRAPHY = rules.bibliography((rules.BOOK / "references.bib").read_text("utf8"))
RECIPE = {"16 bits": WIDE, "int8, per row": "int8", "int4, rounded to nearest": "int4"}  # the names that differ


def test_every_row_has_a_source_and_what_it_is_compared_with():
    assert {source for source, _ in PERPLEXITY} <= set(BIBLIOGRAPHY)
    assert all(WIDE in row and len(row) > 1 for row in PERPLEXITY.values())


@pytest.mark.parametrize(("column", "key"), [(1, ("lin2023awq", "Llama 2 7B")),
                                             (2, ("torchao_quantization_2024", "Llama 3 8B"))])  # fmt: skip
def test_the_recipe_has_the_same_numbers(column, key):
    page = rules.markdown(rules.read_page(rules.BOOK / "cookbook" / "int8_int4_inference.ipynb"))
    lines = page.split("Published perplexity")[1].split("## ")[0].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if re.search(r"\d\.\d", line)]
    shown = {RECIPE.get(row[0], row[0]): float(row[column]) for row in table if row[column]}
    assert shown == {name: value for name, value in PERPLEXITY[key].items() if name in shown}
    assert len(shown) >= 4
