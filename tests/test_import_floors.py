"""The floors of `utils`: a module imports only from the floors below it, and on its own floor from those before it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

UTILS = Path(__file__).resolve().parents[1] / "utils"
# Each floor from below; within a floor a module may import those named before it.
FLOORS = (
    (
        "cache",
        "grammar",
        "number_text",
        "page_table",
        "questions",
        "rounding",
        "formats",
        "format_table",
        "errors",
        "records",
        "recorded",
        "precision_names",
        "seeds_needed",
        "architectures",
        "bytes_per_parameter",
        "roofline",
        *("recipe_facts", "published"),
    ),
    ("exponent_rules", "scaling", "rotation", "outliers", "accumulation", "factors", "refinement"),
    (
        "error_lines",
        "measure",
        "token_bytes",
        "live_bytes",
        "machine",
        "rounding_kernels",
        "fake_quantize",
        "rounded_weights",
        "all_reduce",
        "processes",
        "scaled",
        "carriers",
        "dot_products",
        "block_exponents",
        "tensor_core",
        "accumulators",
        "accumulation_theory",
        "accumulated",
        "fast_half",
        "gemm_shapes",
        "product_precision",
        "product_calls",
        "exponents",
        "layers",
        "autocast_docs",
        "autocast_operations",
        "autocast_table",
        "running_module",
        "dtype_probe",
        "watch",
        "nan_sightings",
        "nan_trail",
        "nan_hunter",
        "loss_scaling",
        "blockwise",
        "optimizers",
        "scaled_product",
        "float8_recipes",
        "fp8_casts",
        "fp8",
        "fp8_failures",
        *("integers", "weight_only", "int4_kernel", "outlier_split", "gptq", "weight_formats"),
        "rounded_cache",
        "recipes",
        "readers",
        "activation_tables",
        "activations",
        "memory",
        "decide",
        "batches",
        "fine_tuning",
        "fitting",
        "checkpoints",
        "command",
        "microscope",
    ),
    (
        *("data", "vocabulary", "models", "operations", "old_chart", "review_task", "language_task", "results"),
        "generation",
        "experiment",
        *("kept", "tables", "distilbert", "llama", "levers", "fabric", "accumulated_llama", "accumulation_error"),
        *("parallel_ways", "parallel_worker", "parallel"),
        *("sabotage", "faults"),
        *("capstone_plans", "capstone_kept", "capstone"),
        *("amax_series", "sweep_shapes", "gemm_sweep", "fp8_speed", "refinement_speed"),
        *("language_models", "generation_points", "generation_speed"),
        "api_drift",
    ),
)
SIDE = ("plots", "checks", "notebooks", "widgets")  # nobody imports them
OUTSIDE = ({"numpy"}, {"numpy"}, {"numpy", "torch", "tqdm"}, None)  # what a floor may import at its top; None: anything
ORDER = [name for floor in FLOORS for name in floor]
MODULES = sorted(path for path in UTILS.rglob("*.py") if path != UTILS / "__init__.py")


def module_name(path):
    """The first name below `utils`: "formats", or "widgets" for all of that package."""
    return path.relative_to(UTILS).with_suffix("").parts[0]


def imports(tree):
    """Yield (module, whether at the top of the file) for each import, without those for type checkers alone."""

    def walk(node, top):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                yield from ((alias.name, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and child.module == "utils":
                yield from ((f"utils.{alias.name}", top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield child.module or "", top
            yield from walk(child, top and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    yield from walk(tree, True)


def faults(name, source):
    """Say which imports of module `name` break the floors."""
    floor = next((n for n, names in enumerate(FLOORS) if name in names), None)
    anything = floor is None or OUTSIDE[floor] is None
    for module, at_top in imports(ast.parse(source)):
        package, _, rest = module.partition(".")
        allowed = {package} if anything else sys.stdlib_module_names | OUTSIDE[floor]
        target = rest.split(".")[0]
        if package == "utils" and target != name:
            if target in SIDE:
                yield f"{name} imports {target}, which nobody may import"
            elif floor is not None and (target not in ORDER or ORDER.index(target) >= ORDER.index(name)):
                yield f"{name} imports {target}, which is not below it"
        elif package != "utils" and at_top and package not in allowed:
            yield f"{name} imports {package} at its top, which floor {floor} may not"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(UTILS)))
def test_module_has_a_floor_and_imports_only_from_below(path):
    name = module_name(path)
    assert name in ORDER or name in SIDE, f"give {name} a floor in FLOORS"
    assert list(faults(name, path.read_text("utf8"))) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("rounding", "from utils.formats import FORMATS"),
        ("formats", "import torch"),
        ("formats", "def f():\n    from utils import machine"),
        ("machine", "import utils.models"),
        ("machine", "from transformers import AutoModel"),
        ("distilbert", "from utils import plots"),
        ("plots", "from utils.widgets import bit_flip"),
        ("formats", "from utils import nonsense"),
    ],
)
def test_a_forbidden_import_is_found(name, source):
    assert list(faults(name, source)) != []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("formats", "import math\nimport numpy as np\nfrom utils.rounding import ulp"),
        ("formats", "def f():\n    import torch"),
        ("rounding", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from utils.formats import FloatFormat"),
        ("plots", "import matplotlib\nfrom utils import formats"),
        ("distilbert", "import transformers\nfrom utils import machine"),
    ],
)
def test_an_import_from_below_is_allowed(name, source):
    assert list(faults(name, source)) == []


def test_floors_0_and_1_load_without_torch():
    names = [name for name in (*FLOORS[0], *FLOORS[1]) if (UTILS / f"{name}.py").exists()]
    code = "import sys, importlib\n" + "\n".join(f"importlib.import_module('utils.{name}')" for name in names)
    code += "\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
