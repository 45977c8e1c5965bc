"""Playground in a real browser: exact to the last bit, presets over seeds, tour, knobs, address, phone, no barriers."""

import json

import numpy as np
import pytest

from tests.browser.widget_page import DESK, PHONE, barriers, calls_of, cut_off_choices, small_targets, smallest_text
from utils.formats import FORMATS
from utils.rounding import RULES, quantize
from utils.widgets.playground import Playground
from utils.widgets.playground.presets import PRESETS, TOUR
from utils.widgets.playground.training.reference import ReferenceNet, Rounder
from utils.widgets.playground.training.setup import NAMES, TENSORS, Setup
from utils.widgets.shared.numbers.dice import dice

HARNESS = """() => {
  const { Net, newRun, rounder, seededDice, tanh, sigmoid, softplus, isSolved, noteScale, FORMATS } = words;
  const text = (x) => (Object.is(x, -0) ? "-0" : String(x));
  window.calls = {
    elementary: (name, xs) => xs.map((x) => text({ tanh, sigmoid, softplus }[name](Number(x)))),
    rounded: (format, rule, xs, seed) => xs.map(Number).map(rounder(FORMATS[format], rule, seededDice(seed))).map(text),
    train(setup, steps) {
      const net = new Net(setup);
      const rows = [];
      for (let i = 0; i < steps; i += 1) {
        net.step();
        rows.push([net.loss, net.scale, ...Object.values(net.now)].map(text));
      }
      return { rows, weights: net.layers.flatMap(({ kept }) => [...kept]).map(text), accuracy: net.accuracy() };
    },
    // the run after some steps, as a task sees it; with several setups, one after the other
    tour(task, start, setups, steps) {
      const tried = new Map();
      return setups.map((setup) => {
        const run = newRun(setup);
        for (let i = 0; i < steps; i += 50) {
          run.advance(50);
          run.judge();
          noteScale(tried, run);
          if (isSolved(task, run, start, tried)) return run.net.steps;
        }
        return 0;
      });
    },
    ends: (setup, steps) => {
      const run = newRun(setup);
      run.advance(steps);
      run.judge();
      const { loss, ghostLoss, accuracy, ghostAccuracy, diedAt, net: { all } } = run;
      return { loss: text(loss), ghostLoss, accuracy, ghostAccuracy, diedAt, zeros: all.zeros / all.gradients };
    },
    there(setup, offered) {
      const hash = words.addressOf("playground", words.toAddress(setup));
      return words.fromAddress(words.readAddress("playground", hash), offered);
    },
    fromAddress: words.fromAddress,
  };
}"""
call = calls_of("playground/widget", HARNESS)
OFFERED = Playground().facts["offered"]


def numbers(texts):
    return np.array([float(text.replace("Infinity", "inf")) for text in texts])


def texts_of(values):
    return [repr(float(value)).replace("inf", "Infinity").replace("nan", "NaN") for value in values]


def equal(ours, theirs):
    """Compare bits: NaN equals NaN, and -0 is not 0."""
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(np.signbit(ours)[~np.isnan(ours)], np.signbit(theirs)[~np.isnan(theirs)])


def edges_of(fmt):
    """Values of a format, the middle of each two neighbours, and numbers on both sides of that; and past the end."""
    top = float(fmt.max)
    if fmt.bits <= 8:
        codes = np.array([float(value) for value in values_of(fmt)])
    else:
        draws = (dice(3, 400) - 0.5) * 2.0 ** np.round((dice(4, 400) - 0.5) * 2 * (fmt.emax - fmt.emin))
        codes = quantize(draws, fmt)
    step = np.array([2.0**-60, 0.0, -(2.0**-60)])
    neighbours = np.unique(np.concatenate([codes, -codes, [top, fmt.smallest_subnormal, fmt.smallest_normal]]))
    middles = (neighbours[:-1] + neighbours[1:]) / 2
    around = np.concatenate([middles * (1 + d) for d in step])
    end = top + float(2.0 ** (fmt.emax - fmt.mantissa_bits))
    past = np.array([end, np.nextafter(end, 0), (top + end) / 2, np.nextafter((top + end) / 2, 0), 2 * end, 1e300])
    return np.concatenate([neighbours, around, past, -past, [np.inf, -np.inf, np.nan, 0.0, -0.0, 5e-324, -5e-324]])


def values_of(fmt):
    from utils.formats import decode

    decoded = decode(np.arange(2**fmt.bits), fmt)
    return decoded[np.isfinite(decoded)]


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus"])
def test_elementary_functions_have_the_bits_of_python(call, name):
    from utils.widgets.playground.training import elementary

    x = np.concatenate(
        [(dice(1, 2000) - 0.5) * 60, (dice(2, 500) - 0.5) * 2.0**-20, [np.inf, -np.inf, np.nan, -0.0, 800.0]]
    )
    equal(numbers(call("elementary", name, texts_of(x))), getattr(elementary, name)(x))


@pytest.mark.parametrize("rule", [*RULES, "stochastic"])
@pytest.mark.parametrize("name", NAMES)
def test_rounding_is_that_of_utils_rounding_on_values_ties_and_past_the_end(call, name, rule):
    x = edges_of(FORMATS[name])
    equal(numbers(call("rounded", name, rule, texts_of(x), 11)), Rounder(FORMATS[name], rule, 11)(x))


ALL16 = dict.fromkeys(TENSORS, "float16")
MIXED = {"weights": "bfloat16", "gradients": "float8_e4m3fn", "master": "float32", "activations": "float8_e4m3fnuz"}
ODD = {"weights": "bfloat16", "moments": "float8_e5m2", "accumulator": "float6_e3m2fn"}
RULES_OF_ODD = {"weights": "stochastic", "moments": "ties_away", "activations": "toward_negative"}
TRAININGS = {
    "float32": Setup(),
    "all-float16": Setup(seed=2).change(formats=ALL16),
    "mixed": Setup(scale="dynamic", growth=20, push=6, data="circle", batch=32, seed=3).change(
        formats=MIXED, rules={"activations": "stochastic", "gradients": "toward_zero", "accumulator": "stochastic"}
    ),
    "sgd": Setup(optimizer="sgd", rate=0.1, data="corners", batch=16).change(formats=ODD, rules=RULES_OF_ODD),
    "nan": Setup(scale=1024.0).change(formats={"gradients": "float8_e4m3fn"}),
}


def reference_run(name):
    """The same 200 steps in NumPy: all rows in one array, the weights, and the share of points that are right."""
    net, rows = ReferenceNet(TRAININGS[name]), []
    with np.errstate(all="ignore"):
        for _ in range(200):
            net.step()
            rows.append([net.loss, net.scale, *net.now.values()])
    return np.array(rows, float).ravel(), np.concatenate([layer.kept.ravel() for layer in net.layers]), net.accuracy()


@pytest.mark.parametrize("name", TRAININGS)
def test_200_steps_have_the_bits_of_the_reference_in_numpy(call, name):
    theirs = call("train", vars(TRAININGS[name]), 200)
    rows, weights, accuracy = reference_run(name)
    equal(rows, numbers([text for row in theirs["rows"] for text in row]))
    equal(weights, numbers(theirs["weights"]))
    assert accuracy == theirs["accuracy"]


# what a preset does to the training, for each of five seeds: (loss and float32 loss, accuracy) after 800 steps
ENDS = {
    "float32": lambda end: end["accuracy"] > 0.98 and end["ratio"] == 1,
    "float16-gradients": lambda end: end["accuracy"] < 0.8 and end["zeros"] > 0.9,
    "loss-scaling": lambda end: end["accuracy"] > 0.98 and end["ratio"] < 1.1,
    "static-2048": lambda end: end["diedAt"] is not None,
    "no-master": lambda end: end["ratio"] > 1.3,
    "stochastic": lambda end: end["ratio"] < 1.15,
    "float16-moments": lambda end: not end["ratio"] < 2,
    "fp8": lambda end: end["accuracy"] > 0.97 and end["ratio"] < 1.6,
    "all-float16": lambda end: not end["ratio"] < 2,
}


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_does_what_its_label_says_over_five_seeds(call, preset):
    ends = [call("ends", vars(preset.setup.change(seed=seed)), 800) for seed in range(1, 6)]
    for end in ends:
        end["ratio"] = float(end["loss"].replace("Infinity", "inf")) / end["ghostLoss"]
    assert [end for end in ends if not ENDS[preset.name](end)] == []


E4M3 = {"gradients": "float8_e4m3fn"}
SOLUTIONS = {
    "playground/learn": [Setup()],
    "playground/break": [Setup().change(formats={"moments": "float16"})],
    "playground/rescue": [Setup(push=19, scale="dynamic").change(formats={"gradients": "float16"})],
    "playground/scale": [Setup(scale=scale).change(formats=E4M3) for scale in (2048.0, 1024.0, 512.0, 256.0)],
    "playground/updates": [
        Setup(rate=0.003).change(formats={"weights": "bfloat16"}, rules={"weights": "stochastic"}),
    ],
    "playground/moments": [Setup().change(formats={"moments": "bfloat16"})],
}
WRONG = {
    "playground/learn": [Setup().change(formats={"weights": "tf32"}), Setup(push=1)],
    "playground/break": [
        Setup(rate=0.001),
        Setup().change(formats=ALL16),
        Setup().change(formats={"weights": "bfloat16"}),
    ],
    "playground/rescue": [
        Setup(push=19).change(formats={"gradients": "bfloat16"}),
        Setup(push=3).change(formats={"gradients": "float16"}),
        Setup(push=19, scale=4.0).change(formats={"gradients": "float16"}),
        Setup(push=19, scale="dynamic", rate=0.02).change(formats={"gradients": "float16"}),
    ],
    "playground/scale": [Setup(scale=64.0).change(formats=E4M3), Setup(scale=2048.0).change(formats=E4M3)],
    "playground/updates": [
        Setup(rate=0.003).change(formats={"weights": "bfloat16", "master": "float32"}),
        Setup(rate=0.01).change(formats={"weights": "bfloat16"}, rules={"weights": "stochastic"}),
        Setup(rate=0.003).change(formats={"weights": "bfloat16"}),
        Setup(rate=0.003).change(formats={"weights": "bfloat16"}, rules={"weights": "toward_positive"}),
    ],
    "playground/moments": [
        Setup().change(formats={"moments": "float16"}),
        Setup().change(formats={"moments": "tf32"}),
        Setup(rate=0.003).change(formats={"moments": "bfloat16"}),
    ],
}


@pytest.mark.parametrize("task", TOUR, ids=lambda task: task.id)
def test_a_task_is_solved_by_its_solution_over_five_seeds_and_not_by_shortcuts(call, task):
    start = vars(next(preset for preset in PRESETS if preset.name == task.preset).setup)
    for seed in range(1, 6):
        solution = [vars(setup.change(seed=seed)) for setup in SOLUTIONS[task.id]]
        assert any(call("tour", task.as_json(), {**start, "seed": seed}, solution, 1000)), seed
    for setup in WRONG[task.id]:
        assert call("tour", task.as_json(), start, [vars(setup)], 1000) == [0], setup


def test_an_address_names_a_setting_and_nothing_that_is_not_offered(call):
    for setup in [*TRAININGS.values(), *(preset.setup for preset in PRESETS)]:
        assert call("there", vars(setup), OFFERED) == vars(setup)
    junk = {"weights": "float99", "rate": "7", "scale": "2^99", "seed": "x", "master": "float16", "data": "moons"}
    assert call("fromAddress", junk, OFFERED) == vars(Setup())


# --- In the page ------------------------------------------------------------------------------------------------------


def still(**options):
    return Playground(**{"autorun": False, **options})


def press(page, name, exact=True):
    page.get_by_role("button", name=name, exact=exact).click()


def verdict(page):
    return page.locator(".mp-play-verdict").inner_text()


def knob(page, label):
    return page.get_by_role("combobox", name=label, exact=True)


def choose(page, label, option):
    knob(page, label).select_option(option)


def test_it_trains_as_soon_as_it_is_seen_and_pauses(show):
    page = show(Playground())
    page.wait_for_function("() => document.querySelector('.mp-play-verdict').innerText.startsWith('Step')")
    press(page, "Pause")
    before = verdict(page)
    page.wait_for_timeout(100)
    assert verdict(page) == before
    assert page.get_by_role("button", name="Run on").is_visible()


def test_it_does_not_train_where_the_reader_wants_no_motion(show):
    page = show(Playground(), reduced_motion="reduce")
    page.wait_for_timeout(200)
    assert verdict(page) == "Nothing is trained yet. Press Run."
    press(page, "Run")
    page.wait_for_function(
        "() => document.querySelector('.mp-play-verdict').innerText.startsWith('Step 1000.')", timeout=60_000
    )


def test_steps_and_restart(show):
    page = show(still())
    press(page, "+1 step")
    assert verdict(page).startswith("Step 1. The loss is ")
    press(page, "+100 steps")
    assert verdict(page).startswith("Step 101. ")
    press(page, "Restart")  # paused, and so it stays
    assert verdict(page).startswith("Nothing is trained yet")
    press(page, "Run")
    page.wait_for_function("() => /^Step [1-9]\\d?\\./.test(document.querySelector('.mp-play-verdict').innerText)")


def test_off_screen_it_waits(show):
    page = show("<p style='height: 300vh'>Above.</p>", Playground())
    page.wait_for_timeout(150)
    assert verdict(page).startswith("Nothing is trained yet")


def test_a_preset_sets_the_knobs_and_a_knob_leaves_the_preset(show):
    page = show(still())
    choose(page, "Setting", "loss-scaling")
    assert knob(page, "Format of gradients").input_value() == "float16"
    assert knob(page, "Loss scale").input_value() == "dynamic"
    press(page, "+100 steps")
    assert "The scale is 2" in verdict(page)
    choose(page, "Format of weights", "bfloat16")
    assert knob(page, "Setting").input_value() == ""
    assert page.get_by_role("button", name="Pause").is_visible()  # what was trained trains anew
    choose(page, "Setting", "float32")
    assert knob(page, "Format of weights").input_value() == "float32"


def test_a_run_that_dies_says_when(show):
    page = show(still(preset="static-2048"))
    for _ in range(3):
        press(page, "+100 steps")
    assert "The loss has been NaN since step" in verdict(page)
    assert "NaN" in page.locator(".mp-play-caption").first.inner_text()


def test_the_histogram_is_that_of_the_chosen_tensor(show):
    page = show(still(preset="float16-moments"))
    press(page, "+1 step")
    assert page.locator(
        ".mp-play-title", has_text="Moments of the last step, before they are stored in float16"
    ).is_visible()
    assert page.locator(".mp-bw-shares dd").first.inner_text() not in ("none", "–")
    choose(page, "Histogram of", "weights")
    assert page.locator(
        ".mp-play-title", has_text="Weights of the last step, before they are stored in float32"
    ).is_visible()


def test_the_tour_is_solved_in_the_page_and_kept(show):
    page = show(still())
    press(page, "Start the task")
    page.wait_for_function(
        "() => document.querySelector('.mp-goal-said').innerText.startsWith('✓ Solved')", timeout=60_000
    )
    assert json.loads(page.evaluate("localStorage['mp-progress:playground/learn']"))["solved"] is True
    press(page, "Next task")
    assert page.locator(".mp-goals h3").inner_text() == "Tour: task 2 of 6, 1 solved"
    press(page, "Hint (3 left)")
    assert page.locator(".mp-goal-said").inner_text().startswith("Hint 1 of 3: ")
    press(page, "forget my progress")
    assert page.evaluate("localStorage['mp-progress:playground/learn']") is not None
    press(page, "really forget?")
    assert page.evaluate("localStorage['mp-progress:playground/learn']") is None


def said(page):
    return page.locator(".mp-play [role=status]").inner_text().strip()


def test_the_tour_says_its_task_and_what_an_attempt_lacks(show):
    page = show(still())
    page.get_by_role("button", name="Task 6").click()
    assert said(page).startswith("Task 6 of 6. Adam’s moments in float16 make the run fail.")
    press(page, "Start the task")
    press(page, "Pause")
    choose(page, "Format of moments", "tf32")
    press(page, "+1 step")
    assert page.locator(".mp-goal-said").inner_text() == "TF32 takes 19 bits. The task asks for 16."
    page.get_by_role("button", name="Task 4").click()
    press(page, "Start the task")
    choose(page, "Loss scale", "256")
    for _ in range(6):
        press(page, "+100 steps")
    assert page.locator(".mp-goal-said").inner_text() == "256 survives 600 steps. Does 512?"
    assert said(page).endswith("256 survives 600 steps. Does 512?")


def test_the_focus_stays_when_a_task_is_solved_on_the_hint(show):
    page = show(still())
    press(page, "Start the task")
    page.get_by_role("button", name="Hint (1 left)").focus()
    page.get_by_role("button", name="Next task").wait_for(timeout=60_000)
    assert page.evaluate("document.activeElement.innerText") == "Hint (1 left)"


def test_leaving_the_button_that_forgets_keeps_the_progress(show):
    page = show(still(), scripts=["localStorage['mp-progress:playground/learn'] ??= '{\"solved\": true}'"])
    press(page, "forget my progress")
    page.get_by_role("button", name="Task 2").click()
    press(page, "forget my progress")
    assert page.evaluate("localStorage['mp-progress:playground/learn']") is not None


def test_the_same_result_is_said_again(show):
    page = show(still())
    press(page, "+100 steps")
    first = page.locator(".mp-play [role=status]").text_content()
    press(page, "Restart")
    page.evaluate(
        "() => { window.seen = []; new MutationObserver(() => seen.push(1)).observe("
        "document.querySelector('.mp-play [role=status]'), { childList: true, characterData: true, subtree: true }); }"
    )
    press(page, "Copy link")
    press(page, "Copy link")
    page.wait_for_function("() => seen.length >= 2")
    assert first


def test_a_link_with_an_unknown_value_says_so(show):
    page = show(still())
    page.evaluate("location.hash = 'playground?weights=float17&rate=0.003'")
    page.wait_for_function("() => document.querySelector('.mp-play-says').innerText.includes('weights=float17')")
    assert knob(page, "Learning rate").input_value() == "0.003"
    assert page.evaluate("document.activeElement.tagName") == "SELECT"


def test_a_link_takes_the_run_to_the_same_step(show):
    take = "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); };"
    page = show(still(), scripts=[take])
    choose(page, "Format of gradients", "float8_e5m2")
    press(page, "+100 steps")
    press(page, "+1 step")
    before = verdict(page)
    press(page, "Copy link")
    page.wait_for_function("() => 'copied' in window")
    link = page.evaluate("copied")
    assert link.endswith("#playground?gradients=float8_e5m2&steps=101")
    assert said(page).startswith("The link to this setting, to be trained to step 101, is copied.")
    page.evaluate("(link) => { location.hash = ''; location.hash = link.split('#')[1]; }", link)
    page.wait_for_function("() => document.querySelector('.mp-play-verdict').innerText.startsWith('Step 101.')")
    assert verdict(page) == before
    page.get_by_role("button", name="Run on").wait_for()  # it has stopped there
    assert page.locator(".mp-play-says").inner_text().startswith("You changed the setting.")


@pytest.mark.parametrize("steps", ["0", "-5", "1e9", "x"])
def test_a_link_with_no_number_of_steps_runs_as_without(show, steps):
    page = show(still())
    page.evaluate("(steps) => { location.hash = `playground?rate=0.003&steps=${steps}`; }", steps)
    page.wait_for_function("() => document.querySelector('.mp-play-verdict').innerText.startsWith('Step')")
    assert page.locator(".mp-play-says").inner_text().startswith("You changed the setting.")
    press(page, "Pause")


@pytest.mark.parametrize(("viewport", "least"), [(PHONE, 90), ({"width": 1280, "height": 800}, 120)])
def test_the_pictures_stay_in_sight_beside_or_above_each_knob(show, viewport, least):
    page = show(still(preset="loss-scaling"), "<p style='height: 200vh'>Below.</p>", viewport=viewport)
    for label in ("Format of weights", "Rounding of sums (accumulator)", "Data", "Histogram of"):
        control = knob(page, label)
        control.evaluate("(node) => { scrollTo(0, 0); node.scrollIntoView({ block: 'center' }); }")
        boxes = [canvas.bounding_box() for canvas in page.locator("canvas").all()]
        own = control.bounding_box()
        for box in boxes:
            assert box["y"] >= 0, label
            assert box["y"] + box["height"] <= viewport["height"], label
            assert min(box["width"], box["height"]) >= least
            beside = box["x"] + box["width"] <= own["x"]
            assert beside or box["y"] + box["height"] <= own["y"], (label, box, own)


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 800}], ids=["phone", "desk"])
def test_the_pictures_stay_in_sight_in_the_page_of_the_book_too(page_watch, site, viewport):
    page = page_watch(viewport=viewport, reduced_motion="reduce").open((site / "book" / "playground.html").as_uri())
    knob(page, "Histogram of").evaluate("(node) => node.scrollIntoView({ block: 'center' })")
    for canvas in page.locator("canvas").all():
        box = canvas.bounding_box()
        assert 0 < box["y"] < viewport["height"] - box["height"]


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_the_focus_is_never_below_what_stays_in_sight(show, viewport):
    page = show(still(preset="loss-scaling"), viewport=viewport)
    knob(page, "Histogram of").focus()
    for _ in range(30):
        page.keyboard.press("Shift+Tab")
        hidden = page.evaluate("""() => {
          const node = document.activeElement;
          const box = node.getBoundingClientRect();
          const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
          return node === document.body || node.contains(top) || top?.contains(node) ? "" : node.outerHTML.slice(0, 80);
        }""")
        assert hidden == ""


def test_the_address_of_a_page_that_begins_elsewhere_names_float32_too(show):
    page = show(still(preset="fp8"))
    choose(page, "Setting", "float32")
    assert page.evaluate("location.hash") == "#playground?"
    page.reload()
    page.wait_for_selector(".mp-panel")
    assert knob(page, "Setting").input_value() == "float32"
    choose(page, "Setting", "fp8")
    assert page.evaluate("location.hash") == ""


def test_a_setting_keeps_the_seed(show):
    page = show(still())
    page.get_by_role("button", name="Seed 1, change to 2").click()
    choose(page, "Setting", "no-master")
    assert page.get_by_role("button", name="Seed 2, change to 3").is_visible()
    assert knob(page, "Setting").input_value() == "no-master"


def test_the_address_brings_a_setting_and_takes_it(show):
    page = show(still())
    choose(page, "Format of gradients", "float8_e5m2")
    assert page.evaluate("location.hash") == "#playground?gradients=float8_e5m2"
    choose(page, "Loss scale", "1024")
    assert page.evaluate("location.hash") == "#playground?gradients=float8_e5m2&scale=2%5E10"
    page.reload()
    page.wait_for_selector(".mp-panel")
    assert knob(page, "Format of gradients").input_value() == "float8_e5m2"
    assert knob(page, "Loss scale").input_value() == "1024"
    choose(page, "Setting", "float32")
    assert page.evaluate("location.hash") == ""
    page.evaluate("location.hash = 'playground?weights=bfloat16&weights-rounding=stochastic&rate=0.003'")
    page.wait_for_function("() => document.querySelector('select').value === 'stochastic'")


def test_python_reads_the_run_and_sets_the_goal(hosted):
    page = hosted(still())
    page.evaluate("() => { model.state.goal = 60; model.fire('change:goal'); }")
    assert page.evaluate("() => el.querySelector('.mp-play-verdict').innerText").startswith("Step 60.")
    page.evaluate("() => [...el.querySelectorAll('button')].find((one) => one.innerText === 'Run on').click()")
    page.evaluate("() => [...el.querySelectorAll('button')].find((one) => one.innerText === 'Pause').click()")
    state = page.evaluate("() => model.state")
    assert state["steps"] >= 60
    assert [row[0] for row in state["curve"]][:60] == list(range(1, 61))
    net = ReferenceNet(Setup())
    for row in state["curve"][:5]:
        net.step()
        assert row[1] == net.loss


def test_a_setup_from_python_starts_anew(hosted):
    page = hosted(still())
    setup = vars(Setup(scale="dynamic").change(formats={"gradients": "float16"}))
    page.evaluate("(setup) => { model.state.setup = setup; model.fire('change:setup'); }", setup)
    assert page.evaluate("() => el.querySelector('[aria-label=\"Format of gradients\"]').value") == "float16"


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_fits_can_be_pressed_and_has_no_barrier(show, viewport, theme):
    page = show(still(preset="loss-scaling"), theme=theme, viewport=viewport)
    press(page, "+100 steps")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert small_targets(page) == []
    assert smallest_text(page) >= 11
    assert cut_off_choices(page) == []
    assert barriers(page) == []


def test_nothing_below_moves_while_it_trains(show):
    page = show(still(preset="loss-scaling"), viewport=PHONE)
    tops = "[...document.querySelectorAll('.mp-play > *')].map((node) => Math.round(node.getBoundingClientRect().top))"
    places = f"() => {tops}"
    before = page.evaluate(places)
    for _ in range(5):
        press(page, "+100 steps")
    assert page.evaluate(places) == before


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_first_picture_has_the_colours_of_the_page(show, theme):
    page = show(still(), theme=theme)
    corner = "() => [...document.querySelector('canvas').getContext('2d').getImageData(2, 160, 1, 1).data]"
    page.wait_for_function(f"() => ({corner})()[0] !== ({corner})()[2] || ({corner})()[0] > 0")
    red, green, blue, _ = page.evaluate(corner)
    assert max(red, green, blue) > 0
    assert (red + green + blue > 380) == (theme == "light")
