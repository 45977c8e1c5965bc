"""What an exception says, in one line: for notes and tables, where a trace has no room.

try: ...
except RuntimeError as error:
    note = in_a_line(error)  # "RuntimeError: mat1 and mat2 shapes cannot be multiplied"
"""

import torch

SPACE = "torch lies in a folder whose name has a space, and its compiler's linker does not find it there"


def first_line(error: BaseException) -> str:
    """Return the first line of the message."""
    return (str(error).strip() or "it says nothing more").splitlines()[0]


def in_a_line(error: BaseException) -> str:
    """Return the kind of the exception and the first line of its message."""
    return f"{type(error).__name__}: {first_line(error)}"


def of_compiler(error: BaseException, *, folder: str = torch.__path__[0]) -> str:
    """Return `in_a_line` for what `torch.compile` raised, with the cause where the folder of torch is the cause.

    The command that links a kernel for a CPU names that folder without quotes, which ends in a "C++ compile error".
    Where the first line only says which backend raised, the second one says what.
    """
    text = in_a_line(error)
    if text.endswith("raised:"):
        text = " ".join([text, *[line.strip() for line in str(error).split("\n")[1:] if line.strip()][:1]])
    return f"{text}: {SPACE}" if "C++ compile error" in text and " " in str(folder) else text
