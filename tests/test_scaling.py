"""The reference of scaling: what is specified for every amax, the rules, and the numbers that the book states."""

import numpy as np
import pytest

from utils.formats import (
    FLOAT4_E2M1FN,
    FLOAT6_E2M3FN,
    FLOAT6_E3M2FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    FLOAT32,
    decode,
    encode,
)
from utils.scaling import (
    EXPONENT_RULES,
    INT8,
    SCALINGS,
    DelayedScaling,
    Scaling,
    quantize_blocks,
    quantize_tiles,
    scale_from_amax,
    shared_exponent,
)

ELEMENTS = [FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT6_E3M2FN, FLOAT6_E2M3FN, FLOAT4_E2M1FN, INT8]
LARGEST = FLOAT32.max
TINY = [2.0**-149, 2.0**-140, 2.0**-127, 2.0**-126]


def relative_norm(y: np.ndarray, x: np.ndarray) -> float:
    return float(np.linalg.norm(y - x) / np.linalg.norm(x))


@pytest.fixture(scope="module")
def normal() -> np.ndarray:
    return np.random.default_rng(seed=1).standard_normal((512, 1024))


# From amax to scale


@pytest.mark.parametrize("fmt", ELEMENTS, ids=str)
def test_an_amax_of_nothing_infinity_or_nan_gives_the_scale_1(fmt):
    for power_of_two in (False, True):
        assert scale_from_amax([0.0, np.inf, np.nan], fmt, power_of_two=power_of_two).tolist() == [1, 1, 1]


def test_amax_lands_on_the_largest_value_divided_by_two_to_the_margin():
    assert scale_from_amax(3.5, FLOAT8_E4M3FN) == 128.0
    assert scale_from_amax(3.5, FLOAT8_E4M3FN, margin=2) == 32.0
    assert scale_from_amax(7.0, FLOAT8_E5M2) == 8192.0
    assert scale_from_amax([[1.0, 2.0]], FLOAT4_E2M1FN).tolist() == [[6.0, 3.0]]


def test_a_scale_is_a_float32_quotient_and_rounded_once():
    scale = scale_from_amax(3.0, FLOAT8_E4M3FN)
    assert scale.dtype == np.float32
    assert scale == np.float32(448 / 3)


@pytest.mark.parametrize("amax", TINY)
def test_a_scale_that_would_leave_float32_is_its_largest_value(amax):
    assert 448 / amax > LARGEST
    assert scale_from_amax(amax, FLOAT8_E4M3FN) == LARGEST
    assert scale_from_amax(amax, FLOAT8_E4M3FN, power_of_two=True) == 2.0**127


@pytest.mark.parametrize("margin", [0, 8, 40, 300])
def test_a_scale_and_its_reciprocal_stay_finite_for_the_largest_amax(margin):
    for fmt in ELEMENTS:
        scale = scale_from_amax(LARGEST, fmt, margin=margin)
        assert scale >= 2.0**-126
        assert np.isfinite(np.float32(1) / scale)
        assert LARGEST * scale <= fmt.max * (1 + 2.0**-23)


def test_a_power_of_two_is_the_largest_that_does_not_exceed_the_scale():
    amax = np.exp2(np.random.default_rng(seed=2).uniform(-100, 100, 5000)).astype(np.float32)
    exact, cut = (scale_from_amax(amax, FLOAT8_E4M3FN, power_of_two=power) for power in (False, True))
    assert (np.frexp(cut)[0] == 0.5).all()
    assert ((cut <= exact) & (exact < 2 * cut)).all()
    np.testing.assert_array_equal(np.log2(cut), -shared_exponent(amax, FLOAT8_E4M3FN, rule="rceil"))


def test_a_negative_amax_is_refused():
    for call in (scale_from_amax, shared_exponent):
        with pytest.raises(ValueError, match=r"amax -2\.0 is negative"):
            call([1.0, -2.0], FLOAT8_E4M3FN)
    with pytest.raises(ValueError, match="negative"):
        DelayedScaling(FLOAT8_E4M3FN).update(-1.0)


# The exponent of a block


@pytest.mark.parametrize(
    ("rule", "amax", "exponent"),
    [
        pytest.param("floor", 256.0, 0, id="floor: the power of two itself"),
        pytest.param("floor", 511.0, 0, id="floor: 511 saturates at 448"),
        pytest.param("floor", 512.0, 1, id="floor: the next binade"),
        pytest.param("rceil", 448.0, 0, id="rceil: 448 fits"),
        pytest.param("rceil", np.nextafter(np.float32(448), np.float32(449)), 1, id="rceil: an ulp more does not"),
        pytest.param("ceil-log2", 256.0, 0, id="ceil-log2: a power of two is its own"),
        pytest.param("ceil-log2", 257.0, 1, id="ceil-log2: 257 would fit and gets the next"),
        pytest.param("round", 495.0, 0, id="round: below 1.9375 * 256"),
        pytest.param("round", 496.0, 1, id="round: 1.9375 * 256 rounds up to 512"),
    ],
)
def test_the_rules_decide_where_they_should_in_e4m3(rule, amax, exponent):
    assert shared_exponent(amax, FLOAT8_E4M3FN, rule=rule) == exponent
    assert shared_exponent(np.float32(amax) * np.float32(2.0**-60), FLOAT8_E4M3FN, rule=rule) == exponent - 60


@pytest.mark.parametrize("fmt", ELEMENTS, ids=str)
def test_ceil_is_the_least_power_of_two_that_saturates_nothing(fmt):
    amax = np.exp2(np.random.default_rng(seed=3).uniform(-90, 90, 3000)).astype(np.float32).astype(np.float64)
    power = np.exp2(shared_exponent(amax, fmt, rule="rceil").astype(np.float64))
    assert (amax / power <= fmt.max).all()
    assert (amax / (power / 2) > fmt.max).all()
    for rule in ("floor", "round"):
        assert (shared_exponent(amax, fmt, rule=rule) <= np.log2(power)).all()
    assert (shared_exponent(amax, fmt, rule="ceil-log2") >= np.log2(power)).all()


@pytest.mark.parametrize("rule", EXPONENT_RULES)
def test_the_exponent_stays_in_e8m0_whatever_the_amax_is(rule):
    for fmt in ELEMENTS:
        exponent = shared_exponent([0.0, *TINY, 1.0, LARGEST, np.inf, np.nan], fmt, rule=rule)
        assert (np.abs(exponent) <= 127).all()
        assert (exponent[:4] == -127).all()
        assert (exponent[-2:] == 0).all()


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="rule 'nearest' is not one of floor, rceil, ceil-log2, round"):
        shared_exponent(1.0, FLOAT8_E4M3FN, rule="nearest")


# Delayed scaling


class TransformerEngine:
    """The update of one tensor as its kernel words it: slot 0 is where the step's amax is put, then all slots roll."""

    def __init__(self, top: float, length: int, choose: str):
        self.slots, self.scale = [np.float32(0)] * length, np.float32(1)
        self.top, self.choose = np.float32(top), choose

    def step(self, amax) -> np.float32:
        self.slots[0] = last = np.float32(amax)
        chosen = np.float32(0)
        if last != 0:
            rolled = [*self.slots[1:], last]
            for value in rolled:
                chosen = np.fmax(chosen, value)
            self.slots = [np.float32(0), *rolled[1:]]
        if self.choose == "most_recent":
            chosen = last
        if np.isfinite(chosen) and chosen > 0:
            with np.errstate(over="ignore"):
                self.scale = np.minimum(self.top / chosen, np.float32(LARGEST))
        return self.scale


@pytest.mark.parametrize("choose", ["max", "most_recent"])
@pytest.mark.parametrize("length", [1, 2, 5, 16])
@pytest.mark.parametrize("fmt", [FLOAT8_E4M3FN, FLOAT8_E5M2], ids=str)
def test_delayed_scaling_is_transformer_engines_step_by_step(fmt, length, choose):
    rng = np.random.default_rng(seed=length)
    amaxes = np.exp2(rng.uniform(-6, 6, 200)).astype(np.float32)
    amaxes[rng.choice(200, 24, replace=False)] = np.repeat(np.float32([0, np.inf, np.nan, 1e-44]), 6)
    theirs = TransformerEngine(fmt.max / 4, length, choose)
    ours = DelayedScaling(fmt, history=length, margin=2, choose=choose)
    for amax in amaxes:
        assert ours.update(amax) == theirs.step(amax) == ours.scale


def test_the_first_step_is_scaled_by_1_and_its_own_amax_serves_the_second():
    delayed = DelayedScaling(FLOAT8_E4M3FN)
    assert (delayed.scale, delayed.inv_scale, delayed.history.tolist()) == (1, 1, [])
    assert delayed.update(1792.0) == 0.25
    assert (delayed.inv_scale, delayed.history.tolist()) == (4, [1792])


def test_a_spike_holds_the_scale_down_until_it_leaves_the_history():
    delayed = DelayedScaling(FLOAT8_E4M3FN, history=3)
    assert [float(delayed.update(amax)) for amax in (1, 448, 1, 1, 1)] == [448, 1, 1, 1, 448]
    recent = DelayedScaling(FLOAT8_E4M3FN, history=3, choose="most_recent")
    assert [float(recent.update(amax)) for amax in (1, 448, 1, 1)] == [448, 1, 448, 448]


def test_the_history_is_a_window_that_contains_the_latest_step():
    delayed = DelayedScaling(FLOAT8_E4M3FN, history=4)
    for amax in (5, 1, 2, 3, 4):
        delayed.update(amax)
    assert delayed.history.tolist() == [1, 2, 3, 4]
    assert delayed.scale == np.float32(448) / np.float32(4)


def test_an_infinity_keeps_the_scale_until_it_is_forgotten_and_nan_is_passed_over():
    delayed = DelayedScaling(FLOAT8_E4M3FN, history=2)
    assert [float(delayed.update(amax)) for amax in (7, np.inf, 1, 1, np.nan, 2)] == [64, 64, 64, 448, 448, 224]


def test_a_step_without_work_is_not_remembered():
    delayed = DelayedScaling(FLOAT8_E4M3FN, history=2)
    assert [float(delayed.update(amax)) for amax in (7, 0, 0, 0)] == [64] * 4
    assert delayed.history.tolist() == [7]


def test_delayed_scaling_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="history 0 remembers no step"):
        DelayedScaling(FLOAT8_E4M3FN, history=0)
    with pytest.raises(ValueError, match="choose 'mean' is not one of max, most_recent"):
        DelayedScaling(FLOAT8_E4M3FN, choose="mean")


# Tiles


@pytest.mark.parametrize("scaling", SCALINGS.values(), ids=str)
@pytest.mark.parametrize("fmt", ELEMENTS, ids=str)
def test_every_scale_is_finite_and_can_be_stored_whatever_the_values_are(fmt, scaling):
    for value in (0.0, *TINY, 1.0, LARGEST, np.inf, -np.inf, np.nan):
        x = np.full((3, 40), value, np.float32)
        for spoiled in (x, np.where(np.arange(40) % 7 == 0, np.float32(1), x)):
            q = quantize_tiles(spoiled, fmt, scaling)
            for scale in (q.scale, q.inv_scale, q.stored, q.tensor_inv_scale):
                assert np.isfinite(scale).all()
                assert (scale > 0).all()
            kept = scaling.scale_format
            assert (decode(encode(q.stored, kept), kept) == q.stored).all()
            assert (np.isnan(q.values) == np.isnan(spoiled)).all()
            assert (np.abs(q.values[~np.isnan(q.values)]) <= fmt.max).all()


@pytest.mark.parametrize("scaling", SCALINGS.values(), ids=str)
def test_zeros_keep_their_signs_and_an_infinity_harms_no_neighbour(scaling):
    x = np.linspace(-2, 2, 64, dtype=np.float32)[None, :].repeat(4, 0)
    x[0, :2] = 0.0, -0.0
    q = quantize_tiles(x, FLOAT8_E4M3FN, scaling)
    assert np.signbit(q.values[0, :2]).tolist() == np.signbit(q.dequantize()[0, :2]).tolist() == [False, True]
    spoiled = x.copy()
    spoiled[1, 5:8] = np.inf, -np.inf, np.nan
    x[1, 5:8] = 0.0
    ours, without = (
        quantize_tiles(spoiled, FLOAT8_E4M3FN, scaling).values,
        quantize_tiles(x, FLOAT8_E4M3FN, scaling).values,
    )
    assert ours[1, 5:7].tolist() == [448, -448]
    ours[1, 5:8] = 0.0
    assert (ours == without).all()


@pytest.mark.parametrize("name", ["tensor", "row", "1x128", "128x128", "mx-rceil"])
def test_no_value_is_off_by_more_than_half_a_step_of_the_format(normal, name):
    x = normal[:256].astype(np.float32)
    q = quantize_tiles(x, FLOAT8_E4M3FN, SCALINGS[name])
    error = np.abs(q.dequantize() - x)
    assert (error <= np.maximum(np.abs(x) * 2.0**-4, 2.0**-10 * q.inv_scale.max()) * (1 + 2.0**-20)).all()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 5), (7,), (3, 5), (2, 3, 40), (129, 257)])
@pytest.mark.parametrize("scaling", SCALINGS.values(), ids=str)
def test_tiles_that_the_array_does_not_fill_are_smaller(scaling, shape):
    x = np.random.default_rng(seed=4).standard_normal(shape)
    q = quantize_tiles(x, FLOAT8_E4M3FN, scaling)
    assert q.values.shape == q.dequantize().shape == shape
    assert q.scale.shape == scaling.tiles(shape)
    if shape == (129, 257) and scaling.name == "128x128":
        assert q.scale.shape == (2, 3)
        assert q.scale[1, 2] == scale_from_amax(abs(x[128, 256]), FLOAT8_E4M3FN)


def test_each_tile_has_the_scale_of_its_own_amax(normal):
    x = normal[:256, :512]
    scale = quantize_tiles(x, FLOAT8_E4M3FN, SCALINGS["128x128"]).scale
    by_hand = scale_from_amax(np.abs(x).reshape(2, 128, 4, 128).max((1, 3)), FLOAT8_E4M3FN)
    assert (scale == by_hand).all()
    rows = quantize_tiles(x, FLOAT8_E4M3FN, SCALINGS["row"]).scale
    assert (rows[:, 0] == scale_from_amax(np.abs(x).max(1), FLOAT8_E4M3FN)).all()


def test_nvfp4_puts_the_largest_block_scale_on_448_and_the_tensors_amax_on_6(normal):
    q = quantize_tiles(normal[:64], FLOAT4_E2M1FN, SCALINGS["nvfp4"])
    assert q.stored.max() == 448
    assert np.abs(q.values).max() == 6
    assert q.tensor_inv_scale == pytest.approx(np.abs(normal[:64]).max() / (6 * 448), rel=1e-6)
    assert np.array_equal(q.inv_scale, q.stored * q.tensor_inv_scale)
    at = np.unravel_index(np.abs(normal[:64]).argmax(), (64, 1024))
    assert abs(q.values[at]) == 6


def test_a_block_scale_that_would_round_to_zero_is_the_smallest_subnormal():
    x = np.zeros((1, 32))
    x[0, 0], x[0, 16:] = 1e6, 1.0  # the second block would store 448 / 1e6, less than half of 2**-9
    q = quantize_tiles(x, FLOAT4_E2M1FN, SCALINGS["nvfp4"])
    assert q.stored.tolist() == [[448.0, 2.0**-9]]
    assert (q.values[0, 16:] == 1.5).all()
    assert q.dequantize()[0, 31] == pytest.approx(1.09, rel=0.01)
    assert np.isfinite(q.scale).all()


def test_blocks_are_mx_by_default_and_nvfp4_by_its_settings(normal):
    x = normal[:8]
    assert np.array_equal(
        quantize_blocks(x, FLOAT8_E4M3FN).values, quantize_tiles(x, FLOAT8_E4M3FN, SCALINGS["mx"]).values
    )
    ours = quantize_blocks(x, FLOAT4_E2M1FN, 16, FLOAT8_E4M3FN, tensor_scale=True)
    assert np.array_equal(ours.values, quantize_tiles(x, FLOAT4_E2M1FN, SCALINGS["nvfp4"]).values)


# Numbers that the book states


def test_the_floor_of_mx_costs_what_the_book_says(normal):
    error = {
        "floor": relative_norm(quantize_blocks(normal, FLOAT8_E4M3FN).dequantize(), normal),
        "float32 scale": relative_norm(quantize_blocks(normal, FLOAT8_E4M3FN, 32, FLOAT32).dequantize(), normal),
    }
    assert error == pytest.approx({"floor": 0.0293, "float32 scale": 0.0240}, rel=0.015)


def test_the_floor_saturates_the_top_of_some_blocks_and_ceil_of_none(normal):
    blocks = np.abs(normal.astype(np.float32)).reshape(-1, 32).max(1)
    for rule, saturates in (("floor", True), ("round", True), ("rceil", False), ("ceil-log2", False)):
        past = blocks / np.exp2(shared_exponent(blocks, FLOAT8_E4M3FN, rule=rule)) > 448
        assert past.any() == saturates, rule


@pytest.mark.parametrize(
    ("name", "fmt", "bits"),
    [
        pytest.param("mx", FLOAT8_E4M3FN, 8.25, id="MXFP8, OCP MX 1.0"),
        pytest.param("mx", FLOAT6_E2M3FN, 6.25, id="MXFP6, OCP MX 1.0"),
        pytest.param("mx", FLOAT4_E2M1FN, 4.25, id="MXFP4, OCP MX 1.0"),
        pytest.param("nvfp4", FLOAT4_E2M1FN, 4.5, id="NVFP4, arXiv 2509.25149"),
        pytest.param("1x128", FLOAT8_E4M3FN, 8.25, id="1x128"),
        pytest.param("128x128", FLOAT8_E4M3FN, 8 + 32 / 128**2, id="128x128"),
        pytest.param("tensor", FLOAT8_E4M3FN, 8.0, id="tensor"),
        pytest.param("none", FLOAT8_E4M3FN, 8.0, id="none"),
    ],
)
def test_bits_per_value(name, fmt, bits):
    assert SCALINGS[name].bits_per_value(fmt) == bits


def test_bits_per_value_of_a_shape_count_every_scale():
    assert SCALINGS["tensor"].bits_per_value(FLOAT8_E4M3FN, (4, 8)) == 9.0
    assert SCALINGS["row"].bits_per_value(FLOAT8_E4M3FN, (4, 64)) == 8.5
    assert SCALINGS["nvfp4"].bits_per_value(FLOAT4_E2M1FN, (1, 64)) == 5.0
    assert SCALINGS["mx"].bits_per_value(FLOAT4_E2M1FN, (2, 33)) == 4 + 4 * 8 / 66
    assert SCALINGS["none"].bits_per_value(FLOAT8_E4M3FN, (4, 8)) == 8.0


def test_int8_is_a_floating_point_format_with_one_binade():
    assert (INT8.bits, INT8.max, INT8.smallest_subnormal) == (8, 127.0, 1.0)
    values = quantize_tiles(np.arange(-127.0, 128.0), INT8, SCALINGS["none"]).values
    assert (values == np.arange(-127, 128)).all()
    q = quantize_tiles(np.float32([2.54, 1.0, -0.013]), INT8, SCALINGS["tensor"])
    assert q.values.tolist() == [127, 50, -1]


# Mistakes


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rule": "nearest"}, "rule 'nearest' is not one of exact, one, floor"),
        ({"tile": (1, 0)}, r"tile \(1, 0\) holds no value"),
        ({"scale_format": FLOAT8_E8M0FNU}, "float8_e8m0fnu holds powers of two"),
        ({"scale_format": FLOAT8_E4M3FN, "rule": "floor"}, "float8_e4m3fn follows by rule 'exact'"),
        ({"tensor_scale": True}, "a tensor scale serves scales in a narrow format"),
    ],
)
def test_a_scaling_that_cannot_be_is_refused(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        Scaling(**{"name": "mine", "label": "mine", "tile": (1, 32), **changes})


def test_every_scaling_says_where_it_comes_from():
    assert all(scaling.source for name, scaling in SCALINGS.items() if name != "none")
    assert all(name == scaling.name == str(scaling) for name, scaling in SCALINGS.items())
