"""What the NaN recipe promises: the guilty module, the same NaN in a replay, and nothing named in a healthy run."""

import pytest
import torch
from torch import nn

import recipe_scripts


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return recipe_scripts.load("nan_at_step_n")


class LogOfZero(nn.Module):
    def forward(self, x):
        return x.relu().log()  # finite numbers in, -inf out


class Overflow(nn.Module):
    def forward(self, x):
        return (x.half() * 60000).float().square()


class MaskedSoftmax(nn.Module):
    def forward(self, x, *, mask):
        return x.masked_fill(mask, -torch.inf).softmax(-1)  # a row that is all masked: NaN


class Attention(nn.Module):
    def forward(self, x, mask):
        return (x + mask).softmax(-1)


class AddedMask(nn.Module):
    """Attention that is given a mask with -inf, as many are: a row that is all masked becomes NaN."""

    def __init__(self, rows):
        super().__init__()
        self.attention, self.masked = Attention(), rows

    def forward(self, x):
        mask = torch.zeros_like(x).index_fill(1, torch.tensor([0]), -torch.inf)
        mask[: self.masked] = -torch.inf
        return self.attention(x, mask)


class Exponential(nn.Module):
    """Part of a softmax by hand: it overflows beside a mask with -inf."""

    def forward(self, x, mask):
        return (x + mask).exp()


class MaskedExponential(nn.Module):
    def __init__(self):
        super().__init__()
        self.exponential = Exponential()

    def forward(self, x):
        mask = torch.zeros_like(x).index_fill(1, torch.tensor([0]), -torch.inf)
        return self.exponential(100 * x.abs() + 100, mask)


class Masked(nn.Module):
    """A model whose faulty part is nested, gets a keyword, and hands on a dictionary."""

    def __init__(self):
        super().__init__()
        self.body = nn.ModuleDict({"into": nn.Linear(8, 4), "masked": MaskedSoftmax()})

    def forward(self, x):
        x = self.body["into"](x)
        return {"share": [self.body["masked"](x, mask=torch.ones_like(x, dtype=torch.bool))]}


class Between(nn.Module):
    """A function between two modules: the second one makes NaN of its infinity, and is not to blame."""

    def __init__(self, function):
        super().__init__()
        self.into, self.out, self.function = nn.Linear(4, 4), nn.LayerNorm(4), function

    def forward(self, x):
        return self.out(self.function(self.into(x)))


def exponential(x):
    return (x.abs() + 100).exp()  # +inf


class OwnForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, x):
        return self.linear(x) / 0


def line_of(*parts):
    return nn.Sequential(nn.Linear(8, 4), *parts, nn.Linear(4, 4))


def named(script, model):
    found = script.hunt(model)
    model(some_input())
    return found[0] if found else None


def some_input():
    """Enough rows that each output of a new linear layer is negative in one of them."""
    return torch.randn(16, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("model", "guilty"),
    [
        (lambda: line_of(LogOfZero()), "module 1 (LogOfZero)"),
        (lambda: line_of(nn.Identity(), Overflow()), "module 2 (Overflow)"),
        (lambda: nn.Sequential(Masked()), "module 0.body.masked (MaskedSoftmax)"),
        (OwnForward, "module itself (OwnForward)"),
        (lambda: line_of(AddedMask(1)), "module 1.attention (Attention)"),
        (lambda: line_of(MaskedExponential()), "module 1.exponential (Exponential)"),
        (lambda: line_of(Between(exponential)), "module 1 (Between)"),
        (lambda: line_of(Between(torch.zeros_like), Between(exponential)), "module 2 (Between)"),
        (lambda: line_of(Between(lambda x: x / x.sub(x))), "module 1 (Between)"),
    ],
    ids=[
        "confident network",
        "overflow",
        "nested, masked",
        "outside of the inner modules",
        "a mask of -inf",
        "inf beside -inf",
        "+inf between two modules",
        "zeros before +inf between two modules",
        "both infinities between two modules",
    ],
)
def test_the_hunter_names_the_planted_module(script, model, guilty):
    assert named(script, model()) == guilty


def test_the_hunter_names_nothing_in_a_healthy_model(script):
    assert named(script, line_of(nn.GELU(), nn.LayerNorm(4))) is None
    assert named(script, line_of(AddedMask(0))) is None  # -inf in a mask is no fault


def test_a_module_with_broken_weights_is_not_accused(script):
    model = line_of(nn.GELU())
    with torch.no_grad():
        model[0].weight[0, 0] = torch.nan
    assert named(script, model) is None


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_a_module_that_is_given_a_broken_input_is_not_accused(script, broken):
    found = script.hunt(model := line_of(nn.GELU(), Between(exponential)))
    x = some_input()
    x[:, 0], x[0, 0] = broken, -broken  # of both signs, so that +inf reaches the GELU whatever the weights are
    model(x)
    assert not found


def test_a_compiled_model_is_looked_at_in_eager_mode(script):
    model = line_of(LogOfZero())
    found = script.hunt(model)
    with torch.compiler.set_stance("force_eager"):
        torch.compile(model)(some_input())
    assert found[0] == "module 1 (LogOfZero)"


def test_it_runs_as_it_stands_and_names_what_was_planted(tmp_path):
    done = recipe_scripts.run_as_shown("nan_at_step_n", tmp_path)
    *_, last, first_bad, rows = done.stdout.splitlines()
    assert last.endswith("loss nan, norm nan")
    assert first_bad.endswith("forward pass, module 1 (LayerNorm)")
    assert "5000" in rows
    assert {path.name for path in tmp_path.glob("roll*")} == {"roll0.pt", "roll1.pt"}


def watched(script, monkeypatch):
    """Record the loss and the norm of every step that the script computes."""
    seen, backward, clip, losses = {}, script.backward, script.clip, []

    def look(model, data, rows, step):
        losses.append((step, backward(model, data, rows, step)))
        return losses[-1][1]

    def norm_of(model):  # which `cause` does not ask for
        step, loss = losses[-1]
        norm = clip(model)
        seen.setdefault(step, []).append((loss.item(), norm.item()))
        return norm

    monkeypatch.setattr(script, "backward", look)
    monkeypatch.setattr(script, "clip", norm_of)
    return seen


def test_the_replay_gives_the_losses_of_the_run_and_the_same_nan(script, monkeypatch, capsys):
    seen = watched(script, monkeypatch)
    script.train()
    stopped = max(seen)
    failing = next(step for step in sorted(seen) if seen[step][0][0] != seen[step][0][0])
    start = (failing - 1) // script.SAVE_EVERY * script.SAVE_EVERY
    for step in range(start + 1, failing):
        assert len(seen[step]) == 2
        assert len(set(seen[step])) == 1  # bit for bit
    assert all(loss != loss for loss, _ in seen[failing])
    assert all(len(seen[step]) == 1 for step in range(failing + 1, stopped + 1))  # the replay stops there
    printed = capsys.readouterr().out
    assert f"step {failing}, rerun from {start}:" in printed
    script.replay()  # needs the files alone
    assert capsys.readouterr().out in printed


def test_started_again_in_the_same_folder_it_replays(tmp_path):
    first, again = (recipe_scripts.run("nan_at_step_n", tmp_path) for _ in range(2))
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines() == first.stdout.splitlines()[-2:]


def test_a_broken_newer_checkpoint_is_left_out(script, capsys):
    script.train()
    printed = capsys.readouterr().out
    states = {name: torch.load(name, weights_only=True) for name in ("roll0.pt", "roll1.pt")}
    newer = max(states, key=lambda name: states[name][2])
    next(iter(states[newer][0].values())).fill_(torch.nan)
    torch.save(states[newer], newer)
    script.replay()
    again = capsys.readouterr().out
    older = min(state[2] for state in states.values())
    assert f"rerun from {older}: forward pass, module 1 (LayerNorm)" in again
    assert again.split(",")[0] in printed  # the same step


def test_a_save_that_was_stopped_leaves_both_checkpoints(script, capsys):
    script.train()
    printed = capsys.readouterr().out
    with open("n", "wb") as half:
        half.write(b"PK")
    script.replay()
    assert capsys.readouterr().out in printed


def test_a_norm_that_overflows_is_said_where_all_gradients_are_finite(script):
    model = nn.Linear(4, 4)
    data = torch.full((4, 4), 3e19), torch.arange(4)
    with torch.no_grad():
        model.weight.zero_()
    assert script.why(model, data, torch.arange(4), 1) == "backward pass, norm overflows"


def planted(script, monkeypatch, change, model=None):
    """Let the script train with another fault, planted from the record 5000 on."""
    make_run = script.make_run

    def other():
        torch.manual_seed(0)
        _, _, (x, y) = make_run()
        x[5000] = 1.0
        net = model() if model else nn.Linear(8, 4)
        change(x, y)
        torch.manual_seed(0)
        return net.to(script.device), torch.optim.AdamW(net.parameters(), 1e-2), (x, y)

    monkeypatch.setattr(script, "make_run", other)


def test_a_healthy_run_names_nothing(script, monkeypatch, capsys):
    planted(script, monkeypatch, lambda x, y: None)
    script.train()
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == script.STEPS // script.SAVE_EVERY
    script.replay()
    assert capsys.readouterr().out == f"no NaN up to step {script.STEPS}: delete {script.LOG} to train again\n"


def test_a_nan_after_the_last_checkpoint_is_found_at_the_end(script, capsys):
    script.STEPS = 390  # no multiple of 50; the planted row comes in step 366
    script.train()
    assert "step 366, rerun from 350: forward pass, module 1 (LayerNorm)" in capsys.readouterr().out


class RootOfZero(nn.Module):
    """Finite forward, infinite slope: the gradient of sqrt(0)."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return (x * self.scale).abs().sqrt()[:, :4]


def set_record(value):
    def change(x, y):
        x[5000] = value

    return change


class NanSlope(nn.Module):
    """All gradients pass through layers that come after the one whose weight alone gets a gradient of NaN."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 4), nn.Linear(4, 4)
        self.first.weight.register_hook(lambda gradient: gradient * (torch.nan if self.bad else 1.0))

    def forward(self, x):
        self.bad = bool((x == 0).all(1).any())
        return self.last(self.first(x))


def ignore_all(x, y):
    y[:] = -100


@pytest.mark.parametrize(
    ("change", "model", "finding"),
    [
        (set_record(torch.nan), None, "the batch holds NaN or Inf"),
        (ignore_all, None, "every label is ignored, and the mean of no losses is 0/0"),
        (set_record(3e38), None, "forward pass, module"),
        (set_record(0.0), RootOfZero, "backward pass, gradient of scale"),
        (set_record(0.0), NanSlope, "backward pass, gradient of first.weight"),
    ],
    ids=["input", "labels", "module", "gradient", "gradient of one weight"],
)
def test_every_look_finds_its_fault(script, monkeypatch, capsys, change, model, finding):
    planted(script, monkeypatch, change, model)
    script.train()
    assert finding in capsys.readouterr().out


def test_an_update_that_breaks_a_weight_is_named(script, monkeypatch, capsys):
    planted(script, monkeypatch, lambda x, y: None)
    make_run = script.make_run

    def other():
        model, _, data = make_run()
        optimizer = torch.optim.SGD(model.parameters(), 1e-2)
        step, taken = optimizer.step, []

        def breaking():
            step()
            taken.append(1)
            if len(taken) == 3:
                next(model.parameters()).data[0, 0] = torch.inf

        optimizer.step = breaking
        return model, optimizer, data

    monkeypatch.setattr(script, "make_run", other)
    script.train()
    assert "step 3, rerun from 0: the optimizer's update" in capsys.readouterr().out
