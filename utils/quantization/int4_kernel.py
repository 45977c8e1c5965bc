"""Products with 4-bit weights in torch's own kernel, which reads the packed weights and widens them in registers.

The kernel is that of `torch.ops.aten._weight_int4pack_mm` (on a CPU: `_weight_int4pack_mm_for_cpu`), which gpt-fast
and torchao call too. Its layout and limits stand in `aten/src/ATen/native/cuda/int4mm.cu`: bfloat16, groups of 32, 64,
128 or 256, N a multiple of 8 and K one of 16 * the inner tiles. It takes codes 0 ... 15 and computes
(code - 8) * inv_scale + zero, so that a zero point becomes a number: zero = (8 - zero_point) * inv_scale.
"""

from functools import cache

import torch

from utils.exception_text import in_a_line
from utils.quantization.integers import Quantized, quantize
from utils.quantization.weight_only import StoredLinear, WeightOnlyLinear

GROUPS = (32, 64, 128, 256)
MIDDLE = 8  # the code that the kernel takes for 0
ROWS = 8  # N is a multiple of it
INNER_TILES = (8, 4, 2)  # tiles of 16 along K that lie together: the most that divide K


def why_not(stored, device: torch.device | str, dtype: torch.dtype) -> str:
    """Return why the kernel cannot multiply these weights by inputs of `dtype`, in a clause; empty where it can.

    On a GPU a small product is tried, once.
    """
    device = torch.device(device)
    if not isinstance(stored, Quantized) or stored.format.bits != 4:
        return "the kernel takes weights of 4 bits"
    if stored.group not in GROUPS:
        return f"the kernel takes groups of {', '.join(map(str, GROUPS))}, not {stored.group}"
    rows, columns = stored.shape
    if rows % ROWS or columns % stored.group or not _inner_tiles(columns):
        return f"a matrix of {rows}×{columns} does not fill the tiles of the kernel"
    if device.type == "cuda" and dtype is not torch.bfloat16:
        return f"the kernel takes bfloat16, not {str(dtype).removeprefix('torch.')}"
    if device.type not in ("cuda", "cpu"):
        return f"{device.type} is not tried"
    return _tried(str(device)) if device.type == "cuda" else ""


def _inner_tiles(columns: int) -> int:
    return next((tiles for tiles in INNER_TILES if columns % (16 * tiles) == 0), 0)


@cache
def _tried(device: str) -> str:
    """Return what torch says to a small product, empty if it computes what widening does."""
    weight = torch.linspace(-1, 1, 64 * 128, device=device).view(64, 128)
    x = torch.linspace(-1, 1, 128, device=device, dtype=torch.bfloat16)[None]
    stored = quantize(weight, 4, 32, symmetric=False)
    try:
        ours, theirs = WeightOnlyLinear(stored)(x).float(), Int4PackLinear(stored)(x).float()
    except (RuntimeError, NotImplementedError, AttributeError) as error:
        return in_a_line(error)
    near = bool(((ours - theirs).abs() <= 0.02 * ours.abs().amax()).all())
    return "" if near else "its product of small matrices is another one"


def packed(stored: Quantized) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weights as the kernel of their device wants them, and scales and zeros, bfloat16 [groups, N, 2].

    The zeros are rounded to bfloat16 once more than the reference's.
    """
    codes = stored.codes ^ 0x88 if stored.format.symmetric else stored.codes  # two's complement to 0 ... 15, 8 for 0
    tiles = _inner_tiles(stored.shape[1])
    if codes.device.type == "cpu":
        wide = torch.stack([codes >> 4, codes & 0xF], -1).flatten(-2).int()
        layout = torch.ops.aten._convert_weight_to_int4pack_for_cpu(wide, tiles)
    else:
        layout = torch.ops.aten._convert_weight_to_int4pack(codes.contiguous(), tiles)
    inv_scale = stored.inv_scale.float()
    zero_point = MIDDLE if stored.zero_point is None else stored.zero_point.float()
    both = torch.stack([inv_scale, (MIDDLE - zero_point) * inv_scale], -1)  # [N, groups, 2]
    return layout, both.transpose(0, 1).contiguous().to(torch.bfloat16)


class Int4PackLinear(StoredLinear):
    """A linear layer whose 4-bit weights are read by torch's kernel; they are held in its layout alone.

    Raises: ValueError for weights that the kernel does not take.
    """

    multiplied = "torch's int4 kernel, _weight_int4pack_mm"

    def __init__(self, stored: Quantized, bias: torch.Tensor | None = None):
        if stored.format.bits != 4 or stored.group not in GROUPS or not _inner_tiles(stored.shape[1]):
            raise ValueError(f"{why_not(stored, 'cpu', torch.bfloat16)}: use WeightOnlyLinear")
        super().__init__(stored, bias)
        self.codes, self.inv_scale = packed(stored)
        self.zero_point = None
        self.group = stored.group

    @property
    def stored(self):
        """The layout of the kernel is not taken apart again."""
        raise NotImplementedError("these weights lie in the kernel's layout: multiply by the identity to see them")

    def widened(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return the weights [out_features, in_features], as the kernel sees them, rounded to bfloat16."""
        identity = torch.eye(self.in_features, dtype=torch.bfloat16, device=self.codes.device)
        return self._product(identity).t().to(dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x @ weight.t() + bias for bfloat16 x [..., in_features] (on a CPU: of float32 and float16 too)."""
        y = self._product(x.reshape(-1, self.in_features)).view(*x.shape[:-1], self.out_features)
        return y if self.bias is None else y + self.bias.to(y.dtype)

    def _product(self, rows: torch.Tensor) -> torch.Tensor:
        scales = self.inv_scale
        if rows.device.type == "cpu":
            return torch.ops.aten._weight_int4pack_mm_for_cpu(rows, self.codes, self.group, scales.to(rows.dtype))
        return torch.ops.aten._weight_int4pack_mm(rows.contiguous(), self.codes, self.group, scales)
