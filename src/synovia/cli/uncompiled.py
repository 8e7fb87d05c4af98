"""One solve as plain Python, where its kernels would have to be compiled first, which takes up to half a minute.

Most solves take less than a second as plain Python. Whether one does is decided by its work, not by the clock, so that
a command gives the same answer every time. A solve that takes more work is repeated by a process that compiles.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from synovia.facade import IK
    from synovia.ik import Solution
    from synovia.model import Pose

_CHOICE: Final = "SYNOVIA_KERNELS"
_WORK: Final = 8000.0  # visits of joints: about two seconds as plain Python


class NeedsCompilerError(Exception):
    """The solve takes too much work for plain Python."""


def begin() -> bool:
    """Have kernels run as plain Python, if nobody chose otherwise and they did not come compiled.

    It must be called before kernels are imported, in a process that runs one command alone.

    Returns:
        Whether they do.
    """
    alone = click.get_current_context().obj
    if not alone or os.environ.get(_CHOICE) or "synovia.kernels.compiler" in sys.modules or find_spec("numba") is None:
        return False
    os.environ[_CHOICE] = "uncompiled"
    try:
        from synovia.kernels import compiler
    finally:
        del os.environ[_CHOICE]
    return compiler.mode == "python"


def solve(ik: IK, start: Pose | None) -> Solution:
    """Solve with little work.

    Args:
        ik: The problem; its work limit is lowered.
        start: Pose to start from.

    Raises:
        NeedsCompilerError: If the goals are missed: the answer might be another one with more work.
    """
    from synovia.kernels.layout import MOST_WORK

    ik.floats[MOST_WORK] = min(ik.floats[MOST_WORK], _WORK)
    solution = ik.solve(start=start)
    if not (solution.reached or ik.solver.closed):
        raise NeedsCompilerError
    return solution


def run_compiled() -> int:
    """Run the command of this process again, with kernels that are compiled, and return its exit code."""
    command = [sys.executable, *sys.orig_argv[1:]]
    return subprocess.run(command, env={**os.environ, _CHOICE: "jit"}, check=False).returncode  # noqa: S603 - this process's own command
