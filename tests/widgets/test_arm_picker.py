"""ArmPicker in Python: what it takes from records, what it says of them, and what it refuses."""

import html
import itertools
import json
import re

import pytest

from tests.made_runs import ACCURACY, CPU, GPU, PLANNED, SETTINGS, all_arms, five_seeds, run
from tests.page_states import states_in
from utils import measure, records
from utils.training.recipes import COMPARED, RECIPES
from utils.widgets.arm_picker import ArmPicker
from utils.widgets.arm_picker import words as arm_words
from utils.widgets.arm_picker.facts import QUANTITIES, arms_of

NAMES = [quantity.name for quantity in QUANTITIES]


@pytest.fixture(scope="module")
def data():
    return arms_of(five_seeds())


def plain(text):
    return text.replace("\u00a0", " ")


def verdict(runs, arm="16-mixed", quantity="accuracy", baseline="32-true"):
    data = arms_of(runs)
    return arm_words.verdict_of(data["groups"][0], arm, baseline, arm_words.quantity_of(data, quantity))


def pairs(*gaps, arm="16-mixed"):
    """Runs whose accuracies differ by these points from 32-true, seed by seed."""
    baseline = [run("32-true", seed, 0.8 + seed / 1000) for seed in range(len(gaps))]
    return baseline + [run(arm, seed, 0.8 + seed / 1000 + gap / 100) for seed, gap in enumerate(gaps)]


def kept(group, arm):
    """The values of an arm by the name of the quantity, without those that are not recorded."""
    values = dict(zip(NAMES, group["runs"][arm]["values"], strict=True))
    return {name: value for name, value in values.items() if value is not None}


# What is taken from the records


def test_numbers_are_taken_by_arm_and_seed(data):
    (group,) = data["groups"]
    assert (data["arms"], group["seeds"], group["steps"]) == (list(COMPARED), [0, 1, 2, 3, 4], PLANNED)
    assert list(group["runs"]) == ["32-true", "16-mixed", "bf16-mixed", "16-true"]
    assert kept(group, "32-true")["accuracy"] == [81.55, 80.75, 81.1, 80.95, 80.65]
    assert kept(group, "32-true")["weights"] == 1.4743  # one number where it is the same for all seeds
    assert arm_words.values_of(group, "32-true", arm_words.quantity_of(data, "weights")) == [1.4743] * 5
    assert arm_words.values_of(group, "64-true", arm_words.quantity_of(data, "weights")) == [None] * 5
    assert data["notes"]["16-mixed"] == RECIPES["16-mixed"].note


def test_the_last_loss_is_the_mean_of_the_last_tenth_of_the_steps():
    losses = [9.0] * (PLANNED - 4) + [0.1, 0.2, 0.3, 0.4]
    (group,) = arms_of([run("32-true", 0, losses=losses)])["groups"]
    assert kept(group, "32-true")["loss"] == pytest.approx(0.25)


def test_a_curve_holds_means_in_thousandths_and_ends_where_the_run_did():
    data = arms_of([run("32-true", 0, losses=[i / 100 for i in range(PLANNED)]), run("16-true", 0, nan_step=12)])
    runs, points = data["groups"][0]["runs"], data["points"]
    (curve,) = runs["32-true"]["curves"]
    assert points == len(curve) == 16
    parts = [[i for i in range(PLANNED) if i * points // PLANNED == part] for part in range(points)]
    assert curve == [round(10 * sum(part) / len(part)) for part in parts]
    (broken,) = runs["16-true"]["curves"]
    assert len(broken) == 10 * points // PLANNED + 1  # of its eleven good steps
    assert (runs["16-true"]["nan"], "nan" in runs["32-true"]) == ([12], False)


def test_a_run_whose_loss_was_nan_has_bytes_and_no_other_number(data):
    assert set(kept(data["groups"][0], "16-true")) == {"weights", "gradients", "optimizer", "saved_activations"}


def test_what_was_recorded_on_two_devices_is_in_two_groups():
    runs = [run("32-true", 0, device=GPU), run("32-true", 0), run("16-mixed", 0), run("16-mixed", 1, device=GPU)]
    runs += [run("bf16-mixed", 0), run("bf16-true", 0, settings={**SETTINGS, "batch": 12})]
    groups = arms_of(runs)["groups"]
    assert [group["device"] for group in groups] == [
        "Some CPU (CPU, 2 threads), small",  # has most arms
        "Some GPU (GPU), small",
        "Some CPU (CPU, 2 threads), small",
    ]
    assert [list(group["runs"]) for group in groups] == [
        ["32-true", "16-mixed", "bf16-mixed"],
        ["32-true", "16-mixed"],
        ["bf16-true"],
    ]
    assert [group["seeds"] for group in groups] == [[0], [0, 1], [0]]
    assert "batch 12" in groups[2]["conditions"]


def test_the_later_of_two_runs_counts_and_other_experiments_do_not():
    runs = [run("32-true", 0, 0.9, date="2026-11-23T00:00:00+00:00"), run("32-true", 0, 0.8)]
    runs += [run("32-true", 1, experiment="distilbert-growth10"), run("16-mixed-unscaled", 2)]
    (group,) = arms_of(runs)["groups"]
    assert group["seeds"] == [0]
    assert kept(group, "32-true")["accuracy"] == 90.0
    assert "; torch 2.13.0; 2026-11-23" in group["conditions"]


def test_rates_and_remarks_are_taken_where_they_are_recorded():
    rates = {"tokens_per_second": 43_210.9, "tflops": 0.123456, "share": 0.25}
    remark = "on this CPU the same as 32-true"
    (group,) = arms_of([run("32-true", 0), run("32-true-high", 0, rates=rates, remark=remark)])["groups"]
    values, runs = kept(group, "32-true-high"), group["runs"]
    assert (values["tokens_per_second"], values["tflops"], values["share"]) == (43.21, 0.1235, 25.0)
    assert "tflops" not in kept(group, "32-true")
    assert (runs["32-true-high"]["remark"], "remark" in runs["32-true"]) == (remark, False)


def test_only_the_quantities_that_are_asked_for_are_offered(data):
    some = arms_of(five_seeds(), quantities=("weights", "accuracy"))
    assert [row["name"] for row in some["quantities"]] == ["accuracy", "weights"]  # in the usual order
    for name in ("weights", "accuracy"):
        row, usual = arm_words.quantity_of(some, name), arm_words.quantity_of(data, name)
        for arm in ("32-true", "16-true"):
            assert arm_words.values_of(some["groups"][0], arm, row) == arm_words.values_of(
                data["groups"][0], arm, usual
            )
    with pytest.raises(ValueError, match="no quantity is called beauty"):
        arms_of(five_seeds(), quantities=("accuracy", "beauty"))


def test_the_state_of_eleven_arms_is_small_and_plain_json():
    for devices, most in (((CPU,), 14_000), ((CPU, GPU), 17_000)):
        widget = ArmPicker(arms_of(all_arms(devices)))
        (state,) = states_in(widget._repr_mimebundle_()[0]["text/html"])
        text = json.dumps(state, allow_nan=False)
        assert len(text) <= most
        numbers = re.findall(r"\d+\.\d+", json.dumps(state["data"]["groups"][0]["runs"]))
        assert max(len(number.replace(".", "").lstrip("0")) for number in numbers) <= 5


def test_the_records_of_the_book_make_a_picker():
    data = arms_of(records.load_all(experiment="distilbert"))
    widget = ArmPicker(data)
    assert widget.baseline == "32-true"
    for name in NAMES:
        widget.quantity = name
        assert widget.summary.endswith(".")


# What is said of them


def test_a_clear_difference_is_given_with_its_interval(data):
    gaps = [0.5, 0.3, 0.4, 0.6, 0.2]
    found = verdict(five_seeds())
    mean, half = measure.mean_interval(gaps)
    assert (found.kind, plain(found.text)) == ("higher", "higher by 0.4 ± 0.2 points (5 pairs)")
    assert (found.mean, found.half) == (pytest.approx(mean), pytest.approx(half))
    assert found.differences == pytest.approx(dict(enumerate(gaps)))


@pytest.mark.parametrize(
    ("gaps", "kind", "text"),
    [
        (
            (-0.5, 1.0, -0.9, 1.0, 0.4),
            "cannot",
            "cannot be distinguished from 32-true with these 5 pairs: +0.2 ± 1.1 points",
        ),
        (
            (0.5, -1.0, 0.9, -1.0, -0.4),
            "cannot",
            "cannot be distinguished from 32-true with these 5 pairs: −0.2 ± 1.1 points",
        ),
        ((-2.0, -2.2, -1.8), "lower", "lower by 2.0 ± 0.5 points (3 pairs)"),
        ((0.01, 0.02, 0.01, 0.01, 0.02), "higher", "higher by 0.014 ± 0.007 points (5 pairs)"),
        ((-0.5, -0.45, -0.65, 0.0, -1.05), "lower", "lower by 0.53 ± 0.47 points (5 pairs)"),
        ((1.5,), "pair", "one pair, so no interval: +1.5 points"),
        ((0.0, 0.0), "equal", "equal in each of 2 pairs"),
        ((-0.3, -0.3), "lower", "lower by 0.3 points, in each of 2 pairs"),
    ],
)
def test_the_verdict_is_made_from_the_pairs(gaps, kind, text):
    found = verdict(pairs(*gaps))
    assert (found.kind, plain(found.text)) == (kind, text)


def test_a_difference_of_the_last_kind_is_a_share_of_the_baseline():
    runs = [run("32-true", seed, seconds=20.0) for seed in range(3)]
    runs += [run("16-mixed", seed, seconds=10.0 + seed / 10) for seed in range(3)]
    assert plain(verdict(runs, quantity="seconds").text) == "lower by 9.9 ± 0.2 s, 50 % (3 pairs)"
    assert plain(verdict(five_seeds(), arm="16-true", quantity="weights").text) == (
        "lower by 0.74 MB, 50 %, in each of 5 pairs"
    )


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (five_seeds()[:10], "not recorded"),
        (five_seeds(), "no number: the loss was NaN at steps 2 to 4 in 5 of 5"),
        (five_seeds()[5:], "no number: the loss was NaN at steps 2 to 4 in 5 of 5"),
        (
            [*pairs(1, 1, arm="16-true"), run("16-true", 2, nan_step=7), run("32-true", 2)],
            "higher by 1.0 points, in each of 2 pairs; the loss was NaN at step 7 in 1 of 3, which is left out",
        ),
        ([run("32-true", 0), run("16-true", 1)], "no pair: no seed has a number for both"),
        (
            [run("32-true", 0, nan_step=3), run("16-true", 0)],
            "nothing to compare with: 32-true has no number, its loss was NaN",
        ),
        (
            [run("bf16-true", 0), run("16-true", 0)],
            "nothing to compare with: 32-true has no number, it is not recorded",
        ),
    ],
)
def test_where_there_is_no_number_it_is_said_why(runs, text):
    assert plain(verdict(runs, arm="16-true").text) == text


def test_what_no_run_recorded_is_not_blamed_on_a_nan():
    assert verdict(five_seeds(), arm="16-true", quantity="tflops").text == "not recorded"


def test_the_summary_names_each_arm_once(data):
    widget = ArmPicker(data, chosen=["16-mixed", "bf16-mixed", "16-true", "64-true"])
    assert widget.summary == (
        "Test accuracy, against 32-true, each comparison taken alone: 16-mixed is higher; bf16-mixed cannot be "
        "distinguished from the baseline; 16-true has no number; 64-true is not recorded. Not corrected for 2 "
        "comparisons."
    )
    widget.chosen = ["16-mixed"]
    assert widget.summary.endswith("against 32-true: 16-mixed is higher.")
    widget.chosen = ["bf16-mixed", "16-true"]  # one interval, and it includes 0
    assert widget.summary.endswith("16-true has no number.")
    widget.chosen, widget.quantity = ["16-mixed", "16-true"], "weights"  # no seed changes a byte
    assert widget.summary.endswith("16-true is lower; 16-mixed is equal to the baseline.")
    widget.chosen, widget.quantity = [], "accuracy"
    assert widget.summary == "Tick a recipe to compare it with 32-true."


def test_one_seed_alone_gives_an_order_and_the_others_another(data):
    widget = ArmPicker(data, seed=0)
    assert widget.others == ["16-mixed", "bf16-mixed", "16-true"]
    assert widget.summary == (
        "Seed 0 alone says: 16-mixed, then 32-true, then bf16-mixed. The 5 seeds give 2 orders; "
        "first is 16-mixed in 2 and bf16-mixed in 3."
    )
    order = sorted(ACCURACY, key=lambda arm: -ACCURACY[arm][3])
    widget.seed = 3
    assert widget.summary.startswith(f"Seed 3 alone says: {', then '.join(order)}.")


def test_a_first_place_that_two_share_is_named():
    runs = [run("32-true", 0, 0.81), run("16-mixed", 0, 0.81), run("32-true", 1, 0.8), run("16-mixed", 1, 0.82)]
    widget = ArmPicker(arms_of(runs), seed=0)
    assert widget.summary == (
        "Seed 0 alone says: 32-true = 16-mixed. The 2 seeds give 2 orders; "
        "first is 32-true in 1 and 16-mixed in 2 (shared in 1)."
    )


@pytest.mark.parametrize(
    ("quantity", "seed", "chosen", "says"),
    [
        ("weights", 2, ["16-mixed", "16-true"], "16-true, then 32-true = 16-mixed. All 5 seeds give this order."),
        ("accuracy", 2, ["16-true"], "nothing: tick recipes that have a number for every seed."),
        ("seconds", 1, ["16-mixed"], "32-true = 16-mixed. All 5 seeds give this order."),
    ],
)
def test_one_seed_says_what_is_equal_and_what_has_no_number(data, quantity, seed, chosen, says):
    widget = ArmPicker(data, quantity=quantity, seed=seed, chosen=chosen)
    assert widget.summary.removeprefix(f"Seed {seed} alone says").lstrip(": ") == says


def test_a_single_seed_is_called_so():
    widget = ArmPicker(arms_of(pairs(1.0)), seed=0)
    assert widget.summary == "Seed 0 alone says: 16-mixed, then 32-true. No other seed was recorded."


def test_ranks_are_those_of_sorted_numbers():
    data = arms_of(all_arms())
    for name in NAMES[:-2]:
        row = arm_words.quantity_of(data, name)
        (group,) = data["groups"]
        ranks = arm_words.ranked(group, COMPARED, row)
        assert list(ranks) == list(COMPARED)
        for i in range(5):
            order = sorted(COMPARED, key=lambda arm: ranks[arm][i])
            numbers = [arm_words.values_of(group, arm, row)[i] for arm in order]
            assert numbers == sorted(numbers, reverse=row.get("better", -1) == 1)


@pytest.mark.parametrize(
    ("x", "decimals", "text"),
    [(0.25, 1, "0.3"), (-2.5, 0, "3"), (0.05 + 0.1, 1, "0.2"), (1e-9, 3, "0.000"), (12345.678, 0, "12346")],
)
def test_ties_are_rounded_away_from_zero(x, decimals, text):
    assert arm_words.fixed(x, decimals) == text


# The widget


def test_the_choice_at_the_start_is_what_is_recorded(data):
    widget = ArmPicker(data)
    assert (widget.baseline, widget.chosen) == ("32-true", ["16-mixed", "bf16-mixed", "16-true"])
    assert (widget.quantity, widget.device, widget.seed) == ("accuracy", 0, None)
    alone = ArmPicker(arms_of([run("64-true", 0), run("16-true-eps", 0)]))
    assert (alone.baseline, alone.chosen) == ("64-true", ["16-true-eps"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"baseline": "8-true"}, "baseline '8-true' is not one of 64-true, 32-true,"),
        ({"chosen": ["16-mixed", "x"]}, "chosen 'x' is not one of 64-true, 32-true,"),
        ({"quantity": "beauty"}, "quantity 'beauty' is not one of accuracy, loss,"),
        ({"device": 1}, "device 1 is not in 0 to 0, the places of records"),
        ({"seed": 5}, "seed 5 is not one of 0, 1, 2, 3, 4"),
    ],
)
def test_what_the_data_do_not_hold_is_refused_in_one_sentence(data, change, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        ArmPicker(data, **change)
    widget = ArmPicker(data)
    before = widget.book_state()
    with pytest.raises(ValueError, match=re.escape(says)):
        widget.set_trait(*next(iter(change.items())))
    assert widget.book_state() == before


def test_without_records_of_the_experiment_there_is_no_picker():
    with pytest.raises(ValueError, match="no record is of 'distilbert' in 64-true, 32-true"):
        arms_of([run("32-true", 0, experiment="llama")])


def test_on_another_device_a_seed_that_it_lacks_is_let_go():
    runs = [*five_seeds(), run("32-true", 0, device=GPU), run("32-true", 1, device=GPU)]
    widget = ArmPicker(arms_of(runs), seed=1)
    widget.device = 1
    assert widget.seed == 1
    widget.device, widget.seed = 0, 4
    widget.device = 1
    assert widget.seed is None


def test_the_page_sends_its_state(data):
    widget = ArmPicker(data)
    widget.set_state({"baseline": "16-mixed", "chosen": ["32-true"], "quantity": "loss", "seed": 2})
    assert widget.summary.startswith("Seed 2 alone says")
    widget.set_state({"seed": None, "quantity": "accuracy"})
    assert plain(widget.verdicts["32-true"].text) == "lower by 0.4 ± 0.2 points (5 pairs)"


def test_the_static_form_has_every_arm_with_its_verdict(data):
    widget = ArmPicker(data)
    page = html.unescape(widget.static_html())
    rows = dict(re.findall(r"<tr><th scope='row'>(.*?)</th>(.*?)</tr>", page))
    assert list(rows) == list(COMPARED)
    seeds = "<td>81.55, 80.75, 81.1, 80.95, 80.65</td>"
    assert plain(rows["32-true"]) == f"<td>81.0 ± 0.4 %</td>{seeds}<td>baseline</td>"
    assert rows["64-true"] == "<td>not recorded</td><td>–</td><td>not recorded</td>"
    assert "seeds 0, 1, 2, 3 and 4" in page
    for arm, found in widget.verdicts.items():
        assert rows[arm].endswith(f"<td>{found.text}</td>")
    assert widget.summary in page
    assert "Recorded on Some CPU (CPU, 2 threads), small; random, DistilBERT" in page


def test_pairs_of_any_two_arms_are_opposite(data):
    (group,), row = data["groups"], arm_words.quantity_of(data, "accuracy")
    for a, b in itertools.permutations(ACCURACY, 2):
        there, back = arm_words.verdict_of(group, a, b, row), arm_words.verdict_of(group, b, a, row)
        assert there.mean == -back.mean
        assert there.half == pytest.approx(back.half)
