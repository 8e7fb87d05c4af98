"""Options that several jobs and commands share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from synovia import options
from synovia.errors import InputError
from synovia.jobs.options import NUMBER, File, Flag, Kind, Model, Number, Option, Parsed, Word, numbers_of, shared
from synovia.options import OBSTACLE_FILES

AXES: Final = ("x", "y", "z", "-x", "-y", "-z")
_DEFAULT_ANGLE: Final = 1e-3  # rad; used for --tol without an angle, same as the library's default


RESTS: Final = ("file", "bind", "first", "tpose")  # poses in which a source stands
UNSEEN: Final = ("keep", "rest")  # what unseen limbs do


class RestPose(Kind):
    """A pose at rest: a word, the number of a frame with the words of ``RESTS``, or a pose file."""

    def __init__(self, words: Sequence[str]) -> None:
        """Store the words."""
        self._words = words

    def of(self, value: Any) -> Any:
        """Check a text, and return it; return any other value unchanged."""
        if not isinstance(value, str) or value in self._words or Path(value).suffix:
            return value
        number = ", the number of a frame" if RESTS[0] in self._words else ""
        if number and NUMBER.fullmatch(value.removeprefix("-")):
            return value
        raise InputError("", value=value, expected=f"{', '.join(self._words)}{number}, or a pose file")

    def setting(self, value: Any) -> Any:
        """Return the pose as a JSON value; for a file, its name and hash."""
        return File().setting(value) if isinstance(value, str | Path) and Path(value).is_file() else value


def _root(text: str) -> str:
    """Check the text of a root motion, and return it."""
    from synovia.model.root import as_root

    return as_root(text)


def _solver(text: str) -> str:
    """Check the name of a solver, and return it."""
    from synovia.solver import as_solver

    return as_solver(text).name


def _tolerance(text: str) -> tuple[float, float]:
    """Parse ``POS[,DEG]``; return the length, and the angle in radians."""
    values = numbers_of(text, 1, 2)
    if min(values) <= 0.0:
        raise InputError("", value=text, expected="POS or POS,DEG, both above 0")
    return values[0], math.radians(values[1]) if len(values) > 1 else _DEFAULT_ANGLE


def velocities(text: str, *, shares: bool = False) -> float | dict[str, float] | str:
    """Parse one speed or speeds by joint; with ``shares``, also accept ``50%`` (of the limits) and ``file``.

    Raises:
        InputError: If the text has none of these forms.
    """
    positive = Number(0, above=True)
    if shares and text == "file":
        return text
    if shares and text.endswith("%"):
        positive.of(text[:-1])
        return text
    if "," not in text and "=" not in text:
        try:
            return positive.of(text)
        except InputError as error:
            more = ", JOINT=SPEED,..., N% or file" if shares else ", or JOINT=SPEED,..."
            raise InputError("", value=text, expected=f"{error.expected}{more}") from error
    parts = [part.rpartition("=") for part in text.split(",")]
    found = {joint.strip(): positive.of(speed) for joint, _, speed in parts}
    if "" in found or len(found) < len(parts):
        raise InputError("", value=text, expected="one speed, or JOINT=SPEED once for each joint")
    return found


SOLVER: Final = shared(options.SOLVER, Parsed(_solver), metavar="NAME", completes="solvers")
ROOT: Final = shared(options.ROOT, Parsed(_root), metavar="fixed|free|AXES", completes="roots")
TOLERANCE: Final = shared(options.TOLERANCE, Parsed(_tolerance, list), names=("--tol",), metavar="POS[,DEG]")
DEADLINE: Final = shared(options.DEADLINE, Number(0), metavar="SECONDS")
VELOCITY: Final = shared(options.VELOCITY, Parsed(partial(velocities, shares=True)), metavar="V|A=V,B=V|N%")
ACCELERATION: Final = shared(options.ACCELERATION, Parsed(velocities), metavar="A|A=A,B=A")
STARTS: Final = shared(options.STARTS, File(), metavar="NPZ")
LOOK: Final = shared(options.LOOK, Word(("surface", "bones", "both")))
GOALS: Final = Option(
    "File of goals, TOML or JSON, with weights, priorities, offsets and names; 'synovia schema goals' prints its"
    " schema.",
    File(), ("--goals", "-g"), "GOALS",
)  # fmt: skip
SEED: Final = Option("Seed of random numbers.", Number(0, 2**31 - 1, whole=True), metavar="N")
TARGET: Final = Option("The model to move.", Model(), metavar="DST", completes="models")
OUTPUT: Final = Option("The file to write.", File(), ("--output", "-o"), "OUT", rank=-1)
WORLD: Final = shared(options.WORLD, File(as_text=True), metavar="FILE")
GROUND: Final = replace(WORLD, help=f"Steps, ramps and stones on which the feet stand: {OBSTACLE_FILES}.")
MODEL: Final = Option(
    "A URDF, MJCF, glTF/GLB, FBX, BVH or TOML file, or the name of a bundled model: humanoid, humanoid_hands,"
    " arm7, quadruped.",
    Model(), metavar="FILE", completes="models",
)  # fmt: skip
LOOPS: Final = Option(
    "TOML file of loops, in addition to those of the model's own file.", File(), metavar="FILE",
    shown="the file next to it that ends in .loops.toml",
)  # fmt: skip
JOINT: Final = Option("A joint; repeat for more.", metavar="JOINT", repeats=True, completes="joints")
MOVING: Final = shared(options.MOVING, metavar="JOINT", repeats=True, completes="joints")
FORMAT: Final = Option("Format of the outputs, for folders.", many=True)
FOOT_LOCK: Final = Option("Keep standing feet in place and above the floor.", Flag())
FORCE: Final = Option("Replace files that exist.", Flag(), rank=1)
JSON: Final = Option("Print one JSON object.", Flag(), ("--json",), rank=2)
