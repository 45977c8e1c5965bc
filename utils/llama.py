"""Train a LLaMA on prose and measure it.

    python -m utils.llama --recipe 32-true bf16-mixed 16-mixed --size small --seeds 2 --data DIR --record DIR

`make_plan` is the experiment, which `utils.runs.experiment.run` carries out. `train_once` gives the chapters a finished
model, and `perplexity` and `agreement` measure any LLaMA.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from utils import machine, measure, records
from utils.runs import experiment, experiment_command, run_table, trained_models
from utils.training import batches, recipes
from utils.training.recipes import RECIPES, Recipe
from utils.training.training_loop import Trainer
from utils.workloads import data, generation, language_task, models
from utils.workloads.language_task import LanguageTask

NAME = "llama"
DEFAULT_RECIPES = ("32-true", "bf16-mixed", "16-mixed")
FLOAT32 = RECIPES["32-true"]
ROWS = 16  # pieces that are measured at a time
WRITTEN, WRITINGS = 32, 5  # tokens that a run writes to be timed, and how often


# Measures


def token_losses(
    model: nn.Module,
    ids: torch.Tensor,
    *,
    recipe: Recipe = FLOAT32,
    window: int | None = None,
    cache: Callable[[], object] | None = None,
) -> torch.Tensor:
    """Return -ln p(token | the tokens before it), float32 [M], in the order of the text, on the device of `ids`.

    `ids` is int64 [N]. A piece of text goes from one begin token to the next. Every token of a piece but the first has
    a loss, so M is N minus the number of pieces. The tokens before it are those of its piece, from the last multiple of
    `window` on (None: the positions that the model was built for). The logarithm is taken in float32 whatever the
    recipe computes in. `cache` makes the KV cache of a batch, which attention reads its keys and values from.
    """
    losses = [
        F.cross_entropy(logits, labels, reduction="none").float()  # -ln softmax(logits)[label]: [M, V], [M] -> [M]
        for logits, labels in _predict(model, ids, recipe=recipe, window=window, cache=cache)
    ]
    return torch.cat(losses).to(ids.device) if losses else torch.zeros(0, device=ids.device)


@torch.no_grad()
def _predict(
    model: nn.Module,
    ids: torch.Tensor,
    *,
    recipe: Recipe,
    window: int | None,
    cache: Callable[[], object] | None = None,
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield logits, float32 or wider [M, V], and the tokens that they predict, int64 [M], as `token_losses` says."""
    device, training = model.device, model.training
    rows = _cut_windows(
        ids.tolist(), begin=model.config.bos_token_id, window=window or model.config.max_position_embeddings
    )
    for start in range(0, len(rows), ROWS):
        part = batches.Tokens(rows[start : start + ROWS])
        batch = batches.pad(part, list(range(len(part)))).to(device)
        model.eval()
        with recipe.on(device), recipe.autocast(device):
            kv_cache = {"past_key_values": cache(), "use_cache": True} if cache else {}
            logits = model(input_ids=batch.ids, attention_mask=batch.mask, **kv_cache).logits  # [B, S, V]
        model.train(training)
        real = batch.labels != batches.IGNORED  # [B, S], M of them
        yield logits[real].to(torch.promote_types(logits.dtype, torch.float32)), batch.labels[real]


def _cut_windows(ids: list[int], *, begin: int | None, window: int) -> list[list[int]]:
    """Cut ids into rows of at most `window` + 1 tokens, each overlapping the next of its piece by one token."""
    bounds = [0, *(index for index, token in enumerate(ids) if index and token == begin), len(ids)]  # of pieces
    return [
        ids[first : min(first + window + 1, stop)]
        for start, stop in itertools.pairwise(bounds)
        for first in range(start, stop - 1, window)
    ]


def perplexity(
    model: nn.Module,
    ids: torch.Tensor,
    *,
    recipe: Recipe = FLOAT32,
    window: int | None = None,
    cache: Callable[[], object] | None = None,
) -> float:
    """Return exp of the mean of `token_losses`, per token: the mean is taken in float64.

    It is 1 for a model that is always right and certain, the size of the vocabulary for one that knows nothing, and
    infinite or NaN where a loss is.
    """
    losses = token_losses(model, ids, recipe=recipe, window=window, cache=cache)
    return _exp(losses.double().mean().item())


@dataclass(frozen=True)
class Agreement:
    """How near the predictions of one model are to those of another.

    `top1`: the share of tokens for which both rank the same token first. `kl`: the mean over the tokens of the
    Kullback-Leibler divergence sum p ln(p / q) in nats, p of the reference and q of the model.
    """

    top1: float
    kl: float


def agreement(
    model: nn.Module,
    reference: nn.Module,
    ids: torch.Tensor,
    *,
    recipe: Recipe = FLOAT32,
    window: int | None = None,
    cache: Callable[[], object] | None = None,
) -> Agreement:
    """Return how near `model` in `recipe` is to `reference` in float32, on the predictions of `token_losses`.

    `cache` is that of `model`; the reference keeps its keys and values as they are.
    """
    same = count = 0
    divergence = torch.zeros((), dtype=torch.float64, device=model.device)
    sides = ((reference, FLOAT32, None), (model, recipe, cache))
    logits = (_predict(net, ids, recipe=rules, window=window, cache=make) for net, rules, make in sides)
    for (p, _), (q, _) in zip(*logits, strict=True):  # logits of the reference and the model, [M, V]
        same += int((p.argmax(-1) == q.argmax(-1)).sum())
        count += len(p)
        log_p, log_q = p.log_softmax(-1), q.log_softmax(-1)
        divergence += (log_p.exp() * (log_p - log_q)).sum(dtype=torch.float64)  # sum of p ln(p / q)
    return Agreement(same / count, divergence.item() / count)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else value * math.inf  # math.exp raises where the result is beyond float64


# The experiment


def make_plan(task: LanguageTask) -> experiment.RunPlan:
    """Return the plan of a run on this task: its batches, and what is measured."""
    settings = task.settings

    def draw(seed: int) -> Iterator[batches.Batch]:
        generator = torch.Generator().manual_seed(seed)
        shuffle = partial(batches.shuffled, task.train, settings.batch, generator=generator, bucket=1)
        epochs = (shuffle() for _ in itertools.count())
        return itertools.islice(itertools.chain.from_iterable(epochs), settings.steps)

    def evaluate(trainer: Trainer) -> dict:
        losses = token_losses(trainer.model, task.held_out, recipe=trainer.recipe, window=settings.length)
        loss = losses.double().mean().item()
        prompt = task.held_out[None, : settings.length // 4].to(trainer.device)  # [1, S / 4]
        trainer.model.eval()
        written = generation.writing_time(
            trainer.model, prompt, tokens=WRITTEN, recipe=trainer.recipe, repeats=WRITINGS
        )
        return {
            "held_out_tokens": len(losses),
            "loss": loss,
            "perplexity": _exp(loss),
            "written_tokens": WRITTEN,
            "writing_ms": list(written.samples),
        }

    rows = list(range(min(settings.batch, len(task.train))))
    full_batch = batches.pad(task.train, rows, length=settings.length)
    return experiment.RunPlan(
        name=f"{NAME}{task.variant}",
        task=task,
        steps=settings.steps,
        full_batch=full_batch,
        draw=draw,
        evaluate=evaluate,
        module=__spec__.name,
    )


def summarize(finished: list[records.Record]) -> list[dict[str, str]]:
    """Return the results of all finished runs as texts by heading, a row per recipe, in the order of `ALL_RECIPES`.

    Loss and perplexity carry the 95 % Student interval over the seeds; rates are means over the seeds.
    """

    def format_losses(name: str, runs: list[dict]) -> dict[str, str]:
        medians_ms = [measure.Timing(tuple(result["writing_ms"])).median for result in runs]
        rates = [1e3 * result["written_tokens"] / ms for result, ms in zip(runs, medians_ms, strict=True)]
        emulated = run_table.is_emulated_float8(name, runs)
        return {
            "loss": experiment.format_interval((result["loss"] for result in runs), digits=4),
            "perplexity": experiment.format_interval((result["perplexity"] for result in runs), digits=4),
            "written tokens/s": "-" if emulated else f"{measure.mean_interval(rates)[0]:,.0f}",
        }

    return run_table.summarize(finished, own_columns=format_losses)


def format_table(finished: list[records.Record]) -> str:
    """Return `summarize` as aligned text, with a line that says what the intervals are."""
    result = finished[-1].results
    about = (
        f"{result['parameters'] / 1e6:,.1f} million parameters; loss and perplexity per token, on"
        f" {result['held_out_tokens']:,} tokens held out; written one token after the other, batch 1"
    )
    return run_table.format_table(summarize(finished), finished, about=about)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return experiment_command.main(
        arguments, program=NAME, about=__doc__, recipes=DEFAULT_RECIPES, prepare=prepare, table=format_table
    )


def prepare(options: experiment_command.Options) -> experiment.RunPlan:
    """Return the plan that the options of a command ask for."""
    settings = experiment_command.with_width(language_task.settings_for(options.size), options)
    prose = data.load_prose(options.data, characters=settings.characters)
    task = language_task.prepare(prose, size=options.size, settings=settings, weights=options.weights)
    task = experiment_command.with_options(task, options)
    note = "the shape of LLaMA-7B is timed (generation.token_times), not trained" if options.size == "full" else ""
    return replace(make_plan(task), note=note)


@dataclass(frozen=True)
class TrainedLlama:
    """A trained model in evaluation mode, its tokenizer, the text held out from it, and the record of its run.

    `ids` are the tokens of that text, int64 [N], as `token_losses` and `perplexity` take them.
    """

    model: nn.Module
    tokenizer: object
    ids: torch.Tensor
    text: str
    record: records.Record
    cached: bool  # False: trained by this call


def train_once(
    source: str | None = None,
    *,
    recipe: str = "32-true",
    size: str = "small",
    seed: int = 0,
    device: torch.device | None = None,
) -> TrainedLlama:
    """Return a trained LLaMA, from the cache if the same run was made before.

    `source` is "generated", a folder with text, or None for what `utils.workloads.data.load_prose` finds.
    Raises: ValueError when the folder or the recipe is unknown.
    """
    device = device or machine.device()
    training_recipe = recipes.find_recipe(recipe)  # raises before a text is read
    characters = language_task.settings_for(size).characters
    prose = (
        data.generated_prose(characters) if source == "generated" else data.load_prose(source, characters=characters)
    )
    task = language_task.prepare(prose, size=size)
    kept = trained_models.train_once(
        make_plan(task),
        training_recipe,
        seed=seed,
        device=device,
        load=models.saved_llama,
    )
    return TrainedLlama(kept.model, task.tokenizer, task.held_out, task.held_out_text, kept.record, kept.cached)


if __name__ == "__main__":
    sys.exit(main())
