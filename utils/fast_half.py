"""Float16 products on a processor that has none: multiply in float32, round the result to float16.

That is what a tensor core does. A CPU without float16 arithmetic takes 2 s for one product of 1024 x 1024 matrices, and
the result is the same: its own kernels add in float32 as well.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

_aten = torch.ops.aten
SLOW_IN_HALF = {
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


def _is_half(value) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype is torch.float16


def _widen(value):
    return value.float() if _is_half(value) else value


def _narrow(value):
    return value.half() if isinstance(value, torch.Tensor) and value.dtype is torch.float32 else value


class FastHalf(TorchDispatchMode):
    """Inside this context the slow float16 operations of a CPU run in float32 and round their results to float16.

    The backward pass of a CPU runs on the calling thread, so `loss.backward()` inside the context is covered too.
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in SLOW_IN_HALF and any(_is_half(value) for value in args):
            return tree_map(_narrow, func(*tree_map(_widen, args), **tree_map(_widen, kwargs)))
        return func(*args, **kwargs)
