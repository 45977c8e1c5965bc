"""The table of formats for the pages: formats.js, which `python -m utils.widgets.shared.numbers.formats` writes.

The file lies beside this one like any other, so that editors, Node.js and linters see what the other files import; a
test holds it equal to the table.
"""

import json
from pathlib import Path

from utils.formats import FORMATS, FloatFormat

FILE = Path(__file__).with_suffix(".js")


def format_label(fmt: FloatFormat) -> str:
    """Return the name of a format in prose: float16, TF32, E4M3, E4M3FNUZ, E8M0."""
    if fmt.name == "tf32":
        return "TF32"
    if "_" not in fmt.name:
        return fmt.name
    return fmt.name.split("_")[1].removesuffix("fnu").removesuffix("fn").upper()


def format_row(fmt: FloatFormat) -> dict:
    """Describe a format for the page; codes as hexadecimal text, for a code has more bits than a JSON number holds."""
    return {
        "name": fmt.name,
        "label": format_label(fmt),
        "bits": fmt.bits,
        "exponent_bits": fmt.exponent_bits,
        "mantissa_bits": fmt.mantissa_bits,
        "bias": fmt.bias,
        "emin": fmt.emin,
        "emax": fmt.emax,
        "specials": fmt.specials,
        "signed": fmt.signed,
        "has_inf": fmt.has_inf,
        "has_nan": fmt.has_nan,
        "has_zero": fmt.has_zero,
        "has_negative_zero": fmt.has_negative_zero,
        "max_code": hex(fmt.max_code),
        "nan_code": hex(fmt.nan_code) if fmt.has_nan else None,
        "inf_code": hex(fmt.inf_code) if fmt.has_inf else None,
    }


def table_source() -> str:
    """Return the text of formats.js."""
    rows = "".join(f"  {name}: {json.dumps(format_row(fmt))},\n" for name, fmt in FORMATS.items())
    head = "// The formats of utils/formats.py by name, written by formats.py."
    return f"{head}\n\nexport const FORMATS = {{\n{rows}}};\n"


if __name__ == "__main__":
    FILE.write_text(table_source(), "utf8")
