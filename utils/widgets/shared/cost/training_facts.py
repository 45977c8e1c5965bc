"""What training_bytes.js needs for the bytes of a training step. torch is imported only where they are asked for."""

from collections import Counter

OPTIMIZERS = {
    "adamw": "AdamW",
    "adamw-8bit": "AdamW, 8-bit",
    "sgd-momentum": "SGD, momentum",
    "sgd": "SGD",
}


def training_facts() -> dict:
    """Return what `utils.cost.memory` knows as JSON: architectures, weights, recipes, optimizers and saved tensors."""
    from utils.cost.memory import widget_data

    data = widget_data()
    copies = data["copies"]
    return {
        **{name: data[name] for name in ("architectures", "weights", "recipes", "optimizers")},
        "saved": {family: _saved_rows(table, copies=copies) for family, table in data["saved"].items()},
    }


def _saved_rows(table: dict[str, list[dict]], *, copies: str) -> dict[str, list[list]]:
    """Return what a family saves as [size, dtype, when, whether these are `copies`, count]; equal rows are added up."""
    parts = {}
    for part, rows in table.items():
        counts = Counter()
        for row in rows:
            counts[row["size"], row["dtype"], row["when"], row["what"] == copies] += row["count"]
        parts[part] = [[*row, count] for row, count in counts.items()]
    return parts
