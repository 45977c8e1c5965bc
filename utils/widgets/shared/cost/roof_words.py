"""Times and devices in words: of the twin in the page, roof_words.js, what several widgets say in Python too."""

from utils.cost.roofline import Roof
from utils.widgets.shared.words.amounts import few_digits


def time_text(ms: float) -> str:
    """Return a time in the unit that leaves no zeros before it: 12.3 µs, 1.5 ms."""
    for least, factor, unit in ((1e3, 1e-3, "s"), (1, 1, "ms"), (1e-3, 1e3, "µs")):
        if ms >= 0.9995 * least:
            return f"{few_digits(ms * factor)}\u00a0{unit}"
    return f"{few_digits(ms * 1e6)}\u00a0ns"


def gain_text(gain: float) -> str:
    """Return what a gain in speed is: "1.5 times as fast", and of 0.5 "2 times as long"."""
    return f"{few_digits(gain)} times as fast" if gain >= 1 else f"{few_digits(1 / gain)} times as long"


def device_label(roof: Roof) -> str:
    """Return the name of a device, and whether its roof was measured."""
    return f"{roof.name}, measured" if roof.measured else roof.name
