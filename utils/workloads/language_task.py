"""What a language model's run begins with: settings of each size, prose as tokens, and a model that is not trained."""

from dataclasses import dataclass, replace

import torch

from utils.training.batches import Tokens
from utils.training.training_loop import Schedule
from utils.workloads import data, models, tokenizers
from utils.workloads.task import TrainingTask

TRAINED_WEIGHTS_RATE = 2e-5  # a learning rate for weights that know something already


@dataclass(frozen=True)
class LanguageSettings:
    """Everything that decides a run beside its recipe and seed.

    `characters` is how much text is taken, `held_out` how much of it is kept from training, at its end. `batch` counts
    pieces of at most `length` tokens. `entries` is the size of the BPE vocabulary.
    """

    characters: int
    held_out: int
    steps: int
    batch: int
    length: int
    schedule: Schedule
    shape: models.LlamaShape
    entries: int


# Two layers learn more in a second than four. At higher rates, or with fewer heads, some seeds mix their animals up.
SMALL = LanguageSettings(
    characters=400_000,
    held_out=20_000,
    steps=160,
    batch=8,
    length=152,
    schedule=Schedule(learning_rate=5e-3),
    shape=models.LlamaShape(width=128, layers=2, heads=8, groups=8, hidden=344, positions=152, tied=True, spread=0.05),
    entries=640,
)
# For a GPU: 25 million parameters, 13 million tokens.
FULL = LanguageSettings(
    characters=4_000_000,
    held_out=100_000,
    steps=800,
    batch=64,
    length=256,
    schedule=Schedule(learning_rate=2e-3),
    shape=models.LlamaShape(width=512, layers=8, heads=8, groups=4, hidden=1_376, positions=256, tied=True),
    entries=4_096,
)


def settings_for(size: str) -> LanguageSettings:
    """Return the settings of a size."""
    return FULL if size == "full" else SMALL


@dataclass(frozen=True, kw_only=True)
class LanguageTask(TrainingTask):
    """Prose as tokens, some of it held out, and a language model to begin with."""

    settings: LanguageSettings
    texts: data.Prose
    held_out: torch.Tensor  # int64 [N]: the pieces of the held-out text one after another, each with its begin and end
    held_out_text: str


def prepare(
    prose: data.Prose,
    *,
    size: str = "small",
    settings: LanguageSettings | None = None,
    weights: str | None = None,
) -> LanguageTask:
    """Return the task of learning to continue `prose`.

    Trained weights come from the folder `weights` (or `MIXED_PRECISION_WEIGHTS`); the model is else drawn at random
    from the settings.
    Raises: ValueError when the folder with weights cannot be used, or when there is too little text.
    """
    settings = settings or settings_for(size)
    text, held_out_text = split(prose.text, held_out=settings.held_out)
    loaded = models.pretrained_llama(weights)
    if loaded:
        positions = loaded.model.config.max_position_embeddings
        settings = replace(
            settings,
            length=min(settings.length, positions),
            schedule=replace(settings.schedule, learning_rate=TRAINED_WEIGHTS_RATE),
        )
        tokenizer, source = loaded.tokenizer, loaded.source
        new_model = lambda seed: models.pretrained_llama(weights).model  # noqa: E731
    else:
        tokenizer = tokenizers.train_prose_bpe(text, entries=settings.entries)
        settings = replace(settings, shape=replace(settings.shape, vocabulary=len(tokenizer)))
        source = f"random, LLaMA of {settings.shape.layers} layers of width {settings.shape.width}"
        new_model = lambda seed: models.build_llama(settings.shape, seed=seed)  # noqa: E731
    train, held_out = (
        tokenizers.pack_pieces(tokenizer, part, length=settings.length) for part in (text, held_out_text)
    )
    return LanguageTask(
        size=size,
        settings=settings,
        texts=prose,
        tokenizer=tokenizer,
        train=Tokens(train),
        held_out=torch.tensor([token for piece in held_out for token in piece]),
        held_out_text=held_out_text,
        new_model=new_model,
        weights=source,
    )


def split(text: str, *, held_out: int) -> tuple[str, str]:
    """Return the text to train on, and about the last `held_out` characters but at most a tenth, cut between lines.

    Raises: ValueError when one of them would be empty.
    """
    cut = len(text) - min(held_out, len(text) // 10)
    cut = text.rfind("\n", 0, cut) + 1 or cut
    if not text[:cut].strip() or not text[cut:].strip():
        raise ValueError(f"{len(text)} characters of text are too few to train on and to hold some out")
    return text[:cut], text[cut:]
