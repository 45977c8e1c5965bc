"""What a widget says of a value that is none of its options."""

import pytest

from utils.widgets.shared.choices import one_of


def test_an_option_comes_back():
    assert one_of("b", {"a": 1, "b": 2}, "letter") == "b"


@pytest.mark.parametrize(
    ("value", "options", "says"),
    [("c", {"a": 1, "b": 2}, "letter 'c' is not one of a, b"), (3, (1, 2), "letter 3 is not one of 1, 2")],
)
def test_another_value_is_refused_with_all_options(value, options, says):
    with pytest.raises(ValueError, match=f"^{says}$"):
        one_of(value, options, "letter")
