"""Made records of the experiment "distilbert": few arms and seeds, with numbers that are known."""

import random

from utils.records import Record
from utils.training.recipes import COMPARED

PLANNED = 40
CPU = {"kind": "cpu", "name": "Some CPU", "threads": 2}
GPU = {"kind": "cuda", "name": "Some GPU"}
SETTINGS = {"train": 320, "test": 2000, "epochs": 1, "batch": 8, "max_length": 128}
MEMORY = {"weights": 1_474_312, "gradients": 1_474_312, "optimizer": 2_948_624, "saved_activations": 44_246_532}


def run(
    recipe,
    seed,
    accuracy=0.8,
    *,
    nan_step=None,
    losses=None,
    device=CPU,
    date="2026-11-22T10:00:00+00:00",
    settings=SETTINGS,
    experiment="distilbert",
    memory=MEMORY,
    rates=None,
    **results,
):
    """A record of one run; its loss falls evenly from 0.7 to 0.3, or is NaN from `nan_step` on."""
    losses = losses or [0.7 - 0.4 * i / (PLANNED - 1) for i in range(PLANNED)]
    kept = [[step, None if nan_step and step >= nan_step else loss] for step, loss in enumerate(losses, 1)]
    facts = {
        "planned_steps": PLANNED,
        "nan_step": nan_step,
        "emulated": False,
        "seconds": 10.0 + seed,
        "cpu_seconds": 9.0 + seed,
        "step_ms": 20.0 + seed,
        "accuracy": accuracy,
        "memory": {**memory, "peak_allocated": None, "peak_reserved": None},
    }
    return Record(
        experiment=experiment,
        recipe=recipe,
        size="small",
        seed=seed,
        settings=settings,
        results=facts | results | ({"rates": rates} if rates else {}),
        samples={"loss": kept},
        data="Some Reviews (10 + 10 reviews), local folder",
        data_name="imdb",
        weights="random, DistilBERT of 2 layers of width 64",
        device=device,
        versions={"torch": "2.13.0+cpu"},
        command="",
        commit=None,
        dirty=False,
        date=date,
    )


# Differences from 32-true: 0.5, 0.3, 0.4, 0.6, 0.2 points (higher), mean 0.1 among far larger ones (cannot be told).
ACCURACY = {
    "32-true": (0.8155, 0.8075, 0.8110, 0.8095, 0.8065),
    "16-mixed": (0.8205, 0.8105, 0.8150, 0.8155, 0.8085),
    "bf16-mixed": (0.8105, 0.8125, 0.8020, 0.8195, 0.8105),
}


def five_seeds():
    """Runs of 32-true, 16-mixed (higher), bf16-mixed (cannot be told) and 16-true (NaN at steps 2 to 4)."""
    found = [run(name, seed, value) for name, values in ACCURACY.items() for seed, value in enumerate(values)]
    halves = {name: count // 2 for name, count in MEMORY.items()}
    found += [run("16-true", seed, 0.5, nan_step=2 + seed % 3, memory=halves, emulated=True) for seed in range(5)]
    return found


def all_arms(devices=(CPU,), seeds=5):
    """Runs of every arm with every quantity, as many digits as real ones have."""
    draw = random.Random(7)
    found = []
    for device in devices:
        for arm in COMPARED:
            for seed in range(seeds):
                noise = [draw.random() for _ in range(PLANNED)]
                rates = {
                    "tokens_per_second": 40_000 + 5_000 * noise[0],
                    "tflops": 0.04 + noise[1] / 100,
                    "share": noise[2],
                }
                found.append(
                    run(
                        arm,
                        seed,
                        0.8 + round(40 * noise[3]) / 2000,
                        losses=[0.7 - 0.3 * i / PLANNED + 0.05 * part for i, part in enumerate(noise)],
                        device=device,
                        rates=rates,
                        seconds=15 + noise[4],
                        cpu_seconds=14 + noise[5],
                        step_ms=60 + noise[6],
                    )
                )
    return found
