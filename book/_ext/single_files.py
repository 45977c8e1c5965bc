"""Sphinx extension: the tools that people take away, each as one file that needs torch and nothing of the book.

A module and the modules of `utils` that it imports become one module, from below: their sources one after the other,
without the imports of each other. The microscope is too large for that to be read, so it is a zip archive that Python
runs: `python microscope.pyz`. The files stand beside the page that describes them, and in the archive of the code.
"""

import ast
import io
import zipfile
from functools import partial
from pathlib import Path

FOLDER = "book/reference"  # where the page of the tools is
MODULES = {
    "dtype_probe.py": "utils.diagnostics.dtype_probe",
    "lost_updates.py": "utils.training.meters",
    "nan_hunter.py": "utils.diagnostics.nan_hunter",
}
PROGRAMS = {"microscope.pyz": "utils.experiments.microscope"}
MAIN = "import runpy\n\nrunpy.run_module({name!r}, run_name='__main__', alter_sys=True)\n"
NOTE = """One file, made of the modules of the book "{title}" that are named below.
Copyright {year}, {author}. License: BSD-3-Clause."""
DATE = (2026, 1, 1, 0, 0, 0)


def path_of(root, module):
    """The file of a module or package of `utils`."""
    path = root.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def own_imports(tree, root):
    """The modules of `utils` that a parsed module imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "utils")
        elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "utils":
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in inner if path_of(root, name).exists()]
            yield from modules or [node.module]


def needed(root, module):
    """A module and all that it imports of `utils`: {module: source}, from below."""
    order, begun = {}, set()

    def visit(name):
        if name in begun:
            return
        begun.add(name)
        source = path_of(root, name).read_text("utf8")
        for other in own_imports(ast.parse(source), root):
            visit(other)
        order[name] = source

    visit(module)
    return order


def is_import(node, own):
    """Whether a statement imports from `utils` (own), or from elsewhere."""
    if isinstance(node, ast.ImportFrom):
        return (node.module.split(".")[0] == "utils") == own
    return isinstance(node, ast.Import) and not own


def refuse(name, tree):
    """Raise ValueError for an import of `utils` in a form that loses its meaning within one file."""
    for node in ast.walk(tree):
        whole = isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "utils" for alias in node.names)
        renamed = is_import(node, own=True) and any(alias.asname for alias in node.names)
        if whole or renamed:
            raise ValueError(f"{name}: one file cannot hold {ast.unparse(node)!r}; write from utils... import name")


def titles(tree):
    """The names that a module defines at its top level."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        for target in [*getattr(node, "targets", []), getattr(node, "target", None)]:
            yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name)) if target else ()


def join(root, module, note):
    """The source of one module that holds `module` and what it needs of `utils`.

    Raises: ValueError where two of them define the same name, or for an import that one file cannot hold.
    """
    imports, bodies, owner, doc = {}, [], {}, ""
    for name, source in needed(root, module).items():
        tree = ast.parse(source)
        refuse(name, tree)
        for title in titles(tree):
            if owner.setdefault(title, name) != name:
                raise ValueError(f"{title} is defined in {owner[title]} and in {name}: one file cannot hold both")
        for node in tree.body:
            if is_import(node, own=False):
                add(imports, node)
        heads = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        body = source.splitlines()[(heads or tree.body[:1])[-1].end_lineno :]
        bodies.append(f"# ---- {name}\n\n\n" + "\n".join(body).strip("\n") + "\n")
        doc = ast.get_docstring(tree, clean=False)  # in the end that of `module`, which is the last one
    head = f'"""{doc.rstrip()}\n\n{note}\n"""\n\n'
    return head + "\n".join(written(imports)) + "\n\n\n" + "\n\n".join(bodies)


def add(imports, node):
    """Note what an import statement imports: {module: names}, None among the names for the module itself."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            imports.setdefault(alias.name, set()).add(None)
    else:
        imports.setdefault(node.module, set()).update(alias.name for alias in node.names)


def written(imports):
    """The lines of these imports: the standard library before torch, modules before their names."""
    lines = [f"import {module}" for module, names in imports.items() if None in names]
    for module, names in imports.items():
        if named := sorted(names - {None}):
            lines.append(f"from {module} import {', '.join(named)}")
    return sorted(lines, key=lambda line: ("torch" in line, line.startswith("from"), line))


def pack(root, module):
    """The bytes of a zip archive that Python runs as `python -m module`."""
    names = set(needed(root, f"{module}.__main__")) | {module}
    packages = {".".join(name.split(".")[:depth]) for name in names for depth in range(1, name.count(".") + 1)}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        parts = {path_of(root, name) for name in names | packages}
        texts = {path.relative_to(root).as_posix(): path.read_text("utf8") for path in sorted(parts)}
        for place, text in {**texts, "__main__.py": MAIN.format(name=module)}.items():
            info = zipfile.ZipInfo(place, DATE)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(info, text)
    return content.getvalue()


def files(root, note):
    """All the tools: {file name: bytes}. `note`: where they come from, a paragraph of their docstrings."""
    made = {name: partial(join, root, module, note) for name, module in MODULES.items()}
    texts = {name: make().encode() for name, make in made.items()}
    return texts | {name: pack(root, module) for name, module in PROGRAMS.items()}


def note_of(config):
    """Where the files come from, of Sphinx's configuration."""
    return NOTE.format(title=config.html_title, year=config.copyright, author=config.author)


def write(app, exception):
    """Write the tools beside their page."""
    if exception is None and app.builder.format == "html" and (Path(app.outdir) / FOLDER).is_dir():
        import utils

        note = note_of(app.config)
        for name, content in files(Path(utils.__path__[0]).parent, note).items():
            Path(app.outdir, FOLDER, name).write_bytes(content)


def setup(app):
    """Connect the step."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
