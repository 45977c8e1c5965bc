"""PrecisionPlan in Python: products and operations are those of real models, the call does what the plan says."""

import ast
import html

import pytest
import torch

from tests.page_states import state_of
from utils.cost import flops, gemm_shapes
from utils.cost.architectures import NAMED, read_config
from utils.cost.cards import ROOFS
from utils.cost.fp8_casts import BFLOAT16, Layer, cast_bytes, predict_speedup
from utils.cost.roofline import Gemm
from utils.emulation.scaled_matmul import MULTIPLE
from utils.training.float8_linear import HEADS, convert
from utils.training.float8_recipes import FLOAT8_RECIPES
from utils.widgets.precision_plan import PrecisionPlan
from utils.widgets.precision_plan import facts as words
from utils.widgets.precision_plan.facts import Float8Plan
from utils.workloads import models

TEXTS, LENGTH = 3, 16
BUILD = {
    "distilbert": lambda: models.build_distilbert(
        models.DistilBertShape(vocabulary=48, width=32, layers=3, heads=2, hidden=64, positions=32)
    ),
    "llama": lambda: models.build_llama(
        models.LlamaShape(vocabulary=48, width=64, layers=3, heads=4, groups=2, hidden=96, positions=32)
    ),
}


@pytest.fixture(params=BUILD)
def small(request, monkeypatch):
    """A small model whose sizes the plan knows as "small"."""
    model = BUILD[request.param]()
    monkeypatch.setitem(NAMED, "small", read_config(model.config))
    return model


def plan_of(exclude=(), **kwargs):
    settings = {"model": "small", "texts": TEXTS, "length": LENGTH, "recipe": "fp8-current", "device": "H100 SXM"}
    return Float8Plan(**{**settings, **kwargs}, exclude=tuple(exclude))


def test_the_operations_are_those_of_the_formula(small):
    assert plan_of().operations == flops.count_step_flops(small.config, TEXTS, LENGTH)


def test_every_layer_has_the_products_that_a_step_does(small):
    ids = torch.randint(5, 30, (TEXTS, LENGTH), generator=torch.Generator().manual_seed(0))
    labels = torch.zeros(TEXTS, dtype=torch.long) if small.config.model_type == "distilbert" else ids
    small.set_attn_implementation("eager")
    found = gemm_shapes.record_gemms(small, lambda: small(input_ids=ids, labels=labels).loss.backward())
    for row in plan_of().rows:
        rows = TEXTS if row.kind.texts else TEXTS * LENGTH
        gemms = {Gemm(rows, row.outputs, row.inputs), Gemm(rows, row.inputs, row.outputs)}
        gemms |= {Gemm(row.outputs, row.inputs, rows)}
        own = [named for named in found if named.layer.split(".")[-1] == row.kind.name]
        assert {named.gemm for named in own} == gemms, row.kind
        assert sum(named.operations for named in own) == row.operations, row.kind


@pytest.mark.parametrize("take", ["nothing", "the head", "a kind", "two blocks", "all but one"])
def test_the_call_converts_what_the_plan_says(small, take):
    names = list(plan_of().names())
    kinds, blocks = [name for name in names if "." not in name], [name for name in names if "." in name]
    head = [name for name in kinds if name in HEADS]
    exclude = {
        "nothing": [],
        "the head": head,
        "a kind": [*head, kinds[3]],
        "two blocks": [blocks[0], blocks[-1]],
        "all but one": [*kinds[1:], *blocks[1:]],
    }[take]
    plan = plan_of(exclude)
    found = convert(small, plan.recipe, exclude=plan.exclude)
    for row in plan.rows:
        done = [name for name in found.converted if name.split(".")[-1] == row.kind.name]
        assert len(done) == row.converted, row.kind
    assert plan.layers == (len(found.converted), len(found.converted) + len(found.left))


def test_the_default_is_what_convert_leaves_by_itself(small):
    plan = plan_of(words.heads("small"))
    found = convert(small, plan.recipe)
    assert plan.layers[0] == len(found.converted)
    assert set(plan.exclude) <= set(HEADS)


def test_the_times_are_those_of_the_roofline():
    plan = PrecisionPlan("LLaMA 7B", texts=4, length=1024, device="H200 SXM", recipe="fp8-delayed").plan
    row = next(row for row in plan.rows if row.kind.name == "up_proj")
    roof, tokens = ROOFS["H200 SXM"], 4096
    gemms = (Gemm(tokens, 11008, 4096), Gemm(tokens, 4096, 11008), Gemm(11008, 4096, tokens))
    weight_cast = 1e3 * 6 * 11008 * 4096 / 4.8e12  # 4 bytes read, 2 written
    products = sum(roof.predicted_ms(gemm, "bfloat16") for gemm in gemms)
    assert row.wide == pytest.approx(32 * (products + weight_cast))
    assert row.narrow == pytest.approx(32 * sum(roof.predicted_ms(gemm, "float8") for gemm in gemms))
    moved = 4 * (tokens * 4096 + tokens * 11008) + 6 * 11008 * 4096  # read 16 or 32 bits, write FP8 twice
    assert row.casts == pytest.approx(32 * 1e3 * moved / 4.8e12)


def test_small_layers_lose_and_large_ones_win():
    bert = {row.kind.name: row for row in PrecisionPlan("DistilBERT", texts=12, length=512).plan.rows}
    assert bert["q_lin"].narrow < bert["q_lin"].wide < bert["q_lin"].narrow + bert["q_lin"].casts
    llama = {row.kind.name: row for row in PrecisionPlan().plan.rows}
    assert llama["up_proj"].narrow + llama["up_proj"].casts < 0.7 * llama["up_proj"].wide


def test_a_layer_whose_size_is_no_multiple_of_16_stays():
    plan = PrecisionPlan("DistilBERT", exclude=()).plan
    row = plan.rows[-1]
    assert (row.kind.name, row.outputs, row.fits, row.converted) == ("classifier", 2, False, 0)
    assert plan.layers == (37, 38)


def test_nothing_in_fp8_is_the_time_of_bfloat16():
    plan = PrecisionPlan(exclude=tuple(kind.name for kind in words.KINDS["llama"])).plan
    assert (plan.share, plan.after) == (0, pytest.approx(plan.before))
    assert plan.verdict.endswith("in FP8. convert() refuses a plan without any.")


@pytest.mark.parametrize(
    ("length", "times"), [(512, "1.03 times as long."), (552, "about as long."), (560, "about as long.")]
)
def test_hardly_any_change_is_not_called_one_times(length, times):
    assert PrecisionPlan(texts=1, length=length).plan.verdict.endswith(f"\u00a0ms, {times}")


@pytest.mark.parametrize("exclude", [(), ("lm_head",), ("lm_head", "model.layers.0")])
def test_the_code_is_what_python_reads(exclude):
    call = ast.parse(PrecisionPlan(exclude=exclude).plan.code, mode="eval").body
    assert (call.func.id, ast.literal_eval(call.args[1])) == ("convert", "fp8-current")
    assert ast.literal_eval(call.keywords[0].value) == exclude


def test_the_recipes_and_the_multiple_are_those_of_the_modules():
    assert set(words.CASTS) <= set(FLOAT8_RECIPES)
    assert words.MULTIPLE == MULTIPLE


@pytest.mark.parametrize("name", [BFLOAT16, *words.CASTS])
def test_the_bytes_of_a_cast_are_those_of_the_chapter(name):
    layer = Layer(tokens=768, inputs=4096, outputs=11008)
    moved = words.CASTS.get(name, words.WIDE_CASTS)
    counted = sum(each * values for each, values in zip(moved, layer.values.values(), strict=True))
    assert counted == pytest.approx(cast_bytes(layer, name), rel=1e-12)


@pytest.mark.parametrize("tokens", [128, 512, 768, 4096])
def test_a_layer_gains_what_it_gains_in_the_chapter(tokens):
    rows = {row.kind.name: row for row in PrecisionPlan(texts=1, length=tokens).plan.rows}
    row = rows["q_proj"]
    gain = predict_speedup(Layer(tokens, 4096, 4096), "fp8-current", ROOFS["H100 SXM"])
    assert row.wide / (row.narrow + row.casts) == pytest.approx(gain, rel=1e-12)


def test_a_recipe_that_a_card_does_not_multiply_says_so():
    for device in ("H200 SXM", "RTX 4090", "MI300X"):
        assert "This card does not multiply MX" in PrecisionPlan(recipe="fp8-mx", device=device).plan.verdict
    assert set(words.MULTIPLY_MX) == {"RTX 5090", "B200", "B300"}
    assert "does not" not in PrecisionPlan(recipe="fp8-mx", device="B200").plan.verdict
    assert "does not" not in PrecisionPlan(recipe="fp8-block").plan.verdict
    assert set(words.NO_KERNEL) <= set(words.CASTS)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"model": "GPT-2"}, "model 'GPT-2' is not one of DistilBERT, LLaMA 7B"),
        ({"recipe": "fp8"}, "recipe 'fp8' is not one of fp8-unscaled, fp8-current"),
        ({"device": "T4"}, "device 'T4' is not one of L4, RTX 4090, RTX 5090, H100 SXM, H200 SXM, B200"),
        ({"texts": 0}, "texts 0 is not in 1 to 131,072"),
        ({"texts": 100, "length": 4096}, "100 texts of 4096 tokens are more than 131,072 tokens"),
        ({"exclude": ("q_lin",)}, "exclude 'q_lin' is no layer of LLaMA 7B; there are q_proj, .*model.layers.31"),
        ({"exclude": ("model.layers.32",)}, "exclude 'model.layers.32' is no layer"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        PrecisionPlan(**settings)


def test_another_model_has_its_own_head():
    widget = PrecisionPlan(exclude=("down_proj",))
    widget.model = "DistilBERT"
    assert widget.exclude == ["pre_classifier", "classifier"]
    widget = PrecisionPlan(exclude=("down_proj",))
    widget.model = "LLaMA 13B"
    assert widget.exclude == ["down_proj"]


def test_the_static_form_has_every_kind_and_says_what_it_is():
    widget = PrecisionPlan()
    page = html.unescape(widget.static_html())
    assert widget.plan.verdict in page
    assert widget.plan.code in page
    assert "not a measurement" in page
    assert all(f">{kind.name}<" in page for kind in words.KINDS["llama"])
    assert state_of(widget)["exclude"] == ["lm_head"]
