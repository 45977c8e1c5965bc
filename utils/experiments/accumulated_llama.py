"""Run a LLaMA with each accumulator, and add the sums of a large one, which are long enough to tell them apart.

A trained model predicts a text once with each accumulator: `measure_rows` says how far its logits move, and what that
does to its choices and its perplexity. The sums of a model that trains in seconds are short, so `measure_long_sums`
adds those of LLaMA-7B.
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
DRAWN = 16  # rows and columns of a product of `draw_long_products`


@dataclass(frozen=True)
class AccumulatorRow:
    """One accumulator: what it changes in the logits of a model, and in its predictions.

    `largest` and `mean` are of |logit - logit of the model in float32|; `kl`, in nats, and `top1` as `llama.Agreement`
    with the model in float32; `perplexity` per token. Compare each row with that of exact sums with the same operands:
    the difference is the accumulator's. Below about that row's mean nothing can be told, because one last bit can
    change how a later operand is rounded: sums that differ only there move the logits by nearly as much as rounding the
    operands does.
    """

    accumulator: str
    operands: str
    largest: float
    mean: float
    kl: float
    top1: float
    perplexity: float


def measure_rows(model: nn.Module, ids: torch.Tensor, accumulators: Iterable[Accumulator]) -> list[AccumulatorRow]:
    """Let a LLaMA predict the tokens `ids`, int64 [N], with every accumulator, and return a row for each.

    The first rows are the model "as it is" in float32 and "in float64", and exact sums for each format of operands. All
    runs predict the same tokens, so small differences count.
    """
    accumulators = list(accumulators)
    ideal = [exact(fmt) for fmt in dict.fromkeys(accumulator.operands for accumulator in accumulators)]
    reference = _Once(model)
    return [
        _measure_row("as it is", "float32", reference, reference, ids),
        _measure_row("in float64", "float64", _Once(copy.deepcopy(model).double()), reference, ids),
        *(
            _measure_row(accumulator.name, accumulator.operands.name, _Once(model, accumulator), reference, ids)
            for accumulator in (*ideal, *accumulators)
        ),
    ]


class _Once(nn.Module):
    """A model that predicts each batch once, with an accumulator, and keeps its logits for the next call."""

    def __init__(self, model: nn.Module, accumulator: Accumulator | None = None):
        super().__init__()
        self.model, self.accumulator = model, accumulator
        self.predicted: dict[bytes, tuple[torch.Tensor, torch.Tensor]] = {}  # logits [B, S, V], mask [B, S]
        self.training = model.training  # `llama` leaves it as it was

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def config(self):
        return self.model.config

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        key = input_ids.cpu().numpy().tobytes()
        if key not in self.predicted:
            logits = self._predict(input_ids=input_ids, attention_mask=attention_mask)
            self.predicted[key] = logits, attention_mask.bool()
        return SimpleNamespace(logits=self.predicted[key][0])

    def _predict(self, **batch) -> torch.Tensor:
        if self.accumulator is None:
            return self.model(**batch).logits
        with Accumulated(self.accumulator):
            return self.model(**batch).logits

    @property
    def logits(self) -> torch.Tensor:
        """All logits so far without padding, float64 [M, V]."""
        return torch.cat([logits[mask] for logits, mask in self.predicted.values()]).double()


def _measure_row(name: str, operands: str, once: _Once, reference: _Once, ids: torch.Tensor) -> AccumulatorRow:
    perplexity = llama.perplexity(once, ids)
    agreement = llama.agreement(once, reference, ids)
    off = (once.logits - reference.logits).abs()
    return AccumulatorRow(name, operands, float(off.max()), float(off.mean()), agreement.kl, agreement.top1, perplexity)


def measure_cancellation(a: torch.Tensor, b: torch.Tensor) -> float:
    """Return || |A| |B| || / ||AB|| of a [M, K] and b [K, N]: 1 where all terms of a sum have one sign."""
    a, b = a.double(), b.double()
    return float((a.abs() @ b.abs()).norm() / (a @ b).norm())


@dataclass(frozen=True)
class LongSum:
    """One accumulator on one product: K, how much its terms cancel, and two relative errors in the Frobenius norm.

    `cancellation` is what `measure_cancellation` returns. `error` is the accumulator's, relative to exact sums of the
    same operands; `from_operands` is that of rounding these operands before.
    """

    product: str
    accumulator: str
    count: int
    cancellation: float
    error: float
    from_operands: float


def draw_long_products(seed: int = 0) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Draw the factors, a [16, K] and b [K, 16] in float32, of four sums that a LLaMA-7B has.

    The input of a layer is normal after the norm, and the weights are those of a model before training. So gate and up
    of the network are normal too, of deviation spread * sqrt(width): no product of 4,096 x 11,008 is needed to draw
    them. Attention spreads over a long text; its values have mean 0 or, like trained ones, a mean of their own.
    """
    shape, draw = LLAMAS["full"], torch.Generator().manual_seed(seed)

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=draw)

    deviation = shape.spread * math.sqrt(shape.width)
    gate, up = (deviation * normal(DRAWN, shape.hidden) for _ in range(2))
    head = shape.width // shape.heads
    scores = normal(DRAWN, head) @ normal(head, POSITIONS) / math.sqrt(head)  # q k^T / sqrt(d): [16, S]
    values = normal(POSITIONS, DRAWN)
    x = normal(DRAWN, shape.width)
    return {
        "down projection": (F.silu(gate) * up, shape.spread * normal(shape.hidden, DRAWN)),
        "attention, values of mean 0": (scores.softmax(-1), values),
        "attention, values of mean 1": (scores.softmax(-1), values + 1),
        "squares of a norm": (x.square(), torch.ones(shape.width, 1)),
    }


def measure_long_sums(accumulators: Iterable[Accumulator], *, seed: int = 0) -> list[LongSum]:
    """Return the errors of each accumulator on `draw_long_products`, with E4M3 operands scaled as in `Accumulated`."""
    sums = []
    accumulators = list(accumulators)
    for name, (a, b) in draw_long_products(seed).items():
        full = a.double() @ b.double()
        cancels = measure_cancellation(a, b)
        for accumulator in accumulators:
            (left, scale_a), (right, scale_b) = (narrowed(x, accumulator.operands) for x in (a, b))  # x * scale
            ideal = left.double() @ right.double()  # [M, K] @ [K, N] -> [M, N]
            error = float((accumulator.matmul(left, right).double() - ideal).norm() / ideal.norm())
            from_operands = float((ideal / (scale_a * scale_b) - full).norm() / full.norm())
            sums.append(LongSum(name, accumulator.name, a.shape[1], cancels, error, from_operands))
    return sums
