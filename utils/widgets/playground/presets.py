"""The settings that the playground offers, and the tasks of its tour: the one place for their words and knobs."""

from dataclasses import dataclass, field

from utils.formats import FORMATS
from utils.widgets.playground.training.setup import TENSORS, Setup

E4M3 = FORMATS["float8_e4m3fn"]
E4M3_MAX = float(E4M3.max)
E4M3_LAST = E4M3_MAX + 2.0 ** (E4M3.emax - E4M3.mantissa_bits - 1)  # rounds to the largest; what is larger does not
BFLOAT16_GAP = 2.0 ** -FORMATS["bfloat16"].mantissa_bits  # between neighbours from 1 to 2
CHAPTERS = {
    "training/tensors": "Where real tensors live",
    "training/loss_scaling": "Loss scaling",
    "training/master_weights": "Master weights",
    "eight_bits/fp8_training": "Training in FP8",
}


@dataclass(frozen=True)
class Preset:
    """A setting: `changes` of the start, where all is float32 and rounds to nearest; `says`: what to look for."""

    name: str
    label: str
    says: str
    changes: dict = field(default_factory=dict)
    watched: str = "gradients"

    @property
    def setup(self) -> Setup:
        """The setting itself."""
        return Setup().change(**self.changes)

    def as_json(self) -> dict:
        """Return the preset as the page reads it."""
        return {
            "name": self.name,
            "label": self.label,
            "says": self.says,
            "changes": self.changes,
            "watched": self.watched,
        }


NARROW = dict.fromkeys(TENSORS, "float16")
PRESETS = (
    Preset("float32", "float32 everywhere", "Nothing is narrow here. Both networks are the same, and both learn."),
    Preset(
        "float16-gradients",
        "float16 gradients, tiny: fails",
        "The loss is multiplied by 2⁻¹⁹, so the gradients are as small as in some large models. The first ones of the "
        "backward pass are below half of float16’s smallest number and become 0; the others are computed from zeros.",
        {"formats": {"gradients": "float16"}, "push": 19},
    ),
    Preset(
        "loss-scaling",
        "the same with dynamic loss scaling: works",
        "The same tiny gradients in float16, multiplied by a scale before they are stored. The scale doubles every "
        "20 steps; when a gradient overflows, it is halved and the step is skipped.",
        {"formats": {"gradients": "float16"}, "push": 19, "scale": "dynamic", "growth": 20},
    ),
    Preset(
        "static-2048",
        "E4M3 gradients, fixed scale 2048: fails",
        f"E4M3’s largest number is {E4M3_MAX:g}, and casts do not saturate here: one gradient beyond {E4M3_LAST:g}, "
        "half a gap further, becomes NaN. Nothing checks for it, so it reaches the weights.",
        {"formats": {"gradients": "float8_e4m3fn"}, "scale": 2048.0},
    ),
    Preset(
        "no-master",
        "bfloat16 weights without a copy: slow",
        "Many updates are smaller than half the gap at their weight, so they change nothing.",
        {"formats": {"weights": "bfloat16"}, "rate": 0.003},
        watched="weights",
    ),
    Preset(
        "stochastic",
        "the same with stochastic rounding: works",
        "A small update is now made with the probability that makes the mean right.",
        {"formats": {"weights": "bfloat16"}, "rules": {"weights": "stochastic"}, "rate": 0.003},
        watched="weights",
    ),
    Preset(
        "float16-moments",
        "float16 moments of Adam: fails",
        "Adam averages squared gradients. In float16 small averages become 0 in the first steps, and then Adam divides "
        "by its ε of 10⁻⁸ alone: the first updates are huge.",
        {"formats": {"moments": "float16"}},
        watched="moments",
    ),
    Preset(
        "fp8",
        "E4M3 forward, E5M2 backward, float32 master: works",
        "Eight bits for weights, activations and gradients, with a float32 copy of the weights, and without the scales "
        "that larger models need.",
        {
            "formats": {
                "weights": "float8_e4m3fn",
                "activations": "float8_e4m3fn",
                "gradients": "float8_e5m2",
                "master": "float32",
            }
        },
    ),
    Preset(
        "all-float16",
        "float16 for everything: fails",
        "Weights, activations, gradients, moments and every single addition in float16. It fails because of the "
        "moments: with float32 moments it learns.",
        {"formats": NARROW},
        watched="moments",
    ),
)


@dataclass(frozen=True)
class TourTask:
    """A task of the tour: it starts from a preset, and `rule` names the test of `tasks.js` that checks it.

    `chapter`: what to read once it is solved, an id of `CHAPTERS`, or "".
    """

    id: str
    text: str
    preset: str
    rule: str
    says: str
    hints: tuple[str, ...]
    chapter: str = ""

    def as_json(self) -> dict:
        """Return the task as the page reads it."""
        return {
            "id": self.id,
            "text": self.text,
            "preset": self.preset,
            "rule": self.rule,
            "says": self.says,
            "hints": list(self.hints),
            "chapter": self.chapter,
            "title": CHAPTERS.get(self.chapter, ""),
        }


TOUR = (
    TourTask(
        "playground/learn",
        "Run the float32 network until it classifies at least 99 % of the points correctly.",
        "float32",
        "learned",
        "That is the network to compare with. It stays beside yours, with the same data and the same seed.",
        ("Press “Start the task”, and wait for some hundred steps. When it pauses, press “Run on”.",),
    ),
    TourTask(
        "playground/break",
        "Make it fail by giving one tensor another format. After 300 steps it should classify fewer than 80 % of the "
        "points correctly, while float32 reaches at least 90 %.",
        "float32",
        "broken",
        "One tensor in too few bits is enough.",
        (
            "Which tensor holds the smallest numbers? Look at the histograms.",
            "Adam’s moments are averages of squares, and the square of a small number is tiny.",
            "Try float16 or an 8-bit format for the moments.",
        ),
        "training/tensors",
    ),
    TourTask(
        "playground/rescue",
        "The gradients are tiny and stored in float16. Rescue the run, but keep float16 gradients and k = 19: after "
        "600 steps its loss must be at most 1.2 times that of float32.",
        "float16-gradients",
        "rescued",
        "A loss scale moves the gradients into float16’s range, and divides them again before the optimizer.",
        (
            "The histogram shows where the gradients are, and where float16’s range begins.",
            "Move the gradients to the right before they are stored: use a loss scale.",
            "Choose the dynamic scale, or a fixed one near 2¹⁹.",
        ),
        "training/loss_scaling",
    ),
    TourTask(
        "playground/scale",
        f"With E4M3 gradients, the fixed scale 2048 ends in NaN, because no E4M3 number is larger than {E4M3_MAX:g}. "
        "Find the largest fixed scale with which all of the first 600 steps stay finite.",
        "static-2048",
        "largest-scale",
        "A dynamic scale searches for this limit all the time: it doubles now and then, and after an overflow it skips "
        "the step and halves.",
        (
            "Halve the scale until the run survives 600 steps.",
            "If it survives, test the next larger one too: the task is done when both are known.",
        ),
        "eight_bits/fp8_training",
    ),
    TourTask(
        "playground/updates",
        "bfloat16 weights lose many of their updates. Make the loss after 800 steps at most 1.15 times that of "
        "float32, with bfloat16 weights, without a master copy, at the same learning rate, and with a rounding rule "
        "that does not always go the same way.",
        "no-master",
        "updated",
        "Stochastic rounding loses nearly as many single updates, but not their mean.",
        (
            "When you round to nearest, an update below half the gap between two bfloat16 neighbours is always lost. "
            f"From 1 to 2 that gap is {BFLOAT16_GAP:.2g}.",
            "Which rounding rule keeps such an update sometimes?",
            "Round the weights stochastically.",
        ),
        "training/master_weights",
    ),
    TourTask(
        "playground/moments",
        "Adam’s moments in float16 make the run fail. Rescue it with another 16-bit format for the moments, and leave "
        "everything else as it is: at least 99 % right after 600 steps.",
        "float16-moments",
        "moments",
        "bfloat16 has float32’s range, so nothing becomes 0. But its second moments cannot fall: press “Run on” until "
        "step 4000 to see it, then round the moments stochastically.",
        (
            "What do the small second moments become in float16? Press “Pause”, then “Restart”, then “+1 step”, and "
            "look at the histogram.",
            "Which 16-bit format reaches much further down?",
        ),
        "training/master_weights",
    ),
)
