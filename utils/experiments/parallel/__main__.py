"""The command line of training on several processes: each way to split the work, and what it changes."""

import sys

from utils.experiments.parallel.comparison import main

if __name__ == "__main__":
    sys.exit(main())
