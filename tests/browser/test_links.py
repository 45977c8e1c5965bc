"""Links of the built site: each inner one leads to a page and a place that exist; each picture has a text."""

from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from tests.browser.built_pages import SITE, parse_page, places

PAGES = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)


def dead_links(path):
    """Inner links of a page that lead nowhere."""
    for link in parse_page(path).find_all(["a", "link", "script", "img"]):
        address = link.get("href") or link.get("src")
        if not address or urlsplit(address).scheme:
            continue
        parts = urlsplit(address)
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.is_file():
            yield f"{address}: no such file"
        elif parts.fragment and target.suffix == ".html":
            ids, widgets = places(target)
            place, state, _ = unquote(parts.fragment).partition("?")
            if state and place not in widgets:
                yield f"{address}: no such widget"
            elif not state and place not in ids:
                yield f"{address}: no such place"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(SITE)))
def test_inner_links_lead_somewhere(path):
    assert list(dead_links(path)) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(SITE)))
def test_pictures_in_the_text_have_alt_text_and_figures_a_caption(path):
    article = parse_page(path).find("article") or BeautifulSoup("", "html.parser")
    assert [str(image)[:100] for image in article.find_all("img") if not image.get("alt", "").strip()] == []
    assert [str(figure)[:100] for figure in article.find_all("figure") if not figure.find("figcaption")] == []


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "other.html").write_text('<p id="here"></p><div data-mp-widget="bits"></div>')
    page = tmp_path / "page.html"
    links = ("other.html#here", "other.html#bits?a=1", "other.html#gone", "other.html#bit?a=1", "lost.html", "#x")
    page.write_text("".join(f'<a href="{link}"></a>' for link in links))
    assert list(dead_links(page)) == [
        "other.html#gone: no such place",
        "other.html#bit?a=1: no such widget",
        "lost.html: no such file",
        "#x: no such place",
    ]
