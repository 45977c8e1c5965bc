"""The base of the book's widgets: one ES module each, alive in a notebook and in a page without a kernel.

A widget is three files of one name, here `bit_flip`: a Python class with its traits, `bit_flip.js` and `bit_flip.css`.
Its ES module is put together in one place, `BookWidget.esm_source`: the table of formats as JSON, the shared parts that
the class names in `esm_parts`, its own file. Parts are joined, not imported, so the module needs no other file: names
at the top level of a part are shared by all of them and must differ.

In a page the widget is an element that holds its state and a static form, which stays where JavaScript does not run:

    <div class="mp-widget" data-mp-widget="bit_flip" data-mp-state="{...}">static form</div>

Progress in goals and exercises is kept by the browser under the key `mp-progress:<id>`, as JSON
`{"solved": true, "hints": 1}`. An id is `<chapter>/<goal>`, for example `numbers/bits/one-and-a-half`, and belongs to
one goal in the whole book, so that a contents page can count what is solved.
"""

import html
import json
from pathlib import Path

import anywidget
import traitlets

from utils.formats import FORMATS, FloatFormat

FOLDER = Path(__file__).parent


def format_label(fmt: FloatFormat) -> str:
    """Give the name of a format in prose: float16, TF32, E4M3, E4M3FNUZ, E8M0."""
    if fmt.name == "tf32":
        return "TF32"
    if "_" not in fmt.name:
        return fmt.name
    return fmt.name.split("_")[1].removesuffix("fnu").removesuffix("fn").upper()


def format_row(fmt: FloatFormat) -> dict:
    """Describe a format for the page; codes as hexadecimal text, for a code has more bits than a JSON number holds."""
    return {
        "name": fmt.name,
        "label": format_label(fmt),
        "bits": fmt.bits,
        "exponent_bits": fmt.exponent_bits,
        "mantissa_bits": fmt.mantissa_bits,
        "bias": fmt.bias,
        "emin": fmt.emin,
        "emax": fmt.emax,
        "specials": fmt.specials,
        "signed": fmt.signed,
        "has_inf": fmt.has_inf,
        "has_nan": fmt.has_nan,
        "has_zero": fmt.has_zero,
        "has_negative_zero": fmt.has_negative_zero,
        "max_code": hex(fmt.max_code),
        "nan_code": hex(fmt.nan_code) if fmt.has_nan else None,
        "inf_code": hex(fmt.inf_code) if fmt.has_inf else None,
    }


def read_part(name: str) -> str:
    """Give the text of one part of an ES module; `formats` is the generated table, every other part a file here."""
    if name == "formats":
        rows = ",\n".join(f"  {name}: {json.dumps(format_row(fmt))}" for name, fmt in FORMATS.items())
        return f"export const FORMATS = {{\n{rows},\n}};\n"
    return (FOLDER / f"{name}.js").read_text("utf8")


class BookWidget(anywidget.AnyWidget):
    """A widget of the book; its output also carries the placeholder that a page without a kernel brings to life.

    A subclass sets `book_name` (the stem of its files), and `esm_parts` if it needs shared parts besides the usual
    ones. Its traits are its whole state: tagged `sync=True`, JSON on the wire, and no message to Python is needed.
    """

    book_name = ""
    esm_parts: tuple[str, ...] = ("formats", "codec", "number_text", "page")

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    @traitlets.default("_esm")
    def _default_esm(self) -> str:
        return self.esm_source()

    @traitlets.default("_css")
    def _default_css(self) -> str:
        return self.css_source()

    @classmethod
    def registry(cls) -> "dict[str, type[BookWidget]]":
        """Give every imported widget by its `book_name`, sorted."""
        found = {}
        waiting = list(BookWidget.__subclasses__())
        while waiting:
            widget = waiting.pop()
            waiting += widget.__subclasses__()
            # "in vars": anywidget makes a subclass of its own for each instance, which inherits the name
            if vars(widget).get("book_name"):
                found[widget.book_name] = widget
        return dict(sorted(found.items()))

    @classmethod
    def part_names(cls) -> tuple[str, ...]:
        """Name the parts of the ES module in their order; `read_part` gives the text of each."""
        return (*cls.esm_parts, cls.book_name)

    @classmethod
    def esm_source(cls) -> str:
        """Give the widget's whole ES module as text."""
        return "\n".join(read_part(name) for name in cls.part_names())

    @classmethod
    def css_source(cls) -> str:
        """Give the widget's style sheet: the shared colours, the shared controls, its own rules."""
        return "\n".join(
            (FOLDER / f"{name}.css").read_text("utf8") for name in ("tokens", "book_widget", cls.book_name)
        )

    def book_state(self) -> dict:
        """Give the state that a page needs, as JSON values by trait name, sorted."""
        shared = set(anywidget.AnyWidget.class_trait_names(sync=True))
        state = self.get_state()
        return {key: state[key] for key in sorted(state) if key not in shared and not key.startswith("_")}

    def static_html(self) -> str:
        """Give what the page shows where JavaScript does not run. A subclass says it better."""
        return f"<p>{html.escape(repr(self))}</p>"

    def __repr__(self) -> str:
        state = ", ".join(f"{key}={value!r}" for key, value in self.book_state().items())
        return f"{type(self).__name__}({state})"

    def _repr_mimebundle_(self, **kwargs) -> tuple[dict, dict]:
        data, metadata = super()._repr_mimebundle_(**kwargs)
        state = html.escape(json.dumps(self.book_state(), sort_keys=True, ensure_ascii=False))
        data["text/html"] = (
            f'<div class="mp-widget" data-mp-widget="{self.book_name}" data-mp-state="{state}">'
            f"{self.static_html()}</div>"
        )
        return data, metadata
