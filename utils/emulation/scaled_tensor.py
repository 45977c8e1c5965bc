"""Scaling and rounding of torch tensors: the fast twin of `utils.scaling`, bit for bit, on any device.

    q = quantize(x, FLOAT8_E4M3FN, "1x128")  # q.values * q.inv_scale, tile by tile, is nearly x
    q.codes(), q.inv_scale  # what a scaled product takes

What `scale` means, and what becomes of zeros, infinities and NaN, is stated in `utils.scaling`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from utils.fake_quantize import fake_quantize, fake_quantize_stochastic
from utils.formats import FLOAT32, FloatFormat, encode
from utils.scaling import MAX_SCALE, MIN_SCALE, SCALINGS, Scaling, as_rows
from utils.shared_exponent import E8M0_LIMIT, EXPONENT_RULES

_MAX, _MIN = float(MAX_SCALE), float(MIN_SCALE)


@dataclass
class Scaled:
    """A tensor in a narrow format and its scales.

    `values`: shape and device of the tensor, values of `fmt`, scaled; in the tensor's dtype as `quantize` gives them,
    or in `fmt.torch_dtype` once they were replaced by `codes()`.
    `scale`, `inv_scale`, `stored`: float32, one for each tile, [tiles along the rows, tiles along the columns].
    `stored` is what the format keeps of a tile (a value of `scaling.scale_format`), `tensor_inv_scale`, float32 [],
    what it keeps of the tensor: inv_scale = stored * tensor_inv_scale.
    """

    values: torch.Tensor
    scale: torch.Tensor
    inv_scale: torch.Tensor
    stored: torch.Tensor
    tensor_inv_scale: torch.Tensor
    fmt: FloatFormat
    scaling: Scaling

    @property
    def shape(self) -> torch.Size:
        """The shape of the tensor."""
        return self.values.shape

    def dequantize(self, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Return values * inv_scale, multiplied in float32; in the dtype of `values` or the one that is asked for."""
        return _times(self.values, self.inv_scale, self.scaling).to(dtype or self.values.dtype)

    def codes(self) -> torch.Tensor:
        """Return the values in the torch dtype of the format; where it has none, their codes as uint8, one a value.

        Raises: ValueError for a NaN in a format that has none.
        """
        dtype = self.fmt.torch_dtype
        if dtype is not None:
            return self.values.to(dtype)  # exact: the values are the format's
        codes = torch.as_tensor(encode(self.values.double().cpu().numpy(), self.fmt))
        return codes.to(self.values.device)


@torch.no_grad()
def quantize(
    x: torch.Tensor,
    fmt: FloatFormat,
    scaling: str | Scaling = "tensor",
    *,
    scale: torch.Tensor | float | None = None,
    seed: int | None = None,
) -> Scaled:
    """Scale a tensor tile by tile and round it to the format; what is past `fmt.max` saturates.

    `x`: a floating dtype, any shape and device; the arithmetic is float32, leading axes are rows. `scaling`: a
    `Scaling` or its name in `SCALINGS`. `scale`: take this one instead of the current one (delayed scaling): a number,
    or float32 that fits [tiles along the rows, tiles along the columns]. `seed`: round stochastically, as
    `fake_quantize_stochastic` does. No gradient is recorded.
    Raises: TypeError for an x that is not of a floating dtype, ValueError for an unknown name, or a `scale` where the
    scales are stored in a narrow format.
    """
    scaling = _by_name(scaling)
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        raise TypeError(f"x is a tensor of a floating dtype, not {getattr(x, 'dtype', type(x).__name__)}")
    if scaling.rule == "one" and scale is None:
        scale = 1.0
    wide = x.float()
    if scale is None:
        scales = _scales(_tile_amax(wide, scaling), fmt, scaling)
    else:
        scales = _given(scale, wide, scaling)
    scaled = _times(wide, scales[0], scaling)
    if seed is None:
        values = fake_quantize(scaled, fmt, out=scaled)
    else:
        values = fake_quantize_stochastic(scaled, fmt, seed=seed, out=scaled)
    return Scaled(values.to(x.dtype), *scales, fmt, scaling)


@torch.no_grad()
def amax(x: torch.Tensor) -> torch.Tensor:
    """Return the largest finite magnitude of a tensor, float32 []; 0 where there is none."""
    return _tile_amax(x.float(), SCALINGS["tensor"]).view(())


@torch.no_grad()
def scale_from_amax(
    amax: torch.Tensor, fmt: FloatFormat, *, margin: float = 0, power_of_two: bool = False
) -> torch.Tensor:
    """Return the scale that carries `amax` to `fmt.max / 2**margin`; float32 of the shape and device of `amax`.

    As `utils.scaling.scale_from_amax`, without its check for negative ones, for which a device would have to wait.
    """
    return _scale_to(min(fmt.max * 2.0**-margin, _MAX), amax.float(), power_of_two)


@torch.no_grad()
def update_delayed_(
    history: torch.Tensor,
    scale: torch.Tensor,
    amax: torch.Tensor,
    fmt: FloatFormat,
    *,
    margin: float = 0,
    choose: str = "max",
) -> torch.Tensor:
    """Take a step of `utils.scaling.DelayedScaling` on a module's buffers, in place, and return the new scale.

    `history`: float32 [steps], oldest first, zeros at the beginning. `scale`: float32 [], 1 at the beginning. `amax`:
    that of the step that was computed. No device is waited for.
    Raises: ValueError for an unknown `choose`.
    """
    if choose not in ("max", "most_recent"):
        raise ValueError(f"choose {choose!r} is not one of max, most_recent")
    latest = amax.detach().to(history).view(())
    rolled = torch.cat([history[1:], latest[None]])
    peak = rolled.nan_to_num(nan=0.0, posinf=torch.inf).amax() if choose == "max" else latest
    usable = peak.isfinite() & (peak > 0) & (latest != 0)
    scale.copy_(torch.where(usable, scale_from_amax(peak, fmt, margin=margin).view(scale.shape), scale))
    history.copy_(torch.where(latest != 0, rolled, history))
    return scale


def _by_name(scaling: str | Scaling) -> Scaling:
    if isinstance(scaling, Scaling):
        return scaling
    if scaling not in SCALINGS:
        raise ValueError(f"scaling {scaling!r} is not one of {', '.join(SCALINGS)}")
    return SCALINGS[scaling]


def _scale_to(top: float, amax: torch.Tensor, power_of_two: bool = False) -> torch.Tensor:
    usable = amax.isfinite() & (amax > 0)
    # A tensor on the left: a Python number would be divided in another precision on some devices.
    scale = (torch.full_like(amax, top) / amax.where(usable, 1.0)).clamp_(_MIN, _MAX)
    if power_of_two:
        scale = (scale.view(torch.int32) & 0x7F800000).view(torch.float32)  # without the fraction
    return scale.where(usable, 1.0)


def _given(scale: torch.Tensor | float, x: torch.Tensor, scaling: Scaling) -> tuple[torch.Tensor, ...]:
    if scaling.scale_format is not FLOAT32:
        raise ValueError(
            f"{scaling.name} stores its scales in {scaling.scale_format}; a scale can be given for float32"
        )
    scale = torch.as_tensor(scale, dtype=torch.float32, device=x.device).expand(scaling.tiles(tuple(x.shape)))
    return scale, 1.0 / scale, 1.0 / scale, torch.ones((), device=x.device)


def _scales(amax: torch.Tensor, fmt: FloatFormat, scaling: Scaling) -> tuple[torch.Tensor, ...]:
    """Return scale, inv_scale, stored and tensor_inv_scale, by the steps of `utils.scaling`."""
    unit = torch.ones((), device=amax.device)
    if scaling.rule in EXPONENT_RULES:
        exponent = _shared_exponent(amax, fmt, scaling.rule)
        return _power_of_two(-exponent), _power_of_two(exponent), _power_of_two(exponent), unit
    if scaling.scale_format is FLOAT32:
        scale = scale_from_amax(amax, fmt)
        return scale, 1.0 / scale, 1.0 / scale, unit
    narrow = scaling.scale_format
    tensor_scale = unit
    if scaling.tensor_scale and amax.numel():
        tensor_scale = _scale_to(fmt.max * narrow.max, amax.amax())
    wanted = amax / torch.full_like(amax, fmt.max) * tensor_scale
    stored = fake_quantize(wanted, narrow).clamp_(min=narrow.smallest_subnormal)
    inv_scale = stored * (1.0 / tensor_scale)
    return (1.0 / inv_scale).clamp_(max=_MAX), inv_scale, stored, 1.0 / tensor_scale


def _floor(amax: torch.Tensor, fmt: FloatFormat) -> torch.Tensor:
    return _floor_log2(amax) - fmt.emax


def _rceil(amax: torch.Tensor, fmt: FloatFormat) -> torch.Tensor:
    # The quotient may fall below float32; as its smallest value it still has an exponent.
    return _ceil_log2((amax / torch.full_like(amax, fmt.max)).clamp(min=FLOAT32.smallest_subnormal))


def _ceil_log2_of_amax(amax: torch.Tensor, fmt: FloatFormat) -> torch.Tensor:
    return _ceil_log2(amax) - fmt.emax


def _round(amax: torch.Tensor, fmt: FloatFormat) -> torch.Tensor:
    fraction, exponent = amax.frexp()
    carries = 2 * fraction >= 2 - 2.0 ** -(fmt.mantissa_bits + 1)  # the significand rounds up to 2
    return exponent - 1 + carries.int() - fmt.emax


# The twins of `utils.shared_exponent.EXPONENT_RULES`, under the same names.
TENSOR_EXPONENT_RULES: dict[str, Callable[[torch.Tensor, FloatFormat], torch.Tensor]] = {
    "floor": _floor,
    "rceil": _rceil,
    "ceil-log2": _ceil_log2_of_amax,
    "round": _round,
}


def _shared_exponent(amax: torch.Tensor, fmt: FloatFormat, rule: str) -> torch.Tensor:
    """Return the exponents of the powers of two that tiles store, by one of the rules; raise ValueError for another."""
    if rule not in TENSOR_EXPONENT_RULES:
        raise ValueError(f"rule {rule!r} is not one of {', '.join(TENSOR_EXPONENT_RULES)}")
    usable = amax > 0
    exponent = TENSOR_EXPONENT_RULES[rule](amax.where(usable, 1.0), fmt)
    return exponent.clamp(-E8M0_LIMIT, E8M0_LIMIT).where(usable, -E8M0_LIMIT)


def _floor_log2(x: torch.Tensor) -> torch.Tensor:
    return x.frexp().exponent - 1  # x = fraction * 2**exponent with 1/2 <= fraction < 1


def _ceil_log2(x: torch.Tensor) -> torch.Tensor:
    fraction, exponent = x.frexp()
    return exponent - (fraction == 0.5).int()


def _power_of_two(exponent: torch.Tensor) -> torch.Tensor:
    """Return 2**exponent, -127 ... 127, made of its bits: exact on every device, 2**-127 too, which is subnormal."""
    bits = ((exponent + 127) << 23).where(exponent > -127, 1 << 22)
    return bits.to(torch.int32).view(torch.float32)


def _tile_amax(x: torch.Tensor, scaling: Scaling) -> torch.Tensor:
    """Return the largest finite magnitude of each tile."""
    size = x.abs()
    if not size.numel():
        return x.new_zeros(scaling.tiles(tuple(x.shape)))
    if x.device.type != "cpu" or not size.amax().isfinite():  # a device would have to be waited for
        size = size.where(size.isfinite(), 0.0)
    return _tiles(size, scaling).amax((1, 3))


def _tiles(x: torch.Tensor, scaling: Scaling) -> torch.Tensor:
    """Return x as [tiles, rows of a tile, tiles, columns of a tile], filled up with zeros."""
    rows, columns = as_rows(tuple(x.shape))
    across, along = scaling.tiles(tuple(x.shape))
    height, width = (size if step is None else step for step, size in zip(scaling.tile, (rows, columns), strict=True))
    x = x.reshape(rows, columns)
    if (rows, columns) != (across * height, along * width):
        x = torch.nn.functional.pad(x, (0, along * width - columns, 0, across * height - rows))
    return x.view(across, height, along, width)


def _times(x: torch.Tensor, per_tile: torch.Tensor, scaling: Scaling) -> torch.Tensor:
    """Return x times the number of its tile, a new float32 tensor of the shape of x."""
    rows, columns = as_rows(tuple(x.shape))
    if per_tile.numel() == 1:
        return x.float() * per_tile.reshape(())
    product = _tiles(x.float(), scaling) * per_tile[:, None, :, None]
    across, height, along, width = product.shape
    return product.view(across * height, along * width)[:rows, :columns].reshape(x.shape)
