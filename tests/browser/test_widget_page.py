"""The helpers of the widgets' tests see what is wrong in a page that is made so."""

import pytest
from playwright.sync_api import Error

from tests.browser.widget_page import DESK, HEIGHT, WIDTH, after_each, cut_off_of, small_targets

PANEL = """
<div class="mp-panel" style="width: 300px">
  <button id="plain" style="width: 60px; height: 30px">plain</button>
  <button style="width: 60px; height: 20px" aria-label="flat one">~</button>
  <button style="display: none; height: 2px">hidden</button>
  <button disabled style="width: 60px; height: 30px">off</button>
  <label>Size <input type="range" min="0" max="9" value="0" style="width: 90px; height: 30px"></label>
  <label>Kind <select style="width: 90px; height: 30px"><option value="a">first</option>
    <option value="b">second</option></select></label>
  <p id="text" style="white-space: nowrap; overflow: hidden; width: 200px">short</p>
</div>
<script>
  const text = document.querySelector("#text");
  document.querySelector("#plain").onclick = () => { text.style.height = "300px"; };
  document.querySelector("input").oninput = (event) => { text.textContent = "long ".repeat(20 * event.target.value); };
  document.querySelector("select").onchange = (event) => { text.style.marginLeft = event.target.value === "b" ? "2000px" : 0; };
</script>
"""  # noqa: E501


@pytest.fixture
def page(kept_watch):
    page = kept_watch(viewport=DESK).page
    page.set_content(PANEL)
    return page


def test_a_control_that_is_too_flat_is_named_and_a_hidden_one_is_not(page):
    (named,) = small_targets(page)
    assert named == "~"


def test_what_grows_is_cut_off_or_makes_the_page_wide_is_seen_after_its_action(page):
    before = [page.evaluate(HEIGHT), DESK["width"], []]
    actions = [("button", "flat"), ("[type=range]", "Size", 1), ("button", "plain"), ("select", "Kind", "second")]
    calm, cut, grown, wide = (seen for _, seen in after_each(page, actions, HEIGHT, WIDTH, cut_off_of("#text")))
    assert calm == before
    assert cut[:2] == before[:2]
    assert cut[2] == ["long " * 20]
    assert grown[0] > before[0]
    assert wide[1] > DESK["width"]


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (("button", "none"), "there is no button with the name none"),
        (("button", "hidden"), "there is no button with the name hidden"),
        (("button", "off"), "there is no button with the name off"),
        (("[type=range]", "Size", 12), "Size does not take 12"),
        (("select", "Kind", "third"), "Kind does not take third"),
    ],
)
def test_what_cannot_be_done_is_said(page, action, said):
    with pytest.raises(Error, match=said):
        after_each(page, [action], HEIGHT)
