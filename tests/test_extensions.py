"""The Sphinx extensions in book/_ext: small pages, no repeated scripts, mathematics that fails loudly."""

import io
import json
import re
from types import SimpleNamespace

import pytest
from fontTools.ttLib import TTFont
from PIL import Image, ImageChops, ImageDraw

import book_pages
import book_widgets
import icon_font
import page_images

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


def test_thebe_and_repeated_scripts_are_dropped():
    def script(filename, body=""):
        return SimpleNamespace(filename=filename, attributes={"body": body})

    scripts = [script("a.js"), script(None, "const x"), script("", "const x"), script("sphinx-thebe.js")]
    sheets = ["book.css", "sphinx-thebe.css"]
    context = {"script_files": [*scripts, script(None, "THEBE_JS_URL = 1")], "css_files": sheets}
    book_pages.tidy_head(None, "page", "page.html", context, None)
    assert context["script_files"] == scripts[:2]
    assert context["css_files"] == ["book.css"]


def test_the_page_script_holds_each_part_once_and_joins_them_to_the_widgets_own_module():
    widgets = book_widgets.widget_classes()
    assert "bit_flip" in widgets
    text = book_widgets.script(widgets)
    tables = dict(re.findall(r"^const (PARTS|WIDGETS) = (.*);$", text, re.MULTILINE))
    parts, names = json.loads(tables["PARTS"]), json.loads(tables["WIDGETS"])
    for name, widget in widgets.items():
        assert "\n".join(parts[part] for part in names[name]) == widget.esm_source()


def test_the_script_is_loaded_by_pages_with_a_widget_alone():
    loaded = []
    app = SimpleNamespace(add_js_file=lambda name, **options: loaded.append(name))
    book_widgets.add_script(app, "plain", "page.html", {"body": "<p>text</p>"}, None)
    assert loaded == []
    book_widgets.add_script(app, "play", "page.html", {"body": '<div data-mp-widget="bit_flip">'}, None)
    assert loaded == [book_widgets.SCRIPT]


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
    monkeypatch.setattr(book_pages.logger, "warning", lambda *arguments: warned.append(arguments))
    book_pages.prepare_katex(None)
    assert katex.render_latex(r"\nonsense") == "<span>red</span>"
    assert r"\nonsense" in warned[0]


def test_a_plot_becomes_smaller_and_looks_the_same(tmp_path):
    path = tmp_path / "plot.png"
    plot = Image.new("RGBA", (400, 200), "white")
    ImageDraw.Draw(plot).line([(0, 0), (400, 200)], fill="#0072b2", width=3)
    plot.save(path)
    before = path.stat().st_size
    page_images.shrink(path)
    first = path.read_bytes()
    assert len(first) < before
    with Image.open(path) as small:
        assert ImageChops.difference(small.convert("RGB"), plot.convert("RGB")).getextrema() == ((0, 0),) * 3
    page_images.shrink(path)
    assert path.read_bytes() == first


def test_a_picture_keeps_its_shape_and_waits_for_the_reader():
    tag = '<img alt="A." src="../_images/a.png" style="width: 731px; height: 141px;" />'
    mended = page_images.mend_tags(f"<p>{tag}</p>")
    assert mended == (
        '<p><img loading="lazy" decoding="async" alt="A." src="../_images/a.png" width="731" height="141" /></p>'
    )
    assert page_images.mend_tags(mended) == mended
