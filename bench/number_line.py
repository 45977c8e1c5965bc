"""How long a step of a drag and a move of the view take in NumberLine, laid out; the limit is a frame of 16 ms."""

import gzip
import statistics
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from utils.widgets.number_line import NumberLine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
from browsers import find

FRAME_MS = 16.0
MOVES = 300
MEASURE = """
async ([source, css, state, moves]) => {
  document.head.appendChild(document.createElement("style")).textContent = css;
  const values = { ...state };
  const model = {
    get: (key) => values[key], set: (key, value) => { values[key] = value; }, save_changes() {}, on() {}, off() {},
  };
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const widget = (await import(url)).default;
  const el = document.body.appendChild(document.createElement("div"));
  widget.render({ model, el });
  await new Promise(requestAnimationFrame);
  const stage = el.querySelector(".mp-nl-stage");
  stage.setPointerCapture = () => {}; // these pointers are made up
  const box = stage.getBoundingClientRect();
  const send = (node, type, x) => node.dispatchEvent(new PointerEvent(type, {
    bubbles: true, button: 0, pointerId: 7, clientX: box.left + x, clientY: box.top + 120,
  }));
  const samples = { drag: [], pan: [] };
  for (const [kind, node] of [["drag", el.querySelector(".mp-nl-handle")], ["pan", stage]]) {
    send(node, "pointerdown", box.width / 2);
    for (let i = 0; i < moves; i += 1) {
      const start = performance.now();
      send(stage, "pointermove", box.width * (0.5 + 0.45 * Math.sin(i / 9)));
      el.getBoundingClientRect(); // lays the page out
      samples[kind].push(performance.now() - start);
      if (i % 20 === 0) await new Promise(requestAnimationFrame);
    }
    send(stage, "pointerup", box.width / 2);
  }
  return samples;
}
"""


def main() -> int:
    """Print the median and the 99th percentile of both moves for a narrow and a wide format, as shares of a frame."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=["--no-sandbox", "--disable-gpu"])
        for name, bounds in {"float8_e4m3fn": ("0", "1"), "float16": ("1", "1.1"), "float64": ("0", "1e-300")}.items():
            page = browser.new_page(viewport={"width": 800, "height": 844})
            widget = NumberLine(name, "0.05", low=bounds[0], high=bounds[1])
            sources = [NumberLine.esm_source(), NumberLine.css_source()]
            for kind, samples in page.evaluate(MEASURE, [*sources, widget.book_state(), MOVES]).items():
                median, slow = statistics.median(samples), sorted(samples)[int(0.99 * MOVES)]
                print(
                    f"{kind}, {name}: median {median:.2f} ms, 99 % below {slow:.2f} ms ({MOVES} moves);"
                    f" limit {FRAME_MS:.0f} ms, ratio {slow / FRAME_MS:.2f}"
                )
            page.close()
        browser.close()
    sizes = [len(gzip.compress(text.encode())) / 1000 for text in sources]
    print(f"module {sizes[0]:.1f} kB and style sheet {sizes[1]:.1f} kB, gzipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
