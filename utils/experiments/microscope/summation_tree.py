"""Find the order in which a sum is added from its results alone.

Put M in place i, -M in place j and a 1 everywhere else, with M so large that every 1 that is added to it is lost. The
ones that are added before M and -M meet are lost, those that come later are counted: so the number of lost ones tells
how many places lie below the addition where i and j meet. All these numbers together determine a tree (Xie et al.,
"Revealing Floating-Point Accumulation Orders in Software/Hardware Implementations", arXiv 2411.00442, which names the
method FPRev).

A tensor core adds more than two numbers at once. If it cuts all addends at one place, M also swamps the ones of its own
addition. If a model adds a block exactly and rounds afterwards, they survive: such an addition is `wide`.
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
        places, waiting = [], [self]
        while waiting:  # no recursion: a chain of 512 additions is too deep for Python's stack
            node = waiting.pop()
            if isinstance(node, int):
                places.append(node)
            else:
                waiting.extend(reversed(node.children))
        return places

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
    """Places below one addition that are to be arranged, by the ones that each loses together with the first of them.

    `lost_apart`: the ones lost by two places in different addends; None where the places are one addend.
    `addend_size`: how many places an addend has, where that is clear.
    """

    places: list[int]
    node: _Draft
    lost_apart: int | None = None
    addend_size: int | None = None


def find_tree(lost: Lost, places: int, most: int = 20_000) -> Node:
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
            following += (
                _climb(task.places[0], row, task.node) if task.lost_apart is None else _split_addends(task, row)
            )
        tasks = following
    return _freeze(top.children[0])


def _climb(first: int, row: dict[int, int], parent: _Draft) -> list[_Task]:
    """Turn one row into the additions on the way up from its place, and return the tasks that remain below them."""
    current, size, tasks = first, 1, []
    for lost in sorted(set(row.values())):
        group = [j for j in row if row[j] == lost]
        node = _Draft([current])
        other = lost + 2 - size  # places of the other addend, unless this addition also loses ones of a third addend
        if other == len(group):
            # Reversed: a sum that begins at its last place is then found in one row.
            tasks.append(_Task(group[::-1] if size == 1 else group, node, lost_apart=lost))
        elif 1 <= other < len(group) and len(group) % other == 0:
            node.wide = True
            tasks.append(_Task(group, node, lost_apart=2 * other - 2, addend_size=other))
        else:
            raise NoTree(f"the ones that are lost with place {first} fit no order")
        current, size = node, size + len(group)
    parent.children.append(current)
    return tasks


def _split_addends(task: _Task, row: dict[int, int]) -> list[_Task]:
    """Split off the places that are in one addend with the first of them."""
    near = {j: lost for j, lost in row.items() if lost < task.lost_apart}
    rest = [j for j, lost in row.items() if lost == task.lost_apart]
    if len(near) + len(rest) < len(row) or task.addend_size not in (None, len(near) + 1):
        raise NoTree(f"the ones that are lost with place {task.places[0]} fit no order")
    tasks = _climb(task.places[0], near, task.node)
    return [*tasks, task._replace(places=rest)] if rest else tasks


def _freeze(draft: "_Draft | int") -> "int | Node":
    """Turn the drafts into nodes, the lowest first; the addends of a node are its sums, then its products."""
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


def list_nodes(tree: Node) -> list[tuple[Node, "Node | None"]]:
    """Return every addition with the one that takes its result (None at the top), the top first."""
    pairs, waiting = [], [(tree, None)]
    while waiting:
        node, above = waiting.pop()
        pairs.append((node, above))
        waiting.extend((child, node) for child in node.children if isinstance(child, Node))
    return pairs


def predict_lost(tree: Node, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Return what `lost` should answer for these pairs if the tree is right."""
    below = [
        (node, [{child} if isinstance(child, int) else set(child.places) for child in node.children])
        for node, _ in list_nodes(tree)
    ]
    lost = []
    for i, j in pairs:
        for node, sets in below:
            sides = [places for place in (i, j) for places in sets if place in places]
            if len(sides) == 2 and sides[0] is not sides[1]:  # the addition where i and j meet
                swamped = sides if node.wide else sets
                lost.append(sum(map(len, swamped)) - 2)  # all their places but i and j, which hold M and -M
                break
    return lost


@dataclass(frozen=True)
class Layout:
    """The shape of a regular tree.

    `block`: products that are added at once, `parts`: totals that are added in the end, `run`: neighbouring places that
    one total takes (None where the parts take turns, or where there is one). `pairwise`: neighbours are added, then
    neighbours of these sums. `order`: the places as they are added.
    """

    block: int | None
    parts: int
    run: int | None
    pairwise: bool
    order: tuple[int, ...]


def describe_layout(tree: Node) -> Layout | None:
    """Describe a tree of chains; None for any other tree, which no few numbers describe."""
    order = tuple(tree.places)
    if _is_pairwise(tree):
        return Layout(1, 1, None, True, order)
    chains, joins, waiting = [], 0, [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, int):
            return None
        if (blocks := _read_chain(node)) is not None:
            chains.append((node.places, blocks))
        elif node.kind[0]:
            return None  # products and several sums in one addition
        else:
            joins += 1
            waiting.extend(reversed(node.children))
    common = {_find_block(blocks) for _, blocks in chains}
    runs = [sorted(places) for places, _ in chains]
    solid = len(chains) > 1 and all(places[-1] - places[0] == len(places) - 1 for places in runs)  # no gaps
    sizes = {len(places) for places in sorted(runs)[:-1]}
    run = sizes.pop() if solid and len(sizes) == 1 else None
    return Layout(common.pop() if len(common) == 1 else None, len(chains), run, False, order)


def _read_chain(node: Node) -> list[int] | None:
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


def _find_block(blocks: list[int]) -> int | None:
    """Return the common number of products; a chain of single products begins with two, the last block may be short."""
    if blocks == [2]:
        return 1
    common = set(blocks[1:-1] or blocks[1:] or blocks)
    size = common.pop()
    first_fits = blocks[0] == size or (size == 1 and blocks[0] == 2)
    return size if not common and first_fits and blocks[-1] <= max(size, blocks[0]) else None


def _is_pairwise(tree: Node) -> bool:
    """Say whether the tree halves neighbours all the way down, an odd one out waiting."""
    places = tree.places
    if places != sorted(places) or len(places) < 4:
        return False
    for node, _ in list_nodes(tree):
        if len(node.children) != 2:
            return False
        left, right = (1 if isinstance(child, int) else len(child.places) for child in node.children)
        half = 1 << (left + right - 1).bit_length() - 1  # the largest power of two below left + right
        if left != half:
            return False
    return True
