"""A value that has to be one of some: how every widget refuses another."""

from collections.abc import Collection


def one_of(value, options: Collection, what: str):
    """Return the value back.

    Raises: ValueError with `what` it is and all options, where it is not one of them.
    """
    if value not in options:
        raise ValueError(f"{what} {value!r} is not one of {', '.join(map(str, options))}")
    return value
