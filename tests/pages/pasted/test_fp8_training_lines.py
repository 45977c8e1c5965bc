"""The lines for torchao and Transformer Engine that open `eight_bits/fp8_training` are those of the cookbook's scripts.

A GPU with FP8 is needed to run them, so the page cannot; torchao's conversion and its configuration run here on a CPU.
`tests/cookbook/test_transformer_engine.py` runs the others on its stand-ins.
"""

import ast
import json
import re
import textwrap

import pytest

import book_rules as rules
import recipe_scripts

CELLS = rules.read_page(rules.BOOK / "eight_bits" / "fp8_training.ipynb")
PAGE = rules.markdown(CELLS)
BLOCKS = {"fp8_torchao": "import torchao", "transformer_engine": "import transformer_engine"}


def lines_of(name):
    """The block of the page that imports the library of a recipe."""
    (block,) = (block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if BLOCKS[name] in block)
    return block


def names_in(source):
    """What a source imports, the names that it takes from there, and the keywords of each call."""
    imports, attributes, keywords = set(), set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.add(ast.unparse(node))
        elif isinstance(node, ast.Attribute):
            attributes.add(ast.unparse(node))
        elif isinstance(node, ast.Call):
            keywords |= {(ast.unparse(node.func), keyword.arg) for keyword in node.keywords}
    return imports, attributes, keywords


@pytest.mark.parametrize("name", BLOCKS)
def test_imports_names_and_keywords_are_those_of_the_script(name):
    own = {"model", "outputs"}  # the reader's
    for shown, script in zip(names_in(lines_of(name)), names_in(recipe_scripts.script_of(name)), strict=True):
        assert shown
        assert {what for what in shown if str(what).partition(".")[0] not in own} <= script


def test_a_name_that_the_script_lacks_is_found():
    script = names_in(recipe_scripts.script_of("transformer_engine"))
    for wrong in ("te.fp8_autocast(enabled=1)", "te.autocast(fp8_recipe=1)", "from transformer_engine import recipe"):
        assert any(not shown <= known for shown, known in zip(names_in(wrong), script, strict=True))


DRIVER = """
import dataclasses, json, logging
logging.disable(logging.WARNING)
exec({first!r})
blocks = model.children()
exec({lines!r})
changed = {changed}
assert not changed.gemm_config_output.use_fast_accum
by_default = {{name: ao.Float8LinearConfig.from_recipe_name(name).gemm_config_output.use_fast_accum
               for name in ("tensorwise", "rowwise", "rowwise_with_gw_hp")}}
mixed = ao.Float8LinearConfig.from_recipe_name("rowwise_with_gw_hp")
print(json.dumps({{
    "layers": {{name: type(layer).__name__ for name, layer in model.named_children()}},
    "compiled": all(layer._compiled_call_impl is not None for layer in model.children()),
    "fast": by_default,
    "weight for dx": mixed.cast_config_weight_for_grad_input.scaling_granularity.value,
    "x for dw": mixed.cast_config_input_for_grad_weight.scaling_type.value,
}}))
"""


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    (changed,) = re.findall(r"`(dataclasses\.replace\([^`]+)`", PAGE)
    first = next(cell.source for cell in CELLS if cell.kind == "code")
    driver = DRIVER.format(first=first, lines=textwrap.dedent(lines_of("fp8_torchao")), changed=changed)
    shown = recipe_scripts.drive("fp8_torchao", driver, tmp_path_factory.mktemp("lines"))
    return json.loads(shown.splitlines()[-1])


def test_torchao_takes_the_filter_of_the_page(facts):
    wanted = {"q_proj": "Float8Linear", "k_proj": "Linear", "up_proj": "Float8Linear", "lm_head": "Linear"}
    assert facts["layers"] == wanted
    assert facts["compiled"]


def test_torchao_adds_fast_in_every_recipe_and_one_of_them_keeps_the_gradient_of_weights_wide(facts):
    assert set(facts["fast"].values()) == {True}
    assert facts["weight for dx"] == "tensorwise"
    assert facts["x for dw"] == "disabled"
