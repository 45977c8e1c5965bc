"""The checks of numbers/stability: right answers pass, and each foreseen mistake gets the hint that names it."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import float16

from utils.checks.numbers import stability
from utils.checks.outcome import NOT_YET

INF, NAN = math.inf, math.nan


def half(*values):
    return torch.tensor(values, dtype=float16)


# --- What the predictions claim


def test_a_mask_of_minus_1e9_makes_nan_in_a_fully_masked_row_only():
    keep = torch.tensor([[1, 1, 1], [1, 1, 0], [0, 0, 0]], dtype=float16)
    scores = torch.tensor([[1, 2, 3]] * 3, dtype=float16)
    weights = torch.softmax(scores + (1 - keep) * -1e9, -1)
    assert weights.isnan().any(-1).tolist() == [False, False, True]
    assert weights[1, 2] == 0
    stored = torch.tensor(-1e9, dtype=torch.float32).to(float16)
    as_product = torch.softmax(scores + (1 - keep) * stored, -1)  # 0 * -inf
    assert as_product.isnan().any(-1).all()


def test_a_row_of_the_lowest_number_gets_equal_weights():
    lowest = torch.finfo(float16).min
    assert torch.softmax(half(*[lowest] * 4), -1).tolist() == [0.25] * 4


def test_the_variance_of_the_prediction_is_minus_32():
    x = torch.linspace(198.4, 201.8, 1000).to(float16)
    assert float((x * x).mean() - x.mean() ** 2) == -32
    assert float(x.double().var(correction=0)) == pytest.approx(0.97, abs=0.005)
    near_300 = half(299, 300, 301)
    assert float((near_300 * near_300).mean()) == float(near_300.mean() ** 2) == INF


# --- 1: softmax


def softmax16(x):
    m = x.amax(-1, keepdim=True)
    e = torch.exp(x - torch.where(m == -INF, 0, m))
    s = e.sum(-1, keepdim=True, dtype=torch.float32)
    return (e / torch.where(s == 0, 1, s)).half()


def by_rows(x):
    out = torch.zeros_like(x)
    for row, weights in zip(x, out, strict=True):
        if (row > -INF).any() or row.isnan().any():
            e = (row.float() - row.max().float()).exp()
            weights.copy_(e / e.sum())
    return out


def with_a_float16_sum(x):
    m = x.amax(-1, keepdim=True)
    e = torch.exp(x - torch.where(m == -INF, 0, m))
    s = e.sum(-1, keepdim=True)
    return e / torch.where(s == 0, 1, s)


def in_place(x):
    x -= x.amax(-1, keepdim=True)
    return torch.softmax(x, -1)


@pytest.mark.parametrize(
    "right",
    [
        softmax16,
        by_rows,
        lambda x: softmax16(x.float()).half(),
        lambda x: torch.where((x == -INF).all(-1, keepdim=True), 0, torch.softmax(x, -1)),
    ],
    ids=["float16", "row by row", "float32 inside", "torch"],
)
def test_softmax16_takes_a_stable_softmax(right):
    outcome = stability.check_softmax16(right)
    assert outcome, outcome.message


def naive(x):
    e = torch.exp(x)
    return e / e.sum(-1, keepdim=True)


def no_keepdim(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1)


def of_all(x):
    e = torch.exp(x - x.max())
    return e / e.sum(-1, keepdim=True)


def with_eps(x):
    m = x.amax(-1, keepdim=True)
    e = torch.exp(x - torch.where(m == -INF, 0, m))
    return e / (e.sum(-1, keepdim=True) + 1e-8)


def drops_masked(x):
    return softmax16(torch.where(x == -INF, 0, x))


def in_two_dtypes(x):
    return softmax16(x).float()


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (naive, "softmax16([[12, 11, 10]]): row 0 is [nan, 0, 0], but should be [0.6652, 0.2447, 0.09003]. exp"),
        (lambda x: naive(x).nan_to_num(1), "above 11.09"),
        (lambda x: naive(x.float()).half(), "exp(60000) is inf in float64 too"),
        (lambda x: naive(x.double()).half(), "exp(60000) is inf in float64 too"),
        (lambda x: naive(x.clamp(max=11)), "above 11.09"),
        (lambda x: naive(x.clamp(-17, 9)), "above 11.09"),
        (lambda x: naive(x - 2) if x.max() < 13 else naive(x), "exp(60000)"),
        (no_keepdim, "keepdim=True"),
        (lambda x: torch.softmax(x, 0), "column"),
        (lambda x: torch.softmax(x.flatten(), 0).view_as(x), "whole tensor"),
        (lambda x: torch.log_softmax(x, -1), "log of the softmax"),
        (lambda x: torch.exp(x - x.amax(-1, keepdim=True)), "do not sum to 1"),
        (of_all, "row 1 is [nan, nan]"),
        (of_all, "maximum of the whole tensor"),
        (drops_masked, "-inf is masked"),
        (lambda x: torch.softmax(x, -1), "zeros"),
        (with_eps, "stores 1e-8 as 0"),
        (lambda x: torch.softmax(x, -1).nan_to_num(0), "the NaN is hidden"),
        (
            with_a_float16_sum,
            "In a row of 70000 logits from 0 to 0, weight 0 is 0, but should be 1.429e-05. The exponentials",
        ),
        (in_place, "changes its input"),
        (in_two_dtypes, "torch.float32"),
        (lambda x: softmax16(x)[0], "shape [3]"),
        (lambda x: softmax16(x).tolist(), "list"),
        (lambda x: softmax16(x if x.shape[1] < 64 else x / 2), "row of 64 logits"),
    ],
)
def test_softmax16_names_the_mistake(wrong, hint):
    outcome = stability.check_softmax16(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_the_largest_logit_whose_exponential_is_finite_is_below_11_1():
    codes = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(float16)
    finite = codes[codes.isfinite()]
    assert float(finite[torch.exp(finite).isinf()].min()) == 11.09375


# --- 2: mask


@pytest.mark.parametrize(
    "right",
    [
        lambda dtype: -43_000,
        lambda dtype: -42_000.0,
        lambda dtype: torch.tensor(-43_000, dtype=dtype),
        lambda dtype: "-43000",
        lambda dtype: -45_000 if dtype == float16 else torch.finfo(dtype).min / 2,
        lambda dtype: -43_000 if dtype == float16 else -1e9,
    ],
)
def test_mask_value_takes_what_is_finite_and_leaves_room(right):
    outcome = stability.check_mask_value(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("value", "dtype", "hint"),
    [
        (-1e9, "float16", "below the lowest number, -65504"),
        (-65520, "float16", "stored as -inf"),
        (-INF, "float16", "-inf - (-inf) is NaN"),
        (-65504, "float16", "[-20000, -20000, -20000] become [-inf, -inf, -inf]"),
        (-46_000, "float16", "leaves no room"),
        (-65504 / 2, "float16", "still gets the weight 1."),
        (-1e4, "float16", "still gets the weight 1."),
        (-40_000, "float16", "still gets the weight 0.5."),
        (-100, "bfloat16", "still gets the weight 1."),
        (-40_050, "float32", "still gets the weight 1.9e-22."),
        (0, "float16", "negative"),
        (1e4, "float16", "negative"),
        (NAN, "float16", "NaN masks nothing"),
        (-1e39, "float32", "below the lowest number"),
    ],
)
def test_mask_value_names_the_dtype_and_the_mistake(value, dtype, hint):
    outcome = stability.check_mask_value(lambda d: value if d == getattr(torch, dtype) else -43_000)
    assert outcome.status == NOT_YET
    assert outcome.message.startswith(f"{dtype}:")
    assert hint in outcome.message


def test_finfo_min_alone_fails_in_float16_and_nowhere_else():
    assert "float16: in a row" in stability.check_mask_value(lambda dtype: torch.finfo(dtype).min).message
    assert stability.check_mask_value(lambda dtype: -43_000 if dtype == float16 else torch.finfo(dtype).min)
    lowest = torch.tensor(torch.finfo(float16).min, dtype=float16)
    assert (lowest + half(-15.99)).tolist() == [-65504]
    assert (lowest + half(-16)).tolist() == [-INF]  # -65520 is a tie, and the even neighbour is beyond the range


def test_exp_reaches_zero_below_minus_17_3_in_float16_and_minus_103_9_in_float32():
    x = half(-17.3, -17.4)
    assert torch.exp(x).tolist() == [2**-24, 0]
    assert torch.exp(torch.tensor([-103.9, -104.0], dtype=torch.float64)).to(torch.float32).tolist() == [2**-149, 0]


def test_two_masks_of_finfo_min_overflow_in_every_dtype_and_two_halves_do_not():
    for dtype in (float16, torch.bfloat16, torch.float32):
        lowest = torch.tensor(torch.finfo(dtype).min, dtype=dtype)
        assert (lowest + lowest).isinf()
        assert lowest / 2 + lowest / 2 == lowest


# --- 3: RMS norm


def rms_norm16(x, eps):
    m = x.abs().amax(-1, keepdim=True).clamp(min=eps**0.5)
    scaled = x / m
    return scaled / ((scaled**2).mean(-1, keepdim=True) + (eps**0.5 / m) ** 2).sqrt()


def by_hypot(x, eps):
    m = x.abs().amax(-1, keepdim=True)
    m = torch.where(m == 0, 1, m)
    rms = m * ((x / m) ** 2).mean(-1, keepdim=True).sqrt()
    return x / torch.hypot(rms, torch.full_like(rms, eps**0.5))


def root_put_back(x, eps):
    m = x.abs().amax(-1, keepdim=True).clamp(min=eps**0.5)
    return x / (m * ((x / m).square().mean(-1, keepdim=True) + (eps**0.5 / m) ** 2).sqrt())


@pytest.mark.parametrize("right", [rms_norm16, by_hypot, root_put_back])
def test_rms_norm16_takes_a_scaled_norm(right):
    outcome = stability.check_rms_norm16(right)
    assert outcome, outcome.message


def plain(x, eps):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)


def eps_as_it_is(x, eps):
    u = x / x.abs().amax(-1, keepdim=True)
    return plain(u, eps)


def scaled_by_the_largest(x, eps):
    m = x.abs().amax(-1, keepdim=True)
    m = torch.where(m == 0, 1, m)
    return x / m * torch.rsqrt(((x / m) ** 2).mean(-1, keepdim=True) + (eps**0.5 / m) ** 2)


def eps_by_the_square(x, eps):
    m = x.abs().amax(-1, keepdim=True).clamp(min=eps**0.5)
    return x / m * torch.rsqrt(((x / m) ** 2).mean(-1, keepdim=True) + eps / (m * m))


def largest_of_all(x, eps):
    m = x.abs().max().clamp(min=eps**0.5)
    return x / m * torch.rsqrt(((x / m) ** 2).mean(-1, keepdim=True) + (eps**0.5 / m) ** 2)


def without_zero(x, eps):
    return torch.where(x.abs().amax(-1, keepdim=True) == 0, NAN, rms_norm16(x, eps))


def at_least_one(x, eps):
    m = x.abs().amax(-1, keepdim=True).clamp(min=1)
    return x / m * torch.rsqrt(((x / m) ** 2).mean(-1, keepdim=True) + eps / (m * m))


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (plain, "Row [300, 400, -300, -400], eps 1e-05: your result is [0, 0, -0, -0], but it should be [0.8485,"),
        (plain, "a number divided by inf is 0"),
        (eps_as_it_is, "result is [1, -1], but it should be [0.3016, -0.3016]. Here eps is larger"),
        (eps_by_the_square, "as `(1 / t) * eps`"),
        (scaled_by_the_largest, "eps is under the root too"),
        (without_zero, "0/0 is NaN"),
        (largest_of_all, "Scale each row by its own largest"),
        (at_least_one, "Digits are lost"),
        (lambda x, eps: rms_norm16(x, 1e-5), "the eps that was passed"),
        (lambda x, eps: rms_norm16(x.T, eps).T, "of its own squares: dim=-1"),
        (lambda x, eps: rms_norm16(x, eps).nan_to_num(0), "stay visible in its row"),
        (lambda x, eps: rms_norm16(x, eps) * (1 if x.isfinite().all() else NAN), "reach no other."),
        (lambda x, eps: plain(x.float(), eps).half(), "float32"),
        (lambda x, eps: plain(x.double(), eps).half(), "float64"),
        (lambda x, eps: x / (x * x).mean(-1, keepdim=True, dtype=torch.float32).sqrt(), "float32"),
        (lambda x, eps: F.rms_norm(x, x.shape[-1:], eps=eps), "Torch's own norm"),
        (lambda x, eps: x / x.norm(dim=-1, keepdim=True), "Torch's own norm"),
        (lambda x, eps: torch.tensor([[v / 2 for v in row] for row in x.tolist()]).half(), "wider than float16"),
        (lambda x, eps: rms_norm16(x, eps) if x.shape[1] != 64 else 1.02 * rms_norm16(x, eps), "Row of 64 entries"),
        (lambda x, eps: rms_norm16(x, eps)[0], "shape [3]"),
        (lambda x, eps: x.div_(x.abs().amax(-1, keepdim=True)) if len(x) == 1 else rms_norm16(x, eps), "its input"),
    ],
)
def test_rms_norm16_names_the_mistake(wrong, hint):
    outcome = stability.check_rms_norm16(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_a_number_divided_by_a_half_tensor_takes_its_reciprocal_first():
    assert (1e-5 / half(1e-5)).isinf()
    assert (half(1e-5) / half(1e-5)) == 1


# --- 4: cross-entropy


def bce16(z, y):
    return z.clamp(min=0) - z * y + torch.log1p(torch.exp(-z.abs()))


def circulating(z, y):
    p = torch.sigmoid(z)
    return -(y * torch.log(p + 1e-8) + (1 - y) * torch.log(1 - p + 1e-8))


def eps_1e_4(z, y):
    p = torch.sigmoid(z)
    return -(y * torch.log(p + 1e-4) + (1 - y) * torch.log(1 - p + 1e-4))


def clamp_p(z, y):
    p = torch.sigmoid(z).clamp(1e-4, 1 - 1e-4)
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p))


def clamp_p_where_it_holds(z, y):
    p = torch.sigmoid(z).clamp(1e-3, 1 - 1e-3)
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p))


def log_of_exp(z, y):
    return torch.log(1 + torch.exp(z)) - z * y


def logs_of_sigmoids(z, y):
    return -(y * torch.log(torch.sigmoid(z)) + (1 - y) * torch.log(torch.sigmoid(-z)))


def of_the_pair(z, y):
    both = torch.log_softmax(torch.stack([z, torch.zeros_like(z)], -1), -1)
    return -(y * both[:, 0] + (1 - y) * both[:, 1])


@pytest.mark.parametrize(
    "right",
    [
        bce16,
        lambda z, y: -(y * F.logsigmoid(z) + (1 - y) * F.logsigmoid(-z)),
        lambda z, y: y * F.softplus(-z) + (1 - y) * F.softplus(z),
    ],
    ids=["by hand", "logsigmoid", "softplus of both signs"],
)
def test_bce16_takes_a_loss_from_the_logits(right):
    outcome = stability.check_bce16(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (circulating, "the argument of each log"),
        (circulating, "For z = 9 and y = 1 the loss is 0.0001234, but yours is nan."),
        (eps_1e_4, "stops growing at 9.21"),
        (clamp_p, "rounded to 0 or 1"),
        (clamp_p_where_it_holds, "stops growing at 6.91"),
        (lambda z, y: circulating(z.float(), y.float()), "from float16 to float32"),
        (lambda z, y: bce16(z.float(), y.float()), "from float16 to float32"),
        (lambda z, y: F.binary_cross_entropy(torch.sigmoid(z), y, reduction="none"), "torch's own loss"),
        (lambda z, y: F.binary_cross_entropy_with_logits(z, y, reduction="none"), "torch's own loss"),
        (lambda z, y: F.softplus(z) - z * y, "For z = 8 and y = 1 the loss is 0.0003354, but yours is 0. The"),
        (lambda z, y: z.clamp(min=0) - z * y + torch.log(1 + torch.exp(-z.abs())), "as log1p(x)"),
        (lambda z, y: z.clamp(min=0) + torch.log1p(torch.exp(-z.abs())) - z * y, "rounds the small part away"),
        (lambda z, y: torch.where(z.abs() > 7, z.clamp(min=0) - z * y, bce16(z, y)), "rounds the small part away"),
        (of_the_pair, "rounds the small part away"),
        (logs_of_sigmoids, "whose log is -inf"),
        (lambda z, y: circulating(z, y).nan_to_num(0), "log(0)"),
        (lambda z, y: torch.zeros_like(z), "no exponent is positive"),
        (log_of_exp, "above 11.09"),
        (lambda z, y: torch.log1p(torch.exp(-z)) + z - z * y, "above 11.09"),
        (lambda z, y: -bce16(z, y), "sign"),
        (lambda z, y: bce16(z, 1 - y), "swapped"),
        (lambda z, y: bce16(z, y).mean(), "not their mean"),
        (lambda z, y: bce16(z, y)[:3], "shape [3]"),
        (lambda z, y: bce16(z, y) + 1, "no exponent is positive"),
        (lambda z, y: 1.05 * bce16(z, y), "no exponent is positive"),
        (lambda z, y: bce16(z, y).tolist(), "wider than float16"),
        (lambda z, y: [0.0] * len(z), "list"),
    ],
)
def test_bce16_names_the_mistake(wrong, hint):
    outcome = stability.check_bce16(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_the_sigmoid_is_1_in_float16_from_8_32_on():
    codes = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(float16)
    finite = codes[codes.isfinite()]
    assert float(finite[torch.sigmoid(finite) == 1].min()) == pytest.approx(8.32, abs=0.005)
    assert float(torch.tensor(1 - 1e-4).to(float16)) == 1  # so clamping p to 1 - 1e-4 does nothing
