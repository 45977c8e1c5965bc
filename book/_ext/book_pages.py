"""Sphinx extension: the head and the text of a page of the theme, and the scripts that stand in all of them."""

import re
from pathlib import Path

import page_images
from lean_text import lean_script

# what sphinx-thebe appends to the text of each page, where no script reads it
THEBE = re.compile(r'<script type="text/x-thebe-config">.*?</script>\s*<script>kernelName = [^<]*</script>', re.DOTALL)
FOLDER = Path(__file__).parent
START, MATHS = FOLDER / "page_start.js", FOLDER / "scrollable_math.js"  # inside each page
MENUS = FOLDER / "page_menus.js"  # a file of the site, in the place of Bootstrap's
CODE = re.compile(r'(<div class="highlight"><pre>)(.*?)(</pre>)', re.DOTALL)
PLAIN = re.compile(r'<span class="[pw]">([^<]*)</span>')
PICTURE = re.compile(  # a chapter's drawing: its address, and the end of its caption
    r'(<div class="cell [^"]*\btag_picture\b.*?<img [^>]*\bsrc=")([^"]+)(".*?<span class="caption-text">.*?)(</span>)',
    re.DOTALL,
)
LINK = ' <a class="mp-picture-link" href="{address}">Open the picture</a>'
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


def link_pictures(body):
    """The HTML of a page whose chapter's picture has a link to its file, to be copied into a talk."""
    return PICTURE.sub(lambda cell: "".join(cell.groups()[:3]) + LINK.format(address=cell[2]) + cell[4], body)


def mend_body(app, pagename, templatename, context, doctree):
    """Correct the text of a page: docutils' citations are no items of its list, and a picture keeps its shape."""
    if "body" in context:
        citations = 'class="citation-list">'
        body = THEBE.sub("", context["body"]).replace(f'<div role="list" {citations}', f"<div {citations}")
        context["body"] = page_images.mend_tags(link_pictures(plain_code(body)))


def name_menus(app, pagename, templatename, context, doctree):
    """Give the arrow beside a page that has pages below it a name: the theme's is an icon alone."""
    make = context.get("generate_toctree_html")
    if make is None:
        return

    def named(*arguments, **options):
        contents = make(*arguments, **options)
        for summary in contents.select("li > details > summary") if contents else ():
            title = summary.find_parent("li").find("a").get_text(strip=True)
            summary["aria-label"] = f"Pages of {title}"
        return contents

    context["generate_toctree_html"] = named


def write_menus(app):
    """Write the script of menus where Sphinx looks for static files of the output."""
    if app.builder.format == "html":
        static = Path(app.outdir, "_static")
        static.mkdir(parents=True, exist_ok=True)
        (static / MENUS.name).write_text(lean_script(MENUS.read_text("utf8")), "utf8")


def setup(app):
    """Connect the steps above, and put the scripts into every page."""
    app.add_js_file(None, body=lean_script(MATHS.read_text("utf8")).strip())
    app.add_js_file(None, body=lean_script(START.read_text("utf8")).strip(), priority=100)  # before any other script
    app.add_js_file(MENUS.name, loading_method="defer")
    app.connect("builder-inited", write_menus)
    app.connect("html-page-context", tidy_head, priority=900)
    app.connect("html-page-context", mend_body)
    app.connect("html-page-context", name_menus, priority=900)  # the theme makes the contents at 500
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
