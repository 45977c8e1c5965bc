"""What the TF32 recipe promises: a check that tells TF32 from float32, and switches that do what they say."""

import subprocess
import sys

import pytest
import torch

import recipe_scripts

MATMUL = "torch.backends.cuda.matmul.fp32_precision"
CONV = "torch.backends.cudnn.conv.fp32_precision"


@pytest.fixture
def script():
    return recipe_scripts.load("tf32")


def cut(x, bits):
    """Drop the low fraction bits of a float32, as a tensor core does that reads fewer."""
    return (x.view(torch.int32) & -(1 << (23 - bits))).view(torch.float32)


def rounded(x, bits):
    """Round a float32 to so many fraction bits, ties to even."""
    code, low = x.view(torch.int32), 23 - bits
    code = code + (1 << (low - 1)) - 1 + ((code >> low) & 1)
    return (code & -(1 << low)).view(torch.float32)


def in_new_process(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_runs_as_it_stands_and_ends_without_an_error(tmp_path):
    done = recipe_scripts.run_as_shown("tf32", tmp_path)
    if not torch.cuda.is_available():
        last = done.stdout.splitlines()[-1]
        assert last == "There is no TF32 on this cpu device; the check found float32."
        assert done.stdout.count("keeps 24 bits: float32") == 6


@pytest.mark.parametrize("narrow", [cut, rounded])
@pytest.mark.parametrize(("bits", "name"), [(10, "TF32"), (7, "bfloat16")])
def test_the_check_recognises_an_emulated_product(script, narrow, bits, name):
    script.device = "cpu"
    kept = script.bits_kept(lambda x, eye: narrow(x, bits) @ narrow(eye, bits))
    assert kept == bits + 1
    assert script.NAMES[kept] == name


def test_the_check_recognises_float32(script):
    script.device = "cpu"
    assert script.NAMES[script.bits_kept(torch.matmul)] == "float32"
    assert script.NAMES[script.bits_kept(script.convolution)] == "float32"


def test_one_plus_two_to_the_minus_12_loses_its_last_bit_only_in_tf32():
    x, eye = torch.full((4, 4), 1 + 2.0**-12), torch.eye(4)
    assert (x @ eye == x).all()
    assert (cut(x, 10) @ eye == 1).all()
    assert (rounded(x, 10) @ eye == 1).all()


def test_the_switches_are_set_and_read_back(tmp_path):
    (tmp_path / "tf32.py").write_text(recipe_scripts.script_of("tf32"), "utf8")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import tf32
for on in (None, True, False):
    if on is not None:
        tf32.set_tf32(on)
    print(dict(tf32.switches()))
"""
    imported, on, off = (eval(line) for line in in_new_process(code).splitlines())
    assert (imported[MATMUL], imported[CONV]) == ("none", "tf32")  # products off, convolutions on
    assert (on[MATMUL], on[CONV]) == ("tf32", "tf32")
    assert (off[MATMUL], off[CONV]) == ("ieee", "none")
    older = [name for name in on if name.startswith("older")]
    assert [on[name] for name in older] == [True, True, "high"]
    assert [off[name] for name in older] == [False, False, "highest"]


def test_reading_an_older_switch_after_a_newer_one_was_set_raises():
    printed = in_new_process("""
import torch
torch.backends.cuda.matmul.fp32_precision = "tf32"
for ask in (lambda: torch.backends.cuda.matmul.allow_tf32, torch.get_float32_matmul_precision):
    try:
        ask()
    except RuntimeError as error:
        print(error)
""")
    assert printed.count("mix of the legacy and new APIs") == 2


def test_the_older_switches_set_the_newer_ones_too():
    printed = in_new_process("""
import torch
torch.set_float32_matmul_precision("high")
torch.backends.cudnn.allow_tf32 = True
print(torch.backends.cuda.matmul.fp32_precision, torch.backends.cudnn.conv.fp32_precision)
print(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)
torch.set_float32_matmul_precision("highest")
torch.backends.cudnn.allow_tf32 = False
print(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)
""")
    assert printed.splitlines() == ["tf32 tf32", "True True", "False False"]


@pytest.mark.gpu
def test_a_gpu_with_tf32_says_so(script):
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("a GPU without TF32")
    products, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        for on, bits in ((True, 11), (False, 24)):
            script.set_tf32(on)
            assert script.bits_kept(script.product) == bits
            assert script.bits_kept(script.convolution) == bits
    finally:
        torch.set_float32_matmul_precision(products)
        torch.backends.cudnn.allow_tf32 = convolutions
