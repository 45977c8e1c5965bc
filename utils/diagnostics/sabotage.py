"""What can be done to a healthy training so that it goes wrong: one function a fault of `utils.diagnostics.faults`."""

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from utils.training.batches import Batch
from utils.training.float8_linear import Float8Linear
from utils.training.training_loop import Trainer

CPU = torch.device("cpu")


@dataclass
class FaultyTraining:
    """A training that is ready to begin: `trainer.step(batch)` for each of `batches`, inside `on()`."""

    trainer: Trainer
    batches: list[Batch]

    def on(self) -> contextlib.AbstractContextManager:
        """Return the context of the recipe, which each step needs around it."""
        return self.trainer.recipe.on(self.trainer.device)


def log_of_zero(case: FaultyTraining) -> None:
    """Binary cross-entropy as the formula stands, in the dtype of the logits."""

    def loss(batch: Batch) -> torch.Tensor:
        with case.trainer.recipe.autocast(CPU):
            logits = case.trainer.model(input_ids=batch.ids, attention_mask=batch.mask).logits
        p, y = torch.sigmoid(logits[:, 1] - logits[:, 0]), batch.labels
        return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()

    case.trainer.loss = loss


def bias_of_the_keys(case: FaultyTraining) -> None:
    """A large bias of the keys: a softmax does not notice it, since it adds the same to all scores of a row."""
    attention = case.trainer.model.distilbert.transformer.layer[1].attention
    with torch.no_grad():
        attention.k_lin.bias += 2.0**14 * torch.sign(attention.q_lin.weight.sum(1))


def added_mask(case: FaultyTraining) -> None:
    """A mask that is added, and a last batch that is filled up with an empty row."""

    def attend(module, query, key, value, mask, **options):
        scores = query @ key.transpose(2, 3) * key.shape[-1] ** -0.5
        scores = scores + (mask < -1).to(scores.dtype) * -1e9
        return (scores.softmax(-1).to(value.dtype) @ value).transpose(1, 2), None

    _attend(case.trainer.model, attend)
    last = case.batches[-1]
    last.mask[-1] = 0


def _attend(model: nn.Module, attend: Callable) -> None:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register("planted", attend)
    AttentionMaskInterface.register("planted", eager_mask)
    model.set_attn_implementation("planted")


def twins(case: FaultyTraining) -> None:
    """A term that pulls the answers to neighbours in a batch apart, and a batch with the same text twice."""
    plain = case.trainer.loss

    def loss(batch: Batch) -> torch.Tensor:
        with case.trainer.recipe.autocast(CPU):
            hidden = case.trainer.model.distilbert(input_ids=batch.ids, attention_mask=batch.mask)[0][:, 0].float()
        distance = (hidden[1:] - hidden[:-1]).square().sum(-1).sqrt()
        return plain(batch) - 1e-3 * distance.mean()

    case.trainer.loss = loss
    batch = case.batches[6]
    batch.ids[3], batch.mask[3] = batch.ids[4], batch.mask[4]


def epsilon_of_a_norm(case: FaultyTraining) -> None:
    """A norm in the dtype of its input with an epsilon that float16 does not have, and zeros for padding."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-8))

    model = case.trainer.model
    for module in model.modules():
        if type(module).__name__ == "LlamaRMSNorm":
            module.forward = forward.__get__(module)
    with torch.no_grad():
        model.model.embed_tokens.weight[0] = 0


def clip_first(case: FaultyTraining) -> None:
    """Gradients that are clipped while they still carry the loss scale."""
    trainer = case.trainer

    def step(batch: Batch) -> tuple[torch.Tensor, bool]:
        trainer.optimizer.zero_grad()
        loss = trainer.loss(batch)
        trainer.scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(trainer.model.parameters(), trainer.clip)
        scale = trainer.scaler.get_scale()
        trainer.scaler.step(trainer.optimizer)
        trainer.scaler.update()
        if taken := trainer.scaler.get_scale() >= scale:
            trainer.scheduler.step()
        return loss.detach(), taken

    trainer.step = step


def stale_scale(case: FaultyTraining) -> None:
    """Delayed scaling that goes on, half way, with the scales of smaller activations, and never moves them again."""
    step, begin = case.trainer.step, len(case.batches) // 2
    taken = itertools.count()

    def resumed(batch: Batch) -> tuple[torch.Tensor, bool]:
        if next(taken) == begin:
            for module in case.trainer.model.modules():
                if isinstance(module, Float8Linear):
                    module.scale_x *= 64
                    module.eval()  # in which an amax history stands still
        return step(batch)

    case.trainer.step = resumed


def nothing(case: FaultyTraining) -> None:
    """The recipe is the fault."""
