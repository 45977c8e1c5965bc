"""Operations of a model's matrix products by formula: a multiply-add counts as two, everything else is left out.

Of a step of training they are three times those of the forward pass: each product has two in the backward pass, one
for the gradient of either factor. The first layer's inputs have one too, since the embeddings are trained.
"""

from collections.abc import Callable


def count_step_flops(config, rows: int, length: int) -> int:
    """Return the operations of one training step of a model of this config on `rows` texts of `length` tokens each.

    Padding counts: the device multiplies it too. Raises: ValueError for another kind of model.
    """
    if config.model_type not in FORWARD:
        raise ValueError(f"no formula for a {config.model_type}; there is one for {', '.join(FORWARD)}")
    return 3 * FORWARD[config.model_type](config, rows, length)


def _distilbert(config, rows: int, length: int) -> int:
    width, tokens = config.dim, rows * length
    projections = 4 * tokens * width * width  # [B S, D] @ [D, D]: queries, keys, values, output
    attention = 2 * tokens * length * width  # [S, D/H] @ [D/H, S] and [S, S] @ [S, D/H] for each text and head
    network = 2 * tokens * width * config.hidden_dim
    head = rows * width * (width + config.num_labels)  # of the first token alone
    return 2 * (config.n_layers * (projections + attention + network) + head)


def _llama(config, rows: int, length: int) -> int:
    width, tokens = config.hidden_size, rows * length
    shared = width * config.num_key_value_heads // config.num_attention_heads
    projections = 2 * tokens * width * (width + shared)  # queries and output; keys and values of the groups
    attention = 2 * tokens * length * width  # all of [S, S]: what lies in the future is computed, then masked
    network = 3 * tokens * width * config.intermediate_size
    head = tokens * width * config.vocab_size
    return 2 * (config.num_hidden_layers * (projections + attention + network) + head)


FORWARD: dict[str, Callable[..., int]] = {"distilbert": _distilbert, "llama": _llama}
