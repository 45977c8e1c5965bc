"""Checks and questions of the part Training."""
