"""The command line, ``synovia``: ``commands`` has a file for each command; the files here are shared.

Data goes to stdout, messages to stderr. Exit codes: 0 all goals reached, 1 some goals missed, 2 wrong usage, 3 bad
input, 4 an extra is not installed, 70 a bug, 130 interrupted, 143 ended by SIGTERM, 129 by SIGHUP.
"""

from synovia.cli.app import main

__all__ = ["main"]
