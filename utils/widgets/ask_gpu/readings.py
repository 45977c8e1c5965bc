"""An answer in words: the twin of readings.js, and of the orders in orders.js."""

from collections.abc import Mapping, Sequence

from utils import formats
from utils.experiments.microscope.summation_tree import Node, predict_lost
from utils.formats import FORMATS
from utils.widgets.ask_gpu.functions import INPUTS_EACH
from utils.widgets.ask_gpu.rows import AnswerRow
from utils.widgets.shared.words.amounts import few_digits
from utils.widgets.shared.words.code_words import value_text


def _chain(places: Sequence[int]) -> Node:
    tree = Node((places[0], places[1]))
    for place in places[2:]:
        tree = Node((tree, place))
    return tree


def _pairwise(places: Sequence[int]) -> Node:
    parts: list = list(places)
    while len(parts) > 1:
        parts = [Node(tuple(parts[at : at + 2])) for at in range(0, len(parts), 2)]
    return parts[0]


def _halves(places: Sequence[int]) -> Node:
    parts: list = list(places)
    while len(parts) > 1:
        parts = [Node(pair) for pair in zip(parts[: len(parts) // 2], parts[len(parts) // 2 :], strict=True)]
    return parts[0]


# The tree of so many places, a power of two.
ORDERS = {
    "chain": lambda n: _chain(range(n)),
    "backward": lambda n: _chain(range(n)[::-1]),
    "neighbours": lambda n: _pairwise(range(n)),
    "halves": lambda n: _halves(range(n)),
}
ORDER_WORDS = {
    "chain": "one after another",
    "backward": "one after another, from the last",
    "neighbours": "neighbours first, then these pairs",
    "halves": "the halves first, place by place",
    "wide": "in an order not seen, as no 1 was lost",
}
MISSING = "not offered"
OPEN = "leaves it open"  # what IEEE 754 says of an order
ALL_NEAREST = f"the nearest float32 for all {INPUTS_EACH} inputs"


def pairs_of(n: int) -> list[tuple[int, int]]:
    """Return the pairs of places that a kernel asks for: place 0 with each other, then each with the last."""
    return [(0, j) for j in range(1, n)] + [(i, n - 1) for i in range(1, n - 1)]


def kept_ones(tree: Node, n: int) -> list[int]:
    """Return how many ones each pair of places keeps if the sum has this tree."""
    return [n - 2 - lost for lost in predict_lost(tree, pairs_of(n))]


def name_order(n: int, kept: Sequence[float]) -> str | None:
    """Return the name of the order in which each pair keeps so many ones; None where it is none of these."""
    if n & (n - 1) == 0:
        for name, make in ORDERS.items():
            if kept_ones(make(n), n) == list(kept):
                return name
    return "wide" if all(count == n - 2 for count in kept) else None


def _read_cases(reading: dict, answer: Sequence[int]) -> str:
    text = next((text for codes, text in reading["cases"] if codes == list(answer)), None)
    return text or _read_values(reading, answer)


def _read_values(reading: dict, answer: Sequence[int]) -> str:
    fmt = FORMATS[reading["format"]]
    return ", ".join(value_text(float(formats.decode(code & (2**fmt.bits - 1), fmt))) for code in answer)


def _read_order(_: dict, answer: Sequence[float]) -> str:
    name = name_order(int(answer[0]), answer[1:])
    return f"{answer[0]} numbers, {ORDER_WORDS[name] if name else 'another order'}"


def _read_distinct(_: dict, answer: Sequence[int]) -> str:
    count = len(set(answer))
    return f"{count} different sums in {len(answer)} runs" if count > 1 else f"the same sum in {len(answer)} runs"


def _read_error(_: dict, answer: Sequence[float]) -> str:
    ulps, share, others = answer
    if others == 0:
        return ALL_NEAREST
    percent, tried = f"{few_digits(100 * share)} % of the allowed", f"in {INPUTS_EACH} inputs"
    return f"errors up to {few_digits(ulps)} ulp {tried}, {percent}" if ulps else f"errors up to {percent} {tried}"


READERS = {
    "cases": _read_cases,
    "values": _read_values,
    "order": _read_order,
    "distinct": _read_distinct,
    "error": _read_error,
}


def read_answer(row: AnswerRow, answers: Mapping[str, Sequence[float]], missing: str = MISSING) -> str:
    """Return the answer to a row in words; `missing` where there is none."""
    answer = answers.get(row.name)
    return missing if answer is None else READERS[row.reading["kind"]](row.reading, answer)


def answer_of(row: AnswerRow, device: Mapping) -> str:
    """Return what a device of the table says to a row: its answer, or what stands in its place."""
    return read_answer(row, device["answers"], device["remarks"].get(row.name, device["missing"]))
