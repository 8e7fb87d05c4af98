"""The command line, ``synovia``: ``commands`` holds names, options and help, the other modules what they do.

Data goes to stdout, talk to stderr. Exit codes: 0 all goals reached, 1 ran but some were missed, 2 usage, 3 bad input,
4 an extra is not installed, 70 a bug, 130 interrupted.
"""

from synovia.cli.run import main

__all__ = ["main"]
