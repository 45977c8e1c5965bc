"""`make audit`: only a known vulnerability fails it, and a lookup that did not happen is never called clean."""

import json
import subprocess
from types import SimpleNamespace

import pytest

import audit
from checkout import SetUpError

SAFE = {"name": "numpy", "version": "2.4.6", "vulns": []}
UNSAFE = {"name": "yarn", "version": "1.0", "vulns": [{"id": "PYSEC-2026-1", "fix_versions": ["1.1", "2.0"]}]}
SKIPPED = {"name": "torch", "skip_reason": "Dependency not found on PyPI and could not be audited"}


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """pip-audit counts as installed: nothing is fetched."""
    monkeypatch.setattr(audit, "install", lambda: None)


def runner(*packages, stdout=None, stderr="", code=0):
    """A `subprocess.run` that gives pip-audit's answer about `packages`, or `stdout` as it is."""
    text = json.dumps({"dependencies": packages, "fixes": []}) if stdout is None else stdout

    def answer(command, **options):
        answer.command = command
        return SimpleNamespace(stdout=text, stderr=stderr, returncode=code)

    return answer


def test_every_list_is_looked_up_as_it_is_pinned():
    fake = runner(SAFE)
    assert audit.main(fake) == 0
    assert [fake.command[n + 1] for n, part in enumerate(fake.command) if part == "--requirement"] == list(audit.LISTS)
    assert {"--no-deps", "--disable-pip"} <= set(fake.command)
    assert all((audit.ROOT / name).is_file() for name in (*audit.LISTS, audit.TOOL))


def test_packages_without_a_known_vulnerability_pass(capsys):
    assert audit.main(runner(SAFE, SAFE)) == 0
    assert capsys.readouterr().out == "2 packages looked up, no known vulnerabilities.\n"


def test_a_known_vulnerability_fails_and_says_what_mends_it(capsys):
    assert audit.main(runner(SAFE, UNSAFE, SKIPPED, code=1)) == 1
    printed = capsys.readouterr().out
    assert "yarn 1.0: PYSEC-2026-1, mended in 1.1, 2.0" in printed
    assert "2 packages looked up, 1 known" in printed


def test_a_package_that_the_service_does_not_know_is_named(capsys):
    assert audit.main(runner(SAFE, SKIPPED)) == 0
    assert "does not know them: torch." in capsys.readouterr().out


@pytest.mark.parametrize(
    "fake",
    [
        pytest.param(runner(SKIPPED), id="a mirror that knows nothing: pip-audit itself calls that clean"),
        pytest.param(runner(stdout="", stderr="Traceback\nConnectionError: no route", code=1), id="no network"),
        pytest.param(runner(stdout="[]"), id="an answer of another form"),
        pytest.param(runner(), id="no packages"),
    ],
)
def test_a_lookup_that_did_not_happen_says_so_and_passes(fake, capsys):
    assert audit.main(fake) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("No package was looked up: ")
    assert printed.count("\n") == 1


def test_a_lookup_that_takes_too_long_says_so_and_passes(capsys):
    def slow(command, **options):
        raise subprocess.TimeoutExpired("pip-audit", options["timeout"])

    assert audit.main(slow) == 0
    assert capsys.readouterr().out.startswith("No package was looked up: ")


def test_a_machine_that_cannot_install_pip_audit_says_so_and_passes(monkeypatch, capsys):
    def refuse():
        raise SetUpError("pip-audit could not be installed: no route")

    monkeypatch.setattr(audit, "install", refuse)
    assert audit.main(runner(UNSAFE, code=1)) == 0
    assert capsys.readouterr().out == "No package was looked up: pip-audit could not be installed: no route.\n"
