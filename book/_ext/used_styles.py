"""The theme's style sheets without the rules for what no page shows: more than half of them.

A rule stays if each class and id that its selector asks for occurs in a built page, or as a word in a script, which may
set it later. Selectors that ask for neither stay, and so does all that stands inside :not(...) and its like. The book's
own sheets, whose widgets put names of classes together, only lose their comments. Gzipped, this takes 47 of the 147 kB
from a page's text, sheets and scripts.
"""

import re
import zlib

import tinycss2

from lean_text import LICENCE, lean_style, lean_tokens

OWN = re.compile(r"book[^/]*\.css|widgets/.*")
NAMES = re.compile(r'\b(?:class|id)="([^"]*)"')
INLINE_SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)
WORD = re.compile(r"[\w-]+")
BEGINNING = re.compile(r"([\w-]{2,}-)[$\"'`]")  # "bs-" + name, `bs-${name}`
NESTED = {"media", "supports", "layer", "container"}
LINK = re.compile(r'((?:\.\./)*_static/([^"?]+\.css))(?:\?v=[0-9a-f]*)?"')


class Used:
    """The names of classes and ids that HTML texts show or that scripts may set."""

    def __init__(self, pages, scripts):
        self.words, beginnings = set(), set()
        for page in pages:
            for names in NAMES.findall(page):
                self.words.update(names.split())
        for script in (*scripts, *(text for page in pages for text in INLINE_SCRIPT.findall(page))):
            self.words.update(WORD.findall(script))
            beginnings.update(BEGINNING.findall(script))
        self.beginnings = tuple(beginnings)

    def __contains__(self, name):
        return name in self.words or name.startswith(self.beginnings)


def asked_for(selector):
    """The classes and ids that a selector asks for, given as tokens; what stands in :not(...) is not asked for."""
    before = None
    for token in selector:
        if token.type == "hash" or (token.type == "ident" and before == "."):
            yield token.value
        before = token.value if token.type == "literal" else None


def alternatives(prelude):
    """The selectors of a list, each as tokens."""
    found = [[]]
    for token in prelude:
        if token == ",":
            found.append([])
        else:
            found[-1].append(token)
    return found


def lean_rule(rule, used):
    """The text of a rule without unused selectors, or "" if none is left."""
    if rule.type == "qualified-rule":
        kept = [part for part in alternatives(rule.prelude) if all(name in used for name in asked_for(part))]
        lean_tokens(rule.content)
        selectors = ",".join(tinycss2.serialize(part).strip() for part in kept)
        return f"{selectors}{{{tinycss2.serialize(rule.content).strip()}}}\n" if kept else ""
    if rule.type == "at-rule" and rule.content is not None and rule.lower_at_keyword in NESTED:
        rules = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
        inner = "".join(lean_rule(inner, used) for inner in rules)
        return f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{inner}}}\n" if inner else ""
    return rule.serialize() + "\n"


def licences(text):
    """The comments of a style sheet that name a licence."""
    rules = tinycss2.parse_stylesheet(text, skip_whitespace=True)
    return [rule.serialize() for rule in rules if rule.type == "comment" and LICENCE.search(rule.value)]


def lean_sheet(text, used):
    """A style sheet without the rules that no page needs and without comments, those of its licences first."""
    rules = tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True)
    return "".join([*(f"{comment}\n" for comment in licences(text)), *(lean_rule(rule, used) for rule in rules)])


def checksum(path):
    """What stands after ?v= in a link, so that a browser does not take an older file: Sphinx's own form."""
    return f"{zlib.crc32(path.read_bytes()):08x}"


def stamp(page, static):
    """The HTML of a page with the checksums of its style sheets as they are now."""

    def link(found):
        path = static / found[2]
        return f'{found[1]}?v={checksum(path)}"' if path.is_file() else found[0]

    return LINK.sub(link, page)


def write(static):
    """Shorten every style sheet in the built `_static` folder, and tell the pages."""
    pages = {path: path.read_text("utf8") for path in static.parent.rglob("*.html") if static not in path.parents}
    used = Used(pages.values(), [path.read_text("utf8") for path in static.rglob("*.js")])
    for path in static.rglob("*.css"):
        text = path.read_text("utf8")
        own = OWN.fullmatch(path.relative_to(static).as_posix())
        path.write_text(lean_style(text) if own else lean_sheet(text, used), "utf8")
    for path, page in pages.items():
        path.write_text(stamp(page, static), "utf8")
