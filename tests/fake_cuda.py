"""A CUDA GPU that is not there: tensors without data, and a stub of torch.cuda that records what is asked of it.

    with card() as calls:
        x = torch.randn(4, 4, device="cuda")  # has a shape, a dtype and a device, and no numbers
    calls  # ["synchronize", "Event.record", ...]

Numbers, times and kernels it cannot show. It shows which branch runs, that every operation has its tensors on one
device and in dtypes that fit, that nothing asks for a number where a GPU would have to wait, and how many bytes are
alive.
"""

import contextlib
import ctypes
import types
import warnings
from importlib import import_module
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils.cost.live_bytes import LiveBytes
from utils.emulation import scaled_matmul

# What transformers loads of itself later than at its import would see stubs in the place of torch's classes.
import_module("transformers.models.llama.modeling_llama")
import_module("transformers.models.distilbert.modeling_distilbert")
NAME, CAPABILITY, MEMORY = "NVIDIA made up H100", (9, 0), 80_000_000_000
WITHOUT_KERNEL = ("BlockWise1x32",)  # on Hopper
CUDA = torch.device("cuda:0")  # with its number: asked for the current one, the guard of the CPU names its own


class Mode(FakeTensorMode):
    """Tensors without data; where a program asks for a number, it gets 1. Copies belong to the same mode."""

    def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            return {torch.bool: True}.get(args[0].dtype, 1.0 if args[0].is_floating_point() else 1)
        return super().__torch_dispatch__(func, kinds, args, kwargs)

    def __deepcopy__(self, memo):
        return self


@contextlib.contextmanager
def guarded():
    """Let torch built without CUDA switch to the device "cuda", which does nothing, as its CUDA build does by itself.

    Slices, copies and in-place operations ask for that, with data or without.
    """
    if torch.cuda._is_compiled():
        torch._C._ensureCUDADeviceGuardSet()
        yield
        return
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    guards = (ctypes.c_void_p * 2).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")  # by DeviceType
    before, guards[1] = guards[1], guards[0]
    try:
        yield
    finally:
        guards[1] = before


class Event:
    """An event that lies: every block takes a millisecond."""

    def __init__(self, calls, enable_timing=False):
        assert enable_timing, "an event without timing has no elapsed_time"
        self.calls, self.stream = calls, None

    def record(self, stream=None):
        self.calls.append("Event.record")
        self.stream = stream

    def elapsed_time(self, end):
        assert self.stream == end.stream
        return 1.0


class Stream:
    def __init__(self, calls, name):
        self.calls, self.name = calls, name

    def wait_stream(self, other):
        self.calls.append(f"{self.name} waits for {other.name}")


class Graph:
    def __init__(self, calls):
        self.calls = calls

    def replay(self):
        self.calls.append("replay")


class Waits(TorchDispatchMode):
    """Refuse what a GPU cannot do while a graph is captured: hand over a number, or copy between devices."""

    WAITING = ("_local_scalar_dense", "item", "nonzero", "is_nonzero", "equal", "masked_select")

    def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        masks = [x for x in tree_leaves(args[1:2]) if isinstance(x, torch.Tensor) and x.dtype == torch.bool]
        counts = name in self.WAITING or (name == "index" and masks)
        assert not counts, f"{func} waits for the GPU inside a graph"
        devices = {x.device.type for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor) and x.dim()}
        out = func(*args, **(kwargs or {}))
        devices |= {x.device.type for x in tree_leaves(out) if isinstance(x, torch.Tensor) and x.dim()}
        assert len(devices) < 2, f"{func} copies between {devices} inside a graph"
        return out


def stub(calls):
    """Return by dotted name below torch what stands there on the made-up card."""
    streams, current = {}, [Stream(calls, "main")]

    @contextlib.contextmanager
    def stream(name):
        current.append(name)
        yield
        current.pop()

    @contextlib.contextmanager
    def graph(recorded):
        calls.append("capture begins")
        with Waits():
            capturing.append(True)
            yield
            capturing.pop()
        calls.append("capture ends")

    capturing = []

    def side():
        streams[len(streams)] = Stream(calls, f"side {len(streams)}")
        return streams[len(streams) - 1]

    def note(name, value=None):
        return lambda *args, **kwargs: (calls.append(name), value)[1]

    about = types.SimpleNamespace(
        name=NAME, major=CAPABILITY[0], minor=CAPABILITY[1], total_memory=MEMORY, multi_processor_count=132, uuid="0"
    )
    return {
        "cuda.Event": lambda **how: Event(calls, **how),
        "cuda.Stream": side,
        "cuda.CUDAGraph": lambda: Graph(calls),
        "cuda.graph": graph,
        "cuda.stream": stream,
        "cuda.device": lambda device: contextlib.nullcontext(),
        "cuda.current_stream": lambda device=None: current[-1],
        "cuda.is_current_stream_capturing": lambda: bool(capturing),
        "cuda.synchronize": note("synchronize"),
        "cuda.empty_cache": note("empty_cache"),
        "cuda.reset_peak_memory_stats": note("reset_peak"),
        "cuda.max_memory_allocated": note("peak", 2**30),
        "cuda.max_memory_reserved": note("peak", 2**30),
        "cuda.mem_get_info": note("mem_get_info", (MEMORY, MEMORY)),
        "cuda.get_rng_state": note("get_rng_state", torch.zeros(16, dtype=torch.uint8)),
        "cuda.set_rng_state": note("set_rng_state"),
        "cuda.get_device_capability": lambda device=None: CAPABILITY,
        "cuda.get_device_name": lambda device=None: NAME,
        "cuda.get_device_properties": lambda device=None: about,
        "cuda.device_count": lambda: 1,
        "cuda.is_bf16_supported": lambda including_emulation=True: True,
        "cuda.current_device": lambda: 0,
        "Generator": lambda device="cpu": torch._C.Generator("cpu"),
    }


def try_kernel(device, left, right):
    """Say what Hopper says to a trial of `scaled_matmul`."""
    return "no such kernel" if {left, right} & set(WITHOUT_KERNEL) else ""


@contextlib.contextmanager
def card(monkeypatch):
    """Stand a GPU of compute capability 9.0 with 80 GB there; yield the list of what is asked of it.

    torch.cuda.is_available() stays False: true would make torch look for a driver.
    """
    calls = []
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in stub(calls).items():
            owner, _, last = f"torch.{name}".rpartition(".")
            patch.setattr(torch if owner == "torch" else torch.cuda, last, value)
        patch.setattr(scaled_matmul, "_try_once", try_kernel)
        patch.setattr(torch, "autocast", Autocast)
        patch.setattr(torch.nn.Module, "_apply", make_apply())
        with guarded(), Mode():
            yield calls


def make_apply():
    """Return what stands for nn.Module._apply: torch's own cannot exchange parameters without data."""
    done = {}  # by the identity of a parameter, which is kept: what became of it, once for all modules that share it

    def apply(module, function, recurse=True):
        for child in module.children():
            child._apply(function)
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            moved = function(parameter.detach())
            if (moved.dtype, moved.device) != (parameter.dtype, parameter.device):
                kept = (parameter, torch.nn.Parameter(moved, requires_grad=parameter.requires_grad))
                module._parameters[name] = done.setdefault(id(parameter), kept)[1]
        for name, buffer in module._buffers.items():
            module._buffers[name] = buffer if buffer is None else function(buffer)
        return module

    return apply


class Autocast(torch.amp.autocast_mode.autocast):
    """Autocast for "cuda" where torch sees no GPU: it would stay off, with a warning."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        super().__init__(device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
        self._enabled = enabled
        if device_type == "cuda":
            self.fast_dtype = dtype or torch.get_autocast_dtype("cuda")


def peak_of(run, *before):
    """Return the most bytes alive at once while `run()` computes, with those of the tensors `before`."""
    with LiveBytes(before) as live:
        run()
    return live.peak
