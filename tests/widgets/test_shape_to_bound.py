"""ShapeToBound in Python: its numbers are those of `utils.cost.roofline`, and its words follow from them."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.page_states import state_of
from utils import records
from utils.cost.cards import ROOFS
from utils.cost.roofline import INPUT_BYTES, OUTPUT_BYTES, Gemm, Roof
from utils.experiments import gemm_sweep
from utils.widgets.shape_to_bound import ShapeToBound
from utils.widgets.shape_to_bound import facts as words
from utils.widgets.shared.cost.roof_words import time_text
from utils.workloads import models, review_task

OWN = Roof("Some CPU, 2 threads", {"float32": 0.125, "bfloat16": 0.25}, 20.0, "made up for the tests", measured=True)
POINT = {"device": OWN.name, "dtype": "float32", "m": 512, "n": 4096, "k": 4096, "ms": 200.0}


def plain(text):
    return text.replace("\u00a0", " ")


def test_one_token_is_bound_by_memory_on_an_h100():
    case = ShapeToBound().case
    assert (case.gemm, case.dtype, case.roof) == (Gemm(1, 4096, 4096), "bfloat16", ROOFS["H100 SXM"])
    # 2 x 4096 x 4096 operations, 2 x (4096 + 4096 x 4096 + 4096) bytes, 989.4 TFLOP/s over 3350 GB/s
    assert case.moved == 33_570_816
    assert case.intensity == pytest.approx(33_554_432 / 33_570_816)
    assert case.verdict == "Bound by memory: moving takes 295 times as long as computing."
    assert plain(case.prediction) == "Predicted: 10 µs, the longer of the two. That is 3.35 of 989 TFLOP/s, or 0.338 %."
    assert plain(case.record) == (
        "The fastest bfloat16 product published for this card: 795 TFLOP/s, 80.3 % of the peak."
    )
    assert case.rows == "With N = 4,096 and K = 4,096 it is bound by compute from M = 346 on."
    assert plain(case.change) == (
        "bfloat16 moves 50 % of float32's bytes, under a roof 14.8 times as high. This product: 10 µs instead of 20 µs,"
        " 2 times as fast. The bytes decide."
    )


def test_a_batch_is_bound_by_compute_and_feels_the_roof_of_eight_bits():
    case = ShapeToBound(m=32 * 512, dtype="float8").case
    assert case.verdict == "Bound by compute: computing takes 4.27 times as long as moving."
    assert case.rows == "With N = 4,096 and K = 4,096 it is bound by compute down to M = 377."
    assert plain(case.change).startswith("FP8 moves 72.2 % of bfloat16's bytes, under a roof 2 times as high.")
    assert case.change.endswith("2 times as fast. The roof decides.")


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (
            "float64",
            "float64 moves 200 % of float32's bytes, under the same roof. This product: 40.1 µs instead of"
            " 20 µs, 2 times as long. The bytes decide.",
        ),
        (
            "float32",
            "float32 moves 50 % of float64's bytes, under the same roof. This product: 20 µs instead of"
            " 40.1 µs, 2 times as fast. The bytes decide.",
        ),
        (
            "tf32",
            "TF32 moves as many bytes as float32, under a roof 7.39 times as high. This product: 20 µs in both."
            " The bytes decide.",
        ),
        (
            "float16",
            "float16 moves 50 % of float32's bytes, under a roof 14.8 times as high. This product: 10 µs"
            " instead of 20 µs, 2 times as fast. The bytes decide.",
        ),
        (
            "float8",
            "FP8 moves 50 % of bfloat16's bytes, under a roof 2 times as high. This product: 5.01 µs instead of"
            " 10 µs, 2 times as fast. The bytes decide.",
        ),
    ],
)
def test_each_type_is_compared_with_the_one_that_it_replaces(dtype, text):
    assert plain(ShapeToBound(dtype=dtype).case.change) == text


def test_where_the_device_lacks_that_type_another_stands_in():
    assert [words.compared_with(dtype, OWN) for dtype in ("float32", "bfloat16")] == ["bfloat16", "float32"]
    case = words.GemmCase(Gemm(1, 1, 1), "float32", replace(OWN, peaks={"float32": 1.0}))
    assert case.change == f"{OWN.name} has no other type to compare it with."


def test_a_product_between_the_bounds_feels_both():
    roof = replace(ROOFS["H100 SXM"], peaks={"bfloat16": 100, "float8": 1000})
    assert words.GemmCase(Gemm(128, 4096, 4096), "float8", roof).change.endswith(" Both decide.")


def test_where_eight_bits_are_slower_it_says_so():
    roof = replace(OWN, peaks={"bfloat16": 0.2, "float8": 0.05})  # as on a CPU that imitates them
    change = words.GemmCase(Gemm(512, 512, 512), "float8", roof).change
    assert "under a roof 0.25 times as high" in change
    assert change.endswith(", 4 times as long. The roof decides.")


def test_attention_scores_never_reach_the_ridge():
    case = ShapeToBound(m=512, n=512, k=64).case
    # as M grows: 2 N K / (2 K + 2 N)
    assert case.rows == (
        "With N = 512 and K = 64 no M is enough: it stays below 56.9 operations per byte; the ridge is at 295."
    )
    assert words.row_limit(512, 64, "bfloat16") == 512 * 64 / (512 + 64)


def test_where_both_take_equally_long_it_is_at_the_ridge():
    roof = Roof("made up", {"float32": 1e-3 * 4 / 24}, 1.0, "for this test")
    assert words.GemmCase(Gemm(1, 1, 1), "float32", roof).intensity == 2 / 12
    assert words.GemmCase(Gemm(1, 1, 1), "float32", roof).verdict == (
        "At the ridge: moving and computing take equally long."
    )


def random_cases(count, seed):
    rng = np.random.default_rng(seed)
    roofs = [*ROOFS.values(), OWN]
    for _ in range(count):
        roof = roofs[rng.integers(len(roofs))]
        m, n, k = (int(2 ** rng.uniform(0, 17)) for _ in range(3))
        yield words.GemmCase(Gemm(m, n, k), str(rng.choice(list(words.modelled(roof)))), roof)


def test_the_longer_of_the_two_times_is_the_prediction_and_names_the_bound():
    for case in random_cases(500, seed=1):
        assert max(case.moving_ms, case.computing_ms) == case.ms
        assert case.verdict.startswith(("At the ridge", f"Bound by {case.bound}"))
        if not case.verdict.startswith("At"):
            assert (case.bound == "memory") == (case.moving_ms > case.computing_ms)


def test_from_the_least_rows_on_compute_bounds_and_one_row_fewer_does_not():
    found = []
    for case in random_cases(500, seed=2):
        gemm, dtype, roof = case.gemm, case.dtype, case.roof
        least = words.least_rows(gemm.n, gemm.k, dtype, roof)
        found.append(least)
        if least is None:
            assert words.row_limit(gemm.n, gemm.k, dtype) <= roof.ridge(dtype)
            assert roof.bound(replace(gemm, m=words.MOST), dtype) == "memory"
        else:
            assert roof.bound(replace(gemm, m=least), dtype) == "compute"
            assert least == 1 or roof.bound(replace(gemm, m=least - 1), dtype) == "memory"
    assert None in found
    assert min(filter(None, found)) < 10
    assert max(filter(None, found)) > 1_000


def test_rows_that_reach_the_ridge_exactly_are_enough():
    roof = replace(OWN, peaks={"float32": 16.0}, bandwidth=1000.0)  # the ridge is at 16 operations per byte
    # 2 x 64 x 128 x 128 operations, 4 x (64 x 128 + 128 x 128 + 64 x 128) bytes
    assert roof.intensity(Gemm(64, 128, 128), "float32") == 16
    assert words.least_rows(128, 128, "float32", roof) == 64


def test_counts_are_exact_in_a_double():
    most = Gemm(words.MOST, words.MOST, words.MOST)
    assert most.operations <= 2**53
    assert most.moved(max(INPUT_BYTES.values()), max(OUTPUT_BYTES.values())) <= 2**53


def test_the_types_are_those_of_the_roofline():
    assert list(words.LABELS) == list(INPUT_BYTES)
    assert [row[0] for row in words.make_facts((), (), {})["types"]] == list(INPUT_BYTES)


@pytest.mark.parametrize(
    ("ms", "text"),
    [(1.5, "1.5 ms"), (0.0123, "12.3 µs"), (0.9996, "1 ms"), (999.6, "1 s"), (12_345, "12.3 s"), (1e-9, "0.001 ns")],
)
def test_a_time_has_the_unit_that_suits_it(ms, text):
    assert plain(time_text(ms)) == text


# What the page brings along


def test_a_recorded_point_stands_beside_its_prediction():
    widget = ShapeToBound(roofs=[OWN], recorded=[POINT], device=OWN.name, dtype="float32", m=512)
    assert widget.case.recorded == (OWN.name, 200.0)
    # 2 x 512 x 4096 x 4096 operations at 0.125 TFLOP/s: 137.4 ms
    assert plain(widget.case.record) == "Recorded on Some CPU, 2 threads: 200 ms, 68.7 % of the predicted speed."
    for size in "mnk":
        other = ShapeToBound(roofs=[OWN], recorded=[POINT], device=OWN.name, dtype="float32", m=512)
        other.set_trait(size, 513)
        assert other.case.record == ""  # nobody has published what this device reaches


def test_a_point_stands_beside_the_data_sheet_of_its_device_too():
    points = [POINT | {"device": "NVIDIA A100-SXM4-80GB", "dtype": "tf32", "ms": 0.2}]
    sheets = {"NVIDIA A100-SXM4-80GB": "A100 SXM 80 GB"}
    widget = ShapeToBound(recorded=points, sheets=sheets, device="A100 SXM 80 GB", dtype="tf32", m=512)
    assert widget.case.recorded == ("NVIDIA A100-SXM4-80GB", 0.2)
    widget.device = "H100 SXM"
    assert widget.case.recorded is None


def test_of_two_points_of_one_product_the_last_counts():
    widget = ShapeToBound(roofs=[OWN], recorded=[POINT, POINT | {"ms": 150.0}])
    assert widget.facts["recorded"] == {OWN.name: {"float32": [[512, 4096, 4096, 150.0]]}}


@pytest.mark.parametrize(
    ("brought", "says"),
    [
        ({"roofs": [replace(OWN, name="L4")]}, "two roofs are called L4; give the measured one a name of its own"),
        ({"recorded": [POINT]}, "recorded device 'Some CPU, 2 threads' has no roof; pass its measured roof, or name"),
        ({"roofs": [OWN], "recorded": [POINT | {"dtype": "fp8"}]}, "recorded dtype 'fp8' is not one of float64,"),
        ({"roofs": [OWN], "recorded": [POINT | {"ms": 0}]}, "recorded time 0 ms of Some CPU, 2 threads is not above 0"),
        ({"roofs": [OWN], "recorded": [POINT | {"k": 2**18}]}, "recorded product 512 × 4096 × 262144 is larger than"),
        ({"sheets": {"x": "H100"}}, "H100 is no data sheet; the known ones are T4, V100 SXM2,"),
    ],
)
def test_what_does_not_fit_together_is_refused_in_one_sentence(brought, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        ShapeToBound(**brought)


def made_record(device, date, rate, batch=1):
    """A record of one product at `rate` TFLOP/s, and of a copy at 100 GB/s."""
    gemm = Gemm(512, 512, 64)
    ms = batch * gemm.operations / (1e9 * rate)
    left_out = gemm_sweep.GemmPoint("odd", 7, 7, 7, "float8", note="this CPU would take seconds")
    point = gemm_sweep.GemmPoint("square", 512, 512, 64, "float32", batch, (ms, ms, 2 * ms))
    found = gemm_sweep.Sweep((point, left_out), 10**9, (10.0,), {}, 0.0)
    record = gemm_sweep.make_record(found, device=torch.device("cpu"), size="small")
    return replace(record, device=record.device | {"name": device}, date=date)


def test_records_of_a_sweep_bring_their_roofs_their_points_and_their_data_sheets():
    later = "2026-11-22T00:00:00+00:00"
    made = [
        made_record("NVIDIA H200", later, 40.0, batch=8),
        made_record("NVIDIA H200", "2026-11-20T00:00:00+00:00", 10.0),
        made_record("Some CPU", later, 0.1),
    ]
    widget = ShapeToBound.of_records(made, device="H200 SXM", dtype="float32", m=512, n=512, k=64)
    alone = 2 * 512 * 512 * 64 / 40e9  # ms of one of the eight
    assert widget.case.recorded == ("NVIDIA H200", pytest.approx(alone, rel=1e-3))
    assert widget.facts["sheets"] == {"NVIDIA H200": "H200 SXM"}
    own = {row["name"]: row for row in widget.facts["roofs"] if row["measured"]}
    assert (own["NVIDIA H200"]["peaks"], own["NVIDIA H200"]["bandwidth"]) == ({"float32": pytest.approx(40)}, 100)
    assert own["Some CPU"]["peaks"] == {"float32": pytest.approx(0.1)}
    widget.device = "Some CPU"
    assert widget.case.recorded[0] == "Some CPU"


def test_the_records_of_the_book_make_a_widget():
    found = records.load_all(experiment="gemm_sweep")
    widget = ShapeToBound.of_records(found)
    assert len(widget.facts["roofs"]) == len(ROOFS) + len({record.device["name"] for record in found})


def test_the_products_are_those_of_the_full_experiments():
    assert (review_task.FULL.batch, review_task.FULL.max_length) == (words.REVIEWS, words.REVIEW_TOKENS)
    assert models.LLAMAS["full"].positions == words.TEXT_TOKENS


# The widget


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"m": 0}, "m 0 is not in 1 to 131,072"),
        ({"k": 2**17 + 1}, "k 131073 is not in 1 to 131,072"),
        ({"device": "H100"}, "device 'H100' is not one of T4, V100 SXM2,"),
        ({"dtype": "fp8"}, "dtype 'fp8' is not one of float64, float32, tf32, float16, bfloat16, float8, the types of"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(settings, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        ShapeToBound(**settings)
    [(name, value)] = settings.items()
    widget = ShapeToBound()
    before = widget.book_state()
    with pytest.raises(ValueError, match=re.escape(says)):
        widget.set_trait(name, value)
    assert widget.book_state() == before


def test_a_type_that_the_device_lacks_is_refused_when_it_is_made():
    with pytest.raises(ValueError, match="dtype 'bfloat16' is not one of float64, float32, float16, the types of V100"):
        ShapeToBound(device="V100 SXM2", dtype="bfloat16")
    assert ShapeToBound(device="V100 SXM2").dtype == "float16"


@pytest.mark.parametrize(
    ("dtype", "device", "instead"),
    [
        ("bfloat16", "V100 SXM2", "float16"),
        ("float8", "A100 SXM 80 GB", "bfloat16"),
        ("float64", OWN.name, "float32"),
        ("tf32", "T4", "float32"),
        ("float8", "L4", "float8"),
    ],
)
def test_on_another_device_a_type_that_it_lacks_gives_way(dtype, device, instead):
    widget = ShapeToBound(roofs=[OWN], dtype=dtype)
    widget.device = device
    assert widget.dtype == instead


def test_the_page_sends_its_state():
    widget = ShapeToBound()
    widget.set_state({"m": 512, "device": "V100 SXM2", "dtype": "float16"})
    assert widget.case.gemm == Gemm(512, 4096, 4096)
    assert widget.case.roof == ROOFS["V100 SXM2"]


def test_the_state_is_plain_and_small():
    points = [POINT | {"m": m, "n": n} for m in range(1, 9) for n in range(1, 9)]
    assert len(json.dumps(state_of(ShapeToBound()))) < 5_800
    assert len(json.dumps(state_of(ShapeToBound(roofs=[OWN], recorded=points)))) < 8_000


def test_the_static_form_says_what_the_page_says():
    widget = ShapeToBound()
    form = widget.static_html()
    case = widget.case
    for text in (case.verdict, case.prediction, case.record, case.rows, case.change.replace("'", "&#x27;")):
        assert text in form
    assert "<th scope='row'>FP8</th><td>2</td><td>591</td><td>memory</td>" in form
    for row in (
        ("one token", "1 × 4096 × 4096", "memory", "10\u00a0µs", "346"),
        ("attention scores", "512 × 512 × 64", "memory", "196\u00a0ns", "no M"),
    ):
        assert f"<th scope='row'>{row[0]}</th>{''.join(f'<td>{text}</td>' for text in row[1:])}</tr>" in form


def test_it_has_a_stable_text():
    assert repr(ShapeToBound()) == "ShapeToBound(1 × 4096 × 4096, 'bfloat16', 'H100 SXM': memory, 10 µs)"
