"""Checks of `practice/llama`."""

import torch

from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    correct,
    exercise,
    not_yet,
    paper_table,
)
from utils.checks.practice.llama_questions import AT_MOST, LONG_TEXT, NOT_BYTES, WRITE

VOCABULARY = 50

check_at_most = paper_table(
    AT_MOST,
    says="Bandwidth over bytes, times the number of sequences. What share of it a program reaches has to be measured.",
)
check_not_bytes = paper_table(
    NOT_BYTES,
    says="With no bytes at all it would generate 66.7 tokens/s. To go further, this program needs a smaller a.",
)
check_long_text = paper_table(
    LONG_TEXT,
    says="All sequences of a batch share the weights. Each has a cache of its own, so a server counts caches.",
)


# --- A loop -----------------------------------------------------------------------------------------------------------


class Oracle:
    """A model that is a rule: the next token depends on all tokens before it, and on their order.

    `read` counts the tokens that it was given, in `calls` calls; `caches` holds each cache that it was given, and
    `texts` what it made of them. `filled` says that a cache came with tokens that it had not put there.
    """

    def __init__(self):
        self.read, self.calls, self.caches, self.texts, self.filled = 0, 0, [], [], False

    def __call__(self, ids: list[int], cache: list[int]) -> torch.Tensor:
        """Read ids, append them to the cache, and return logits [len(ids), VOCABULARY]."""
        self.read += len(ids)
        self.calls += 1
        self.filled = self.filled or (bool(cache) and list(cache) not in self.texts)
        if not any(cache is seen for seen in self.caches):
            self.caches.append(cache)
        logits = torch.zeros(len(ids), VOCABULARY)
        for row, token in enumerate(ids):
            cache.append(int(token))
            logits[row, following(cache)] = 1.0
        self.texts.append(list(cache))
        return logits


def following(text: list[int]) -> int:
    """Return the token after a text."""
    return sum((place + 1) * token for place, token in enumerate(text)) % VOCABULARY


def written(prompt: list[int], tokens: int) -> list[int]:
    """Return what the oracle writes."""
    text = list(prompt)
    for _ in range(tokens):
        text.append(following(text))
    return text[len(prompt) :]


@exercise(asks=WRITE, takes="write")
def check_write(answer) -> Outcome:
    """A function (model, prompt, tokens) -> list of tokens that uses a cache."""
    earlier = []
    for prompt, tokens in (([3, 1, 4], 6), ([7], 4), ([2, 9, 9, 5, 1], 1), ([8, 2], 0)):
        model, prompt_copy = Oracle(), list(prompt)
        returned = answer(model, prompt_copy, tokens)
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet. Return the list of new tokens.")
        if prompt_copy != prompt:
            return not_yet("The function changes the prompt. Make a new list.")
        kept = any(cache is old for cache in model.caches for old in earlier)
        if fault := _fault(model, prompt, tokens, returned, kept=kept):
            return not_yet(fault)
        earlier += model.caches
    return correct("The same tokens as by reading everything again, and each of them is read once.")


def _fault(model: Oracle, prompt: list[int], tokens: int, returned: object, *, kept: bool) -> str | None:
    """Say what is wrong with what was written; None where nothing is. `kept`: a cache is that of an earlier prompt."""
    try:
        tokens_back = [int(token) for token in returned]
    except (TypeError, ValueError):
        return f"Return a list of tokens, which are integers; yours is {type(returned).__name__}."
    right, once = written(prompt, tokens), len(prompt) + tokens - 1
    if tokens_back == prompt + right:
        return "The prompt is in the list. Return only the new tokens."
    if len(tokens_back) != tokens:
        return f"For tokens={tokens} your list has {len(tokens_back)} tokens."
    if model.filled and kept:
        return "The cache still holds an earlier prompt. Make it inside the function, not as a default argument."
    if model.filled:
        return "The model fills the cache itself. Start with an empty list, and do not change it."
    most = max(map(len, model.caches), default=0)
    if tokens_back != right:
        if most > once + 1:
            return (
                f"After a prompt of {len(prompt)} and {tokens} new tokens the cache holds {most}: some tokens are in it"
                " twice. Give the model only what is new."
            )
        if tokens_back[0] != right[0] and len(prompt) > 1:
            return _first_fault(model, prompt, tokens_back[0])
        if len(model.caches) > 1:
            return "Each call has a cache of its own, so the model forgets what it has read. Make one before the loop."
        at = next(n for n, pair in enumerate(zip(tokens_back, right, strict=True)) if pair[0] != pair[1])
        return (
            f"Token {at} is {tokens_back[at]}, and should be {right[at]}. What has the model read when you choose it?"
        )
    if model.read > once + 1:
        return (
            f"The tokens are right, but the model has read {model.read} of them; {once} are enough."
            " Keep one cache, and give the model only what is new."
        )
    if model.calls > tokens + 1:
        return "The tokens are right. But read the prompt in one call: then the weights are read once for all of it."
    return None


def _first_fault(model: Oracle, prompt: list[int], first: int) -> str:
    """Say why the first token is wrong."""
    if first != prompt[-1] and [*prompt, prompt[-1]] in model.texts:
        return "The first token is wrong. The model has read the last token of the prompt twice."
    if prompt not in model.texts:
        return "The first token is wrong. Choose it when the model has read the whole prompt."
    return (
        "The first token is wrong. The logits have a row for each token read, and only the last row is about the next"
        " token: take the most probable one of that row."
    )
