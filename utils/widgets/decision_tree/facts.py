"""What DecisionTree says: the questions on the way to a recipe, their answers, and the tables of its page.

The decision is that of `utils.cost.decide`, and again, in the page's language, of `dtDecide` in decide.js and of
`dtOutlook` in outlook.js; the sentences are those of words.js.
"""

from utils.cost.cards import CARDS
from utils.cost.decide import MOST, MOST_CARDS, RANK, TASKS, Decision, suited
from utils.widgets.decision_tree.symptoms import HERE, SYMPTOMS
from utils.widgets.shared.cost.decision_facts import decision_facts
from utils.widgets.shared.cost.training_facts import OPTIMIZERS
from utils.widgets.shared.words.amounts import bytes_text, few_digits

MEND = "mend"  # the fourth task: something is wrong
QUESTIONS = {  # of a lever, by the beginning of its name
    "the batch": "One text at a time, and the gradients added up?",
    "checkpointing": "Activations recomputed instead of kept, for up to a third more products?",
    "sharding": "Everything divided over your cards?",
    "8-bit Adam": "Adam's moments in 8 bits?",
    "bf16-true": "Everything in bfloat16, which loses small updates?",
    "LoRA": f"The weights frozen, and adapters of rank {RANK} trained on every linear layer?",
    "QLoRA": "The frozen weights in 4 bits (NF4), widened where they are used?",
    "8-bit weights": "The weights in 8 bits, widened where they are used?",
    "4-bit weights": "The weights in 4 bits, with a scale for each 32 of them?",
}
GENERATING = {"bf16-true": "Weights in bfloat16, with emulated products?"}  # where a question is another one
ITEMS = {
    "weights": "weights",
    "master": "master weights",
    "gradients": "gradients",
    "optimizer": "optimizer",
    "casts": "autocast's copies",
    "activations": "activations",
    "logits": "gradients of the logits",
    "cache": "keys and values",
}
CHAPTERS = {
    HERE: "this chapter",
    "training/master_weights": "Master weights",
    "numbers/limits": "Overflow, underflow, NaN",
    "numbers/stability": "Stable softmax, loss, norm and mask",
    "training/tensors": "Where real tensors live",
    "training/distilbert": "DistilBERT: what precision costs",
    "training/training_loop": "The loop, done right",
    "training/loss_scaling": "Loss scaling",
    "eight_bits/scaling_recipes": "Scaling recipes",
    "hardware/memory": "Memory",
    "hardware/tensor_cores": "Tensor cores and TF32",
    "training/autocast": "Autocast opened",
    "your_machine": "Your machine",
    "cookbook/nan_at_step_n": "Why is my loss NaN at step 3,000?",
    "cookbook/which_kernel": "Which kernel did my layer really run?",
    "practice/many_gpus": "Many GPUs",
}
LEFT_OUT = "A tenth of each card is left for what is not counted: temporaries, workspaces, the CUDA context."


def page_of(chapter: str) -> str:
    """Return the address of a chapter's page from the widget's own; empty for that itself."""
    return "" if chapter == HERE else f"../{chapter}.html"


def multiplies(card: str) -> str:
    """Say which 16-bit types a card multiplies by itself."""
    first = suited(CARDS[card], "train")[0]
    native = {"bf16-mixed": "bfloat16", "16-mixed": "float16, and bfloat16 by emulation"}
    return native.get(first, "no 16-bit type by itself")


def path(decision: Decision) -> list[list[str]]:
    """Return the questions and answers on the way to a decision."""
    first = suited(CARDS[decision.card], decision.task)[0]
    scaler = ", with a loss scaler" if first == "16-mixed" else ""
    fit = decision.taken == () and decision.fits
    answer = f"{bytes_text(decision.bare)} of {bytes_text(decision.room)}: {'yes' if fit else 'no'}."
    steps = [
        [
            f"Which type should the {CARDS[decision.card].label} multiply in?",
            f"{multiplies(decision.card)}: {first}{scaler}.",
        ],
        ["Does it fit, with a tenth to spare?", answer],
    ]
    own = {**QUESTIONS, **(GENERATING if decision.task == "generate" else {})}
    for pulled in decision.taken:
        question = next(text for begin, text in own.items() if pulled.lever.startswith(begin))
        steps.append([question, f"{bytes_text(pulled.total)}: {'it fits' if pulled.fits else 'not yet'}."])
    if not decision.fits:
        none = f"Over {MOST_CARDS:,} it would not: a smaller model."
        many = f"Over {decision.cards:,} (of 2, 4, 8 and so on)." if decision.cards else none
        steps.append(["Over how many cards would it fit?", many])
    return steps


def verdict(decision: Decision) -> str:
    """Return the decision in a sentence or two."""
    levers = "".join(f", {lever}" for lever in decision.levers)
    text = f"{decision.recipe}{levers}: {bytes_text(decision.total)} of {bytes_text(decision.room)}"
    if not decision.fits:
        return f"{text}, too much for one card."
    if decision.tokens_per_second is None:
        return f"{text}."
    rate = few_digits(decision.tokens_per_second)
    return f"{text}. At most {rate} tokens/s: {decision.bandwidth:,} GB/s over these bytes."


def make_facts() -> dict:
    """Return everything that the page needs to decide and to say how, as JSON values."""
    facts = decision_facts()
    return {
        **facts,
        "tasks": [[name, words] for name, words in TASKS.items()] + [[MEND, "debug a run"]],
        "names": [[name, label] for name, label in OPTIMIZERS.items()],
        "order": list(CARDS),
        "cards": {
            name: facts["cards"][name]
            | {
                "label": card.label,
                "multiplies": multiplies(name),
                "bandwidth": [board.roof.bandwidth if board.roof else None for board in card.boards],
            }
            for name, card in CARDS.items()
        },
        "most_cards": MOST_CARDS,
        "questions": [[begin, text] for begin, text in QUESTIONS.items()],
        "generating": GENERATING,
        "items": [[name, label] for name, label in ITEMS.items()],
        "symptoms": [
            [name, symptom.words, [[look, CHAPTERS[chapter], page_of(chapter)] for look, chapter in symptom.looks]]
            for name, symptom in SYMPTOMS.items()
        ],
        "most": MOST,
        "left_out": LEFT_OUT,
    }
