"""Which layer of a model a parameter or a module belongs to, by its name: what a figure by layer groups by."""

import re

_BLOCK = re.compile(r"(?:^|\.)layers?\.(\d+)(?:\.|$)")
_EMBEDDINGS = {"embeddings", "embed_tokens"}
_HEAD = {"pre_classifier", "classifier", "norm", "lm_head"}


def layer_of(name: str) -> str:
    """Return "embeddings", "layer 1", "layer 2", ... or "head" for a name from `named_parameters` or `named_modules`.

    Blocks count from 1. The head is what follows the last block: LLaMA's final norm belongs to it. A name of another
    build of model gives its first component. Known: DistilBERT and LLaMA, with their heads and without.
    """
    if block := _BLOCK.search(name):
        return f"layer {int(block[1]) + 1}"
    parts = name.split(".")
    if _EMBEDDINGS & set(parts[:2]):
        return "embeddings"
    if _HEAD & set(parts[:2]):
        return "head"
    return parts[0]
