"""Tokenisers learned from the training texts; the same texts give the same vocabulary in every process.

`WordPieceTrainer` is left out on purpose: it gives another vocabulary on every call.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CLS, SEP = SPECIAL.index("[CLS]"), SPECIAL.index("[SEP]")
PROSE_SPECIAL = ("<s>", "</s>")  # LLaMA's names for the begin and the end of a piece of text
BEGIN, END = range(2)


def train_word_tokenizer(texts: Iterable[str], *, max_length: int):
    """Return a tokeniser with one entry a word, the most frequent first; for text from a closed vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    counts = Counter(word for text in texts for word in text.split())
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    entries = {word: index for index, word in enumerate((*SPECIAL, *ordered))}
    tokenizer = Tokenizer(models.WordLevel(entries, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return _for_classification(tokenizer, max_length=max_length)


def train_bpe(texts: Sequence[str], *, entries: int, max_length: int, keep_end: bool = False):
    """Return a lower-case byte-level BPE tokeniser with `entries` entries; for real text.

    `keep_end` cuts long texts at their beginning: a review gives its verdict last.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    line_break = Regex(r"<br\s*/?>")  # reviews from the web carry them
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(line_break, " "), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=entries,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _for_classification(tokenizer, max_length=max_length, cut="left" if keep_end else "right")


def _for_classification(tokenizer, *, max_length: int, cut: str = "right"):
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=max_length,
        truncation_side=cut,
        model_input_names=["input_ids", "attention_mask"],
    )


def encode(tokenizer, texts: Sequence[str], *, max_length: int) -> list[list[int]]:
    """Return the token ids of each text, cut to `max_length` with its [CLS] and [SEP]."""
    return tokenizer(list(texts), truncation=True, max_length=max_length, return_attention_mask=False)["input_ids"]


def train_prose_bpe(text: str, *, entries: int = 512):
    """Return a byte-level BPE tokeniser for running text, case kept, that turns its ids back into the same text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=entries,
        special_tokens=list(PROSE_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="</s>",
        clean_up_tokenization_spaces=False,  # " ," is what a damaged model wrote, and is to be seen
    )


def pack_pieces(tokenizer, text: str, *, length: int) -> list[list[int]]:
    """Return running text as pieces of at most `length` token ids, `<s>` first and `</s>` last.

    A piece holds as many whole lines as fit; only a line that is longer is cut. So a generated story, which is one
    line, is one piece, and a verse of a play goes with those around it.
    """
    begin, end, room = tokenizer.bos_token_id, tokenizer.eos_token_id, length - 2
    lines = tokenizer(text.splitlines(keepends=True), add_special_tokens=False)["input_ids"]
    pieces: list[list[int]] = [[]]
    for line in lines:
        for part in (line[at : at + room] for at in range(0, len(line), room)):
            if len(pieces[-1]) + len(part) > room:
                pieces.append([])
            pieces[-1] += part
    return [[begin, *piece, end] for piece in pieces if piece]
