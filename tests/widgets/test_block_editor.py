"""BlockEditor in Python: a block is that of `utils.scaling`, its bits can be set, and what does not fit is refused."""

import html
import math

import numpy as np
import pytest

from tests.page_states import state_of
from utils.formats import FLOAT8_E8M0FNU, FORMATS
from utils.scaling import SCALINGS, quantize_blocks, quantize_tiles
from utils.widgets.block_editor import BlockEditor
from utils.widgets.block_editor.facts import COUNT, KINDS, Block, make_facts, samples

EVERY = [(element, scaling) for element, names in KINDS.values() for scaling in names]


@pytest.mark.parametrize(("element", "scaling"), EVERY)
@pytest.mark.parametrize("name", samples())
def test_the_block_is_that_of_scaling(name, element, scaling):
    block = BlockEditor(name, element=element, scaling=scaling).block
    expected = quantize_tiles(block.x[None], block.fmt, SCALINGS[scaling])
    np.testing.assert_array_equal(block.stored, expected.dequantize()[0])
    np.testing.assert_array_equal(block.inv_scale, expected.inv_scale[0].repeat(block.way.tile[1]))


def test_a_larger_tensor_leaves_less_of_the_second_scale():
    alone = Block(tuple(samples()["normal"]), "float4_e2m1fn", "nvfp4")
    of_more = Block(alone.values, "float4_e2m1fn", "nvfp4", tensor_amax=1e5)
    tensor = np.concatenate([alone.x, np.full(16, 1e5, np.float32)])[None]
    expected = quantize_tiles(tensor, alone.fmt, SCALINGS["nvfp4"]).dequantize()[0, :COUNT]
    np.testing.assert_array_equal(of_more.stored, expected)
    assert alone.scale_codes.tolist() == [0x7E, 0x7C]  # the block that holds the tensor's amax gets 448
    assert max(of_more.scale_codes) < 0x20
    assert of_more.error > alone.error


def test_a_nan_scale_makes_every_value_nan():
    block = BlockEditor(scales=[0xFF]).block
    assert np.isnan(block.stored).all()
    assert block.verdict == "4.25 bits per value. 32 of 32 values are NaN."


def test_an_infinite_value_has_an_infinite_error_and_no_nan():
    start = BlockEditor().block
    block = BlockEditor(scales=[0xFE], codes=start.value_codes.tolist()).block
    assert np.isinf(block.stored).any()
    assert not np.isnan(block.stored).any()
    assert "Error ∞ (RMS)." in block.verdict


def test_codes_stay_while_the_scale_is_set():
    start = BlockEditor().block
    [code] = start.scale_codes.tolist()
    twice = BlockEditor(scales=[code + 1], codes=start.value_codes.tolist()).block
    np.testing.assert_array_equal(twice.stored, 2 * start.stored)
    again = BlockEditor(scales=[code + 1]).block
    assert again.error < twice.error
    assert again.saturated == 0 < start.saturated


def test_a_block_of_zeros_has_the_smallest_scale_and_no_error():
    block = BlockEditor("all zero").block
    assert (block.scale_codes.tolist(), block.error) == ([0], None)
    assert "All values are 0. 0 saturated, 0 became 0." in block.verdict


def test_the_numbers_of_the_verdict():
    block = BlockEditor().block
    array = quantize_blocks(block.x, FORMATS["float4_e2m1fn"], 32, FLOAT8_E8M0FNU)
    squares = ((array.dequantize().astype(float) - block.x) ** 2).sum() / (block.x.astype(float) ** 2).sum()
    assert block.error == pytest.approx(math.sqrt(squares))
    assert block.saturated == 2
    assert block.zeros == int(((array.values == 0) & (block.x != 0)).sum())
    assert block.verdict.startswith("4.25 bits per value: 4, and 8 for the scale of 32 values. Error ")


@pytest.mark.parametrize(
    ("label", "bits"),
    [("MXFP8 E4M3", 8.25), ("MXFP6 E3M2", 6.25), ("MXFP4 E2M1", 4.25), ("NVFP4 E2M1", 4.5)],
)
def test_bits_per_value_are_those_of_the_specifications(label, bits):
    element, names = KINDS[label]
    assert make_facts()["bits"][element][names[0]] == bits


def test_samples_of_a_chapter_come_first():
    widget = BlockEditor(samples={"weights": [0.5] * 32})
    assert widget.values == [0.5] * 32
    assert [name for name, _ in state_of(widget)["samples"]] == ["weights", *samples()]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"element": "float16"}, "no block format has values of 'float16' with scales 'mx'; there are MXFP8 E4M3"),
        ({"scaling": "nvfp4", "element": "float8_e5m2"}, "values of 'float8_e5m2' with scales 'nvfp4'"),
        ({"values": [1.0] * 16}, "values are 32 finite numbers of float32, not 16 like"),
        ({"values": [1e39] * 32}, "values are 32 finite numbers"),
        ({"values": "weights"}, "values 'weights' is not one of normal, one outlier"),
        ({"samples": {"weights": [math.nan] * 32}}, "values are 32 finite numbers"),
        ({"scales": [256]}, "scales are 1 codes of 8 bits, or none"),
        ({"scales": [1]}, None),
        ({"codes": [16] * 32}, "codes are 32 codes of 4 bits, or none"),
        ({"codes": [1] * 31}, "codes are 32 codes of 4 bits"),
        ({"selected": 32}, "selected 32 is not in 0 to 31"),
        ({"tensor_amax": -1.0}, "tensor_amax -1.0 is not a magnitude of float32"),
    ],
)
def test_what_does_not_fit_is_refused(settings, complaint):
    if complaint is None:
        assert BlockEditor(**settings).scales == settings["scales"]
        return
    with pytest.raises(ValueError, match=complaint):
        BlockEditor(**settings)


def test_a_format_that_is_set_takes_its_other_half_and_drops_codes_that_do_not_fit():
    widget = BlockEditor(scales=[0x7F], codes=[1] * 32)
    widget.element = "float8_e4m3fn"  # codes of 4 bits are codes of 8 too
    assert (widget.scaling, widget.scales) == ("mx", [0x7F])
    widget.scaling = "nvfp4"
    assert (widget.element, widget.scales, widget.codes) == ("float4_e2m1fn", [], [])
    widget.element = "float8_e5m2"
    assert widget.scaling == "mx"
    with pytest.raises(ValueError, match="scaling 'row' is not one of mx, mx-rceil, mx-round, nvfp4"):
        widget.scaling = "row"


def test_the_page_sends_a_format_with_its_codes():
    widget = BlockEditor()
    widget.set_state({"scaling": "nvfp4", "scales": [0x38, 0x38], "codes": []})
    assert (widget.element, widget.scaling, widget.scales) == ("float4_e2m1fn", "nvfp4", [0x38, 0x38])
    widget.set_state({"element": "float8_e4m3fn", "scaling": "mx", "scales": [], "codes": []})
    assert (widget.element, widget.scaling) == ("float8_e4m3fn", "mx")


def test_the_state_of_the_page_is_json_and_small():
    state = state_of(BlockEditor())
    assert state["values"] == samples()["normal"]
    assert len(str(state)) < 6_000


def test_the_static_form_has_every_format_and_every_value():
    widget = BlockEditor("powers of two")
    page = html.unescape(widget.static_html())
    assert widget.block.verdict in page
    assert page.count("<tr>") == 2 + len(EVERY) + COUNT
    assert "MXFP8 E4M3, up: RCEIL" in page
