"""Every way solves the system, the blocked factors are factors, and a record gives the times back."""

import numpy as np
import pytest
import torch

import book_rules as rules
from utils import records
from utils.emulation.refinement import matrix, refine
from utils.emulation.refinement import product as exact_product
from utils.experiments import refinement_speed
from utils.experiments.refinement_speed import FACTORS, SOLVE, WAYS, SolvePoint, SolveSpeeds, blocked_lu, solve
from utils.formats import BFLOAT16, FLOAT16, FLOAT32
from utils.runs import measurement

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(refinement_speed, "SIZES", {"small": (20, 30), "full": (40,)})


def test_a_published_number_has_a_source_in_the_bibliography():
    published = refinement_speed.PUBLISHED_FASTER | refinement_speed.PUBLISHED_EFLOPS
    entries = rules.bibliography((rules.BOOK / "references.bib").read_text("utf8"))
    assert all(low <= high and source in entries for low, high, source in published.values())


@pytest.mark.parametrize("way", WAYS)
def test_every_way_solves_to_float64(way):
    a, b = refinement_speed.draw_system(60, CPU)
    found = solve(a, b, way, block=16)
    assert found.backward_error < 10 * 2**-52
    assert (found.x - 1).abs().max() < 1e-10
    assert found.converged
    assert (found.steps > 0) == (way != "float64")


@pytest.mark.parametrize(("way", "fmt"), [("float32", FLOAT32), ("float16", FLOAT16), ("bfloat16", BFLOAT16)])
def test_it_converges_and_fails_where_the_reference_does(way, fmt):
    for condition in (10.0, 1e11):
        a = matrix(100, condition)
        b = exact_product(a, np.ones(100))
        ours, reference = solve(torch.tensor(a), torch.tensor(b), way, block=16), refine(a, b, factors=fmt)
        assert ours.converged == reference.converged == (condition == 10.0)
        assert not ours.converged or abs(ours.steps - reference.steps) <= 3


@pytest.mark.parametrize(("n", "block"), [(50, 16), (48, 16), (30, 64), (7, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_blocked_factors_multiply_to_the_matrix_with_its_rows_in_their_order(n, block, dtype):
    a = torch.randn(n, n, generator=torch.Generator().manual_seed(n))
    lu, order = blocked_lu(a, dtype, block=block)
    lower, upper = lu.double().tril(-1) + torch.eye(n), lu.double().triu()
    assert sorted(order.tolist()) == list(range(n))
    assert lower.abs().max() == 1
    eps = torch.finfo(dtype).eps if n > block else torch.finfo(torch.float32).eps
    bound = (2 * eps + 4 * n * torch.finfo(torch.float32).eps) * (lower.abs() @ upper.abs())
    assert ((a[order].double() - lower @ upper).abs() <= bound).all()


@pytest.mark.parametrize("n", [100, 400])
def test_the_matrices_have_a_condition_that_16_bits_can_take_at_any_size(n):
    a, b = refinement_speed.draw_system(n, CPU)
    assert 5 < torch.linalg.cond(a) < 60
    assert torch.equal(b, a.sum(1))
    steps = [solve(a, b, way, block=64).steps for way in ("float32", "float16", "bfloat16")]
    assert 1 <= steps[0] <= steps[1] <= steps[2] <= 6


def test_the_pivots_of_blocks_are_those_of_the_whole():
    a = torch.randn(40, 40, generator=torch.Generator().manual_seed(1))
    lu, order = blocked_lu(a, torch.float32, block=8)
    whole, pivots = torch.linalg.lu_factor(a)
    assert order.tolist() == refinement_speed._read_order(pivots, 40).tolist()
    assert torch.allclose(lu, whole, atol=1e-4)


def test_what_fails_says_so():
    a = torch.ones(4, 4, dtype=torch.float64)
    with pytest.raises(ValueError, match="unknown way 'float8'"):
        solve(a, a[0], "float8")
    with pytest.raises(RuntimeError, match="zero"):
        solve(a, a[0], "float32")


def test_every_way_is_timed_or_says_why_not():
    found = refinement_speed.measure_speeds(device=CPU, size="small", repeats=2)
    assert [(p.n, p.way, p.part) for p in found.points] == [
        (n, way, part) for n in (20, 30) for way in WAYS for part in (FACTORS, SOLVE)
    ]
    for point in found.points:
        sixteen = point.way in ("float16", "bfloat16")
        assert (len(point.samples), bool(point.note)) == ((0, True) if sixteen else (2, False))
        assert sixteen or point.backward_error < 1e-14
    assert found.at(20, "float16") is None
    assert found.faster(20, "float16") is None
    assert found.faster(20, "float64") == 1


def test_a_table_shows_ratios_what_is_missing_and_a_machine_that_was_not_quiet():
    points = [
        SolvePoint(8, "float64", FACTORS, (4.0,), 0, 1e-16),
        SolvePoint(8, "float64", SOLVE, (6.0,), 0, 1e-16),
        SolvePoint(8, "float32", FACTORS, (2.0,), 3, 2e-16),
        SolvePoint(8, "float32", SOLVE, (4.0,), 3, 2e-16),
        SolvePoint(8, "float16", SOLVE, note="none here"),
    ]
    text = refinement_speed.format_table(SolveSpeeds(tuple(points), {}, 0.5))
    assert "2.00 / 1.50" in text
    assert "float16 not timed: none here" in text
    assert "NOT QUIET: one solve took 1.50 times as long" in text
    assert "NOT QUIET" not in refinement_speed.format_table(SolveSpeeds(tuple(points), {}, 0.1))


def test_the_command_line_writes_a_record_that_gives_the_speeds_back(tmp_path, capsys):
    arguments = ["--device", "cpu", "--size", "small", "--repeats", "2", "--record", str(tmp_path)]
    assert refinement_speed.main(arguments) == 0
    assert "times as fast as float64" in capsys.readouterr().out
    (record,) = records.load_all(tmp_path)
    assert record.name == "refinement_speed-lu-small-random-cpu-seed0"
    assert "--size small" in record.command
    assert record.settings["clock"] == ("processor" if torch.get_num_threads() == 1 else "wall")
    found = refinement_speed.of_record(record)
    assert found.sizes == [20, 30]
    assert len(found.at(20, "float32").samples) == 2


def test_the_clocks_are_those_of_a_device_that_solves(monkeypatch):
    def asked(call, device):
        assert call().converged
        return {"sm_clock_mhz": 1_980.0}

    monkeypatch.setattr(measurement, "read_clocks_under_load", asked)
    assert refinement_speed.measure_speeds(device=CPU, size="small", repeats=1).moment == {"sm_clock_mhz": 1_980.0}


@pytest.mark.parametrize("arguments", [["--size", "tiny"], ["--repeats", "0"], ["--nonsense"]])
def test_a_mistake_is_one_line_and_exit_code_2(arguments, capsys):
    assert refinement_speed.main(["--device", "cpu", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.gpu
def test_a_gpu_solves_with_16_bit_products():
    a, b = refinement_speed.draw_system(700, torch.device("cuda"))
    for way in WAYS:
        found = solve(a, b, way, block=128)
        assert found.converged
        assert found.backward_error < 700**0.5 * 2**-52
