"""Show the built book on port 8000, or the next free one, of this machine alone.

`python -m http.server` would serve it too, but with a traceback where the port is taken, and on any free port (0) the
browser would not know a reader's progress again, which it keeps by the port. It also has no page for a lost address,
and no word on caching, so that a browser may show a page as it was before the last build.
"""

import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SITE = Path(__file__).resolve().parents[1] / "_build" / "html"
FIRST_PORT, PORTS = 8000, 100


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves the site without a log line for each file, and lets no page grow stale in the browser's cache.

    For an address that leads nowhere it answers with the site's own page, as servers of static sites do.
    """

    def send_error(self, code, message=None, explain=None):
        page = Path(self.directory, "404.html")
        if code != HTTPStatus.NOT_FOUND or not page.is_file():
            super().send_error(code, message, explain)
            return
        content = page.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def end_headers(self):
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *args):
        pass


class QuietServer(ThreadingHTTPServer):
    """Says nothing where a browser hangs up before the answer is out, as one does when a link is followed early."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def open_server(handler):
    """A server on the first free port from 8000 on.

    Raises:
        OSError: where a hundred ports in a row are taken.
    """
    for port in range(FIRST_PORT, FIRST_PORT + PORTS):
        try:
            return QuietServer(("127.0.0.1", port), handler)
        except OSError:
            continue
    raise OSError(f"no port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1} is free")


def main():
    """Serve until Ctrl-C."""
    with open_server(partial(QuietHandler, directory=str(SITE))) as server:
        print(f"The book is at http://127.0.0.1:{server.server_address[1]}/ (Ctrl-C ends this)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
