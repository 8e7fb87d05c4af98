"""Write motions by the extension of the file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import FormatError, InputError, SynoviaError
from synovia.io.base import Format, as_path, check_writable, read_bytes
from synovia.io.load import endings, format_of, formats, guarded
from synovia.io.nodes.lengths import in_unit
from synovia.io.trajectory import STILL
from synovia.io.verify import FileCheck, check_motion
from synovia.model import Kind, Skeleton
from synovia.model.motion import Motion
from synovia.text import listed


def save_motion(
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    into: str | os.PathLike[str] | None = None,
    unit: str | float | None = None,
    joints: Iterable[str | int] | None = None,
    force: bool = False,
    verify: bool = False,
) -> None:
    """Write a motion as BVH, glTF/GLB, FBX, NumPy archive or comma-separated text, by the file's extension.

    A ``UserWarning`` lists the parts that the file cannot hold. If the motion or its skeleton has notes or animated
    scale, or if ``into`` is not the skeleton's own file, the file is read back and compared with the motion. If they
    differ, the warning states the largest difference.

    Args:
        motion: The motion.
        path: The file: ``.bvh``, ``.glb``, ``.gltf``, ``.vrma``, ``.fbx``, ``.npz`` (everything, without pickle) or
            ``.csv`` (joint values).
        into: For glTF and FBX: the file that the skeleton came from. A copy of it gets the motion as an additional
            clip; everything else in it stays as it is. For other skeletons, a new file is written: with the skin of the
            body if its file has one, or, in glTF, with its shapes. None for ``motion.skeleton.source``, or the body of
            a bundled model.
        unit: Length unit of a skeleton whose file does not give it, such as BVH: ``"m"``, ``"cm"``, ``"mm"``, ``"in"``,
            ``"ft"``, or metres. New files in glTF, FBX and VRMA need a unit. None for a unit in which a humanoid is as
            tall as a person, and for the format's own unit for other bodies; the warning reports it.
        joints: For ``.csv``, ``.trajectory.json`` and ``.trajectory.yaml``: the joints that the file has, in this
            order, by name or row, as a controller takes them. None for all.
        force: Whether an existing file may be replaced.
        verify: Whether to read the file back in any case, and raise an error if it differs from the motion.
            ``sy.formats.verify_file`` returns the figures.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        FormatError: If no format has this extension; with ``verify``, also if the written file differs.
        InputError: If the motion belongs to another skeleton than ``into``, or its skeleton has another unit, or the
            format has no choice of joints.
        UnknownNameError: If one of ``joints`` does not exist.

    Example:
        >>> import synovia as sy
        >>> walk = sy.load_motion("walk.bvh")  # doctest: +SKIP
        >>> answer = sy.retarget(walk, sy.load_skeleton("character.glb"))  # doctest: +SKIP
        >>> sy.save_motion(answer.motion, "walking.glb", into="character.glb")  # doctest: +SKIP
    """
    check_kind("motion", motion, Motion, "sy.formats.write_skeleton(skeleton, path) writes a skeleton")
    notes = write_motion(motion_in(motion, unit), path, into=into, joints=joints, force=force, verify=verify)
    if notes:
        warnings.warn(f"{path}: {' '.join(notes)}", UserWarning, stacklevel=2)


def motion_in(motion: Motion, unit: str | float | None) -> Motion:
    """Return a motion whose skeleton has a length unit, see ``save_motion``; for None, return the motion itself."""
    if unit is None:
        return motion
    body = in_unit(motion.skeleton, unit)
    return Motion(body, motion.q, motion.fps, name=motion.name, stretch=motion.stretch, notes=motion.notes)


def write_motion(
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    into: str | os.PathLike[str] | None = None,
    joints: Iterable[str | int] | None = None,
    force: bool = False,
    verify: bool = False,
) -> list[str]:
    """Write a motion and return sentences about differences between the file and the motion; see ``save_motion``."""
    where = as_path(path)
    fmt, write = writer_of(where)
    notes: list[str] = []
    if joints is not None:
        rows = _chosen(motion.skeleton, joints, fmt, where)
        moving = _moving_except(motion, rows)
        notes += [f"The file leaves out {listed(moving)}, whose values change."] if moving else []
        motion, write = _at_rest_except(motion, rows), partial(write, joints=rows)
    notes += [*fmt.lacks(motion), *lost_loops(motion.skeleton, fmt)]
    source = source_of(motion.skeleton, into, fmt, where) if fmt.copies else None
    if source is not None and (not fmt.makes_new or is_of(fmt, as_path(source))):
        said = write(motion, where, into=source, force=force)
    elif fmt.makes_new:
        if into is not None and not as_path(into).is_file():
            read_bytes(as_path(into))  # raises an error that says what is wrong
        skin, why = skin_of(motion.skeleton, None if source is None else as_path(source))
        said = write(motion, where, skin=skin, force=force)
        notes += why
    else:
        said = write(motion, where, force=force)
    notes += said or ()
    elsewhere = fmt.copies and into is not None and as_path(into) != motion.skeleton.source
    if not (verify or notes or elsewhere or motion.notes or motion.skeleton.notes or motion.stretch is not None):
        return []
    check = check_motion(motion, where, fmt)
    if check.holds:
        return notes
    if verify:
        raise FormatError("file was written, but differs", where=str(where), hint=" ".join([*notes, check.report()]))
    return [*notes, check.report()]


def _chosen(skeleton: Skeleton, joints: Iterable[str | int], fmt: Format, where: Path) -> list[int]:
    """Return the rows of the joints that a file has.

    Raises:
        InputError: If the format has no choice of joints, or they cannot be used.
        UnknownNameError: If a joint does not exist.
    """
    if not fmt.chooses:
        able = endings(one for one in formats() if one.chooses)
        raise InputError(
            "joints", where=str(where), expected=f"None for {fmt.name}", hint=f"{able} hold some joints only"
        )
    if isinstance(joints, str) or not isinstance(joints, Iterable):
        raise InputError("joints", value=joints, expected="names of joints", hint=f"did you mean [{joints!r}]?")
    rows = list(skeleton.by_row([(joint, joint) for joint in joints], "joints"))
    names = {skeleton.joint_names[row] for row in rows}
    for row in rows:
        joint = skeleton.joints[row]
        if joint.kind is Kind.FIXED:
            raise InputError("joints", value=skeleton.joint_keys[row], expected="joints that move")
        if joint.mimic is not None and joint.mimic.leader not in names:
            raise InputError(
                "joints", value=skeleton.joint_keys[row], expected=f"{joint.mimic.leader!r}, which it follows"
            )
    if not rows:
        raise InputError("joints", value=[], expected="one joint or more, or None for all")
    return rows


def _moving_except(motion: Motion, rows: Sequence[int]) -> list[str]:
    """Return the names of the joints that move in a motion, except those in ``rows`` and mimic joints."""
    skeleton = motion.skeleton
    return [
        skeleton.joint_keys[row]
        for row, joint in enumerate(skeleton.joints)
        if row not in rows
        and joint.mimic is None
        and joint.kind is not Kind.FIXED
        and float(np.ptp(motion.q[:, skeleton.q_slice(row)], axis=0).max(initial=0.0)) > STILL
    ]


def _at_rest_except(motion: Motion, rows: Sequence[int]) -> Motion:
    """Return a motion as read from a file with only some joints: the others are at rest, and mimic joints follow."""
    skeleton = motion.skeleton
    q = np.tile(skeleton.rest_q, (len(motion), 1))
    for row in rows:
        q[:, skeleton.q_slice(row)] = motion.q[:, skeleton.q_slice(row)]
    return Motion(
        skeleton, skeleton.follow(q), motion.fps, name=motion.name, stretch=motion.stretch, notes=motion.notes
    )


def is_of(fmt: Format, path: Path) -> bool:
    """Return whether a file is of a format, so that it can be copied.

    Raises:
        FileError: If the file does not exist, and its name does not show the format.
        FormatError: If the file is of no known format.
    """
    return fmt.names(path) or format_of(path) is fmt


def skin_of(skeleton: Skeleton, source: Path | None) -> tuple[Any, list[str]]:
    """Return the skin in the file of a body, and a sentence if the file has a skin that cannot be written.

    Bundled models, and others in Synovia TOML, have their skin in a GLB of the same name next to them.
    """
    path = skeleton.source if source is None else source
    if path is not None and path.suffix.lower() == ".toml":
        path = path.with_suffix(".glb")
    if path is None or not path.is_file():
        return None, []
    file, fmt = path, format_of(path)
    if (read_skin := fmt.read_skin) is None:
        return None, [f"The skin of {path.name} was left out."] if fmt.copies else []
    try:
        skin = guarded(file, lambda: read_skin(file))
    except SynoviaError as error:
        return None, [f"The skin of {path.name} was left out: {error}"]
    if not skin.meshes and not skin.lost:
        return None, []
    if skin.rows_in(skeleton.joint_names) is not None:
        return skin, []
    return None, [f"The skin of {path.name} was left out: it has other joints than the motion."]


def lost_loops(skeleton: Skeleton, fmt: Format) -> list[str]:
    """Return a sentence about loops that a file with its own skeleton cannot hold; none if nothing is lost."""
    if not skeleton.loops or fmt.holds_loops or fmt.read_onto is not None:
        return []
    named = listed([tie.label for tie in skeleton.loops])
    return [f"The file cannot hold loops, so programs that read it may open them: {named}."]


def verify_motion(motion: Motion, path: str | os.PathLike[str]) -> FileCheck:
    """Return the differences between a motion and the file to which it was written."""
    return check_motion(motion, path, writer_of(as_path(path))[0])


def source_of(
    skeleton: Skeleton, into: str | os.PathLike[str] | None, fmt: Format, where: Path
) -> str | os.PathLike[str] | None:
    """Return the file to copy: ``into``, or the file with the body of a skeleton.

    None if there is no such file, and the format can write new files.

    Raises:
        InputError: If there is no such file, and the format needs one.
    """
    source = _body_of(skeleton, fmt) if into is None else into
    if source is None and not fmt.makes_new:
        what = f"a {fmt.name} needs the file that the skeleton came from"
        raise InputError(what, where=str(where), hint="pass that file as into=")
    return source


def _body_of(skeleton: Skeleton, fmt: Format) -> Path | None:
    """Return the file with the body of a skeleton in a format: its source, or a file of the same name next to it."""
    source = skeleton.source
    if source is None or source.suffix.lower() in fmt.extensions:
        return source
    siblings = [source.with_suffix(ending) for ending in fmt.extensions]
    return next((path for path in siblings if source.suffix.lower() == ".toml" and path.is_file()), None)


def writer_of(path: Path) -> tuple[Format, Callable[..., Iterable[str] | None]]:
    """Return the format of a motion file by its extension, and its writer.

    Raises:
        FormatError: If no format has this extension.
    """
    known = [(fmt, fmt.write) for fmt in formats() if fmt.holds_motions and fmt.write is not None]
    for fmt, write in known:
        if fmt.names(path):
            return fmt, write
    raise FormatError(
        "no motion can be written with this extension",
        where=str(path),
        value=path.suffix or None,
        expected=f"one of {endings(fmt for fmt, _ in known)}",
    )


def check_target(path: Path, into: str | os.PathLike[str] | None, *, force: bool) -> None:
    """Check that a motion file can be written, before the work begins.

    Args:
        path: The file.
        into: The file that its format may copy; None for a new one.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If ``check_writable`` raises it.
        FormatError: If no format has the extension, or the name does not suit the content (``Format.check``).
    """
    fmt, _ = writer_of(path)
    if fmt.check is not None:
        fmt.check(path, None if into is None else as_path(into))
    check_writable(path, force=force)
