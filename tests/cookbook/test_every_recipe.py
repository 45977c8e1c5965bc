"""What holds for every recipe: the order of its page, a script that stands alone, and a test that runs it."""

import ast
import re
import sys
from pathlib import Path

import pytest

import book_rules as rules
import recipe_scripts
from recipe_scripts import PAGES

HEADINGS = ["The script", "Check that it works", "What it costs", "Pitfalls", "More"]
MOST_WORDS = 450
LIBRARIES = {"torch", "numpy", "transformers", "torchao", "peft", "bitsandbytes", "safetensors", "transformer_engine"}


def ids(path):
    return path.stem


@pytest.fixture(params=PAGES, ids=ids)
def page(request):
    return rules.read_page(request.param)


@pytest.fixture(params=PAGES, ids=ids)
def tree(request):
    return ast.parse(recipe_scripts.script_of(request.param.stem))


def test_the_title_is_the_question_of_an_engineer(page):
    title = rules.markdown(page).splitlines()[0]
    assert re.fullmatch(r"# (?:How|Which|What|Why|When|Is|Does|Do|Can) .*\?", title), title


def test_the_parts_stand_in_their_order(page):
    found = [line[3:] for line in rules.markdown(page).splitlines() if line.startswith("## ")]
    assert found == HEADINGS


def test_the_page_is_short(page):
    words = len(re.findall(r"\w[\w'-]*", rules.prose(rules.markdown(page))))
    assert words <= MOST_WORDS


def test_it_says_in_two_sentences_when_to_use_it(page):
    lead = rules.markdown(page).split("\n\n")[1]
    assert 2 <= len(re.findall(r"[.?!](?:\s|$)", lead)) <= 4, lead


def test_there_are_three_pitfalls(page):
    section = rules.markdown(page).partition("## Pitfalls")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\* \*\*", section, re.MULTILINE)) == 3


def test_the_script_needs_nothing_of_the_book(tree):
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module.partition(".")[0])
    assert imported - set(sys.stdlib_module_names) <= LIBRARIES


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_the_script_fits_two_screens_and_says_its_name_and_task(path):
    source = recipe_scripts.script_of(path.stem)
    assert len([line for line in source.splitlines() if line.strip()]) <= rules.MAX_SCRIPT_LINES
    assert re.match(r"# [a-z0-9_]+\.py: .*[^.]\n", source), source[:80]


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_a_test_runs_the_script_as_it_stands(path):
    test = Path(__file__).with_name(f"test_{path.stem}.py")
    assert test.exists()
    assert f'recipe_scripts.run("{path.stem}"' in test.read_text("utf8")
