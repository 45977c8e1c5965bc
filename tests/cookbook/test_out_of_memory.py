"""What the recipe on running out of memory promises: exact bytes by kind, peaks by phase, and a snapshot at the end."""

import types

import pytest
import torch
from torch import nn

import recipe_scripts

PHASES = ["forward", "backward", "optimizer step", "zero_grad"]


@pytest.fixture
def script(monkeypatch):
    script = recipe_scripts.load("out_of_memory")
    monkeypatch.setattr(script, "device", "cpu")
    return script


@pytest.fixture
def gpu(monkeypatch):
    """The script as if it ran on a GPU whose tensors are the CPU's; what it asks of CUDA is recorded."""
    script, calls = recipe_scripts.load("out_of_memory"), []
    answers = {"max_memory_allocated": 9_000_000, "max_memory_reserved": 12_000_000}

    def stub(name):
        def call(*args, **how):
            calls.append((name, *args, *how.values()))
            return answers.get(name)

        return call

    names = ("synchronize", "max_memory_allocated", "max_memory_reserved", "reset_peak_memory_stats")
    memory = types.SimpleNamespace(**{name: stub(name) for name in ("_record_memory_history", "_dump_snapshot")})
    cuda = types.SimpleNamespace(memory=memory, **{name: stub(name) for name in names})
    seen = types.SimpleNamespace(**{name: getattr(torch, name) for name in ("is_tensor", "OutOfMemoryError", "optim")})
    seen.cuda = cuda
    monkeypatch.setattr(script, "torch", seen)
    monkeypatch.setattr(script, "device", "cuda")
    monkeypatch.setattr(script, "make_run", small_run)
    return script, calls


def small_run():
    model = nn.Linear(8, 8)
    return model, torch.optim.AdamW(model.parameters())


def stepped(model):
    """A model's optimizer after a step whose gradients are still there."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    model(torch.ones(4, 8, dtype=next(model.parameters()).dtype)).float().sum().backward()
    optimizer.step()
    return optimizer


def test_it_runs_as_it_stands(tmp_path):
    done = recipe_scripts.run_as_shown("out_of_memory", tmp_path)
    rows = [line[:15].strip() for line in done.stdout.splitlines()[1:]]
    assert rows == 2 * PHASES


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 4), (torch.bfloat16, 2)], ids=str)
def test_each_kind_is_counted_in_its_dtype(script, dtype, size):
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 8)).to(dtype)
    sizes = script.count_bytes(model, stepped(model))
    count = 8 * 16 + 16 + 16 + 16 + 16 * 8 + 8
    steps = 4 * 6  # AdamW counts the steps of each of the six tensors in float32
    assert sizes["weights"] == sizes["gradients"] == size * count
    assert sizes["optimizer"] == 2 * size * count + steps
    assert sizes["buffers"] == 2 * size * 16 + 8


def test_frozen_weights_have_no_gradients_and_no_moments(script):
    model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 8))
    model[0].requires_grad_(False)
    sizes = script.count_bytes(model, stepped(model))
    learned = 4 * (16 * 8 + 8)
    assert sizes["weights"] == 4 * (8 * 16 + 16) + learned
    assert sizes["gradients"] == learned
    assert sizes["optimizer"] == 2 * learned + 4 * 2


def test_tied_weights_and_what_lies_elsewhere_are_counted_right(script):
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
    model[1].weight = model[0].weight
    model.register_buffer("elsewhere", torch.ones(8, device="meta"))
    sizes = script.count_bytes(model, torch.optim.SGD(model.parameters()))
    assert sizes == {"weights": 4 * 64, "buffers": 0, "gradients": 0, "optimizer": 0}


def small_step(model, optimizer, finish):
    """The phases of the page without what the stand-in lacks: autocast and a device."""
    loss = model(torch.ones(4, 8)).sum()
    finish("forward")
    loss.backward()
    finish("backward")


def test_on_a_gpu_each_phase_has_its_own_peak(gpu, monkeypatch, capsys):
    script, calls = gpu
    monkeypatch.setattr(script, "step", small_step)
    monkeypatch.setattr(script, "count_bytes", lambda *_: dict.fromkeys(script.KINDS, 1_000_000))
    script.main(steps=1)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["MB", "after", "weights", "buffers", "gradients", "optimizer", "peak", "reserved"]
    assert rows[0].split() == ["forward", "1.0", "1.0", "1.0", "1.0", "9.0", "12.0"]
    assert calls[0] == ("_record_memory_history", 100_000)
    assert [name for name, *_ in calls[1:]] == 2 * [
        "synchronize",
        "max_memory_allocated",
        "max_memory_reserved",
        "reset_peak_memory_stats",
    ]


def test_a_step_that_runs_out_leaves_a_table_and_a_snapshot(gpu, monkeypatch, capsys):
    script, calls = gpu

    def step(model, optimizer, finish):
        finish("forward")
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    monkeypatch.setattr(script, "step", step)
    with pytest.raises(SystemExit) as end:
        script.main()
    assert end.value.code == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:4]] == [
        "forward",
        "CUDA out of memory. Tried to allocate 20 GiB",
        "out of memory",
    ]
    assert "memory_viz" in lines[-1]
    assert calls[-1] == ("_dump_snapshot", "oom.pickle")


def test_torch_has_the_names_that_no_cpu_calls():
    assert callable(torch.cuda.memory._record_memory_history)
    assert callable(torch.cuda.memory._dump_snapshot)
    assert issubclass(torch.OutOfMemoryError, RuntimeError)


@pytest.mark.gpu
def test_a_gpu_shows_activations_in_the_peak(tmp_path):
    done = recipe_scripts.run("out_of_memory", tmp_path)
    assert done.returncode == 0, done.stderr
    forward = next(line for line in done.stdout.splitlines() if line.startswith("forward"))
    *kinds, peak, reserved = map(float, forward.split()[1:])
    assert sum(kinds) < peak <= reserved
