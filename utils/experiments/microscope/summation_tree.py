"""In which order a sum is added, found from its results alone.

Put M in place i, -M in place j and a 1 everywhere else, M so large that beside it every 1 is lost. The ones that are
added before M and -M meet are gone, those that come later are counted: the number of lost ones tells how many places
lie below the addition where i and j meet. All such numbers together are a tree (Xie et al.,
"Revealing Floating-Point Accumulation Orders in Software/Hardware Implementations", arXiv 2411.00442, which names the
method FPRev).

A tensor core adds more than two numbers at once. Where it cuts each addend at one place, M drowns the ones of its own
addition too. Where a model adds a block exactly and rounds afterwards, they survive: such an addition is `wide`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Lost = Callable[[Sequence[tuple[int, int]]], Sequence[int]]  # pairs of places -> ones that were lost, for each pair


class NoTree(ValueError):
    """The numbers of lost ones belong to no tree: the sum changes its order, rounds nothing, or compensates."""


@dataclass(frozen=True)
class Node:
    """One addition: its addends are places (int) and results of other additions.

    `wide`: its addends are added exactly before the sum is rounded. Of two addends nobody can tell: False.
    """

    children: tuple["int | Node", ...]
    wide: bool = False

    @property
    def places(self) -> list[int]:
        """The places below, in the order of the addends."""
        found, waiting = [], [self]
        while waiting:  # a chain of 512 additions is deeper than Python's stack likes
            node = waiting.pop()
            if isinstance(node, int):
                found.append(node)
            else:
                waiting.extend(reversed(node.children))
        return found

    @property
    def kind(self) -> tuple[int, int, bool]:
        """How many addends are products, how many are sums, and whether it is wide."""
        products = sum(isinstance(child, int) for child in self.children)
        return products, len(self.children) - products, self.wide


@dataclass
class _Draft:
    """An addition while its tree is found."""

    children: list = field(default_factory=list)
    wide: bool = False


class _Task(NamedTuple):
    """Places that belong below one addition and are to be arranged, by what they lose together with the first of them.

    `apart`: what two places lose that stand in different addends of it; None where the places are one addend.
    `each`: the places of one addend, where it is known.
    """

    places: list[int]
    node: _Draft
    apart: int | None = None
    each: int | None = None


def find(lost: Lost, places: int, most: int = 20_000) -> Node:
    """Return the tree of a sum of so many places.

    `lost` gives for each pair (i, j) how many ones are gone; it is called with many pairs at once. Raises: NoTree where
    its answers contradict each other, or where more than `most` pairs would have to be asked for.
    """
    top = _Draft()
    tasks, asked = [_Task(list(range(places)), top)], 0
    while tasks:
        pairs = [(task.places[0], j) for task in tasks for j in task.places[1:]]
        asked += len(pairs)
        if asked > most:
            raise NoTree(f"more than {most} pairs of places would have to be asked for")
        answers = iter(lost(pairs))
        following: list[_Task] = []
        for task in tasks:
            row = {j: next(answers) for j in task.places[1:]}
            following += _path(task.places[0], row, task.node) if task.apart is None else _addends(task, row)
        tasks = following
    return _finished(top.children[0])


def _path(first: int, row: dict[int, int], parent: _Draft) -> list[_Task]:
    """Turn one row into the additions on the way up from its place; what hangs on them is still to be found."""
    current, size, tasks = first, 1, []
    for gone in sorted(set(row.values())):
        group = [j for j in row if row[j] == gone]
        node = _Draft([current])
        both = gone + 2 - size  # places of the other addend, unless this addition loses ones of a third one too
        if both == len(group):
            # A place that was added last hangs on the top: from the other end, a sum from behind is found in one row.
            tasks.append(_Task(group[::-1] if size == 1 else group, node, apart=gone))
        elif 1 <= both < len(group) and len(group) % both == 0:
            node.wide = True
            tasks.append(_Task(group, node, apart=2 * both - 2, each=both))
        else:
            raise NoTree(f"the ones that are lost with place {first} fit no order")
        current, size = node, size + len(group)
    parent.children.append(current)
    return tasks


def _addends(task: _Task, row: dict[int, int]) -> list[_Task]:
    """Take from the places those that stand in one addend with the first of them."""
    near = {j: gone for j, gone in row.items() if gone < task.apart}
    rest = [j for j, gone in row.items() if gone == task.apart]
    if len(near) + len(rest) < len(row) or task.each not in (None, len(near) + 1):
        raise NoTree(f"the ones that are lost with place {task.places[0]} fit no order")
    tasks = _path(task.places[0], near, task.node)
    return [*tasks, task._replace(places=rest)] if rest else tasks


def _finished(draft: "_Draft | int") -> "int | Node":
    """Freeze the drafts, the lowest first; of the addends of one addition sums stand before products."""
    if isinstance(draft, int):
        return draft
    order, waiting = [], [draft]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(child for child in node.children if not isinstance(child, int))
    done: dict[int, Node] = {}
    for node in reversed(order):
        sums = [done[id(child)] for child in node.children if not isinstance(child, int)]
        products = sorted(child for child in node.children if isinstance(child, int))
        done[id(node)] = Node((*sums, *products), node.wide)
    return done[id(draft)]


def nodes(tree: Node) -> list[tuple[Node, "Node | None"]]:
    """Return every addition with the one that takes its result (None at the top), the top first."""
    found, waiting = [], [(tree, None)]
    while waiting:
        node, above = waiting.pop()
        found.append((node, above))
        waiting.extend((child, node) for child in node.children if isinstance(child, Node))
    return found


def predicted(tree: Node, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Return what `lost` should answer for these pairs if the tree is right."""
    below = [
        (node, [{child} if isinstance(child, int) else set(child.places) for child in node.children])
        for node, _ in nodes(tree)
    ]
    found = []
    for i, j in pairs:
        for node, sets in below:
            sides = [next((n for n, places in enumerate(sets) if place in places), None) for place in (i, j)]
            if None not in sides and sides[0] != sides[1]:
                taken = [sets[side] for side in sides] if node.wide else sets
                found.append(sum(map(len, taken)) - 2)
                break
    return found


@dataclass(frozen=True)
class Layout:
    """What a regular tree looks like.

    `block`: products that are added at once, `parts`: totals that run beside or after each other and are added in the
    end, `run`: neighbouring places that one total takes before it is handed on (None where the parts take turns, or
    where there is one). `pairwise`: neighbours, then neighbours of these sums. `order`: the places as they are added.
    """

    block: int | None
    parts: int
    run: int | None
    pairwise: bool
    order: tuple[int, ...]


def layout(tree: Node) -> Layout | None:
    """Describe a tree of chains; None where it is none: no one number says how it adds."""
    order = tuple(tree.places)
    if _pairwise(tree):
        return Layout(1, 1, None, True, order)
    chains, joins, waiting = [], 0, [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, int):
            return None
        if (blocks := _chain(node)) is not None:
            chains.append((node.places, blocks))
        elif node.kind[0]:
            return None  # products and several sums in one addition
        else:
            joins += 1
            waiting.extend(reversed(node.children))
    common = {_block(blocks) for _, blocks in chains}
    runs = [sorted(places) for places, _ in chains]
    solid = len(chains) > 1 and all(places[-1] - places[0] == len(places) - 1 for places in runs)
    sizes = {len(places) for places in sorted(runs)[:-1]}
    run = sizes.pop() if solid and len(sizes) == 1 else None
    return Layout(common.pop() if len(common) == 1 else None, len(chains), run, False, order)


def _chain(node: Node) -> list[int] | None:
    """Return the products of each addition of a chain, the first addition first; None where sums meet."""
    blocks = []
    while True:
        products, sums, _ = node.kind
        if sums > 1 or not products:
            return None
        blocks.append(products)
        if not sums:
            return blocks[::-1]
        node = next(child for child in node.children if isinstance(child, Node))


def _block(blocks: list[int]) -> int | None:
    """The common number of products; the first addition of single ones has two, the last block may be short."""
    if blocks == [2]:
        return 1
    common = set(blocks[1:-1] or blocks[1:] or blocks)
    size = common.pop()
    first_fits = blocks[0] == size or (size == 1 and blocks[0] == 2)
    return size if not common and first_fits and blocks[-1] <= max(size, blocks[0]) else None


def _pairwise(tree: Node) -> bool:
    """Say whether the tree halves neighbours all the way down, an odd one out waiting."""
    places = tree.places
    if places != sorted(places) or len(places) < 4:
        return False
    for node, _ in nodes(tree):
        if len(node.children) != 2:
            return False
        left, right = (1 if isinstance(child, int) else len(child.places) for child in node.children)
        half = 1 << (left + right - 1).bit_length() - 1
        if left != half:
            return False
    return True
