"""Checks and questions of the part Numbers."""
