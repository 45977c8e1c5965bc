"""What a language model computes between two tokens: five readers, from everything again to one launch a token.

A call takes the ids that are new, int64 [B, S], and returns the logits of the next token, [B, V]. A reader holds the
model and what it keeps of the text; `room` is how many positions a fixed cache has. Fixed caches serve texts of the
batch of their first one.
"""

from collections.abc import Callable

import torch
from torch import nn

WARMUPS = 3  # of the step before a CUDA graph records it, as in torch's documentation


class NoCacheDecoder:
    """Read everything again for each token."""

    def __init__(self, model: nn.Module, room: int):
        self.model = model
        self.reset()

    def reset(self) -> None:
        """Forget the text."""
        self.ids = None

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        self.ids = ids if self.ids is None else torch.cat([self.ids, ids], dim=1)
        return self.model(input_ids=self.ids, use_cache=False).logits[:, -1]


class DynamicCacheDecoder:
    """Keep keys and values in tensors that grow with each token."""

    def __init__(self, model: nn.Module, room: int):
        self.model = model
        self.reset()

    def reset(self) -> None:
        """Forget the text."""
        from transformers import DynamicCache

        self.cache = DynamicCache(config=self.model.config)

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=ids, past_key_values=self.cache, use_cache=True).logits[:, -1]


class StaticCacheDecoder:
    """Keep keys and values in tensors of `room` positions that stay where they are; attention reads all of them."""

    def __init__(self, model: nn.Module, room: int):
        from transformers import StaticCache

        self.model, self.cache = model, StaticCache(config=model.config, max_cache_len=room)
        self.begun = False

    def reset(self) -> None:
        """Forget the text; the tensors stay, and with them what was compiled or recorded for them."""
        self.cache.reset()
        self.begun = False

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        begun, self.begun = self.begun, True
        return self.step(ids) if begun else self.plain(ids)

    def plain(self, ids: torch.Tensor) -> torch.Tensor:
        """Read ids, any number of them: [B, S] -> [B, V]."""
        return self.model(input_ids=ids, past_key_values=self.cache, use_cache=True).logits[:, -1]

    def step(self, ids: torch.Tensor) -> torch.Tensor:
        """Read one token after another was read: [B, 1] -> [B, V]."""
        return self.plain(ids)


class CompiledDecoder(StaticCacheDecoder):
    """Compile the step: fewer and larger kernels, on a GPU launched as one graph."""

    def __init__(self, model: nn.Module, room: int):
        super().__init__(model, room)
        # As gpt-fast does on a GPU: graphs, and tiles tuned for products with a single row.
        options = {"triton.cudagraphs": True, "coordinate_descent_tuning": True} if model.device.type == "cuda" else {}
        self.compiled = torch.compile(self.plain, fullgraph=True, dynamic=False, options=options)

    def step(self, ids: torch.Tensor) -> torch.Tensor:
        torch.compiler.cudagraph_mark_step_begin()  # the logits of the last step have been used
        return self.compiled(ids)


class CudaGraphDecoder(StaticCacheDecoder):
    """Record the kernels of the step as a CUDA graph: one launch for all of them."""

    def __init__(self, model: nn.Module, room: int):
        super().__init__(model, room)
        self.replay = None

    def step(self, ids: torch.Tensor) -> torch.Tensor:
        if self.replay is None:
            self.ids = ids.clone()  # the graph reads this tensor
            step = {"undo": self._step_back, "device": ids.device}
            self.logits, self.replay = recorded(lambda: self.plain(self.ids), **step)
        self.ids.copy_(ids)
        self.replay()
        return self.logits

    def _step_back(self) -> None:
        for layer in self.cache.layers:
            layer.cumulative_length.sub_(1)  # the next token overwrites what was kept there


def recorded(
    step: Callable[[], torch.Tensor], *, undo: Callable[[], None], device: torch.device
) -> tuple[torch.Tensor, Callable[[], None]]:
    """Return the tensor that a step on a GPU writes, and what replays its CUDA graph; `undo` takes a warm-up back.

    Source: torch's documentation, CUDA semantics, CUDA graphs: warm up on a side stream, then capture.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(device):  # streams are those of the current GPU
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARMUPS):
                step()
                undo()
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):  # captures, computes nothing
            written = step()
    return written, graph.replay
