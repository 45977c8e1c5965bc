"""Recipes for linear layers in FP8, by name: the formats, which values share a scale, and where the scale comes from.

    for gemm in FLOAT8_RECIPES["fp8-block"].gemms:
        print(gemm.name, gemm.formula, gemm.left, gemm.right)

They say how a layer multiplies. The dtype of weights, gradients and optimizer is that of a
`utils.training.recipes.Recipe`.
"""

from dataclasses import dataclass

import torch

from utils.emulation.scaled_matmul import why_emulated
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E5M2, FloatFormat


@dataclass(frozen=True)
class Operand:
    """One side of a product: which tensor, whose second axis is summed over, in which format and with which scales."""

    tensor: str  # "x", "w", "dy", or transposed "xᵀ", "wᵀ", "dyᵀ"
    shape: str
    fmt: FloatFormat
    scaling: str


@dataclass(frozen=True)
class LinearGemm:
    """One of the three products of a linear layer: left @ right.t()."""

    name: str
    formula: str
    left: Operand
    right: Operand


@dataclass(frozen=True)
class Float8Recipe:
    """How a linear layer computes in FP8. `note` says it in one sentence.

    `forward`: the format of activations and weights; `backward`: that of the gradients of outputs. `activations`,
    `weights`, `gradients`: names of `SCALINGS`. `history`: with delayed scaling, how many steps' amax each tensor
    remembers, chosen and widened by `choose` and `margin`; None for scales from the tensor at hand. `fast`: the
    products that may stay in a Hopper adder of 14 bits.
    """

    name: str
    note: str
    forward: FloatFormat = FLOAT8_E4M3FN
    backward: FloatFormat = FLOAT8_E5M2
    activations: str = "tensor"
    weights: str = "tensor"
    gradients: str = "tensor"
    history: int | None = None
    margin: float = 0
    choose: str = "max"
    fast: tuple[str, ...] = ("forward",)
    source: str = ""

    @property
    def gemms(self) -> tuple[LinearGemm, LinearGemm, LinearGemm]:
        """The three products, each operand with its format and scales: forward, dgrad, wgrad."""

        def operand(tensor: str, shape: str) -> Operand:
            name = tensor.removesuffix("ᵀ")
            fmt = self.backward if name == "dy" else self.forward
            scaling = {"x": self.activations, "w": self.weights, "dy": self.gradients}[name]
            return Operand(tensor, shape, fmt, scaling)

        return (
            LinearGemm("forward", "y = x wᵀ", operand("x", "[M, K]"), operand("w", "[N, K]")),
            LinearGemm("dgrad", "dx = dy w", operand("dy", "[M, N]"), operand("wᵀ", "[K, N]")),
            LinearGemm("wgrad", "dw = dyᵀ x", operand("dyᵀ", "[N, M]"), operand("xᵀ", "[K, M]")),
        )

    def emulated(self, device: torch.device | str) -> bool:
        """Say whether the device has no kernel for at least one of the three products."""
        return bool(self.why_emulated(device))

    def why_emulated(self, device: torch.device | str) -> str:
        """Return why `emulated` is true, in a clause; empty where kernels compute all three."""
        reasons = (why_emulated(device, gemm.left.scaling, gemm.right.scaling) for gemm in self.gemms)
        return next((reason for reason in reasons if reason), "")

    def remark(self, device: torch.device | str) -> str:
        """Say in one sentence what the device makes of the recipe; empty where FP8 kernels compute all products."""
        reason = self.why_emulated(device)
        return f"emulated: {reason}, so the speed says nothing about FP8" if reason else ""


_TE = "Transformer Engine"
FLOAT8_RECIPES: dict[str, Float8Recipe] = {
    recipe.name: recipe
    for recipe in (
        Float8Recipe(
            "fp8-unscaled",
            "every scale is 1; gradients in E5M2, for its range",
            activations="none",
            weights="none",
            gradients="none",
            source="arXiv 2209.05433, 3.1, without its scales",
        ),
        Float8Recipe(
            "fp8-unscaled-e4m3",
            "every scale is 1; gradients in E4M3, which has no room for small ones",
            backward=FLOAT8_E4M3FN,
            activations="none",
            weights="none",
            gradients="none",
            source="made to fail",
        ),
        Float8Recipe(
            "fp8-current",
            "one scale per tensor, from its own amax; gradients in E5M2",
            source=f"{_TE}, FP8 Current Scaling; torchao, tensorwise",
        ),
        Float8Recipe(
            "fp8-delayed",
            "one scale per tensor, from the amaxes of the 16 steps before; gradients in E5M2",
            history=16,
            source=f"{_TE}, FP8 Delayed Scaling",
        ),
        Float8Recipe(
            "fp8-row",
            "one scale per row, E4M3 everywhere; each tensor is quantised along both axes",
            backward=FLOAT8_E4M3FN,
            activations="row",
            weights="row",
            gradients="row",
            fast=("forward", "dgrad", "wgrad"),  # torchao: torch's row kernels are fast only so
            source="torchao, rowwise; scales are exact here, cut to powers of two there",
        ),
        Float8Recipe(
            "fp8-block",
            "blocks of 1×128 for activations and gradients, 128×128 for weights; E4M3 everywhere",
            backward=FLOAT8_E4M3FN,
            activations="1x128",
            weights="128x128",
            gradients="1x128",
            fast=(),
            source="DeepSeek-V3, arXiv 2412.19437, 3.3.2",
        ),
        Float8Recipe(
            "fp8-mx",
            "MXFP8: blocks of 1×32, whose scales are powers of two, rounded up; E4M3 everywhere",
            backward=FLOAT8_E4M3FN,
            activations="mx-rceil",
            weights="mx-rceil",
            gradients="mx-rceil",
            fast=(),
            source="OCP MX 1.0; the scale by arXiv 2506.08027, as Transformer Engine has it",
        ),
    )
}


def find_float8_recipe(name: str) -> Float8Recipe:
    """Return the recipe called `name`. Raises: ValueError with the known names when there is none."""
    if name not in FLOAT8_RECIPES:
        raise ValueError(f"unknown FP8 recipe {name!r}; the known ones are {', '.join(FLOAT8_RECIPES)}")
    return FLOAT8_RECIPES[name]
