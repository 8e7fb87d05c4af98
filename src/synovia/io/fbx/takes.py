"""Read and write takes of FBX files: curves of translation, rotation and scale of nodes.

If a take does not key a property, programs such as Blender leave it as the previous take set it. So each take gets one
key at rest for each property that is keyed only in other takes. In the format itself, such keys change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError
from synovia.io.fbx.document import Document, block_of, name_of, own_properties, set_property
from synovia.io.fbx.nodes import Course, Node
from synovia.io.fbx.records import Record
from synovia.model.geometry import Array
from synovia.text import listed

TRANSLATION: Final = "Lcl Translation"
ROTATION: Final = "Lcl Rotation"
SCALING: Final = "Lcl Scaling"
_LETTERS: Final = {TRANSLATION: "T", ROTATION: "R", SCALING: "S"}
_MARK: Final = "SynoviaClip"  # property that marks takes written by Synovia
_LINEAR: Final = 4  # key flag for linear interpolation
_KEY: Final = (0.0, 0.0, 9.419963346924634e-30, 0.0)  # slopes and weights of a key; linear interpolation ignores them
_KEY_VERSION: Final = 4008
Tracks = Mapping[tuple[int, str], NDArray[np.float32]]  # values (T, 3) or (1, 3) by node number and property


def add_take(document: Document, name: str, times: Array, tracks: Tracks) -> str:
    """Add a take to a file, make it the current take, and return its name, which differs from all other takes' names.

    The take is put before the others, for programs that show only the first take.

    Args:
        document: The file.
        name: Name of the take.
        times: Times of its keys, seconds (T,).
        tracks: Values at these times, or one value at the first time.
    """
    taken = {name_of(record) for _, record in document.of("AnimationStack")}
    wanted, number = name, 2
    while name in taken:
        name, number = f"{wanted} {number}", number + 1
    stack = document.add("AnimationStack", name, "AnimStack", before="AnimationStack")
    keys = np.atleast_1d(document.ticks(times))
    properties = block_of(stack)
    set_property(properties, _MARK, "User", name)
    for what in ("Local", "Reference"):
        set_property(properties, f"{what}Start", "KTime", keys[0])
        set_property(properties, f"{what}Stop", "KTime", keys[-1])
    layer = document.add("AnimationLayer", "BaseLayer", "AnimLayer", before="AnimationLayer")
    document.link(layer, stack)
    for (node, what), values in tracks.items():
        add_course(document, layer, (node, what), keys[: len(values)], values)
    _make_current(document, name, keys)
    return name


def add_course(
    document: Document, layer: Record | int, key: tuple[int, str], keys: NDArray[np.int64], values: NDArray[np.float32]
) -> None:
    """Add the curves of a node property to a layer: values (T, 3) at key times in ticks."""
    course = document.add("AnimationCurveNode", _LETTERS[key[1]], "AnimCurveNode")
    document.link(course, layer)
    document.link(course, *key)
    properties = block_of(course)
    for axis, column in zip("XYZ", values.T, strict=True):
        set_property(properties, f"d|{axis}", "Number", float(column[0]))
        document.link(_curve(document, keys, column), course, f"d|{axis}")


def _curve(document: Document, keys: NDArray[np.int64], values: NDArray[np.float32]) -> Record:
    """Add the curve of one component, and return its record."""
    curve = document.add("AnimationCurve", "", "AnimCurve")
    curve.add("Default", float(values[0]))
    curve.add("KeyVer", _KEY_VERSION)
    curve.add("KeyTime", keys)
    curve.add("KeyValueFloat", np.ascontiguousarray(values, np.float32))
    curve.add("KeyAttrFlags", np.array([_LINEAR], np.int32))
    curve.add("KeyAttrDataFloat", np.array(_KEY, np.float32))
    curve.add("KeyAttrRefCount", np.array([len(keys)], np.int32))
    return curve


def _make_current(document: Document, name: str, keys: NDArray[np.int64]) -> None:
    """Make a take the current one, which programs show."""
    for record in document.tree.below:
        if record.name == "Documents":
            for scene in record.all("Document"):
                set_property(block_of(scene), "ActiveAnimStackName", "KString", name)
        if record.name == "GlobalSettings":
            set_property(block_of(record), "TimeSpanStart", "KTime", keys[0])
            set_property(block_of(record), "TimeSpanStop", "KTime", keys[-1])
        if record.name == "Takes":
            record.below = [each for each in record.below if each.name != "Current"]
            record.below.insert(0, Record("Current", [name]))
            take = record.add("Take", name)
            take.add("FileName", f"{name}.tak")
            for what in ("LocalTime", "ReferenceTime"):
                take.add(what, keys[0], keys[-1])


class Take(NamedTuple):
    """A take.

    Args:
        name: Name of the take.
        times: Times of its keys, seconds (T,).
        courses: Local transform of each node over time, by index of the node.
    """

    name: str
    times: Array
    courses: dict[int, Course]


def is_written(stack: Record) -> bool:
    """Return whether Synovia wrote a take that has not been renamed since."""
    return [value for value in own_properties(stack).get(_MARK, ()) if isinstance(value, str)] == [name_of(stack)]


class Keyed(NamedTuple):
    """The properties that a take keys.

    Args:
        stack: Number of the take in the file.
        layer: Number of its first layer.
        start: Time of its first key, ticks.
        curves: Curves by axis of each property, by node index and property.
    """

    stack: int
    layer: int
    start: int
    curves: dict[tuple[int, str], dict[str, Record]]


def keyed_takes(document: Document, nodes: list[Node]) -> list[Keyed]:
    """Return the keyed properties of all takes that key a node."""
    into: dict[int, list[tuple[int, str]]] = {}
    onto: dict[int, list[tuple[int, str]]] = {}
    for source, target, name in document.links():
        into.setdefault(target, []).append((source, name))
        onto.setdefault(source, []).append((target, name))
    row_of = {node.number: row for row, node in enumerate(nodes)}
    out: list[Keyed] = []
    for stack, _ in document.of("AnimationStack"):
        curves: dict[tuple[int, str], dict[str, Record]] = {}
        layers = [layer for layer, _ in into.get(stack, ())]
        for course in [course for layer in layers for course, _ in into.get(layer, ())]:
            keys = {name: document.by_id[at] for at, name in into.get(course, ()) if at in document.by_id}
            ends = ((row_of[at], name) for at, name in onto.get(course, ()) if at in row_of and name in _LETTERS)
            if keys and (end := next(ends, None)) is not None:
                curves[end] = keys
        starts = [_first_key(curve) for keys in curves.values() for curve in keys.values()]
        if curves:
            out.append(
                Keyed(stack, layers[0], min((start for start in starts if start is not None), default=0), curves)
            )
    return out


def _first_key(curve: Record) -> int | None:
    """Return the time of the first key of a curve, ticks; None if it has no keys."""
    times = np.asarray(curve.value("KeyTime"))
    return int(times[0]) if times.ndim == 1 and times.dtype.kind in "iu" and times.size else None


def at_rest(node: Node, what: str) -> NDArray[np.float32]:
    """Return a property of a node at rest, (1, 3)."""
    values = {TRANSLATION: node.translation, ROTATION: node.rotation, SCALING: node.scaling}[what]
    return values[None].astype(np.float32)


def key_rest(document: Document, takes: list[Keyed], nodes: list[Node], keys: Iterable[tuple[int, str]]) -> None:
    """Give each take a key at rest for each given property that the take does not key."""
    for take in takes:
        for row, what in keys:
            if (row, what) not in take.curves:
                start = np.array([take.start], np.int64)
                add_course(document, take.layer, (nodes[row].number, what), start, at_rest(nodes[row], what))


def left_over(document: Document, takes: list[Keyed], nodes: list[Node]) -> list[str]:
    """Return sentences about takes that look different if another take of the file was played before."""
    out: list[str] = []
    name = {take.stack: name_of(document.by_id[take.stack]) for take in takes}
    for take in takes:
        lacking = {key: name[other.stack] for other in takes for key in other.curves if key not in take.curves}
        if lacking:
            joints = listed(sorted({nodes[row].name for row, _ in lacking}))
            others = listed(sorted(set(lacking.values())))
            out.append(f"Take {name[take.stack]!r} has no keys of {joints}, which keep their values from {others}.")
    return out


def read_written_take(document: Document, nodes: list[Node], takes: list[Keyed]) -> Take | None:
    """Read the take that ``add_take`` wrote last; None if there is none.

    Raises:
        FormatError: If its curves were changed and no longer have the same length.
    """
    stack = next((number for number, record in document.of("AnimationStack") if is_written(record)), None)
    take = next((take for take in takes if take.stack == stack), None)
    if stack is None or take is None:
        return None
    values: dict[tuple[int, str], Array] = {}
    times = np.zeros(0, np.int64)
    for end, curves in take.curves.items():
        try:
            parts = [np.asarray(curves[f"d|{axis}"].value("KeyValueFloat"), np.float64) for axis in "XYZ"]
            own = np.asarray(curves["d|X"].value("KeyTime"), np.int64)
            values[end] = np.stack(parts, axis=1).reshape(len(own), 3)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            what = f"take has malformed curves of node {nodes[end[0]].name!r}"
            raise FormatError(what, where=document.where) from error
        times = own if len(own) > len(times) else times
    if {len(each) for each in values.values()} - {1, len(times)}:
        raise FormatError("curves of the take have different lengths", where=document.where)
    courses: dict[int, Course] = {}
    for row, node in enumerate(nodes):
        courses[row] = Course(
            values.get((row, TRANSLATION), node.translation[None]),
            values.get((row, ROTATION), node.rotation[None]),
            values.get((row, SCALING), node.scaling[None]),
        )
    return Take(name_of(document.by_id[stack]), document.seconds(times), courses)
