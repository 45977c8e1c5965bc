"""The source that a module loads and its digest, which says with what code a record or a cached model was made.

Imports are read, not executed, so the digest of a tree can be computed that no interpreter has loaded.
"""

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

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
        imported = _read_imports(_parse(path).body, package)
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
        sha256.update(f"{name}\n{ast.dump(_strip_docstrings(_parse(path)))}\n".encode())
    return sha256.hexdigest()[:16]


def _find_file(module: str, root: Path) -> Path | None:
    if not module:
        return None
    stem = root.joinpath(*module.split("."))
    for path in (stem / "__init__.py", stem.with_suffix(".py")):
        if path.is_file():
            return path
    return None


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def _read_imports(nodes: Iterable[ast.AST], package: str) -> Iterator[str]:
    """Yield the dotted names that a file of `package` may import; some are of functions and classes."""
    for node in nodes:
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from _read_imports(node.orelse, package)
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:  # from .. import x: one dot is this package, each further dot one above
                above = package.split(".")[: len(package.split(".")) + 1 - node.level]
                base = ".".join([*above, *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        yield from _read_imports(ast.iter_child_nodes(node), package)


def _strip_docstrings(tree: ast.Module) -> ast.Module:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree
