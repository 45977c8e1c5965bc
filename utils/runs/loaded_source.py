"""The source that a module loads, and a digest of it: what a record or a cached model was made with.

Imports are read, not executed, so the digest of a tree can be computed that no interpreter has loaded.
"""

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def find_loaded(module: str, root: Path = ROOT) -> dict[str, Path]:
    """Return by name the files that `import module` may load of its own top package, itself among them.

    Followed are all imports below `root`, those inside functions and the `__init__` of every package on the way too. An
    import for type checkers alone (`if TYPE_CHECKING:`) loads nothing, and a name that is put together at run time is
    not seen. Raises: ValueError for a module that is not below `root`.
    """
    if _path(module, root) is None:
        raise ValueError(f"there is no module {module} in {root.name}/")
    top = module.partition(".")[0]
    loaded: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _path(name, root)
        if name in loaded or path is None:  # no module: a function or a class that was imported from one
            continue
        loaded[name] = path
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        imported = _imports(_tree(path).body, package)
        waiting += [name.rpartition(".")[0], *(other for other in imported if other.partition(".")[0] == top)]
    return dict(sorted(loaded.items()))


@functools.cache
def digest(module: str, root: Path = ROOT) -> str:
    """Return 16 hex digits that change with what the files of `find_loaded` do, and with their names.

    Hashed is the syntax tree without docstrings: a comment, a docstring and a line break elsewhere cannot change a
    result, so they must not make a run that takes hours be made again. A name, a number or an import can. Another
    version of Python may write the tree in another way, and then gives another digest.
    """
    whole = hashlib.sha256()
    for name, path in find_loaded(module, root).items():
        whole.update(f"{name}\n{ast.dump(_without_docstrings(_tree(path)))}\n".encode())
    return whole.hexdigest()[:16]


def _path(module: str, root: Path) -> Path | None:
    if not module:
        return None
    place = root.joinpath(*module.split("."))
    return next((path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()), None)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def _imports(nodes: Iterable[ast.AST], package: str) -> Iterator[str]:
    """Yield the dotted names that a file of `package` may import; some are of functions and classes."""
    for node in nodes:
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from _imports(node.orelse, package)
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
        yield from _imports(ast.iter_child_nodes(node), package)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree
