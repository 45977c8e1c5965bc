"""What ScaleExplorer computes and says in Python: values times a scale, in a narrow format, and back.

x is multiplied by `scale` in float32, rounded to the format, and taken back by `inv_scale` = 1 / scale, in float32.
The twins in the page are scales.js and words.js.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from utils.formats import FORMATS, FloatFormat
from utils.rounding import quantize, round_to_grid, sqnr_db
from utils.scaling import scale_from_amax
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.words.sizes import power_text, size_text, with_commas

SCALED_FORMATS = tuple(name for name, fmt in FORMATS.items() if fmt.has_zero and fmt.exponent_bits <= 5)
RULES = ("exact", "power_of_two", "hand")
MOST_VALUES = 512
MOST_LOG2_SCALE = 100
MOST_MARGIN = 10
FLOAT32_ERROR = 2.0**-22  # of amax * (fmt.max / amax), two roundings
PAST_THE_CURVE = {"below": 3, "above": 6}  # binades of scale where nearly all is lost, on either side


@dataclass(frozen=True)
class Carried:
    """Values that were scaled, rounded and taken back: float64 arrays of one shape, `x` the float32 values."""

    x: np.ndarray
    scaled: np.ndarray
    stored: np.ndarray
    back: np.ndarray
    scale: np.float32
    fmt: FloatFormat

    @property
    def inv_scale(self) -> np.float32:
        """1 / scale, float32."""
        return np.float32(1) / self.scale

    @property
    def amax(self) -> float:
        """The largest magnitude."""
        return float(np.abs(self.x).max())

    @property
    def landing(self) -> float:
        """Where amax lands: amax * scale, in float32."""
        return float(np.abs(self.scaled).max())

    @property
    def past(self) -> np.ndarray:
        """Which values are rounded past the largest one of the format."""
        return np.abs(round_to_grid(self.scaled, self.fmt)) > self.fmt.max

    @property
    def counts(self) -> dict[str, int]:
        """How many values meet which end; they add up to all."""
        already, size, past = self.x == 0, np.abs(self.scaled), self.past
        zero = ~already & (self.stored == 0)
        subnormal = ~already & ~zero & (size < self.fmt.smallest_normal)
        counts = {"already": already, "zero": zero, "subnormal": subnormal, "past": past}
        fates = {name: int(which.sum()) for name, which in counts.items()}
        return fates | {"normal": self.x.size - sum(fates.values())}

    @property
    def db(self) -> float:
        """The signal-to-quantisation-noise ratio in dB; NaN or -infinity where a value became NaN or infinite."""
        return sqnr_db(self.back, self.x)

    @property
    def median_error(self) -> float:
        """The relative error in the middle of all, of values that are not zero: no outlier moves it."""
        some = self.x != 0
        with np.errstate(invalid="ignore"):
            off = np.abs(self.back - self.x)[some] / np.abs(self.x[some])
        return float(np.sort(off)[off.size // 2])  # NaN comes last


def carry(x: np.ndarray, fmt: FloatFormat, scale, *, saturate: bool = True) -> Carried:
    """Multiply float32 values by `scale`, round them to the format, and take them back."""
    scale = np.float32(scale)
    with np.errstate(over="ignore", under="ignore"):
        scaled = x * scale
        stored = quantize(scaled, fmt, saturate=saturate)
        back = stored.astype(np.float32) * (np.float32(1) / scale)
    return Carried(x.astype(np.float64), scaled.astype(np.float64), stored, back.astype(np.float64), scale, fmt)


def curve_range(amax: float, fmt: FloatFormat) -> range:
    """Return the exponents of the scales that the curve shows: from where all is lost to where nearly all saturates."""
    top = math.frexp(float(scale_from_amax(amax, fmt)))[1] - 1
    low = top - (fmt.emax - fmt.emin + fmt.mantissa_bits) - PAST_THE_CURVE["below"]
    high = top + PAST_THE_CURVE["above"]
    return range(max(min(low, 0), -MOST_LOG2_SCALE), min(max(high, 0), MOST_LOG2_SCALE) + 1)


def number_in_short(x: float, digits: int = 4) -> str:
    """Return a number with few digits: 57,344, 0.0625, 1.234 × 10⁻⁸; whole ones exactly, powers of two as such."""
    if not math.isfinite(x):
        return "NaN" if math.isnan(x) else "−∞" if x < 0 else "∞"
    minus, size = "−" if x < 0 else "", abs(x)
    significand, exponent = math.frexp(size)
    if size == int(size) and size < 1e6:
        return f"{minus}{int(size):,}"
    long = significand == 0.5 and not 1e-3 <= size < 1e6
    return minus + (power_text(exponent - 1) if long else with_commas(size_text(size, digits)))


def db_text(db: float) -> str:
    """Return a ratio in dB with one decimal, or what it is instead."""
    if math.isnan(db) or db == -math.inf:
        return "none"
    if math.isinf(db):
        return "∞ dB"
    tenths = Decimal(abs(db)).quantize(Decimal("0.1"), rounding=ROUND_HALF_UP)
    return f"{'−' if db < 0 and tenths else ''}{tenths} dB"


def error_text(error: float) -> str:
    """Return a relative error in percent, with three digits; what float32 alone rounds away as less than 0.001 %."""
    if not math.isfinite(error):
        return "–"
    return "less than 0.001\u00a0%" if 0 < error < 1e-5 else f"{size_text(100 * error)}\u00a0%"


def sentence(carried: Carried, *, saturate: bool = True) -> str:
    """Say where amax lands and what becomes of the values: what the page says too."""
    fmt, counts = carried.fmt, carried.counts
    before = f"{format_label(fmt)}, scale {number_in_short(float(carried.scale))}"
    parts = (
        _clause(counts["zero"], "becomes zero", "become zero"),
        _clause(counts["subnormal"], "is subnormal", "are subnormal"),
        _clause(counts["past"], *_past_words(fmt, saturate)),
    )
    already = counts["already"]
    zeros = f" ({already} {'was' if already == 1 else 'were'} zero already.)" if already else ""
    return (
        f"{before}: amax {number_in_short(carried.amax)} lands at {_landing_text(carried)}. Of {carried.x.size} values "
        f"{', '.join(parts)}.{zeros} SQNR: {db_text(carried.db)}, median error: {error_text(carried.median_error)}."
    )


def _landing_text(carried: Carried) -> str:
    landing, largest = number_in_short(carried.landing), number_in_short(carried.fmt.max)
    if abs(carried.landing - carried.fmt.max) <= carried.fmt.max * FLOAT32_ERROR:
        return f"{largest}, the largest value"
    if carried.past.any():
        return f"{landing}, past the largest value, {largest}"
    if carried.landing > carried.fmt.max:
        return f"{landing}, which is rounded to the largest value, {largest}"
    return f"{landing}, below the largest value, {largest}"


def _past_words(fmt: FloatFormat, saturate: bool) -> tuple[str, str]:
    if saturate or not fmt.has_nan:
        return "saturates", "saturate"
    end = "∞" if fmt.has_inf else "NaN"
    return f"becomes {end}", f"become {end}"


def _clause(n: int, singular: str, many: str) -> str:
    return f"none {singular}" if n == 0 else f"{n} {singular if n == 1 else many}"


def made_tensors(seed: int = 0, count: int = 256) -> dict[str, list[float]]:
    """Make four tensors of the sizes that training has, in float32, of four digits each."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(4, count))
    activations = normal[1] * np.where(np.arange(count) % 32 == 5, 25.0, 1.0)  # a few channels are large
    gradients = 2.0**-22 * normal[2] * np.exp(1.5 * rng.normal(size=count))
    outlier = np.where(np.arange(count) == 77, 3e4, normal[3])
    made = {"weights": 0.02 * normal[0], "activations": activations, "gradients": gradients, "one outlier": outlier}
    return {name: [float(f"{value:.4g}") for value in values] for name, values in made.items()}


def sampled(values) -> list[float]:
    """Return the values of a tensor for a page: float32 in its shortest decimals, evenly drawn, with the largest.

    `values`: finite real numbers of any shape, a torch tensor too. At most `MOST_VALUES` are kept.
    Raises: ValueError where there is none but zeros, or one that is not finite in float32.
    """
    values = values.detach().float().cpu() if hasattr(values, "detach") else values
    with np.errstate(over="ignore"):
        x = np.asarray(values, np.float32).ravel()
    if not np.isfinite(x).all():
        raise ValueError("the values hold an infinity or NaN: there is no amax")
    if not x.any():
        raise ValueError("the values are all zero, or none: there is nothing to scale")
    if x.size > MOST_VALUES:
        at = np.linspace(0, x.size - 1, MOST_VALUES).round().astype(int)
        largest = int(np.abs(x).argmax())
        at[np.abs(at - largest).argmin()] = largest
        x = x[at]
    return [float(str(value)) for value in x]
