"""The book as one page for printing, and what is read from a PDF (tools/one_page.py, tools/pdf.py)."""

from io import BytesIO

from bs4 import BeautifulSoup
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject

import one_page
import pdf
from built_page import DOCNAMES, PAGE


def chapter(**options):
    return BeautifulSoup(one_page.chapter(PAGE, "book/numbers/bits", DOCNAMES, **options), "html.parser")


def test_ids_and_links_of_a_page_lead_inside_the_one_page():
    text = chapter()
    assert text.section["id"] == "numbers-bits"
    assert text.select_one("h2")["id"] == "numbers-bits--by-hand"
    assert text.label["for"] == "numbers-bits--one"
    links = {link.get_text(): link["href"] for link in text.find_all("a")}
    assert links == {
        "here": "#numbers-bits--by-hand",
        "start": "#intro",
        "part": "#numbers-index--goals",
        "far": "https://a.example/x",
    }
    assert "file" in text.get_text()
    links = [link["href"] for link in chapter(site="https://b.example/").find_all("a")]
    assert "https://b.example/_static/formats.csv" in links


def test_a_link_to_the_state_of_a_widget_leads_to_its_page():
    here = "book/numbers/bits"
    assert one_page.inner("../intro.html#bit_flip?code=0x3e00", here, DOCNAMES, "") == "#intro"
    assert one_page.inner("#bit_flip?code=0x3e00", here, DOCNAMES, "") is None


def test_what_only_a_screen_needs_leaves_and_what_is_folded_opens():
    text = chapter()
    assert "gone" not in text.get_text()
    assert "static" in text.get_text()
    assert text.select(".headerlink, script, .mp-plot-dark, [data-mp-state]") == []
    assert text.details.has_attr("open")
    assert str(text.pre) == '<pre>a(<span class="s2">"b"</span></pre>'
    assert text.img["src"] == "../html/_images/a.webp"
    assert not text.img.has_attr("loading")


def test_the_headings_of_a_chapter_sink_below_its_part():
    assert [heading.name for heading in chapter(depth=1).find_all(["h1", "h2", "h3"])] == ["h2", "h3"]
    assert one_page.title_of(PAGE) == "Bits & more"


def test_the_rules_of_two_pages_stay_apart():
    head = one_page.sheets({"book/numbers/bits": PAGE, "book/intro": PAGE.replace("../../", "../")})
    assert head.count("book.css") == head.count("theme.css") == 1
    assert 'href="../html/_static/book.css"' in head
    assert "logo.svg" not in head
    assert ".numbers-bits-mp-style-1{" in head
    assert ".intro-mp-style-1{" in head
    assert chapter().select_one("h2")["class"] == ["numbers-bits-mp-style-1"]


def test_the_pages_below_a_page_follow_it():
    below = [{"file": "c", "sections": [{"file": "d"}]}, {"file": "e"}]
    toc = {"root": "a", "parts": [{"caption": "Part", "chapters": [{"file": "b", "sections": below}, {"file": "f"}]}]}
    assert one_page.parts(toc) == [(None, ["a"]), ("Part", ["b", "c", "d", "e", "f"])]


def test_the_contents_name_parts_and_pages_with_their_numbers():
    toc = {
        "root": "book/intro",
        "parts": [
            {"chapters": [{"file": "book/your_machine"}]},
            {"caption": "Numbers", "chapters": [{"file": "book/numbers/index"}, {"file": "book/numbers/bits"}]},
            {"caption": "Solutions", "chapters": [{"file": "book/solutions/bits"}]},
        ],
    }
    groups = one_page.parts(toc)
    names = [name for _, held in groups for name in held]
    titles = {name: name.upper() for name in names}
    html = one_page.contents(groups, titles, {"numbers-bits": 7, "part-solutions": 9})
    rows = [(row["class"][0], row.a["href"], row.a.get_text("|")) for row in BeautifulSoup(html, "html.parser")("li")]
    assert rows == [
        ("mp-part", "#intro", "BOOK/INTRO"),
        ("mp-part", "#your_machine", "BOOK/YOUR_MACHINE"),
        ("mp-part", "#numbers-index", "BOOK/NUMBERS/INDEX"),
        ("mp-page", "#numbers-bits", "BOOK/NUMBERS/BITS|7"),
        ("mp-part", "#part-solutions", "Solutions|9"),
        ("mp-page", "#solutions-bits", "BOOK/SOLUTIONS/BITS"),
    ]
    assert one_page.only(groups, {"book/numbers/bits"}) == [("Numbers", ["book/numbers/bits"])]


def test_the_page_of_a_place_is_read_as_the_browser_writes_it():
    writer = PdfWriter()
    pages = [writer.add_blank_page(595, 842).indirect_reference for _ in range(3)]
    places = {"/numbers-bits": pages[2], "/intro": pages[0]}
    writer.root_object[NameObject("/Dests")] = DictionaryObject(
        {NameObject(name): ArrayObject([page, NameObject("/Fit")]) for name, page in places.items()}
    )
    writer.write(file := BytesIO())
    assert pdf.page_numbers(PdfReader(file)) == {"intro": 1, "numbers-bits": 3}
