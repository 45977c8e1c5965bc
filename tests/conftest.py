"""What all tests share: reproducible Hypothesis examples, and tests that say why they were skipped on a machine."""

import gc
import os
import random
import shutil
import sys

import pytest
from hypothesis import settings

settings.register_profile("book", deadline=None, derandomize=True, database=None, max_examples=200)
settings.load_profile("book")


def pytest_collection_modifyitems(items):
    """Skip the tests marked `gpu` where there is no CUDA device; torch is imported only if there is such a test."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def pytest_collection_finish():
    """Spare the garbage collector 15,000 tests and all modules, which stay to the end."""
    gc.freeze()


@pytest.fixture(autouse=True)
def seeds():
    """Begin each test with the same random numbers, in whatever order the tests run; nothing is imported for it."""
    random.seed(0)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture
def compiler():
    """Skip, and say why, where torch.compile cannot work on a CPU."""
    import torch

    if not any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "g++", "clang++")):
        pytest.skip("no C++ compiler here, which torch.compile needs on a CPU")
    if " " in torch.__path__[0]:
        pytest.skip("torch.compile's linker does not find torch in a folder whose name has a space")
    if torch.backends.cpu.get_cpu_capability() == "DEFAULT":  # ATEN_CPU_CAPABILITY=default, torch 2.13
        pytest.skip("without vector instructions torch.compile writes C++ that names `at::vec` and does not compile")
