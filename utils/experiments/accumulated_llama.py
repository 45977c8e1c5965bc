"""What a LLaMA makes of each accumulator, and which of its sums are long enough for a difference.

A trained model answers once for each accumulator: `rows` says how far its logits go, and what that does to its choices
and its perplexity. The sums of a model that trains in seconds are short, so `long_sums` adds those of a large one.
"""

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

from utils import llama
from utils.emulation.accumulators import Accumulator, exact
from utils.emulation.model_accumulator import Accumulated, narrowed
from utils.workloads.models import LLAMAS

POSITIONS = 8_192  # of a long text
DRAWN = 16  # rows and columns of a product of `long_products`


@dataclass(frozen=True)
class Row:
    """One accumulator: what it changes in the logits of a model, and in its predictions.

    `largest` and `mean` are of |logit - logit of the model in float32|; `kl`, in nats, and `top1` as `llama.Agreement`
    with the model in float32; `perplexity` per token. What the accumulator adds shows beside the row of exact sums with
    the same operands. It shows from about that row's mean on: one last bit turns a later rounding of an operand
    around, so sums that differ only there make logits differ by nearly as much as rounding the operands does.
    """

    accumulator: str
    operands: str
    largest: float
    mean: float
    kl: float
    top1: float
    perplexity: float


def rows(model: nn.Module, ids: torch.Tensor, ones: Iterable[Accumulator]) -> list[Row]:
    """Let a LLaMA predict the tokens `ids`, int64 [N], with every accumulator, and return a row for each.

    The first rows are the model "as it is" in float32 and "in float64", and exact sums for each format of operands. All
    runs predict the same tokens, so small differences count.
    """
    ones = list(ones)
    ideal = [exact(fmt) for fmt in dict.fromkeys(one.operands for one in ones)]
    reference = _Once(model)
    found = [_row("as it is", "float32", reference, reference, ids)]
    found.append(_row("in float64", "float64", _Once(copy.deepcopy(model).double()), reference, ids))
    found += [_row(one.name, one.operands.name, _Once(model, one), reference, ids) for one in (*ideal, *ones)]
    return found


class _Once(nn.Module):
    """A model that predicts each batch once, in an accumulator, and repeats what it said when it is asked again."""

    def __init__(self, model: nn.Module, one: Accumulator | None = None):
        super().__init__()
        self.model, self.one, self.said = model, one, {}
        self.training = model.training  # as `llama` finds it, it leaves it

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def config(self):
        return self.model.config

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        key = input_ids.cpu().numpy().tobytes()
        if key not in self.said:
            self.said[key] = self._predict(input_ids=input_ids, attention_mask=attention_mask), attention_mask.bool()
        return SimpleNamespace(logits=self.said[key][0])

    def _predict(self, **batch) -> torch.Tensor:
        if self.one is None:
            return self.model(**batch).logits
        with Accumulated(self.one):
            return self.model(**batch).logits

    @property
    def logits(self) -> torch.Tensor:
        """All that was said, [M, V] in float64, without padding."""
        return torch.cat([logits[mask] for logits, mask in self.said.values()]).double()


def _row(name: str, operands: str, once: _Once, reference: _Once, ids: torch.Tensor) -> Row:
    perplexity = llama.perplexity(once, ids)
    agreement = llama.agreement(once, reference, ids)
    off = (once.logits - reference.logits).abs()
    return Row(name, operands, float(off.max()), float(off.mean()), agreement.kl, agreement.top1, perplexity)


def cancellation(a: torch.Tensor, b: torch.Tensor) -> float:
    """Return ||(|A| |B|)|| / ||AB|| of a [M, K] and b [K, N]: 1 where no term has another's opposite sign."""
    a, b = a.double(), b.double()
    return float((a.abs() @ b.abs()).norm() / (a @ b).norm())


@dataclass(frozen=True)
class LongSum:
    """One accumulator on one product: K, how much its terms cancel, and two errors, relative and of Frobenius.

    `cancellation` as the function of that name has it. `error` is the accumulator's, beside exact sums of the same
    operands; `from_operands` is what rounding these has done before.
    """

    product: str
    accumulator: str
    count: int
    cancellation: float
    error: float
    from_operands: float


def long_products(seed: int = 0) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Draw the factors, a [16, K] and b [K, 16] in float32, of four sums that a LLaMA-7B has.

    What enters a layer is normal after the norm, and weights are those of a model before training. So gate and up of
    the network are normal too, of deviation spread * sqrt(width), without a product of 4,096 x 11,008 to tell so.
    Attention spreads over a long text; its values have mean 0 or, as trained ones come near to, a mean of their own.
    """
    shape, draw = LLAMAS["full"], torch.Generator().manual_seed(seed)

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=draw)

    deviation = shape.spread * math.sqrt(shape.width)
    gate, up = (deviation * normal(DRAWN, shape.hidden) for _ in range(2))
    head = shape.width // shape.heads
    scores = normal(DRAWN, head) @ normal(head, POSITIONS) / math.sqrt(head)
    values = normal(POSITIONS, DRAWN)
    x = normal(DRAWN, shape.width)
    return {
        "down projection": (F.silu(gate) * up, shape.spread * normal(shape.hidden, DRAWN)),
        "attention, values of mean 0": (scores.softmax(-1), values),
        "attention, values of mean 1": (scores.softmax(-1), values + 1),
        "squares of a norm": (x.square(), torch.ones(shape.width, 1)),
    }


def long_sums(ones: Iterable[Accumulator], *, seed: int = 0) -> list[LongSum]:
    """Return how each accumulator does on each of `long_products`; E4M3 operands are scaled as `Accumulated` does."""
    found = []
    for name, (a, b) in long_products(seed).items():
        full = a.double() @ b.double()
        cancels = cancellation(a, b)
        for one in ones:
            (left, scale_a), (right, scale_b) = (narrowed(x, one.operands) for x in (a, b))
            ideal = left.double() @ right.double()
            error = float((one.matmul(left, right).double() - ideal).norm() / ideal.norm())
            lost = float((ideal / (scale_a * scale_b) - full).norm() / full.norm())
            found.append(LongSum(name, one.name, a.shape[1], cancels, error, lost))
    return found
