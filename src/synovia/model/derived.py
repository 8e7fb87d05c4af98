"""What is read off a skeleton or made from one, beside what it can do itself."""

from __future__ import annotations

from collections.abc import Iterable

from synovia.errors import InputError
from synovia.model.geometry import Array, axis_vector
from synovia.model.joint import Joint
from synovia.model.skeleton import Skeleton


def with_joints(skeleton: Skeleton, joints: Iterable[Joint]) -> Skeleton:
    """Return a skeleton of other joints, with the name, the length unit, the axes and the notes of this one."""
    return Skeleton(
        joints,
        name=skeleton.name,
        meters_per_unit=skeleton.meters_per_unit,
        up=skeleton.up,
        forward=skeleton.forward,
        notes=skeleton.notes,
    )


def up_vector(skeleton: Skeleton, instead: str) -> Array:
    """Return the unit vector (3,) that points up in the world.

    Args:
        skeleton: The skeleton.
        instead: What can be given where its file does not say, for the message: ``"axis="``.

    Raises:
        InputError: If its file does not say which way is up.
    """
    if skeleton.up is None:
        raise InputError(
            "the model does not say which way is up", where=skeleton.name, expected=f"a skeleton with up, or {instead}"
        )
    return axis_vector(skeleton.up)
