"""The table of a static form: who names its rows, and what a page could take for markup."""

from utils.widgets.shared.static_table import static_table


def test_the_first_text_of_a_row_names_it_and_every_text_is_escaped():
    assert static_table("mp-x-static", ("what", "a & b"), [("<1", "2", "3"), ("none",)]) == (
        "<table class='mp-x-static'><thead><tr><th scope='col'>what</th><th scope='col'>a &amp; b</th></tr></thead>"
        "<tbody><tr><th scope='row'>&lt;1</th><td>2</td><td>3</td></tr><tr><th scope='row'>none</th></tr></tbody>"
        "</table>"
    )
