"""BookWidget: one source for notebooks and pages, stable outputs, and the table of formats for JavaScript."""

import json
import re

import pytest
import traitlets

from tests.page_states import states_in
from utils.formats import FORMATS
from utils.widgets.bit_flip import BitFlip
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.modules import WIDGETS
from utils.widgets.shared.numbers.formats import FILE, format_label, format_row, table_source


class Dial(BookWidget):
    """The smallest widget: one trait, no files."""

    turn = traitlets.Int(3).tag(sync=True)

    @classmethod
    def esm_source(cls):
        return "export default {};"

    @classmethod
    def css_source(cls):
        return ""


def test_the_module_needs_no_other_file_and_no_network():
    source = BitFlip.esm_source()
    assert not re.search(r"^\s*import\b|\bimport\(|https?://|fetch\(", source, flags=re.MULTILINE)


def test_the_table_of_formats_in_the_page_is_that_of_python():
    """After a change: python -m utils.widgets.shared.numbers.formats"""
    assert FILE.read_text("utf8") == table_source()


@pytest.mark.parametrize("name", FORMATS)
def test_the_page_gets_each_format_as_python_has_it(name):
    fmt = FORMATS[name]
    row = json.loads(re.search(rf"^  {name}: (.*),$", FILE.read_text("utf8"), flags=re.MULTILINE)[1])
    assert row == format_row(fmt)
    assert (int(row["max_code"], 16), row["bits"], row["emin"], row["emax"]) == (
        fmt.max_code,
        fmt.bits,
        fmt.emin,
        fmt.emax,
    )


def test_formats_have_their_names_in_prose():
    assert [format_label(FORMATS[name]) for name in FORMATS] == [
        "float64",
        "float32",
        "TF32",
        "float16",
        "bfloat16",
        "E4M3",
        "E5M2",
        "E4M3FNUZ",
        "E5M2FNUZ",
        "E8M0",
        "E3M2",
        "E2M3",
        "E2M1",
    ]


def test_the_registry_has_each_widget_once_however_many_instances_there_are():
    BitFlip(), BitFlip()
    assert BookWidget.registry()["bit_flip"] is BitFlip
    assert Dial not in BookWidget.registry().values()
    assert all((WIDGETS / name / "widget.js").exists() for name in BookWidget.registry())


def test_the_output_holds_the_state_a_static_form_and_a_stable_text():
    widget = Dial()
    data, _ = widget._repr_mimebundle_()
    assert data["text/plain"] == "Dial(turn=3)"
    assert states_in(data["text/html"]) == [{"turn": 3}]
    assert data["text/html"].startswith('<div class="mp-widget" data-mp-widget=')
    assert "Dial(turn=3)" in data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_two_equal_widgets_have_the_same_page_output():
    assert BitFlip()._repr_mimebundle_()[0]["text/html"] == BitFlip()._repr_mimebundle_()[0]["text/html"]


def test_a_notebook_gets_the_same_module_as_the_page():
    state = BitFlip().get_state()
    assert state["_esm"] == BitFlip.esm_source()
    assert state["_css"] == BitFlip.css_source()


def test_two_widgets_share_no_class_but_that_of_a_wrong_input():
    """A page loads the style sheets of all its widgets, so a rule of one must not reach into another."""
    users = {}
    for path in WIDGETS.glob("*/widget.css"):
        for name in set(re.findall(r"\.(mp-[a-z0-9-]+)", path.read_text("utf8"))):
            users.setdefault(name, set()).add(path.parent.name)
    shared = set(re.findall(r"\.(mp-[a-z0-9-]+)", (WIDGETS / "shared/page/controls.css").read_text("utf8")))
    assert {name for name, owners in users.items() if len(owners) > 1} - shared == {"mp-wrong"}
