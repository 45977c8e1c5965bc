"""What BlockEditor knows: the block formats, the values that it starts from, and a block as `utils.scaling` makes it.

The arithmetic is that of `utils.scaling.quantize_tiles`, and again, in the page's language, of block.js.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from utils.formats import FORMATS, FloatFormat, decode, encode
from utils.rounding import round_to_grid
from utils.scaling import MAX_SCALE, SCALINGS, Scaling, quantize_tiles
from utils.widgets.shared.words.amounts import few_digits

COUNT = 32  # values: a block of an MX format, two of NVFP4
MX = ("mx", "mx-rceil", "mx-round")
# OCP MX 1.0, table 1 (its MXINT8 left out); NVFP4: arXiv 2509.25149.
KINDS = {
    "MXFP8 E4M3": ("float8_e4m3fn", MX),
    "MXFP8 E5M2": ("float8_e5m2", MX),
    "MXFP6 E2M3": ("float6_e2m3fn", MX),
    "MXFP6 E3M2": ("float6_e3m2fn", MX),
    "MXFP4 E2M1": ("float4_e2m1fn", MX),
    "NVFP4 E2M1": ("float4_e2m1fn", ("nvfp4",)),
}
RULES = {"mx": "down: FLOOR", "mx-rceil": "up: RCEIL", "mx-round": "amax first: EVEN"}  # torchao's names


def samples() -> dict[str, list[float]]:
    """Return the values that a reader may start from, by a name: `COUNT` each."""
    normal = np.random.default_rng(12).standard_normal(COUNT).round(3)  # amax 1.911: floor clips it
    outlier = normal.copy()
    outlier[11] = 60.0
    powers = [2.0 ** (3 - i) * (-1) ** i for i in range(COUNT)]
    rows = {"normal": normal, "one outlier": outlier, "small weights": (0.02 * normal).round(5)}
    return {name: [float(x) for x in values] for name, values in rows.items()} | {
        "powers of two": powers,
        "all zero": [0.0] * COUNT,
    }


@dataclass(frozen=True)
class Block:
    """`COUNT` values in a block format, with the scales of its rule or with others.

    `element`: name of the format of the values; `scaling`: name in `SCALINGS`. `tensor_amax`: the largest magnitude of
    the tensor that the values belong to, where it has a scale; 0, or less than that of the values: theirs. `scales`: a
    code for each block, `codes`: one for each value; empty: those of the rule, and those that encoding gives.
    """

    values: tuple[float, ...]
    element: str
    scaling: str
    tensor_amax: float = 0.0
    scales: tuple[int, ...] = ()
    codes: tuple[int, ...] = ()

    @property
    def fmt(self) -> FloatFormat:
        """The format of the values."""
        return FORMATS[self.element]

    @property
    def way(self) -> Scaling:
        """What shares a scale, and by which rule."""
        return SCALINGS[self.scaling]

    @cached_property
    def x(self) -> np.ndarray:
        """The values: float32 [COUNT]."""
        return np.asarray(self.values, np.float32)

    @cached_property
    def _ruled(self):
        # The rest of the tensor is one more block: it counts in the tensor's scale alone.
        rest = np.zeros(self.way.tile[1], np.float32)
        rest[0] = self.tensor_amax
        return quantize_tiles(np.concatenate([self.x, rest])[None], self.fmt, self.way)

    @cached_property
    def scale_codes(self) -> np.ndarray:
        """The code of each block's scale: unsigned integers."""
        stored = self._ruled.stored.ravel()[: COUNT // self.way.tile[1]]
        return np.asarray(self.scales or encode(stored, self.way.scale_format), np.uint64)

    @cached_property
    def inv_scale(self) -> np.ndarray:
        """What each value of the format is multiplied by: float32 [COUNT]."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            stored = decode(self.scale_codes, self.way.scale_format).astype(np.float32)
            inv_scales = stored * self._ruled.tensor_inv_scale  # [COUNT / block]
        return inv_scales.repeat(self.way.tile[1])

    @cached_property
    def encoded(self) -> np.ndarray:
        """The codes that encoding the values gives; 0 where the scale is NaN."""
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            scaled = self.x * np.minimum(np.float32(1) / self.inv_scale, MAX_SCALE)
        return np.asarray(encode(np.where(np.isnan(scaled), 0, scaled), self.fmt, saturate=True), np.uint64)

    @cached_property
    def value_codes(self) -> np.ndarray:
        """The code of each value: unsigned integers [COUNT]."""
        return np.asarray(self.codes, np.uint64) if self.codes else self.encoded

    @cached_property
    def stored(self) -> np.ndarray:
        """What the codes are worth: float32 [COUNT]."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return decode(self.value_codes, self.fmt).astype(np.float32) * self.inv_scale

    @property
    def error(self) -> float | None:
        """The root of the squares of stored - x over those of x; None where all x are 0."""
        x, y = self.x.astype(np.float64), self.stored.astype(np.float64)
        return None if not x.any() else float(np.linalg.norm(y - x) / np.linalg.norm(x))

    @property
    def bits(self) -> float:
        """Bits per value, the scales of the blocks shared out."""
        return self.way.bits_per_value(self.fmt)

    @property
    def verdict(self) -> str:
        """What the values cost, and what they lose."""
        bits, lost = few_digits(self.bits), int(np.isnan(self.stored).sum())
        if lost:
            return f"{bits} bits per value. {lost} of {COUNT} values are NaN."
        sentence = "All values are 0." if self.error is None else f"Error {_share_text(self.error)} (RMS)."
        bits_text = f"{self.fmt.bits}, and {self.way.scale_format.bits} for the scale of {self.way.tile[1]} values"
        return f"{bits} bits per value: {bits_text}. {sentence} {self.saturated} saturated, {self.zeros} became 0."

    @property
    def saturated(self) -> int:
        """How many values round past the largest one of the format; codes set by hand do not count."""
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            scaled = np.float64(self.x * np.minimum(np.float32(1) / self.inv_scale, MAX_SCALE))
        past = np.abs(round_to_grid(scaled, self.fmt)) > self.fmt.max
        return int((past & (self.stored != 0) & (self.value_codes == self.encoded)).sum())

    @property
    def zeros(self) -> int:
        """How many values other than 0 are stored as 0; codes set by hand do not count."""
        return int(((self.stored == 0) & (self.x != 0) & (self.value_codes == self.encoded)).sum())


def _share_text(error: float) -> str:
    """Return an error in percent; ∞ where a value that is read is infinite."""
    return "∞" if error == np.inf else "NaN" if np.isnan(error) else f"{few_digits(100 * error)}\u00a0%"


def make_facts() -> dict:
    """Return what the page needs besides the state, as JSON values."""
    return {
        "formats": [
            {"label": label, "element": element, "scalings": list(names)} for label, (element, names) in KINDS.items()
        ],
        "rules": [list(row) for row in RULES.items()],
        "scalings": {name: _scaling_row(SCALINGS[name]) for name in (*MX, "nvfp4")},
        "bits": {
            element: {name: SCALINGS[name].bits_per_value(FORMATS[element]) for name in (*MX, "nvfp4")}
            for element, _ in KINDS.values()
        },
    }


def _scaling_row(scaling: Scaling) -> dict:
    return {
        "block": scaling.tile[1],
        "rule": scaling.rule,
        "scale_format": scaling.scale_format.name,
        "tensor_scale": scaling.tensor_scale,
    }


def label_of(element: str, scaling: str) -> str | None:
    """Return the name of the block format whose values have this format and whose scales are of this kind, if any."""
    return next((label for label, (name, ways) in KINDS.items() if element == name and scaling in ways), None)


def check_values(values: Sequence[float]) -> None:
    """Raise ValueError for values that no editor holds."""
    with np.errstate(over="ignore"):
        narrow = np.asarray(values, np.float32)
    if narrow.shape != (COUNT,) or not np.isfinite(narrow).all():
        raise ValueError(f"values are {COUNT} finite numbers of float32, not {len(values)} like {list(values)[:3]}")
