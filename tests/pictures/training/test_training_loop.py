"""The picture of `training/training_loop` says what torch does."""

import torch
from torch import nn

from utils.pictures.training.training_loop import ARROWS, step_as_a_loop

GRADIENT, SCALE = 2e-8, 65536.0


def gradient_through_float16(scale):
    """The gradient that a float32 weight gets through a cast to float16, with the loss scaled; 1/scale times it."""
    weight = nn.Parameter(torch.zeros(1))
    (weight.half().float() * GRADIENT * scale).sum().backward()
    return weight.grad.dtype, weight.grad.item(), weight.grad.item() / scale


def test_the_followed_gradient_is_what_torch_leaves_in_grad():
    (*_, said) = [text.get_text() for text in step_as_a_loop(GRADIENT, SCALE).axes[0].texts]
    _, scaled, unscaled = gradient_through_float16(SCALE)
    _, lost, _ = gradient_through_float16(1.0)
    assert f"S = {SCALE:g}" in said
    assert f"{scaled:.3g} when scaled" in said
    assert f"{unscaled:.3g} after unscale_" in said
    assert f"but {lost:g} in float16" in said
    assert lost == 0.0 < scaled


def test_the_dtypes_on_the_arrows_are_those_of_a_step_under_autocast():
    seen = {}

    class Note(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen["weights", "forward"] = x.dtype
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen["backward", ".grad"] = grad.dtype
            return grad

    weight = nn.Parameter(torch.ones(4, 4))
    with torch.autocast("cpu", torch.float16):
        logits = torch.ones(2, 4) @ Note.apply(weight.half())
    wide = logits.float()
    loss = torch.amp.GradScaler("cpu").scale(wide.sum())
    loss.backward()
    seen |= {("forward", "loss"): wide.dtype, ("× S", "backward"): loss.dtype, (".grad", "unscale_"): weight.grad.dtype}
    assert {arrow: ARROWS[arrow] for arrow in seen} == {arrow: str(dtype)[6:] for arrow, dtype in seen.items()}
    drawn = [text.get_text() for text in step_as_a_loop().axes[0].texts]
    assert drawn.count("float16") == 2
    assert drawn.count("float32") == len(ARROWS) - 2
