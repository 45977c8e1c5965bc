"""What ShapeToBound says of a product under a roof: times, the row count that reaches the ridge, what its type changes.

The numbers are those of `utils.cost.roofline`, and again, in the page's language, of shared/cost/roof.js; the
sentences are those of shared/cost/roof_words.js. Importing this needs no torch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import ceil

from utils.cost.architectures import NAMED
from utils.cost.cards import ROOFS, TYPES
from utils.cost.roofline import INPUT_BYTES, OUTPUT_BYTES, Gemm, Roof
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.cost.roof_words import gain_text, time_text
from utils.widgets.shared.words.amounts import few_digits

MOST = 2**17  # of M, N and K: all counts are then exact in a page's numbers too
LABELS = {dtype: TYPES[dtype] for dtype in INPUT_BYTES}
BESIDE = {  # what each type is compared with: the one that it takes the place of
    **{"float64": "float32", "float32": "float64", "tf32": "float32"},
    **{"float16": "float32", "bfloat16": "float32", "float8": "bfloat16"},
}
WIDE = ("bfloat16", "float16", "tf32", "float32", "float64")  # where the device lacks that one: the first that it has
LEFT_OUT = (
    "The prediction is idealized: each matrix moves once; moving and computing overlap. Tiles, caches and launches are"
    " left out: a small product takes longer, and one whose matrices still lie in a cache can take less. TF32 reads"
    " float32; FP8 writes 16 bits; every other type writes what it reads."
)

# The shapes of the full-size experiments: 12 reviews of 512 tokens (`utils.workloads.review_task`), one text of 2,048.
_BERT, REVIEWS, REVIEW_TOKENS = NAMED["DistilBERT"], 12, 512
_LLAMA, TEXT_TOKENS = NAMED["LLaMA 7B"], 2048
STORIES = {  # what a reader tries first: a product in words, and as M, N, K
    "one token": Gemm(1, 4096, 4096),
    "32 × 512 tokens": Gemm(32 * 512, 4096, 4096),
    "their weight gradient": Gemm(4096, 4096, 32 * 512),
    "attention scores": Gemm(512, 512, 64),
    "8,192 cube": Gemm(8192, 8192, 8192),
}
PRODUCTS = {
    f"DistilBERT, {REVIEWS} × {REVIEW_TOKENS} tokens": {
        "query, key or value": Gemm(REVIEWS * REVIEW_TOKENS, _BERT.width, _BERT.width),
        "feed-forward, in": Gemm(REVIEWS * REVIEW_TOKENS, _BERT.hidden, _BERT.width),
        "feed-forward, out": Gemm(REVIEWS * REVIEW_TOKENS, _BERT.width, _BERT.hidden),
        "attention scores of a head": Gemm(REVIEW_TOKENS, REVIEW_TOKENS, _BERT.width // _BERT.heads),
        "classifier": Gemm(REVIEWS, _BERT.classes, _BERT.width),
    },
    f"LLaMA 7B, {TEXT_TOKENS:,} tokens": {
        "query, key or value": Gemm(TEXT_TOKENS, _LLAMA.width, _LLAMA.width),
        "feed-forward, in": Gemm(TEXT_TOKENS, _LLAMA.hidden, _LLAMA.width),
        "feed-forward, out": Gemm(TEXT_TOKENS, _LLAMA.width, _LLAMA.hidden),
        "attention scores of a head": Gemm(TEXT_TOKENS, TEXT_TOKENS, _LLAMA.width // _LLAMA.heads),
        "head": Gemm(TEXT_TOKENS, _LLAMA.vocabulary, _LLAMA.width),
    },
    "LLaMA 7B, one token": {
        "feed-forward, in": Gemm(1, _LLAMA.hidden, _LLAMA.width),
        "head": Gemm(1, _LLAMA.vocabulary, _LLAMA.width),
    },
}


def modelled(roof: Roof) -> dict[str, float]:
    """Return the peaks of the types whose bytes are known: without FP4."""
    return {dtype: peak for dtype, peak in roof.peaks.items() if dtype in LABELS}


def row_limit(n: int, k: int, dtype: str) -> float:
    """Return the operations per byte that no number of rows M reaches: the intensity as M grows without end."""
    return 2 * n * k / (INPUT_BYTES[dtype] * k + OUTPUT_BYTES[dtype] * n)


def least_rows(n: int, k: int, dtype: str, roof: Roof) -> int | None:
    """Return the smallest M from which [M, K] @ [K, N] is bound by compute, None where no M is large enough.

    Exact: 2 M N K >= ridge (bytes of M K + K N + M N), solved for M in fractions.
    """
    ridge, read, written = Fraction(roof.ridge(dtype)), INPUT_BYTES[dtype], OUTPUT_BYTES[dtype]
    gained = 2 * n * k - ridge * (read * k + written * n)  # by each row, over what its own bytes cost
    return ceil(ridge * read * k * n / gained) if gained > 0 else None


@dataclass(frozen=True)
class GemmCase:
    """A product in a dtype under a roof, and what is said of it. `recorded`: a device and its milliseconds, or None."""

    gemm: Gemm
    dtype: str
    roof: Roof
    recorded: tuple[str, float] | None = None

    @property
    def moved(self) -> int:
        """The bytes of the three matrices."""
        return self.gemm.moved(INPUT_BYTES[self.dtype], OUTPUT_BYTES[self.dtype])

    @property
    def intensity(self) -> float:
        """The operations for each byte that moves."""
        return self.roof.intensity(self.gemm, self.dtype)

    @property
    def moving_ms(self) -> float:
        """The milliseconds that moving the bytes takes."""
        return self.roof.moving_ms(self.moved)

    @property
    def computing_ms(self) -> float:
        """The milliseconds that the operations take."""
        return self.roof.computing_ms(self.gemm.operations, self.dtype)

    @property
    def ms(self) -> float:
        """The predicted milliseconds."""
        return self.roof.predicted_ms(self.gemm, self.dtype)

    @property
    def bound(self) -> str:
        """Return "compute" or "memory"."""
        return self.roof.bound(self.gemm, self.dtype)

    @property
    def verdict(self) -> str:
        """What bounds the product, and by how much."""
        slow, fast = sorted((self.moving_ms, self.computing_ms), reverse=True)
        times = few_digits(slow / fast)
        if times == "1":
            return "At the ridge: moving and computing take equally long."
        if self.bound == "memory":
            return f"Bound by memory: moving takes {times} times as long as computing."
        return f"Bound by compute: computing takes {times} times as long as moving."

    @property
    def prediction(self) -> str:
        """The time, and the share of the peak that it is."""
        peak = self.roof.peak(self.dtype)
        reached = self.roof.attainable(self.intensity, self.dtype)
        share = few_digits(100 * reached / peak)
        return (
            f"Predicted: {time_text(self.ms)}, the longer of the two. That is {few_digits(reached)}"
            f" of {few_digits(peak)} TFLOP/s, or {share}\u00a0%."
        )

    @property
    def record(self) -> str:
        """The recorded time beside the predicted one; without one, what others have reached on the card, or nothing."""
        if self.recorded is None:
            if self.dtype not in self.roof.reached:
                return ""
            rate = self.roof.reached[self.dtype]
            share = few_digits(100 * rate / self.roof.peak(self.dtype))
            return (
                f"The fastest {LABELS[self.dtype]} product published for this card: {few_digits(rate)} TFLOP/s,"
                f" {share}\u00a0% of the peak."
            )
        device, ms = self.recorded
        return f"Recorded on {device}: {time_text(ms)}, {few_digits(100 * self.ms / ms)}\u00a0% of the predicted speed."

    @property
    def rows(self) -> str:
        """How many rows M would make, or keep, the product bound by compute."""
        with_these = f"With N = {self.gemm.n:,} and K = {self.gemm.k:,}"
        least = least_rows(self.gemm.n, self.gemm.k, self.dtype, self.roof)
        if least is None:
            limit = few_digits(row_limit(self.gemm.n, self.gemm.k, self.dtype))
            ridge = few_digits(self.roof.ridge(self.dtype))
            return f"{with_these} no M is enough: it stays below {limit} operations per byte; the ridge is at {ridge}."
        if self.bound == "compute":
            return f"{with_these} it is bound by compute down to M = {least:,}."
        return f"{with_these} it is bound by compute from M = {least:,} on."

    @property
    def change(self) -> str:
        """What the type changes beside another one: the bytes, the roof, and which of the two this product feels."""
        beside = compared_with(self.dtype, self.roof)
        if beside is None:
            return f"{self.roof.name} has no other type to compare it with."
        before = replace(self, dtype=beside)
        share = few_digits(100 * self.moved / before.moved)
        higher = few_digits(self.roof.peak(self.dtype) / self.roof.peak(beside))
        moved = (
            f"as many bytes as {LABELS[beside]}" if share == "100" else f"{share}\u00a0% of {LABELS[beside]}'s bytes"
        )
        roof = "the same roof" if higher == "1" else f"a roof {higher} times as high"
        return f"{LABELS[self.dtype]} moves {moved}, under {roof}. {self._gain(before)}"

    def _gain(self, before: "GemmCase") -> str:
        gain = before.ms / self.ms
        decides = {("memory", "memory"): "The bytes decide.", ("compute", "compute"): "The roof decides."}
        instead = f"{time_text(self.ms)} instead of {time_text(before.ms)}, {gain_text(gain)}"
        if few_digits(max(gain, 1 / gain)) == "1":
            instead = f"{time_text(self.ms)} in both"
        return f"This product: {instead}. {decides.get((before.bound, self.bound), 'Both decide.')}"


def compared_with(dtype: str, roof: Roof) -> str | None:
    """Return the type of the device beside which `dtype` is looked at; None where it has no other."""
    return next((other for other in (BESIDE[dtype], *WIDE) if other in roof.peaks and other != dtype), None)


def make_facts(roofs: Iterable[Roof], recorded: Iterable[Mapping], sheets: Mapping[str, str]) -> dict:
    """Return everything that the page needs besides the reader's choices, as JSON values.

    `roofs`: measured ones, after those of the data sheets. `recorded`: points with device, dtype, m, n, k and ms.
    `sheets`: the data sheet of a recorded device, by its name.
    Raises: ValueError for two roofs of one name, and for a point that no roof or no type fits.
    """
    all_roofs = [*ROOFS.values(), *roofs]
    names = [roof.name for roof in all_roofs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two roofs are called {', '.join(sorted(twice))}; give the measured one a name of its own")
    if unknown := set(sheets.values()) - set(names):
        raise ValueError(f"{', '.join(sorted(unknown))} is no data sheet; the known ones are {', '.join(ROOFS)}")
    return {
        "types": [[dtype, LABELS[dtype], INPUT_BYTES[dtype], OUTPUT_BYTES[dtype]] for dtype in LABELS],
        "roofs": [asdict(roof) | {"peaks": modelled(roof)} for roof in all_roofs],
        "stories": _rows(STORIES),
        "products": [[group, _rows(products)] for group, products in PRODUCTS.items()],
        "recorded": _by_device(recorded, {*names, *sheets}),
        "sheets": dict(sheets),
        "left_out": LEFT_OUT,
    }


def _rows(products: Mapping[str, Gemm]) -> list[list]:
    return [[label, gemm.m, gemm.n, gemm.k] for label, gemm in products.items()]


def _by_device(recorded: Iterable[Mapping], devices: set[str]) -> dict[str, dict[str, list]]:
    """Return the points as [m, n, k, ms], by device and dtype; of two for one product the last."""
    by_device = {}
    for point in recorded:
        device, dtype, ms = point["device"], point["dtype"], point["ms"]
        if device not in devices:
            raise ValueError(f"recorded device {device!r} has no roof; pass its measured roof, or name its data sheet")
        one_of(dtype, LABELS, "recorded dtype")
        if not 0 < ms < float("inf"):
            raise ValueError(f"recorded time {ms} ms of {device} is not above 0")
        gemm = Gemm(point["m"], point["n"], point["k"])
        if max(gemm.m, gemm.n, gemm.k) > MOST:
            raise ValueError(f"recorded product {gemm} is larger than the widget's {MOST:,}; leave it out")
        by_device.setdefault(device, {}).setdefault(dtype, {})[gemm] = ms
    return {
        device: {
            dtype: [[gemm.m, gemm.n, gemm.k, ms] for gemm, ms in points.items()] for dtype, points in types.items()
        }
        for device, types in by_device.items()
    }
