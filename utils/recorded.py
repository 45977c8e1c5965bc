"""Find the record of a run that was made before: a command that was stopped makes only the missing ones."""

from pathlib import Path

from utils import records


def find(folder: Path | str, *, key: str, recipe: str, seed: int) -> records.Record | None:
    """Return the record in `folder` whose key is `key`, None where there is none.

    Looks at the files that are named after the recipe and the seed. One that is not a record, or is older than keys,
    is passed over: its run is made again.
    """
    for path in sorted(Path(folder).glob(f"*{recipe}-*-seed{seed}.json")):
        try:
            record = records.load(path)
        except ValueError:
            continue
        if record.key == key:
            return record
    return None
