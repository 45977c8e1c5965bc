"""Generate text with a LLaMA and time it, in any recipe."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from utils import machine, measure, models, recipes
from utils.recipes import RECIPES, Recipe


@torch.no_grad()
def generate(model: nn.Module, prompt: torch.Tensor, *, tokens: int, recipe: Recipe) -> torch.Tensor:
    """Return the `tokens` tokens that greedy decoding puts after `prompt`: int64 [B, S] -> [B, tokens]."""
    from transformers import DynamicCache

    cache, ids, found = DynamicCache(config=model.config), prompt, []
    with recipe.on(prompt.device), recipe.autocast(prompt.device):
        for _ in range(tokens):
            logits = model(input_ids=ids, past_key_values=cache, use_cache=True).logits
            ids = logits[:, -1:].argmax(-1)
            found.append(ids)
    return torch.cat(found, dim=1)


@dataclass(frozen=True)
class TokenTime:
    """The time to generate `tokens` tokens in one recipe; `emulated` where the device lacks its products."""

    recipe: str
    tokens: int
    timing: measure.Timing
    emulated: bool

    @property
    def per_second(self) -> float:
        """Tokens a second, from the median time."""
        return 1e3 * self.tokens / self.timing.median


def token_times(
    names: Iterable[str] = tuple(RECIPES),
    *,
    device: torch.device | None = None,
    size: str | None = None,
    tokens: int = 10,
    repeats: int = 5,
) -> list[TokenTime]:
    """Time greedy generation of `tokens` tokens, batch 1, in each recipe; the weights are random, so is the text."""
    device = device or machine.device()
    size = machine.size(size, on=device)
    times = []
    for name in names:
        recipe = recipes.recipe(name)
        model = recipe.prepare(models.llama(size, device=device), device)
        prompt = torch.arange(8, device=device)[None]

        def ten_tokens(model=model, prompt=prompt, recipe=recipe):
            return generate(model, prompt, tokens=tokens, recipe=recipe)

        timing = measure.time_call(ten_tokens, device=device, warmup=1, repeats=repeats)
        times.append(TokenTime(name, tokens, timing, recipe.emulated(device)))
        del model, ten_tokens  # 27 GB at full size: free one before the next
    return times
