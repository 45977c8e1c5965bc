"""The checks of training/tensors: the right answer, and for each foreseen wrong one the hint that names the mistake."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.book_questions import right_option
from utils import records
from utils.checks.outcome import NOT_YET
from utils.checks.training import tensors, tensors_questions
from utils.emulation.exponent_histogram import Histogram
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT16
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


def test_the_recorded_share_of_logit_gradients_lies_in_the_range_that_is_right():
    head = watched("watched-llama")["activation gradients"]["head"]
    first, last = (Histogram.from_json(head[step]).flushed(FLOAT16) for step in (0, -1))
    assert first < 0.05
    assert last > 0.8
    assert right_option(tensors_questions.LOGITS_LOST).text == "More than 80 %"


def test_of_the_five_kinds_only_the_activation_gradients_leave_float16_and_at_the_lower_end():
    kinds = watched("watched-distilbert")
    flushed = {kind: all_groups(groups, 4).flushed(FLOAT16) for kind, groups in kinds.items()}
    assert max(flushed, key=flushed.get) == "activation gradients"
    assert flushed.pop("activation gradients") > 0.05
    assert max(flushed.values()) < 0.01
    assert not any(all_groups(groups, 4).overflowing(FLOAT16) for groups in kinds.values())
    assert all_groups(kinds["activations"], 4).amax < 10  # "a number of one digit"
    assert right_option(tensors_questions.WHICH_END).text == "The activation gradients, at the lower end"


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
        (256, "As a power of two"),
        (19, "2^-14"),
        (18, "number of positions"),
        (-7, "leaves out p"),
        (0, "all 256 texts"),
        (-2, "256 texts alone"),
        (5, "p / N, with p"),
    ],
)
def test_the_edge_names_the_misconception(answer, hint):
    outcome = tensors.check_the_edge(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- 2: read the histogram

LAYERS = {"needs it most": "layer 1", "needs none": "head"}


def test_which_layer_is_what_the_record_says():
    gradients = watched("watched-distilbert")["activation gradients"]
    found = {group: Histogram.from_json(steps[0]) for group, steps in gradients.items()}
    lost = {group: histogram.flushed(FLOAT16) for group, histogram in found.items()}
    assert [max(lost, key=lost.get), min(lost, key=lost.get)] == list(LAYERS.values())
    assert lost["layer 1"] > 1.5 * lost["layer 2"] > 0.1
    assert lost["head"] == 0
    assert found["head"].low == -14  # named in a hint
    assert round(100 * found["layer 2"].zeros / found["layer 2"].total) == 77  # named in a hint
    assert found["layer 1"].zeros / found["layer 1"].total < 0.005  # "0 % zero already"


@pytest.mark.parametrize("answer", [LAYERS, {"needs it most": " Layer  1", "needs none": "HEAD"}])
def test_which_layer_takes_names(answer):
    assert tensors.check_which_layer(answer)
    assert tensors.check_which_layer(answer | {"needs it most": "layer_1"})


@pytest.mark.parametrize(
    ("key", "name", "hint"),
    [
        ("needs it most", "layer 2", "needs it most: 77 % of its values are zero"),
        ("needs it most", "head", "2^-14"),
        ("needs none", "layer 1", "needs none: It reaches far below"),
        ("needs none", "layer 2", "loses many"),
        ("needs none", "layer 3", "is none of layer 1, layer 2, head"),
        ("needs it most", 1, "is none of layer 1"),
        ("needs it most", ..., "No answer yet for needs it most"),
    ],
)
def test_which_layer_names_the_misconception(key, name, hint):
    outcome = tensors.check_which_layer(LAYERS | {key: name})
    assert not outcome
    assert hint in outcome.message


# --- 3: the share lost


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
        (100 * 9 / 709, "which part of the zeros"),
        (100 * 9 / 291, "divides by what is left"),
        (97, "keeps"),
        (9000, "how many"),
        (30, "Divide the 9,000"),
    ],
)
def test_share_lost_names_the_misconception(answer, hint):
    outcome = tensors.check_share_lost(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- 4: the share that is flushed


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
    alive = [abs(v) for v in x.tolist() if v]
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
        (lambda x, s, k=1.0: ((x * k).abs() < s).float().mean(), "The border is the half"),
        (lambda x, s, k=1.0: ((x * k).abs() < s / 2).float().mean(), "Ties go to even"),
        (lambda x, s, k=1.0: ((x * k).abs() <= s / 2).float().mean(), "nothing to lose"),
        (lambda x, s, k=1.0: (((x * k).abs() <= s / 2) & (x != 0)).float().mean(), "nothing to lose"),
        (lambda x, s, k=1.0: ((x * k).abs() <= s / 2).sum() / (x != 0).sum(), "nothing to lose"),
        (lambda x, s, k=1.0: flushed_share(x, s), "The scale multiplies"),
        (lambda x, s, k=1.0: flushed_share(x, s * k), "The scale multiplies"),
        (lambda x, s, k=1.0: ((x[x != 0] * k).half() == 0).float().mean(), "E4M3 ends much earlier"),
        (lambda x, s, k=1.0: flushed_share(x, max(s, 2**-126), k), "bfloat16 reaches"),
        (lambda x, s, k=1.0: ((x[x != 0] * k).abs() <= s / 2).float().mean(), "0/0 is NaN"),
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


# --- 5: the smallest scale


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


def search(keep=0.999, *, half=lambda y: y.half(), most=128, start=0, of_all=False, overflow=True):
    """`smallest_scale` with one thing changed."""

    def function(x):
        alive = x[x != 0]
        n = len(x) if of_all else len(alive)
        for k in range(start, most):
            y = half(alive * 2.0**k)
            if overflow and not y.isfinite().all():
                return None
            if (y == 0).sum() <= (1 - keep) * n:
                return 2.0**k
        return None

    return function


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


def changes_x(x):
    scale = smallest_scale(x)
    x *= 2
    return scale


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda x: 65536.0, "For [1, -2, 0.5] the scale is 1, yours is 65536"),
        (largest, "the first of the scales will do"),
        (search(start=-40), "The scales begin with 1"),
        (lambda x: (s := smallest_scale(x)) and math.log2(s), "the scale is 1, yours is 0."),
        (lambda x: 1 if x[0] != 0 and len(x) != 2 else (s := smallest_scale(x)) and math.log2(s), "is its exponent"),
        (lambda x: max(1, 2.0**-25 / x[x != 0].abs().min().item()), "1, 2, 4, 8, and so on"),
        (without_the_tie, "a tie"),
        (below_the_smallest, "rounded up to 2^-24"),
        (search(keep=1), "The last one may go"),
        (search(keep=0.99), "three 1e-8"),
        (search(of_all=True), "not three of 10,000"),
        (search(overflow=False), "The outlier leaves no room"),
        (search(half=lambda y: y.half().clamp(-65504, 65504)), "The outlier leaves no room"),
        (strict_border, "Overflow begins at 65520"),
        (lambda x: smallest_scale(x.where(x.abs() != 65520, 0)), "it goes to infinity"),
        (lambda x: smallest_scale(x.clamp(min=-60000)), "-inf"),
        (search(most=64), "has to go on"),
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


# --- 6: exponents


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
        (lambda x: by_frexp(x, shift=0), "[1.5, 3, 0.3]", "so one more"),
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
