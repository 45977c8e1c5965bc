"""Which code made a record: a digest of all of `utils`, and the commit of a checkout that has the same code.

A copy without a commit (an unpacked archive, or a folder that git does not trust) makes records that name none, and a
changed checkout makes records that cannot be repeated from their commit. Both are as good as any other as soon as there
is a clean checkout with the same code: the digest says so.
"""

import hashlib
from dataclasses import replace
from pathlib import Path

from utils import records
from utils.records import Record

CODE = ("utils",)


def digest_code(root: Path = records.ROOT, *, folders: tuple[str, ...] = CODE) -> str:
    """Return 16 hex digits that change with the text or the name of any Python file of `folders`; "" where one fails.

    The ends of lines do not count: an archive may have other ones than a checkout.
    """
    sha256 = hashlib.sha256()
    try:
        for path in sorted(path for folder in folders for path in (root / folder).rglob("*.py")):
            text = path.read_bytes().replace(b"\r\n", b"\n")
            sha256.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode() + text)
    except OSError:
        return ""
    return sha256.hexdigest()[:16]


def name_commit(record: Record, digest: str | None, *, root: Path = records.ROOT) -> Record | None:
    """Return a record with the commit that its code has: its own, else that of this checkout if its code is the same.

    `digest`: that of the code that made the record, None where it was not kept. None where no commit has that code.
    """
    if record.commit is not None and not record.dirty:
        return record
    about = records.provenance()
    if not digest or about["commit"] is None or about["dirty"] or digest != digest_code(root):
        return None
    return replace(record, commit=about["commit"], dirty=False)
