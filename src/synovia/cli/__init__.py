"""The command line, ``synovia``: a file for each command, and what they share: inputs, output, progress, reports.

Data goes to stdout, talk to stderr. Exit codes: 0 all goals reached, 1 ran but some were missed, 2 usage, 3 bad input,
4 an extra is not installed, 70 a bug, 130 interrupted.
"""

from synovia.cli.app import main

__all__ = ["main"]
