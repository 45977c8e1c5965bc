"""The whole book as an EPUB 3, for readers that lay out text themselves: the built pages without what needs a screen.

The text of a page is that of the PDF (one_page.py). Mathematics is the MathML that KaTeX writes beside its own; figures
are those of the light theme; widgets show their static form. Nothing in the file depends on the time of its making.
(Why not ebooklib 0.20: it dates every file of the archive by the clock, replaces the head of each document, in which
the page's rules stand, and asks for the table of contents of EPUB 2, without which epubcheck finds two errors.)
Usage: .venv/bin/python tools/epub.py [--output FILE] [PAGE ...], a page as in _toc.yml; without one, all of them.
"""

import argparse
import re
import sys
import uuid
import zipfile
from html import escape
from pathlib import Path

import yaml

from cite import address
from one_page import LIFTED, STYLE, cover, name_of, not_written, only, parsed, part_name, parts, title_of
from pdf import about

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "_build" / "html"
OUTPUT = ROOT / "_build" / "epub" / "mixed-precision-bit-by-bit.epub"
SHEET = Path(__file__).with_name("epub.css")
KINDS = {".webp": "image/webp", ".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg"}
DRAWN = ".katex-html"  # what stands beside the MathML of a formula, and needs KaTeX's fonts
# controls, which do nothing here, and attributes that XHTML does not know
CONTROLS = "button, input, select, textarea"
OLD = {"border", "valign", "halign", "decoding"}
CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>
"""
XHTML = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en" xml:lang="en">
<head><meta charset="utf-8"/><title>{title}</title><link rel="stylesheet" href="epub.css"/>{style}</head>
<body>
{body}
</body></html>
"""
PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="en">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">urn:uuid:{identifier}</dc:identifier>
<dc:title>{title}</dc:title>
<dc:language>en</dc:language>
{creators}
<dc:description>{abstract}</dc:description>
<dc:date>{date}</dc:date>
<dc:rights>Text: CC BY 4.0. Code: BSD-3-Clause.</dc:rights>
<meta property="dcterms:modified">{date}T00:00:00Z</meta>
<meta property="schema:accessMode">textual</meta>
<meta property="schema:accessMode">visual</meta>
<meta property="schema:accessModeSufficient">textual</meta>
<meta property="schema:accessibilityFeature">MathML</meta>
<meta property="schema:accessibilityFeature">alternativeText</meta>
<meta property="schema:accessibilityFeature">tableOfContents</meta>
<meta property="schema:accessibilityHazard">none</meta>
</metadata>
<manifest>
{manifest}
</manifest>
<spine>
{spine}
</spine>
</package>
"""


def tidy(soup):
    """Bring the text of a chapter into what XHTML allows, and drop what serves a screen alone."""
    for fold in soup.select("details.hide"):  # code and output that a page folds
        fold.summary.decompose()
        fold.name, fold.attrs = "div", {}
    for paragraph in soup.find_all("p"):
        if paragraph.details:
            paragraph.name = "div"
    for element in soup.select(CONTROLS):
        element.name = "span"
        element.attrs = {key: value for key, value in element.attrs.items() if key in {"class", "id"}}
    for element in soup.find_all(True):
        for key in [key for key in element.attrs if key in OLD or key.startswith("data-")]:
            del element[key]
        if element.get("role") == "doc-biblioentry":  # withdrawn in DPUB-ARIA 1.1
            del element["role"]
    for span in soup.select(".katex-mathml, .katex"):
        span.unwrap()


def document(page, docname, docnames, site=""):
    """A built page as an XHTML document, and the pictures that it shows: paths below the folder of the pages."""
    name, names = name_of(docname), {name_of(other) for other in docnames}
    soup = parsed(page, docname, docnames, site=site, html="", without=[DRAWN])
    tidy(soup)
    pictures = [image["src"].lstrip("/") for image in soup.find_all("img")]
    for image, picture in zip(soup.find_all("img"), pictures, strict=True):
        image["src"] = f"images/{Path(picture).name}"
    for link in soup.find_all("a", href=re.compile("^#")):
        target, _, place = link["href"][1:].partition("--")
        if target in names - {name}:
            link["href"] = f"{target}.xhtml" + (f"#{target}--{place}" if place else "")
    rules = "".join(LIFTED.sub(f"{name}-mp-style-", text) for text in STYLE.findall(page))
    style = f"<style>{escape(rules, quote=False)}</style>" if rules else ""
    body = f'<section class="mp-chapter" id="{name}">\n{soup.decode(formatter="minimal")}\n</section>\n'
    return XHTML.format(title=escape(title_of(page)), style=style, body=body), pictures


def contents(groups, titles):
    """The table of contents that a reader shows: parts, and in them their pages."""

    def item(name, text, inside=""):
        return f'<li><a href="{name}.xhtml">{escape(text)}</a>{inside}</li>'

    rows = []
    for caption, names in groups:
        leaves = [(name_of(name), titles[name]) for name in names]
        if not caption:
            rows += [item(*leaf) for leaf in leaves]
            continue
        head = leaves.pop(0) if names[0].endswith("/index") else (part_name(caption), caption)
        inside = f"<ol>{''.join(item(*leaf) for leaf in leaves)}</ol>" if leaves else ""
        rows.append(item(*head, inside))
    return f'<nav epub:type="toc" id="toc"><h1>Contents</h1><ol>{"".join(rows)}</ol></nav>'


def package(facts, title, files, order):
    """The package document: what the book is, its files, and the order of reading."""

    def manifest_item(name):
        if name.endswith(".xhtml"):
            kind, marks = "application/xhtml+xml", [word for word in ("math", "svg") if f"<{word} " in files[name]]
            marks = ["mathml" if word == "math" else word for word in marks] + ["nav"] * (name == "nav.xhtml")
        else:
            kind, marks = "text/css" if name.endswith(".css") else KINDS[Path(name).suffix], []
        properties = f' properties="{" ".join(marks)}"' if marks else ""
        return f'<item id="{identity(name)}" href="{name}" media-type="{kind}"{properties}/>'

    authors = [author.get("name") or f"{author['given-names']} {author['family-names']}" for author in facts["authors"]]
    return PACKAGE.format(
        identifier=uuid.uuid5(uuid.NAMESPACE_URL, f"{title} {facts['version']}"),
        title=escape(title),
        creators="\n".join(f"<dc:creator>{escape(author)}</dc:creator>" for author in authors),
        abstract=escape(facts["abstract"].strip()),
        date=facts["date-released"],
        manifest="\n".join(map(manifest_item, files)),
        spine="\n".join(f'<itemref idref="{identity(name)}"/>' for name in order),
    )


def identity(name):
    """A file's name as an XML id."""
    return "f-" + re.sub(r"[^\w.-]", "-", name)


def book(built, wanted=(), site=""):
    """The files of the book, in order: {path in the folder `book`: text or bytes}."""
    title = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["title"]
    facts = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    groups = only(parts(yaml.safe_load((ROOT / "_toc.yml").read_text("utf8"))), wanted)
    docnames = [name for _, names in groups for name in names]
    pages = {name: Path(built, f"{name}.html").read_text("utf8") for name in docnames}
    titles = {name: title_of(page) for name, page in pages.items()}
    lines = about({"site": site} if site else {})
    files = {"cover.xhtml": XHTML.format(title=escape(title), style="", body=cover(title, lines))}
    files["nav.xhtml"] = XHTML.format(title="Contents", style="", body=contents(groups, titles))
    pictures = []
    for caption, names in groups:
        if caption and not names[0].endswith("/index"):
            body = f'<section class="mp-opening"><h1>{escape(caption)}</h1></section>'
            files[f"{part_name(caption)}.xhtml"] = XHTML.format(title=escape(caption), style="", body=body)
        for name in names:
            files[f"{name_of(name)}.xhtml"], shown = document(pages[name], name, pages.keys(), site)
            pictures += shown
    order = list(files)
    files["epub.css"] = SHEET.read_text("utf8")
    files |= {f"images/{Path(path).name}": Path(built, path).read_bytes() for path in pictures}
    return {"content.opf": package(facts, title, files, order), **files}


def write(files, path, date):
    """Pack the files; the kind of the archive comes first and is not compressed (EPUB 3.3, OCF ZIP container).

    Whoever reads finds the old archive or the whole new one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    stamp = (*map(int, str(date).split("-")), 0, 0, 0)

    def add(archive, name, data, method=zipfile.ZIP_DEFLATED):
        archive.writestr(zipfile.ZipInfo(name, stamp), data, compress_type=method, compresslevel=9)

    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with zipfile.ZipFile(unfinished, "w") as archive:
            add(archive, "mimetype", "application/epub+zip", zipfile.ZIP_STORED)
            add(archive, "META-INF/container.xml", CONTAINER)
            for name, data in files.items():
                add(archive, f"book/{name}", data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def main(arguments):
    """Write the EPUB and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("pages", nargs="*", help="pages as in _toc.yml; all of them without one")
    options = parser.parse_args(arguments)
    if not (BUILT / "index.html").exists():
        print(f"{BUILT} holds no built book; run `make book` first", file=sys.stderr)
        return 1
    try:
        files = book(BUILT, options.pages, address().get("site", ""))
        write(files, options.output, yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))["date-released"])
    except (ValueError, OSError) as error:
        print(not_written(error, options.output), file=sys.stderr)
        return 1
    count = sum(name.endswith(".xhtml") for name in files)
    print(f"{options.output}: {count} documents, {options.output.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
