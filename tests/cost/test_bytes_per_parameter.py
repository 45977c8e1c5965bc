"""Each published number is the sum of its tensors, and the ledger's own numbers are among them."""

import pytest

from utils.cost import bytes_per_parameter, memory


def test_every_count_has_the_sum_that_was_published():
    assert {count.name: count.total for count in bytes_per_parameter.COUNTS} == {
        "float32": 16,
        "ZeRO": 16,
        "autocast": 18,
        "Megatron, bfloat16": 18,
        "Megatron, float16": 20,
        "playbook, bfloat16": 20,
        "FP8-LM's Adam": 16,
        "FP8-LM": 6,
        "playbook, FP8-LM": 9,
    }


def test_the_two_numbers_of_fp8_lm_differ_by_what_the_paper_leaves_out():
    counts = {count.name: count.bytes for count in bytes_per_parameter.COUNTS}
    ours, theirs = counts["playbook, FP8-LM"], counts["FP8-LM"]
    assert {name: size for name, size in ours.items() if name not in theirs} == {
        "weights": 1,
        "accumulated gradients": 2,
    }
    assert all(ours[name] == size for name, size in theirs.items())


def test_the_rows_hold_every_tensor_of_every_count_and_their_sums():
    rows = bytes_per_parameter.reconcile()
    assert [row["tensor"] for row in rows] == [*bytes_per_parameter.TENSORS, "sum"]
    for count in bytes_per_parameter.COUNTS:
        column = [row[count.name] for row in rows]
        assert sum(column[:-1]) == column[-1] == count.total
        assert set(count.bytes) <= set(bytes_per_parameter.TENSORS)
        assert all(count.bytes.values())
        assert count.source


@pytest.mark.parametrize(("name", "published"), [("32-true", "float32"), ("bf16-true-master", "ZeRO")])
def test_the_ledger_counts_as_some_of_them(name, published):
    count = {count.name: count for count in bytes_per_parameter.COUNTS}[published]
    ledger = memory.predict("LLaMA 7B", name, batch=0)
    assert ledger.per_parameter == pytest.approx(count.total, abs=1e-6)
    assert ledger.gradients == ledger.parameters * count.bytes["gradients"]
    assert ledger.master == ledger.parameters * count.bytes.get("master weights", 0)


def test_autocast_takes_nearly_eighteen_while_its_copies_are_there():
    ledger = memory.predict("LLaMA 7B", "bf16-mixed", batch=1, length=8)
    assert ledger.per_parameter == pytest.approx(16, abs=1e-6)
    assert 17.9 < ledger.per_parameter + ledger.casts / ledger.parameters < 18  # the embeddings are not cast
