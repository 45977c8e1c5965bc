"""TokensPerSecond: from model, weights, card, batch and context to the tokens a second that the memory allows."""

import html
from collections.abc import Iterable, Mapping

import traitlets

from utils.cost.architectures import Architecture
from utils.cost.cards import GIGABYTE, ROOFS, find_roof
from utils.cost.roofline import Roof
from utils.records import Record
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.words.amounts import few_digits
from utils.widgets.tokens_per_second.facts import (
    FORMATS,
    KV_BITS,
    LLAMAS,
    MOST_BATCH,
    MOST_CONTEXT,
    DecodeCase,
    card_text,
    make_facts,
    measured_text,
    room_of,
    shared_points,
    weights_of,
)


class TokensPerSecond(BookWidget):
    """Set a LLaMA, its weights and a card; the page answers with the bytes of a step and the tokens a second at most.

    `model`: a LLaMA of `utils.cost.architectures.NAMED`, or one of `models`. `weights`: one of `FORMATS`. `card`: a
    data sheet of `ROOFS`, or one of the measured `roofs` that the page brings along. `batch`: 1 to 1,024 sequences;
    `context`: 1 to 131,072 tokens before the one that is written. `kv_bits`: 8 or 4 bits for keys and values, 0 for
    those that are computed with. `head`: the head in the format of the weights too. `recorded`: points, each with
    model, weights, card, bytes of a step, rate (tokens a second) and source; they stand beside the published ones. The
    first seven are read and set from Python while the page shows the widget; `case` holds them, with what is said of
    them.

    Raises: ValueError for a name or a number that is not one of those.
    """

    book_name = "tokens_per_second"

    model = traitlets.Unicode("LLaMA 7B").tag(sync=True)
    weights = traitlets.Unicode("bfloat16").tag(sync=True)
    card = traitlets.Unicode("A100 SXM 80 GB").tag(sync=True)
    batch = traitlets.Int(1).tag(sync=True)
    context = traitlets.Int(128).tag(sync=True)
    kv_bits = traitlets.Int(0).tag(sync=True)
    head = traitlets.Bool(False).tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        model: str = "LLaMA 7B",
        *,
        roofs: Iterable[Roof] = (),
        models: Mapping[str, Architecture] | None = None,
        recorded: Iterable[Mapping] = (),
        **kwargs,
    ):
        super().__init__(facts=make_facts(roofs, models or {}, recorded), model=model, **kwargs)

    @classmethod
    def of_records(cls, records: Iterable[Record], **kwargs) -> "TokensPerSecond":
        """Make a widget with the points of records of `generation_speed`: of each format the fastest way.

        A device without data sheet brings the bandwidth that its own copy reached. Left out: formats that the page does
        not offer, what was not timed, and models whose shape is not one of the book's.
        """
        from utils.experiments.generation_speed import of_record

        roofs, models, points = {}, {}, []
        for record in sorted(records, key=lambda record: record.date):
            speed, shape = of_record(record), _shape_of(record)
            if shape is None or speed.fastest is None or speed.format not in FORMATS:
                continue
            name, device = shape[0], record.device["name"]
            sheet = find_roof(device)
            if not sheet:
                roofs[device] = Roof(device, {}, round(speed.limit, 1), speed.limit_source, measured=True)
            models |= {} if name in LLAMAS else {name: shape[1]}
            source = f"recorded {record.date[:10]}, {speed.fastest.way}"
            points.append(
                {"model": name, "weights": speed.format, "card": sheet.name if sheet else device}
                | {"bytes": speed.fastest.bytes, "rate": float(f"{speed.fastest.tokens_per_second:.4g}")}
                | {"source": source}
            )
        latest = {(point["model"], point["weights"], point["card"]): point for point in points}
        return cls(roofs=roofs.values(), models=models, recorded=latest.values(), **kwargs)

    @property
    def roof(self) -> Roof:
        """The roof of the card."""
        row = {key: value for key, value in self._card().items() if key != "memory"}
        return ROOFS.get(self.card) or Roof(**row, source="measured")

    @property
    def case(self) -> DecodeCase:
        """What the widget shows now, with its sentences."""
        return self._case(self.weights)

    @property
    def measured(self) -> str:
        """What was measured of the case, in a sentence or two."""
        return measured_text(shared_points(self.facts["points"], self.case, self.model), self.case)

    def _case(self, weights: str) -> DecodeCase:
        choice = {name: getattr(self, name) for name in ("batch", "context", "kv_bits", "head")}
        return DecodeCase(
            self._models()[self.model], weights_of(weights), self.roof, room=room_of(self._card()), **choice
        )

    def _card(self) -> dict:
        return next(card for card in self.facts["cards"] if card["name"] == self.card)

    def _models(self) -> dict[str, Architecture]:
        return {name: Architecture("llama", **sizes) for name, sizes in self.facts["models"]}

    @traitlets.validate("model", "weights", "card", "kv_bits")
    def _valid_choice(self, proposal):
        name = proposal["trait"].name
        cards = [card["name"] for card in self.facts["cards"]]
        options = {"model": list(self._models()), "weights": FORMATS, "card": cards, "kv_bits": KV_BITS}[name]
        return one_of(proposal["value"], options, name)

    @traitlets.validate("batch", "context")
    def _valid_count(self, proposal) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        most = {"batch": MOST_BATCH, "context": MOST_CONTEXT}[name]
        if not 1 <= value <= most:
            raise ValueError(f"{name} {value} is not in 1 to {most:,}")
        return value

    def __repr__(self) -> str:
        rate = few_digits(self.case.tokens_per_second)
        return f"TokensPerSecond({self.model!r}, {self.weights!r}, {self.card!r}, batch={self.batch}: {rate} tokens/s)"

    def static_html(self) -> str:
        """Show the answer in words and every format in a table, for pages without JavaScript."""
        rows = ""
        for name in FORMATS:
            case = self._case(name)
            read = [
                f"{point['rate']:,}{' †' if point.get('plain') else ''}"
                f" ({point['source'] if point['card'] == self.card else 'on ' + point['card']})"
                for point in shared_points(self.facts["points"], case, self.model)
            ]
            cells = (
                case.weights.label,
                few_digits(case.moved.total / GIGABYTE),
                few_digits(case.tokens_per_second),
                few_digits(case.held / GIGABYTE),
                "; ".join(read) or "–",
            )
            rows += f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for text in cells)}</tr>"
        heads = ("weights in", "GB a step", "tokens/s at most", "GB held", "measured")
        what = f"{self.model}, weights in {self.case.weights.label}, on {card_text(self.roof)}"
        return (
            f"<p>{html.escape(f'{what}: {self.case.verdict} {self.measured}')} Other models, weights and cards can be"
            " tried here; that needs JavaScript.</p><table class='mp-tp-static'><thead><tr>"
            f"{''.join(f'<th scope=col>{text}</th>' for text in heads)}</tr></thead><tbody>{rows}</tbody></table>"
            f"<p class='mp-static-note'>{html.escape(self.facts['left_out'])}</p>"
        )


def _shape_of(record: Record) -> tuple[str, Architecture] | None:
    """Return the name and the sizes of the model of a record, None where its shape is not one of the book's."""
    from utils.experiments.generation_models import SHAPES

    for name, shape in SHAPES.items():
        sizes = {key: getattr(shape, key) for key in ("vocabulary", "width", "layers", "heads", "groups", "hidden")}
        architecture = Architecture("llama", **sizes, positions=shape.positions, tied=shape.tied)
        if architecture.parameters == record.results["parameters"]:
            return next((label for label, row in LLAMAS.items() if row == architecture), f"LLaMA {name}"), architecture
    return None
