"""A pytest plugin: nbval's kernels are copies of a process that has imported the libraries of the notebooks.

A new kernel takes 3 to 5 s of a core for torch, pandas, matplotlib and transformers, a copy of a process 0.05 s. A copy
knows no name that its notebook has not imported itself; `utils` is not among what it has. `tools/notebooks.py`, which
makes the outputs, starts a new kernel for each notebook.

`python -m pytest -p tests.forked_kernels --nbval ...`
"""

import atexit
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

IMPORTS = (
    "ipykernel.kernelapp",
    "torch",
    "pandas",
    "matplotlib.pyplot",
    "myst_nb.ext.glue",
    "anywidget",
    "datasets",
    "transformers.models.distilbert.modeling_distilbert",
    "transformers.models.llama.modeling_llama",
)


class Kernel:
    """What jupyter_client asks of a kernel's process, which is a child of another one."""

    stdin = stdout = stderr = None

    def __init__(self, pid):
        self.pid, self.returncode = pid, None

    def poll(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            self.returncode = 0  # the true one went to its parent
        return self.returncode

    def wait(self):
        while self.poll() is None:
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class KernelServer:
    """Starts the process at the first kernel; it and its copies end with the tests."""

    def __init__(self):
        self._process, self._lock = None, threading.Lock()

    def launch(self, command, *, env, cwd=None, **_):
        """Start a kernel: in place of `jupyter_client.launcher.launch_kernel`."""
        arguments = command[command.index("ipykernel_launcher") + 1 :]
        with self._lock:
            if self._process is None:
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
                self._process = subprocess.Popen([sys.executable, "-P", __file__], env=env, **pipes)
                atexit.register(self._process.kill)
            order = {"arguments": arguments, "environment": dict(env), "folder": str(cwd or os.getcwd())}
            self._process.stdin.write(json.dumps(order) + "\n")
            pid = self._process.stdout.readline()
        if not pid:
            raise RuntimeError("the process that kernels are copies of has ended; see above why")
        return Kernel(int(pid))


def pytest_configure():
    """Put the copies in the place of new processes."""
    from jupyter_client.provisioning import local_provisioner

    local_provisioner.launch_kernel = KernelServer().launch


def _serve():
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # a kernel whose parent has ended ends by itself
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # as a kernel sets it
    for name in IMPORTS:
        importlib.import_module(name)
    # outside a kernel pandas takes stdout for a terminal at its import, and fits its tables to a width
    sys.modules["pandas"].set_option("display.max_columns", 20)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing is left of a kernel that has ended
    gc.freeze()  # or each copy walks through all of it, half a million objects, and so gets pages of its own
    for line in sys.stdin:
        order = json.loads(line)
        if pid := os.fork():
            os.setpgid(pid, pid)
            print(pid, flush=True)
        else:
            _become_kernel(order)


def _become_kernel(order):
    """Run a kernel as `python -m ipykernel_launcher` does; never returns."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        os.chdir(order["folder"])
        kept = {name: os.environ[name] for name in ("JPY_PARENT_PID", "MPLBACKEND")}
        os.environ.clear()
        os.environ.update(order["environment"] | kept)
        sys.argv = ["ipykernel_launcher", *order["arguments"]]
        from ipykernel import kernelapp

        kernelapp.launch_new_instance()
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve()
