"""The source that a module loads and its digest, which says with what code a record or a cached model was made.

Imports are read, not executed, so the digest of a tree can be computed that no interpreter has loaded.
"""

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


def find_loaded(module: str, root: Path = ROOT) -> dict[str, Path]:
    """Return by name the files that `import module` may load from its own top package, the module's own file included.

    All imports below `root` are followed, also those inside functions and the `__init__` of each package on the way. An
    import for type checkers only (`if TYPE_CHECKING:`) loads nothing, and a name that is put together at run time is
    not seen. Raises: ValueError for a module that is not below `root`.
    """
    if _find_file(module, root) is None:
        raise ValueError(f"there is no module {module} in {root.name}/")
    top = module.partition(".")[0]
    loaded: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _find_file(name, root)
        if name in loaded or path is None:  # no module: a function or a class that was imported from one
            continue
        loaded[name] = path
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        imported = _name_imports(_read(path.read_bytes()).imports, package)
        waiting += [name.rpartition(".")[0], *(other for other in imported if other.partition(".")[0] == top)]
    return dict(sorted(loaded.items()))


@functools.cache
def digest(module: str, root: Path = ROOT) -> str:
    """Return 16 hex digits that change with the code of the files of `find_loaded`, and with their names.

    The syntax tree is hashed without docstrings: a comment, a docstring or a line break cannot change a result, so it
    must not repeat a run that takes hours. A name, a number or an import can. Another version of Python may write the
    tree in another way, and then gives another digest.
    """
    sha256 = hashlib.sha256()
    for name, path in find_loaded(module, root).items():
        sha256.update(f"{name}\n{_read(path.read_bytes()).tree}\n".encode())
    return sha256.hexdigest()[:16]


def _find_file(module: str, root: Path) -> Path | None:
    if not module:
        return None
    stem = root.joinpath(*module.split("."))
    for path in (stem / "__init__.py", stem.with_suffix(".py")):
        if path.is_file():
            return path
    return None


class _Source(NamedTuple):
    """What counts of a file: its imports, as (dots, module, names), and the digest of its syntax tree."""

    imports: tuple[tuple[int, str, tuple[str, ...]], ...]
    tree: str


@functools.cache  # of several trees, or several plans, most files are the same
def _read(source: bytes) -> _Source:
    tree = ast.parse(source)
    imports = tuple(_read_imports(tree.body))
    return _Source(imports, hashlib.sha256(ast.dump(_strip_docstrings(tree)).encode()).hexdigest())


def _read_imports(statements: Iterable[ast.AST]) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Yield what statements import, inside them too, as (dots, module, names); `import a.b` has no module."""
    for statement in statements:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from _read_imports(statement.orelse)
            continue
        if isinstance(statement, ast.Import | ast.ImportFrom):
            names = tuple(alias.name for alias in statement.names)
            yield getattr(statement, "level", 0), getattr(statement, "module", None) or "", names
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _read_imports(getattr(statement, part, ()))


def _name_imports(imports: Iterable[tuple[int, str, tuple[str, ...]]], package: str) -> Iterator[str]:
    """Yield the dotted names that a file of `package` may import; some are of functions and classes."""
    for dots, module, names in imports:
        base = module
        if dots:  # from .. import x: one dot is this package, each further dot one above
            above = package.split(".")[: len(package.split(".")) + 1 - dots]
            base = ".".join([*above, *filter(None, [module])])
        if base:
            yield base
        yield from (f"{base}.{name}" if base else name for name in names)


def _strip_docstrings(tree: ast.Module) -> ast.Module:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree
