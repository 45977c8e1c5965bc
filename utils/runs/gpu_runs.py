"""What a page says of runs on GPUs, as soon as there are records of them."""

from collections.abc import Callable

from utils import records
from utils.records import Record


def print_gpu_runs(experiment: str, describe: Callable[[Record], str]) -> None:
    """Print a line for each record of an experiment on a GPU: device, recipe, seed, day, and what `describe` returns.

    Nothing is printed where no GPU has run it.
    """
    for record in records.load_all(experiment=experiment):
        if record.device["kind"] == "cuda":
            run = f"{record.device['name']}, {record.recipe}, seed {record.seed}, {record.date[:10]}"
            print(f"{run}: {describe(record)}")
