"""`python -m turnstore.cli`: the command line without its script on PATH."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
