"""What every widget keeps to: no ids and no globals, words without JavaScript, room on the page, and nothing after it.

What only one widget can show stands in its own file.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.browser.widget_page import DESK, PHONE
from tests.made_runs import five_seeds
from tests.watched import record, run_of_a_scaler
from utils.cost.roofline import Roof
from utils.widgets.amax_history import AmaxHistory
from utils.widgets.arm_picker import ArmPicker
from utils.widgets.arm_picker.facts import arms_of
from utils.widgets.ask_gpu import AskGpu
from utils.widgets.bit_flip import BitFlip, Goal
from utils.widgets.block_editor import BlockEditor
from utils.widgets.code_line import CodeLine
from utils.widgets.condition import Condition
from utils.widgets.decision_tree import DecisionTree
from utils.widgets.decision_tree.facts import verdict
from utils.widgets.dot_product import DotProduct
from utils.widgets.drag_outlier import DragOutlier
from utils.widgets.every_format import EveryFormat
from utils.widgets.format_window import FormatWindow
from utils.widgets.group_outlier import GroupOutlier
from utils.widgets.microscope import Microscope
from utils.widgets.model_size import ModelSize
from utils.widgets.number_line import NumberLine
from utils.widgets.op_lookup import OpLookup
from utils.widgets.playground import Playground
from utils.widgets.precision_plan import PrecisionPlan
from utils.widgets.scale_cockpit import ScaleCockpit
from utils.widgets.scale_explorer import ScaleExplorer
from utils.widgets.shape_to_bound import ShapeToBound
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.modules import WIDGETS
from utils.widgets.shared.words.amounts import bytes_text
from utils.widgets.softmax_row import SoftmaxRow
from utils.widgets.step_timeline import StepTimeline
from utils.widgets.swamping import Swamping
from utils.widgets.tokens_per_second import TokensPerSecond
from utils.widgets.update import Update


@dataclass(frozen=True)
class Case:
    """A widget, and what a page without JavaScript says of it, one line of `says(widget)` each.

    `room`: rem by which the height that the page keeps free may differ from the one that it takes; None where this
    depends on the data and the widget's own file looks at it. Before its end `starts`, a button, is pressed, and the
    kernel sends `sets`; `ends_ms`: how long to wait for what might go on.
    """

    make: Callable[[], BookWidget]
    says: Callable[[BookWidget], list[str]]
    room: float | None = 4
    starts: str = ""
    sets: dict = field(default_factory=dict)
    ends_ms: int = 50


def verdicts(picker):
    return [text for arm, found in picker.verdicts.items() for text in (f"{arm} ", found.text)]


def ledger(size):
    return [size.plan.verdict, f"optimizer {bytes_text(size.plan.ledger.optimizer)}"]


def answers(bound):
    return [bound.case.verdict, bound.case.record, bound.case.rows, "attention scores 512 × 512 × 64"]


AMAXES = {"inputs, layer 0": [2.0, 60.0, 2.5, 3.0] * 8, "gradients, layer 0": [1e-5, 1e-6, 0.0, 1e-7] * 8}
ROOF = Roof("Some CPU, 2 threads", {"float32": 0.125}, 20.0, "made up for the tests", measured=True)
MEASURED = {"device": ROOF.name, "dtype": "float32", "m": 512, "n": 4096, "k": 4096, "ms": 200.0}
CASES = {
    "amax_history": Case(lambda: AmaxHistory(AMAXES, "Made up for a test."), lambda w: [w.summary]),
    "arm_picker": Case(lambda: ArmPicker(arms_of(five_seeds())), verdicts, room=None, sets={"seed": 2}),
    "ask_gpu": Case(
        AskGpu, lambda w: ["2⁻¹²⁶ × 0.5, a subnormal result 2⁻¹²⁷, kept 0, flushed"], starts="Ask this GPU", ends_ms=300
    ),
    "bit_flip": Case(
        lambda: BitFlip("float16", 0x3E40, goals=[Goal("test/nan", "Make a NaN.", kind="nan")]),
        lambda w: ["float16 code 0x3e40 is 1.5625: (−1)^0 × 2^(15 − 15) × (1 + 576/1024)."],
    ),
    "block_editor": Case(BlockEditor, lambda w: [w.block.verdict]),
    "code_line": Case(CodeLine, lambda w: ["57,344"], room=3),
    "condition": Case(Condition, lambda w: ["21 steps"], ends_ms=200),
    "decision_tree": Case(DecisionTree, lambda w: [verdict(w.decision)], room=1.5),
    "dot_product": Case(
        lambda: DotProduct(512, ["bfloat16"], data="ones"),
        lambda w: ["bfloat16 256 −50 %"],
        **{"room": None, "starts": "run again", "ends_ms": 500},
    ),
    "drag_outlier": Case(DragOutlier, lambda w: ["E4M3, one scale per tensor"], ends_ms=300),
    "every_format": Case(lambda: EveryFormat("65520"), lambda w: ["float16 ∞ ∞ overflow: to ∞"]),
    "format_window": Case(lambda: FormatWindow(record()), lambda w: [w.sentence]),
    "group_outlier": Case(GroupOutlier, lambda w: ["int8, asymmetric"]),
    "microscope": Case(Microscope, lambda w: ["1.5 × 2⁻⁹ 2⁻⁸ 2⁻⁹"]),
    "model_size": Case(lambda: ModelSize("LLaMA 7B", batch=4, length=2_048), ledger, room=3),
    "number_line": Case(
        lambda: NumberLine("float8_e4m3fn", x="0.3", low="0", high="1"),
        lambda w: ["ties to even 0.3125", "0.28125 with 40 %, 0.3125 with 60 %"],
    ),
    "op_lookup": Case(lambda: OpLookup(version="2.13.0"), lambda w: ["softmax whatever comes in casts to float32"]),
    "playground": Case(Playground, lambda w: ["float16 moments of Adam: fails"], starts="Run", ends_ms=300),
    "precision_plan": Case(PrecisionPlan, lambda w: [w.plan.verdict]),
    "scale_cockpit": Case(
        lambda: ScaleCockpit(record(), run_of_a_scaler()[0], amaxes=run_of_a_scaler()[1]),
        lambda w: [w.verdict],
        sets={"step": 44},
    ),
    "scale_explorer": Case(ScaleExplorer, lambda w: [w.sentence]),
    "shape_to_bound": Case(
        lambda: ShapeToBound(roofs=[ROOF], recorded=[MEASURED], device=ROOF.name, dtype="float32", m=512),
        answers,
        room=None,
    ),
    "softmax_row": Case(
        SoftmaxRow, lambda w: [w.verdict, "dtype’s lowest, added twice NaN NaN NaN"], sets={"copies": 3}
    ),
    "step_timeline": Case(StepTimeline, lambda w: ["scaler.unscale_(optimizer)"]),
    "swamping": Case(Swamping, lambda w: ["it stops at 256"], starts="run", ends_ms=100),
    "tokens_per_second": Case(TokensPerSecond, lambda w: ["At most 154 tokens a second."]),
    "update": Case(Update, lambda w: ["One update of 0.001 with ties to even gives 1"]),
}
IN_THE_BOOK = {"progress", "quiz", "recipe_picker"}  # whose own files look at them in the pages of the book


def every():
    return [case.make() for case in CASES.values()]


def plain(text):
    return " ".join(text.split())


def test_every_widget_is_here():
    sheets = {path.parent.name for path in WIDGETS.glob("*/widget.css")}
    assert sheets - IN_THE_BOOK == set(CASES)
    assert all(case.make().book_name == name for name, case in CASES.items())


def test_there_are_no_ids_and_no_globals(show):
    before = "window.before = new Set(Object.getOwnPropertyNames(window)).add('before')"
    page = show(*every(), scripts=[before])
    ids = "() => [...document.querySelectorAll('.mp-widget [id]')].map((node) => node.outerHTML)"
    assert page.locator(".mp-panel").count() == len(CASES)
    assert page.evaluate(ids) == []
    page.evaluate("() => document.querySelectorAll('.mp-panel button').forEach((button) => button.click())")
    assert page.evaluate(ids) == []
    assert page.evaluate("() => Object.getOwnPropertyNames(window).filter((name) => !before.has(name))") == ["mpParts"]


def test_without_javascript_each_says_what_it_starts_with(show):
    widgets = every()
    page = show(*widgets, java_script_enabled=False)
    for widget in widgets:
        said = plain(page.locator(f"[data-mp-widget={widget.book_name}]").inner_text())
        missing = [line for line in CASES[widget.book_name].says(widget) if plain(line) not in said]
        assert missing == [], (widget.book_name, said)


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_the_page_keeps_about_the_height_free_that_each_takes(show, viewport):
    page = show(*every(), viewport=viewport, reduced_motion="reduce")
    found = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll("[data-mp-widget]")].map((place) => [
             place.dataset.mpWidget,
             [parseFloat(getComputedStyle(place).getPropertyValue("--mp-height")),
              place.querySelector(".mp-panel").offsetHeight / 16],
           ]))"""
    )
    rooms = {name: case.room for name, case in CASES.items() if case.room is not None}
    assert {name: found[name] for name, room in rooms.items() if not abs(found[name][0] - found[name][1]) <= room} == {}


# Nodes that lead elsewhere or open by themselves are left out.
TOUCH_ALL = """() => {
  for (const node of el.querySelectorAll(":not(a, a *, summary, summary *)")) {
    for (const kind of ["click", "input", "change"]) node.dispatchEvent(new Event(kind, { bubbles: true }));
    for (const kind of ["pointerdown", "pointermove", "pointerup"])
      node.dispatchEvent(new PointerEvent(kind, { bubbles: true, button: 0, clientX: 9, clientY: 9 }));
    for (const key of ["ArrowLeft", "ArrowRight", "Home", "1"])
      node.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  }
}"""
END = """(sets) => {
  Object.assign(model.state, sets);
  for (const name in sets) model.fire(`change:${name}`);
  cleanup();
  return [el.innerHTML, model.sent.length];
}"""


@pytest.mark.parametrize("name", CASES)
def test_cleanup_removes_every_listener_and_ends_what_runs(hosted, name):
    case = CASES[name]
    page = hosted(case.make())
    if case.starts:
        page.get_by_role("button", name=case.starts).first.click()
    shown, sent = page.evaluate(END, case.sets)
    page.evaluate(TOUCH_ALL)
    page.wait_for_timeout(case.ends_ms)
    assert page.evaluate("() => el.innerHTML") == shown
    assert page.evaluate("() => [model.sent.length, listeners.length]") == [sent, 0]


def test_a_page_that_a_test_has_used_comes_back_like_a_new_one(browser, kept_pages, tmp_path):
    options = {"viewport": DESK, "locale": "en-AU"}  # which no other test asks for
    file = tmp_path / "page.html"
    file.write_text("<p>One.", "utf8")
    used = kept_pages.take(browser, options)
    page = used.page
    page.goto(file.as_uri())
    page.evaluate("localStorage.kept = sessionStorage.kept = 1")
    with page.expect_popup():
        page.evaluate("void open('about:blank')")
    with page.expect_console_message():
        page.evaluate("console.error('of the first test')")
    page.set_viewport_size(PHONE)
    page.emulate_media(media="print", color_scheme="dark")
    assert used.problems
    kept_pages.give_back(used, options)

    assert kept_pages.take(browser, options) is used
    assert used.problems == []
    assert page.context.pages == [page]
    page.goto(file.as_uri())
    assert page.evaluate("[localStorage.length, sessionStorage.length, innerWidth]") == [0, 0, DESK["width"]]
    assert (
        page.evaluate("[matchMedia('print'), matchMedia('(prefers-color-scheme: dark)')].some((m) => m.matches)")
        is False
    )

    page.close()
    kept_pages.give_back(used, options)
    other = kept_pages.take(browser, options)
    assert other is not used
    other.page.context.close()
