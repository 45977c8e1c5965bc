"""The theme's style sheets without the rules for what no page shows: more than half of them.

A rule stays if each class and id that its selector asks for occurs in a built page, or as a word in a script, which may
set it later. Selectors that ask for neither stay, and so does all that stands inside :not(...) and its like. A custom
property (`--pst-color-text`) or an animation stays if a rule, a page or a script names it: half of the theme's
properties were for rules that are gone. The book's own sheets, whose widgets put names of classes together, only lose
their comments. Gzipped, this takes 51 of the 147 kB from a page's text, sheets and scripts.
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


def split_at(separator, tokens):
    """The parts of a list of tokens between the separators: the selectors of a rule, or its declarations."""
    parts = [[]]
    for token in tokens:
        if token == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def custom_property(declaration):
    """The name of the custom property that a declaration, given as tokens, sets; None where it sets another one."""
    first = next((token for token in declaration if token.type != "whitespace"), None)
    return first.value if first is not None and first.type == "ident" and first.value.startswith("--") else None


def blocks(rules):
    """What stands between the braces of each rule, those inside others too: the rule's own list of tokens."""
    for rule in rules:
        if rule.type == "qualified-rule":
            yield rule.content
        elif rule.type == "at-rule" and rule.content is not None and rule.lower_at_keyword in NESTED:
            yield from blocks(tinycss2.parse_rule_list(rule.content))


def read_names(sheets, texts, used):
    """The names that something reads: custom properties, and all words of declarations, which may name an animation.

    Readers are the sheets themselves, other texts, and scripts (`used`). What only an unread property reads is unread.
    """
    waiting, read = {}, {word for text in texts for word in WORD.findall(text)}
    for block in (block for sheet in sheets for block in blocks(tinycss2.parse_stylesheet(sheet))):
        for declaration in split_at(";", block):
            name, (_, *words) = custom_property(declaration), WORD.findall(tinycss2.serialize(declaration)) or ("",)
            if name is None or name in used:
                read.update(words)
            else:
                waiting.setdefault(name, set()).update(words)
    while ready := waiting.keys() & read:
        for name in ready:
            read |= waiting.pop(name)
    return read


def without_unread(sheet, read, used):
    """A style sheet without what nothing reads: custom properties and animations. A rule left with nothing stays."""
    rules = tinycss2.parse_stylesheet(sheet)
    for block in blocks(rules):
        named = [(custom_property(part), part) for part in split_at(";", block)]
        wanted = [part for name, part in named if name is None or name in read or name in used]
        block[:] = tinycss2.parse_component_value_list(";".join(map(tinycss2.serialize, wanted)))
    return tinycss2.serialize(rule for rule in rules if not (name := animation(rule)) or name in read or name in used)


def animation(rule):
    """The name of the animation that a rule describes, or ""."""
    is_one = rule.type == "at-rule" and rule.lower_at_keyword.endswith("keyframes")
    return tinycss2.serialize(rule.prelude).strip() if is_one else ""


def lean_rule(rule, used):
    """The text of a rule without unused selectors, or "" if none is left."""
    if rule.type == "qualified-rule":
        kept = [part for part in split_at(",", rule.prelude) if all(name in used for name in asked_for(part))]
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

    def link(reference):
        path = static / reference[2]
        return f'{reference[1]}?v={checksum(path)}"' if path.is_file() else reference[0]

    return LINK.sub(link, page)


def write(static):
    """Shorten every style sheet in the built `_static` folder, and tell the pages."""
    pages = {path: path.read_text("utf8") for path in static.parent.rglob("*.html") if static not in path.parents}
    used = Used(pages.values(), [path.read_text("utf8") for path in static.rglob("*.js")])
    texts = {path: path.read_text("utf8") for path in static.rglob("*.css")}
    own = {path for path in texts if OWN.fullmatch(path.relative_to(static).as_posix())}
    sheets = {path: lean_style(text) if path in own else lean_sheet(text, used) for path, text in texts.items()}
    theme = [sheet for path, sheet in sheets.items() if path not in own]
    read = read_names(theme, [*pages.values(), *(sheets[path] for path in own)], used)
    for path, sheet in sheets.items():
        path.write_text(sheet if path in own else without_unread(sheet, read, used), "utf8")
    for path, page in pages.items():
        path.write_text(stamp(page, static), "utf8")
