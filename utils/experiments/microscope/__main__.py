"""The command line of the microscope: put every way in which a device multiplies into a table and a record.

    python -m utils.experiments.microscope --record DIR

A mistake in the arguments is one line on stderr and exit code 2.
"""

import argparse
import sys

from utils import records
from utils.experiments.microscope.crafted_sums import WIDTH
from utils.experiments.microscope.survey import NAME, format_table, look_at_device, make_record
from utils.runs import command_line


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_line.Parser(f"experiments.{NAME}", about=__doc__)
    parser.add_argument("--places", type=int, metavar="K", help="products of a sum; default: 128, of FP8 512")
    parser.add_argument("--width", type=int, default=WIDTH, metavar="N", help="rows and columns; default: %(default)s")
    return parser.checked(arguments)


@command_line.in_one_line(NAME)
def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        options = _parse(arguments)
        print(command_line.describe_run(options.device), flush=True)
        findings, refused = look_at_device(options.device, places=options.places, width=options.width)
    except (ValueError, OSError) as error:
        return command_line.complain(NAME, str(error), 2)
    print(format_table(findings, refused))
    if options.record:
        records.save(make_record(findings, refused, device=options.device, shown=options.command), options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
