"""A cache whose keys and values are rounded on their way in, to ask what fewer bits for them would cost.

    llama.perplexity(model, ids, cache=lambda: rounded_cache(model.config, "int8"))

The numbers lie in the dtype of the model afterwards: this is what such a cache loses, not what it saves.
`CacheFormat.bits_per_number` says what it would take.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from utils.fake_quantize import fake_quantize
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT16, FLOAT32, FloatFormat
from utils.quantization.integers import quantize

TINY = 1e-30  # a vector of zeros has a scale as well


@dataclass(frozen=True)
class CacheFormat:
    """What would store a key or a value: a float format, or integers of `bits`.

    Integers, and floats that are `scaled`, share a scale, a bfloat16, in each vector: the key or the value of one
    token in one head.
    """

    name: str
    bits: int
    fmt: FloatFormat | None = None
    scaled: bool = False

    def rounded(self, x: torch.Tensor) -> torch.Tensor:
        """Return keys or values [B, heads, S, width], rounded to nearest, saturating; the dtype stays."""
        if self.fmt is FLOAT32:
            return x
        if self.scaled:
            # one for each vector: [B, heads, S, 1]
            inv_scale = (x.abs().amax(-1, keepdim=True) / self.fmt.max).clamp(min=TINY).bfloat16().to(x.dtype)
            return fake_quantize(x / inv_scale, self.fmt) * inv_scale
        if self.fmt is not None:
            return fake_quantize(x, self.fmt)
        # integers: each vector is a row of a matrix [B heads S, width]
        return quantize(x.reshape(-1, x.shape[-1]), self.bits).dequantize(x.dtype).view(x.shape)

    def bits_per_number(self, width: int) -> float:
        """Return the bits of a number with its share of a scale, for heads of `width`."""
        return self.bits + (BFLOAT16.bits / width if self.scaled or not self.fmt else 0)


CACHE_FORMATS = {
    cache_format.name: cache_format
    for cache_format in (
        CacheFormat("float32", 32, FLOAT32),
        CacheFormat("bfloat16", 16, BFLOAT16),
        CacheFormat("float16", 16, FLOAT16),
        CacheFormat("float8_e4m3fn", 8, FLOAT8_E4M3FN),
        CacheFormat("float8_e4m3fn-scaled", 8, FLOAT8_E4M3FN, scaled=True),
        CacheFormat("float8_e5m2", 8, FLOAT8_E5M2),
        CacheFormat("int8", 8),
        CacheFormat("int4", 4),
    )
}


def rounded_cache(config, name: str):
    """Return an empty cache of transformers, one that grows, which rounds what goes in.

    Raises: ValueError for a name that is not in `CACHE_FORMATS`.
    """
    from transformers import DynamicCache

    if name not in CACHE_FORMATS:
        raise ValueError(f"unknown cache format {name!r}; the known ones are {', '.join(CACHE_FORMATS)}")
    cache = DynamicCache(config=config)
    for layer in cache.layers:
        layer.update = partial(_update, layer.update, CACHE_FORMATS[name].rounded)
    return cache


def _update(update: Callable, rounded: Callable, keys: torch.Tensor, values: torch.Tensor, *more, **named):
    return update(rounded(keys), rounded(values), *more, **named)
