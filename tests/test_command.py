"""What every command parses: where it runs, how large, where the record goes, and counts from 1 on."""

import pytest
import torch

from utils import command


@pytest.fixture
def parser():
    parser = command.Parser("sweep", sizes="small or full")
    parser.add_count("--tile-rows", default=3, help="rows")
    return parser


def test_options_come_with_what_they_mean(parser, tmp_path):
    found = parser.checked(["--device", "cpu", "--size", "full", "--record", str(tmp_path / "new")])
    assert (found.device, found.size, found.tile_rows) == (torch.device("cpu"), "full", 3)
    assert found.record == tmp_path / "new"
    assert found.record.is_dir()
    assert found.command == "python -m utils.sweep --device cpu --size full --record DIR"


def test_what_was_not_said_is_filled_in(parser):
    found = parser.checked(["--device", "cpu"])
    assert (found.size, found.record) == ("small", None)
    assert not hasattr(command.Parser("sweep").checked(["--device", "cpu"]), "size")


def test_the_arguments_of_the_process_are_taken_where_none_are_given(parser, monkeypatch):
    monkeypatch.setattr("sys.argv", ["sweep.py", "--device", "cpu", "--tile-rows", "5"])
    assert parser.checked(None).tile_rows == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tile-rows", "0"], "--tile-rows 0 is below 1"),
        (["--tile-rows", "x"], "invalid int value"),
        (["--size", "huge"], "unknown size 'huge'"),
        (["--device", "tpu"], "unknown device 'tpu'"),
        (["--siz", "small"], "unrecognized arguments"),
    ],
)
def test_a_mistake_is_a_value_error_and_leaves_no_folder(parser, arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        parser.checked([*arguments, "--record", str(tmp_path / "new")])
    assert not (tmp_path / "new").exists()
