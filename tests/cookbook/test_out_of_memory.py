"""What the recipe on running out of memory promises: exact bytes by kind, peaks by phase, and a snapshot at the end."""

import inspect
import types
import weakref

import pytest
import torch
from torch import nn

import recipe_scripts
from utils.cost.live_bytes import LiveBytes

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

    names = ("max_memory_allocated", "max_memory_reserved", "reset_peak_memory_stats")
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
    lines = done.stdout.splitlines()
    assert [line[:15].strip() for line in lines[1:9]] == 2 * PHASES
    if not torch.cuda.is_available():
        assert lines[9:] == ["PyTorch counts rest, peak and gaps of a GPU; there is none here"]


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
    assert head.split() == ["MB", "after", "weights", "buffers", "gradients", "optimizer", "rest", "peak", "gaps"]
    assert rows[0].split() == ["forward", "1.0", "1.0", "1.0", "1.0", "5.0", "9.0", "3.0"]
    assert calls[0] == ("_record_memory_history", 100_000)
    assert [name for name, *_ in calls[1:]] == 2 * [
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
    inspect.signature(torch.cuda.memory._record_memory_history_impl).bind(max_entries=100_000)
    inspect.signature(torch.cuda.memory._dump_snapshot).bind("oom.pickle")
    assert callable(torch.cuda.memory._record_memory_history)
    assert issubclass(torch.OutOfMemoryError, RuntimeError)


def as_on_a_gpu(script, live):
    """Let the script's tensors be the CPU's, its table a GPU's, and the allocator one without gaps."""

    def on(device, function):
        def call(*args):
            before, script.device = script.device, device
            try:
                return function(*args)
            finally:
                script.device = before

        return call

    def forget():
        live.curve[:] = [live.now]

    step = script.step
    script.make_run, script.count_bytes = on("cpu", script.make_run), on("cpu", script.count_bytes)
    script.step = lambda model, optimizer, finish: on("cpu", step)(model, optimizer, on("cuda", finish))
    peak = dict.fromkeys(("max_memory_allocated", "max_memory_reserved"), lambda: live.peak)
    return peak | {"reset_peak_memory_stats": forget, "memory._record_memory_history": lambda **_: None}


@pytest.fixture
def rows(monkeypatch, capsys):
    """What the script prints as if on a GPU, by (step, phase) in MB; peaks are those of the tensors that are alive."""
    script = recipe_scripts.load("out_of_memory")
    monkeypatch.setattr(script, "device", "cuda")
    with LiveBytes() as live:
        for name, stub in as_on_a_gpu(script, live).items():
            monkeypatch.setattr(f"torch.cuda.{name}", stub)
        script.main()
    _, *lines = capsys.readouterr().out.splitlines()
    keys = [(step, phase) for step in (1, 2) for phase in PHASES]
    names = [*script.KINDS, "rest", "peak", "gaps"]
    return {
        key: dict(zip(names, map(float, line[15:].split()), strict=True)) for key, line in zip(keys, lines, strict=True)
    }


def test_each_row_adds_up_to_the_peak(rows):
    for row in rows.values():
        *parts, peak, gaps = row.values()
        assert sum(parts) == pytest.approx(peak, abs=0.3)
        assert gaps == 0


def test_the_second_forward_pass_has_the_moments_beside_it(rows):
    first, second = rows[1, "forward"], rows[2, "forward"]
    assert second["rest"] == first["rest"] > 0
    assert second["peak"] - first["peak"] == pytest.approx(2 * first["weights"], abs=0.2)


def test_the_rest_after_forward_has_autocasts_copies_of_the_weights(rows):
    """And the input, its copy, the hidden layer before and behind GELU, and the end of the network."""
    copies = 2 * (512 * 2048 * 2 + 2048 + 512)
    kept = 64 * (512 * (4 + 2) + 2048 * (2 + 2))
    least, most = (copies + kept) / 1e6, (copies + kept + 64 * 512 * 20) / 1e6
    assert least <= rows[1, "forward"]["rest"] + 0.1 <= most + 0.1


def kept_bytes(step):
    """The bytes alive after each of four steps that add to one total."""
    model, total, alive = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 8)), 0, []
    with LiveBytes(model.parameters()) as live:
        for _ in range(4):
            total = total + step(model, model(torch.ones(32, 64)).square().mean())
            alive.append(live.now)
    return alive


def test_a_kept_loss_keeps_activations_only_if_no_backward_pass_frees_them():
    def train(model, loss):
        loss.backward()
        model.zero_grad()
        return loss

    hidden = 4 * 32 * 256
    trained, validated = kept_bytes(train), kept_bytes(lambda _, loss: loss)
    detached = kept_bytes(lambda _, loss: loss.detach())
    assert max(trained) - min(trained) < hidden
    assert validated[3] - validated[0] >= 3 * 2 * hidden
    assert detached[3] == detached[0] < validated[0]


def test_within_the_handler_the_tensors_of_the_failed_step_are_alive():
    seen = []

    def step():
        activations = torch.ones(8)
        seen.append(weakref.ref(activations))
        raise torch.OutOfMemoryError

    try:
        step()
    except torch.OutOfMemoryError:
        within = seen[0]() is not None
    assert within
    assert seen[0]() is None


@pytest.mark.gpu
def test_on_a_gpu_the_rest_of_the_peak_is_there_and_rows_add_up(tmp_path):
    done = recipe_scripts.run("out_of_memory", tmp_path)
    assert done.returncode == 0, done.stderr
    forward = next(line for line in done.stdout.splitlines() if line.startswith("forward"))
    *parts, rest, peak, gaps = map(float, forward.split()[1:])
    assert rest > 0
    assert gaps >= 0
    assert sum(parts) + rest == pytest.approx(peak, abs=0.3)


@pytest.mark.gpu
def test_on_a_gpu_a_step_that_runs_out_writes_a_snapshot(tmp_path, monkeypatch, capsys):
    script = recipe_scripts.load("out_of_memory")

    def step(model, optimizer, finish):
        finish("forward")
        torch.empty(2**50, dtype=torch.uint8, device="cuda")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(script, "step", step)
    try:
        with pytest.raises(SystemExit):
            script.main()
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    assert (tmp_path / "oom.pickle").stat().st_size > 0
    assert "out of memory" in capsys.readouterr().out
