"""What training_bytes.js needs for the bytes of a training step. torch is imported only where they are asked for."""

from collections import Counter

OPTIMIZERS = {
    "adamw": "AdamW",
    "adamw-8bit": "AdamW, 8-bit",
    "sgd-momentum": "SGD, momentum",
    "sgd": "SGD",
}
FACTS = ("architectures", "weights", "recipes", "optimizers", "nf4")


def training_facts() -> dict:
    """Return what `utils.cost.memory` knows as JSON: architectures, weights, recipes, optimizers and saved tensors.

    The adapters of a page are on all projections of a model: it has their sizes alone, and no names.
    """
    from utils.cost.memory import widget_data

    data = widget_data()
    return {
        **{name: data[name] for name in FACTS},
        "projections": {family: list(names.values()) for family, names in data["projections"].items()},
        "saved": {
            family: _saved_rows(table, data, names=set(data["projections"][family]))
            for family, table in data["saved"].items()
        },
    }


def _saved_rows(table: dict[str, list[dict]], data: dict, *, names: set[str]) -> dict[str, list[list]]:
    """Return what a family saves as [size, dtype, when, is it copies, count, is it logits]; equal rows are added up.

    `names`: of projections, which all have adapters if any has.
    """
    parts = {}
    for part, rows in table.items():
        counts = Counter()
        for row in rows:
            when = _without_names(row["when"], names)
            kinds = row["what"] == data["copies"], row["what"] == data["logits"]
            counts[row["size"], row["dtype"], when, *kinds] += row["count"]
        parts[part] = [[*row, count, is_logits] for (*row, is_logits), count in counts.items()]
    return parts


def _without_names(when: str, names: set[str]) -> str:
    """Return the conditions of a row with "frozen" for the names of projections, or nothing where that is said."""
    words = when.split()
    kept = [word for word in words if not names & set(word.split("|"))]
    if len(kept) < len(words) and not {"shared", "copied", "cast"} & set(kept):
        kept.append("frozen")
    return " ".join(kept)
