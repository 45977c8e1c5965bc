"""Batches of token ids: grouped by length, so that little is padded, in an order that a generator draws."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

BUCKET = 16  # batches that are sorted by length together: more pads less and mixes less
MULTIPLE = 8  # padded lengths are multiples of 8, the granule of 16-bit tensor cores
IGNORED = -100  # the label of padding: `torch.nn.functional.cross_entropy` leaves it out


@dataclass(frozen=True)
class Tokens:
    """Token ids of each text, and the labels: int64 [N]; None where every token is the label of those before it."""

    ids: list[list[int]]
    labels: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Batch:
    """Ids and attention mask, int64 [B, S], and labels, int64 [B], or [B, S] with `IGNORED` where there is no token."""

    ids: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on `device`."""
        return Batch(*(part.to(device, non_blocking=True) for part in (self.ids, self.mask, self.labels)))

    def pinned(self) -> "Batch":
        """Return the batch in memory that a GPU reads by itself, while the processor goes on; needs CUDA."""
        return Batch(*(part.pin_memory() for part in (self.ids, self.mask, self.labels)))

    @property
    def padding(self) -> float:
        """The share of the tokens that are padding."""
        return 1 - self.mask.sum().item() / self.mask.numel()


def pad(tokens: Tokens, indices: list[int], *, length: int | None = None) -> Batch:
    """Return the texts at `indices` as one batch, padded with id 0 to `length` or to the longest of them.

    Without labels, the ids are those of every token but the last, and the labels are the tokens that follow them.
    """
    texts = [tokens.ids[index] for index in indices]
    rows = texts if tokens.labels is not None else [text[:-1] for text in texts]
    longest = length or -(-max(map(len, rows)) // MULTIPLE) * MULTIPLE
    lengths = torch.tensor([len(row) for row in rows])
    mask = (torch.arange(longest) < lengths[:, None]).long()  # [B, S]: 1 for a token, 0 for padding
    if tokens.labels is not None:
        labels = tokens.labels[indices]
    else:
        labels = _padded([text[1:] for text in texts], longest, fill=IGNORED)  # [B, S]: the token that follows
    return Batch(_padded(rows, longest, fill=0), mask, labels)


def _padded(rows: list[list[int]], length: int, *, fill: int) -> torch.Tensor:
    return torch.tensor([row[:length] + [fill] * (length - len(row)) for row in rows])


def shuffled(tokens: Tokens, size: int, *, generator: torch.Generator, bucket: int = BUCKET) -> Iterator[Batch]:
    """Yield one epoch in batches of `size` texts of similar length; the last one of a bucket may be smaller.

    With a `bucket` of 1 the lengths do not matter: for texts that are all about as long as each other.
    """
    order = torch.randperm(len(tokens), generator=generator).tolist()
    groups = []
    for begin in range(0, len(order), bucket * size):  # sorted within a bucket, so that little is padded
        alike = sorted(order[begin : begin + bucket * size], key=lambda index: len(tokens.ids[index]))
        groups += [alike[at : at + size] for at in range(0, len(alike), size)]
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
