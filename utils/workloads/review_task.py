"""What a fine-tuning run begins with: settings of each size, reviews as tokens, and a model that is not trained yet."""

from dataclasses import dataclass, replace

import torch

from utils.training.batches import Tokens
from utils.training.training_loop import Schedule
from utils.workloads import data, models, tokenizers
from utils.workloads.task import TrainingTask

TRAINED_WEIGHTS_RATE = 5e-5  # a learning rate for weights that know something already


@dataclass(frozen=True)
class ReviewSettings:
    """Everything that decides a run beside its recipe and seed.

    `train`, `validation`, `test` count reviews; `pooled` draws them from all reviews together. `entries` is the size of
    the BPE vocabulary, None for one entry a word. `keep_end` cuts long reviews at their beginning.
    """

    train: int
    validation: int
    test: int
    epochs: int
    batch: int
    max_length: int
    schedule: Schedule
    shape: models.DistilBertShape
    pooled: bool = False
    entries: int | None = None
    keep_end: bool = False


TINY = models.DistilBertShape(
    width=64, layers=2, heads=2, hidden=256, positions=128, dropout=0.0, head_dropout=0.0, spread=0.05
)
SMALL_GENERATED = ReviewSettings(
    train=6_000,
    validation=0,
    test=2_000,
    epochs=3,
    batch=32,
    max_length=64,
    schedule=Schedule(learning_rate=1e-3),
    shape=TINY,
)
# At higher rates, or with smaller batches, some seeds never leave chance: luck, not precision.
SMALL_REAL = ReviewSettings(
    train=8_000,
    validation=0,
    test=2_000,
    epochs=1,
    batch=32,
    max_length=128,
    schedule=Schedule(learning_rate=1e-3),
    shape=TINY,
    entries=4_000,
    keep_end=True,
)
# The benchmark of reference: 35k / 5k / 10k of IMDb's 50,000 reviews, batch 12, 512 tokens, AdamW 5e-5, 3 epochs.
FULL = ReviewSettings(
    train=35_000,
    validation=5_000,
    test=10_000,
    epochs=3,
    batch=12,
    max_length=512,
    schedule=Schedule(learning_rate=TRAINED_WEIGHTS_RATE),
    shape=models.DistilBertShape(),
    pooled=True,
    entries=30_522,
)


def settings_for(size: str, reviews: data.Reviews) -> ReviewSettings:
    """Return the settings of a size; "small" depends on the reviews, since real ones are longer."""
    if size == "full":
        return FULL
    return SMALL_GENERATED if reviews.generated else SMALL_REAL


@dataclass(frozen=True, kw_only=True)
class ReviewTask(TrainingTask):
    """Reviews as tokens, each with its label, and a classifier to begin with."""

    settings: ReviewSettings
    texts: data.Reviews
    validation: Tokens
    test: Tokens
    test_texts: list[str]


def prepare(
    reviews: data.Reviews,
    *,
    size: str = "small",
    settings: ReviewSettings | None = None,
    weights: str | None = None,
) -> ReviewTask:
    """Return the task of fine-tuning on `reviews`.

    Trained weights come from the folder `weights` (or `MIXED_PRECISION_WEIGHTS`), at full size else from the hub; the
    model is else drawn at random from the settings.
    Raises: ValueError when the folder with weights cannot be used.
    """
    settings = settings or settings_for(size, reviews)
    parts = data.split(
        reviews,
        train=settings.train,
        validation=settings.validation,
        test=settings.test,
        pooled=settings.pooled,
    )
    loaded = models.pretrained_distilbert(weights, hub=size == "full")
    if loaded:
        positions = loaded.model.config.max_position_embeddings
        settings = replace(
            settings,
            max_length=min(settings.max_length, positions),
            schedule=replace(settings.schedule, learning_rate=TRAINED_WEIGHTS_RATE),
        )
        tokenizer, source = loaded.tokenizer, loaded.source
        new_model = lambda seed: models.pretrained_distilbert(weights, seed=seed).model  # noqa: E731
    else:
        tokenizer = _tokenizer(parts.train.texts, settings)
        settings = replace(settings, shape=replace(settings.shape, vocabulary=len(tokenizer)))
        source = f"random, DistilBERT of {settings.shape.layers} layers of width {settings.shape.width}"
        new_model = lambda seed: models.build_distilbert(settings.shape, seed=seed)  # noqa: E731
    return ReviewTask(
        size=size,
        settings=settings,
        texts=reviews,
        tokenizer=tokenizer,
        train=_tokens(tokenizer, parts.train, settings),
        validation=_tokens(tokenizer, parts.validation, settings),
        test=_tokens(tokenizer, parts.test, settings),
        test_texts=parts.test.texts,
        new_model=new_model,
        weights=source,
    )


def _tokenizer(texts: list[str], settings: ReviewSettings):
    if settings.entries is None:
        return tokenizers.train_word_tokenizer(texts, max_length=settings.max_length)
    return tokenizers.train_bpe(
        texts, entries=settings.entries, max_length=settings.max_length, keep_end=settings.keep_end
    )


def _tokens(tokenizer, part: data.Part, settings: ReviewSettings) -> Tokens:
    ids = tokenizers.encode(tokenizer, part.texts, max_length=settings.max_length) if part.texts else []
    return Tokens(ids, torch.tensor(part.labels, dtype=torch.long))
