"""The experiments of the book besides the two at the top.

Each a command that prints a table and writes a record.
"""
