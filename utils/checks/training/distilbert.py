"""Checks of `training/distilbert`."""

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    correct,
    exercise,
    not_yet,
    paper,
)
from utils.checks.training.distilbert_questions import (
    PAIRED_INTERVAL,
    RESCUE,
    TEST_SIZE,
    Z_OF_DIFFERENCE,
)
from utils.measure import mean_interval, student_t

IN_FLOAT32 = 3e-5  # how far float32 may move a mean of differences of two numbers near 92

check_z_of_difference = paper(Z_OF_DIFFERENCE)
check_test_size = paper(TEST_SIZE)


@exercise(asks=PAIRED_INTERVAL, takes="paired_interval", seconds=5)
def check_paired_interval(answer) -> Outcome:
    """A function (a, b) -> (mean, half-width of the 95 % Student interval) of the differences a - b, seed by seed."""
    rng = np.random.default_rng(0)
    if (returned := answer([1.0, 2.0], [0.0, 0.0])) is None or returned is ...:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the mean and the half-width.")
    for n in (2, 3, 5, 8):
        luck = rng.normal(92, 1.0, n)  # what both runs of a seed share
        a, b = luck + rng.normal(0.1, 0.1, n), luck + rng.normal(0, 0.1, n)
        mean, half = (float(part) for part in answer(a.tolist(), b.tolist()))
        wanted_mean, wanted_half = mean_interval(a - b)
        if math.isclose(mean, -wanted_mean, abs_tol=IN_FLOAT32):
            return not_yet("The sign is reversed: the difference is a - b.")
        ends = wanted_mean - wanted_half, wanted_mean + wanted_half
        if np.allclose((mean, half), ends, rtol=1e-3, atol=IN_FLOAT32):
            return not_yet("Those are the two ends of the interval. Return its mean and its half-width.")
        if np.allclose((half, mean), (wanted_mean, wanted_half), rtol=1e-3, atol=IN_FLOAT32):
            return not_yet("Both numbers are right, in the wrong order: first the mean, then the half-width.")
        if not math.isclose(mean, wanted_mean, abs_tol=IN_FLOAT32):
            return not_yet(f"For {n} seeds the mean should be {wanted_mean:.4f}, yours is {mean:.4f}.")
        if math.isclose(half, wanted_half, rel_tol=1e-3):
            continue
        unpaired = math.hypot(mean_interval(a)[1], mean_interval(b)[1])
        if math.isclose(half, unpaired, rel_tol=1e-3):
            return not_yet("That is the unpaired interval. Subtract seed by seed first: the shared luck drops out.")
        if math.isclose(half, wanted_half * math.sqrt((n - 1) / n), rel_tol=1e-3):
            return not_yet("Your standard deviation divides by n; that of a sample divides by n - 1 (ddof=1).")
        if math.isclose(half, wanted_half * math.sqrt(n), rel_tol=1e-3):
            return not_yet("That is for a single difference. A mean of n differences varies less, by a factor √n.")
        if math.isclose(half, 2 * wanted_half, rel_tol=1e-3):
            return not_yet("That is the whole width. Give half of it, the number after ±.")
        if math.isclose(half, wanted_half / student_t(n - 1) * student_t(n), rel_tol=1e-3):
            freedom = "1 degree" if n == 2 else f"{n - 1} degrees"
            return not_yet(f"With {n} seeds there {'is' if n == 2 else 'are'} {freedom} of freedom: use that row.")
        if math.isclose(half, wanted_half / student_t(n - 1), rel_tol=1e-3):
            return not_yet("That is one standard error. Multiply it by Student's t.")
        if math.isclose(half, 1.96 * np.std(a - b, ddof=1) / math.sqrt(n), rel_tol=1e-2):
            return not_yet(f"1.96 is for many runs. With {n} seeds, use Student's t for {n - 1} degrees of freedom.")
        if math.isnan(half):
            return not_yet("The half-width is NaN. Square the deviations from the mean before you add them.")
        return not_yet(f"For {n} seeds the half-width should be {wanted_half:.4f}, yours is {half:.4f}.")
    mean, half = (float(part) for part in answer([92.1, 93.1, 91.6], [91.6, 92.6, 91.1]))
    if not (math.isclose(mean, 0.5, abs_tol=IN_FLOAT32) and abs(half) < 10 * IN_FLOAT32):
        return not_yet(f"Three equal differences of 0.5 should give 0.5 ± 0; yours gives {mean:.4f} ± {half:.4f}.")
    return correct("Pairing removes the luck that the two runs of a seed share, if they share any.")


# --- The rescue -------------------------------------------------------------------------------------------------------

HALF, RATE = torch.float16, 2.0**-10  # a learning rate that float16 holds exactly
GRADIENTS = (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 1.0)
STEPS = 60
ALLOWED = 6  # bytes per weight for the moments
LONG, BLOCK = 3000, 500  # steps with one gradient; the weights go back to 0 after each block


@exercise(asks=RESCUE, takes="HalfAdam", seconds=20)
def check_rescue(answer) -> Outcome:
    """A class (weights, lr, eps) with a step() that is Adam on float16 weights, its moments in six bytes per weight.

    Adam's first step is as long as the learning rate, whatever the gradient; a gradient of 0 moves nothing. Then come
    a path of 30 steps, the bytes that the optimizer keeps, the step after 3,000 steps, and a small network.
    """
    moved, squares, fault = _first_step(answer)
    if not fault and _moves_as_printed(moved):
        return Outcome(NOT_ATTEMPTED, "This still steps as the class in the exercise does: 0/0 for a gradient of 0.")
    if not fault:
        fault = _first_step_fault(moved, squares) or _path_fault(answer) or _long_run_fault(answer)
    if fault:
        return not_yet(*fault)
    before, after = _trained(answer)
    if not after < 0.5 * before:
        return not_yet(f"No NaN, but a small network does not learn: its loss goes from {before:.2f} to {after:.2f}.")
    return correct(
        f"With float16 weights and gradients and {ALLOWED} bytes for the moments, a small network's loss falls from"
        f" {before:.2f} to {after:.2f} in {STEPS} steps."
    )


def _first_step(make: Callable) -> tuple[list[float], torch.Tensor | None, tuple[str, str] | None]:
    """Take one step for each of GRADIENTS from 0; give the steps in learning rates, v, and a fault of the dtypes."""
    weight = nn.Parameter(torch.zeros(len(GRADIENTS), dtype=HALF))
    optimizer = make([weight], lr=RATE)
    if weight.dtype == HALF:
        weight.grad = torch.tensor(GRADIENTS, dtype=HALF)
        optimizer.step()
    if weight.dtype != HALF:
        message = f"The weights are {weight.dtype} now. That works, but takes twice the bytes: keep them in float16."
        return [], None, (message, "What else is narrow in Adam?")
    kept = _tensors_of(vars(optimizer), but=weight)
    squares = (tensor for tensor in kept if tensor.shape == weight.shape and 8e-4 < tensor[-1] < 1.2e-3)
    return (-weight.detach().float() / RATE).tolist(), next(squares, None), None


def _moves_as_printed(moved: list[float]) -> bool:
    """Whether these steps are those of float16 moments: 0/0 for a gradient of 0, g/0 or 0/0 for the small ones."""
    zero, *small = moved[: GRADIENTS.index(1e-2)]
    return math.isnan(zero) and not any(map(math.isfinite, small))


def _first_step_fault(moved: list[float], squares: torch.Tensor | None) -> tuple[str, str] | None:
    by_gradient = dict(zip(GRADIENTS, moved, strict=True))
    zero, small = by_gradient[0.0], by_gradient[1e-6]
    if math.isnan(zero):
        return (
            "After one step a weight whose gradient was 0 is NaN.",
            "Its m and v are 0, so only eps can prevent 0/0. Is it added, and in which dtype? In float16, 1e-8 is 0.",
        )
    if math.isinf(small) or abs(small) > 100:
        return (
            f"A gradient of 1e-6 moves its weight by {abs(small):.3g} learning rates; Adam's first step is one long.",
            _hint_for_squares(squares),
        )
    if all(value == 0 for value in moved):
        return "The weights have not moved.", "Write into them in place: `w -= ...` or `w.copy_(...)`."
    if any(value < 0 for value in moved):
        return "A weight moves uphill: a positive gradient has made it larger.", "Adam subtracts its step."
    wrong = {g: value for g, value in by_gradient.items() if abs(value - (g != 0)) > 0.05}
    if list(wrong) == [1e-6] and 0.5 < small < 2:
        return (
            f"Only the smallest gradient is wrong: 1e-6 moves its weight by {small:.3g} learning rates, not by one.",
            "m is a tenth of that gradient. How many bits does your dtype keep of 1e-7? Another one of that size keeps"
            " all of its bits there.",
        )
    if wrong:
        steps = ", ".join(f"{abs(value):.3g} for {g:g}" for g, value in wrong.items())
        return (
            f"No NaN. But Adam's first step is one learning rate long, whatever the gradient; here it is {steps}.",
            _hint_for_squares(squares),
        )
    return None


def _hint_for_squares(squares: torch.Tensor | None) -> str:
    """Say what is narrow after a first step of the wrong length, by the `squares` that the optimizer keeps, its v."""
    if squares is None:
        return "Follow a gradient of 1e-6 through each line of the step. In which dtype is each result, and which is 0?"
    if squares.dtype == HALF:
        return (
            "v is 0 for most gradients: 0.001 · g² is below 3e-8, and float16 stores that as 0. A larger eps, or a NaN"
            " replaced with 0, hides this but leaves the step wrong. Which dtype could hold v?"
        )
    right = 0.001 * torch.tensor(GRADIENTS, dtype=HALF).double() ** 2
    if torch.allclose(squares.double(), right, rtol=0.05, atol=0):
        return (
            "v is right for every gradient. So look at m, at eps and at the products: in float16, a tenth of 1e-6"
            " becomes 1.2e-7, and the learning rate times 1e-6 is 0. In which dtype does each line calculate?"
        )
    return "v could hold the square of a small gradient, but it does not. In which dtype is g squared?"


def _path_fault(make: Callable) -> tuple[str, str] | None:
    """Compare 30 steps with small gradients with torch's Adam in float32."""
    draw = torch.Generator().manual_seed(0)
    gradients = (1e-4 * torch.randn(30, 200, generator=draw)).to(HALF)
    ours, wide = (nn.Parameter(torch.zeros(200, dtype=dtype)) for dtype in (HALF, torch.float32))
    optimizers = make([ours], lr=RATE), torch.optim.Adam([wide], lr=RATE, foreach=False)
    for gradient in gradients:
        ours.grad, wide.grad = gradient.clone(), gradient.float()
        for optimizer in optimizers:
            optimizer.step()
    off = (ours.detach().float() - wide.detach()).abs().max().item() / RATE
    kept = list(_tensors_of(vars(optimizers[0]), but=ours))
    if not off < 0.2:
        return (
            f"The first step is right. After 30 steps a weight is {off:.2g} learning rates away from Adam in float32.",
            _hint_for_kept(kept),
        )
    held = sum(tensor.nbytes for tensor in kept) / ours.numel()
    if held == 0:
        return "It steps as Adam does, but where are m and v? Keep them as attributes of the optimizer.", ""
    if held > ALLOWED + 0.5:
        return (
            f"It steps as Adam does. But the optimizer keeps {held:.3g} bytes per weight, and {ALLOWED} are allowed.",
            "One of the two may have 4 bytes. v changes by a thousandth of itself per step, m by a tenth.",
        )
    return None


def _hint_for_kept(kept: list[torch.Tensor]) -> str:
    """Say what is lost between steps, by the tensors that the optimizer keeps after some of them."""
    lost = [tensor for tensor in kept if not tensor.any()]
    if any(tensor.dtype != HALF for tensor in lost) or (lost and len(lost) == len(kept)):
        return "A tensor that you keep is still 0 after 30 steps. Write m and v into it in place."
    if lost:
        return (
            "A float16 tensor that you keep is 0 after 30 steps: what you calculate is right, but the next step starts"
            " from what was stored. 0.001 · g² is below 3e-8 here, and float16 stores that as 0."
        )
    return "Keep m and v from step to step, and divide by 1 - 0.9**t and 1 - 0.999**t."


def _tensors_of(value: object, *, but: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the tensors in these attributes, lists and dicts, without the weight `but` and its gradient."""
    if isinstance(value, torch.Tensor):
        if value is not but and value.data_ptr() not in (but.data_ptr(), but.grad.data_ptr()):
            yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _tensors_of(part, but=but)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors_of(part, but=but)


def _long_run_fault(make: Callable) -> tuple[str, str] | None:
    """Take many steps with one gradient, and look at the length of the last ones: one learning rate."""
    weight = nn.Parameter(torch.zeros(8, dtype=HALF))
    optimizer = make([weight], lr=RATE)
    for step in range(LONG):
        if step % BLOCK == 0:
            weight.data.zero_()  # float16 holds 500 steps from 0 exactly
        weight.grad = torch.full_like(weight, 1e-3)
        optimizer.step()
    length = -weight.detach().float().mean().item() / RATE / BLOCK
    if abs(length - 1) < 0.1:
        return None
    return (
        f"The first steps are right. But with one gradient all the time, a step after {LONG:,} is {length:.2f} learning"
        " rates long; it should still be one.",
        "v changes by at most a thousandth of itself per step. Does its dtype keep so small a change?",
    )


def _trained(make: Callable) -> tuple[float, float]:
    """Train a small float16 network; return its first and its last loss."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)).to(HALF)
        x = torch.randn(64, 8)
    labels = (x[:, 0] * x[:, 1] > 0).long()
    optimizer, losses = make(model.parameters(), lr=8 * RATE), []
    for _ in range(STEPS):
        model.zero_grad()
        loss = F.cross_entropy(model(x.to(HALF)).float(), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1]
