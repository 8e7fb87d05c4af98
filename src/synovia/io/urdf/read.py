"""URDF, the robot description of ROS: links and joints. The frame of a joint is that of its child link.

The root link and every joint, also a fixed one, have one row each. The name of a joint and that of its child link mean
the same frame. Lengths are in metres, angles in radians. A planar joint becomes two slides and a hinge of one body: it
moves along the two directions normal to its axis (x and y if the axis is z), then rotates about the axis.

Shapes are those of <collision>. A mesh counts as its convex hull; its file is opened when the hull is first used, as
kinematics does not need it. Pairs of links that may touch come from an SRDF file (``srdf.py``). Transmissions, sensors,
inertia tensors, friction and damping are skipped. The notes of the skeleton list constraints that are not kept: soft
limits, closed loops and couplings of extensions, couplings without a leader, macros that were not expanded. As in
Bullet, limits with the lower value above the upper one are ignored, and joints of type spherical are balls. As in
Drake, a parent link ``world`` need not be defined. Sources of the macro language xacro are expanded by the program
``xacro`` (``xacro.py``).

References:
    https://wiki.ros.org/urdf/XML/link and https://wiki.ros.org/urdf/XML/joint
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from synovia.errors import FormatError, SynoviaError, did_you_mean
from synovia.io.base import NO_SHAPES, immovable_note, read_bytes
from synovia.io.urdf import xacro
from synovia.io.urdf.shapes import Collisions, mesh_places, origin_of
from synovia.io.urdf.srdf import default_srdf, read_pairs
from synovia.io.xmltree import Element, UnexpandedError, parse
from synovia.model import LONGEST_COUPLING, MAX_JOINTS, Joint, Kind, Mimic, Skeleton
from synovia.model.address import LINK
from synovia.model.geometry import LONGEST, Array, align_z, as_direction, rigid
from synovia.model.limits import Interval
from synovia.model.tree import unused_name
from synovia.text import first_few, listed

if TYPE_CHECKING:
    from synovia.model.shapes.world import World

LARGEST_FILE: Final = 2**27  # largest size of a file, bytes; shapes are in separate files
_LOOPS: Final = ("loop_joint", "drake:ball_constraint", "drake:linear_bushing_rpy")
_SOURCES: Final = ("xacro:include", "xacro:macro", "xacro:if", "xacro:unless")  # elements that only a xacro file has
_WORLD: Final = "world"  # a parent link with this name need not be defined
_SCALAR: Final = ("revolute", "continuous", "prismatic")  # types of joints with one axis and one value
_LIMITED: Final = ("revolute", "prismatic")
_KINDS: Final = {
    "fixed": Kind.FIXED,
    "revolute": Kind.HINGE,
    "continuous": Kind.HINGE,
    "prismatic": Kind.SLIDE,
    "floating": Kind.FREE,
    "planar": Kind.HINGE,  # kind of the last of the three rows of a planar joint
    "spherical": Kind.BALL,  # type that only Bullet and MuJoCo know
}


@dataclass(frozen=True, slots=True)
class _Edge:
    """A joint of the file, before it becomes rows of the skeleton."""

    element: Element
    name: str
    type: str
    parent: str
    child: str


def read_skeleton(path: Path, srdf: Path | None = None) -> Skeleton:
    """Read the skeleton of a URDF file.

    Args:
        path: The file.
        srdf: SRDF file with the pairs of links that may touch; None for the one next to the file, if there is one.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is malformed, or its links and joints do not form a tree; the message names the line.
    """
    data = read_bytes(path, most=LARGEST_FILE)
    program = xacro.program()
    if path.name.endswith(xacro.ENDING) and program is not None:
        return _skeleton(path, xacro.expanded(path, program, most=LARGEST_FILE), srdf, expanded=True)
    try:
        return _skeleton(path, data, srdf)
    except UnexpandedError as error:
        if program is None:
            raise FormatError(error.what, where=error.where, value=error.value, hint=xacro.hint(str(path))) from error
    return _skeleton(path, xacro.expanded(path, program, most=LARGEST_FILE), srdf, expanded=True)


def _skeleton(path: Path, data: bytes, srdf: Path | None, *, expanded: bool = False) -> Skeleton:
    """Return the skeleton of a robot; see ``read_skeleton``.

    Args:
        path: The file.
        data: Content of the file.
        srdf: SRDF file, as in ``read_skeleton``.
        expanded: Whether the content is xacro's output, whose line numbers differ from those of the file.

    Raises:
        UnexpandedError: If it needs macros that were not expanded.
    """
    most = {"link": MAX_JOINTS, "joint": 4 * MAX_JOINTS}  # transmissions contain further joint elements
    robot = parse(data, f"{path} (expanded)" if expanded else str(path), root="robot", most=most)
    macros = _macros(robot)
    try:
        links = _links(robot)
        edges = _edges(robot, links)
        root = _root(robot, links, edges)
    except UnexpandedError:
        raise
    except FormatError as error:
        if macros:  # the macros may have caused the error
            raise _unexpanded(macros[0]) from error
        raise
    source = next((macro for macro in macros if macro.tag in _SOURCES), None)
    if source is not None and not edges:
        raise _unexpanded(source)

    below: dict[str, list[_Edge]] = {}
    for edge in edges:
        below.setdefault(edge.parent, []).append(edge)
    names = {edge.name for edge in edges} | set(links)
    notes: list[str] = []
    mimics = _mimics(edges, notes)
    collisions = Collisions(path)
    mass, com = _inertia(links[root])
    shapes = collisions.of(links[root])
    lost = collisions.is_incomplete(links[root])
    rows = [Joint(name=root, body=root, mass=mass, com=com, shapes=shapes, shapes_lost=lost)]
    row_of = {root: 0}
    waiting = below.get(root, [])[::-1]
    while waiting:  # depth first, in the order of the file
        edge = waiting.pop()
        rows += _rows(edge, row_of[edge.parent], len(rows), links[edge.child], names, mimics.get(edge.name))
        shapes = collisions.of(links[edge.child])
        lost = collisions.is_incomplete(links[edge.child])
        if shapes or lost:
            rows[-1] = replace(rows[-1], shapes=shapes, shapes_lost=lost)
        row_of[edge.child] = len(rows) - 1
        waiting += below.get(edge.child, [])[::-1]
    unreached = [edge for edge in edges if edge.child not in row_of]
    if unreached:
        raise unreached[0].element.error(
            "joints form a cycle that the root does not reach",
            value=[edge.name for edge in unreached[:6]],
            expected=f"a tree from the root link {root!r}",
        )
    pairs, unused = read_pairs(path, srdf, links)
    notes += [
        *_limit_notes(edges, mimics),
        *_extension_notes(robot, edges, mimics),
        *_macro_notes(macros),
        *collisions.notes(),
        *unused,
        *robot.notes,
    ]
    return Skeleton(
        rows,
        name=path.name,
        meters_per_unit=1.0,
        up="z",
        forward="x",
        notes=notes,
        source=path,
        excluded_pairs=[(f"{LINK}:{first}", f"{LINK}:{second}") for first, second in pairs],
    )


def read_world(path: Path) -> World:
    """Read the shapes of all links as obstacles, with the joints at rest; errors as in ``read_skeleton``."""
    from synovia.model.shapes.world import World

    body = read_skeleton(path)
    moving = [joint.name for joint in body.joints if joint.kind is not Kind.FIXED]
    notes = [note for note in body.notes if note.startswith(NO_SHAPES)]
    if moving:
        notes.append(f"Joints stay at rest: {listed(moving)}.")
    return replace(World.of(body.rest_pose()), notes=tuple(notes))


def _macros(robot: Element) -> list[Element]:
    """Return the unexpanded macros at the level of links and joints, and inside links.

    Raises:
        FormatError: If a macro is inside a joint; it may define the joint's origin or limits.
    """
    found: list[Element] = []
    for element in robot.children:
        parts = [element, *element.children]
        if element.tag == "link":
            parts += [inner for part in element.children if part.tag == "inertial" for inner in part.children]
        macros = [part for part in parts if part.tag.startswith("xacro:")]
        if macros and element.tag == "joint":
            raise _unexpanded(macros[0])
        found += macros
    return found


def _unexpanded(macro: Element) -> UnexpandedError:
    """Return the error for an unexpanded macro that the robot needs."""
    return UnexpandedError(f"holds an unexpanded macro <{macro.tag}>", where=macro.place)


def _macro_notes(macros: list[Element]) -> list[str]:
    """Return a note about macros in the file of a complete robot."""
    if not macros:
        return []
    names = ", ".join(f"<{name}>" for name in [*dict.fromkeys(macro.tag for macro in macros)][:4])
    return [f"Unexpanded macros ({names}) were not kept. If they add links or masses, run xacro on their source first."]


def _limit_notes(edges: list[_Edge], mimics: dict[str, Mimic]) -> list[str]:
    """Return notes about limits that were not kept, and about joints that cannot move."""
    notes: list[str] = []
    reversed_: list[str] = []
    still: dict[str, float] = {}
    soft: list[str] = []
    without: list[str] = []
    unbounded: list[str] = []
    for edge in edges:
        bounds = _bounds(edge)
        given = _given_velocity(edge)
        if given is not None and _velocity(edge) is None and edge.type in _SCALAR:
            unbounded.append(f"{edge.name!r} ({given:g})")
        if edge.type not in _LIMITED:
            if edge.type != "fixed" and bounds is not None and bounds[0] < bounds[1]:
                without.append(f"{edge.name!r} ({edge.type})")
        elif bounds is not None and bounds[0] > bounds[1]:
            reversed_.append(f"{edge.name!r} ({bounds[0]:.4g} to {bounds[1]:.4g})")
        elif bounds is not None and bounds[0] == bounds[1] and edge.name not in mimics:
            still[edge.name] = bounds[0]
        low, high = _soft_limits(edge)
        if edge.type in _LIMITED and bounds is not None and (low > bounds[0] or high < bounds[1]):
            soft.append(f"{edge.name!r} ({max(low, bounds[0]):.4g} to {min(high, bounds[1]):.4g})")
    if reversed_:
        notes.append(f"Reversed limits were ignored: {first_few(reversed_)}.")
    if still:
        notes.append(immovable_note(still))
    if without:
        notes.append(f"Limits of joints whose type allows none were ignored: {first_few(without)}.")
    if unbounded:
        notes.append(f"Velocity limits that are 0, negative or infinite were ignored: {first_few(unbounded)}.")
    if soft:
        notes.append(f"Soft limits of safety controllers were not kept, only those of <limit>: {first_few(soft)}.")
    return notes


def _bounds(edge: _Edge) -> tuple[float, float] | None:
    """Return the lower and upper limit of a joint; a missing value is 0, as the format specifies."""
    limit = edge.element.only("limit")
    if limit is None:
        return None
    (lower,) = limit.numbers("lower", 1, default=(0.0,), bounded=False)
    (upper,) = limit.numbers("upper", 1, default=(0.0,), bounded=False)
    return lower, upper


def _soft_limits(edge: _Edge) -> tuple[float, float]:
    """Return the soft limits of a joint; infinite where the file has none."""
    safety = edge.element.only("safety_controller")
    if safety is None:
        return -math.inf, math.inf
    (low,) = safety.numbers("soft_lower_limit", 1, default=(-math.inf,), bounded=False)
    (high,) = safety.numbers("soft_upper_limit", 1, default=(math.inf,), bounded=False)
    return (low, high) if low < high else (-math.inf, math.inf)  # both are 0 by default, for no soft limits


def _extension_notes(robot: Element, edges: list[_Edge], mimics: dict[str, Mimic]) -> list[str]:
    """Return notes about loops of Gazebo and Drake, and about couplings of Gazebo and ros2_control."""
    lost: list[Element] = []
    coupled: list[tuple[str, str]] = []
    for element in robot.children:
        if element.tag in _LOOPS:
            lost.append(element)
        if element.tag == "gazebo":  # as in SDF, joints in this element connect two links that are already in the tree
            joints = [inner for inner in element.children if inner.tag == "joint"]
            lost += [joint for joint in joints if {"parent", "child"} <= {end.tag for end in joint.children}]
        if element.tag in ("gazebo", "ros2_control"):
            coupled += [pair for inner in element.children for pair in _coupled(inner)]
    notes: list[str] = []
    for element in lost:
        name = element.attributes.get("name", "")
        called = f"<{element.tag}> {name!r}" if name else f"<{element.tag}>"
        notes.append(f"The constraint {called} was not kept: loops stay open, so the joints in them move freely.")
    movable = {edge.name for edge in edges if edge.type in _SCALAR and edge.name not in mimics}
    pairs = [f"{joint!r} ({leader!r})" for joint, leader in dict.fromkeys(coupled) if joint in movable]
    if pairs:
        notes.append(f"Couplings in extensions, without <mimic>, were not kept; joint (leader): {first_few(pairs)}.")
    return notes


def _coupled(element: Element) -> list[tuple[str, str]]:
    """Return the follower and leader of a Gazebo plugin that couples joints, or of a ros2_control joint."""
    texts = {inner.tag: inner.content.strip() for inner in element.children}
    if element.tag == "plugin" and texts.get("joint") and texts.get("mimicJoint"):
        return [(texts["mimicJoint"], texts["joint"])]
    params = {inner.attributes.get("name"): inner.content.strip() for inner in element.children if inner.tag == "param"}
    if element.tag == "joint" and params.get("mimic"):
        return [(element.attributes.get("name", ""), params["mimic"])]
    return []


def _links(robot: Element) -> dict[str, Element]:
    """Return the links by name."""
    links: dict[str, Element] = {}
    for element in robot.children:
        if element.tag == "link":
            name = element.text("name")
            if name in links:
                raise element.error(f"link {name!r} is defined twice", hint=f"the first is on line {links[name].line}")
            links[name] = element
    if not links:
        raise robot.error("robot has no link", expected="at least one <link>")
    if _WORLD not in links and any(_hangs_from_world(element) for element in robot.children):
        links[_WORLD] = Element("link", {"name": _WORLD}, robot.file, robot.line, notes=robot.notes)
        robot.notes[f"The link {_WORLD!r}, the parent of a joint, is not defined; it was added."] = None
    return links


def _hangs_from_world(element: Element) -> bool:
    """Return whether an element is a joint whose parent is the world."""
    ends = [child.attributes.get("link") for child in element.children if child.tag == "parent"]
    return element.tag == "joint" and ends[:1] == [_WORLD]


def _edges(robot: Element, links: dict[str, Element]) -> list[_Edge]:
    """Return the joints in the order of the file, after checking that their links exist and have one parent each."""
    edges: dict[str, _Edge] = {}
    above: dict[str, _Edge] = {}
    for element in robot.children:
        if element.tag != "joint":
            continue
        name = element.text("name")
        if name in edges:
            raise element.error(
                f"joint {name!r} is defined twice", hint=f"the first is on line {edges[name].element.line}"
            )
        kind = element.text("type")
        if kind not in _KINDS:
            raise element.error(
                f"joint {name!r} has an unknown type", value=kind, expected="one of " + ", ".join(_KINDS)
            )
        ends: list[str] = []
        for tag in ("parent", "child"):
            end = element.only(tag, alike=True)
            if end is None:
                raise element.error(f"joint {name!r} has no <{tag}>", expected=f'<{tag} link="..."/>')
            ends.append(end.text("link"))
            if ends[-1] not in links:
                raise end.error(
                    f"{tag} link {ends[-1]!r} of joint {name!r} does not exist", hint=did_you_mean(ends[-1], links)
                )
        edge = edges[name] = _Edge(element, name, kind, ends[0], ends[1])
        if edge.parent == edge.child:
            raise element.error(f"joint {name!r} joins link {edge.child!r} to itself")
        if edge.child in above:
            other = above[edge.child]
            raise element.error(
                f"link {edge.child!r} has two parents: {other.parent!r} by joint {other.name!r} on line "
                f"{other.element.line}, and {edge.parent!r} by joint {name!r}",
                expected="a tree; closed loops cannot be described in URDF",
            )
        above[edge.child] = edge
    return list(edges.values())


def _root(robot: Element, links: dict[str, Element], edges: list[_Edge]) -> str:
    """Return the only link that is not a child of any joint."""
    children = {edge.child for edge in edges}
    roots = [name for name in links if name not in children]
    if not roots:
        raise robot.error(
            "there is no root: every link is the child of a joint, so the joints form a cycle",
            value=[edge.name for edge in edges[:6]],
            expected="one link that is not a child of any joint",
        )
    if len(roots) > 1:
        raise links[roots[1]].error(
            f"there are {len(roots)} root links",
            value=roots[:6],
            expected="one link that is not a child of any joint",
            hint="join the others to it by joints of type fixed",
        )
    return roots[0]


def _rows(edge: _Edge, parent: int, at: int, link: Element, names: set[str], mimic: Mimic | None) -> list[Joint]:
    """Return the rows of a joint, which begin at row ``at`` of the skeleton; the last row is the frame of the link."""
    element = edge.element
    kind = _KINDS[edge.type]
    rest = origin_of(element)
    axis = _axis(element) if kind in (Kind.HINGE, Kind.SLIDE) else np.zeros(3)
    rows: list[Joint] = []
    if edge.type == "planar":
        across = align_z(axis)  # its columns are the two directions in the plane, and the axis
        for letter, direction in (("x", across[:, 0]), ("y", across[:, 1])):
            name = unused_name(f"{edge.name}_{letter}", names)
            rows.append(Joint(name=name, parent=parent, kind=Kind.SLIDE, rest=rest, axis=direction))
            parent, rest = at + len(rows) - 1, rigid()
    mass, com = _inertia(link)
    last = Joint(
        edge.name, parent, kind, rest, axis, _limit(edge), mass=mass, com=com, mimic=mimic, body=edge.child,
        velocity=_velocity(edge) if kind in (Kind.HINGE, Kind.SLIDE) else None,
    )  # fmt: skip
    return [*rows, last]


def _axis(element: Element) -> Array:
    """Return the unit axis of a joint; x if the file has none."""
    axis = element.only("axis")
    numbers = np.array((1.0, 0.0, 0.0) if axis is None else axis.numbers("xyz", 3, default=(1.0, 0.0, 0.0)))
    if axis is not None and not np.abs(numbers).max() > 1e-9:
        raise axis.error(
            f"axis of joint {element.attributes['name']!r} has no direction",
            value=axis.attributes.get("xyz"),
            expected="three numbers, not all 0",
        )
    return as_direction(numbers, "axis")


def _limit(edge: _Edge) -> Interval | None:
    """Return the limits of a revolute or prismatic joint; None for reversed limits."""
    if edge.type not in _LIMITED:
        return None
    limit, bounds = edge.element.only("limit"), _bounds(edge)
    if limit is None or bounds is None:
        other = " or use type continuous" if edge.type == "revolute" else ""
        raise edge.element.error(
            f"{edge.type} joint {edge.name!r} has no <limit>", hint=f'add <limit lower="..." upper="..."/>{other}'
        )
    lower, upper = bounds
    if lower == math.inf or upper == -math.inf:
        raise limit.error(f"limits of joint {edge.name!r} allow no value", value=bounds, expected="lower <= upper")
    return Interval(lower, upper) if lower <= upper else None


def _given_velocity(edge: _Edge) -> float | None:
    """Return the velocity limit of a joint as given in the file; None without a limit."""
    limit = edge.element.only("limit")
    if limit is None or "velocity" not in limit.attributes:
        return None
    return limit.numbers("velocity", 1, bounded=False)[0]


def _velocity(edge: _Edge) -> float | None:
    """Return the velocity limit of a joint; None without a limit, or for 0, which exporters write if there is none."""
    velocity = _given_velocity(edge)
    return velocity if velocity is not None and 0.0 < velocity <= LONGEST else None


def _mimics(edges: list[_Edge], notes: list[str]) -> dict[str, Mimic]:
    """Return the coupling of each joint to its leader, by joint name; notes list couplings that cannot be kept.

    A joint whose coupling is not kept moves freely inside its limits, as in Pinocchio and MuJoCo.
    """
    by_name = {edge.name: edge for edge in edges}
    mimics: dict[str, Mimic] = {}
    for edge in edges:
        mimic = None if edge.type == "fixed" else edge.element.only("mimic")  # a fixed joint has no value
        if mimic is None:
            continue
        (ratio,) = mimic.numbers("multiplier", 1, default=(1.0,))
        (offset,) = mimic.numbers("offset", 1, default=(0.0,))
        leader = mimic.text("joint")
        other = by_name.get(leader)
        chain = [leader]
        while chain[-1] in mimics and len(chain) <= LONGEST_COUPLING:
            chain.append(mimics[chain[-1]].leader)
        if other is None:
            why = f"there is no joint {leader!r} ({did_you_mean(leader, by_name)})"
        elif edge.type not in _SCALAR or other.type not in _SCALAR:
            why = f"a {edge.type} joint cannot follow a {other.type} one"
        elif edge.name in chain:
            why = "it would follow itself"
        elif len(chain) > LONGEST_COUPLING:
            raise mimic.error(f"joint {edge.name!r} mimics a chain of more than {LONGEST_COUPLING} joints")
        else:
            mimics[edge.name] = Mimic(leader, ratio, offset)
            continue
        notes.append(f"The coupling of joint {edge.name!r} to {leader!r} was not kept, so it moves freely: {why}.")
    return mimics


def _inertia(link: Element) -> tuple[float, Array]:
    """Return mass (kg) and centre of mass (3,) of a link, in its frame."""
    inertial = link.only("inertial")
    if inertial is None:
        return 0.0, np.zeros(3)
    element = inertial.only("mass")
    if element is None:
        name = link.attributes.get("name", "")
        link.notes[f"The <inertial> of link {name!r} has no <mass>; 0 was used."] = None
        return 0.0, np.zeros(3)
    (mass,) = element.numbers("value", 1)
    if mass < 0.0:
        raise element.error("mass is negative", value=mass, expected="kilograms, 0 or more")
    return mass, origin_of(inertial)[:3, 3]


def companions(path: Path) -> Iterator[Path]:
    """Yield the SRDF file next to a robot, its mesh files, and the sources in its folder that it includes.

    Raises:
        SynoviaError: If the robot cannot be read.
    """
    yield default_srdf(path)
    most = {"link": MAX_JOINTS, "joint": 4 * MAX_JOINTS}
    waiting = [parse(read_bytes(path, most=LARGEST_FILE), str(path), root="robot", most=most)]
    while waiting:
        element = waiting.pop()
        waiting += element.children
        if element.tag == "xacro:include":
            named = element.attributes.get("filename", "")
            if named and "$" not in named:
                yield path.parent / named
        if element.tag == "mesh":
            with suppress(SynoviaError):
                places = mesh_places(path, element)
                yield from [place for place in places if place.is_file()][:1] or places[:1]
