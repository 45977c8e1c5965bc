"""The product of two matrices of 256 rows on a processor without 16-bit products: a chapter compares it with another.

`your_machine` ran on it at commit b2f2246 (26 November 2026, one thread). No record was kept, only the medians of 12
turns, which that commit's notebook shows.
"""

ROWS = 256
NAME = "AMD EPYC"  # as the processor reports it
FLAGS = ("f16c",)  # of `machine.cpu_flags`, those about 16-bit formats
MILLISECONDS = {"float32": 0.68, "bfloat16": 25.03, "float16": 25.20}
