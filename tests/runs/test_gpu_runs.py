"""The lines of a page about GPUs: one for each record of a GPU, none where there is none."""

from made_runs import GPU, run
from utils import records
from utils.runs.gpu_runs import print_gpu_runs


def test_a_line_for_each_record_of_a_gpu(monkeypatch, capsys):
    made = [run("32-true", 0), run("bf16-mixed", 1, device=GPU, accuracy=0.875)]
    monkeypatch.setattr(records, "load_all", lambda experiment: made)
    print_gpu_runs("distilbert", lambda record: f"{record.results['accuracy']:.1%} right")
    assert capsys.readouterr().out == "Some GPU, bf16-mixed, seed 1, 2026-11-22: 87.5% right\n"


def test_nothing_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(records, "load_all", lambda experiment: [run("32-true", 0)])
    print_gpu_runs("distilbert", str)
    assert capsys.readouterr().out == ""
