"""AdamW for weights of 16 bits, and four ways to keep a new weight.

An update smaller than half the gap between two neighbouring values of the weight's dtype is rounded away, every step
again. So the update is computed in float32 here, whatever the dtypes, and a *store* says how its result is kept:
`Nearest`, `Master`, `Stochastic` or `Kahan`. For weights of float32 or float64 all four give what torch's AdamW gives.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain

import torch

from utils.fake_quantize import fake_quantize_stochastic
from utils.formats import BFLOAT16, FLOAT16
from utils.training.eight_bit_moments import Blockwise

FORMAT = {torch.bfloat16: BFLOAT16, torch.float16: FLOAT16}
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SIGNED = {"exp_avg": True, "exp_avg_sq": False}  # the moments m and v by their names in a state
State = dict[str, torch.Tensor]


def wide(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype that the update of a weight is computed in: float32, float64 for a float64 weight."""
    return torch.promote_types(dtype, torch.float32)


@dataclass(frozen=True)
class Nearest:
    """Keep the weight alone: the new one is rounded to its dtype, to nearest and ties to even.

    The other stores have the same methods. `number` differs for each step and tensor.
    """

    def begin(self, weight: torch.Tensor) -> State:
        """Return what the optimizer's state holds for this store before the first step."""
        return {}

    def value(self, weight: torch.Tensor, state: State) -> torch.Tensor:
        """Return the weight as it is known, in `wide`; the optimizer changes this tensor in place."""
        return weight.to(wide(weight.dtype))

    def keep(self, new: torch.Tensor, weight: torch.Tensor, state: State, *, number: int) -> None:
        """Store what `value` has become."""
        weight.copy_(new)

    def kept(self, weight: torch.Tensor, state: State) -> tuple[torch.Tensor, ...]:
        """Return the tensors that hold the weight from one step to the next."""
        return (weight,)


@dataclass(frozen=True)
class Master(Nearest):
    """Keep a float32 copy in the optimizer's state; the model's weight is the copy, rounded to nearest.

    The copy begins as the weight. From the first step on it alone counts: writing to the weight has no effect.
    Source: Micikevicius et al. 2018, arXiv 1710.03740, section 3.1.
    """

    def begin(self, weight: torch.Tensor) -> State:
        return {"master": weight.detach().to(wide(weight.dtype), copy=True)}

    def value(self, weight: torch.Tensor, state: State) -> torch.Tensor:
        return state["master"]

    def kept(self, weight: torch.Tensor, state: State) -> tuple[torch.Tensor, ...]:
        return (state["master"],)


@dataclass(frozen=True)
class Stochastic(Nearest):
    """Keep the weight alone: the new one is rounded down or up, so that the expected weight is the exact one.

    The draws are a hash of `seed` (0 to 65535), the number of the tensor, the step, and the place in the tensor: a
    repeated run draws the same, on any number of threads. A weight beyond the format's range becomes infinite.
    Source: Zamirai et al. 2020, arXiv 2010.06192.
    """

    seed: int = 0

    def __post_init__(self):
        if not 0 <= self.seed < 2**16:
            raise ValueError(
                f"seed {self.seed} is not in 0 ... 65535, so two tensors could draw the same; take another"
            )

    def keep(self, new: torch.Tensor, weight: torch.Tensor, state: State, *, number: int) -> None:
        if fmt := FORMAT.get(weight.dtype):
            # a seed for each (seed, tensor, step): 16 + 16 + 32 bits
            fake_quantize_stochastic(new, fmt, seed=self.seed * 2**48 + number, saturate=False, out=new)
        weight.copy_(new)


@dataclass(frozen=True)
class Kahan(Nearest):
    """Keep beside the weight, in its dtype, what rounding has added to it: the weight is known as w - c.

    Kahan's summation is y = u - c, s = w + y, c = (s - w) - y for an update u. Here float32 adds, so two roundings
    remain: s to the weight's dtype, and the new c. Two bfloat16 numbers know a weight to about 16 significant bits:
    an update below about 2**-17 of it can still be lost.
    Source: Zamirai et al. 2020, arXiv 2010.06192, where each of the steps is rounded to bfloat16.
    """

    def begin(self, weight: torch.Tensor) -> State:
        return {"compensation": torch.zeros_like(weight)}  # c, in the dtype of the weight

    def value(self, weight: torch.Tensor, state: State) -> torch.Tensor:
        return weight.to(wide(weight.dtype)) - state["compensation"]  # w - c

    def keep(self, new: torch.Tensor, weight: torch.Tensor, state: State, *, number: int) -> None:
        weight.copy_(new)
        state["compensation"].copy_(weight - new)  # exact in float32, then rounded

    def kept(self, weight: torch.Tensor, state: State) -> tuple[torch.Tensor, ...]:
        return (weight, state["compensation"])


NEAREST = Nearest()


class AdamW(torch.optim.Optimizer):
    """AdamW whose arithmetic is float32 (float64 for float64 weights), and whose weights are kept by a `store`.

    `state_dtype`: the dtype of the moments m and v between two steps; None is that of the weight, and with `Master`
    float32. In 16 bits they are rounded to nearest whatever the store: in bfloat16 a v can grow but, with beta2 0.999,
    never shrink, and in float16 a v below 2**-25, of gradients below about 5.5e-3, is forgotten after its step.
    `Blockwise()` keeps them in 8 bits, each block with a scale of its own.

    torch's loop (foreach or not; the fused one computes in float32 too) rounds every line to the dtype of the weight.
    In float16 its eps of 1e-8 is 0, and where v is 0 too, the weight becomes m/0 = infinite, or 0/0 = NaN; here the
    division sees a float32 eps, and v before it is rounded. And it rounds the weight after the decay, which loses the
    decay, and again after the step; here their sum is rounded, once.

    Raises: ValueError for a parameter, a gradient or a number that it cannot work with.
    Source: Loshchilov and Hutter 2019, arXiv 1711.05101, algorithm 2; the operations are those of torch.optim.AdamW
    with foreach=False, in that order, so that float32 weights come out equal to the last bit.
    """

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        store: Nearest = NEAREST,
        state_dtype: torch.dtype | Blockwise | None = None,
    ):
        if not (state_dtype is None or state_dtype in FLOATS or isinstance(state_dtype, Blockwise)):
            raise ValueError(f"state_dtype {state_dtype} holds no moments; take torch.bfloat16 or torch.float32")
        if not isinstance(store, Nearest):
            raise TypeError(f"store {store!r} keeps no weights; take Nearest(), Master(), Stochastic(seed) or Kahan()")
        self.store, self.state_dtype = store, state_dtype
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def __getstate__(self) -> dict:
        return super().__getstate__() | {"store": self.store, "state_dtype": self.state_dtype}  # for copy.deepcopy

    def add_param_group(self, param_group: dict) -> None:
        """Add weights with numbers of their own, as any torch optimizer; raises ValueError as the class does."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for name in ("lr", "eps", "weight_decay"):
            if not group[name] >= 0:
                raise ValueError(f"{name} {group[name]} is negative or NaN; take 0 or more")
        if not all(0 <= beta < 1 for beta in group["betas"]):
            raise ValueError(f"betas {group['betas']} are not both in [0, 1); the usual ones are (0.9, 0.999)")
        for weight in group["params"]:
            if weight.dtype not in FLOATS:
                raise ValueError(f"a parameter is {weight.dtype}; convert it to a float, or leave it out")

    @torch.no_grad()
    def step(self, closure: Callable[[], torch.Tensor] | None = None) -> torch.Tensor | None:
        """Update every weight that has a gradient; return the closure's loss, if there is a closure."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        weights = ((weight, group) for group in self.param_groups for weight in group["params"])
        for index, (weight, group) in enumerate(weights):
            if weight.grad is not None:
                self._update(weight, group, index=index)
        return loss

    def _update(self, weight: torch.Tensor, group: dict, *, index: int) -> None:
        if weight.grad.is_sparse or weight.grad.dtype not in FLOATS:
            kind = "sparse" if weight.grad.is_sparse else weight.grad.dtype
            raise ValueError(f"a gradient is {kind}; AdamW needs dense floats: set sparse=False, or convert it")
        lr, (beta1, beta2), dtype = group["lr"], group["betas"], wide(weight.dtype)
        state = self.state[weight] = self.state.get(weight) or self._begin(weight)
        state["step"] += 1
        t, g = state["step"], weight.grad.to(dtype)
        m, v = (self._moment(state, name).to(dtype) for name in SIGNED)
        m.lerp_(g, 1 - beta1)  # m = beta1 m + (1 - beta1) g
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)  # v = beta2 v + (1 - beta2) g²
        denominator = (v.sqrt() / (1 - beta2**t) ** 0.5).add_(group["eps"])  # sqrt(v_hat) + eps
        w = self.store.value(weight, state)
        # w = (1 - lr decay) w - lr m_hat / (sqrt(v_hat) + eps), with m_hat = m / (1 - beta1**t)
        w.mul_(1 - lr * group["weight_decay"]).addcdiv_(m, denominator, value=-(lr / (1 - beta1**t)))
        self.store.keep(w, weight, state, number=index * 2**32 + t)
        for (name, signed), moment in zip(SIGNED.items(), (m, v), strict=True):
            if isinstance(self.state_dtype, Blockwise):
                self.state_dtype.write(state, name, moment, signed=signed)
            else:
                state[name].copy_(moment)

    def _moment(self, state: State, name: str) -> torch.Tensor:
        if isinstance(self.state_dtype, Blockwise):
            return self.state_dtype.read(state, name, signed=SIGNED[name])
        return state[name]

    def _begin(self, weight: torch.Tensor) -> dict:
        kept = self.state_dtype or (wide(weight.dtype) if isinstance(self.store, Master) else weight.dtype)
        state = {"step": 0}
        for name, signed in SIGNED.items():
            if isinstance(kept, Blockwise):
                state |= kept.begin(weight, name, signed=signed)
            else:
                state[name] = torch.zeros_like(weight, dtype=kept)
        return state | self.store.begin(weight)

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over what `state_dict` gave, every tensor in the dtype that it has there.

        torch would cast each of them to the dtype of its weight: a master copy would lose 16 of its bits.
        Raises: ValueError when another kind of store wrote it, or it does not fit.
        """
        super().load_state_dict(state_dict)
        numbers = chain.from_iterable(group["params"] for group in state_dict["param_groups"])
        weights = chain.from_iterable(group["params"] for group in self.param_groups)
        for number, weight in zip(numbers, weights, strict=True):
            saved = state_dict["state"].get(number, {})
            if saved and saved.keys() != self._begin(weight).keys():
                raise ValueError(f"the state was saved by another store than {self.store}: it has {', '.join(saved)}")
            for name, value in saved.items():
                if isinstance(value, torch.Tensor):
                    self.state[weight][name] = value.detach().to(weight.device, copy=True)
