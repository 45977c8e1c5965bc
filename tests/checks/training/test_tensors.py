"""The checks of training/tensors: the right answer, and for each foreseen wrong one the hint that names the mistake."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.book_questions import right_option
from utils import records
from utils.checks.outcome import NOT_YET
from utils.checks.questions import judge
from utils.checks.training import tensors, tensors_questions
from utils.emulation.exponent_histogram import Histogram
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT16
from utils.training import watch

RESULTS = Path(__file__).resolve().parents[3] / "book/results"
INF, NAN = math.inf, math.nan


# --- What the predictions claim


def watched(experiment):
    run = next(r for r in records.load_all(RESULTS, experiment=experiment) if r.device["kind"] == "cpu")
    return watch.recorded(run)["histograms"]


def all_groups(histograms, step):
    parts = [Histogram.from_json(steps[step]) for steps in histograms.values()]
    return sum(parts[1:], parts[0])


def the_histogram(experiment, kind, group=None, step=0):
    groups = watched(experiment)[kind]
    return Histogram.from_json(groups[group][step]) if group else all_groups(groups, step)


def test_the_logits_lose_nothing_at_first_and_nearly_all_at_last():
    first, last = (the_histogram("watched-llama", "activation gradients", "head", step) for step in (0, -1))
    assert first.flushed(FLOAT16) < 0.001
    assert last.flushed(FLOAT16) > 0.9
    assert "probability" in right_option(tensors_questions.WHY_LOST).text


def test_the_other_network_loses_less_as_it_learns_because_what_lies_between_grew():
    def shares(experiment):
        return [the_histogram(experiment, "activation gradients", step=step).flushed(FLOAT16) for step in (0, -1)]

    def median(group, step):
        histogram = the_histogram("watched-distilbert", "activation gradients", group, step)
        sums = np.cumsum(histogram.counts)
        return histogram.low + int(np.searchsorted(sums, histogram.nonzero / 2))

    assert shares("watched-distilbert")[0] > 2 * shares("watched-distilbert")[1]
    assert shares("watched-llama")[0] < shares("watched-llama")[1]
    assert median("head", -1) <= median("head", 0)  # the mistake shrank, "but only a little"
    assert median("head", -1) >= median("head", 0) - 2
    assert median("layer 1", -1) > median("layer 1", 0)
    assert right_option(tensors_questions.OTHER_NETWORK).text.startswith("It falls")


def test_the_second_layer_has_the_zeros_of_a_classifier_that_reads_one_position():
    for step in range(8):
        first, second = (
            the_histogram("watched-distilbert", "activation gradients", group, step) for group in ("layer 1", "layer 2")
        )
        assert first.zeros / first.total < 0.005
        assert second.zeros / second.total > 0.75
    lowest = the_histogram("watched-distilbert", "activation gradients", "layer 2").low
    assert lowest == -46  # named in a reply
    width, hidden, length = 64, 256, 128  # keys and values are reached at every position, all others at the first one
    outputs = 5 * width + hidden
    reached = 2 * width + (outputs - 2 * width) / length
    assert second.zeros / second.total == pytest.approx(1 - reached / outputs, abs=0.005)
    assert "first position" in right_option(tensors_questions.SECOND_LAYER).text


# --- The tasks of the widget


def lost_at(kind, k, *, fmt=FLOAT16, group=None, step=4):
    return the_histogram("watched-distilbert", kind, group, step).flushed(fmt, 2.0**k)


def test_the_scale_of_float16_in_the_widget_is_the_smallest_that_loses_less_than_one_percent():
    shares = {k: lost_at("activation gradients", k, group="layer 1", step=0) for k in range(12)}
    assert min(k for k, share in shares.items() if share < 0.01) == 8
    assert tensors_questions.PLAY_FLOAT16.is_right(8)
    said = {8: "0.54", 7: "1.05", 9: "0.28", 6: "2.05"}  # in the replies and hints
    assert {k: f"{100 * shares[k]:.2f}" for k in said} == said
    whole = {k: lost_at("activation gradients", k) for k in range(12)}
    assert min(k for k, share in whole.items() if share < 0.01) == 5
    first = the_histogram("watched-distilbert", "activation gradients", "layer 1")
    assert first.largest_scale(FLOAT16) == 2.0**26


def test_the_scale_of_e5m2_in_the_widget_suits_all_five_kinds():
    kinds = watched("watched-distilbert")

    def fits(k):
        found = [all_groups(groups, 4) for groups in kinds.values()]
        lost = max(histogram.flushed(FLOAT8_E5M2, 2.0**k) for histogram in found)
        return lost < 0.01 and not any(histogram.overflowing_at_most(FLOAT8_E5M2, 2.0**k) for histogram in found)

    assert [k for k in range(30) if fits(k)] == [13, 14]
    assert tensors_questions.PLAY_E5M2.is_right(13)
    assert f"{100 * lost_at('activation gradients', 12, fmt=FLOAT8_E5M2):.2f}" == "1.05"
    assert all_groups(kinds["activations"], 4).overflowing_at_most(FLOAT8_E5M2, 2.0**15) > 0
    assert lost_at("updates", 7, fmt=FLOAT8_E5M2) < 0.01 < lost_at("updates", 6, fmt=FLOAT8_E5M2)


def test_the_share_of_e4m3_in_the_widget_is_that_at_the_largest_scale():
    found = the_histogram("watched-distilbert", "activation gradients", step=4)
    assert found.largest_scale(FLOAT8_E4M3FN) == 2.0**14
    lost, subnormal = (100 * share(FLOAT8_E4M3FN, 2.0**14) for share in (found.flushed, found.subnormal))
    zeros = 100 * found.zeros / found.total
    for value in (lost, 17, 16.62):
        assert tensors_questions.PLAY_E4M3.is_right(value)
    for value in (15.6, 17.2):  # read off the bars
        assert judge(tensors_questions.PLAY_E4M3, value).message.startswith("Nearly")
    assert [f"{x:.1f}" for x in (subnormal, zeros, lost + subnormal, lost + zeros)] == ["43.3", "38.6", "59.9", "55.2"]
    assert f"{100 * found.flushed(FLOAT8_E5M2, 2.0**14):.2f}" == "0.32"
    assert f"{100 * found.flushed(FLOAT8_E4M3FN):.2f}" == "99.98"


def test_a_gradient_that_is_still_scaled_hides_what_is_lost():
    gradient = 2.0**-26 * torch.rand(1000, generator=torch.Generator().manual_seed(0))
    assert (gradient.half() == 0).float().mean() == 1
    assert ((gradient * 2.0**16).half() == 0).float().mean() < 0.01
    assert "scaler" not in right_option(tensors_questions.WRONG_LINE).text


# --- 1: the edge


def test_the_edge_is_eight_binades_away():
    gradient = 2.0**-15 / (256 * 1024)
    assert gradient * 2**8 == 2.0**-25
    assert tensors.check_the_edge(8)
    assert tensors.check_the_edge(math.log2(2.0**-25 * 32_000 * 256 * 1024))  # without the rounding of 32,000


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (33, "2^-33 is the gradient"),
        (-33, "exponent of the gradient"),
        (-8, "no sign"),
        (9, "2^-24"),
        (7, "How many doublings"),
        (256, "Which power of two"),
        (19, "2^-14"),
        (18, "number of positions"),
        (-7, "leaves out p"),
        (0, "all 256 texts"),
        (-2, "only the 256 texts"),
        (5, "p / N, with p"),
    ],
)
def test_the_edge_names_the_misconception(answer, hint):
    outcome = tensors.check_the_edge(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- 2: the share lost


def test_share_lost_is_of_what_could_be_lost():
    assert 9_000 / (1_000_000 - 700_000) == 0.03
    assert tensors.check_share_lost(3)
    assert tensors.check_share_lost("3")


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (0.03, "multiply by 100"),
        (0.9, "cannot be lost"),
        (0.009, "cannot be lost"),
        (70.9, "were there before"),
        (0.709, "were there before"),
        (70, "before any cast"),
        (100 * 9 / 700, "divides by the zeros"),
        (100 * 9 / 709, "what share of the zeros"),
        (100 * 9 / 291, "divides by what is left"),
        (97, "keeps"),
        (9000, "how many are lost"),
        (30, "Divide the 9,000"),
    ],
)
def test_share_lost_names_the_misconception(answer, hint):
    outcome = tensors.check_share_lost(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- 3: the share that is flushed


def flushed_share(x, smallest, scale=1.0):
    x = x[x != 0]
    return ((x * scale).abs() <= smallest / 2).float().mean() if len(x) else 0.0


def by_numpy(x, smallest, scale=1.0):
    values = x.numpy().astype(float)
    values = np.abs(values[values != 0]) * scale
    return float((values <= smallest / 2).sum() / max(1, values.size))


def by_rounding(x, smallest, scale=1.0):
    lost = (torch.round(x * scale / smallest) == 0) & (x != 0)
    return lost.sum() / (x != 0).sum().clamp(min=1)


def by_a_loop(x, smallest, scale=1.0):
    alive = [abs(v) for v in x.flatten().tolist() if v]
    return sum(v * scale <= smallest / 2 for v in alive) / len(alive) if alive else 0


@pytest.mark.parametrize("right", [flushed_share, by_numpy, by_rounding, by_a_loop])
def test_flushed_share_takes_every_way_to_count(right):
    outcome = tensors.check_flushed_share(right)
    assert outcome, outcome.message


def changes_its_input(x, smallest, scale=1.0):
    share = flushed_share(x, smallest, scale)
    x *= 2
    return share


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda x, s, k=1.0: 100 * flushed_share(x, s, k), "not percent"),
        (lambda x, s, k=1.0: (x * k <= s / 2).float().mean(), "compare magnitudes"),
        (lambda x, s, k=1.0: ((x * k).abs() < s).float().mean(), "The limit is half of it"),
        (lambda x, s, k=1.0: ((x * k).abs() < s / 2).float().mean(), "Ties go to even"),
        (lambda x, s, k=1.0: ((x * k).abs() <= s / 2).float().mean(), "nothing to lose"),
        (lambda x, s, k=1.0: (((x * k).abs() <= s / 2) & (x != 0)).float().mean(), "nothing to lose"),
        (lambda x, s, k=1.0: ((x * k).abs() <= s / 2).sum() / (x != 0).sum(), "nothing to lose"),
        (lambda x, s, k=1.0: flushed_share(x, s), "The scale multiplies"),
        (lambda x, s, k=1.0: flushed_share(x, s * k), "The scale multiplies"),
        (lambda x, s, k=1.0: ((x[x != 0] * k).half() == 0).float().mean(), "E4M3 ends much earlier"),
        (lambda x, s, k=1.0: flushed_share(x, max(s, 2**-126), k), "bfloat16 reaches"),
        (lambda x, s, k=1.0: ((x[x != 0] * k).abs() <= s / 2).float().mean(), "0/0 is NaN"),
        (lambda x, s, k=1.0: flushed_share(x, s, k) if x.numel() else math.nan, "An empty tensor"),
        (lambda x, s, k=1.0: flushed_share(x, s, k) * x.numel() / max(1, len(x)), "whatever the shape"),
        (lambda x, s, k=1.0: flushed_share((x * k).nan_to_num(posinf=0) + (x * k).isinf() * s / 2, s), "is infinite"),
        (lambda x, s, k=1.0: flushed_share(x, s, k) if k >= 1 else 0.0, "random values, times 0.125"),
        (lambda x, s, k=1.0: 1 - flushed_share(x, s, k), "Yours is the share that is kept."),
        (changes_its_input, "changes its input"),
        (lambda x, s, k=1.0: [0.5], "not a number"),
        (lambda x, s: flushed_share(x, s), "TypeError"),
    ],
)
def test_flushed_share_names_the_mistake(wrong, hint):
    outcome = tensors.check_flushed_share(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_the_cases_of_flushed_share_are_what_casts_give():
    dtypes = {FLOAT16: torch.float16, BFLOAT16: torch.bfloat16, FLOAT8_E4M3FN: torch.float8_e4m3fn}
    for values, fmt, scale, _ in tensors.FLUSHED_CASES:
        x = torch.tensor(values)
        x = x[x != 0]
        lost = ((x * scale).to(dtypes[fmt]).float() == 0).sum().item()
        assert flushed_share(torch.tensor(values), fmt.smallest_subnormal, scale) == pytest.approx(
            lost / len(x) if len(x) else 0.0
        )


# --- 4: the smallest scale


def smallest_scale(x):
    x = x[x != 0]
    for k in range(150):
        y = (x * 2.0**k).half()
        if not y.isfinite().all():
            return None
        if (y == 0).sum() <= 0.001 * len(x):
            return 2.0**k
    return None


def from_above(x):
    alive = x[x != 0].abs().double()
    if not alive.isfinite().all() or (alive.numel() and alive.max() >= 65520):
        return None
    best = None
    for k in range(150):
        if len(alive) and alive.max() * 2.0**k >= 65520:
            break
        if not len(alive) or (alive * 2.0**k > 2.0**-25).double().mean() >= 0.999:
            best = 2**k
            break
    return best


@pytest.mark.parametrize("right", [smallest_scale, from_above, lambda x: (s := smallest_scale(x)) and torch.tensor(s)])
def test_smallest_scale_takes_every_search(right):
    outcome = tensors.check_smallest_scale(right)
    assert outcome, outcome.message


def search(keep=0.999, *, half=lambda y: y.half(), most=128, start=0, of_all=False, overflow=True, less=float.__le__):
    """`smallest_scale` with one thing changed."""

    def function(x):
        alive = x[x != 0]
        n = len(x) if of_all else len(alive)
        for k in range(start, most):
            y = half(alive * 2.0**k)
            if overflow and not y.isfinite().all():
                return None
            if less(float((y == 0).sum()), round((1 - keep) * n, 9)):
                return 2.0**k
        return None

    return function


def by_rows(x):
    found = [scale for row in x if x.ndim > 1 and (scale := smallest_scale(row))]
    return min(found) if found else smallest_scale(x)


def strict_border(x):
    s = smallest_scale(x)
    return None if s and x.numel() and (x.abs() * s).max() > 65504 else s


def without_the_tie(x):
    alive = x[x != 0].abs()
    for k in range(150):
        if not (alive * 2.0**k).half().isfinite().all():
            return None
        if (alive * 2.0**k < 2.0**-25).sum() <= 0.001 * len(alive):
            return 2.0**k


def below_the_smallest(x):
    alive = x[x != 0].abs()
    for k in range(150):
        if not (alive * 2.0**k).half().isfinite().all():
            return None
        if (alive * 2.0**k < 2.0**-24).sum() <= 0.001 * len(alive):
            return 2.0**k


def none_for_zeros(x):
    return smallest_scale(x) if (x != 0).any() else None


def largest(x):
    k = 0
    while (x * 2.0 ** (k + 1)).half().isfinite().all() and k < 140:
        k += 1
    return 2.0**k


def by_integers(x):
    """Doubles the integer 1, which torch cannot multiply by from 2^64 on."""
    alive, s = x[x != 0], 1
    while True:
        y = (alive * s).half()
        if not y.isfinite().all():
            return None
        if (y == 0).sum() <= 0.001 * len(alive):
            return s
        s *= 2


def changes_x(x):
    scale = smallest_scale(x)
    x *= 2
    return scale


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda x: 65536.0, "For [1, -2, 0.5] the scale is 1, but yours is 65536"),
        (largest, "the first of the scales will do"),
        (search(start=-40), "The scales begin with 1"),
        (lambda x: (s := smallest_scale(x)) and math.log2(s), "the scale is 1, but yours is 0."),
        (lambda x: 1 if x[0] != 0 and len(x) != 2 else (s := smallest_scale(x)) and math.log2(s), "is its exponent"),
        (lambda x: max(1, 2.0**-25 / x[x != 0].abs().min().item()), "1, 2, 4, 8, and so on"),
        (without_the_tie, "a tie"),
        (below_the_smallest, "rounded up to 2^-24"),
        (search(keep=1), "The last one may go"),
        (search(keep=0.99), "three 1e-8"),
        (search(of_all=True), "not three of 10,000"),
        (search(less=float.__lt__), "exactly 99.9 %"),
        (by_rows, "not its rows"),
        (lambda x: smallest_scale(x) if x.numel() else None, "Without values"),
        (search(overflow=False), "The outlier leaves no room"),
        (search(half=lambda y: y.half().clamp(-65504, 65504)), "The outlier leaves no room"),
        (strict_border, "Overflow begins at 65520"),
        (lambda x: smallest_scale(x.where(x.abs() != 65520, 0)), "it goes to infinity"),
        (lambda x: smallest_scale(x.clamp(min=-60000)), "-inf"),
        (search(most=64), "has to go on"),
        (by_integers, "Begin with 1.0"),
        (none_for_zeros, "nothing to lose"),
        (lambda x: smallest_scale(x.where(x.abs() != INF, 0)), "stays infinite"),
        (lambda x: smallest_scale(x.nan_to_num(0, posinf=INF)), "NaN stays NaN"),
        (lambda x: 2 * smallest_scale(x) if len(x) == 3000 else smallest_scale(x), "3,000 random values around"),
        (changes_x, "changes its input"),
        (lambda x: "many", "not a number"),
    ],
)
def test_smallest_scale_names_the_mistake(wrong, hint):
    outcome = tensors.check_smallest_scale(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_the_scales_of_the_cases_are_what_casts_give():
    for values, shown, want, _ in tensors.SCALE_CASES:
        assert smallest_scale(torch.tensor(values)) == want, shown


# --- 5: exponents


def exponent_counts(x):
    x = x[x.isfinite() & (x != 0)]
    e, n = torch.unique(torch.frexp(x).exponent - 1, return_counts=True)
    return dict(zip(e.tolist(), n.tolist(), strict=True))


def by_float64(x):
    x = x[x.isfinite() & (x != 0)]
    e = torch.log2(x.abs().double()).floor().int()
    return {int(k): int((e == k).sum()) for k in e.unique()}


def by_a_dict(x):
    counts = dict.fromkeys(range(-149, 128), 0)
    for value in x.flatten().tolist():
        if value and math.isfinite(value):
            counts[math.frexp(value)[1] - 1] += 1
    return counts


@pytest.mark.parametrize("right", [exponent_counts, by_float64, by_a_dict])
def test_exponent_counts_takes_every_exact_way(right):
    outcome = tensors.check_exponent_counts(right)
    assert outcome, outcome.message


def circulating(x):
    e = torch.log2(x.abs()).floor().int()
    return {int(k): int((e == k).sum()) for k in e.unique()}


def with_log2(x):
    return circulating(x[x.isfinite() & (x != 0)])


def by_frexp(x, shift=1, of=lambda x: x.isfinite() & (x != 0)):
    e, n = torch.unique(torch.frexp(x[of(x)]).exponent - shift, return_counts=True)
    return dict(zip(e.tolist(), n.tolist(), strict=True))


def by_the_field(x):
    x = x[x.isfinite() & (x != 0)]
    e, n = torch.unique((x.view(torch.int32) >> 23 & 0xFF) - 127, return_counts=True)
    return dict(zip(e.tolist(), n.tolist(), strict=True))


def fixed_with_a_margin(x):
    x = x[x.isfinite() & (x != 0)]
    e = torch.log2(x.abs().double() * (1 - 1e-7)).floor().int()
    return {int(k): int((e == k).sum()) for k in e.unique()}


def in_place(x):
    x[~x.isfinite()] = 0
    return exponent_counts(x)


def tensors_as_keys(x):
    x = x[x.isfinite() & (x != 0)]
    return {e: 1 for e in torch.frexp(x).exponent - 1}


@pytest.mark.parametrize(
    ("wrong", "symptom", "cause"),
    [
        (circulating, "For [3, 1.5, 0, 0] the counts should be {0: 1, 1: 1}. They are", "A zero is in no binade"),
        (lambda x: circulating(x[x != 0]), "[4, inf, -inf]", "An infinity is in no binade"),
        (lambda x: circulating(x[(x != 0) & ~x.isinf()]), "[4, nan]", "NaN is in no binade"),
        (with_log2, "the last float32 below 8", "`frexp` reads it"),
        (fixed_with_a_margin, "[1, 2, 4, 0.5]", "2^e itself"),
        (lambda x: by_frexp(x, shift=0), "[1.5, 3, 0.3]", "is one larger"),
        (lambda x: by_frexp(x[x > 0]), "[-1.5, -3]", "binade of its magnitude"),
        (lambda x: by_frexp(x, of=lambda x: x.isfinite()), "[3, 1.5, 0, 0]", "A zero is in no binade"),
        (by_the_field, "[2^-149, 3 · 2^-149, 2^-127, 2^-126]", "subnormals"),
        (lambda x: {round(math.log2(abs(v))): 1 for v in x.tolist()}, "{1: 1, 2: 1, -2: 1}", "1.5 is in 0"),
        (lambda x: by_frexp(x) if len(x) else {0: 0, 1: 2}, "an empty tensor", "Without values"),
        (lambda x: {min(by_frexp(x)): 1} | by_frexp(x), "stops with ValueError", "Without values"),
        (lambda x: by_frexp(x, of=lambda x: (x != 0) & (x.abs() < 2.0**127)), "largest number", "in the binade 127"),
    ],
)
def test_exponent_counts_tells_what_it_saw_and_folds_the_cause(wrong, symptom, cause):
    outcome = tensors.check_exponent_counts(wrong)
    assert outcome.status == NOT_YET
    assert symptom in outcome.message
    assert cause in outcome.hint
    assert outcome.hint not in outcome.message


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda x: by_frexp(x) if x.numel() < 10 else {}, "values of all kinds"),
        (in_place, "changes its input"),
        (lambda x: list(by_frexp(x).items()), "gives list"),
        (lambda x: {0.5: 1}, "whole numbers"),
        (lambda x: tensors_as_keys(torch.cat([x, x])), "Tensors as keys"),
    ],
)
def test_exponent_counts_says_what_it_cannot_read(wrong, said):
    outcome = tensors.check_exponent_counts(wrong)
    assert outcome.status == NOT_YET
    assert said in outcome.message
