"""What the book wants recorded, in the order of what a figure is worth to it per minute.

    for entry in list_wanted():
        print(entry.name, entry.minutes["full"], entry.page)

Minutes at full size are estimates for one H100. Nothing here has run on a GPU until a report says so; as soon as some
commands have ended, the others are scaled by how long those took (`plan.pace_of`). Minutes at small size were measured
on two cores of a CPU.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from utils.records import Record
from utils.training.recipes import COMPARED, FLOAT8_MIXED

REVIEWS, PROSE, WEIGHTS = "reviews", "prose", "weights"
OPTIONS = {REVIEWS: "--data", PROSE: "--data", WEIGHTS: "--weights"}  # of a command that takes such a folder
SCALED_PRODUCT = ("emulation/test_scaled_matmul.py", "emulation/test_scaled_tensor.py")
FP8_TRAINING = (*SCALED_PRODUCT, "training/test_float8_linear.py")
GENERATION = ("workloads/test_generation.py", "quantization/test_weight_formats.py")
WATCHED_ARMS = ("32-true", "bf16-true", "bf16-true-stochastic", "bf16-true-kahan", "bf16-true-master", "16-true-master")
FIRST_ARMS = ("32-true-high", "bf16-mixed", "16-mixed")  # of the comparison, before the slow ones


@dataclass(frozen=True)
class Wanted:
    """One command whose record the book wants.

    `arguments`: the module below `utils`, then its options without device, size, record and folders. `minutes`: how
    long it is thought to take, by size. `page`: the page below `book/` that shows it. `rests_on`: the files below
    `tests/` whose GPU tests must not have failed. `folders`: which of `OPTIONS` it takes. `size`: that of the command
    where it is not the plan's; "" where it has no sizes. `resumes`: it takes `--checkpoint`. `least_cards`: how many
    GPUs it needs. `experiment`, `recipe` and `seeds` are those of its records; "" stands for any recipe.
    """

    name: str
    arguments: tuple[str, ...]
    minutes: dict[str, float]
    page: str
    rests_on: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    size: str | None = None
    resumes: bool = False
    least_cards: int = 0
    experiment: str = ""
    recipe: str = ""
    seeds: int = 1

    def command(self, *, device: str, size: str, record: str, checkpoint: str, folders: dict[str, str]) -> list[str]:
        """Return what follows `python -m`; `folders` maps names of `OPTIONS` to folders that are there."""
        module, *options = self.arguments
        parts = [f"utils.{module}", *options, "--device", device]
        size = size if self.size is None else self.size
        parts += ["--size", size] if size else []
        for name in self.folders:
            parts += [OPTIONS[name], folders[name]] if name in folders else []
        parts += ["--checkpoint", checkpoint] if self.resumes else []
        return [*parts, "--record", record]

    def find_gpus(self, made: Iterable[Record]) -> list[str]:
        """Return the names of the GPUs of which `made` holds this record, of all its seeds."""
        seeds: dict[str, set[int]] = defaultdict(set)
        for record in made:
            same = record.experiment == (self.experiment or self.name) and self.recipe in ("", record.recipe)
            if same and record.device["kind"] == "cuda":
                seeds[record.device["name"]].add(record.seed)
        return sorted(gpu for gpu, numbers in seeds.items() if len(numbers) >= self.seeds)


def list_wanted() -> tuple[Wanted, ...]:
    """Return everything that the book wants, the most useful per minute first."""
    return (
        Wanted(
            "microscope",
            ("experiments.microscope",),
            minutes={"full": 1, "small": 0.3},
            page="hardware/accumulation",
            rests_on=("experiments/microscope/test_survey.py",),
            size="",
        ),
        Wanted(
            "accumulation_error",
            ("experiments.accumulation_error",),
            minutes={"full": 4, "small": 0.8},
            page="hardware/accumulation",
            rests_on=("experiments/test_accumulation_error.py",),
            folders=(PROSE,),
        ),
        Wanted(
            "gemm_sweep",
            ("experiments.gemm_sweep",),
            minutes={"full": 2, "small": 0.5},
            page="hardware/tensor_cores",
            rests_on=("experiments/test_gemm_sweep.py",),  # it measures by itself what a float32 product keeps
        ),
        Wanted(
            "fp8_speed",
            ("experiments.fp8_speed",),
            minutes={"full": 1, "small": 0.3},
            page="eight_bits/fp8_training",
            rests_on=SCALED_PRODUCT,
            recipe="eager",
        ),
        Wanted(
            "fp8_speed-compiled",
            ("experiments.fp8_speed", "--compile"),
            minutes={"full": 8, "small": 3},  # about 110 compilations at full size
            page="eight_bits/fp8_training",
            rests_on=SCALED_PRODUCT,
            experiment="fp8_speed",
            recipe="compiled",
        ),
        Wanted(
            "generation",
            ("experiments.generation_speed", "--format", "bfloat16", "int8", "int4", "--way", "dynamic", "graphs"),
            minutes={"full": 5, "small": 1},
            page="practice/llama",
            rests_on=GENERATION,
            folders=(PROSE,),
        ),
        *(
            Wanted(
                f"llama-{recipe}",
                ("llama", "--width", "128", "--recipe", recipe),
                minutes={"full": 1.5, "small": 1},
                page="eight_bits/fp8_training",
                rests_on=FP8_TRAINING if recipe in FLOAT8_MIXED else ("test_llama.py",),
                folders=(PROSE,),
                size="small",  # at full size utils.llama has the shape of LLaMA-7B, which is not trained
                resumes=True,
                experiment="llama-width128",
                recipe=recipe,
            )
            for recipe in ("bf16-mixed", *FLOAT8_MIXED)
        ),
        *(_distilbert(recipe) for recipe in (*FIRST_ARMS, *(name for name in COMPARED if name not in FIRST_ARMS))),
        *(_distilbert(recipe, seeds=3) for recipe in FIRST_ARMS),
        Wanted(
            "step_speed",
            ("experiments.step_speed", "--compile"),
            minutes={"full": 4, "small": 2},
            page="training/distilbert",
            rests_on=("experiments/test_step_speed.py",),
            folders=(REVIEWS,),
            experiment="levers",
        ),
        Wanted(
            "watched-distilbert",
            ("distilbert", "--recipe", "32-true", "--watch", "8"),
            minutes={"full": 9, "small": 1},
            page="training/tensors",
            rests_on=("emulation/test_exponent_histogram.py", "training/test_meters.py"),
            folders=(REVIEWS, WEIGHTS),
        ),
        Wanted(
            "watched-distilbert-updates",
            ("distilbert", "--recipe", *WATCHED_ARMS, "--learning-rate", "1e-4", "--watch", "2"),
            minutes={"full": 30, "small": 3},
            page="training/master_weights",
            rests_on=("emulation/test_exponent_histogram.py", "training/test_meters.py"),
            folders=(REVIEWS, WEIGHTS),
            experiment="watched-distilbert-rate1e-04",
        ),
        Wanted(
            "capstone",
            ("experiments.capstone",),
            minutes={"full": 15, "small": 5},
            page="practice/capstone",
            rests_on=("cost/test_fitting.py",),  # a wrong prediction is what its record is to show
            folders=(PROSE,),
        ),
        Wanted(
            "refinement_speed",
            ("experiments.refinement_speed",),
            minutes={"full": 3, "small": 0.5},
            page="practice/refinement",
            rests_on=("experiments/test_refinement_speed.py",),
        ),
        Wanted(
            "parallel",
            ("experiments.parallel", "--ranks", "2", "--steps", "50"),
            minutes={"full": 5, "small": 1},
            page="practice/many_gpus",
            folders=(REVIEWS, WEIGHTS),
            least_cards=2,
        ),
    )


def _distilbert(recipe: str, *, seeds: int = 1) -> Wanted:
    """An arm of the comparison on film reviews; more seeds go on after the first, whose record is there already."""
    first = {"64-true": 40, "32-true": 12, "32-true-high": 6, "32-true-medium": 6}.get(recipe, 5)
    return Wanted(
        f"distilbert-{recipe}" + (f"-{seeds}-seeds" if seeds > 1 else ""),
        ("distilbert", "--recipe", recipe, "--seeds", str(seeds)),
        minutes={"full": first * max(1, seeds - 1), "small": 0.5 * max(1, seeds - 1)},
        page="training/distilbert",
        rests_on=("test_distilbert.py",),
        folders=(REVIEWS, WEIGHTS),
        resumes=True,
        experiment="distilbert",
        recipe=recipe,
        seeds=seeds,
    )
