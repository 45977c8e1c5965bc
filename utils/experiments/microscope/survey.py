"""Find out how a matrix product adds, from crafted inputs alone, without knowing what computes it.

    finding = look(torch.matmul, dtype=torch.bfloat16)
    print(finding)           # how many bits, which rounding, in which order, how many at once
    finding.evidence         # every crafted sum, and its result

    python -m utils.experiments.microscope --record DIR

What the sums do not decide is None. In the end the parameters are tested: they must predict random sums to the last
bit.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict

import torch

from utils import records
from utils.exception_text import in_a_line
from utils.experiments.microscope import addition_probes, integer_products, summation_tree, whole_sums
from utils.experiments.microscope.adders import find_common
from utils.experiments.microscope.addition_probes import TestedAddition
from utils.experiments.microscope.crafted_sums import WIDTH, Matmul, Sums
from utils.experiments.microscope.findings import Finding, summarize
from utils.experiments.microscope.masks import find_order
from utils.experiments.microscope.summation_tree import Node
from utils.experiments.microscope.ways_to_multiply import MatmulWay, list_ways
from utils.runs import measurement, tables

NAME = "microscope"
PLACES, LONG = 128, 512  # products of a sum; FP8 totals are known to be promoted every 128
NO_TREE = ("order", "precision", "rounding", "block", "factor_bits", "product_bits", "confirmed")


def look_at_product(
    matmul: Matmul,
    *,
    dtype: torch.dtype,
    places: int = PLACES,
    width: int = WIDTH,
    device: torch.device | str = "cpu",
) -> Finding:
    """Find out how a product (a, b) -> a @ b of one dtype adds: a [width, places] and b [places, width] on the device.

    The finding holds for this shape: a library may choose another kernel for another shape. A total that is promoted
    every N products shows from 3 N places on. Raises: ValueError for a dtype that is not a floating dtype of the table,
    for fewer than 8 places and for a width below 1, and what `matmul` raises.
    """
    if places < 8:
        raise ValueError(f"places {places} is below 8: so few products show no order")
    if width < 1:
        raise ValueError(f"width {width} is below 1: there is no sum to ask for")
    sums = Sums(matmul, dtype, places, device, width)
    parameters: dict = {
        "everywhere": whole_sums.adds_alike_everywhere(sums),
        "smallest": addition_probes.find_smallest_sum(sums),
        "subnormal_factors": addition_probes.keeps_subnormal_factors(sums),
    }
    tree, why = find_order(sums)
    if tree is None:
        unknown = dict.fromkeys(NO_TREE, why)
    else:
        additions, unknown = _test_additions(sums, tree)
        parameters |= _describe_layout(tree) | additions
    return Finding(
        dtype=sums.format.name,
        output=str(sums.output).removeprefix("torch."),
        shape=(width, width, places),
        unknown=tuple(unknown.items()),
        evidence=tuple(sums.log),
        **parameters,
    )


def _describe_layout(tree: Node) -> dict:
    layout = summation_tree.describe_layout(tree)
    if layout is None:
        return {"order": tuple(tree.places)}
    return {
        "order": layout.order,
        "block": layout.block,
        "pairwise": layout.pairwise,
        "parts": None if layout.pairwise else layout.parts,
        "run": layout.run,
    }


def _test_additions(sums: Sums, tree: Node) -> tuple[dict, dict[str, str]]:
    """Test the additions of a tree, what reaches them and what they hold, and then all of it on random sums.

    Return the parameters of `Finding`, and for those that were not decided the reason.
    """
    tested = addition_probes.try_kinds(sums, tree)
    kinds = [node.kind for node, _ in summation_tree.list_nodes(tree)]
    with_products = max(tested, key=lambda kind: (kinds.count(kind) * kind[0], kind))
    main = tested[with_products]
    parameters = {"precision": main.bits, "overflow": addition_probes.find_overflow(sums, tree)}
    agreed, unknown = _agree(main)
    outer, unknown_outer = _agree_on_sums([result for kind, result in tested.items() if not kind[0]], sums)
    parameters |= agreed | outer | _test_factors(sums, tree)
    unknown |= unknown_outer
    parameters["compensated"], why = whole_sums.is_compensated(sums, tree, main)
    if why:
        unknown["compensated"] = why
    reasons = [result.why for result in tested.values() if result.why]
    if reasons or not parameters["factor_bits"]:
        unknown["confirmed"] = (reasons or ["the bits of a factor are not known"])[0]
    else:
        parameters["confirmed"] = whole_sums.count_confirmed(sums, tree, tested, parameters)
    return parameters, unknown


def _agree_on_sums(joins: list[TestedAddition], sums: Sums) -> tuple[dict, dict[str, str]]:
    """Return what the additions of sums to sums do, if all kinds of them do the same, else why it is not decided."""
    if any(join.hidden for join in joins):
        return {}, {"outer_precision": f"the result, {sums.output}, shows no more bits"}
    if len({join.bits for join in joins}) > 1:
        return {}, {"outer_precision": "these additions keep different numbers of bits"}
    if not joins:
        return {}, {}
    rules = {_agree(join)[0].get("rounding") for join in joins}
    return {"outer_precision": joins[0].bits, "outer_rounding": rules.pop() if len(rules) == 1 else None}, {}


def _agree(tested: TestedAddition) -> tuple[dict, dict[str, str]]:
    """Return what all adders that explain the answers agree in, and for the rest why it is not decided."""
    if not tested.adders:
        return {"precision": None}, {"precision": tested.why, "rounding": tested.why}
    exact = {adder.extra_bits is None for adder in tested.adders}
    agreed, unknown = {"exact_sums": exact.pop() if len(exact) == 1 else None}, {}
    for name in ("rounding", *(() if agreed["exact_sums"] else ("extra_bits", "by_factors", "carries"))):
        is_common, value = find_common(tested.adders, name)
        if is_common:
            agreed[name] = value
        else:
            unknown[name] = f"{len(tested.adders)} adders explain all answers"
    return agreed, unknown


def _test_factors(sums: Sums, tree: Node) -> dict:
    """Return how many bits of the operands and of their product are used, and how the others are dropped."""
    bits = addition_probes.count_factor_bits(sums, tree)
    if bits is None:
        return {"factor_bits": None}
    product = addition_probes.count_product_bits(sums, tree, bits)
    exact = product == 2 * bits - 1 if bits > 2 else None  # the longest that is tried
    return {
        "factor_bits": bits,
        "product_bits": product,
        "factor_rounding": addition_probes.find_factor_rounding(sums, tree, bits)
        if bits < sums.format.precision
        else None,
        "exact_products": exact,
        "product_rounding": addition_probes.find_product_rounding(sums, tree, product) if exact is False else None,
    }


def look_at_way(
    way: MatmulWay, *, device: torch.device | str, places: int | None = None, width: int = WIDTH
) -> Finding:
    """Look at one way in which a device multiplies, at integers too; places: 128, of FP8 512.

    Raises: what `look_at_product` raises.
    """
    if not way.dtype.is_floating_point:
        return integer_products.look_at_integers(way, dtype=way.dtype, device=device)
    if places is None:
        places = LONG if way.dtype.itemsize == 1 else PLACES
    return look_at_product(way, dtype=way.dtype, places=places, width=width, device=device)


def look_at_device(
    device: torch.device | str, *, places: int | None = None, width: int = WIDTH
) -> tuple[dict[str, Finding], dict[str, str]]:
    """Look at all ways in which a device multiplies; return the findings, and why there is none of the other ways."""
    findings, refused = {}, {}
    for name, way in list_ways(device).items():
        if way.reason:
            refused[name] = way.reason
            continue
        try:
            findings[name] = look_at_way(way, device=device, places=places, width=width)
        except RuntimeError as error:  # a shape that this way does not take
            refused[name] = in_a_line(error)
    return findings, refused


def format_table(findings: Mapping[str, Finding], refused: Mapping[str, str]) -> str:
    """Return the findings as aligned text, one line per way, and below it why others are missing."""
    lines = [tables.align(summarize(findings))]
    for name, finding in findings.items():
        fields: dict[str, list[str]] = {}
        for field, why in finding.unknown:
            fields.setdefault(why, []).append(field)
        lines += [f"{name}: not decided: {', '.join(names)}; {why}" for why, names in fields.items()]
        if finding.everywhere is False:
            lines.append(f"{name}: not all places of the result add alike")
    return "\n".join([*lines, *(f"{name}: missing, {why}" for name, why in refused.items())])


# Records


def make_record(
    findings: Mapping[str, Finding], refused: Mapping[str, str], *, device: torch.device, shown: str = ""
) -> records.Record:
    """Return the findings as one record, with the evidence counted by question; `of_record` gives them back."""
    plain = {name: {k: v for k, v in asdict(finding).items() if k != "evidence"} for name, finding in findings.items()}
    counts = {name: Counter(probe.about for probe in finding.evidence) for name, finding in findings.items()}
    examples = {name: {probe.about: str(probe) for probe in finding.evidence} for name, finding in findings.items()}
    return measurement.make_record(
        NAME,
        recipe="products",
        size="small",
        device=device,
        settings={},
        results={"findings": plain, "refused": dict(refused)},
        samples={"asked": {name: dict(by_question) for name, by_question in counts.items()}, "last_of_them": examples},
        shown=shown,
        data="crafted sums",
        data_name="crafted",
    )


def of_record(record: records.Record) -> tuple[dict[str, Finding], dict[str, str]]:
    """Return the findings of a record, without their evidence, and why others are missing."""
    tuples = ("shape", "order", "confirmed", "unknown")
    findings = {}
    for name, fields in record.results["findings"].items():
        findings[name] = Finding(**(fields | {key: _to_tuples(fields[key]) for key in tuples}))
    return findings, record.results["refused"]


def _to_tuples(value):
    return tuple(map(_to_tuples, value)) if isinstance(value, list | tuple) else value
