"""From a card, a model and a task to a recipe and its expected memory.

    decision = decide("H100", "fine_tune", "LLaMA 7B", batch=8, length=2048)
    print(decision)
    decision.recipe, decision.taken, decision.total

A recipe is chosen for a card here and nowhere else: RecipePicker and DecisionTree both ask this module.
`utils.cost.cards` says what a card multiplies and what fits, and the bytes are those of `utils.cost.memory`, for one
card; 1 GB = 1e9 bytes.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

from utils.cost import architectures, memory, token_bytes
from utils.cost.cards import CARDS, EMULATED, GIGABYTE, Card, card_bytes, fits

TASKS = {"train": "train from scratch", "fine_tune": "fine-tune", "generate": "generate"}
MOST = 1_000_000  # of a batch and a length
MOST_PARAMETERS = 10**13
MOST_CARDS = 1024
TOKENS = 2_048  # of a text, where nothing else is asked for and the model reads so many
EIGHT = "8-bit Adam"
ADAPTERS = {"LoRA": "lora", "QLoRA": "qlora"}  # levers, and what `memory.METHODS` calls them
RANK = 16  # of the adapters, which are on every linear layer of the blocks
BITS = {"16-bit weights": 16, "8-bit weights": 8, "4-bit weights": 4.5}  # 4 and a 16-bit scale for each 32 of them


@dataclass(frozen=True)
class CardPlan:
    """What is to run, and how: all but the card.

    `method`: one of `memory.METHODS`; its adapters have the rank `RANK`. `bits` of a weight count for generating alone.
    """

    recipe: str
    optimizer: str
    batch: int
    length: int
    accumulate: int = 1
    checkpointing: bool = False
    shards: int = 1
    bits: float = 16
    method: str = "full"


@dataclass(frozen=True)
class PulledLever:
    """A lever that was pulled, and the bytes of one card after it."""

    lever: str
    total: int
    fits: bool


@dataclass(frozen=True)
class Decision:
    """What to do: a `plan`, and the levers `taken` in the order in which they were pulled.

    `bare`: the bytes before any lever. `items`: bytes by name. `cards`: over how many it has to be sharded with all of
    these levers, 0 where not even `MOST_CARDS` would do. `like`: the named model whose activations or cache are
    counted. `bandwidth`: in GB/s by the card's data sheet, None where the book has none. `tokens_per_second`: for
    generating, what this bandwidth allows at most; None without a bandwidth, and for training.
    """

    card: str
    task: str
    plan: CardPlan
    bare: int
    taken: tuple[PulledLever, ...]
    items: dict[str, int]
    room: int
    cards: int
    like: str
    bandwidth: float | None = None
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
        """The levers that hold in the plan: without recipes, and of bits and adapters the last."""
        held = {EIGHT: self.plan.optimizer == "adamw-8bit"}
        held |= {name: bits == self.plan.bits for name, bits in BITS.items()}
        held |= {name: method == self.plan.method for name, method in ADAPTERS.items()}
        held |= dict.fromkeys(suited(CARDS[self.card], self.task), False)
        return tuple(pulled.lever for pulled in self.taken if held.get(pulled.lever, True))

    def __str__(self) -> str:
        levers = "".join(f", {lever}" for lever in self.levers)
        amount = f"{self.total / GIGABYTE:.1f} of {self.room / GIGABYTE:.0f} GB"
        needs = f"it takes {self.cards} cards" if self.cards else f"not even on {MOST_CARDS:,} cards"
        return f"{self.recipe}{levers}: {amount}, " + ("it fits" if self.fits else needs)


def decide(
    card: str,
    task: str,
    model: str | int = "LLaMA 7B",
    *,
    optimizer: str = "adamw",
    batch: int = 1,
    length: int | None = None,
    memory_gb: float = 0,
    cards: int = 1,
) -> Decision:
    """Choose a recipe, and pull levers one after another until it fits, those that change the result least first.

    `card`: a name of `CARDS`; `memory_gb` of it, 0 for the least that it is sold with; `cards` of them at hand.
    `task`: one of `TASKS`. `model`: a name of `architectures.NAMED`, or a number of parameters, which is taken for the
    named model nearest in size: weights, adapters, gradients and moments scaled to that number, activations, logits
    and cache as they are. `optimizer`: one of `memory.OPTIMIZERS`. `batch` and `length`: texts and tokens of a step, on
    each card; for generating, texts at once and tokens in the cache. Without a length: `TOKENS`, or what the model
    reads at most.
    Raises: ValueError for a name that is not known, a number out of range, and a model that cannot generate.
    """
    _check(card, task, model, optimizer=optimizer, batch=batch, length=1 if length is None else length, cards=cards)
    like = nearest(model, task) if isinstance(model, int) else model
    length = min(TOKENS, architectures.NAMED[like].positions) if length is None else length
    room, ways = card_bytes(card, memory_gb), suited(CARDS[card], task)
    plan = CardPlan(ways[0], optimizer, batch, length)
    count = _generating if task == "generate" else _training
    levers = _levers(task, ways, cards, optimizer=optimizer, adaptable=architectures.NAMED[like].adaptable)
    items = bare = count(card, model, plan)
    taken: list[PulledLever] = []
    for lever, change in levers:
        if fits(sum(items.values()), room):
            break
        if changed := change(plan):
            plan, items = changed, count(card, model, changed)
            total = sum(items.values())
            taken.append(PulledLever(lever, total, fits(total, room)))
    needed, done = plan.shards, fits(sum(items.values()), room)
    while not done and needed:  # 2, 4, 8 ... cards, until it fits or there are too many
        needed = 2 * needed if 2 * needed <= MOST_CARDS else 0
        done = bool(needed) and fits(sum(count(card, model, replace(plan, shards=needed)).values()), room)
    roof = CARDS[card].roof(room / GIGABYTE)
    speed = None
    if task == "generate" and roof and done and needed == 1:
        # tokens a second = texts * (bytes a second) / (bytes that a step reads)
        speed = round(1e9 * roof.bandwidth * batch / sum(items.values()), 6)
    bandwidth = roof.bandwidth if roof else None
    return Decision(card, task, plan, sum(bare.values()), tuple(taken), items, room, needed, like, bandwidth, speed)


def suited(card: Card, task: str) -> list[str]:
    """Return the recipes that suit a card and a task, the best first."""
    bfloat16 = card.support["bfloat16"] != EMULATED
    if task == "generate":
        return ["bf16-true"] if bfloat16 else ["16-true"] if card.capability else ["32-true", "bf16-true"]
    if bfloat16:
        return ["bf16-mixed", "bf16-true"] if task == "fine_tune" else ["bf16-mixed"]
    return ["16-mixed"] if card.capability else ["32-true"]


def nearest(parameters: int, task: str) -> str:
    """Return the name of the model in `architectures.NAMED` that can do the task and is nearest in size, by ratio."""
    sizes = {name: sizes.parameters for name, sizes in architectures.NAMED.items() if _can(name, task)}
    return min(sizes, key=lambda name: max(parameters / sizes[name], sizes[name] / parameters))


def _can(model: str, task: str) -> bool:
    return task != "generate" or architectures.NAMED[model].family != "distilbert"


def _check(card: str, task: str, model: str | int, *, optimizer: str, **numbers: int) -> None:
    options = {"card": CARDS, "task": TASKS, "model": architectures.NAMED, "optimizer": memory.OPTIMIZERS}
    requested = {"card": card, "task": task, "model": model, "optimizer": optimizer}
    if isinstance(model, int):
        del requested["model"]
        if not 1 <= model <= MOST_PARAMETERS:
            raise ValueError(f"a model has 1 to {MOST_PARAMETERS:.0e} parameters, not {model}")
    for what, value in requested.items():
        if value not in options[what]:
            raise ValueError(f"{what} {value!r} is not one of {', '.join(options[what])}")
    for what, number in numbers.items():
        most = MOST_CARDS if what == "cards" else MOST
        if not 1 <= number <= most:
            raise ValueError(f"{what} {number} is not in 1 to {most:,}")
    if isinstance(model, str) and not _can(model, task):
        raise ValueError(f"{model} does not generate; take a GPT-2 or a LLaMA")


Lever = tuple[str, Callable[[CardPlan], CardPlan | None]]


def _levers(task: str, ways: list[str], cards: int, *, optimizer: str, adaptable: bool) -> list[Lever]:
    """Return the levers in the order in which they are pulled: first what changes no result, then what rounds.

    Last, to fine-tune, what trains adapters alone: in the best recipe again, and with moments as wide as asked for,
    since they are few.
    """
    mine = (f"sharding over {cards} cards", lambda plan: replace(plan, shards=cards) if cards > 1 else None)
    if task == "generate":
        stored = [(name, lambda plan, bits=bits: replace(plan, bits=bits)) for name, bits in BITS.items() if bits < 16]
        other = [(way, lambda plan, way=way: replace(plan, recipe=way)) for way in ways[1:]]
        return [*other, mine, *stored]
    eight = (EIGHT, lambda plan: replace(plan, optimizer="adamw-8bit") if plan.optimizer == "adamw" else None)
    beside = {"recipe": ways[0], "optimizer": optimizer}
    own = ADAPTERS.items() if task == "fine_tune" and adaptable else ()
    return [
        ("the batch in parts", lambda plan: replace(plan, accumulate=plan.batch) if plan.batch > 1 else None),
        ("checkpointing", lambda plan: replace(plan, checkpointing=True)),
        mine,
        eight,
        *((way, lambda plan, way=way: replace(plan, recipe=way)) for way in ways[1:]),
        *((name, lambda plan, method=method: replace(plan, **beside, method=method)) for name, method in own),
    ]


def _training(card: str, model: str | int, plan: CardPlan) -> dict[str, int]:
    like = nearest(model, "train") if isinstance(model, int) else model
    ledger = _predict(like, plan, CARDS[card].device)
    whole = architectures.NAMED[like].parameters
    parameters = model if isinstance(model, int) else whole
    of_weights = ("weights", "master", "gradients", "optimizer", "casts")
    scaled = {name: -(-getattr(ledger, name) * parameters // whole) for name in of_weights}
    return scaled | {"activations": ledger.activations - ledger.casts, "logits": ledger.logits}


@functools.lru_cache(maxsize=4096)
def _predict(model: str, plan: CardPlan, device: str) -> memory.Ledger:
    """Return the ledger of a plan; it is the same on all cards of a device, so a table of cards asks for few."""
    return memory.predict(
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
        device=device,
        method=plan.method,
        rank=RANK,
        cached=False,  # with `cache_enabled=False`, which changes no gradient here
    )


def _generating(card: str, model: str | int, plan: CardPlan) -> dict[str, int]:
    """Return the bytes of weights and cache; a weight that is stored in fewer bits is widened where it is used."""
    like = nearest(model, "generate") if isinstance(model, int) else model
    bits = 32 if plan.recipe == "32-true" and plan.bits == 16 else plan.bits
    parameters = model if isinstance(model, int) else architectures.NAMED[model].parameters
    weights = -(-parameters * round(2 * bits) // 16)  # half bits are counted, and rounded up
    cache = token_bytes.kv_bytes(like, tokens=plan.length, batch=plan.batch, bits=32 if bits == 32 else 16)
    return {name: -(-size // plan.shards) for name, size in (("weights", weights), ("cache", cache))}
