"""OpLookup in Python: rows of a measurement beside the documentation, as JSON, and a table without JavaScript."""

import json

import pytest

from utils.diagnostics.autocast_docs import ERROR, FOLLOWS, NARROW, PROMOTE, RULES, WIDE
from utils.diagnostics.autocast_table import OperationDtypes
from utils.widgets.op_lookup import OpLookup
from utils.widgets.shared.book_widget import BookWidget

ROWS = [
    OperationDtypes("matmul", "products", NARROW, "bfloat16", "bfloat16", ("bfloat16", "bfloat16")),
    OperationDtypes("einsum", "products", NARROW, "bfloat16", "bfloat16", ("bfloat16", "bfloat16")),
    OperationDtypes("LSTMCell", "products", FOLLOWS, "float32", "bfloat16", ("float32", "bfloat16")),
    OperationDtypes("softmax", "activations", FOLLOWS, "float32", "bfloat16", ()),
    OperationDtypes("binary_cross_entropy", "losses", WIDE, "float32", "float32", ("float32", "float32")),
    OperationDtypes("add", "several inputs", PROMOTE, "float32", "bfloat16", ("float32", "float32")),
    OperationDtypes("scatter_add", "indexing", FOLLOWS, "float32", "bfloat16", (ERROR, ERROR), "no mix"),
    OperationDtypes("layer_norm", "normalisation", FOLLOWS, "float32", "bfloat16", ("bfloat16", ERROR), "no mix"),
]


@pytest.fixture
def widget():
    return OpLookup(ROWS, version="2.13.0")


def test_each_row_has_what_was_measured_and_what_is_documented_for_the_other_device(widget):
    found = {row["name"]: (row["here"], row["there"]) for row in widget.rows}
    assert found == {
        "matmul": (NARROW, NARROW),
        "einsum": (NARROW, NARROW),
        "LSTMCell": (FOLLOWS, NARROW),
        "softmax": (FOLLOWS, WIDE),
        "binary_cross_entropy": (WIDE, ERROR),
        "add": (PROMOTE, PROMOTE),
        "scatter_add": (FOLLOWS, PROMOTE),
        "layer_norm": (FOLLOWS, WIDE),
    }


def test_a_note_says_what_a_rule_cannot(widget):
    notes = {row["name"]: (row["here_note"], row["there_note"]) for row in widget.rows}
    assert notes.pop("einsum") == ("", "not in the docs, but in torch 2.13")
    assert notes.pop("LSTMCell") == ("its products are cast down", "")
    assert notes.pop("scatter_add") == ("a mix raises", "")
    assert set(notes.values()) == {("", "")}  # layer_norm takes float32 weights with a narrow input


def test_a_row_has_the_other_names_by_which_it_is_found(widget):
    also = {row["name"]: row["also"] for row in widget.rows}
    assert also["matmul"] == ["@"]
    assert also["binary_cross_entropy"] == ["nn.BCELoss"]
    assert also["softmax"] == []


def test_measured_on_cuda_the_other_device_is_the_cpu():
    widget = OpLookup(ROWS, device="cuda", version="2.13.0")
    assert widget.heads == ["CUDA: measured, torch 2.13.0", "CPU: documented"]
    assert [row["there"] for row in widget.rows[:5]] == [NARROW, NARROW, FOLLOWS, FOLLOWS, WIDE]
    assert widget.rows[2]["there_note"] == "its products are cast down"


def test_without_rows_it_measures_the_cpu():
    widget = OpLookup()
    found = {row["name"]: row["here"] for row in widget.rows}
    assert len(found) > 80
    assert (found["linear"], found["softmax"], found["mse_loss"]) == (NARROW, FOLLOWS, WIDE)
    assert widget.heads[0].startswith("CPU: measured, torch 2.")


def test_the_state_is_json_and_keeps_the_order_of_the_rules(widget):
    state = json.loads(json.dumps(widget.book_state(), sort_keys=True))
    assert [rule["name"] for rule in state["rules"]] == list(RULES)
    assert (state["query"], state["rule"]) == ("", "")
    assert state["heads"] == ["CPU: measured, torch 2.13.0", "CUDA: documented"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "tpu"}, "device 'tpu' is not one of cpu, cuda"),
        ({"rule": "up"}, "rule 'up' is not one of narrow, wide, promote, follows, error, differs"),
    ],
)
def test_a_bad_argument_is_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        OpLookup(ROWS, **options)


def test_the_static_form_is_the_whole_table(widget):
    text = widget.static_html()
    assert "<th scope='row'>softmax</th><td>whatever comes in</td><td>casts to float32</td>" in text
    assert "<td>casts down</td><td>casts down (not in the docs, but in torch 2.13)</td>" in text
    assert text.count("scope='row'>") == len(ROWS)
    assert all(rule.label in text for rule in RULES.values())


def test_it_is_found_by_its_name_and_says_what_it_holds(widget):
    assert BookWidget.registry()["op_lookup"] is OpLookup
    widget.query = "norm"
    assert repr(widget) == "OpLookup(8 operations, query='norm', rule='')"
