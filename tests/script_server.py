"""A process that has imported the libraries of the recipes, and runs each script in a copy of itself.

Importing transformers and peft takes 10 s, copying a process 0.1 s. Tests that run a script again, or parts of it, use
this; the run whose output is compared with the page starts a Python of its own, as a reader does.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path


class ScriptServer:
    """Starts the process when the first script is run; it ends with the tests."""

    def __init__(self):
        self._process = None

    def run(self, arguments, folder, *, imports, environment, timeout):
        """Run a script with its arguments in a folder, and return what `subprocess.run` would.

        `imports`: the packages that it imports. Raises: subprocess.TimeoutExpired, after `timeout` seconds.
        """
        if self._process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
            command = [sys.executable, "-P", __file__]
            self._process = subprocess.Popen(command, env=environment, start_new_session=True, **pipes)
            atexit.register(self._stop)
        with tempfile.TemporaryDirectory() as outputs:
            order = {"arguments": arguments, "folder": str(folder), "outputs": outputs}
            order |= {"imports": sorted(imports), "environment": environment}
            self._process.stdin.write(json.dumps(order) + "\n")
            if not select.select([self._process.stdout], [], [], timeout)[0]:
                self._stop()
                raise subprocess.TimeoutExpired(arguments, timeout)
            answer = self._process.stdout.readline()
            if not answer:
                self._stop()
                raise RuntimeError(f"the process that imports {', '.join(sorted(imports))} has ended; see above why")
            stdout, stderr = (Path(outputs, name).read_text("utf8") for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(arguments, int(answer), stdout, stderr)

    def _stop(self):
        """End the process and the script that it runs; the next script finds a new one."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _serve():
    for line in sys.stdin:
        order = json.loads(line)
        for name in order["imports"]:
            with contextlib.suppress(ImportError):
                module = importlib.import_module(name)
                getattr(module, "LlamaForCausalLM", None)  # transformers imports its parts when they are asked for
        gc.freeze()  # or each copy walks through all that is imported
        child = os.fork()
        if not child:
            os._exit(_run(order))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(order):
    """Run a script as `python script.py` does, and return its exit code."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    for number, name in ((1, "stdout"), (2, "stderr")):
        with open(f"{order['outputs']}/{name}", "w") as file:
            os.dup2(file.fileno(), number)
    sys.argv = order["arguments"]
    sys.path.insert(0, order["folder"])
    code = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
        if isinstance(code, str):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:  # as Python itself does
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    _serve()
