"""What is known of cards and recipes, and which recipe suits a card: for `utils.decide` and for RecipePicker.

The facts stand here, once; the page gets them as JSON. The decision is `advise`, and again, in the page's language,
`advise` in recipe_picker/widget.js: a test compares the two on every combination. Importing this needs no torch.
"""

import math
from dataclasses import asdict, dataclass

GIGABYTE = 10**9
MOST_PARAMETERS = 10**13

# What a device does with a product of two matrices of a type.
TENSOR, NATIVE, EMULATED, NONE = "tensor", "native", "emulated", "none"
TYPES = {
    "float64": "float64",
    "float32": "float32",
    "tf32": "TF32",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "float8": "FP8",
    "float6": "FP6",
    "float4": "FP4",
}
STATES = {
    TENSOR: "on tensor cores",
    NATIVE: "natively",
    EMULATED: "emulated",
    NONE: "not at all",
}

# Floating-point input types of the tensor cores. From 7.5 on: CUDA Programming Guide, appendix "Compute Capabilities",
# table "Input Data Types Supported by Tensor Core Acceleration"; 7.0: the Volta white paper.
TENSOR_CORES = {
    "7.0": ("float16",),
    "7.5": ("float16",),
    "8.0": ("float64", "tf32", "bfloat16", "float16"),
    "8.6": ("tf32", "bfloat16", "float16"),
    "8.9": ("tf32", "bfloat16", "float16", "float8"),
    "9.0": ("float64", "tf32", "bfloat16", "float16", "float8"),
    "10.0": ("float64", "tf32", "bfloat16", "float16", "float8", "float6", "float4"),
}


@dataclass(frozen=True)
class Card:
    """A device: its compute capability ("" for a CPU), the memory in GB that it is sold with, and a remark.

    `products`: the 16-bit types that a CPU multiplies by an instruction of its own.
    """

    label: str
    capability: str
    memory: tuple[int, ...]
    note: str = ""
    products: tuple[str, ...] = ()

    @property
    def device(self) -> str:
        """The name of the device in torch."""
        return "cuda" if self.capability else "cpu"

    @property
    def support(self) -> dict[str, str]:
        """What it does with each of `TYPES`: one of `STATES`."""
        own = TENSOR_CORES.get(self.capability, ())
        always = {"float64", "float32", *self.products}
        # torch widens what a CPU lacks; on a GPU it does so for bfloat16 and refuses FP8
        widened = {"bfloat16", "float16"} if self.capability else {"bfloat16", "float16", "float8"}
        return {
            name: TENSOR if name in own else NATIVE if name in always else EMULATED if name in widened else NONE
            for name in TYPES
        }


OWN_MEMORY = "The memory is that of your computer: type it in."
EMULATION = "torch.cuda.is_bf16_supported() answers True here, because it counts emulation."
FP8 = "It multiplies FP8 too, given a scale for each tensor: more than a recipe can say, and a later part of this book."
CARDS = {
    "CPU": Card("CPU without 16-bit products", "", (16,), OWN_MEMORY),
    "CPU bf16": Card(
        "CPU with bfloat16 products (AVX512-BF16, AMX)",
        "",
        (16,),
        f"{OWN_MEMORY} On a small model the casts can cost more than the products save: time it both ways.",
        products=("bfloat16",),
    ),
    "T4": Card("T4", "7.5", (16,), EMULATION),
    "V100": Card("V100", "7.0", (16, 32), EMULATION),
    "A100": Card("A100", "8.0", (40, 80)),
    "RTX 3090": Card("RTX 3090", "8.6", (24,)),
    "RTX 4090": Card("RTX 4090 or L4", "8.9", (24,), FP8),
    "H100": Card("H100", "9.0", (80, 94), FP8),
    "H200": Card("H200", "9.0", (141,), FP8),
    "B200": Card("B200", "10.0", (180,), FP8.replace("FP8", "FP8, FP6 and FP4")),
}
TASKS = {"train": "train from scratch", "fine_tune": "fine-tune", "generate": "generate"}


@dataclass(frozen=True)
class Bytes:
    """Bytes for each parameter. `optimizer` is Adam's two moments; `copies`: the 16-bit weights that autocast makes."""

    weights: int
    gradients: int = 0
    optimizer: int = 0
    copies: int = 0

    @property
    def total(self) -> int:
        """The sum."""
        return self.weights + self.gradients + self.optimizer + self.copies


TRAINING_BYTES = {
    "32-true": Bytes(4, 4, 8),
    "16-mixed": Bytes(4, 4, 8, 2),
    "bf16-mixed": Bytes(4, 4, 8, 2),
    "bf16-true": Bytes(2, 2, 4),
}
GENERATING_BYTES = {"32-true": Bytes(4), "16-true": Bytes(2), "bf16-true": Bytes(2)}

REASONS = {
    "bf16-mixed": (
        "It multiplies bfloat16 natively. bfloat16 has the exponents of float32, so gradients keep their range and no"
        " loss scaler is needed. Weights, gradients and optimizer stay in float32, so that small updates are not lost."
    ),
    "16-mixed": (
        "Its tensor cores multiply float16 and no other 16-bit type; bfloat16 is emulated, without them. float16 has a"
        " narrow range, so gradients need a loss scaler. Weights, gradients and optimizer stay in float32."
    ),
    "32-true": (
        "It multiplies neither 16-bit type natively. Both would be widened to float32 and rounded back: more work, not"
        " less. So compute in float32."
    ),
    "bf16-true": (
        "bf16-mixed does not fit. With everything in bfloat16 a parameter takes 8 bytes instead of 18. The price: an"
        " update smaller than half the gap to the next bfloat16 number is rounded away. Fine-tuning often survives"
        " that; watch the loss."
    ),
    "generate-bf16-true": (
        "One token reads every weight once, so half the bytes is half the reading. There are no gradients to underflow"
        " and no updates to lose, so everything can be bfloat16."
    ),
    "generate-16-true": (
        "Its tensor cores multiply float16, and half the bytes is half the reading. A model that was trained in"
        " bfloat16 may have activations beyond 65504: they become infinite in float16, so look for NaN."
    ),
    "generate-32-true": (
        "It multiplies neither 16-bit type natively, so float32 is the format that it computes in anyway."
    ),
    "generate-emulated": (
        "In float32 the weights do not fit. In bfloat16 they do; the products are emulated, so the gain is memory, and"
        " the speed has to be measured."
    ),
}
TOO_BIG = {
    "train": "Not on one of these. Shard the model over several cards, or train a smaller one.",
    "fine_tune": "Not on one of these. Train adapters on frozen weights, or shard the model over several cards.",
    "generate": "Not on one of these. Store the weights in 8 or 4 bits, or split the model over several cards.",
}
LEFT_OUT = {
    "train": "Not counted: activations, which grow with the batch, and what the driver takes.",
    "fine_tune": "Not counted: activations, which grow with the batch, and what the driver takes.",
    "generate": "Not counted: the keys and values of the text so far, and what the driver takes.",
}

_ZERO = "optimizer.zero_grad()\n"
_STEP = _ZERO + 'with torch.autocast("{device}", dtype=torch.{dtype}):\n    loss = loss_of(model, batch)\n'
_KEEP = "model = model.float()  # a checkpoint saved in bfloat16 is loaded as bfloat16\n"
_PLAIN = _ZERO + "loss = loss_of(model, batch)\nloss.backward()\noptimizer.step()"
_SCALED = (
    'scaler = torch.amp.GradScaler("{device}")  # once, before the loop\n'
    + _STEP
    + "scaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update()"
)
_GENERATE = (
    'model = model.to("{device}", torch.{dtype}).eval()\nwith torch.inference_mode():\n    text = model.generate(ids)'
)
CODE = {
    "train": {
        "32-true": _PLAIN,
        "16-mixed": _SCALED,
        "bf16-mixed": _STEP + "loss.backward()\noptimizer.step()",
    },
    "fine_tune": {
        "32-true": _KEEP + _PLAIN,
        "16-mixed": _KEEP + _SCALED,
        "bf16-mixed": _KEEP + _STEP + "loss.backward()\noptimizer.step()",
        "bf16-true": "model = model.to(torch.bfloat16)  # before the optimizer is made\n" + _PLAIN,
    },
    "generate": {"32-true": _GENERATE, "16-true": _GENERATE, "bf16-true": _GENERATE},
}
DTYPES = {
    "32-true": "float32",
    "16-mixed": "float16",
    "16-true": "float16",
    "bf16-mixed": "bfloat16",
    "bf16-true": "bfloat16",
}
MODELS = {  # their exact numbers of parameters
    "DistilBERT": 66_955_010,
    "GPT-2": 124_439_808,
    "LLaMA 7B": 6_738_415_616,
    "Llama 2 70B": 68_976_648_192,
}
SOURCE = (
    "Input types of tensor cores: CUDA Programming Guide, Compute Capabilities, and for the V100 the Volta white paper."
    " Memory: NVIDIA's data sheets, as sold."
)


@dataclass(frozen=True)
class Advice:
    """What the picker answers: the recipe, the key of its reason, the bytes for each parameter and in all.

    `spare` is what the memory has left, in bytes; below 0 it is what is missing. `scaler`: a loss scaler is needed.
    """

    recipe: str
    reason: str
    scaler: bool
    emulated: bool
    bytes: Bytes
    total: int
    spare: int
    fits: bool
    code: str


def advise(card: str, task: str, *, parameters: int, memory: float = 0) -> Advice:
    """Choose a recipe; `memory` in GB, 0 for the least that the card is sold with.

    Raises: ValueError for an unknown card or task, or a number out of range.
    """
    chosen, room = _card(card), room_of(card, memory)
    if task not in TASKS:
        raise ValueError(f"task {task!r} is not one of {', '.join(TASKS)}")
    if not 1 <= parameters <= MOST_PARAMETERS:
        raise ValueError(f"a model has 1 to {MOST_PARAMETERS:.0e} parameters, not {parameters}")
    sizes = GENERATING_BYTES if task == "generate" else TRAINING_BYTES
    ways = suited(chosen, task)
    best = next((name for name in ways if parameters * sizes[name].total <= room), ways[0])
    dtype, total = DTYPES[best], parameters * sizes[best].total
    return Advice(
        recipe=best,
        reason=_reason(best, task, second=best != ways[0]),
        scaler=best == "16-mixed",
        emulated=chosen.support[dtype] == EMULATED,
        bytes=sizes[best],
        total=total,
        spare=room - total,
        fits=total <= room,
        code=CODE[task][best].replace("{device}", chosen.device).replace("{dtype}", dtype),
    )


def suited(card: Card, task: str) -> list[str]:
    """Name the recipes that suit a card and a task, the best first."""
    bfloat16 = card.support["bfloat16"] != EMULATED
    if task == "generate":
        return ["bf16-true"] if bfloat16 else ["16-true"] if card.capability else ["32-true", "bf16-true"]
    if bfloat16:
        return ["bf16-mixed", "bf16-true"] if task == "fine_tune" else ["bf16-mixed"]
    return ["16-mixed"] if card.capability else ["32-true"]


def _reason(recipe: str, task: str, *, second: bool) -> str:
    if task == "generate":
        return "generate-emulated" if second else f"generate-{recipe}"
    return recipe


def _card(name: str) -> Card:
    if name not in CARDS:
        raise ValueError(f"card {name!r} is not one of {', '.join(CARDS)}")
    return CARDS[name]


def room_of(card: str, memory: float = 0) -> int:
    """Return the bytes of a card with `memory` GB, 0 for the least that it is sold with.

    Raises: ValueError for an unknown card, or a memory out of range.
    """
    if not (math.isfinite(memory) and 0 <= memory <= 10**6):
        raise ValueError(f"memory {memory} GB is not between 0 and 1,000,000")
    sold = _card(card).memory[0]
    return round((memory or sold) * GIGABYTE)


def fits(total: int, room: int) -> bool:
    """Return whether so many bytes leave a tenth of the memory for what a ledger leaves out."""
    return 10 * total <= 9 * room


def facts() -> dict:
    """Give everything that the page needs to decide and to say why, as JSON values."""
    cards = {
        name: {
            "label": card.label,
            "capability": card.capability,
            "device": card.device,
            "memory": list(card.memory),
            "note": card.note,
            "support": card.support,
        }
        for name, card in CARDS.items()
    }
    return {
        "order": {  # the page's state is written with sorted keys
            "cards": list(CARDS),
            "tasks": list(TASKS),
            "types": list(TYPES),
            "models": list(MODELS),
        },
        "cards": cards,
        "tasks": TASKS,
        "types": TYPES,
        "states": STATES,
        "training_bytes": {name: asdict(size) for name, size in TRAINING_BYTES.items()},
        "generating_bytes": {name: asdict(size) for name, size in GENERATING_BYTES.items()},
        "reasons": REASONS,
        "too_big": TOO_BIG,
        "left_out": LEFT_OUT,
        "code": CODE,
        "dtypes": DTYPES,
        "models": MODELS,
        "source": SOURCE,
    }
