"""The words of RecipePicker: the reason for a recipe, what each lever does, lines of torch, and the data of its page.

The decision is that of `utils.cost.decide`, and again, in the page's language, of `dtDecide` in
shared/cost/decide.js; a test compares the two on every card, task and size.
"""

from dataclasses import dataclass

from utils.cost.architectures import NAMED
from utils.cost.cards import CARDS, EMULATED, TYPES, usable
from utils.cost.decide import ADAPTERS, RANK, TASKS, decide, suited
from utils.widgets.shared.cost.decision_facts import decision_facts

MODELS = ("DistilBERT", "GPT-2", "LLaMA 7B", "Llama 2 70B")  # the examples
STATES = {
    "tensor": "on tensor cores",
    "native": "natively",
    "emulated": "emulated",
    "none": "not at all",
}
REASONS = {
    "bf16-mixed": (
        "bfloat16 is multiplied natively and has the exponents of float32, so gradients keep their range and no"
        " loss scaler is needed. Weights, gradients and optimizer stay in float32, so that small updates are not lost."
    ),
    "16-mixed": (
        "The tensor cores multiply float16 and no other 16-bit type; bfloat16 is emulated, without them. float16 has a"
        " narrow range, so gradients need a loss scaler. Weights, gradients and optimizer stay in float32."
    ),
    "32-true": (
        "Neither 16-bit type is multiplied natively. Both would be widened to float32 and rounded back: more work, not"
        " less. So compute in float32."
    ),
    "bf16-true": (
        "bf16-mixed does not fit. With everything in bfloat16 a weight and its gradient take 4 bytes instead of 8. The"
        " price: an update smaller than half the gap to the next bfloat16 number is rounded away. Fine-tuning often"
        " survives that; watch the loss."
    ),
    "adapters-bf16-mixed": (
        "bfloat16 is multiplied natively. There is no room to train all weights, not even in bfloat16, so they stay as"
        " they are. Small matrices beside them are trained, in float32 and without a loss scaler."
    ),
    "adapters-16-mixed": (
        "The tensor cores multiply float16 and no other 16-bit type. There is no room to train all weights, so they"
        " stay as they are. Small matrices beside them are trained, in float32; their gradients need a loss scaler."
    ),
    "adapters-32-true": (
        "Neither 16-bit type is multiplied natively, so compute in float32. There is no room to train all weights, so"
        " they stay as they are, and small matrices beside them are trained."
    ),
    "generate-bf16-true": (
        "One token reads every weight once, so half the bytes is half the reading. There are no gradients to underflow"
        " and no updates to lose, so everything can be bfloat16."
    ),
    "generate-16-true": (
        "The tensor cores multiply float16, and half the bytes is half the reading. A model that was trained in"
        " bfloat16 may have activations beyond 65504: they become infinite in float16, so look for NaN."
    ),
    "generate-32-true": ("Neither 16-bit type is multiplied natively, so the arithmetic is in float32 anyway."),
    "generate-emulated": (
        "In float32, the weights with the keys and values do not fit. bfloat16 takes half the bytes; its products are"
        " emulated, so the gain is memory, and the speed has to be measured."
    ),
}
LEVERS = {
    "checkpointing": (
        "To fit, the activations inside a block are computed again in the backward pass instead of kept, for up to"
        " a third more products."
    ),
    "8-bit Adam": "Adam's two moments are kept in 8 bits.",
    "LoRA": (
        f"Each linear layer gets two matrices of rank {RANK} (LoRA), and only these have gradients and Adam's moments."
    ),
    "QLoRA": (
        f"Each linear layer gets two matrices of rank {RANK} (LoRA), and its own weights are stored in 4.13 bits (NF4)"
        " and widened where they are used (QLoRA)."
    ),
    "8-bit weights": "To fit, each weight is stored in 8 bits and widened where it is used.",
    "4-bit weights": (
        "To fit, each weight is stored in 4 bits, with a scale for every 32 of them, and widened where it is used."
    ),
}
TOO_BIG = {
    "train": "Not on one of these. Shard the model over several cards, or train a smaller one.",
    "fine_tune": "Not on one of these. Shard the model over several cards, or train a smaller one.",
    "generate": "Not on one of these. Split the model over several cards.",
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
_STORED = (
    "stored = transformers.BitsAndBytesConfig(load_in_{bits}bit=True)\n"
    'places = {{"device_map": "{{device}}", "dtype": torch.{{dtype}}, "quantization_config": stored}}\n'
    "model = transformers.AutoModelForCausalLM.from_pretrained(name, **places)\n"
    "with torch.inference_mode():\n    text = model.generate(ids)"
)
_PEFT = f'model = peft.get_peft_model(model, peft.LoraConfig(r={RANK}, target_modules="all-linear"))\n'
LOADED = {  # the lines before those of `CODE["train"]` where adapters are trained
    "LoRA": "model = model.to(torch.{dtype})  # frozen; the adapters are in float32\n" + _PEFT,
    "QLoRA": (
        'how = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}\n'
        'how["bnb_4bit_compute_dtype"] = torch.{dtype}\n'
        "stored = transformers.BitsAndBytesConfig(load_in_4bit=True, **how)\n"
        'places = {"device_map": "{device}", "dtype": torch.{dtype}, "quantization_config": stored}\n'
        "model = transformers.AutoModelForCausalLM.from_pretrained(name, **places)\n" + _PEFT
    ),
}
_ADAPTERS_ALONE = "optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)  # once\n"
CODE = {  # by task, and by the recipe or the lever that decides about the lines; {once}: the lines of `ONCE`
    "train": {
        "32-true": "{once}" + _PLAIN,
        "16-mixed": "{once}" + _SCALED,
        "bf16-mixed": "{once}" + _STEP + "loss.backward()\noptimizer.step()",
    },
    "fine_tune": {
        "32-true": _KEEP + "{once}" + _PLAIN,
        "16-mixed": _KEEP + "{once}" + _SCALED,
        "bf16-mixed": _KEEP + "{once}" + _STEP + "loss.backward()\noptimizer.step()",
        "bf16-true": "model = model.to(torch.bfloat16)  # before the optimizer is made\n{once}" + _PLAIN,
    },
    "generate": {
        "32-true": _GENERATE,
        "16-true": _GENERATE,
        "bf16-true": _GENERATE,
        "8-bit weights": _STORED.format(bits=8),
        "4-bit weights": _STORED.format(bits=4),
    },
}
ONCE = {  # the line of a lever, before the loop
    "checkpointing": 'enable = getattr(model, "activation_checkpointing_enable", None)  # transformers 5.23\n'
    '(enable or model.gradient_checkpointing_enable)({"use_reentrant": False})  # once, in any version\n',
    **dict.fromkeys(ADAPTERS, _ADAPTERS_ALONE),
    "8-bit Adam": "optimizer = bitsandbytes.optim.AdamW8bit(model.parameters(), lr=1e-5)  # once\n",
}
DTYPES = {
    "32-true": "float32",
    "16-mixed": "float16",
    "16-true": "float16",
    "bf16-mixed": "bfloat16",
    "bf16-true": "bfloat16",
}
SOURCE = (
    "Input types of tensor cores: CUDA Programming Guide, Compute Capabilities, and for the V100 the Volta white paper."
    " AMD: its ROCm documentation. Memory: the vendors' data sheets, as sold."
)


@dataclass(frozen=True)
class Advice:
    """The answer of the picker: recipe and levers, the key of its reason, and the bytes by item.

    `spare` is what the usable memory has left (see `cards.usable`), in bytes; below 0 it is what is missing. `scaler`:
    a loss scaler is needed. `like`: the model whose activations or cache are counted, with a text of `length` tokens.
    """

    recipe: str
    levers: tuple[str, ...]
    reason: str
    scaler: bool
    emulated: bool
    items: dict[str, int]
    total: int
    spare: int
    fits: bool
    like: str
    length: int
    code: str


def advise(card: str, task: str, *, parameters: int, memory: float = 0) -> Advice:
    """Return the decision for one text, with its words; `memory` in GB, 0 for the least that the card is sold with.

    Raises: ValueError for an unknown card or task, or a number out of range.
    """
    decision = decide(card, task, parameters, memory_gb=memory)
    recipe, levers, device = decision.recipe, decision.levers, CARDS[card]
    adapters = next((lever for lever in levers if lever in ADAPTERS), None)
    code = next(CODE[task][way] for way in (*levers[::-1], recipe) if way in CODE[task])
    code = LOADED[adapters] + CODE["train"][recipe] if adapters else code
    once = "".join(ONCE.get(lever, "") for lever in levers)
    return Advice(
        recipe=recipe,
        levers=levers,
        reason=_reason(recipe, task, second=recipe != suited(device, task)[0], adapted=adapters is not None),
        scaler=decision.scaler,
        emulated=device.support[DTYPES[recipe]] == EMULATED,
        items=decision.items,
        total=decision.total,
        spare=usable(decision.room) - decision.total,
        fits=decision.fits,
        like=decision.like,
        length=decision.plan.length,
        code=code.replace("{once}", once).replace("{device}", device.device).replace("{dtype}", DTYPES[recipe]),
    )


def _reason(recipe: str, task: str, *, second: bool, adapted: bool) -> str:
    if task == "generate":
        return "generate-emulated" if second else f"generate-{recipe}"
    return f"adapters-{recipe}" if adapted else recipe


def facts() -> dict:
    """Return everything that the page needs to decide and to say why, as JSON values."""
    deciding = decision_facts()
    cards = {
        name: deciding["cards"][name] | {"label": card.label, "architecture": card.architecture, "note": card.note}
        for name, card in CARDS.items()
    }
    return {
        **deciding,
        "recipes": {name: deciding["recipes"][name] for name in DTYPES},
        "order": {  # the page's state is written with sorted keys
            "cards": list(CARDS),
            "tasks": list(TASKS),
            "types": list(TYPES),
        },
        "cards": cards,
        "tasks": TASKS,
        "types": TYPES,
        "states": STATES,
        "reasons": REASONS,
        "levers": LEVERS,
        "too_big": TOO_BIG,
        "code": CODE,
        "loaded": LOADED,
        "once": ONCE,
        "dtypes": DTYPES,
        "examples": [[name, NAMED[name].parameters] for name in MODELS],
        "source": SOURCE,
    }
