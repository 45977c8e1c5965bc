"""What the output of pytest on a GPU says: which files failed, also where it ends early or cannot import one."""

from utils import records
from utils.experiments.record_all import gpu_tests
from utils.experiments.record_all.isolation import Ended
from utils.experiments.record_all.wanted import list_wanted

OUTPUT = """\
collected 40 items / 1 error
tests/test_llama.py::test_a PASSED                                       [ 10%]
tests/emulation/test_scaled_matmul.py::test_b[fp8-mx] FAILED             [ 20%]
tests/cookbook/test_lora.py::test_c SKIPPED (needs bitsandbytes)         [ 30%]
ERROR tests/test_measure.py
"""


def read(text, tmp_path, *, timed_out=False):
    log = tmp_path / "log"
    log.write_text(text)
    return gpu_tests.read_results(text, key="key", ended=Ended(1, 170.0, timed_out), log=log)


def test_the_files_that_fail(tmp_path):
    result = read(OUTPUT, tmp_path)
    assert result.failed == ("emulation/test_scaled_matmul.py", "test_measure.py")
    assert result.summary == "1 passed, 1 failed, 1 skipped"
    assert result.last_lines[-1] == "ERROR tests/test_measure.py"


def test_tests_that_do_not_end(tmp_path):
    result = read("tests/test_llama.py::test_a PASSED\n", tmp_path, timed_out=True)
    assert result.failed == ()
    assert result.summary == "1 passed; ended after 170 s, before the last"


def test_without_pytest_nothing_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_tests, "NEEDED", ("pytest", "no_such_package"))
    result = gpu_tests.run_gpu_tests(tmp_path / "log", key="key")
    assert result.failed == ()
    assert result.summary == "not run: no_such_package not installed here"


def test_what_experiments_rest_on_is_among_the_marked_files():
    marked = {
        path.relative_to(records.ROOT / "tests").as_posix() for path in gpu_tests.find_marked(records.ROOT / "tests")
    }
    assert {name for entry in list_wanted() for name in entry.rests_on} <= marked


def test_they_really_run(tmp_path):
    """A small book with one marked test, in a process of its own."""
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_card.py").write_text(
        "import pytest\n@pytest.mark.gpu\ndef test_a(): pass\n@pytest.mark.gpu\ndef test_b(): assert 0\n"
        "def test_c(): assert 0\n"
    )
    result = gpu_tests.run_gpu_tests(tmp_path / "log", key="key", root=tmp_path)
    assert result.summary == "1 passed, 1 failed"
    assert result.failed == ("test_card.py",)
