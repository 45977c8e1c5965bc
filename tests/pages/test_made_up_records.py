"""Pages take the records of a GPU as soon as there are some: with made-up ones, each page runs and shows them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import made_up_gpu
import page_slice
from utils.experiments.record_all.wanted import list_wanted

WORDS = {"practice/llama": '"card": "H100 SXM"'}  # where a widget shows the record beside the data sheet of its card
SHOWN = sorted({entry.page for entry in list_wanted()} | {"reference/records"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The book's records and those of the made-up GPU."""
    folder = tmp_path_factory.mktemp("results")
    made_up_gpu.write_records(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", SHOWN)
def test_a_page_shows_the_records_of_a_gpu(page, folder):
    script = Path(page_slice.__file__)
    path = os.pathsep.join([str(page_slice.ROOT), str(script.parent)])
    done = subprocess.run(
        [sys.executable, str(script), page, str(folder)],
        capture_output=True,
        text=True,
        cwd=page_slice.ROOT,
        env=os.environ | {"PYTHONPATH": path},
    )
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
