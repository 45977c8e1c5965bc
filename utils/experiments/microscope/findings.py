"""The findings of the microscope about how a matrix product adds, as sentences and as rows of a table."""

from collections.abc import Mapping
from dataclasses import dataclass

from utils.experiments.microscope.crafted_sums import Probe

UNDECIDED = "not decided"
WORDS = {
    "ties_to_even": "ties to even",
    "ties_away": "ties away from zero",
    "toward_zero": "toward zero",
    "toward_positive": "upward",
    "toward_negative": "downward",
}


@dataclass(frozen=True)
class Finding:
    """How a matrix product adds; None is what was not decided, and `unknown` says why, where there is a reason.

    `dtype`, `output`: of operands and result, by name. `shape`: M, N, K of the products that were asked for.
    `factor_bits`, `factor_rounding`: significant bits of an operand that are used, and how the others are dropped.
    `exact_products`: so are the products; `product_bits`: significant bits of the longest one that was exact;
    `product_rounding`: how longer ones are rounded before they are added.
    `precision`, `rounding`: significant bits of the total that products are added to, and a name in
    `utils.rounding.RULES`. `block`: products that are added to it at once. `exact_sums`: they are added exactly before
    the total is rounded; else each addend is cut first, `extra_bits` below the last place of the total; `by_factors`:
    and a product is aligned by the sum of its factors' exponents, not by its own; `carries`: and the total is not cut
    again when it grows past its largest addend.
    `pairwise`: neighbours are added, then neighbours of these sums. Otherwise `parts` totals are added in the end; each
    takes `run` neighbouring products, or they take turns (None). `outer_precision`, `outer_rounding`: of the additions
    of sums to sums. `order`: the places as they are added; which of the first two comes first nothing shows.
    `compensated`: addends that are lost one by one are not lost together. `overflow`, `smallest`: exponents of the
    first power of two past a total and of the smallest result; None: no product gets there. `past_overflow`: what
    stands there of whole numbers. `subnormal_factors`: they
    are not taken for 0. `everywhere`: all places of the result add alike. `confirmed`: how many random sums come out,
    to the last bit, as these parameters say, and of how many.
    """

    dtype: str
    output: str
    shape: tuple[int, int, int]
    factor_bits: int | None = None
    factor_rounding: str | None = None
    product_bits: int | None = None
    product_rounding: str | None = None
    exact_products: bool | None = None
    precision: int | None = None
    rounding: str | None = None
    block: int | None = None
    exact_sums: bool | None = None
    extra_bits: int | None = None
    by_factors: bool | None = None
    carries: bool | None = None
    pairwise: bool | None = None
    parts: int | None = None
    run: int | None = None
    outer_precision: int | None = None
    outer_rounding: str | None = None
    order: tuple[int, ...] | None = None
    compensated: bool | None = None
    overflow: int | None = None
    past_overflow: str | None = None
    smallest: int | None = None
    subnormal_factors: bool | None = None
    everywhere: bool | None = None
    confirmed: tuple[int, int] | None = None
    unknown: tuple[tuple[str, str], ...] = ()
    evidence: tuple[Probe, ...] = ()

    def __str__(self) -> str:
        """A sentence for each property that was found, and one for those that were not."""
        texts = self.texts()
        sentences = [f"{name}: {text}" for name, text in texts.items() if text != UNDECIDED]
        undecided = [name for name, text in texts.items() if text == UNDECIDED]
        if undecided:
            why = "; ".join(dict.fromkeys(reason for _, reason in self.unknown))
            sentences.append(f"{UNDECIDED}: {', '.join(undecided)}" + (f" ({why})" if why else ""))
        return f"{self.dtype} in, {self.output} out, {'x'.join(map(str, self.shape))}. " + ". ".join(sentences) + "."

    def texts(self) -> dict[str, str]:
        """Return every property in words, by its name."""
        return {
            "operands": self._describe_operands(),
            "products": _choose(self.exact_products, "exact", f"exact up to {self.product_bits} bits"),
            "total": self._describe_total(),
            "order": self._describe_order(),
            "at once": self._describe_block(),
            "totals together": "-" if self.parts == 1 or self.whole else self._describe_outer_total(),
            "many small addends": self._describe_small_addends(),
            "range": self._describe_range(),
            "subnormal operands": _choose(self.subnormal_factors, "kept", "taken for 0"),
            "places of the result": _choose(self.everywhere, "all alike", "not alike"),
            "random sums as predicted": self._count_confirmed(),
        }

    @property
    def whole(self) -> bool:
        """Whether it is about whole numbers, whose sums are not rounded."""
        return self.past_overflow is not None

    def _describe_total(self) -> str:
        return f"{self.precision} bits, exact" if self.whole else _describe_rounding(self.precision, self.rounding)

    def _describe_outer_total(self) -> str:
        return _describe_rounding(self.outer_precision, self.outer_rounding)

    def _describe_small_addends(self) -> str:
        return "-" if self.whole else _choose(self.compensated, "kept together: compensated", "lost as single ones are")

    def _count_confirmed(self) -> str:
        if self.confirmed is None:
            return "-" if self.whole else UNDECIDED
        return "{} of {}".format(*self.confirmed)

    def _describe_operands(self) -> str:
        if self.factor_bits is None:
            return UNDECIDED
        rule = f", the rest dropped {WORDS[self.factor_rounding]}" if self.factor_rounding else ""
        return f"{self.factor_bits} bits used{rule}"

    def _describe_order(self) -> str:
        if self.whole:
            return "any"
        if self.order is None:
            return UNDECIDED
        if self.pairwise:
            return "neighbours, then neighbours of these sums"
        if self.parts is None:
            return f"a tree of no plain kind, first {_list_first(self.order)}"
        is_sorted = self.order == tuple(sorted(self.order))
        text = "one after another" if is_sorted else f"in the order {_list_first(self.order)}"
        if self.parts > 1:
            text += f", {self.parts} totals" + (f" of {self.run} neighbours each" if self.run else " that take turns")
        return text

    def _describe_block(self) -> str:
        if self.whole:
            return "-"
        if self.block is None:
            return UNDECIDED
        if self.block == 1:
            return "1"
        if self.exact_sums is None:
            return f"{self.block}"
        if self.exact_sums:
            return f"{self.block}, added exactly"
        aligned = ", aligned by its factors' exponents" if self.by_factors else ""
        carries = ", carries kept" if self.carries else ""
        return f"{self.block}, each cut {_describe_cut(self.extra_bits)}{aligned}{carries}"

    def _describe_range(self) -> str:
        top = "no overflow within reach" if self.overflow is None else f"below 2^{self.overflow}"
        top += f", then {self.past_overflow}" if self.past_overflow else ""
        return top + ("" if self.smallest is None else f", results down to 2^{self.smallest}")


def _choose(claim: bool | None, yes: str, no: str) -> str:
    return UNDECIDED if claim is None else yes if claim else no


def _describe_rounding(precision: int | None, rounding: str | None) -> str:
    if precision is None:
        return UNDECIDED
    return f"{precision} bits, {WORDS[rounding] if rounding else 'rounding ' + UNDECIDED}"


def _describe_cut(bits: int | None) -> str:
    if bits is None:
        return f"at a place {UNDECIDED}"
    return "at the last place" if bits == 0 else f"{bits} bit{'s'[: bits > 1]} below the last place"


def _list_first(order: tuple[int, ...]) -> str:
    return ", ".join(map(str, order[:6])) + (", ..." if len(order) > 6 else "")


def to_rows(findings: Mapping[str, Finding]) -> list[tuple[str, ...]]:
    """Return a table of one row per property and one column per finding; the first row names the findings."""
    texts = [finding.texts() for finding in findings.values()]
    return [("", *findings), *((name, *(text[name] for text in texts)) for name in (texts[0] if texts else ()))]


def summarize(findings: Mapping[str, Finding]) -> list[tuple[str, ...]]:
    """Return a table of one row per finding, with the properties that differ most."""
    names = ("operands", "total", "order", "at once", "totals together", "random sums as predicted")
    rows = [("", *names)]
    for name, finding in findings.items():
        texts = finding.texts()
        rows.append((name, *(texts[column] for column in names)))
    return rows
