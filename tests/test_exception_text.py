"""What an exception says, in one line."""

import pytest

from utils.exception_text import SPACE, first_line, in_a_line, of_compiler

LINKER = RuntimeError("CppCompileError: C++ compile error\n\nCommand:\ng++ main.cpp")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("  one\ntwo "), "ValueError: one"),
        (AssertionError(), "AssertionError: it says nothing more"),
        (KeyError("\n"), r"KeyError: '\n'"),
    ],
)
def test_the_first_line_is_what_is_left(error, line):
    assert in_a_line(error) == line == f"{type(error).__name__}: {first_line(error)}"


def test_a_space_in_the_folder_of_torch_is_named_where_it_is_the_cause():
    said = in_a_line(LINKER)
    assert of_compiler(LINKER, folder="/a b/torch") == f"{said}: {SPACE}"
    assert of_compiler(LINKER, folder="/ab/torch") == said
    assert of_compiler(ValueError("no such operator"), folder="/a b/torch") == "ValueError: no such operator"


def test_what_a_backend_raised_stands_behind_its_name():
    raised = RuntimeError("backend='inductor' raised:\n\nCppCompileError: C++ compile error\n\nCommand:\ng++ main.cpp")
    said = "RuntimeError: backend='inductor' raised: CppCompileError: C++ compile error"
    assert of_compiler(raised, folder="/ab/torch") == said
    assert of_compiler(raised, folder="/a b/torch") == f"{said}: {SPACE}"
    assert of_compiler(RuntimeError("backend='x' raised:")) == "RuntimeError: backend='x' raised:"
