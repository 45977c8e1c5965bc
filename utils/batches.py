"""Batches of token ids: grouped by length, so that little is padded, in an order that a generator draws."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

BUCKET = 16  # batches that are sorted by length together: more pads less and mixes less
MULTIPLE = 8  # padded lengths are multiples of 8, the granule of 16-bit tensor cores


@dataclass(frozen=True)
class Tokens:
    """Token ids of each text, and the labels: int64 [N]."""

    ids: list[list[int]]
    labels: torch.Tensor

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Batch:
    """Ids and attention mask, int64 [B, S], and labels, int64 [B]."""

    ids: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on `device`."""
        return Batch(*(part.to(device, non_blocking=True) for part in (self.ids, self.mask, self.labels)))


def pad(tokens: Tokens, indices: list[int], *, length: int | None = None) -> Batch:
    """Return the texts at `indices` as one batch, padded with id 0 to `length` or to the longest of them."""
    rows = [tokens.ids[index] for index in indices]
    longest = length or -(-max(map(len, rows)) // MULTIPLE) * MULTIPLE
    ids = torch.tensor([row[:longest] + [0] * (longest - len(row)) for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    mask = (torch.arange(longest) < lengths[:, None]).long()
    return Batch(ids, mask, tokens.labels[indices])


def shuffled(tokens: Tokens, size: int, *, generator: torch.Generator) -> Iterator[Batch]:
    """Yield one epoch in batches of `size` texts of similar length; the last one of a bucket may be smaller."""
    order = torch.randperm(len(tokens), generator=generator).tolist()
    groups = []
    for begin in range(0, len(order), BUCKET * size):
        bucket = sorted(order[begin : begin + BUCKET * size], key=lambda index: len(tokens.ids[index]))
        groups += [bucket[at : at + size] for at in range(0, len(bucket), size)]
    for position in torch.randperm(len(groups), generator=generator).tolist():
        yield pad(tokens, groups[position])


def ordered(tokens: Tokens, size: int) -> Iterator[Batch]:
    """Yield all texts once, the shortest first, in batches of `size`."""
    order = sorted(range(len(tokens)), key=lambda index: len(tokens.ids[index]))
    for begin in range(0, len(order), size):
        yield pad(tokens, order[begin : begin + size])


def count(texts: int, size: int) -> int:
    """Return the number of batches of `size` in one epoch of `texts` texts, as `shuffled` cuts them."""
    return -(-texts // size)
