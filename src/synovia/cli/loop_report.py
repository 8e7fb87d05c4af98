"""Reports of ``inspect`` on the loops of a model and on its mobility."""

from __future__ import annotations

from typing import Any

import numpy as np
from click import style
from numpy.typing import NDArray

from synovia.model import Skeleton
from synovia.model.loops.loop import Coupling, Tie
from synovia.model.loops.tables import moved_by
from synovia.text import counted, listed, printable


def loops_object(skeleton: Skeleton) -> list[dict[str, Any]]:
    """Return the loops and couplings as plain values, radians and length units of the file."""
    locked = _locked(skeleton)
    out: list[dict[str, Any]] = []
    for tie in skeleton.loops:
        own: dict[str, Any] = {"name": tie.label, "conditions": tie.rows, "locked": tie in locked}
        if isinstance(tie, Coupling):
            terms = {joint: list(factors) for joint, factors in tie.terms.items()}
            own |= {"kind": "coupling", "terms": terms, "equals": tie.equals}
        else:
            own |= {
                "kind": tie.kind,
                "first": tie.first,
                "second": tie.second,
                "offset": tie.offset.tolist(),
                "other_offset": tie.other_offset.tolist(),
                "distance": tie.distance,
            }
        out.append(own)
    return out


def mobility_object(skeleton: Skeleton) -> dict[str, Any] | None:
    """Return the mobility of a model with loops as plain values; None without loops."""
    if skeleton.mechanism is None:
        return None
    found = skeleton.mechanism.mobility
    return {
        "freedom": found.freedom,
        "redundant": found.redundant,
        "singular": found.singular,
        "following": _names(skeleton, found.dependent),
        "locked": _names(skeleton, found.still),
    }


def mobility_text(skeleton: Skeleton, freedom: int) -> str:
    """Return the mobility of a model with loops as one line.

    Args:
        skeleton: The model, which has loops.
        freedom: Degrees of freedom of the model without the loops.
    """
    mechanism = skeleton.mechanism
    if mechanism is None:
        return ""
    found = mechanism.mobility
    couplings = sum(isinstance(tie, Coupling) for tie in skeleton.loops)
    loops = len(skeleton.loops) - couplings
    kinds = " and ".join(counted(n, word) for n, word in ((loops, "loop"), (couplings, "coupling")) if n)
    line = f"{kinds}: {found.freedom} of {counted(freedom, 'degree')} of freedom left"
    if found.redundant:
        line += f"; {counted(found.redundant, 'condition', verb=('is', 'are'))} redundant"
    if found.singular:
        line += "; the rest pose is singular"
    return line


def loops_text(skeleton: Skeleton) -> list[str]:
    """Return a line for each loop: name, kind, its two frames or its equation, and whether it locks its joints."""
    locked, lines = _locked(skeleton), list[str]()
    for tie in skeleton.loops:
        kind = "coupling" if isinstance(tie, Coupling) else tie.kind
        line = printable(tie.label) + style(f"  {kind}", fg="cyan")
        if isinstance(tie, Coupling):
            line += f"  {printable(_equation(tie))}"
        elif tie.name is not None:
            line += f"  {printable(tie.first)} - {printable(tie.second or 'world')}"
        if not isinstance(tie, Coupling) and tie.distance is not None:
            line += f"  {tie.distance:.6g} apart"
        if tie in locked:
            moved = listed([skeleton.joint_keys[row] for row in sorted(moved_by(skeleton, tie))])
            line += style(f"  locks {printable(moved)}", fg="yellow")
        lines.append(line)
    return lines


def _equation(tie: Coupling) -> str:
    """Return the equation of a coupling as text."""
    terms = [
        (factor, joint + ("" if power == 1 else f"^{power}"))
        for joint, factors in tie.terms.items()
        for power, factor in enumerate(factors, 1)
        if factor != 0.0
    ]
    text = ""
    for factor, name in terms:
        sign = "-" if factor < 0.0 else "+"
        size = "" if abs(factor) == 1.0 else f"{abs(factor):.4g} "
        text += (f" {sign} " if text else sign.replace("+", "")) + size + name
    return f"{text} = {tie.equals:.4g}"


def _locked(skeleton: Skeleton) -> list[Tie]:
    """Return the loops that lock all of their joints."""
    if skeleton.mechanism is None:
        return []
    owner, still = skeleton.tables.owner, skeleton.mechanism.mobility.still
    moving = {int(row) for row in owner[~still]}
    return [tie for tie in skeleton.loops if not moving & moved_by(skeleton, tie)]


def _names(skeleton: Skeleton, which: NDArray[np.bool_]) -> list[str]:
    """Return the names of the joints of some velocity variables, each once."""
    rows = {int(row): None for row in skeleton.tables.owner[which]}
    return [str(skeleton.joint_keys[row]) for row in rows]
