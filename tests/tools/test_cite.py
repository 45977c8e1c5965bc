"""CITATION.cff and README.md name the public address of _config.yml, and none where none is set (tools/cite.py)."""

import pytest
import yaml

import cite

SITE, REPOSITORY = "https://books.example/mixed/", "https://github.com/someone/mixed"


@pytest.mark.parametrize("name", cite.FILES)
def test_the_files_name_what_the_configuration_names(name):
    text = (cite.ROOT / name).read_text("utf8")
    assert cite.FILES[name](text, cite.address()) == text, "run .venv/bin/python tools/cite.py"


def test_an_address_comes_into_the_citation_and_leaves_it_again():
    bare = cite.citation((cite.ROOT / "CITATION.cff").read_text("utf8"), {})
    assert yaml.safe_load(bare).keys().isdisjoint(cite.FIELDS)
    named = cite.citation(bare, {"site": SITE, "repository": REPOSITORY, "branch": "main"})
    assert yaml.safe_load(named) == yaml.safe_load(bare) | {"url": SITE, "repository-code": REPOSITORY}
    assert cite.citation(named, {"site": SITE}) != named
    assert cite.citation(named, {}) == bare


def test_the_readme_says_where_the_book_is_only_if_it_is_somewhere():
    bare = cite.readme((cite.ROOT / "README.md").read_text("utf8"), {})
    named = cite.readme(bare, {"site": SITE, "repository": REPOSITORY})
    assert f"The book is at <{SITE}>." in named
    assert cite.readme(named, {}) == bare
    assert "The book is at" not in bare
