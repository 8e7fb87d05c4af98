"""List of entry points with their purpose, their compile time and their signatures.

The compile times in seconds are measured on one core of a server of 2022. Messages and progress bars use them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, NamedTuple


class Entry(NamedTuple):
    """The purpose of an entry point, and the seconds that it takes to compile."""

    words: str
    seconds: float


# Entry points by module and function, the most used first. Neighbours share helpers, which a process compiles once.
ENTRIES: Final = {
    "tree.forward.forward_many": Entry("poses", 1.5),
    "tree.tables.validate": Entry("joint values", 1.0),
    "tree.tables.random_rows": Entry("random poses", 1.5),
    "tree.tables.clamp_rows": Entry("poses within their limits", 1.5),
    "tree.tables.excesses": Entry("distances to limits", 1.0),
    "tree.bends.bend_shares": Entry("sides of limbs", 1.5),
    "tree.bends.bend_straight": Entry("sides of straight limbs", 2.0),
    "jacobian.arm.arm": Entry("lm and dls on arms", 6.0),
    "jacobian.levenberg.levenberg": Entry("lm", 10.0),
    "search.classify.classify": Entry("the verdict on a miss", 11.0),
    "heuristic.fabrik_chain.fabrik_chain": Entry("fabrik on plain chains", 5.0),
    "heuristic.fabrik.fabrik": Entry("fabrik", 14.0),
    "heuristic.ccd_chain.ccd_chain": Entry("ccd on plain chains", 4.0),
    "heuristic.ccd.ccd": Entry("ccd", 13.0),
    "hierarchy.full_body.full_body": Entry("full-body", 20.0),
    "hierarchy.full_body.finish_levels": Entry("misses of full-body", 20.0),
    "heuristic.particles.particles": Entry("particles", 14.0),
    "jacobian.family.family": Entry("dls, transpose, pinv and sdls", 14.0),
    "closed_form.two_bone.two_bone": Entry("two-bone", 9.0),
    "closed_form.segments_limb.segments_limb": Entry("segments on limbs", 9.0),
    "closed_form.segments_seven.segments_seven": Entry("segments on arms of seven hinges", 8.0),
    "closed_form.aim.aim_joint": Entry("aim", 8.0),
    "jacobian.chain_newton.chain_newton": Entry("lm on long chains", 5.0),
    "simd.arm.arm_simd": Entry("SIMD batches of arms", 9.0),
    "simd.fabrik_chain.fabrik_simd": Entry("SIMD batches of chains", 5.0),
    "closed_form.hinges.hinges": Entry("hinges", 6.0),
    "closed_form.segments_parallel.segments_parallel": Entry("segments on arms with three parallel axes", 5.0),
    "closed_form.segments_spherical.segments_spherical": Entry("segments on arms with a spherical wrist", 6.0),
    "branches.six.six_joints": Entry("all branches of six joints", 8.0),
    "tree.orient.orient": Entry("retargeting", 3.0),
    "tree.swing.swing_turns": Entry("live retargeting", 3.0),
    "tree.spread.spread_turns": Entry("chains of other numbers of joints", 1.5),
    "tree.hinges.follow_hinges": Entry("limbs of hinges in whole clips", 5.0),
    "tree.hinges.hinge_terms": Entry("errors of limbs of hinges", 2.0),
    "tree.soles.sole_needs": Entry("feet above the floor", 1.5),
    "pursuit.follow.pursue": Entry("hands that follow hands", 9.0),
    "pursuit.hand.step_hand": Entry("live hands", 10.0),
    "pursuit.hand.follow_hand": Entry("pinches of hands", 10.0),
    "pursuit.hand.aim_hand": Entry("the first frame of a live hand", 1.0),
    "pursuit.hand.judge_hand": Entry("poses of live hands", 3.0),
    "pursuit.feet.watch_contacts": Entry("contacts of live feet", 1.0),
    "pursuit.feet.plant_feet": Entry("feet that are planted", 1.5),
    "goals.residuals.evaluate_rows": Entry("smoothing of tracks", 5.0),
    "hierarchy.linear_rows.linear_rows": Entry("derivatives of answers", 8.0),
    "jacobian.pull_back.pull_back": Entry("gradients of answers", 4.0),
    "proposals.propose.describe_poses": Entry("poses to learn", 3.0),
    "proposals.propose.place_proposals": Entry("proposals to try", 2.0),
    "proposals.propose.first_proposals": Entry("learned starts of batches", 2.0),
    "servo.tick.servo_tick": Entry("ticks of a servo", 6.0),
    "servo.tick.servo_reset": Entry("the first tick of a servo", 1.0),
    "servo.tick.servo_replan": Entry("stops under other limits", 1.0),
    "servo.tick.servo_rest": Entry("stops of a servo", 1.0),
    "servo.tick.servo_stop": Entry("stops of a whole body", 1.0),
    "servo.step.servo_step": Entry("ticks of a servo by priorities", 20.0),
    "goals.ways.clear_ways": Entry("ways that keep clearance", 6.0),
    "loops.closing.close_rows": Entry("poses with loops", 7.0),
    "loops.closing.write_rows": Entry("freedom of loops", 2.0),
    "goals.obstacles.put_obstacles": Entry("obstacles in other places", 2.0),
    "goals.moving_ways.moving_way": Entry("ways among obstacles that move", 7.0),
    "collision.distance.distances": Entry("distances between shapes", 8.0),
    "collision.touching.touching": Entry("links that touch each other", 4.0),
    "proofs.boxes.search_boxes": Entry("proofs", 2.0),
    "proofs.maps.paint": Entry("maps of what a chain reaches", 1.0),
    "proofs.maps.search_map": Entry("proofs by maps", 1.0),
}

# Types of the arguments of entry points, by their names: kind of number and number of dimensions, 0 for a scalar.
_ARGUMENTS: Final = {
    "ints": ("int32", 1),
    "floats": ("float64", 1),
    "targets": ("float64", 3),
    "starts": ("float64", 2),
    "out": ("float64", 2),
    "scratch": ("float64", 1),
    "warm": ("boolean", 0),
    "first": ("int64", 0),
    "variables": ("int32", 2),
    "limits": ("float64", 2),
}
_OTHERS: Final = {
    "tree.bends.bend_shares": (
        ("int32", 2), ("float64", 2), ("float64", 1), ("float64", 2), ("float64", 2), ("float64", 2),
    ),
    "tree.bends.bend_straight": (
        ("int32", 2), ("float64", 2), ("int32", 2), ("float64", 2), ("float64", 2), ("float64", 2), ("float64", 2),
    ),
    "tree.forward.forward_many": (("int32", 2), *(("float64", 2),) * 4, ("float64", 3)),
    "tree.tables.validate": (
        ("int32", 2), ("float64", 2), ("int32", 2), ("float64", 2), ("int64", 0), ("float64", 1), ("float64", 1)
    ),
    "tree.tables.random_rows": (("int32", 2), ("float64", 2), ("float64", 2), ("int64", 0), ("uint64", 1)),
    "tree.tables.clamp_rows": (("int32", 2), ("float64", 2), ("float64", 2)),
    "tree.tables.excesses": (("int32", 2), ("float64", 2), ("float64", 1), ("float64", 1)),
    "tree.orient.orient": (
        ("int32", 2), ("float64", 2), ("float64", 2), ("int32", 2), ("float64", 2), ("int32", 1), ("int32", 1),
        ("int32", 2), ("float64", 3), ("float64", 2), ("float64", 2), ("float64", 2),
    ),
    "tree.swing.swing_turns": (
        *(("float64", 3),) * 2, ("float64", 2), ("int32", 2), ("float64", 2), *(("float64", 3),) * 3,
    ),
    "tree.spread.spread_turns": (("float64", 3), ("float64", 2), ("float64", 3)),
    "pursuit.feet.watch_contacts": (*(("float64", 2),) * 4, ("float64", 1), ("float64", 2)),
    "pursuit.feet.plant_feet": (
        ("float64", 3), ("float64", 2), ("int32", 1), ("float64", 1), ("float64", 2), *(("float64", 3),) * 2,
    ),
    "tree.hinges.follow_hinges": (
        *(("float64", 2),) * 3, ("float64", 3), ("float64", 2), *(("float64", 1),) * 2, ("float64", 2),
    ),
    "tree.hinges.hinge_terms": (
        *(("float64", 2),) * 3, ("float64", 3), *(("float64", 1),) * 2, *(("float64", 2),) * 2,
    ),
    "tree.soles.sole_needs": (
        ("float64", 3), ("int64", 0), ("int32", 1), *(("float64", 2),) * 3,
    ),
    "servo.tick.servo_tick": (
        ("int32", 2), ("float64", 2), ("int32", 2), *(("float64", 2),) * 2, *(("float64", 1),) * 4, ("float64", 0),
        ("int64", 0),
    ),
    "servo.tick.servo_reset": (("float64", 2), ("float64", 1), ("float64", 0)),
    "servo.tick.servo_replan": (("float64", 2),),
    "servo.tick.servo_rest": (("int32", 2), *(("float64", 2),) * 2, *(("float64", 1),) * 3),
    "servo.tick.servo_stop": (
        ("int32", 2), ("float64", 2), *(("float64", 1),) * 2, ("int64", 0), ("float64", 0),
    ),
    "servo.step.servo_step": (
        ("int32", 1), *(("float64", 1),) * 3, ("float64", 2), *(("int32", 1),) * 3, *(("float64", 2),) * 2,
        ("int32", 2), ("float64", 2), ("int32", 2), *(("float64", 2),) * 2, *(("float64", 1),) * 5, ("float64", 0),
        *(("int64", 0),) * 2, *(("float64", 2),) * 3, ("int32", 1), *(("float64", 1),) * 4, ("float64", 2),
        ("float64", 1),
    ),
    "proofs.boxes.search_boxes": (*(("float64", 2),) * 6, ("int32", 2), ("float64", 1)),
    "proofs.maps.paint": (
        *(("float64", 2),) * 2, ("float64", 1), *(("float64", 2),) * 2, *(("int32", 2),) * 2, ("float64", 1),
    ),
    "proofs.maps.search_map": (
        *(("float64", 2),) * 2, ("float64", 1), ("int32", 2), *(("float64", 2),) * 2, ("int32", 2), ("float64", 1),
    ),
    "goals.ways.clear_ways": (
        ("int32", 1), *(("float64", 1),) * 2, ("int32", 2), ("float64", 2), ("float64", 1), *(("float64", 2),) * 2,
    ),
    "loops.closing.close_rows": (
        ("int32", 1), ("float64", 1), ("float64", 2), ("float64", 1), ("float64", 2), ("int64", 0),
        ("boolean", 0),
    ),
    "loops.closing.write_rows": (
        ("int32", 1), ("float64", 1), ("float64", 2), ("float64", 1), ("float64", 2), ("float64", 3),
    ),
    "goals.obstacles.put_obstacles": (("int32", 1), ("float64", 1), *(("float64", 2),) * 2),
    "goals.moving_ways.moving_way": (
        ("int32", 1), *(("float64", 1),) * 2, ("int32", 2), ("float64", 2), ("float64", 1), ("float64", 3),
        ("float64", 2),
    ),
    "collision.distance.distances": (*(("float64", 2),) * 2, ("int32", 2), *(("float64", 2),) * 4),
    "collision.touching.touching": (
        *(("float64", 2),) * 2, ("int32", 2), ("float64", 3), ("int32", 2), ("int32", 1), *(("float64", 2),) * 2,
    ),
    "proposals.propose.place_proposals": (
        ("int32", 1), ("float64", 1), ("float64", 3), *(("float64", 2),) * 2, ("float64", 1),
    ),
    "pursuit.follow.pursue": (
        ("int32", 1), ("float64", 1), ("float64", 3), ("float64", 2), *(("float64", 1),) * 3, ("float64", 2),
    ),
    "pursuit.hand.step_hand": (("int32", 1), ("float64", 1), ("int64", 0), *(("float64", 1),) * 3),
    "pursuit.hand.follow_hand": (
        ("int32", 1), ("float64", 1), ("int64", 0), *(("float64", 1),) * 3, ("float64", 3), ("float64", 2),
    ),
    "pursuit.hand.aim_hand": (("int32", 1), ("float64", 1), ("int64", 0), ("float64", 1)),
    "pursuit.hand.judge_hand": (("int32", 1), ("float64", 1), ("int64", 0), *(("float64", 1),) * 2),
    "jacobian.pull_back.pull_back": (
        ("int32", 1), ("float64", 1), ("float64", 3), ("float64", 2), ("float64", 1), *(("float64", 2),) * 3,
    ),
    "hierarchy.linear_rows.linear_rows": (
        ("int32", 1), ("float64", 1), ("float64", 3), ("float64", 2), *(("float64", 1),) * 2, *(("float64", 3),) * 2,
    ),
    "goals.residuals.evaluate_rows": (
        ("int32", 1), ("float64", 1), ("float64", 3), ("float64", 2), ("float64", 1), ("float64", 2), ("float64", 3),
        ("float64", 2),
    ),
}  # fmt: skip
_PRECISION: Final = ("like", "memory")  # names of the argument whose type sets the precision of a SIMD batch


def entry_of(function: Any) -> Entry | None:
    """Return the ``Entry`` of one of our entry points, None for another function."""
    return ENTRIES.get(name_of_entry(function))


def name_of_entry(function: Any) -> str:
    """Return the name of an entry point: its module below the package of kernels, and its function."""
    return f"{(function.__module__ or '').removeprefix('synovia.kernels.')}.{function.__name__}"


def signatures(name: str) -> list[tuple[Any, ...]]:
    """Return the signatures of an entry point: one, or two for kernels with single and double precision."""
    from numba import types

    code = kernel_of(name).py_func.__code__
    arguments = code.co_varnames[: code.co_argcount]

    def of(kind: str, dimensions: int) -> Any:
        number = getattr(types, kind)
        return types.Array(number, dimensions, "C") if dimensions else number

    if name in _OTHERS:
        return [tuple(of(*one) for one in _OTHERS[name])]
    kinds = ("float64", "float32") if arguments[-1] in _PRECISION else ("float64",)
    return [tuple(of(*((kind, 1) if one in _PRECISION else _ARGUMENTS[one])) for one in arguments) for kind in kinds]


def described(names: list[str]) -> str:
    """Return the arguments of some entry points as text, for the keys of their compiled code."""
    return repr((_ARGUMENTS, _PRECISION, [_OTHERS.get(name) for name in names]))


def kernel_of(name: str) -> Any:
    """Return an entry point."""
    module, _, function = name.rpartition(".")
    return getattr(import_module(f"synovia.kernels.{module}"), function)
