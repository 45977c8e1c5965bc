"""DistilBERT and LLaMA: from a local folder, from the hub, or from a config with random weights; and it says which.

Weights are loaded in float32: from version 5 on, transformers would keep whatever dtype a checkpoint was saved in.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from utils.workloads.data import hub_reachable
from utils.workloads.tokenizers import BEGIN, END

DISTILBERT = "distilbert-base-uncased"
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Loaded:
    """A model in float32 on the CPU with the tokeniser that belongs to its weights, if any; `source` in words."""

    model: nn.Module
    tokenizer: object | None
    source: str


@dataclass(frozen=True)
class DistilBertShape:
    """The sizes of a DistilBERT; the defaults are those of distilbert-base-uncased (66,955,010 parameters)."""

    vocabulary: int = 30_522
    width: int = 768
    layers: int = 6
    heads: int = 12
    hidden: int = 3_072
    positions: int = 512
    dropout: float = 0.1
    head_dropout: float = 0.2
    spread: float = 0.02  # standard deviation of the random weights

    def widened(self, width: int) -> "DistilBertShape":
        """Return the shape with another width, and hidden layers of four times that.

        Raises: ValueError for a width that the heads cannot share.
        """
        return replace(self, width=_shared(width, self.heads), hidden=4 * width)


@dataclass(frozen=True)
class LlamaShape:
    """The sizes of a LLaMA; the defaults are those of LLaMA-7B with its 6,738,415,616 parameters.

    Touvron et al. 2023, table 2.

    `groups` counts the heads of keys and values, each shared by `heads // groups` heads of queries.
    """

    vocabulary: int = 32_000
    width: int = 4_096
    layers: int = 32
    heads: int = 32
    groups: int = 32
    hidden: int = 11_008
    positions: int = 2_048
    tied: bool = False  # one matrix for the embeddings and the output
    spread: float = 0.02  # standard deviation of the random weights

    def widened(self, width: int) -> "LlamaShape":
        """Return the shape with another width, and hidden layers of 8/3 of that, up to the next multiple of 32.

        That is LLaMA's rule (Touvron et al. 2023, section 2.2), and 32 what an MX block takes.
        Raises: ValueError for a width that the heads cannot share.
        """
        return replace(self, width=_shared(width, self.heads), hidden=-(-8 * width // (3 * 32)) * 32)


def _shared(width: int, heads: int) -> int:
    if width % (2 * heads):
        raise ValueError(f"width {width} is no multiple of {2 * heads}: each of the {heads} heads needs an even share")
    return width


LLAMAS = {
    "small": LlamaShape(
        vocabulary=512, width=256, layers=4, heads=8, groups=4, hidden=688, positions=512, tied=True
    ),  # 3 million parameters
    "full": LlamaShape(),
}


def weights_folder(kind: str, folder: Path | str | None = None) -> Path | None:
    """Return the folder with weights of `kind` ("distilbert", "llama"), None where none is named.

    That is `folder`, else `MIXED_PRECISION_WEIGHTS`.
    The folder holds what `save_pretrained` writes, itself or in a folder named after the kind.
    Raises: ValueError when a folder was named and has no such model.
    """
    named = folder or os.environ.get("MIXED_PRECISION_WEIGHTS")
    if not named:
        return None
    if not Path(named).is_dir():
        raise ValueError(f"weights folder {named} is not there")
    for home in (Path(named), Path(named) / kind):
        try:
            config = json.loads((home / "config.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise ValueError(f"{home / 'config.json'} cannot be read: {error}") from error
        if isinstance(config, dict) and config.get("model_type") == kind:
            return home
    raise ValueError(f"weights folder {named} has no {kind}: no config.json with that model_type, nor in {kind}/")


def build_distilbert(
    shape: DistilBertShape | None = None,
    *,
    seed: int = 0,
    attention: str = "sdpa",
    device: torch.device | str = "cpu",
) -> nn.Module:
    """Return a DistilBERT classifier with random weights; the same seed gives the same ones, whatever ran before."""
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    shape = shape or DistilBertShape()
    config = DistilBertConfig(
        vocab_size=shape.vocabulary,
        dim=shape.width,
        n_layers=shape.layers,
        n_heads=shape.heads,
        hidden_dim=shape.hidden,
        max_position_embeddings=shape.positions,
        dropout=shape.dropout,
        attention_dropout=shape.dropout,
        seq_classif_dropout=shape.head_dropout,
        initializer_range=shape.spread,
        num_labels=2,
        attn_implementation=attention,
    )
    return _seeded(DistilBertForSequenceClassification, config, seed=seed, device=torch.device(device))


def fit_attention(model: nn.Module, device: torch.device) -> str:
    """Let the model compute its attention in the way that suits the device, and return that way's name.

    A GPU: one fused kernel. A CPU: plain products, since the backward pass of its fused kernel is far slower in
    bfloat16 than in float32, which would hide what the recipe does.
    """
    attention = "sdpa" if device.type == "cuda" else "eager"
    model.set_attn_implementation(attention)
    return attention


def checkpoint_blocks(model: nn.Module) -> None:
    """Let a model of transformers checkpoint its blocks. The method has its name since 5.23; before, the older one."""
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})


def pretrained_distilbert(folder: Path | str | None = None, *, seed: int = 0, hub: bool = True) -> Loaded | None:
    """Return DistilBERT with trained weights and their tokeniser: a folder, else the hub; None where neither has any.

    `seed` draws the classifier on top, which distilbert-base-uncased comes without.
    Raises: ValueError when a folder was named and cannot be loaded.
    """
    home = weights_folder("distilbert", folder)
    if home is None and not hub:
        return None
    online = home is None and hub_reachable()
    from transformers import DistilBertForSequenceClassification

    try:
        return _pretrained(DistilBertForSequenceClassification, home, seed=seed, online=online, num_labels=2)
    except ValueError:
        if home is None:
            return None
        raise


def pretrained_llama(folder: Path | str | None = None) -> Loaded | None:
    """Return a LLaMA with trained weights and their tokeniser from a folder; None where no folder is named.

    Raises: ValueError when a folder was named and cannot be loaded.
    """
    home = weights_folder("llama", folder)
    if home is None:
        return None
    from transformers import LlamaForCausalLM

    return _pretrained(LlamaForCausalLM, home)


def _pretrained(kind: type, home: Path | None, *, seed: int = 0, online: bool = False, **options) -> Loaded:
    from transformers import AutoTokenizer

    name, source = (home, "trained weights, local folder") if home else (DISTILBERT, f"{DISTILBERT}, from the hub")
    where = {"local_files_only": not online}
    try:
        with torch.random.fork_rng(devices=[]), quiet():
            torch.manual_seed(seed)
            model = kind.from_pretrained(str(name), dtype=torch.float32, attn_implementation="sdpa", **options, **where)
        tokenizer = AutoTokenizer.from_pretrained(str(name), **where)
    except Exception as error:  # a broken file fails in as many ways as there are libraries that read it
        raise ValueError(f"weights in {name} cannot be loaded: {str(error).splitlines()[0]}") from error
    if len(tokenizer) > model.config.vocab_size:
        raise ValueError(
            f"the tokeniser in {name} has {len(tokenizer)} entries, the model only {model.config.vocab_size}"
        )
    return Loaded(model, tokenizer, source)


def saved_distilbert(folder: Path, *, dtype: torch.dtype) -> nn.Module:
    """Return the classifier that `save_pretrained` wrote to `folder`, in `dtype`."""
    from transformers import DistilBertForSequenceClassification

    return _saved(DistilBertForSequenceClassification, folder, dtype=dtype)


def saved_llama(folder: Path, *, dtype: torch.dtype) -> nn.Module:
    """Return the LLaMA that `save_pretrained` wrote to `folder`, in `dtype`."""
    from transformers import LlamaForCausalLM

    return _saved(LlamaForCausalLM, folder, dtype=dtype)


def _saved(kind: type, folder: Path, *, dtype: torch.dtype) -> nn.Module:
    with quiet():
        return kind.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa", local_files_only=True)


def build_llama(
    shape: str | LlamaShape = "small",
    *,
    vocabulary: int | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> nn.Module:
    """Return a LLaMA with random weights, of a shape or of one in `LLAMAS`: "small", or "full", that of LLaMA-7B.

    "full" takes 27 GB in float32, so it is drawn on the device it is meant for.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = LLAMAS[shape] if isinstance(shape, str) else shape
    config = LlamaConfig(
        vocab_size=vocabulary or shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.groups,
        max_position_embeddings=shape.positions,
        tie_word_embeddings=shape.tied,
        initializer_range=shape.spread,
        bos_token_id=BEGIN,
        eos_token_id=END,
    )
    return _seeded(LlamaForCausalLM, config, seed=seed, device=torch.device(device)).eval()


def _seeded(kind: type, config, *, seed: int, device: torch.device = CPU) -> nn.Module:
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), device:
        torch.manual_seed(seed)
        return kind(config).to(torch.float32)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' progress bars and its remark on a classifier that has to be trained first."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def count_parameters(model: nn.Module) -> int:
    """Return the number of parameters, tied ones once."""
    return sum(parameter.numel() for parameter in model.parameters())
