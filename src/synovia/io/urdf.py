"""URDF, the robot description of ROS: links and joints. The frame of a joint is that of its child link.

The root link has a row of its own, and so has every joint, fixed joints included. The name of a joint and that of its
child link mean the same frame. Lengths are in metres, angles in radians. A planar joint becomes two slides and a hinge
of one body: it moves along the two directions normal to its axis (x and y if the axis is z), then turns about the axis.

Kinematics does not need meshes, so none is opened. Transmissions, sensors and safety controllers are skipped. Some
extensions of the format add constraints, such as closed loops; the notes of the skeleton list them.

References:
    https://wiki.ros.org/urdf/XML/link and https://wiki.ros.org/urdf/XML/joint
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import numpy as np

from synovia.errors import FileError, SynoviaError, did_you_mean
from synovia.io.base import Contents, Format, read_bytes, unused_name
from synovia.io.xmltree import Element, parse, root_is
from synovia.model import LONGEST_COUPLING, MAX_JOINTS, Joint, Kind, Mimic, Skeleton
from synovia.model.geometry import Array, align_z, as_direction, fixed_xyz, rigid
from synovia.model.joint import LONGEST
from synovia.model.limits import Interval

LARGEST_FILE: Final = 2**27  # bytes; shapes are in separate files
_HOMES: Final = ("urdf", "robots", "robot")  # folders whose parent holds the meshes
_LOOPS: Final = ("loop_joint", "drake:ball_constraint", "drake:linear_bushing_rpy")
_KINDS: Final = {
    "fixed": Kind.FIXED,
    "revolute": Kind.HINGE,
    "continuous": Kind.HINGE,
    "prismatic": Kind.SLIDE,
    "floating": Kind.FREE,
    "planar": Kind.HINGE,  # the last of its three rows
}


@dataclass(frozen=True, slots=True)
class _Edge:
    """A joint of the file, before it has a row."""

    element: Element
    name: str
    type: str
    parent: str
    child: str


def read_skeleton(path: Path) -> Skeleton:
    """Read the skeleton of a URDF file.

    Args:
        path: The file.

    Raises:
        FileError: If it cannot be read.
        FormatError: If it is malformed, or its links and joints do not form a tree; the message names the line.
    """
    most = {"link": MAX_JOINTS, "joint": 4 * MAX_JOINTS}  # transmissions name joints again
    robot = parse(read_bytes(path, most=LARGEST_FILE), str(path), root="robot", most=most)
    robot.only("robot")  # report an unexpanded macro first: it is the cause of other errors
    links = _links(robot)
    edges = _edges(robot, links)
    root = _root(robot, links, edges)

    below: dict[str, list[_Edge]] = {}
    for edge in edges:
        below.setdefault(edge.parent, []).append(edge)
    names = {edge.name for edge in edges} | set(links)
    mass, com = _inertia(links[root])
    rows = [Joint(name=root, body=root, mass=mass, com=com)]
    row_of = {root: 0}
    waiting = below.get(root, [])[::-1]
    while waiting:  # depth first, in the order of the file
        edge = waiting.pop()
        rows += _rows(edge, row_of[edge.parent], len(rows), links[edge.child], names)
        row_of[edge.child] = len(rows) - 1
        waiting += below.get(edge.child, [])[::-1]
    lost = [edge for edge in edges if edge.child not in row_of]
    if lost:
        raise lost[0].element.error(
            "joints form a cycle that the root does not reach",
            value=[edge.name for edge in lost[:6]],
            expected=f"a tree from the root link {root!r}",
        )
    _check_couplings(rows, edges)
    return Skeleton(rows, name=path.name, meters_per_unit=1.0, up="z", forward="x", notes=_notes(robot))


def _notes(robot: Element) -> list[str]:
    """Return sentences about closed loops that were not kept: joints of Gazebo, constraints of Drake."""
    lost: list[Element] = []
    for element in robot.children:
        if element.tag in _LOOPS:
            lost.append(element)
        if element.tag == "gazebo":  # its joints, as in SDF, join two links that the tree has already
            joints = [inner for inner in element.children if inner.tag == "joint"]
            lost += [joint for joint in joints if {"parent", "child"} <= {end.tag for end in joint.children}]
    notes: list[str] = []
    for element in lost:
        name = element.attributes.get("name", "")
        called = f"<{element.tag}> {name!r}" if name else f"<{element.tag}>"
        notes.append(f"The constraint {called} was not kept: loops stay open, so the joints in them move freely.")
    return notes


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
    return links


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
            end = element.only(tag)
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
    """Return the one link that is not a child of any joint."""
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


def _rows(edge: _Edge, parent: int, at: int, link: Element, names: set[str]) -> list[Joint]:
    """Return the rows of one joint; the first will be row ``at``, the last is the frame of the link."""
    element = edge.element
    kind = _KINDS[edge.type]
    rest = origin_of(element)
    axis = _axis(element) if kind in (Kind.HINGE, Kind.SLIDE) else np.zeros(3)
    rows: list[Joint] = []
    if edge.type == "planar":
        across = align_z(axis)  # columns: the two directions in the plane, and the axis
        for letter, direction in (("x", across[:, 0]), ("y", across[:, 1])):
            name = unused_name(f"{edge.name}_{letter}", names)
            rows.append(Joint(name=name, parent=parent, kind=Kind.SLIDE, rest=rest, axis=direction))
            parent, rest = at + len(rows) - 1, rigid()
    mass, com = _inertia(link)
    limit, mimic = _limit(edge), _mimic(edge)
    last = Joint(
        edge.name, parent, kind, rest, axis, limit, mass=mass, com=com, mimic=mimic, body=edge.child,
        velocity=_velocity(edge) if kind in (Kind.HINGE, Kind.SLIDE) else None,
    )  # fmt: skip
    return [*rows, last]


def origin_of(element: Element) -> Array:
    """Return the transform of an element's <origin>; rpy turns about the fixed x, then y, then z axis."""
    origin = element.only("origin")
    if origin is None:
        return rigid()
    turn = fixed_xyz(*origin.numbers("rpy", 3, default=(0.0, 0.0, 0.0)))
    return rigid(origin.numbers("xyz", 3, default=(0.0, 0.0, 0.0)), turn)


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
    """Return the limits of a revolute or prismatic joint; a missing bound is 0, as the format specifies."""
    if edge.type not in ("revolute", "prismatic"):
        return None
    limit = edge.element.only("limit")
    if limit is None:
        other = " or use type continuous" if edge.type == "revolute" else ""
        raise edge.element.error(
            f"{edge.type} joint {edge.name!r} has no <limit>", hint=f'add <limit lower="..." upper="..."/>{other}'
        )
    (lower,) = limit.numbers("lower", 1, default=(0.0,), bounded=False)
    (upper,) = limit.numbers("upper", 1, default=(0.0,), bounded=False)
    if lower > upper or lower == math.inf or upper == -math.inf:
        raise limit.error(
            f"limits of joint {edge.name!r} are reversed", value=(lower, upper), expected="lower <= upper"
        )
    return Interval(lower, upper)


def _velocity(edge: _Edge) -> float | None:
    """Return the velocity limit of a joint; 0 is what files write that have none."""
    limit = edge.element.only("limit")
    if limit is None:
        return None
    (velocity,) = limit.numbers("velocity", 1, default=(0.0,), bounded=False)
    return velocity if 0.0 < velocity <= LONGEST else None


def _mimic(edge: _Edge) -> Mimic | None:
    """Return the coupling of a joint to its leader; None without one, and for fixed joints, which have no value."""
    mimic = edge.element.only("mimic")
    if mimic is None or edge.type == "fixed":
        return None
    if edge.type in ("floating", "planar"):
        raise mimic.error(f"{edge.type} joint {edge.name!r} cannot mimic another")
    (ratio,) = mimic.numbers("multiplier", 1, default=(1.0,))
    (offset,) = mimic.numbers("offset", 1, default=(0.0,))
    return Mimic(mimic.text("joint"), ratio, offset)


def _check_couplings(rows: list[Joint], edges: list[_Edge]) -> None:
    """Refuse mimic joints whose leader does not exist or has not exactly one axis, and chains that form a cycle."""
    by_name = {edge.name: edge for edge in edges}
    leader_of = {row.name: row.mimic.leader for row in rows if row.mimic is not None}
    for name in leader_of:
        here = by_name[name].element
        chain = [name]
        while chain[-1] in leader_of and len(chain) <= LONGEST_COUPLING:
            follower, leader = chain[-1], leader_of[chain[-1]]
            if leader not in by_name:
                what = f"joint {follower!r} mimics joint {leader!r}, which does not exist"
                raise here.error(what, hint=did_you_mean(leader, by_name))
            if by_name[leader].type not in ("revolute", "continuous", "prismatic"):
                what = f"joint {follower!r} mimics {leader!r}, a {by_name[leader].type} joint"
                raise here.error(what, expected="a revolute, continuous or prismatic joint")
            if leader in chain:
                raise here.error(f"joint {leader!r} mimics itself", value=[*chain, leader])
            chain.append(leader)
        if chain[-1] in leader_of:
            raise here.error(f"joint {name!r} mimics a chain of more than {LONGEST_COUPLING} joints")


def _inertia(link: Element) -> tuple[float, Array]:
    """Return mass (kg) and centre of mass (3,) of a link, in its frame."""
    inertial = link.only("inertial")
    if inertial is None:
        return 0.0, np.zeros(3)
    element = inertial.only("mass")
    if element is None:
        raise inertial.error("<inertial> has no <mass>", hint='add <mass value="..."/> or remove <inertial>')
    (mass,) = element.numbers("value", 1)
    if mass < 0.0:
        raise element.error("mass is negative", value=mass, expected="kilograms, 0 or more")
    return mass, origin_of(inertial)[:3, 3]


def mesh_places(path: Path, shape: Element) -> list[Path]:
    """Return where the file of a mesh may be, the likeliest place first; all are inside the robot's folder.

    For a robot in a folder named like ``urdf``, this is the parent of that folder. ``package://NAME/`` refers to the
    nearest folder NAME that contains the robot, else to the robot's folder.

    Args:
        path: The robot.
        shape: The element ``<mesh>``.

    Raises:
        FileError: If the element has no valid file name.
        FormatError: If it has no file name at all.
    """
    named = unquote(shape.text("filename")).strip()
    home = path.resolve().parent
    package, rest = "", named
    if "://" in named:
        scheme, _, rest = named.partition("://")
        if scheme not in ("package", "file", "model"):
            raise FileError("not a file address", where=shape.place, value=named)
        if scheme != "file":
            package, _, rest = rest.partition("/")
    roots = [home.parent, home] if home.name in _HOMES else [home]
    if package:
        roots = [above for above in (home, *home.parents[:4]) if above.name == package] + roots
    if "\0" in rest or "\\" in rest:
        raise FileError("not a valid file name", where=shape.place, value=named)
    places: dict[Path, None] = {}
    for root in dict.fromkeys(roots):
        for start in (root, home):
            with suppress(OSError, RuntimeError, ValueError):  # a loop of links, a name that is too long
                target = (start / rest).resolve()
                if target.is_relative_to(root):
                    places[target] = None
    return [*places]


def _meshes(path: Path) -> Iterator[Path]:
    """Yield the files of the meshes of a robot.

    Raises:
        SynoviaError: If the robot cannot be read.
    """
    most = {"link": MAX_JOINTS, "joint": 4 * MAX_JOINTS}
    waiting = [parse(read_bytes(path, most=LARGEST_FILE), str(path), root="robot", most=most)]
    while waiting:
        element = waiting.pop()
        waiting += element.children
        if element.tag == "mesh":
            with suppress(SynoviaError):
                places = mesh_places(path, element)
                yield from [place for place in places if place.is_file()][:1] or places[:1]


FORMAT: Final = Format(
    "URDF",
    (".urdf",),
    lambda head: root_is("robot", head),
    lambda path: Contents(read_skeleton(path)),
    companions=_meshes,
)
