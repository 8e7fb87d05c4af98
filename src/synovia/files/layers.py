"""Layer files: the layers of an edit as TOML or JSON, ``synovia.edit/1``. Its JSON schema is ``schemas/edit-1.json``.

    schema = "synovia.edit/1"

    [[layers]]
    name = "raise the hand"
    frames = [30, 60]
    blend = 10
    relative = true

    [[layers.targets]]
    joint = "left_hand"
    position = [0.0, 0.1, 0.0]

    [[layers.goals]]
    kind = "aim"
    joint = "head"
    point = [0.0, 1.5, 2.0]

    [[layers.keys]]
    frame = 45
    values = { left_lower_arm = 0.4 }

Frames count from 0, and both ends are included. A target has ``position`` or ``rotation`` for all frames of its layer,
or ``positions`` or ``rotations`` with one value for each frame. Goals are as in goal files; obstacles of clearance
goals are not in the file. A key without a frame holds its values in all frames of the layer. The live page writes the
keys of its layer in this form.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct

from synovia.arguments import check_kind
from synovia.errors import FormatError, InputError, UnknownNameError, UnsupportedError, restated
from synovia.files.goals import KINDS, Entries, entry_of, literal, to_goal
from synovia.files.rotations import ROTATION_FORMS, RotationSpec, to_matrix
from synovia.files.typed import TypedFile
from synovia.goals import PoseGoal
from synovia.io.base import as_path, write_bytes
from synovia.layers import Key, Layer, LayerTarget
from synovia.model import Skeleton
from synovia.model.geometry import Array, matrix_to_quat
from synovia.model.shapes.world import World

SCHEMA: Final = "synovia.edit/1"
_LARGEST: Final = 2**26  # largest size of a file, bytes; a key of a whole body takes about 1000 bytes
_Three = tuple[float, float, float]
_Frame = Annotated[int, Meta(ge=0)]
_PIN: Final = "JOINT@FIRST:LAST, such as left_hand@30:60"
_OFFSET: Final = "JOINT=X,Y,Z, such as hips=0,-0.08,0, or with frames JOINT=X,Y,Z@FIRST:LAST"


class TargetEntry(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, kw_only=True):
    """Target of a joint: one position or rotation for all frames, or one for each frame."""

    joint: Annotated[str | int, Meta(description="Joint, link, site, role or row; or the name of a goal of the layer.")]
    position: (
        Annotated[_Three, Meta(description="World position; with relative, the displacement from the clip.")] | None
    ) = None
    positions: Annotated[list[_Three], Meta(min_length=1, description="One for each frame.")] | None = None
    rotation: (
        Annotated[RotationSpec, Meta(description="World rotation; with relative, the rotation from the clip's.")] | None
    ) = None
    rotations: Annotated[list[RotationSpec], Meta(min_length=1, description="One for each frame.")] | None = None


class KeyEntry(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, kw_only=True):
    """Values of joints at a frame of the clip."""

    values: Annotated[
        dict[str, float | list[float]],
        Meta(description="By joint: radians or length units, xyzw for balls; with relative, the change from the clip."),
    ]
    frame: Annotated[int, Meta(ge=0, description="The frame; left out for all frames of the layer.")] | None = None


class LayerEntry(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, kw_only=True):
    """A layer of an edit, which changes a part of a clip."""

    name: Annotated[str, Meta(min_length=1, description="Name in reports.")] | None = None
    frames: (
        Annotated[tuple[_Frame, _Frame], Meta(description="First and last frame, both included; left out for all.")]
        | None
    ) = None
    blend: Annotated[int, Meta(ge=0, description="Frames before and after in which it fades in and out.")] = 0
    relative: Annotated[bool, Meta(description="Whether targets and keys are relative to the clip.")] = False
    weight: Annotated[float, Meta(ge=0, le=1, description="Fraction of the change that is applied.")] = 1.0
    muted: Annotated[bool, Meta(description="Whether the layer is switched off.")] = False
    moving: (
        Annotated[list[str | int], Meta(min_length=1, description="Joints that goals may move; left out for all.")]
        | None
    ) = None
    targets: list[TargetEntry] = []
    goals: list[Entries] = []  # pyright: ignore[reportInvalidTypeForm, reportUnknownVariableType]
    keys: list[KeyEntry] = []


class LayerFile(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Layers for a clip, applied in order."""

    schema: Literal["synovia.edit/1"]
    layers: list[LayerEntry] = []


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of layer files."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(LayerFile)}


def read_layers(
    path: str | os.PathLike[str], skeleton: Skeleton | None = None, *, world: World | None = None
) -> list[Layer]:
    """Read the layers of a TOML or JSON file, as written by ``write_layers`` or the live page.

    Args:
        path: The file.
        skeleton: If given, the joints of the layers must exist in it.
        world: Obstacles for the clearance goals of the layers.

    Raises:
        FileError: If it cannot be read.
        FormatError: If the file is malformed, a value cannot be used or the skeleton lacks a joint; the message names
            the place in the file.
        UnsupportedError: If its name ends neither in ``.toml`` nor in ``.json``.

    Example:
        >>> import synovia as sy
        >>> walk = sy.load_motion("walk.bvh")  # doctest: +SKIP
        >>> edited = sy.edit(walk, sy.formats.read_layers("edit.toml"))  # doctest: +SKIP
    """
    if skeleton is not None:
        check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    if world is not None:
        check_kind("world", world, World, "sy.load_world(path) reads one")
    forms = ROTATION_FORMS | {"rotations": ROTATION_FORMS["rotation"]}
    form = TypedFile(LayerFile, "layer file", SCHEMA, _LARGEST, _fields, choices=KINDS, forms=forms)
    file = form.read(as_path(path))
    layers: list[Layer] = []
    for i, entry in enumerate(file.layers):
        try:
            layer = _layer(entry, world)
            if skeleton is not None:
                check_names(layer, skeleton)
        except (InputError, UnknownNameError) as error:
            raise restated(error, FormatError, f"{path}: layers[{i}]") from error
        layers.append(layer)
    return layers


def check_names(layer: Layer, skeleton: Skeleton) -> None:
    """Check that a skeleton has the joints of a layer.

    Raises:
        UnknownNameError: If a joint is missing.
        InputError: If the skeleton lacks something that a goal needs.
    """
    for goal, _ in layer.all_goals():
        goal.resolved(skeleton).located(skeleton)
    for key in layer.keys:
        skeleton.by_row(key.values, "values")
    for joint in layer.moving or ():
        skeleton.value_index(joint)


def _fields(path: str, value: object) -> tuple[str, ...]:
    """Return the names of the fields that the format allows at a path in the file."""
    last = path.rpartition(".")[2]
    if last.startswith(("rotation", "rotations")):
        return RotationSpec.__struct_fields__
    if last.startswith("goals") and isinstance(value, dict):
        kind = str(value.get("kind"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return "kind", *(field.name for field in KINDS[kind].entry_fields())
    for start, entry in (("targets", TargetEntry), ("keys", KeyEntry), ("layers", LayerEntry)):
        if last.startswith(start):
            return entry.__struct_fields__
    return LayerFile.__struct_fields__


def _layer(entry: LayerEntry, world: World | None) -> Layer:
    """Return the layer that an entry describes; its clearance goals avoid ``world``.

    Raises:
        InputError: If a value cannot be used.
    """
    targets: dict[str | int, LayerTarget] = {}
    for target in entry.targets:
        if target.joint in targets:
            raise InputError("targets", value=target.joint, expected="one target for each joint")
        targets[target.joint] = _target(target)
    keys = tuple(
        Key(key.frame, {joint: np.array(value, np.float64).reshape(-1) for joint, value in key.values.items()})
        for key in entry.keys
    )
    goals: list[Any] = entry.goals  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return Layer(
        targets,
        [to_goal(goal, world) for goal in goals],
        pose=keys or None,
        frames=entry.frames,
        blend=entry.blend,
        relative=entry.relative,
        weight=entry.weight,
        name=entry.name,
        muted=entry.muted,
        moving=entry.moving,
    )


def _target(entry: TargetEntry) -> LayerTarget:
    """Return the target that an entry describes.

    Raises:
        InputError: If a part is given twice, or none is given.
    """
    what = f"target of {entry.joint!r}"
    pairs = ((entry.position, entry.positions), (entry.rotation, entry.rotations))
    if any(one is not None and many is not None for one, many in pairs):
        raise InputError(what, expected="position or positions, and rotation or rotations")
    places = entry.positions if entry.position is None else [entry.position]
    specs = entry.rotations if entry.rotation is None else [entry.rotation]
    if places is None and specs is None:
        raise InputError(what, expected="position, positions, rotation or rotations")
    turns = None if specs is None else np.array([to_matrix(spec) for spec in specs])
    return LayerTarget(None if places is None else np.array(places, np.float64), turns)


def write_layers(layers: Layer | Iterable[Layer], path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write layers to a TOML file for ``read_layers``, the live page and ``synovia edit``.

    Args:
        layers: One layer or several.
        path: The file, usually ``*.toml``.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        UnsupportedError: If a layer file cannot store a goal or the name of a joint.

    Example:
        >>> import synovia as sy
        >>> raised = sy.Layer({"left_hand": (0.0, 0.1, 0.0)}, frames=(30, 60), blend=10, relative=True)
        >>> sy.formats.write_layers([raised], "edit.toml")  # doctest: +SKIP
    """
    write_bytes(as_path(path), layers_text(layers).encode(errors="replace"), force=force)


def layers_text(layers: Layer | Iterable[Layer]) -> str:
    """Return the text of a layer file in TOML.

    Raises:
        UnsupportedError: If a layer file cannot store a goal or the name of a joint.
    """
    blocks = [f'schema = "{SCHEMA}"\n']
    for layer in (layers,) if isinstance(layers, Layer) else layers:
        check_kind("layer", layer, Layer, "sy.Layer({joint: place}, frames=(first, last)) makes one")
        blocks.append(_table("layers", _entry(layer)))
        blocks += [_table("layers.targets", _target_entry(*pair)) for pair in layer.targets.items()]
        blocks += [_table("layers.goals", entry_of(goal)) for goal in layer.goals]
        blocks += [_table("layers.keys", _key_entry(key)) for key in layer.keys]
    return "\n".join(blocks)


def pin_layer(text: str, *, blend: int = 0) -> Layer:
    """Return a layer that keeps a joint in place: ``left_hand@30:60`` keeps it where it is in frame 30.

    Args:
        text: A joint, then ``@`` and the first and the last frame, both included, or a single frame. Without frames,
            the layer covers the whole clip.
        blend: Frames of its fades.

    Raises:
        InputError: If it has another form.
    """
    joint, frames = _at_frames(text, "pin")
    if not joint:
        raise InputError("pin", value=text, expected=_PIN)
    return Layer(goals=[PoseGoal(joint)], frames=frames, blend=blend, name=f"pin {joint}")


def offset_layer(text: str, *, blend: int = 0) -> Layer:
    """Return a layer that displaces a joint from the clip: ``hips=0,-0.08,0`` or ``left_hand=0,0.1,0@30:60``.

    Args:
        text: A joint, ``=``, x, y and z along the axes of the world, then the frames as in ``pin_layer``.
        blend: Frames of its fades.

    Raises:
        InputError: If it has another form.
    """
    moved, frames = _at_frames(text, "offset")
    joint, sign, numbers = moved.rpartition("=")
    try:
        way = [float(number) for number in numbers.split(",")]
    except ValueError:
        way = []
    if not joint or not sign or len(way) != 3 or not all(map(math.isfinite, way)):
        raise InputError("offset", value=text, expected=_OFFSET)
    return Layer({joint: way}, frames=frames, blend=blend, relative=True, name=f"offset {joint}")


def _at_frames(text: str, what: str) -> tuple[str, tuple[int, int] | None]:
    """Return the part of a text before the frames, and the frames; a name may contain ``@``.

    Raises:
        InputError: If the last frame is before the first, or the frames have another form.
    """
    before, _, after = text.rpartition("@")
    found = re.fullmatch(r"(\d{1,9})(?::(\d{1,9}))?", after) if before else None
    if found is None and before and re.fullmatch(r"[-+\d:.,;\s]*", after):
        expected = f"the first and the last frame, counted from 0, such as {before}@30:60"
        raise InputError(f"frames of {what}", value=after, expected=expected)
    if found is None:
        return text, None
    first, last = int(found[1]), int(found[2] or found[1])
    if first > last:
        expected = f"the first frame before the last one, such as {before}@{last}:{first}"
        raise InputError(f"frames of {what}", value=after, expected=expected)
    return before, (first, last)


def is_layer_file(path: Path) -> bool:
    """Return whether a TOML or JSON file has the schema of a layer file near its beginning."""
    with path.open("rb") as stream:
        return SCHEMA.encode() in stream.read(4096)


def _table(name: str, values: Mapping[str, Any]) -> str:
    """Return one table of an array of tables, in TOML."""
    return "\n".join([f"[[{name}]]", *(f"{key} = {literal(value)}" for key, value in values.items())]) + "\n"


def _entry(layer: Layer) -> dict[str, Any]:
    """Return the fields of a layer that differ from their defaults."""
    values: dict[str, Any] = {"name": layer.name, "frames": None if layer.frames is None else list(layer.frames)}
    values |= {"blend": layer.blend or None, "relative": layer.relative or None}
    values |= {"weight": None if layer.weight == 1.0 else layer.weight, "muted": layer.muted or None}
    values["moving"] = None if layer.moving is None else list(layer.moving)
    return {key: value for key, value in values.items() if value is not None}


def _target_entry(joint: str | int, target: LayerTarget) -> dict[str, Any]:
    """Return a target as an entry of a layer file."""
    out: dict[str, Any] = {"joint": joint}
    if target.position is not None:
        many = target.position.tolist()
        out |= {"position": many[0]} if len(many) == 1 else {"positions": many}
    if target.rotation is not None:
        turns = [{"quat_xyzw": quat} for quat in matrix_to_quat(target.rotation).tolist()]
        out |= {"rotation": turns[0]} if len(turns) == 1 else {"rotations": turns}
    return out


def _key_entry(key: Key) -> dict[str, Any]:
    """Return a key as an entry of a layer file.

    Raises:
        UnsupportedError: If a joint has no name.
    """
    for joint in key.values:
        if not isinstance(joint, str):
            raise UnsupportedError("layer files cannot store values by row", value=joint, expected="the joint's name")
    values = {joint: _plain(value) for joint, value in key.values.items()}
    return ({} if key.frame is None else {"frame": key.frame}) | {"values": values}


def _plain(value: Array) -> float | list[float]:
    """Return the value of a joint as the file stores it."""
    numbers: list[float] = value.tolist()
    return numbers[0] if len(numbers) == 1 else numbers
