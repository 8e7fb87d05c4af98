"""Exports of a page: goals as a file, as Python code and as a command; pose and motion as files."""

from __future__ import annotations

import math
import shlex
import tempfile
import threading
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from synovia.draw.render import render
from synovia.errors import UnsupportedError
from synovia.files.code import arguments_of, changed_settings, start_values
from synovia.files.goals import goals_text
from synovia.files.layers import layers_text
from synovia.files.poses import save_pose
from synovia.goals import Goal
from synovia.io.load import formats, is_bundled
from synovia.io.save import lost_loops, write_motion, writer_of
from synovia.model import Pose
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.root import root_of
from synovia.model.rooted import changed_root
from synovia.viewer.editing.state import State

RATE: Final = 30.0  # frames per second of a recording
_MOST: Final = 30 * 60 * 10  # largest number of frames of a recording: ten minutes
_RIGID: Final = "Animated scale was not kept: the saved motion has rigid bones."
_LONGEST: Final = 40  # a slowed clip is saved with at most this many times its frames


class Files:
    """Exports of a page: goals, pose and clip as files, and the problem as code. Exports do not change the state.

    Args:
        state: The state of the page.
        model: File or name of the model, for code and command.
        loops: The model's file of loops; None for the file next to the model.
    """

    def __init__(self, state: State, model: str = "", loops: str | Path | None = None) -> None:
        """Store the arguments."""
        self._state, self._model, self._loops = state, model, None if loops is None else str(loops)

    def goals(self) -> list[Goal]:
        """Return the enabled goals on the given skeleton, with their targets."""
        with self._state.lock:
            return [
                editor.goal(self._state.given.address, kept=True) for editor in self._state.editors if editor.enabled
            ]

    def _clear_of_world(self) -> bool:
        """Return whether an enabled goal avoids obstacles."""
        return any(editor.enabled and editor.values.get("world") is not None for editor in self._state.editors)

    def _world_file(self) -> str:
        """Return the file of the obstacles; "" if there is no file, or obstacles were moved."""
        world, first = self._state.world, self._state.first_world
        return "" if world is None or world.source is None or world != first else str(world.source)

    def goal_file(self) -> bytes:
        """Return the enabled goals as a goal file.

        Raises:
            UnsupportedError: If no goal is enabled, or a goal cannot be stored in a file.
        """
        goals = self.goals()
        if not goals:
            raise UnsupportedError("no goal is enabled, so there is no goal to save")
        return goals_text(goals).encode(errors="replace")

    def layer_file(self) -> bytes:
        """Return the layers on the clip, the keys among them, as a layer file for ``sy.formats.read_layers``.

        Raises:
            UnsupportedError: If there are no layers or keys, keys move a root that the clip lacks, or a joint has no
                name.
        """
        with self._state.lock:
            self._state.finish()
            layers = self._state.play.ordered(self._state.added)
        if not layers:
            raise UnsupportedError("no pose is keyed and there is no layer, so there is nothing to save")
        return layers_text(layers).encode(errors="replace")

    def pose_file(self) -> bytes:
        """Return the pose as a pose file, with root values for the root mode of ``command_line``."""
        with self._state.lock:
            pose = self._own_pose()
        return _written("pose.json", lambda path: save_pose(pose, path))

    def python_text(self) -> str:
        """Return Python code that solves the goals from the current pose, with the same result."""
        with self._state.lock:
            goals, pose = self.goals(), self._own_pose()
        if not goals:
            return "# no goal is enabled\n"
        opened = f"sy.bundled({self._model!r})"
        if not is_bundled(self._model):
            option = "" if self._loops is None else f", loops={self._loops!r}"
            opened = f"sy.load_skeleton({self._model!r}{option})"
        lines = ["import synovia as sy", "", f"body = {opened}"]
        if self._loops is not None and is_bundled(self._model):
            lines.append(f"# the page has the loops of {self._loops!r} too; body.with_loops([...]) adds them here")
        clear, source = self._clear_of_world(), self._world_file()
        if clear:
            lines.append(f"world = sy.load_world({source!r})" if source else "world = ...  # the obstacles of the page")
        lines.append("goals = [")
        for goal in goals:
            words = [*arguments_of(goal), *(["world=world"] if clear and goal.takes_world else [])]
            lines.append(f"    sy.{type(goal).__name__}({', '.join(words)}),")
        changed = ", ".join(f"{name}={value!r}" for name, value in changed_settings(self._state.solver).items())
        root = self._root_of()
        options = "" if root == "fixed" else f", root={root!r}"
        if self._state.tolerance is not None:
            options += f", tolerance={self._state.tolerance!r}"
        lines += ["]", f"solver = sy.{type(self._state.solver).__name__}({changed})"]
        if (moved := self._moved_root()) is not None:
            lines.append(f"# {moved}")
        lines.append(f"ik = sy.IK(body, goals, solver{options})")
        values = start_values(pose)
        if values:
            lines += ["start = ik.skeleton.rest_pose().with_values(", "    {"]
            lines += [*(f"        {value}," for value in values), "    }", ")"]
        lines += [f"solution = ik.solve({'start=start' if values else ''})", "print(solution)"]
        return "\n".join(lines) + "\n"

    def command_line(self) -> str:
        """Return the command that solves the saved goals from the saved pose; comments list unsupported settings."""
        settings, root = self._state.solver, self._root_of()
        words = ["synovia", "solve", self._model, "--goals", "goals.toml", "--start", "pose.json"]
        words += ["--solver", settings.name]
        if self._loops is not None:
            words += ["--loops", self._loops]
        if root != "fixed":
            words += ["--root", root]
        changed = changed_settings(settings)
        for name in ("attempts", "seed"):
            if name in changed:
                words += [f"--{name}", str(changed.pop(name))]
        if self._state.tolerance is not None:
            words += ["--tol", f"{self._state.tolerance[0]!r},{math.degrees(self._state.tolerance[1])!r}"]
        clear, source = self._clear_of_world(), self._world_file()
        words += ["--world", source] if clear and source else []
        lines = [shlex.join(words)]
        if clear and not source:
            lines.append(
                "# the obstacles are not in a file, or were moved; sy.save_world(world, path) writes one for --world"
            )
        if changed:
            listed = ", ".join(f"{name}={value!r}" for name, value in changed.items())
            lines.append(f"# the command has no option for {listed}; the Python code above sets it")
        if (moved := self._moved_root()) is not None:
            lines.append(f"# {moved}")
        return "\n".join(lines)

    def solved_clip(self, recorded: Sequence[Array]) -> Motion:
        """Return the motion to save: the recording, else the clip with its layers, else two frames of the pose.

        Args:
            recorded: Recorded joint values, each (nq,), 30 frames per second.
        """
        with self._state.lock:
            self._state.finish()
            state = copy(self._state)  # later changes on the page do not affect the motion
            play = state.play = replace(state.play)
        skeleton, clip, pace = state.skeleton, play.motion, abs(play.speed)
        if len(recorded) > 1:
            return Motion(skeleton, np.array(recorded), RATE, name="recorded")
        if clip is None or pace == 0.0:
            return Motion(skeleton, np.array([state.pose.q, state.pose.q]), RATE, name="pose")
        rows: list[Array] = []
        first, last = play.span
        frames = 1 + round((play.end - play.first) / pace)
        if frames > _LONGEST * len(clip):
            raise UnsupportedError("the clip plays too slowly to be saved", value=play.speed, expected="a higher speed")
        for frame in range(frames):
            seconds = min(first + frame * pace / clip.fps, last)
            rows.append(state.start(seconds if play.speed > 0.0 else first + last - seconds).q)
        notes = clip.notes if clip.stretch is None else (*clip.notes, _RIGID)
        return Motion(skeleton, np.array(rows), clip.fps, name=clip.name, notes=notes)

    @property
    def clip(self) -> Motion | None:
        """The clip that plays."""
        return self._state.play.motion

    def endings(self) -> dict[str, str]:
        """Return the file extensions of the motion formats that can be written, by label of the format."""
        source = self._state.given.source
        out: dict[str, str] = {}
        for fmt in formats():
            if fmt.holds_motions and fmt.write is not None:
                known = [".glb", *([".vrm"] if source is not None and source.suffix == ".vrm" else [])]
                for ending in known if ".glb" in fmt.extensions else fmt.extensions:
                    out[f"{fmt.name} ({ending})"] = ending
        return {**out, "film (.mp4)": ".mp4"}

    def losses(self, ending: str) -> tuple[bool, str]:
        """Return whether a motion file with this extension loses data of the clip, and what it loses or keeps."""
        if ending == ".mp4":
            return True, "A film shows the clip and keeps no joints."
        fmt, state = writer_of(Path(f"motion{ending}"))[0], self._state
        motion = state.play.motion or Motion(state.skeleton, state.pose.q[None], RATE)
        scale = [_RIGID] if motion.stretch is not None else []
        rigid = Motion(motion.skeleton, motion.q, motion.fps, notes=motion.notes)  # as it is saved
        lost = [*scale, *fmt.lacks(rigid), *lost_loops(motion.skeleton, fmt)]
        return bool(lost), " ".join(lost) or f"Keeps {fmt.keeps.replace('`', '')}."

    def targets(self) -> Array:
        """Return the target positions of the enabled goals, (n, 3)."""
        with self._state.lock:
            editors = [editor for editor in self._state.editors if editor.enabled and editor.has_position]
            return np.array([editor.position for editor in editors]).reshape(-1, 3)

    def _root_of(self) -> str:
        """Return the root mode of the saved problem: free if page or clip moved the root, else as on the page."""
        by_clip = self._state.mode == "fixed" and root_of(self._state.given.joint_names[:1]) == "free"
        return "free" if by_clip or self._state.rooted.base is not None else self._state.mode

    def _moved_root(self) -> str | None:
        """Return a comment if the page moved the root from its position in the file, else None."""
        if self._state.rooted.base is None:
            return None
        mode = self._state.mode
        held = "held" if mode == "fixed" else f"moved along {mode} only"
        there = f"on the page the root is {held}, away from its place in the file"
        return f"{there}; here it starts at the same place, free"

    def _own_pose(self) -> Pose:
        """Return the pose with the root mode of ``_root_of``."""
        if self._state.rooted.base is None:
            return self._state.pose
        to, q = changed_root(self._state.pose.q, self._state.rooted, self._state.given, "free")
        return Pose(to.skeleton, q)


def motion_file(motion: Motion, ending: str) -> tuple[bytes, list[str]]:
    """Return a motion as a file, and sentences about differences between the file and the motion.

    Args:
        motion: The motion.
        ending: Extension of the file, such as ``.glb``.
    """
    said: list[str] = []
    content = _written(f"motion{ending}", lambda path: said.extend(write_motion(motion, path)))
    return content, said


def film_file(motion: Motion, look: str, *, dark: bool) -> bytes:
    """Return a motion as a film (MP4).

    Args:
        motion: The motion.
        look: As in ``render``.
        dark: Whether the background is dark.
    """
    return _written("motion.mp4", lambda path: render(motion, path, theme="dark" if dark else "light", look=look))


def _written(name: str, write: Callable[[Path], None]) -> bytes:
    """Return the content of a temporary file after a function has written it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


class Recording:
    """A recording of poses at a constant rate; each pose is repeated until the next pose.

    The recording restarts when the root mode, and therefore the skeleton, changes.
    """

    def __init__(self) -> None:
        """Start empty and off."""
        self.on = False
        self._lock = threading.Lock()
        self._rows: list[Array] = []
        self._begun = 0.0
        self._last: Pose | None = None

    @property
    def seconds(self) -> float:
        """Duration, seconds."""
        return max(len(self._rows) - 1, 0) / RATE

    def start(self, pose: Pose, now: float) -> None:
        """Start a new recording.

        Args:
            pose: The first pose.
            now: Time of a monotonic clock, seconds.
        """
        with self._lock:
            self.on = True
            self._begin(pose, now)

    def stop(self, now: float) -> None:
        """End the recording; the last pose is repeated until now."""
        with self._lock:
            self._fill(now)
            self.on = False

    def take(self, pose: Pose, now: float) -> None:
        """Record a pose from now on."""
        with self._lock:
            if not self.on:
                return
            if self._last is None or pose.skeleton is not self._last.skeleton:
                self._begin(pose, now)
                return
            self._fill(now)
            self._last = pose

    def rows(self, now: float) -> list[Array]:
        """Return the joint values of all frames up to now, (nq,) each."""
        with self._lock:
            if self.on:
                self._fill(now)
            return list(self._rows)

    def _begin(self, pose: Pose, now: float) -> None:
        self._rows, self._begun, self._last = [pose.q.copy()], now, pose

    def _fill(self, now: float) -> None:
        """Append frames of the last pose up to now."""
        if self._last is not None:
            due = min(int((now - self._begun) * RATE + 1e-6) + 1, _MOST)
            self._rows += [self._last.q.copy()] * max(due - len(self._rows), 0)
