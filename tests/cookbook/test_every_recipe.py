"""What holds for every recipe: the order of its page, a script that stands alone, and a test that runs it."""

import re
from pathlib import Path

import pytest
import torch

import book_rules as rules
import notebooks
import recipe_scripts
from recipe_scripts import PAGES

HEADINGS = ["The script", "Check that it works", "What it costs", "Pitfalls", "More"]
MOST_WORDS = 520
# what a script may import, and the package to install for it
PACKAGES = {
    name: name for name in ("torch", "numpy", "transformers", "torchao", "peft", "bitsandbytes", "safetensors", "scipy")
}
PACKAGES |= {"transformer_engine": "transformer_engine[pytorch]", "optimum": "optimum-quanto"}


def ids(path):
    return path.stem


def needs_gpu(path):
    """Whether the first sentence of a page says so."""
    return "needs a" in rules.markdown(rules.read_page(path)).split("\n\n")[1].split(".")[0]


@pytest.fixture(params=PAGES, ids=ids)
def page(request):
    return rules.read_page(request.param)


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


def test_the_index_names_the_versions_that_the_tests_use():
    root = rules.ROOT
    lists = (root / "requirements.txt", root / "book/cookbook/requirements.txt")
    pins = dict(re.findall(r"^([\w-]+)==(\S+)", "\n".join(path.read_text("utf8") for path in lists), re.MULTILINE))
    text = (root / "book/cookbook/index.md").read_text("utf8")
    named = dict(re.findall(r"([\w-]+) (\d+\.\d+\.\d+)", text))
    assert len(named) == 6
    assert named == {name: pins[name] for name in named}


def test_the_index_names_every_recipe_by_its_title():
    text = (PAGES[0].parent / "index.md").read_text("utf8")
    links = dict(re.findall(r"^\* \[(.*?)\]\((\w+)\.ipynb\)", text, re.MULTILINE))
    assert links == {rules.markdown(rules.read_page(path)).splitlines()[0][2:]: path.stem for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_the_script_needs_nothing_of_the_book(path):
    assert recipe_scripts.imports_of(path.stem) <= set(PACKAGES)


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_the_page_says_what_to_install(path):
    wanted = {PACKAGES[name] for name in recipe_scripts.imports_of(path.stem)}
    if wanted > {"torch"}:
        lines = re.findall(r"pip install ([^`]*)`", rules.markdown(rules.read_page(path)))
        assert wanted <= set(" ".join(lines).split())


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_without_a_library_the_script_says_so_in_one_line(path):
    """It exits 2 and names the package to install."""
    for name in sorted(recipe_scripts.imports_of(path.stem) - {"torch", "numpy"}):
        code, errors = recipe_scripts.run_without(path.stem, name)
        assert code == 2, (name, errors)
        (line,) = errors.splitlines()
        assert "pip install" in line
        assert PACKAGES[name] in line.split()


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_a_script_that_needs_a_gpu_says_so_in_one_line(path, tmp_path):
    """So does the page, in its first line, and the script exits 2 without one."""
    if torch.cuda.is_available() or not needs_gpu(path):
        return
    done = recipe_scripts.run(path.stem, tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "GPU" in done.stderr


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_the_script_fits_two_screens_and_says_its_name_and_task(path):
    source = recipe_scripts.script_of(path.stem)
    assert len([line for line in source.splitlines() if line.strip()]) <= rules.MAX_SCRIPT_LINES
    assert re.match(r"# [a-z0-9_]+\.py: .*[^.]\n", source), source[:80]


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_a_test_runs_the_script_as_it_stands(path):
    """And compares what it prints with the page; where it needs a GPU, that is what its test for a GPU looks at."""
    name = path.stem
    test = Path(__file__).with_name(f"test_{name}.py").read_text("utf8")
    assert f'recipe_scripts.{"run" if needs_gpu(path) else "run_as_shown"}("{name}"' in test


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_no_cell_but_the_script_prints(path):
    """So nbval, which leaves out this folder, has nothing to compare here."""
    others = [cell for cell in notebooks.loads(path.read_text("utf8")).cells if cell.cell_type == "code"]
    for cell in others:
        assert {"script", "remove-cell"} & set(cell.metadata["tags"])
        assert "script" in cell.metadata["tags"] or not cell.outputs
