"""What can be taken away from a page: its goals as a file, as Python and as a command, its pose and its motion."""

from __future__ import annotations

import shlex
import struct
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from synovia.errors import UnsupportedError
from synovia.geometry import Array, quat_to_matrix, rigid
from synovia.goals import Goal
from synovia.ik.goalwrite import entry_of, goals_text
from synovia.io.bvh import write_bvh
from synovia.io.posefile import write_pose
from synovia.motion import Motion
from synovia.skeleton import Pose
from synovia.viewer.clip import sample
from synovia.viewer.root import lifted, lowered
from synovia.viewer.session import Session


def goals_of(session: Session) -> list[Goal]:
    """Return the enabled goals, on the skeleton that was given, where they are asked to be."""
    with session.lock:
        return [wish.goal(lambda row: _address(session, row), wanted=True) for wish in session.wishes if wish.enabled]


def _address(session: Session, row: int) -> str | int:
    """Return a joint's name where it means that joint alone, else its row."""
    name = session.given.joint_names[row]
    return name if session.given.joint_names.count(name) == 1 else row


def goal_file(session: Session) -> bytes:
    """Return the enabled goals as a goal file.

    Raises:
        UnsupportedError: If there is none, or the file has no room for one.
    """
    goals = goals_of(session)
    if not goals:
        raise UnsupportedError("there is no enabled goal to save")
    return goals_text(goals).encode(errors="replace")


def command_line(session: Session, model: str) -> str:
    """Return the command that solves the saved goals from the saved pose."""
    words = [
        "synovia",
        "solve",
        model,
        "--goals",
        "goals.toml",
        "--start",
        "pose.json",
        "--solver",
        session.solver.name,
    ]
    if session.mode == "free":
        words += ["--root", "free"]
    return shlex.join(words)


def python_text(session: Session, model: str) -> str:
    """Return a script that solves the same goals."""
    goals = goals_of(session)
    if not goals:
        return "# no goal is enabled\n"
    lines = ["import synovia as sy", "", f"body = {_opened(model)}", "goals = ["]
    lines += [f"    sy.{type(goal).__name__}({', '.join(_arguments(goal))})," for goal in goals]
    settings = session.solver
    defaults = type(settings)()
    changed = [
        f"{name}={getattr(settings, name)!r}"
        for name in settings.__dataclass_fields__
        if getattr(settings, name) != getattr(defaults, name)
    ]
    root = ', root="free"' if session.mode == "free" else ""
    lines += ["]", f"solver = sy.{type(settings).__name__}({', '.join(changed)})"]
    if session.mode not in ("fixed", "free"):
        lines.append(f"# on the page the root slides along {session.mode}; here it is held")
    lines += [f"solution = sy.solve(body, goals, solver{root})", "print(solution)"]
    return "\n".join(lines) + "\n"


def _opened(model: str) -> str:
    """Return the expression that opens a model."""
    from synovia.io.bundled import bundled_names

    if model in bundled_names() and not Path(model).exists():
        return f"sy.bundled({model!r})"
    return f"sy.load_skeleton({model!r})"


def _arguments(goal: Goal) -> list[str]:
    """Return the arguments of a goal's constructor: those of a goal file, turned into Python."""
    entry = entry_of(goal)
    out = [repr(entry.pop("joint"))] if "joint" in entry else []
    entry.pop("kind")
    for name in ("offset", "other_offset"):  # with a rotation, a frame
        if (turn := entry.pop(f"{name}_rotation", None)) is not None:
            entry[name] = rigid(entry.get(name, (0.0, 0.0, 0.0)), quat_to_matrix(np.array(turn["quat_xyzw"]))).tolist()
    if (turn := entry.pop("rotation", None)) is not None:
        entry |= turn
    if (values := entry.pop("values", None)) is not None:
        entry["pose"] = values
    return out + [f"{name}={_python(value)}" for name, value in entry.items()]


def _python(value: Any) -> str:
    """Return a value in Python's words; points and quaternions with nine digits."""
    if isinstance(value, list):
        parts = cast("list[Any]", value)
        if all(isinstance(part, float) for part in parts):
            return "(" + ", ".join(repr(float(f"{part:.9g}") + 0.0) for part in parts) + ")"
    return repr(cast("object", value))


def pose_file(session: Session) -> bytes:
    """Return the pose as a pose file: that of the given skeleton, or with its free root where it has one."""
    with session.lock:
        pose = session.pose
        if session.mode not in ("fixed", "free"):
            pose = Pose(session.given, lowered(pose.q, session.given))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pose.json"
        write_pose(path, pose)
        return path.read_bytes()


def motion_file(motion: Motion) -> bytes:
    """Return a motion as a BVH file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "motion.bvh"
        write_bvh(motion, path)
        return path.read_bytes()


def png(picture: NDArray[np.uint8]) -> bytes:
    """Return a picture, (height, width, 3 or 4), as a PNG file."""
    height, width, channels = picture.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # every row begins with "no filter"
    rows[:, 1:] = np.ascontiguousarray(picture, np.uint8).reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 6 if channels == 4 else 2, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b"")]
    parts = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def solved_clip(session: Session, recorded: Sequence[Array]) -> Motion:
    """Return the motion of a page: what was recorded, else the clip with the goals on top, else the one pose.

    Args:
        session: The session.
        recorded: Recorded joint values, each (nq,), at 30 frames a second.
    """
    from synovia.viewer.engine import Engine

    with session.lock:
        skeleton, clip, rooted = session.skeleton, session.play.motion, session.rooted
    if len(recorded) > 1:
        return Motion(skeleton, np.array(recorded), 30.0, name="recorded")
    if clip is None:
        return Motion(skeleton, np.array([session.pose.q, session.pose.q]), 30.0, name="pose")
    engine = Engine(session)
    engine.prepare()
    rows: list[Array] = []
    for frame in range(len(clip)):
        start = Pose(skeleton, lifted(sample(clip, frame / clip.fps), rooted))
        rows.append((start if engine.ik is None else engine.ik.solve(engine.targets(), start).pose).q)
    return Motion(skeleton, np.array(rows), clip.fps, name=clip.name)
