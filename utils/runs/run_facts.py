"""Results of a run for its record: facts, bytes, rates, thinned curves."""

from utils import measure
from utils.cost import flops
from utils.training.batches import Batch
from utils.training.training_loop import History, Trainer
from utils.workloads import models

CURVE, STEPS = 200, 500  # most points of the loss curve and of the step times that a record keeps
LARGEST = 2_000  # first steps whose largest gradient a record keeps


def collect_facts(trainer: Trainer, history: History) -> dict:
    """Return how the training went, and how the device carried out the recipe."""
    return {
        "steps": history.steps,
        "nan_step": history.nan_step,
        "skipped_steps": history.skipped,
        "validation": history.validation,
        "loss_scale": trainer.scaler.get_scale() if trainer.scaler.is_enabled() else None,
        "step_ms": measure.Timing(tuple(history.milliseconds)).median,
        "parameters": models.count_parameters(trainer.model),
        "adamw_kernel": trainer.recipe.adamw_kernel(trainer.device),
        "emulated": trainer.recipe.emulated(trainer.device),
        "same_as": trainer.recipe.same_as(trainer.device),
        "remark": trainer.recipe.remark(trainer.device),
    }


def measure_memory(trainer: Trainer, saved: measure.SavedBytes) -> dict:
    """Return bytes: of the tensors after the last step, and of what one full batch saved for its backward pass."""
    peak, parameters = measure.peak(trainer.device), list(trainer.model.parameters())
    return {
        "weights": measure.tensor_bytes(parameters),
        "gradients": measure.tensor_bytes(parameter.grad for parameter in parameters),
        "optimizer": measure.tensor_bytes(measure.optimizer_tensors(trainer.optimizer)),
        "saved_activations": saved.total,
        "saved_by_dtype": {str(dtype).removeprefix("torch."): count for dtype, count in saved.by_dtype.items()},
        "peak_allocated": peak.allocated,
        "peak_reserved": peak.reserved,
    }


def count_saved_bytes(trainer: Trainer, batch: Batch) -> measure.SavedBytes:
    """Count the bytes that the forward pass of a batch keeps for the backward pass.

    Attention is eager, so the count is the same on every device.
    """
    usual = trainer.model.config._attn_implementation
    trainer.model.set_attn_implementation("eager")
    try:
        with trainer.recipe.on(trainer.device), measure.SavedBytes(trainer.model) as saved:
            trainer.loss(batch.to(trainer.device))
    finally:
        trainer.model.set_attn_implementation(usual)
    return saved


def measure_rates(trainer: Trainer, history: History) -> dict:
    """Return tokens and FLOPs per second of the steps alone, without the time between them.

    `tokens_per_second` leaves padding out, `padded_tokens_per_second` counts it; `padding` is its share of all tokens.
    `operations` are the FLOPs of the matrix products of an average step, `tflops` their rate. `matmul_tflops` is what
    one large product reaches in the dtype of the recipe, measured now; `share` is `tflops` / `matmul_tflops`.
    """
    seconds, config = sum(history.milliseconds) / 1e3, trainer.model.config
    sizes = [(*map(int, size.split("x")), count) for size, count in history.sizes.items()]
    padded = sum(rows * length * count for rows, length, count in sizes)  # tokens: count batches of [rows, length]
    operations = sum(flops.count_step_flops(config, rows, length) * count for rows, length, count in sizes)
    with trainer.recipe.on(trainer.device):
        limit = measure.matmul_tflops(trainer.recipe.arithmetic, device=trainer.device)
    rate = measure.tflops(operations, 1e3 * seconds, limit=limit)  # milliseconds
    return {
        "tokens_per_second": history.tokens / seconds,
        "padded_tokens_per_second": padded / seconds,
        "padding": 1 - history.tokens / padded,
        "operations": operations / history.steps,
        "tflops": rate.value,
        "matmul_tflops": rate.limit,
        "share": rate.share,
    }


def thin_curves(history: History) -> dict:
    """Thin the curves to what a figure needs: [step, loss] and [step, milliseconds] at evenly spaced steps."""
    return {
        "loss": _thin(history.losses, CURVE, digits=4),
        "step_ms": _thin(history.milliseconds, STEPS, digits=2),
        "loss_scale": [list(change) for change in history.scales],
    }


def _thin(values: list[float], most: int, *, digits: int) -> list[list]:
    stride = max(1, -(-len(values) // most))  # rounded up, so that at most `most` are left
    return [[step, round(value, digits)] for step, value in list(enumerate(values, 1))[::stride]]
