"""Texts packed for a page: each word is one character, and the list of words says which one.

Gzipped, the book's prose takes 30 kB less than as plain text, and the page gets the words of its index for nothing.
The words that occur most take the characters of one byte, the next ones those of two. A space between two words is
not written; a capital letter is a sign before the word. `search_ranking.js` unpacks what `pack` gives.
"""

import re
from collections import Counter

FIRST = 0x20  # the character of the first word; word number i has chr(FIRST + i)
GAPS = (ord('"'), ord("\\"), *range(0x7F, 0xA1))  # characters that cost more in a script, or that nobody can see
TIERS = (0x80, 0x800, 0xD800)  # below them a character takes one byte, two, three
CAPITAL = "⇧"  # before a word that begins with a capital letter
TOKEN = re.compile(r"\w+|\W+")
TITLE_CASE = re.compile(r"[A-Z][a-z]+")
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # letters that a word shares with the one before it


def tokens(text):
    """The words of a text and what stands between them, without the single spaces."""
    for piece in TOKEN.findall(text):
        if TITLE_CASE.fullmatch(piece):
            yield from (CAPITAL, piece.lower())
        elif piece != " ":
            yield piece


def places(words):
    """The words in the order of their characters: the frequent ones first, those of one tier by the alphabet."""
    ranked = [word for word, _ in sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))]
    ordered, code = [], FIRST
    for limit in TIERS:
        free = [code not in GAPS for code in range(code, limit)]
        tier = iter(sorted(ranked[: sum(free)]))
        ordered += [next(tier, "") if is_free else "" for is_free in free]
        ranked, code = ranked[sum(free) :], limit
    if ranked:
        raise ValueError(f"{len(ranked)} words too many for one character each")
    while ordered and not ordered[-1]:
        ordered.pop()
    return ordered


def shared(word, before):
    """How many letters a word shares with the one before it in the list."""
    same = 0
    while same < min(len(word), len(before), len(DIGITS) - 1) and word[same] == before[same]:
        same += 1
    return same


def written(words):
    """The list as one text, a word a line: the number of letters shared with the word before, and the other ones."""
    lines, before = [], ""
    for word in words:
        same = shared(word, before)
        lines.append(f"{DIGITS[same]}{word[same:]}" if word else "")
        before = word or before
    return "\n".join(lines)


def pack(texts):
    """The list of words as one text, and each of the texts with a character for each word.

    Raises: ValueError for a text that holds the sign for capitals or a line end, or for more words than characters.
    """
    if wrong := [text for text in texts if CAPITAL in text or "\n" in text]:
        raise ValueError(f"a text with {CAPITAL} or a line end cannot be packed: {wrong[0][:80]!r}")
    split = [list(tokens(text)) for text in texts]
    words = places(Counter(token for pieces in split for token in pieces))
    codes = {word: chr(FIRST + place) for place, word in enumerate(words) if word}
    return written(words), ["".join(codes[token] for token in pieces) for pieces in split]
