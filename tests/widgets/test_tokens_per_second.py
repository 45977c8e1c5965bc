"""TokensPerSecond in Python: its bytes and rates, its sentences, its records, what it refuses, and its table."""

import dataclasses
import re
from types import SimpleNamespace

import pytest
import torch

from tests.page_states import state_of
from utils.cost.architectures import NAMED, Architecture
from utils.cost.cards import ROOFS
from utils.cost.roofline import Roof
from utils.cost.token_bytes import predict
from utils.experiments import generation_speed
from utils.experiments.generation_models import Subject
from utils.widgets.shared.words.amounts import few_digits
from utils.widgets.tokens_per_second import TokensPerSecond
from utils.widgets.tokens_per_second.facts import (
    FORMATS,
    LLAMAS,
    MEMORY,
    PLAIN_LOOP,
    PUBLISHED,
    DecodeCase,
    published,
    shared_points,
    weights_of,
)

SMALL = Architecture("llama", 512, 256, 4, 8, 4, 688, 512, tied=True)


def case(model="LLaMA 7B", weights="bfloat16", card="A100 SXM 40 GB", **more):
    return DecodeCase(NAMED[model], weights_of(weights), ROOFS[card], **more)


def test_the_rate_is_the_bandwidth_divided_by_the_bytes():
    one = case(context=500)
    assert one.moved == predict("LLaMA 7B", weight_bits=16, context=500)
    assert one.tokens_per_second == pytest.approx(one.moved.tokens_per_second(1555), rel=1e-12)
    assert round(one.tokens_per_second, 1) == 115.4
    many = case(context=500, batch=8)
    assert many.tokens_per_second == pytest.approx(many.moved.tokens_per_second(1555), rel=1e-12)


def test_weights_have_the_bits_of_their_format_and_the_rest_sixteen():
    assert [weights_of(name).bits for name in FORMATS] == [32, 16, 8, 8, 4.5, 4.125]
    assert case(weights="int4", context=500).moved == predict("LLaMA 7B", weight_bits=4.5, context=500)
    assert case(weights="float32").moved == predict("LLaMA 7B", weight_bits=32, other_bits=32, kv_bits=32, context=100)
    assert case(weights="int8", kv_bits=4).moved == predict("LLaMA 7B", weight_bits=8, kv_bits=4, context=100)
    assert case(weights="int8", head=True).moved == predict("LLaMA 7B", weight_bits=8, head_bits=8, context=100)


def test_a_large_batch_is_bound_by_computing():
    one, many = case(context=1), case(context=1, batch=1024)
    assert one.computing_ms < one.moving_ms / 100
    assert many.ms == many.computing_ms > many.moving_ms
    # two operations for each weight that multiplies, and a little attention
    multiplied = NAMED["LLaMA 7B"].parameters - 32_000 * 4_096
    assert many.operations == pytest.approx(2 * 1024 * multiplied, rel=1e-3)
    assert many.peak == 312
    assert case(weights="float32").peak == 19.5
    assert DecodeCase(NAMED["LLaMA 7B"], weights_of("bfloat16"), ROOFS["T4"]).peak == 65  # float16: it has no bfloat16


def test_what_is_held_has_all_embeddings_and_the_cache():
    one = case(context=1000)
    assert one.held == 2 * NAMED["LLaMA 7B"].parameters + 1001 * 524_288
    assert case(room=0).fits
    assert case(room=13 * 10**9).fits is False
    held = case().held
    assert [case(room=room).fits for room in (-(-10 * held // 9), 10 * held // 9)] == [True, False]
    tied = DecodeCase(SMALL, weights_of("float32"), ROOFS["L4"], context=10)
    assert tied.held == tied.moved.total == 4 * SMALL.parameters + tied.moved.cache_read + tied.moved.cache_written


def test_every_card_has_a_memory_and_every_published_rate_lies_below_the_limit():
    assert set(MEMORY) == set(ROOFS)
    assert ROOFS["A100 SXM 40 GB"].peaks == ROOFS["A100 SXM 80 GB"].peaks
    shares = {}
    for point in published():
        roof = ROOFS[point["card"]]
        shares[point["model"], point["weights"], point["card"]] = (
            point["rate"] * point["bytes"] / (1e9 * roof.bandwidth)
        )
    assert len(shares) == len(PUBLISHED)
    assert all(0.1 < share < 0.8 for share in shares.values())
    # 226 and 310 of 1,555 GB/s, of all that is held
    assert shares["LLaMA 7B", "bfloat16", "A100 SXM 40 GB"] == pytest.approx(226 / 1555, rel=0.03)
    assert shares["LLaMA 7B", "float32", "A100 SXM 40 GB"] == pytest.approx(310 / 1555, rel=0.03)
    # the sources' own columns of GB/s
    for weights, gigabytes in (("bfloat16", 1397.31), ("int8", 1069.20), ("int4", 862.69)):
        assert shares["LLaMA 7B", weights, "A100 SXM 80 GB"] == pytest.approx(gigabytes / 2039, rel=1e-3)
    assert shares["Llama 3 8B", "int4", "H100 SXM"] == pytest.approx(1019.14 / 3350, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "weights", "card", "bits", "kept"),
    [
        ("LLaMA 7B", "bfloat16", "A100 SXM 80 GB", 16, 0.109),  # its fixed cache: 208 places
        ("LLaMA 7B", "int8", "A100 SXM 80 GB", 8, 0.3),
        ("LLaMA 7B", "int4", "A100 SXM 80 GB", 5, 0.3),  # a scale and a zero for 32 weights
        ("Llama 3 8B", "bfloat16", "H100 SXM", 16, 0.01),
        ("Llama 3 8B", "float8", "H100 SXM", 8, 0.01),
        ("Llama 3 8B", "int8", "H100 SXM", 8, 0.02),
        ("Llama 3 8B", "int4", "H100 SXM", 4.5, 0.01),  # a scale and a zero for 64 weights
    ],
)
def test_the_bytes_of_a_source_are_its_weights_and_little_more(model, weights, card, bits, kept):
    [point] = (p for p in published() if (p["model"], p["weights"], p["card"]) == (model, weights, card))
    ours = predict(model, weight_bits=bits, head_bits=bits).weights
    assert -0.01e9 < point["bytes"] - ours < kept * 1e9


def test_a_plain_loop_writes_a_quarter_of_the_compiled_one():
    assert 4 * PLAIN_LOOP < PUBLISHED[0][3] < 4.2 * PLAIN_LOOP


def test_what_was_measured_is_said_or_that_nothing_was():
    assert TokensPerSecond(card="A100 SXM 80 GB").measured.startswith(
        "Measured with a batch of 1: 104.9 tokens a second from 13.3 GB a step, 69\u00a0% of the bandwidth "
        "(gpt-fast, README of 2023"
    )
    other = TokensPerSecond(card="L4", weights="int8")
    assert other.measured.startswith(
        "No rate in this format is published for this card. "
        "On A100 SXM 80 GB: 155.58 tokens a second from 6.87 GB a step, "
        "52\u00a0% of its bandwidth"
    )
    guess = 155.58 * 300 / 2039
    assert other.measured.endswith(
        f"Scaled by the bandwidth, that would be {few_digits(guess)} here: an estimate, not a measurement."
    )
    assert TokensPerSecond("Llama 2 70B", weights="float8").measured == (
        "There is no rate of this model in E4M3 to compare with: the limit stands alone."
    )
    assert TokensPerSecond(batch=2).measured.startswith("Measured rates are of a single sequence")


def estimates(model, card, **more):
    """The rate that stands in each row: None where there is none."""
    shown = TokensPerSecond(model, card=card, **more)
    found = {}
    for name in FORMATS:
        shown.weights = name
        points = shared_points(shown.facts["points"], shown.case, model)
        found[name] = (round(points[0]["here"], 1), points[0]["card"]) if points else None
    return found


def test_an_estimate_is_a_rate_times_the_ratio_of_the_bandwidths():
    fast, lit = "A100 SXM 80 GB", "A100 SXM 40 GB"
    assert estimates("LLaMA 7B", lit) == {
        **{"float32": (11.5, lit), "bfloat16": (16.7, lit), "float8": None},
        **{"int8": (round(155.58 * 1555 / 2039, 1), fast), "int4": (150.1, fast), "int4-g128": None},
    }
    assert estimates("LLaMA 7B", lit, head=True) == estimates("LLaMA 7B", lit)


def test_all_estimates_of_a_table_are_from_one_card_and_none_from_a_plain_loop():
    found = estimates("Llama 3 8B", "H200 SXM")
    assert {row[1] for row in found.values() if row} == {"H100 SXM"}  # the nearest bandwidth
    rates = [found[name][0] for name in ("bfloat16", "float8", "int8", "int4")]
    assert rates == sorted(rates)
    assert {row[1] for row in estimates("Llama 3 8B", "L4").values() if row} == {"A100 SXM 80 GB"}
    assert estimates("Llama 3 8B", "A100 SXM 80 GB")["float8"] is None  # its own rates are in the table
    assert estimates("LLaMA 7B", "A100 SXM 80 GB")["float32"] is None
    assert "16.7 † (S. Raschka" in TokensPerSecond(card="A100 SXM 40 GB").static_html()


def test_a_card_without_data_sheet_gets_no_estimate():
    roof = Roof("Some CPU", {}, 26.0, "a large copy", measured=True)
    assert set(estimates("LLaMA 7B", "Some CPU", roofs=[roof]).values()) == {None}


def test_the_verdict_says_the_rate_and_what_decides_it():
    said = case(context=500, room=40 * 10**9).verdict
    assert said == (
        "At most 115 tokens a second. The bytes decide: a step reads 13.2 GB of weights, and moves 0.263 GB of keys and"
        " values: 8.67\u00a0ms at 1,555 GB/s. Weights, keys and values take 13.7 GB of 40 GB."
    )
    said = case(context=1, batch=1024, room=10**10).verdict
    assert "tokens a second, " in said
    assert " for each of 1,024 sequences. Computing decides: 312 TFLOP/s take " in said
    assert said.endswith("of 10 GB: too much, because a tenth stays free.")


def record_of(format="bfloat16", parameters=6_738_415_616, device="NVIDIA H200", *, rate=200.0, date="2026-01-02"):
    """A record of `utils.experiments.generation_speed`: whatever it asks for besides is empty."""
    asked = {field.name: "" for field in dataclasses.fields(generation_speed.GenerationResult)}
    points = (
        generation_speed.GenerationPoint("static", 100, 13_000_000_000, (2e5 / rate,) * 3),
        generation_speed.GenerationPoint("graphs", 100, 13_500_000_000, (1e5 / rate,) * 3),
        generation_speed.GenerationPoint("no-cache", 100, 1, note="not here"),
    )
    found = generation_speed.GenerationResult(**(asked | {"format": format, "points": points, "limit": 4800.0}))
    weight = SimpleNamespace(numel=lambda: parameters)
    subject = Subject("any", SimpleNamespace(parameters=lambda: [weight]), torch.zeros(1, 8), weights="", data="")
    known = {"versions": {}, "command": "", "commit": None, "dirty": None, "date": date}
    made = generation_speed.make_record(found, subject, device=torch.device("cpu"), size="full", provenance=known)
    return dataclasses.replace(made, device={"name": device, "kind": "cuda"})


def test_records_give_points_on_the_card_that_they_were_made_on():
    shown = TokensPerSecond.of_records([record_of(), record_of(rate=220, date="2026-02-02"), record_of("int4")])
    ours = [point for point in shown.facts["points"] if point["source"].startswith("recorded")]
    assert [(point["weights"], point["rate"], point["bytes"]) for point in ours] == [
        ("bfloat16", 220.0, 13_500_000_000),
        ("int4", 200.0, 13_500_000_000),
    ]
    assert {point["card"] for point in ours} == {"H200 SXM"}
    assert ours[0] | {"source": ""} == ours[0] | {"source": "", "model": "LLaMA 7B"}
    assert "recorded 2026-02-02, graphs" in shown.facts["points"][0]["source"]
    assert len(shown.facts["points"]) == len(PUBLISHED) + 2


def test_a_device_without_data_sheet_brings_its_copy_and_a_model_its_shape():
    small = record_of("float32", SMALL.parameters, "Some CPU")
    shown = TokensPerSecond.of_records([small], model="LLaMA small", card="Some CPU", weights="float32")
    assert shown.roof == Roof("Some CPU", {}, 4800.0, "measured", measured=True)
    assert shown.case.architecture == SMALL
    assert shown.case.computing_ms == 0
    assert shown.case.room == 0
    assert TokensPerSecond.of_records([record_of("int4-gptq"), record_of(parameters=7)]).facts["points"] == published()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(model="GPT-2"), f"model 'GPT-2' is not one of {', '.join(LLAMAS)}"),
        (dict(weights="int3"), "weights 'int3' is not one of float32, bfloat16, float8, int8, int4, int4-g128"),
        (dict(card="TPU"), "card 'TPU' is not one of T4, V100 SXM2, A100 SXM 40 GB"),
        (dict(kv_bits=5), "kv_bits 5 is not one of 0, 8, 4"),
        (dict(batch=0), "batch 0 is not in 1 to 1,024"),
        (dict(context=10**6), "context 1000000 is not in 1 to 131,072"),
    ],
)
def test_what_the_page_could_not_show_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        TokensPerSecond(**arguments)
    shown = TokensPerSecond()
    [(name, value)] = arguments.items()
    with pytest.raises(ValueError, match=re.escape(says)):
        setattr(shown, name, value)


def test_a_page_without_javascript_gets_the_answer_and_a_table():
    shown = TokensPerSecond(card="A100 SXM 80 GB")
    text = shown.static_html()
    assert (
        "LLaMA 7B, weights in bfloat16 or float16, on A100 SXM 80 GB, 2,039 GB/s: At most 154 tokens a second." in text
    )
    rows = re.findall(r"<tr><td>(.*?)</td>", text)
    assert rows == [weights_of(name).label for name in FORMATS]
    assert "155.58 (gpt-fast" in text
    assert "104.9 (on A100 SXM 80 GB)" in TokensPerSecond(card="L4").static_html()
    for apart in ({"batch": 2}, {"context": 257}):
        text = TokensPerSecond(card="A100 SXM 80 GB", **apart).static_html()
        assert "155.58" not in text


def test_the_place_in_the_page_holds_the_state():
    shown = TokensPerSecond("Llama 3 8B", weights="int4", card="L4", batch=4, context=8192, kv_bits=8, head=True)
    state = state_of(shown)
    assert state.pop("facts") == shown.facts
    assert state == {
        **{"model": "Llama 3 8B", "weights": "int4", "card": "L4", "batch": 4, "context": 8192},
        **{"kv_bits": 8, "head": True},
    }
    assert repr(TokensPerSecond()) == "TokensPerSecond('LLaMA 7B', 'bfloat16', 'A100 SXM 80 GB', batch=1: 154 tokens/s)"
