"""A folder of the user's for what takes seconds to make: found again by a key, filled in one move."""

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
    named = os.environ.get("MIXED_PRECISION_CACHE")
    if named:
        return Path(named)
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
    """Let `write` fill a new folder and move it to `folder` in one step; a reader never finds half of it.

    Where another process was faster, its folder stays.
    Raises: OSError when the cache cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    try:
        write(place)
        place.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(place, ignore_errors=True)
