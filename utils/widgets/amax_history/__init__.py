"""AmaxHistory: delayed scaling over a recorded series of amaxes, step by step, and a spike that the reader puts in."""

import html
import math
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import traitlets

from utils.formats import FORMATS
from utils.rounding import quantize
from utils.scaling import DelayedScaling
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.static_table import static_table
from utils.widgets.shared.words.sizes import scale_text, share_text, size_text, with_commas

AMAX_FORMATS = ("float8_e4m3fn", "float8_e5m2")
CURRENT = "Current scaling would leave none unused and never saturate, but has to find each amax before it rounds."
MOST_AMAX = 2.0**100  # times the largest spike it is still a float32
LIMITS = {"history": (1, 1024), "margin": (0, 8), "spike": (-16, 16)}
BLOCK_NAME = re.compile(r".*\blayers?\.(\d+)\.")  # "model.layers.0.mlp.down_proj"


@lru_cache(maxsize=8)  # a sentence asks for them several times, and a reader goes through the steps of one run
def _scales(amaxes: tuple[np.float32, ...], fmt: str, history: int, margin: int, choose: str) -> np.ndarray:
    delayed, scales = DelayedScaling(FORMATS[fmt], history=history, margin=margin, choose=choose), []
    for amax in amaxes:
        scales.append(delayed.scale)
        delayed.update(amax)
    return np.array(scales, np.float32)


class AmaxHistory(BookWidget):
    """Replay delayed scaling over recorded amaxes; which steps saturate, and how much of the format stays unused.

    `series`: the largest |x| of a tensor in each step, by the tensor's name; `source`: in words, what was recorded, on
    what and when. `tensor`: the one that is shown. `format`: one of `AMAX_FORMATS`; `formats`: those that a reader who
    chooses a tensor gets with it, by its name. `history`, `margin`, `choose`: as in `utils.scaling.DelayedScaling`.
    `step`: the one that is looked at, counted from 1. `spike_step`: the amax of this step is multiplied by 2**`spike`;
    0 for none. All but `series`, `source` and `formats` are read and set from Python while the page shows it.

    Raises: ValueError, in one sentence, for what makes no sense.
    """

    book_name = "amax_history"

    series = traitlets.Dict().tag(sync=True)
    source = traitlets.Unicode().tag(sync=True)
    tensor = traitlets.Unicode().tag(sync=True)
    format = traitlets.Unicode("float8_e4m3fn").tag(sync=True)
    formats = traitlets.Dict().tag(sync=True)
    history = traitlets.Int(16).tag(sync=True)
    margin = traitlets.Int(0).tag(sync=True)
    choose = traitlets.Unicode("max").tag(sync=True)
    step = traitlets.Int(1).tag(sync=True)
    spike_step = traitlets.Int(0).tag(sync=True)
    spike = traitlets.Int(6).tag(sync=True)

    def __init__(self, series: dict, source: str, *, tensor: str | None = None, **kwargs):
        kept = check_series(series)
        super().__init__(series=kept, source=source, tensor=next(iter(kept)) if tensor is None else tensor, **kwargs)
        for name in ("step", "spike_step"):
            self._check_step(name, getattr(self, name))

    @classmethod
    def of_series(cls, recorded: dict, *, only: Sequence[str] | None = None, **kwargs) -> "AmaxHistory":
        """Make the widget of what `utils.experiments.amax_series.of_record(record)` gives; `only` keeps these kinds.

        Gradients come in E5M2, all others in E4M3. A series with an amax that was not finite is left out. Raises
        ValueError where none is left.
        """
        series, formats = {}, {}
        for run in recorded["series"]:
            if (only is None or run["kind"] in only) and None not in run["values"]:
                name = f"{run['kind']}, {BLOCK_NAME.sub(_layer, run['name'])}"
                series[name] = run["values"]
                formats[name] = AMAX_FORMATS[run["kind"] == "gradients"]
        if series:
            kwargs = {"formats": formats, "format": formats[kwargs.get("tensor", next(iter(series)))]} | kwargs
        words = "{model}, recipe {recipe}, on {data}; {device}, {date}".format(**recorded).replace(", local folder", "")
        return cls(series, f"Recorded: {words}. The scales are replayed.", **kwargs)

    @property
    def steps(self) -> int:
        """How many steps the series has."""
        return len(self.series[self.tensor])

    @property
    def amaxes(self) -> np.ndarray:
        """The amax of each step, with the spike: float32 [steps]."""
        amaxes = np.array(self.series[self.tensor], np.float32)
        if self.spike_step:
            amaxes[self.spike_step - 1] *= np.float32(2.0**self.spike)
        return amaxes

    @property
    def scales(self) -> np.ndarray:
        """The scale that delayed scaling uses in each step: float32 [steps]."""
        return np.array(_scales(tuple(self.amaxes), self.format, self.history, self.margin, self.choose))

    @property
    def products(self) -> np.ndarray:
        """What the amax of each step becomes, before it is rounded: float32 [steps], infinite beyond float32."""
        with np.errstate(over="ignore"):
            return self.amaxes * self.scales

    @property
    def saturated(self) -> np.ndarray:
        """Whether the amax of a step rounds past the format's largest value: bool [steps]."""
        return ~np.isfinite(quantize(self.products, FORMATS[self.format]))

    @property
    def lost(self) -> np.ndarray:
        """Whether the amax of a step, and so all of the tensor, rounds to zero: bool [steps]."""
        return (self.amaxes > 0) & (quantize(self.products, FORMATS[self.format]) == 0)

    @property
    def summary(self) -> str:
        """What delayed scaling did to all steps: what the page says too."""
        products, over, lost, top = self.products, self.saturated, self.lost, FORMATS[self.format].max
        count = _of_steps(int(over.sum()), self.steps)
        worst = f", and in step {int(np.argmax(products)) + 1} {kept_text(products.max(), top)}" if over.any() else ""
        fitting = [float(product) for product in products[~over & ~lost] if product > 0]
        unused = math.fsum(math.log2(top / product) for product in fitting) / len(fitting) if fitting else 0.0
        free = f"Where nothing saturates, {max(unused, 0.0):.1f} binades stay unused on average."
        return f"Delayed scaling: {count}{worst}. {_lost_text(lost)}{free} {CURRENT}"

    @property
    def verdict(self) -> str:
        """What delayed scaling does in the step that is looked at: what the page says too."""
        at, top = self.step - 1, FORMATS[self.format].max
        amax, scale = float(self.amaxes[at]), float(self.scales[at])
        product = float(self.products[at])
        told = f"Step {self.step}: {self._origin(at)} Here the amax is {size_text(amax)}, which times "
        told += f"{with_commas(scale_text(scale))} is {with_commas(size_text(product))}"
        if self.saturated[at]:
            return f"{told}, more than {top:,.0f}: it saturates, and {kept_text(product, top)}."
        if product == 0:
            return f"{told}."
        if self.lost[at]:
            return f"{told}. That rounds to 0, and so does everything else: the step is lost."
        if product > top:
            return f"{told}, a little past {top:,.0f}: it is rounded to that, not cut."
        unused = max(math.log2(top / product), 0.0)
        return f"{told}: it fits below {top:,.0f}, and {unused:.1f} binades stay unused."

    def _origin(self, at: int) -> str:
        usable = [i for i in range(at) if self.amaxes[i] > 0]
        if not usable:
            return "nothing is known yet, so the scale is 1."
        usable = usable[-1:] if self.choose == "most_recent" else usable[-self.history :]
        largest = size_text(float(self.amaxes[usable].max()))
        where = (
            f"step {usable[0] + 1}, {largest}"
            if len(usable) == 1
            else (f"the largest of steps {usable[0] + 1} to {usable[-1] + 1}, {largest}")
        )
        return f"the scale comes from {where}."

    def _check_step(self, name: str, step: int) -> None:
        least = 0 if name == "spike_step" else 1
        if not least <= step <= self.steps:
            raise ValueError(f"{name} {step} is not in {least} to {self.steps}, the steps of {self.tensor!r}")

    @traitlets.validate("series")
    def _valid_series(self, proposal) -> dict:
        return check_series(proposal["value"])

    @traitlets.validate("tensor")
    def _valid_tensor(self, proposal) -> str:
        return one_of(proposal["value"], self.series, "tensor")

    @traitlets.validate("formats")
    def _valid_formats(self, proposal) -> dict:
        for format in proposal["value"].values():
            if format not in AMAX_FORMATS:
                raise ValueError(f"formats has {format!r}, which is not one of {', '.join(AMAX_FORMATS)}")
        return proposal["value"]

    @traitlets.validate("format", "choose")
    def _valid_choice(self, proposal) -> str:
        name = proposal["trait"].name
        return one_of(proposal["value"], {"format": AMAX_FORMATS, "choose": ("max", "most_recent")}[name], name)

    @traitlets.validate("history", "margin", "spike")
    def _valid_number(self, proposal) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        least, most = LIMITS[name]
        if not least <= value <= most:
            raise ValueError(f"{name} {value} is not in {least} to {most}")
        return value

    @traitlets.validate("step", "spike_step")
    def _valid_step(self, proposal) -> int:
        if not self._cross_validation_lock:  # at the start all come at once: __init__ looks at them together
            self._check_step(proposal["trait"].name, proposal["value"])
        return proposal["value"]

    def __repr__(self) -> str:
        how = f"history={self.history}, margin={self.margin}, choose={self.choose!r}"
        return f"AmaxHistory({self.tensor!r}, {self.format!r}, {how}, step={self.step})"

    def static_html(self) -> str:
        """Say what delayed scaling does to the series by the length of its history, for pages without JavaScript."""
        rows = []
        for history in (1, 4, 16, 64):
            widget = AmaxHistory(
                self.series,
                self.source,
                tensor=self.tensor,
                format=self.format,
                history=history,
                margin=self.margin,
                spike_step=self.spike_step,
                spike=self.spike,
            )
            rows.append((str(history), widget.summary))
        return (
            f"<p>Here delayed scaling is replayed over {self.steps} recorded amaxes, with a spike to put in; that "
            f"needs JavaScript. {html.escape(self.tensor)}, {format_label(FORMATS[self.format])}, margin "
            f"{self.margin}:</p>{static_table('mp-ah-static', ('history', 'what happens'), rows)}"
            f"<p class='mp-static-note'>{html.escape(self.source)}</p>"
        )


def _layer(match: re.Match) -> str:
    return f"layer {match[1]}, "


def _of_steps(count: int, steps: int) -> str:
    if count > 1:
        return f"{count} of {steps} steps saturate"
    return f"one of {steps} steps saturates" if count else "no step saturates"


def _lost_text(lost: np.ndarray) -> str:
    where = np.flatnonzero(lost) + 1
    if len(where) > 1:
        return f"In {len(where)} steps everything becomes 0. "
    return f"In step {where[0]} everything becomes 0. " if len(where) else ""


def kept_text(product: float, top: float) -> str:
    """Say to which share of itself the largest value of a saturated step is cut."""
    return f"the largest value is cut to {share_text(top, float(product))} of itself"


def check_series(series: dict) -> dict[str, list[float]]:
    """Return the series as lists of float32 values, in the nine digits that tell these apart.

    Raises: ValueError, in one sentence, where one has no use here.
    """
    if not series:
        raise ValueError("series holds no tensor")
    kept = {name: [float(f"{np.float32(amax):.9g}") for amax in amaxes] for name, amaxes in series.items()}
    for name, amaxes in kept.items():
        for step, amax in enumerate(amaxes, 1):
            if not 0 <= amax <= MOST_AMAX:  # NaN neither
                raise ValueError(f"series {name!r}: the amax of step {step} is {amax}; take numbers of 0 to 2**100")
    lengths = sorted({len(amaxes) for amaxes in kept.values()})
    if len(lengths) > 1 or lengths[0] < 2:
        raise ValueError(
            f"series has {' and '.join(map(str, lengths))} steps; it needs 2 or more, as many for each tensor"
        )
    return kept
