"""The order of the folders of `utils`, how full they are, and what loads without torch."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
UTILS = ROOT / "utils"
FOLDERS = sorted(
    path
    for path in (UTILS, *UTILS.rglob("*"))
    if path.is_dir() and "__pycache__" not in path.parts and any(path.iterdir())
)
MOST_FILES = {UTILS: 16}  # of any other folder 15
WITHOUT_TORCH = (
    "formats",
    "rounding",
    "shared_exponent",
    "scaling",
    "accumulation",
    "records",
    "emulation.narrow_lu",
    "emulation.refinement",
    "emulation.format_landmarks",
    "quantization.outliers",
    "quantization.rotation",
    "training.precision_names",
    "workloads.generated_text",
    "cost.architectures",
    "cost.cards",
    "cost.roofline",
    "cost.bytes_per_parameter",
    "runs.cache",
    "runs.seeds_needed",
    "runs.tables",
    "runs.published",
    "checks.questions",
    "checks.number_text",
)


def lint_imports(folder: Path) -> subprocess.CompletedProcess:
    """Check the contracts of pyproject.toml on the `utils` of a folder."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(UTILS, tmp_path / "utils", ignore=shutil.ignore_patterns("__pycache__", "*.js", "*.css"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_import_comes_from_below_and_none_goes_in_a_circle():
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "line", "says"),
    [
        ("formats", "from utils import scaling", "utils.formats is not allowed to import utils.scaling"),
        (
            "training/optimizers",
            "def f():\n    from utils.runs import cache",
            "utils.training is not allowed to import",
        ),
        ("checks/questions", "import utils.widgets", "utils.checks is not allowed to import utils.widgets"),
        ("distilbert", "from utils import llama", "utils.distilbert is not allowed to import utils.llama"),
        ("training/layer_names", "from utils.training import watch", "No cycles are allowed in utils.training"),
        ("cost/memory", "from utils import plots", "utils.cost is not allowed to import utils.plots"),
        ("cost/memory", "from utils import pictures", "utils.cost is not allowed to import utils.pictures"),
        ("nowhere", "", "utils.nowhere"),
    ],
)
def test_a_forbidden_import_is_found(copy, module, line, says):
    with (copy / "utils" / f"{module}.py").open("a", encoding="utf8") as file:
        file.write(f"\n{line}\n")
    done = lint_imports(copy)
    assert done.returncode == 1
    assert says in " ".join(done.stdout.split())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_has_room(folder):
    files = [path.name for path in folder.iterdir() if path.is_file()]
    assert len(files) <= MOST_FILES.get(folder, 15), files


def test_the_arithmetic_and_the_tables_load_without_torch():
    code = "import sys, importlib\n" + "\n".join(f"importlib.import_module('utils.{name}')" for name in WITHOUT_TORCH)
    code += "\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
