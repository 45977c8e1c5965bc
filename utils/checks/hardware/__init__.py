"""Checks and questions of the part Hardware."""
