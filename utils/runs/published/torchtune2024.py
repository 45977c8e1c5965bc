"""torchtune's published peaks and rates of fine-tuning, lever by lever, which a chapter sets beside its forecast.

`RUNS`: Llama 3.2 3B, all weights trained in bfloat16 with AdamW, a batch of two sequences of 4,096 tokens, one NVIDIA
A100; each lever is added to those before it. Source: README of github.com/meta-pytorch/torchtune, "Optimization flags"
(November 2024), commit 7d470bf. `LLAMA_7B_GB`: the peak of Llama 7B, all in bfloat16 with AdamW, once foreach was
switched off; its device is not named. Source: pull request 389 (February 2024). 1 GiB = 2**30 bytes, 1 GB = 1e9 bytes.
"""

from typing import NamedTuple

GIB = 2**30
BATCH, LENGTH = 2, 4_096
LLAMA_7B_GB = 54


class PublishedPeak(NamedTuple):
    """The peak of active memory in GiB, and tokens per second."""

    gib: float
    tokens_per_second: int

    @property
    def gigabytes(self) -> float:
        """The peak in GB."""
        return self.gib * GIB / 1e9


RUNS = {
    "packed sequences": PublishedPeak(60.0, 7_075),
    "torch.compile": PublishedPeak(51.0, 8_998),
    "loss in chunks": PublishedPeak(42.9, 9_174),
    "checkpointing": PublishedPeak(24.9, 7_210),
    "step inside backward": PublishedPeak(23.1, 7_309),
    "checkpoints on the CPU": PublishedPeak(21.8, 7_301),
    "8-bit AdamW": PublishedPeak(17.6, 6_960),
}
