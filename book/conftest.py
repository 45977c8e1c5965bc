"""Kernels that nbval starts inherit this, so that a notebook finds `utils` even where it is not installed."""

import os
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
