"""Products of 16 bits on a processor that has none: multiply in float32, round the result to float16 or bfloat16.

That is what a tensor core does. A CPU without float16 arithmetic takes 2 s for one product of 1024 x 1024 matrices, and
one without bfloat16 arithmetic five times as long as in float32. The result is the same: their kernels add in float32
as well.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

_aten = torch.ops.aten
SLOW = {
    _aten.mm.default,
    _aten.addmm.default,
    _aten.bmm.default,
    _aten.baddbmm.default,
    _aten.mv.default,
    _aten.dot.default,
    _aten.linear.default,
    _aten.matmul.default,
    _aten._scaled_dot_product_flash_attention_for_cpu.default,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
    _aten.native_layer_norm.default,
    _aten.native_layer_norm_backward.default,
    _aten.gelu.default,
    _aten.gelu_backward.default,
}


HALVES = (torch.float16, torch.bfloat16)


def _half(values: tuple) -> torch.dtype | None:
    """Return the 16-bit dtype among the tensors, if there is one."""
    dtypes = (value.dtype for value in values if isinstance(value, torch.Tensor))
    return next((dtype for dtype in dtypes if dtype in HALVES), None)


class FastHalf(TorchDispatchMode):
    """Inside this context the slow 16-bit operations of a CPU run in float32 and round their results to 16 bits.

    The backward pass of a CPU runs on the calling thread, so `loss.backward()` inside the context is covered too.
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func not in SLOW or (half := _half(args)) is None:
            return func(*args, **kwargs)

        def widen(value):
            return value.float() if isinstance(value, torch.Tensor) and value.dtype is half else value

        def narrow(value):
            return value.to(half) if isinstance(value, torch.Tensor) and value.dtype is torch.float32 else value

        # products and sums in float32, one rounding at the end, as in a tensor core
        return tree_map(narrow, func(*tree_map(widen, args), **tree_map(widen, kwargs)))
