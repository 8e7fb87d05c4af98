"""What can be taken away from a page: its goals as a file, as Python and as a command, its pose and its motion."""

from __future__ import annotations

import math
import shlex
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from synovia.errors import UnsupportedError
from synovia.files.goals import entry_of, goals_text
from synovia.files.poses import save_pose
from synovia.goals import Goal
from synovia.io.bvh import write_bvh
from synovia.io.load import is_bundled
from synovia.model import Pose
from synovia.model.geometry import Array, quat_to_matrix, rigid
from synovia.model.motion import Motion
from synovia.solver import Solver
from synovia.viewer.editor import address
from synovia.viewer.root import changed_root
from synovia.viewer.session import Session

RATE: Final = 30.0  # frames of a recording a second
_MOST: Final = 30 * 60 * 10  # frames; ten minutes
_LONGEST: Final = 40  # times as long as it is may a clip become that is played slowly


def goals_of(session: Session) -> list[Goal]:
    """Return the enabled goals on the given skeleton, with their targets."""
    with session.lock:
        return [
            editor.goal(lambda row: address(session.given, row), kept=True)
            for editor in session.editors
            if editor.enabled
        ]


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
    """Return the command that solves the saved goals from the saved pose; settings without an option are comments."""
    settings, root = session.solver, _root_of(session)
    words = ["synovia", "solve", model, "--goals", "goals.toml", "--start", "pose.json", "--solver", settings.name]
    if root != "fixed":
        words += ["--root", root]
    changed = _changed(settings)
    for name in ("attempts", "seed"):
        if name in changed:
            words += [f"--{name}", str(changed.pop(name))]
    if session.tolerance is not None:
        words += ["--tol", f"{session.tolerance[0]!r},{math.degrees(session.tolerance[1])!r}"]
    lines = [shlex.join(words)]
    if changed:
        said = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        lines.append(f"# the command has no option for {said}; the Python above has it")
    if (moved := _moved_root(session)) is not None:
        lines.append(f"# {moved}")
    return "\n".join(lines)


def _changed(settings: Solver) -> dict[str, Any]:
    """Return the settings of a solver that differ from the defaults."""
    plain = type(settings)()
    names = settings.__dataclass_fields__
    return {name: getattr(settings, name) for name in names if getattr(settings, name) != getattr(plain, name)}


def _root_of(session: Session) -> str:
    """Return the root mode for the saved problem: free if the page holds the root away from its place in the file."""
    return session.mode if session.rooted.base is None else "free"


def _moved_root(session: Session) -> str | None:
    """Return a remark if the root is held away from its place in the file, else None."""
    if session.rooted.base is None:
        return None
    held = "held" if session.mode == "fixed" else f"moved along {session.mode} only"
    return f"on the page the root is {held}, away from where the file has it; here it starts there and is free"


def python_text(session: Session, model: str) -> str:
    """Return a script that solves the same goals from the pose that is shown, which gives the same pose."""
    with session.lock:
        goals, pose = goals_of(session), _own_pose(session)
    if not goals:
        return "# no goal is enabled\n"
    opened = f"sy.bundled({model!r})" if is_bundled(model) else f"sy.load_skeleton({model!r})"
    lines = ["import synovia as sy", "", f"body = {opened}", "goals = ["]
    lines += [f"    sy.{type(goal).__name__}({', '.join(_arguments(goal))})," for goal in goals]
    changed = ", ".join(f"{name}={value!r}" for name, value in _changed(session.solver).items())
    root = _root_of(session)
    options = "" if root == "fixed" else f", root={root!r}"
    if session.tolerance is not None:
        options += f", tolerance={session.tolerance!r}"
    lines += ["]", f"solver = sy.{type(session.solver).__name__}({changed})"]
    if (moved := _moved_root(session)) is not None:
        lines.append(f"# {moved}")
    lines.append(f"ik = sy.IK(body, goals, solver{options})")
    values = _start_values(pose)
    if values:
        lines += ["start = ik.skeleton.rest_pose().with_values(", "    {", *(f"        {value}," for value in values)]
        lines += ["    }", ")"]
    lines += [f"solution = ik.solve({'start=start' if values else ''})", "print(solution)"]
    return "\n".join(lines) + "\n"


def _start_values(pose: Pose) -> list[str]:
    """Return the values of the joints that are not at rest, as entries of a dictionary; followers follow."""
    skeleton, rest = pose.skeleton, pose.skeleton.rest_pose()
    out: list[str] = []
    for row, joint in enumerate(skeleton.joints):
        part = skeleton.q_slice(row)
        if joint.mimic is None and not np.array_equal(pose.q[part], rest.q[part]):
            numbers = [repr(float(f"{value:.12g}") + 0.0) for value in pose.q[part].tolist()]
            value = numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"
            out.append(f"{address(skeleton, row)!r}: {value}")
    return out


def _arguments(goal: Goal) -> list[str]:
    """Return the arguments of a goal's constructor in Python, made from its entry in a goal file."""
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
    """Return a value as Python source; points and quaternions with nine digits."""
    if isinstance(value, list):
        parts = cast("list[Any]", value)
        if all(isinstance(part, float) for part in parts):
            return "(" + ", ".join(repr(float(f"{part:.9g}") + 0.0) for part in parts) + ")"
    return repr(cast("object", value))


def _own_pose(session: Session) -> Pose:
    """Return the pose with the root that ``_root_of`` names."""
    if session.rooted.base is None:
        return session.pose
    to, q = changed_root(session.pose.q, session.rooted, session.given, "free")
    return Pose(to.skeleton, q)


def pose_file(session: Session) -> bytes:
    """Return the pose as a pose file, with the values of a root that moves, as ``command_line`` names it."""
    with session.lock:
        pose = _own_pose(session)
    return _written("pose.json", lambda path: save_pose(pose, path))


def motion_file(motion: Motion) -> bytes:
    """Return a motion as a BVH file."""
    return _written("motion.bvh", lambda path: write_bvh(motion, path))


def _written(name: str, write: Callable[[Path], None]) -> bytes:
    """Return the content of a file that is written for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def solved_clip(session: Session, recorded: Sequence[Array]) -> Motion:
    """Return the motion of a page: what was recorded, else the clip as it plays with the goals on top, else the pose.

    Args:
        session: The session.
        recorded: Recorded joint values, each (nq,), at 30 frames a second.
    """
    from synovia.viewer.engine import Engine

    with session.lock:
        skeleton, play = session.skeleton, replace(session.play)
    if len(recorded) > 1:
        return Motion(skeleton, np.array(recorded), RATE, name="recorded")
    clip, pace = play.motion, abs(play.speed)
    if clip is None or pace == 0.0:
        return Motion(skeleton, np.array([session.pose.q, session.pose.q]), RATE, name="pose")
    engine = Engine(session)
    engine.prepare()
    rows: list[Array] = []
    frames = 1 + round((len(clip) - 1) / pace)
    if frames > _LONGEST * len(clip):
        raise UnsupportedError("the clip is played too slowly to be saved", value=play.speed, expected="a higher speed")
    for frame in range(frames):
        seconds = min(frame * pace / clip.fps, clip.duration)
        start = session.start(seconds if play.speed > 0.0 else clip.duration - seconds)
        rows.append((start if engine.ik is None else engine.own(engine.ik.solve(engine.targets(), start))).q)
    return Motion(skeleton, np.array(rows), clip.fps, name=clip.name)


class Recording:
    """Poses at even times; a pose holds until the next one comes.

    A body whose skeleton becomes another one, because its root moves otherwise, begins anew.
    """

    def __init__(self) -> None:
        """Record nothing."""
        self.on = False
        self._lock = threading.Lock()
        self._rows: list[Array] = []
        self._begun = 0.0
        self._last: Pose | None = None

    @property
    def seconds(self) -> float:
        """How long it is."""
        return max(len(self._rows) - 1, 0) / RATE

    def start(self, pose: Pose, now: float) -> None:
        """Begin anew with a pose.

        Args:
            pose: The pose.
            now: Seconds of a clock that only goes forward.
        """
        with self._lock:
            self.on = True
            self._begin(pose, now)

    def stop(self, now: float) -> None:
        """End; the last pose held until now."""
        with self._lock:
            self._fill(now)
            self.on = False

    def take(self, pose: Pose, now: float) -> None:
        """Record that the body has a pose from now on."""
        with self._lock:
            if not self.on:
                return
            if self._last is None or pose.skeleton is not self._last.skeleton:
                self._begin(pose, now)
                return
            self._fill(now)
            self._last = pose

    def rows(self, now: float) -> list[Array]:
        """Return joint values at even times, (nq,) each, up to now."""
        with self._lock:
            if self.on:
                self._fill(now)
            return list(self._rows)

    def _begin(self, pose: Pose, now: float) -> None:
        self._rows, self._begun, self._last = [pose.q.copy()], now, pose

    def _fill(self, now: float) -> None:
        """Let the last pose hold until now."""
        if self._last is not None:
            due = min(int((now - self._begun) * RATE + 1e-6) + 1, _MOST)
            self._rows += [self._last.q.copy()] * max(due - len(self._rows), 0)
