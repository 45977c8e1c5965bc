"""A tree that answers how many ones are lost is found again from its answers."""

import random

import pytest

from utils.experiments.microscope.summation_tree import Layout, Node, NoTree, describe_layout, find_tree, predict_lost


def chain(order, block=1, wide=False):
    """Add the places in this order to one total, `block` at a time."""
    total, first = None, block if block > 1 else 2
    starts = [0, *range(first, len(order), block)]
    for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
        places = tuple(order[start:stop])
        total = Node(places if total is None else (total, *places), wide)
    return total


def halves(order):
    """Add neighbours, then neighbours of these sums; an odd one waits."""
    if len(order) == 1:
        return order[0]
    half = 1 << (len(order) - 1).bit_length() - 1
    return Node((halves(order[:half]), halves(order[half:])))


def same(node):
    """The tree without the order of addends, and without `wide` where two addends cannot show it."""
    if isinstance(node, int):
        return node
    return frozenset(map(same, node.children)), node.wide and len(node.children) > 2


PLACES = range(48)
SHUFFLED = random.Random(0).sample(PLACES, 48)
LANES = Node((Node((chain(PLACES[0::4]), chain(PLACES[1::4]))), Node((chain(PLACES[2::4]), chain(PLACES[3::4])))))
RUNS = Node((Node((chain(PLACES[:16], 8), chain(PLACES[16:32], 8))), chain(PLACES[32:], 8)))
TREES = {
    "one by one": (chain(PLACES), Layout(1, 1, None, False, tuple(PLACES))),
    "from behind": (chain(PLACES[::-1]), Layout(1, 1, None, False, (46, 47, *PLACES[45::-1]))),
    "blocks of 4": (chain(PLACES, 4), Layout(4, 1, None, False, tuple(PLACES))),
    "blocks of 5, the last one short": (chain(PLACES, 5), Layout(5, 1, None, False, tuple(PLACES))),
    "wide blocks of 4": (chain(PLACES, 4, wide=True), Layout(4, 1, None, False, tuple(PLACES))),
    "wide blocks of 2": (chain(PLACES, 2, wide=True), Layout(2, 1, None, False, tuple(PLACES))),
    "pairwise": (halves(PLACES), Layout(1, 1, None, True, tuple(PLACES))),
    "pairwise, an odd number": (halves(PLACES[:-5]), Layout(1, 1, None, True, tuple(PLACES[:-5]))),
    "4 totals take turns": (LANES, Layout(1, 4, None, False, tuple(LANES.places))),
    "runs of 16": (RUNS, Layout(8, 3, 16, False, tuple(PLACES))),
    "4 totals, all at once": (Node(tuple(chain(PLACES[n::4]) for n in range(4))), None),
    "shuffled": (chain(SHUFFLED), None),
    "shuffled blocks": (chain(SHUFFLED, 6), None),
}


@pytest.mark.parametrize(("tree", "plain"), TREES.values(), ids=TREES)
def test_a_tree_is_found_from_what_is_lost(tree, plain):
    asked = []

    def lost(pairs):
        asked.extend(pairs)
        return predict_lost(tree, pairs)

    found = find_tree(lost, len(tree.places))
    assert same(found) == same(tree)
    assert len(asked) < 500
    if plain is not None:
        assert describe_layout(found) == plain


def test_what_is_lost_is_counted_by_hand():
    tree = Node((Node((0, 1)), Node((2, 3))))
    assert predict_lost(tree, [(0, 1), (0, 2), (2, 3)]) == [0, 2, 0]
    assert predict_lost(Node((Node((0, 1)), 2, 3)), [(0, 2), (2, 3)]) == [2, 2]
    assert predict_lost(Node((Node((0, 1)), 2, 3), wide=True), [(0, 2), (2, 3)]) == [1, 0]


def test_a_regular_layout_needs_a_regular_tree():
    assert describe_layout(Node((Node((0, 1)), Node((2, 3)), 4))) is None
    assert describe_layout(Node((chain(range(5)), chain(range(5, 12, 1), 3)))).block is None


@pytest.mark.parametrize("answers", [lambda i, j: 1, lambda i, j: (i * j) % 5, lambda i, j: j % 2])
def test_answers_of_no_tree_are_refused(answers):
    with pytest.raises(NoTree, match="fit no order"):
        find_tree(lambda pairs: [answers(*pair) for pair in pairs], 8)


def test_too_many_questions_are_refused():
    tree = chain(SHUFFLED)
    with pytest.raises(NoTree, match="more than 40 pairs"):
        find_tree(lambda pairs: predict_lost(tree, pairs), 48, most=40)
