"""One run and its record.

The experiment, its command line, the cache, tables, and numbers that others have published.
"""
