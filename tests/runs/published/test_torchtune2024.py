"""torchtune's published peaks beside the formulas of the ledger."""

import itertools

import pytest

from utils.cost import memory
from utils.cost.architectures import Architecture
from utils.runs.published import torchtune2024
from utils.runs.published.torchtune2024 import RUNS

SIZES = {"vocabulary": 128_256, "width": 3_072, "layers": 28, "heads": 24, "groups": 8, "hidden": 8_192}
LLAMA_3B = Architecture("llama", **SIZES, positions=131_072, tied=True)


def plain():
    setting = {"batch": torchtune2024.BATCH, "length": torchtune2024.LENGTH, "attention": "sdpa", "padded": False}
    return memory.predict(LLAMA_3B, "bf16-true", **setting)


def test_the_peaks_fall_from_lever_to_lever_and_are_what_the_readme_says_of_the_changes():
    peaks = [run.gib for run in RUNS.values()]
    assert peaks == sorted(peaks, reverse=True)
    changes = [100 * (after / before - 1) for before, after in itertools.pairwise(peaks)]
    assert changes == pytest.approx([-14.93, -15.83, -41.93, -7.29, -5.48, -19.63], abs=0.5)


def test_the_ledger_promises_the_two_moments_within_a_twentieth():
    ledger = plain()
    at_loss, update = ledger.at_rest + ledger.activations + ledger.logits, ledger.at_rest + ledger.gradients
    assert RUNS["packed sequences"].gigabytes == pytest.approx(at_loss / 1e9, rel=0.05)
    assert RUNS["checkpointing"].gigabytes == pytest.approx(update / 1e9, rel=0.05)


def test_foreach_would_not_fit_into_the_published_peak():
    ledger = plain()
    assert (ledger.at_rest + ledger.gradients + ledger.weights) / 1e9 > 1.15 * RUNS["checkpointing"].gigabytes


def test_eight_bytes_for_each_parameter_of_llama_7b():
    assert memory.predict("LLaMA 7B", "bf16-true", batch=0).total / 1e9 == pytest.approx(
        torchtune2024.LLAMA_7B_GB, rel=0.01
    )
