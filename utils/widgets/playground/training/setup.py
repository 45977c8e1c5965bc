"""What is trained: every knob of the playground, checked. The page reads the same names from its state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from utils.formats import FORMATS
from utils.rounding import RULES

TENSORS = ("weights", "activations", "gradients", "moments", "accumulator")
# formats with a zero, of numbers whose products a double holds exactly
NAMES = tuple(name for name, fmt in FORMATS.items() if fmt.has_zero and fmt.precision <= 24)
ROUNDINGS = (*RULES, "stochastic")
MASTERS = (None, "float32")
DATA = ("spiral", "circle", "corners")
OPTIMIZERS = ("adam", "sgd")
RATES = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
BATCHES = (16, 32, 64, 128)
PUSHES = range(0, 33)
SCALES = ("none", "dynamic")
SCALE_POWERS = range(1, 25)
GROWTHS = (20, 50, 100, 200)
SEEDS = range(1, 1000)


def _all_float32() -> dict[str, str | None]:
    return dict.fromkeys(TENSORS, "float32") | {"master": None}


def _all_to_nearest() -> dict[str, str]:
    return dict.fromkeys(TENSORS, "ties_to_even")


@dataclass(frozen=True)
class Setup:
    """One training: `formats` and `rules` by tensor, `formats["master"]` is "float32", or None without a copy.

    `scale`: "none", "dynamic", or a power of two; `growth`: good steps after which the dynamic scale doubles; `push`:
    the loss is multiplied by 2**-push before the backward pass.

    Raises: ValueError for a value that is not offered.
    """

    data: str = "spiral"
    formats: dict[str, str | None] = field(default_factory=_all_float32)
    rules: dict[str, str] = field(default_factory=_all_to_nearest)
    scale: str | float = "none"
    growth: int = 100
    push: int = 0
    optimizer: str = "adam"
    rate: float = 0.01
    batch: int = 64
    seed: int = 1

    def __post_init__(self):
        offered = {
            "data": DATA,
            "growth": GROWTHS,
            "push": PUSHES,
            "optimizer": OPTIMIZERS,
            "rate": RATES,
            "batch": BATCHES,
            "seed": SEEDS,
        }
        for name, values in offered.items():
            _check(name, getattr(self, name), values)
        for tensor in TENSORS:
            _check(f"format of {tensor}", self.formats.get(tensor), NAMES)
            _check(f"rounding of {tensor}", self.rules.get(tensor), ROUNDINGS)
        _check("format of master", self.formats.get("master"), MASTERS)
        if isinstance(self.scale, str):
            _check("scale", self.scale, SCALES)
        elif self.scale not in [2.0**power for power in SCALE_POWERS]:
            raise ValueError(f"scale {self.scale!r} is not a power of two from 2 to 2**{SCALE_POWERS[-1]}")

    def change(self, *, formats=(), rules=(), **changes) -> Setup:
        """Return this setup with other values; `formats` and `rules` name only the tensors that change."""
        return replace(self, formats={**self.formats, **dict(formats)}, rules={**self.rules, **dict(rules)}, **changes)


def _check(name: str, value, offered) -> None:
    if value not in offered:
        raise ValueError(f"{name} {value!r} is not one of {', '.join(map(str, offered))}")
