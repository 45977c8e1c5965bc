"""The bytes that writing one token moves, and the tokens a second that a memory allows: bandwidth divided by bytes.

    predicted("LLaMA 7B", weight_bits=16, context=500).tokens_per_second(1555)  # GB/s: 115.4

A step of generation writes one token of each text of its batch. It reads every weight once, whatever the batch, but of
the embeddings one row a text; it reads the keys and values of all earlier tokens, and writes those of the new one.
What a step computes with stays in caches and is not counted. 1 GB = 1e9 bytes.
"""

from dataclasses import dataclass

from torch import nn

from utils import measure
from utils.cost import architectures
from utils.cost.architectures import Architecture


@dataclass(frozen=True)
class TokenBytes:
    """Bytes that a step moves, which writes a token of each of `batch` texts.

    `weights` are read, `cache_read` and `cache_written` are keys and values.
    """

    weights: int
    cache_read: int
    cache_written: int
    batch: int = 1

    @property
    def total(self) -> int:
        """Bytes of a step."""
        return self.weights + self.cache_read + self.cache_written

    def tokens_per_second(self, bandwidth: float) -> float:
        """Return the tokens a second, of all texts together, that a memory of `bandwidth` GB/s allows at most."""
        return 1e9 * bandwidth * self.batch / self.total  # texts * (bytes a second) / (bytes a step)

    def moved_per_second(self, tokens_per_second: float) -> float:
        """Return the GB/s that so many tokens a second move."""
        return tokens_per_second / self.batch * self.total / 1e9


def kv_bytes(model: nn.Module | Architecture | str, *, tokens: int, batch: int = 1, bits: float | None = None) -> int:
    """Return the bytes of the keys and values of `tokens` tokens of each of `batch` texts.

    Each layer keeps a key and a value for each head of keys and values: where several heads of queries share one
    (grouped queries, Ainslie et al. 2023, arXiv 2305.13245), it is kept once. `bits`: of a number, with its share of a
    scale where it has one; None takes those of the dtype of the module, 16 without one.
    Raises: ValueError for a model without formula, and for less than 0 tokens or 1 text.
    """
    if tokens < 0 or batch < 1:
        raise ValueError(f"{tokens} tokens of {batch} texts cannot be kept; take 0 tokens or more of 1 text or more")
    if bits is None:
        bits = 8 * model.dtype.itemsize if isinstance(model, nn.Module) else 16
    sizes = _architecture(model)
    # K and V: 2 [layers, batch, tokens, G], with G = heads of keys * width of a head
    return round(2 * sizes.layers * sizes.dimensions["G"] * tokens * batch * bits / 8)


def bytes_per_token(model: nn.Module, *, context: int, batch: int = 1, kv_bits: float | None = None) -> TokenBytes:
    """Return what a step of a LLaMA of transformers moves after `context` tokens, from its tensors as they lie there.

    Parameters and buffers count once each, tied ones too, whatever their dtype: a scale of a group counts, and so does
    a code of 4 bits that shares its byte. `kv_bits`: see `kv_bytes`.
    Raises: ValueError as `kv_bytes`.
    """
    embeddings = model.get_input_embeddings()
    read = measure.tensor_bytes([*model.parameters(), *model.buffers()])
    head = model.get_output_embeddings()
    if getattr(head, "weight", None) is not embeddings.weight:
        row = measure.tensor_bytes([embeddings.weight]) // embeddings.num_embeddings
        read += (batch - embeddings.num_embeddings) * row  # of the table one row a text, not all of it
    kept = {"batch": batch, "bits": kv_bits}
    return TokenBytes(read, kv_bytes(model, tokens=context, **kept), kv_bytes(model, tokens=1, **kept), batch)


def predict(
    model: Architecture | str,
    *,
    weight_bits: float = 16,
    other_bits: float = 16,
    head_bits: float | None = None,
    context: int = 0,
    batch: int = 1,
    kv_bits: float = 16,
) -> TokenBytes:
    """Return what a step of a LLaMA moves, from its sizes.

    `weight_bits`: of a weight of the linear layers, with its share of a scale. `head_bits`: of a weight of the head,
    None for `other_bits`, which is what norms and embeddings have.
    Raises: ValueError for another family, and as `kv_bytes`.
    """
    sizes = _architecture(model)
    if sizes.family != "llama":
        raise ValueError(f"a {sizes.family} does not write tokens this way; take a LLaMA")
    size = sizes.dimensions
    # a layer: Q and O [D, D], K and V [D, G], and the three of the MLP [D, F]
    linear = sizes.layers * (2 * size["D"] * (size["D"] + size["G"]) + 3 * size["D"] * size["F"])
    norms = size["D"] * (2 * sizes.layers + 1)  # two a layer, and the last one
    head = size["V"] * size["D"] * (other_bits if head_bits is None or sizes.tied else head_bits)
    rows = 0 if sizes.tied else batch * size["D"]  # of the embeddings; a tied table is read as the head
    weights = round((linear * weight_bits + (norms + rows) * other_bits + head) / 8)
    kept = {"batch": batch, "bits": kv_bits}
    return TokenBytes(weights, kv_bytes(sizes, tokens=context, **kept), kv_bytes(sizes, tokens=1, **kept), batch)


def _architecture(model: nn.Module | Architecture | str) -> Architecture:
    if isinstance(model, str):
        return architectures.find_architecture(model)
    return model if isinstance(model, Architecture) else architectures.read_config(getattr(model, "config", model))
