"""The operations of `utils.diagnostics.autocast_table`: those that people meet in networks, each with one tiny call."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F


class Inputs:
    """Makes the inputs of one call: floating ones by calling it, whole numbers by `index`; their values are all fixed.

    The n-th floating input has the dtype `dtypes[n]`, and those past its end have the last.
    """

    def __init__(self, device: torch.device, dtypes: tuple[torch.dtype, ...]):
        self.device, self.dtypes, self.made = device, dtypes, 0

    def __call__(self, *shape: int) -> torch.Tensor:
        """Return a floating tensor of this shape, with values from 0.1 to 0.9."""
        x = torch.linspace(0.1, 0.9, math.prod(shape), device=self.device, dtype=torch.float32)
        return self._cast(x.reshape(shape))

    def matrix(self, n: int) -> torch.Tensor:
        """Return an n by n matrix that can be inverted and factored."""
        return self._cast(2 * torch.eye(n, device=self.device, dtype=torch.float32))

    def index(self, *shape: int, below: int = 2) -> torch.Tensor:
        """Return whole numbers 0 ... below - 1."""
        return torch.arange(math.prod(shape), device=self.device).remainder(below).reshape(shape)

    def _cast(self, x: torch.Tensor) -> torch.Tensor:
        dtype = self.dtypes[min(self.made, len(self.dtypes) - 1)]
        self.made += 1
        return x.to(dtype)


@dataclass(frozen=True)
class Operation:
    """An operation by the name that people call it, and a tiny call of it; `group` is a heading for tables."""

    name: str
    group: str
    call: Callable[[Inputs], torch.Tensor]


def _table(**groups: dict[str, Callable[[Inputs], torch.Tensor]]) -> tuple[Operation, ...]:
    return tuple(
        Operation(name, group.replace("_", " "), call)
        for group, calls in groups.items()
        for name, call in calls.items()
    )


def _cell(kind: str, gates: int, x: Inputs):
    states = (x(2, 3), x(2, 3)) if kind == "lstm_cell" else x(2, 3)
    return getattr(torch, kind)(x(2, 3), states, x(3 * gates, 3), x(3 * gates, 3), x(3 * gates), x(3 * gates))


OPERATIONS = _table(
    products={
        "matmul": lambda x: x(2, 2) @ x(2, 2),
        "linear": lambda x: F.linear(x(2, 3), x(2, 3), x(2)),
        "mm": lambda x: torch.mm(x(2, 2), x(2, 2)),
        "bmm": lambda x: torch.bmm(x(2, 2, 2), x(2, 2, 2)),
        "mv": lambda x: torch.mv(x(2, 2), x(2)),
        "dot": lambda x: torch.dot(x(2), x(2)),
        "addmm": lambda x: torch.addmm(x(2, 2), x(2, 2), x(2, 2)),
        "addmv": lambda x: torch.addmv(x(2), x(2, 2), x(2)),
        "addr": lambda x: torch.addr(x(2, 2), x(2), x(2)),
        "baddbmm": lambda x: torch.baddbmm(x(2, 2, 2), x(2, 2, 2), x(2, 2, 2)),
        "addbmm": lambda x: torch.addbmm(x(2, 2), x(2, 2, 2), x(2, 2, 2)),
        "multi_dot": lambda x: torch.linalg.multi_dot((x(2, 2), x(2, 2), x(2, 2))),
        "einsum": lambda x: torch.einsum("ij,jk->ik", x(2, 2), x(2, 2)),
        "tensordot": lambda x: torch.tensordot(x(2, 2), x(2, 2), 1),
        "conv1d": lambda x: F.conv1d(x(1, 1, 4), x(1, 1, 2)),
        "conv2d": lambda x: F.conv2d(x(1, 1, 4, 4), x(1, 1, 2, 2)),
        "conv3d": lambda x: F.conv3d(x(1, 1, 2, 2, 2), x(1, 1, 2, 2, 2)),
        "conv_transpose1d": lambda x: F.conv_transpose1d(x(1, 1, 4), x(1, 1, 2)),
        "conv_transpose2d": lambda x: F.conv_transpose2d(x(1, 1, 4, 4), x(1, 1, 2, 2)),
        "conv_transpose3d": lambda x: F.conv_transpose3d(x(1, 1, 2, 2, 2), x(1, 1, 2, 2, 2)),
        "scaled_dot_product_attention": lambda x: F.scaled_dot_product_attention(
            x(1, 1, 2, 4), x(1, 1, 2, 4), x(1, 1, 2, 4)
        ),
        "LSTMCell": lambda x: _cell("lstm_cell", 4, x),
        "GRUCell": lambda x: _cell("gru_cell", 3, x),
        "RNNCell": lambda x: _cell("rnn_tanh_cell", 1, x),
        "bilinear": lambda x: F.bilinear(x(2, 2), x(2, 2), x(1, 2, 2)),
    },
    activations={
        "relu": lambda x: F.relu(x(4)),
        "gelu": lambda x: F.gelu(x(4)),
        "silu": lambda x: F.silu(x(4)),
        "elu": lambda x: F.elu(x(4)),
        "sigmoid": lambda x: torch.sigmoid(x(4)),
        "logsigmoid": lambda x: F.logsigmoid(x(4)),
        "tanh": lambda x: torch.tanh(x(4)),
        "softplus": lambda x: F.softplus(x(4)),
        "prelu": lambda x: F.prelu(x(1, 4), x(1)),
        "softmax": lambda x: F.softmax(x(2, 4), -1),
        "softmin": lambda x: F.softmin(x(2, 4), -1),
        "log_softmax": lambda x: F.log_softmax(x(2, 4), -1),
        "dropout": lambda x: F.dropout(x(4), 0.5),
    },
    normalisation={
        "layer_norm": lambda x: F.layer_norm(x(2, 4), (4,), x(4), x(4)),
        "rms_norm": lambda x: F.rms_norm(x(2, 4), (4,), x(4)),
        "batch_norm": lambda x: F.batch_norm(x(2, 4), None, None, x(4), x(4), training=True),
        "group_norm": lambda x: F.group_norm(x(2, 4, 2), 2, x(4), x(4)),
        "normalize": lambda x: F.normalize(x(2, 4)),
        "renorm": lambda x: torch.renorm(x(2, 4), 2, 0, 1.0),
    },
    functions={
        "exp": lambda x: torch.exp(x(4)),
        "expm1": lambda x: torch.expm1(x(4)),
        "log": lambda x: torch.log(x(4)),
        "log1p": lambda x: torch.log1p(x(4)),
        "log2": lambda x: torch.log2(x(4)),
        "log10": lambda x: torch.log10(x(4)),
        "pow": lambda x: torch.pow(x(4), 2),
        "square": lambda x: torch.square(x(4)),
        "sqrt": lambda x: torch.sqrt(x(4)),
        "rsqrt": lambda x: torch.rsqrt(x(4)),
        "reciprocal": lambda x: torch.reciprocal(x(4)),
        "sin": lambda x: torch.sin(x(4)),
        "tan": lambda x: torch.tan(x(4)),
        "asin": lambda x: torch.asin(x(4)),
        "acos": lambda x: torch.acos(x(4)),
        "sinh": lambda x: torch.sinh(x(4)),
        "cosh": lambda x: torch.cosh(x(4)),
        "erf": lambda x: torch.erf(x(4)),
        "erfinv": lambda x: torch.erfinv(x(4)),
        "clamp": lambda x: x(4).clamp(0.2, 0.8),
    },
    reductions={
        "sum": lambda x: x(2, 4).sum(-1),
        "mean": lambda x: x(2, 4).mean(-1),
        "var": lambda x: x(2, 4).var(-1),
        "prod": lambda x: x(2, 4).prod(-1),
        "cumsum": lambda x: x(2, 4).cumsum(-1),
        "cumprod": lambda x: x(2, 4).cumprod(-1),
        "norm": lambda x: torch.norm(x(2, 4)),
        "vector_norm": lambda x: torch.linalg.vector_norm(x(2, 4)),
        "logsumexp": lambda x: torch.logsumexp(x(2, 4), -1),
        "amax": lambda x: x(2, 4).amax(-1),
        "topk": lambda x: torch.topk(x(2, 4), 2),
        "sort": lambda x: torch.sort(x(2, 4)),
    },
    losses={
        "cross_entropy": lambda x: F.cross_entropy(x(2, 2), x.index(2)),
        "nll_loss": lambda x: F.nll_loss(x(2, 2), x.index(2)),
        "binary_cross_entropy": lambda x: F.binary_cross_entropy(x(4), x(4)),
        "binary_cross_entropy_with_logits": lambda x: F.binary_cross_entropy_with_logits(x(4), x(4)),
        "mse_loss": lambda x: F.mse_loss(x(4), x(4)),
        "l1_loss": lambda x: F.l1_loss(x(4), x(4)),
        "smooth_l1_loss": lambda x: F.smooth_l1_loss(x(4), x(4)),
        "huber_loss": lambda x: F.huber_loss(x(4), x(4)),
        "kl_div": lambda x: F.kl_div(x(2, 4), x(2, 4), reduction="batchmean"),
        "cosine_similarity": lambda x: F.cosine_similarity(x(2, 4), x(2, 4)),
        "cosine_embedding_loss": lambda x: F.cosine_embedding_loss(x(2, 4), x(2, 4), x.index(2, below=1) + 1),
        "hinge_embedding_loss": lambda x: F.hinge_embedding_loss(x(4), x.index(4, below=1) + 1),
        "margin_ranking_loss": lambda x: F.margin_ranking_loss(x(4), x(4), x.index(4, below=1) + 1),
        "soft_margin_loss": lambda x: F.soft_margin_loss(x(4), x.index(4, below=1) + 1),
        "multi_margin_loss": lambda x: F.multi_margin_loss(x(2, 2), x.index(2)),
        "multilabel_margin_loss": lambda x: F.multilabel_margin_loss(x(2, 2), x.index(2, 2)),
        "poisson_nll_loss": lambda x: F.poisson_nll_loss(x(4), x(4)),
        "triplet_margin_loss": lambda x: F.triplet_margin_loss(x(2, 4), x(2, 4), x(2, 4)),
        "cdist": lambda x: torch.cdist(x(2, 4), x(2, 4)),
        "pdist": lambda x: F.pdist(x(3, 4)),
        "dist": lambda x: torch.dist(x(4), x(4)),
    },
    several_inputs={
        "add": lambda x: x(4) + x(4),
        "sub": lambda x: x(4) - x(4),
        "mul": lambda x: x(4) * x(4),
        "div": lambda x: x(4) / x(4),
        "where": lambda x: torch.where(x.index(4) > 0, x(4), x(4)),
        "masked_fill": lambda x: x(4).masked_fill(x.index(4) > 0, -1e4),
        "cat": lambda x: torch.cat([x(4), x(4)]),
        "stack": lambda x: torch.stack([x(4), x(4)]),
        "addcmul": lambda x: torch.addcmul(x(4), x(4), x(4)),
        "addcdiv": lambda x: torch.addcdiv(x(4), x(4), x(4)),
        "lerp": lambda x: torch.lerp(x(4), x(4), 0.5),
        "atan2": lambda x: torch.atan2(x(4), x(4)),
        "cross": lambda x: torch.cross(x(2, 3), x(2, 3), dim=-1),
    },
    indexing={
        "embedding": lambda x: F.embedding(x.index(4), x(2, 3)),
        "gather": lambda x: x(2, 4).gather(-1, x.index(2, 1)),
        "index_add": lambda x: x(4).index_add(0, x.index(4), x(4)),
        "index_copy": lambda x: x(4).index_copy(0, x.index(2), x(2)),
        "index_put": lambda x: x(4).index_put((x.index(2),), x(2)),
        "scatter_add": lambda x: x(4).scatter_add(0, x.index(4), x(4)),
        "interpolate": lambda x: F.interpolate(x(1, 1, 4), scale_factor=2, mode="linear"),
        "grid_sample": lambda x: F.grid_sample(x(1, 1, 2, 2), x(1, 2, 2, 2), align_corners=False),
        "avg_pool2d": lambda x: F.avg_pool2d(x(1, 1, 4, 4), 2),
        "max_pool2d": lambda x: F.max_pool2d(x(1, 1, 4, 4), 2),
    },
    ways_around={
        "softmax(dtype=float32)": lambda x: F.softmax(x(2, 4), -1, dtype=torch.float32),
        "sum(dtype=float32)": lambda x: x(2, 4).sum(-1, dtype=torch.float32),
        "addmm_ (in place)": lambda x: x(2, 2).addmm_(x(2, 2), x(2, 2)),
        "add_ (in place)": lambda x: x(4).add_(x(4)),
    },
)
