"""Amounts, sizes and codes as people read them."""
