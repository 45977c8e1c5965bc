"""Playground in a real browser: exact to the last bit, presets over seeds, tour, knobs, address, phone, no barriers."""

import gzip
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
  // the float32 twins, each trained once however many setups have it; `accuracy` is known every 50 steps
  const twins = new Map();
  const twinOf = (setup) => {
    const key = JSON.stringify(setup);
    if (!twins.has(key)) {
      const net = new Net(setup);
      twins.set(key, { net, losses: [], accuracies: new Map([[0, net.accuracy()]]) });
    }
    const { net, losses, accuracies } = twins.get(key);
    const twin = {
      steps: 0, loss: NaN,
      step() {
        if (twin.steps === losses.length) {
          net.step();
          losses.push(net.loss);
          if (net.steps % 50 === 0) accuracies.set(net.steps, net.accuracy());
        }
        twin.loss = losses[twin.steps];
        twin.steps += 1;
      },
      accuracy() {
        if (!accuracies.has(twin.steps)) throw new Error(`the accuracy after ${twin.steps} steps was not kept`);
        return accuracies.get(twin.steps);
      },
    };
    return twin;
  };
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
        const run = newRun(setup, twinOf);
        for (let i = 0; i < steps; i += 50) {
          run.advance(50);
          run.judge();
          noteScale(tried, run);
          if (isSolved(task, run, start, tried)) return run.net.steps;
        }
        return 0;
      });
    },
    ends: (setup, steps, isKept = true) => {
      const run = newRun(setup, isKept ? twinOf : undefined);
      run.advance(steps);
      run.judge();
      const { loss, ghostLoss, accuracy, ghostAccuracy, diedAt, net: { all } } = run;
      return { loss: text(loss), ghostLoss, accuracy, ghostAccuracy, diedAt, zeros: all.zeros / all.gradients };
    },
    losses(setup, steps) {
      const run = newRun(setup);
      run.advance(steps);
      // of 64 points the hidden units that are 1 or -1
      const isFlat = (a, i) => i % 17 < 16 && Math.abs(a) === 1;
      const flat = run.net.inputs.slice(1).flatMap((x) => [...x].filter(isFlat)).length;
      return { says: words.lossesText(run), first: run.first, now: run.net.now, flat };
    },
    lack: (task, start, setup) => words.lackOf(task, newRun(setup), start, new Map()),
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


def test_the_counts_say_where_gradients_and_moments_became_zero(call):
    for seed in range(1, 6):
        moments = call("losses", vars(Setup(seed=seed).change(formats={"moments": "float16"})), 1)
        assert moments["says"].startswith("In step 1, ")
        assert moments["says"].endswith(
            "of the second moments became 0 when they were stored, and there Adam divided by its ε alone."
        )
        assert moments["first"]["faded"] > 0.2 * moments["first"]["moments"]
        # in float32 a gradient is 0 already exactly where a tanh is 1 or -1: the slope is 0 there
        plain = call("losses", vars(Setup(seed=seed)), 1000)
        assert plain["now"]["zeros"] == plain["flat"] > 0
        assert plain["now"]["under"] == 0
        assert plain["says"] == ""
    tiny = call("losses", vars(Setup(push=19).change(formats={"gradients": "float16"})), 100)
    assert tiny["says"] == "No weight has changed: the gradients became 0 when they were stored."
    lost = call("losses", vars(Setup().change(formats={"weights": "float4_e2m1fn"})), 100)
    assert lost["says"] == "All updates changed nothing."
    still = call("losses", vars(Setup().change(formats={"accumulator": "float6_e3m2fn"})), 100)
    assert still["says"] == "No weight has changed."


def test_a_twin_that_is_kept_gives_the_run_of_one_that_is_trained_along(call):
    setup = vars(Setup(seed=2).change(formats={"moments": "bfloat16"}))
    again = [call("ends", setup, 100, kept) for kept in (False, True, True)]
    assert again[0] == again[1] == again[2]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bfloat16_moments_fall_behind_and_rounded_stochastically_keep_up(call, seed):
    setup = Setup(seed=seed).change(formats={"moments": "bfloat16"})
    nearest, stochastic = (
        call("ends", vars(one), 4000) for one in (setup, setup.change(rules={"moments": "stochastic"}))
    )
    assert float(nearest["loss"]) > 2.5 * nearest["ghostLoss"]
    assert float(stochastic["loss"]) < 1.1 * stochastic["ghostLoss"]


@pytest.mark.parametrize("rule", ["toward_positive", "toward_negative"])
def test_rounding_all_weights_one_way_ruins_the_run_by_step_2000(call, rule):
    for seed in range(1, 6):
        setup = Setup(rate=0.003, seed=seed).change(formats={"weights": "bfloat16"}, rules={"weights": rule})
        end = call("ends", vars(setup), 2000)
        assert float(end["loss"]) > 10 * end["ghostLoss"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"push": 1}, "Something is not float32 here: k of “Loss × 2⁻ᵏ”."),
        ({"rules": {"accumulator": "ties_away"}}, "Something is not float32 here: the rounding of sums (accumulator)."),
        (
            {"formats": {"master": "float32"}, "scale": 2.0},
            "Something is not float32 here: the float32 master copy, the loss scale.",
        ),
    ],
)
def test_the_tour_calls_a_knob_by_its_name(call, changes, says):
    assert call("lack", TOUR[0].as_json(), vars(Setup()), vars(Setup().change(**changes))) == says


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


def open_knobs(page):
    """On a phone they are closed."""
    if not knob(page, "Data").is_visible():
        page.locator("summary", has_text="All knobs").click()


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
    assert verdict(page).startswith("Nothing is trained yet")  # what was paused stays paused
    press(page, "Run")
    choose(page, "Format of weights", "float16")
    assert page.get_by_role("button", name="Pause").is_visible()  # what runs trains anew
    choose(page, "Setting", "float32")
    assert knob(page, "Format of weights").input_value() == "float32"


def test_a_run_that_dies_says_when(show):
    page = show(still(preset="static-2048"))
    for _ in range(3):
        press(page, "+100 steps")
    assert "The loss has been NaN since step" in verdict(page)
    assert "NaN" in page.locator(".mp-play-caption").first.inner_text()
    assert "are NaN or infinite; the loss has been NaN since step" in page.locator(".mp-play-of").inner_text()


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


def test_the_tour_forgets_what_it_said_of_another_run(show):
    page = show(still())
    page.get_by_role("button", name="Task 2").click()
    press(page, "Start the task")
    press(page, "Pause")
    told = page.locator(".mp-goal-said")
    assert told.inner_text() == "All is float32 so far. Give one tensor another format."
    choose(page, "Format of weights", "tf32")
    choose(page, "Format of gradients", "float16")
    press(page, "+1 step")
    assert told.inner_text() == "2 things differ from float32: weights, gradients. Change only one."
    choose(page, "Format of gradients", "float32")
    assert told.inner_text() == "The task is checked at step 300."
    for _ in range(3):
        press(page, "+100 steps")
    assert told.inner_text().endswith("of the points are right after 300 steps. Try another format or another tensor.")
    choose(page, "Format of weights", "float8_e5m2")
    assert told.inner_text() == "The task is checked at step 300."
    for _ in range(3):
        press(page, "+100 steps")
    assert told.inner_text().startswith("✓ Solved. One tensor in too few bits is enough. ")
    assert told.inner_text().endswith("of the updates changed nothing.")
    choose(page, "Format of weights", "float32")
    press(page, "+1 step")
    assert told.inner_text() == "Solved before. Do it again, if you like."


def test_a_hint_stays_while_it_is_followed(show):
    page = show(still())
    page.get_by_role("button", name="Task 6").click()
    press(page, "Start the task")
    press(page, "Hint (2 left)")
    assert "Press “Pause”, then “Restart”, then “+1 step”" in page.locator(".mp-goal-said").inner_text()
    for name in ("Pause", "Restart", "+1 step"):
        press(page, name)
    assert page.locator(".mp-goal-said").inner_text().startswith("Hint 1 of 2: ")
    assert page.locator(".mp-bw-shares dd").first.inner_text().endswith("%")
    share = page.locator(".mp-bw-shares dd").first.inner_text()
    assert f"In step 1, {share} of the second moments became 0 when they were stored" in verdict(page)


def test_a_solved_task_leads_to_its_chapter_in_the_book(page_watch, site):
    solved = "localStorage['mp-progress:playground/rescue'] = '{\"solved\": true}'"
    watched = page_watch(viewport=DESK, reduced_motion="reduce")
    watched.page.add_init_script(solved)
    page = watched.open((site / "book" / "playground.html").as_uri())
    page.get_by_role("button", name="Task 3").click()
    page.locator(".mp-goals").get_by_role("link", name="Loss scaling").click()
    assert page.url.endswith("/book/training/loss_scaling.html")


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
    assert page.locator(".mp-play-says").inner_text().startswith("This setting is from the address of the page.")


def test_a_link_takes_the_tensor_of_the_histogram_too(show):
    take = "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); };"
    page = show(still(), scripts=[take])
    choose(page, "Format of moments", "bfloat16")
    choose(page, "Histogram of", "moments")
    press(page, "Copy link")
    page.wait_for_function("() => 'copied' in window")
    link = page.evaluate("copied")
    assert link.endswith("#playground?moments=bfloat16&histogram=moments")
    choose(page, "Setting", "float32")
    assert knob(page, "Histogram of").input_value() == "gradients"
    page.evaluate("(link) => { location.hash = link.split('#')[1]; }", link)
    page.locator(".mp-play-title", has_text="Moments of the last step").wait_for()


def test_a_link_leads_to_the_tour_again_and_again(show):
    page = show("<p style='height: 200vh'>Above.</p>", still(), "<p style='height: 200vh'>Below.</p>")
    for _ in range(2):
        page.evaluate("scrollTo(0, 0); location.hash = 'playground?tour'")
        page.wait_for_function("() => document.activeElement.innerText === 'Start the task'")
        assert 0 < page.locator(".mp-goals").bounding_box()["y"] < 150
        page.wait_for_function("() => location.hash === ''")
        page.evaluate("document.activeElement.blur()")


@pytest.mark.parametrize("steps", ["0", "-5", "1e9", "x"])
def test_a_link_with_no_number_of_steps_runs_as_without(show, steps):
    page = show(still())
    page.evaluate("(steps) => { location.hash = `playground?rate=0.003&steps=${steps}`; }", steps)
    page.wait_for_function("() => document.querySelector('.mp-play-verdict').innerText.startsWith('Step')")
    assert page.locator(".mp-play-says").inner_text().startswith("This setting is from the address of the page.")
    press(page, "Pause")


@pytest.mark.parametrize(("viewport", "least"), [(PHONE, 90), ({"width": 1280, "height": 800}, 120)])
def test_the_pictures_stay_in_sight_beside_or_above_each_knob(show, viewport, least):
    page = show(still(preset="loss-scaling"), "<p style='height: 200vh'>Below.</p>", viewport=viewport)
    open_knobs(page)
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
    open_knobs(page)
    knob(page, "Histogram of").focus()
    for _ in range(40):
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
    open_knobs(page)
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


def test_its_own_files_are_light(site):
    files = [site / "_static" / "widgets" / f"playground.{kind}" for kind in ("js", "css")]
    assert sum(len(gzip.compress(file.read_bytes(), 9)) for file in files) <= 20_000


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_first_picture_has_the_colours_of_the_page(show, theme):
    page = show(still(), theme=theme)
    corner = "() => [...document.querySelector('canvas').getContext('2d').getImageData(2, 160, 1, 1).data]"
    page.wait_for_function(f"() => ({corner})()[0] !== ({corner})()[2] || ({corner})()[0] > 0")
    red, green, blue, _ = page.evaluate(corner)
    assert max(red, green, blue) > 0
    assert (red + green + blue > 380) == (theme == "light")
