"""Weights in few bits whose errors are paid for by their neighbours: the method of GPTQ.

Rounding to nearest makes the error of each weight small. What counts is the error of the layer's output, over the
inputs x that it really gets: the squared error of y = x @ w.t(), summed over the tokens, is

    sum over rows of w:  d @ H @ d.t(),   d = rounded row - row [K],   H = x.t() @ x [K, K]

Where inputs go together, H has large entries beside its diagonal, and the error of one weight can be undone by its
neighbours. So the columns are rounded one after the other, and after each one all later columns move to where they
make the output best again. A column that was rounded does not move any more.

    seen = inputs(model, calibration)  # {name of a layer: H}
    small = compensated(layer.weight, seen[name], bits=4, group=32)

Source: Frantar et al. 2023, arXiv 2210.17323, section 3.3 (without its orders of columns) and algorithm 1.
"""

from collections.abc import Callable, Iterable

import torch
from torch import nn

from utils.formats import BFLOAT16, FloatFormat
from utils.quantization.integers import IntegerFormat, Quantized, assembled, grid, reciprocal, to_codes

DAMPING = 0.01  # of the mean of the hessian's diagonal, added to all of it: then it has an inverse
COLUMNS = 128  # rounded before what they owe reaches the columns after them in one product


def hessian(x: torch.Tensor) -> torch.Tensor:
    """Return x.t() @ x, float32 [K, K], of inputs [..., K]: half the second derivative of the squared output error."""
    rows = x.detach().reshape(-1, x.shape[-1]).float()
    return rows.t() @ rows


@torch.no_grad()
def inputs(
    model: nn.Module,
    run: Callable[[], object],
    layers: Iterable[str],
) -> dict[str, torch.Tensor]:
    """Call `run`, which calls the model, and return by name the `hessian` of all inputs of these linear layers."""
    hessians: dict[str, torch.Tensor] = {}

    def watch(name: str):
        def hook(_, arguments):
            hessians[name] = hessians[name] + hessian(arguments[0]) if name in hessians else hessian(arguments[0])

        return hook

    handles = [model.get_submodule(name).register_forward_pre_hook(watch(name)) for name in layers]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return hessians


@torch.no_grad()
def compensated(
    weight: torch.Tensor,
    hessian: torch.Tensor,
    bits: int = 4,
    group: int | str | None = 32,
    *,
    symmetric: bool = True,
    scale_format: FloatFormat = BFLOAT16,
) -> Quantized:
    """Round a matrix of weights to integers, column by column, each paying for the errors of those before it.

    `weight`: a floating dtype, [N, K]. `hessian`: [K, K], that of the layer's inputs. `group`: as in
    `integers.quantize`; a group's scale is taken when its first column is reached, from the weights as they are then.
    The hessian is damped by `DAMPING`. An input that was always 0 says nothing about its weights: they are rounded to
    nearest.
    Raises: ValueError for a hessian of another size, or one that is not finite or not positive after damping.
    """
    fmt, columns = IntegerFormat(bits, symmetric), weight.shape[1]
    factor = inverse_factor(hessian, columns)
    left = weight.detach().float().clone()  # what the columns that are not rounded yet have to be now
    width = group if isinstance(group, int) else columns
    step = width * max(1, COLUMNS // width) if isinstance(group, int) else COLUMNS  # groups end where blocks do
    whole = None if isinstance(group, int) else grid(left, fmt, group=group, scale_format=scale_format)
    codes, scales = torch.zeros_like(left), [] if whole is None else [whole]
    for start in range(0, columns, step):
        stop = min(start + step, columns)
        owed = torch.zeros_like(left[:, start:stop])
        for k in range(start, stop):
            if whole is None and k % width == 0:
                scales.append(grid(left[:, k : k + width], fmt, group=None, scale_format=scale_format))
            codes[:, k, None], rounded = _rounded(left[:, k, None], *scales[-1], fmt)
            # e = (w - q) / U[k, k]; then every later column j of the block moves by -e U[k, j]
            owed[:, k - start] = (left[:, k] - rounded[:, 0]) / factor[k, k]
            left[:, k + 1 : stop] -= owed[:, k - start, None] * factor[k, k + 1 : stop]
        left[:, stop:] -= owed @ factor[start:stop, stop:]  # and all columns after the block at once
    inv_scale = torch.cat([group_scale for group_scale, _ in scales], 1)
    zero_point = None if symmetric else torch.cat([group_zero for _, group_zero in scales], 1)
    return assembled(codes, inv_scale, zero_point, fmt, group=group, scale_format=scale_format)


def _rounded(
    column: torch.Tensor, inv_scale: torch.Tensor, zero_point: torch.Tensor | None, fmt: IntegerFormat
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the codes of a column, and what they stand for."""
    codes = to_codes(column, reciprocal(inv_scale), zero_point, fmt)
    return codes, (codes if zero_point is None else codes - zero_point) * inv_scale


def inverse_factor(hessian: torch.Tensor, columns: int) -> torch.Tensor:
    """Return the upper triangular U, float32 [K, K], with U.t() @ U the inverse of the damped hessian.

    Row k of U, divided by U[k, k], says how much of the error of column k each later column takes over.
    """
    if hessian.shape != (columns, columns):
        raise ValueError(f"a hessian {list(hessian.shape)} does not fit {columns} inputs")
    damped = hessian.double()
    diagonal = damped.diagonal()
    level = diagonal.mean()
    if not level.isfinite():
        raise ValueError("the hessian is not finite: look for a NaN or an infinity among the layer's inputs")
    unseen = diagonal == 0
    # an input that was always 0 gets the mean level: its weights owe nothing to others
    damped = damped + torch.diag(DAMPING * level + unseen * (level if level > 0 else 1.0))
    lower, failed = torch.linalg.cholesky_ex(damped)
    if failed:
        raise ValueError("the hessian is not positive: give the sum of x.t() @ x over the layer's inputs")
    return torch.linalg.cholesky(torch.cholesky_inverse(lower), upper=True).float()
