"""Ask the installed libraries the questions that their versions answer differently; no answer is assumed.

    for question in QUESTIONS:
        print(question.name, ask(question))
    python -m utils.experiments.api_drift --record DIR  # the answers with their versions, as a record

An answer is a short text. The committed records hold those of the versions that the book was run with.
"""

import argparse
import contextlib
import importlib.metadata
import io
import logging
import math
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch

from utils import machine, records
from utils.diagnostics import autocast_table, fp8_failures
from utils.diagnostics.autocast_docs import RULES
from utils.diagnostics.autocast_operations import OPERATIONS
from utils.emulation import float32_matmul
from utils.runs import command_line, measurement, tables
from utils.training import precision_names

NAME = "api_drift"
PACKAGES = ("torch", "transformers", "lightning-fabric", "ml_dtypes", "numpy", "datasets")
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Question:
    """A question that versions answer differently, or whose answer in old texts is no longer true.

    `package`: whose version decides. `by_machine`: the device or torch's build decides, too.
    """

    name: str
    package: str
    answer: Callable[[], str]
    by_machine: bool = False


def ask(question: Question) -> str:
    """Return the answer of this machine; if the call raises, the name of the exception is the answer."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)  # libraries report each choice that they make
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            return question.answer()
    except Exception as error:  # whatever this version raises is the answer
        return type(error).__name__
    finally:
        logging.disable(before)


def _cast(value: float, dtype: torch.dtype) -> Callable[[], str]:
    return lambda: f"{torch.tensor(value).to(dtype).float().item():g}"


def _attempt(code: str, describe: Callable[[fp8_failures.Attempt], str]) -> Callable[[], str]:
    return lambda: describe(fp8_failures.attempts("cpu", {"": code})[0])


def _describe_outcome(attempt: fp8_failures.Attempt) -> str:
    return attempt.raised or f"works, gives {attempt.dtype}"


def _say_on_cuda(attempt: fp8_failures.Attempt) -> str:
    return "refused" if attempt.on_cuda else "taken"


def _overflow_fp8() -> str:
    codes = torch.full((16, 64), 16.0).to(torch.float8_e4m3fn)  # 16 * 16 * 64 = 16384
    return f"{(codes @ codes.t())[0, 0].float().item():g}"


def _use_scale_result() -> str:
    codes, inv_scale = torch.full((16, 64), 16.0).to(torch.float8_e4m3fn), torch.tensor(1 / 64)
    scaled = {"scale_a": inv_scale, "scale_b": inv_scale, "out_dtype": torch.float8_e4m3fn}
    without, with_scale = (
        torch._scaled_mm(codes, codes.t(), **scaled, **more)[0, 0].float().item()
        for more in ({}, {"scale_result": torch.tensor(2.0)})
    )
    return {1.0: "nothing", 2.0: "multiplies by it", 0.5: "divides by it"}[with_scale / without]


def _read_switch_after(setting: str, switch: str) -> Callable[[], str]:
    def answer() -> str:
        with float32_matmul.allowing(setting):
            return str(float32_matmul.read(switch))

    return answer


def _read_old_after_new() -> str:
    with float32_matmul.restored():
        float32_matmul.write(float32_matmul.NEW[2], "tf32")
        float32_matmul.read(float32_matmul.OLD_PRODUCTS)
        return "answers"


def _count_product_bits() -> str:
    with float32_matmul.allowing("medium"):
        return f"{machine.product_bits(CPU)} bits"


def _make_old_scaler() -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.amp.GradScaler(enabled=False)
    return "works, " + (", ".join(sorted({w.category.__name__ for w in caught})) or "no warning")


def _add_ones(method: str) -> Callable[[], str]:
    def answer() -> str:
        ones, index = torch.ones(4096, dtype=torch.bfloat16), torch.zeros(4096, dtype=torch.long)
        return f"{getattr(torch.zeros(1, dtype=torch.bfloat16), method)(0, index, ones).item():g}"

    return answer


def _take_long_log_softmax() -> str:
    log_p = torch.zeros(100_000, dtype=torch.float16).log_softmax(-1)[0].item()  # -ln 100,000 = -11.51
    return f"{log_p:.2f}" if math.isfinite(log_p) else f"{log_p:g}"


def _find_autocast_rule(operation: str, device: str) -> Callable[[], str]:
    def answer() -> str:
        operations = [candidate for candidate in OPERATIONS if candidate.name == operation]
        if device == "cuda":
            rows = autocast_table.ask_without_gpu(torch.float16, operations)
        else:
            rows = autocast_table.measure(device, torch.bfloat16, operations)
        return RULES[rows[0].rule].label if rows else "not to be asked"

    return answer


def _load_checkpoint() -> str:
    from transformers import DistilBertConfig, DistilBertModel
    from transformers import logging as hub_logging

    bar_was_enabled = hub_logging.is_progress_bar_enabled()
    hub_logging.disable_progress_bar()
    sizes = {"dim": 8, "hidden_dim": 8, "n_heads": 1, "n_layers": 1, "vocab_size": 16, "max_position_embeddings": 8}
    try:
        with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
            DistilBertModel(DistilBertConfig(**sizes)).to(torch.bfloat16).save_pretrained(folder)
            return str(DistilBertModel.from_pretrained(folder).dtype).removeprefix("torch.")
    finally:
        if bar_was_enabled:
            hub_logging.enable_progress_bar()


def _ask_fabric(name: str) -> Callable[[], str]:
    def answer() -> str:
        from lightning_fabric import Fabric

        answered = precision_names.answer(lambda: Fabric(accelerator="cpu", precision=name)._precision.precision)
        if answered.returned is None:
            return "refused"
        return f"runs {answered.returned}" + (", with a warning" if answered.messages else "")

    return answer


def _add_numpy_scalars() -> str:
    import numpy as np

    return str((np.float16(1) + 1e4).dtype)  # NEP 50: float64 before NumPy 2


def _cast_by_ml_dtypes(name: str, value: float) -> Callable[[], str]:
    def answer() -> str:
        import ml_dtypes
        import numpy as np

        return f"{float(np.float32(value).astype(getattr(ml_dtypes, name))):g}"

    return answer


def _read_dataset_floats() -> str:
    from datasets import Dataset

    rows = Dataset.from_dict({"x": [0.1]}).with_format("torch")
    return str(rows[0]["x"].dtype).removeprefix("torch.")


_E4M3, _E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
_FIVE, _RIGHT = fp8_failures.FIVE, fp8_failures.RIGHT
GROUPS: dict[str, tuple[Question, ...]] = {
    "casts": (
        Question("500 cast to E4M3", "torch", _cast(500.0, _E4M3)),
        Question("infinity cast to E4M3", "torch", _cast(math.inf, _E4M3)),
        Question("61,440 cast to E5M2", "torch", _cast(61440.0, _E5M2)),
        Question("500 cast to E4M3 by ml_dtypes", "ml_dtypes", _cast_by_ml_dtypes("float8_e4m3fn", 500.0)),
        Question("NaN cast to E2M1 by ml_dtypes", "ml_dtypes", _cast_by_ml_dtypes("float4_e2m1fn", math.nan)),
        Question("eps of E5M2FNUZ in torch.finfo", "torch", lambda: f"{torch.finfo(torch.float8_e5m2fnuz).eps:g}"),
        Question("eps of E2M1 in torch.finfo", "torch", lambda: f"{torch.finfo(torch.float4_e2m1fn_x2).eps:g}"),
    ),
    "products": (
        Question("x @ y, both E4M3, on a CPU", "torch", _attempt(_FIVE["multiply as usual"], _describe_outcome)),
        Question("the same where the sum is 16,384", "torch", _overflow_fp8),
        Question("F.scaled_mm on a CPU", "torch", _attempt(_RIGHT["torch's public function"], _describe_outcome)),
        Question("_scaled_mm without scales", "torch", _attempt(_FIVE["forget the scales"], _describe_outcome)),
        Question(
            "_scaled_mm, operand 2 row-major, CPU", "torch", _attempt(_FIVE["operand 2 row-major"], _describe_outcome)
        ),
        Question(
            "the same line, by CUDA's rules",
            "torch",
            _attempt(_FIVE["operand 2 row-major"], _say_on_cuda),
            by_machine=True,
        ),
        Question("what scale_result does on a CPU", "torch", _use_scale_result),
    ),
    "switches": (
        Question(
            'after "high": cuda.matmul.fp32_precision', "torch", _read_switch_after("high", float32_matmul.NEW[2])
        ),
        Question(
            'after "medium": cuda.matmul.fp32_precision', "torch", _read_switch_after("medium", float32_matmul.NEW[2])
        ),
        Question(
            'after "medium": mkldnn.matmul.fp32_precision', "torch", _read_switch_after("medium", float32_matmul.NEW[5])
        ),
        Question("an old switch after a new one was set", "torch", _read_old_after_new),
        Question('what "medium" leaves of a float32 factor, CPU', "torch", _count_product_bits, by_machine=True),
    ),
    "questions": (
        Question('is_autocast_available("cuda")', "torch", lambda: str(torch.amp.is_autocast_available("cuda")), True),
        Question("is_bf16_supported()", "torch", lambda: str(torch.cuda.is_bf16_supported()), by_machine=True),
        Question(
            "is_bf16_supported(including_emulation=False)",
            "torch",
            lambda: str(torch.cuda.is_bf16_supported(including_emulation=False)),
            by_machine=True,
        ),
        Question("torch.cuda.amp.GradScaler", "torch", _make_old_scaler),
        Question("device of torch.amp.GradScaler()", "torch", lambda: torch.amp.GradScaler(enabled=False)._device),
    ),
    "sums": (
        Question("index_add_ of 4,096 ones, bfloat16, CPU", "torch", _add_ones("index_add_")),
        Question("scatter_add_ of the same", "torch", _add_ones("scatter_add_")),
        Question("log_softmax of 100,000 float16 zeros, CPU", "torch", _take_long_log_softmax),
        Question("einsum under CPU autocast", "torch", _find_autocast_rule("einsum", "cpu")),
        Question("softmax under CPU autocast", "torch", _find_autocast_rule("softmax", "cpu")),
        Question("rms_norm under CUDA autocast", "torch", _find_autocast_rule("rms_norm", "cuda"), by_machine=True),
    ),
    "libraries": (
        Question("a bfloat16 checkpoint, from_pretrained", "transformers", _load_checkpoint),
        *(
            Question(f'Fabric(precision="{name}") on a CPU', "lightning-fabric", _ask_fabric(name))
            for name in ("16-mixed", "16-true", "16", "bf16", "16-full")
        ),
        Question("np.float16(1) + 1e4", "numpy", _add_numpy_scalars),
        Question('with_format("torch") of Python floats', "datasets", _read_dataset_floats),
    ),
}
QUESTIONS = tuple(question for group in GROUPS.values() for question in group)


def read_versions() -> dict[str, str]:
    """Return the version of each of `PACKAGES`, without its build: {"torch": "2.13.0"}."""
    return {name: importlib.metadata.version(name).partition("+")[0] for name in PACKAGES}


def ask_all() -> dict[str, str]:
    """Ask everything, and return the answers by the names of the questions; takes some seconds."""
    return {question.name: ask(question) for question in QUESTIONS}


def make_record(*, shown: str = "") -> records.Record:
    """Ask everything, and return the answers as a record; torch's version is in its name."""
    release = ".".join(read_versions()["torch"].split(".")[:2])
    return measurement.make_record(
        NAME,
        recipe="questions",
        size="small",
        device=CPU,
        settings={},
        results={"answers": ask_all(), "packages": read_versions()},
        samples={},
        shown=shown,
        data="none",
        data_name=f"torch{release}",
        weights="random, for the one model that is loaded",
    )


def find_differences(recorded: records.Record, now: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return by question the recorded answer and that of `now`, where they differ."""
    theirs = recorded.results["answers"]
    pairs = {name: (theirs.get(name, "not asked"), answer) for name, answer in now.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@command_line.in_one_line(NAME)
def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m utils.experiments.{NAME}", description=__doc__.partition("\n")[0])
    parser.add_argument("--record", metavar="DIR", help="write the record into this folder")
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(arguments)
    try:
        folder = records.check_folder(options.record) if options.record else None
    except ValueError as error:
        return command_line.complain(NAME, str(error), 2)
    made = make_record(shown=command_line.hide_folders(arguments, program=f"experiments.{NAME}"))
    print(tables.align([("question", "answer"), *made.results["answers"].items()]))
    if folder:
        records.save(made, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
