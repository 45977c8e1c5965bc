"""How long a flip of BitFlip takes, from the click to the new value laid out; the limit is a frame of 16 ms."""

import gzip
import statistics
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from utils.widgets.bit_flip import BitFlip

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
from browsers import find

FRAME_MS = 16.0
FLIPS = 400
MEASURE = """
async ([source, css, state, flips]) => {
  document.head.appendChild(document.createElement("style")).textContent = css;
  const values = { ...state };
  const model = {
    get: (key) => values[key], set: (key, value) => { values[key] = value; }, save_changes() {}, on() {}, off() {},
  };
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const widget = (await import(url)).default;
  const el = document.body.appendChild(document.createElement("div"));
  widget.render({ model, el });
  const bits = [...el.querySelectorAll(".mp-bit")];
  const samples = [];
  for (let i = 0; i < flips; i += 1) {
    const start = performance.now();
    bits[(i * 7) % bits.length].click();
    el.getBoundingClientRect(); // lays the page out
    samples.push(performance.now() - start);
    if (i % 20 === 0) await new Promise(requestAnimationFrame);
  }
  return samples;
}
"""


def main() -> int:
    """Print the median and the 99th percentile for a narrow and the widest format, as shares of a frame."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=["--no-sandbox", "--disable-gpu"])
        for name in ("float16", "float64"):
            page = browser.new_page(viewport={"width": 390, "height": 844})
            arguments = [BitFlip.esm_source(), BitFlip.css_source(), BitFlip(name).book_state(), FLIPS]
            samples = sorted(page.evaluate(MEASURE, arguments))
            median, slow = statistics.median(samples), samples[int(0.99 * FLIPS)]
            print(
                f"flip, {name}: median {median:.2f} ms, 99 % below {slow:.2f} ms ({FLIPS} flips);"
                f" limit {FRAME_MS:.0f} ms, ratio {slow / FRAME_MS:.2f}"
            )
            page.close()
        browser.close()
    sizes = [len(gzip.compress(text.encode())) / 1000 for text in (BitFlip.esm_source(), BitFlip.css_source())]
    print(f"module {sizes[0]:.1f} kB and style sheet {sizes[1]:.1f} kB, gzipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
