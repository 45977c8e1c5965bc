"""The command line of the capstone: plans, each promised and then trained."""

import sys

from utils.experiments.capstone.comparison import main

if __name__ == "__main__":
    sys.exit(main())
