"""Look up every pinned package among the known vulnerabilities, with pip-audit; only a known one makes the exit code 1.

pip-audit stands in `_build/audit`, an environment of its own. Where it cannot be installed, or its advisories (PyPI's)
cannot be reached, one line says so and the exit code is 0: a machine without internet is no vulnerability.
"""

import json
import os
import subprocess
import sys

from checkout import ROOT, SetUpError, run

ENVIRONMENT = ROOT / "_build" / "audit"
PYTHON = ENVIRONMENT / "bin" / "python"
TOOL = "tools/audit_requirements.txt"
LISTS = (
    "requirements.txt",
    "tools/pip_requirements.txt",
    "book/cookbook/requirements.txt",
    "bench/requirements.txt",
)
PIP = ("-m", "pip", "install", "--quiet", "--no-input", "--no-deps", "--disable-pip-version-check", "--retries", "1")
# --no-deps: the lists name every package, so that nothing has to be resolved or downloaded
AUDIT = ("-m", "pip_audit", "--no-deps", "--disable-pip", "--progress-spinner", "off", "--timeout", "10")
MINUTES = 10


class NotDone(Exception):
    """Why the packages could not be looked up, in one line."""


def install():
    """Bring pip-audit into its environment.

    Raises:
        SetUpError: where it cannot be installed.
    """
    if not PYTHON.exists():
        run([sys.executable, "-m", "venv", str(ENVIRONMENT)], "no environment could be made for pip-audit")
    run([str(PYTHON), *PIP, "-r", TOOL], "pip-audit could not be installed", cwd=ROOT)


def look_up(runner):
    """What pip-audit says of the packages in LISTS: one dict each, with `vulns`, or with why it was skipped.

    Raises:
        NotDone: where it gave no answer, or found none of the packages.
    """
    lists = [part for name in LISTS for part in ("--requirement", name)]
    command = [str(PYTHON), *AUDIT, "--format", "json", *lists]
    try:
        done = runner(command, capture_output=True, text=True, cwd=ROOT, timeout=60 * MINUTES, check=False)
        packages = json.loads(done.stdout)["dependencies"]  # the exit code is 1 for a vulnerability and for a failure
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotDone(f"pip-audit did not run to its end ({error})") from error
    except (ValueError, KeyError, TypeError) as error:
        last = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise NotDone(f"pip-audit gave no answer ({last[:200]})") from error
    if not any("vulns" in package for package in packages):
        raise NotDone("the advisory service answers, but knows none of the packages, as a mirror does")
    return packages


def lines(packages):
    """One line for each known vulnerability: package, version, its name, and the versions without it."""
    for package in packages:
        for vulnerability in package.get("vulns", ()):
            fixed = ", ".join(vulnerability.get("fix_versions", ())) or "no version yet"
            yield f"{package['name']} {package['version']}: {vulnerability['id']}, mended in {fixed}"


def main(runner=subprocess.run):
    """Look all packages up and print what was found; return 1 where a vulnerability is known, else 0."""
    try:
        install()
        packages = look_up(runner)
    except (SetUpError, NotDone) as error:
        print(f"No package was looked up: {error}.")
        return 0
    skipped = [package["name"] for package in packages if "vulns" not in package]
    findings = list(lines(packages))
    for line in findings:
        print(line)
    print(f"{len(packages) - len(skipped)} packages looked up, {len(findings) or 'no'} known vulnerabilities.")
    if skipped:
        print(f"Not looked up, for the service does not know them: {', '.join(skipped)}.")
    return int(bool(findings))


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
