"""Records of the code before a change that alters no result get its new key, and nothing else of them changes."""

import pytest

import rekey
from test_records import a_record
from utils import records
from utils.runs.loaded_source import digest


@pytest.fixture
def trees(tmp_path):
    """A tree before a module moves, and after it has moved."""
    for name, source in {
        "before/utils/train.py": "from utils.rates import rate\n",
        "before/utils/rates.py": "rate = 0.5\n",
        "now/utils/runs/train.py": "from utils.runs.rates import rate\n",
        "now/utils/runs/rates.py": "rate = 0.5\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return tmp_path / "before", tmp_path / "now"


def test_records_of_the_code_before_get_the_new_key_and_no_others(trees, tmp_path):
    before, now = trees
    old, new = digest("utils.train", before), digest("utils.runs.train", now)
    keys = {"32-true": f"aaaa-{old}", "bf16-true": "aaaa-0123456789abcdef", "16-true": old, "64-true": None}
    for name, key in keys.items():
        records.save(a_record(recipe=name, key=key), tmp_path)
    texts = {path: path.read_text() for path in tmp_path.glob("*.json")}
    (changed,) = rekey.rekey(tmp_path, {"utils.train": "utils.runs.train"}, before=before, now=now)
    assert changed == a_record(recipe="32-true").name
    for path, text in texts.items():
        assert path.read_text() == (text.replace(old, new) if path.stem == changed else text)


def test_no_committed_record_has_the_key_of_an_older_commit_by_chance(capsys, tmp_path):
    record = a_record(key="aaaa-0123456789abcdef")
    records.save(record, tmp_path)
    assert rekey.main(["HEAD", "utils.distilbert", "--records", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("0 records had the key of the code at HEAD")
    assert rekey.main(["no-such-commit", "utils.distilbert", "--records", str(tmp_path)]) == 2
    assert rekey.main(["HEAD", "utils.nonsense", "--records", str(tmp_path)]) == 2
    assert "there is no module utils.nonsense" in capsys.readouterr().err
