"""How a language model writes: one loop, and ways to let the model read what it has written so far.

    generate(model, prompt, tokens=60, recipe=RECIPES["32-true"], way="static")

The loop chooses a token and hands it to the model, which returns what it thinks of every possible next one. The ways
of `WAYS` differ in what the model computes again and in what the processor has to launch; in float32 all of them write
the same tokens.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from utils import machine, measure
from utils.emulation.fast_half import HALVES
from utils.training import recipes
from utils.training.recipes import LIGHTNING_NAMES, RECIPES, Recipe
from utils.workloads import models
from utils.workloads.decoders import (
    CompiledDecoder,
    CudaGraphDecoder,
    DynamicCacheDecoder,
    NoCacheDecoder,
    StaticCacheDecoder,
)

FLOAT32 = RECIPES["32-true"]


@dataclass(frozen=True)
class GenerationMethod:
    """A way to generate: its reader, and in one sentence what it does. `reader` is None for transformers' own loop."""

    name: str
    note: str
    reader: type[NoCacheDecoder | DynamicCacheDecoder | StaticCacheDecoder] | None

    @property
    def fixed(self) -> bool:
        """Whether the cache has a fixed size, its room, whatever it holds."""
        return bool(self.reader) and issubclass(self.reader, StaticCacheDecoder)

    def refusal(self, recipe: Recipe, device: torch.device) -> str:
        """Say in one sentence why this device does not generate that way; empty where it does."""
        if self.reader is CudaGraphDecoder and device.type != "cuda":
            return f"{self.name}: a CUDA graph records the kernels of a CUDA GPU, not of a {device.type}; take static"
        if self.reader is CudaGraphDecoder and recipe.compute:
            return f"{self.name}: {recipe.name} casts each weight for each token; take {recipe.name.split('-')[0]}-true"
        if (
            self.reader is CompiledDecoder
            and device.type == "cpu"
            and recipe.arithmetic in HALVES
            and recipe.emulated(device)
        ):
            word = str(recipe.arithmetic).removeprefix("torch.")
            return f"{self.name}: this CPU's {word} products are emulated beyond the compiler's sight; take static"
        return ""


WAYS = {
    way.name: way
    for way in (
        GenerationMethod("no-cache", "everything is read again for each token", NoCacheDecoder),
        GenerationMethod("dynamic", "keys and values are kept in tensors that grow", DynamicCacheDecoder),
        GenerationMethod("static", "keys and values are kept in tensors of a fixed size", StaticCacheDecoder),
        GenerationMethod("compiled", "static, with the step compiled by torch.compile", CompiledDecoder),
        GenerationMethod("graphs", "static, with the step recorded as a CUDA graph", CudaGraphDecoder),
        GenerationMethod("transformers", "transformers' own generate()", None),
    )
}


def find_method(name: str) -> GenerationMethod:
    """Return the way called `name`.

    Raises: ValueError with the known names when there is none.
    """
    if name not in WAYS:
        raise ValueError(f"unknown way {name!r}; the known ones are {', '.join(WAYS)}")
    return WAYS[name]


class Writer:
    """A model made ready to generate in one way; what was compiled or recorded serves all calls.

    `room`: positions of a fixed cache, None for all that the model has. A recipe holds while it generates; the weights
    are taken as they are (see `Recipe.prepare`).
    Raises: ValueError for an unknown way and for one that the device does not have.
    """

    def __init__(self, model: nn.Module, name: str = "dynamic", *, recipe: Recipe = FLOAT32, room: int | None = None):
        self.model, self.way, self.recipe = model, find_method(name), recipe
        self.room = room or model.config.max_position_embeddings
        if refusal := self.way.refusal(recipe, model.device):
            raise ValueError(refusal)
        self.reader = self.way.reader and self.way.reader(model, self.room)

    @torch.no_grad()
    def __call__(
        self,
        prompt: torch.Tensor,
        *,
        tokens: int,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> torch.Tensor:
        """Return the tokens after `prompt`, as `generate` says.

        Raises: ValueError where the room does not hold them, and for a temperature that transformers would draw with a
        generator of its own.
        """
        needed = prompt.shape[1] + tokens - 1  # the last token is not read
        if self.way.fixed and needed > self.room:
            raise ValueError(f"{needed} positions do not fit into a cache of {self.room}; make more room")
        with self.recipe.on(prompt.device), self.recipe.autocast(prompt.device):
            if self.reader is None:
                return _by_transformers(self.model, prompt, tokens=tokens, temperature=temperature)
            self.reader.reset()
            ids, written = prompt, []
            for _ in range(tokens):
                ids = _chosen(self.reader(ids), temperature, generator)
                written.append(ids)
        return torch.cat(written, dim=1)


def _chosen(logits: torch.Tensor, temperature: float, generator: torch.Generator | None) -> torch.Tensor:
    """Return a token for each text: [B, V] -> [B, 1]."""
    if not temperature:
        return logits.argmax(-1, keepdim=True)
    return torch.multinomial((logits.float() / temperature).softmax(-1), 1, generator=generator)


def _by_transformers(model: nn.Module, prompt: torch.Tensor, *, tokens: int, temperature: float) -> torch.Tensor:
    if temperature:
        raise ValueError("transformers draws with torch's global generator; take another way, or temperature 0")
    mask = torch.ones_like(prompt)
    # A token that there is not ends the text: the other ways do not stop either.
    stop = {"eos_token_id": model.config.vocab_size, "pad_token_id": 0, "max_new_tokens": tokens}
    return model.generate(prompt, attention_mask=mask, do_sample=False, **stop)[:, prompt.shape[1] :]


def generate(
    model: nn.Module,
    prompt: torch.Tensor,
    *,
    tokens: int,
    recipe: Recipe = FLOAT32,
    way: str = "dynamic",
    temperature: float = 0.0,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Return the `tokens` tokens that the model puts after `prompt`: int64 [B, S] -> [B, tokens].

    Temperature 0 takes the most probable token each time (greedy decoding). Above 0, a token is drawn from
    softmax(logits / temperature) with `generator`, which lives on the device of the prompt.
    Raises: ValueError as `Writer`.
    """
    writer = Writer(model, way, recipe=recipe, room=prompt.shape[1] + tokens)
    return writer(prompt, tokens=tokens, temperature=temperature, generator=generator)


def write(
    model: nn.Module,
    tokenizer,
    prompt: str,
    *,
    tokens: int = 60,
    recipe: Recipe = FLOAT32,
    temperature: float = 0.0,
    generator: torch.Generator | None = None,
) -> str:
    """Return how the model goes on after `prompt`: at most `tokens` tokens, fewer where it ends the piece by itself.

    `temperature` and `generator` as in `generate`. A byte that is no UTF-8 shows as a replacement character.
    """
    begin = [tokenizer.bos_token_id, *tokenizer(prompt, add_special_tokens=False)["input_ids"]]
    ids = torch.tensor([begin], device=model.device)
    drawn = {"temperature": temperature, "generator": generator}
    written = generate(model, ids, tokens=tokens, recipe=recipe, **drawn)[0].tolist()
    if tokenizer.eos_token_id in written:
        written = written[: written.index(tokenizer.eos_token_id)]
    return tokenizer.decode(written, skip_special_tokens=True)


def first_difference(ids: torch.Tensor, reference: torch.Tensor) -> int | None:
    """Return the place, from 0, of the first token that differs, of the first text; None where none does."""
    differ = (ids[0] != reference[0]).nonzero()
    return int(differ[0]) if len(differ) else None


# Times


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
    names: Iterable[str] = LIGHTNING_NAMES,
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
        recipe = recipes.find_recipe(name)
        model = recipe.prepare(models.build_llama(size, device=device), device)
        prompt = torch.arange(8, device=device)[None]
        timing = writing_time(model, prompt, tokens=tokens, recipe=recipe, repeats=repeats)
        times.append(TokenTime(name, tokens, timing, recipe.emulated(device)))
        del model  # 27 GB at full size: free one before the next
    return times


def writing_time(
    model: nn.Module, prompt: torch.Tensor, *, tokens: int, recipe: Recipe, repeats: int, way: str = "dynamic", **how
) -> measure.Timing:
    """Return the times of greedy generation of `tokens` tokens after `prompt`, which one call warms up.

    `how`: what else `measure.time_call` takes.
    """
    writer = Writer(model, way, recipe=recipe, room=prompt.shape[1] + tokens)

    def call() -> torch.Tensor:
        return writer(prompt, tokens=tokens)

    return measure.time_call(call, device=prompt.device, warmup=1, repeats=repeats, **how)
