"""The numbers of others, and the page that sets ours beside them."""

import re
from pathlib import Path

import pytest

import book_rules as rules
from utils import records
from utils.cost import fp8_casts
from utils.cost.cards import ROOFS
from utils.quantization import outliers
from utils.runs import published, raschka2023
from utils.runs.published import PUBLISHED, find_number
from utils.runs.tables import page_table

PAGE = rules.BOOK / "reference" / "numbers.ipynb"
BIBLIOGRAPHY = rules.bibliography((rules.BOOK / "references.bib").read_text("utf8"))


def page():
    """What a reader of the page sees: its prose and its outputs."""
    cells = rules.read_page(PAGE)
    outputs = [output for cell in cells for output in cell.outputs]
    texts = ["".join(o.get("data", {}).get("text/markdown", "")) + "".join(o.get("text", "")) for o in outputs]
    shown = "\n".join(texts).translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    return rules.markdown(cells), shown, "\n".join(cell.source for cell in cells if cell.kind == "code")


def test_every_number_has_a_source_in_the_bibliography_and_a_place_in_it():
    assert {each.source for each in PUBLISHED.values()} - set(BIBLIOGRAPHY) == set()
    assert all(each.place for each in PUBLISHED.values())


def test_no_number_is_written_over_by_another_of_the_same_name():
    source = Path(published.__file__).read_text("utf8").split("EXPECTED = {")[0]
    typed = re.findall(r'"[^"]+": -?[\d_.]+', source)
    assert len(typed) == len(PUBLISHED)


def test_every_source_is_cited_in_the_prose_of_the_page():
    prose, _, _ = page()
    cited = {key.strip() for group in rules.CITATION.findall(prose) for key in group.split(",")}
    assert {each.source for each in PUBLISHED.values()} - cited == set()


def test_every_number_stands_on_the_page():
    _, shown, code = page()
    for name in PUBLISHED:
        value = find_number(name)
        forms = {f"{value:g}", f"{value}", f"{value:.2f}", f"{value:,.0f}", f"{value:.1f}"}
        alone = "" if value < 0 else r"(?<![\d.])"  # 2-27 is a power of two
        assert any(re.search(rf"{alone}{re.escape(form)}(?!\d)", shown) for form in forms), name
    assert "number(" in code


def test_what_other_modules_hold_is_not_typed_again():
    source = Path(published.__file__).read_text("utf8")
    held = [f"{run.minutes:.2f}" for run in raschka2023.RUNS] + [f"{run.accuracy:.2f}" for run in raschka2023.RUNS]
    held += [
        "104.9",
        "155.58",
        "196.8",
        "11.47",
        "16.7",
        "989",
        "1978",
        *(f"{e.faster:.2f}" for e in fp8_casts.PUBLISHED),
    ]
    found = [text for text in held if re.search(rf"(?<![\d.]){re.escape(text)}0?(?![\d.])", source)]
    assert [text for text in found if text != "92.15"] == []


def test_three_shares_of_one_whole_do_not_make_a_hundred():
    shares = [
        find_number(f"ssd-guide, {name}, %")
        for name in ("zero in float32", "become zero in float16", "not zero in float16")
    ]
    assert sum(shares) == pytest.approx(103.1)


@pytest.mark.parametrize(("name", "dtype"), [("BF16", "bfloat16"), ("TE", "float8"), ("FP8-LM, batch 4", "float8")])
def test_the_shares_of_the_peak_are_those_of_the_data_sheet(name, dtype):
    share = 100 * find_number(f"gpt-175b, {name}, TFLOP/s") / ROOFS["H100 SXM"].peak(dtype)
    assert round(share, 1) == find_number(f"gpt-175b, {name}, MFU %")


@pytest.mark.parametrize(
    ("name", "tflops"),
    [("bfloat16", 599), ("current", 945), ("delayed", 1010), ("block", 838), ("current, handed over", 1142)],
)
def test_the_times_of_the_h200_amount_to_these_rates(name, tflops):
    tokens, d, ff = 31 * 512, 4096, 16384
    work = 3 * 2 * tokens * (3 * d * d + d * d + 2 * d * ff)
    assert round(work / find_number(f"te-h200, {name}, ms") / 1e9) == tflops


@pytest.mark.parametrize("name", published.OUTLIERS)
def test_the_sweep_of_outliers_has_an_arm_for_each_row(name):
    assert name in outliers.ARMS
    assert len(published.OUTLIERS[name]) == len(outliers.OUTLIERS) == len(published.OUTLIER_ZEROS)


def test_the_page_shows_no_record_of_a_gpu_only_while_there_is_none():
    named = ("fp8_speed", "generation", "gemm_sweep", "accumulation_error")
    on_gpu = [run.name for name in named for run in records.load_all(experiment=name) if run.device["kind"] == "cuda"]
    assert on_gpu == [], "show these records in book/reference/numbers.ipynb, in the column of ours"


def test_the_page_types_no_measurement_of_ours():
    _, _, code = page()
    assert re.findall(r'"(?:record|computed): [\d.]', code) == []


def test_a_table_of_a_page_scrolls_and_keeps_its_bars():
    text = page_table("Speeds", ("what", "theirs"), [("a|b", "1")])
    assert text.startswith(
        '<div class="mp-scroll" tabindex="0" role="region" aria-label="Speeds">\n\n| what | theirs |'
    )
    assert r"| a\|b | 1 |" in text
    assert "| 7\u00a0ms, 3 runs, 9\u00a0% |" in page_table("Times", ("what",), [("7 ms, 3 runs, 9 %",)])
    with pytest.raises(ValueError, match="a row of 1 cells under 2 headings"):
        page_table("Speeds", ("what", "theirs"), [("alone",)])
