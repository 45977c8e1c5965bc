"""Amounts in a real browser: the page writes numbers as Python does, and reads what people type."""

import numpy as np
import pytest

from tests.browser.widget_page import calls_of
from utils.widgets.shared.words import amounts

HARNESS = """
window.calls = {
  ...words,
  all: (name, numbers) => numbers.map((x) => words[name](x)),
};
"""


call = calls_of("shared/words/amounts", HARNESS)


@pytest.mark.parametrize(("name", "twin"), [("fewDigits", amounts.few_digits), ("bytesText", amounts.bytes_text)])
def test_the_page_writes_what_python_writes(call, name, twin):
    rng = np.random.default_rng(3)
    sizes = [int(10 ** rng.uniform(0, 15)) for _ in range(500)] + [5 * 10**k for k in range(15)] + [999_500, 999_499]
    numbers = [size / 2**20 for size in sizes] if name == "fewDigits" else sizes
    assert call("all", name, numbers) == [twin(x) for x in numbers]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (999, "999"),
        (8_192, "8.19 thousand"),
        (33_570_816, "33.6 million"),
        (999_499_999, "999 million"),
        (999_500_000, "1 billion"),
        (2 * 8_192**3, "1.1 trillion"),
        (2 * 131_072**3, "4500 trillion"),
    ],
)
def test_a_count_is_said_in_words(call, count, text):
    assert call("countText", count) == text


@pytest.mark.parametrize(
    ("text", "amount"),
    [("4096", 4096), ("4,096", 4096), (" 1 ", 1), ("131072", 131_072)]
    + [(text, None) for text in ("131,073", "0", "2.5", "2,04", "8 GB", "many", "")],
)
def test_a_whole_number_is_read_or_refused_with_its_limits(call, text, amount):
    read = call("parseWhole", text, "M", 131_072)
    if amount is None:
        assert read == {"wrong": f"M: “{text}” is not a whole number from 1 to 131,072."}
    else:
        assert read == {"amount": amount}
