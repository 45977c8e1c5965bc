"""Sphinx extension: letters tell works of the same authors and year apart, as in "NVIDIA Corporation, 2026b".

A citation shows authors and a year, and six pages of one company's documentation would all show the same. The letter
stands in the year itself, so that a citation and its entry in the bibliography agree.
"""

from collections import defaultdict
from itertools import product
from string import ascii_lowercase

from pybtex.plugin import find_plugin, register_plugin

SUFFIXES = (*ascii_lowercase, *map("".join, product(ascii_lowercase, repeat=2)))  # a ... z, aa, ab, ... zz

GROUP = "pybtex.backends"
BACKENDS = ("plaintext", "docutils")  # what sphinxcontrib-bibtex writes each citation with


def register_backends():
    """Let pybtex find its backends at once: to read for each citation what is installed takes a tenth of a build."""
    for name in BACKENDS:
        register_plugin(GROUP, name, find_plugin(GROUP, name), force=True)


def shown(entry):
    """What a citation shows of an entry: the last name of one author, those of two, or of the first of more."""
    names = [" ".join(person.prelast_names + person.last_names) for person in entry.persons.get("author", [])]
    return (names[0], "et al.") if len(names) > 2 else tuple(names)


def add_letters(entries):
    """Write a letter behind the year of each entry that others are shown like, in the order of their titles.

    `entries`: those of a pybtex bibliography. What was lettered before is lettered anew.
    After z follows aa. Raises: ValueError where there are more works than that gives.
    """
    alike = defaultdict(list)
    for entry in entries:
        if year := entry.fields.get("year"):
            alike[shown(entry), year.rstrip(ascii_lowercase)].append(entry)
    for (names, year), works in alike.items():
        if len(works) > len(SUFFIXES):
            raise ValueError(f"{len(works)} works of {' and '.join(names)} in {year} are more than there are letters")
        works.sort(key=lambda entry: entry.fields["title"].translate({ord(c): None for c in "{}\\"}).lower())
        for letter, entry in zip(SUFFIXES, works, strict=False):
            entry.fields["year"] = year + letter if len(works) > 1 else year


def letter(app):
    """Letter the bibliography that the book's citations come from."""
    add_letters(app.env.get_domain("cite").bibdata.data.entries.values())


def setup(app):
    """Letter the years after sphinxcontrib-bibtex has read them (at priority 500), and before a page is read."""
    register_backends()
    app.connect("builder-inited", letter, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
