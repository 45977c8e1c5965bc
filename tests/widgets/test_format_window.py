"""FormatWindow in Python: counts against rounded values, sentences that are exact, and records that are refused."""

import html
import math
import re

import numpy as np
import pytest

from tests.page_states import state_of
from tests.watched import GROUPS, SHARES, STEPS, crafted, histogram, one, record
from utils.formats import FORMATS
from utils.rounding import quantize
from utils.widgets.format_window import FormatWindow
from utils.widgets.shared.plot.binades import ALL, WINDOWS, fates, fates_text, histogram_of, merged
from utils.widgets.shared.words.sizes import share_text

NARROW = [name for name in WINDOWS if FORMATS[name].precision <= 24 and FORMATS[name].emin > -130]


def outcomes(x, fmt, log2_scale):
    """Count by rounding each value: (becomes zero, below the normal range and not zero, overflows)."""
    scaled = np.abs(x) * 2.0**log2_scale
    stored = quantize(scaled, fmt)
    over = ~np.isfinite(stored) if fmt.has_nan else scaled > fmt.max + (fmt.max - quantize(fmt.max * 0.99, fmt)) / 2
    return int((stored == 0).sum()), int(((scaled < fmt.smallest_normal) & (stored > 0)).sum()), int(over.sum())


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("log2_scale", [0, 10, -7])
def test_the_counts_are_those_of_rounded_values(name, log2_scale):
    fmt = FORMATS[name]
    rng = np.random.default_rng(seed=fmt.bits)
    middle = rng.choice([fmt.emin - fmt.mantissa_bits - 1, fmt.emin, fmt.emax], 4000) - log2_scale
    x = rng.choice([-1, 1], 4000) * np.exp2(middle + rng.normal(size=4000))  # where the fates meet
    total, zero, subnormal, least, most = fates(histogram(x), fmt, log2_scale)
    expected = outcomes(x, fmt, log2_scale)
    assert (total, zero, subnormal) == (4000, *expected[:2])
    assert least <= expected[2] <= most
    assert most - least < 1000  # the top binade


@pytest.mark.parametrize("name", WINDOWS)
def test_amax_decides_where_it_lies_in_the_top_binade(name):
    fmt = FORMATS[name]
    within = crafted([3, 1], fmt.emax - 1, significand=fmt.max / 2.0**fmt.emax)
    assert fates(within, fmt)[1:] == (0, 0, 0, 0)
    if fmt.emax < 1023:
        beyond = within | {"counts": [3, 1, 1], "amax": 2.0 ** (fmt.emax + 1)}
        assert fates(beyond, fmt)[1:] == (0, 0, 1, 2)


def test_the_sentence_gives_the_shares_of_the_data():
    assert fates_text(SHARES, FORMATS["float16"]) == (
        "float16, scale 1: 43.5\u00a0% of the values that are not zero become zero, 56\u00a0% are subnormal, "
        "none overflows. (12\u00a0% were zero already.)"
    )
    assert fates_text(SHARES, FORMATS["float16"], 10) == (
        "float16, scale 2¹⁰: none of the values that are not zero becomes zero, 99.5\u00a0% are subnormal, "
        "none overflows. (12\u00a0% were zero already.)"
    )


@pytest.mark.parametrize(
    ("given", "name", "log2_scale", "says"),
    [
        (crafted([1, 1], 14, significand=1.999), "float16", 0, "none is subnormal, none overflows."),
        (crafted([1, 1], 14, significand=1.9999), "float16", 0, "none is subnormal, 50\u00a0% overflow."),
        (crafted([1, 2], 14, significand=1.9999), "float16", 0, "none is subnormal, at most 66.7\u00a0% overflow."),
        (
            crafted([7], 3),
            "float16",
            20,
            "scale 2²⁰: none of the values that are not zero becomes zero, none is subnormal, all overflow.",
        ),
        (crafted([7], 3), "float8_e4m3fn", 6, "all overflow to NaN."),
        (crafted([1, 6], 1, significand=1.9), "float4_e2m1fn", 0, "at most 85.7\u00a0% are too large."),
        (crafted([7], 0), "float4_e2m1fn", 0, "none is too large."),
        (crafted([7], 0), "float16", -40, "scale 2⁻⁴⁰: all values that are not zero become zero, none is subnormal"),
        (crafted([100000, 1], -1), "float16", -24, "none of the values that are not zero becomes zero, all are"),
        (
            crafted([1, 100000], -2),
            "float16",
            -24,
            "less than 0.01\u00a0% of the values that are not zero become zero, more than 99.9\u00a0% are subnormal",
        ),
        (crafted([1, 100000, 100], 14), "float16", 0, "at most 100\u00a0% overflow."),
        (
            crafted([], 0, zeros=5),
            "float16",
            0,
            "scale 1: there is no value that is finite and not zero. (100\u00a0% were zero already.)",
        ),
        (crafted([1], 0, infinite=1), "float16", 0, "none overflows. (1 was infinite or NaN already.)"),
        (crafted([1], 0, infinite=1, nan=2), "bfloat16", 0, "none overflows. (3 were infinite or NaN already.)"),
    ],
)
def test_a_sentence_says_none_all_and_at_most(given, name, log2_scale, says):
    assert says in fates_text(given, FORMATS[name], log2_scale)


@pytest.mark.parametrize(
    ("n", "total", "text"),
    [
        (0, 7, "0"),
        (7, 7, "100"),
        (1, 8, "12.5"),
        (1, 3, "33.3"),
        (99949, 100000, "99.9"),
        (99999, 100000, "more than 99.9"),
        (1, 10001, "less than 0.01"),
        (1, 10000, "0.01"),
        (49, 400, "12.3"),
        (1, 1000, "0.1"),
        (2, 3000, "0.0667"),
    ],
)
def test_a_share_is_never_rounded_to_nothing_or_all(n, total, text):
    assert share_text(n, total) == f"{text}\u00a0%"


def test_ties_are_decided_by_the_powers_of_two():
    half, whole = 2.0**-25, 2.0**15  # half of float16's smallest subnormal; the first value of its top binade
    x = np.array([half, half, half * 1.5, whole, whole * 2])
    assert fates(histogram(x), FORMATS["float16"]) == (5, 2, 1, 1, 1)
    assert fates(histogram(x) | {"powers": {}}, FORMATS["float16"]) == (5, 0, 3, 1, 2)


def test_groups_add_up():
    a, b = crafted([1, 2], -5, zeros=1), crafted([5], 3, nan=2, infinite=1)
    both = merged([a, b, crafted([], 0, zeros=4)])
    assert (both["low"], both["counts"]) == (-5, [1, 2, 0, 0, 0, 0, 0, 0, 5])
    assert (both["zeros"], both["nan"], both["infinite"], both["amax"]) == (5, 2, 1, 8.0)
    held = record()
    whole = histogram_of(held, "activations", ALL, 50)
    parts = [histogram_of(held, "activations", group, 50) for group in GROUPS[1:]]
    assert sum(whole["counts"]) == sum(sum(part["counts"]) for part in parts)
    assert whole["amax"] == max(part["amax"] for part in parts)


def test_it_starts_with_the_activation_gradients_of_the_last_step():
    widget = FormatWindow(record())
    assert (widget.kind, widget.group, widget.step, widget.format) == (
        "activation gradients",
        ALL,
        STEPS[-1],
        "float16",
    )
    assert repr(widget) == (
        "FormatWindow('DistilBERT, 2 layers of width 64', 'activation gradients', 'all layers', 'float16', step=300, "
        "log2_scale=0)"
    )
    assert FormatWindow(one(SHARES, kind="weights")).kind == "weights"


def broken(change):
    """A good record of one histogram, changed."""
    held = one(SHARES)
    change(held, held["histograms"]["activation gradients"]["head"])
    return held


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda held, _: held.pop("steps"), "recorded has no steps; pass utils.training.watch.recorded(record)"),
        (lambda held, _: held.update(steps=[3, 1]), "recorded: steps [3, 1] are not whole numbers that grow"),
        (lambda held, _: held.update(groups=[ALL]), "no group may be called 'all layers'"),
        (lambda held, _: held.update(groups=["other"]), "has the group 'head', which is not in groups"),
        (lambda held, _: held.update(kinds=["weights"]), "recorded has no histograms of 'weights'"),
        (lambda _, all_steps: all_steps.append(SHARES), "2 histograms of activation gradients, head, for 1 steps"),
        (lambda _, all_steps: all_steps[0].update(counts=[1.5]), "the counts of activation gradients, head, step 1"),
        (lambda _, all_steps: all_steps[0].update(counts=[-1]), "are not whole numbers of 0 or more"),
        (lambda _, all_steps: all_steps[0].update(zeros=None), "are not whole numbers of 0 or more"),
        (lambda _, all_steps: all_steps[0].update(low=None), "low of activation gradients, head, step 1 is None"),
        (lambda _, all_steps: all_steps[0].update(powers={"-30": 436}), "powers of activation gradients, head, step 1"),
        (lambda _, all_steps: all_steps[0].update(amax=math.inf), "is inf, not a positive number"),
        (lambda _, all_steps: all_steps[0].update(amax=0.5), "is 0.5, but the largest values lie in [2**-13, 2**-12)"),
    ],
)
def test_what_is_no_record_is_refused_in_one_sentence(change, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        FormatWindow(broken(change))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"kind": "biases"}, "kind 'biases' is not one of weights, activations, "),
        ({"kind": "activations", "group": "embeddings"}, "group 'embeddings' has no activations; choose one of all"),
        ({"group": "layer 9"}, "group 'layer 9' has no activation gradients"),
        ({"step": 2}, "step 2 was not recorded; choose one of 1, 50, 300"),
        ({"format": "float8_e8m0fnu"}, "format 'float8_e8m0fnu' is not one of float64, "),
        ({"log2_scale": 65}, "log2_scale 65 is not in -64 to 64"),
    ],
)
def test_a_choice_that_the_record_does_not_hold_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        FormatWindow(record(), **arguments)


def test_a_refused_choice_changes_nothing():
    widget = FormatWindow(record())
    with pytest.raises(ValueError, match="kind 'biases'"):
        widget.kind = "biases"
    assert widget.kind == "activation gradients"
    widget.set_state({"kind": "weights", "log2_scale": 10, "step": 50})
    assert widget.sentence == fates_text(histogram_of(record(), "weights", ALL, 50), FORMATS["float16"], 10)


def test_a_page_sends_a_kind_and_a_group_together():
    widget = FormatWindow(record(), group="embeddings")
    widget.set_state({"kind": "activations", "group": ALL})
    assert (widget.kind, widget.group) == ("activations", ALL)


def test_the_static_form_says_what_becomes_of_each_kind():
    widget = FormatWindow(one(SHARES), log2_scale=10)
    page = html.unescape(widget.static_html())
    assert "activation gradients, all layers, step 1: float16, scale 2¹⁰: none of the values" in page
    rows = re.findall(r"<th scope='row'>(.*?)</th><td>(.*?)</td>", html.unescape(FormatWindow(record()).static_html()))
    assert [kind for kind, _ in rows] == record()["kinds"]
    assert dict(rows)["weights"] == (
        "float16, scale 1: none of the values that are not zero becomes zero, none is subnormal, none overflows."
    )


def test_the_static_table_is_about_the_group_that_is_named_above_it():
    page = html.unescape(FormatWindow(record(), group="embeddings", kind="weights").static_html())
    assert "weights, embeddings, step" in page
    assert "<th scope='col'>embeddings</th>" in page
    rows = dict(re.findall(r"<th scope='row'>(.*?)</th><td>(.*?)</td>", page))
    own = {kind: groups.get("embeddings") for kind, groups in record()["histograms"].items()}
    for kind, said in rows.items():
        want = fates_text(own[kind][-1], FORMATS["float16"]) if own[kind] else "not in these layers"
        assert said == want, kind
    assert "not in these layers" in rows.values()


def test_the_state_of_the_page_is_json():
    state = state_of(FormatWindow(record()))
    assert state["recorded"] == record()
    assert (state["kind"], state["log2_scale"]) == ("activation gradients", 0)
