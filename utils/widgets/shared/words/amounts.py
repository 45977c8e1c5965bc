"""Amounts as people read them: the twin of amounts.js. Ties are rounded away from zero, as a page does it."""

from decimal import ROUND_HALF_UP, Context, Decimal


def few_digits(x: float) -> str:
    """Return a number with three digits, with four from a thousand on: 0.0333, 989, 1,979."""
    rounded = Context(prec=3 if abs(x) < 1000 else 4, rounding=ROUND_HALF_UP).create_decimal(Decimal(x))
    text = f"{rounded:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def bytes_text(size: int) -> str:
    """Return bytes in GB, and in MB below a hundredth of one."""
    unit, name = (10**6, "MB") if abs(size) < 10**7 else (10**9, "GB")
    return f"{few_digits(size / unit)} {name}"
