"""The site around the pages: its address in one place, cards, sitemap, 404 page, search and downloads.

A book of four pages is built twice, with a public address and without: the real one would take half a minute.
"""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup
from PIL import Image
from sphinx.errors import ExtensionError

import book_address
import book_cards
import book_downloads
import book_search

ROOT = Path(__file__).parents[2]
SITE, REPOSITORY = "https://books.example/mixed", "https://github.com/someone/mixed"
CONF = """
extensions = ["myst_nb", "book_address", "book_cards", "book_downloads", "book_not_found", "book_search"]
nb_execution_mode = "off"
html_theme, html_title, project, author = "sphinx_book_theme", "A Book of Bits", "A Book of Bits", "Somebody"
html_copy_source, root_doc, html_show_sourcelink = True, "book/intro", False
html_theme_options = {{"navbar_persistent": [], **{buttons!r}}}
templates_path = [{templates!r}]
html_baseurl = {site!r}
"""
PAGES = {
    "book/intro.md": "# A Book of Bits\n\n*What a bit does.*\n\n```{toctree}\n:caption: Numbers\n\n"
    "numbers/index\nnumbers/bits\n```\n\n```{toctree}\n:caption: Training\n\ntraining/loss_scaling\n```\n",
    "book/numbers/index.md": "# Numbers & more\n\nTwo <pages>.\n",
    "book/training/loss_scaling.md": "# Loss scaling\n\n## Why\n\nGradients vanish quietly.\n\n"
    "```\nnot_prose = 1\n```\n\n| no | prose |\n| --- | --- |\n| at | all |\n",
}


def notebook():
    """A chapter as a notebook."""
    cells = [
        nbformat.v4.new_markdown_cell("# Bits\n\n*One press, and the number is gone.*\n\nMore text.", id="one"),
        nbformat.v4.new_code_cell("import utils", id="two", execution_count=1),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=kernel)


# what Jupyter Book makes of `repository`, `launch_buttons` and `html.use_..._button`
BUTTONS = {
    "repository_url": REPOSITORY,
    "repository_branch": "main",
    "path_to_docs": "",
    "use_repository_button": True,
    "use_source_button": True,
    "use_issues_button": True,
    "launch_buttons": {
        "notebook_interface": "jupyterlab",
        "binderhub_url": "https://mybinder.org",
        "colab_url": "https://colab.research.google.com",
    },
}


def build(folder, site="", buttons=None):
    """Build the small book and return the folder of its site."""
    for name, text in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf8")
    nbformat.write(notebook(), folder / "book/numbers/bits.ipynb")
    extensions = ROOT / "book" / "_ext"
    (folder / "conf.py").write_text(
        CONF.format(templates=str(extensions / "templates"), site=site, buttons=buttons or {}), "utf8"
    )
    code = f"import sys; sys.path.insert(0, {str(extensions)!r}); import sphinx.cmd.build as b; sys.exit(b.main())"
    options = ["-q", "-W", "--keep-going", "-b", "html", str(folder), str(folder / "site")]
    done = subprocess.run([sys.executable, "-c", code, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    """The site of a book without a public address."""
    return build(tmp_path_factory.mktemp("private"))


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    """The site of a book with an address for itself and for its repository."""
    return build(tmp_path_factory.mktemp("public"), SITE, BUTTONS)


def soup(path):
    return BeautifulSoup(path.read_text("utf8"), "html.parser")


def meta(page):
    """What the tags of a page's head say, by their names."""
    return {tag.get("property") or tag.get("name"): tag["content"] for tag in soup(page).find_all("meta", content=True)}


def launchers(page):
    return [link["href"] for link in soup(page).select(".dropdown-launch-buttons a")]


# What the theme's own pages name besides: their makers, and names of XML.
MAKERS = ("sphinx-doc.org", "pydata-sphinx-theme", "w3.org")


def foreign(page):
    """The addresses in a page that begin with http, without the makers of its tools."""
    found = re.findall(r"https?://[^\s\"'<>)]+", page.read_text("utf8"))
    return [address for address in found if not any(name in address for name in MAKERS)]


def test_without_an_address_no_page_names_one(private):
    for page in private.rglob("*.html"):
        if "_static" not in page.parts:
            assert foreign(page) == [], page.name
            assert soup(page).find("link", rel="canonical") is None
            assert soup(page).select(".btn-source-repository-button, .btn-source-file-button") == []
            assert launchers(page) == []
    assert not (private / "sitemap.xml").exists()
    assert not (private / "_static" / "cards").exists()


def test_with_an_address_a_notebook_can_be_launched_and_its_source_seen(public):
    page = public / "book/numbers/bits.html"
    assert launchers(page) == [
        "https://mybinder.org/v2/gh/someone/mixed/main?urlpath=lab/tree/book/numbers/bits.ipynb",
        "https://colab.research.google.com/github/someone/mixed/blob/main/book/numbers/bits.ipynb",
    ]
    sources = [link["href"] for link in soup(page).select(".dropdown-source-buttons a")]
    assert sources[:2] == [REPOSITORY, f"{REPOSITORY}/blob/main/book/numbers/bits.ipynb?plain=1"]
    assert "fab fa-" not in page.read_text("utf8")
    assert launchers(public / "book/intro.html") == []


def test_with_an_address_pages_name_their_own_and_the_sitemap_all(public):
    assert soup(public / "book/numbers/bits.html").find("link", rel="canonical")["href"] == (
        f"{SITE}/book/numbers/bits.html"
    )
    places = re.findall(r"<loc>(.*)</loc>", (public / "sitemap.xml").read_text("utf8"))
    pages = ("intro", "numbers/index", "numbers/bits", "training/loss_scaling")
    assert places == [f"{SITE}/book/{page}.html" for page in pages]


@pytest.mark.parametrize("address", ["http://a.example", "github.com/a/b", "https://"])
def test_a_wrong_address_is_named(address):
    with pytest.raises(
        ExtensionError, match=f"html_baseurl: an address has to begin with https://, and is '{address}'"
    ):
        book_address.site_of(SimpleNamespace(html_baseurl=address))


def test_an_address_ends_with_one_slash_and_none_is_none():
    found = [book_address.site_of(SimpleNamespace(html_baseurl=given)) for given in (SITE, SITE + "/", "", None)]
    assert found == [f"{SITE}/", f"{SITE}/", "", ""]


def test_a_page_promises_on_others_pages_what_it_promises_itself(private, public):
    told = meta(private / "book/numbers/bits.html")
    assert told["og:title"] == "Bits"
    assert told["og:description"] == told["description"] == "One press, and the number is gone."
    assert told["twitter:card"] == "summary"
    assert "og:image" not in told
    assert meta(private / "book/numbers/index.html")["og:title"] == "Numbers & more"
    assert "og:title" not in meta(private / "search.html")
    told = meta(public / "book/numbers/bits.html")
    assert told["og:url"] == f"{SITE}/book/numbers/bits.html"
    assert told["og:image"] == f"{SITE}/_static/cards/numbers.png"
    assert told["twitter:card"] == "summary_large_image"
    assert meta(public / "book/training/loss_scaling.html")["og:image"] == f"{SITE}/_static/cards/book.png"


def test_each_part_has_a_card_of_the_usual_size(public):
    cards = sorted((public / "_static" / "cards").glob("*.png"))
    assert [card.stem for card in cards] == ["book", "numbers"]
    for card in cards:
        with Image.open(card) as image:
            assert image.size == (1200, 630)
        assert card.stat().st_size < 100_000


def test_a_long_promise_ends_at_a_word():
    from docutils import nodes
    from docutils.utils import new_document

    doctree = new_document("page")
    doctree += nodes.paragraph("", "")
    doctree += nodes.paragraph("", "a word, " * 60)
    text = book_cards.description(doctree)
    assert text.endswith("word …")
    assert len(text) <= book_cards.LONGEST + 2
    assert book_cards.description(new_document("empty")) == ""


def test_the_page_for_a_lost_address_asks_for_no_file_and_lists_all_pages(private, public):
    page = soup(private / "404.html")
    assert page.find_all(["link", "img"]) == []
    assert [script for script in page.find_all("script") if script.get("src")] == []
    links = [link["href"] for link in page.select("nav a")]
    assert links == [
        f"book/{name}.html" for name in ("intro", "numbers/index", "numbers/bits", "training/loss_scaling")
    ]
    assert [head.text for head in page.select("nav h2")] == ["Numbers", "Training"]
    assert page.form["action"] == "search.html"
    links = [link["href"] for link in soup(public / "404.html").select("main a")]
    assert all(link.startswith(f"{SITE}/") for link in links)


def test_the_search_holds_each_section_and_nothing_of_sphinxs_own(private):
    text = (private / "_static" / book_search.INDEX).read_text("utf8")
    index = json.loads(text.removeprefix("globalThis.mpIndex=").rstrip(";\n"))
    pages = {name: (part, weight, len(sections)) for name, part, weight, sections in index["pages"]}
    assert pages == {
        "book/intro": ("", 1.0, 1),
        "book/numbers/bits": ("Numbers & more", 1.0, 1),
        "book/numbers/index": ("Numbers & more", 1.0, 1),
        "book/training/loss_scaling": ("", 1.0, 2),
    }
    for name in book_search.THEIRS:
        assert not (private / name).exists()
    page = (private / "search.html").read_text("utf8")
    places = [page.index(f'<script defer src="_static/{name}"') for name in (book_search.INDEX, *book_search.SCRIPTS)]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (r"2^{-14} \times 3", "2⁻¹⁴ × 3"),
        (r"x^2 \le \max{y}", "x² ≤ maxy"),
        (r"\frac{a}{b}", "fracab"),
        ("e = 0", "e = 0"),
    ],
)
def test_a_formula_in_an_excerpt_is_one_line_of_text(formula, text):
    assert book_search.plain(formula) == text


def test_a_downloaded_notebook_says_first_what_it_needs_and_once(private, public):
    cells = nbformat.read(private / "_sources/book/numbers/bits.ipynb", as_version=4).cells
    assert [cell.id for cell in cells] == [book_downloads.NOTE_ID, "one", "two"]
    assert "`mixed-precision-book.zip`" in cells[0].source
    assert "jupyter lab book/numbers/bits.ipynb" in cells[0].source
    assert "http" not in cells[0].source
    told = nbformat.read(public / "_sources/book/numbers/bits.ipynb", as_version=4)
    nbformat.validate(told)
    assert f"({SITE}/mixed-precision-book.zip)" in told.cells[0].source
    again = book_downloads.with_note(json.loads(nbformat.writes(told)), "x", "y", "")
    assert [cell["id"] for cell in again["cells"]].count(book_downloads.NOTE_ID) == 1


def test_the_menu_of_a_notebook_names_the_code_and_that_of_a_text_does_not(private):
    def menu(page):
        return [link["href"] for link in soup(private / page).select(".dropdown-download-buttons a")]

    assert menu("book/numbers/bits.html") == [
        "../../_sources/book/numbers/bits.ipynb",
        "../../mixed-precision-book.zip",
    ]
    assert menu("book/intro.html") == ["../_sources/book/intro.md"]
    assert (private / "mixed-precision-book.zip").is_file()


NOTE = "One file of a book."


def test_the_code_to_download_is_whole_and_the_same_each_time(tmp_path):
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    book_downloads.pack(ROOT, first, NOTE)
    book_downloads.pack(ROOT, second, NOTE)
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        names = set(archive.namelist())
        page = json.loads(archive.read("mixed-precision-book/book/numbers/bits.ipynb"))
        module = archive.read("mixed-precision-book/utils/formats.py")
    assert module == (ROOT / "utils/formats.py").read_bytes()
    assert {cell["execution_count"] for cell in page["cells"] if cell["cell_type"] == "code"} == {None}
    wanted = ["README.md", "Makefile", "requirements.txt", "pyproject.toml", "utils/widgets/shared/page/tokens.css"]
    wanted += ["scripts/train_float16.py", "single_files/nan_hunter.py", "single_files/microscope.pyz"]
    assert {f"{book_downloads.NAME}/{name}" for name in wanted} <= names
    folders = {part for name in names for part in name.split("/")[:-1]}
    assert folders.isdisjoint({".ipynb_checkpoints", "__pycache__", "_build", "_ext", "vendor"})


def test_the_readme_of_the_code_names_only_what_is_there(tmp_path):
    """Its folders, its files and the commands of its Makefile."""
    files = book_downloads.contents(ROOT, NOTE)
    readme, makefile = files["README.md"].decode(), files["Makefile"].decode()
    folders = re.findall(r"^\| `(\w+/)` \|", readme, re.MULTILINE)
    assert len(folders) == 4
    assert all(any(place.startswith(folder) for place in files) for folder in folders)
    named = re.findall(r"-r (\S+)|(single_files/\w+\.\w+)", readme)
    assert len(named) == 3
    assert {first or second for first, second in named} <= set(files)
    imports = re.findall(r"from (\w+) import (\w+)", readme)
    assert len(imports) == 3
    for module, name in imports:
        assert f"\nclass {name}" in files[f"single_files/{module}.py"].decode()
    steps = re.findall(r"pip (install .*)", makefile)
    assert [step.replace("--upgrade ", "") for step in steps] == re.findall(r"pip (install .*)", readme)
