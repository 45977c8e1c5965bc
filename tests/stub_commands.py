"""A folder with commands that end in every way, and a plan of them: what `record_all` runs in its tests."""

import textwrap

import torch

from utils.experiments.record_all.recording import Recording
from utils.experiments.record_all.wanted import Wanted

CPU = torch.device("cpu")
SOURCES = {
    "works": """
        import json, pathlib, sys
        folder = pathlib.Path(sys.argv[sys.argv.index("--record") + 1])
        (folder / "works.json").write_text(json.dumps(sys.argv[1:]))
        print("measured")
    """,
    "works_too": "print('nothing to write')",
    "crashes": "raise RuntimeError('CUDA error: an illegal memory access was encountered')",
    "dies": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "hangs": "import time; print('begins', flush=True); time.sleep(600)",
    "ignores_signals": """
        import signal, subprocess, sys, time
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(child.pid, flush=True)
        time.sleep(600)
    """,
    "fills_the_disk": "raise OSError(28, 'No space left on device')",
}


def write_commands(root):
    """Write the commands as modules of a package `utils` below `root`."""
    package = root / "utils"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name, source in SOURCES.items():
        (package / f"{name}.py").write_text(textwrap.dedent(source))
    return root


def wanted(name, *, minutes=1.0, **more):
    """A command of the folder."""
    return Wanted(name, (name,), minutes={"small": minutes, "full": minutes}, page="numbers/bits", **more)


def make_recording(tmp_path, *names, **more):
    """A recording of these commands into an empty folder; its lines are kept in `lines`."""
    root = tmp_path / "a book"
    if not root.exists():
        root.mkdir()
        write_commands(root)
    lines = []
    plan = tuple(name if isinstance(name, Wanted) else wanted(name) for name in names)
    folder = tmp_path / "out"
    recording = Recording(folder, CPU, "small", plan, say=lines.append, root=root, **more)
    recording.lines = lines
    return recording
