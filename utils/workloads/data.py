"""Reviews and prose: from a local folder, else from the hub, else generated; and it says which.

Nothing here falls back in silence: a folder that was named must be good, and `Reviews.source` says in words what is
used.
"""

import functools
import os
import sys
import threading
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from pathlib import Path

import torch

from utils.workloads import generated_text

HUB_DATASET = "stanfordnlp/imdb"
IMDB = "Large Movie Review Dataset"
IMDB_FINGERPRINT = 0x49F45E8D  # of all 50,000 texts, in any order
SHAKESPEARE = "tinyshakespeare"  # a name of files and folders
SHAKESPEARE_FINGERPRINT = 0xDF613551  # of the 1,115,394 characters of tinyshakespeare
GENERATED_SIZES = {"small": (6_000, 2_000), "full": (40_000, 10_000)}


@dataclass(frozen=True)
class Part:
    """Texts with their labels: 1 liked, 0 disliked."""

    texts: list[str]
    labels: list[int]

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, indices) -> "Part":
        """Return the reviews at `indices`, in that order."""
        return Part([self.texts[i] for i in indices], [self.labels[i] for i in indices])


@dataclass(frozen=True)
class Reviews:
    """Labelled reviews, split into train and test by whoever published them; `source` says in words what they are."""

    train_texts: list[str]
    train_labels: list[int]
    test_texts: list[str]
    test_labels: list[int]
    source: str
    name: str  # one word, for file names: "imdb", "generated", "folder"

    @property
    def generated(self) -> bool:
        """Say whether the reviews come from `utils.workloads.generated_text`."""
        return self.name == "generated"

    @property
    def all(self) -> list[str]:
        """All texts, train and test."""
        return self.train_texts + self.test_texts


@functools.cache
def hub_reachable(timeout: float = 2.0) -> bool:
    """Probe the hub once; when it is out of reach, tell the Hugging Face libraries so. They send no statistics of use.

    Without this a missing file costs 23 to 46 s of retries. The libraries read their switches when they are imported,
    so one that is loaded already is told directly.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    if "huggingface_hub.constants" in sys.modules and os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1":
        sys.modules["huggingface_hub.constants"].HF_HUB_DISABLE_TELEMETRY = True
    offline = os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    reachable = not offline and _answers(os.environ.get("HF_ENDPOINT", "https://huggingface.co"), timeout)
    if not reachable:
        os.environ["HF_HUB_OFFLINE"] = "1"
        for module in ("huggingface_hub.constants", "datasets.config"):
            if module in sys.modules:
                sys.modules[module].HF_HUB_OFFLINE = True
    return reachable


def _answers(url: str, timeout: float) -> bool:
    """Ask in a thread: looking up a name may outlast any timeout of the socket."""
    answered = []

    def ask():
        try:
            urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=timeout).close()
            answered.append(True)
        except urllib.error.HTTPError as error:
            answered.append(error.code < 500)
        except (OSError, ValueError):
            pass

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(timeout)
    return bool(answered) and answered[0]


def load_reviews(folder: Path | str | None = None, *, size: str = "small") -> Reviews:
    """Return the reviews of `folder`, else of `MIXED_PRECISION_DATA`, else of the hub, else generated ones.

    `size` counts only for generated reviews.
    Raises: ValueError when a folder was named and its reviews cannot be used.
    """
    folder = folder or os.environ.get("MIXED_PRECISION_DATA")
    if folder:
        return folder_reviews(Path(folder))
    return hub_reviews() or generated_reviews(size)


def generated_reviews(size: str = "small") -> Reviews:
    """Return reviews that `generated_text` makes from templates; some of their labels are wrong, in both parts."""
    train, test = GENERATED_SIZES[size]
    mix = generated_text.Mix()
    train_texts, train_labels = generated_text.reviews(train, seed=1, mix=mix)
    test_texts, test_labels = generated_text.reviews(test, seed=2, mix=mix)
    source = f"generated reviews ({train:,} + {test:,}, {mix.wrong_label:.0%} of the labels wrong on purpose)"
    return Reviews(train_texts, train_labels, test_texts, test_labels, source, "generated")


def hub_reviews() -> Reviews | None:
    """Return the hub's IMDb reviews, from its cache where it has them; None when they cannot be had."""
    reachable = hub_reachable()
    import datasets

    try:
        datasets.disable_progress_bars()
        parts = datasets.load_dataset(HUB_DATASET)
    except Exception as error:  # the hub fails in many ways, and generated reviews answer all of them
        if reachable:
            print(f"{HUB_DATASET} could not be loaded from the hub: {type(error).__name__}", file=sys.stderr)
        return None
    train, test = parts["train"], parts["test"]
    source = f"{IMDB} ({len(train):,} + {len(test):,} reviews), from the hub ({HUB_DATASET})"
    columns = (list(part[column]) for part in (train, test) for column in ("text", "label"))
    return Reviews(*columns, source, "imdb")


def folder_reviews(folder: Path) -> Reviews:
    """Return the reviews of `folder` (or of `folder`/imdb): train and test, each .parquet or .csv, columns text, label.

    Raises: ValueError that names the file and what is wrong with it.
    """
    if not folder.is_dir():
        raise ValueError(f"data folder {folder} is not there")
    home = next((place for place in (folder, folder / "imdb") if _table(place, "train")), None)
    if home is None:
        raise ValueError(f"no train.parquet or train.csv in {folder} or its folder imdb")
    if not _table(home, "test"):
        raise ValueError(f"no test.parquet or test.csv beside train in {home}")
    train, test = (_read(_table(home, part)) for part in ("train", "test"))
    is_imdb = fingerprint(train.texts + test.texts) == IMDB_FINGERPRINT
    counts = f"({len(train):,} + {len(test):,} reviews), local folder"
    source, name = (f"{IMDB} {counts}", "imdb") if is_imdb else (f"reviews {counts}", "folder")
    return Reviews(train.texts, train.labels, test.texts, test.labels, source, name)


def _table(folder: Path, part: str) -> Path | None:
    return next((path for path in (folder / f"{part}.parquet", folder / f"{part}.csv") if path.is_file()), None)


def _read(path: Path) -> Part:
    import pandas

    try:
        frame = pandas.read_parquet(path) if path.suffix == ".parquet" else pandas.read_csv(path)
    except pandas.errors.EmptyDataError as error:
        raise ValueError(f"{path} is empty") from error
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error
    if path.suffix == ".csv" and not isinstance(frame.index, pandas.RangeIndex):  # an index of what is over
        raise ValueError(f"{path} has more values in a line than columns; put a text that holds a comma into quotes")
    frame = frame.reset_index(drop=True)  # a parquet file may have one of its own, and reviews are counted
    missing = [column for column in ("text", "label") if column not in frame.columns]
    if missing:
        raise ValueError(f"{path} has no column {' and '.join(missing)}, only {', '.join(map(str, frame.columns))}")
    if frame.empty:
        raise ValueError(f"{path} is empty")
    strange = frame.loc[~frame["label"].isin((0, 1)), "label"]
    if len(strange):
        raise ValueError(
            f"{path} labels review {strange.index[0] + 1} with {strange.tolist()[0]!r}; labels are 0 and 1"
        )
    empty = frame.index[frame["text"].isna()]
    if len(empty):
        raise ValueError(f"{path} has no text in review {empty[0] + 1}")
    return Part([str(text) for text in frame["text"]], [int(label) for label in frame["label"]])


def fingerprint(texts: list[str]) -> int:
    """Return a checksum of the texts that does not depend on their order."""
    return sum(zlib.crc32(text.encode("utf-8")) for text in texts) % 2**32


@dataclass(frozen=True)
class Split:
    """The three parts of one experiment; `validation` may be empty."""

    train: Part
    validation: Part
    test: Part


def split(reviews: Reviews, *, train: int, validation: int, test: int, pooled: bool, seed: int = 0) -> Split:
    """Draw the parts of an experiment without overlap; where there are few reviews, each part shrinks alike.

    `pooled` draws all three from train and test together, as the benchmark that the book is held against does; else
    train and validation come from the published train part and test from the published test part.
    Raises: ValueError when nothing is left to train or to test on.
    """
    published = Part(reviews.train_texts, reviews.train_labels), Part(reviews.test_texts, reviews.test_labels)
    generator = torch.Generator().manual_seed(seed)
    if pooled:
        everything = Part(published[0].texts + published[1].texts, published[0].labels + published[1].labels)
        parts = _draw(everything, (train, validation, test), generator)
    else:
        parts = _draw(published[0], (train, validation), generator) + _draw(published[1], (test,), generator)
    if not parts[0] or not parts[2]:
        total = sum(map(len, published))
        raise ValueError(f"{total} reviews are too few: {len(parts[0])} to train on and {len(parts[2])} to test on")
    return Split(*parts)


def _draw(part: Part, counts: tuple[int, ...], generator: torch.Generator) -> list[Part]:
    share = min(1.0, len(part) / sum(counts))
    order = torch.randperm(len(part), generator=generator).tolist()
    parts, begin = [], 0
    for count in counts:
        end = begin + int(count * share)
        parts.append(part.take(order[begin:end]))
        begin = end
    return parts


@dataclass(frozen=True)
class Prose:
    """Running text for a language model; `source` says in words what it is."""

    text: str
    source: str
    name: str  # one word, for file names: "generated", "tinyshakespeare", "folder"

    @property
    def all(self) -> list[str]:
        """The text, as the only one."""
        return [self.text]


def load_prose(folder: Path | str | None = None, *, characters: int = 200_000) -> Prose:
    """Return the text of `folder`, else of `MIXED_PRECISION_DATA`, else generated stories: at most `characters` of it.

    Raises: ValueError when a folder was named and has no text that can be used.
    """
    folder = folder or os.environ.get("MIXED_PRECISION_DATA")
    return folder_prose(Path(folder), characters=characters) if folder else generated_prose(characters)


def generated_prose(characters: int = 200_000) -> Prose:
    """Return stories from the template grammar of `utils.workloads.generated_text`, one a line."""
    return Prose(
        generated_text.stories(characters, seed=0), f"generated stories ({characters:,} characters)", "generated"
    )


def folder_prose(folder: Path, *, characters: int = 200_000) -> Prose:
    """Return the text files of `folder` (or of `folder`/tinyshakespeare), *.txt in the order of their names.

    Raises: ValueError that names the folder or the file and what is wrong with it.
    """
    if not folder.is_dir():
        raise ValueError(f"data folder {folder} is not there")
    paths = sorted(folder.glob("*.txt")) or sorted((folder / SHAKESPEARE).glob("*.txt"))
    if not paths:
        raise ValueError(f"no text in {folder}: no .txt file there or in its folder {SHAKESPEARE}")
    text = "".join(map(_read_text, paths))
    is_shakespeare = fingerprint([text]) == SHAKESPEARE_FINGERPRINT
    what, name = ("Tiny Shakespeare", SHAKESPEARE) if is_shakespeare else ("text", "folder")
    return Prose(text[:characters], f"{what} ({min(characters, len(text)):,} characters), local folder", name)


def _read_text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error
    if not text.strip():
        raise ValueError(f"{path} is empty")
    return text
