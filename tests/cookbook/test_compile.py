"""What the recipe on torch.compile promises: fewer roundings, eager's on request, autocast and scaler in place."""

import copy
import json
import re
import statistics
import sys

import pytest
import torch
import torch._functorch.config
from torch import nn
from torch._dynamo.testing import CompileCounter

import book_rules as rules
import recipe_scripts
from utils.cost.live_bytes import LiveBytes

PAGE = recipe_scripts.COOKBOOK / "compile.ipynb"
RESULTS = PAGE.parents[1] / "results"
ROW = re.compile(r"(eager|compiled|compiled, casts kept) +([\d.]+)% +([\d.]+)% +(\d+)%")


@pytest.fixture
def script():
    """The script in this process; what it switches is put back."""
    before = torch.get_float32_matmul_precision()
    with torch._functorch.config.patch(backward_pass_autocast="same_as_forward"):
        yield recipe_scripts.load("compile")
    torch.set_float32_matmul_precision(before)
    torch._dynamo.reset()


@pytest.mark.usefixtures("compiler")
def test_compiled_is_nearer_to_float64_and_eager_comes_back_with_its_casts(tmp_path):
    done = recipe_scripts.run_as_shown("compile", tmp_path)
    rows = {name: [float(number) for number in numbers] for name, *numbers in ROW.findall(done.stdout)}
    eager, compiled, kept = rows["eager"], rows["compiled"], rows["compiled, casts kept"]
    assert compiled[0] < eager[0]
    assert compiled[1] < eager[1]
    assert compiled[2] < 60
    assert "compiled is no worse than eager" in done.stdout
    assert float(re.search(r"20 steps: ([\d.]+)", done.stdout)[1]) < 4  # ln 64 = 4.16 at the start
    if not torch.cuda.is_available():
        assert kept == eager == [*eager[:2], 100]


def test_without_a_compiler_it_says_so_in_one_line(tmp_path, monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("with a GPU, Triton needs no C++ compiler")
    monkeypatch.setenv("CXX", str(tmp_path / "missing"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))  # nothing compiled before
    # a process of its own: torch reads CXX when it imports its compiler, which a copied process may have done before
    done = recipe_scripts.run("compile", tmp_path, start=(sys.executable,))
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines() == ["torch.compile finds no C++ compiler: install g++"]


def test_the_reference_is_float64_and_the_model_stays_float32(script):
    model, batch = script.Model().to(script.device), script.make_batch()
    exact = copy.deepcopy(model).double()
    out, loss = script.forward(exact, batch, torch.float64)
    assert out.dtype == loss.dtype == torch.float64
    out, loss = script.forward(model, batch)
    assert (out.dtype, loss.dtype) == (torch.bfloat16, torch.float32)
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}


def test_a_wrong_kernel_is_reported_as_worse_than_eager(script, monkeypatch, capsys):
    monkeypatch.setattr(script, "train", lambda *arguments: 0.0)
    for factor, verdict in ((1.0, "no worse than eager"), (1.05, "WORSE than eager")):
        monkeypatch.setattr(torch, "compile", lambda model, factor=factor, **how: lambda x: factor * model(x))
        script.main()
        assert f"compiled is {verdict}" in capsys.readouterr().out


class KeptInFloat32(nn.Module):
    """A head that autocast must leave alone."""

    def __init__(self, *, broken=False):
        super().__init__()
        self.broken = broken
        self.body, self.head = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x):
        hidden = torch.relu(self.body(x))
        if self.broken:
            torch._dynamo.graph_break()
        with torch.autocast(x.device.type, enabled=False):
            return self.head(hidden.float())


def head_gradient(model, call, *, around):
    model.zero_grad()
    x = torch.randn(128, 64, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=around):
        out = call(x)
    out.pow(2).mean().backward()
    return model.head.weight.grad.clone()


@pytest.mark.parametrize(
    ("setting", "around", "broken", "same"),
    [
        pytest.param("same_as_forward", True, False, False, id="the default, autocast around"),
        pytest.param("off", True, False, True, id="off, autocast around"),
        pytest.param("same_as_forward", False, False, True, id="the default, autocast inside"),
        pytest.param("same_as_forward", False, True, False, id="the default, autocast inside, a graph break"),
        pytest.param("off", False, True, True, id="off, autocast inside, a graph break"),
    ],
)
def test_where_autocast_goes_decides_the_backward_pass(setting, around, broken, same):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = KeptInFloat32(broken=broken)
    eager = head_gradient(model, model, around=True)

    def inside(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x)

    with torch._functorch.config.patch(backward_pass_autocast=setting):
        compiled = torch.compile(model if around else inside, backend="aot_eager")
        found = head_gradient(model, compiled, around=around)
    error = float((found - eager).norm() / eager.norm())
    if same:
        assert error == 0
    else:  # one bfloat16 rounding of each factor
        assert 2.0**-12 < error < 2.0**-7
    torch._dynamo.reset()


def test_the_script_switches_that_assumption_off():
    with torch._functorch.config.patch(backward_pass_autocast="same_as_forward"):
        recipe_scripts.load("compile")
        assert torch._functorch.config.backward_pass_autocast == "off"


def test_tf32_and_autocast_are_part_of_the_compiled_code():
    torch._dynamo.reset()
    before, counter = torch.get_float32_matmul_precision(), CompileCounter()
    call, x, counts = torch.compile(lambda x: x @ x, backend=counter), torch.randn(8, 8), []
    try:
        for switch in ("highest", "highest", "high"):
            torch.set_float32_matmul_precision(switch)
            call(x)
            counts.append(counter.frame_count)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            call(x)
    finally:
        torch.set_float32_matmul_precision(before)
        torch._dynamo.reset()
    assert [*counts, counter.frame_count] == [1, 1, 2, 3]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_training_loop_scales_float16_alone_and_starts_from_zero_gradients(script, dtype, monkeypatch):
    source = recipe_scripts.script_of("compile")
    monkeypatch.setattr(
        recipe_scripts, "script_of", lambda name: source.replace("= torch.bfloat16", f"= torch.{dtype}")
    )
    script, scalers = recipe_scripts.load("compile"), []

    class Kept(torch.amp.GradScaler):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            scalers.append(self)

    monkeypatch.setattr(torch.amp, "GradScaler", Kept)
    losses = []
    for leftover in (None, 1e3):
        torch.manual_seed(0)
        model, batch = script.Model().to(script.device), script.make_batch()
        for weight in model.parameters():
            weight.grad = None if leftover is None else torch.full_like(weight, leftover)
        losses.append(script.train(model, model, batch, steps=4))
    assert losses[0] == losses[1] < 4.16
    assert {scaler.is_enabled() for scaler in scalers} == {dtype == "float16"}


def test_the_recorded_and_published_times_are_those_of_the_page():
    text = rules.markdown(rules.read_page(PAGE))
    record = json.loads((RESULTS / "levers-32-true-small-imdb-cpu-seed0.json").read_text("utf8"))
    samples = record["samples"]
    medians = [statistics.median(samples[f"torch.compile: {way}"]) for way in ("compiled", "op by op")]
    assert f"{medians[0]:.0f} ms compiled, {medians[1]:.0f} ms eager; 28 s to compile" in text
    assert record["device"]["name"] == "Intel Xeon"
    llama = (PAGE.parents[1] / "practice" / "llama.ipynb").read_text("utf8")
    for rate in ("104.9", "25.5"):
        assert rate in text
        assert rate in llama


@pytest.mark.gpu
def test_a_gpu_gives_eagers_bits_back_to_within_the_last_ones(script):
    torch.manual_seed(0)
    model, batch = script.Model().to(script.device), script.make_batch()
    emulate = {"emulate_precision_casts": True}
    ways = {"eager": model, "compiled": torch.compile(model), "kept": torch.compile(model, options=emulate)}
    found = dict(script.compare(model, ways, batch))
    assert found["compiled"][0] < 1.1 * found["eager"][0]
    assert found["kept"][0] == pytest.approx(found["eager"][0], rel=0.05)


def test_token_ids_stay_whole_numbers_in_the_float64_reference(script):
    model = nn.Sequential(nn.Embedding(16, 4), nn.Flatten(), nn.Linear(8, 4)).double()
    ids = torch.randint(16, (3, 2), generator=torch.Generator().manual_seed(0))
    out, _ = script.forward(model, (ids, torch.tensor([0, 1, 2])), torch.float64)
    assert out.dtype == torch.float64


def test_dropout_is_off_in_the_comparison(script, monkeypatch):
    seen = []
    monkeypatch.setattr(script, "compare", lambda model, ways, batch: seen.append(model.training) or [])
    monkeypatch.setattr(script, "train", lambda *arguments: 0.0)
    with pytest.raises(KeyError):  # nothing was found
        script.main()
    assert seen == [False]


def test_the_comparison_holds_the_bytes_of_the_page():
    script = recipe_scripts.load("compile")
    model, (x, y) = script.Model().to(script.device).eval(), script.make_batch()
    parameters = sum(weight.numel() for weight in model.parameters())
    with LiveBytes(model.parameters()) as live:  # three calls, as in `main`; two samples, so activations hardly count
        list(script.compare(model, {name: model for name in ("eager", "one way", "another")}, (x[:2], y[:2])))
    page = rules.markdown(rules.read_page(recipe_scripts.COOKBOOK / "compile.ipynb"))
    assert f"| {live.peak / parameters:.0f} bytes per parameter at its peak" in page
