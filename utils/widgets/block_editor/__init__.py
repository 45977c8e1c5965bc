"""BlockEditor: 32 values that share one scale, or two, bit by bit."""

import html
from collections.abc import Mapping, Sequence

import traitlets

from utils.widgets.block_editor.facts import COUNT, KINDS, RULES, Block, check_values, label_of, make_facts
from utils.widgets.block_editor.facts import samples as usual_samples
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.static_table import static_table
from utils.widgets.shared.words.amounts import few_digits
from utils.widgets.shared.words.code_words import value_text


class BlockEditor(BookWidget):
    """Edit the values of a block, or flip the bits of their codes and of the scale that they share.

    `element`: the format of the values, and `scaling`: the scale's kind and rule, a name of `utils.scaling.SCALINGS`;
    together one of `KINDS`. `values`: 32 finite numbers, taken as float32: one block of an MX format, two of NVFP4.
    `tensor_amax`: the largest magnitude of the tensor that they are taken from, for NVFP4's second scale; 0 for theirs.
    `scales`, `codes`: the stored bits as integers, one for each block and for each value; empty means those that the
    rule and encoding give. `selected`: the value that is shown in bits, from 0. `samples`: values to start from, by a
    name; as a trait pairs, in their order. All but `samples` are read and set from Python while the page shows the
    widget; `block` holds them, with what they are worth.

    Raises: ValueError for what no block format has, and for values or codes that do not fit.
    """

    book_name = "block_editor"

    element = traitlets.Unicode("float4_e2m1fn").tag(sync=True)
    scaling = traitlets.Unicode("mx").tag(sync=True)
    values = traitlets.List(traitlets.Float()).tag(sync=True)
    tensor_amax = traitlets.Float(0.0).tag(sync=True)
    scales = traitlets.List(traitlets.Int()).tag(sync=True)
    codes = traitlets.List(traitlets.Int()).tag(sync=True)
    selected = traitlets.Int(0).tag(sync=True)
    samples = traitlets.List().tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        values: Sequence[float] | str | None = None,
        *,
        samples: Mapping[str, Sequence[float]] | None = None,
        **kwargs,
    ):
        named = {name: [float(x) for x in row] for name, row in (samples or {}).items()} | usual_samples()
        for row in named.values():
            check_values(row)
        if values is None:
            values = next(iter(named))
        if isinstance(values, str):
            values = named[one_of(values, named, "values")]
        values = [float(x) for x in values]
        self._check_format(kwargs.get("element", "float4_e2m1fn"), kwargs.get("scaling", "mx"))
        super().__init__(values=values, samples=[list(row) for row in named.items()], facts=make_facts(), **kwargs)
        self._check_codes(self.block)

    @property
    def block(self) -> Block:
        """The values as they are stored now."""
        return Block(
            tuple(self.values), self.element, self.scaling, self.tensor_amax, tuple(self.scales), tuple(self.codes)
        )

    @staticmethod
    def _check_format(element: str, scaling: str) -> None:
        if label_of(element, scaling) is None:
            pairs = "; ".join(f"{label}: {name}, {' or '.join(names)}" for label, (name, names) in KINDS.items())
            raise ValueError(f"no block format has values of {element!r} with scales {scaling!r}; there are {pairs}")

    @staticmethod
    def _check_codes(block: Block) -> None:
        blocks, narrow = COUNT // block.way.tile[1], block.way.scale_format
        for name, codes, count, bits in (
            ("scales", block.scales, blocks, narrow.bits),
            ("codes", block.codes, COUNT, block.fmt.bits),
        ):
            if codes and (len(codes) != count or not all(0 <= code < 2**bits for code in codes)):
                raise ValueError(f"{name} are {count} codes of {bits} bits, or none; not {list(codes)}")

    @traitlets.validate("values")
    def _valid_values(self, proposal) -> list[float]:
        check_values(proposal["value"])
        return proposal["value"]

    @traitlets.validate("element", "scaling")
    def _valid_name(self, proposal) -> str:
        name = proposal["trait"].name
        elements = dict.fromkeys(element for element, _ in KINDS.values())
        return one_of(proposal["value"], {"element": elements, "scaling": make_facts()["scalings"]}[name], name)

    @traitlets.observe("element", "scaling")
    def _mend(self, change) -> None:
        """Take the other half of a format, and drop codes, where those that stand do not fit the new one."""
        if label_of(self.element, self.scaling) is None:
            other = ("scaling", "mx") if change["name"] == "element" else ("element", "float4_e2m1fn")
            self.set_trait(*other)
        try:
            self._check_codes(self.block)
        except ValueError:
            self.scales, self.codes = [], []

    @traitlets.validate("selected")
    def _valid_selected(self, proposal) -> int:
        if not 0 <= proposal["value"] < COUNT:
            raise ValueError(f"selected {proposal['value']} is not in 0 to {COUNT - 1}")
        return proposal["value"]

    @traitlets.validate("tensor_amax")
    def _valid_amax(self, proposal) -> float:
        if not 0 <= proposal["value"] <= 3.4028234663852886e38:
            raise ValueError(f"tensor_amax {proposal['value']} is not a magnitude of float32")
        return proposal["value"]

    def __repr__(self) -> str:
        return f"BlockEditor({self.element!r}, {self.scaling!r}: {self.block.verdict})"

    def static_html(self) -> str:
        """Show the values, their codes and the formats side by side, for pages without JavaScript."""
        block = self.block
        scales = ", ".join(f"{code:#04x}" for code in block.scale_codes.tolist())
        values = "".join(
            f"<tr><td>{value_text(float(x))}</td><td><code>{code:0{block.fmt.bits}b}</code></td><td>{y:.4g}</td></tr>"
            for x, code, y in zip(block.x, block.value_codes.tolist(), block.stored.tolist(), strict=True)
        )
        rows = [_format_row(self, *row) for row in _every_way()]
        sentence = f"{label_of(self.element, self.scaling)}: {block.verdict} Scale: {scales}."
        table = static_table("mp-be-static", ("format", "bits per value", "error", "saturated", "to 0"), rows)
        head = "<th scope='col'>x</th><th scope='col'>code</th><th scope='col'>stored</th>"
        return (
            f"<p>{html.escape(sentence)} Here values and bits can be changed; that needs JavaScript.</p>"
            f"{table}<details><summary>The values</summary>"
            f"<table class='mp-be-static'><thead><tr>{head}</tr></thead><tbody>{values}</tbody></table></details>"
        )


def _every_way():
    for label, (element, names) in KINDS.items():
        for scaling in names:
            yield (f"{label}, {RULES[scaling]}" if len(names) > 1 else label), element, scaling


def _format_row(widget: BlockEditor, label: str, element: str, scaling: str) -> tuple[str, ...]:
    block = Block(tuple(widget.values), element, scaling, widget.tensor_amax)
    error = "–" if block.error is None else f"{few_digits(100 * block.error)} %"
    return label, few_digits(block.bits), error, str(block.saturated), str(block.zeros)
