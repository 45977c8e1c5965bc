"""Playground in Firefox, where there is one: the bits of NumPy there too, and the page without an error."""

import pytest

from tests.browser import firefox as browsers
from tests.browser.widget_page import source_of
from tests.browser.widgets.test_playground import HARNESS, TRAININGS, equal, numbers, reference_run, texts_of
from utils.widgets.playground.training import elementary
from utils.widgets.shared.numbers.dice import dice

PAGE = "book/playground.html"


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    program = browsers.find()
    if program is None:
        pytest.skip(browsers.MISSING)
    with browsers.running(program, tmp_path_factory.mktemp("firefox")) as firefox:
        yield firefox


@pytest.fixture(scope="module")
def call(firefox):
    """Call a function of the harness by its name, in an empty page."""
    firefox.open("about:blank")
    firefox.call(
        """async (source) => {
          window.words = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
        }""",
        source_of("playground/widget"),
    )
    firefox.call(HARNESS)
    return lambda name, *arguments: firefox.call("(name, ...more) => calls[name](...more)", name, *arguments)


@pytest.mark.parametrize("name", TRAININGS)
def test_200_steps_have_the_bits_of_the_reference_in_numpy(call, name):
    theirs = call("train", vars(TRAININGS[name]), 200)
    rows, weights, accuracy = reference_run(name)
    equal(rows, numbers([text for row in theirs["rows"] for text in row]))
    equal(weights, numbers(theirs["weights"]))
    assert theirs["accuracy"] == accuracy


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus"])
def test_elementary_functions_have_the_bits_of_python(call, name):
    x = (dice(1, 2000) - 0.5) * 60
    equal(numbers(call("elementary", name, texts_of(x))), getattr(elementary, name)(x))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("served", ["file", "http"])
def test_the_page_trains_without_an_error(firefox, request, site, served, width):
    start = site.as_uri() if served == "file" else request.getfixturevalue("http_site")
    firefox.open(f"{start}/{PAGE}", width=width)
    firefox.wait_for("() => document.querySelector('.mp-play-verdict').innerText.startsWith('Step')")
    firefox.call("() => [...document.querySelectorAll('button')].find((one) => one.innerText === '+100').click()")
    says = firefox.call("() => document.querySelector('.mp-play-verdict').innerText")
    assert int(says.removeprefix("Step ").partition(".")[0]) > 100
    assert firefox.call("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert firefox.problems == []


def test_what_goes_wrong_in_a_page_is_noted(firefox, http_site):
    firefox.open(f"{http_site}/{PAGE}")
    firefox.call("() => { console.error('on purpose'); return fetch('/nowhere').then(() => 0); }")
    assert firefox.problems[0] == "console: on purpose"
    assert f"not found: {http_site}/nowhere" in firefox.problems
