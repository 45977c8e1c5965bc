"""The compiled path: the same bits, one kernel for many formats, and what happens without a compiler."""

import os
import subprocess
import sys
import textwrap
import warnings

import pytest
import torch

from oracles import same_bits
from test_fake_quantize import all_regions_of_float32
from utils import fake_quantize as module
from utils.fake_quantize import fake_quantize, fake_quantize_stochastic
from utils.formats import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E5M2FNUZ,
    FLOAT8_E8M0FNU,
    FLOAT16,
    FLOAT32,
    FORMATS,
    TF32,
)

COMPILED = [BFLOAT16, TF32, FLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1FN, FLOAT8_E5M2FNUZ, FLOAT8_E8M0FNU]
IN_A_MODEL = [TF32, FLOAT16, FLOAT8_E5M2FNUZ, FLOAT8_E8M0FNU, FLOAT32]


class InductorFailure(RuntimeError):
    """Looks like an error of the compiler's own modules."""

    __module__ = "torch._inductor.exc"


@pytest.fixture
def no_failures(monkeypatch):
    monkeypatch.setattr(module, "_failures", {})


@pytest.fixture
def strict(no_failures, compiler):
    """A fallback would make these tests pass without testing anything."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="compiled=True had no effect")
        yield


def same(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    return bool(same_bits(ours.detach().double(), theirs.detach().double()).all())


@pytest.mark.slow
@pytest.mark.usefixtures("strict")
def test_compiled_kernels_give_the_bits_of_the_eager_path():
    x, frames = all_regions_of_float32(), torch._dynamo.utils.counters["frames"]
    before = frames["ok"]  # of what other tests have compiled
    for fmt in COMPILED:
        for saturate in (True, False):
            ours = fake_quantize(x, fmt, saturate=saturate, compiled=True)
            assert same(ours, fake_quantize(x, fmt, saturate=saturate)), (fmt, saturate)
    assert frames["ok"] - before < len(COMPILED)  # one kernel serves many formats
    for x in (torch.randn(3, 5), torch.tensor(1.3), torch.ones(1), torch.empty(0, 2), torch.randn(6, 4).t()):
        assert same(fake_quantize(x, FLOAT8_E4M3FN, compiled=True), fake_quantize(x, FLOAT8_E4M3FN))
        out = torch.empty_like(x)
        assert fake_quantize(x, FLOAT8_E4M3FN, compiled=True, out=out) is out
        assert same(out, fake_quantize(x, FLOAT8_E4M3FN))


@pytest.mark.slow
@pytest.mark.usefixtures("strict")
def test_compiled_draws_are_the_eager_draws():
    x = all_regions_of_float32()[:-5]  # not a multiple of a vector's length
    for fmt in (BFLOAT16, FLOAT8_E4M3FN, FLOAT4_E2M1FN):
        for seed in (3, 2**64 - 1):
            ours = fake_quantize_stochastic(x, fmt, seed=seed, compiled=True)
            assert same(ours, fake_quantize_stochastic(x, fmt, seed=seed)), (fmt, seed)


@pytest.mark.slow
@pytest.mark.usefixtures("strict")
def test_narrow_tensors_and_gradients_compile_too():
    x = torch.randn(1000, generator=torch.Generator().manual_seed(1)).bfloat16().requires_grad_()
    y = fake_quantize(x, FLOAT8_E4M3FN, compiled=True)
    assert same(y, fake_quantize(x, FLOAT8_E4M3FN))
    y.sum().backward()
    assert (x.grad == 1).all()


@pytest.mark.usefixtures("compiler")
@pytest.mark.slow
def test_torch_compile_drops_a_cast_there_and_back_but_not_fake_quantize():
    x = torch.tensor([1.0 + 2.0**-9, 3.14159, -(2.0**-130)], requires_grad=True)  # no values of bfloat16

    @torch.compile(fullgraph=True)
    def cast(x):
        return x.to(torch.bfloat16).to(torch.float32)

    @torch.compile(fullgraph=True)
    def rounded(x):
        return fake_quantize(x * 1.0, BFLOAT16)

    assert torch.equal(cast(x), x)  # the reason for `without_cast`
    y = rounded(x)
    assert torch.equal(y, x.detach().bfloat16().float())
    y.sum().backward()
    assert (x.grad == 1).all()


@pytest.mark.usefixtures("compiler")
@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [None, True])
def test_a_model_that_is_compiled_may_call_both_functions(dynamic):
    torch._dynamo.reset()
    x = all_regions_of_float32()

    @torch.compile(fullgraph=True, dynamic=dynamic)
    def model(x):
        nearest = [fake_quantize(x * 1.0, fmt, saturate=False) for fmt in IN_A_MODEL]
        return nearest, fake_quantize_stochastic(x * 1.0, FLOAT8_E4M3FN, seed=5)

    nearest, drawn = model(x)
    for fmt, y in zip(IN_A_MODEL, nearest, strict=True):
        assert same(y, fake_quantize(x, fmt, saturate=False)), fmt
    assert same(drawn, fake_quantize_stochastic(x, FLOAT8_E4M3FN, seed=5))


@pytest.mark.usefixtures("compiler")
def test_the_format_may_be_an_argument_of_what_is_compiled():
    torch._dynamo.reset()
    x = torch.randn(100, generator=torch.Generator().manual_seed(1))
    # The numbers of a second format become symbols, which math.ldexp does not take: the graph breaks, and it works.
    compiled = torch.compile(lambda x, fmt: fake_quantize(x, fmt), backend="eager")
    for fmt in COMPILED:
        assert same(compiled(x, fmt), fake_quantize(x, fmt)), fmt


@pytest.mark.usefixtures("no_failures")
def test_where_compilation_fails_a_warning_says_so_and_the_values_are_the_same(monkeypatch):
    calls = []

    def failing(*arguments):
        calls.append(arguments)
        raise InductorFailure("InvalidCxxCompiler: No working C++ compiler found\nmany more lines")

    monkeypatch.setattr(module, "_compile_kernel", lambda *arguments: failing)
    x = torch.randn(100, generator=torch.Generator().manual_seed(1))
    message = r"no effect on cpu: torch.compile failed \(InductorFailure: InvalidCxxCompiler: No working C\+\+ compiler"
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=message) as caught:
            y = fake_quantize(x, FLOAT8_E4M3FN, compiled=True)
        assert same(y, fake_quantize(x, FLOAT8_E4M3FN))
        assert caught[0].filename == __file__  # the warning points to the caller
    with pytest.warns(RuntimeWarning, match=message):
        drawn = fake_quantize_stochastic(x, FLOAT8_E4M3FN, seed=1, compiled=True)
    assert same(drawn, fake_quantize_stochastic(x, FLOAT8_E4M3FN, seed=1))
    assert len(calls) == 1  # it is tried once, not at each call


@pytest.mark.usefixtures("no_failures")
def test_an_error_that_is_not_the_compilers_is_not_swallowed(monkeypatch):
    def failing(*arguments):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(module, "_compile_kernel", lambda *arguments: failing)
    with pytest.raises(torch.OutOfMemoryError):
        fake_quantize(torch.ones(3), FLOAT8_E4M3FN, compiled=True)
    assert module._failures == {}


@pytest.mark.usefixtures("no_failures")
def test_nothing_is_compiled_unless_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(module, "_compile_kernel", lambda *arguments: pytest.fail("this call compiles"))
    x = torch.randn(2**18 + 1, generator=torch.Generator().manual_seed(1))  # past the short way for a small tensor
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fake_quantize(x, FLOAT8_E4M3FN)
        fake_quantize_stochastic(x, FLOAT8_E4M3FN, seed=1)


@pytest.mark.parametrize("shape", [(), (4, 25)], ids=str)
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_what_a_graph_is_made_of_gives_the_eager_bits(fmt, shape, monkeypatch):
    """The branch that torch.compile traces, run as it stands: no compiler is needed."""
    x = 4 * torch.randn(shape, generator=torch.Generator().manual_seed(1))
    for saturate in (True, False):
        nearest = fake_quantize(x, fmt, saturate=saturate)
        drawn = fake_quantize_stochastic(x, fmt, seed=7, saturate=saturate)
        with monkeypatch.context() as patch:
            patch.setattr(torch.compiler, "is_compiling", lambda: True)
            traced = fake_quantize(x, fmt, saturate=saturate)
            out = torch.empty_like(x)
            assert fake_quantize_stochastic(x, fmt, seed=7, saturate=saturate, out=out) is out
        assert traced.shape == x.shape
        assert same(traced, nearest)
        assert same(out, drawn)


def test_formats_that_need_no_loop_are_not_compiled(monkeypatch):
    monkeypatch.setattr(module, "_compile_kernel", None)
    x = torch.tensor([1.1, -0.0])
    assert torch.equal(fake_quantize(x, FORMATS["float32"], compiled=True), x)


@pytest.mark.slow
def test_without_a_cpp_compiler_the_fallback_works(tmp_path):
    program = """
        import warnings
        import torch
        from utils.fake_quantize import fake_quantize
        from utils.formats import FLOAT8_E4M3FN

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = fake_quantize(torch.tensor([1.1]), FLOAT8_E4M3FN, compiled=True)
        print([str(warning.message) for warning in caught if "no effect" in str(warning.message)], y.item())
    """
    environment = os.environ | {"CXX": str(tmp_path / "none"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=environment, capture_output=True, text=True, check=True
    )
    assert "compiled=True had no effect on cpu: torch.compile failed (" in done.stdout
    assert "needs a C++ compiler" in done.stdout
    assert done.stdout.rstrip().endswith(" 1.125")
