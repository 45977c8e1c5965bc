"""FormatWindow: recorded exponents of a training run, and the window of a format that is dragged over them."""

import html

import traitlets

from utils.formats import FORMATS, FloatFormat
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.plot.binades import (
    ALL,
    MOST_LOG2_SCALE,
    WINDOWS,
    check_choice,
    check_recorded,
    fates_text,
    first_kind,
    histogram_of,
)
from utils.widgets.shared.static_table import static_table


class FormatWindow(BookWidget):
    """Drag the window of a format over the histogram of a recorded run; its place is a scale by a power of two.

    `recorded`: the exponents of a watched run, `utils.training.watch.recorded(record)`. `kind`: one of its kinds, by
    default the activation gradients where it has them; `group`: one of its groups of layers that has this kind, or "all
    layers"; `step`: one of its steps, by default the last. `format`: a name in `WINDOWS`. `log2_scale`: the exponent of
    the scale, at most `MOST_LOG2_SCALE` either way. `logarithmic`: whether the shares are drawn on a logarithmic scale.
    All of them are read and set from Python while the page shows the widget; a drag is sent when it ends.

    Raises: ValueError, in one sentence, for a record that is none and for what it or the table of formats does not
    hold.
    """

    book_name = "format_window"

    recorded = traitlets.Dict().tag(sync=True)
    kind = traitlets.Unicode().tag(sync=True)
    group = traitlets.Unicode(ALL).tag(sync=True)
    step = traitlets.Int().tag(sync=True)
    format = traitlets.Unicode("float16").tag(sync=True)
    log2_scale = traitlets.Int(0).tag(sync=True)
    logarithmic = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self, recorded: dict, kind: str | None = None, group: str = ALL, format: str = "float16", *, step=None, **kwargs
    ):
        check_recorded(recorded)
        kind = first_kind(recorded) if kind is None else kind
        step = recorded["steps"][-1] if step is None else step
        super().__init__(recorded=recorded, kind=kind, group=group, step=step, format=format, **kwargs)
        check_choice(recorded, kind, group, step)

    @property
    def fmt(self) -> FloatFormat:
        """The format itself."""
        return FORMATS[self.format]

    @property
    def histogram(self) -> dict:
        """The histogram that is shown."""
        return histogram_of(self.recorded, self.kind, self.group, self.step)

    @property
    def sentence(self) -> str:
        """What the format makes of the values that are shown, in words: what the page says too."""
        return fates_text(self.histogram, self.fmt, self.log2_scale)

    @traitlets.validate("recorded")
    def _valid_recorded(self, proposal) -> dict:
        return check_recorded(proposal["value"])

    @traitlets.validate("format")
    def _valid_format(self, proposal) -> str:
        return one_of(proposal["value"], WINDOWS, "format")

    @traitlets.validate("log2_scale")
    def _valid_scale(self, proposal) -> int:
        if abs(proposal["value"]) > MOST_LOG2_SCALE:
            raise ValueError(
                f"log2_scale {proposal['value']} is not in -{MOST_LOG2_SCALE} to {MOST_LOG2_SCALE}; it is an exponent"
            )
        return proposal["value"]

    @traitlets.validate("kind", "group", "step")
    def _valid_choice(self, proposal):
        choice = {name: getattr(self, name) for name in ("kind", "group", "step")}
        if not self._cross_validation_lock:  # at the start all three come at once: __init__ looks at them together
            check_choice(self.recorded, **(choice | {proposal["trait"].name: proposal["value"]}))
        return proposal["value"]

    def __repr__(self) -> str:
        choice = f"{self.recorded.get('model', '')!r}, {self.kind!r}, {self.group!r}, {self.format!r}"
        return f"FormatWindow({choice}, step={self.step}, log2_scale={self.log2_scale})"

    def static_html(self) -> str:
        """Say what the format makes of each kind of values, for pages without JavaScript."""
        rows = [(kind, self._fate(kind)) for kind in self.recorded["kinds"]]
        return (
            f"<p>Here the window of a format is dragged over the exponents of a recorded run; it needs JavaScript. "
            f"{html.escape(f'{self.kind}, {self.group}, step {self.step}')}: {html.escape(self.sentence)}</p>"
            f"{static_table('mp-fw-static', (self.group, 'what they become'), rows)}"
        )

    def _fate(self, kind: str) -> str:
        """Say what becomes of a kind in the chosen group, as the page does; embeddings have no activations."""
        if self.group != ALL and self.group not in self.recorded["histograms"][kind]:
            return "not in these layers"
        return fates_text(histogram_of(self.recorded, kind, self.group, self.step), self.fmt, self.log2_scale)
