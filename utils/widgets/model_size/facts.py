"""What ModelSize says of a training step: the changes that it tries, its sentences, and the tables of its page.

The bytes are those of `utils.cost.memory.predict`, and again, in the page's language, of `msLedger` in
shared/cost/training_bytes.js; the sentences are those of words.js. Importing this needs no torch.
"""

import math
from dataclasses import dataclass, replace

from utils.cost.architectures import NAMED, Architecture
from utils.cost.cards import CARDS, card_bytes, fits
from utils.widgets.shared.cost.training_facts import OPTIMIZERS, training_facts
from utils.widgets.shared.words.amounts import bytes_text

MOST = 1_000_000  # of a batch, a length and the like
ITEMS = {  # the name of each item of a ledger, and in the sentence "the biggest item is ..."
    "weights": ("weights", "the weights"),
    "master": ("master weights or compensation", "what the optimizer keeps of the weights"),
    "gradients": ("gradients", "the gradients"),
    "optimizer": ("optimizer", "the state of the optimizer"),
    "activations": ("activations", "the activations"),
    "logits": ("gradients of the logits", "the gradients of the logits"),
}
SIZES = {
    "layers": "Layers",
    "width": "Width",
    "heads": "Heads",
    "groups": "Heads of keys",
    "hidden": "Hidden",
    "vocabulary": "Vocabulary",
}
ATTENTIONS = {"eager": "eager", "sdpa": "SDPA, fused"}
METHODS = {"full": "all weights", "lora": "LoRA", "qlora": "QLoRA"}
MOST_RANK = 1_024
STAGES = {0: "0", 1: "1: optimizer", 2: "2: gradients too", 3: "3: weights too"}
LEFT_OUT = (
    "Not counted: buffers, other temporaries, the workspace of kernels, what the allocator cannot use of its blocks"
    " (fragmentation), and the CUDA context. A tenth of the card is left for them: above nine tenths nobody can"
    " tell whether a step fits. Two assumptions: AdamW has fused=True (otherwise its step on a GPU adds temporaries"
    " as large as the weights), and stage 3 is FSDP2, which casts weights by its MixedPrecisionPolicy (under autocast,"
    " 16-bit copies stay). 1 GB is 10⁹ bytes."
)


@dataclass(frozen=True)
class MemoryPlan:
    """What is trained, how, and on which cards: the arguments of `utils.cost.memory.predict`, and a card.

    `memory`: of one card in GB, 0 for the least that it is sold with. `method`: of a classifier all weights are trained
    whatever it says.
    """

    architecture: Architecture
    recipe: str
    optimizer: str
    batch: int
    length: int
    attention: str
    checkpointing: bool
    padded: bool
    accumulate: int
    shards: int
    stage: int
    card: str
    memory: float
    method: str = "full"
    rank: int = 16

    @property
    def adapted(self) -> bool:
        """Whether adapters are trained."""
        return self.method != "full" and self.architecture.adaptable

    @property
    def ledger(self):
        """The `utils.cost.memory.Ledger` of one card."""
        from utils.cost.memory import predict

        settings = {name: value for name, value in vars(self).items() if name not in ("architecture", "card", "memory")}
        settings |= {} if self.adapted else {"method": "full"}
        return predict(self.architecture, settings.pop("recipe"), **settings, device=CARDS[self.card].device)

    @property
    def room(self) -> int:
        """The bytes of one card."""
        return card_bytes(self.card, self.memory)

    def fits(self, total: int) -> bool:
        """Return whether so many bytes leave a tenth of the card for what the ledger leaves out."""
        return fits(total, self.room)

    @property
    def largest_batch(self) -> int:
        """The largest batch that fits, 0 if none does, at most `MOST`."""
        from utils.cost.fitting import largest_batch

        return largest_batch(lambda batch: self.fits(replace(self, batch=batch).ledger.total), most=MOST)

    @property
    def savings(self) -> dict[str, int | None]:
        """What each of `CHANGES` alone saves, in bytes; None where it is made already or cannot be."""
        total, changed = self.ledger.total, {name: change(self) for name, change in CHANGES.items()}
        return {name: None if plan is None else total - plan.ledger.total for name, plan in changed.items()}

    @property
    def verdict(self) -> str:
        """Whether it fits, and by how much; between nine tenths of the card and all of it nobody can tell."""
        total, room = self.ledger.total, self.room
        where = " on each of them" if self.shards > 1 else ""
        amounts, spare = f"{bytes_text(total)} of {bytes_text(room)}{where}", bytes_text(abs(room - total))
        if total > room:
            return f"{amounts}: it is {spare} too large."
        if self.fits(total):
            return f"{amounts}: it fits, with {spare} to spare."
        return f"{amounts}: too close to tell, with {spare} for all that is not counted."

    @property
    def sentence(self) -> str:
        """The biggest item, and the one change that saves the most."""
        ledger = self.ledger
        item = max(ITEMS, key=lambda name: getattr(ledger, name))
        size = getattr(ledger, item)
        share = math.floor(100 * size / ledger.total + 0.5)
        saved = {name: size for name, size in self.savings.items() if size}
        best = max(saved, key=saved.get, default=None)
        change = "None of the changes saves anything."
        if best is not None and saved[best] > 0:
            change = f"One change saves the most: {best}, −{bytes_text(saved[best])}."
        return f"The biggest item is {ITEMS[item][1]}: {bytes_text(size)}, {share}\u00a0% of the total. {change}"


CHANGES = {
    "checkpointing": lambda plan: None if plan.checkpointing else replace(plan, checkpointing=True),
    "8-bit Adam": lambda plan: replace(plan, optimizer="adamw-8bit") if plan.optimizer == "adamw" else None,
    "bf16-true": lambda plan: None if plan.recipe == "bf16-true" else replace(plan, recipe="bf16-true"),
    "LoRA": lambda plan: (
        replace(plan, method="lora") if plan.architecture.adaptable and plan.method == "full" else None
    ),
    "QLoRA": lambda plan: (
        replace(plan, method="qlora") if plan.architecture.adaptable and plan.method != "qlora" else None
    ),
    "sharding over 8": lambda plan: (
        None if plan.stage == 3 and plan.shards >= 8 else replace(plan, shards=max(plan.shards, 8), stage=3)
    ),
    "half the batch": lambda plan: replace(plan, batch=plan.batch // 2) if plan.batch > 1 else None,
}
COSTS = {  # of each change
    "checkpointing": "up to a third more products",
    "8-bit Adam": "coarser moments",
    "bf16-true": "small updates are rounded away",
    "LoRA": "only adapters are trained",
    "QLoRA": "LoRA, on weights of 4 bits",
    "sharding over 8": "up to seven more cards, and traffic",
    "half the batch": "smaller products, twice the steps",
}


def make_facts() -> dict:
    """Return everything that the page needs to compute and to name the bytes, as JSON values."""
    return {
        **training_facts(),
        "order": list(NAMED),  # the page's state is written with sorted keys
        "items": [[name, *words] for name, words in ITEMS.items()],
        "sizes": [[name, label] for name, label in SIZES.items()],
        "choices": {name: [[key, label] for key, label in row.items()] for name, row in choices().items()},
        "most_rank": MOST_RANK,
        "cards": {name: {"memory": list(card.memory), "device": card.device} for name, card in CARDS.items()},
        "costs": COSTS,
        "left_out": LEFT_OUT,
    }


def choices() -> dict[str, dict]:
    """Return what can be chosen of each trait, with its label."""
    from utils.training.recipes import RECIPES

    return {
        "recipe": {name: name for name in RECIPES},
        "optimizer": OPTIMIZERS,
        "attention": ATTENTIONS,
        "method": METHODS,
        "stage": STAGES,
        "card": {name: card.label for name, card in CARDS.items()},
    }
