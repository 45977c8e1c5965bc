"""Names of each recipe in torch, Lightning, transformers and accelerate, and what they do where a device lacks it.

Read in the documentation (2026): Fabric and Lightning's `Trainer` share their names,
https://lightning.ai/docs/fabric/stable/fundamentals/precision.html and
https://lightning.ai/docs/pytorch/stable/common/precision_intermediate.html;
transformers' `TrainingArguments`, https://huggingface.co/docs/transformers/main_classes/trainer;
accelerate's `Accelerator`, https://huggingface.co/docs/accelerate/package_reference/accelerator.
The old names: Lightning pull requests 16767 (Fabric) and 16783 (`Trainer`); "-true" in 16 bits: 17287 and 18193.

Called on a CPU: lightning-fabric and pytorch-lightning 2.6.6, transformers 5.23.0, accelerate 1.15.0. Of these the book
installs lightning-fabric and transformers; a test calls what is installed.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """How to ask for one recipe: the line of torch, Lightning's `precision=`, and what transformers needs.

    transformers has no name for a recipe. It has two settings: `weights`, the `dtype=` of `from_pretrained`, and
    `arguments`, those of `TrainingArguments`; what they say of autocast goes to accelerate, as `mixed_precision=`.
    `by_hand` is what no name of Lightning says, and its user has to add.
    """

    torch: str
    lightning: str
    weights: str
    arguments: str = ""
    accelerate: str = "no"
    by_hand: str = ""


_EPS, _OURS = "the optimizer with eps=1e-4", "an optimizer of one's own"
_PRODUCTS = "torch's switch for float32 products"
_TRUE = {dtype: f"model.to(torch.{dtype})" for dtype in ("float64", "float32", "float16", "bfloat16")}
_MIXED = {dtype: f"torch.autocast(device, torch.{dtype})" for dtype in ("float16", "bfloat16")}
NAMES = {
    "64-true": Names(_TRUE["float64"], "64-true", "float64"),
    "32-true": Names(_TRUE["float32"], "32-true", "float32"),
    "32-true-high": Names(
        'torch.set_float32_matmul_precision("high")',
        "32-true",
        "float32",
        "tf32=True",
        by_hand=_PRODUCTS,
    ),
    "32-true-medium": Names(
        'torch.set_float32_matmul_precision("medium")',
        "32-true",
        "float32",
        by_hand=_PRODUCTS,
    ),
    "16-mixed": Names(f"{_MIXED['float16']} and a GradScaler", "16-mixed", "float32", "fp16=True", "fp16"),
    "bf16-mixed": Names(_MIXED["bfloat16"], "bf16-mixed", "float32", "bf16=True", "bf16"),
    "16-true": Names(_TRUE["float16"], "16-true", "float16"),
    "16-true-eps": Names(
        f"{_TRUE['float16']} and AdamW(eps=1e-4)",
        "16-true",
        "float16",
        "adam_epsilon=1e-4",
        by_hand=_EPS,
    ),
    "16-true-moments": Names(_TRUE["float16"], "16-true", "float16", by_hand=_OURS),
    "bf16-true": Names(_TRUE["bfloat16"], "bf16-true", "bfloat16"),
    "bf16-true-stochastic": Names(_TRUE["bfloat16"], "bf16-true", "bfloat16", by_hand=_OURS),
}

# What Lightning called a precision before 2.0, and "16-full", the name in scripts of that time for what 2.1 brought as
# "16-true". The first four are still taken; 2.6.6 warns of the two narrow ones and refuses the last two.
OLD = {
    "64": "64-true",
    "32": "32-true",
    "16": "16-mixed",
    "bf16": "bf16-mixed",
    "16-full": "16-true",
    "bf16-full": "bf16-true",
}


@dataclass(frozen=True)
class Fallback:
    """What a library does with float16 under autocast on a CPU: the recipe that it runs, and what it says of it."""

    library: str
    ask: str
    runs: str
    says: str


# Three answers to one request. torch alone does what is asked; who compares devices must look at what was run.
FLOAT16_ON_A_CPU = (
    Fallback("torch", 'torch.autocast("cpu", torch.float16), GradScaler("cpu")', "16-mixed", ""),
    Fallback("Lightning", 'precision="16-mixed"', "bf16-mixed", "UserWarning"),
    Fallback("transformers, accelerate", "fp16=True", "32-true", ""),
)


@dataclass(frozen=True)
class LibraryAnswer:
    """What a call returned, None if it raised, and what it said: its warnings in order, then its error.

    Each is a text that begins with the type, "UserWarning: ...".
    """

    returned: object | None
    messages: tuple[str, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The types alone, "UserWarning" or "ValueError"."""
        return tuple(text.partition(":")[0] for text in self.messages)


def answer(call: Callable[[], object]) -> LibraryAnswer:
    """Call a library, and return what came of it, warnings and errors included."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            returned, errors = call(), []
        except (ImportError, RuntimeError, TypeError, ValueError) as error:
            returned, errors = None, [error]
    messages = [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    return LibraryAnswer(returned, (*messages, *(f"{type(error).__name__}: {error}" for error in errors)))
