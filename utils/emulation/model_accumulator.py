"""Run any model with the sums of its matrix products in an accumulator of `utils.emulation.accumulators`.

    with torch.no_grad(), Accumulated(ACCUMULATORS["float16"]):
        logits = model(ids).logits

Only the products change: their operands are rounded to the accumulator's format, and their sums are the accumulator's.
Their result stays float32, or what the model computes in, and so does all the rest: a bias, softmax, norms.
"""

import contextlib
import math

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from utils.emulation.accumulators import Accumulator
from utils.fake_quantize import fake_quantize
from utils.formats import FloatFormat

_aten = torch.ops.aten
PLAIN = {_aten.mm.default, _aten.bmm.default, _aten.mv.default, _aten.dot.default}  # (a, b)
ADDING = {_aten.addmm.default, _aten.baddbmm.default, _aten.addmv.default}  # (c, a, b): beta * c + alpha * a @ b
OTHERS = {  # that multiply and add in one: those whose operations torch counts, and a few that it overlooks
    *flop_registry,
    _aten.addbmm,
    _aten.vdot,
    _aten._addmm_activation,
    _aten._scaled_dot_product_flash_attention_for_cpu,
}


class Accumulated(TorchDispatchMode):
    """Inside this context every matrix product of a forward pass adds in one accumulator.

    Operands become values of `one.operands`. For 16 bits that is a cast: what is too large becomes infinite. For 8 bits
    each tensor is scaled before, by the power of two that brings its largest value into the upper half of the range,
    and the result is scaled back; neither rounds anything.

    Attention takes its way of separate products (torch's math backend). A product of which each sum has one term is
    left alone, operands and all: LLaMA makes the angles of its positions so. Gradients are not recorded.

    Raises: RuntimeError where gradients are, NotImplementedError for an operation that multiplies and adds in one
    kernel, such as a convolution, since the accumulator cannot get between the two.
    """

    def __init__(self, accumulator: Accumulator):
        super().__init__()
        self.one = accumulator

    def __enter__(self):
        if torch.is_grad_enabled():
            raise RuntimeError("Accumulated records no gradients: enter torch.no_grad() before it")
        self.attention = sdpa_kernel(SDPBackend.MATH)
        self.attention.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.attention.__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in PLAIN | ADDING:
            added, (a, b) = (args[0], args[1:3]) if func in ADDING else (None, args[:2])
            if not a.is_floating_point() or a.shape[-1] == 1:
                return func(*args, **kwargs)
            product = self._product(a, b)
            return product if added is None else kwargs.get("beta", 1) * added + kwargs.get("alpha", 1) * product
        with self._again():
            parts = func.decompose(*args, **kwargs)
        if parts is not NotImplemented:
            return parts
        if func.overloadpacket in OTHERS:
            raise NotImplementedError(f"{func} multiplies and adds in one: {self.one.name} cannot add in its place")
        return func(*args, **kwargs)

    @contextlib.contextmanager
    def _again(self):
        """Come back for the parts of an operation: under inference_mode even linear() arrives in one piece."""
        super().__enter__()
        try:
            yield
        finally:
            super().__exit__(None, None, None)

    def _product(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply [M, K] or [K] by [K, N] or [K], or [B, M, K] by [B, K, N]."""
        (left, scale_a), (right, scale_b) = (narrowed(x, self.one.operands) for x in (a, b))
        if a.ndim == 3:
            total = a.new_zeros(a.shape[0], a.shape[1], b.shape[2])
            for into, x, y in zip(total, left, right, strict=True):
                into.copy_(self.one.matmul(x, y))
        else:
            matrices = left.reshape(-1, a.shape[-1]), right.reshape(b.shape[0], -1)
            total = self.one.matmul(*matrices).reshape(a.shape[:-1] + b.shape[1:])
        return (total / (scale_a * scale_b)).to(a.dtype)


def narrowed(x: torch.Tensor, fmt: FloatFormat) -> tuple[torch.Tensor, float]:
    """Return x * scale as values of the format, in its torch dtype, and the scale: 1 for more than 8 bits.

    For 8 bits it is the power of two that brings the largest value to fmt.max or at most to a half below it.
    """
    scale = 1.0
    if fmt.bits <= 8:
        amax = float(x.abs().amax()) if x.numel() else 0.0
        if 0 < amax < math.inf:
            scale = 2.0 ** (math.frexp(fmt.max / amax)[1] - 1)
    return fake_quantize(x * scale, fmt, saturate=False).to(fmt.torch_dtype), scale
