"""Eight-bit moments for Adam: codes of one byte for each value, and one float32 for each block of 256 of them.

Every block is divided by its largest magnitude and each quotient becomes the nearest of 256 codes. The codes are those
of the *dynamic tree*: the decades from 1 down to 10**-7, of which a larger one holds more codes, spaced evenly. A
linear code of 8 bits would send all that is smaller than 1/255 of its block's largest value to 0 or to its neighbour.

    blocks = quantize(m, signed=True)  # codes [*, uint8], absmax [ceil(n / 256), float32]
    dequantize(blocks, signed=True)  # float32, the shape of m

Source: Dettmers et al. 2022, arXiv 2110.02861, sections 1.3, 2.1 and 2.2; the tables are those of bitsandbytes.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch

State = dict[str, torch.Tensor]
DECADES = 7
BLOCK = 256  # values that share one float32


class Blocks(NamedTuple):
    """A tensor in 8 bits: a code for each value, uint8 and of its shape, and the `absmax` of each block, float32."""

    codes: torch.Tensor
    absmax: torch.Tensor

    @property
    def nbytes(self) -> int:
        """Bytes of codes and block maxima together."""
        return self.codes.nbytes + self.absmax.nbytes


@cache
def code_table(*, signed: bool) -> torch.Tensor:
    """Return the 256 values that a code stands for, sorted: float32 [256] on the CPU.

    0, 1, and the middles of n equal parts of each decade [10**(d - 7), 10**(d - 6)], d = 0 ... 6: n = 2**d of either
    sign, or 2**(d + 1) where none is negative.
    """
    parts = [torch.tensor([0.0, 1.0])]
    for decade in range(DECADES):
        # 0.1 ... 1 in 2**d parts, or 2**(d + 1) without a sign; the decade is moved below
        edges = torch.linspace(0.1, 1, 2 ** (decade + (not signed)) + 1)
        middles = 10.0 ** (decade - DECADES + 1) * ((edges[:-1] + edges[1:]) / 2)
        parts += [middles, -middles] if signed else [middles]
    return torch.cat(parts).sort().values


def quantize(x: torch.Tensor, *, signed: bool, block: int = BLOCK) -> Blocks:
    """Return a float tensor as codes: the nearest one to each value divided by the `absmax` of its block.

    The blocks run along the flattened tensor; the last may be shorter. Where one value is not finite, none of its
    block is.
    Raises: ValueError for a block of no value, and for a negative value without `signed`.
    """
    if block < 1:
        raise ValueError(f"block {block} holds no value; take 1 or more, usually {BLOCK}")
    if not signed and (x < 0).any():
        raise ValueError(f"{float(x.min())} has no code without a sign; pass signed=True")
    flat = x.detach().flatten().float()
    rows = torch.nn.functional.pad(flat, (0, -len(flat) % block)).view(-1, block)  # [blocks, block]
    absmax = rows.abs().amax(1)  # [blocks]
    quotients = rows / absmax.where(absmax != 0, 1.0)[:, None]  # in -1 ... 1; a block of zeros stays 0
    table = code_table(signed=signed).to(x.device)
    # the nearest of 256 sorted values: how many midpoints lie below the quotient
    codes = torch.bucketize(quotients, (table[:-1] + table[1:]) / 2, out_int32=True).to(torch.uint8)
    return Blocks(codes.view(-1)[: len(flat)].view(x.shape), absmax)


def dequantize(blocks: Blocks, *, signed: bool, block: int = BLOCK) -> torch.Tensor:
    """Return what the codes stand for, float32 of the codes' shape; `signed` and `block` as they were quantized.

    Raises: ValueError where the number of blocks does not fit.
    """
    codes, absmax = blocks
    if len(absmax) != -(-codes.numel() // block):
        raise ValueError(f"{len(absmax)} maxima do not fit {codes.numel()} codes in blocks of {block}")
    values = code_table(signed=signed).to(codes.device)[codes.flatten().int()]
    return (values * absmax.repeat_interleave(block)[: len(values)]).view(codes.shape)  # x = table[code] * absmax


@dataclass(frozen=True)
class Blockwise:
    """A `state_dtype` of `utils.training.optimizers.AdamW`: moments of 8 bits, in blocks of `block` values.

    A tensor of fewer than `least` values keeps float32 moments: the few bytes are not worth the error.
    Raises: ValueError for a block of no value.
    """

    block: int = BLOCK
    least: int = 4_096

    def __post_init__(self):
        if self.block < 1:
            raise ValueError(f"block {self.block} holds no value; take 1 or more, usually {BLOCK}")

    def moment_bytes(self, values: int) -> int:
        """Return the bytes of one moment of a tensor of so many values."""
        # a byte a code, and a float32 for each block
        return 4 * values if values < self.least else values + 4 * -(-values // self.block)

    def begin(self, weight: torch.Tensor, name: str, *, signed: bool) -> State:
        """Return what an optimizer's state holds for the moment `name`, all 0."""
        zeros = torch.zeros_like(weight, dtype=torch.float32)
        if weight.numel() < self.least:
            return {name: zeros}
        codes, absmax = quantize(zeros, signed=signed, block=self.block)
        return {name: codes.clone(), f"{name}_absmax": absmax}  # without the storage that fills the last block

    def read(self, state: State, name: str, *, signed: bool) -> torch.Tensor:
        """Return the moment `name` in float32, which may be the state's own tensor."""
        if f"{name}_absmax" not in state:
            return state[name]
        return dequantize(Blocks(state[name], state[f"{name}_absmax"]), signed=signed, block=self.block)

    def write(self, state: State, name: str, value: torch.Tensor, *, signed: bool) -> None:
        """Keep a new value of the moment `name`."""
        if f"{name}_absmax" not in state:
            state[name].copy_(value)
            return
        codes, absmax = quantize(value, signed=signed, block=self.block)
        state[name].copy_(codes)
        state[f"{name}_absmax"].copy_(absmax)
