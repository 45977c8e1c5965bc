"""The theme's icons without FontAwesome's 800 kB: its font cut down to the glyphs that the built pages use.

The theme (pydata-sphinx-theme) carries the fonts; nothing is added and every icon keeps its look. 1900 rules for
icons that no page shows leave its style sheet as well.
"""

import base64
import io
import re
import shutil
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

SOLID = Path("vendor", "fontawesome", "webfonts", "fa-solid-900.ttf")
SHEET = Path("styles", "pydata-sphinx-theme.css")
# .fa-bars:before,.fa-navicon:before{content:"\f0c9"}
ICON_RULE = re.compile(r'\.fa-[\w-]+:before(?:,\.fa-[\w-]+:before)*\{content:"\\([0-9a-f]{2,4}) ?"\}')
ICON_NAME = re.compile(r"\.fa-([\w-]+):before")
FONT_FACE = re.compile(r"@font-face\{[^}]*Font Awesome[^}]*\}|@font-face\{[^}]*FontAwesome[^}]*\}")
USED_CLASS = re.compile(r"\bfa-([a-z0-9-]+)")
USED_CODE = re.compile(r"\\([ef][0-9a-f]{3})\b|([\ue000-\uf8ff])")
# classes that set a size or a family and no glyph; a family other than solid has no glyph here
STYLES = {"solid", "lg", "sm", "xs", "xl", "2x", "3x", "fw", "spin"}


def theme_static():
    """The folder of the theme's static files, as installed."""
    import pydata_sphinx_theme

    return Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"


def used_names(pages):
    """The names of the icons that a list of HTML texts shows, such as {"bars", "sun"}."""
    names = set()
    for page in pages:
        for classes in re.findall(r'class="([^"]*\bfa[sb]? ?[^"]*)"', page):
            names.update(USED_CLASS.findall(classes))
    return names - STYLES


def split_sheet(sheet, names):
    """Take the rules of unused icons out of a style sheet.

    Returns: the rest of the sheet, and the code points of the icons in `names`.
    """
    codes = set()

    def keep_used(rule):
        if names.isdisjoint(ICON_NAME.findall(rule.group())):
            return ""
        codes.add(int(rule.group(1), 16))
        return rule.group()

    return ICON_RULE.sub(keep_used, sheet), codes


def codes_in(sheets):
    """The code points of the icons that style sheets name themselves, in an escape or as a character."""
    codes = set()
    for sheet in sheets:
        for escape, character in USED_CODE.findall(sheet):
            codes.add(int(escape, 16) if escape else ord(character))
    return codes


def subset_font(path, codes, *, hinting=True):
    """The font with the glyphs of `codes` alone, as the bytes of a WOFF2 file.

    It keeps the date of the font that it comes from: fontTools would write the time of this call into it, and no two
    builds would be the same.
    """
    with TTFont(path, recalcTimestamp=False) as font:
        options = subset.Options(
            layout_features=[], name_IDs=[], notdef_outline=True, bidi_closure=False, hinting=hinting
        )
        cutter = subset.Subsetter(options)
        cutter.populate(unicodes=codes & set(font.getBestCmap()))
        cutter.subset(font)
        font.flavor = "woff2"
        out = io.BytesIO()
        font.save(out)
    return out.getvalue()


def write(static):
    """Write the smaller style sheet into the built `_static` folder and remove the fonts and the script.

    Raises:
        ValueError: where a page names an icon that the theme's solid font does not have.
    """
    theme = theme_static()
    names = used_names(page.read_text("utf8") for page in static.parent.rglob("*.html"))
    sheet, codes = split_sheet((theme / SHEET).read_text("utf8"), names)
    others = [path for path in static.rglob("*.css") if path != static / SHEET and "katex" not in path.name]
    codes |= codes_in([sheet, *(path.read_text("utf8") for path in others)])
    in_font = {name for rule in ICON_RULE.finditer(sheet) for name in ICON_NAME.findall(rule.group())}
    if names - in_font:
        raise ValueError(f"icons that the theme's font does not have: {', '.join(sorted(names - in_font))}")
    font = base64.b64encode(subset_font(theme / SOLID, codes)).decode()
    face = (
        "@font-face{font-family:Font Awesome\\ 6 Free;font-style:normal;font-weight:400 900;font-display:block;"
        f'src:url(data:font/woff2;base64,{font}) format("woff2")}}'
    )
    (static / SHEET).write_text(face + FONT_FACE.sub("", sheet), "utf8")
    shutil.rmtree(static / "vendor" / "fontawesome", ignore_errors=True)
    for unused in {*static.glob("scripts/fontawesome.js*"), *static.rglob("*.map")}:
        unused.unlink()
