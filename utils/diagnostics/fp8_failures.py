"""How a first try with FP8 tensors fails, and the way that works: each line is run, and what torch says is kept.

    for attempt in attempts(device):
        print(attempt.code, attempt.outcome, attempt.on_cuda)
    refusal(x, w.t().contiguous(), "9.0")  # what torch says on an H100

What fails depends on version and device, so nothing is assumed here. A CPU takes operands that a GPU refuses. For these
`on_cuda` has what torch's check of shapes says, which `torch.compile` and the device "meta" use and which needs no GPU.
A GPU's own words are others, it refuses more than that check, and not every GPU refuses the same: see `refusal`.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from utils.emulation.scaled_matmul import MULTIPLE, scaled_matmul, transposed
from utils.emulation.scaled_tensor import quantize
from utils.exception_text import first_line
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E4M3FNUZ, FLOAT8_E5M2, FloatFormat

M, K, N = 48, 64, 32
ANY_LAYOUT = (10,)  # major compute capability of the GPUs whose FP8 units take operands in any layout: B200, B300
FIVE = {  # ways to fail
    "make random values": "torch.randn(48, 64, dtype=torch.float8_e4m3fn, device=x.device)",
    "add": "x + x",
    "multiply as usual": "x @ w.t()",
    "forget the scales": "torch._scaled_mm(x, w.t(), out_dtype=torch.float8_e4m3fn)",
    "operand 2 row-major": "torch._scaled_mm(x, w.t().contiguous(), scale_a=x_inv, scale_b=w_inv,"
    " out_dtype=torch.bfloat16)",
}
MORE = {
    "K of 60": "torch._scaled_mm(x[:, :60], w[:, :60].t(), scale_a=x_inv, scale_b=w_inv, out_dtype=torch.bfloat16)",
    "E5M2 times E5M2": "torch._scaled_mm(x.float().to(torch.float8_e5m2), w.float().to(torch.float8_e5m2).t(),"
    " scale_a=x_inv, scale_b=w_inv, out_dtype=torch.bfloat16)",
    "scale for inverse scale": "torch._scaled_mm(x, w.t(), scale_a=x_scale, scale_b=w_scale, out_dtype=torch.bfloat16)",
    "ask for a gradient": "torch._scaled_mm(x_wide.requires_grad_().to(x.dtype), w.t(), scale_a=x_inv, scale_b=w_inv,"
    " out_dtype=torch.bfloat16).sum().backward()",
}
RIGHT = {
    "torch's public function": "F.scaled_mm(x, w.t(), x_inv, F.ScalingType.TensorWise, w_inv, F.ScalingType.TensorWise,"
    " output_dtype=torch.bfloat16)",
    "the function below it": "torch._scaled_mm(x, w.t(), scale_a=x_inv, scale_b=w_inv, out_dtype=torch.bfloat16)",
    "the function of this book": "scaled_matmul(x_scaled, transposed(w_scaled), out_dtype=torch.bfloat16)",
}


@dataclass(frozen=True)
class Attempt:
    """A line of code and what came of it.

    `raised`: the name of an exception, "" where there was none, and `message` its first sentence. `dtype`: that of the
    result. `error`: the norm of what separates the result from the product in float64, as a share of that product's
    norm; None where the line gives no product. `at_end`: of a result in FP8, the share of entries at the largest value
    of the format or past it; else None. `on_cuda`: what torch's check of shapes for CUDA says to the line, without a
    GPU; "" where it says nothing, or where the device is no CPU.
    """

    name: str
    code: str
    raised: str = ""
    message: str = ""
    dtype: str = ""
    error: float | None = None
    at_end: float | None = None
    on_cuda: str = ""

    @property
    def outcome(self) -> str:
        """What happened, in a clause."""
        if self.raised:
            return f"{self.raised}: {self.message}"
        text = f"gives {self.dtype}" if self.dtype else "works"
        if self.at_end:
            return f"{text}, {100 * self.at_end:.1f} % of it at ±{torch.finfo(getattr(torch, self.dtype)).max:g} or NaN"
        if self.error is None:
            return text
        if self.error < 1:
            return f"{text}, error {100 * self.error:.1f} %"
        return f"{text}, error {self.error:.2g} times the product" if self.error >= 1 else f"{text}, with NaN"


def attempts(device: torch.device | str, lines: dict[str, str] | None = None) -> list[Attempt]:
    """Run lines of code with FP8 tensors on the device, by default all of `FIVE`, `MORE` and `RIGHT`, in order.

    The lines see x [48, 64] and w [32, 64], E4M3 codes of random numbers; `x_wide`; `x_scale`, `x_inv` and the like for
    w, float32 []; `x_scaled`, `w_scaled`, both as `Scaled`.
    """
    device = torch.device(device)
    lines = FIVE | MORE | RIGHT if lines is None else lines
    return [_attempt(name, code, device) for name, code in lines.items()]


def _attempt(name: str, code: str, device: torch.device) -> Attempt:
    names = _names(device)
    raised, message, result = _run(code, names)
    error, at_end, dtype = None, None, ""
    if isinstance(result, torch.Tensor):
        dtype = str(result.dtype).removeprefix("torch.")
        if dtype.startswith("float8"):
            inside = result.double().abs() < torch.finfo(result.dtype).max  # NaN is not
            at_end = 1 - float(inside.double().mean())
        exact = names["x_wide"].detach().double() @ names["w_wide"].double().t()
        if result.shape == exact.shape:
            error = float((result.double() - exact).norm() / exact.norm())
    on_cuda = ""
    if device.type == "cpu" and "scaled_mm" in code and not raised:
        kind, text, _ = _run(code, _names(torch.device("meta")))
        on_cuda = f"{kind}: {text}" if kind else ""
    return Attempt(name, code, raised, message, dtype, error, at_end, on_cuda)


def _names(device: torch.device) -> dict:
    """Return what the lines see. On "meta" tensors have shapes and strides, but no values."""
    generator = torch.Generator().manual_seed(0)
    wide = {"x": torch.randn(M, K, generator=generator), "w": torch.randn(N, K, generator=generator) / 8}
    names = {"torch": torch, "F": F, "scaled_matmul": scaled_matmul, "transposed": transposed}
    for name, values in wide.items():
        scaled = quantize(values if device.type == "meta" else values.to(device), FLOAT8_E4M3FN, "tensor")
        parts = {
            "": scaled.codes(),
            "_wide": values,
            "_scale": scaled.scale.view(()),
            "_inv": scaled.inv_scale.view(()),
        }
        names |= {name + part: tensor.to(device) for part, tensor in parts.items()}
        names[f"{name}_scaled"] = scaled
    return names


def _run(code: str, names: dict) -> tuple[str, str, object]:
    """Return the name of the exception, its first sentence, and the result of an expression."""
    try:
        return "", "", eval(code, names)  # so that the line that is shown is the line that is run
    except Exception as error:  # whatever this version raises is the answer
        sentence = first_line(error).split(". ")[0]
        return type(error).__name__, sentence, None


def refusal(mat1: torch.Tensor, mat2: torch.Tensor, capability: str) -> str:
    """Return what `torch._scaled_mm` says on an NVIDIA GPU to two FP8 matrices with one scale each; "" if it works.

    `capability`: the GPU's compute capability, such as "9.0". The tensors may be on any device: nothing is multiplied.
    The rules, in their order, and the words are those of `aten/src/ATen/native/cuda/ScaledBlas.cpp`, with pull request
    170693 of December 2025, which took the layout rule away from all but Hopper. On cards of capability 8.9 and 12.x
    it is cuBLAS that then refuses. Read, not run: no GPU was there.
    """
    version = tuple(map(int, capability.split(".")))
    rows, k = mat1.shape
    if version < (8, 9):
        return "torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9"
    if k % MULTIPLE:
        return f"Expected trailing dimension of mat1 to be divisible by 16 but got mat1 shape: ({rows}x{k})."
    if mat2.shape[0] % MULTIPLE or mat2.shape[1] % MULTIPLE:
        return f"mat2 shape ({mat2.shape[0]}x{mat2.shape[1]}) must be divisible by 16"
    if mat1.dtype == mat2.dtype == torch.float8_e5m2:
        return "Multiplication of two Float8_e5m2 matrices is not supported"
    if version[0] in ANY_LAYOUT or (not _is_column_major(mat1) and _is_column_major(mat2)):
        return ""
    if version[0] == 9:
        return "Only multiplication of row-major and column-major matrices is supported by cuBLASLt"
    return "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasLtMatmulAlgoGetHeuristic(...)`"


def _is_column_major(matrix: torch.Tensor) -> bool:
    return matrix.stride(0) == 1 and matrix.stride(1) >= max(1, matrix.shape[0])


@dataclass(frozen=True)
class Overflow:
    """What becomes of a value past the range of a format, by who casts it: floats, NaN and infinity included."""

    dtype: str
    value: float
    torch: float
    ml_dtypes: float
    book: float  # fake_quantize and quantize of `utils.emulation.scaled_tensor`: they saturate

    @property
    def saturates(self) -> bool:
        """Whether torch's cast gives the format's largest value."""
        return self.torch == self.book


def overflows(device: torch.device | str) -> list[Overflow]:
    """Cast values past the ranges of E4M3, E5M2 and E4M3FNUZ on the device: the last that is rounded to the largest
    value, the next float32, infinity and NaN.

    The OFP8 specification leaves it open: saturate, or overflow to NaN or infinity. torch 2.11 and 2.13 differ.
    """
    formats = (FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E4M3FNUZ)
    return [_overflow(fmt, value, device) for fmt in formats for value in (*_past(fmt), torch.nan)]


def _past(fmt: FloatFormat) -> tuple[float, float, float]:
    midpoint = torch.tensor(fmt.max + 2.0 ** (fmt.emax - fmt.mantissa_bits - 1))  # to the next value, if there were one
    up, down = torch.tensor(torch.inf), torch.tensor(0.0)
    if fmt.max_code % 2:  # ties go to even, so away from an odd code
        return float(midpoint.nextafter(down)), float(midpoint), torch.inf
    return float(midpoint), float(midpoint.nextafter(up)), torch.inf


def _overflow(fmt: FloatFormat, value: float, device: torch.device | str) -> Overflow:
    import ml_dtypes
    import numpy as np

    x = torch.tensor(value, device=device)
    theirs = np.float32(value).astype(getattr(ml_dtypes, fmt.name)).astype(np.float32)
    ours = quantize(x, fmt, "none").values
    return Overflow(fmt.name, value, float(x.to(fmt.torch_dtype).float()), float(theirs), float(ours))
