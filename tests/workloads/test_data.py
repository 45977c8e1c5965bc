"""Reviews are read or refused with one clear reason, and the generated ones are the same everywhere."""

import hashlib
import os
import sys
import time

import pandas
import pytest

from utils.workloads import data, generated_text, tokenizers

REVIEWS = pandas.DataFrame({"text": ["good film", "bad film", "fine"], "label": [1, 0, 1]})


REAL = os.environ.get("MIXED_PRECISION_DATA")  # before a test hides it


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    monkeypatch.delenv("MIXED_PRECISION_DATA", raising=False)


@pytest.fixture
def hub_out_of_reach(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    data.hub_reachable.cache_clear()
    yield
    data.hub_reachable.cache_clear()


def write(folder, *, train=REVIEWS, test=REVIEWS, ending="parquet"):
    folder.mkdir(exist_ok=True)
    for name, frame in (("train", train), ("test", test)):
        path = folder / f"{name}.{ending}"
        if isinstance(frame, str):
            path.write_text(frame)
        elif frame is not None:
            frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    return folder


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_folder_of_parquet_or_csv_is_read(tmp_path, ending):
    found = data.load_reviews(write(tmp_path, ending=ending))
    assert found.train_texts == ["good film", "bad film", "fine"]
    assert found.test_labels == [1, 0, 1]
    assert found.source == "reviews (3 + 3 reviews), local folder"
    assert str(tmp_path) not in found.source


def test_the_folder_may_hold_a_folder_imdb_and_may_come_from_the_environment(tmp_path, monkeypatch):
    write(tmp_path / "imdb")
    monkeypatch.setenv("MIXED_PRECISION_DATA", str(tmp_path))
    assert data.load_reviews().train_labels == [1, 0, 1]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({"train": None, "test": None}, "no train.parquet or train.csv", id="no files"),
        pytest.param({"test": None}, "no test.parquet or test.csv beside train", id="no test part"),
        pytest.param({"train": REVIEWS[["text"]]}, "has no column label, only text", id="a column missing"),
        pytest.param({"train": REVIEWS[:0]}, "train.parquet is empty", id="no rows"),
        pytest.param({"train": "not parquet"}, "train.parquet cannot be read", id="not parquet"),
        pytest.param({"train": ""}, "train.parquet cannot be read", id="zero bytes"),
        pytest.param(
            {"test": REVIEWS.assign(label=[1, 2, 0])}, "labels review 2 with 2; labels are 0 and 1", id="label 2"
        ),
        pytest.param(
            {"test": REVIEWS.assign(label=["pos", "neg", "pos"])}, "with 'pos'; labels are", id="label in words"
        ),
        pytest.param({"train": REVIEWS.assign(text=["a", None, "b"])}, "has no text in review 2", id="text missing"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused_with_the_reason(tmp_path, files, message):
    with pytest.raises(ValueError, match=message) as error:
        data.load_reviews(write(tmp_path, **files))
    assert "\n" not in str(error.value)


def test_an_empty_csv_and_a_missing_folder_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"train.csv is empty"):
        data.load_reviews(write(tmp_path, train="", ending="csv"))
    with pytest.raises(ValueError, match=r"data folder .* is not there"):
        data.load_reviews(tmp_path / "nowhere")


def test_a_text_with_a_comma_and_no_quotes_is_named_as_the_cause(tmp_path):
    lines = "text,label\na film, a good one,1\n"
    with pytest.raises(ValueError, match=r"train.csv has more values in a line than columns; put a text that holds a"):
        data.load_reviews(write(tmp_path, train=lines, ending="csv"))


def test_a_review_is_named_by_its_place_whatever_its_index_says(tmp_path):
    strange = REVIEWS.assign(label=[1, 2, 0]).set_index(pandas.Index(["x", "y", "z"]))
    with pytest.raises(ValueError, match=r"test.parquet labels review 2 with 2"):
        data.load_reviews(write(tmp_path, test=strange))


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    def denied(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pandas, "read_parquet", denied)
    with pytest.raises(ValueError, match=r"train.parquet cannot be read: .*Permission denied"):
        data.load_reviews(write(tmp_path))


def test_without_folder_and_hub_the_reviews_are_generated_and_say_so(hub_out_of_reach):
    begin = time.perf_counter()
    found = data.load_reviews()
    assert found.generated
    assert found.source.startswith("generated reviews (6,000 + 2,000")
    assert time.perf_counter() - begin < 20  # never the 24 s of retries


def test_the_probe_tells_libraries_that_are_loaded_already(hub_out_of_reach, monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    assert not data.hub_reachable()
    assert sys.modules["huggingface_hub.constants"].HF_HUB_OFFLINE
    assert os.environ["HF_HUB_OFFLINE"] == "1"


def test_whoever_asks_the_hub_sends_no_statistics(monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.delenv("HF_HUB_DISABLE_TELEMETRY", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", False)
    monkeypatch.setattr(data, "_answers", lambda *_: True)
    data.hub_reachable()
    assert os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1"
    assert constants.HF_HUB_DISABLE_TELEMETRY


def test_the_hubs_reviews_are_used_when_it_has_them(monkeypatch):
    import datasets

    columns = {"text": ["good", "bad"], "label": [1, 0]}
    hub = {part: datasets.Dataset.from_dict(columns) for part in ("train", "test")}
    monkeypatch.setattr(data, "hub_reachable", lambda: True)
    monkeypatch.setattr(datasets, "load_dataset", lambda name: hub)
    found = data.load_reviews()
    assert (found.train_texts, found.test_labels) == (["good", "bad"], [1, 0])
    assert found.source == "Large Movie Review Dataset (2 + 2 reviews), from the hub (stanfordnlp/imdb)"


def test_a_hub_that_fails_is_named_and_answered_with_generated_reviews(monkeypatch, capsys):
    import datasets

    def broken(name):
        raise ConnectionError("half way through")

    monkeypatch.setattr(data, "hub_reachable", lambda: True)
    monkeypatch.setattr(datasets, "load_dataset", broken)
    assert data.load_reviews().generated
    assert capsys.readouterr().err == "stanfordnlp/imdb could not be loaded from the hub: ConnectionError\n"


def test_a_hub_that_does_not_answer_costs_the_time_limit_and_no_more(monkeypatch):
    def never(*arguments, **options):
        time.sleep(5)
        raise OSError("timed out")

    monkeypatch.setattr(data.urllib.request, "urlopen", never)
    begin = time.perf_counter()
    assert not data._answers("https://example.invalid", 0.2)
    assert time.perf_counter() - begin < 4


def test_generated_reviews_are_the_same_in_every_process():
    texts, labels = generated_text.reviews(500, seed=1)
    assert (texts, labels) == generated_text.reviews(500, seed=1)
    assert texts != generated_text.reviews(500, seed=2)[0]
    digest = hashlib.sha256("\n".join(f"{label} {text}" for label, text in zip(labels, texts, strict=True)).encode())
    assert digest.hexdigest()[:16] == "c5b6b263094ba01b"


def test_three_generated_labels_in_a_hundred_are_wrong():
    right = generated_text.reviews(4_000, seed=3, mix=generated_text.Mix(wrong_label=0.0))
    assert abs(sum(right[1]) / 4_000 - 0.5) < 5 * (0.25 / 4_000) ** 0.5
    count, share = 20_000, 0.03
    labels = generated_text.reviews(count, seed=4, mix=generated_text.Mix(verdict=1.0))
    liked = {verdict: 1 for verdict in generated_text.VERDICT[1]} | {
        verdict: 0 for verdict in generated_text.VERDICT[0]
    }
    wrong = sum(liked[text.split(" . ")[-1].removesuffix(" .")] != label for text, label in zip(*labels, strict=True))
    assert abs(wrong / count - share) < 5 * (share * (1 - share) / count) ** 0.5


def test_the_parts_of_a_split_do_not_overlap_and_are_the_same_each_time():
    texts = [str(i) for i in range(100)]
    found = data.Reviews(texts[:60], [0] * 60, texts[60:], [1] * 40, "numbers", "folder")
    pooled = data.split(found, train=70, validation=10, test=20, pooled=True)
    assert pooled == data.split(found, train=70, validation=10, test=20, pooled=True)
    drawn = pooled.train.texts + pooled.validation.texts + pooled.test.texts
    assert sorted(drawn, key=int) == texts
    apart = data.split(found, train=30, validation=5, test=10, pooled=False)
    assert set(apart.test.labels) == {1}
    assert set(apart.train.labels) == {0}
    assert not set(apart.train.texts) & set(apart.validation.texts)
    pair = data.Reviews(["a"], [0], ["b"], [1], "two", "folder")
    with pytest.raises(ValueError, match="2 reviews are too few: 1 to train on and 0 to test on"):
        data.split(pair, train=35_000, validation=5_000, test=10_000, pooled=True)
    few = data.split(found, train=6_000, validation=0, test=2_000, pooled=False)
    assert (len(few.train), len(few.validation), len(few.test)) == (60, 0, 40)


def test_vocabularies_do_not_depend_on_chance():
    texts = generated_text.reviews(300, seed=1)[0]
    for build in (
        lambda: tokenizers.train_word_tokenizer(texts, max_length=64),
        lambda: tokenizers.train_bpe(texts, entries=400, max_length=64),
    ):
        first, second = build(), build()
        assert first.get_vocab() == second.get_vocab()
        ids = tokenizers.encode(first, texts[:1], max_length=64)[0]
        assert (ids[0], ids[-1]) == (tokenizers.CLS, tokenizers.SEP)
        assert first.unk_token_id not in ids


def test_a_long_review_keeps_its_end_when_asked():
    tokenizer = tokenizers.train_bpe(["one two three four"] * 9, entries=300, max_length=6, keep_end=True)
    ids = tokenizers.encode(tokenizer, ["one two three four"], max_length=5)[0]
    assert len(ids) == 5
    assert tokenizer.decode(ids, skip_special_tokens=True).endswith("four")


def test_prose_is_a_text_file_or_generated_and_says_which(tmp_path, monkeypatch):
    assert data.load_prose(characters=5_000).source == "generated stories (5,000 characters)"
    (tmp_path / "input.txt").write_text("Once upon a time.")
    found = data.load_prose(tmp_path)
    assert found.text == "Once upon a time."
    assert (found.source, found.name) == ("text (17 characters), local folder", "folder")
    assert data.load_prose(tmp_path, characters=4).text == "Once"
    (tmp_path / "input.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="not UTF-8 text"):
        data.load_prose(tmp_path)
    tokenizer = tokenizers.train_prose_bpe(found.text, entries=300)
    assert tokenizer.decode(tokenizer(found.text)["input_ids"]) == found.text


def test_all_text_files_of_a_folder_are_read_in_the_order_of_their_names(tmp_path):
    (tmp_path / "b.txt").write_text("two\n")
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "README.md").write_text("not this")
    assert data.load_prose(tmp_path).text == "one\ntwo\n"
    (tmp_path / "tinyshakespeare").mkdir()
    assert data.load_prose(tmp_path).text == "one\ntwo\n"
    for name in "ab":
        (tmp_path / f"{name}.txt").rename(tmp_path / "tinyshakespeare" / f"{name}.txt")
    assert data.load_prose(tmp_path).text == "one\ntwo\n"


def test_a_folder_that_is_named_and_has_no_text_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no text in .*: no .txt file there or in its folder tinyshakespeare"):
        data.load_prose(tmp_path)
    with pytest.raises(ValueError, match=r"data folder .* is not there"):
        data.load_prose(tmp_path / "nowhere")


def test_pieces_are_whole_lines_with_a_begin_and_an_end_and_give_the_text_back():
    text = "a b c d.\n" * 3 + "x " * 40 + "\nend"
    tokenizer = tokenizers.train_prose_bpe(text, entries=300)
    pieces = tokenizers.pack_pieces(tokenizer, text, length=12)
    assert all(piece[0] == tokenizers.BEGIN and piece[-1] == tokenizers.END for piece in pieces)
    assert max(map(len, pieces)) <= 12
    assert "".join(tokenizer.decode(piece[1:-1]) for piece in pieces) == text
    read = [tokenizer.decode(piece[1:-1]) for piece in tokenizers.pack_pieces(tokenizer, "a b c d.\n" * 3, length=14)]
    assert all(part.endswith("d.\n") for part in read)


@pytest.mark.skipif(not REAL, reason="MIXED_PRECISION_DATA names no folder with real reviews")
def test_the_real_reviews_are_recognised_by_their_texts():
    found = data.load_reviews(REAL)
    assert found.name == "imdb"
    assert found.source == "Large Movie Review Dataset (25,000 + 25,000 reviews), local folder"


@pytest.mark.skipif(not REAL, reason="MIXED_PRECISION_DATA names no folder with real text")
def test_tiny_shakespeare_is_recognised_by_its_text():
    found = data.load_prose(REAL, characters=2_000_000)
    assert found.name == "tinyshakespeare"
    assert found.source == "Tiny Shakespeare (1,115,394 characters), local folder"
