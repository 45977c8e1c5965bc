"""The bytes are those counted by hand, and the break-even is where the counted times cross."""

import pytest

from utils.cost.cards import ROOFS
from utils.cost.fp8_casts import (
    BFLOAT16,
    PUBLISHED,
    Layer,
    break_even,
    cast_bytes,
    predict_speedup,
    predicted_ms,
    square,
)
from utils.cost.roofline import Gemm, Roof
from utils.training.float8_recipes import FLOAT8_RECIPES

LAYER = Layer(tokens=256, inputs=512, outputs=1_024)
X, W, DY = 256 * 512, 512 * 1_024, 256 * 1_024
# 1 TFLOP/s in bfloat16 and 2 in FP8, 1 GB/s: a byte costs a nanosecond, as much as 1,000 operations in bfloat16
SIMPLE = Roof("simple", {"bfloat16": 1.0, "float8": 2.0}, 1.0, "made up")


def test_the_products_of_a_step_share_their_operations():
    assert LAYER.gemms == (Gemm(256, 1_024, 512), Gemm(256, 512, 1_024), Gemm(1_024, 512, 256))
    assert LAYER.operations == 3 * 2 * 256 * 512 * 1_024
    assert LAYER.values == {"x": X, "w": W, "dy": DY}


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        pytest.param(BFLOAT16, 6 * W, id="the weight, 4 bytes read and 2 written"),
        pytest.param("fp8-unscaled", 4 * X + 6 * W + 4 * DY, id="2 or 4 bytes read, 1 written twice"),
        pytest.param("fp8-delayed", 4 * X + 6 * W + 4 * DY, id="scales from earlier steps: the same"),
        pytest.param("fp8-current", 6 * X + 10 * W + 6 * DY, id="each tensor is read a second time"),
        pytest.param("fp8-row", 6 * X + 10 * W + 6 * DY, id="a row's amax, and a column's"),
        pytest.param(
            "fp8-block",
            (2 + 2 * (1 + 4 / 128)) * (X + DY) + (4 + 2 * (1 + 4 / 128**2)) * W,
            id="float32 scales of 128 and of 128 x 128 values",
        ),
        pytest.param(
            "fp8-mx", (2 + 2 * (1 + 1 / 32)) * (X + DY) + (4 + 2 * (1 + 1 / 32)) * W, id="a byte for 32 values"
        ),
    ],
)
def test_the_casts_move_the_bytes_counted_by_hand(name, counted):
    assert cast_bytes(LAYER, name) == pytest.approx(counted, rel=1e-12)


def test_a_step_takes_its_products_and_then_its_casts():
    products = sum(SIMPLE.predicted_ms(gemm, "float8") for gemm in LAYER.gemms)
    assert predicted_ms(LAYER, "fp8-current", SIMPLE, casts=False) == products
    assert predicted_ms(LAYER, "fp8-current", SIMPLE) == pytest.approx(products + (6 * (X + DY) + 10 * W) / 1e6)


@pytest.mark.parametrize("gpu", ["L4", "RTX 4090", "H100 SXM", "H200 SXM"])
@pytest.mark.parametrize("name", FLOAT8_RECIPES)
def test_the_break_even_is_the_first_width_that_is_faster(name, gpu):
    width = break_even(name, ROOFS[gpu])
    assert predict_speedup(square(width - 16), name, ROOFS[gpu]) <= 1 < predict_speedup(square(width), name, ROOFS[gpu])
    assert (
        1
        < predict_speedup(square(2 * width), name, ROOFS[gpu])
        < predict_speedup(square(16 * width), name, ROOFS[gpu])
        < 2.05
    )


def test_the_break_even_by_hand():
    # Compute bound in both: 3 * 2 n**3 operations save half their time, casts cost 22 - 6 bytes for n**2 values each:
    # 3 n**3 / 1e12 = 16 n**2 / 1e12, so n = 16 / 3; memory that fast never binds.
    fast = Roof("fast", {"bfloat16": 1.0, "float8": 2.0}, 1e3, "made up")
    assert break_even("fp8-current", fast) == 16
    slower = Roof("slower", {"bfloat16": 1.0, "float8": 2.0}, 1e3 / 300, "made up")  # n = 1,600
    assert break_even("fp8-current", slower) == 1_616
    assert break_even("fp8-current", slower, lambda n: Layer(16, n, n)) is None  # one row of tiles: the weight's casts


def test_without_a_faster_product_fp8_never_pays():
    alike = Roof("alike", {"bfloat16": 1.0, "float8": 1.0}, 1e6, "made up")
    assert break_even("fp8-current", alike) is None
    with pytest.raises(ValueError, match="A100 SXM 80 GB has no peak for 'float8'"):
        break_even("fp8-current", ROOFS["A100 SXM 80 GB"])


def test_a_layer_in_bfloat16_casts_nothing_and_reads_two_bytes_of_a_weight_for_fp8():
    assert cast_bytes(LAYER, BFLOAT16, weight_bytes=2) == 0
    assert cast_bytes(LAYER, "fp8-current", weight_bytes=2) == 6 * (X + W + DY)
    # 18 bytes more in place of 16: 18 / 3 of the ridge, 989.4 / 3.35 operations per byte
    more = predict_speedup(square(1_776), "fp8-current", ROOFS["H100 SXM"], weight_bytes=2)
    assert predict_speedup(square(1_760), "fp8-current", ROOFS["H100 SXM"], weight_bytes=2) < 1 < more


def test_published_ratios_are_on_the_side_of_1_that_the_model_predicts():
    assert [(each.faster, each.weight_bytes) for each in PUBLISHED] == [(0.80, 2), (1.39, 2)]
    for each in PUBLISHED:
        predicted = predict_speedup(each.layer, "fp8-current", ROOFS[each.gpu], weight_bytes=each.weight_bytes)
        assert (predicted > 1) == (each.faster > 1)
        assert each.faster == pytest.approx(predicted, rel=0.15)
