"""Linear layers whose three matrix products are in FP8, by a recipe of `utils.training.float8_recipes`.

    converted = convert(model, "fp8-current")  # in place: the parameters stay the same float32 objects
    print(converted, converted.recipe.remark(device))

A linear layer multiplies three times, and each tensor enters two products, summed over another axis each time:

    forward  y  [M, N] = x  [M, K] @ w [N, K].t()     summed over K
    dgrad    dx [M, K] = dy [M, N] @ w [N, K]         summed over N
    wgrad    dw [N, K] = dy [M, N].t() @ x [M, K]     summed over M, the tokens

Scales run along the axis that is summed over. A scale for the whole tensor, or for a square tile, serves both products
of a tensor, and only a transposed copy of its codes is needed. Scales of rows and of 1 x n blocks serve one of them:
for the other the tensor is quantised a second time, from its wide values, along its other axis.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.function import once_differentiable

from utils.emulation.accumulators import Accumulator
from utils.emulation.scaled_matmul import MULTIPLE, scaled_matmul, transposed
from utils.emulation.scaled_tensor import Scaled, amax, quantize, update_delayed_
from utils.formats import FloatFormat
from utils.scaling import SCALINGS
from utils.training.float8_recipes import Float8Recipe, find_float8_recipe

TENSORS = ("x", "w", "dy")  # activations, weights, gradients of the outputs
HEADS = ("lm_head", "pre_classifier", "classifier")


class Float8Linear(nn.Linear):
    """A linear layer whose products take FP8 operands; weight, bias and their gradients are those of `nn.Linear`.

    The result has autocast's dtype where that is on, else that of x. What the backward pass needs of x and w is kept in
    FP8. Any number of rows: zeros are added up to a multiple of 16, since wgrad sums over them.

    Finite values past a format's range saturate. What is not finite in x, w or dy becomes NaN in FP8, and so does every
    result that it enters: a broken run shows.

    With delayed scaling the state is in buffers, `amax_history_<tensor>` and `scale_<tensor>` for x, w and dy, float32
    whatever dtype the model is cast to. It moves in training mode with gradients on, once a forward and once a backward
    pass; under activation checkpointing a step counts twice.
    `accumulator`: what adds the products in the place of float32, emulated on every device; None for the usual.
    """

    def __init__(self, in_features, out_features, bias=True, *, recipe: str | Float8Recipe, device=None, dtype=None):
        for name, size in (("in_features", in_features), ("out_features", out_features)):
            if size % MULTIPLE:
                raise ValueError(f"{name} is {size}, no multiple of {MULTIPLE}: keep this layer an nn.Linear")
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self._start(recipe)

    @classmethod
    def of(cls, linear: nn.Linear, recipe: str | Float8Recipe) -> "Float8Linear":
        """Return the layer with the parameters of `linear`: the same objects, so that an optimizer goes on with them.

        Hooks stay behind. Raises: ValueError for sizes that are no multiples of 16.
        """
        bias = linear.bias is not None
        layer = cls(linear.in_features, linear.out_features, bias, recipe=recipe, device="meta")
        layer.weight, layer.bias = linear.weight, linear.bias
        layer._start(recipe)
        return layer.train(linear.training)

    def _start(self, recipe: str | Float8Recipe) -> None:
        self.recipe = find_float8_recipe(recipe) if isinstance(recipe, str) else recipe
        self.accumulator: Accumulator | None = None
        if self.recipe.history:
            for tensor in TENSORS:
                on = self.weight.device
                self.register_buffer(f"amax_history_{tensor}", torch.zeros(self.recipe.history, device=on))
                self.register_buffer(f"scale_{tensor}", torch.ones((), device=on))

    def _apply(self, function, *arguments):
        state = {name: buffer for name, buffer in self.named_buffers(recurse=False)}
        super()._apply(function, *arguments)
        for name, before in state.items():  # moved as the model is, but not cast
            setattr(self, name, before.to(getattr(self, name).device) if not before.is_meta else getattr(self, name))
        return self

    def extra_repr(self) -> str:
        """Return what `print(model)` shows of the layer."""
        return f"{super().extra_repr()}, recipe={self.recipe.name}"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x @ weight.t() + bias for x [..., in_features]."""
        if not x.numel():
            return F.linear(x, self.weight, self.bias)
        on = x.device.type
        out_dtype = torch.get_autocast_dtype(on) if torch.is_autocast_enabled(on) else x.dtype
        rows = x.reshape(-1, self.in_features)  # [M, K]
        filled = F.pad(rows, (0, 0, 0, -rows.shape[0] % MULTIPLE))  # zero rows: the kernel wants multiples of 16
        y = _Products.apply(filled, self.weight, self, out_dtype, torch.is_grad_enabled())[: rows.shape[0]]
        y = y.view(*x.shape[:-1], self.out_features)
        return y if self.bias is None else y + self.bias.to(y.dtype)

    def _quantized(self, tensor: str, values: torch.Tensor, *, moving: bool) -> "_Twice":
        """Quantise x, w or dy for the product in which it is not transposed; `moving`: remember its amax."""
        recipe = self.recipe
        fmt = recipe.backward if tensor == "dy" else recipe.forward
        scaling = {"x": recipe.activations, "w": recipe.weights, "dy": recipe.gradients}[tensor]
        if not recipe.history:
            return _Twice(values, fmt, scaling)
        history, scale = getattr(self, f"amax_history_{tensor}"), getattr(self, f"scale_{tensor}")
        twice = _Twice(values, fmt, scaling, scale.clone())  # this step's: the buffer moves on
        if moving:
            update_delayed_(history, scale, amax(values), fmt, margin=recipe.margin, choose=recipe.choose)
        return twice

    def _multiply(self, name: str, left: Scaled, right: Scaled, out_dtype: torch.dtype) -> torch.Tensor:
        """Return left [rows, sum] @ right [columns, sum].t()."""
        fast = name in self.recipe.fast
        how = {"out_dtype": out_dtype, "fast_accumulation": fast, "accumulator": self.accumulator}
        return scaled_matmul(left, transposed(right), **how)


class _Twice:
    """A tensor quantised for its two products: as it is, and transposed, along its other axis."""

    def __init__(self, wide: torch.Tensor, fmt: FloatFormat, scaling: str, scale: torch.Tensor | None = None):
        self.wide, self.scale = wide.detach(), scale
        self.plain = self._quantize(self.wide.contiguous(), fmt, scaling)

    def _quantize(self, wide: torch.Tensor, fmt: FloatFormat, scaling: str) -> Scaled:
        result = quantize(wide, fmt, scaling, scale=self.scale)
        on_cpu = wide.device.type == "cpu"
        if not (on_cpu and wide.sum().isfinite()):  # a GPU would have to wait for the answer
            result.values.masked_fill_(wide.isinf(), torch.nan)  # quantize() saturates infinities, and hides them so
        return result if on_cpu else _in_codes(result)  # an emulated product would have to widen them again

    def turned(self) -> Scaled:
        """Return it transposed, row-major: the same codes where the scales serve both axes, else quantised anew."""
        plain = self.plain
        if plain.scaling.tile[0] == plain.scaling.tile[1]:
            view = transposed(plain)
            return replace(view, values=view.values.contiguous())
        return self._quantize(self.wide.t().contiguous(), plain.fmt, SCALINGS[plain.scaling.name])


def _in_codes(operand: Scaled) -> Scaled:
    """Return the same with its values in the one-byte dtype of the format, where torch has it."""
    return replace(operand, values=operand.codes()) if operand.fmt.torch_dtype else operand


class _Products(torch.autograd.Function):
    """x @ w.t() in FP8, whose backward pass computes dgrad and wgrad in FP8."""

    @staticmethod
    def forward(ctx, x, weight, layer: Float8Linear, out_dtype: torch.dtype, recording: bool):
        moving = recording and layer.training
        activations = layer._quantized("x", x, moving=moving)
        weights = layer._quantized("w", weight, moving=moving)
        if recording:  # inside forward() torch no longer tells, and needs_input_grad is true under no_grad() too
            ctx.layer, ctx.moving, ctx.dtypes = layer, moving, (x.dtype, weight.dtype)
            needed = zip(ctx.needs_input_grad, (weights, activations), strict=False)
            _keep(ctx, [_in_codes(operand.turned()) if needs else None for needs, operand in needed])
        return layer._multiply("forward", activations.plain, weights.plain, out_dtype)  # y = x w.t(), [M, N]

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        layer, (weights, activations) = ctx.layer, _kept(ctx)
        gradients = layer._quantized("dy", dy, moving=ctx.moving)
        dx = dw = None
        if weights is not None:
            # dx = dy w: [M, N] @ [N, K]
            dx = layer._multiply("dgrad", gradients.plain, weights, dy.dtype).to(ctx.dtypes[0])
        if activations is not None:
            # dw = dy.t() x: [N, M] @ [M, K]
            dw = layer._multiply("wgrad", gradients.turned(), activations, dy.dtype).to(ctx.dtypes[1])
        return dx, dw, None, None, None


_SAVED = ("values", "scale", "inv_scale", "stored", "tensor_inv_scale")


def _keep(ctx, operands: Iterable[Scaled | None]) -> None:
    """Save operands for the backward pass as torch wants tensors saved, so that hooks on what is saved see them."""
    ctx.operands = tuple(None if operand is None else (operand.fmt, operand.scaling) for operand in operands)
    ctx.save_for_backward(*(getattr(operand, name) for operand in operands if operand is not None for name in _SAVED))


def _kept(ctx) -> list[Scaled | None]:
    tensors = iter(ctx.saved_tensors)
    return [
        None if kind is None else Scaled(*(next(tensors) for _ in _SAVED), fmt=kind[0], scaling=kind[1])
        for kind in ctx.operands
    ]


@dataclass(frozen=True)
class Conversion:
    """What `convert` did: the names of the layers in FP8, and for the linear layers that were left, why.

    `share`: of the weights of all linear layers, those that are multiplied in FP8 now.
    """

    recipe: Float8Recipe
    converted: tuple[str, ...]
    left: dict[str, str] = field(default_factory=dict)
    share: float = 0.0

    def __str__(self) -> str:
        total = len(self.converted) + len(self.left)
        left = "; left: " + ", ".join(f"{name} ({why})" for name, why in self.left.items()) if self.left else ""
        text = f"{len(self.converted)} of {total} linear layers in {self.recipe.name}"
        return f"{text}, {100 * self.share:.1f} % of their weights{left}"


def convert(model: nn.Module, recipe: str | Float8Recipe, exclude: Iterable[str] = HEADS) -> Conversion:
    """Replace the linear layers of a model by `Float8Linear`, in place, and say which.

    The parameters stay the same objects, in the model's dtype, so an optimizer made before goes on with them; hooks on
    a replaced layer do not. `exclude`: names, or parts of dotted names, of layers that stay as they are: a head, whose
    logits want more precision. Layers with a size that is no multiple of 16, and subclasses of `nn.Linear`, whose
    owners may use their weights by another way, are left too.

    Raises: ValueError for an unknown recipe, for a model that is a linear layer itself, where no layer is replaced.
    """
    recipe = find_float8_recipe(recipe) if isinstance(recipe, str) else recipe
    exclude = (exclude,) if isinstance(exclude, str) else tuple(exclude)
    linears = [(name, module) for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if any(module is model for _, module in linears):
        raise ValueError("this model is one linear layer: Float8Linear.of(layer, recipe) converts it")
    left = {name: why for name, linear in linears if (why := _why_left(name, linear, exclude))}
    new = {id(linear): Float8Linear.of(linear, recipe) for name, linear in linears if name not in left}
    if not new:
        raise ValueError(f"no linear layer to convert: {', '.join(f'{n} ({w})' for n, w in left.items()) or 'none'}")
    for owner in list(model.modules()):
        for name, child in list(owner._modules.items()):  # named_children() passes over the second name of a layer
            if id(child) in new:
                setattr(owner, name, new[id(child)])
    size = {name: linear.weight.numel() for name, linear in linears}
    share = sum(size[name] for name in size if name not in left) / sum(size.values())
    return Conversion(recipe, tuple(name for name in size if name not in left), left, share)


def _why_left(name: str, linear: nn.Linear, exclude: tuple[str, ...]) -> str:
    if any(excluded == name or name.startswith(f"{excluded}.") or excluded in name.split(".") for excluded in exclude):
        return "excluded"
    if type(linear) is not nn.Linear:
        return f"a {type(linear).__name__}"
    sizes = (linear.out_features, linear.in_features)
    return f"{sizes[0]}×{sizes[1]}, no multiples of {MULTIPLE}" if any(size % MULTIPLE for size in sizes) else ""
