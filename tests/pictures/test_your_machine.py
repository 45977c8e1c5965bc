"""The picture of `your_machine` multiplies the same numbers in both halves, and counts what it draws."""

import torch
from matplotlib.patches import Rectangle

from utils import plots
from utils.pictures import your_machine
from utils.pictures.your_machine import LEFT, NARROW, REGISTER, RIGHT, WIDE, two_ways

BITS = {NARROW: 16, WIDE: 32}


def rows(ax, left):
    """The registers in one half, from the top: the width of a number in bits, and the numbers."""
    boxes = [patch for patch in ax.patches if isinstance(patch, Rectangle) and left <= patch.get_x() < left + REGISTER]
    numbers = {(round(text.get_position()[0], 3), round(text.get_position()[1], 3)): text for text in ax.texts}
    found = {}
    for box in boxes:
        text = numbers[round(box.get_x() + box.get_width() / 2, 3), round(box.get_y() + 0.57, 3)]
        found.setdefault(box.get_y(), []).append(
            (128 * box.get_width() / REGISTER, float(text.get_text()), text.get_color())
        )
    return [found[y] for y in sorted(found, reverse=True)]


def test_each_register_has_128_bits_in_boxes_of_its_format():
    (ax,) = two_ways().axes
    for half in (rows(ax, LEFT), rows(ax, RIGHT)):
        for row in half:
            assert abs(sum(bits for bits, _, _ in row) - 128) < 1e-6
            assert {round(bits) for bits, _, _ in row} == {BITS[row[0][2]]}


def test_both_halves_give_the_sums_of_neighbours():
    (ax,) = two_ways().axes
    native, emulated = rows(ax, LEFT), rows(ax, RIGHT)
    a, b = ([value for _, value, _ in row] for row in native[:2])
    assert native[:2] == emulated[:2]
    wanted = [a[k] * b[k] + a[k + 1] * b[k + 1] for k in range(0, 8, 2)]
    assert [value for _, value, _ in native[-1]] == [value for _, value, _ in emulated[-1]] == wanted
    pairs = [[value for _, value, _ in row] for row in emulated[2:-1]]
    assert pairs == [a[0::2], b[0::2], a[1::2], b[1::2]]


def test_the_instructions_are_counted():
    (ax,) = two_ways().axes
    counts = [text.get_text() for text in ax.texts if "instruction" in text.get_text()]
    assert sorted(counts) == ["1 instruction", "2 instructions", "4 instructions"]
    assert len(rows(ax, RIGHT)) - 3 == 4  # one widening for each register that it fills


def test_a_shift_and_a_mask_widen_every_second_number():
    x = torch.tensor(your_machine.A, dtype=torch.bfloat16)
    words = x.view(torch.int32)  # two numbers each, the first one in the lower half
    assert torch.equal((words << 16).view(torch.float32), x.float()[0::2])
    assert torch.equal((words & -65536).view(torch.float32), x.float()[1::2])


def test_the_colours_are_those_of_the_formats():
    assert plots.LOOKS["bfloat16"].color == NARROW
    assert plots.LOOKS["float32"].color == WIDE
