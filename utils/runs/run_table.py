"""The table of an experiment's finished runs: one row per recipe, and below it what ± means."""

from collections.abc import Callable

from utils import measure, records
from utils.runs import tables
from utils.training.recipes import ALL_RECIPES

RATES = ("tokens/s", "padding", "TFLOP/s", "of a matmul")  # a matmul: the rate of one large product on this device


def summarize(
    finished: list[records.Record], *, own_columns: Callable[[str, list[dict]], dict[str, str]]
) -> list[dict[str, str]]:
    """Return the results of all finished runs as texts by heading, one row per recipe in the order of `ALL_RECIPES`.

    `own_columns(name, results)` returns the columns that an experiment adds for a recipe. Times and rates are means
    over the seeds. A rate that a record lacks is "-", and so is that of emulated FP8, which is not the speed of FP8.
    """
    rows = []
    for name in [name for name in ALL_RECIPES if any(record.recipe == name for record in finished)]:
        runs = [record.results for record in finished if record.recipe == name]
        memory, scale = runs[-1]["memory"], runs[-1]["loss_scale"]
        kinds = {"weights": "weights", "gradients": "gradients", "optimizer": "optimizer"}
        kinds |= {"activations": "saved_activations"}
        if memory["peak_allocated"]:
            kinds |= {"peak allocated": "peak_allocated", "peak reserved": "peak_reserved"}
        rows.append(
            {
                "recipe": name,
                **own_columns(name, runs),
                "seconds": f"{_mean(runs, 'seconds'):.1f}",
                "processor s": f"{_mean(runs, 'cpu_seconds'):.1f}",
                "ms/step": f"{_mean(runs, 'step_ms'):.1f}",
                **_format_rates(
                    [] if is_emulated_float8(name, runs) else [run["rates"] for run in runs if "rates" in run]
                ),
                **{heading: f"{memory[kind] / 1e6:.2f} MB" for heading, kind in kinds.items()},
                "loss scale": "-" if scale is None else f"{scale:.0f}",
                "skipped": " ".join(str(result["skipped_steps"]) for result in runs),
                "NaN at step": " ".join(str(result["nan_step"] or "-") for result in runs),
            }
        )
    return rows


def is_emulated_float8(name: str, runs: list[dict]) -> bool:
    """Say whether a recipe has FP8 layers and one of its runs emulated them: its times are those of the emulation."""
    return ALL_RECIPES[name].float8 is not None and any(result.get("emulated") for result in runs)


def _mean(runs: list[dict], name: str) -> float:
    return measure.mean_interval(result[name] for result in runs)[0]


def _format_rates(runs: list[dict]) -> dict[str, str]:
    """Return the columns of `run_facts.measure_rates`; without runs all are "-"."""
    if not runs:
        return dict.fromkeys(RATES, "-")
    texts = (
        f"{_mean(runs, 'tokens_per_second'):,.0f}",
        f"{100 * _mean(runs, 'padding'):.0f} %",
        f"{_mean(runs, 'tflops'):.3g}",
        f"{100 * _mean(runs, 'share'):.0f} %",
    )
    return dict(zip(RATES, texts, strict=True))


def format_table(rows: list[dict[str, str]], finished: list[records.Record], *, about: str) -> str:
    """Return the rows of `summarize` as aligned text, with a line that says what was measured and what ± means.

    A line below names each recipe that the device ran in another way than its name says.
    """
    seeds = max(sum(record.recipe == row["recipe"] for record in finished) for row in rows)
    note = "one seed, so no interval"
    if seeds > 1:
        note = f"± is the 95 % Student interval of the mean over {seeds} seeds"
    lines = [tables.align([tuple(rows[0]), *(tuple(row.values()) for row in rows)]), f"{about}; {note}"]
    remarks = {record.recipe: record.results.get("remark") for record in finished}
    lines += [f"{row['recipe']}: {remark}" for row in rows if (remark := remarks[row["recipe"]])]
    return "\n".join(lines)
