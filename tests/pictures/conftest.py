"""Pictures are drawn without a screen, and none stays open."""

import matplotlib
import matplotlib.pyplot as plt
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")
