"""Checks of `training/master_weights`."""

from collections.abc import Callable

import torch
from torch import nn

from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    Unreadable,
    choice_table,
    correct,
    exercise,
    not_yet,
    paper,
    paper_table,
)
from utils.checks.training.master_weights_questions import (
    MASTER_ADAMW,
    MASTER_SGD,
    PREDICT_THE_SHARE,
    SEVEN_BILLION,
    STOCHASTIC_ADD,
    WHICH_ARE_LOST,
)

HALF = torch.bfloat16

check_predict_the_share = paper(PREDICT_THE_SHARE)
check_seven_billion = paper_table(
    SEVEN_BILLION,
    says="All but the first fit on a card of 80 GB, before any activations. Training fewer parameters saves most.",
)


# --- Which are lost ---------------------------------------------------------------------------------------------------


def _fate(returned) -> str:
    if isinstance(returned, torch.Tensor) and returned.numel() == 1:
        returned = returned.item()
    return {"true": "lost", "1": "lost", "false": "stored", "0": "stored"}.get(
        str(returned).strip().lower(), str(returned)
    )


check_which_are_lost = choice_table(
    WHICH_ARE_LOST,
    says="Half the gap at the weight decides: not the size of the update, and not the range of the format.",
    read=_fate,
)


# --- AdamW with a master ----------------------------------------------------------------------------------------------

WEIGHTS, STEPS = 400, 25
ADAMW_RUNS = (  # settings, size of the gradients, and what to think of where a weight is wrong
    ({}, 0.01, "Compare with the formulas, line by line."),
    ({}, 1e-6, "The gradients are tiny here: look at eps, and at what is rounded."),
    ({"lr": 0.01, "decay": 5.0}, 0.01, "The decay is large here: w times 1 - lr · decay, before the step."),
    ({"lr": 0.02, "betas": (0.5, 0.9), "eps": 1e-4, "decay": 0.0}, 1e-3, "Use the arguments lr, betas, eps and decay."),
)
NARROW_MEAN = (
    "Widen the gradient first, g = weight.grad.float(): (1 - beta1) · weight.grad is rounded to bfloat16 before it is "
    "added to m. The same holds for v."
)
NARROW_SQUARES = (
    "Widen the gradient for v too, g = weight.grad.float(): (1 - beta2) · weight.grad² is rounded to bfloat16 before "
    "it is added to v."
)
ADAMW_HABITS = {  # a line of `_adamw` that goes wrong, and what is said
    "no master": "The weights move as if the master were read back from the rounded weight. Create it once, as "
    "weight.float(), keep it in `state`, and never read the weight again.",
    "no correction": "In the first steps m and v are too small, because they began at 0: divide m by 1 - beta1**t and "
    "v by 1 - beta2**t.",
    "t stays": "The bias correction is always that of the first step. Count the steps in `state`.",
    "decay last": "The decay comes after the step. It belongs before it: w = w · (1 - lr · decay), then the step.",
    "coupled": "The decay has gone into the gradient, and so into m and v. That is Adam with L2; AdamW shrinks the "
    "weight itself.",
    "no decay": "The decay is missing: w = w · (1 - lr · decay), before the step.",
    "decay without lr": "The decay of a step is lr · decay, not decay alone.",
    "eps inside": "eps is inside the root. With small gradients that matters: use √v + eps, not √(v + eps).",
    "eps early": "eps is added before v is corrected. Correct v first, take the root, then add eps.",
    "uphill": "The weights move uphill: subtract the step.",
    "narrow mean": NARROW_MEAN,
    "narrow squares": NARROW_SQUARES,
    "narrow squares in turn": NARROW_SQUARES,
    "narrow mean, narrow squares": NARROW_MEAN,
    "narrow mean, narrow squares in turn": NARROW_MEAN,
    "narrow square": "g² is computed in bfloat16. Widen the gradient first: g = weight.grad.float().",
    "defaults": "The function does not use all of its arguments: lr, betas, eps and decay are not always the defaults.",
}


@exercise(asks=MASTER_ADAMW, takes="master_adamw")
def check_master_adamw(answer) -> Outcome:
    """A function (weight, state, lr, betas, eps, decay) that makes a step of AdamW on a bfloat16 weight in place.

    The weight is to be that of torch.optim.AdamW in float32, rounded, over many steps.
    """
    weight, state = _weight(torch.tensor([1.0, -0.5])), {}
    weight.grad = torch.tensor([0.5, 0.25], dtype=HALF)
    returned = answer(weight, state)
    if (returned is None or returned is ...) and not state and weight.tolist() == [1.0, -0.5]:
        return Outcome(NOT_ATTEMPTED, "The function does nothing yet; it should change the weight.")
    wanted = [_torch_adamw(size, settings) for settings, size, _ in ADAMW_RUNS]  # torch loads much in its first step
    for (settings, size, hint), (path, slack) in zip(ADAMW_RUNS, wanted, strict=True):
        if fault := _first_fault(_take(answer, size, settings), path, slack):
            return not_yet(_adamw_hint(answer, fault, hint))
    if not _two_at_once(answer):
        return not_yet(
            "One weight alone is updated correctly. Two weights in turn, each with a state of its own, are not: "
            "keep everything in `state`, and nothing outside the function."
        )
    return correct(f"Four settings, {STEPS} steps each: the float32 weights of torch.optim.AdamW, rounded to bfloat16.")


def _weight(values: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(values.to(HALF, copy=True))


def _start(size: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights [N] from 2^-9 to 4, and gradients [STEPS, N], large at first, a few always 0; bfloat16."""
    draw = torch.Generator().manual_seed(0)
    weights = torch.randn(WEIGHTS, generator=draw) * torch.exp2(torch.randint(-9, 2, (WEIGHTS,), generator=draw))
    gradients = size * (0.5 + torch.randn(STEPS, WEIGHTS, generator=draw))
    gradients[0] *= 20
    gradients[:, ::50] = 0
    return weights.to(HALF), gradients.to(HALF)


def _take(answer: Callable, size: float, settings: dict) -> torch.Tensor:
    """The weights [STEPS, N] after each of the learner's steps; raises Unreadable where something else has changed."""
    start, gradients = _start(size)
    weight, state, path = _weight(start), {}, []
    alias = weight.detach()
    for gradient in gradients:
        weight.grad = gradient.clone()
        answer(weight, state, **settings)
        if weight.grad is None:
            raise Unreadable("The function sets weight.grad to None. Leave it as it is: the caller clears it.")
        if not torch.equal(weight.grad, gradient):
            raise Unreadable("The function changes weight.grad. Make a new tensor: `g = weight.grad.float()`.")
        if fault := _dtype_fault(weight):
            raise Unreadable(fault)
        if _has_moved(weight, alias):
            raise Unreadable(f"`weight.data = ...` gives {NEW_MEMORY}")
        path.append(alias.clone())
    if torch.equal(path[-1], start):
        raise Unreadable(
            "The weight has not moved. Write into it: `weight.copy_(...)`; rebinding the name does nothing."
        )
    return torch.stack(path)


NEW_MEMORY = (
    "the weight new memory. The network reads it, but views, flat buffers and CUDA graphs keep the old one. "
    "`weight.data.copy_(...)` writes in place."
)


def _dtype_fault(weight: torch.Tensor) -> str:
    if weight.dtype == HALF:
        return ""
    return (
        f"The weight has become {str(weight.dtype).removeprefix('torch.')}. The network must keep 16-bit weights: "
        "`weight.copy_(master)` rounds."
    )


def _has_moved(weight: torch.Tensor, alias: torch.Tensor) -> bool:
    """Whether a weight has another shape or other memory than the view of it that was taken before."""
    return weight.shape != alias.shape or weight.data_ptr() != alias.data_ptr()


def _torch_adamw(size: float, settings: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """torch's float32 weights [STEPS, N], and by how much float32 arithmetic in another order may miss them."""
    start, gradients = _start(size)
    renamed = {{"decay": "weight_decay"}.get(name, name): value for name, value in settings.items()}
    weight = nn.Parameter(start.float())
    adamw, path = torch.optim.AdamW([weight], **{"lr": 1e-3, "weight_decay": 0.01} | renamed, foreach=False), []
    for gradient in gradients:
        weight.grad = gradient.float()
        adamw.step()
        path.append(weight.detach().clone())
    path = torch.stack(path)
    # 25 steps, each with a few roundings of 2^-24 of the weight and of the step
    return path, 3e-6 * path.abs().amax(0) + 1e-4 * settings.get("lr", 1e-3)


def _first_fault(got: torch.Tensor, want: torch.Tensor, slack: torch.Tensor) -> str:
    """Say which weight is wrong first, or give ""."""
    right = (got >= (want - slack).to(HALF)) & (got <= (want + slack).to(HALF))  # False for NaN
    if right.all():
        return ""
    step, at = (~right).nonzero()[0].tolist()
    return f"After step {step + 1} a weight is {float(got[step, at]):.6g}, but should be {float(want[step, at]):.6g}."


def _adamw_hint(answer: Callable, fault: str, otherwise: str) -> str:
    """Name the habit that explains all four runs."""
    got = [_take(answer, size, settings) for settings, size, _ in ADAMW_RUNS]
    if not all(path.isfinite().all() for path in got):
        return fault + (
            " Some weights become NaN or infinite. Where all gradients were 0, m/√v is 0/0 without eps; and with t = 0 "
            "the correction 1 - beta**t is 0: count from 1."
        )
    for habit, hint in ADAMW_HABITS.items():
        paths = (_adamw(size, settings, habit) for settings, size, _ in ADAMW_RUNS)
        if all((path == mine).float().mean() > 0.99 for path, mine in zip(paths, got, strict=True)):
            return f"{fault} {hint}"
    weight, state = _weight(torch.ones(3)), {}
    weight.grad = torch.ones_like(weight)
    answer(weight, state)
    narrow = [name for name, kept in state.items() if isinstance(kept, torch.Tensor) and kept.dtype == HALF]
    if narrow:
        return (
            f"{fault} state[{narrow[0]!r}] is bfloat16: `zeros_like(weight)` and `clone()` copy the dtype of the "
            "weight. Master and moments should be float32."
        )
    return f"{fault} {otherwise}"


def _adamw(size: float, settings: dict, habit: str) -> torch.Tensor:
    """The bfloat16 weights [STEPS, N] of an AdamW with a habit."""
    start, gradients = _start(size)
    usual = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "decay": 0.01}
    lr, (beta1, beta2), eps, decay = (usual | ({} if habit == "defaults" else settings)).values()
    shrink = 1 - {"decay without lr": decay, "no decay": 0, "coupled": 0}.get(habit, lr * decay)
    w, m, v, path = start.float(), torch.zeros(WEIGHTS), torch.zeros(WEIGHTS), []
    for t, gradient in enumerate(gradients, 1):
        g = gradient.float() + (decay * w if habit == "coupled" else 0)
        square = (gradient * gradient).float() if habit == "narrow square" else g * g
        mean, square = (1 - beta1) * g, (1 - beta2) * square
        if "narrow mean" in habit:
            mean = ((1 - beta1) * gradient).float()
        if "narrow squares" in habit:
            in_turn = (1 - beta2) * gradient * gradient  # each product is rounded
            square = (in_turn if "in turn" in habit else (1 - beta2) * gradient**2).float()
        m, v = beta1 * m + mean, beta2 * v + square
        t = 1 if habit == "t stays" else t
        of_m, of_v = (1.0, 1.0) if habit == "no correction" else (1 - beta1**t, 1 - beta2**t)
        root = (v / of_v).sqrt() + eps
        if habit == "eps inside":
            root = (v / of_v + eps).sqrt()
        elif habit == "eps early":
            root = (v.sqrt() + eps) / of_v**0.5
        step = lr * (m / of_m) / root * (-1 if habit == "uphill" else 1)
        w = (w - step) * shrink if habit == "decay last" else w * shrink - step
        if habit == "no master":
            w = w.to(HALF).float()
        path.append(w.to(HALF))
    return torch.stack(path)


def _two_at_once(answer: Callable) -> bool:
    """Whether two weights, updated in turn, come out as each of them alone."""
    sizes = (0.01, 1e-3)
    alone = [_take(answer, size, {})[-1] for size in sizes]
    starts = [_start(size) for size in sizes]
    weights, states = [_weight(start) for start, _ in starts], ({}, {})
    for step in range(STEPS):
        for weight, state, (_, gradients) in zip(weights, states, starts, strict=True):
            weight.grad = gradients[step].clone()
            answer(weight, state)
    return all(torch.equal(weight.detach(), mine) for weight, mine in zip(weights, alone, strict=True))


# --- Stochastic addition ----------------------------------------------------------------------------------------------

DRAWS = 2**15
RARE_DRAWS = 2**21  # 32 times what shows a chance of 1 in 65,536
EXACT = (  # w, dw: their sum is a bfloat16 number
    (1.0, 0.0),
    (0.05, 0.0),
    (1.0, 2.0**-7),
    (-3.0, 2.0**-6),
    (1.0, -(2.0**-8)),
    (0.0, 0.0),
    (-1.0, 1 + 3 * 2.0**-9),  # an update that is no bfloat16 number
)
BETWEEN = (  # w, dw: where the sum lies from the neighbour nearer to 0 to the other one: 1/16 ... 15/16
    *((1.0, part * 2.0**-7) for part in (1 / 16, 1 / 4, 1 / 2, 3 / 4, 15 / 16)),
    (-1.0, -(2.0**-9)),
    (-1.5, 2.0**-9),
    (2.0**-5, 3 * 2.0**-15),
    (-0.05, 1e-4),
    (100.0, -0.2),
    (2.0, -0.003),  # the sum lies in the binade below that of the weight, where the gap is half as wide
    (255 / 128, 0.02),  # and in the one above it
    (0.0, 1e-3),
)


@exercise(asks=STOCHASTIC_ADD, takes="add")
def check_stochastic_add(answer) -> Outcome:
    """A function (w, dw, draw) to a bfloat16 neighbour of w + dw, at random, so that the mean is w + dw."""
    w, dw = torch.ones(2, 3, dtype=HALF), torch.full((2, 3), 0.001)
    got = answer(w, dw, torch.Generator().manual_seed(0))
    if got is None or got is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the new weights.")
    if not isinstance(got, torch.Tensor):
        return not_yet(f"The function returns {type(got).__name__}; it should return a tensor.")
    if got.shape != w.shape:
        return not_yet(f"For a weight of shape [2, 3] the result has shape {list(got.shape)}; it should be the same.")
    if got.dtype != HALF:
        return not_yet(f"The result is {got.dtype}; it should be torch.bfloat16.")
    for fault in (_draw_fault, _exact_fault, _neighbour_fault, _share_fault, _rare_fault):
        if message := fault(answer):
            return not_yet(message)
    return correct(
        f"{len(BETWEEN)} sums, {DRAWS:,} draws each: one of two neighbours, and the mean within five standard "
        "deviations of the exact sum."
    )


def _draw_fault(answer: Callable) -> str:
    """Say how `draw` is not what decides, or give ""."""
    w, dw = torch.ones(4096, dtype=HALF), torch.full((4096,), 3 * 2.0**-9)  # three quarters of the way
    before, outside = (w.clone(), dw.clone()), torch.random.get_rng_state()
    draw = torch.Generator().manual_seed(1)
    first, second = answer(w, dw, draw), answer(w, dw, draw)
    if not (torch.equal(w, before[0]) and torch.equal(dw, before[1])):
        return "The function changes its input. Return a new tensor."
    if not torch.equal(torch.random.get_rng_state(), outside):
        return "The random numbers do not come from `draw`: `torch.randint(..., generator=draw)`."
    if not torch.equal(first, answer(w, dw, torch.Generator().manual_seed(1))):
        return "With `draw` in the same state the result differs. All random numbers must come from `draw`."
    if first.unique().numel() > 1:
        if torch.equal(first, second):
            return "Two calls in a row round the same elements up. Let `draw` advance: set no seed inside the function."
        return ""
    if any(not torch.equal(first, answer(w, dw, draw)) for _ in range(40)):
        return "All elements are rounded the same way: draw a random number for each, in the shape of w."
    return ""  # no chance at all: the shares tell


RARE = (
    "Of the 65,536 random numbers, none may carry where the lower half is 0: `<`, not `<=`, if you compare; "
    "0 to 65,535, if you add."
)


def _exact_fault(answer: Callable) -> str:
    for w, dw in EXACT:
        got, want = _drawn(answer, w, dw), float(torch.tensor(w, dtype=HALF).float() + dw)
        if (got == want).all():
            continue
        wrong = float(got[got != want][0])
        start = f"{w:g} + {dw:g} = {want:g} is a bfloat16 number and should stay; yours gives {wrong:g}"
        if w == -1.0:
            return start + ". Add in float32: neither dw nor the sum may be rounded before the draw."
        if (got != want).all():
            return f"{start} every time. What are its two neighbours? Mind the sign of w and of dw."
        if (moved := int((got != want).sum())) * 1000 < DRAWS:
            return f"{start} in {moved} of {DRAWS:,} draws. {RARE}"
        return start + (
            f" in {moved / DRAWS:.0%} of the draws. Either the noise has more bits than are cut off, "
            "16, or the noisy sum is rounded to nearest, which rounds twice: below a power of two the gap is half as "
            "wide, and the noise reaches past its middle. Add the noise below the last bit, then cut off."
        )
    return ""


def _neighbour_fault(answer: Callable) -> str:
    for w, dw in BETWEEN:
        got, (near, far, _) = _drawn(answer, w, dw), _neighbours(w, dw)
        if not (other := (got != near) & (got != far)).any():
            continue
        return (
            f"{w:g} + {dw:g} lies between {min(near, far):.7g} and {max(near, far):.7g}, and yours gives "
            f"{float(got[other][0]):.7g}. Only these two may come out: a third value "
            "makes the random walk wider than necessary."
        )
    return ""


def _share_fault(answer: Callable) -> str:
    shares, first = {}, ""
    for w, dw in BETWEEN:
        near, far, wanted = _neighbours(w, dw)
        share = (_drawn(answer, w, dw) == far).double().mean().item()
        if w == 1.0:
            shares[wanted] = share
        if not first and abs(share - wanted) > 5 * (wanted * (1 - wanted) / DRAWS) ** 0.5:
            first = (
                f"{w:g} + {dw:g} lies {wanted:.3g} of the way from {near:.7g} to {far:.7g}, so it should get there in "
                f"{wanted:.1%} of the draws; yours does in {share:.1%}."
            )
    if not first:
        return ""
    habits = {
        "The sum is always cut off, towards 0: add the noise first.": lambda part: 0.0,
        "That is rounding to nearest, with nothing random in it.": lambda part: float(part > 0.5),
        "Both neighbours have the same chance. The nearer one should be more likely.": lambda part: 0.5,
        "The chances are swapped: the nearer neighbour should be the likelier.": lambda part: 1 - part,
        "The noise reaches only half the gap, so it rarely carries: 16 random bits are needed, not 15.": (
            lambda part: max(0.0, 2 * part - 1)
        ),
    }
    for hint, habit in habits.items():
        if all(abs(share - habit(part)) < 0.02 for part, share in shares.items()):
            return f"{first} {hint}"
    return f"{first} The chance of a neighbour is the distance to the other one, divided by the gap."


def _rare_fault(answer: Callable) -> str:
    """Say that an exact sum moves once in 65,536 draws, or give ""."""
    moved = int((_drawn(answer, 1.0, 2.0**-7, RARE_DRAWS) != 1 + 2.0**-7).sum())
    if not moved:
        return ""
    return (
        f"1 + 2^-7 is a bfloat16 number and should stay, but in {moved} of {RARE_DRAWS:,} draws yours moves on. {RARE}"
    )


def _drawn(answer: Callable, w: float, dw: float, draws: int = DRAWS) -> torch.Tensor:
    """Many results of one sum, as float64."""
    copies = torch.full((draws,), w, dtype=HALF)
    got = answer(copies, torch.full((draws,), dw), torch.Generator().manual_seed(2))
    return got.double()


def _neighbours(w: float, dw: float) -> tuple[float, float, float]:
    """The bfloat16 neighbour of w + dw nearer to 0, the other one, and which part of the way the sum lies."""
    total = (torch.tensor(w, dtype=HALF).float() + torch.tensor(dw)).reshape(1)
    bits = total.view(torch.int32) & -(2**16)
    near, far = bits.view(torch.float32).item(), (bits + 2**16).view(torch.float32).item()
    return near, far, (total.item() - near) / (far - near)


# --- Find the bug -----------------------------------------------------------------------------------------------------

SGD_STEPS, SGD_LR = 60, 0.01


@exercise(asks=MASTER_SGD, takes="MasterSGD")
def check_master_sgd(answer) -> Outcome:
    """A class (weights, lr) with a method `step` that keeps bfloat16 weights in float32 masters."""
    starts, gradients = _sgd_start()
    weights = [_weight(start) for start in starts]
    aliases = [weight.detach() for weight in weights]
    optimizer = answer((weight for weight in weights), SGD_LR)
    if not callable(getattr(optimizer, "step", None)):
        return not_yet(f"MasterSGD(weights, lr) gives {optimizer!r}, which has no method `step`.")
    path = []
    for step_gradients in gradients:
        for weight, gradient in zip(weights, step_gradients, strict=True):
            weight.grad = gradient.clone()
        optimizer.step()
        for weight, alias in zip(weights, aliases, strict=True):
            if fault := _dtype_fault(weight):
                return not_yet(fault)
            if weight.shape != alias.shape:
                return not_yet(f"A weight of shape {list(alias.shape)} has become one of {list(weight.shape)}.")
        path.append(torch.cat([weight.detach() for weight in weights]))
    outcome = _sgd_outcome(torch.stack(path))
    if outcome and any(_has_moved(weight, alias) for weight, alias in zip(weights, aliases, strict=True)):
        return correct(f"{outcome.message} But `weight.data = ...` gives {NEW_MEMORY}")
    return outcome


def _sgd_start() -> tuple[list[torch.Tensor], list[list[torch.Tensor]]]:
    """Two weights, and their gradients for each step; a quarter of the updates is large enough for bfloat16 alone."""
    draw = torch.Generator().manual_seed(0)
    starts = [torch.ones(100), torch.randn(100, generator=draw) * 0.05]
    gradients = [[torch.randn(100, generator=draw) * 0.05 - 0.05 for _ in starts] for _ in range(SGD_STEPS)]
    return [start.to(HALF) for start in starts], [[g.to(HALF) for g in pair] for pair in gradients]


def _sgd_outcome(got: torch.Tensor) -> Outcome:
    """Judge the path [SGD_STEPS, N] of the weights; what is seen is the message, its cause the hint."""
    starts, gradients = _sgd_start()
    start = torch.cat(starts).double()
    updates = SGD_LR * torch.stack([torch.cat(pair).double() for pair in gradients])
    want = start - updates.cumsum(0)
    slack = 1e-5 * want.abs().amax(0) + 1e-7
    if ((got >= (want - slack).to(HALF)) & (got <= (want + slack).to(HALF))).all():
        return correct("The sum is kept in float32 from step to step, and the weight is a rounded copy of it.")
    if (got == start).all():
        return not_yet(
            "The weights have not moved at all.", hint="Write the masters into them: `weight.data.copy_(master)`."
        )
    shown = f"A weight of 1 and {SGD_STEPS} small updates add up to {want[-1, 0]:.5g}; you get {float(got[-1, 0]):.5g}."
    back = start.clone()
    reread = torch.stack([back.copy_((back - update).to(HALF)).clone() for update in updates])
    habits = (
        (reread, "That is what bfloat16 alone gives: each step rebuilds the master from the rounded weight."),
        (
            (start - updates).to(HALF),
            "That is the start plus the last update: `master = master - ...` makes a new tensor, and self.masters "
            "keeps the old one. Change it in place, or put the new one back.",
        ),
        ((start + updates.cumsum(0)).to(HALF), "The steps go uphill: subtract them."),
        ((start - updates.cumsum(0) / SGD_LR).to(HALF), "The learning rate is missing."),
    )
    for path, hint in habits:
        if (path.double() == got.double()).double().mean() > 0.95:
            return not_yet(shown, hint=hint)
    return not_yet(shown, hint="Where is the sum of the updates kept between two steps, and in which dtype?")
