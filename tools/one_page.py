"""The whole book as one HTML page, put together from the built pages: what tools/pdf.py prints.

Each page's text becomes a chapter: its ids get the name of the page in front, and links between pages become links
inside. What only a screen needs leaves: scripts, buttons, the state of widgets, which show their static form.
"""

import re
from html import escape
from pathlib import Path, PurePosixPath
from posixpath import normpath
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup

SHEET = re.compile(r'<link (?=[^>]*rel="stylesheet")[^>]*href="([^"?]+)')
STYLE = re.compile(r"<style>\n(\.mp-style-.*?)</style>", re.DOTALL)  # book_policy.py lifts attributes into it
LIFTED = re.compile(r"\bmp-style-(?=\d)")
ARTICLE = re.compile(r"<article\b.*?</article>", re.DOTALL)
HEADING = re.compile(r"<h1\b.*?</h1>", re.DOTALL)
APART = (
    "script, style, .headerlink, .copybtn, .mp-solved, .mp-plot-dark, .mp-static-note, .mp-script-file,"
    " .mp-answer-show, summary .sd-summary-state-marker"
)
# Names, punctuation and gaps have the colour of all code: 65,000 spans less, each of which a tagged PDF describes.
PLAIN = re.compile(r'<span class="(?:n|nn|p|w)">([^<]*)</span>')
POINTERS = ("for", "aria-labelledby", "aria-describedby", "aria-controls")
BITS = "0" + "01111" + "0000000000"  # the number 1 in float16, on the cover
FIELDS = ["sign"] + ["exponent"] * 5 + ["fraction"] * 10


def parts(toc):
    """The book's parts in order: (caption or None, names of pages), given what _toc.yml holds; the root comes first."""
    groups = [(None, [toc["root"]])]
    for part in toc["parts"]:
        groups.append((part.get("caption"), [name for chapter in part["chapters"] for name in with_sections(chapter)]))
    return groups


def with_sections(chapter):
    """The names of a page in _toc.yml and of the pages below it, in order."""
    yield chapter["file"]
    for section in chapter.get("sections", ()):
        yield from with_sections(section)


def name_of(docname):
    """The name of a chapter inside the one page: "numbers-bits" for "book/numbers/bits"."""
    return docname.removeprefix("book/").replace("/", "-")


def inner(href, docname, docnames, site):
    """Where a link of a page leads in the one page: "#...", a whole address, or None where it leads nowhere.

    A link to the state of a widget ("#bit_flip?code=0x3e00") leads to the widget's page, or nowhere on that page.
    """
    parts_ = urlsplit(href)
    if parts_.scheme:
        return href
    is_state = "?" in parts_.fragment
    place = f"--{unquote(parts_.fragment)}" if parts_.fragment and not is_state else ""
    if not parts_.path:
        if is_state:
            return None
        return f"#{name_of(docname)}{place}"
    path = normpath(str(PurePosixPath(docname).parent / unquote(parts_.path)))
    if path.removesuffix(".html") in docnames:
        return f"#{name_of(path.removesuffix('.html'))}{place}"
    return site + path if site else None


def chapter(page, docname, docnames, **how):
    """The text of a built page as a chapter; `how`: what else `parsed` takes."""
    return (
        f'<section class="mp-chapter" id="{name_of(docname)}">\n{parsed(page, docname, docnames, **how)}\n</section>\n'
    )


def parsed(page, docname, docnames, *, depth=0, site="", html="../html", without=()):
    """What a chapter shows of a built page, as a tree.

    `depth`: by how much its headings sink, so that a chapter lies below its part. `html`: the way from the one page to
    the folder of the pages. `site`: the site's address, or "", where a link to one of its files cannot be kept.
    `without`: selectors of what leaves first, before anything else is looked for.
    """
    name = name_of(docname)
    text = PLAIN.sub(r"\1", LIFTED.sub(f"{name}-mp-style-", ARTICLE.search(page)[0]))
    soup = BeautifulSoup(text, "html.parser")
    for selector in (*without, APART):
        for element in soup.select(selector):
            element.decompose()
    for element in soup.find_all(True):
        if element.name == "details":
            element["open"] = ""
        if re.fullmatch(r"h[1-6]", element.name):
            element.name = f"h{min(6, int(element.name[1]) + depth)}"
        if "data-mp-widget" in element.attrs:
            element["data-mp-ready"] = "printed"
            element.attrs.pop("data-mp-state", None)
        if "id" in element.attrs:
            element["id"] = f"{name}--{element['id']}"
        for pointer in POINTERS:
            if pointer in element.attrs:
                element[pointer] = " ".join(f"{name}--{word}" for word in element[pointer].split())
        if element.name == "img":
            element["src"] = f"{html}/{normpath(str(PurePosixPath(docname).parent / element['src']))}"
            element.attrs.pop("loading", None)  # all pictures are needed at once
        if element.name == "a" and "href" in element.attrs:
            link = inner(element["href"], docname, docnames, site)
            if link is None:
                element.unwrap()
            else:
                element["href"] = link
    return soup


def sheets(pages, html="../html"):
    """The style sheets of all pages as links, each once, and the rules that their heads hold.

    `pages`: {docname: HTML}.
    """
    links, rules = {}, []
    for docname, page in pages.items():
        head = page.partition("</head>")[0]
        for sheet in SHEET.finditer(head):
            links[normpath(str(PurePosixPath(docname).parent / sheet[1]))] = None
        rules += [LIFTED.sub(f"{name_of(docname)}-mp-style-", text) for text in STYLE.findall(head)]
    lines = [f'<link rel="stylesheet" href="{html}/{escape(path)}">' for path in links]
    return "\n".join([*lines, f"<style>{''.join(rules)}</style>"])


def cover(title, about):
    """The first page: the number 1, the title, and lines below it."""
    bits = "".join(f'<span class="mp-bit mp-{field}">{bit}</span>' for bit, field in zip(BITS, FIELDS, strict=True))
    lines = "".join(f"<p>{line}</p>" for line in about)
    name = f'<p class="mp-title">{escape(title)}</p>'
    return f'<div class="mp-cover"><p class="mp-cover-bits">{bits}</p>{name}{lines}</div>\n'


def contents(groups, titles, numbers):
    """The table of contents. `numbers`: the page on which a chapter begins, by its name; others stay empty."""

    def line(name, text):
        return (
            f'<a href="#{name}"><span>{escape(text)}</span><span class="mp-number">{numbers.get(name, "")}</span></a>'
        )

    rows = []
    for caption, docnames in groups:
        if caption and not docnames[0].endswith("/index"):
            rows.append(f'<li class="mp-part">{line(part_name(caption), caption)}</li>')
        for docname in docnames:
            kind = "mp-part" if docname.endswith("/index") or not caption else "mp-page"
            rows.append(f'<li class="{kind}">{line(name_of(docname), titles[docname])}</li>')
    return f'<nav class="mp-contents"><p class="mp-contents-title">Contents</p><ul>{"".join(rows)}</ul></nav>\n'


def part_name(caption):
    """The name of the page that only opens a part."""
    return "part-" + re.sub(r"\W+", "-", caption.lower())


def title_of(page):
    """The title of a built page."""
    heading = BeautifulSoup(HEADING.search(ARTICLE.search(page)[0])[0], "html.parser")
    for link in heading.select(".headerlink"):
        link.decompose()
    return heading.get_text().strip()


def not_written(error, path):
    """Say in one line why there is no book at `path`: a page that there is not, or a file that cannot be written."""
    if isinstance(error, OSError):
        return f"{path} cannot be written: {error.strerror}: {error.filename}"
    return str(error)


def only(groups, wanted):
    """The parts with the wanted pages alone; all of them where none is named.

    Raises: ValueError for a page that there is not.
    """
    if unknown := sorted(set(wanted) - {name for _, names in groups for name in names}):
        chapter = groups[-1][1][-1]
        raise ValueError(f"There is no page {', '.join(unknown)}; one is named as in _toc.yml, like {chapter}.")
    kept = [(caption, [name for name in names if not wanted or name in wanted]) for caption, names in groups]
    return [(caption, names) for caption, names in kept if names]


class OnePage:
    """The book as one page; `html(numbers)` gives it with the numbers of its pages in the contents."""

    def __init__(self, root, built, about, wanted=(), site=""):
        """Read the pages of `built` that _toc.yml in `root` names, or the `wanted` ones of them."""
        config = yaml.safe_load((root / "_config.yml").read_text("utf8"))
        self.title, self.about = config["title"], about
        self.groups = only(parts(yaml.safe_load((root / "_toc.yml").read_text("utf8"))), wanted)
        docnames = [name for _, names in self.groups for name in names]
        pages = {name: Path(built, f"{name}.html").read_text("utf8") for name in docnames}
        self.titles = {name: title_of(page) for name, page in pages.items()}
        self.head = sheets(pages)
        self.body = "".join(self._part(caption, names, pages, site) for caption, names in self.groups)

    def _part(self, caption, names, pages, site):
        """The chapters of a part, after a page with its name where it has no page of its own."""
        opening = ""
        if caption and not names[0].endswith("/index"):
            opening = f'<section class="mp-chapter mp-opening" id="{part_name(caption)}"><h1>{escape(caption)}</h1>'
            opening += "</section>\n"
        chapters = (
            chapter(
                pages[name], name, pages.keys(), depth=int(bool(caption) and not name.endswith("/index")), site=site
            )
            for name in names
        )
        return opening + "".join(chapters)

    def html(self, numbers):
        """The page. `numbers`: the number of the first page of each chapter, by its name."""
        front = cover(self.title, self.about) + contents(self.groups, self.titles, numbers)
        return (
            f'<!doctype html>\n<html lang="en" data-theme="light"><head><meta charset="utf-8">'
            f"<title>{escape(self.title)}</title>\n{self.head}</head>\n"
            f'<body class="mp-printed"><main class="bd-main"><div class="bd-content"><div class="bd-article-container">'
            f'<div class="bd-article">\n{front}{self.body}</div></div></div></main></body></html>\n'
        )
