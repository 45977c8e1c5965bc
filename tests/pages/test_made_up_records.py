"""Pages take the records of a GPU as soon as there are some: with made-up ones, each page runs and shows them."""

import json
import os
from pathlib import Path

import pytest

import made_up_gpu
import page_slice
from script_server import ScriptServer
from utils.experiments.record_all.wanted import list_wanted

WORDS = {"practice/llama": '"card": "H100 SXM"'}  # where a widget shows the record beside the data sheet of its card
IMPORTED = (
    "IPython",
    "matplotlib.pyplot",
    "pandas",
    "transformers",
    "utils.distilbert",
    "utils.llama",
    "utils.widgets.quiz",
)
SHOWN = sorted({entry.page for entry in list_wanted()} | {"reference/records"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The book's records and those of the made-up GPU."""
    folder = tmp_path_factory.mktemp("results")
    made_up_gpu.write_records(folder)
    return folder


@pytest.fixture(scope="module")
def server():
    """A process that has imported what most pages import."""
    return ScriptServer()


@pytest.mark.slow
@pytest.mark.parametrize("page", SHOWN)
def test_a_page_shows_the_records_of_a_gpu(page, folder, server):
    script = Path(page_slice.__file__)
    path = os.pathsep.join([str(page_slice.ROOT), str(script.parent)])
    arguments, environment = [str(script), page, str(folder)], os.environ | {"PYTHONPATH": path}
    done = server.run(arguments, page_slice.ROOT, imports=IMPORTED, environment=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    shown = "\n".join(json.loads(done.stdout.splitlines()[-1]))
    assert WORDS.get(page, made_up_gpu.NAME) in shown, f"{page} says nothing of the card"


def test_the_slice_of_a_page_leaves_out_what_no_record_reaches():
    cells = [
        "import a\nfrom utils import records",
        "x = a.train()",
        "runs = records.load_all()",
        "def show(run):\n    return a.text(run)",
        "print(x)",
        "for run in runs:\n    print(show(run), a)",
        "print(x)",
    ]
    assert page_slice.slice_of(cells) == [0, 2, 3, 5]


def test_a_cell_reads_only_what_it_has_not_given_a_value_itself():
    cells = [
        "for name in (1, 2):\n    row = train(name)",
        "old = 1",
        "from utils import records",
        "for name, n in [(r.name, k) for k, r in enumerate(records.load_all())]:\n    row = name\nold += 1",
        "def show(run, n=old):\n    row = run.row\n    return row\nshow(records.load_all())",
    ]
    assert page_slice.slice_of(cells) == [1, 2, 3, 4]


def test_what_may_change_a_thing_that_is_needed_is_kept():
    pieces = [
        "rows, other = {}, []",
        "other.append(train())",
        "rows['a'] = 1",
        "rows.update(b=2)",
        "print(other)",
        "from utils import records",
        "for row in records.load_all():\n    print(rows, row)",
    ]
    assert page_slice.slice_of(pieces) == [0, 2, 3, 5, 6]


def test_a_cell_is_cut_into_its_statements():
    cells = ["import a\nx = [a.b,  # a comment\n     2]", "@a.cached\ndef f():\n    return 1"]
    pieces = [(0, "import a"), (0, "x = [a.b, 2]"), (1, "@a.cached\ndef f():\n    return 1")]
    assert page_slice.statements_of(cells) == pieces
