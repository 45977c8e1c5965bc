"""Products and sums as narrow hardware makes them, on any device.

Scaled tensors and their products, accumulators, tensor cores.
"""
