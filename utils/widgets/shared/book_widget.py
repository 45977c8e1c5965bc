"""The base of the book's widgets: one ES module each, alive in a notebook and in a page without a kernel.

A widget is a folder, here `bit_flip`: `__init__.py` with a Python class and its traits, `widget.js`, `widget.css`, and
beside them what these import. `modules.py` follows the imports and puts the ES module together.

In a page the widget is an element that holds its state and a static form, which stays where JavaScript does not run:

    <div class="mp-widget" data-mp-widget="bit_flip" data-mp-state="{...}">static form</div>

Progress in goals and exercises is kept by the browser under the key `mp-progress:<id>`, as JSON
`{"solved": true, "hints": 1}`. An id is `<chapter>/<goal>`, for example `numbers/bits/one-and-a-half`, and belongs to
one goal in the whole book, so that a contents page can count what is solved.
"""

import html
import json

import anywidget
import traitlets

from utils.widgets.shared.modules import WIDGETS, Module, joined, modules_of

SHARED_STYLES = ("shared/page/tokens", "shared/page/controls")


class BookWidget(anywidget.AnyWidget):
    """A widget of the book; its output also carries the placeholder that a page without a kernel brings to life.

    A subclass sets `book_name`, the name of its folder. Its traits are its whole state: tagged `sync=True`, JSON on the
    wire, and no message to Python is needed.
    """

    book_name = ""

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
        """Return every imported widget by its `book_name`, sorted."""
        modules = {}
        waiting = list(BookWidget.__subclasses__())
        while waiting:
            widget = waiting.pop()
            waiting += widget.__subclasses__()
            # "in vars": anywidget makes a subclass of its own for each instance, which inherits the name
            if vars(widget).get("book_name"):
                modules[widget.book_name] = widget
        return dict(sorted(modules.items()))

    @classmethod
    def modules(cls) -> dict[str, Module]:
        """Return the files of the ES module by name, each after those that it imports."""
        return modules_of(f"{cls.book_name}/widget")

    @classmethod
    def esm_source(cls) -> str:
        """Return the widget's whole ES module as text."""
        return joined(f"{cls.book_name}/widget")

    @classmethod
    def css_source(cls) -> str:
        """Return the widget's style sheet: the shared colours, the shared controls, its own rules."""
        sheets = (*SHARED_STYLES, f"{cls.book_name}/widget")
        return "\n".join((WIDGETS / f"{name}.css").read_text("utf8") for name in sheets)

    def book_state(self) -> dict:
        """Return the state that a page needs, as JSON values by trait name, sorted."""
        shared = set(anywidget.AnyWidget.class_trait_names(sync=True))
        state = self.get_state()
        return {key: state[key] for key in sorted(state) if key not in shared and not key.startswith("_")}

    def static_html(self) -> str:
        """Return what the page shows where JavaScript does not run. A subclass says it better."""
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
