"""What decide.js needs to decide as `utils.cost.decide` does."""

from utils.cost.architectures import NAMED
from utils.cost.cards import CARDS
from utils.cost.decide import BITS, MOST_CARDS, TOKENS
from utils.widgets.shared.cost.training_facts import training_facts


def decision_facts() -> dict:
    """Return what a page needs to decide as `utils.cost.decide` does, as JSON values."""
    return {
        **training_facts(),
        "models": list(NAMED),  # the page's state is written with sorted keys
        "cards": {
            name: {
                "memory": list(card.memory),
                "bandwidth": [board.roof.bandwidth if board.roof else None for board in card.boards],
                "device": card.device,
                "support": card.support,
            }
            for name, card in CARDS.items()
        },
        "bits": [[name, bits] for name, bits in BITS.items()],
        "tokens": TOKENS,
        "most_cards": MOST_CARDS,
    }
