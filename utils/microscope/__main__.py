"""The command line of the microscope: every way in which a device multiplies, as a table, and as a record.

python -m utils.microscope --record DIR
"""

import argparse
import sys

from utils import command, machine, records
from utils.microscope import NAME, record, survey, table
from utils.microscope.crafted_sums import WIDTH


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = command.Parser(prog=f"python -m utils.{NAME}", allow_abbrev=False)
    parser.add_argument("--device", help="cpu, cuda or cuda:N; default: a GPU where there is one")
    parser.add_argument("--places", type=int, metavar="K", help="products of a sum; default: 128, of FP8 512")
    parser.add_argument("--width", type=int, default=WIDTH, metavar="N", help="rows and columns; default: %(default)s")
    parser.add_argument("--record", nargs="?", const=str(records.RESULTS), metavar="DIR", help="write a record")
    found = parser.parse_args(arguments)
    if found.record:
        records.check_folder(found.record)
    found.device = machine.device(found.device)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        options = _parse(arguments)
        print(f"device   {machine.describe(options.device)}", flush=True)
        findings, refused = survey(options.device, places=options.places, width=options.width)
    except (ValueError, OSError) as error:
        return command.complain(NAME, str(error), 2)
    print(table(findings, refused))
    if options.record:
        shown = command.shown_command(arguments, program=NAME)
        records.save(record(findings, refused, device=options.device, shown=shown), options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
