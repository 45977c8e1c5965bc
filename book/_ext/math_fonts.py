"""KaTeX's fonts with the characters alone that formulas show in them, each inside a style sheet of its own.

A font that arrives after the text moves the lines that it stands in. A style sheet does not: a browser paints nothing
before it is there, and a font inside it (`data:`) is there with it. A page links those that its own formulas use.
"""

import base64
import functools
import itertools
import re
from collections import defaultdict
from pathlib import Path

import soupsieve
import tinycss2
from bs4 import BeautifulSoup, NavigableString

from icon_font import subset_font

FOLDER = Path("vendor", "katex")
SHEET = "katex.min.css"
FACE = re.compile(r"@font-face\{([^}]*)\}")
FILE = re.compile(r"url\(fonts/([\w-]+)\.woff2\)")
TALL = re.compile(r"_Size\d")  # brackets and sums of two lines and more, which need no fitting to pixels
START = re.compile(r'<span class="katex-html"')
CLASS = re.compile(r"\.([\w-]+)")
SPAN = re.compile(r"<(/?)span\b[^>]*>")
LINK = re.compile(r'<link [^>]*href="((?:\.\./)*_static/vendor/katex/)katex\.min\.css[^>]*>')
FAMILY, STYLE, WEIGHT = PROPERTIES = ("font-family", "font-style", "font-weight")
USUAL = {STYLE: "normal", WEIGHT: "400"}
NAMED = {"bold": "700", "normal": "400"}  # weights


def formulas(page):
    """The shown half of each formula in the HTML of a page, as text; to parse whole pages would take 7 s a build."""
    for start in START.finditer(page):
        depth = 0
        for tag in SPAN.finditer(page, start.start()):
            depth += -1 if tag[1] else 1
            if depth == 0:
                yield page[start.start() : tag.end()]
                break


def declared(content):
    """What a list of declarations says of the font: {property: value}, its family without a generic one."""
    properties = {}
    for item in tinycss2.parse_blocks_contents(content, skip_comments=True, skip_whitespace=True):
        if item.type != "declaration" or item.name not in {"font", *PROPERTIES}:
            continue
        words = [token.value for token in item.value if token.type in {"ident", "string", "number"}]
        if item.name == "font":  # "normal 1.21em KaTeX_Main, Times New Roman, serif"
            properties |= {**USUAL, FAMILY: next(word for word in words if str(word).startswith("KaTeX_"))}
        else:
            properties[item.name] = f"{words[0]:g}" if isinstance(words[0], float) else str(words[0])
    if WEIGHT in properties:
        properties[WEIGHT] = NAMED.get(properties[WEIGHT], properties[WEIGHT])
    return properties


def faces(sheet):
    """The fonts of a style sheet: {name of the file: {property: value}}."""
    return {FILE.search(face[1])[1]: {**USUAL, **declared(face[1])} for face in FACE.finditer(sheet)}


def font_rules(sheet):
    """The rules of a style sheet that choose a font, what is no element left out.

    Returns: a list of (selector, the classes without which it finds nothing, {property: value}).
    """
    rules = []
    for rule in tinycss2.parse_stylesheet(sheet, skip_comments=True, skip_whitespace=True):
        if rule.type == "qualified-rule" and (properties := declared(rule.content)):
            parts = [part for part in tinycss2.serialize(rule.prelude).split(",") if ":" not in part]
            rules += [(soupsieve.compile(part.strip()), set(CLASS.findall(part)), properties) for part in parts]
    return rules


class Fonts:
    """Which characters a formula shows in which font, given KaTeX's style sheet."""

    def __init__(self, sheet):
        self.faces, self.rules = faces(sheet), font_rules(sheet)
        self.characters = functools.cache(self.characters)  # pages repeat their formulas

    def named(self, family, style, weight):
        """The fonts that stand for a choice; where there is none of its style and weight, all of the family."""
        same = {name for name, face in self.faces.items() if face[FAMILY] == family}
        exact = {name for name in same if (self.faces[name][STYLE], self.faces[name][WEIGHT]) == (style, weight)}
        return exact or same

    def characters(self, formula):
        """The characters of a formula by the name of the font: {name: {code point}}."""
        soup = BeautifulSoup(f'<span class="katex">{formula}</span>', "html.parser")
        classes = {name for element in soup.find_all(class_=True) for name in element["class"]}
        values_of = defaultdict(lambda: defaultdict(set))  # of an element: where two rules disagree, both count
        for selector, needed, values in self.rules:
            for element in selector.select(soup) if needed <= classes else ():
                for key, value in values.items():
                    values_of[id(element)][key].add(value)
        characters = defaultdict(set)
        for text in soup.find_all(string=True):
            if type(text) is NavigableString and text.strip():
                lines = [values_of[id(element)] for element in text.parents if id(element) in values_of]
                family, style, weight = (next(line[key] for line in lines if line[key]) for key in PROPERTIES)
                for choice in itertools.product(family, style, weight):
                    for name in self.named(*choice):
                        characters[name].update(map(ord, text))
        return characters


def face_rule(face, font):
    """The rule for a font, given what it says of itself and its bytes."""
    source = f'url(data:font/woff2;base64,{base64.b64encode(font).decode()}) format("woff2")'
    return "@font-face{" + ";".join(f"{key}:{face[key]}" for key in PROPERTIES) + f";src:{source}}}\n"


def with_links(page, names):
    """The HTML of a page with the style sheets of these fonts in front of KaTeX's own."""

    def link(link_tag):
        tags = [f'<link rel="stylesheet" type="text/css" href="{link_tag[1]}fonts/{name}.css" />' for name in names]
        return "\n    ".join([*tags, link_tag[0]])

    return LINK.sub(link, page, count=1)


def write(static):
    """Put the fonts that pages use into style sheets below `_static`, link these, and remove the fonts' own files."""
    folder = static / FOLDER
    for older in folder.glob("fonts/*.css"):
        older.unlink()
    sheet = (folder / SHEET).read_text("utf8")
    fonts, used = Fonts(sheet), defaultdict(set)
    for path in sorted(static.parent.rglob("*.html")):
        if static in path.parents:
            continue
        page, names = path.read_text("utf8"), set()
        for formula in formulas(page):
            for name, codes in fonts.characters(formula).items():
                used[name] |= codes
                names.add(name)
        if names:
            path.write_text(with_links(page, sorted(names)), "utf8")
    for name, face in fonts.faces.items():
        path = folder / "fonts" / f"{name}.woff2"
        if name in used:
            font = subset_font(path, used[name], hinting=not TALL.search(name))
            path.with_suffix(".css").write_text(face_rule(face, font), "utf8")
        path.unlink()
    (folder / SHEET).write_text(FACE.sub("", sheet), "utf8")
