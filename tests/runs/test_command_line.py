"""What every command parses: where it runs, how large, where the record goes, and counts from 1 on."""

import importlib

import pytest
import torch

from utils.runs import command_line


@pytest.fixture
def parser():
    parser = command_line.Parser("sweep", about=None, sizes="small or full")
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
    assert not hasattr(command_line.Parser("sweep", about=None).checked(["--device", "cpu"]), "size")


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
        (["--siz", "small"], "unrecognized arguments: --siz small; --help lists the options"),
    ],
)
def test_a_mistake_is_a_value_error_and_leaves_no_folder(parser, arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        parser.checked([*arguments, "--record", str(tmp_path / "new")])
    assert not (tmp_path / "new").exists()


def test_a_folder_without_a_name_is_refused_and_not_left_out(parser):
    with pytest.raises(ValueError, match="--record is followed by an empty name"):
        parser.checked(["--record", ""])


def test_the_help_says_what_the_program_is_for_and_its_defaults_as_they_are_typed(capsys):
    parser = command_line.Parser("sweep", about="How long a sweep takes.\n\nMore.")
    parser.add_names("--way", default=("up", "down"), help="where to")
    with pytest.raises(SystemExit):
        parser.checked(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "How long a sweep takes. options" in said
    assert "where to; default: up down" in said


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        pytest.param(KeyboardInterrupt(), 130, "sweep: interrupted; two rows are kept\n", id="Ctrl-C"),
        pytest.param(
            OSError(28, "No space left on device", "x"),
            2,
            "sweep: the record cannot be written: No space left on device (x); make room, or name another folder\n",
            id="a full disk",
        ),
        pytest.param(
            OSError("a pipe broke"),
            2,
            "sweep: the record cannot be written: a pipe broke; make room, or name another folder\n",
            id="without a file",
        ),
    ],
)
def test_what_stops_a_command_from_outside_is_one_line(error, code, says, capsys):
    @command_line.in_one_line("sweep", kept="two rows are kept")
    def main(arguments=None):
        raise error

    assert main(["--size", "small"]) == code
    assert capsys.readouterr().err == says


MEASURE = [
    "accumulation_error",
    "amax_series",
    "capstone.comparison",
    "fp8_speed",
    "gemm_sweep",
    "generation_speed",
    "microscope.__main__",
    "parallel.comparison",
    "refinement_speed",
    "step_speed",
]


@pytest.mark.parametrize("name", MEASURE)
def test_every_command_that_measures_ends_in_one_line_at_ctrl_c(name, capsys, monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line.Parser, "checked", pressed)
    assert importlib.import_module(f"utils.experiments.{name}").main([]) == 130
    said = capsys.readouterr().err
    assert "interrupted; " in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", [*(f"experiments.{name}" for name in MEASURE), "distilbert", "llama"])
def test_the_help_of_every_command_opens_with_what_its_own_module_is_about(name, capsys):
    module = importlib.import_module(f"utils.{name}")
    with pytest.raises(SystemExit):
        module.main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert f"{module.__doc__.splitlines()[0]} options:" in said
