"""What the recipe on comparisons promises: the book's interval and counts, and the errors that the page names."""

import math
import re
import statistics

import numpy as np
import pytest
import torch
from scipy.special import chdtri
from scipy.stats import chi2, t, ttest_rel

import book_rules as rules
import recipe_scripts
from utils import measure
from utils.runs import seeds_needed

TRIALS = 2000


@pytest.fixture
def script():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # many threads cost more than this small model
    yield recipe_scripts.load("two_recipes")
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def page():
    return rules.markdown(rules.read_page(recipe_scripts.COOKBOOK / "two_recipes.ipynb"))


def bound(share, trials=TRIALS):
    """Five standard errors of a counted share."""
    return 5 * math.sqrt(share * (1 - share) / trials)


def test_it_runs_as_it_stands_and_its_lines_agree(tmp_path):
    done = recipe_scripts.run_as_shown("two_recipes", tmp_path)
    rows = re.findall(r"^seed \d: ([\d.]+) and ([\d.]+), difference ([+-][\d.]+)$", done.stdout, re.MULTILINE)
    old, new, differences = (list(map(float, column)) for column in zip(*rows, strict=True))
    assert len(rows) == 8
    assert min(old + new) > 75  # guessing gives 50
    mean, half, verdict = re.search(r"difference ([+-][\d.]+) ± ([\d.]+) points: (.*)", done.stdout).groups()
    wanted = measure.mean_interval(differences)
    assert [float(mean), float(half)] == pytest.approx(wanted, abs=0.015)  # of numbers with two decimals
    assert verdict == ("a difference" if abs(wanted[0]) > wanted[1] else "no difference shown")
    unpaired = float(re.search(r"without pairing it would be ±([\d.]+)", done.stdout)[1])
    assert unpaired > 1.5 * float(half)  # most of what a seed decides cancels
    one_seed = math.sqrt(2) * statistics.stdev(old)  # of two single runs of one recipe
    assert one_seed > abs(float(mean))


def test_a_recipe_compared_with_itself_differs_by_nothing_and_another_seed_by_something(script, monkeypatch, capsys):
    monkeypatch.setattr(script, "device", "cpu")
    script.STEPS = 20
    first, again, other = (script.train("float32", seed) for seed in (0, 0, 1))
    assert first == again != other
    script.compare([first, other], [again, other])
    assert capsys.readouterr().out.startswith("mean difference +0.00 ± 0.00 points: no difference shown")


def test_the_recipes_of_one_seed_begin_with_the_same_weights_and_see_the_same_batches(script, monkeypatch):
    monkeypatch.setattr(script, "device", "cpu")
    script.STEPS, seen = 3, []
    plain, entropy = torch.optim.AdamW, torch.nn.functional.cross_entropy

    def look(parameters, **settings):
        parameters = list(parameters)
        seen.append(torch.cat([weight.detach().flatten() for weight in parameters]))
        return plain(parameters, **settings)

    def look_at(logits, labels):
        seen.append(labels)
        return entropy(logits, labels)

    monkeypatch.setattr(torch.optim, "AdamW", look)
    monkeypatch.setattr(torch.nn.functional, "cross_entropy", look_at)
    for recipe in ("float32", "bfloat16"):
        script.train(recipe, 3)
    assert len(seen) == 8
    for one, other in zip(seen[:4], seen[4:], strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("pairs", [2, 3, 5, 8, 30])
def test_the_interval_is_the_books_and_scipys(script, pairs):
    old, new = np.random.default_rng(pairs).normal(size=(2, pairs))
    mean, half = script.interval(list(new - old))
    assert (mean, half) == pytest.approx(measure.mean_interval(new - old), rel=1e-12)
    low, high = ttest_rel(new, old).confidence_interval(0.95)
    assert (mean - half, mean + half) == pytest.approx((low, high), rel=1e-9)


def test_the_interval_of_the_chapters_five_differences(script):
    mean, half = script.interval([-0.2, 0.8, 0.8, 0.9, 0.2])
    assert f"{mean:.2f} ± {half:.2f}" == "0.50 ± 0.60"


@pytest.mark.parametrize(("pairs", "error"), [(3, 0.05), (8, 0.05), (8, 0.05 / 4)])
def test_the_interval_holds_the_true_difference_as_often_as_it_says(script, pairs, error):
    drawn = np.random.default_rng(0).normal(0.3, 2.0, (TRIALS, pairs))
    limits = (script.interval(row, error) for row in drawn.tolist())
    missed = sum(abs(mean - 0.3) > half for mean, half in limits) / TRIALS
    assert abs(missed - error) < bound(error)


@pytest.mark.parametrize("ratio", [100, 20, 3, 2, 1, 0.7, 0.5, 0.3, 0.1, -0.5])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_the_pairs_needed_are_the_books(script, ratio, power):
    assert script.pairs_needed(ratio, 1.0, power) == seeds_needed.seeds_needed(ratio, spread=1.0, power=power)


def test_the_chance_to_see_a_difference_is_the_share_of_drawn_experiments(script):
    share = script.chance_to_see(0.5, 0.5, 8)
    drawn = np.random.default_rng(1).normal(0.5, 0.5, (TRIALS, 8))
    means, halves = drawn.mean(1), t.ppf(0.975, 7) * drawn.std(1, ddof=1) / math.sqrt(8)
    assert abs(np.mean(means > halves) - share) < bound(share)


def test_the_table_of_costs(script, page):
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    assert [int(pairs) for pairs, _, _ in rows] == [3, 5, 8, 16, 32]
    for pairs, half, smallest in rows:
        n = int(pairs)
        assert half == f"{t.ppf(0.975, n - 1) / math.sqrt(n):.2f}"
        below, above = (script.chance_to_see(float(smallest) + side * 0.005, 1.0, n) for side in (-1, 1))
        assert below < 0.8 < above  # four experiments of five


def test_half_the_difference_takes_four_times_the_pairs(script):
    assert 3.5 < script.pairs_needed(0.1, 0.5) / script.pairs_needed(0.2, 0.5) < 4


def test_eight_pairs_know_the_spread_to_a_factor_of_two():
    low, high = (math.sqrt(7 / chdtri(7, share)) for share in (0.025, 0.975))
    assert 0.5 < low < 1
    assert high == pytest.approx(2, abs=0.05)


def test_stopping_at_the_first_difference_raises_the_error(page):
    promised = int(re.search(r"differ in (\d+) % of experiments, not in 5 %", page)[1]) / 100
    trials, drawn = 20_000, np.random.default_rng(2).normal(size=(20_000, 20))
    seen = np.zeros(trials, bool)
    for pairs in range(3, 21):
        few = drawn[:, :pairs]
        statistic = few.mean(1) * math.sqrt(pairs) / few.std(1, ddof=1)
        seen |= abs(statistic) > t.ppf(0.975, pairs - 1)
    assert abs(seen.mean() - promised) < bound(promised, trials) + 0.005  # it is rounded


def test_a_clear_difference_is_called_one(script, capsys):
    script.compare([90.0, 91.0, 89.0], [91.0, 92.1, 89.9])
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "mean difference +1.00 ± 0.25 points: a difference"
    assert printed[1] == "shown to be within ±0.5 points: False"
    assert printed[3] == "to detect 1.0 points: 3 pairs"  # ten spreads; with two pairs the limit of t is 12.7


def test_two_recipes_are_near_if_the_90_percent_interval_lies_within_the_margin(script, capsys):
    old, new = [90.0, 91.0, 89.0, 90.5], [90.1, 91.0, 89.2, 90.5]
    differences = [b - a for a, b in zip(old, new, strict=True)]
    middle, half = statistics.fmean(differences), t.ppf(0.95, 3) * statistics.stdev(differences) / 2
    for margin in (abs(middle) + half - 0.01, abs(middle) + half + 0.01):
        script.MARGIN = margin
        script.compare(old, new)
        assert f"points: {margin > abs(middle) + half}" in capsys.readouterr().out.splitlines()[1]


def test_a_run_that_broke_gives_no_interval(script):
    with pytest.raises(SystemExit, match="NaN or Inf"):
        script.compare([90.0, 91.0], [90.5, math.nan])


def test_lists_of_different_lengths_are_refused(script):
    with pytest.raises(ValueError, match="zip"):
        script.compare([90.0, 91.0], [90.5])


def test_what_three_pairs_can_tell(script):
    page = rules.markdown(rules.read_page(recipe_scripts.COOKBOOK / "two_recipes.ipynb"))
    half = script.interval([-1.0, 0.0, 1.0])[1]  # of differences with s = 1
    assert f"a mean difference of 0.3 points excludes 0 only if $s$ is below {0.3 / half:.2f}" in page
    factor = math.sqrt(2 / chi2.ppf(0.025, 2))
    assert round(factor) == 6
    assert "uncertain by a factor of six" in page
