"""ScaleCockpit: recorded gradients under a loss scale, and a dynamic loss scaler replayed over their largest."""

import html
import math

import numpy as np
import traitlets

from utils.formats import FLOAT16
from utils.loss_scaling import next_scale
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.plot.binades import ALL, check_choice, check_recorded, fates_text, first_kind, histogram_of
from utils.widgets.shared.static_table import static_table
from utils.widgets.shared.words.sizes import power_text, scale_text, size_text

MOST_LOG2_SCALE = 32
BOUND = 65520  # half an ulp beyond float16's largest value: from here on a magnitude overflows
SETTINGS = ("init_scale", "growth_interval", "growth_factor", "backoff_factor")


class ScaleCockpit(BookWidget):
    """Set the loss scale over recorded gradients, and replay a dynamic loss scaler over the largest of each step.

    `recorded`: the exponents of a watched run, `utils.training.watch.recorded(record)`; its kinds that are gradients
    are kept. `trace`: what a scaler did in a run, {"init": 65536, "growth_interval": 50, "steps": n, "changes": [[step,
    scale after it], ...], "skipped": [steps]}, steps counted from 1, or None. `amaxes`: the largest |gradient| of each
    step, not scaled, or None; a value that is not finite, or None in its place, is a step that is skipped at any scale.
    `kind`, `group`: as in FormatWindow. `step`: the step that is looked at, of the trace or the list; the histogram is
    that of the nearest watched one. `log2_scale`: the exponent of the loss scale, or None: the scaler's own at this
    step. `init_scale`, `growth_interval`, `growth_factor`, `backoff_factor`: of the replayed scaler, by default those
    of the trace, else those of `torch.amp.GradScaler`; scales and factors are powers of two. All are read and set from
    Python while the page shows it.

    Raises: ValueError, in one sentence, for what makes no sense.
    """

    book_name = "scale_cockpit"

    recorded = traitlets.Dict().tag(sync=True)
    trace = traitlets.Dict(allow_none=True).tag(sync=True)
    amaxes = traitlets.List(allow_none=True).tag(sync=True)
    kind = traitlets.Unicode().tag(sync=True)
    group = traitlets.Unicode(ALL).tag(sync=True)
    step = traitlets.Int().tag(sync=True)
    log2_scale = traitlets.Int(None, allow_none=True).tag(sync=True)
    init_scale = traitlets.Float(65536.0).tag(sync=True)
    growth_interval = traitlets.Int(2000).tag(sync=True)
    growth_factor = traitlets.Float(2.0).tag(sync=True)
    backoff_factor = traitlets.Float(0.5).tag(sync=True)

    def __init__(
        self, recorded: dict, trace: dict | None = None, *, amaxes=None, kind=None, group=ALL, step=None, **kwargs
    ):
        recorded = _gradients_of(check_recorded(recorded))
        if trace is not None:
            check_trace(trace)
            kwargs = {"init_scale": trace["init"], "growth_interval": trace["growth_interval"]} | kwargs
        kind = first_kind(recorded) if kind is None else kind
        step = min(recorded["steps"][-1], _last_step(recorded, trace, amaxes)) if step is None else step
        state = {"recorded": recorded, "trace": trace, "amaxes": amaxes, "kind": kind, "group": group, "step": step}
        super().__init__(**state, **kwargs)
        if trace and self.amaxes and len(self.amaxes) != trace["steps"]:
            raise ValueError(f"amaxes has {len(self.amaxes)} steps, the trace {trace['steps']}; they are of one run")
        self._check_choice(kind, group, step)

    @property
    def watched_step(self) -> int:
        """The watched step that is nearest to `step`."""
        return min(self.recorded["steps"], key=lambda at: abs(at - self.step))

    @property
    def histogram(self) -> dict:
        """The histogram that is shown, without the loss scale."""
        return histogram_of(self.recorded, self.kind, self.group, self.watched_step)

    @property
    def simulated(self) -> tuple[list[float], list[int]] | None:
        """The scales that the replayed scaler uses, one for each step, and the steps that it skips."""
        return None if self.amaxes is None else replay(self.amaxes, **{name: getattr(self, name) for name in SETTINGS})

    @property
    def scaler_scale(self) -> float | None:
        """The scale of the replayed scaler at `step`, or of the trace where there is no list of the largest."""
        if self.amaxes is not None:
            return self.simulated[0][self.step - 1]
        return None if self.trace is None else traced_scales(self.trace)[self.step - 1]

    @property
    def scale(self) -> float:
        """The loss scale that is looked at."""
        if self.log2_scale is not None:
            return 2.0**self.log2_scale
        return 1.0 if self.scaler_scale is None else self.scaler_scale

    @property
    def sentence(self) -> str:
        """What float16 makes of the gradients that are shown, at the power of two nearest to the scale."""
        power = round(math.log2(self.scale)) if self.scale > 0 else 0
        return fates_text(self.histogram, FLOAT16, min(max(power, 0), MOST_LOG2_SCALE))

    @property
    def largest(self) -> float | None:
        """The largest gradient known of `step`; None if one is not finite."""
        listed = self.amaxes[self.step - 1] if self.amaxes else 0.0
        if listed is None or (self.amaxes and self.watched_step != self.step):
            return listed
        at = self.recorded["steps"].index(self.watched_step)
        seen = [steps[at] for groups in self.recorded["histograms"].values() for steps in groups.values()]
        if self.watched_step == self.step and any(counts["infinite"] + counts["nan"] for counts in seen):
            return None
        return max(listed, *(counts["amax"] for counts in seen))

    @property
    def verdict(self) -> str:
        """Whether the step would be skipped, in words: what the page says too."""
        amax = self.largest
        if amax is None:
            return f"Step {self.step} would be skipped: a gradient was infinite or NaN when it was recorded."
        product = amax * self.scale
        product_text = (
            f"the largest of all gradients, {size_text(amax)}, times {scale_text(self.scale)}"
            f" is {size_text(product, 3 if product < 10000 else 5)}"
        )
        if product >= BOUND:
            return f"Step {self.step} would be skipped: {product_text}. It overflows, and one overflow is enough."
        return f"Step {self.step} is taken: {product_text}. It fits below {BOUND}."

    def _check_choice(self, kind: str, group: str, step: int) -> None:
        check_choice(self.recorded, kind, group, self.recorded["steps"][0])
        last = _last_step(self.recorded, self.trace, self.amaxes)
        if not 1 <= step <= last:
            raise ValueError(f"step {step} is not in 1 to {last}, the steps of the run")

    @traitlets.validate("recorded")
    def _valid_recorded(self, proposal) -> dict:
        return _gradients_of(check_recorded(proposal["value"]))

    @traitlets.validate("trace")
    def _valid_trace(self, proposal) -> dict | None:
        return proposal["value"] and check_trace(proposal["value"])

    @traitlets.validate("amaxes")
    def _valid_amaxes(self, proposal) -> list | None:
        if not proposal["value"]:
            return None
        for step, amax in enumerate(proposal["value"], 1):
            if amax is not None and (not isinstance(amax, int | float) or amax < 0):
                raise ValueError(f"amaxes: {amax!r} of step {step} is not a number of 0 or more")
        return [None if amax is None or not math.isfinite(amax) else amax for amax in proposal["value"]]

    @traitlets.validate("kind", "group", "step")
    def _valid_choice(self, proposal):
        if not self._cross_validation_lock:  # at the start all come at once: __init__ looks at them together
            choice = {name: getattr(self, name) for name in ("kind", "group", "step")}
            self._check_choice(**(choice | {proposal["trait"].name: proposal["value"]}))
        return proposal["value"]

    @traitlets.validate("log2_scale")
    def _valid_scale(self, proposal) -> int | None:
        if proposal["value"] is not None and not 0 <= proposal["value"] <= MOST_LOG2_SCALE:
            raise ValueError(f"log2_scale {proposal['value']} is not in 0 to {MOST_LOG2_SCALE}; it is an exponent")
        return proposal["value"]

    @traitlets.validate(*SETTINGS)
    def _valid_setting(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        power = value > 0 and math.frexp(value)[0] == 0.5  # the window moves by whole binades
        with np.errstate(over="ignore", under="ignore"):
            fits, needs = {
                "init_scale": (
                    power and np.isfinite(np.float32(value)) and np.float32(value) > 0,
                    "a power of two within float32",
                ),
                "growth_interval": (value >= 1, "1 or more"),
                "growth_factor": (power and 1 < value < math.inf, "a power of two above 1"),
                "backoff_factor": (power and value < 1, "a power of two below 1"),
            }[name]
        if not fits:
            raise ValueError(f"{name} {value} is not {needs}")
        return value

    def __repr__(self) -> str:
        name = self.recorded.get("model", "")
        return f"ScaleCockpit({name!r}, {self.kind!r}, {self.group!r}, step={self.step}, log2_scale={self.log2_scale})"

    def static_html(self) -> str:
        """Say what becomes of the gradients and of the step, for pages without JavaScript."""
        watched = f"{self.kind}, {self.group}, step {self.watched_step}"
        rows = [
            (power_text(power), fates_text(self.histogram, FLOAT16, power).partition(": ")[2])
            for power in (0, 8, 16, 24)
        ]
        return (
            f"<p>This widget applies a loss scale to recorded gradients and replays a loss scaler. It needs "
            f"JavaScript. {html.escape(self.verdict)} {html.escape(watched)}: {html.escape(self.sentence)}</p>"
            f"{static_table('mp-sc-static', ('loss scale', 'in float16'), rows)}"
        )


def replay(amaxes, *, init_scale: float, **rule):
    """Return the scales that `torch.amp.GradScaler` uses over these largest gradients, and the steps that it skips.

    `amaxes`: the largest |gradient| of each step, not scaled; None for one that is not finite. `rule`: settings of
    `utils.loss_scaling.next_scale`.
    """
    scale, tracker, scales, skipped = float(np.float32(init_scale)), 0, [], []
    for step, amax in enumerate(amaxes, 1):
        scales.append(scale)
        overflowed = amax is None or amax * scale >= BOUND
        if overflowed:
            skipped.append(step)
        scale, tracker = next_scale(scale, tracker, overflowed, **rule)
    return scales, skipped


def traced_scales(trace: dict) -> list[float]:
    """Return the scale that each step of a recorded scaler used: what it was after the step before."""
    after = dict(map(tuple, trace["changes"]))
    scales = [float(trace["init"])]
    for step in range(1, trace["steps"]):
        scales.append(float(after.get(step, scales[-1])))
    return scales


def check_trace(trace: dict) -> dict:
    """Return the trace of a scaler back; raise ValueError in one sentence if it is none."""
    names = ("init", "growth_interval", "steps", "changes", "skipped")
    if missing := [name for name in names if name not in trace]:
        raise ValueError(f"trace has no {missing[0]}; it needs {', '.join(names)}")
    if trace["steps"] < 1 or not trace["init"] > 0 or trace["growth_interval"] < 1:
        raise ValueError("trace: init, growth_interval and steps must be positive")
    at = [step for step, _ in trace["changes"]]
    if at != sorted(set(at)) or not all(1 <= step <= trace["steps"] for step in [*at, *trace["skipped"]]):
        raise ValueError(f"trace: changes and skipped must name steps in 1 to {trace['steps']}, changes in their order")
    if not all(0 < scale < math.inf for _, scale in trace["changes"]):
        raise ValueError("trace: every scale in changes must be a positive number")
    return trace


def _last_step(recorded: dict, trace: dict | None, amaxes) -> int:
    return trace["steps"] if trace else len(amaxes) if amaxes else recorded["steps"][-1]


def _gradients_of(recorded: dict) -> dict:
    kinds = [kind for kind in recorded["kinds"] if "gradients" in kind]
    if not kinds:
        raise ValueError(f"recorded has no gradients, only {', '.join(recorded['kinds'])}")
    return {**recorded, "kinds": kinds, "histograms": {kind: recorded["histograms"][kind] for kind in kinds}}
