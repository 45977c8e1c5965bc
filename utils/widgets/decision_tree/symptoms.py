"""From what a run shows to what to check: the chapters of the book as a table of symptoms."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Symptom:
    """What a run shows, and what to check, in that order: pairs of a check and of a chapter, by its path."""

    words: str
    looks: tuple[tuple[str, str], ...]


HERE = "practice/debugging"
SYMPTOMS = {
    "nan at once": Symptom(
        "NaN in the first or second step",
        (
            ("Run find_birth on that batch: is it the forward pass, the loss, the backward pass or the update?", HERE),
            ("Forward pass: a score, a mask or an epsilon that the dtype cannot represent.", "numbers/limits"),
            ("Update in float16: Adam's epsilon of 1e-8 is 0. Keep float32 master weights.", "training/master_weights"),
            ("Run the same step in float32. Still NaN? Then precision is probably not the cause.", HERE),
        ),
    ),
    "nan later": Symptom(
        "NaN after many good steps",
        (
            ("Replay the failing step from a checkpoint, and name the module.", "cookbook/nan_at_step_n"),
            ("Outside the modules: a logarithm, a root or a quotient in the loss.", "numbers/stability"),
            ("Inside a module: does the largest activation grow? Bfloat16 has more range.", "training/tensors"),
            (
                "Did the gradient norm before clipping rise first? Lower the learning rate, in any dtype.",
                "training/training_loop",
            ),
        ),
    ),
    "scale falls": Symptom(
        "the loss scale keeps falling",
        (
            ("Is the loss itself NaN? Then no scale helps: find the birth.", HERE),
            (
                "Is zero_grad called in every step? An infinity left in .grad halves the scale each time.",
                "training/training_loop",
            ),
            ("Is the loss in float32 before it is scaled?", "training/loss_scaling"),
        ),
    ),
    "level": Symptom(
        "the loss stays flat, and nothing is NaN",
        (
            ("Is the order unscale_, clip, step, update?", "training/training_loop"),
            ("What share of the gradients is 0, by layer?", "training/tensors"),
            ("What share of the updates is lost, by layer?", "training/master_weights"),
            ("Does the learning rate change at all?", "training/training_loop"),
        ),
    ),
    "worse": Symptom(
        "it learns, but less than in float32",
        (
            ("Do several seeds of each show a difference at all?", "training/distilbert"),
            ("What share of the updates is lost?", "training/master_weights"),
            ("Compare the first step with float32: which layer is too far off?", HERE),
            ("FP8: do the scales follow the data, and what share of it saturates?", "eight_bits/scaling_recipes"),
        ),
    ),
    "jump": Symptom(
        "the loss jumps where a run was resumed",
        (
            (
                "Does the checkpoint hold moments, master weights, loss scale and amax history?",
                "training/training_loop",
            ),
            ("Which dtype do the weights have after loading? It is the checkpoint's.", "training/master_weights"),
        ),
    ),
    "unstable": Symptom(
        "stable on few GPUs, unstable on many",
        (
            ("In which dtype do the GPUs add their gradients? Use float32.", "practice/many_gpus"),
            ("In which dtype are the gradients of micro-batches added?", "training/master_weights"),
        ),
    ),
    "memory": Symptom(
        "out of memory",
        (
            ("What is the largest item of the ledger?", "hardware/memory"),
            ("What would fit? Choose a task above.", HERE),
        ),
    ),
    "slow": Symptom(
        "16 or 8 bits are no faster",
        (
            ("Does the GPU compute in that dtype, or emulate it?", "your_machine"),
            ("Which kernels ran, and in which dtype?", "cookbook/which_kernel"),
            ("Are the products large enough, with sizes that are multiples of 8 (FP8: 16)?", "hardware/tensor_cores"),
            ("What is cast again and again?", "training/autocast"),
        ),
    ),
}
