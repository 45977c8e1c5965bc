"""The rows of AskGpu's table: what a kernel computed, how its answer is read, and what WGSL allows.

Each row has the name of an answer (kernels.js). Its `reading` is data, so that the page and Python read alike:
`{"kind": "cases", "format": ..., "cases": [[codes, text], ...]}` names known answers and shows the numbers of others
(`"refused"`: the texts that WGSL does not allow); "values" shows numbers; "order" the order of a sum; "distinct" how
many different sums there were; "error" what `measure_errors` gives. `section` is one of the WGSL specification,
https://www.w3.org/TR/WGSL/.
"""

import math
from dataclasses import asdict, dataclass

from utils import formats
from utils.formats import FLOAT16, FLOAT32, FloatFormat

TOPICS = {
    "range": "subnormals, ∞, NaN",
    "sums": "products and sums",
    "functions": "division, functions",
    "float16": "float16",
}
DIFFERENCES, OVERFLOW, ACCURACY, FUSION, CONVERSION = "15.7.2", "15.7.3", "15.7.4.1", "15.7.5", "15.7.6"
QUANTIZING, ATOMIC, PACKING = "17.5.47", "17.8", "17.9.9"
SECTIONS = {  # of the editor's draft of August 2026
    DIFFERENCES: "Differences from IEEE-754",
    OVERFLOW: "Floating Point Rounding and Overflow",
    ACCURACY: "Accuracy of Concrete Floating Point Expressions",
    FUSION: "Reassociation and Fusion",
    CONVERSION: "Floating Point Conversion",
    QUANTIZING: "quantizeToF16",
    ATOMIC: "Atomic Built-in Functions",
    PACKING: "pack2x16float",
}
INDETERMINATE = "where an ∞ or a NaN would arise, any value may come out"
FLUSHED = "subnormal inputs and outputs may become 0"
EITHER = "either neighbour is right"
RULES = {  # of 1 + 3·2⁻¹¹, 1 + 2⁻¹¹, 1 + 2⁻¹¹ + 2⁻²⁰ and −(1 + 3·2⁻¹¹), to float16
    "to nearest, ties to even": (1 + 2**-9, 1, 1 + 2**-10, -(1 + 2**-9)),
    "to nearest, ties away from 0": (1 + 2**-9, 1 + 2**-10, 1 + 2**-10, -(1 + 2**-9)),
    "toward zero": (1 + 2**-10, 1, 1, -(1 + 2**-10)),
    "upward": (1 + 2**-9, 1 + 2**-10, 1 + 2**-10, -(1 + 2**-10)),
    "downward": (1 + 2**-10, 1, 1, -(1 + 2**-9)),
}
SUBNORMALS = {  # 2⁻¹⁵, 2⁻²⁴ and 1.5 · 2⁻²⁵, to float16
    "kept, and rounded to nearest": (2**-15, 2**-24, 2**-24),
    "kept, and rounded toward zero": (2**-15, 2**-24, 0),
    "flushed to 0": (0, 0, 0),
}
WHY = {  # what an answer means for a program, where that is not plain; by name of the row
    "subnormal_out": "If flushed, results below 2⁻¹²⁶ become 0.",
    "infinity_minus": "If 0, nothing shows that a number overflowed.",
    "nan_unequal": "If false, this usual test for NaN fails.",
    "nan_bits": "If true, a test of the bits still works.",
    "fused": "If fused, the last bits depend on the compiler.",
    "fma": "If rounded twice, it cannot recover the rounding error of a product.",
    "ones": "If it stops, float32 cannot count any further in ones.",
    "small_addends": "If all are lost, many small updates change nothing.",
    "kahan": "If simplified away, it is no better than an ordinary sum.",
    "two_sum": "If 0, sums of two floats lose their extra digits.",
    "order_subgroup": "Another order gives other last bits.",
    "atomics": "If they differ, a run cannot be repeated to the last bit.",
    "log": "256 inputs can miss the worst: at 0.41918939, SwiftShader’s is off by 3.02 ulp.",
    "half_excess": "If ∞, divide before you multiply.",
}


@dataclass(frozen=True)
class AnswerRow:
    """A row: the name of its answer, its topic, what was computed, what WGSL allows and where, and how to read it.

    `brief`: a sentence with {} for the answer, to stand above the table; "" for rows that are not among the first.
    """

    name: str
    topic: str
    what: str
    allows: str
    section: str
    reading: dict
    brief: str = ""

    @property
    def why(self) -> str:
        """What the answer means for a program; "" where that is plain."""
        return WHY.get(self.name, "")


def _codes(values, fmt: FloatFormat) -> list[int]:
    return [int(formats.encode(float(value), fmt)) for value in values]


def _cases(fmt: FloatFormat, cases: dict) -> dict:
    """Return the reading of an answer in codes. `cases`: text to a number, or several."""
    rows = [[_codes(value if isinstance(value, tuple) else (value,), fmt), text] for text, value in cases.items()]
    return {"kind": "cases", "format": fmt.name, "cases": rows}


def _flag(yes: str, no: str) -> dict:
    return {"kind": "cases", "format": "float32", "cases": [[[1], yes], [[0], no]]}


def _conversions(
    name: str, call: str, fmt: FloatFormat, sections: tuple[str, str, str], brief: str = ""
) -> list[AnswerRow]:
    """Return the rows of a way to float16. `sections`: of WGSL, on rounding, on subnormals, on what is too large."""
    flushed, outside = "a subnormal result may become 0", "beyond 65504 any value may come out"
    subnormals = _cases(fmt, SUBNORMALS)
    if name == "cast":
        flushed, outside = "subnormals are kept", "beyond 65504 the result is 65504 or ∞"
        subnormals["refused"] = ["flushed to 0"]
    rounding, small, large = sections
    values = {"kind": "values", "format": fmt.name}
    return [
        AnswerRow(f"{name}_rounding", "float16", f"{call}: how it rounds", EITHER, rounding, _cases(fmt, RULES), brief),
        AnswerRow(f"{name}_subnormals", "float16", f"{call}: 2⁻¹⁵, 2⁻²⁴, 1.5 · 2⁻²⁵", flushed, small, subnormals),
        AnswerRow(f"{name}_top", "float16", f"{call}: 65519, 65520, 10⁶", outside, large, values),
    ]


_RANGE = [
    AnswerRow("subnormal_out", "range", "2⁻¹²⁶ × 0.5, a subnormal result", FLUSHED, DIFFERENCES,
        _cases(FLOAT32, {"2⁻¹²⁷, kept": 2.0**-127, "0, flushed": 0}), "2⁻¹²⁶ × 0.5 gave {}"),
    AnswerRow("subnormal_in", "range", "2⁻¹²⁷ × 4, a subnormal input", FLUSHED, DIFFERENCES,
        _cases(FLOAT32, {"2⁻¹²⁵": 2.0**-125, "0, flushed": 0})),
    AnswerRow("overflow", "range", "3 · 10³⁸ × 10, beyond float32", INDETERMINATE, OVERFLOW,
        _cases(FLOAT32, {"∞": math.inf, "the largest float32": FLOAT32.max})),
    AnswerRow("division_by_zero", "range", "1 / 0", INDETERMINATE, OVERFLOW,
        _cases(FLOAT32, {"∞": math.inf, "the largest float32": FLOAT32.max})),
    AnswerRow("infinity_minus", "range", "the overflow above minus itself", INDETERMINATE, DIFFERENCES,
        {"kind": "values", "format": "float32"}),
    AnswerRow("nan_unequal", "range", "x != x, where x is NaN", "a compiler may assume that there is no NaN",
        DIFFERENCES, _flag("true", "false"), "x != x, for a NaN, was {}"),
    AnswerRow("nan_bits", "range", "is x NaN by its bits?", "a compiler may assume that there is no NaN",
        DIFFERENCES, _flag("true", "false")),
]  # fmt: skip
_FUSED = {"rounded twice": 0, "fused, rounded once": 2.0**-24}
_SUMS = [
    AnswerRow("fused", "sums", "a × a + c, whose exact value is 2⁻²⁴", "may be fused", FUSION,
        _cases(FLOAT32, _FUSED), "a × a + c was {}"),
    AnswerRow("fma", "sums", "fma(a, a, c)", "may be no better than a × a + c", ACCURACY,
        _cases(FLOAT32, _FUSED), "fma(a, a, c) was {}"),
    AnswerRow("dot", "sums", "dot((a, 1), (a, c))", "may be no better than the sum of products", ACCURACY,
        _cases(FLOAT32, _FUSED)),
    AnswerRow("ones", "sums", "2²⁴ − 8, plus 16 ones in turn", "may be reordered", FUSION,
        _cases(FLOAT32, {"stops at 2²⁴": 2.0**24, "2²⁴ + 8, reordered": 2.0**24 + 8})),
    AnswerRow("small_addends", "sums", "1, plus 2⁻²⁵ 1,024 times", "may be reordered", FUSION,
        _cases(FLOAT32, {"1, all lost": 1, "1 + 2⁻¹⁵, reordered": 1 + 2.0**-15})),
    AnswerRow("kahan", "sums", "the same by Kahan’s sum", "its correction may be simplified to 0", FUSION,
        _cases(FLOAT32, {"1 + 2⁻¹⁵, exact": 1 + 2.0**-15, "1, simplified away": 1}), "Kahan’s sum gave {}"),
    AnswerRow("two_sum", "sums", "what 10¹⁰ + 10⁻¹⁰ loses, by TwoSum", "it may be simplified to 0", FUSION,
        _cases(FLOAT32, {"10⁻¹⁰, all of it": 1e-10, "0, simplified away": 0})),
    AnswerRow("order_loop", "sums", "the order of 16 numbers in a loop", "any order", FUSION, {"kind": "order"}),
    AnswerRow("order_tree", "sums", "the order of 64 numbers, added in halves", "any order", FUSION, {"kind": "order"}),
    AnswerRow("order_subgroup", "sums", "the order of subgroupAdd", "any order", ACCURACY, {"kind": "order"},
        "subgroupAdd added {}"),
    AnswerRow("atomics", "sums", "4,096 numbers, added by compare-and-exchange in 8 runs",
        "no atomic addition of floats; threads take turns in any order", ATOMIC, {"kind": "distinct"},
        "4,096 additions by compare-and-exchange gave {}, a count that changes from press to press"),
]  # fmt: skip
_HALF = [
    AnswerRow("half_ones", "float16", "float16: 2040, plus 16 ones in turn", "may be reordered", FUSION,
        _cases(FLOAT16, {"stops at 2048": 2048, "2056, reordered or wider": 2056})),
    AnswerRow("half_top", "float16", "float16: 65504 + 32", INDETERMINATE, OVERFLOW,
        {"kind": "values", "format": "float16"}),
    AnswerRow("half_excess", "float16", "float16: (60000 × 2) / 4", INDETERMINATE, OVERFLOW,
        _cases(FLOAT16, {"∞": math.inf, "30000, wider inside": 30000})),
    AnswerRow("half_subnormal", "float16", "float16: 2⁻¹⁴ × 0.5", FLUSHED, DIFFERENCES,
        _cases(FLOAT16, {"2⁻¹⁵, kept": 2.0**-15, "0, flushed": 0})),
    AnswerRow("half_fused", "float16", "float16: a × a + c, exactly 2⁻¹²", "may be fused", FUSION,
        _cases(FLOAT16, {"rounded twice": 0, "fused, rounded once": 2.0**-12})),
    AnswerRow("half_kahan", "float16", "float16: 1, plus 2⁻¹² 1,024 times, by Kahan’s sum",
        "its correction may be simplified to 0", FUSION,
        _cases(FLOAT16, {"1.25, exact": 1.25, "1, simplified away": 1})),
]  # fmt: skip
_ERROR = {"kind": "error"}
_FUNCTIONS = [
    AnswerRow("reciprocal", "functions", "1 / x", "2.5 ulp", ACCURACY, _ERROR),
    AnswerRow("division", "functions", "x / y", "2.5 ulp", ACCURACY, _ERROR),
    AnswerRow("sqrt", "functions", "sqrt(x)", "1 / inverseSqrt(x): 2 ulp, then 2.5 ulp", ACCURACY, _ERROR),
    AnswerRow("exp", "functions", "exp(x), from −8 to 8", "3 + 2|x| ulp", ACCURACY, _ERROR, "exp gave {}"),
    AnswerRow("log", "functions", "log(x), from 1/8 to 16", "3 ulp; from 0.5 to 2 an error of 2⁻²¹", ACCURACY, _ERROR),
    AnswerRow("sin", "functions", "sin(x), from −π to π", "an error of 2⁻¹¹", ACCURACY, _ERROR),
]

ROWS = [
    *_RANGE,
    *_SUMS,
    *_FUNCTIONS,
    *_conversions("pack", "pack2x16float(x)", FLOAT16, (ACCURACY, DIFFERENCES, PACKING)),
    *_conversions(
        "quantize", "quantizeToF16(x)", FLOAT32, (ACCURACY, QUANTIZING, QUANTIZING), "quantizeToF16 rounded {}"
    ),
    *_conversions("cast", "f16(x)", FLOAT16, (CONVERSION, CONVERSION, CONVERSION), "f16(x) rounded {}"),
    *_HALF,
]


def rows_of_page() -> list[dict]:
    """Return the rows as JSON values."""
    return [{**asdict(row), "why": row.why} for row in ROWS]
