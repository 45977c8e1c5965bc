"""Run every file of bench/ in turn; the exit code is 1 where one of them failed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main():
    """Run each benchmark in a process of its own, so that none warms up another."""
    failed = []
    for path in sorted((ROOT / "bench").glob("*.py")):
        print(f"== bench/{path.name}", flush=True)
        if subprocess.run([sys.executable, str(path)], cwd=ROOT, check=False).returncode:
            failed.append(path.name)
    if failed:
        print("failed: " + ", ".join(failed), file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
