"""ShapeToBound: from the shape of a product, its dtype and the device to what bounds it, and its predicted time."""

import html
from collections.abc import Iterable, Mapping

import traitlets

from utils.cost.cards import find_roof
from utils.cost.roofline import Gemm, Roof
from utils.records import Record
from utils.widgets.shape_to_bound.facts import (
    LABELS,
    MOST,
    PRODUCTS,
    STORIES,
    GemmCase,
    least_rows,
    make_facts,
)
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.cost.roof_words import device_label, time_text
from utils.widgets.shared.static_table import static_table
from utils.widgets.shared.words.amounts import few_digits


class ShapeToBound(BookWidget):
    """Set M, N, K, the dtype and the device; the page answers with the roof that bounds the product [M, K] @ [K, N].

    `m`, `n`, `k`: 1 to `MOST`. `dtype`: one of `LABELS` that the device has a peak for; a type that a new device lacks
    gives way to one that it has. `device`: a name of `utils.cost.cards.ROOFS`, or of one of the measured `roofs` that
    the page brings along. `recorded`: points, each with device, dtype, m, n, k and ms; a point stands beside the roof
    of its device's name, and beside the data sheet that `sheets` names for its device. The first five are read and set
    from Python while the page shows the widget; `case` holds them, with what is said of them.

    Raises: ValueError for a name or a number that is not one of those.
    """

    book_name = "shape_to_bound"

    m = traitlets.Int(1).tag(sync=True)
    n = traitlets.Int(4096).tag(sync=True)
    k = traitlets.Int(4096).tag(sync=True)
    dtype = traitlets.Unicode("bfloat16").tag(sync=True)
    device = traitlets.Unicode("H100 SXM").tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        *,
        roofs: Iterable[Roof] = (),
        recorded: Iterable[Mapping] = (),
        sheets: Mapping[str, str] | None = None,
        **kwargs,
    ):
        super().__init__(facts=make_facts(roofs, recorded, sheets or {}), **kwargs)
        self._check_dtype(kwargs.get("dtype", self.dtype))  # by now another type may have taken its place

    @classmethod
    def of_records(cls, records: Iterable[Record], **kwargs) -> "ShapeToBound":
        """Make a widget with the roofs and the points of records of `gemm_sweep`; of one device the latest.

        A product that was measured as one of a batch has its share of the time.
        """
        from utils.experiments import gemm_sweep

        latest = {record.device["name"]: record for record in sorted(records, key=lambda record: record.date)}
        points = [
            {"device": device, "dtype": point.dtype, "m": point.m, "n": point.n, "k": point.k}
            | {"ms": float(f"{point.timing.median / point.batch:.4g}")}
            for device, record in latest.items()
            for point in gemm_sweep.of_record(record).of()
        ]
        sheets = {device: sheet.name for device in latest if (sheet := find_roof(device))}
        roofs = [gemm_sweep.make_roof(record) for record in latest.values()]
        return cls(roofs=roofs, recorded=points, sheets=sheets, **kwargs)

    @property
    def roof(self) -> Roof:
        """The roof of the device."""
        return self._roofs()[self.device]

    @property
    def case(self) -> GemmCase:
        """What the widget shows now, with its sentences."""
        return GemmCase(Gemm(self.m, self.n, self.k), self.dtype, self.roof, recorded=self._recorded())

    def _roofs(self) -> dict[str, Roof]:
        return {row["name"]: Roof(**row) for row in self.facts["roofs"]}

    def _recorded(self) -> tuple[str, float] | None:
        for device, types in sorted(self.facts["recorded"].items()):
            if self.device in (device, self.facts["sheets"].get(device)):
                for m, n, k, ms in types.get(self.dtype, ()):
                    if (m, n, k) == (self.m, self.n, self.k):
                        return device, ms
        return None

    def _check_dtype(self, dtype: str) -> None:
        if dtype not in self.roof.peaks:
            raise ValueError(f"dtype {dtype!r} is not one of {', '.join(self.roof.peaks)}, the types of {self.device}")

    @traitlets.validate("m", "n", "k")
    def _valid_size(self, proposal) -> int:
        if not 1 <= proposal["value"] <= MOST:
            raise ValueError(f"{proposal['trait'].name} {proposal['value']} is not in 1 to {MOST:,}")
        return proposal["value"]

    @traitlets.validate("device")
    def _valid_device(self, proposal) -> str:
        return one_of(proposal["value"], self._roofs(), "device")

    @traitlets.validate("dtype")
    def _valid_dtype(self, proposal) -> str:
        self._check_dtype(proposal["value"])
        return proposal["value"]

    @traitlets.observe("device")
    def _take_a_type_that_the_device_has(self, change) -> None:
        if self.dtype not in self.roof.peaks:
            self.dtype = nearest_dtype(self.dtype, self.roof.peaks)

    def __repr__(self) -> str:
        case = self.case
        return (
            f"ShapeToBound({case.gemm}, {self.dtype!r}, {self.device!r}: {case.bound}, {few_digits(1e3 * case.ms)} µs)"
        )

    def static_html(self) -> str:
        """Show the answer in words, and well-known products in a table, for pages without JavaScript."""
        case = self.case
        what = f"{case.gemm} (M × N × K) in {LABELS[self.dtype]} on {device_label(case.roof)}"
        sentences = " ".join(filter(None, (case.verdict, case.prediction, case.record, case.rows, case.change)))
        source = html.escape(f"The roof: {case.roof.source}. {self.facts['left_out']}")
        return (
            f"<p>{html.escape(f'{what}. {sentences}')} Other shapes, types and devices can be tried here; that needs"
            f" JavaScript.</p>{self._type_table()}{self._product_table()}"
            f"<p class='mp-static-note'>{source}</p>"
        )

    def _type_table(self) -> str:
        rows = []
        for dtype in filter(self.roof.peaks.__contains__, LABELS):
            case = GemmCase(self.case.gemm, dtype, self.roof)
            numbers = (few_digits(case.intensity), few_digits(self.roof.ridge(dtype)))
            rows.append((LABELS[dtype], *numbers, case.bound, time_text(case.ms)))
        heads = ("this product in", "operations per byte", "ridge", "bound by", "predicted")
        return static_table("mp-sb-static", heads, rows)

    def _product_table(self) -> str:
        products = {f"{group}: {label}": gemm for group, row in PRODUCTS.items() for label, gemm in row.items()}
        rows = []
        for label, gemm in (STORIES | products).items():
            case = GemmCase(gemm, self.dtype, self.roof)
            least = least_rows(gemm.n, gemm.k, self.dtype, self.roof)
            rows.append((label, str(gemm), case.bound, time_text(case.ms), "no M" if least is None else f"{least:,}"))
        heads = (f"in {LABELS[self.dtype]}", "M × N × K", "bound by", "predicted", "bound by compute from M =")
        return static_table("mp-sb-static", heads, rows)


def nearest_dtype(dtype: str, peaks: Mapping[str, float]) -> str:
    """Return the type of a device that stands nearest before `dtype` in the order of `LABELS`, else its first one."""
    order = list(LABELS)
    before = [name for name in order[: order.index(dtype)] if name in peaks]
    return before[-1] if before else next(name for name in order if name in peaks)
