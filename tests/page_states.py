"""The states that widgets hand to a page, read from HTML."""

import html
import json
import re


def states_in(text: str) -> list[dict]:
    """Give the state of each widget in `text`, in order."""
    return [json.loads(html.unescape(state)) for state in re.findall(r'data-mp-state="([^"]*)"', text)]
