"""Give records the key of the code as it is now, where they have that of the code at a commit.

    tools/rekey.py HEAD~ utils.distilbert utils.capstone=utils.experiments.capstone.comparison

Use it after a change that cannot alter a result, for example when a module has moved: whoever runs it vouches for that.
Name the modules that make plans, as OLD=NEW if the change renamed them. Only the key of a record changes.
"""

import argparse
import dataclasses
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from utils import records
from utils.runs.loaded_source import digest


def rekey(folder: Path, names: dict[str, str], *, before: Path, now: Path = records.ROOT) -> list[str]:
    """Change the keys of records in place, and return the names of those that had the key of the code `before`.

    `names`: the modules that make plans, as they were called -> as they are. `before`, `now`: roots of source trees.
    Raises: ValueError for a module that a tree lacks, and for a file that is not a record.
    """
    codes = {digest(old, before): digest(new, now) for old, new in names.items()}
    changed = []
    for record in records.load_all(folder):
        circumstances, _, code = (record.key or "").partition("-")
        if code in codes:
            records.save(dataclasses.replace(record, key=f"{circumstances}-{codes[code]}"), folder)
            changed.append(record.name)
    return changed


def unpack(commit: str, folder: Path) -> None:
    """Write the tree of a commit to a folder. Raises: ValueError with git's words for an unknown one."""
    done = subprocess.run(["git", "-C", str(records.ROOT), "archive", commit, "utils"], capture_output=True)
    if done.returncode:
        raise ValueError(done.stderr.decode().strip())
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", help="whose code the records have")
    parser.add_argument("modules", nargs="+", metavar="MODULE", help="that makes plans; OLD=NEW where it was renamed")
    parser.add_argument("--records", type=Path, default=records.RESULTS, metavar="DIR", help="default: the book's")
    options = parser.parse_args(arguments)
    names = {old: new or old for old, _, new in (name.partition("=") for name in options.modules)}
    try:
        with tempfile.TemporaryDirectory() as before:
            unpack(options.commit, Path(before))
            changed = rekey(options.records, names, before=Path(before))
    except ValueError as error:
        print(f"rekey: {error}", file=sys.stderr)
        return 2
    print(f"{len(changed)} records had the key of the code at {options.commit}, and have the one of today")
    return 0


if __name__ == "__main__":
    sys.exit(main())
