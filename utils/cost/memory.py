"""The ledger of a training step: which tensors there are, in which dtype, and how many bytes they take.

    predict("LLaMA 7B", "bf16-mixed", batch=8, length=2_048).total
    measured(trainer, batch) == predict(trainer.model, trainer.recipe, batch=32, length=128)

Predicted from a model's sizes and a recipe, and measured from real tensors, in bytes (1 GB = 1e9 bytes). Not in it:
buffers, temporaries but those of the loss, the workspace of kernels, what the allocator cannot use of its blocks, the
CUDA context.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import nn

from utils import measure
from utils.cost import activations, architectures
from utils.cost.activation_tables import COPIES, LOG_PROBABILITIES
from utils.cost.architectures import Adapters, Architecture
from utils.training.eight_bit_moments import Blockwise
from utils.training.recipes import RECIPES, Recipe
from utils.training.recipes import find_recipe as recipe_called

if TYPE_CHECKING:
    from utils.training.batches import Batch
    from utils.training.training_loop import Trainer

OPTIMIZERS = ("adamw", "adamw-8bit", "sgd-momentum", "sgd")
STAGES = (0, 1, 2, 3)
GRADIENTS_OF_LOGITS = 2  # tensors like the log-probabilities that the backward pass of `cross_entropy` makes of them
METHODS = ("full", "lora", "qlora")  # what is trained: all weights, or adapters beside frozen ones
KEPT_OF_WEIGHTS = ("master", "compensation")  # what the stores of `utils.training.optimizers` call it


@dataclass(frozen=True)
class Ledger:
    """Bytes of one process, by what the tensors are for.

    `weights`: what the forward pass reads, tied weights once. `master`: what the optimizer keeps of the weights beside
    them, a float32 copy or Kahan's compensation. `optimizer`: moments and step counters. `activations`: what autograd
    saves for the backward pass. `casts`: the part of `activations` that autocast's 16-bit copies of weights take; with
    checkpointing, autograd saves few of them, but autocast's cache holds all until the forward pass ends. They count
    where the gradients of earlier parts are there too; else the gradients, which come later, take at least as much.
    `parameters`: their number, of the whole model and its adapters. `logits`: what the backward pass of the loss makes
    while their log-probabilities, which are `activations`, are still there: their gradient and that of the logits.
    """

    weights: int
    master: int
    gradients: int
    optimizer: int
    activations: int
    casts: int
    parameters: int
    logits: int = 0

    @property
    def at_rest(self) -> int:
        """Bytes between two steps, when the gradients are freed: weights, master and optimizer."""
        return self.weights + self.master + self.optimizer

    @property
    def total(self) -> int:
        """Bytes of everything at once: the ceiling.

        No moment holds more of these tensors. The most of them are there when the backward pass of the loss ends: all
        but the gradients, and those too where earlier parts of the batch have left theirs. Then activations go as
        gradients come.
        """
        return self.at_rest + self.gradients + self.activations + self.logits

    @property
    def per_parameter(self) -> float:
        """Bytes of weights, master, gradients and optimizer for each parameter; activations and casts are left out."""
        return (self.at_rest + self.gradients) / self.parameters

    def sharded(self, shards: int, *, stage: int) -> "Ledger":
        """Return the ledger of one of `shards` processes under a stage of ZeRO.

        1 divides optimizer and master, 2 the gradients too, 3 the weights too: then a layer's copy in 16 bits goes with
        its gathered weights, so `casts` is 0. FSDP2's `MixedPrecisionPolicy` does that; autocast instead of it would
        keep the copies for the backward pass. Activations and logits are those of the process's own batch. With one
        process there is nothing to divide, and the ledger is the same in every stage.
        Raises: ValueError for a stage that ZeRO does not have, and for less than one process.
        Source: Rajbhandari et al. 2020, arXiv 1910.02054, section 5.
        """
        if stage not in STAGES or shards < 1:
            raise ValueError(f"stage {stage} over {shards} shards: take a stage of {STAGES} and 1 shard or more")
        if shards == 1:
            return self

        def part(size: int, first: int) -> int:
            return -(-size // shards) if stage >= first else size  # rounded up: the last part may be shorter

        return replace(
            self,
            weights=part(self.weights, 3),
            master=part(self.master, 1),
            gradients=part(self.gradients, 2),
            optimizer=part(self.optimizer, 1),
            activations=self.activations - (self.casts if stage == 3 else 0),
            casts=0 if stage == 3 else self.casts,
        )


def predict(
    model: nn.Module | Architecture | str,
    recipe: Recipe | str = "32-true",
    *,
    optimizer: str = "adamw",
    batch: int = 1,
    length: int = 512,
    attention: str | None = None,
    checkpointing: bool | None = None,
    padded: bool = True,
    accumulate: int = 1,
    shards: int = 1,
    stage: int = 0,
    device: str | None = None,
    method: str = "full",
    rank: int = 16,
    projections: tuple[str, ...] = (),
    cached: bool = True,
) -> Ledger:
    """Return the ledger of training `model` on batches of `batch` texts of `length` tokens, of one process.

    `model`: a DistilBERT classifier, or a GPT-2 or LLaMA with its head, of transformers; an `Architecture`; or a name
    in `architectures.NAMED`. Of any other module `batch=0` gives the ledger without activations.
    `optimizer`: one of `OPTIMIZERS`; what the recipe keeps of the weights is counted with each of them.
    `attention`, `checkpointing`, `device`: None is what the module has, else "eager", False and "cuda". "sdpa" is one
    fused kernel, where the device has one. `padded`: whether texts are shorter than `length`, see
    `activations.list_terms`.
    `accumulate`: the parts that the batch is split into. `shards`, `stage`: see `Ledger.sharded`; each process has such
    a batch. `cached`: whether autocast keeps its copies, as it does without `cache_enabled=False`: see `Ledger`.
    `method`: one of `METHODS`. With "lora" and "qlora" the weights are frozen, in the dtype of the recipe's products or
    in NF4, and the recipe is that of the adapters (`architectures.Adapters`, of `rank` and on `projections`): theirs
    are gradients, moments and what is kept of the weights; in a mixed recipe they are in float32, their own masters.
    Raises: ValueError for what is not known: a name, a kind of model, an optimizer, an attention, a device, a stage, a
    method, and the activations of a recipe with FP8 layers; and for adapters where there is no place for them.
    """
    recipe = recipe_called(recipe) if isinstance(recipe, str) else recipe
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"unknown optimizer {optimizer!r}; the known ones are {', '.join(OPTIMIZERS)}")
    if batch < 0 or length < 1 or accumulate < 1:
        raise ValueError(f"a batch of {batch} texts of {length} tokens in {accumulate} parts cannot be; take 1 or more")
    model = architectures.find_architecture(model) if isinstance(model, str) else model
    module = model if isinstance(model, nn.Module) else None
    sizes = [weight.numel() for weight in module.parameters()] if module else list(model.weights())
    adapters = adapters_of(method, rank=rank, projections=projections)
    architecture = model
    if module and (batch or adapters):
        architecture = architectures.read_config(getattr(module, "config", None))
    again = _checkpointing(module) if checkpointing is None else checkpointing
    terms = []
    if batch:
        how = {
            "batch": -(-batch // accumulate),
            "length": length,
            "attention": attention or _attention(module),
            "padded": padded,
            "device": device or _device(module),
            "adapters": adapters,
        }
        terms = activations.list_terms(architecture, recipe, checkpointing=again, **how)
        if again and accumulate > 1 and cached:
            plain = activations.list_terms(architecture, recipe, checkpointing=False, **how)
            terms = [term for term in terms if term.row.what != COPIES]
            terms += [term for term in plain if term.row.what == COPIES]  # in autocast's cache, beside the gradients
    fixed = 0
    if adapters:
        fixed, total = adapters.frozen_bytes(architecture, recipe.arithmetic.itemsize), sum(sizes)
        sizes = list(adapters.weights(architecture))
    trained = sum(sizes)
    ledger = Ledger(
        weights=fixed + recipe.weights.itemsize * trained,
        master=_master_itemsize(recipe) * trained,
        gradients=recipe.gradients.itemsize * trained,
        optimizer=_optimizer_bytes(sizes, recipe, optimizer),
        activations=sum(term.bytes for term in terms),
        casts=sum(term.bytes for term in terms if term.row.what == COPIES),
        parameters=total + trained if adapters else trained,
        logits=GRADIENTS_OF_LOGITS * sum(term.bytes for term in terms if term.row.what == LOG_PROBABILITIES),
    )
    return ledger.sharded(shards, stage=stage)


def adapters_of(method: str, *, rank: int = 16, projections: tuple[str, ...] = ()) -> Adapters | None:
    """Return the adapters of one of `METHODS`, None where all weights are trained."""
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; the known ones are {', '.join(METHODS)}")
    return None if method == "full" else Adapters(rank, nf4=method == "qlora", projections=projections)


def _attention(module: nn.Module | None) -> str:
    return getattr(getattr(module, "config", None), "_attn_implementation", None) or "eager"


def _checkpointing(module: nn.Module | None) -> bool:
    """Whether the model checkpoints its blocks; transformers before 5.23 has only the older name."""
    name = "is_activation_checkpointing"
    return bool(getattr(module, name if hasattr(module, name) else "is_gradient_checkpointing", False))


def _device(module: nn.Module | None) -> str:
    return next(module.parameters()).device.type if module else "cuda"


def _master_itemsize(recipe: Recipe) -> int:
    """Bytes that the recipe's store keeps of each weight in the optimizer's state."""
    begun = recipe.store.begin(torch.empty(1, dtype=recipe.weights)) if recipe.store else {}
    return sum(begun[name].itemsize for name in KEPT_OF_WEIGHTS if name in begun)


def _counter(recipe: Recipe) -> int:
    """Bytes of the step that AdamW counts for each tensor: torch's in float32, ours in a Python number."""
    return 0 if recipe.store else 4


def _optimizer_bytes(sizes: list[int], recipe: Recipe, optimizer: str) -> int:
    if optimizer == "adamw":
        # m and v for each weight, a counter for each tensor
        return 2 * recipe.optimizer.itemsize * sum(sizes) + _counter(recipe) * len(sizes)
    if optimizer == "adamw-8bit":
        return 2 * sum(map(Blockwise().moment_bytes, sizes))
    return recipe.weights.itemsize * sum(sizes) if optimizer == "sgd-momentum" else 0  # one moment, or none


def measure_ledger(trainer: "Trainer", batch: "Batch") -> Ledger:
    """Return the bytes of a trainer's tensors as they are, and of what a forward pass of `batch` saves.

    Ask after a step: before the first one there are no gradients and no moments. The pass changes neither weights nor
    the state of the random generators.
    """
    devices = [trainer.device] if trainer.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), trainer.recipe.on(trainer.device):
        return of_tensors(trainer.model, trainer.optimizer, lambda: trainer.loss(batch.to(trainer.device)))


def of_tensors(model: nn.Module, optimizer: torch.optim.Optimizer, forward: Callable[[], torch.Tensor]) -> Ledger:
    """Return the same for a loop of your own: `forward` computes the loss of one batch."""
    weights = list(model.parameters())
    with measure.SavedBytes(model) as saved:
        loss = forward()
        casts = _casts(weights, saved.kept.values())
        logits = GRADIENTS_OF_LOGITS * _log_probabilities(loss)
    master, rest = [], []
    for state in optimizer.state.values():
        for name, value in state.items():
            if isinstance(value, torch.Tensor):
                (master if name in KEPT_OF_WEIGHTS else rest).append(value)
    return Ledger(
        weights=measure.tensor_bytes(weights),
        master=measure.tensor_bytes(master),
        gradients=measure.tensor_bytes(weight.grad for weight in weights),
        optimizer=measure.tensor_bytes(rest),
        activations=saved.total,
        casts=casts,
        parameters=sum(weight.numel() for weight in weights),
        logits=logits,
    )


def _log_probabilities(loss: torch.Tensor) -> int:
    """Return the bytes of the log-probabilities that a loss is the mean of, 0 where it is no such mean."""
    node = loss.grad_fn
    while node is not None and node.name() != "LogSoftmaxBackward0":
        node = node.next_functions[0][0] if node.next_functions else None
    return node._saved_result.nbytes if node else 0


def _casts(weights: list[torch.Tensor], kept: Iterable[torch.Tensor]) -> int:
    """Return the bytes of the kept tensors that are a matrix of the weights in another dtype, or its transpose."""
    return sum(
        tensor.untyped_storage().nbytes()
        for tensor in kept
        if any(_is_cast(tensor, weight.detach()) for weight in weights if weight.numel() == tensor.numel())
    )


def _is_cast(tensor: torch.Tensor, weight: torch.Tensor) -> bool:
    if tensor.dtype is weight.dtype or tensor.itemsize == 1 or not tensor.dim() == weight.dim() == 2:
        return False  # torch cannot compare FP8 tensors; autocast's copies have 16 bits
    return torch.equal(tensor, copy := weight.to(tensor.dtype)) or torch.equal(tensor.t(), copy)


VECTORS = (  # the cases that a page is held against
    {"model": "DistilBERT", "recipe": "64-true", "batch": 12},
    {"model": "DistilBERT", "recipe": "32-true", "batch": 12, "device": "cpu"},
    {"model": "DistilBERT", "recipe": "16-mixed", "batch": 12, "attention": "sdpa", "optimizer": "adamw-8bit"},
    {"model": "DistilBERT", "recipe": "bf16-mixed", "batch": 12, "padded": False, "device": "cpu"},
    {"model": "DistilBERT", "recipe": "bf16-mixed", "attention": "sdpa", "device": "cpu", "checkpointing": True},
    {"model": "DistilBERT", "recipe": "bf16-true", "batch": 7, "attention": "sdpa", "device": "cpu"},
    {"model": "DistilBERT", "recipe": "16-true-moments", "batch": 12, "accumulate": 5},
    {"model": "GPT-2", "recipe": "32-true", "batch": 1, "length": 1_024, "optimizer": "sgd-momentum"},
    {"model": "GPT-2", "recipe": "bf16-mixed", "batch": 8, "length": 1_024},
    {"model": "GPT-2", "recipe": "bf16-mixed", "batch": 8, "length": 1_024, "device": "cpu", "attention": "sdpa"},
    {"model": "GPT-2", "recipe": "bf16-mixed", "batch": 8, "accumulate": 3, "checkpointing": True},
    {"model": "GPT-2 XL", "recipe": "bf16-true-kahan", "batch": 4, "length": 1_024, "checkpointing": True},
    {"model": "LLaMA 7B", "recipe": "bf16-mixed", "batch": 8, "length": 2_048},
    {"model": "LLaMA 7B", "recipe": "bf16-true", "batch": 1, "length": 2_048, "optimizer": "sgd"},
    {"model": "LLaMA 13B", "recipe": "bf16-true-master", "length": 2_048, "shards": 6, "stage": 1},
    {"model": "LLaMA 65B", "recipe": "16-true-master", "length": 2_048, "shards": 64, "stage": 2, "attention": "sdpa"},
    {"model": "Llama 2 70B", "recipe": "bf16-mixed", "length": 4_096, "shards": 64, "stage": 3, "checkpointing": True},
    {"model": "Llama 2 70B", "recipe": "bf16-true", "length": 4_096, "attention": "sdpa", "padded": False},
    {"model": "LLaMA 7B", "recipe": "bf16-mixed", "length": 2_048, "attention": "sdpa", "method": "lora"},
    {"model": "LLaMA 7B", "recipe": "16-mixed", "length": 2_048, "checkpointing": True, "method": "qlora", "rank": 64},
    {"model": "Llama 3 8B", "recipe": "bf16-true-master", "batch": 4, "method": "qlora", "shards": 3, "stage": 3},
    {"model": "GPT-2 XL", "recipe": "bf16-mixed", "batch": 4, "attention": "sdpa", "method": "lora", "rank": 8},
    {"model": "GPT-2", "recipe": "16-true", "batch": 2, "device": "cpu", "method": "qlora", "optimizer": "adamw-8bit"},
    {"model": "GPT-2", "recipe": "32-true", "batch": 2, "checkpointing": True, "method": "lora", "device": "cpu"},
    {"model": "Llama 3 8B", "recipe": "bf16-true-stochastic", "batch": 3, "length": 8_192, "optimizer": "adamw-8bit"},
)


def widget_data() -> dict:
    """Return what a page needs to compute `predict` for any sizes by itself, as plain JSON values.

    "architectures": the fields of `Architecture` by name. "weights": `architectures.WEIGHTS`. "projections":
    `architectures.PROJECTIONS`. "nf4": `architectures.NF4`. "saved": by family, the
    lists of rows "once", "layer", "checkpointed" and "mask" of `activation_tables.FamilyTable`; "copies" is the `what`
    of the rows that are `casts`, and "logits" that of the rows that are counted twice more as `logits`. "recipes":
    bytes per value of each dtype that a row may name, and of "gradients", "moments", "master"; "counter", bytes per
    tensor; "words", what the recipe adds to the conditions of `activations.conditions`.
    "optimizers": the number of "moments" and whose bytes they have ("moments" or "weights"), "counted" steps; in 8 bits
    the "block" that shares 4 bytes and the "least" values of a tensor that is not left in 4 bytes a value.
    "vectors": arguments of `predict`, all that are not the defaults, and the "ledger" that comes of them.
    """
    eight_bits = Blockwise()
    return {
        "architectures": {name: asdict(architecture) for name, architecture in architectures.NAMED.items()},
        "weights": architectures.WEIGHTS,
        "projections": architectures.PROJECTIONS,
        "nf4": architectures.NF4,
        "saved": activations.as_json(),
        "copies": COPIES,
        "logits": LOG_PROBABILITIES,
        "recipes": {name: _recipe_data(recipe) for name, recipe in RECIPES.items()},
        "optimizers": {
            "adamw": {"moments": 2, "bytes_of": "moments", "counted": True},
            "adamw-8bit": {"moments": 2, "block": eight_bits.block, "least": eight_bits.least, "counted": False},
            "sgd-momentum": {"moments": 1, "bytes_of": "weights", "counted": False},
            "sgd": {"moments": 0, "bytes_of": "weights", "counted": False},
        },
        "vectors": [case | {"ledger": asdict(predict(**case))} for case in VECTORS],
    }


def _recipe_data(recipe: Recipe) -> dict:
    return activations.itemsizes(recipe) | {
        "gradients": recipe.gradients.itemsize,
        "moments": recipe.optimizer.itemsize,
        "master": _master_itemsize(recipe),
        "counter": _counter(recipe),
        "words": sorted(activations.words(recipe)),
    }
