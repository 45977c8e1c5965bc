"""StepTimeline: one mixed-precision training step, block by block, whole or broken."""

import html
from fractions import Fraction

import traitlets

from utils.checks.number_text import read_number
from utils.widgets.shared.book_widget import BookWidget

RECIPES = ("32-true", "16-mixed", "bf16-mixed", "16-true", "bf16-true")
BLOCKS = (
    "zero",
    "forward",
    "loss",
    "scale",
    "backward",
    "again",
    "unscale",
    "clip",
    "check",
    "step",
    "update",
    "schedule",
)
# What can be broken, and the recipe that shows it: "" for any.
BREAKS = {
    "": "",
    "clip_first": "16-mixed",
    "always": "16-mixed",
    "inverted": "16-mixed",
    "no_scale": "16-mixed",
    "no_update": "16-mixed",
    "no_zero": "",
}
LIMITS = (Fraction(1, 10**12), Fraction(10**12))
STEP = (  # the step of 16-mixed, for pages without JavaScript
    ("optimizer.zero_grad()", "drops the gradients of the previous step"),
    ("logits = model(x), under torch.autocast", "computes matrix products in float16; the weights stay float32"),
    ("loss = loss_fn(logits.float(), y)", "computes the loss in float32"),
    ("scaler.scale(loss).backward()", "multiplies the loss by S, and so every gradient; .grad is float32, times S"),
    ("scaler.unscale_(optimizer)", "multiplies every gradient by 1/S; notes whether one is infinite or NaN"),
    ("clip_grad_norm_(model.parameters(), max_norm)", "measures the true norm and limits it"),
    ("scaler.step(optimizer)", "moves the float32 weights, or skips the step if a gradient is infinite or NaN"),
    ("scaler.update()", "halves S after a skipped step; doubles it after 2000 good steps in a row"),
    ("scheduler.step(), if S has not fallen", "advances the learning rate, unless the step was skipped"),
)


class StepTimeline(BookWidget):
    """Walk along one training step: what each block does, which tensors exist, which line of torch it is.

    `recipe`: a name in `RECIPES`. `overflow`: whether a gradient overflows in this step; `accumulate`: over two
    batches; `clip`: whether the norm is clipped. `broken`: what is wrong with the step, a name in `BREAKS`, "" for
    nothing. `block`: the one that is explained, a name in `BLOCKS`. `norm`, `scale`, `max_norm`: the true norm of the
    gradients, S and the limit of the clipping, as text ("0.5", "2^16"), from 1e-12 to 1e12. All are read and set from
    Python while the page shows the widget.

    Raises: ValueError for a name or a number that is not one of those, and for something broken that the recipe or the
    clipping does not have.
    """

    book_name = "step_timeline"

    recipe = traitlets.Unicode("16-mixed").tag(sync=True)
    overflow = traitlets.Bool(False).tag(sync=True)
    accumulate = traitlets.Bool(False).tag(sync=True)
    clip = traitlets.Bool(True).tag(sync=True)
    broken = traitlets.Unicode("").tag(sync=True)
    block = traitlets.Unicode("zero").tag(sync=True)
    norm = traitlets.Unicode("0.5").tag(sync=True)
    scale = traitlets.Unicode("65536").tag(sync=True)
    max_norm = traitlets.Unicode("1").tag(sync=True)

    def __init__(self, recipe: str = "16-mixed", **kwargs):
        super().__init__(recipe=recipe, **kwargs)
        if BREAKS[self.broken] not in ("", self.recipe):
            raise ValueError(f"broken {self.broken!r} shows only in {BREAKS[self.broken]}, not in {self.recipe}")
        if self.broken == "clip_first" and not self.clip:
            raise ValueError("broken 'clip_first' needs clip=True")

    @traitlets.validate("recipe", "block", "broken")
    def _valid_name(self, proposal) -> str:
        name, value = proposal["trait"].name, proposal["value"]
        choices = {"recipe": RECIPES, "block": BLOCKS, "broken": tuple(BREAKS)}[name]
        if value not in choices:
            raise ValueError(f"{name} {value!r} is not one of {', '.join(map(repr, choices))}")
        return value

    @traitlets.validate("norm", "scale", "max_norm")
    def _valid_number(self, proposal) -> str:
        name, text = proposal["trait"].name, proposal["value"]
        try:
            number = Fraction(read_number(text))
        except (ValueError, OverflowError):  # no number; an infinity
            number = Fraction(0)
        if not LIMITS[0] <= number <= LIMITS[1]:
            raise ValueError(f'{name} {text!r} is not a number from 1e-12 to 1e12, like "0.5" or "2^16"')
        return text

    def static_html(self) -> str:
        """List the step of 16-mixed, for pages without JavaScript."""
        rows = "".join(
            f"<tr><td><code>{html.escape(line)}</code></td><td>{html.escape(what)}</td></tr>" for line, what in STEP
        )
        return (
            "<p>One step of 16-mixed with clipping, in order:</p>"
            f'<table class="mp-st-static"><thead><tr><th>line</th><th>what it does</th></tr></thead>'
            f'<tbody>{rows}</tbody></table><p class="mp-static-note">With JavaScript, you can press each block, '
            "change the recipe and break the order.</p>"
        )
