"""What a float32 product may do with its factors: torch's switches, what they change here, and TF32 by hand.

    with allowing("high"):  # and everything as before afterwards
        a @ b
    for row in kept(device):
        print(row.setting, row.operation, row.bits)

"high" and "medium" are permissions. On CUDA both mean TF32 (the note in torch's documentation of
`set_float32_matmul_precision`); on a CPU they mean TF32 and bfloat16, where oneDNN has such a kernel for it. The old
switches and those that torch 2.9 brought (`fp32_precision`) set the same things: after a new one was set, an old one
raises RuntimeError when it is read and would not tell the truth
(https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices).
"""

import contextlib
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F

from utils import machine
from utils.fake_quantize import fake_quantize
from utils.formats import BFLOAT16, TF32

OLD_PRODUCTS = "torch.get_float32_matmul_precision()"
OLD = (OLD_PRODUCTS, "torch.backends.cuda.matmul.allow_tf32", "torch.backends.cudnn.allow_tf32")
# From the general to the special: what is "none" here is what stands above it.
NEW = (
    "torch.backends.fp32_precision",
    "torch.backends.cudnn.fp32_precision",
    "torch.backends.cuda.matmul.fp32_precision",
    "torch.backends.cudnn.conv.fp32_precision",
    "torch.backends.cudnn.rnn.fp32_precision",
    "torch.backends.mkldnn.matmul.fp32_precision",
    "torch.backends.mkldnn.conv.fp32_precision",
    "torch.backends.mkldnn.rnn.fp32_precision",
)


def read(switch: str) -> str | bool:
    """Return what a switch of `OLD` or `NEW` says. Raises: RuntimeError for an old one after a new one was set."""
    if switch == OLD_PRODUCTS:
        return torch.get_float32_matmul_precision()
    return operator.attrgetter(switch.removeprefix("torch."))(torch)


def write(switch: str, value: str | bool) -> None:
    """Set a switch of `OLD` or `NEW`. Raises: RuntimeError or ValueError for a value that its backend has not."""
    if switch == OLD_PRODUCTS:
        torch.set_float32_matmul_precision(value)
        return
    path, _, name = switch.removeprefix("torch.").rpartition(".")
    setattr(operator.attrgetter(path)(torch), name, value)


def switches() -> dict[str, str]:
    """Return what every switch says now, and the first sentence of the error of one that refuses to tell."""
    return {switch: _told(switch) for switch in OLD + NEW}


def _told(switch: str) -> str:
    try:
        return str(read(switch))
    except RuntimeError as error:
        return f"{type(error).__name__}: {str(error).partition(',')[0]}"


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Leave every switch as it was found, whichever are set inside; also where old and new were mixed before."""
    old, new = {}, {switch: read(switch) for switch in NEW}
    for switch in OLD:
        with contextlib.suppress(RuntimeError):
            old[switch] = read(switch)
    try:
        yield
    finally:
        write(OLD_PRODUCTS, old.get(OLD_PRODUCTS, "highest"))
        if OLD[2] in old:
            write(OLD[2], old[OLD[2]])
        for switch in NEW:
            write(switch, "none")
            if read(switch) != new[switch]:  # it was not what it gets from above
                write(switch, new[switch])


@contextlib.contextmanager
def allowing(setting: str) -> Iterator[None]:
    """Let float32 products round their factors: "highest" (never), "high" or "medium"; then restore all switches.

    Raises: ValueError for another word, where torch only warns.
    """
    if setting not in ("highest", "high", "medium"):
        raise ValueError(f"unknown setting {setting!r}; use highest, high or medium")
    with restored():
        torch.set_float32_matmul_precision(setting)
        yield


@dataclass(frozen=True)
class Kept:
    """How many significant bits of its float32 factors an operation keeps on this device under a setting."""

    setting: str
    operation: str  # "product" or "convolution"
    bits: int


# (the line that is run, what it may change); the first line is no line: torch as it is set already
SETTINGS = {
    "cuda": (
        (None, "product"),
        (None, "convolution"),
        ((OLD_PRODUCTS, "high"), "product"),
        ((OLD_PRODUCTS, "medium"), "product"),
        ((NEW[2], "tf32"), "product"),
        ((OLD[2], False), "convolution"),
        ((NEW[3], "ieee"), "convolution"),
    ),
    "cpu": (
        (None, "product"),
        (None, "convolution"),
        ((OLD_PRODUCTS, "high"), "product"),
        ((OLD_PRODUCTS, "medium"), "product"),
        ((NEW[5], "tf32"), "product"),
        ((NEW[5], "bf16"), "product"),
        ((NEW[6], "bf16"), "convolution"),
    ),
}


def kept(device: torch.device) -> list[Kept]:
    """Return what products and convolutions keep of their factors on this device, under each setting: measured.

    24 bits are float32, 11 TF32, 8 bfloat16. What splits each value into two bfloat16 passes for 24, since that splits
    the numbers that are tried without a loss; its `error` tells.
    """
    products = {"product": torch.matmul, "convolution": convolved}
    rows = []
    for setting, operation in SETTINGS[device.type]:
        with restored():
            if setting:
                write(*setting)
            bits = machine.product_bits(device, product=products[operation])
        rows.append(Kept(_line(*setting) if setting else "as torch is set", operation, bits))
    return rows


def _line(switch: str, value: str | bool) -> str:
    if switch == OLD_PRODUCTS:
        return f'torch.set_float32_matmul_precision("{value}")'
    return f"{switch} = {value!r}".replace("'", '"')


def convolved(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b as a convolution: one pixel for each row of a, one input channel for each of its columns."""
    return F.conv2d(a[:, :, None, None], b.t()[:, :, None, None].contiguous())[:, :, 0, 0]


def tf32(x: torch.Tensor) -> torch.Tensor:
    """Return float32 values rounded to TF32's 11 significant bits, to nearest and ties to even."""
    return fake_quantize(x, TF32, saturate=False)


def tf32_cut(x: torch.Tensor) -> torch.Tensor:
    """Return float32 values without the last 13 of their 23 fraction bits: what a unit sees that reads 19 bits.

    Which of the two a product does is the library's choice. Raises: TypeError for another dtype.
    """
    if x.dtype is not torch.float32:
        raise TypeError(f"the bits of TF32 are the first 19 of float32; got {x.dtype}")
    return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)


def bfloat16_parts(x: torch.Tensor, count: int) -> list[torch.Tensor]:
    """Return `count` tensors of bfloat16 values (as float32) whose sum comes near x; three of them make 24 bits.

    Henry, Tang and Heinecke 2019, arXiv 1904.06376.
    """
    parts = []
    for _ in range(count):
        parts.append(fake_quantize(x, BFLOAT16, saturate=False))
        x = x - parts[-1]  # exact: what rounding left has at most 16 significant bits
    return parts


def float32_product(a: torch.Tensor, b: torch.Tensor, *, rounded: Callable = torch.clone) -> torch.Tensor:
    """Return a @ b of float32 tensors whose values are `rounded` first; sums in float32, whatever torch allows.

    A product of two TF32 or two bfloat16 values is exact in float32.
    """
    with allowing("highest"):
        return rounded(a) @ rounded(b)


def bfloat16_three(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b from two bfloat16 parts of each factor: three of their four products, without the smallest.

    What "high" means where a product has no TF32 but bfloat16, by torch's documentation.
    """
    (a_high, a_low), (b_high, b_low) = bfloat16_parts(a, 2), bfloat16_parts(b, 2)
    with allowing("highest"):
        return (a_low @ b_high + a_high @ b_low) + a_high @ b_high


# Ways to multiply two float32 matrices, [M, K] @ [K, N] -> [M, N], on any device.
WAYS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "float32": float32_product,
    "bf16x3": bfloat16_three,
    "TF32": partial(float32_product, rounded=tf32),
    "TF32, cut": partial(float32_product, rounded=tf32_cut),
    "bfloat16": partial(float32_product, rounded=lambda x: fake_quantize(x, BFLOAT16, saturate=False)),
}


def error(product: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    """Return the norm of what separates `product` from a @ b in float64, as a share of that product's norm."""
    exact = a.double() @ b.double()
    return ((product.double() - exact).norm() / exact.norm()).item()
