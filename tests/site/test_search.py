"""The search: what its index holds of a page, its table of other names, and how it ranks made-up pages."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from docutils.core import publish_doctree

import book_search
import npm_packages
import packed_text
from book_search import SYNONYMS, Section, packed

EXTENSIONS = Path(book_search.__file__).parent
NODE = npm_packages.node_folder() / "bin" / "node"
ASK = """
globalThis.mpIndex = JSON.parse(require("fs").readFileSync(0, "utf8"));
require(process.argv[1]);
const book = new MpBook(mpIndex);
const shown = ({ page, sections: [{ section }] }) => [book.address(section), book.text(section.title)];
console.log(JSON.stringify({
  texts: book.sections.map(({ title, text, names }) => [title, text, names].map((packed) => book.text(packed))),
  answers: process.argv.slice(2).map((query) => book.search(query).results.map(shown)),
}));
"""
TITLES = {"book/numbers/index": "Numbers", "book/cookbook/index": "Cookbook"}
PLACES = ["cookbook/loop", "numbers/loop", "reference/loop", "solutions/loop"]


def ask(pages, *queries):
    """The texts of the index of some pages as the page unpacks them, and the addresses that each query leads to."""
    index = packed(pages, TITLES, SYNONYMS.read_text("utf8"))
    command = [NODE, "-e", ASK, EXTENSIONS / "search_ranking.js", *queries]
    done = subprocess.run(command, input=json.dumps(index), capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    return answer["texts"], [[address for address, _ in results] for results in answer["answers"]]


def page(**sections):
    """The sections of a page, given their texts by title; an underscore stands for a space."""
    titles = [title.replace("_", " ") for title in sections]
    texts = zip(titles, sections.values(), strict=True)
    return [Section(book_search.slug(title), title, False, [text]) for title, text in texts]


TEXTS = ["Eight bits. Why?", "", "  two  spaces", "2⁻¹⁴ × 3 (NaN, or Inf)", "GradScaler’s clip_grad_norm_ …", "é"]


def test_a_text_is_the_same_after_packing():
    pages = {"book/a": [Section(f"s{at}", text, False, [text], {"torch.compile"}) for at, text in enumerate(TEXTS)]}
    texts, _ = ask(pages)
    assert texts == [[text, text, "torch.compile"] for text in TEXTS]


def test_words_of_many_tiers_are_packed_and_unpacked():
    words = [f"w{number}x" for number in range(3000)]
    text = " ".join(words + words[:1500] + words[:60])
    texts, _ = ask({"book/a": page(Many=text)})
    assert texts[0][1] == text
    used = set(packed_text.pack([text])[1][0])
    assert not used & {chr(code) for code in packed_text.GAPS}


def test_packing_refuses_the_sign_for_capitals_and_line_ends():
    for text in (f"a {packed_text.CAPITAL}", "a\nb"):
        with pytest.raises(ValueError, match="cannot be packed"):
            packed_text.pack([text])


CODE = """
import torch.nn.functional as F
from utils.training import Trainer
class Step: pass
def step_right(model): return torch.compile(model, fullgraph=True)
loss = F.mse_loss(x, y); scaler.unscale_(optimizer); plt.subplots(figsize=(3, 2)); print(sum(x))
recipe = "bf16-mixed"
"""


def test_the_names_of_code_are_those_that_somebody_may_look_for():
    assert book_search.names(CODE) == {
        *("F.mse_loss", "Step", "Trainer", "bf16-mixed", "step_right", "torch.compile", "torch.nn.functional"),
        *("unscale_", "utils.training"),
    }
    assert "nvidia_smi" in book_search.names("!nvidia_smi --query")


def test_a_page_gives_its_prose_its_code_and_the_words_of_its_tables():
    source = (
        "Bits\n====\n\nOne bit is gone.\n\n.. code:: python\n\n   torch.compile(model)\n\nMore.\n\nWhy\n---\n\n"
        "See https://a.example/x for :math:`2^{-14}`.\n\n"
        "======  =====\nFormat  max\n======  =====\nE4M3    448\n======  =====\n\nExercises\n---------\n\nDo it.\n"
    )
    doctree = publish_doctree(source, settings_overrides={"doctitle_xform": False, "report_level": 5})
    bits, why, exercises = book_search.prose(doctree)
    assert (bits.anchor, bits.title, bits.text) == ("bits", "Bits", "One bit is gone. More.")
    assert (why.text, why.cells) == ("See for 2⁻¹⁴.", {"Format", "max", "E4M3", "448"})
    assert [bits.is_aside, why.is_aside, exercises.is_aside] == [False, False, True]


def test_the_table_of_other_names_reads_well():
    pairs, spellings = book_search.synonyms("a = b, c d # why\ne > f\nhalf -> g\nquantis* = quantiz*\n")
    assert pairs == [
        *(["a", ["b", "c d"], 0], ["b", ["a", "c d"], 0], ["c d", ["a", "b"], 0]),
        *(["e", ["f"], 0], ["half", ["g"], 1]),
    ]
    assert spellings == [("quantis", "quantiz")]
    with pytest.raises(ValueError, match="no line of the table"):
        book_search.synonyms("a, b\n")
    assert len(book_search.synonyms(SYNONYMS.read_text("utf8"))[0]) > 50


@pytest.mark.parametrize(("docname", "weight"), [("book/cookbook/a", 1.3), ("book/a/b", 1.0), ("elsewhere", 1.0)])
def test_the_weight_of_a_page_comes_from_its_folder(docname, weight):
    assert book_search.weight_of(docname) == weight


def test_the_cookbook_comes_first_then_chapters_reference_and_solutions():
    text = "Scale the loss, take the step."
    pages = {f"book/{place}": page(A_loop="Of steps.", Scaling=text) for place in reversed(PLACES)}
    pages["book/numbers/other"] = page(Other="Nothing of the kind.")
    _, [addresses] = ask(pages, "scale the loss")
    assert addresses == [f"book/{place}.html#scaling" for place in PLACES]


# query -> the sections of the page below that answer it, the best one first
WAYS = {
    "OOM": ["memory"],  # never "room"
    "room": ["rooms"],
    "max": ["limits"],  # not "argmax"
    "argma": ["rooms"],
    "bf16": ["formats"],
    "half": ["half"],
    "AMP": ["autocast"],
    "quantis": ["quantized"],
    "dequantisation": ["dequantized"],
    "torch.compile": ["compile"],
    "compile torch": ["compile"],
    "clip_grad_norm": ["clipping"],
    "clip_grad_norm_": ["clipping"],
    "grad norm": ["clipping"],
    '"loss scale"': ["scaler"],
    "grad scaler": ["scaler"],
    "scaled_mm": ["products"],
    "kv cache": ["cache"],
    "unscale": ["scaler"],
    "limit": ["limits"],
    "no_such_clip_name": ["clipping"],
    "zzyzx": [],
    "": [],
    "   ": [],
    "(": [],
    "*": [],
}
HOUSE = page(
    memory="The card runs out of memory.",
    rooms="There is room for an argmax.",
    limits="The max of a format.",
    formats="Store it as bfloat16.",
    half="Or as float16.",
    autocast="Which operation runs in what.",
    quantized="Weights in four bits.",
    dequantized="And back.",
    compile="Call torch.compile once.",
    clipping="Then clip_grad_norm_ takes them.",
    scaler="The loss scale goes up; unscale_ comes first.",
    products="With torch._scaled_mm.",
    cache="The key/value cache of a model.",
    other="Compile everything by hand, and light a torch.",
)


def test_a_query_leads_to_the_section_that_answers_it():
    pages = {f"book/numbers/{section.anchor}": [section] for section in HOUSE}
    _, answers = ask(pages, *WAYS)
    ways = zip(WAYS, answers, strict=True)
    reached = {query: [re.sub(r".*/|\.html", "", address) for address in way[:1]] for query, way in ways}
    assert reached == WAYS
    assert len(answers[list(WAYS).index("OOM")]) == 1


def test_titles_count_more_than_text_and_the_order_is_the_same_each_time():
    pages = {
        "book/numbers/a": page(One="Rounding comes last here."),
        "book/numbers/b": page(Rounding="This comes first."),
        "book/numbers/c": page(Two="Rounding comes last here."),
    }
    _, [addresses] = ask(pages, "rounding")
    assert addresses == ["book/numbers/b.html", "book/numbers/a.html", "book/numbers/c.html"]
    assert packed(pages, TITLES, "") == packed(dict(reversed(pages.items())), TITLES, "")


def test_light_pages_and_exercises_are_held_in_brief():
    text = "word " * 100 + "last"
    pages = {"book/solutions/a": page(A=text), "book/numbers/a": [Section("b", "B", True, [text])]}
    texts, _ = ask(pages)
    assert [len(held) <= book_search.BRIEF + 2 and held.endswith(" …") for _, held, _ in texts] == [True, True]
