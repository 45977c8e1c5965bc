"""Trace each infinity or NaN of a step from the operation that made it to what it reached."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from utils.diagnostics.nan_sightings import BACKWARD, BETWEEN, UPDATE, Modules, Operations, Sighting, Snapshot

INPUT, WEIGHTS = "input", "weights"  # stages: what was not finite before the step did anything
INF, NAN = "inf", "nan"
# Operations that make no +inf of -inf, nor the other way round: where one has a new sign, it overflowed itself.
_KEEP_SIGNS = frozenset({"exp", "exp2", "expm1", "add", "sum", "mean", "cumsum", "logsumexp", "_to_copy"})


@dataclass(frozen=True)
class Values:
    """A tensor: its dtype by name, its shape, and its smallest and largest value; NaN in both where there is one."""

    dtype: str
    shape: tuple[int, ...]
    low: float
    high: float

    @property
    def kind(self) -> str:
        """Return "" where all values are finite, else "nan" or "inf"."""
        if math.isnan(self.low):
            return NAN
        return INF if math.isinf(self.low) or math.isinf(self.high) else ""

    @property
    def signs(self) -> set[str]:
        """Return which of "-inf" and "inf" there are; "nan" alone where there is one."""
        if self.kind == NAN:
            return {NAN}
        return {sign for sign, end in (("-inf", self.low), (INF, self.high)) if math.isinf(end)}

    def __str__(self) -> str:
        values = f"with {self.kind}" if self.kind else f"from {self.low:.4g} to {self.high:.4g}"
        return f"{self.dtype} {list(self.shape)} {values}"


@dataclass
class Chain:
    """An infinity or a NaN on its way through a step: its birth, and where an infinity became NaN."""

    birth: Sighting
    kind: str
    nan: Sighting | None = None
    echoes: int = 0
    absorbed: bool = False  # somebody made finite numbers of it
    arrived: bool = False  # in a result of the model, in a gradient or in a weight
    weights: list[str] = field(default_factory=list)
    gradients: list[str] = field(default_factory=list)

    @property
    def counts(self) -> bool:
        """Whether it does harm. A mask of -inf does none where a softmax makes 0 of it."""
        return bool(self.nan or self.arrived or self.kind == NAN) or not (self.absorbed or self.birth.writes)


class Trail:
    """All sightings of one step, with what the tensors held: `chains` are in the order of their births.

    `results`: what the model returned; `gradients` and `weights`: of each parameter when the step ended.
    """

    def __init__(
        self,
        ranges: list[tuple[float, float]],
        observer: Operations | Modules,
        *,
        results: list[Snapshot],
        gradients: dict[str, Snapshot],
        weights: dict[str, Snapshot],
    ):
        self._ranges, self._observer = ranges, observer
        self._of_storage: dict = {}  # what holds it -> Chain
        self.chains: list[Chain] = []
        for sighting in observer.sightings:
            self._follow(sighting)
        blind = isinstance(observer, Modules) and not any(chain.counts for chain in self.chains)
        if blind and (sighting := self._backward()):
            self._follow(sighting)
        for look in self.bad(results):
            self._arrive(look, "")
        for what, looks in (("gradients", gradients), ("weights", weights)):
            for name, look in looks.items():
                if self.bad([look]):
                    if not any(chain.counts for chain in self.chains):
                        self._begin(self._unseen(name, look, what), self.values(look).kind, [look])
                    self._arrive(look, what, name)

    def values(self, look: Snapshot) -> Values:
        """Return what a tensor held; zeros where it held no floats."""
        low, high = self._ranges[look.number] if look.number >= 0 else (0.0, 0.0)
        return Values(look.dtype, look.shape, low, high)

    def bad(self, looks: Iterable[Snapshot]) -> list[Snapshot]:
        """Return those that were not finite."""
        return [look for look in looks if self.values(look).kind]

    def _follow(self, sighting: Sighting) -> None:
        entered, left = self.bad(sighting.inputs), self.bad(sighting.made)
        carried = [self._of_storage[look.storage] for look in entered if look.storage in self._of_storage]
        if not left:
            self._absorb(sighting, carried)
            return
        if self._overflows(sighting, entered, left):
            for chain in carried:
                chain.absorbed = True
            self._begin(sighting, INF, left)
            return
        chain = self._carrier(sighting, entered, carried)
        made, had = ({self.values(look).kind for look in looks} for looks in (left, entered))
        if chain is None:
            if entered and isinstance(self._observer, Modules) and self._observer.parents.get(sighting.call):
                return  # the module around it ends later, and says whether it came from there
            self._begin(sighting._replace(stage=INPUT) if entered else sighting, NAN if NAN in made else INF, left)
            return
        chain.echoes += 1
        if NAN in made and NAN not in had and chain.kind == INF and chain.nan is None:
            chain.nan = sighting
        self._of_storage |= {look.storage: chain for look in left}

    def _overflows(self, sighting: Sighting, entered: list[Snapshot], left: list[Snapshot]) -> bool:
        """Whether an operation made an infinity of its own beside one that it was given, say in a mask of -inf."""
        had, made = ({sign for look in looks for sign in self.values(look).signs} for looks in (entered, left))
        return bool(had and made - had) and NAN not in had | made and sighting.operation in _KEEP_SIGNS

    def _absorb(self, sighting: Sighting, carried: list[Chain]) -> None:
        for chain in carried:
            chain.absorbed = True
        for look in sighting.made:  # a mask made of it, say by isinf: what is filled in there is its doing
            if look.number < 0 and carried and sighting.operation:
                self._of_storage[look.storage] = carried[0]

    def _carrier(self, sighting: Sighting, entered: list[Snapshot], carried: list[Chain]) -> Chain | None:
        """Return the chain that goes on in what came out; None where it was born here, or came from outside."""
        if carried:
            return min(carried, key=lambda chain: (not chain.nan, self.chains.index(chain)))
        if entered:
            return self.chains[0] if self.chains else None
        if isinstance(self._observer, Modules):  # what was born in a module inside is not born here
            call, parents = sighting.call, self._observer.parents
            return next((chain for chain in self.chains if _is_inside(chain.birth.call, call, parents)), None)
        chains = (self._of_storage[look.storage] for look in sighting.inputs if look.storage in self._of_storage)
        return next(chains, None) if sighting.writes else None

    def _begin(self, birth: Sighting, kind: str, left: list[Snapshot]) -> None:
        chain = next((begun for begun in self.chains if _alike(begun.birth, birth) and begun.kind == kind), None)
        if chain is None:
            chain = Chain(birth, kind)
            self.chains.append(chain)
        self._of_storage |= {look.storage: chain for look in left}

    def _arrive(self, look: Snapshot, what: str, name: str = "") -> None:
        counting = (chain for chain in self.chains if chain.counts)
        chain = self._of_storage.get(look.storage) or next(counting, self.chains[0] if self.chains else None)
        if chain:
            chain.arrived = True
            if what:
                getattr(chain, what).append(name)

    def _unseen(self, name: str, look: Snapshot, what: str) -> Sighting:
        """What no observer saw: hooks on modules do not look at the update, nor at what is done to gradients."""
        stage = UPDATE if what == "weights" else BETWEEN
        return Sighting(stage, name, 0, "", (), (look,))

    def _backward(self) -> Sighting | None:
        """Return the innermost module whose backward pass got finite gradients and gave others.

        The first gradient in time that is not finite tells. If it is one of a module's outputs, it was made after that
        module, by the one around it; if it is one of its inputs or parameters, by the module.
        """
        seen, parents = self._observer.gradients, self._observer.parents
        names = {sighting.call: sighting.module for sighting in self._observer.sightings}
        first = next((gradient for gradient in seen if self.bad([gradient.look])), None)
        if first is None:
            return None
        broken = {gradient.call for gradient in seen if gradient.of_output and self.bad([gradient.look])}
        if first.of_output:
            call = first.call
            while call in broken:
                call = parents.get(call, 0)
        elif first.call:
            same = {gradient.call for gradient in seen if gradient.look.number == first.look.number}
            call = _innermost(same, parents)
        else:
            call = max((call for call, name in names.items() if name == first.module), default=0)
        inputs = tuple(gradient.look for gradient in seen if gradient.call == call and gradient.of_output and call)
        return Sighting(BACKWARD, names.get(call, ""), call, "", inputs, (first.look,))


def _alike(first: Sighting, other: Sighting) -> bool:
    """Whether two births are one finding: an optimizer does the same to every parameter."""
    return (first.stage, first.module, first.operation) == (other.stage, other.module, other.operation)


def _is_inside(call: int, other: int, parents: dict[int, int]) -> bool:
    while call := parents.get(call, 0):
        if call == other:
            return True
    return False


def _innermost(calls: set[int], parents: dict[int, int]) -> int:
    """Return the one call inside all others; where several are, the one around these."""
    inner = calls - {parents.get(call, 0) for call in calls}
    if len(inner) == 1:
        return inner.pop()
    return _around(inner, parents)


def _around(calls: set[int], parents: dict[int, int]) -> int:
    ways = []
    for call in calls:
        way = []
        while call := parents.get(call, 0):
            way.append(call)
        ways.append(way)
    shared = set(ways[0]).intersection(*ways[1:])
    return max(shared, default=0)  # calls count up: the largest is the innermost
