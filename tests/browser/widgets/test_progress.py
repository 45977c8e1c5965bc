"""Progress in a real browser: counts, what is next, forgetting, taking it along, no storage, and the built pages."""

import html
import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe

import book_progress
from utils.widgets.progress import NOTE, Progress

PHONE = {"width": 390, "height": 844}


def chapter(name, title, *texts):
    items = [
        {"id": f"{name}/exercise-{n}", "text": text, "place": f"solve-exercise-{n}"}
        for n, text in enumerate(texts, start=1)
    ]
    return {"chapter": name, "title": title, "page": f"{name}.html", "items": items}


CHAPTERS = [
    chapter("your_machine", "Your machine", "Which type is faster?", "The rate of your own machine:"),
    chapter("numbers/bits", "Bits", "Make 1.5625.", "Make the largest number.", "How many codes mean NaN?"),
]
SOLVED, HINTED = {"solved": True, "hints": 0}, {"solved": False, "hints": 2}


@pytest.fixture
def show(show):
    """Open a page with the widget, after `stored` was put into the storage of the browser."""

    def open_page(chapters=CHAPTERS, *, stored=(), script="", **options):
        scripts = [
            f"sessionStorage.getItem({json.dumps(name)}) || (sessionStorage.setItem({json.dumps(name)}, 1),"
            f" localStorage.setItem({json.dumps('mp-progress:' + name)}, {json.dumps(json.dumps(record))}))"
            for name, record in dict(stored).items()
        ]
        page = show(Progress(chapters=chapters), scripts=[*scripts, script], **options)
        open_page.watched = show.watched
        return page

    return open_page


def place(widget):
    return widget._repr_mimebundle_()[0]["text/html"]


def counts(page):
    """The words beside the bars: the book's, then each chapter's."""
    return page.locator(".mp-pg-count").all_inner_texts()


def bars(page):
    return page.eval_on_selector_all("progress", "bars => bars.map((bar) => [bar.value, bar.max])")


def stored(page):
    """All that the browser keeps, by key."""
    return page.evaluate("() => ({ ...localStorage })")


def status(page):
    return page.get_by_role("status").inner_text()


def row(page, title):
    return page.locator(".mp-pg-row", has=page.get_by_role("link", name=title, exact=True))


SOME = {
    "your_machine/exercise-1": SOLVED,
    "your_machine/exercise-2": {"solved": True, "hints": 1},
    "numbers/bits/exercise-1": {"solved": True, "hints": 1},
    "numbers/bits/exercise-2": HINTED,
    "older/edition/gone": SOLVED,
}


def test_a_new_reader_sees_what_there_is_and_where_to_begin(show):
    page = show()
    assert counts(page) == ["0 of 5 done", "0 of 2 done", "0 of 3 done"]
    assert page.locator(".mp-pg-next").all_inner_texts() == ["Next: Which type is faster?", "Next: Make 1.5625."]
    assert page.get_by_role("button", name="forget").count() == 0
    assert page.locator(".mp-pg-hints").all_inner_texts() == ["", "", ""]


def test_finished_exercises_and_hints_are_counted_by_chapter_and_for_the_book(show):
    page = show(stored=SOME)
    assert counts(page) == ["3 of 5 done", "✓ all 2 done", "1 of 3 done"]
    assert bars(page) == [[3, 5], [2, 2], [1, 3]]
    assert page.locator(".mp-pg-hints").all_inner_texts() == ["4 hints taken", "1 hint taken", "3 hints taken"]
    assert page.locator("progress").nth(2).get_attribute("aria-valuetext") == "1 of 3 done"


def test_the_next_exercise_is_the_first_that_is_not_done_and_its_link_leads_there(show):
    page = show(stored={"numbers/bits/exercise-1": SOLVED, "numbers/bits/exercise-3": SOLVED})
    link = row(page, "Bits").locator(".mp-pg-next")
    assert link.inner_text() == "Next: Make the largest number."
    assert link.get_attribute("href") == "numbers/bits.html#solve-exercise-2"
    assert row(page, "Bits").get_by_role("link").first.get_attribute("href") == "numbers/bits.html"


def test_to_forget_a_chapter_asks_once_and_leaves_everything_else(show):
    page = show(stored=SOME)
    before = stored(page)
    bits = row(page, "Bits")
    bits.get_by_role("button", name="forget the progress in Bits").click()
    assert (
        bits.get_by_role("group").locator(".mp-pg-question").inner_text() == "Forget 1 finished exercise and 3 hints?"
    )
    assert stored(page) == before
    bits.get_by_role("button", name="Keep them").click()
    assert stored(page) == before
    assert page.evaluate("() => document.activeElement.textContent") == "forget"
    bits.get_by_role("button", name="forget the progress in Bits").click()
    bits.get_by_role("button", name="Yes, forget").click()
    assert stored(page) == {key: text for key, text in before.items() if "numbers/bits" not in key}
    assert counts(page) == ["2 of 5 done", "✓ all 2 done", "0 of 3 done"]
    assert status(page) == "Forgotten: 1 finished exercise and 3 hints."
    assert page.evaluate("() => document.activeElement.textContent") == "Bits"


def test_to_forget_the_book_keeps_what_is_not_of_this_edition(show):
    page = show(stored=SOME, script="localStorage.setItem('mode', 'dark')")
    page.get_by_role("button", name="forget the progress in the whole book").click()
    assert "Forget 3 finished exercises and 4 hints?" in page.locator(".mp-pg-book").inner_text()
    page.get_by_role("button", name="Yes, forget").click()
    assert counts(page) == ["0 of 5 done", "0 of 2 done", "0 of 3 done"]
    assert stored(page) == {"mode": "dark", "mp-progress:older/edition/gone": json.dumps(SOLVED)}


def test_everything_can_be_done_with_the_keyboard_alone(show):
    page = show(stored=SOME)
    page.get_by_role("button", name="forget the progress in Bits").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.textContent") == "Keep them"
    page.keyboard.press("Escape")
    assert page.get_by_role("button", name="Keep them").count() == 0
    assert page.evaluate("() => document.activeElement.textContent") == "forget"
    page.keyboard.press("Space")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert counts(page)[2] == "0 of 3 done"


def fold(page):
    page.get_by_text("Take your progress to another browser").click()
    return page


def bring(page, text):
    page.get_by_label("or paste the text").fill(text)
    page.get_by_role("button", name="Bring in the text").click()
    return page.locator(".mp-pg-said").inner_text()


CHOSEN = {"solved": True, "hints": 1, "chosen": 2, "shown": [0, 2]}


def test_progress_goes_to_another_browser_as_a_file(show):
    page = fold(show(stored={**SOME, "numbers/bits/exercise-3": CHOSEN}))
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as a file").click()
    assert download.value.suggested_filename == "mixed-precision-progress.json"
    assert "Saved as a file." in status(page)
    file = download.value.path()
    assert json.loads(file.read_text("utf8"))["progress"] == {**SOME, "numbers/bits/exercise-3": CHOSEN}
    other = fold(show(stored={"numbers/bits/exercise-2": SOLVED}))
    other.get_by_label("Bring in a saved file").set_input_files(file)
    other.wait_for_function("() => document.querySelector('.mp-pg-said').textContent")
    assert other.locator(".mp-pg-said").inner_text() == "Brought in: 5 finished exercises."
    assert counts(other) == ["✓ all 5 done", "✓ all 2 done", "✓ all 3 done"]
    kept = {key: json.loads(text) for key, text in stored(other).items()}
    assert kept["mp-progress:numbers/bits/exercise-3"] == CHOSEN
    assert kept["mp-progress:numbers/bits/exercise-2"] == {"solved": True, "hints": 2}
    assert kept["mp-progress:older/edition/gone"] == SOLVED


def text_of(records, **change):
    return json.dumps({"book": "mixed-precision-bit-by-bit", "version": 1, "progress": records} | change)


@pytest.mark.parametrize(
    ("mine", "theirs", "says", "kept"),
    [
        (SOLVED, HINTED, "Brought in; nothing in it is done.", {"solved": True, "hints": 2}),
        (HINTED, CHOSEN, "Brought in: 1 finished exercise.", {**CHOSEN, "hints": 2}),
        (CHOSEN, {**SOLVED, "chosen": 0}, "Brought in; all that is done in it was done here already.", CHOSEN),
    ],
)
def test_two_records_of_one_exercise_become_one_and_nothing_is_lost(show, mine, theirs, says, kept):
    page = fold(show(stored={"numbers/bits/exercise-1": mine}))
    assert bring(page, text_of({"numbers/bits/exercise-1": theirs})) == says
    assert json.loads(stored(page)["mp-progress:numbers/bits/exercise-1"]) == kept
    assert page.get_by_label("or paste the text").input_value() == ""


def test_the_words_tell_new_ones_from_known_ones(show):
    page = fold(show(stored={"numbers/bits/exercise-1": SOLVED}))
    text = text_of({f"numbers/bits/exercise-{n}": SOLVED for n in (1, 2, 3)})
    assert bring(page, text) == "Brought in: 2 finished exercises; 1 more was done here already."
    assert status(page) == "Brought in: 2 finished exercises; 1 more was done here already."


def test_the_copied_text_can_be_brought_in(show):
    page = fold(show(stored=SOME))
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; }")
    page.get_by_role("button", name="Copy as text").click()
    assert page.locator(".mp-pg-said").inner_text() == "Copied. Paste it here in the other browser."
    text = page.evaluate("() => window.copied")
    assert text.isascii()
    assert bring(page, text) == "Brought in; all that is done in it was done here already."


def test_where_nothing_is_done_there_is_nothing_to_save(show):
    page = fold(show())
    page.get_by_role("button", name="Save as a file").click()
    assert page.locator(".mp-pg-said").inner_text() == "There is nothing to save yet."


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "There is nothing to read yet: paste the saved text first, or open its file."),
        ("  \n", "There is nothing to read yet: paste the saved text first, or open its file."),
        ("hello", "This is no saved progress, or a part of it is missing; nothing was changed."),
        (text_of({"a/b": SOLVED})[:-3], "This is no saved progress, or a part of it is missing; nothing was changed."),
        ("null", "This text holds no progress of this book; nothing was changed."),
        ("[1]", "This text holds no progress of this book; nothing was changed."),
        (text_of({}, book="another"), "This text holds no progress of this book; nothing was changed."),
        (text_of([]), "This text holds no progress of this book; nothing was changed."),
        (
            text_of({"a/b": SOLVED}, version=2),
            "This progress was saved by another edition of the book, which this one cannot read; nothing was changed.",
        ),
        (
            text_of({"a/b": SOLVED, "a/c": {"solved": "yes", "hints": 0}}),
            "The entry “a/c” cannot be read; nothing was changed.",
        ),
        (text_of({"a/b": {"solved": True}}), "The entry “a/b” cannot be read; nothing was changed."),
        (text_of({"a/b": {"solved": True, "hints": -1}}), "The entry “a/b” cannot be read; nothing was changed."),
        (text_of({"a/b": None}), "The entry “a/b” cannot be read; nothing was changed."),
        (text_of({"__proto__": SOLVED}), "The entry “__proto__” cannot be read; nothing was changed."),
        (text_of({"<b>/x": SOLVED}), "The entry “<b>/x” cannot be read; nothing was changed."),
        (" " * 1_000_000 + "1", "This is far longer than a saved progress can be; nothing was changed."),
    ],
    ids=lambda text: text[:20].strip(),
)
def test_what_is_no_saved_progress_gets_one_sentence_and_changes_nothing(show, text, says):
    page = fold(show(stored=SOME))
    before = stored(page)
    assert bring(page, text) == says
    assert status(page) == says
    assert stored(page) == before
    field = page.get_by_label("or paste the text")
    assert field.input_value() == text
    assert field.get_attribute("aria-invalid") == "true"
    assert bring(page, text_of({"a/b": SOLVED})) == "Brought in: 1 finished exercise."
    assert field.get_attribute("aria-invalid") is None


def test_a_browser_that_stores_nothing_says_so(show):
    off = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('storage is off'); } })"
    page = show(script=off)
    assert page.locator(".mp-pg-warning").inner_text() == (
        "This browser stores nothing for this page, so what you do is forgotten as soon as you leave."
    )
    assert counts(page) == ["0 of 5 done", "0 of 2 done", "0 of 3 done"]
    assert page.get_by_role("button").count() == 0
    assert page.locator("details").count() == 0


def test_a_full_storage_is_told(show):
    page = fold(show(stored={"numbers/bits/exercise-1": SOLVED}))
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    assert bring(page, text_of({"numbers/bits/exercise-2": SOLVED})).startswith("The browser could not store all of it")
    assert counts(page)[2] == "1 of 3 done"
    assert page.get_by_label("or paste the text").input_value() != ""


@pytest.mark.parametrize("broken", ["{", "null", "7", '"x"', '{"solved": 1, "hints": "many"}'])
def test_a_broken_record_counts_as_nothing_and_is_not_saved(show, broken):
    page = show(script=f"localStorage.setItem('mp-progress:numbers/bits/exercise-1', {json.dumps(broken)})")
    assert counts(page)[2] == "0 of 3 done"
    assert page.locator(".mp-pg-hints").all_inner_texts() == ["", "", ""]


@pytest.mark.parametrize("event", ["mp-progress", "storage", "pageshow", "visibilitychange"])
def test_it_counts_again_when_something_changed(show, event):
    page = show()
    target = "document" if event == "visibilitychange" else "window"
    page.evaluate(f"""() => {{
      localStorage.setItem("mp-progress:numbers/bits/exercise-1", JSON.stringify({{ solved: true, hints: 0 }}));
      {target}.dispatchEvent(new Event("{event}"));
    }}""")
    page.wait_for_timeout(20)
    assert counts(page)[0] == "1 of 5 done"


def test_a_question_that_is_asked_stays_while_another_tab_solves_something(show):
    page = show(stored=SOME)
    page.get_by_role("button", name="forget the progress in Bits").click()
    page.evaluate("""() => {
      localStorage.setItem("mp-progress:numbers/bits/exercise-2", '{"solved":true,"hints":2}');
      dispatchEvent(new Event("storage"));
    }""")
    page.wait_for_timeout(20)
    assert page.locator(".mp-pg-question:visible").inner_text() == "Forget 2 finished exercises and 3 hints?"


def test_in_a_notebook_it_says_where_progress_is_counted(show):
    page = show(chapters=[])
    assert page.locator(".mp-panel").inner_text() == NOTE
    assert page.get_by_role("button").count() == 0


def test_cleanup_removes_every_listener(browser):
    page = browser.new_page()
    page.route("http://book.test/", lambda route: route.fulfill(body="<p>", content_type="text/html"))
    page.goto("http://book.test/")
    page.evaluate(
        """async ([source, state]) => {
          const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
          const el = document.body.appendChild(document.createElement("div"));
          const model = { get: (key) => state[key] };
          window.cleanup = await (await import(url)).default.render({ model, el });
        }""",
        [Progress.esm_source(), Progress(chapters=CHAPTERS).book_state()],
    )
    page.evaluate("""() => {
      cleanup();
      localStorage.setItem("mp-progress:numbers/bits/exercise-1", '{"solved":true,"hints":0}');
      for (const name of ["storage", "pageshow", "mp-progress"]) dispatchEvent(new Event(name));
      document.dispatchEvent(new Event("visibilitychange"));
    }""")
    page.wait_for_timeout(20)
    assert counts(page)[0] == "0 of 5 done"
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 900}], ids=["phone", "desk"])
def test_it_fits_and_axe_finds_nothing_serious(show, viewport, theme):
    page = fold(show(stored=SOME, theme=theme, viewport=viewport))
    page.get_by_role("button", name="forget the progress in Bits").click()
    bring(page, "hello")
    assert page.evaluate("() => document.documentElement.scrollWidth") == viewport["width"]
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, input, textarea, summary")].filter((node) => node.offsetParent)
             .map((node) => [node.textContent || node.type, node.getBoundingClientRect()])
             .filter(([, box]) => box.width < 24 || box.height < 24 || box.right > innerWidth).map(([name]) => name)"""
    )
    assert small == []
    # preload: axe would fetch the style sheets again, which a browser refuses for file://
    found = Axe().run(page, context="main", options={"preload": False}).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found] == []


# ---- the built book ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(site):
    """What can be done on each built page that counts, by the name of the page."""
    pages = {path.relative_to(site).with_suffix("").as_posix(): path for path in sorted(site.rglob("book/**/*.html"))}
    found = {name: book_progress.exercises(path.read_text("utf8")) for name, path in pages.items()}
    return {name: exercises for name, exercises in found.items() if exercises and book_progress.counts(name)}


def test_each_exercise_of_the_book_has_an_id_of_its_own_that_begins_with_its_chapter(built):
    assert built
    assert list(book_progress.faults(built)) == []


def test_the_contents_page_lists_the_exercises_of_all_pages(site, built):
    page = (site / "book" / "intro.html").read_text("utf8")
    tag = re.search(r'<div[^>]*data-mp-widget="progress"[^>]*>', page)[0]
    chapters = json.loads(html.unescape(book_progress.STATE.search(tag)[1]))["chapters"]
    assert {f"book/{each['chapter']}": each["items"] for each in chapters} == {
        name: [vars(exercise) for exercise in exercises] for name, exercises in built.items()
    }
    for each in chapters:
        target = (site / "book" / each["page"]).read_text("utf8")
        for item in each["items"]:
            assert f' id="{item["place"]}"' in target, item["id"]


def test_what_is_done_on_a_page_is_counted_there_and_on_the_contents_page(page_watch, http_site, built):
    watched = page_watch()
    first, *_ = built["book/numbers/bits"]
    total = len(built["book/numbers/bits"])
    page = watched.open(f"{http_site}/book/numbers/bits.html")
    line = page.locator(".mp-solved")
    assert line.inner_text() == f"0 of {total} done"
    contents = page.context.new_page()
    contents.goto(f"{http_site}/book/intro.html")
    contents.wait_for_selector('[data-mp-widget="progress"][data-mp-ready="true"]')
    assert row(contents, "Bits").locator(".mp-pg-count").inner_text() == f"0 of {total} done"
    quiz = page.locator(f'[id="{first.place}"]')
    for option in quiz.get_by_role("radio").all():
        option.click()
    if quiz.get_by_role("button", name="Compare").is_visible():
        quiz.get_by_role("button", name="Compare").click()
    assert line.inner_text() == f"1 of {total} done"
    contents.wait_for_function("() => /^1 of/.test(document.querySelector('.mp-pg-book .mp-pg-count').textContent)")
    assert row(contents, "Bits").locator(".mp-pg-count").inner_text() == f"1 of {total} done"
    line.get_by_role("link").click()
    page.wait_for_url("**/book/intro.html#your-progress")
    assert page.locator("#your-progress h2").is_visible()
    assert watched.problems == []


def test_without_javascript_a_page_says_how_many_exercises_it_has(page_watch, site, built):
    page = page_watch(java_script_enabled=False).page
    page.goto((site / "book" / "numbers" / "bits.html").as_uri())
    total = len(built["book/numbers/bits"])
    assert page.locator(".mp-solved").inner_text() == f"{total} questions and exercises on this page"
    page.goto((site / "book" / "intro.html").as_uri())
    assert f"Bits: {total} exercises" in page.locator('[data-mp-widget="progress"]').inner_text()
