"""A folder in the user's cache for what takes seconds to make: it is named by a key and filled in one move."""

import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

VERSIONS = ("torch", "transformers", "tokenizers")


def root() -> Path:
    """Return the cache: `MIXED_PRECISION_CACHE`, else mixed-precision-book in the user's cache folder."""
    folder = os.environ.get("MIXED_PRECISION_CACHE")
    if folder:
        return Path(folder)
    if sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "mixed-precision-book"


def key(*parts) -> str:
    """Return 16 hex digits that change with the parts (JSON values) and with the versions of `VERSIONS`."""
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    for package in VERSIONS:
        digest.update(importlib.metadata.version(package).encode())
    return digest.hexdigest()[:16]


def keep(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new folder and move it to `folder` in one step, so that no reader finds it half full.

    If another process was faster, its folder stays.
    Raises: OSError when the cache cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    try:
        write(new)
        new.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
