"""What the browser tests of widgets ask of a page, beside the fixtures of conftest.py."""

import json
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe

from utils.widgets.shared.modules import joined, modules_of

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
CALM = {"reduced_motion": "reduce"}


@pytest.fixture(name="show")
def calm_show(show):
    """The fixture `show` of the files that import this: without motion unless a test says otherwise."""

    def open_page(*widgets, **options):
        page = show(*widgets, **{**CALM, **options})
        open_page.watched = show.watched
        return page

    return open_page


def source_of(name):
    """The source of an ES module that exports what a file below `utils/widgets` and all that it needs export.

    Of two equal names the one stands there that is nearer to the file.
    """
    sources = {export: module.name for module in modules_of(name).values() for export in module.exports}
    sources.pop("default", None)
    lines = (f"export const {{ {export} }} = use({json.dumps(source)});\n" for export, source in sources.items())
    return joined(name) + "".join(lines)


@contextmanager
def module_page(browser, source, harness=""):
    """Return a function that calls one of an ES module in a real browser by its name: call("valueText", 3).

    `harness` runs after the module, which it knows as `words`; where it sets `window.calls`, those are called.
    """
    page = browser.new_page()
    page.evaluate(
        """async (source) => {
          const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
          window.words = await import(url);
        }""",
        source,
    )
    page.evaluate(harness)
    yield lambda name, *arguments: evaluate_as_text(page, f"(window.calls ?? words)[{json.dumps(name)}]", *arguments)
    page.close()


TO_TEXT = """
(result) => JSON.stringify(result, (key, value) => {
  if (typeof value !== "number") return ArrayBuffer.isView(value) ? [...value] : value === undefined ? null : value;
  return Number.isFinite(value) && !Object.is(value, -0) ? value : `@number ${Object.is(value, -0) ? "-0.0" : value}@`;
})?.replace(/"@number ([^"]*)@"/g, "$1")
"""


def evaluate_as_text(page, function, *arguments):
    """Call a function of the page with JSON-like values and return its result; NaN, infinities and -0 survive.

    Both travel as one text: Playwright looks at each number by itself, which takes longer than most functions.
    """
    given = ", ".join(map(json.dumps, arguments))  # it writes NaN, Infinity and -0.0, as JavaScript does
    text = page.evaluate(f"Promise.resolve({function}({given})).then({TO_TEXT.strip()})")
    return None if text is None else json.loads(text)


def calls_of(name, harness=""):
    """Return a fixture for the tests of a file: `module_page` of a file below `utils/widgets`."""
    source = source_of(name)

    @pytest.fixture(scope="module")
    def call(browser):
        with module_page(browser, source, harness) as call:
            yield call

    return call


def barriers(page):
    """What axe finds in the page's main part: the rule, its weight and the first element of each."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(Axe().axe_script)
    # preload: axe would fetch the style sheets again, which a browser refuses for file://
    # resultTypes: what it says of the rules that are kept would take as long as the rules
    return page.evaluate(
        """() => axe.run("main", { preload: false, resultTypes: ["violations"] })
             .then(({ violations }) => violations.map(({ id, impact, nodes }) => [id, impact, nodes[0].html]))"""
    )


def heights(page):
    """The height that the style sheet keeps free for the widget, and the one that it takes, in rem."""
    return page.evaluate(
        """() => [document.querySelector("[data-mp-widget]"), document.querySelector(".mp-panel").offsetHeight / 16]
             .map((part) => part.style ? parseFloat(getComputedStyle(part).getPropertyValue("--mp-height")) : part)"""
    )


def small_targets(page):
    """The controls of the widget that are less than 24 pixels high or wide (WCAG 2.2, 2.5.8), by their text."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".mp-panel :is(button, input, select)")]
          .filter((control) => control.getClientRects().length > 0)
          .map((control) => [control.innerText || control.outerHTML, control.getBoundingClientRect()])
          .filter(([, { width, height }]) => Math.min(width, height) < 24).map(([text]) => text)"""
    )


def smallest_text(page):
    """The size of the smallest text of the widget, in pixels."""
    return page.evaluate("""() => Math.min(...[...document.querySelectorAll('.mp-panel *')]
      .filter((node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()))
      .map((node) => parseFloat(getComputedStyle(node).fontSize)))""")


CUT_OFF = "(nodes) => nodes.filter((node) => node.scrollWidth > node.clientWidth + 1).map((node) => node.textContent)"


def cut_off(page, selector):
    """The text of all that a selector finds whose content is wider than its box."""
    return page.locator(selector).evaluate_all(CUT_OFF)


# What `after_each` may look at: the height of the widget, the width of the page, what is cut off.
HEIGHT = "() => document.querySelector('.mp-panel').offsetHeight"
WIDTH = "() => document.documentElement.scrollWidth"


def cut_off_of(selector):
    """`cut_off` as a function of the page."""
    return f"() => ({CUT_OFF})([...document.querySelectorAll({json.dumps(selector)})])"


AFTER_EACH = """
async ({ actions, looks, frames }) => {
  const frame = () => new Promise((go) => requestAnimationFrame(go));
  const nameOf = (node) => (node.ariaLabel ?? node.labels?.[0]?.textContent ?? node.textContent).trim();
  const seen = [];
  for (const [selector, name, value] of actions) {
    const nodes = [...document.querySelectorAll(selector)].filter((node) => node.checkVisibility() && !node.disabled);
    const node = nodes.find((one) => nameOf(one) === name) ?? nodes.find((one) => nameOf(one).startsWith(name));
    if (!node) throw new Error(`there is no ${selector} with the name ${name}`);
    if (value === undefined) {
      node.click();
    } else {
      const option = [...node.options ?? []].find(({ text }) => text === value);
      node.value = option ? option.value : value;
      node.dispatchEvent(new Event(option ? "change" : "input", { bubbles: true }));
      if (node.value !== String(option ? option.value : value)) throw new Error(`${name} does not take ${value}`);
    }
    for (let i = 0; i < frames; i += 1) await frame(); // what watches sizes is called once a frame, after the layout
    seen.push(looks.map((look) => look()));
  }
  return seen;
}
"""


def after_each(page, actions, *looks, frames=2):
    """Return each of the actions with what `looks`, functions of the page, give after it: [(action, [...]), ...].

    An action is (selector, start of the name) to press, or (selector, start of the name, value) to choose from a list
    or to move a slider. All is done in one call of the page: a call each takes a minute for a few hundred. `frames` are
    drawn before each look; none where all is in its place once the action has been handled.
    """
    functions = ", ".join(f"({look.strip()})" for look in looks)
    given = f"{{ actions: {json.dumps(actions)}, looks: [{functions}], frames: {frames} }}"
    return list(zip(actions, page.evaluate(f"() => ({AFTER_EACH.strip()})({given})"), strict=True))


def cut_off_choices(page):
    """The choices of the widget that are wider than the closed field which shows them, by their text."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".mp-panel select")].flatMap((field) => {
             if (field.clientWidth === 0) return []; // hidden
             const style = getComputedStyle(field);
             const pen = document.createElement("canvas").getContext("2d");
             pen.font = style.font;
             const arrow = 18;
             const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - arrow;
             return [...field.options].map(({ text }) => text).filter((text) => pen.measureText(text).width > room);
           })"""
    )
