"""The cells stage runs in copies of a process: each knows its own names alone, prints as a new kernel, and ends."""

import os
import subprocess
import sys
import time

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output

CELLS = (
    (
        "import os, sys\nprint('torch' in sys.modules, 'torch' in globals(), 'utils.formats' in sys.modules)",
        "True False False\n",
    ),
    ("left = open('pid', 'a').write(f'{os.getpid()} ')", ""),
    ("print(os.path.basename(os.getcwd()), 'left_here' in globals())\nleft_here = 1", "folder False\n"),
    ("import pandas\nprint(pandas.get_option('display.max_columns'))", "20\n"),
    ("import subprocess\nprint(subprocess.run(['true']).returncode)", "0\n"),
)


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_two_notebooks_get_a_copy_each_and_both_end(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("one", "two"):
        cells = [
            new_code_cell(
                source, execution_count=1, outputs=[new_output("stream", name="stdout", text=text)] if text else []
            )
            for source, text in CELLS
        ]
        nbformat.write(new_notebook(cells=cells), folder / f"{name}.ipynb")
    command = ("-m", "pytest", "-q", "-p", "tests.forked_kernels", "--nbval", "--nbval-current-env", "--rootdir")
    done = subprocess.run([sys.executable, *command, folder, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    one, two = map(int, (folder / "pid").read_text().split())
    assert one != two
    deadline = time.monotonic() + 30
    while is_there(one) or is_there(two):
        assert time.monotonic() < deadline, "a kernel outlives the tests"
        time.sleep(0.1)
