"""tools/set_up.py and its parts: what is missing is said in one line, and an interrupted set-up is seen."""

import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import threading

import pytest

import browsers
import lint_scripts
import lint_workflows
import npm_packages
import page_assets
import set_up


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """An empty checkout whose pip calls are recorded instead of made."""
    root = tmp_path / "a folder with spaces"
    root.mkdir()
    (root / "requirements.txt").write_text("numpy==1\n")
    (root / "pyproject.toml").write_text("[project]\n")
    (root / set_up.COOKBOOK).parent.mkdir(parents=True)
    (root / set_up.COOKBOOK).write_text("torchao==1\n")
    (root / set_up.PIP_ITSELF).parent.mkdir()
    (root / set_up.PIP_ITSELF).write_text("pip==1\n")
    calls = []
    monkeypatch.setattr(set_up, "ROOT", root)
    monkeypatch.setattr(set_up, "VENV", root / ".venv")
    monkeypatch.setattr(set_up, "PYTHON", root / ".venv" / "bin" / "python")
    monkeypatch.setattr(set_up, "STAMP", root / ".venv" / "stamp.json")
    monkeypatch.setattr(set_up, "pip_install", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(page_assets, "set_up", lambda: None)
    monkeypatch.setattr(lint_scripts, "set_up", lambda: None)
    monkeypatch.setattr(lint_workflows, "set_up", lambda: None)

    def fake_run(command, failure, **options):
        if "venv" not in command:
            calls.append(("run", command[1:], options))
            return
        calls.append("venv")
        (root / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
        set_up.PYTHON.touch()

    monkeypatch.setattr(set_up, "run", fake_run)
    return root, calls


def test_a_second_set_up_does_nothing(checkout):
    _, calls = checkout
    set_up.set_up()
    assert calls[0] == "venv"
    calls.clear()
    set_up.set_up()
    assert calls == []


def test_changed_requirements_are_installed_into_the_same_environment(checkout):
    root, calls = checkout
    set_up.set_up()
    calls.clear()
    (root / "requirements.txt").write_text("numpy==2\n")
    set_up.set_up()
    assert "venv" not in calls
    assert ("-r", "requirements.txt") in calls


def test_pip_itself_comes_first_and_another_one_is_installed(checkout):
    root, calls = checkout
    set_up.set_up()
    pip = ("--upgrade", "-r", set_up.PIP_ITSELF)
    assert calls.index(pip) < calls.index(("-r", "requirements.txt"))
    calls.clear()
    (root / set_up.PIP_ITSELF).write_text("pip==2\n")
    set_up.set_up()
    assert pip in calls


def test_what_only_the_recipes_need_goes_into_a_folder_of_its_own(checkout):
    root, calls = checkout
    set_up.set_up()
    own = ("--target", str(root / ".venv" / "cookbook"), "-r", set_up.COOKBOOK)
    assert [call for call in calls if call[-4:] == own]
    calls.clear()
    (root / set_up.COOKBOOK).write_text("torchao==2\n")
    set_up.set_up()
    assert [call for call in calls if call[-4:] == own]


def test_what_is_used_most_is_compiled_once_it_is_there_whatever_the_shell_says(checkout, monkeypatch):
    _, calls = checkout
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("KEPT", "1")
    set_up.set_up()
    compiled = [call for call in calls if call[0] == "run"]
    assert sorted(command for _, command, _ in compiled) == sorted(
        ["-c", f"import {modules}"] for modules in set_up.USED
    )
    for call in compiled:
        assert calls.index(call) > calls.index(("-r", "requirements.txt"))
    for _, _, options in compiled:
        assert options["env"]["KEPT"] == "1"
        assert "PYTHONDONTWRITEBYTECODE" not in options["env"]


@pytest.mark.parametrize("at", range(len(set_up.USED)))
def test_what_cannot_be_imported_ends_the_set_up_with_its_sentence(checkout, monkeypatch, at):
    run = set_up.run

    def fail_once(command, failure, **options):
        if command[-1] == f"import {set_up.USED[at]}":
            raise set_up.SetUpError(f"{failure}: no module")
        run(command, failure, **options)

    monkeypatch.setattr(set_up, "run", fail_once)
    with pytest.raises(set_up.SetUpError, match="What was installed cannot be imported: no module"):
        set_up.set_up()
    assert set_up.read_stamp() == {}  # the next set-up tries again


def test_an_interrupted_set_up_starts_over(checkout, monkeypatch):
    _, calls = checkout

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(set_up, "pip_install", interrupted)
        with pytest.raises(KeyboardInterrupt):
            set_up.set_up()
    assert set_up.read_stamp() == {}
    calls.clear()
    set_up.set_up()
    assert calls[0] == "venv"


def test_a_moved_checkout_gets_a_new_environment(checkout):
    _, calls = checkout
    set_up.set_up()
    set_up.STAMP.write_text(json.dumps({**set_up.wanted_stamp(), "folder": "/elsewhere"}))
    calls.clear()
    set_up.set_up()
    assert calls[0] == "venv"


def test_an_environment_of_another_checkout_is_not_cleared(checkout, tmp_path):
    other = tmp_path / "other" / ".venv"
    other.mkdir(parents=True)
    (other / "kept").touch()
    set_up.VENV.parent.mkdir(parents=True, exist_ok=True)
    set_up.VENV.symlink_to(other)
    with pytest.raises(set_up.SetUpError, match="remove the link"):
        set_up.set_up()
    assert (other / "kept").exists()
    _, calls = checkout
    assert calls == []


def test_a_broken_stamp_counts_as_none(checkout):
    set_up.set_up()
    set_up.STAMP.write_text("{half a st")
    assert set_up.read_stamp() == {}


def test_missing_venv_module_names_the_package(monkeypatch):
    find = set_up.importlib.util.find_spec
    monkeypatch.setattr(set_up.importlib.util, "find_spec", lambda name: None if name == "ensurepip" else find(name))
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    with pytest.raises(set_up.SetUpError, match=f"apt-get install python{version}-venv"):
        set_up.check_machine()


def test_missing_disk_space_is_measured(monkeypatch):
    usage = set_up.shutil.disk_usage("/")._replace(free=int(1.5e9))
    monkeypatch.setattr(set_up.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(set_up.SetUpError, match=r"1\.5 GB are free here, the set-up needs 4 GB"):
        set_up.check_machine()


def test_an_unsuitable_python_without_another_one_is_named(monkeypatch):
    monkeypatch.setattr(set_up.sys, "version_info", (3, 9, 1, "final", 0))
    monkeypatch.setattr(set_up.shutil, "which", lambda name: None)
    with pytest.raises(set_up.SetUpError, match=r"Python 3\.11, 3\.12 or 3\.13 is missing: python3 here is 3\.9\.1"):
        set_up.use_suitable_python()


def test_a_failed_command_gives_its_last_line():
    with pytest.raises(set_up.SetUpError, match="It did not work: no route"):
        set_up.run([sys.executable, "-c", "import sys; sys.exit('first\\nno route')"], "It did not work")


def katex_archive(folder):
    """A small archive with the layout of the npm package."""
    archive = folder / f"katex-{page_assets.VERSION}.tgz"
    with tarfile.open(archive, "w:gz") as package:
        names = ("LICENSE", "dist/katex.min.css", "dist/katex.min.js", "dist/fonts/A.woff2", "dist/fonts/A.ttf")
        for name in (f"package/{name}" for name in names):
            member = tarfile.TarInfo(name)
            member.size = 3
            package.addfile(member, io.BytesIO(b"abc"))
    return archive


def test_katex_leaves_its_style_sheet_its_fonts_and_its_licence(tmp_path):
    page_assets.unpack(katex_archive(tmp_path), tmp_path / "out")
    files = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert files == ["LICENSE", "fonts/A.woff2", "katex.min.css"]


def test_another_file_than_the_expected_katex_is_refused(tmp_path, monkeypatch):
    package = ("katex", page_assets.VERSION)
    monkeypatch.setattr(npm_packages, "node_folder", lambda: tmp_path)
    monkeypatch.setattr(npm_packages, "run", lambda command, failure, **options: katex_archive(tmp_path))
    with pytest.raises(set_up.SetUpError, match="not the expected file"):
        npm_packages.fetch(*package, page_assets.SHA512, tmp_path)
    digest = hashlib.sha512((tmp_path / f"katex-{page_assets.VERSION}.tgz").read_bytes()).digest()
    monkeypatch.setattr(npm_packages, "run", lambda *arguments, **options: None)
    assert npm_packages.fetch(*package, base64.b64encode(digest).decode(), tmp_path).exists()


def test_the_browser_that_chrome_names_wins(monkeypatch):
    monkeypatch.setenv("CHROME", sys.executable)
    assert browsers.find() == sys.executable


def test_a_chrome_that_is_no_program_is_named(monkeypatch):
    monkeypatch.setenv("CHROME", "/no/such/browser")
    with pytest.raises(set_up.SetUpError, match="CHROME names /no/such/browser, which is not a program here"):
        browsers.set_up()


@pytest.mark.parametrize("missing", [(), ("chromium-headless-shell",)])
def test_debian_s_headless_shell_is_wanted_and_chromium_taken_where_there_is_none(monkeypatch, missing):
    asked = []

    def run(command, failure, **options):
        asked.append(command[-1])
        if command[-1] in missing:
            raise set_up.SetUpError("Unable to locate package")

    monkeypatch.setattr(browsers, "run", run)
    browsers.install_from_debian()
    assert asked == ["update", "chromium-headless-shell", *(["chromium"] if missing else [])]


def test_debian_s_browser_is_installed_while_the_environment_is_made(checkout, monkeypatch):
    begun = threading.Event()
    monkeypatch.setattr(browsers, "set_up_from_debian", begun.set)
    monkeypatch.setattr(browsers, "set_up", lambda: checkout[1].append("browser"))
    monkeypatch.setattr(set_up, "install_packages", lambda: checkout[1].append(begun.wait(30)))
    assert set_up.main(["--browser"]) == 0
    assert checkout[1] == ["venv", True, "browser"]


@pytest.mark.parametrize("unless", ["root", "apt-get", "no browser", "no CHROME"])
def test_debian_s_package_is_tried_only_where_that_may_work_and_helps(monkeypatch, unless):
    asked = []
    monkeypatch.setattr(browsers, "install_from_debian", lambda: asked.append("apt-get"))
    monkeypatch.setattr(browsers.os, "geteuid", lambda: 1000 if unless == "root" else 0)
    monkeypatch.setattr(browsers.shutil, "which", lambda name: None if unless == "apt-get" else name)
    monkeypatch.setattr(browsers, "find", lambda: "chromium" if unless == "no browser" else None)
    monkeypatch.setenv("CHROME", "/no/such/browser" if unless == "no CHROME" else "")
    browsers.set_up_from_debian()
    assert asked == []


def test_where_apt_get_fails_it_says_so_and_leaves_the_rest_to_playwright(monkeypatch, capsys):
    def fail(*arguments, **options):
        raise set_up.SetUpError("apt-get update failed: no network")

    monkeypatch.delenv("CHROME", raising=False)
    monkeypatch.setattr(browsers.os, "geteuid", lambda: 0)
    monkeypatch.setattr(browsers.shutil, "which", lambda name: name)
    monkeypatch.setattr(browsers, "find", lambda: None)
    monkeypatch.setattr(browsers, "run", fail)
    browsers.set_up_from_debian()
    assert capsys.readouterr().out.splitlines()[-1].endswith("no network Trying Playwright's Chromium.")


def test_without_an_environment_playwright_has_no_browser(tmp_path, monkeypatch):
    monkeypatch.setattr(browsers, "PYTHON", tmp_path / "python")
    assert browsers.playwright_chromium() is None


def test_a_browser_that_cannot_be_installed_is_one_sentence(monkeypatch):
    def fail(*arguments, **options):
        raise set_up.SetUpError("no network")

    monkeypatch.delenv("CHROME", raising=False)
    monkeypatch.setattr(browsers, "find", lambda: None)
    monkeypatch.setattr(browsers, "run", fail)
    with pytest.raises(set_up.SetUpError, match=r"need Chromium or Chrome; install one, or set CHROME. \(no network\)"):
        browsers.set_up()


def read_pins(name):
    lines = (set_up.ROOT / name).read_text("utf8").splitlines()
    return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]


def test_requirements_are_exact_and_portable():
    pins = [*read_pins("requirements.txt")]
    both = [*pins, *read_pins(set_up.COOKBOOK), *read_pins(set_up.PIP_ITSELF)]
    assert [pin for pin in both if "==" not in pin or "+" in pin] == []
    names = {pin.split("==")[0] for pin in pins}
    assert names >= {"jupyter-book", "torch", "matplotlib", "ipywidgets", "transformers", "datasets", "nbval"}


def test_jupyterlab_starts_for_root_too_who_is_alone_in_a_container():
    command = ["make", "--silent", "--old-file=set-up", "lab", "PYTHON=echo"]
    done = subprocess.run(command, cwd=set_up.ROOT, capture_output=True, text=True, check=True)
    root = ["--allow-root"] if os.geteuid() == 0 else []
    assert done.stdout.split() == ["-m", "jupyterlab", "--notebook-dir=book", *root]
