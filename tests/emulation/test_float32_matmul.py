"""Switches are restored and say what torch says, and TF32 by hand is the rounding that its format has."""

import numpy as np
import pytest
import torch

from utils import machine
from utils.emulation import float32_matmul as precision
from utils.emulation.float32_matmul import NEW, OLD, OLD_PRODUCTS, WAYS
from utils.formats import TF32
from utils.rounding import quantize, toward_zero

CPU = torch.device("cpu")
GENERIC, CUDNN, CUDA, CONV, _, MKLDNN, *_ = NEW


@pytest.fixture(autouse=True)
def untouched():
    before = precision.switches()
    yield
    assert precision.switches() == before


def factors(k: int = 96) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(40, k, generator=generator), torch.randn(k, 30, generator=generator)


STATES = {
    "as torch starts": [],
    "old": [(OLD_PRODUCTS, "medium")],
    "old, products and convolutions": [(OLD[1], True), (OLD[2], False)],
    "new, products": [(CUDA, "tf32"), (MKLDNN, "bf16")],
    "new, convolutions": [(CONV, "ieee")],
    "new, everything": [(GENERIC, "tf32")],
    "new, a backend": [(CUDNN, "ieee")],
    "old, then new": [(OLD_PRODUCTS, "high"), (CUDA, "ieee")],
    "new, then old": [(CUDA, "tf32"), (OLD_PRODUCTS, "highest")],
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
@pytest.mark.parametrize("inside", STATES.values(), ids=STATES)
def test_whatever_is_set_inside_the_switches_are_as_before(state, inside):
    with precision.restored():
        for switch, value in state:
            precision.write(switch, value)
        before = precision.switches()
        with precision.restored():
            for switch, value in inside:
                precision.write(switch, value)
        assert precision.switches() == before


def test_the_switches_are_restored_after_an_error_as_well():
    with pytest.raises(KeyError), precision.allowing("high"):
        raise KeyError


def test_an_unknown_setting_is_an_error():
    words = "unknown setting 'lower'; use highest, high or medium"
    with pytest.raises(ValueError, match=words), precision.allowing("lower"):
        pass


@pytest.mark.parametrize(("word", "cuda", "cpu"), [("highest", "ieee", "ieee"), ("high", "tf32", "tf32")])
def test_the_old_switch_sets_the_new_ones(word, cuda, cpu):
    with precision.restored():
        precision.write(CUDA, "tf32")
        with precision.allowing(word):
            assert torch.get_float32_matmul_precision() == word
            assert (precision.read(CUDA), precision.read(MKLDNN)) == (cuda, cpu)


def test_medium_means_tf32_on_cuda_and_bfloat16_on_a_cpu():
    with precision.allowing("medium"):
        assert torch.backends.cuda.matmul.allow_tf32
        assert (precision.read(CUDA), precision.read(MKLDNN)) == ("tf32", "bf16")


def test_an_old_switch_refuses_to_be_read_after_a_new_one_was_set():
    with precision.restored():
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        for switch in OLD[:2]:
            with pytest.raises(RuntimeError, match="mix of the legacy and new APIs"):
                precision.read(switch)
        told = precision.switches()
        assert told[OLD_PRODUCTS].startswith("RuntimeError: PyTorch is checking the matmul precision")
        assert told[CUDA] == "tf32"


def test_convolutions_may_use_tf32_and_products_may_not_until_they_are_told():
    assert torch.backends.cudnn.allow_tf32
    assert precision.read(CONV) == "tf32"
    assert not torch.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize("kind", precision.SETTINGS)
def test_every_setting_is_in_force_while_its_bits_are_measured(kind, monkeypatch):
    seen = []

    def measured(on, *, product):
        seen.append((product, precision.switches()))
        return 7

    monkeypatch.setattr(machine, "product_bits", measured)
    rows = precision.kept(torch.device(kind))
    assert len(rows) == len(seen) == len(precision.SETTINGS[kind])
    for row, (setting, operation), (product, told) in zip(rows, precision.SETTINGS[kind], seen, strict=True):
        assert (row.operation, row.bits) == (operation, 7)
        assert product is (torch.matmul if operation == "product" else precision.convolved)
        if setting:
            assert told[setting[0]] == str(setting[1])
            with precision.restored():
                exec(row.setting, {"torch": torch})  # the line that is shown does the same
                assert precision.switches() == told


def test_this_machine_keeps_24_bits_of_both_until_it_is_told():
    rows = precision.kept(CPU)
    assert [row.bits for row in rows if row.setting == "as torch is set"] == [24, 24]
    assert all(row.bits in (24, 16, 11, 8) for row in rows)


def test_a_convolution_of_one_pixel_is_a_product():
    a, b = factors()
    torch.testing.assert_close(precision.convolved(a, b), a @ b)


def test_tf32_is_rounded_and_cut_as_its_format_says():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(5000, generator=generator) * torch.exp2(torch.randint(-140, 120, (5000,), generator=generator))
    edges = torch.tensor([0.0, -0.0, 1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-10 - 2**-23, -3e38, 1e-45, torch.inf])
    x = torch.cat([x, edges, -edges])
    np.testing.assert_array_equal(precision.tf32(x).numpy(), quantize(x, TF32))
    np.testing.assert_array_equal(precision.tf32_cut(x).numpy(), quantize(x, TF32, toward_zero))
    assert torch.equal(precision.tf32_cut(x).signbit(), x.signbit())
    with pytest.raises(TypeError, match=r"first 19 of float32; got torch\.float64"):
        precision.tf32_cut(x.double())


def test_three_bfloat16_make_a_float32_and_two_make_16_bits():
    x = torch.randn(5000, generator=torch.Generator().manual_seed(2))
    first, second, third = precision.bfloat16_parts(x, 3)
    assert all(torch.equal(part, part.bfloat16().float()) for part in (first, second, third))
    assert torch.equal(first.double() + second.double() + third.double(), x.double())
    missing = ((x.double() - first.double() - second.double()) / x.double()).abs().max()
    assert 2.0**-18 < missing <= 2.0**-16


@pytest.mark.parametrize(
    ("way", "bits"), [("float32", 24), ("bf16x3", 16), ("TF32", 11), ("TF32, cut", 11), ("bfloat16", 8)]
)
def test_a_way_keeps_the_bits_of_its_name_and_its_error_is_theirs(way, bits):
    # Two bfloat16 make 1 + 2**-k without a loss, so the bits that are counted do not show them; the error does.
    assert machine.product_bits(CPU, product=WAYS[way]) == (24 if way == "bf16x3" else bits)
    a, b = factors()
    error = precision.error(WAYS[way](a, b), a, b)
    assert error < (2.0**-bits if bits < 24 else 1e-6) * (2 if "cut" in way else 1)  # cut: up to a whole last place
    assert error > 2.0 ** -(bits + 3)


@pytest.mark.parametrize("way", WAYS)
def test_a_product_with_the_identity_gives_back_what_was_kept(way):
    a, _ = factors()
    same = WAYS[way](a, torch.eye(a.shape[1]))
    kept = {
        "float32": a,
        "bf16x3": sum(precision.bfloat16_parts(a, 2)),
        "TF32": precision.tf32(a),
        "TF32, cut": precision.tf32_cut(a),
        "bfloat16": a.bfloat16().float(),
    }
    assert torch.equal(same, kept[way])
    assert torch.equal(same, a) == (way == "float32")


def test_the_errors_are_ordered_and_cutting_is_worse_than_rounding():
    a, b = factors(512)
    errors = [precision.error(product(a, b), a, b) for product in WAYS.values()]
    assert errors == sorted(errors)
    assert precision.error((a.double() @ b.double()), a, b) == 0


@pytest.mark.gpu
def test_on_a_gpu_high_is_tf32_and_one_of_the_two_roundings():
    a, b = (x.cuda() for x in factors())
    rows = {(row.setting, row.operation): row.bits for row in precision.kept(a.device)}
    native = rows['torch.set_float32_matmul_precision("high")', "product"]
    assert native == rows['torch.set_float32_matmul_precision("medium")', "product"]
    assert native == (11 if torch.cuda.get_device_capability() >= (8, 0) else 24)
    with precision.allowing("high"):
        product, same = a @ b, a @ torch.eye(a.shape[1], device=a.device)
    assert torch.equal(same, a) == (native == 24)
    if native == 11:
        assert 2.0**-14 < precision.error(product, a, b) < 2.0**-10
