"""Build the HTML book from the committed outputs: every warning of Sphinx, and every dead reference, is an error."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
START = ROOT / "_build" / "html" / "index.html"


def build(source, output, *options):
    """Run Jupyter Book on the folder `source` into `output`/_build/html and return its exit code.

    The pages of an earlier build go first: Sphinx would leave those of a chapter that is gone, and old pictures. Where
    they cannot be removed, nothing is built. The full log goes to a file beside the pages; the terminal sees warnings
    and errors alone.
    """
    pages = Path(output, "_build", "html")
    try:
        if pages.exists():
            shutil.rmtree(pages)
    except OSError as error:
        print(f"The pages of the last build cannot be removed: {error}. Remove {pages} yourself.", file=sys.stderr)
        return 1
    code = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", code, "build", str(source), "--path-output", str(output), *options]
    log = Path(output, "_build", "build.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf8") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
    lines = log.read_text("utf8").splitlines()
    if done.returncode:
        worth = [line for line in lines if "WARNING" in line or "ERROR" in line or "rror:" in line]
        print("\n".join(dict.fromkeys(worth)) or "\n".join(lines[-30:]), file=sys.stderr)
        print(f"The build failed; its whole log is {log}", file=sys.stderr)
    return done.returncode


def main():
    """Build the book and say which page to open."""
    # --all: Sphinx would not write the sidebar of an unchanged page anew when a chapter is added
    try:
        code = build(ROOT, ROOT, "--all", "-W", "-n", "--keep-going")
    except KeyboardInterrupt:
        print("\nStopped by hand: pages are missing. `make book` builds them all.", file=sys.stderr)
        return 130
    if code == 0:
        print(f"The book is built. Open {START}")
    return code


if __name__ == "__main__":
    sys.exit(main())
