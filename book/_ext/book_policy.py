"""Sphinx extension: a content security policy in each page, so strict that only the book's own files and text run.

It stands in the page, not in a server's header, so that it also holds from file:// and on any host. Nothing in it is
"unsafe": an inline script or style sheet is allowed by its hash, taken when all pages are written. Attributes `style`,
which Sphinx and KaTeX set by the hundred, become classes of a sheet in the page. Regular expressions change the few
places that have to change: Beautiful Soup would write every page anew, in 8 s, and none would come out byte for byte.
"""

import base64
import hashlib
import html
import re
from pathlib import Path

import tinycss2
from sphinx.errors import ExtensionError

SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.DOTALL)
STYLE = re.compile(r"<style\b[^>]*>(.*?)</style>", re.DOTALL)
IS_DATA = re.compile(r'\btype="(?!module"|text/javascript")')  # which the policy does not concern
# what is no tag, then a tag; a value in quotes may hold a ">"
PIECE = re.compile(r"""<!--.*?-->|<(script|style)\b.*?</\1>|<[a-zA-Z](?:[^>"']|"[^"]*"|'[^']*')*>""", re.DOTALL)
ATTRIBUTE = re.compile(r'\sstyle="([^"]*)"')
CLASS = re.compile(r'\sclass="([^"]*)"')
HANDLER = re.compile(r'\son\w+="[^"]*"|\s(?:href|src|action)="\s*javascript:')
PRINT = ' onclick="window.print()"'
PRINT_SCRIPT = 'addEventListener("click", ({ target }) => target.closest("[data-mp-print]") && print());'
NAME = "mp-style"
# Firefox fetches the next page ahead, as a thing of no kind that the policy allows, and calls the refusal an error.
AHEAD = re.compile(r'\s*<link rel="next"(?:[^>"]|"[^"]*")*>')
CHARSET = re.compile(r'<meta charset="[^"]*"\s*/?>', re.IGNORECASE)


def digest(text):
    """The source that allows an inline script or style sheet: Content Security Policy Level 3, section 2.3.1."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def policy(page):
    """The policy of a page: each kind of thing it may load, from the book's own files or as text of this page."""
    inline = [(attributes, text) for attributes, text in SCRIPT.findall(page) if "src=" not in attributes]
    scripts = [text for attributes, text in inline if not IS_DATA.search(attributes)]
    sources = {
        "default-src": ["'none'"],
        "script-src": ["'self'", *map(digest, scripts)],
        "style-src": ["'self'", *map(digest, STYLE.findall(page))],
        "img-src": ["'self'", "data:"],  # the theme's sheets hold small pictures
        "font-src": ["'self'", "data:"],  # the icons, see icon_font.py
        "connect-src": ["'self'"],  # the page for a lost address asks where the site begins
        "form-action": ["'self'"],
        "base-uri": ["'self'"],
    }
    return "; ".join(f"{kind} {' '.join(dict.fromkeys(allowed))}" for kind, allowed in sources.items())


def important(style):
    """The declarations of an attribute `style`, as strong in a sheet as they were in the tag."""
    declarations = tinycss2.parse_blocks_contents(style, skip_comments=True, skip_whitespace=True)
    wrong = [item for item in declarations if item.type != "declaration"]
    if wrong:
        raise ValueError(f"not a list of declarations: style={style!r}")
    return ";".join(f"{item.name}:{tinycss2.serialize(item.value).strip()}!important" for item in declarations)


def lift_styles(page):
    """The HTML of a page with a class for each attribute `style`, and at the end of its head a sheet of those classes.

    Raises: ValueError for an attribute that is not a list of declarations.
    """
    names = {}

    def lift(piece):
        tag = piece[0]
        match = None if piece[1] or tag.startswith("<!--") else ATTRIBUTE.search(tag)
        if not match:
            return tag
        name = names.setdefault(html.unescape(match[1]), f"{NAME}-{len(names) + 1}")
        tag = tag[: match.start()] + tag[match.end() :]
        if CLASS.search(tag):
            return CLASS.sub(lambda classes: f' class="{classes[1]} {name}"', tag, count=1)
        return re.sub(r"^<[^\s/>]+", lambda start: f'{start[0]} class="{name}"', tag)

    lifted = PIECE.sub(lift, page)
    if not names:
        return page
    rules = "\n".join(f".{name}{{{important(style)}}}" for style, name in names.items())
    return lifted.replace("</head>", f"<style>\n{rules}\n</style>\n</head>", 1)


def handlers(page):
    """What of a page runs without being a script, and no hash allows: attributes like onclick, and javascript:."""
    tags = (piece[0] for piece in PIECE.finditer(page) if not piece[1] and not piece[0].startswith("<!--"))
    return [match[0].strip() for tag in tags for match in HANDLER.finditer(tag)]


def protect(page):
    """The HTML of a page with its policy in front of everything that it concerns.

    Raises: ValueError where the page holds what no policy without "unsafe" allows.
    """
    if "Content-Security-Policy" in page:
        return page
    page = lift_styles(AHEAD.sub("", page).replace(PRINT, " data-mp-print"))
    if events := handlers(page):
        raise ValueError(f"inline handlers, which the content security policy refuses: {', '.join(events)}")
    if not CHARSET.search(page):
        page = f'<meta charset="utf-8" />\n{page.lstrip()}'  # index.html, which only leads on
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy(page)}" />'
    return CHARSET.sub(lambda charset: f"{charset[0]}\n    {meta}", page, count=1)


def write(app, exception):
    """Protect every page, once all of them are as they stay."""
    if exception is not None or app.builder.name != "html":
        return
    static = Path(app.outdir, "_static")
    for path in sorted(Path(app.outdir).rglob("*.html")):
        if static in path.parents:
            continue
        try:
            path.write_text(protect(path.read_text("utf8")), "utf8")
        except ValueError as error:
            raise ExtensionError(f"{path.relative_to(app.outdir)}: {error}") from error


def setup(app):
    """Connect the last step of the build, and the script behind the button that prints."""
    app.add_js_file(None, body=PRINT_SCRIPT)
    app.connect("build-finished", write, priority=990)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
