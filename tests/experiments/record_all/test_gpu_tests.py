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


def run_with(texts, tmp_path, monkeypatch, *, codes=None, timed_out=False, names=("test_a.py", "test_b.py"), first=()):
    """Run these files; each process of pytest says one of the texts, and asks for the files that are returned."""
    tests = tmp_path / "tests"
    for name in names:
        (tests / name).parent.mkdir(parents=True, exist_ok=True)
        (tests / name).write_text("pytest.mark.gpu")
    asked, said, codes = [], iter(texts), iter(codes or [1] * len(texts))

    def run_alone(arguments, *, log, seconds, folder):
        asked.append([name.removeprefix("tests/") for name in arguments if name.startswith("tests/")])
        with log.open("a") as file:
            file.write(next(said))
        return Ended(next(codes), 170.0, timed_out)

    monkeypatch.setattr(gpu_tests.isolation, "run_alone", run_alone)
    result = gpu_tests.run_gpu_tests(tmp_path / "log", key="key", root=tmp_path, first=first)
    return result, asked


def test_the_files_that_fail(tmp_path, monkeypatch):
    result, _ = run_with([OUTPUT, OUTPUT, OUTPUT], tmp_path, monkeypatch)
    assert result.failed == ("emulation/test_scaled_matmul.py", "test_measure.py")
    assert result.summary == "1 passed, 1 failed, 1 skipped"
    assert result.last_lines[-1] == "ERROR tests/test_measure.py"


def test_a_file_that_passes_by_itself_has_not_failed(tmp_path, monkeypatch):
    """An illegal access of CUDA fails every later test of its process."""
    first = "tests/test_a.py::test_x FAILED\ntests/test_b.py::test_y FAILED\n"
    said = [first, "tests/test_a.py::test_x FAILED\n", "tests/test_b.py::test_y PASSED\n"]
    result, asked = run_with(said, tmp_path, monkeypatch, codes=[1, 1, 0])
    assert asked == [["test_a.py", "test_b.py"], ["test_a.py"], ["test_b.py"]]
    assert result.failed == ("test_a.py",)
    assert result.summary == "2 failed; by themselves these files pass: test_b.py"


def test_a_file_that_needs_another_package_has_not_failed(tmp_path):
    """Really run: with the short list of packages some files cannot be imported, and others are broken."""
    folder = tmp_path / "tests"
    folder.mkdir()
    for name, line in {"test_a": "import no_such_package", "test_b": "import utils.no_such", "test_c": "1 / 0"}.items():
        (folder / f"{name}.py").write_text(f"import pytest\n{line}\n@pytest.mark.gpu\ndef test_x(): pass\n")
    result = gpu_tests.run_gpu_tests(tmp_path / "log", key="key", root=tmp_path)
    assert result.failed == ("test_b.py", "test_c.py")
    assert "need packages that are not there: no_such_package" in result.summary


def test_behind_a_test_that_ends_the_process_the_others_run(tmp_path, monkeypatch):
    said = ["tests/test_a.py::test_x ", "tests/test_b.py::test_y PASSED\n", "tests/test_a.py::test_x "]
    result, asked = run_with(said, tmp_path, monkeypatch, codes=[-11, 0, -11])
    assert asked == [["test_a.py", "test_b.py"], ["test_b.py"], ["test_a.py"]]
    assert result.failed == ("test_a.py",)


def test_what_experiments_rest_on_runs_first_and_the_cookbook_last(tmp_path, monkeypatch):
    names = ("cookbook/test_lora.py", "cost/test_fitting.py", "test_llama.py")
    _, (asked,) = run_with([""], tmp_path, monkeypatch, names=names, first=("test_llama.py",))
    assert asked == ["test_llama.py", "cost/test_fitting.py", "cookbook/test_lora.py"]


def test_tests_that_do_not_end(tmp_path, monkeypatch):
    result, _ = run_with(["tests/test_llama.py::test_a PASSED\n"], tmp_path, monkeypatch, timed_out=True)
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
