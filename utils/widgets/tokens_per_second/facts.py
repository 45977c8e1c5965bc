"""What TokensPerSecond predicts: the bytes of a step, the tokens a second that card and model allow, and what was read.

The bytes are those of `utils.cost.token_bytes.predict`, and again, in the page's language, of
bytes.js; the sentences are those of words.js. torch is imported only where bytes
are asked for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from utils.cost.architectures import NAMED, Architecture
from utils.cost.cards import BOARDS, GIGABYTE, ROOFS, fits
from utils.cost.roofline import Roof
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
SHORT = 100  # tokens: what a context is taken for where a source says that it is short
READ_UP_TO = 256  # tokens of context up to which a rate that was measured with short texts is shown
_FAST = "gpt-fast, README: compiled, 330 W, all linear layers, the head too"
_LIT = "S. Raschka on mixed precision, Lit-LLaMA: not compiled, no cache, the first call counted"
_FAST_INT4 = 5  # bits: its quantize.py keeps a scale and a zero, 16 bits each, for 32 weights
PUBLISHED = (  # model, weights, card, tokens a second, where it stands; batch 1, short texts
    ("LLaMA 7B", "bfloat16", "A100 SXM 80 GB", 104.9, _FAST),
    ("LLaMA 7B", "int8", "A100 SXM 80 GB", 155.58, _FAST),
    ("LLaMA 7B", "int4", "A100 SXM 80 GB", 196.80, _FAST),
    ("Llama 2 70B", "int8", "A100 SXM 80 GB", 19.13, _FAST),
    ("Llama 2 70B", "int4", "A100 SXM 80 GB", 25.25, _FAST),
    ("LLaMA 7B", "float32", "A100 SXM 40 GB", 11.47, _LIT),
    ("LLaMA 7B", "bfloat16", "A100 SXM 40 GB", 16.70, _LIT),
)
LEFT_OUT = (
    "A limit: weights, keys and values are read once for each step and moving and computing overlap; launches, the"
    " choice of the token and what else a step does are left out. Weights of 8 and 4 bits are those of the linear"
    " layers, widened on the way; the rest, and what is computed, is in 16 bits, beside float32 in 32. 1 GB is 10⁹"
    f" bytes. Measured rates are of one short text, shown up to a context of {READ_UP_TO}; beside each stands its share"
    f" of the bandwidth, with the bytes that its program read. gpt-fast, taken to have {SHORT} tokens before, narrows"
    f" the head too, and its int4 has a zero beside each scale: {_FAST_INT4} bits. Lit-LLaMA kept no cache."
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
    context: int = SHORT
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
        """The tokens a second, of all texts together, at most."""
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
        """Whether measured rates, which are of one short text, say something about it."""
        return self.batch == 1 and self.context <= READ_UP_TO

    @property
    def verdict(self) -> str:
        """The rate, what decides it, and what the card has to hold."""
        moved, text_rate = self.moved, few_digits(self.tokens_per_second / self.batch)
        rate = f"At most {few_digits(self.tokens_per_second)} tokens a second"
        rate += f", {text_rate} for each of {self.batch:,} texts" if self.batch > 1 else ""
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
    """Return the published rates as points: model, weights, card, batch, bytes of a step, rate, source."""
    points = []
    for model, weights, card, rate, source in PUBLISHED:
        kept = weights_of(weights)
        if source is _FAST and weights == "int4":
            kept = replace(kept, bits=_FAST_INT4)
        context = 0 if source is _LIT else SHORT
        moved = DecodeCase(LLAMAS[model], kept, ROOFS[card], context=context, head=True).moved
        points.append(
            {"model": model, "weights": weights, "card": card, "bytes": moved.total} | {"rate": rate, "source": source}
        )
    return points


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
