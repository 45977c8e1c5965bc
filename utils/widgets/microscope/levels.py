"""The levels of Microscope: which adder is hidden, what the reader is told of it, and what there is to name."""

from dataclasses import asdict, dataclass

from utils.widgets.microscope.adders import HiddenAdder

LARGEST = 15  # exponent of a term: float16 and E4M3 products hold it
FLOAT16_LOWEST = -22  # of one with two more significant bits: float16's last place is 2**-24
E4M3_LOWEST = -12  # of a product of two normal E4M3 numbers
ASKED = ("bits", "rule", "order", "extra", "flush")


@dataclass(frozen=True)
class Level:
    """A hidden adder, what is said before (`told`) and after (`says`), what is asked, and the first sum in the places.

    `lowest`: the smallest exponent of a term.
    """

    name: str
    title: str
    adder: HiddenAdder
    asks: tuple[str, ...]
    told: str
    says: str
    begin: str = "1 2^-9 -1"
    lowest: int = FLOAT16_LOWEST

    def as_json(self) -> dict:
        """Return the level for the page; with an id and a text, by which the book counts what is done."""
        task = f"Microscope: name the properties of “{self.title}”."
        return {
            **asdict(self),
            "asks": list(self.asks),
            "id": f"hardware/accumulation/hidden-{self.name}",
            "text": task,
        }


_MODEL = "Found by Xie, Wang, Yang and Yang, 2025; this is a model of it, with terms times 1."
LEVELS = (
    Level(
        "nearest",
        "A first look",
        HiddenAdder(11),
        ("bits",),
        "It adds one term after the other and rounds each sum to nearest, ties to even.",
        "These are float16’s 11 bits: after 1, the next number is 1 + 2⁻¹⁰.",
    ),
    Level(
        "cut",
        "Something is missing",
        HiddenAdder(8, rule="toward_zero"),
        ("bits", "rule"),
        "It adds one term after the other, each sum exact before it is rounded.",
        "Bfloat16’s 8 bits, and what does not fit is cut off: three quarters of 2⁻⁷, added to "
        "1, are lost, and with all signs reversed they are lost too.",
        "1 1.5*2^-7 -1",
    ),
    Level(
        "away",
        "The tie",
        HiddenAdder(12, rule="ties_away"),
        ("bits", "rule"),
        "It adds one term after the other, each sum exact before it is rounded.",
        "To nearest, but half of the last bit always goes away from zero. Only a tie at an even number tells.",
        "1 1.5*2^-12 -1",
    ),
    Level(
        "subnormal",
        "Small terms",
        HiddenAdder(24, flush=True),
        ("bits", "rule", "flush"),
        "It adds one term after the other. Float16’s smallest normal number is 2⁻¹⁴; smaller ones are subnormal.",
        "Float32’s additions, with subnormal terms read as 0. PyTorch’s notes on numerical accuracy say that AMD’s "
        "MI200 reads subnormal float16 operands as 0 as well; how it rounds, they do not say.",
        "2^8 2^-10 -2^8",
    ),
    Level(
        "pairs",
        "Who meets whom",
        HiddenAdder(11, order="pairs"),
        ("bits", "order"),
        "Each addition rounds to nearest, ties to even. The order is not told.",
        "Pairs, then pairs of sums: two terms of 2⁻¹¹ beside each other meet before they meet the 1.",
        "1 2^-11 2^-11 2^-11 2^-11",
    ),
    Level(
        "volta",
        "A real unit: 2017",
        HiddenAdder(24, 0, "toward_zero", 4),
        ASKED,
        "Float16 operands.",
        "The tensor core of a V100: four products and the total at once, shifted to the largest exponent and cut at "
        "24 bits. Found by Fasi, Higham, Mikaitis and Pranesh, 2021.",
        "2^8 2^-15 2^-15 0 -2^8",
    ),
    Level(
        "ampere",
        "A real unit: 2020",
        HiddenAdder(24, 1, "toward_zero", 8),
        ("bits", "rule", "order", "extra"),
        "Float16 operands.",
        "The tensor core of an A100: eight products at once, and one bit more than the V100 keeps of each. " + _MODEL,
        "2^8 2^-15 2^-16 -2^8",
    ),
    Level(
        "hopper",
        "A real unit: 2022",
        HiddenAdder(24, 2, "toward_zero", 8),
        ("bits", "rule", "order", "extra"),
        "Float16 operands.",
        "The tensor core of an H100: two bits more than the V100 keeps. It takes 16 products at once, of which your "
        "eight places hold half. " + _MODEL,
        "2^8 2^-15 2^-16 -2^8",
    ),
    Level(
        "hopper-fp8",
        "The unit of the puzzle",
        HiddenAdder(14, 0, "toward_zero", 8),
        ("bits", "rule", "order", "extra"),
        "E4M3 operands: each term is a product of two such numbers.",
        "FP8 on an H100: 13 bits below the largest exponent, 14 with the leading one, and the rest cut off. It takes "
        "32 products at once. " + _MODEL,
        "1 2^-10 -1",
        E4M3_LOWEST,
    ),
)
RANDOM = Level(
    "random",
    "Drawn at random",
    HiddenAdder(24),  # the page draws another by its seed
    ASKED,
    "Anything is possible; the next seed hides another.",
    "No unit that we know of; the seed has drawn it.",
    "1 2^-10 -1",
)
PRESETS = (
    (
        "1 + x − 1",
        "1 2^-10 -1",
        "Halve x until it no longer comes back. Then leave out −1: if 1 + x loses x sooner, all three met at once.",
    ),
    (
        "¾ of a bit",
        "1 1.5*2^-11 -1",
        "Make x three quarters of the first bit that is lost. Rounding to nearest returns more than x. Cutting returns "
        "0, and so does an adder that cuts its addends first.",
    ),
    (
        "far apart",
        "1 0 0 0 2^-10 0 0 -1",
        "In pairs, x now meets −1 before 1, so that a smaller x survives. In blocks of four or eight, nothing changes.",
    ),
    (
        "two halves",
        "1 2^-11 2^-11 0 0 0 0 -1",
        "Each half alone is a tie for 11 bits. If both meet 1 in one addition, uncut, they survive any rule. The −1 "
        "stands last, after both.",
    ),
    (
        "who meets whom",
        "2^15 2^-10 2^-10 2^-10 2^-10 2^-10 2^-10 -2^15",
        "Unless the unit rounds up, what comes back did not meet 2¹⁵ alone: these terms met each other first, or all "
        "terms at once.",
    ),
)  # what each is called, the terms, and what its answer tells
