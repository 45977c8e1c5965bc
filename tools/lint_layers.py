"""Say which imports of `utils` come from above, or go in a circle: python tools/lint_layers.py.

The order of the folders is in pyproject.toml, and import-linter reads it. Its banner is left out.
"""

import subprocess
import sys

from checkout import ROOT

LINT = "from importlinter.cli import lint_imports_command as main; main()"


def main():
    """Print what is broken, and return the exit code."""
    command = [sys.executable, "-c", LINT, "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout.partition("Contracts\n")[2] or done.stdout + done.stderr)
    else:
        print("Every import of utils comes from below, and none goes in a circle.")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
