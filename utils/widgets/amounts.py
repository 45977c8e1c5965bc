"""Amounts as people read them: the twin of amounts.js. Ties are rounded away from zero, as a page does it."""

from decimal import ROUND_HALF_UP, Context, Decimal

WORDS = {10**12: "trillion", 10**9: "billion", 10**6: "million", 10**3: "thousand"}


def few_digits(x: float) -> str:
    """Give a number with three digits, with four from a thousand on: 0.0333, 989, 1,979."""
    rounded = Context(prec=3 if abs(x) < 1000 else 4, rounding=ROUND_HALF_UP).create_decimal(Decimal(x))
    text = f"{rounded:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count_text(count: int) -> str:
    """Give a count as people say it: 67 million, 6.74 billion; below a thousand as it is."""
    for size, word in WORDS.items():
        if count >= 0.9995 * size:
            rounded = Context(prec=3, rounding=ROUND_HALF_UP).create_decimal(Decimal(count / size))
            return f"{float(rounded):g} {word}"
    return str(count)


def bytes_text(size: int) -> str:
    """Give bytes in GB, and in MB below a hundredth of one."""
    unit, name = (10**6, "MB") if abs(size) < 10**7 else (10**9, "GB")
    return f"{few_digits(size / unit)} {name}"
