"""Training on several processes: losses as of one process, bytes as predicted, and what is kept in which dtype."""

import json
import math
import sys

import pytest
import torch

from utils import distilbert
from utils.experiments import fabric
from utils.experiments.parallel import all_reduce, comparison, processes, worker
from utils.experiments.parallel.processes import RankPlace
from utils.experiments.parallel.ways import DDP, FSDP2, WAYS, count_padded, find_way
from utils.formats import BFLOAT16, FLOAT16
from utils.training import batches
from utils.workloads import data, review_task

CPU = torch.device("cpu")
STEPS = 8
each_way = pytest.mark.parametrize("name", WAYS)


@pytest.fixture(scope="module")
def task() -> review_task.ReviewTask:
    return review_task.prepare(data.generated_reviews("small"))


@pytest.fixture(scope="module")
def results() -> dict[str, comparison.ParallelResult]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DATA", "WEIGHTS", "SIZE", "DEVICE"):
            patch.delenv(f"MIXED_PRECISION_{name}", raising=False)
        patch.setenv("HF_HUB_OFFLINE", "1")
        return comparison.run(steps=STEPS, ranks=2, device=CPU, size="small", seconds=300)


@pytest.fixture(scope="module")
def alone(task) -> list[float]:
    return fabric.train_ours("32-true", task, steps=STEPS, device=CPU)


@pytest.fixture(scope="module")
def shapes(task) -> dict[str, list[tuple[int, ...]]]:
    model = task.new_model(0)
    parts = {"all": model, "layers": model.distilbert.transformer.layer}
    return {name: [tuple(weight.shape) for weight in part.parameters()] for name, part in parts.items()}


# Two processes, started once for all of these


@pytest.mark.slow
@each_way
def test_the_losses_of_two_ranks_are_those_of_one_process_within_the_stated_bound(results, alone, name):
    found = results[name]
    assert found.about["backend"] == "gloo"
    assert len(found.losses) == STEPS
    assert found.difference(alone) <= found.bound, found.difference(alone)
    assert alone[-1] != pytest.approx(alone[-2], abs=found.bound)  # the bound tells one step from another


@pytest.mark.slow
@each_way
def test_all_ranks_end_with_the_same_weights(results, name):
    assert results[name].same_weights


@pytest.mark.slow
def test_what_travels_in_16_bits_changes_the_weights(results):
    assert len({found.ranks[0]["weights"] for name, found in results.items() if name != "fsdp2"}) == len(WAYS) - 1


@pytest.mark.slow
@each_way
def test_the_bytes_on_the_wire_are_those_that_were_predicted(results, shapes, name):
    found, chosen = results[name], WAYS[name]
    if chosen.kind == DDP:
        predicted = chosen.sent(sum(map(math.prod, shapes["all"])), ranks=2)
    else:
        layers = count_padded(shapes["layers"], ranks=2)
        predicted = chosen.sent(count_padded(shapes["all"], ranks=2), ranks=2, layers=layers)
    assert sum(found.counted.values()) == sum(predicted.values())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the bytes of a socket")
@pytest.mark.parametrize("name", ["ddp", "ddp-bf16"])
def test_the_sockets_carry_what_was_counted(results, name):
    found = results[name]
    assert sum(found.counted.values()) <= found.socket_bytes < 1.1 * sum(found.counted.values())


@pytest.mark.slow
@each_way
def test_each_rank_keeps_what_the_way_says(results, shapes, name):
    found, chosen = results[name], WAYS[name]
    count = count_padded(shapes["all"], ranks=2) if chosen.kind == FSDP2 else sum(map(math.prod, shapes["all"]))
    for what, (dtype, size) in chosen.kept(count, ranks=2).items():
        for rank in found.ranks:
            kept_dtype, kept_size = rank["kept"][what]
            assert kept_dtype == dtype
            assert size - 2048 <= kept_size <= size  # a rank may lack the rows that fill a part up
    assert found.ranks[0]["layers"]["weights"] == str(chosen.compute).removeprefix("torch.")


@pytest.mark.slow
def test_only_float16_scales_its_loss_and_alike_on_all_ranks(results):
    for name, found in results.items():
        assert all(rank["scales"] == found.ranks[0]["scales"] for rank in found.ranks)
        assert bool(found.ranks[0]["scales"]) == WAYS[name].needs_loss_scaling


@pytest.mark.slow
def test_a_record_and_a_row_say_what_was_found(results):
    found = results["fsdp2-bf16"]
    record = comparison.make_record(found, steps=STEPS, shown="a command")
    assert record.name == "parallel-fsdp2-bf16-2-small-generated-cpu-seed0"
    assert record.settings["ranks"] == 2
    assert json.dumps(record.results)
    assert len(record.samples["loss"]) == STEPS
    text = comparison.format_table({"fsdp2-bf16": found})
    assert text.splitlines()[1].split()[:3] == ["fsdp2-bf16", "bfloat16", "float32"]


# Pieces


def test_the_shares_of_the_ranks_are_the_batch():
    whole = batches.Batch(torch.arange(24).view(8, 3), torch.ones(8, 3), torch.arange(8))
    parts = [worker.take_share(whole, RankPlace(rank, 4, CPU, "gloo")) for rank in range(4)]
    assert sorted(torch.cat([part.labels for part in parts]).tolist()) == list(range(8))
    assert {part.ids.shape for part in parts} == {(2, 3)}
    assert torch.equal(parts[1].ids, whole.ids[1::4])


def test_a_batch_that_does_not_divide_is_refused():
    whole = batches.Batch(torch.ones(8, 3), torch.ones(8, 3), torch.ones(8))
    with pytest.raises(ValueError, match="a batch of 8 texts does not divide by 3 ranks; change --ranks"):
        worker.take_share(whole, RankPlace(0, 3, CPU, "gloo"))


def test_every_batch_of_the_small_task_divides_by_two_four_and_eight(task):
    assert {len(batch.labels) % 8 for batch in distilbert.make_plan(task).draw(0)} == {0}


def test_ddp_sends_twice_the_gradients_of_half_a_ring_and_fsdp2_half_again_as_much():
    million = 1_000_000
    assert WAYS["ddp"].sent(million, ranks=2) == {"gradients": 4 * million}
    assert WAYS["ddp-bf16"].sent(million, ranks=2) == {"gradients": 2 * million}
    assert sum(WAYS["fsdp2"].sent(million, ranks=2).values()) == 1.5 * WAYS["ddp"].sent(million, ranks=2)["gradients"]
    assert WAYS["fsdp2-bf16"].sent(million, ranks=4) == {"weights": 3 * million, "gradients": 3 * million}


def test_fsdp2_keeps_a_part_and_ddp_all():
    assert WAYS["ddp"].kept(1000, ranks=8)["moments"] == ("float32", 8000)
    assert WAYS["fsdp2-bf16"].kept(1000, ranks=8)["moments"] == ("float32", 1000)


def test_parts_are_filled_up_to_equal_rows():
    assert count_padded([(5, 3), (4,)], ranks=2) == 6 * 3 + 4
    assert count_padded([(5, 3), (4,)], ranks=1) == 19


@each_way
def test_the_policy_of_a_way_has_its_dtypes(name):
    policy = WAYS[name].policy()
    assert (policy.param_dtype, policy.reduce_dtype) == (WAYS[name].compute, WAYS[name].wire)
    assert find_way(name) is WAYS[name]


def test_mistakes_on_the_command_line_are_one_line_before_anything_starts(capsys, monkeypatch):
    monkeypatch.setattr(processes, "run", lambda *_, **__: pytest.fail("started"))
    for arguments, said in ((["--way", "ddp3"], "unknown way 'ddp3'"), (["--ranks", "0"], "--ranks 0 is below 1")):
        assert comparison.main(arguments) == 2
        assert said in capsys.readouterr().err


def test_ranks_without_a_gpu_each_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="2 ranks need a GPU each, and there are 1; give --ranks 1 or --device cpu"):
        comparison.run(["ddp"], device=torch.device("cuda"))


@pytest.mark.parametrize(("ranks", "size", "batch"), [(3, "small", 32), (8, "full", 12)])
def test_ranks_that_do_not_divide_a_batch_are_refused_before_anything_starts(monkeypatch, ranks, size, batch):
    monkeypatch.setattr(processes, "run", lambda *_, **__: pytest.fail("started"))
    with pytest.raises(ValueError, match=f"a batch of {batch} texts does not divide by {ranks} ranks"):
        comparison.run(["ddp"], ranks=ranks, device=CPU, size=size)


def test_a_lost_rank_is_one_line_and_exit_code_2(capsys, monkeypatch):
    def lost(*_, **__):
        raise processes.RankLost("rank 1 was killed by signal 9; the other ranks were ended")

    monkeypatch.setattr(processes, "run", lost)
    assert comparison.main(["--way", "ddp"]) == 2
    assert capsys.readouterr().err == "parallel: rank 1 was killed by signal 9; the other ranks were ended\n"


WORKER = """
import sys, torch, torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from utils.experiments.parallel import processes
from utils.experiments.parallel.worker import Payloads, average_compressed, count_socket_bytes

with processes.join_ranks(on_gpus=False) as place:
    own = torch.randn(1, 256, generator=torch.Generator().manual_seed(place.rank))
    for dtype in (torch.bfloat16, torch.float16):
        model = nn.parallel.DistributedDataParallel(nn.Linear(256, 1, bias=False))
        model.register_comm_hook(dtype, average_compressed)
        with Payloads() as sent:
            model(own).backward()
        if place.rank == 0:
            print("hook", model.module.weight.grad.flatten().tolist(), dict(sent.elements))
    model = nn.Linear(4, 4)
    fully_shard(model, mesh=init_device_mesh("cpu", (place.ranks,)))
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu", init_scale=8.0)
    before = model.weight.full_tensor().detach().clone()
    scaler.scale(model(torch.ones(1, 4)).sum()).backward()
    if place.rank == 1:
        model.weight.grad.to_local()[0, 0] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    mine = torch.randn(place.ranks, 1200, generator=torch.Generator().manual_seed(3)).bfloat16()[place.rank]
    dist.all_reduce(mine)
    if place.rank == 0:
        print("gloo", mine.tolist())
    print("scale", scaler.get_scale(), torch.equal(before, model.weight.full_tensor()))
"""


@pytest.mark.slow
def test_hook_and_gloo_add_as_emulated_and_an_infinity_on_one_rank_stops_the_step_on_all(tmp_path):
    path = tmp_path / "worker.py"
    path.write_text(WORKER)
    lines = processes.run([str(path)], ranks=3, seconds=120).output.splitlines()
    own = torch.cat([torch.randn(1, 256, generator=torch.Generator().manual_seed(rank)) for rank in range(3)])
    hooks = [line.removeprefix("hook ") for line in lines if line.startswith("hook")]
    for text, dtype in zip(hooks, ("bfloat16", "float16"), strict=True):
        averaged, _, counted = text.rpartition(" {")
        wire = BFLOAT16 if dtype == "bfloat16" else FLOAT16
        assert json.loads(averaged) == all_reduce.all_reduce(own, order="gloo", wire=wire, mean="before").tolist()
        assert counted == f"('all_reduce', '{dtype}'): 256}}"
    assert [line for line in lines if line.startswith("scale")] == ["scale 4.0 True"] * 3
    values = torch.randn(3, 1200, generator=torch.Generator().manual_seed(3))
    sums = all_reduce.all_reduce(values, order="gloo", wire=BFLOAT16).tolist()
    assert [json.loads(line.removeprefix("gloo ")) for line in lines if line.startswith("gloo")] == [sums]
