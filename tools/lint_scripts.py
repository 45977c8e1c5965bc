"""Node.js and Biome read the JavaScript of the book: python tools/lint_scripts.py.

Each file must be what Node.js takes as it stands, the widgets' as ES modules whose imports are there, the pages' as
classic scripts. Biome's rules are in biome.jsonc. Biome is one program without dependencies, where ESLint with its rule
for circles brings a hundred packages; the set-up fetches it once, and it needs no network.
"""

import json
import platform
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from checkout import ROOT, VENV, SetUpError, say
from npm_packages import fetch, node_folder

BIOME = VENV / "bin" / "biome"
VERSION = "2.5.15"
SHA512 = {  # the registry's own integrity values, by system and processor
    "darwin-arm64": "BZVzFhJ/mUvTLMYbc9x6el0o2Uv5zP7bACYyhFb6fSc1giroXm7PL0a5KqMJ9F+/BnkYRjagD/ROSDVOZ6eapg==",
    "darwin-x64": "V5Kw63V+fVGNFhFrizDxMbGXAzZCh8kYzJpy3GI6gTapWDg7bZK9oYC9CbVgQSEdTnupz0U5Efz8Ev+5vdBBXw==",
    "linux-arm64": "XaG7P7eeSLYETD3K9grfB0mQmpLQZjygdbsxekWBJAg4am79fGAtRpfRyNnTvXB2fZFNnJZG3nXm7HBat0+VUw==",
    "linux-x64": "xE4iEW/3LqlYj9GFgGrFsFSH51dEEpUbYWBfeOv0q87WkUDxK2o/HhreSb7qMJqck70RVM6Lg96hgedcAYcOkA==",
}
MODULES, SCRIPTS = ROOT / "utils" / "widgets", ROOT / "book" / "_ext"
READ_ALL = """
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Script } from "node:vm";
const [modules, scripts] = JSON.parse(process.argv[1]);
for (const path of modules) {
  try { await import(pathToFileURL(path)); } catch (error) { console.error(`${path}: ${error}`); process.exitCode = 1; }
}
for (const filename of scripts) {
  try { new Script(readFileSync(filename, "utf8"), { filename }); }
  catch (error) { console.error(error.stack.split("\\n", 1)[0], String(error)); process.exitCode = 1; }
}
"""


def build():
    """The name of the Biome for this machine: "linux-x64".

    Raises:
        SetUpError: on a machine for which there is none.
    """
    machine = platform.machine().lower()
    name = f"{platform.system().lower()}-{ {'x86_64': 'x64', 'aarch64': 'arm64'}.get(machine, machine) }"
    if name not in SHA512:
        raise SetUpError(f"Biome, which reads the JavaScript, has no build for {name}.")
    return name


def set_up():
    """Fetch Biome into the environment unless this version is there; an interrupted call leaves nothing half done."""
    stamp = BIOME.with_name("biome.version")
    if BIOME.exists() and stamp.exists() and stamp.read_text("utf8") == VERSION:
        return
    name = build()
    say(f"Fetching Biome {VERSION}, which reads the JavaScript.")
    stamp.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=BIOME.parent) as work:
        with tarfile.open(fetch(f"@biomejs/cli-{name}", VERSION, SHA512[name], Path(work))) as package:
            fresh = Path(work, "biome")
            fresh.write_bytes(package.extractfile("package/biome").read())
        fresh.chmod(0o755)
        fresh.replace(BIOME)
    stamp.write_text(VERSION, "utf8")


def read_all(modules, scripts):
    """Let Node.js import ES modules and parse classic scripts; return its exit code."""
    paths = json.dumps([list(map(str, modules)), list(map(str, scripts))])
    command = [node_folder() / "bin" / "node", "--no-warnings", "--input-type=module", "-e", READ_ALL, paths]
    return subprocess.run(command, check=False).returncode


def main():
    """Fetch Biome where it is missing, read all JavaScript, and return 1 where something is wrong."""
    try:
        set_up()
    except SetUpError as error:
        print(error, file=sys.stderr)
        return 1
    parsed = read_all(sorted(MODULES.rglob("*.js")), sorted(SCRIPTS.rglob("*.js")))
    linted = subprocess.run([BIOME, "lint", "--error-on-warnings", "--max-diagnostics=200", "."], cwd=ROOT, check=False)
    return int(bool(parsed or linted.returncode))


if __name__ == "__main__":
    sys.exit(main())
