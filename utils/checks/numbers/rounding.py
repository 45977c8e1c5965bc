"""Checks of `numbers/rounding`."""

from __future__ import annotations

import dis
import inspect
import math
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple

import numpy as np

from utils.checks.numbers.rounding_questions import E3M4, FIRST_GAPS, STALL, TO_BFLOAT16, TO_E4M3
from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    Unreadable,
    as_code,
    as_number,
    correct,
    exercise,
    not_yet,
    paper,
    paper_table,
    same_number,
)
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT32, decode, encode
from utils.rounding import quantize

LIBRARIES = ("numpy", "torch", "ml_dtypes", "struct", "_struct", "math", "ctypes", "utils")
NOTHING_YET = Outcome(NOT_ATTEMPTED, "The function returns nothing yet.")
check_e3m4 = paper_table(
    E3M4,
    says="`eps` is a gap, u half of it, `tiny` the smallest normal number, and `resolution` a count of digits.",
)
check_first_gaps = paper_table(
    FIRST_GAPS,
    says="2**(p + 1) + 2, each time: with p significant bits you count in twos without a hole up to 2**(p + 1).",
)
check_stall = paper(STALL)


@exercise(asks=TO_BFLOAT16, takes="to_bfloat16", seconds=5)
def check_to_bfloat16(answer) -> Outcome:
    """A function from a float32 code (int) to the bfloat16 code (int) nearest to it, a tie to even."""
    if (returned := _call(answer, 0x3F800000, shown="Code 0x3F800000")) is None or returned is ...:
        return NOTHING_YET
    words = _bfloat16_words()
    values = decode(words, FLOAT32)
    wanted = np.where(np.isnan(values), -1, encode(values, BFLOAT16).astype(np.int64))
    for word, want in zip(words.tolist(), wanted.tolist(), strict=True):
        got = _bfloat16_code(_call(answer, word, shown=f"Code 0x{word:08X}"), word)
        if got != want and not (want < 0 and got & 0x7FFF > 0x7F80):
            what = f"0x{want:04X}" if want >= 0 else "a NaN, such as 0x7FC0"
            value = float(np.float32(decode(word, FLOAT32)))
            start = f"0x{word:08X} ({value:.9g}) gives 0x{got:04X}, but it should give {what}."
            return not_yet(f"{start} {_bfloat16_hint(word, got, want)}")
    if foreign := _foreign_part(answer):
        return not_yet(f"All {len(words):,} codes are right, but {foreign}. Use integers only, and no library.")
    return correct(f"All {len(words):,} codes: ties, carries, subnormals, the largest numbers, infinities and NaNs.")


def _foreign_part(function: Callable, seen: frozenset = frozenset()) -> str:
    """Say which part of a Python function, or of one that it calls, is a float or a library's; "" if none is."""
    code = getattr(function, "__code__", None)
    if code is None or code in seen:
        return ""
    names = inspect.getclosurevars(function)
    for name, value in {**names.globals, **names.nonlocals, **names.builtins}.items():
        origin = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
        if isinstance(value, float) or value is float:
            return f"it uses `{name}`"
        if isinstance(value, ModuleType) or origin.partition(".")[0] in LIBRARIES:
            return f"it uses `{name}`"
        if isinstance(value, FunctionType) and (foreign := _foreign_part(value, seen | {code})):
            return foreign
    return _foreign_instruction(code)


def _foreign_instruction(code: CodeType) -> str:
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            return f"it imports `{instruction.argval}`"
        if instruction.argrepr in ("/", "/=", "__truediv__"):
            return "its `/` gives a float"
        if isinstance(instruction.argval, float):
            return f"it uses the float {instruction.argval!r}"
        if isinstance(instruction.argval, CodeType) and (foreign := _foreign_instruction(instruction.argval)):
            return foreign
    return ""


def _bfloat16_words() -> np.ndarray:
    """Return the float32 codes to try: first what tells the mistakes apart, then every region, then random ones."""
    telling = [0x3F800000, 0xC0200000]  # 1 and -2.5, which bfloat16 holds
    telling += [0x3F80C000, 0x3F804000, 0x3F808000, 0x3F818000]  # above half, below half, a tie down, a tie up
    telling += [0xBF80C000, 0xBF808000, 0xBF818000, 0x3FFFFFFF, 0x3FFF8000]  # negative; carries into the exponent
    telling += [0x00000001, 0x00008000, 0x00008001, 0x00018000, 0x007FFFFF, 0x80018000, 0x00000000, 0x80000000]
    telling += [0x7F7F7FFF, 0x7F7F8000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000]
    telling += [0x7FC00000, 0x7F800001, 0xFF800001, 0x7F808000, 0x7F80FFFF, 0x7FFFFFFF, 0xFFFFFFFF]
    rng = np.random.default_rng(0)
    high = np.concatenate([rng.integers(0, 2**16, 500), np.arange(256) << 7, (np.arange(256) << 7) - 1 & 0xFFFF])
    low = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
    regions = (high[:, None] << 16 | low).ravel()  # every binade at both ends, and every kind of low half
    return np.concatenate([telling, regions, rng.integers(0, 2**32, 4000)]).astype(np.uint32)


def _bfloat16_code(got, word: int) -> int:
    if isinstance(got, (float, np.floating)):
        raise Unreadable(f"0x{word:08X} gives the float {got!r}. A code is an int: use `>>` or `//`, not `/`.")
    try:
        code = as_code(got)
    except Unreadable:
        raise Unreadable(f"0x{word:08X} gives {got!r}. A code is a whole number, an int.") from None
    if code >= 2**16 and code & 0xFFFF == 0 and code < 2**32 and word >> 31 == code >> 31:
        raise Unreadable(f"0x{word:08X} gives 0x{code:08X}, still a float32 code. Shift it right by 16 bits.")
    if not 0 <= code < 2**16:
        raise Unreadable(
            f"0x{word:08X} gives {code:#x}, which is not a code of 16 bits. Python's integers do not wrap: an addition"
            " may carry past bit 31, and `~` gives negative numbers."
        )
    return code


def _bfloat16_hint(word: int, got: int, want: int) -> str:
    high, low = word >> 16, word & 0xFFFF
    if want < 0:
        if got & 0x7FFF == 0x7F80:
            return (
                "NaN became infinity: its only ones lay in the low half, which is dropped. Set a fraction bit yourself."
            )
        if got & 0x7FFF == 0:
            return "NaN became zero: the addition carried through the exponent. Treat NaN before you add."
        return "NaN must stay NaN: treat it before you add anything. Its exponent is all ones, its fraction is not 0."
    if got ^ want == 0x8000:
        return "The sign is lost, or turned round: bit 31 becomes bit 15."
    if got & 0x7FFF > 0x7F80:
        return "With an exponent of all ones, only a fraction that is not 0 means NaN; infinity's is 0."
    if want & 0x7FFF == 0x7F80:
        if low == 0 and high == want:
            return "Infinity stays infinity."
        return "From half an ulp past the largest number on it is infinity: the carry into the exponent makes it so."
    if got & 0x7FFF == 0 and high & 0x7F80 == 0:
        return "A subnormal is a number too, and rounds like any other: the same addition works for it."
    if low == 0x8000 and got == high + 1:
        return "That is a tie. Adding 0x8000 always sends it up; it goes to the even code, the one that ends in 0."
    if low == 0x8000 and got == high:
        return "That is a tie, and the code below ends in 1. It goes to the even one, above: so add that last bit too."
    if got == high:
        return "The low half was cut off. It is more than half of an ulp, so the code above is nearer."
    if got == high + 1:
        return "The low half is less than half of an ulp (or 0), so the code below is nearer."
    if want == high + 1 and want & 0x7F == 0:
        return "The fraction is full, so the step up carries into the exponent. Add to the whole code, not to a field."
    return "The upper 16 bits are the code; the lower 16 say whether it takes one step up."


class InputKind(NamedTuple):
    """One kind of input on which a quantiser goes wrong: its name, the values to try, and what to say."""

    name: str
    values: np.ndarray
    hint: str


@exercise(asks=TO_E4M3, takes="to_e4m3", seconds=5)
def check_to_e4m3(answer) -> Outcome:
    """A function from a float to the nearest E4M3 value: ties to even, saturating at 448, NaN and signs kept."""
    kinds, faults = _e4m3_kinds(), []
    if (fault := _call(answer, 1.0, shown="1.0")) is None or fault is ...:
        return NOTHING_YET
    if _is_as_published(answer, kinds):
        faulty = sum(bool(_e4m3_fault(answer, kind)) for kind in kinds)
        return Outcome(NOT_ATTEMPTED, f"As it stands, {faulty} of {len(kinds)} kinds of inputs come out wrong. Which?")
    for kind in kinds:
        if fault := _e4m3_fault(answer, kind):
            faults.append(f"{fault} {kind.hint}")
    if not faults:
        count = sum(len(kind.values) for kind in kinds)
        return correct(f"All {count:,} inputs: each value, each tie and both of its neighbours, and both ends.")
    more = f" In all, {len(faults)} of {len(kinds)} kinds of inputs come out wrong." if faults[1:] else ""
    return not_yet(faults[0] + more)  # the first one in words: to find the others is the exercise


def _is_as_published(answer: Callable, kinds: list[InputKind]) -> bool:
    """Whether a function does at every input what the one in the chapter does: nothing has been tried yet."""

    def result(function: Callable, value: float):
        try:
            return repr(function(value))
        except ArithmeticError as error:  # infinity overflows, and the smallest step is 0
            return type(error)

    try:
        values = np.concatenate([kind.values for kind in kinds]).tolist()
        return all(result(answer, value) == result(_published, value) for value in values)
    except TimeoutError:
        raise
    except Exception:  # another error than that of the chapter's function
        return False


def _published(x: float) -> float:
    """The function of the chapter, with its mistakes."""
    if x == 0 or math.isnan(x):
        return x
    exponent = math.frexp(x)[1] - 1
    q = math.floor(x / 2.0 ** (exponent - 3) + 0.5)
    field = exponent + 7 & 0b1111
    return q * 2.0 ** (field - 7 - 3)


def _e4m3_kinds() -> list[InputKind]:
    held = decode(np.arange(0x7F), FLOAT8_E4M3FN)  # 0 ... 448
    ties = (held[:-1] + held[1:]) / 2
    beside = np.concatenate([np.nextafter(ties, 0), np.nextafter(ties, np.inf)])
    low, trap = FLOAT8_E4M3FN.smallest_normal, np.nextafter(ties[0], 0)  # trap: 0.49999999999999994 steps
    small = np.concatenate([[0.001, 1e-5], held[1:], ties, beside, [1e-300, 5e-324]])
    past = np.array([600.0, 449.0, 463.0, 464.0, 465.0, 480.0, 512.0, 1000.0, 65504.0, 1e6, 1e300])
    normal, between, tie = (values[values >= low] for values in (held, beside, ties))
    tie = tie[np.argsort(np.abs(np.log2(tie)), kind="stable")]  # the first wrong one is shown: begin near 1

    def both(values) -> np.ndarray:
        return np.concatenate([values, -values])

    return [
        InputKind("values of E4M3", both(normal), "That is an E4M3 value, so it stays as it is."),
        InputKind("numbers beside a tie", both(between), "Of its two neighbours one is nearer: that one."),
        InputKind("ties", tie, "A tie goes to the neighbour with the even code. `floor(... + 0.5)` sends each tie up."),
        InputKind(
            "ties of negative numbers",
            -tie,
            "Rounding is the same on both sides of zero. `floor(... + 0.5)` sends a negative tie toward zero.",
        ),
        InputKind(
            "subnormals",
            both(small[(small < low) & (small != trap)]),
            "Below 2**-6 the steps shrink no further: all are 2**-9. So how small may the exponent become?",
        ),
        InputKind(
            "the number below half of the smallest step",
            both(np.array([trap])),
            "In float64, 0.49999999999999994 + 0.5 is 1.0: the addition rounds before `math.floor` sees it.",
        ),
        InputKind(
            "overflow",
            both(past),
            "Past 448 it saturates: 448, however large the number is. A field of four bits holds no larger exponent.",
        ),
        InputKind("infinities", both(np.array([np.inf])), "E4M3 has no infinity: what lies past 448 saturates."),
        InputKind("NaN", np.array([np.nan]), "NaN stays NaN."),
        InputKind(
            "the sign of zero",
            np.array([-1e-5, -0.0, 0.0]),
            "What rounds to zero keeps its sign. The int 0 has none; `math.copysign` can give it back.",
        ),
    ]


def _e4m3_fault(function: Callable, kind: InputKind) -> str:
    """Say what is wrong with the first wrong result, if any is."""
    wanted = quantize(kind.values, FLOAT8_E4M3FN, saturate=True)
    for value, want in zip(kind.values.tolist(), wanted.tolist(), strict=True):
        try:
            got = as_number(_call(function, value, shown=repr(value)))
        except Unreadable as error:
            return f"For {value!r}: {error}"
        # Both zeros will do until the kind that asks for the sign, so that each mistake has its own line.
        if not same_number(got, want) and (got != want or kind.name == "the sign of zero"):
            return f"{value!r} gives {got!r}, but it should give {want!r}."
    return ""


def _call(function: Callable, *inputs, shown: str):
    """Call a learner's function. Raises: Unreadable, naming the input, for whatever it raises, except a time limit."""
    try:
        return function(*inputs)
    except TimeoutError:
        raise
    except Exception as error:
        raise Unreadable(f"{shown} makes the function stop with {type(error).__name__}: {error}") from None
