"""Load the LLaMA that generates: trained in the book, from a folder or the hub, or a shape with random weights."""

from dataclasses import dataclass

import torch
from torch import nn

from utils import llama
from utils.workloads import data, models, tokenizers
from utils.workloads.models import LLAMAS, LlamaShape

TRAINED = "trained"
SHAPES = {
    "small": LLAMAS["small"],
    "100m": LlamaShape(width=768, layers=12, heads=12, groups=12, hidden=2_048, positions=1_024),
    "1b": LlamaShape(width=2_048, layers=22, heads=32, groups=4, hidden=5_632),  # TinyLlama's, arXiv 2401.02385
    "7b": LLAMAS["full"],
}
PROMPT = 8  # tokens
HELD_OUT = 20_000  # characters that a model with trained weights is measured on
WINDOW = 512  # tokens that it sees at a time


@dataclass(frozen=True)
class Subject:
    """A LLaMA in float32 on its device, in evaluation mode, with its prompt and the text that measures it.

    `prompt`: int64 [1, S]. `held_out` (int64 [N]) and `window` are as `llama.token_losses` takes them; None where the
    weights are random and know nothing. `weights` and `data` in words.
    """

    name: str
    model: nn.Module
    prompt: torch.Tensor
    weights: str
    data: str
    held_out: torch.Tensor | None = None
    window: int | None = None
    tokenizer: object | None = None


def load_subject(
    name: str = TRAINED,
    *,
    device: torch.device,
    size: str = "small",
    weights: str | None = None,
    text: str | None = None,
    seed: int = 0,
) -> Subject:
    """Return the LLaMA called `name`: "trained" (in the book), one of `SHAPES`, or a name on the hub, "owner/model".

    `weights`: a folder with trained weights, used instead of the name. `text`: a folder with prose, else generated
    stories. `size` is that of the training, `seed` draws random weights.
    Raises: ValueError for an unknown name, a folder that cannot be used, and a hub that cannot be reached.
    """
    if weights:
        llama_subject = _make_subject(
            models.pretrained_llama(weights), models.weights_folder("llama", weights).name, text
        )
    elif name == TRAINED:
        llama_subject = _train(text, device=device, size=size)
    elif name in SHAPES:
        model = models.build_llama(SHAPES[name], seed=seed, device=device)
        prompt = torch.arange(PROMPT)[None]
        llama_subject = Subject(
            f"llama-{name}", model, prompt, f"random, the shape {name}", "none: the weights know nothing"
        )
    elif "/" in name:
        llama_subject = _make_subject(_load_from_hub(name), name, text)
    else:
        raise ValueError(f"unknown model {name!r}; take {TRAINED}, {', '.join(SHAPES)}, or owner/model on the hub")
    llama_subject.model.to(device).eval().set_attn_implementation("sdpa")
    return llama_subject


def _train(text: str | None, *, device: torch.device, size: str) -> Subject:
    trained = llama.train_once(text, device=device, size=size)
    window = trained.model.config.max_position_embeddings
    prompt = trained.ids[:PROMPT][None]  # [1, S]
    weights = f"trained in the book, {models.count_parameters(trained.model) / 1e6:.1f} million parameters"
    return Subject(TRAINED, trained.model, prompt, weights, trained.record.data, trained.ids, window, trained.tokenizer)


def _make_subject(loaded: models.Loaded, name: str, text: str | None) -> Subject:
    prose = data.load_prose(text, characters=HELD_OUT)
    window = min(WINDOW, loaded.model.config.max_position_embeddings)
    pieces = tokenizers.pack_pieces(loaded.tokenizer, prose.text, length=window)
    ids = torch.tensor([token for piece in pieces for token in piece])
    prompt = ids[:PROMPT][None]  # [1, S]
    return Subject(name, loaded.model, prompt, loaded.source, prose.source, ids, window, loaded.tokenizer)


def _load_from_hub(name: str) -> models.Loaded:
    if not data.hub_reachable():
        raise ValueError(f"{name}: the hub cannot be reached; name a folder with its weights")
    from transformers import AutoTokenizer, LlamaForCausalLM

    try:
        with models.quiet():
            model = LlamaForCausalLM.from_pretrained(name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise ValueError(f"{name} cannot be loaded from the hub: {str(error).splitlines()[0]}") from error
    return models.Loaded(model, tokenizer, f"{name}, from the hub")
