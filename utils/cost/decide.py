"""From a card, a model and a task to a recipe and its expected memory.

    decision = decide("H100", "fine_tune", "LLaMA 7B", batch=8, length=2048)
    print(decision)
    decision.recipe, decision.taken, decision.total

The rules are those of `utils.recipe_facts`, and the bytes those of `utils.cost.memory`. A tenth of the memory is left
for what a ledger does not count. Bytes of one card; 1 GB = 1e9 bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from utils.cost import architectures, memory, token_bytes
from utils.cost.roofline import ROOFS
from utils.recipe_facts import CARDS, GIGABYTE, TASKS, fits, room_of, suited

MOST = 1_000_000  # of a batch and a length
MOST_CARDS = 1024
ROOF = {  # of a card: the data sheet that tells its bandwidth
    "T4": "T4",
    "V100": "V100 SXM2",
    "A100": "A100 SXM 80 GB",
    "RTX 4090": "RTX 4090",
    "H100": "H100 SXM",
    "H200": "H200 SXM",
}
BITS = {"16-bit weights": 16, "8-bit weights": 8, "4-bit weights": 4.5}  # 4 and a 16-bit scale for each 32 of them


@dataclass(frozen=True)
class Plan:
    """What is to run, and how: all but the card. `bits` of a weight count for generating alone."""

    recipe: str
    optimizer: str
    batch: int
    length: int
    accumulate: int = 1
    checkpointing: bool = False
    shards: int = 1
    bits: float = 16


@dataclass(frozen=True)
class Taken:
    """A lever that was pulled, and the bytes of one card after it."""

    lever: str
    total: int
    fits: bool


@dataclass(frozen=True)
class Decision:
    """What to do: a `plan`, and the levers `taken` in the order in which they were pulled.

    `bare`: the bytes before any lever. `items`: bytes by name. `cards`: over how many it has to be sharded with all of
    these levers, 0 where not even `MOST_CARDS` would do. `tokens_per_second`: for generating, what the card's bandwidth
    allows at most; None where no data sheet is known, and for training.
    """

    card: str
    task: str
    plan: Plan
    bare: int
    taken: tuple[Taken, ...]
    items: dict[str, int]
    room: int
    cards: int
    tokens_per_second: float | None = None

    @property
    def recipe(self) -> str:
        """The name of the recipe, one of `utils.training.recipes.RECIPES`."""
        return self.plan.recipe

    @property
    def scaler(self) -> bool:
        """Whether it needs a loss scaler."""
        return self.recipe == "16-mixed"

    @property
    def total(self) -> int:
        """The bytes of one card."""
        return sum(self.items.values())

    @property
    def fits(self) -> bool:
        """Whether that leaves a tenth of the card's memory."""
        return fits(self.total, self.room)

    @property
    def levers(self) -> tuple[str, ...]:
        """The levers that hold in the plan: without the recipe, and of bits the last."""
        names = [one.lever for one in self.taken if one.lever != self.recipe]
        return tuple(name for name in names if name not in BITS or BITS[name] == self.plan.bits)

    def __str__(self) -> str:
        levers = "".join(f", {lever}" for lever in self.levers)
        amount = f"{self.total / GIGABYTE:.1f} of {self.room / GIGABYTE:.0f} GB"
        needs = f"it takes {self.cards} cards" if self.cards else f"not even on {MOST_CARDS:,} cards"
        return f"{self.recipe}{levers}: {amount}, " + ("it fits" if self.fits else needs)


def decide(
    card: str,
    task: str,
    model: str = "LLaMA 7B",
    *,
    optimizer: str = "adamw",
    batch: int = 1,
    length: int = 2_048,
    memory_gb: float = 0,
    cards: int = 1,
) -> Decision:
    """Choose a recipe, and pull levers one after another until it fits, those that change the result least first.

    `card`: a name of `CARDS`; `memory_gb` of it, 0 for the least that it is sold with; `cards` of them at hand.
    `task`: one of `TASKS`. `model`: a name of `architectures.NAMED`. `optimizer`: one of `memory.OPTIMIZERS`. `batch`
    and `length`: texts and tokens of a step, on each card; for generating, texts at once and tokens in the cache.
    Raises: ValueError for a name that is not known, a number out of range, and a model that cannot generate.
    """
    _check(card, task, model, optimizer=optimizer, batch=batch, length=length, cards=cards)
    room, ways = room_of(card, memory_gb), suited(CARDS[card], task)
    plan = Plan(ways[0], optimizer, batch, length)
    count = _generating if task == "generate" else _training
    levers = _levers(task, ways, cards)
    items = bare = count(card, model, plan)
    taken: list[Taken] = []
    for lever, change in levers:
        if fits(sum(items.values()), room):
            break
        if changed := change(plan):
            plan, items = changed, count(card, model, changed)
            total = sum(items.values())
            taken.append(Taken(lever, total, fits(total, room)))
    needed, done = plan.shards, fits(sum(items.values()), room)
    while not done and needed:
        needed = 2 * needed if 2 * needed <= MOST_CARDS else 0
        done = bool(needed) and fits(sum(count(card, model, replace(plan, shards=needed)).values()), room)
    speed = None
    if task == "generate" and card in ROOF and done and needed == 1:
        speed = round(1e9 * ROOFS[ROOF[card]].bandwidth * batch / sum(items.values()), 6)
    return Decision(card, task, plan, sum(bare.values()), tuple(taken), items, room, needed, speed)


def _check(card: str, task: str, model: str, *, optimizer: str, **numbers: int) -> None:
    known = {"card": CARDS, "task": TASKS, "model": architectures.NAMED, "optimizer": memory.OPTIMIZERS}
    given = {"card": card, "task": task, "model": model, "optimizer": optimizer}
    for what, value in given.items():
        if value not in known[what]:
            raise ValueError(f"{what} {value!r} is not one of {', '.join(known[what])}")
    for what, number in numbers.items():
        most = MOST_CARDS if what == "cards" else MOST
        if not 1 <= number <= most:
            raise ValueError(f"{what} {number} is not in 1 to {most:,}")
    if task == "generate" and architectures.NAMED[model].family == "distilbert":
        raise ValueError(f"{model} does not generate; take a GPT-2 or a LLaMA")


Lever = tuple[str, Callable[[Plan], Plan | None]]


def _levers(task: str, ways: list[str], cards: int) -> list[Lever]:
    """Return the levers in the order in which they are pulled: first what changes no result, then what rounds."""
    mine = (f"sharding over {cards} cards", lambda plan: replace(plan, shards=cards) if cards > 1 else None)
    if task == "generate":
        stored = [(name, lambda plan, bits=bits: replace(plan, bits=bits)) for name, bits in BITS.items() if bits < 16]
        other = [(way, lambda plan, way=way: replace(plan, recipe=way)) for way in ways[1:]]
        return [*other, mine, *stored]
    eight = ("8-bit Adam", lambda plan: replace(plan, optimizer="adamw-8bit") if plan.optimizer == "adamw" else None)
    return [
        ("the batch in parts", lambda plan: replace(plan, accumulate=plan.batch) if plan.batch > 1 else None),
        ("checkpointing", lambda plan: replace(plan, checkpointing=True)),
        mine,
        eight,
        *((way, lambda plan, way=way: replace(plan, recipe=way)) for way in ways[1:]),
    ]


def _training(card: str, model: str, plan: Plan) -> dict[str, int]:
    ledger = memory.predict(
        model,
        plan.recipe,
        optimizer=plan.optimizer,
        batch=plan.batch,
        length=plan.length,
        attention="sdpa",
        checkpointing=plan.checkpointing,
        accumulate=plan.accumulate,
        shards=plan.shards,
        stage=3 if plan.shards > 1 else 0,
        device=CARDS[card].device,
    )
    return {name: getattr(ledger, name) for name in ("weights", "master", "gradients", "optimizer")} | {
        "casts": ledger.casts,
        "activations": ledger.activations - ledger.casts,
    }


def _generating(card: str, model: str, plan: Plan) -> dict[str, int]:
    """Weights and cache; a weight that is stored in fewer bits is widened where it is used."""
    bits = 32 if plan.recipe == "32-true" and plan.bits == 16 else plan.bits
    parameters = sum(architectures.NAMED[model].weights())
    cache = token_bytes.kv_bytes(model, tokens=plan.length, batch=plan.batch, bits=32 if bits == 32 else 16)
    return {
        name: -(-size // plan.shards) for name, size in (("weights", round(parameters * bits / 8)), ("cache", cache))
    }
