"""Every special value of every format, worked out from `utils.formats`: what the reference page and its CSV hold.

`python -m utils.emulation.format_landmarks` writes the CSV, `book/_static/formats.csv`.
"""

import csv
import io
import math
from pathlib import Path
from typing import NamedTuple

from utils.formats import FORMATS, FloatFormat, decode, encode

CSV = Path(__file__).resolve().parents[2] / "book" / "_static" / "formats.csv"
HEADER = (
    "One row for each quantity of each format; the names are explained in the book, page Formats.",
    "decimal: the shortest text that reads back as the same float64. hex: the exact value as a C99 hexadecimal float.",
    "code: the bits sign | exponent | fraction as a hexadecimal integer, where a code stands for the value.",
)
COLUMNS = ("format", "quantity", "decimal", "hex", "code")
COUNTS = (
    "bits",
    "sign_bits",
    "exponent_bits",
    "mantissa_bits",
    "precision",
    "bias",
    "emin",
    "emax",
    "finite_codes",
    "nan_codes",
    "infinity_codes",
    "zero_codes",
    "digits_kept",
    "digits_needed",
    "whole_numbers",
)


class Landmark(NamedTuple):
    """A value with a name: as float64, which holds it exactly, and its code, None for a gap between two values."""

    value: float
    code: int | None


def landmarks(fmt: FloatFormat) -> dict[str, Landmark]:
    """Return the special values of a format by name, without those that it does not have.

    The values, each with its code: `max`, `lowest` (-max), `smallest_above_one`, `one`, `largest_below_one`,
    `smallest_normal`, `largest_subnormal`, `smallest_subnormal`, `zero`, `negative_zero`, `inf`, `negative_inf`, `nan`
    (the code that `encode` writes). The gaps, without one: `eps` above 1, and the unit roundoff `unit_roundoff`.
    """
    code_of_one = int(encode(1.0, fmt))
    hidden, sign = 2**fmt.mantissa_bits, fmt.sign_code  # the code after the last subnormal; the sign bit
    codes = {"max": fmt.max_code}
    if fmt.signed:
        codes["lowest"] = fmt.max_code | sign
    codes |= {"smallest_above_one": code_of_one + 1, "one": code_of_one, "largest_below_one": code_of_one - 1}
    if fmt.has_zero:
        codes |= {"smallest_normal": hidden, "largest_subnormal": hidden - 1, "smallest_subnormal": 1, "zero": 0}
    else:
        codes["smallest_normal"] = 0  # E8M0: code 0 is 2**-127
    if fmt.has_negative_zero:
        codes["negative_zero"] = sign
    if fmt.has_inf:
        codes |= {"inf": fmt.inf_code, "negative_inf": fmt.inf_code | sign}
    if fmt.has_nan:
        codes["nan"] = fmt.nan_code
    landmarks = {name: Landmark(float(decode(code, fmt)), code) for name, code in codes.items()}
    return landmarks | {"eps": Landmark(fmt.eps, None), "unit_roundoff": Landmark(fmt.eps / 2, None)}


def counts(fmt: FloatFormat) -> dict[str, int]:
    """Return the whole numbers that describe a format, by the names of `COUNTS`.

    `digits_kept`: decimal digits that survive text to format to text, floor((p - 1) log10 2). `digits_needed`: digits
    of a text that leads back to the same value, ceil(1 + p log10 2). Both hold for normal values. `whole_numbers`: the
    largest n such that the format holds 1, 2, ..., n.
    """
    p = fmt.precision
    nans, infinities = nan_codes(fmt), 2 * int(fmt.has_inf)
    zeros = int(fmt.has_zero) + int(fmt.has_negative_zero)
    return {
        "bits": fmt.bits,
        "sign_bits": int(fmt.signed),
        "exponent_bits": fmt.exponent_bits,
        "mantissa_bits": fmt.mantissa_bits,
        "precision": p,
        "bias": fmt.bias,
        "emin": fmt.emin,
        "emax": fmt.emax,
        "finite_codes": 2**fmt.bits - nans - infinities,
        "nan_codes": nans,
        "infinity_codes": infinities,
        "zero_codes": zeros,
        "digits_kept": math.floor((p - 1) * math.log10(2)),
        "digits_needed": math.ceil(1 + p * math.log10(2)),
        "whole_numbers": int(min(2**p, fmt.max)),
    }


def nan_codes(fmt: FloatFormat) -> int:
    """Count the codes that are NaN, with those of both signs."""
    if fmt.has_inf:
        return 2 * (2**fmt.mantissa_bits - 1)  # the highest exponent with any fraction but 0, of either sign
    if fmt.specials == "all_ones":
        return 1 + int(fmt.signed)  # all exponent and fraction bits are 1
    return int(fmt.has_nan)


def hex_code(code: int, fmt: FloatFormat) -> str:
    """Write a code as hexadecimal digits, as many as its format has: 7BFF, 7E, F."""
    return f"{code:0{-(-fmt.bits // 4)}X}"


def csv_text() -> str:
    """Return the whole table as CSV: three lines of comment, the names of the columns, a row for each quantity."""
    out = io.StringIO()
    out.writelines(f"# {line}\n" for line in HEADER)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for fmt in FORMATS.values():
        for name, count in counts(fmt).items():
            writer.writerow((fmt.name, name, count, "", ""))
        for name, (value, code) in landmarks(fmt).items():
            number = int(value) if value.is_integer() and abs(value) < 2**53 else value
            decimal = repr(number) if math.copysign(1, value) > 0 or value else "-0"
            shown = value.hex() if math.isfinite(value) else ""
            writer.writerow((fmt.name, name, decimal, shown, "" if code is None else f"0x{hex_code(code, fmt)}"))
    return out.getvalue()


def read_csv(text: str) -> list[dict[str, str]]:
    """Read the table back: one dict for each row."""
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


if __name__ == "__main__":
    CSV.write_text(csv_text(), "utf8", newline="\n")
    print(f"{CSV.name}: {len(read_csv(csv_text()))} rows")
