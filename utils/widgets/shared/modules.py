"""The JavaScript of the widgets: files that import each other, joined to one ES module or to the scripts of a page.

Each file is an ES module that a browser, Node.js and an editor take as it stands. A notebook gets one text for a widget
(`joined`), a page without a kernel the files of all its widgets, each once. In both a file is a function of `use`, so
that names in two files may be equal:

    "shared/numbers/dice": (use) => {
    const { asDouble } = use("shared/numbers/double_rounding");
    ...
    return { seededDice, nearlyNormal };
    },

`use` calls the function of a file the first time that it is asked for it, and keeps what it returns.
"""

import functools
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

WIDGETS = Path(__file__).resolve().parents[1]
IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.{1,2}/[^"]+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)
DEFAULT = re.compile(r"^export default (.*);\n\Z", re.MULTILINE)
OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


class ModuleError(ValueError):
    """A file that cannot be joined: what is wrong in which one."""


@dataclass(frozen=True)
class Module:
    """A JavaScript file: `name` is its path below `utils/widgets` without ".js".

    `imports`: the names taken from each other file. `body`: its text as the inside of a function of `use`.
    """

    name: str
    imports: dict[str, tuple[str, ...]]
    exports: tuple[str, ...]
    body: str

    @property
    def as_function(self) -> str:
        """The file as an entry of an object: its name and a function that returns its exports."""
        return f"{json.dumps(self.name)}: (use) => {{\n{self.body}}},\n"


def read_module(name: str, folder: Path = WIDGETS) -> Module:
    """Read the file `<name>.js` below `folder`.

    Raises:
        ModuleError: for a file that is missing, and for an import or export that is not written in one of the forms
            `import { a, b } from "./c.js";`, `export function`, `export const`, `export class`, and at the end of the
            file `export default`.
    """
    try:
        status = (folder / f"{name}.js").stat()
    except FileNotFoundError:
        raise ModuleError(f"{name}.js does not exist") from None
    return _read_once(name, folder, (status.st_mtime_ns, status.st_size))


@functools.lru_cache(maxsize=1024)  # a build asks for the same 155 files at each page
def _read_once(name: str, folder: Path, edition: tuple[int, int]) -> Module:
    text = (folder / f"{name}.js").read_text("utf8")
    imports: dict[str, tuple[str, ...]] = {}

    def use(match: re.Match) -> str:
        source = os.path.normpath(Path(name).parent / match[2])
        imports[source] = imports.get(source, ()) + tuple(re.findall(r"(\w+)(?: as \w+)?", match[1]))
        return f"const {{{match[1].replace(' as ', ': ')}}} = use({json.dumps(source)});"

    body = IMPORT.sub(use, text)
    exports, returned = EXPORT.findall(body), EXPORT.findall(body)
    body = EXPORT.sub("", body)
    if default := DEFAULT.search(body):
        exports, returned = [*exports, "default"], [*returned, f"default: {default[1]}"]
        body = DEFAULT.sub("", body)
    if other := OTHER.search(body):
        raise ModuleError(f"{name}.js: `{other[0]}` has a form that utils/widgets/shared/modules.py does not know")
    return Module(name, imports, tuple(exports), f"{body}return {{ {', '.join(returned)} }};\n")


def modules_of(name: str, folder: Path = WIDGETS) -> dict[str, Module]:
    """Return the file `<name>.js` and all that it needs, by name, each after those that it imports.

    Raises:
        ModuleError: for an import of what a file does not export, for files that import each other in a circle, and
            as `read_module`.
    """
    modules: dict[str, Module] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise ModuleError(f"a circle of imports: {' -> '.join((*path[path.index(name) :], name))}")
        if name in modules:
            return
        try:
            module = read_module(name, folder)
        except ModuleError as error:
            raise ModuleError(f"{error} ({path[-1]}.js imports it)" if path else str(error)) from None
        for source, names in module.imports.items():
            visit(source, (*path, name))
            if missing := sorted(set(names) - set(modules[source].exports)):
                raise ModuleError(f"{name}.js imports {', '.join(missing)}, which {source}.js does not export")
        modules[name] = module

    visit(name, ())
    return modules


def joined(name: str, folder: Path = WIDGETS) -> str:
    """Return the file `<name>.js` and all that it needs as one ES module with the same default export.

    Raises:
        ModuleError: as `modules_of`.
    """
    functions = "".join(module.as_function for module in modules_of(name, folder).values())
    return (
        f"const parts = {{\n{functions}}};\nconst made = {{}};\n"
        "const use = (name) => (made[name] ??= parts[name](use));\n"
        f"export default use({json.dumps(name)}).default;\n"
    )
