"""Every way to meet the goals, where a closed form knows them: ``IK.branches``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from synovia.batch import new_scratch
from synovia.ik.solution import rows_of
from synovia.ik.solutions import Solutions
from synovia.ik.starts import as_start
from synovia.model import Pose
from synovia.solver import lister_of

if TYPE_CHECKING:
    from synovia.ik.door import Targets
    from synovia.ik.ik import IK
    from synovia.ik.starts import Start
    from synovia.solver.base import Kernel

_MOST = 65  # rows of the answer, one of which is the kernel's own
_DISTANCE = 4  # where the kernel leaves how far a branch is from the start
_LISTERS: WeakKeyDictionary[IK, Kernel] = WeakKeyDictionary()  # the structure is looked at once


def list_branches(ik: IK, targets: Targets | None = None, start: Start | None = None) -> Solutions:
    """Return every pose within the limits that a closed form finds for the goals, the nearest to the start first.

    Where one parameter stays free (the swivel of an elbow), each branch has it as ``solve`` would choose it.

    Args:
        ik: The problem.
        targets: As in ``solve``.
        start: As in ``solve``.

    Raises:
        UnsupportedError: If the solver lists no branches.
        InputError: If a value cannot be used.
    """
    inner: Any = ik  # of its own family
    pose = ik.default_start
    if start is not None:
        pose = Pose.quick(ik.skeleton, start) or as_start(start, ik.skeleton, inner._given)
    lister = _LISTERS.get(ik)
    if lister is None:
        lister = _LISTERS[ik] = lister_of(ik.solver, inner._reduced)
    try:
        desk = inner._idle.pop()  # as ``solve`` does
    except IndexError:
        desk = inner._door.desk(new_scratch(inner._scratch_size))
    try:
        inner._door.fill(targets, desk)
        out = rows_of(ik, _MOST)
        count = lister(inner._ints, inner._floats, desk.table, pose.inside, out, desk.scratch, False, 0)
        if count < 0:
            inner._door.refuse(count, targets)
    finally:
        inner._idle.append(desk)
    order = np.argsort(out[:count, _DISTANCE], kind="stable")
    return Solutions(ik, out[order], pose.values.reshape(1, -1))
