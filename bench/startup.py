"""How long imports take, as ratios: each module against a bare interpreter, and `utils` against what it stands on.

A chapter's reader waits for its imports. Limits from the book's goals: `utils.formats` costs little more than NumPy,
and nothing on the lower floors costs torch.
"""

import statistics
import subprocess
import sys
import time

ROUNDS = 5
MAX_SPREAD = 0.20  # two medians of the same thing may differ by this much, or the machine is too busy to report
# what is imported, and the peer that it is compared with
PAIRS = (
    ("numpy", "nothing"),
    ("utils.formats", "numpy"),
    ("utils.rounding", "numpy"),
    ("utils.records", "nothing"),
    ("utils.widgets.bit_flip", "anywidget"),
    ("torch", "nothing"),
    ("utils.fake_quantize", "torch"),
    ("utils.machine", "torch"),
    ("utils.training.recipes", "torch"),
    ("utils.distilbert", "torch"),
)


def seconds(module):
    """Wall time of a fresh interpreter that imports `module`."""
    code = "pass" if module == "nothing" else f"import {module}"
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def medians(modules):
    """Median seconds of each module; the rounds go over all modules in turn, so that a busy spell hits all alike."""
    times = {module: [] for module in modules}
    for _ in range(ROUNDS):
        for module in modules:
            times[module].append(seconds(module))
    return {module: statistics.median(values) for module, values in times.items()}


def main():
    """Print the table; refuse where two medians of the limit differ by more than a fifth."""
    modules = list(dict.fromkeys(name for pair in PAIRS for name in reversed(pair)))
    for module in modules:
        seconds(module)  # fills the file cache and writes bytecode
    result = medians(modules)
    again = medians(["nothing"])["nothing"]
    spread = abs(again - result["nothing"]) / result["nothing"]
    if spread > MAX_SPREAD:
        print(f"a bare interpreter took {result['nothing']:.3f} s and then {again:.3f} s: too busy to report")
        return 1
    print(f"{'import':<26} {'seconds':>8}   ratio to its peer")
    for module, peer in PAIRS:
        print(f"{module:<26} {result[module]:8.2f}   {result[module] / result[peer]:6.2f} x {peer}")
    own = result["utils.formats"] - result["nothing"]
    print(f"utils.formats adds {own:.2f} s to a bare interpreter; goal 0.20 s, ratio {own / 0.2:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
