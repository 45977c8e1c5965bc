"""Raschka's published DistilBERT benchmark, which a chapter reads again: its runs, from its logs and its charts.

distilbert-base-uncased on IMDb's 50,000 reviews (35,000 / 5,000 / 10,000, padded to 512 tokens), batch 12, Adam 5e-5,
3 epochs; one NVIDIA A100, torch 2.0.0; one run for each recipe, all from seed 123.
Source: Raschka 2023, and the logs beside its scripts: github.com/rasbt/LLM-finetuning-scripts,
conventional/distilbert-movie-review/mixed-precision-experiment, commit a099246. The peaks: NVIDIA 2020, A100, table 1.
"""

from dataclasses import dataclass

from utils.cost.flops import count_step_flops

TRAINED, VALIDATED, TESTED = 35_000, 5_000, 10_000  # reviews
BATCH = 12
ANSWERED = TESTED // BATCH * BATCH  # reviews that a test counts: the loader drops the last batch, which is not full
LENGTH, EPOCHS = 512, 3  # tokens of each review, with its padding


@dataclass(frozen=True)
class PublishedRun:
    """One run: minutes with its validation, gigabytes (1e9 bytes), percent of the test reviews that it got right.

    `reserved_gb` is torch.cuda.max_memory_reserved, from the log; `charted_gb` is what the memory chart shows for it.
    `peak_tflops`: the data sheet's dense rate of the products that the run makes.
    """

    name: str  # the article's
    recipe: str  # this book's
    minutes: float
    reserved_gb: float
    charted_gb: float
    accuracy: float
    peak_tflops: float

    @property
    def tflops(self) -> float:
        """The rate in TFLOP/s that the minutes amount to; a multiply-add is two."""
        return count_operations() / self.minutes / 60 / 1e12  # FLOPs / s / 1e12


def count_operations() -> float:
    """Return the floating-point operations of one run's products: a training step is three forward passes."""
    from transformers import DistilBertConfig

    config = DistilBertConfig(num_labels=2)
    trained, validated = (count_step_flops(config, rows, LENGTH) for rows in (TRAINED, VALIDATED))
    return EPOCHS * (trained + validated / 3)  # validation: the forward pass alone


RUNS = (
    PublishedRun("float64", "64-true", 24.59, 10.42, 10.42, 92.14, 19.5),
    PublishedRun("float32", "32-true", 21.75, 5.37, 10.42, 89.92, 19.5),
    PublishedRun("TF32", "32-true-high", 8.11, 5.37, 5.37, 92.50, 156),
    PublishedRun("16-mixed", "16-mixed", 7.25, 4.31, 4.31, 92.15, 312),
    PublishedRun("bf16-mixed", "bf16-mixed", 7.45, 4.46, 4.46, 92.61, 312),
    PublishedRun("16-true", "16-true", 5.23, 2.87, 2.87, 50.08, 312),
    PublishedRun("bf16-true", "bf16-true", 5.22, 2.87, 2.87, 92.69, 312),
)
MEDIUM = PublishedRun("TF32, medium", "32-true-medium", 8.14, 5.37, 5.37, 92.50, 156)  # not in the charts
# What the log has of runs that were made again, with torch.set_float32_matmul_precision at highest, high and medium:
# autocast leaves no float32 product to it, so these are repetitions.
REPEATED = {"16-mixed": (92.15, 92.15, 92.15), "bf16-mixed": (92.61, 92.61, 92.61)}
# float32 once more: the same data, model, batch, optimizer, rate, epochs and seed, in plain PyTorch instead of Fabric.
# Raschka 2023, Some Techniques To Make Your PyTorch Models Train (Much) Faster, and 1_pytorch-distilbert.py of
# github.com/rasbt/faster-pytorch-blog, commit e14b76d. The article was updated on 17 March 2023, "now using PyTorch
# 2.0" (2.0.0+cu118); the numbers before that as https://besthub.dev quotes them.
PLAIN_MINUTES, PLAIN_ACCURACY, PLAIN_TRAINED = 21.33, 89.92, 97.28
PLAIN_VALIDATED = (92.17, 92.09, 89.88)  # percent, after each of the three epochs
FIRST_MINUTES, FIRST_ACCURACY = 22.63, 91.43  # of the article's first version, February 2023
BEST_MINUTES, BEST_ACCURACY = 21.79, 92.6  # with Lightning's Trainer, which tests the epoch that validates best
LOGGED_TRAINED, LOGGED_VALIDATED = 97.28, 89.88  # of the float32 run of the benchmark, after its last epoch
LLAMA_TOKENS_PER_SECOND = {"float32": 11.47, "bfloat16": 16.70}  # of a LLaMA 7B that writes, in the same article
BY_NAME = {run.name: run for run in RUNS}
