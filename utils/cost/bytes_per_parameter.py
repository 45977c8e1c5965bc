"""Published numbers of bytes per parameter, taken apart: 16, 18, 20, 9 and 6 count different tensors.

reconcile()  # a row for each tensor, a column for each count
"""

from dataclasses import dataclass

TENSORS = ("weights", "master weights", "gradients", "accumulated gradients", "first moment", "second moment")


@dataclass(frozen=True)
class Count:
    """A published number of bytes per parameter: the tensors that it counts, and what it leaves out."""

    name: str
    bytes: dict[str, int]
    leaves_out: str
    source: str

    @property
    def total(self) -> int:
        """Bytes per parameter."""
        return sum(self.bytes.values())


def _count(name: str, bytes_of: tuple[int, ...], leaves_out: str, source: str) -> Count:
    counted = {tensor: size for tensor, size in zip(TENSORS, bytes_of, strict=True) if size}
    return Count(name, counted, leaves_out, source)


_PLAYBOOK = (
    "The Ultra-Scale Playbook (2025), summary of FP8 training, huggingface.co/spaces/nanotron/ultrascale-playbook"
)
_MEGATRON = "Megatron Core, distributed optimizer, docs.nvidia.com/megatron-core/developer-guide"
COUNTS = (
    _count("float32", (4, 0, 4, 0, 4, 4), "nothing: the weights are their own master", _MEGATRON),
    _count(
        "ZeRO",
        (2, 4, 2, 0, 4, 4),
        "float32 gradients",
        "Rajbhandari et al. 2020, arXiv 1910.02054, section 3.1",
    ),
    _count(
        "autocast",
        (2, 4, 4, 0, 4, 4),
        "that the 16-bit copies of weights last for one step",
        "transformers, GPU memory usage, huggingface.co/docs/transformers/model_memory_anatomy",
    ),
    _count("Megatron, bfloat16", (2, 4, 4, 0, 4, 4), "16-bit gradients, which are added up at once", _MEGATRON),
    _count("Megatron, float16", (2, 4, 2, 4, 4, 4), "nothing", _MEGATRON),
    _count("playbook, bfloat16", (2, 4, 2, 4, 4, 4), "nothing", _PLAYBOOK),
    _count(
        "FP8-LM's Adam",
        (0, 4, 4, 0, 4, 4),
        "the weights that compute",
        "Peng et al. 2023, arXiv 2310.18313, section 2.2",
    ),
    _count(
        "FP8-LM",
        (0, 2, 1, 0, 1, 2),
        "the weights that compute, and accumulated gradients",
        "Peng et al. 2023, arXiv 2310.18313, section 2.2",
    ),
    _count("playbook, FP8-LM", (1, 2, 1, 2, 1, 2), "nothing", _PLAYBOOK),
)


def reconcile() -> list[dict[str, int | str]]:
    """Return one row for each of `TENSORS`, and the sum: its bytes per parameter in each of `COUNTS`, 0 if left out."""
    rows = [{"tensor": name} | {count.name: count.bytes.get(name, 0) for count in COUNTS} for name in TENSORS]
    return [*rows, {"tensor": "sum"} | {count.name: count.total for count in COUNTS}]
