"""``python -m synovia``: run the command line if its script is not on the path."""

import sys

from synovia.cli import main

if __name__ == "__main__":
    sys.exit(main())
