"""Write _build/classroom: the exercises of every chapter without solutions, to hand out as it is or through nbgrader.

The folder holds `exercises/<chapter>/<chapter>.ipynb`, the code that checks them (`utils`, with the records it reads),
and a README for students. `classroom.json` lists what was written: a second call replaces that and nothing else, and
stops where such a file was edited. Usage: .venv/bin/python tools/classroom.py [--output DIR]
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import yaml

import notebooks
from handout import HandoutError, handout

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "_build" / "classroom"
LIST = "classroom.json"
COPIED = ("utils/**/*.py", "utils/widgets/**/*.js", "utils/widgets/**/*.css", "book/results/*.json")
COPIED += ("tools/notebooks.py", "tools/progress_report.py", "pyproject.toml", "requirements.txt", "LICENSE")
NBGRADER = '''"""For nbgrader (tried with 0.9.5): this folder is the course, a folder of exercises an assignment."""

c = get_config()  # noqa: F821
c.CourseDirectory.source_directory = "exercises"
c.ClearSolutions.enabled = False  # nothing here is a solution; the code to start from would be cleared away
c.Execute.timeout = 600  # seconds for a cell; some checks train a small network
'''
README = Path(__file__).with_name("classroom_readme.md")


class ClassroomError(Exception):
    """Why nothing was written, in one sentence."""


def chapters(root=ROOT):
    """The notebooks of the book that have a page of solutions, in the order of reading."""
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf8"))
    files = [Path(chapter["file"]) for part in toc["parts"] for chapter in part["chapters"]]
    solved = {file.name for file in files if file.parent.name == "solutions"}
    paths = [root / file.with_suffix(".ipynb") for file in files if file.parent.name != "solutions"]
    return [path for path in paths if path.stem in solved and path.exists()]


def handouts(root=ROOT):
    """The hand-outs by the name of their chapter, in the order of reading.

    Raises: HandoutError, with the file's name, where a chapter's exercises cannot stand alone.
    """
    made = {}
    for path in chapters(root):
        try:
            notebook = handout(notebooks.loads(path.read_text("utf8")))
        except HandoutError as error:
            raise HandoutError(f"{notebooks.short(path)}: {error}") from None
        if notebook is not None:
            made[path.stem] = notebook
    return made


def row(name, notebook):
    """The line of the README on one hand-out."""
    checks = sum(cell.metadata["nbgrader"].get("points") == 1 for cell in notebook.cells)
    title = notebook.cells[0].source.split("\n")[0].removeprefix("# Exercises: ")
    return f"| [{name}](exercises/{name}/{name}.ipynb) | {title} | {checks} |"


def content(root=ROOT):
    """Everything that the folder holds: bytes by path."""
    made = handouts(root)
    files = {f"exercises/{name}/{name}.ipynb": notebooks.dumps(notebook).encode() for name, notebook in made.items()}
    for pattern in COPIED:
        files |= {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.glob(pattern))}
    rows = "\n".join(row(name, notebook) for name, notebook in made.items())
    return files | {
        "README.md": README.read_text("utf8").format(rows=rows).encode(),
        "nbgrader_config.py": NBGRADER.encode(),
    }


def digest(data):
    """By which a file is known again."""
    return hashlib.sha256(data).hexdigest()


def foreign(folder, files, written):
    """Those files in the folder that would be replaced although this command did not write them as they are."""
    for name in sorted({*files, *written}):
        path = folder / name
        if path.is_file() and digest(path.read_bytes()) not in {written.get(name), digest(files.get(name, b""))}:
            yield name


def write(folder, files):
    """Put the files into the folder, in the place of what an earlier call wrote there.

    Raises: ClassroomError, with nothing changed, where a file to be replaced is not as it was written.
    """
    listed = folder / LIST
    try:
        written = json.loads(listed.read_text("utf8")) if listed.exists() else {}
    except ValueError:
        raise ClassroomError(
            f"{listed} cannot be read; remove the folder, or name another one with --output."
        ) from None
    if edited := list(foreign(folder, files, written)):
        more = f" and {len(edited) - 1} more" if len(edited) > 1 else ""
        raise ClassroomError(
            f"{folder / edited[0]}{more} was edited or made by somebody else;"
            " move it away, or name another folder with --output."
        )
    for name in written.keys() - files.keys():
        (folder / name).unlink(missing_ok=True)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    listed.write_text(json.dumps({name: digest(data) for name, data in files.items()}, indent=1) + "\n", "utf8")


def main(arguments=None):
    """Write the folder and say what is in it; return 1 where it cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR")
    folder = parser.parse_args(arguments).output
    try:
        files = content()
        write(folder, files)
    except (ClassroomError, HandoutError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    count = sum(name.startswith("exercises/") for name in files)
    print(f"{count} notebooks of exercises, and what checks them: {folder}")
    print("Hand the folder out as it is (its README.md tells students how), or use it as a course of nbgrader.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
