"""Synovia: inverse kinematics for anything with joints.

Describe goals once, and solve them for any skeleton with any algorithm:

    import synovia as sy

    arm = sy.bundled("arm7")
    solution = sy.solve(arm, sy.PositionGoal("tool", (0.4, 0.1, 0.5)))
    print(solution)

Names are imported when they are first used, so that ``import synovia`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from synovia import goals, notebook, planting

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

    from synovia import batch as batch
    from synovia import jobs as jobs
    from synovia import streams as streams
    from synovia.bodies import standing_goals, with_body_masses, with_human_limits
    from synovia.clips import (
        EditChange,
        EditClearance,
        Edited,
        EditFinding,
        Fitted,
        FootLocked,
        edit,
        fit_keypoints,
        fit_positions,
        foot_lock,
    )
    from synovia.comparison import Comparison, Problems, compare, make_problems
    from synovia.covers import LinkFit, ShapeFit, shape_fit, with_shapes
    from synovia.draw import picture, render
    from synovia.errors import (
        FileError,
        FormatError,
        InputError,
        MissingExtraError,
        SynoviaError,
        UnknownNameError,
        UnsolvedError,
        UnsupportedError,
    )
    from synovia.facade import IK, solve
    from synovia.files.goals import read_goals, write_goals
    from synovia.files.layers import read_layers, write_layers
    from synovia.files.poses import load_pose, save_pose
    from synovia.files.verify import verify_file
    from synovia.goals import *  # noqa: F403
    from synovia.ik import GoalError, Reason, Relief, Solution, Solutions, Status
    from synovia.ik.starts import LearnedStarts, load_starts
    from synovia.ik.targets import targets_from
    from synovia.io import load_motion, load_skeleton
    from synovia.io.bundled import bundled, bundled_names
    from synovia.io.bvh import write_bvh
    from synovia.io.csvfile import read_csv
    from synovia.io.save import save_motion
    from synovia.io.toml import write_skeleton
    from synovia.io.toml.world import save_world
    from synovia.io.verify import FileCheck
    from synovia.io.worlds import load_world
    from synovia.layers import Layer
    from synovia.learning import learn_starts
    from synovia.model import Joint, Kind, Mimic, Pose, Site, Skeleton
    from synovia.model.anatomy.hands.find import hand_of
    from synovia.model.anatomy.hands.hand import Finger, Hand
    from synovia.model.anatomy.hands.pointed import hand_landmarks
    from synovia.model.clip_tools.additive import Additive
    from synovia.model.clip_tools.concatenate import concatenate
    from synovia.model.combined import combine, separate
    from synovia.model.limits import Interval, Limit, SwingTwist
    from synovia.model.loops.assemblies import assemblies
    from synovia.model.loops.closing import close_loops
    from synovia.model.loops.loop import Coupling, Loop
    from synovia.model.motion import InPlace, Motion
    from synovia.model.orders import JointOrder
    from synovia.model.shapes.distances import Contact, distance
    from synovia.model.shapes.ground import Ground
    from synovia.model.shapes.pairs import SelfPairs, self_pairs
    from synovia.model.shapes.solids import (
        Box,
        Capsule,
        ConvexHull,
        Cylinder,
        Ellipsoid,
        HalfSpace,
        PointCloud,
        Solid,
        Sphere,
    )
    from synovia.model.shapes.world import Obstacle, World
    from synovia.model.simulators import from_qpos, to_qpos
    from synovia.plots import (
        plot_clearance,
        plot_convergence,
        plot_errors,
        plot_feet,
        plot_joints,
        plot_judgement,
        plot_reach,
        plot_starts,
    )
    from synovia.retargeting import (
        Finding,
        Judgement,
        LiveCalibration,
        LivePose,
        LiveReport,
        LiveRetarget,
        Retargeted,
        TooNear,
        judge,
        read_map,
        retarget,
        stand_at_rest,
        write_map,
    )
    from synovia.retargeting.hands import HandPinch, HandPose, LiveHand, RetargetedHand, retarget_hand
    from synovia.servo import Clutch, Command, OneEuro, Servo, Twist
    from synovia.solver import (
        Aim,
        Ccd,
        DampedLeastSquares,
        Fabrik,
        FullBody,
        Hinges,
        JacobianTranspose,
        LevenbergMarquardt,
        NullSpace,
        Particles,
        PseudoInverse,
        Segments,
        SelectivelyDamped,
        Solver,
        TwoBone,
        solvers,
    )
    from synovia.tracking import Tracked
    from synovia.viewer import View, view, write_page

_HOMES = {
    "synovia.bodies": ("standing_goals", "with_body_masses", "with_human_limits"),
    "synovia.clips": (
        "EditChange",
        "EditClearance",
        "EditFinding",
        "Edited",
        "Fitted",
        "FootLocked",
        "edit",
        "fit_keypoints",
        "fit_positions",
        "foot_lock",
    ),
    "synovia.comparison": ("Comparison", "Problems", "compare", "make_problems"),
    "synovia.covers": ("LinkFit", "ShapeFit", "shape_fit", "with_shapes"),
    "synovia.draw": ("picture", "render"),
    "synovia.errors": (
        "FileError",
        "FormatError",
        "InputError",
        "MissingExtraError",
        "SynoviaError",
        "UnknownNameError",
        "UnsolvedError",
        "UnsupportedError",
    ),
    "synovia.goals": goals.__all__,
    "synovia.facade": ("IK", "solve"),
    "synovia.ik": ("GoalError", "Reason", "Relief", "Solution", "Solutions", "Status"),
    "synovia.ik.starts": ("LearnedStarts", "load_starts"),
    "synovia.ik.targets": ("targets_from",),
    "synovia.io": ("load_motion", "load_skeleton"),
    "synovia.io.bundled": ("bundled", "bundled_names"),
    "synovia.io.bvh": ("write_bvh",),
    "synovia.io.csvfile": ("read_csv",),
    "synovia.io.save": ("save_motion",),
    "synovia.io.toml": ("write_skeleton",),
    "synovia.io.toml.world": ("save_world",),
    "synovia.io.verify": ("FileCheck",),
    "synovia.io.worlds": ("load_world",),
    "synovia.layers": ("Layer",),
    "synovia.learning": ("learn_starts",),
    "synovia.model.shapes.distances": ("Contact", "distance"),
    "synovia.model.shapes.ground": ("Ground",),
    "synovia.model.shapes.pairs": ("SelfPairs", "self_pairs"),
    "synovia.model.shapes.solids": (
        "Box",
        "Capsule",
        "ConvexHull",
        "Cylinder",
        "Ellipsoid",
        "HalfSpace",
        "PointCloud",
        "Solid",
        "Sphere",
    ),
    "synovia.model.shapes.world": ("Obstacle", "World"),
    "synovia.model.limits": ("Interval", "Limit", "SwingTwist"),
    "synovia.model.clip_tools.additive": ("Additive",),
    "synovia.model.clip_tools.concatenate": ("concatenate",),
    "synovia.model.combined": ("combine", "separate"),
    "synovia.model.motion": ("InPlace", "Motion"),
    "synovia.model.orders": ("JointOrder",),
    "synovia.model.simulators": ("from_qpos", "to_qpos"),
    "synovia.plots": (
        "plot_clearance",
        "plot_convergence",
        "plot_errors",
        "plot_feet",
        "plot_joints",
        "plot_judgement",
        "plot_reach",
        "plot_starts",
    ),
    "synovia.retargeting": (
        "Finding",
        "Judgement",
        "LiveCalibration",
        "LivePose",
        "LiveReport",
        "LiveRetarget",
        "Retargeted",
        "TooNear",
        "judge",
        "read_map",
        "retarget",
        "retarget_hand",
        "stand_at_rest",
        "write_map",
    ),
    "synovia.retargeting.hands": ("HandPinch", "HandPose", "LiveHand", "RetargetedHand", "retarget_hand"),
    "synovia.model": ("Joint", "Kind", "Mimic", "Pose", "Site", "Skeleton"),
    "synovia.model.anatomy.hands.find": ("hand_of",),
    "synovia.model.anatomy.hands.hand": ("Finger", "Hand"),
    "synovia.model.anatomy.hands.pointed": ("hand_landmarks",),
    "synovia.model.loops.assemblies": ("assemblies",),
    "synovia.model.loops.closing": ("close_loops",),
    "synovia.model.loops.loop": ("Coupling", "Loop"),
    "synovia.solver": (
        "Aim",
        "Ccd",
        "DampedLeastSquares",
        "Fabrik",
        "FullBody",
        "Hinges",
        "JacobianTranspose",
        "LevenbergMarquardt",
        "NullSpace",
        "Particles",
        "PseudoInverse",
        "Segments",
        "SelectivelyDamped",
        "Solver",
        "TwoBone",
        "solvers",
    ),
    "synovia.files.goals": ("read_goals", "write_goals"),
    "synovia.files.layers": ("read_layers", "write_layers"),
    "synovia.files.poses": ("load_pose", "save_pose"),
    "synovia.files.verify": ("verify_file",),
    "synovia.servo": ("Clutch", "Command", "OneEuro", "Servo", "Twist"),
    "synovia.tracking": ("Tracked",),
    "synovia.viewer": ("View", "view", "write_page"),
    "scipy.spatial.transform": ("Rotation",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "IK",
    "Additive",
    "Aim",
    "Box",
    "Capsule",
    "Ccd",
    "Clutch",
    "Command",
    "Comparison",
    "Contact",
    "ConvexHull",
    "Coupling",
    "Cylinder",
    "DampedLeastSquares",
    "EditChange",
    "EditClearance",
    "EditFinding",
    "Edited",
    "Ellipsoid",
    "Fabrik",
    "FileCheck",
    "FileError",
    "Finding",
    "Finger",
    "Fitted",
    "FootLocked",
    "FormatError",
    "FullBody",
    "GoalError",
    "Ground",
    "HalfSpace",
    "Hand",
    "HandPinch",
    "HandPose",
    "Hinges",
    "InPlace",
    "InputError",
    "Interval",
    "JacobianTranspose",
    "Joint",
    "JointOrder",
    "Judgement",
    "Kind",
    "Layer",
    "LearnedStarts",
    "LevenbergMarquardt",
    "Limit",
    "LinkFit",
    "LiveCalibration",
    "LiveHand",
    "LivePose",
    "LiveReport",
    "LiveRetarget",
    "Loop",
    "Mimic",
    "MissingExtraError",
    "Motion",
    "NullSpace",
    "Obstacle",
    "OneEuro",
    "Particles",
    "PointCloud",
    "Pose",
    "Problems",
    "PseudoInverse",
    "Reason",
    "Relief",
    "Retargeted",
    "RetargetedHand",
    "Rotation",
    "Segments",
    "SelectivelyDamped",
    "SelfPairs",
    "Servo",
    "ShapeFit",
    "Site",
    "Skeleton",
    "Solid",
    "Solution",
    "Solutions",
    "Solver",
    "Sphere",
    "Status",
    "SwingTwist",
    "SynoviaError",
    "TooNear",
    "Tracked",
    "Twist",
    "TwoBone",
    "UnknownNameError",
    "UnsolvedError",
    "UnsupportedError",
    "View",
    "World",
    "assemblies",
    "bundled",
    "bundled_names",
    "close_loops",
    "combine",
    "compare",
    "concatenate",
    "distance",
    "edit",
    "fit_keypoints",
    "fit_positions",
    "foot_lock",
    "from_qpos",
    "hand_landmarks",
    "hand_of",
    "judge",
    "learn_starts",
    "load_motion",
    "load_pose",
    "load_skeleton",
    "load_starts",
    "load_world",
    "make_problems",
    "picture",
    "plot_clearance",
    "plot_convergence",
    "plot_errors",
    "plot_feet",
    "plot_joints",
    "plot_judgement",
    "plot_reach",
    "plot_starts",
    "read_csv",
    "read_goals",
    "read_layers",
    "read_map",
    "render",
    "retarget",
    "retarget_hand",
    "save_motion",
    "save_pose",
    "save_world",
    "self_pairs",
    "separate",
    "shape_fit",
    "solve",
    "solvers",
    "stand_at_rest",
    "standing_goals",
    "targets_from",
    "to_qpos",
    "verify_file",
    "view",
    "with_body_masses",
    "with_human_limits",
    "with_shapes",
    "write_bvh",
    "write_goals",
    "write_layers",
    "write_map",
    "write_page",
    "write_skeleton",
]
__all__ += goals.__all__


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        return version("synovia")
    if name in ("batch", "jobs", "streams"):
        return import_module(f"synovia.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'synovia' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return [*__all__, "__version__", "batch"]


notebook.draw_with(lambda subject, size: __getattr__("picture")(subject, size=size))  # imported for the first picture
planting.plant_with(  # the foot lock is above motions
    lambda motion, progress: __getattr__("foot_lock")(motion, progress=progress).motion
)
