"""Formats, codes, rounding, scales and random numbers, in Python and in the page's language."""
