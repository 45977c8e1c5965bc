"""The EPUB of the whole book: its documents are XML, its links and pictures are there, and its list is complete."""

import zipfile
from posixpath import normpath
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

import epub

X = "{http://www.w3.org/1999/xhtml}"
OPF = "{http://www.idpf.org/2007/opf}"


@pytest.fixture(scope="module")
def archive(site, tmp_path_factory):
    """What the command writes: bytes by path."""
    path = tmp_path_factory.mktemp("epub") / "book.epub"
    assert epub.main(["--output", str(path)]) == 0
    with zipfile.ZipFile(path) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


@pytest.fixture(scope="module")
def documents(archive):
    """The parsed documents by path."""
    return {name: ElementTree.fromstring(data) for name, data in archive.items() if name.endswith(".xhtml")}


def test_every_page_is_a_document_in_the_order_of_reading(archive, documents):
    package = ElementTree.fromstring(archive["book/content.opf"])
    files = {item.get("id"): f"book/{item.get('href')}" for item in package.iter(f"{OPF}item")}
    packed = [name for name in archive if name not in {"mimetype", "META-INF/container.xml", "book/content.opf"}]
    assert sorted(files.values()) == sorted(packed)
    spine = [files[item.get("idref")] for item in package.iter(f"{OPF}itemref")]
    assert sorted(spine) == sorted(documents)
    assert spine[:3] == ["book/cover.xhtml", "book/nav.xhtml", "book/intro.xhtml"]
    assert spine.index("book/numbers-bits.xhtml") < spine.index("book/numbers-rounding.xhtml")


def test_links_and_pictures_lead_inside_and_ids_are_unique(archive, documents):
    ids = {
        name: [element.get("id") for element in root.iter() if element.get("id")] for name, root in documents.items()
    }
    wrong = [name for name, found in ids.items() if len(found) != len(set(found))]
    for name, root in documents.items():
        addresses = {element.get("href") or element.get("src") for element in root.iter()} - {None}
        for parts in map(urlsplit, addresses):
            target = normpath(f"{name}/../{parts.path}") if parts.path else name
            if not parts.scheme and (target not in archive or (parts.fragment and parts.fragment not in ids[target])):
                wrong.append(f"{name}: {parts.geturl()}")
    assert wrong == []


def test_nothing_needs_a_script_or_the_network(documents):
    for name, root in documents.items():
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert tags.isdisjoint({"script", "iframe", "button", "input"}), name
        assert [key for element in root.iter() for key in element.attrib if key in {"style", "viewbox"}] == [], name
        assert all(image.get("alt") for image in root.iter(f"{X}img")), name
