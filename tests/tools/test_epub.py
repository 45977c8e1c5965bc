"""The EPUB: what a page becomes, and the archive around it (tools/epub.py)."""

import zipfile
from xml.etree import ElementTree

import pytest

import epub
import pdf
from built_page import DOCNAMES
from built_page import PAGE as OTHER

X = "{http://www.w3.org/1999/xhtml}"
MORE = """<p>see <details><summary>2 tests</summary>a</details></p>
<span class="katex"><span class="katex-mathml"><math xmlns="http://www.w3.org/1998/Math/MathML"><mi>x</mi></math></span>
<span class="katex-html" aria-hidden="true"><svg viewBox="0 0 1 1"></svg>x</span></span>
<details class="hide above-input"><summary><p>Show code</p></summary><pre>1 &lt; 2</pre></details>
<button type="button" class="b" aria-pressed="true">press</button><table border="1"><tr><td>&nbsp;1</td></tr></table>
</section></article>"""
PAGE = OTHER.replace("</section></article>", MORE)


@pytest.fixture(scope="module")
def made():
    """The page of Bits as a document of the EPUB, and its pictures."""
    return epub.document(PAGE, "book/numbers/bits", DOCNAMES)


def test_links_lead_to_the_files_of_other_pages(made):
    links = {link.text: link.get("href") for link in ElementTree.fromstring(made[0].encode()).iter(f"{X}a")}
    assert links == {
        "here": "#numbers-bits--by-hand",
        "start": "intro.xhtml",
        "part": "numbers-index.xhtml#numbers-index--goals",
        "far": "https://a.example/x",
    }


def test_pictures_stand_beside_the_pages_and_are_named(made):
    text, pictures = made
    assert pictures == ["_images/a.webp"]
    image = ElementTree.fromstring(text.encode()).find(f".//{X}img")
    assert image.get("src") == "images/a.webp"


def test_mathematics_is_mathml_alone(made):
    root = ElementTree.fromstring(made[0].encode())
    assert [len(list(math)) for math in root.iter("{http://www.w3.org/1998/Math/MathML}math")] == [1]
    assert "katex" not in made[0]
    assert "<svg" not in made[0]


def test_what_xhtml_does_not_allow_is_gone_and_its_text_stays(made):
    root = ElementTree.fromstring(made[0].encode())
    assert [name for name in ("button", "p//details", "summary//p") if root.find(f".//{X}" + name)] == []
    parents = {child: parent for parent in root.iter() for child in parent}
    assert {parents[fold].tag for fold in root.iter(f"{X}details")} <= {f"{X}div", f"{X}section"}
    assert "Show code" not in made[0]
    assert "1 &lt; 2" in made[0]
    assert "press" in made[0]
    assert "border=" not in made[0]
    assert ".numbers-bits-mp-style-1{color:red!important}" in made[0]


def test_the_contents_name_parts_and_their_pages():
    groups = [(None, ["book/intro"]), ("Numbers", ["book/numbers/index", "book/numbers/bits"]), ("Last", ["book/a"])]
    titles = {"book/intro": "Start", "book/numbers/index": "Numbers", "book/numbers/bits": "Bits & more", "book/a": "A"}
    text = epub.contents(groups, titles)
    assert '<li><a href="numbers-index.xhtml">Numbers</a><ol><li><a href="numbers-bits.xhtml">Bits &amp; more' in text
    assert '<li><a href="part-last.xhtml">Last</a><ol><li><a href="a.xhtml">A' in text


def test_the_archive_begins_with_its_kind_and_is_the_same_each_time(tmp_path):
    files = {"content.opf": "<package/>", "images/a.webp": b"1"}
    for name in ("one.epub", "two.epub"):
        epub.write(files, tmp_path / name, "2026-11-20")
    with zipfile.ZipFile(tmp_path / "one.epub") as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert archive.read(first) == b"application/epub+zip"
        assert "book/images/a.webp" in archive.namelist()
    assert (tmp_path / "one.epub").read_bytes() == (tmp_path / "two.epub").read_bytes()


def test_an_archive_that_is_not_finished_leaves_the_old_one(tmp_path):
    path = tmp_path / "book.epub"
    epub.write({"a": "old"}, path, "2026-11-20")
    old = path.read_bytes()
    with pytest.raises(TypeError):
        epub.write({"a": "new", "b": None}, path, "2026-11-20")
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("tool", [epub, pdf])
def test_a_page_that_there_is_not_and_a_folder_that_cannot_be_written_are_one_sentence(
    tool, tmp_path, monkeypatch, capsys
):
    (tmp_path / "index.html").touch()
    monkeypatch.setattr(tool, "BUILT", tmp_path)
    path = tmp_path / "book.out"
    assert tool.main(["--output", str(path), "book/nowhere", "book/intro"]) == 1
    assert capsys.readouterr().err.startswith("There is no page book/nowhere; one is named as in _toc.yml, like book/")
    assert not path.exists()

    def full(*_, **__):
        raise OSError(28, "No space left on device", "x")

    monkeypatch.setattr(tool, "write", full)
    monkeypatch.setattr(tool, "book" if tool is epub else "OnePage", lambda *_: {})
    assert tool.main(["--output", str(path)]) == 1
    assert capsys.readouterr().err.endswith("book.out cannot be written: No space left on device: x\n")
