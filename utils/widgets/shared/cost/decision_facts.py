"""What decide.js needs to decide as `utils.cost.decide` does."""

from utils.cost.architectures import NAMED
from utils.cost.cards import CARDS
from utils.cost.decide import ADAPTERS, BITS, RANK, TOKENS
from utils.widgets.shared.cost.training_facts import training_facts

UNMET = {"eager", "full"}  # a decision counts SDPA and padded texts: these conditions never hold


def decision_facts() -> dict:
    """Return what a page needs to decide as `utils.cost.decide` does, as JSON values."""
    facts = training_facts()
    saved = {
        family: {part: [row for row in rows if _can_hold(row[2])] for part, rows in parts.items()}
        for family, parts in facts["saved"].items()
    }
    return {
        **facts,
        "saved": saved,
        "models": list(NAMED),  # the page's state is written with sorted keys
        "cards": {
            name: {
                "memory": list(card.memory),
                "device": card.device,
                "support": card.support,
            }
            for name, card in CARDS.items()
        },
        "bits": [[name, bits] for name, bits in BITS.items()],
        "tokens": TOKENS,
        "adapters": [[name, method] for name, method in ADAPTERS.items()],
        "rank": RANK,
    }


def _can_hold(when: str) -> bool:
    """Return whether a decision can meet the conditions of a row: all words, of `a|b` one of them."""
    return not any(set(words.split("|")) <= UNMET for words in when.split())
