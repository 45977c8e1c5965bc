"""The matrix products that `gemm_sweep` measures: squares, skinny and odd ones, and those of two training steps."""

from collections.abc import Iterator

import torch

from utils.cost import gemm_shapes
from utils.cost.gemm_shapes import NamedGemm
from utils.cost.roofline import Gemm
from utils.workloads import models
from utils.workloads.language_task import SMALL
from utils.workloads.review_task import FULL, SMALL_REAL

SQUARE, SKINNY, ODD, DISTILBERT, LLAMA = "square", "skinny", "odd", "DistilBERT step", "LLaMA step"
GROUPS = (SQUARE, SKINNY, ODD, DISTILBERT, LLAMA)
WIDEST = {"small": 2048, "full": 8192}  # of the squares, each twice as wide as the one before it
MATRIX = {"small": 1024, "full": 4096}  # the side of the matrix that a few rows are multiplied by
# Multiples of 8, 16 and 64, each beside its neighbours: kernels read in vectors and compute in tiles.
MIDDLES = {"small": (520, 528, 576), "full": (4104, 4112, 4160)}

Shapes = list[tuple[Gemm, int]]  # products, and how many of each in a batch


def list_families(size: str, *, groups: tuple[str, ...] = GROUPS) -> Iterator[tuple[str, Shapes]]:
    """Yield the shapes of a size with their group; those of one list are neighbours, to be measured in turns.

    Raises: ValueError for a group that is not one of `GROUPS`.
    """
    if unknown := set(groups) - set(GROUPS):
        raise ValueError(f"unknown group {min(unknown)!r}; the known ones are {', '.join(GROUPS)}")
    generators = {SQUARE: list_squares, SKINNY: list_skinny, ODD: list_odd}
    for group in groups:
        shapes = generators[group](size) if group in generators else list_step(group, size)
        yield from ((group, family) for family in shapes)


def list_squares(size: str) -> Iterator[Shapes]:
    """Yield squares from 16 to `WIDEST`."""
    width = 16
    while width <= WIDEST[size]:
        yield [(Gemm(width, width, width), 1)]
        width *= 2


def list_skinny(size: str) -> Iterator[Shapes]:
    """Yield 1, 2, 4, ... rows times a square matrix: the tokens of a batch in a linear layer."""
    side = MATRIX[size]
    rows = 1
    while rows < side:
        yield [(Gemm(rows, side, side), 1)]
        rows *= 2


def list_odd(size: str) -> Iterator[Shapes]:
    """Yield squares whose width is a multiple of 8, of 16 and of 64, each with both neighbours."""
    for middle in MIDDLES[size]:
        yield [(Gemm(width, width, width), 1) for width in (middle - 1, middle, middle + 1)]


def list_step(group: str, size: str) -> Iterator[Shapes]:
    """Yield each shape of a training step once; those of attention as a batch, with one product per text and head."""
    batches: dict[Gemm, int] = {}
    for named in trace_step(group, size):
        batches[named.gemm] = min(named.count, batches.get(named.gemm, named.count))
    yield from ([pair] for pair in batches.items())


def trace_step(group: str, size: str) -> list[NamedGemm]:
    """Return every product of one training step, layer by layer, read off on the meta device: nothing is computed.

    "small" are the steps of this book's experiments on a CPU, "full" that of distilbert-base-uncased on 12 reviews of
    512 tokens and that of LLaMA-7B on one text of 2,048. The dtype is float32, to be replaced by that of a recipe.
    """
    if group == DISTILBERT:
        settings = FULL if size == "full" else SMALL_REAL
        rows, length = settings.batch, settings.max_length
        model = models.build_distilbert(settings.shape, attention="eager", device="meta")
    else:
        rows, length = (1, models.LLAMAS["full"].positions) if size == "full" else (SMALL.batch, SMALL.length)
        shape, vocabulary = ("full", None) if size == "full" else (SMALL.shape, SMALL.entries)
        model = models.build_llama(shape, vocabulary=vocabulary, device="meta")
        model.set_attn_implementation("eager")
    ids = torch.zeros(rows, length, dtype=torch.long, device="meta")
    model.train()
    return gemm_shapes.record_gemms(model, lambda: model(input_ids=ids).logits.mean().backward())
