"""DragOutlier: one outlier in a tensor of normal values, and what it costs all others under each format and scale."""

import traitlets

from utils.quantization.outliers import Damage
from utils.scaling import SCALINGS
from utils.widgets.drag_outlier.facts import CASES, COLUMNS, MOST, ROWS, loss
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.static_table import static_table

LABELS = {"float8_e4m3fn": "E4M3", "int8": "INT8", "float4_e2m1fn": "E2M1"}
STATIC_OUTLIERS = (0, 30, 300, 3000, 30_000, 300_000)
STATIC_CASES = (
    ("float8_e4m3fn", "tensor"),
    ("float8_e4m3fn", "1x128"),
    ("int8", "tensor"),
    ("int8", "1x128"),
    ("float4_e2m1fn", "tensor"),
    ("float4_e2m1fn", "nvfp4"),
)


class DragOutlier(BookWidget):
    """Drag one outlier through a tensor, and see what all other values lose under each format and scale.

    `outlier`: its size, 0 for none, at most 10**6. `format`, `scaling`: the case that is looked at, of
    `drag_outlier_facts.CASES`. The tensor is the same for everyone: 128 x 1,024 nearly normal values. All three are
    read and set from Python while the page shows the widget.

    Raises: ValueError for a case or a size that is not one of those.
    """

    book_name = "drag_outlier"

    outlier = traitlets.Float(30.0).tag(sync=True)
    format = traitlets.Unicode("int8").tag(sync=True)
    scaling = traitlets.Unicode("tensor").tag(sync=True)

    def __init__(self, outlier: float = 30.0, format: str = "int8", scaling: str = "tensor", **kwargs):
        super().__init__(outlier=outlier, format=format, scaling=scaling, **kwargs)
        self._check_case(format, scaling)

    @property
    def loss(self) -> Damage:
        """What the other values lose in the case that is looked at."""
        return loss(self.format, self.scaling, self.outlier)

    def _check_case(self, format: str, scaling: str) -> None:
        if scaling not in CASES[one_of(format, CASES, "format")]:
            raise ValueError(f"scaling {scaling!r} is not one that {format} has here: {', '.join(CASES[format])}")

    @traitlets.validate("outlier")
    def _valid_outlier(self, proposal) -> float:
        if not 0 <= proposal["value"] <= MOST:
            raise ValueError(f"outlier {proposal['value']} is not in 0 to {MOST:,.0f}")
        return proposal["value"]

    @traitlets.validate("format", "scaling")
    def _valid_case(self, proposal) -> str:
        if not self._cross_validation_lock:  # at the start both come at once: __init__ looks at them together
            choice = {name: getattr(self, name) for name in ("format", "scaling")}
            self._check_case(**(choice | {proposal["trait"].name: proposal["value"]}))
        return proposal["value"]

    def static_html(self) -> str:
        """Show the error of the rest for some outliers, for pages without JavaScript."""
        names = [f"{LABELS[format]}, {SCALINGS[scaling].label}" for format, scaling in STATIC_CASES]
        rows = []
        for outlier in STATIC_OUTLIERS:
            losses = [loss(format, scaling, outlier) for format, scaling in STATIC_CASES]
            cells = [f"{100 * loss.error:.3g} % ({100 * loss.zeros:.2g} %)" for loss in losses]
            rows.append((f"{outlier:,}" if outlier else "none", *cells))
        return (
            f"<p>One outlier among {ROWS} × {COLUMNS:,} normal values: the relative error of all others, and in "
            "brackets the share of them that becomes 0. Here the outlier can be dragged; that needs JavaScript.</p>"
            f"{static_table('mp-do-static', ('outlier', *names), rows)}"
        )
