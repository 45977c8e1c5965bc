"""Nothing that is read can run as code, nothing unknown is installed, and nothing is reported to anyone."""

import ast
import re

import pytest

import book_rules as rules
import notebooks

FOLDERS = ("utils", "tools", "bench", "book/_ext")
SOURCES = sorted(path for folder in FOLDERS for path in (rules.ROOT / folder).rglob("*.py"))
LISTS = sorted({path for depth in ("", "*/", "*/*/") for path in rules.ROOT.glob(f"{depth}*requirements*.txt")})
RUNS_CODE_WHEN_READ = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
KNOWN = {"utils/diagnostics/fp8_failures.py": ["eval"]}  # of its own lines, so that the line shown is the line run
PINNED = re.compile(r"^[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+( *;.*)?$")


def trees():
    """Every module and every notebook's code, parsed: (where, syntax tree)."""
    for path in SOURCES:
        yield str(path.relative_to(rules.ROOT)), ast.parse(path.read_text("utf8"))
    for path in notebooks.book_notebooks():
        cells = notebooks.loads(path.read_text("utf8")).cells
        for cell in cells:
            if cell.cell_type == "code":
                yield f"{path.relative_to(rules.ROOT)}, cell {cell.id}", ast.parse(cell.source)


def imported(node):
    """The top-level packages that a syntax node imports."""
    if isinstance(node, ast.Import):
        return {name.name.split(".")[0] for name in node.names}
    return {(node.module or "").split(".")[0]} if isinstance(node, ast.ImportFrom) else set()


def dangers(tree):
    """What in a syntax tree could run code that somebody else wrote."""
    for node in ast.walk(tree):
        yield from (f"imports {name}" for name in imported(node) & RUNS_CODE_WHEN_READ)
        if not isinstance(node, ast.Call):
            continue
        called, options = ast.unparse(node.func), {word.arg: ast.unparse(word.value) for word in node.keywords}
        if called == "torch.load" and options.get("weights_only") != "True":
            yield "torch.load without weights_only=True"
        if options.get("trust_remote_code", "False") != "False":
            yield "trust_remote_code"
        if options.get("shell", "False") != "False" or called in {"os.system", "os.popen"}:
            yield "a command through a shell"
        if called in {"yaml.load", "yaml.unsafe_load", "numpy.load", "np.load"}:
            yield called
        if called in {"eval", "exec"}:
            yield called


def test_no_code_of_the_book_reads_what_could_run():
    assert {where: found for where, tree in trees() if (found := list(dangers(tree)))} == KNOWN


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "torch.load('x.pt')",
        "torch.load('x.pt', weights_only=False)",
        "AutoModel.from_pretrained('x', trust_remote_code=True)",
        "subprocess.run('ls', shell=True)",
        "exec(text)",
    ],
)
def test_what_could_run_is_found(source):
    assert list(dangers(ast.parse(source)))


@pytest.mark.parametrize("path", LISTS, ids=lambda path: str(path.relative_to(rules.ROOT)))
def test_every_package_has_one_exact_version(path):
    lines = [line.split(" #")[0].strip() for line in path.read_text("utf8").splitlines()]
    assert [line for line in lines if line and not line.startswith("#") and not PINNED.match(line)] == []
