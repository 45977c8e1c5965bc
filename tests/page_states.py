"""The states that widgets hand to a page, read from HTML."""

import html
import json
import re


def states_in(text: str) -> list[dict]:
    """Return the state of each widget in `text`, in order.

    Raises: ValueError where a state holds NaN or an infinity, which no browser reads.
    """
    found = re.findall(r'data-mp-state="([^"]*)"', text)
    return [json.loads(html.unescape(state), parse_constant=_no_json) for state in found]


def state_of(widget) -> dict:
    """Return the state that a page gets of `widget`."""
    [state] = states_in(widget._repr_mimebundle_()[0]["text/html"])
    return state


def _no_json(name):
    raise ValueError(f"{name} is not JSON: hand null to the page")
