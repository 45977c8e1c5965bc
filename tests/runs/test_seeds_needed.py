"""The numbers of pairs are those of printed tables and of simulated experiments, and mistakes are answered."""

import math

import numpy as np
import pytest

from utils.runs.seeds_needed import (
    by_normal,
    critical_t,
    probability_to_rule_out,
    probability_to_see,
    seeds_needed,
    seeds_to_rule_out,
    simulate_seen,
)


@pytest.mark.parametrize(
    ("freedom", "share", "table"),
    [  # two-sided 5 %, 1 % and one-sided 5 %: any printed table of Student's t
        (1, 0.025, 12.706),
        (2, 0.025, 4.303),
        (4, 0.025, 2.776),
        (10, 0.025, 2.228),
        (120, 0.025, 1.980),
        (1, 0.005, 63.657),
        (5, 0.005, 4.032),
        (30, 0.005, 2.750),
        (1, 0.05, 6.314),
        (20, 0.05, 1.725),
    ],
)
def test_the_limits_of_students_t_are_those_of_its_table(freedom, share, table):
    assert critical_t(freedom, share) == pytest.approx(table, abs=5.1e-4)


@pytest.mark.parametrize(
    ("ratio", "pairs"),
    # what G*Power 3.1 gives for matched pairs, two sides, 5 %, power 80 %
    [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)],
)
def test_the_numbers_of_pairs_are_those_of_the_tables(ratio, pairs):
    assert seeds_needed(ratio, spread=1.0) == pairs
    assert seeds_needed(-7 * ratio, spread=7.0) == pairs  # the unit and the sign do not matter
    assert by_normal(ratio, spread=1.0) < pairs < by_normal(ratio, spread=1.0) + 3


def test_the_number_is_the_smallest_with_that_power_and_grows_with_what_is_asked():
    needed = seeds_needed(0.5, spread=1.0)
    assert probability_to_see(needed - 1, 0.5, spread=1.0) < 0.8 <= probability_to_see(needed, 0.5, spread=1.0)
    assert needed < seeds_needed(0.5, spread=1.0, error=0.05 / 7) < seeds_needed(0.5, spread=1.0, error=0.05 / 70)
    assert needed < seeds_needed(0.5, spread=1.0, power=0.9)
    assert seeds_needed(100.0, spread=1.0) == 2


@pytest.mark.parametrize("pairs", [2, 3, 4, 16, 300])
@pytest.mark.parametrize("ratio", [0.1, 1.0, 5.0, 8.0, 30.0, 1000.0])
def test_the_probability_is_a_number_for_every_ratio(pairs, ratio):
    from scipy.stats import nct

    limit, shift = critical_t(pairs - 1, 0.025), ratio * pairs**0.5
    above = nct.sf(limit, pairs - 1, shift)
    below = nct.sf(limit, pairs - 1, -shift)  # the other tail, mirrored
    wanted = above + (0.0 if math.isnan(below) else below)
    assert probability_to_see(pairs, ratio, spread=1.0) == pytest.approx(wanted, abs=1e-12)
    assert probability_to_see(pairs, -ratio, spread=1.0) == pytest.approx(wanted, abs=1e-12)


def test_a_difference_of_ten_spreads_takes_three_pairs():
    assert seeds_needed(1.0, spread=0.1) == 3


def test_the_formula_on_paper_is_that_of_the_normal_distribution():
    assert by_normal(1.0, spread=2.0) == pytest.approx(4 * (1.959964 + 0.841621) ** 2, rel=1e-6)


@pytest.mark.parametrize(("pairs", "difference"), [(2, 3.0), (3, 2.0), (5, 0.0), (5, 1.5), (12, 0.9), (40, 0.3)])
@pytest.mark.parametrize("error", [0.05, 0.05 / 7])
def test_simulated_experiments_see_the_difference_as_often_as_computed(pairs, difference, error):
    trials, generator = 20_000, np.random.default_rng(pairs)
    drawn = {"generator": generator, "trials": trials}
    share = simulate_seen(pairs, 4 * difference, spread=4.0, error=error, **drawn)  # the unit does not matter
    exact = probability_to_see(pairs, difference, spread=1.0, error=error)
    assert abs(share - exact) < 5 * math.sqrt(exact * (1 - exact) / trials)


def test_equal_recipes_are_told_apart_as_often_as_the_error_says():
    for pairs in (2, 5, 30):
        assert probability_to_see(pairs, 0.0, spread=1.0, error=0.03) == pytest.approx(0.03, rel=1e-6)


@pytest.mark.parametrize(("pairs", "room"), [(3, 3.0), (8, 1.0), (20, 0.6)])
def test_simulated_intervals_lie_within_the_room_as_often_as_computed(pairs, room):
    trials, generator = 20_000, np.random.default_rng(pairs)
    drawn = generator.normal(0.0, 1.0, (trials, pairs))
    half = critical_t(pairs - 1, 0.05) * drawn.std(1, ddof=1) / math.sqrt(pairs)
    share = float(np.mean(np.abs(drawn.mean(1)) + half < room))
    exact = probability_to_rule_out(pairs, room, spread=1.0)
    assert abs(share - exact) < 5 * math.sqrt(exact * (1 - exact) / trials)
    needed = seeds_to_rule_out(room, spread=1.0)
    assert (
        probability_to_rule_out(needed - 1, room, spread=1.0) < 0.8 <= probability_to_rule_out(needed, room, spread=1.0)
    )


@pytest.mark.parametrize("true", [0.0, 0.1, -0.2])
def test_what_differs_a_little_is_ruled_out_as_often_as_drawn(true):
    pairs, trials = 24, 20_000
    drawn = np.random.default_rng(0).normal(true, 0.4, (trials, pairs))
    error = drawn.std(1, ddof=1) / pairs**0.5
    share = np.mean(np.abs(drawn.mean(1)) + critical_t(pairs - 1, 0.05) * error < 0.25)
    exact = probability_to_rule_out(pairs, 0.25, spread=0.4, true=true)
    assert abs(share - exact) < 5 * (exact * (1 - exact) / trials) ** 0.5


def test_it_takes_more_pairs_to_rule_out_what_is_nearer_to_the_truth():
    needed = [seeds_to_rule_out(0.25, spread=0.4, true=true) for true in (0, 0.1, 0.2)]
    assert needed[:2] == [24, 46]
    assert needed[2] > 5 * needed[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: seeds_needed(0.0, spread=1.0), "difference 0.0, spread 1.0: both must be finite"),
        (lambda: seeds_needed(1.0, spread=0.0), "neither may be 0"),
        (lambda: seeds_needed(math.nan, spread=1.0), "both must be finite"),
        (lambda: seeds_needed(1.0, spread=1.0, power=1.0), "power 1.0 and error 0.05 must lie between 0 and 1"),
        (lambda: seeds_needed(1e-3, spread=1.0), "more than 65,536 pairs: the difference is too small"),
        (lambda: probability_to_see(1, 1.0, spread=1.0), "1 pairs say nothing of their spread; take at least 2"),
    ],
)
def test_mistakes_are_answered(call, message):
    with pytest.raises(ValueError, match=message):
        call()
