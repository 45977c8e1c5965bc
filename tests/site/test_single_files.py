"""The tools to take away: each is one file that works on a model of its own, where there is no book."""

import subprocess
import sys
from pathlib import Path

import pytest

import single_files

ROOT = Path(__file__).parents[2]
NOTE = "One file of a book."
HUNT = """
import torch
from torch import nn
from nan_hunter import NanHunter

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 1)
    def forward(self, x):
        return self.last(self.first(x).abs().sub(1e4).log())  # the planted fault

torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters())
hunter = NanHunter(model, optimizer, operations=True)
with hunter.step(7):
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
print(hunter.first)
"""
LOST = """
import torch
from torch import nn
from lost_updates import LostUpdates

torch.manual_seed(0)
model = nn.Linear(64, 64).bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
with LostUpdates(model, optimizer) as meter:
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 64).bfloat16()).square().mean().backward()
        optimizer.step()
print(meter.shares()["all"] > 0.9)
"""
PROBE = """
import torch
from torch import nn
from dtype_probe import DtypeProbe

model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
with torch.autocast("cpu", dtype=torch.bfloat16), DtypeProbe(model) as probe:
    model(torch.randn(2, 4))
for module in probe.summary():
    print(module.module, module.dtypes, module.casts)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tools of my own")
    for name, content in single_files.files(ROOT, NOTE).items():
        (made / name).write_bytes(content)
    return made


def run(folder, code, *program):
    """Run code, or a program, in a folder where nobody has heard of `utils`."""
    hide = "import sys; sys.modules['utils'] = None\n"
    start = program or ("-c", hide + code)
    done = subprocess.run(
        [sys.executable, *start], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_hunter_names_the_planted_operation(folder):
    assert "step 7, forward, outside the modules: nan in float32 [2, 8], made by log" in run(folder, HUNT)


def test_the_meter_counts_lost_updates_of_torchs_optimizer(folder):
    assert run(folder, LOST) == "True\n"


def test_the_probe_sees_what_autocast_chooses(folder):
    printed = run(folder, PROBE)
    assert "bfloat16" in printed
    assert "0 {'bfloat16': 1} 3" in printed  # the linear layer casts its weight, its bias and its input


def test_the_microscope_is_a_program_in_one_file(folder):
    printed = run(folder, "", "microscope.pyz", "--places", "8", "--width", "2")
    assert "float32" in printed
    assert "bits used" in printed


def test_a_file_says_where_it_comes_from_and_is_the_same_each_time(folder):
    first, second = (single_files.files(ROOT, NOTE) for _ in range(2))
    assert first == second
    assert NOTE in first["nan_hunter.py"].decode()


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("from utils.other import a as b", "write from utils"),
        ("import utils.other", "write from utils"),
        ("from utils.other import a\na = 2", "a is defined in utils.other and in utils.main"),
    ],
)
def test_what_one_file_cannot_hold_is_refused(tmp_path, lines, reason):
    (tmp_path / "utils").mkdir()
    (tmp_path / "utils/main.py").write_text(f'"""A module."""\n{lines}\n')
    (tmp_path / "utils/other.py").write_text('"""Another."""\n\na = 1\n')
    with pytest.raises(ValueError, match=reason):
        single_files.join(tmp_path, "utils.main", NOTE)


def test_what_is_imported_comes_first_and_once(tmp_path):
    (tmp_path / "utils").mkdir()
    (tmp_path / "utils/main.py").write_text('"""The last."""\nimport math\n\nfrom utils.other import a\n\nb = a\n')
    (tmp_path / "utils/other.py").write_text('"""Another."""\nimport math\nfrom math import pi\n\na = 1\n')
    text = single_files.join(tmp_path, "utils.main", NOTE)
    assert text.startswith(f'"""The last.\n\n{NOTE}\n"""\n\nimport math\nfrom math import pi\n\n\n# ---- utils.other')
    assert text.count("import") == 2
    assert text.index("a = 1") < text.index("b = a")
