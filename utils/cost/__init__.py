"""What a step costs before it is run.

Parameters, activations, bytes, FLOPs, the roofline, cards, and what fits on them.
"""
