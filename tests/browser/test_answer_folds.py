"""What follows a prediction is folded until the reader has answered or asks for it, in a page of the built book."""

import pytest

PAGE = "book/numbers/bits.html"
BODY = ".mp-answer-body"


@pytest.fixture
def opened(page_watch, site):
    def open_page(fragment="", **options):
        return page_watch(**options).open((site / PAGE).as_uri() + fragment)

    return open_page


def box(page):
    """The first fold of the page."""
    return page.locator("[data-mp-answer]").first


def is_open(page):
    return box(page).locator(BODY).evaluate("body => body.getBoundingClientRect().height") > 0


def question(page):
    """The question in front of the first fold."""
    return page.locator("[data-mp-widget=quiz]").first


def predict(page):
    question(page).get_by_role("radio").first.click()
    question(page).get_by_role("button", name="Compare").click()


def test_a_prediction_opens_it_and_it_stays_open_on_the_next_visit(opened):
    page = opened()
    assert not is_open(page)
    question(page).get_by_role("radio").first.click()
    assert not is_open(page)  # the reader may think again
    assert "Press Compare to see what happens." in question(page).inner_text()
    question(page).get_by_role("button", name="Compare").click()
    assert is_open(page)
    assert not box(page).get_by_role("button", name="Show what happens").is_visible()
    page.reload()
    page.wait_for_selector(f"[data-mp-answer][data-mp-open] {BODY}")  # by its own script
    assert is_open(page)


def test_starting_again_closes_it(opened):
    page = opened()
    predict(page)
    question(page).get_by_role("button", name="start again").click()
    assert not is_open(page)


def test_it_can_be_seen_without_an_answer(opened):
    page = opened()
    box(page).get_by_role("button", name="Show what happens").click()
    assert is_open(page)
    assert box(page).locator(BODY).evaluate("node => node === document.activeElement")
    question(page).get_by_role("radio").first.click()  # which writes progress, and must not close it
    assert is_open(page)


def test_the_other_boxes_stay_closed(opened):
    page = opened()
    predict(page)
    heights = page.locator(BODY).evaluate_all("bodies => bodies.map((body) => body.getBoundingClientRect().height)")
    assert heights[0] > 0
    assert not any(heights[1:])


def test_a_link_into_it_opens_it(opened):
    page = opened()
    box(page).locator(BODY).evaluate("body => { body.firstElementChild.id = 'inside'; }")
    page.evaluate("() => { location.hash = '#inside'; }")
    page.wait_for_function("() => document.querySelector('.mp-answer-body').getBoundingClientRect().height > 0")


def test_a_search_in_the_page_opens_it(opened):
    page = opened()
    assert box(page).locator(BODY).get_attribute("hidden") == "until-found"
    box(page).locator(BODY).evaluate("body => body.dispatchEvent(new Event('beforematch'))")
    assert is_open(page)


def test_without_javascript_it_is_open_and_has_a_title(page_watch, site):
    page = page_watch(java_script_enabled=False).page
    page.goto((site / PAGE).as_uri())
    assert is_open(page)
    assert box(page).get_by_text("What happens", exact=True).is_visible()
    assert not box(page).get_by_role("button").is_visible()


def test_on_paper_it_is_open_and_afterwards_as_it_was(opened):
    page = opened()
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert is_open(page)
    assert box(page).get_by_text("What happens", exact=True).is_visible()
    assert not box(page).get_by_role("button", name="Show what happens").is_visible()
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert not is_open(page)


def test_the_picture_of_the_chapter_fits_a_phone(opened):
    page = opened(viewport={"width": 390, "height": 844})
    picture = page.locator(".tag_picture img:visible")
    picture.scroll_into_view_if_needed()
    assert picture.bounding_box()["x"] + picture.bounding_box()["width"] <= 390
    link = page.get_by_role("link", name="Open the picture")
    assert link.get_attribute("href").endswith(".webp")
