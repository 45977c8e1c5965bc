"""The shortened judgement of colours finds what the whole one finds, folded places and widths of their own included."""

import pytest

from tests.browser import axe_page

TEXTS = "".join(f"<span>word {n}</span> " for n in range(200))
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Colours</title><style>{style}</style></head>
<body><main><h1>Colours</h1><p>{texts}</p>
<details><summary>More</summary><p class="folded">folded text</p></details>
<div class="card"><p class="carded">text on a card</p></div>
<pre><b class="kn">import</b> <b class="nn">torch</b> <b class="kn">as</b> <b class="nn">other</b></pre>
<pre><i>1</i></pre>
<p><span class="katex-html" aria-hidden="true"><span class="mord">min</span><span class="mrel">max</span></span>
<span class="katex-html" aria-hidden="true"><span class="mord">exp</span></span></p></main></body></html>"""
FAULTS = {
    "one word of many": ("span:nth-of-type(150) { color: #bbb }", "word 149"),
    "the ground of a card": (".card { background: #555 }", "text on a card"),
    "a faded card": (".card { opacity: 0.4 }", "text on a card"),
    "on a phone alone": ("@media (max-width: 400px) { h1 { color: #ccc } }", "Colours"),
    "a word moved to another ground": (
        "h1 { background: #444; color: #fff } span:nth-of-type(150) { position: absolute; top: 30px; left: 20px }",
        "word 149",
    ),
    "a name in code": (".nn:last-child { color: #bbb }", "<b"),
    "a word in a formula": (".mrel { color: #bbb }", "mrel"),
    "in a folded place": (".folded { color: #ddd }", "folded text"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_and_nothing_else(fault, page_watch):
    style, text = FAULTS[fault]
    page = page_watch(viewport={"width": 390, "height": 844}).page
    page.set_content(PAGE.format(style=style, texts=TEXTS))
    axe_page.start(page)
    axe_page.unfold(page)
    whole = axe_page.serious_of_all(page)
    assert [found for found in whole if text not in found] == []
    assert len(whole) == 1
    assert axe_page.serious(page) != []
    assert page.locator("[data-one-of-its-kind]").count() < 10


def test_a_page_without_a_fault_has_none_and_a_text_that_fades_in_is_waited_for(page_watch):
    page = page_watch().page
    fading = "@keyframes in { from { opacity: 0.1 } } details[open] .folded { animation: in 60s }"
    page.set_content(PAGE.format(style=fading, texts=TEXTS))
    axe_page.start(page)
    axe_page.unfold(page)
    shown = page.locator("main").inner_html()
    assert axe_page.serious(page) == []
    assert page.locator("main").inner_html().count("<") == shown.count("<")  # what was flat stands there again


def test_what_is_made_flat_keeps_its_place_and_its_room(page_watch, site):
    page = page_watch(viewport={"width": 390, "height": 844}).page
    page.goto((site / "book" / "numbers" / "bits.html").as_uri())
    page.evaluate("document.fonts.ready")
    axe_page.start(page)
    sizes = """() => [...document.querySelectorAll("article p, article li, article pre, article .katex-display")]
      .map((box) => [box.scrollWidth - box.clientWidth, box.getBoundingClientRect().width])"""
    height = "() => document.querySelector('article').offsetHeight"
    before, long = page.evaluate(sizes), page.evaluate(height)
    elements = page.locator("article *").count()
    page.evaluate(axe_page.MARK)
    page.evaluate(axe_page.FLATTEN)
    assert page.locator("article *").count() < 0.6 * elements
    assert page.evaluate(sizes) == before
    assert page.evaluate(height) == pytest.approx(long, abs=20)  # a formula's line may be a pixel lower
    page.evaluate("unflatten()")
    assert page.locator("article *").count() == elements
