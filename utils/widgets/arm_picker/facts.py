"""What ArmPicker knows: the numbers of recorded runs by device, arm and seed.

`arms_of` makes plain JSON values, rounded, few enough for the HTML of a page; `arm_words` reads them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from utils.records import Record
from utils.training.recipes import COMPARED, RECIPES

EXPERIMENT = "distilbert"
DIGITS = 4  # that a number keeps in the state
LAST = 0.9  # from this share of the steps on, the losses are averaged to the last loss
MOST_POINTS, MOST_NUMBERS = 16, 880  # of a loss curve, of all curves together
LOSS = "loss"
OURS = ("factor", "digits")  # of a quantity: what the page does not need
EMULATED = "its narrow products were emulated in float32"


@dataclass(frozen=True)
class Quantity:
    """A number of a run: where it stands in the results of a record, and how it is said.

    `better`: 1 where more is better, -1 where less is. `decimals`: None for three digits of the largest.
    `step`: the difference that one would like to see, in `unit`; None: 5 % of the baseline.
    `finite`: it says nothing of a run whose loss was NaN. `digits`: how many of it are kept. `far`: an arm that lies
    farther than this from the baseline is set aside, so that the axis shows the others; None: never.
    """

    name: str
    label: str
    unit: str
    path: tuple[str, ...]
    factor: float = 1.0
    better: int = -1
    decimals: int | None = None
    difference: str | None = None  # the unit of a difference, where it is another
    step: float | None = None
    step_words: str = "5 %"
    finite: bool = True
    digits: int = DIGITS
    far: float | None = None


def _bytes(kind: str, label: str) -> Quantity:
    return Quantity(kind, f"memory: {label}", "MB", ("memory", kind), factor=1e-6, finite=False, digits=DIGITS + 1)


QUANTITIES = (
    Quantity(
        "accuracy",
        "test accuracy",
        "%",
        ("accuracy",),
        100.0,
        1,
        decimals=1,
        difference="points",
        step=0.25,
        step_words="a quarter point",
        far=5.0,
    ),
    Quantity(LOSS, "training loss, last tenth of the steps", "", (), decimals=3, step=0.01, step_words="0.01"),
    Quantity("seconds", "seconds of the run, by the clock", "s", ("seconds",)),
    Quantity("cpu_seconds", "seconds of the run, of the processor", "s", ("cpu_seconds",)),
    Quantity("step_ms", "milliseconds per step, median", "ms", ("step_ms",)),
    Quantity("tokens_per_second", "thousand tokens per second", "k/s", ("rates", "tokens_per_second"), 1e-3, better=1),
    Quantity("tflops", "TFLOP/s", "TFLOP/s", ("rates", "tflops"), better=1),
    Quantity("share", "TFLOP/s, share of a large product's", "%", ("rates", "share"), 100.0, 1, difference="points"),
    _bytes("weights", "weights"),
    _bytes("gradients", "gradients"),
    _bytes("optimizer", "optimizer"),
    _bytes("saved_activations", "saved activations"),
    _bytes("peak_allocated", "peak allocated"),
    _bytes("peak_reserved", "peak reserved"),
)


def arms_of(
    records: Iterable[Record], arms: Sequence[str] = COMPARED, *, quantities: Sequence[str] | None = None
) -> dict:
    """Return the numbers of all runs of the experiment "distilbert" as rounded JSON values.

    Runs are grouped by what they were recorded on and under which conditions: only runs of one group are compared. The
    group with most arms comes first; of two runs of one arm, seed and group the later counts. `arms`: names of recipes
    to list, in order, recorded or not. `quantities`: names of those to offer, by default all.

    Raises: ValueError where no record is of that experiment and one of these arms, and for a quantity of no such name.
    """
    matching = [record for record in records if record.experiment == EXPERIMENT and record.recipe in arms]
    if not matching:
        raise ValueError(f"no record is of {EXPERIMENT!r} in {', '.join(arms)}; pass records.load_all()")
    if unknown := set(quantities or ()) - {quantity.name for quantity in QUANTITIES}:
        raise ValueError(f"no quantity is called {', '.join(sorted(unknown))}")
    offered = [quantity for quantity in QUANTITIES if quantities is None or quantity.name in quantities]
    points = min(MOST_POINTS, max(6, MOST_NUMBERS // len(matching)))
    groups = {}
    for record in sorted(matching, key=lambda record: record.date):
        runs = groups.setdefault(_group_of(record), {})
        runs.setdefault(record.recipe, {})[record.seed] = record  # the later one stays
    most_first = sorted(groups.items(), key=lambda group: -len(group[1]))
    return {
        "arms": list(arms),
        "notes": {name: RECIPES[name].note for name in arms if name in RECIPES},
        "points": points,
        "quantities": [_quantity_row(at, quantity) for at, quantity in enumerate(offered)],
        "groups": [_group_row(*key, runs, arms, points, offered) for key, runs in most_first],
    }


def _quantity_row(at: int, quantity: Quantity) -> dict:
    """Return what the page needs of a quantity: its place in the values of a run, and what is not as for most."""
    usual, row = Quantity(quantity.name, quantity.label, quantity.unit, quantity.path), asdict(quantity)
    row = {name: value for name, value in row.items() if value != getattr(usual, name) and name not in OURS}
    return {"at": at, "name": quantity.name, "label": quantity.label, "unit": quantity.unit, **row}


def _group_of(record: Record) -> tuple[str, str]:
    """Return what must be the same in runs that are compared: the device, and the conditions in words."""
    device, settings = record.device, record.settings
    kind = {"cpu": "CPU", "cuda": "GPU"}.get(device["kind"], device["kind"])
    threads = f", {device['threads']} threads" if "threads" in device else ""
    epochs = f"{settings['epochs']} epoch{'s' if settings['epochs'] != 1 else ''}"
    trained = (
        f"{record.weights}; {record.data.partition(',')[0].partition(' (')[0]}: {settings['train']:,} to train,"
        f" {settings['test']:,} to test; {epochs}, batch {settings['batch']}, at most {settings['max_length']} tokens"
    )
    return f"{device['name']} ({kind}{threads}), {record.size}", trained


def _group_row(
    device: str, conditions: str, runs: dict, arms: Sequence[str], points: int, offered: Sequence[Quantity]
) -> dict:
    every = [record for by_seed in runs.values() for record in by_seed.values()]
    days = sorted({record.date[:10] for record in every})
    versions = sorted({record.versions["torch"].partition("+")[0] for record in every})
    seeds = sorted({seed for by_seed in runs.values() for seed in by_seed})
    return {
        "device": device,
        "conditions": f"{conditions}; torch {', '.join(versions)}; {' to '.join(dict.fromkeys((days[0], days[-1])))}",
        "steps": max(record.results["planned_steps"] for record in every),
        "seeds": seeds,
        "runs": {
            name: _run_row([runs[name].get(seed) for seed in seeds], points, offered) for name in arms if name in runs
        },
    }


def _run_row(runs: list[Record | None], points: int, offered: Sequence[Quantity]) -> dict:
    every = [[run and _number(run, quantity) for run in runs] for quantity in offered]
    values = [numbers[0] if len(set(numbers)) == 1 else numbers for numbers in every]  # bytes: one number for all seeds
    row = {"values": values, "curves": [run and _curve(run, points) for run in runs]}
    if any(run and run.results["nan_step"] for run in runs):
        row["nan"] = [run and run.results["nan_step"] for run in runs]
    last = next(run for run in reversed(runs) if run)
    if remark := last.results.get("remark") or (EMULATED if last.results["emulated"] else ""):
        row["remark"] = remark
    return row


def _number(run: Record, quantity: Quantity) -> float | None:
    if quantity.finite and run.results["nan_step"]:
        return None
    if quantity.name == LOSS:
        last = [loss for step, loss in _losses(run) if step > LAST * run.results["planned_steps"]]
        value = sum(last) / len(last) if last else None
    else:
        value = run.results
        for name in quantity.path:
            value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(f"{value * quantity.factor:.{quantity.digits}g}")


def _losses(run: Record) -> list[tuple[int, float]]:
    return [(step, loss) for step, loss in run.samples.get("loss", []) if loss is not None]


def _curve(run: Record, points: int) -> list[int | None]:
    """Return means of the loss over equal parts of the planned steps, in thousandths."""
    parts = [[] for _ in range(points)]
    for step, loss in _losses(run):
        parts[min(points - 1, (step - 1) * points // run.results["planned_steps"])].append(loss)
    curve = [round(1000 * sum(part) / len(part)) if part else None for part in parts]
    while curve and curve[-1] is None:  # it ends where the run did
        curve.pop()
    return curve
