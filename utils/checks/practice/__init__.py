"""Checks and questions of the part Using it."""
