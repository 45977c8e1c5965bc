"""From what a run shows to where to look: the chapters of the book as a table of symptoms."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Symptom:
    """What a run shows, and what to look at, in that order: pairs of a look and of a chapter, by its path."""

    words: str
    looks: tuple[tuple[str, str], ...]


HERE = "practice/debugging"
SYMPTOMS = {
    "nan at once": Symptom(
        "NaN in the first or the second step",
        (
            ("The hunter with operations on, over two steps: is it the forward pass or the update?", HERE),
            (
                "Update, float16: the epsilon of Adam is 0. Master weights, or an epsilon that the dtype has.",
                "training/master_weights",
            ),
            ("Forward pass: a score, a mask or an epsilon beyond the range of the dtype.", "numbers/limits"),
            ("The same step in float32: still NaN? Then it is not the precision.", HERE),
        ),
    ),
    "nan later": Symptom(
        "NaN after many good steps",
        (
            ("The hunter with hooks in every step; then with operations, from one step before.", HERE),
            ("Outside the modules: a logarithm, a root or a quotient in the loss.", "numbers/stability"),
            ("Inside: does the largest activation grow? Then range is what is missing: bfloat16.", "training/tensors"),
            ("The loss rose before: the learning rate, whatever the dtype.", "training/distilbert"),
        ),
    ),
    "scale falls": Symptom(
        "the loss scale falls and falls",
        (
            ("Is the loss itself NaN? Then no scale will help: hunt as for NaN.", HERE),
            (
                "Is zero_grad in every step? An infinity that stays in .grad halves the scale each time.",
                "training/training_loop",
            ),
            ("Is the loss in float32 before it is scaled?", "training/loss_scaling"),
        ),
    ),
    "level": Symptom(
        "the loss stays level, and nothing is NaN",
        (
            ("The order: unscale_, clip, step, update.", "training/training_loop"),
            ("The share of gradients that are 0, by layer.", "training/tensors"),
            ("The share of updates that are lost, by layer.", "training/master_weights"),
            ("Does the learning rate move at all?", "training/loss_scaling"),
        ),
    ),
    "worse": Symptom(
        "it learns, but less than in float32",
        (
            ("Several seeds of both: is there a difference at all?", "training/distilbert"),
            ("The share of updates that are lost.", "training/master_weights"),
            ("Logits and gradients of step 1 against float32: which layer is too far off?", HERE),
            ("FP8: do the scales move, and how many values saturate?", "eight_bits/scaling_recipes"),
        ),
    ),
    "jump": Symptom(
        "the loss jumps where a run was resumed",
        (
            (
                "Is everything in the checkpoint: moments, master weights, loss scale, amax history?",
                "training/training_loop",
            ),
            ("The dtype after loading: a bfloat16 checkpoint loads as bfloat16.", "training/master_weights"),
        ),
    ),
    "memory": Symptom(
        "out of memory",
        (
            ("The ledger, predicted and measured: what is the largest item?", "hardware/memory"),
            ("Ask for a recipe here: what would fit?", HERE),
        ),
    ),
    "slow": Symptom(
        "16 bits are no faster",
        (
            ("Does the device multiply that type, or emulate it?", "your_machine"),
            ("Are the products large enough, their sizes multiples of 8?", "hardware/tensor_cores"),
            ("What is cast again and again?", "training/autocast"),
        ),
    ),
}
