"""``synovia retarget``: a clip of one body for another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.cli.clips import load_body, load_clip
from synovia.cli.output import emit, emit_json, talk
from synovia.cli.progress import Bar
from synovia.cli.run import MISSED, REACHED
from synovia.errors import InputError
from synovia.io.base import check_writable
from synovia.io.load import is_bundled

if TYPE_CHECKING:
    from synovia.retargeting import Retargeted

SCHEMA: Final = "synovia.retarget/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The command line of ``synovia retarget``, as it was typed."""

    source: str
    target: str
    clip: str | None
    output: Path | None
    joint_map: Path | None
    save_map: Path | None
    feet: bool
    jobs: int | None
    force: bool
    as_json: bool


def retarget_request(request: Request) -> int:
    """Carry the clip over, print and write; return the exit code.

    Raises:
        SynoviaError: If what an option says cannot be used.
    """
    from synovia.io.save import check_target, save_motion
    from synovia.retargeting import draft_map, read_map, retarget, write_map

    if request.output is not None:
        check_target(request.output, force=request.force)
    if request.save_map is not None:
        check_writable(request.save_map, force=request.force)
    motion, target = load_clip(request.source, request.clip), load_body(request.target)
    joint_map = read_map(request.joint_map) if request.joint_map is not None else None
    try:
        with Bar("retargeting", count=len(motion)) as bar:
            answer = retarget(motion, target, joint_map, feet=request.feet, threads=request.jobs, progress=bar)
    except InputError:
        if request.save_map is not None:
            _save_draft(request.save_map, draft_map(motion.skeleton, target, joint_map), force=request.force)
        raise
    if request.save_map is not None:
        write_map(answer.joint_map(), request.save_map, force=request.force)
    if request.output is not None:
        into = None if is_bundled(request.target) else request.target
        save_motion(answer.motion, request.output, into=into, force=request.force)
    if request.as_json:
        emit_json(_object(answer))
    else:
        emit(answer.report())
        if request.output is None:
            talk("nothing was written; -o OUT.bvh (.glb, .npz, .csv) keeps the motion")
    return MISSED if answer.missed else REACHED


def _save_draft(path: Path, joints: dict[str, tuple[str, str]], *, force: bool) -> None:
    """Write the joint map with gaps, where gaps are what is wrong."""
    from synovia.retargeting import NEEDED, write_map

    gaps = [part for part in NEEDED if not all(joints[part])]
    if gaps:
        write_map(joints, path, force=force)
        talk(f"{path}: the parts that were found; fill in {', '.join(gaps)} and give it back with --map {path}")


def _object(answer: Retargeted) -> dict[str, Any]:
    """Return the answer as plain values; lengths in the unit of the target's file."""
    names = answer.joint_map()
    return {
        "schema": SCHEMA,
        "source": answer.source.skeleton.name,
        "target": answer.target.skeleton.name,
        "frames": len(answer.motion),
        "fps": answer.motion.fps,
        "scale": answer.scale,
        "parts": [
            {
                "part": part.role,
                "source": names[part.role][0],
                "target": names[part.role][1],
                "rest_poses_differ_deg": float(np.degrees(part.angle)),
            }
            for part in answer.parts
        ],
        "contacts": {role: [list(span) for span in spans] for role, spans in answer.contacts.items()},
        "missed": list(answer.missed),
        "worst": answer.worst,
    }
