"""`python -m turnstore`: the command line without its script on PATH."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
