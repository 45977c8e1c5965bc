"""The JavaScript of the book is read by Node.js and by Biome, and what is wrong in it is found."""

import platform

import pytest

import lint_scripts
from checkout import SetUpError


@pytest.mark.parametrize(
    ("system", "machine", "name"),
    [
        ("Linux", "x86_64", "linux-x64"),
        ("Linux", "aarch64", "linux-arm64"),
        ("Darwin", "arm64", "darwin-arm64"),
        ("Darwin", "x86_64", "darwin-x64"),
    ],
)
def test_a_machine_gets_its_own_build(monkeypatch, system, machine, name):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert lint_scripts.build() == name


def test_a_machine_without_a_build_is_named(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(SetUpError, match=r"no build for .*riscv64"):
        lint_scripts.build()


@pytest.mark.parametrize(
    ("kind", "text", "code"),
    [
        ("module", 'import { b } from "./b.js";\nexport const a = b;\n', 0),
        ("module", 'import { c } from "./b.js";\nexport const a = c;\n', 1),
        ("module", "export const a = ;\n", 1),
        ("script", "const a = 1;\n", 0),
        ("script", "export const a = 1;\n", 1),
    ],
)
def test_node_reads_each_file_as_what_it_is(tmp_path, capfd, kind, text, code):
    (tmp_path / "b.js").write_text("export const b = 1;\n", "utf8")
    (tmp_path / "a.js").write_text(text, "utf8")
    files = [tmp_path / "a.js"]
    assert lint_scripts.read_all(files if kind == "module" else [], files if kind == "script" else []) == code
    assert ("a.js" in capfd.readouterr().err) == bool(code)
