"""Hide packages and the network from a process, as on a machine that has neither: a folder for PYTHONPATH."""

SOURCE = """
import socket
import sys

HIDDEN = {packages!r}


class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


def refuse(*arguments):
    raise OSError(101, "Network is unreachable")


sys.meta_path.insert(0, Hide())
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
"""


def write_site(folder, packages):
    """Write the sitecustomize.py that hides `packages` into `folder`, and return the folder as text."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(SOURCE.format(packages=tuple(packages)))
    return str(folder)
