"""Bytes, roofs and recipes of several widgets, in Python and in the page's language."""
