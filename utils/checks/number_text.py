"""Numbers as text, read exactly: what a reader types becomes a fraction, never a double; the twin of number_text.js.

A number is a Fraction; the infinities, NaN and -0, which no Fraction can be, are floats.
"""

import re
from fractions import Fraction

Number = Fraction | float

MOST_CHARACTERS, MOST_EXPONENT, MOST_BITS = 2000, 5000, 20000  # as in shared/numbers/number_text.js
SUPERSCRIPTS = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
FROM_SUPERSCRIPTS = str.maketrans(SUPERSCRIPTS, "-0123456789")
TO_SUPERSCRIPTS = str.maketrans("-0123456789", SUPERSCRIPTS)
TOKEN = re.compile(
    r"\s*(?:(?P<based>0x(?=\.?[\da-f])[\da-f]*(?:\.[\da-f]*)?(?:p[+-]?\d+)?|0b(?=\.?[01])[01]*(?:\.[01]*)?)"
    r"|(?P<decimal>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|(?P<sign>[-+*/^()]))"
)


def superscript(number: int | str) -> str:
    """Return a whole number in superscript characters: ⁻²⁴ for -24."""
    return str(number).translate(TO_SUPERSCRIPTS)


def read_number(text: str) -> Number:
    """Read what the page reads: 0.1, 1/3, 2^-24, 1 + 2**-11, 0x1.8p-3, 0b1.01, 1.6 × 2⁻⁷, inf, nan.

    Raises: ValueError for anything else, and for more digits or larger exponents than the page takes.
    """
    plain = re.sub(f"[{SUPERSCRIPTS}]+", lambda run: "^" + run[0].translate(FROM_SUPERSCRIPTS), text.strip().lower())
    for typed, meant in (("−", "-"), ("–", "-"), ("×", "*"), ("·", "*"), ("÷", "/"), ("∞", "inf"), ("**", "^")):
        plain = plain.replace(typed, meant)
    plain = re.sub(r"(?<=\d)_(?=[\da-f])", "", plain)
    if special := re.fullmatch(r"([+-]?)\s*(inf|infinity|nan)", plain):
        return float(special[1] + special[2])
    tokens, at = [], 0
    while at < len(plain) and (token := TOKEN.match(plain, at)):
        tokens.append((token.lastgroup, token[token.lastgroup]))
        at = token.end()
    try:
        if at < len(plain) or not tokens or len(plain) > MOST_CHARACTERS:
            raise ValueError("no number, or a long one")
        tokens.append(("end", ""))
        value = _sum(tokens)
        if tokens[0][0] != "end":
            raise ValueError("a sign too many")
    except (ValueError, ZeroDivisionError):
        raise ValueError(
            f'value {text!r} is not a number like "0.1", "1/3", "2^-24", "0x1.8p-3", "inf", "nan"'
        ) from None
    return -0.0 if value == 0 and re.match(r"-\s*[\d.]", plain) else value


def _take(tokens: list, signs: str) -> str:
    return tokens.pop(0)[1] if tokens[0][0] == "sign" and tokens[0][1] in signs else ""


def _sum(tokens: list) -> Fraction:
    left = _product(tokens)
    while sign := _take(tokens, "+-"):
        right = _product(tokens)
        left = left + right if sign == "+" else left - right
    return left


def _product(tokens: list) -> Fraction:
    left = _signed(tokens)
    while sign := _take(tokens, "*/"):
        right = _signed(tokens)
        left = left * right if sign == "*" else left / right
    return left


def _signed(tokens: list) -> Fraction:
    if sign := _take(tokens, "+-"):
        return _signed(tokens) if sign == "+" else -_signed(tokens)
    base = _atom(tokens)
    if not _take(tokens, "^"):
        return base
    exponent = _signed(tokens)
    size = base.numerator.bit_length() + base.denominator.bit_length()
    if exponent.denominator != 1 or abs(exponent) * size > MOST_BITS:
        raise ValueError("an exponent is a whole number, and not a huge one")
    return base**exponent.numerator


def _atom(tokens: list) -> Fraction:
    kind, text = tokens.pop(0)
    if kind == "decimal":
        _check_exponent(text.partition("e")[2])
        return Fraction(text)
    if kind == "based":
        return _based(text)
    if text != "(":
        raise ValueError("a number is missing")
    inside = _sum(tokens)
    if not _take(tokens, ")"):
        raise ValueError("a bracket is not closed")
    return inside


def _based(text: str) -> Fraction:
    digits, _, power = text[2:].partition("p")
    whole, _, fraction = digits.partition(".")
    _check_exponent(power)
    base = 16 if text[1] == "x" else 2
    return Fraction(int(whole + fraction, base), base ** len(fraction)) * Fraction(2) ** int(power or 0)


def _check_exponent(text: str) -> None:
    if abs(int(text or 0)) > MOST_EXPONENT:
        raise ValueError("a huge exponent")
