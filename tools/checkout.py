"""The folders of this checkout, and how its set-up runs a command: with the standard library alone."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"


class SetUpError(Exception):
    """One line that says what is missing and what to do."""


def say(text):
    """Print one line of progress at once."""
    print(text, flush=True)


def run(command, failure, **options):
    """Run a command silently and return what it printed.

    Raises:
        SetUpError: with `failure` and the command's last line about an error, or its last line.
    """
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, **options)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        telling = [line for line in lines if "error" in line.lower()] or lines
        raise SetUpError(f"{failure}: {telling[-1].strip()}")
    return done.stdout
