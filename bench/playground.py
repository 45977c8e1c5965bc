"""Steps a second of the playground's network in Chromium on one core, and its weight.

python bench/playground.py [FOLDER]   # FOLDER: another implementation to compare with: net.js, round.js, formats.json

Batches of 128, a network of 2-16-16-1, Adam. The goal is 1,000 steps a second with float16 everywhere and every
addition rounded; the ratio to float32 tells how much of that is rounding.
"""

import gzip
import json
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "book" / "_ext")]
from browsers import find  # noqa: E402
from lean_text import lean_script  # noqa: E402
from tests.browser.widget_page import module_page, source_of  # noqa: E402
from utils.widgets.playground import Playground  # noqa: E402
from utils.widgets.playground.training.setup import TENSORS, Setup  # noqa: E402

GOAL = 1000.0
STEPS = 600
ROUNDS = 3
HARNESS = """() => {
  window.calls = { rate(setup, steps) {
    const net = new words.Net(setup);
    for (let i = 0; i < 100; i += 1) net.step();
    const start = performance.now();
    for (let i = 0; i < steps; i += 1) net.step();
    return (1000 * steps) / (performance.now() - start);
  } };
}"""
OTHER = """() => {
  window.calls = { rate({ formats, setup }, steps) {
    const net = new words.Net(setup, formats);
    for (let i = 0; i < 100; i += 1) net.step();
    const start = performance.now();
    for (let i = 0; i < steps; i += 1) net.step();
    return (1000 * steps) / (performance.now() - start);
  } };
}"""


def setups():
    """The trainings that are timed, by name."""
    plain = Setup(batch=128)
    return {
        "float32": plain,
        "float16 everywhere": plain.change(formats=dict.fromkeys(TENSORS, "float16")),
        "FP8 with a float32 copy": plain.change(
            formats={
                "weights": "float8_e4m3fn",
                "activations": "float8_e4m3fn",
                "gradients": "float8_e5m2",
                "master": "float32",
            }
        ),
    }


def other_source(folder):
    """Another implementation as one module: its two files without their import."""
    rounding, net = ((folder / name).read_text("utf8") for name in ("round.js", "net.js"))
    inner = rounding.replace("export ", "") + "return { makeRounder, maxOf };"
    rest = "\n".join(line for line in net.splitlines() if not line.startswith("import "))
    return f"const {{ makeRounder, maxOf }} = (() => {{ {inner} }})();\n{rest}"


def other_setup(setup):
    """A setup as the other implementation names it."""
    names = {**setup.formats, "master": setup.formats["master"]}
    return {"sizes": [2, 16, 16, 1], "act": "tanh", "lr": setup.rate, "formats": names} | {
        key: getattr(setup, key) for key in ("data", "optimizer", "batch", "seed")
    }


def best_rate(browser, source, harness, argument):
    """The best of some rounds, each in a page of its own, so that no round inherits compiled code."""
    rates = []
    for _ in range(ROUNDS):
        with module_page(browser, source, harness) as call:
            rates.append(call("rate", argument, STEPS))
    return max(rates)


def main() -> int:
    """Print the rates and the sizes."""
    other = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=["--no-sandbox", "--disable-gpu"])
        ours = {}
        for name, setup in setups().items():
            ours[name] = best_rate(browser, source_of("playground/widget"), HARNESS, vars(setup))
            line = f"{name}: {ours[name]:.0f} steps/s, {ours[name] / ours['float32']:.2f} of float32"
            if other:
                formats = json.loads((other / "formats.json").read_text("utf8"))
                argument = {"setup": other_setup(setup), "formats": formats}
                rate = best_rate(browser, other_source(other), OTHER, argument)
                line += f", {ours[name] / rate:.2f} of the other implementation ({rate:.0f})"
            print(line)
        browser.close()
    print(f"goal {GOAL:.0f} steps/s for float16 everywhere, ratio {ours['float16 everywhere'] / GOAL:.2f}")
    own = "".join(part.as_function for name, part in Playground.modules().items() if name.startswith("playground/"))
    kilobytes = [len(gzip.compress(text.encode())) / 1000 for text in (lean_script(own), own)]
    print("the playground's own part: {:.1f} kB gzipped as a page has it, {:.1f} kB with comments".format(*kilobytes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
