"""Write tests/block_cases.json: blocks that torchao quantized, for the tests of `utils.scaling`.

torchao is no requirement of the book. In an environment of its own that also sees the book's packages:

    pip install --no-deps torchao
    python tests/block_cases.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

FILE = Path(__file__).with_suffix(".json")
FORMATS = ("float8_e4m3fn", "float8_e5m2", "float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn")
SIGNIFICANDS = (1, 1 + 2**-23, 1.25, 1.5, 1.75, 1.875, 1.9375 - 2**-23, 1.9375, 2 - 2**-23)


def random_rows(size: int) -> list[np.ndarray]:
    """Return blocks of N(0, 1), and of magnitudes from 2**-30 to 2**30."""
    rng = np.random.default_rng(seed=7)
    usual, wide = rng.standard_normal((2, 6, size))
    return [*usual, *(wide * np.exp2(rng.uniform(-30, 30, (6, 1))))]


def crafted_rows(size: int) -> list[np.ndarray]:
    """Return blocks whose largest value has each significand near which a rule decides; zeros, and tiny values."""
    inside = np.linspace(-1, 1, size)
    inside[0] = -1
    tops = [significand * 2.0**exponent for exponent in (-70, 0, 9) for significand in SIGNIFICANDS]
    return [*(top * inside for top in tops), 0.0 * inside, 2.0**-100 * inside, 2.0**-145 * inside]


def odd_rows(size: int) -> dict[str, np.ndarray]:
    """Return blocks for which the book has other answers, by the reason."""
    inside = np.linspace(-1, 1, size)
    inside[0] = -1
    infinite, nan = inside.copy(), inside.copy()
    infinite[3], nan[3] = np.inf, np.nan
    return {
        "1.75 * 2**-3 and an ulp": (1.75 + 2**-23) * 2.0**-3 * inside,
        "2**-112": 2.0**-112 * inside,
        "infinity": infinite,
        "nan": nan,
    }


def mx(rows: np.ndarray, name: str, mode) -> dict[str, str]:
    """Return the codes of the scales and of the values, as torchao's MXTensor has them."""
    from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
    from torchao.prototype.mx_formats.kernels import unpack_uint4
    from torchao.prototype.mx_formats.mx_tensor import to_mx

    own_names = {"float6_e3m2fn": DTYPE_FP6_E3M2, "float6_e2m3fn": DTYPE_FP6_E2M3}
    four_bits = name == "float4_e2m1fn"
    dtype = torch.float4_e2m1fn_x2 if four_bits else own_names.get(name) or getattr(torch, name)
    scales, values = to_mx(torch.from_numpy(rows), dtype, rows.shape[1], mode)
    codes = unpack_uint4(values.view(torch.uint8)) if four_bits else values.view(torch.uint8)
    return {"scales": text(scales.view(torch.uint8)), "codes": text(codes)}


def nvfp4(rows: np.ndarray) -> dict[str, str]:
    """Return the codes of NVFP4's scales and values, with the tensor scale that puts the largest block scale at 448."""
    from torchao.prototype.mx_formats.kernels import unpack_uint4
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize

    tensor_scale = torch.tensor(np.abs(rows).max() / np.float32(448 * 6))
    scales, values = nvfp4_quantize(torch.from_numpy(rows), 16, tensor_scale)
    return {"scales": text(scales.view(torch.uint8)), "codes": text(unpack_uint4(values))}


def text(codes: torch.Tensor) -> str:
    """Return bytes in hexadecimal."""
    return codes.reshape(-1).contiguous().numpy().tobytes().hex()


def hexadecimal(rows: np.ndarray) -> list[str]:
    """Return the bytes of each row, little-endian."""
    return [row.tobytes().hex() for row in rows]


def main() -> None:
    """Write the file."""
    from torchao.prototype.mx_formats.mx_tensor import ScaleCalculationMode

    rows = np.array([*random_rows(32), *crafted_rows(32)], np.float32)
    odd = {reason: np.array([row], np.float32) for reason, row in odd_rows(32).items()}
    small = np.array([*random_rows(16)[:6], *crafted_rows(16)[9:18]], np.float32)
    cases = [
        {
            "fmt": name,
            "mode": mode.name,
            **mx(rows, name, mode),
            "odd": {reason: mx(row, name, mode) for reason, row in odd.items()},
        }
        for name in FORMATS
        for mode in ScaleCalculationMode
    ]
    record = {
        "made_with": f"tests/block_cases.py, torchao {version('torchao')}, torch {torch.__version__}",
        "rows": hexadecimal(rows),
        "odd_rows": {reason: hexadecimal(row)[0] for reason, row in odd.items()},
        "mx": cases,
        "nvfp4_rows": hexadecimal(small),
        "nvfp4": nvfp4(small),
    }
    FILE.write_text(json.dumps(record, indent=1) + "\n", "utf8")


if __name__ == "__main__":
    main()
