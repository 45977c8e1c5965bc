"""What TokensPerSecond predicts: the bytes of a step, the tokens a second that card and model allow, and what was read.

The bytes are those of `utils.cost.token_bytes.predict`, and again, in the page's language, of
bytes.js; the sentences are those of words.js. torch is imported only where bytes
are asked for.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from utils.cost.architectures import NAMED, Architecture
from utils.cost.cards import BOARDS, GIGABYTE, ROOFS, fits
from utils.cost.roofline import Roof
from utils.runs.published import find_number
from utils.widgets.shared.cost.roof_words import device_label, time_text
from utils.widgets.shared.words.amounts import bytes_text, few_digits

MOST_BATCH, MOST_CONTEXT = 1024, 2**17
LLAMAS = {name: sizes for name, sizes in NAMED.items() if sizes.family == "llama"}
FORMATS = ("float32", "bfloat16", "float8", "int8", "int4", "int4-g128")  # of `utils.quantization.weight_formats`
LABELS = {
    "float32": "float32",
    "bfloat16": "bfloat16 or float16",
    "float8": "E4M3",
    "int8": "int8",
    "int4": "int4, groups of 32",
    "int4-g128": "int4, groups of 128",
}
KV_BITS = {0: "as computed", 8: "8 bits", 4: "4 bits"}
MEMORY = {board.roof.name: board.memory for board in BOARDS}  # GB; of two boards with one data sheet the larger
READ_UP_TO = 256  # tokens of context up to which a rate that was measured with short texts is shown
_FAST = "gpt-fast, README of 2023: compiled, 330 W, all linear layers, the head too"
_LIT = "S. Raschka on mixed precision, 2023, Lit-LLaMA: not compiled, no cache, the first call counted"
_TORCHAO = "torchao, README of 2025: Llama 3.1 8B, compiled, all linear layers, the head too"
_TORCHAO_H100 = f"{_TORCHAO}; which H100 is not said"
PLAIN_LOOP = 25.5  # tokens/s of LLaMA 7B in bfloat16 on an A100 of 80 GB, not compiled: pytorch2023gptfast
PUBLISHED = (  # model, weights, card, tokens a second, where it stands; batch 1, short texts
    ("LLaMA 7B", "bfloat16", "A100 SXM 80 GB", 104.9, _FAST),
    ("LLaMA 7B", "int8", "A100 SXM 80 GB", 155.58, _FAST),
    ("LLaMA 7B", "int4", "A100 SXM 80 GB", 196.80, _FAST),
    ("Llama 2 70B", "int8", "A100 SXM 80 GB", 19.13, _FAST),
    ("Llama 2 70B", "int4", "A100 SXM 80 GB", 25.25, _FAST),
    ("LLaMA 7B", "float32", "A100 SXM 40 GB", 11.47, _LIT),
    ("LLaMA 7B", "bfloat16", "A100 SXM 40 GB", 16.70, _LIT),
    ("Llama 3 8B", "bfloat16", "A100 SXM 80 GB", 95.64, _TORCHAO),
    ("Llama 3 8B", "int8", "A100 SXM 80 GB", 153.03, _TORCHAO),
    ("Llama 3 8B", "int4", "A100 SXM 80 GB", 180.80, _TORCHAO),
    ("Llama 3 8B", "bfloat16", "H100 SXM", 126.90, _TORCHAO_H100),
    ("Llama 3 8B", "float8", "H100 SXM", 178.46, _TORCHAO_H100),
    ("Llama 3 8B", "int8", "H100 SXM", 198.85, _TORCHAO_H100),
    ("Llama 3 8B", "int4", "H100 SXM", 241.39, _TORCHAO_H100),
)
MOVED = {  # GB/s that the sources print beside their rates, from their own count of bytes; the rest: `published`
    ("Llama 2 70B", "int8", _FAST): 1322.58,
    ("Llama 2 70B", "int4", _FAST): 1097.66,
    ("Llama 3 8B", "bfloat16", _TORCHAO): 1435.54,
    ("Llama 3 8B", "int8", _TORCHAO): 1150.80,
    ("Llama 3 8B", "int4", _TORCHAO): 763.33,
    ("Llama 3 8B", "bfloat16", _TORCHAO_H100): 1904.75,
    ("Llama 3 8B", "float8", _TORCHAO_H100): 1339.93,
    ("Llama 3 8B", "int8", _TORCHAO_H100): 1495.41,
    ("Llama 3 8B", "int4", _TORCHAO_H100): 1019.14,
}
MEASURED_SHORT = "Measured rates are of a single sequence, and a short one:"
LEFT_OUT = (
    "† A plain loop, not compiled and without a cache: nothing is estimated from it. A limit: weights, keys and values"
    " are read once per step, and moving and computing overlap; launches, the choice"
    " of the token and whatever else a step does are left out. Weights of 8 and 4 bits are those of the linear"
    " layers, widened on the way; the rest, and what is computed, is in 16 bits, or in 32 bits with float32"
    " weights. 1 GB is 10⁹ bytes. Measured rates are of one short sequence, shown up to a context of"
    f" {READ_UP_TO}; the share of the bandwidth beside each is for the bytes that its own program counts. "
    "gpt-fast and torchao store the head in few"
    " bits too; their int4 has a zero point beside each scale, and torchao's has groups of 64."
)


@dataclass(frozen=True)
class Weights:
    """How weights are stored: `bits` of one in a linear layer, with its share of a scale; `other`: of all the rest."""

    name: str
    label: str
    bits: float
    other: int


def weights_of(name: str) -> Weights:
    """Return the row of a name in `FORMATS`."""
    from utils.quantization.weight_formats import WEIGHT_FORMATS

    return Weights(name, LABELS[name], WEIGHT_FORMATS[name].bits_per_weight(), 32 if name == "float32" else 16)


@dataclass(frozen=True)
class DecodeCase:
    """A LLaMA that writes, and what is said of it. `kv_bits`: of keys and values, 0 for those that are computed with.

    `head`: the head has the format of the weights too. `room`: bytes of the card, 0 where nobody knows.
    """

    architecture: Architecture
    weights: Weights
    roof: Roof
    batch: int = 1
    context: int = 100
    kv_bits: int = 0
    head: bool = False
    room: int = 0

    @property
    def moved(self):
        """The `utils.cost.token_bytes.TokenBytes` of a step."""
        from utils.cost.token_bytes import predict

        return predict(
            self.architecture,
            weight_bits=self.weights.bits,
            other_bits=self.weights.other,
            head_bits=self.weights.bits if self.head else None,
            context=self.context,
            batch=self.batch,
            kv_bits=self.kv_bits or self.weights.other,
        )

    @property
    def operations(self) -> int:
        """Multiply-adds of a step, each counted as two: the products with weights, and attention."""
        size = self.architecture.dimensions
        linear = 2 * size["D"] * (size["D"] + size["G"]) + 3 * size["D"] * size["F"]
        attention = 2 * size["D"] * self.context
        return 2 * self.batch * (self.architecture.layers * (linear + attention) + size["V"] * size["D"])

    @property
    def peak(self) -> float | None:
        """The TFLOP/s of the products, in float32 or the 16-bit type that the card has; None where nobody knows."""
        wanted = ("float32",) if self.weights.other == 32 else ("bfloat16", "float16", "float32")
        return next((self.roof.peaks[dtype] for dtype in wanted if dtype in self.roof.peaks), None)

    @property
    def moving_ms(self) -> float:
        """The milliseconds that moving the bytes of a step takes."""
        return self.roof.moving_ms(self.moved.total)

    @property
    def computing_ms(self) -> float:
        """The milliseconds that the operations of a step take; 0 where no peak is known."""
        return 1e3 * (self.operations / (1e12 * self.peak)) if self.peak else 0.0

    @property
    def ms(self) -> float:
        """The milliseconds that a step takes at least."""
        return max(self.moving_ms, self.computing_ms)

    @property
    def tokens_per_second(self) -> float:
        """The tokens a second, of all sequences together, at most."""
        return 1e3 * self.batch / self.ms

    @property
    def held(self) -> int:
        """The bytes of all weights and of keys and values."""
        size, moved = self.architecture.dimensions, self.moved
        rows = 0 if self.architecture.tied else size["V"] - self.batch  # of the embeddings, which are not read
        return moved.total + round(rows * size["D"] * self.weights.other / 8)

    @property
    def fits(self) -> bool:
        """Whether that leaves a tenth of the card, see `cards.usable`."""
        return not self.room or fits(self.held, self.room)

    @property
    def comparable(self) -> bool:
        """Whether measured rates, which are of one short sequence, say something about it."""
        return self.batch == 1 and self.context <= READ_UP_TO

    @property
    def verdict(self) -> str:
        """The rate, what decides it, and what the card has to hold."""
        moved, text_rate = self.moved, few_digits(self.tokens_per_second / self.batch)
        rate = f"At most {few_digits(self.tokens_per_second)} tokens a second"
        rate += f", {text_rate} for each of {self.batch:,} sequences" if self.batch > 1 else ""
        cache = moved.cache_read + moved.cache_written
        reads = f"a step reads {bytes_text(moved.weights)} of weights, and moves {bytes_text(cache)} of keys and values"
        if self.computing_ms > self.moving_ms:
            why = (
                f"Computing decides: {few_digits(self.peak)} TFLOP/s take {time_text(self.computing_ms)} for a step,"
                f" moving takes {time_text(self.moving_ms)}; {reads}."
            )
        else:
            bandwidth = few_digits(self.roof.bandwidth)
            why = f"The bytes decide: {reads}: {time_text(self.moving_ms)} at {bandwidth} GB/s."
        return f"{rate}. {why} {self._held_text()}"

    def _held_text(self) -> str:
        held = f"Weights, keys and values take {bytes_text(self.held)}"
        if not self.room:
            return f"{held}."
        return f"{held} of {bytes_text(self.room)}{'.' if self.fits else ': too much, because a tenth stays free.'}"


def published() -> list[dict]:
    """Return the published rates as points: model, weights, card, bytes of a step, rate, source, whether a plain loop.

    The bytes are those that the source counts, where it prints GB/s; else those of `DecodeCase`.
    """
    points = []
    for model, weights, card, rate, source in PUBLISHED:
        if source is _LIT:
            size = DecodeCase(LLAMAS[model], weights_of(weights), ROOFS[card], context=0).moved.total
        else:
            moved = MOVED.get((model, weights, source)) or find_number(f"gpt-fast, {model}, {weights}, GB/s")
            size = round(1e9 * moved / rate)  # bytes a step = (bytes a second) / (steps a second)
        points.append(
            {"model": model, "weights": weights, "card": card, "bytes": size}
            | {"rate": rate, "source": source, "plain": source is _LIT}
        )
    return points


def shared_points(points: Iterable[Mapping], case: DecodeCase, model: str) -> list[dict]:
    """Return the points of a model in the format of a case, each with its `share` of its card's bandwidth.

    Those on the card of the case; where there are none, the one on the card that `_source_card` names. `here` is the
    rate scaled by the bandwidths, an estimate unless the card is that of the case. None where the case is not
    `comparable`.
    """
    if not case.comparable:
        return []
    own = [point for point in points if point["model"] == model]
    same = [point for point in own if point["weights"] == case.weights.name]
    on_card = [point for point in same if point["card"] == case.roof.name]
    source = _source_card(own, case.roof)
    elsewhere = [point for point in same if point["card"] == source and not point.get("plain")][:1]
    bandwidth = {name: roof.bandwidth for name, roof in ROOFS.items()} | {case.roof.name: case.roof.bandwidth}
    return [
        {
            **point,
            "share": point["rate"] * point["bytes"] / (1e9 * bandwidth[point["card"]]),
            "here": point["rate"] * case.roof.bandwidth / bandwidth[point["card"]],
        }
        for point in on_card or elsewhere
    ]


def _source_card(points: Iterable[Mapping], roof: Roof) -> str | None:
    """Return the card whose rates estimate those of another one, the same in every format: the nearest bandwidth.

    A plain loop says nothing of other cards, and a card without data sheet gets no estimate.
    """
    cards = [point["card"] for point in points if point["card"] in ROOFS and not point.get("plain")]

    def times(card: str) -> float:
        ratio = ROOFS[card].bandwidth / roof.bandwidth
        return max(ratio, 1 / ratio)

    return min(cards, key=times, default=None) if roof.name in ROOFS else None


def measured_text(points: list[dict], case: DecodeCase) -> str:
    """Say what was measured of a case: `points` are its `shared_points`."""
    if not case.comparable:
        return f"{MEASURED_SHORT} see them with a batch of 1 and a context of at most {READ_UP_TO}."
    if not points:
        return f"There is no rate of this model in {case.weights.label} to compare with: the limit stands alone."
    return " ".join(_measured_on_card(point, case) for point in points)


def _measured_on_card(point: Mapping, case: DecodeCase) -> str:
    rate = f"{point['rate']:,.2f}".rstrip("0").rstrip(".")
    counted = bytes_text(point["bytes"])  # which may differ from what the case moves
    share = f"{rate} tokens a second from {counted} a step, {math.floor(100 * point['share'] + 0.5)}\u00a0% of"
    if point["card"] == case.roof.name:
        return f"Measured with a batch of 1: {share} the bandwidth ({point['source']})."
    return (
        f"No rate in this format is published for this card. On {point['card']}: {share} its bandwidth"
        f" ({point['source']}). Scaled by the bandwidth, that would be {few_digits(point['here'])} here: an estimate,"
        " not a measurement."
    )


def make_facts(roofs: Iterable[Roof], models: Mapping[str, Architecture], points: Iterable[Mapping]) -> dict:
    """Return all that the page needs to predict and to compare, as JSON values; ours beside what was published."""
    rows = [asdict(roof) | {"memory": MEMORY.get(roof.name, 0)} for roof in (*ROOFS.values(), *roofs)]
    llamas = LLAMAS | dict(models)
    sizes = ("width", "layers", "heads", "groups", "hidden", "vocabulary", "positions", "tied")
    return {
        "models": [[name, {key: getattr(llama, key) for key in sizes}] for name, llama in llamas.items()],
        "formats": [asdict(weights_of(name)) for name in FORMATS],
        "cards": [{key: row[key] for key in ("name", "peaks", "bandwidth", "measured", "memory")} for row in rows],
        "points": [*points, *published()],
        "kv_bits": [[bits, label] for bits, label in KV_BITS.items()],
        "left_out": LEFT_OUT,
    }


def room_of(card: Mapping) -> int:
    """Return the bytes of a card of the facts; 0 where nobody knows."""
    return card["memory"] * GIGABYTE


def card_text(roof: Roof) -> str:
    """Return a card with its bandwidth."""
    return f"{device_label(roof)}, {few_digits(roof.bandwidth)} GB/s"
