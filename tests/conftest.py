"""What all tests share: reproducible Hypothesis examples, and GPU tests that say why they were skipped."""

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
