"""BlockEditor in a real browser: its blocks against utils.scaling, bit for bit, and what a reader does with them."""

import numpy as np
import pytest

from tests.browser.widget_page import (
    DESK,
    PHONE,
    barriers,
    calls_of,
    cut_off,
    heights,
    small_targets,
    smallest_text,
)
from utils.formats import FORMATS, encode
from utils.scaling import SCALINGS, quantize_tiles
from utils.widgets.block_editor import BlockEditor
from utils.widgets.block_editor.facts import KINDS, Block, make_facts, samples

EVERY = [(element, scaling) for element, names in KINDS.values() for scaling in names]
# Numbers as text: JSON has neither NaN nor -0.
HARNESS = """
const shown = (x) => (Object.is(x, -0) ? "-0" : String(x));
window.calls = {
  ...words,
  blocks: (facts, states) => states.map((state) => {
    const view = words.blockView(facts, state);
    return {
      scales: view.tiles.map(({ code }) => Number(code)), codes: view.cells.map(({ code }) => Number(code)),
      stored: view.cells.map(({ stored }) => shown(stored)), scaleInv: view.tiles.map(({ scaleInv }) => shown(scaleInv)),
      saturated: view.totals.saturated, zeros: view.totals.zeros, error: view.totals.error,
      verdict: words.beVerdict(view, words.fewDigits(facts.bits[state.element][state.scaling])),
    };
  }),
};
"""  # noqa: E501


call = calls_of("block_editor/widget", HARNESS)


def page_state(values, element, scaling, *, tensor_amax=0.0, scales=(), codes=()):
    named = {"element": element, "scaling": scaling, "tensor_amax": tensor_amax}
    return named | {"values": [float(x) for x in values], "scales": list(scales), "codes": list(codes)}


def crafted_blocks():
    """Blocks at which a rule turns: powers of two, the values next to them, subnormals, ends, zeros."""
    for amax in (1, 1.5, 1.75, 1.7500001, 1.9999999, 2, 3.5, 6, 7, 448, 464, 57344, 61440, 2.0**-126, 2.0**-127):
        yield [amax * (-1) ** i / (1 + i % 7) for i in range(32)]
        yield [np.nextafter(np.float32(amax), np.float32(0)), *[0.0] * 30, -float(amax)]
    for amax in (2.0**-149, 2.0**-140, 1e-40, 3.4028234663852886e38, 2.0**127, 1e-30, 1e30):
        yield [amax, -amax, amax / 3, *[0.0] * 29]
    yield [0.0] * 31 + [-0.0]
    yield [(-1) ** i * (2.5 + i) / 4 for i in range(32)]  # ties
    yield [2.0 ** (8 - i) for i in range(32)]


def random_blocks(count, seed):
    rng = np.random.default_rng(seed)
    for number in range(count):
        spread = (0, 2, 12)[number % 3]
        yield np.float32(
            rng.standard_normal(32) * 2.0 ** rng.uniform(-spread, spread, 32) * 2.0 ** rng.uniform(-30, 30)
        )


@pytest.mark.parametrize(("element", "scaling"), EVERY)
def test_the_page_has_the_blocks_of_scaling_bit_for_bit(call, element, scaling):
    blocks = [np.asarray(values, np.float32) for values in (*crafted_blocks(), *random_blocks(90, seed=3))]
    got = call("blocks", make_facts(), [page_state(values, element, scaling) for values in blocks])
    for values, page in zip(blocks, got, strict=True):
        expected = quantize_tiles(values[None], FORMATS[element], SCALINGS[scaling])
        assert page["scales"] == encode(expected.stored[0], SCALINGS[scaling].scale_format).tolist(), values
        assert page["codes"] == encode(expected.values[0], FORMATS[element]).tolist(), values
        assert_same_floats(page["scaleInv"], expected.inv_scale[0])
        assert_same_floats(page["stored"], expected.dequantize()[0])


def assert_same_floats(texts, expected):
    ours = np.array([float(text.replace("Infinity", "inf")) for text in texts], np.float32)
    np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(np.signbit(ours), np.signbit(expected))


def states_by_hand(count, seed):
    """States whose scales or codes the reader has set, of every format, with all codes of a scale."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        element, scaling = EVERY[number % len(EVERY)]
        blocks = 32 // SCALINGS[scaling].tile[1]
        scales = rng.integers(0, 256, blocks).tolist() if number % 2 else ()
        codes = rng.integers(0, 2 ** FORMATS[element].bits, 32).tolist() if number % 3 else ()
        values = rng.standard_normal(32).astype(np.float32).tolist()
        amax = float(np.float32(rng.uniform(0, 40)))
        yield page_state(values, element, scaling, tensor_amax=amax, scales=scales, codes=codes)


@pytest.mark.filterwarnings("error")
def test_what_a_reader_sets_is_worth_what_python_says(call):
    states = list(states_by_hand(320, seed=8))
    states += [page_state(samples()["normal"], "float8_e4m3fn", "mx", scales=[code]) for code in (0, 1, 254, 255)]
    states += [
        page_state(samples()["normal"], "float4_e2m1fn", "nvfp4", scales=[code, 0x38]) for code in (0, 0x7F, 0xB8)
    ]
    for state, page in zip(states, call("blocks", make_facts(), states), strict=True):
        block = Block(**{name: tuple(value) if isinstance(value, list) else value for name, value in state.items()})
        assert page["scales"] == block.scale_codes.tolist(), state
        assert page["codes"] == block.value_codes.tolist(), state
        assert_same_floats(page["stored"], block.stored)
        assert (page["saturated"], page["zeros"]) == (block.saturated, block.zeros), state
        assert page["verdict"] == block.verdict, state


# What a reader does


def text_of(page, name):
    return page.locator(f".mp-be-{name}").first.inner_text().replace("\u00a0", " ")


def verdict_of(block):
    return block.verdict.replace("\u00a0", " ")


def cell(page, number):
    return page.get_by_role("radio").nth(number - 1)


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def scale_bit(page, number):
    return page.locator(".mp-be-part").nth(1).locator(f'.mp-bit[aria-label^="bit {number},"]')


def heading(page, part):
    return page.locator(".mp-be-part h3").nth(part).inner_text()


def type_value(page, text):
    field = page.get_by_label("x", exact=True)
    field.fill(text)
    field.press("Enter")


def test_the_page_starts_with_the_state_of_python(show):
    widget = BlockEditor()
    page = show(widget)
    assert text_of(page, "verdict") == verdict_of(widget.block)
    assert page.get_by_role("radio").count() == 32
    assert page.locator("[data-fate=saturated].mp-be-cell").count() == widget.block.saturated
    codes = page.locator(".mp-be-code").all_inner_texts()
    assert codes == [f"{code:04b}" for code in widget.block.value_codes.tolist()]
    assert page.get_by_role("status").inner_text() == ""


def test_a_sample_of_a_chapter_can_be_taken_again(show):
    page = show(BlockEditor(samples={"halves": [0.5] * 32}))
    field = page.get_by_role("combobox", name="Values")
    assert field.input_value() == "halves"
    type_value(page, "0.25")
    assert field.input_value() == ""
    field.select_option("one outlier")
    assert "became 0" in text_of(page, "verdict")
    field.select_option("halves")
    assert "Error 0 %" in text_of(page, "verdict")


def test_a_larger_value_takes_the_scale_with_it(show):
    page = show(BlockEditor([1.0] * 32))
    assert text_of(page, "value") == "inv_scale = 2⁻² = 0.25"
    cell(page, 5).click()
    type_value(page, "5.3")
    assert text_of(page, "value") == "inv_scale = 2⁰ = 1"
    assert text_of(page, "reason").startswith("amax 5.3: ⌊log₂ 5.3⌋ − 2 = 0.")
    assert text_of(page, "fate") == "Rounded: error 0.7 (+13.2 %)."
    assert text_of(page, "steps") == "5.3 × scale 1 = 5.3; as E2M1 6. Back: 6 × inv_scale 1 = 6."
    press(page, "x times 2")
    assert text_of(page, "value") == "inv_scale = 2¹ = 2"
    type_value(page, "7.9")
    assert text_of(page, "fate") == "Saturated: error −1.9 (−24.1 %)."
    page.get_by_label("The scale's exponent").select_option("mx-rceil")
    assert text_of(page, "value") == "inv_scale = 2¹ = 2"
    assert text_of(page, "fate") == "Rounded: error 0.1 (+1.27 %)."
    type_value(page, "-7.9")
    assert text_of(page, "fate") == "Rounded: error −0.1 (+1.27 %)."  # a larger magnitude


def test_a_bit_of_the_scale_moves_all_values_and_encoding_again_mends_it(show):
    page = show(BlockEditor([1.0, -2.0] * 16))
    assert heading(page, 1) == "Scale of all 32 values: E8M0 0x7E"
    scale_bit(page, 0).click()
    assert heading(page, 1) == "Scale of all 32 values: E8M0 0x7F"
    assert (
        text_of(page, "message") == "Bit 0 of the scale is now 1; the 32 codes stay. All 32 values are multiplied by 2."
    )
    assert "Error 100 %" in text_of(page, "verdict")
    press(page, "encode the values again, with this scale")
    assert "Error 0 %" in text_of(page, "verdict")
    assert text_of(page, "reason") == "Set by hand. The rule gives 0.5, this is 2 times that."
    press(page, "by rule: scale and codes anew")
    assert heading(page, 1) == "Scale of all 32 values: E8M0 0x7E"


def test_ff_is_nan_and_takes_the_whole_block(show):
    page = show(BlockEditor("normal", scales=[0x7F]))
    scale_bit(page, 7).click()
    assert text_of(page, "message").endswith("It is NaN now, and so are all 32 values.")
    assert text_of(page, "verdict") == "4.25 bits per value. 32 of 32 values are NaN."
    press(page, "encode the values again, with this scale")
    assert page.locator("[data-fate=nan].mp-be-cell").count() == 32


def test_infinite_values_have_an_infinite_error(show):
    page = show(BlockEditor("normal", scales=[0xFE], codes=BlockEditor("normal").block.value_codes.tolist()))
    assert "Error ∞ (RMS)." in text_of(page, "verdict")


def test_a_flipped_bit_of_a_code_changes_one_value(show):
    page = show(BlockEditor([1.0, -2.0] * 16))
    cell(page, 2).click()
    page.locator(".mp-be-part").first.locator('.mp-bit[aria-label="bit 3, sign"]').click()
    assert text_of(page, "message") == "Bit 3 of the code is now 0: −2 became 2."
    assert text_of(page, "fate") == "Not the code of x: error 4 (−200 %)."
    assert page.locator('[data-fate="by hand"].mp-be-cell').count() == 1


def test_nvfp4_has_two_scales_and_one_for_the_tensor(show):
    page = show(BlockEditor("one outlier"))
    page.get_by_label("Format").select_option("NVFP4 E2M1")
    assert heading(page, 1) == "Scale of values 1 to 16: E4M3 0x7E"
    cell(page, 20).click()
    assert heading(page, 1).startswith("Scale of values 17 to 32: E4M3")
    field = page.get_by_label("amax of the tensor")
    assert field.input_value() == "60"
    field.fill("6000")
    field.press("Enter")
    expected = Block(tuple(samples()["one outlier"]), "float4_e2m1fn", "nvfp4", tensor_amax=6000.0)
    assert text_of(page, "verdict") == verdict_of(expected)
    field.fill("1")
    field.press("Enter")
    assert text_of(page, "message") == "The tensor holds these values: its amax is at least 60."
    assert field.get_attribute("aria-invalid") == "true"
    assert text_of(page, "verdict") == verdict_of(expected)


def test_the_scale_can_be_stepped_and_ends_where_its_codes_end(show):
    page = show(BlockEditor([1.0] * 32, scales=[1]))
    for _ in range(3):
        press(page, "the next smaller scale, and the values encoded again")
    assert heading(page, 1).endswith("E8M0 0x00")
    assert "32 saturated" in text_of(page, "verdict")
    page = show(BlockEditor([1.0] * 32, scales=[253]))
    for _ in range(3):
        press(page, "the next larger scale, and the values encoded again")
    assert heading(page, 1).endswith("E8M0 0xFE")
    assert "32 became 0" in text_of(page, "verdict")


def test_junk_gets_a_sentence_and_changes_nothing(show):
    page = show(BlockEditor())
    before = text_of(page, "verdict")
    for junk, says in [
        ("abc", "“abc” is not a number"),
        ("nan", "made by its scale: 0xFF"),
        ("1e39", "finite numbers"),
    ]:
        type_value(page, junk)
        assert says in text_of(page, "message")
        assert page.get_by_label("x", exact=True).input_value() == junk
        assert page.get_by_label("x", exact=True).get_attribute("aria-invalid") == "true"
        assert text_of(page, "verdict") == before
    type_value(page, "1/3")
    assert page.get_by_label("x", exact=True).input_value() == "0.33333334"


def test_the_table_takes_a_format_and_a_rule(show):
    page = show(BlockEditor())
    for label, rule, element, scaling in (
        ("MXFP8 E4M3", "RCEIL", "float8_e4m3fn", "mx-rceil"),
        ("MXFP6 E3M2", "EVEN", "float6_e3m2fn", "mx-round"),
        ("NVFP4 E2M1", "exact", "float4_e2m1fn", "nvfp4"),
    ):
        button = page.locator(f'.mp-be-table button[aria-label^="{label}, {rule}:"]')
        button.click()
        block = Block(tuple(samples()["normal"]), element, scaling)
        assert text_of(page, "verdict") == verdict_of(block)
        assert f"{block.saturated} saturated, {block.zeros} became 0" in button.get_attribute("aria-label")
        assert button.get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize(("viewport", "across"), [(DESK, 16), (PHONE, 8)], ids=["desk", "phone"])
def test_the_values_are_one_stop_of_the_keyboard(show, viewport, across):
    page = show(BlockEditor(), viewport=viewport)
    cell(page, 1).focus()
    for key, number in (("ArrowRight", 2), ("ArrowDown", 2 + across), ("ArrowUp", 2), ("ArrowUp", 2), ("End", 32)):
        page.keyboard.press(key)
        assert cell(page, number).get_attribute("aria-checked") == "true"
        assert page.evaluate("() => document.activeElement.getAttribute('aria-label')").startswith(f"value {number}:")
    assert page.locator(".mp-be-cell[tabindex='0']").count() == 1
    assert page.get_by_role("status").inner_text().startswith("Value 32: ")


@pytest.mark.parametrize(("viewport", "slack"), [(DESK, 3), (PHONE, 4)], ids=["desk", "phone"])
def test_everything_fits_and_the_page_keeps_room_for_it(show, viewport, slack):
    page = show(BlockEditor(), viewport=viewport)
    for label in KINDS:
        page.get_by_label("Format").select_option(label)
        assert page.evaluate("() => document.documentElement.scrollWidth") == viewport["width"], label
        assert small_targets(page) == [], label
        assert cut_off(page, ".mp-be-code, .mp-be-mark, .mp-be-table td") == [], label
        kept, taken = heights(page)
        assert abs(kept - taken) <= slack, (label, kept, taken)
    assert smallest_text(page) >= 12.8


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_moves_while_values_and_bits_change(show, viewport):
    page = show(BlockEditor(), viewport=viewport)
    height = "() => document.querySelector('.mp-panel').offsetHeight"
    before = page.evaluate(height)
    for sample in ("normal", "one outlier", "small weights"):
        page.get_by_role("combobox", name="Values").select_option(sample)
        for number in (1, 12, 21, 32):
            cell(page, number).click()
            assert page.evaluate(height) == before, (sample, number)
        for bit in (0, 2):
            scale_bit(page, bit).click()
            assert page.evaluate(height) == before, (sample, bit, text_of(page, "message"))
        press(page, "encode the values again, with this scale")
        assert page.evaluate(height) == before, sample


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(show, theme):
    page = show(BlockEditor("one outlier"), theme=theme, color_scheme=theme)
    for label in ("MXFP4 E2M1", "NVFP4 E2M1", "MXFP8 E5M2"):
        page.get_by_label("Format").select_option(label)
        scale_bit(page, 0).click()
        assert barriers(page) == [], label


def test_a_kernel_gets_each_change_and_the_page_follows_it(hosted):
    page = hosted(BlockEditor([1.0] * 32))
    cell(page, 3).click()
    type_value(page, "-6.5")
    sent = page.evaluate("() => model.sent.at(-1)")
    assert (sent["values"][2], sent["selected"], sent["scales"], sent["codes"]) == (-6.5, 2, [], [])
    scale_bit(page, 1).click()
    sent = page.evaluate("() => model.sent.at(-1)")
    assert (len(sent["scales"]), len(sent["codes"])) == (1, 32)
    page.evaluate("() => void Object.assign(model.state, { values: Array(32).fill(0), scales: [], codes: [] })")
    page.evaluate("() => model.fire('change:values')")
    assert "All values are 0." in text_of(page, "verdict")
    page.evaluate("() => { Object.assign(model.state, { scales: [1] }); model.fire('change:scales'); }")
    page.evaluate("() => { model.state.scaling = 'nvfp4'; model.fire('change:scaling'); }")  # and then the rest
    assert text_of(page, "verdict").startswith("4.5 bits per value")
