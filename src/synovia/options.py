"""Options that functions, jobs and commands share: the default, the help text and the unit of each are written here."""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple, TypedDict


class Shared(NamedTuple):
    """An option that several functions, jobs or commands take.

    Args:
        default: The default.
        help: What the option does, for the command line; SRC is the clip or the source, DST the model that moves.
        unit: Unit of a number.
        shown: Text for the default in the help; "" to show the default.
    """

    default: Any
    help: str
    unit: str = ""
    shown: str = ""


# --- Problems and their solvers

SOLVER: Final = Shared(
    None, "Algorithm, for example lm, dls, fabrik or ccd.", shown="lm; full-body to avoid collisions"
)
TOLERANCE: Final = Shared(
    None, "Largest error of a reached goal: a length in the file's unit, and an angle in degrees.",
    shown="1e-4 of the reach, 1e-3 rad",
)  # fmt: skip
ROOT: Final = Shared(
    "fixed", "How the root of the model may move; axes of x, y, z, roll, pitch, yaw, such as 'x,y,yaw'."
)
STARTS: Final = Shared(
    None, "Learned starts of this model with these goals; 'synovia learn' writes them.", shown="rest"
)
MOVING: Final = Shared(
    None, "A joint that may move, by name or role; repeat for more. All others keep their values.", shown="all"
)
DEADLINE: Final = Shared(None, "Stop solving after this time, with the best pose so far.", "s", "never")

# --- Limits of motion

VELOCITY: Final = Shared(
    None, "Highest velocity of DST's joints, rad/s or length units/s, for all or by joint.", shown="those of DST's file"
)
ACCELERATION: Final = Shared(None, "Highest acceleration of DST's joints, rad/s² or length units/s².", shown="no limit")
JERK: Final = Shared(None, "Highest jerk of DST's joints, rad/s³ or length units/s³.", shown="no limit")


class MotionLimits(TypedDict, total=False):
    """Limits of a motion that follows targets, with their defaults."""

    velocity: Annotated[Any, VELOCITY]
    acceleration: Annotated[Any, ACCELERATION]
    jerk: Annotated[Any, JERK]


# --- Clips for other bodies

JOINT_MAP: Final = Shared(None, "Joint map, instead of automatic matching.")
REST: Final = Shared(
    None, "Pose in which SRC stands: file, bind, first, tpose, the number of a frame, or a pose file.",
    shown="detected from the clip",
)  # fmt: skip
UP: Final = Shared(None, "Axis of SRC that points up, such as z or -y.", shown="detected")
HOLD_FEET: Final = Shared(True, "Keep standing feet in place.")
_APART: Final = (
    "Least distance between the limbs of DST, and between limbs and trunk, where DST has shapes; none lets limbs pass"
    " through the body. With recordings of a hand: between fingers, and between them and the palm."
)
_APART_FROM: Final = "0; none for a recorded hand"
LIMBS_APART: Final = Shared(0.0, _APART, "length units of DST", _APART_FROM)
FINGERS_APART: Final = Shared(None, _APART, "length units of DST", _APART_FROM)
LIVE_APART: Final = Shared(None, _APART, "length units of DST", "limbs may pass through each other")
FITTED: Final = Shared(
    False, "Fit capsules to the links of DST that have no shapes, so that limbs and fingers do not pass through them."
)
OBSTACLE_FILES: Final = "a file of Synovia (TOML), URDF, MJCF, glTF/GLB, or a MoveIt scene"
WORLD: Final = Shared(None, f"Obstacles around the body: {OBSTACLE_FILES}.")
IDLE_HANDS: Final = Shared("rest", "How DST holds hands whose fingers SRC does not move: rest or relaxed.")
ROOT_MOTION: Final = Shared(
    "root", "What a root bone on the floor of DST gets: path and heading (root), or nothing (hips); with none, any body"
    " stays in place.",
)  # fmt: skip
LIVE_ROOT: Final = Shared(None, ROOT_MOTION.help, shown="the bone moves with the body")
CALIBRATION: Final = Shared(None, "Known calibration of SRC and DST, instead of learning it.")
LEARN: Final = Shared(1.0, "Time in which SRC is calibrated; 0 for only its first pose.")
LOOK_AHEAD: Final = Shared(0.0, "Time by which poses are late, so that each knows those after it.", "s")
TIMEOUT: Final = Shared(0.5, "Time without a pose after which SRC is lost.", "s")

# --- Recorded hands

SIDE: Final = Shared(None, "With recordings of a hand: the hand of DST that follows.", shown="the only one")
SOURCE_SIDE: Final = Shared(None, "With recordings of a hand: which hand was recorded.", shown="detected")
SCALE: Final = Shared(
    None, "With recordings of a hand: length on DST per unit of the points.", shown="from the lengths of the fingers"
)
ORIGIN: Final = Shared(
    None, "With recordings of a hand: put the wrist at this joint or link, with the points in the axes of DST, instead"
    " of aligning the palms.",
)  # fmt: skip

# --- Pictures and films

THEME: Final = Shared("light", "Colours.")
LOOK: Final = Shared("surface", "What is drawn; a body without a surface shows its bones.")
ANGLES: Final = Shared((), "Joints whose angles are shown, in degrees.")
SHAPES: Final = Shared(False, "Show the shapes of the body; capsules are fitted to links that have none.")
NEAREST: Final = Shared(None, "Draw lines between the nearest links and obstacles, red below this distance.")
