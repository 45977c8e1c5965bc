"""Checks and questions of the part Eight bits and fewer."""
