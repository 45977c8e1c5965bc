"""What the browser tests of widgets ask of a page, beside the fixtures of conftest.py."""

from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe

from utils.widgets.book_widget import read_part

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}


def parts_of(widget):
    """The source of all parts of a widget's ES module."""
    return "\n".join(map(read_part, widget.part_names()))


@contextmanager
def module_page(browser, source, harness=""):
    """Give a function that calls one of an ES module in a real browser by its name: call("valueText", 3).

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
    yield lambda name, *arguments: page.evaluate(
        "([name, ...more]) => (window.calls ?? words)[name](...more)", [name, *arguments]
    )
    page.close()


def barriers(page):
    """What axe finds in the page's main part: the rule, its weight and the first element of each."""
    # preload: axe would fetch the style sheets again, which a browser refuses for file://
    results = Axe().run(page, context="main", options={"preload": False})
    return [(rule["id"], rule["impact"], rule["nodes"][0]["html"]) for rule in results.response["violations"]]


def heights(page):
    """The height that the style sheet keeps free for the widget, and the one that it takes, in rem."""
    return page.evaluate(
        """() => [document.querySelector("[data-mp-widget]"), document.querySelector(".mp-panel").offsetHeight / 16]
             .map((part) => part.style ? parseFloat(getComputedStyle(part).getPropertyValue("--mp-height")) : part)"""
    )
