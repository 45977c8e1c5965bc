"""ScaleExplorer: the values of a tensor, a format, and the scale between them, moved by powers of two."""

import html
from collections.abc import Mapping

import numpy as np
import traitlets

from utils.formats import FORMATS, FloatFormat
from utils.scaling import scale_from_amax
from utils.widgets.scale_explorer.facts import (
    MOST_LOG2_SCALE,
    MOST_MARGIN,
    RULES,
    SCALED_FORMATS,
    Carried,
    carry,
    curve_range,
    db_text,
    made_tensors,
    number_in_short,
    sampled,
    sentence,
)
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.static_table import static_table

MADE = "The values are made, with a seed: they have the sizes that training has."


class ScaleExplorer(BookWidget):
    """Move the scale of a tensor in a narrow format: what saturates, what becomes zero, and what the error is.

    `tensors`: values by name, arrays or torch tensors of finite numbers, of which at most 512 are kept, evenly drawn
    and with the largest; by default four made ones. `tensor`: one of these names. `format`: a name in `SCALED_FORMATS`.
    `rule`: where the scale comes from: "exact" (fmt.max / amax), "power_of_two" (that, cut to a power of two), both by
    `utils.scaling.scale_from_amax` with `margin`, or "hand": 2**`log2_scale`. `saturate`: whether what is too large
    becomes the largest value. `source`: where the values come from, a sentence. All of them are read and set from
    Python while the page shows the widget; a drag is sent when it ends.

    Raises: ValueError for values that are not finite or all zero, and for a choice that there is not.
    """

    book_name = "scale_explorer"

    tensors = traitlets.Dict().tag(sync=True)
    tensor = traitlets.Unicode().tag(sync=True)
    format = traitlets.Unicode("float8_e4m3fn").tag(sync=True)
    rule = traitlets.Unicode("exact").tag(sync=True)
    log2_scale = traitlets.Int(0).tag(sync=True)
    margin = traitlets.Int(0).tag(sync=True)
    saturate = traitlets.Bool(True).tag(sync=True)
    source = traitlets.Unicode(MADE).tag(sync=True)

    def __init__(self, tensors: Mapping | None = None, tensor: str | None = None, format="float8_e4m3fn", **kwargs):
        shown = made_tensors() if tensors is None else tensors
        if not shown:
            raise ValueError("tensors is empty: name at least one, like {'weights': model.weight}")
        if tensors is not None:
            kwargs = {"source": ""} | kwargs
        tensor = next(iter(shown)) if tensor is None else tensor
        held = {name: sampled(values) for name, values in shown.items()}
        super().__init__(tensors=held, tensor=tensor, format=format, **kwargs)
        one_of(self.tensor, self.tensors, "tensor")

    @property
    def fmt(self) -> FloatFormat:
        """The format itself."""
        return FORMATS[self.format]

    @property
    def values(self) -> np.ndarray:
        """The values that are shown, float32."""
        return np.array(self.tensors[self.tensor], np.float32)

    @property
    def scale(self) -> np.float32:
        """The scale that the values are multiplied by, float32."""
        if self.rule == "hand":
            return np.float32(2.0**self.log2_scale)
        amax = np.abs(self.values).max()
        return np.float32(scale_from_amax(amax, self.fmt, margin=self.margin, power_of_two=self.rule == "power_of_two"))

    @property
    def carried(self) -> Carried:
        """The values scaled, rounded and taken back."""
        return carry(self.values, self.fmt, self.scale, saturate=self.saturate)

    @property
    def sentence(self) -> str:
        """Where amax lands, what becomes of the values and the error, in words: what the page says too."""
        return sentence(self.carried, saturate=self.saturate)

    @property
    def curve(self) -> dict[int, float]:
        """SQNR in dB by the exponent of the scale, for the powers of two that the page draws."""
        x = self.values
        scales = curve_range(float(np.abs(x).max()), self.fmt)
        return {k: carry(x, self.fmt, 2.0**k, saturate=self.saturate).db for k in scales}

    @traitlets.validate("tensors")
    def _valid_tensors(self, proposal) -> dict:
        return {name: sampled(values) for name, values in proposal["value"].items()}

    @traitlets.validate("tensor")
    def _valid_tensor(self, proposal) -> str:
        if not self._cross_validation_lock:  # at the start it comes with the tensors: __init__ looks at it
            one_of(proposal["value"], self.tensors, "tensor")
        return proposal["value"]

    @traitlets.validate("format")
    def _valid_format(self, proposal) -> str:
        return one_of(proposal["value"], SCALED_FORMATS, "format")

    @traitlets.validate("rule")
    def _valid_rule(self, proposal) -> str:
        return one_of(proposal["value"], RULES, "rule")

    @traitlets.validate("log2_scale")
    def _valid_scale(self, proposal) -> int:
        if abs(proposal["value"]) > MOST_LOG2_SCALE:
            raise ValueError(
                f"log2_scale {proposal['value']} is not in -{MOST_LOG2_SCALE} to {MOST_LOG2_SCALE}; it is an exponent"
            )
        return proposal["value"]

    @traitlets.validate("margin")
    def _valid_margin(self, proposal) -> int:
        if not 0 <= proposal["value"] <= MOST_MARGIN:
            raise ValueError(
                f"margin {proposal['value']} is not in 0 to {MOST_MARGIN}; the scale is divided by 2**margin"
            )
        return proposal["value"]

    def __repr__(self) -> str:
        return f"ScaleExplorer({self.tensor!r}, {self.sentence!r})"

    def static_html(self) -> str:
        """Say what the scale does, and give the error by format and by scale, for pages without JavaScript."""
        rows = map(self._row, ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"))
        heads = ("format", "fmt.max / amax", "SQNR with it", "SQNR with scale 1")
        source = f"<p class='mp-static-note'>{html.escape(self.source)}</p>" if self.source else ""
        return (
            f"<p>Here the scale of {html.escape(self.tensor)} can be moved; that needs JavaScript. "
            f"{html.escape(self.sentence)}</p>{static_table('mp-se-static', heads, rows)}{source}"
        )

    def _row(self, name: str) -> tuple[str, ...]:
        fmt, x = FORMATS[name], self.values
        scale = np.float32(scale_from_amax(np.abs(x).max(), fmt))
        errors = [db_text(carry(x, fmt, factor).db) for factor in (scale, 1)]
        return format_label(fmt), number_in_short(float(scale)), *errors
